"""Temperature and Platt scaling: one factor, or a logistic regression, on validation logits."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from .common import EXCESS, RIDGE, Calibrator, log_loss, rms, two_columns, unreached

__all__ = ["PlattScaling", "TemperatureScaling"]


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

    Attributes
    ----------
    coef_ : ndarray of shape (1, 2) or (1, 1)
        W. Where one column of logits determines the other (as :math:`z_0 = -z_1` does), many W
        give the same map; of these it is the smallest.
    intercept_ : ndarray of shape (1,)
        The intercept b.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Platt (1999); paper, Appendix H; fitted by scikit-learn's ``newton-cholesky``. With two columns
    the map also uses the mean of both logits, which the softmax ignores, so that it may change the
    order of the predictions; pass the log-odds (n,) to keep it. Beside the log-loss there is only
    :math:`10^{-8}` times the squared coefficients of columns of unit size, which makes the solution
    finite and unique; the log-loss never exceeds temperature scaling's.

    Examples
    --------
    >>> import numpy as np
    >>> s = np.repeat([-1.0, 1.0], 10)
    >>> y = [0] * 9 + [1] + [0] * 2 + [1] * 8   # one of ten, eight of ten
    >>> PlattScaling().fit(s, y).predict_proba([-1.0, 1.0])[:, 1].round(6)
    array([0.1, 0.8])
    """

    label = "Platt scaling"

    def _fit(self, X, log_odds, y, weights):
        columns, slope = [log_odds], fit_slope(log_odds, y, weights)
        if X.shape[1] == 2:
            mean = X[:, 0] / 2 + X[:, 1] / 2
            # A mean that varies by rounding errors only must not be blown up to unit size.
            if rms(mean - weights @ mean, weights) > 1e-6 * rms(log_odds, weights):
                columns.append(mean)
        columns = np.column_stack(columns)
        centre = weights @ columns
        size = np.array([rms(column, weights) for column in (columns - centre).T])
        model = LogisticRegression(
            C=0.5 / RIDGE, solver="newton-cholesky", tol=1e-10, max_iter=1000
        )
        model.fit((columns - centre) / size, y, sample_weight=weights)
        theta = model.coef_[0] / size
        intercept = model.intercept_[0] - theta @ centre
        found = log_loss(columns @ theta + intercept, y, weights)
        if found > log_loss(slope * log_odds, y, weights):  # separable rows, and the ridge
            theta, intercept = np.array([slope]), 0.0
        common = theta[1] if len(theta) > 1 else 0.0
        both = [common / 2 - theta[0], common / 2 + theta[0]]
        self.coef_ = np.array([both if X.shape[1] == 2 else theta])
        self.intercept_ = np.array([intercept])

    def _map(self, X, log_odds):
        return two_columns(X @ self.coef_[0] + self.intercept_[0])


def fit_intercept(log_odds, y, weights):
    """The one number to add to log-odds that makes the mean prediction the mean outcome."""
    return brentq(lambda c: weights @ (expit(log_odds + c) - y), -100, 100, maxiter=10_000)


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
