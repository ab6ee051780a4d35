"""Calibration errors that answer for their bins: debiased, smooth, and against the null.

The ECE of a finite sample is never 0, however well calibrated the model. Here are its bias taken
off, an error that has no bins, and the values that chance alone would give.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq
from scipy.special import erf

from ..validation import check_choice, check_integer, check_number, check_probabilities
from .binning import BINS, WEIGHTINGS, ece, reliability_bins
from .intervals import FEWEST
from .sample import check_row_weights, check_sample

__all__ = ["NullBand", "calibration_null_band", "ece_debiased", "ece_smooth"]

CELLS = 4096
"""Cells of the grid on which `ece_smooth` smooths residuals."""


def ece_debiased(y_true, y_prob, bins=BINS, weighting="rows", weights=None):
    r"""Expected calibration error less its estimated bias.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weighting : {"rows", "plain"}, default="rows"
        As in `ece`.
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
    check_choice(weighting, WEIGHTINGS, "weighting")
    table = reliability_bins(y_true, y_prob, bins, weights)
    gap = np.abs(table.gap)
    s = np.sqrt(table.mean_outcome * (1 - table.mean_outcome) / table.effective)
    z = np.divide(gap, s, out=np.full_like(gap, np.inf), where=s > 0)
    z = np.minimum(z, 40)  # beyond it exp(-z^2 / 2) is 0 and erf is 1
    folded = s * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * erf(z / np.sqrt(2))
    share = table.weight if weighting == "rows" else None
    return float(np.average(2 * gap - folded, weights=share))


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

    return float(brentq(excess, 0, 1, xtol=1e-9))


@dataclass(frozen=True, eq=False)
class NullBand:
    """What a metric would be by chance if the predictions were the true probabilities.

    Attributes
    ----------
    low, mean, high : float
        Ends of the central interval and mean of the draws.
    draws : ndarray of shape (replicates,)
        The metric of each redrawn set of outcomes.
    """

    low: float
    mean: float
    high: float
    draws: np.ndarray = field(repr=False)


def calibration_null_band(y_prob, metric=ece, level=0.95, replicates=1000, seed=0, weights=None):
    """Redraw outcomes from the predictions and measure the metric each time.

    Parameters
    ----------
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    metric : callable, default=ece
        Function of (y_true, y_prob) that returns a number, and of ``weights`` if there are some.
    level : float, default=0.95
        Share of the draws within the band, in (0, 1).
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
    check_number(level, "level", 0, 1, exclusive=True)
    replicates = check_integer(replicates, "replicates")
    # its own stream: predictions simulated from the same seed must not meet their own numbers again
    rng = np.random.default_rng(seed).spawn(1)[0]
    kept, weights = check_row_weights(weights, len(p))
    p = p if kept is None else p[kept]
    options = {} if weights is None else {"weights": weights}
    draws = [metric(rng.random(len(p)) < p, p, **options) for _ in range(replicates)]
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    if len(p) < FEWEST:
        low = high = np.nan
    return NullBand(float(low), float(np.mean(draws)), float(high), np.array(draws))
