"""Calibrators that follow the outcomes: isotonic regression, binning, and Mix-n-Match."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.isotonic import IsotonicRegression

from ..validation import check_integer
from .common import Calibrator
from .scaling import fit_slope

__all__ = ["HistogramBinning", "IsotonicCalibration", "MixNMatch"]


class IsotonicCalibration(Calibrator):
    """The non-decreasing map of least squared error (and of least log-loss).

    Attributes
    ----------
    isotonic_ : sklearn.isotonic.IsotonicRegression
        The map from log-odds to probability: steps, joined by lines where no row was seen.
    flags_ : tuple of str
        ``"separable"``, ``"inverted"`` or ``"uninformative"`` where the outcomes make the fit
        doubtful; empty otherwise.
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

    def _fit(self, X, log_odds, y):
        self.isotonic_ = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        self.isotonic_.fit(log_odds, y)

    def _map(self, X, log_odds):
        p = self.isotonic_.predict(log_odds)
        return np.column_stack([1 - p, p])


class HistogramBinning(Calibrator):
    """The mean outcome of each quantile bin of the predictions.

    Parameters
    ----------
    bins : int, default=15
        Number of bins with equally many rows. Equal predictions share a bin, so that there may
        be fewer.

    Attributes
    ----------
    upper_ : ndarray of shape (k,)
        The largest log-odds of each bin; the last bin has no upper end.
    probabilities_ : ndarray of shape (k,)
        Mean outcome of each bin.
    flags_ : tuple of str
        ``"separable"``, ``"inverted"`` or ``"uninformative"`` where the outcomes make the fit
        doubtful; empty otherwise.
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

    def __init__(self, bins=15):
        self.bins = bins

    def _fit(self, X, log_odds, y):
        levels = np.arange(1, check_integer(self.bins, "bins") + 1) / self.bins
        # Each upper end is a value that occurs, so that no bin is empty and ties stay together.
        self.upper_ = np.unique(np.quantile(log_odds, levels, method="inverted_cdf"))
        index = self._bin(log_odds)
        self.probabilities_ = np.bincount(index, y) / np.bincount(index)

    def _bin(self, log_odds):
        return np.searchsorted(self.upper_[:-1], log_odds, side="left")

    def _map(self, X, log_odds):
        p = self.probabilities_[self._bin(log_odds)]
        return np.column_stack([1 - p, p])


class MixNMatch(Calibrator):
    r"""A mixture of three temperatures, then isotonic regression.

    :math:`w_1\,\mathrm{softmax}(z/T) + w_2\,\mathrm{softmax}(z) + w_3/2`: the temperatures are T,
    1 and infinity.

    Parameters
    ----------
    isotonic : bool, default=True
        Whether isotonic regression follows, as the paper's text has it. Its table's values were
        obtained without: there the AUC equals temperature scaling's, which isotonic regression
        would change.

    Attributes
    ----------
    temperature_ : float
        T, that of `TemperatureScaling`.
    weights_ : ndarray of shape (3,)
        w, not negative, sum 1: the mixture of least log-loss.
    isotonic_ : sklearn.isotonic.IsotonicRegression or None
        The last step, a map of the mixture.
    flags_ : tuple of str
        ``"separable"``, ``"inverted"`` or ``"uninformative"`` where the outcomes make the fit
        doubtful; empty otherwise.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Zhang, Kailkhura and Han (2020), "Mix-n-Match"; paper, Appendix G, which prints the
    temperature 0 where the method has 1. The mixture rises with the log-odds, so isotonic
    regression gives each row of `fit` what it would give without the mixture, which then only
    shapes the lines between the steps.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 0.8 / (1 + np.exp(-4 * s)) + 0.1
    >>> MixNMatch(isotonic=False).fit(4 * s, y).weights_.sum().round(12)
    np.float64(1.0)
    """

    def __init__(self, isotonic=True):
        self.isotonic = isotonic

    def _fit(self, X, log_odds, y):
        self.temperature_ = 1 / fit_slope(log_odds, y)
        signed = np.where(y == 1, log_odds, -log_odds)
        log_likelihood = np.column_stack(
            [log_expit(signed / self.temperature_), log_expit(signed), np.full(len(y), -np.log(2))]
        )
        self.weights_ = _mixture_weights(log_likelihood)
        self.isotonic_ = None
        if self.isotonic:
            self.isotonic_ = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
            self.isotonic_.fit(self._mixture(log_odds), y)

    def _mixture(self, log_odds):
        return (
            self.weights_[0] * expit(log_odds / self.temperature_)
            + self.weights_[1] * expit(log_odds)
            + self.weights_[2] / 2
        )

    def _map(self, X, log_odds):
        p = self._mixture(log_odds)
        if self.isotonic_ is None:
            # The other column by symmetry: 1 - p would lose the digits of a p near 1.
            return np.column_stack([self._mixture(-log_odds), p])
        p = self.isotonic_.predict(p)
        return np.column_stack([1 - p, p])


def _mixture_weights(log_likelihood):
    """Weights on the simplex of least mean -log(sum_j w_j L_ij), given log L.

    Minimised over v with w = softmax(v): the problem is convex in w, and in v its gradient,
    w minus the mean responsibility, is bounded whatever the likelihoods.
    """

    def loss(w):
        return -logsumexp(log_likelihood, b=w, axis=1).mean()

    def objective(v):
        w = softmax(v)
        mixed = logsumexp(log_likelihood + np.log(w), axis=1)
        responsibility = np.exp(log_likelihood + np.log(w) - mixed[:, None]).mean(axis=0)
        return -mixed.mean(), w - responsibility

    fit = minimize(
        objective, np.zeros(3), jac=True, method="L-BFGS-B", bounds=[(-30, 30)] * 3,
        options={"gtol": 1e-10, "ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    candidates = [softmax(fit.x), *np.eye(3)]  # an optimum at a corner is met exactly
    return min(candidates, key=loss)
