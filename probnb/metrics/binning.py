"""Quantile bins of predictions, and what is read off them: calibration errors and their parts.

One rule decides every bin of the project, `probnb.metrics.sample.bin_cuts`: reliability diagrams,
ECE, MCE and their bootstrap, the decomposition of the Brier score, histogram binning and the
empirical probabilities of CaPE. The ECE of a finite sample is never 0, however well calibrated the
model: here are its bias taken off, errors that have no bins, and the values that chance would give.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq
from scipy.special import erf

from ..validation import check_choice, check_integer, check_probabilities
from .sample import FEWEST, bin_starts, check_row_weights, check_sample, effective_rows

__all__ = ["BrierDecomposition", "NullBand", "ReliabilityBins", "brier_decomposition"]
__all__ += ["calibration_null_band", "ece", "ece_debiased", "ece_smooth", "ks_curves", "ks_error"]
__all__ += ["mce", "reliability_bins"]

BINS = 15
"""Number of bins in the paper."""


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """Predictions and outcomes by quantile bin, K bins in increasing order of prediction.

    Attributes
    ----------
    edges : ndarray of shape (K + 1,)
        Bin k holds the predictions with ``edges[k] <= p_hat < edges[k + 1]`` (the last bin 1 as
        well). An inner edge is the smallest prediction of the bin above it; the outer ones are 0
        and 1.
    mean_prediction : ndarray of shape (K,)
        Mean prediction of each bin, the paper's q.
    mean_outcome : ndarray of shape (K,)
        Mean outcome of each bin, the paper's p_emp.
    count : ndarray of shape (K,)
        Rows in each bin, at least 1.
    weight : ndarray of shape (K,)
        Share of the rows' weight in each bin; the shares add up to 1.
    effective : ndarray of shape (K,)
        Kish's effective number of rows, squared sum of weights over sum of squares: how many rows
        of equal weight would leave a mean outcome as uncertain. `count` where all weigh the same.
    """

    edges: np.ndarray
    mean_prediction: np.ndarray
    mean_outcome: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    effective: np.ndarray

    @property
    def gap(self):
        """Mean outcome less mean prediction of each bin, of shape (K,)."""
        return self.mean_outcome - self.mean_prediction

    def assign(self, p_hat):
        """Return the bin, 0 to K - 1, in which each prediction falls."""
        return np.searchsorted(self.edges[1:-1], p_hat, side="right")


def reliability_bins(y_true, y_prob, bins=BINS, weights=None):
    r"""Group predictions into bins of equal size by quantile; ties stay together.

    Sorted, row i of N (from 0) belongs to bin :math:`\lfloor B(i + 1/2)/N \rfloor`. Equal
    predictions share the bin of their middle rank, so the order of the rows never matters. Ranks
    cumulate the weights where rows have some. Bins left without rows, because of ties or of fewer
    rows than bins, drop out.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    ReliabilityBins
        Edges, mean prediction, mean outcome and count of each bin that has rows.

    Raises
    ------
    ValueError
        If outcomes are not 0 or 1, probabilities are NaN or outside [0, 1], weights are negative,
        infinite or all 0, the lengths differ, there are no rows, or `bins` is not a positive
        integer.

    Notes
    -----
    Section 3 of the paper, the equations for p_emp and q.

    Examples
    --------
    >>> table = reliability_bins([0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.4, 0.4, 0.8, 0.9], bins=3)
    >>> table.mean_outcome
    array([0.5, 0.5, 1. ])
    >>> table.count
    array([2, 2, 2])
    """
    sample, bins = check_sample(y_true, y_prob, weights), check_integer(bins, "bins")
    p, y = sample.p_hat[sample.order], sample.y[sample.order]
    w = np.ones(len(p)) if sample.weights is None else sample.weights[sample.order]
    starts = bin_starts(p, w, bins)
    ends = np.append(starts[1:], len(p))
    mass = np.add.reduceat(w, starts)
    mean_prediction = np.add.reduceat(w * p, starts) / mass
    return ReliabilityBins(
        edges=np.concatenate([[0.0], p[starts[1:]], [1.0]]),
        # exactly the common value where all of a bin are equal
        mean_prediction=np.where(p[starts] == p[ends - 1], p[starts], mean_prediction),
        mean_outcome=np.add.reduceat(w * y, starts) / mass,
        count=ends - starts,
        weight=mass / mass.sum(),
        effective=effective_rows(w, starts),
    )


def ece(y_true, y_prob, bins=BINS, weighting="rows", weights=None):
    r"""Expected calibration error over quantile bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weighting : {"rows", "plain"}, default="rows"
        Mean over the bins in proportion to the weight of their rows, or the paper's plain mean
        over the bins that have rows. The two agree where the bins are equal; where ties make them
        unequal the plain mean lets a few rows count as much as most.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The error, in [0, 1].

    Raises
    ------
    ValueError
        As `reliability_bins`, or if `weighting` is unknown.

    Notes
    -----
    Section 3: :math:`\frac1B \sum_b |p_\text{emp}^{(b)} - q^{(b)}|`. Estimated from n rows it is
    biased upwards: a perfectly calibrated model has a positive expected ECE, of order
    :math:`\sqrt{B/n}` (see `ece_debiased` and `calibration_null_band`).

    Examples
    --------
    >>> round(ece([1, 1, 1, 0, 0], [0.9] * 5), 3)
    0.3
    """
    check_choice(weighting, ("rows", "plain"), "weighting")
    sample = check_sample(y_true, y_prob, weights)
    return float(ece_ranked(sample.ranked, check_integer(bins, "bins"), weighting)[0])


def ece_ranked(ranked, bins=BINS, weighting="rows"):
    """Return the ECE under each set of weights."""
    mass, gaps = ranked.bin_gaps(bins)
    share = mass if weighting == "rows" else mass > 0
    return (share * gaps).sum(axis=1) / share.sum(axis=1)


def mce(y_true, y_prob, bins=BINS, weights=None):
    r"""Maximum calibration error over quantile bins: :math:`\max_b |p_\text{emp}^{(b)} - q^{(b)}|`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The largest gap, in [0, 1], whatever the rows of its bin (Section 3).

    Examples
    --------
    >>> round(mce([0, 0, 1, 1], [0.1, 0.1, 0.6, 0.6], bins=2), 3)
    0.4
    """
    sample = check_sample(y_true, y_prob, weights)
    return float(mce_ranked(sample.ranked, check_integer(bins, "bins"))[0])


def mce_ranked(ranked, bins=BINS):
    """Return the MCE under each set of weights."""
    return ranked.bin_gaps(bins)[1].max(axis=1)


def ks_curves(y_true, y_prob, weights=None):
    r"""Cumulative observed and predicted outcomes, at each distinct prediction.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    sigma : ndarray of shape (k,)
        The distinct predictions, increasing.
    observed : ndarray of shape (k,)
        :math:`\phi_1(\sigma) = \frac1n \sum_i y_i 1(\hat p_i \le \sigma)` (Appendix D).
    predicted : ndarray of shape (k,)
        :math:`\phi_2(\sigma) = \frac1n \sum_i \hat p_i 1(\hat p_i \le \sigma)`.

    Examples
    --------
    >>> sigma, observed, predicted = ks_curves([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    >>> observed, predicted
    (array([0.25, 0.75]), array([0.125, 0.5  ]))
    """
    ranked = check_sample(y_true, y_prob, weights).ranked
    observed = np.cumsum(ranked.ones[0]) / ranked.total[0]
    return ranked.values, observed, np.cumsum(ranked.mass[0] * ranked.values) / ranked.total[0]


def ks_error(y_true, y_prob, weights=None):
    r"""Kolmogorov-Smirnov calibration error, which needs no bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The largest gap between the two curves of `ks_curves`, in [0, 1].

    Notes
    -----
    Appendix D: :math:`\max_{0 \le \sigma \le 1} |\phi_1(\sigma) - \phi_2(\sigma)|`, reached at one
    of the distinct predictions since both curves are constant in between. A value within a run of
    equal predictions would depend on the order of the rows, and is never used.

    Examples
    --------
    >>> ks_error([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    return float(ks_ranked(check_sample(y_true, y_prob, weights).ranked)[0])


def ks_ranked(ranked):
    """Return the KS error under each set of weights."""
    return np.abs(ranked.gap_up_to).max(axis=1) / ranked.total


@dataclass(frozen=True)
class BrierDecomposition:
    """The parts of the Brier score; see `brier_decomposition` for their formulas.

    Attributes
    ----------
    calibration : float
        Squared gaps between mean prediction and mean outcome of a bin (also: reliability).
    refinement : float
        Variance of the outcomes within the bins: ``uncertainty - resolution``.
    resolution : float
        Variance of the bins' mean outcomes.
    uncertainty : float
        Variance of all outcomes.
    within_variance : float
        Variance of the predictions within the bins; 0 without bins.
    within_covariance : float
        Covariance of predictions and outcomes within the bins; 0 without bins.
    """

    calibration: float
    refinement: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float

    @property
    def total(self):
        """The Brier score: calibration + refinement + variance - 2 covariance within bins."""
        within = self.within_variance - 2 * self.within_covariance
        return self.calibration + self.refinement + within


def brier_decomposition(y_true, y_prob, bins=None, weights=None):
    r"""Split the Brier score into calibration and refinement (uncertainty less resolution).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, optional
        Number of quantile bins. By default each distinct prediction is its own group, which is the
        paper's decomposition.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    BrierDecomposition
        The parts, whose `total` is the score to rounding, with bins and without.

    Notes
    -----
    Appendix E of the paper, exact for groups of equal predictions. With groups k of mean
    prediction :math:`q_k`, mean outcome :math:`\bar y_k` and weight :math:`w_k = n_k / N`:
    calibration :math:`\sum w_k (q_k - \bar y_k)^2`, refinement
    :math:`\sum w_k \bar y_k (1 - \bar y_k)`, resolution :math:`\sum w_k (\bar y_k - \bar y)^2`.
    Bins of unequal predictions need two terms more [1]_: the variance
    :math:`\frac1N \sum_i (\hat p_i - q_{k(i)})^2` and the covariance
    :math:`\frac1N \sum_i (\hat p_i - q_{k(i)})(y_i - \bar y_{k(i)})`.

    References
    ----------
    .. [1] D. Stephenson, C. Coelho and I. Jolliffe, "Two extra components in the Brier score
       decomposition", Weather and Forecasting 23, 2008.

    Examples
    --------
    >>> parts = brier_decomposition([0, 1, 1, 1], [0.5, 0.5, 0.9, 0.9])
    >>> round(parts.calibration, 4), round(parts.refinement, 4), round(parts.total, 4)
    (0.005, 0.125, 0.13)
    """
    sample = check_sample(y_true, y_prob, weights)
    if bins is None:
        ranked = sample.ranked
        q, weight = ranked.values, ranked.mass[0] / ranked.total[0]
        outcome = ranked.ones[0] / ranked.mass[0]
        group = np.searchsorted(q, sample.p_hat)
    else:
        table = reliability_bins(y_true, y_prob, bins, weights)
        q, outcome, weight = table.mean_prediction, table.mean_outcome, table.weight
        group = table.assign(sample.p_hat)
    base = sample.mean(sample.y)
    spread = sample.p_hat - q[group]
    within = sample.mean(spread**2), sample.mean(spread * (sample.y - outcome[group]))
    return decomposed(weight, q, outcome, base, *within)


def decomposed(weight, q, outcome, base, variance, covariance):
    """Return the parts of a Brier score from the bins and what is within them."""
    return BrierDecomposition(
        calibration=float(weight @ (q - outcome) ** 2),
        refinement=float(weight @ (outcome * (1 - outcome))),
        resolution=float(weight @ (outcome - base) ** 2),
        uncertainty=base * (1 - base),
        within_variance=variance,
        within_covariance=covariance,
    )


CELLS = 4096
"""Cells of the grid on which `ece_smooth` smooths residuals."""


def ece_debiased(y_true, y_prob, bins=BINS, weights=None):
    r"""Expected calibration error less its estimated bias.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter. They say how much
        a row stands for, not how often it was seen: the noise of a bin is that of its effective
        rows (see `ReliabilityBins`).

    Returns
    -------
    float
        The error; it may be negative. Of a calibrated model's bias :math:`\sqrt2 - 1`, or 41 %,
        is taken off; where gaps exceed their noise little bias is left.

    Notes
    -----
    The debiased estimator of [1]_ in closed form. If the mean outcome of a bin is normal about its
    expectation with variance :math:`s_b^2 = \bar y_b (1 - \bar y_b) / n_b`, the absolute gap
    :math:`|N(g_b, s_b^2)|` has the folded-normal mean
    :math:`s_b \sqrt{2/\pi}\, e^{-g_b^2 / 2 s_b^2} + |g_b| \operatorname{erf}(|g_b| / s_b\sqrt2)`;
    what this exceeds :math:`|g_b|` by is the bias, and is taken off.

    References
    ----------
    .. [1] A. Kumar, P. Liang and T. Ma, "Verified uncertainty calibration", NeurIPS 2019.

    Examples
    --------
    >>> y, p = [0, 1] * 50, [0.4] * 50 + [0.6] * 50
    >>> round(ece(y, p, bins=2), 3), round(ece_debiased(y, p, bins=2), 3)
    (0.1, 0.095)
    """
    table = reliability_bins(y_true, y_prob, bins, weights)
    gap = np.abs(table.gap)
    s = np.sqrt(table.mean_outcome * (1 - table.mean_outcome) / table.effective)
    z = np.divide(gap, s, out=np.full_like(gap, np.inf), where=s > 0)
    z = np.minimum(z, 40)  # beyond it exp(-z^2 / 2) is 0 and erf is 1
    folded = s * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * erf(z / np.sqrt(2))
    return float(table.weight @ (2 * gap - folded))


def ece_smooth(y_true, y_prob, weights=None):
    r"""Smooth calibration error, which needs no bins and chooses its own bandwidth.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The error, in [0, 1].

    Notes
    -----
    smECE of [1]_: residuals are smoothed over predictions with a Gaussian reflected at 0 and 1,

    .. math:: e(\sigma) = \int_0^1 \Bigl|\frac1n \sum_i (y_i - \hat p_i) K_\sigma(t, \hat p_i)
              \Bigr| dt,

    and the error is the :math:`\sigma` with :math:`e(\sigma) = \sigma`. Cosines diagonalise the
    reflected Gaussian, so that smoothing is a cosine transform times
    :math:`e^{-(\pi k \sigma)^2 / 2}`. Residuals are shared linearly between the 4,096 cells of a
    grid, whose width, 0.0002, bounds the error in the result.

    References
    ----------
    .. [1] J. Błasiok and P. Nakkiran, "Smooth ECE: principled reliability diagrams via kernel
       smoothing", ICLR 2024.

    Examples
    --------
    >>> round(ece_smooth([1, 1, 1, 0, 0], [0.9] * 5), 3)
    0.3
    """
    sample = check_sample(y_true, y_prob, weights)
    p, w = sample.p_hat, sample.weights
    position = np.clip(p * CELLS - 0.5, 0, CELLS - 1)  # in units of cells, from the first centre
    left = np.minimum(position.astype(np.int64), CELLS - 2)
    share = position - left
    residual = (sample.y - p) / len(p) if w is None else (sample.y - p) * w / w.sum()
    mass = np.bincount(left, residual * (1 - share), CELLS)
    mass += np.bincount(left + 1, residual * share, CELLS)
    if np.abs(mass).sum() == 0:
        return 0.0
    spectrum = dct(mass)
    k = np.pi * np.arange(CELLS)

    def excess(sigma):
        return np.abs(idct(spectrum * np.exp(-((k * sigma) ** 2) / 2))).sum() - sigma

    return 1.0 if excess(1.0) >= 0 else float(brentq(excess, 0, 1, xtol=1e-9))


@dataclass(frozen=True, eq=False)
class NullBand:
    """What a metric would be by chance if the predictions were the true probabilities.

    Attributes
    ----------
    low, mean, high : float
        Ends of the central 95 % and mean of the draws.
    draws : ndarray of shape (replicates,)
        The metric of each redrawn set of outcomes.
    """

    low: float
    mean: float
    high: float
    draws: np.ndarray = field(repr=False)


def calibration_null_band(y_prob, metric=ece, replicates=1000, seed=0, weights=None):
    """Redraw outcomes from the predictions and measure the metric each time.

    Parameters
    ----------
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    metric : callable, default=ece
        Function of (y_true, y_prob) that returns a number, and of ``weights`` if there are some.
    replicates : int, default=1000
        Number of times that outcomes are redrawn.
    seed : int, default=0
        Seed of the redrawn outcomes.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter. Each row
        draws its own outcome, whatever it weighs.

    Returns
    -------
    NullBand
        The band. A measured error within it is no evidence against calibration. Of fewer than
        five rows it has no ends (NaN).

    Raises
    ------
    ValueError
        If probabilities are NaN or outside [0, 1] or a setting is out of range.

    Notes
    -----
    Consistency resampling [1]_: unlike bootstrap intervals, which centre on a biased estimate, the
    band says what calibration looks like at this sample size.

    References
    ----------
    .. [1] J. Bröcker and L. A. Smith, "Increasing the reliability of reliability diagrams",
       Weather and Forecasting 22, 2007.

    Examples
    --------
    >>> band = calibration_null_band([0.5] * 100, replicates=200)
    >>> 0 <= band.low < band.mean < band.high < 0.15
    True
    """
    p = check_probabilities(y_prob)
    replicates = check_integer(replicates, "replicates")
    check_integer(seed, "seed", minimum=0)
    # its own stream: predictions simulated from the same seed must not meet their own numbers again
    rng = np.random.default_rng(seed).spawn(1)[0]
    kept, weights = check_row_weights(weights, len(p))
    p = p if kept is None else p[kept]
    options = {} if weights is None else {"weights": weights}
    draws = [metric(rng.random(len(p)) < p, p, **options) for _ in range(replicates)]
    low, high = np.quantile(draws, [0.025, 0.975]) if len(p) >= FEWEST else (np.nan, np.nan)
    return NullBand(float(low), float(np.mean(draws)), float(high), np.array(draws))
