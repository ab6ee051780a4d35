"""Maps that follow the data: isotonic regression, histogram binning and Mix-n-Match."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.isotonic import IsotonicRegression

from ..metrics.sample import bin_starts
from ..validation import check_integer
from .common import Calibrator
from .parametric import fit_slope


class IsotonicCalibration(Calibrator):
    """The non-decreasing map of least squared error (and of least log-loss).

    Attributes
    ----------
    thresholds_, values_ : ndarray of shape (k,)
        Ends of the steps, in log-odds, and their probabilities; joined by lines where no row was
        seen.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Zadrozny and Elkan (2002). The lowest and highest steps may be 0 and 1 exactly, so that the
    log-loss of new rows may be infinite. Log-odds beyond those seen get the outermost steps.

    Examples
    --------
    >>> import numpy as np
    >>> s, y = np.repeat([-1, 0, 2], 20), np.repeat([0, 1, 0, 1, 0, 1], [12, 8, 16, 4, 2, 18])
    >>> IsotonicCalibration().fit(s, y).predict_proba([-1.0, 0.0, 1.0, 2.0])[:, 1]
    array([0.3, 0.3, 0.6, 0.9])
    """

    label = "isotonic regression"

    def _fit(self, X, log_odds, y, weights):
        self.thresholds_, self.values_ = _steps(log_odds, y, weights)

    def _map(self, X, log_odds):
        p = np.interp(log_odds, self.thresholds_, self.values_)
        return np.column_stack([1 - p, p])


class HistogramBinning(Calibrator):
    """The mean outcome of each quantile bin of the predictions.

    Parameters
    ----------
    bins : int, default=15
        Number of bins of equal weight. Equal predictions share a bin, so that there may be fewer.

    Attributes
    ----------
    edges_ : ndarray of shape (k - 1,)
        Half-way between the log-odds of neighbouring bins, which are those of
        `probnb.metrics.reliability_bins`.
    probabilities_ : ndarray of shape (k,)
        Mean outcome of each bin.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Zadrozny and Elkan (2001). A bin without a 1 predicts 0, so that the log-loss of new rows
    may be infinite. The only calibrator here that may be worse than the uncalibrated
    predictions on the rows of `fit` themselves: it forgets the order within a bin.

    Examples
    --------
    >>> import numpy as np
    >>> s, y = np.repeat([-1, 2], 20), np.repeat([0, 1, 0, 1], [15, 5, 6, 14])
    >>> HistogramBinning(bins=2).fit(s, y).probabilities_
    array([0.25, 0.7 ])
    """

    label = "histogram binning"

    def __init__(self, bins=15):
        self.bins = bins

    def _fit(self, X, log_odds, y, weights):
        bins = check_integer(self.bins, "bins")
        order = np.argsort(log_odds)
        s, w = log_odds[order], weights[order]
        starts = bin_starts(s, None if np.ptp(w) == 0 else w, bins)
        below, above = s[starts[1:] - 1], s[starts[1:]]
        middle = below / 2 + above / 2
        self.edges_ = np.where(middle > below, middle, above)  # two neighbours have no middle
        self.probabilities_ = np.add.reduceat(w * y[order], starts) / np.add.reduceat(w, starts)

    def _map(self, X, log_odds):
        p = self.probabilities_[np.searchsorted(self.edges_, log_odds, side="right")]
        return np.column_stack([1 - p, p])


class MixNMatch(Calibrator):
    r"""A mixture of three temperatures, then, if asked for, isotonic regression.

    :math:`w_1\,\mathrm{softmax}(z/T) + w_2\,\mathrm{softmax}(z) + w_3/2`: the temperatures are T,
    1 and infinity.

    Parameters
    ----------
    isotonic : bool, default=False
        Whether isotonic regression follows, as the paper's text has it. Its table's values were
        obtained without: there the AUC equals temperature scaling's, which isotonic regression
        would change.

    Attributes
    ----------
    temperature_ : float
        T, that of `TemperatureScaling`.
    weights_ : ndarray of shape (3,)
        w, not negative, sum 1: the mixture of least log-loss, which is convex in w.
    thresholds_, values_ : ndarray of shape (k,), or None
        The last step, a map of the mixture; None without it.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Zhang, Kailkhura and Han (2020), "Mix-n-Match"; paper, Appendix H, which prints the
    temperature 0 where the method has 1. The mixture rises with the log-odds, so isotonic
    regression gives each row of `fit` what it would give without the mixture, which then only
    shapes the lines between the steps.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 0.8 / (1 + np.exp(-4 * s)) + 0.1
    >>> MixNMatch().fit(4 * s, y).weights_.sum().round(12)
    np.float64(1.0)
    """

    label = "Mix-n-Match"

    def __init__(self, isotonic=False):
        self.isotonic = isotonic

    def _fit(self, X, log_odds, y, weights):
        self.temperature_ = 1 / fit_slope(log_odds, y, weights)
        signed = np.where(y == 1, log_odds, -log_odds)
        log_likelihood = np.column_stack(
            [log_expit(signed / self.temperature_), log_expit(signed), np.full(len(y), -np.log(2))]
        )
        self.weights_ = mixture_weights(log_likelihood, weights)
        self.thresholds_ = self.values_ = None
        if self.isotonic:
            self.thresholds_, self.values_ = _steps(self._mixture(log_odds), y, weights)

    def _mixture(self, log_odds):
        first, second, third = self.weights_
        return first * expit(log_odds / self.temperature_) + second * expit(log_odds) + third / 2

    def _map(self, X, log_odds):
        p = self._mixture(log_odds)
        if self.thresholds_ is None:
            # The other column by symmetry: 1 - p would lose the digits of a p near 1.
            return np.column_stack([self._mixture(-log_odds), p])
        p = np.interp(p, self.thresholds_, self.values_)
        return np.column_stack([1 - p, p])


class IsotonicMixNMatch(MixNMatch):
    """`MixNMatch` with the isotonic regression that the paper's text has: a row of its own.

    Isotonic regression can give a prediction of 0 or 1, whose log-loss and KL_p may be infinite.

    Parameters
    ----------
    isotonic : bool, default=True
        As in `MixNMatch`.

    Examples
    --------
    >>> import numpy as np
    >>> IsotonicMixNMatch().fit(np.array([-2.0, -1, 1, 2]), [0, 1, 0, 1]).values_
    array([0. , 0.5, 0.5, 1. ])
    """

    label = "Mix-n-Match, isotonic"

    def __init__(self, isotonic=True):
        super().__init__(isotonic)


def _steps(x, y, weights):
    """Isotonic regression as the ends of its steps and their heights."""
    fit = IsotonicRegression(y_min=0, y_max=1).fit(x, y, sample_weight=weights)
    return fit.X_thresholds_, fit.y_thresholds_


def mixture_weights(log_likelihood, weights):
    """Find the mixture of given components of least mean -log(sum_j v_j L_ij)."""
    L = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    k = L.shape[1]

    def loss(v):  # least on the simplex, where the sum of v is 1
        mixed = L @ v + np.finfo(float).tiny
        return v.sum() - weights @ np.log(mixed), 1 - (weights / mixed) @ L

    v = minimize(
        loss, np.full(k, 1 / k), jac=True, method="L-BFGS-B", bounds=[(0, None)] * k,
        options={"ftol": 0, "gtol": 1e-13, "maxiter": 1000},
    ).x  # fmt: skip
    for _ in range(20):  # the old rule never rises, and gives the last digits
        v = v * (weights @ (L / (L @ v)[:, None]))
    return v / v.sum()
