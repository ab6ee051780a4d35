"""Temperature and Platt scaling: one, two or three numbers fitted to validation logits."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ..metrics.sample import effective_rows
from .common import EXCESS, RIDGE, Calibrator, rms, solve_logistic, two_columns, unreached

__all__ = ["PlattScaling", "TemperatureScaling", "fit_slope"]


class TemperatureScaling(Calibrator):
    r"""Divide the logits by one positive number, the temperature.

    :math:`f(z) = \mathrm{softmax}(z / T)`, with the T of least log-loss on the rows of `fit`.

    Attributes
    ----------
    temperature_ : float
        T; above 1 if the logits were over-confident.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Guo et al. (2017), "On calibration of modern neural networks"; paper, Appendix H. The
    log-loss is convex in 1/T; its slope's only root is found by Brent's method. 1/T is kept
    at :math:`\min(1, 10^{-3}/\max|s|)` or more (s is the log-odds), which leaves every
    probability within 0.00025 of 1/2: this is where logits that are worse than none end, with a
    `ConvergenceWarning`. One
    number cannot mend a wrong base rate: the prediction for even odds stays 1/2. A penalty of
    :math:`10^{-8}\min(1, \mathrm{rms}(s))^2 (1/T - 1)^2` keeps separable data finite; it is
    nought at T = 1, so that the log-loss never exceeds the uncalibrated one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-s))
    >>> round(TemperatureScaling().fit(3 * s, y).temperature_, 1)
    3.0
    """

    label = "temperature scaling"

    def _fit(self, X, log_odds, y, weights):
        slope = fit_slope(log_odds, y, weights)
        self.temperature_ = 1 / slope
        # The log-loss is convex, so that this is the most that any lower slope can gain.
        excess = slope * (weights @ (log_odds * (expit(slope * log_odds) - y)))
        if slope == lowest_slope(log_odds) and excess > EXCESS:
            unreached(self, excess, "the logits are worse than none, and no temperature is finite")

    def _map(self, X, log_odds):
        return two_columns(log_odds / self.temperature_)


class PlattScaling(Calibrator):
    r"""Logistic regression on the logits.

    :math:`f(z) = \sigma(W^\top z + b)`, with W in :math:`\mathbb{R}^2` for two columns of logits,
    as in the paper, or one slope for log-odds, as in Platt (1999).

    Parameters
    ----------
    smoothed : bool, default=False
        Whether to fit Platt's smoothed targets, :math:`(n_1 + 1) / (n_1 + 2)` in place of 1 and
        :math:`1 / (n_0 + 2)` in place of 0, instead of the outcomes. They keep a fit to few rows
        from certainty. With weights, n counts the effective rows of a class.

    Attributes
    ----------
    coef_ : ndarray of shape (1, 2) or (1, 1)
        W. Where one column of logits determines the other (as :math:`z_0 = -z_1` does), many W
        give the same map; of these it is the one nearest to temperature scaling's.
    intercept_ : ndarray of shape (1,)
        The intercept b.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Platt (1999); paper, Appendix H. With two columns the map also uses the mean of both logits,
    which the softmax ignores, so that it may change the order of the predictions; pass the
    log-odds (n,) to keep it. The paper describes the maximum-likelihood fit. Beside the log-loss
    there is only :math:`10^{-8}` times the squared distance to the temperature-scaled logits, in
    units of their size, which makes the solution finite and unique; the log-loss never exceeds
    temperature scaling's (of the targets, where they are smoothed).

    Examples
    --------
    >>> import numpy as np
    >>> s = np.repeat([-1.0, 1.0], 10)
    >>> y = [0] * 9 + [1] + [0] * 2 + [1] * 8   # one of ten, eight of ten
    >>> PlattScaling().fit(s, y).predict_proba([-1.0, 1.0])[:, 1].round(6)
    array([0.1, 0.8])
    """

    label = "Platt scaling"

    def __init__(self, smoothed=False):
        self.smoothed = smoothed

    def _fit(self, X, log_odds, y, weights):
        y = _smoothed(y, weights) if self.smoothed else y
        slope, size = fit_slope(log_odds, y, weights), rms(log_odds, weights)
        columns, start = [log_odds / size, np.ones(len(y))], [slope * size, 0]
        if X.shape[1] == 2:
            mean = X[:, 0] / 2 + X[:, 1] / 2
            centre = weights @ mean
            # A mean that varies by rounding errors only must not be blown up to unit size.
            spread = max(rms(mean - centre, weights), size)
            columns, start = [*columns, (mean - centre) / spread], [*start, 0]
        theta, excess = solve_logistic(np.column_stack(columns), y, weights, np.array(start))
        if excess > EXCESS:
            unreached(self, excess, "Newton's method did not converge")
        slope, intercept = theta[0] / size, theta[1]
        if X.shape[1] == 1:
            self.coef_ = np.array([[slope]])
        else:
            common = theta[2] / spread
            intercept -= common * centre
            self.coef_ = np.array([[common / 2 - slope, common / 2 + slope]])
        self.intercept_ = np.array([intercept])

    def _map(self, X, log_odds):
        return two_columns(X @ self.coef_[0] + self.intercept_[0])


def _smoothed(y, weights):
    """Platt's targets for the two outcomes."""
    ones, zeros = (effective_rows(weights[y == k])[0] for k in (1, 0))
    return np.where(y == 1, (ones + 1) / (ones + 2), 1 / (zeros + 2))


def fit_slope(log_odds, y, weights):
    """The factor 1/T of temperature scaling: positive, finite, best in log-loss."""
    largest = np.abs(log_odds).max()
    if largest < 1e-12:  # every probability is 1/2 to within rounding: nothing to scale
        return 1.0
    lowest = lowest_slope(log_odds)
    ridge = 2 * RIDGE * min(1.0, rms(log_odds, weights)) ** 2

    def derivative(slope):
        return weights @ (log_odds * (expit(slope * log_odds) - y)) + ridge * (slope - 1)

    if derivative(lowest) >= 0:
        return lowest
    highest = 1 / largest
    while derivative(highest) < 0:
        highest *= 4
    return brentq(derivative, lowest, highest, xtol=1e-300, rtol=1e-13)


def lowest_slope(log_odds):
    """Where 1/T stops: there no probability is further than 0.00025 from 1/2."""
    largest = np.abs(log_odds).max()
    return min(1.0, 1e-3 / largest) if largest >= 1e-12 else 0.0
