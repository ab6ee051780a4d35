"""Beta and Dirichlet calibration: logistic regression on the two log-probabilities."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.model_selection import StratifiedKFold

from ..validation import check_integer, check_number
from .common import RIDGE, Calibrator, log_loss, rms, two_columns, unreached
from .scaling import fit_slope

STEEPER = 1e-4  # log-loss that a steeper map would save, and the ridge does not let it

__all__ = ["BetaCalibration", "DirichletCalibration"]


class BetaCalibration(Calibrator):
    r"""The map between two beta distributions' likelihoods, never decreasing.

    :math:`\mathrm{logit} f = a \log \hat p - b \log(1 - \hat p) + c`, :math:`a, b \ge 0`.

    Attributes
    ----------
    a_, b_, c_ : float
        The three parameters; (1, 1, 0) is the identity.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Kull, Silva Filho and Flach (2017), "Beta calibration"; paper, Appendix H. The best fit under
    both bounds is found by solving the convex problem with each set of parameters held at 0;
    ties are decided as in `PlattScaling`. The log-loss never exceeds temperature scaling's,
    which is the case a = b = 1/T, c = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from probnb.calibrators import logits_from_probabilities
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 5, size=5000)
    >>> y = rng.random(5000) < p
    >>> beta = BetaCalibration().fit(logits_from_probabilities(p**2), y)
    >>> bool(abs(beta.predict_proba(logits_from_probabilities([0.25]))[0, 1] - 0.5) < 0.02)
    True
    """

    label = "beta calibration"

    def _fit(self, X, log_odds, y, weights):
        theta = _fit_beta(log_odds, y, weights, bounded=True)
        self.a_, self.b_, self.c_ = map(float, theta)

    def _map(self, X, log_odds):
        return two_columns(_beta_log_odds(log_odds, self.a_, self.b_, self.c_))


class DirichletCalibration(Calibrator):
    r"""Softmax regression on the log-probabilities, with ODIR regularisation.

    :math:`f = \mathrm{softmax}(W \log \hat p + b)`, where the penalty
    :math:`\lambda \sum_{i \ne j} W_{ij}^2 / 2 + \mu \sum_j b_j^2 / 2` falls on the off-diagonal
    weights and the intercepts.

    Parameters
    ----------
    mu : float or None, default=None
        Weight of the intercepts' penalty. None chooses it among `grid` by cross-validation.
    grid : tuple of float, default=(1e-4, 1e-3, 1e-2, 1e-1, 1, 10)
        The values of `mu` that are tried.
    folds : int, default=5
        Number of folds (at most the size of the smaller class; with one row of a class the
        middle of the grid is taken).
    random_state : int, default=0
        Seed that shuffles the rows into folds.

    Attributes
    ----------
    weights_ : ndarray of shape (2, 2)
        W; (1, 0; 0, 1) is the identity.
    intercepts_ : ndarray of shape (2,)
        The intercepts b, whose sum is 0.
    mu_ : float
        The penalty that was used.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Kull et al. (2019), "Beyond temperature scaling"; paper, Appendix H. With two outcomes the
    softmax depends on W only through :math:`a = W_{11} - W_{01}` and
    :math:`d = W_{00} - W_{10}`, which the diagonal alone can reach. The best off-diagonal
    weights are therefore 0 for every :math:`\lambda > 0`, and the method is beta calibration
    without bounds and with the penalty :math:`\mu c^2 / 4` on its intercept; so it is solved.
    The identity is not penalised: the log-loss never exceeds the uncalibrated one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-s / 2 - 1))
    >>> dirichlet = DirichletCalibration(mu=1e-4).fit(s, y)
    >>> bool(abs(dirichlet.predict_proba([0.0])[0, 1] - 0.731) < 0.03)
    True
    """

    label = "Dirichlet calibration"

    def __init__(self, mu=None, grid=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0), folds=5, random_state=0):
        self.mu = mu
        self.grid = grid
        self.folds = folds
        self.random_state = random_state

    def _fit(self, X, log_odds, y, weights):
        if self.mu is None:
            grid = sorted(check_number(mu, "grid", minimum=0) for mu in self.grid)
            self.mu_ = self._choose(log_odds, y, weights, grid)
        else:
            self.mu_ = check_number(self.mu, "mu", minimum=0)
        a, d, c = _fit_beta(log_odds, y, weights, mu=self.mu_)
        self.weights_, self.intercepts_ = np.diag([d, a]), np.array([-c / 2, c / 2])
        odds = _beta_log_odds(log_odds, a, d, c)
        steeper = (log_loss(k * odds, y, weights) for k in 10.0 ** np.arange(1, 16, 2))
        if (excess := log_loss(odds, y, weights) - min(steeper)) > STEEPER:
            unreached(self, excess, "the rows are separable, and no map is steep enough")

    def _choose(self, log_odds, y, weights, grid):
        """The penalty of least cross-validated log-loss; the larger one if two are equal."""
        folds = min(check_integer(self.folds, "folds", 2), int(min(y.sum(), (1 - y).sum())))
        if folds < 2:
            return grid[len(grid) // 2]
        split = StratifiedKFold(folds, shuffle=True, random_state=self.random_state)
        losses = np.zeros(len(grid))
        for train, test in split.split(log_odds, y):
            share = weights[train] / weights[train].sum()
            for i, mu in enumerate(grid):
                fit = _fit_beta(log_odds[train], y[train], share, mu=mu)
                losses[i] += log_loss(_beta_log_odds(log_odds[test], *fit), y[test], weights[test])
        return grid[len(grid) - 1 - int(np.argmin(losses[::-1]))]

    def _map(self, X, log_odds):
        (d, a), c = np.diag(self.weights_), self.intercepts_[1] - self.intercepts_[0]
        return two_columns(_beta_log_odds(log_odds, a, d, c))


def _beta_log_odds(log_odds, a, b, c):
    return a * log_expit(log_odds) - b * log_expit(-log_odds) + c


def _fit_beta(log_odds, y, weights, mu=0.0, bounded=False):
    """Best (a, b, c) with the penalty mu c^2 / 4; a and b are at least 0 if `bounded`."""
    columns = np.column_stack([log_expit(log_odds), -log_expit(-log_odds), np.ones(len(y))])
    start = fit_slope(log_odds, y, weights) * np.array([1.0, 1.0, 0.0])
    penalty, found = np.array([0.0, 0.0, mu / 4]), [start]
    for free in [[0, 1, 2], [0, 2], [1, 2], [2]] if bounded else [[0, 1, 2]]:
        theta = np.zeros(3)
        theta[free] = _fit_logistic(columns[:, free], y, weights, start[free], penalty[free])
        if not bounded or theta[:2].min() >= 0:
            found.append(theta)
    return min(found, key=lambda t: log_loss(columns @ t, y, weights) + mu / 4 * t[2] ** 2)


def _fit_logistic(X, y, weights, start, penalty):
    """Minimise the mean log-loss of ``expit(X @ theta)`` plus ``penalty * theta**2``.

    By a trust region: the two log-probabilities are nearly dependent, which stops plain Newton
    steps short. A ridge about `start`, on columns of unit size, keeps separable rows finite.
    """
    size = np.array([rms(column, weights) for column in X.T])
    X, start, penalty = X / size, start * size, penalty / size**2

    def value(theta):
        ridge = RIDGE * np.sum((theta - start) ** 2)
        return log_loss(X @ theta, y, weights) + np.sum(penalty * theta**2) + ridge

    def gradient(theta):
        pull = penalty * theta + RIDGE * (theta - start)
        return (weights * (expit(X @ theta) - y)) @ X + 2 * pull

    def hessian(theta):
        q = expit(X @ theta)
        return (X.T * (weights * q * (1 - q))) @ X + 2 * np.diag(penalty + RIDGE)

    fit = minimize(value, start, jac=gradient, hess=hessian, method="trust-exact",
                   options={"gtol": 1e-11, "maxiter": 1000})  # fmt: skip
    return fit.x / size
