r"""Separability: whether a hyperplane tells the outcomes apart, so that training memorises.

Theorem A.2 rests on the phase transition of Candes and Sur (2018): as :math:`p/n \to \kappa`,
data of the logistic model are separable with probability tending to 1 above a threshold
:math:`\kappa^*(\gamma)` and to 0 below it. Here are the threshold, an exact decision for a given
data set, and the separator that gradient descent tends to.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.special import expit, ndtr

from ..validation import check_integer, check_number, check_outcomes

# Nodes v and weights phi(v) dv on both sides of 0: the trapezoidal rule in log |v|, which is as
# good at any steepness of a sigmoid in v; what lies beyond is below 1e-15.
_U = np.linspace(-36, np.log(9), 400)
_NODES = np.r_[-np.exp(_U), np.exp(_U)]
_WEIGHTS = np.abs(_NODES) * (_U[1] - _U[0]) * np.exp(-(_NODES**2) / 2) / np.sqrt(2 * np.pi)


def separability_threshold(gamma):
    r"""Aspect ratio :math:`\kappa^* = p/n` above which logistic data become separable.

    Parameters
    ----------
    gamma : array-like
        Signal strength, the norm of the true parameter; each finite and at least 0.

    Returns
    -------
    ndarray
        :math:`\kappa^*(\gamma) = \min_t E(tV - Z)_+^2`, where V = yx is the outcome in {-1, 1}
        times the Gaussian coordinate along the truth (density :math:`2\varphi(v)\sigma(\gamma
        v)`) and Z is an independent standard normal. It is 1/2 at 0 and decreases.

    Raises
    ------
    ValueError
        If a gamma is negative, not finite or above 1e6.

    Notes
    -----
    The inner expectation over Z is :math:`(1 + m^2)\Phi(m) + m\varphi(m)` at m = tV; the function
    of t is convex and its derivative's root is found by Brent's method. The model has no
    intercept, as in the paper.

    References
    ----------
    Candes and Sur (2018), The phase transition for the existence of the maximum likelihood
    estimate in high-dimensional logistic regression, Theorem 1. Liu et al. (2022), Theorem A.2.

    Examples
    --------
    >>> float(separability_threshold(0.0))
    0.5
    """
    gamma = np.asarray(gamma, dtype=np.float64)
    values = [_threshold(check_number(g, "gamma", 0, 1e6)) for g in gamma.ravel().tolist()]
    return np.array(values).reshape(gamma.shape)


def _threshold(gamma):
    weights = 2 * _WEIGHTS * expit(gamma * _NODES)

    def slope(u):  # minus half the derivative at t = -u; E(m - Z)_+ = m Phi(m) + phi(m)
        m = -u * _NODES
        return -weights @ (_NODES * (m * ndtr(m) + _density(m)))

    upper = 1.0
    while slope(upper) < 0:
        upper *= 2
    u = 0.0 if gamma == 0 else brentq(slope, 0.0, upper, xtol=1e-14, rtol=1e-12)
    m = -u * _NODES
    return 0.5 if u == 0 else float(weights @ ((1 + m**2) * ndtr(m) + m * _density(m)))


def _density(m):
    return np.exp(-(m**2) / 2) / np.sqrt(2 * np.pi)


def max_margin(X, y):
    r"""Find the separator of largest margin through the origin, the limit of gradient descent.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Inputs, one a row.
    y : array-like of shape (n,)
        Outcomes, each 0 or 1.

    Returns
    -------
    ndarray of shape (p,) or None
        The w of least norm with :math:`\langle w, x_i\rangle \ge 1` where y is 1 and
        :math:`\le -1` where it is 0; its margin is :math:`1/\|w\|`. None if no hyperplane
        through the origin separates the outcomes.

    Raises
    ------
    ValueError
        If `y` is not 0 and 1, or the shapes disagree.

    Notes
    -----
    Lawson and Hanson's least-distance programme. With signed rows :math:`a_i`, the point of the
    convex hull nearest the origin is a non-negative least-squares problem, which an active-set
    method solves in finitely many steps. Its residual is 0 if and only if the linear programme
    :math:`\sum\lambda_i a_i = 0, \sum\lambda_i = 1, \lambda \ge 0` is feasible, which by
    Gordan's theorem is the case if and only if the data are not separable; otherwise the residual
    is the separator. Four to twenty times as fast here as an LP solver.

    References
    ----------
    Lawson and Hanson (1974), Solving least squares problems, chapter 23. Soudry et al. (2018),
    Theorem 3: gradient descent converges to this direction.

    Examples
    --------
    >>> max_margin([[2.0, 0.0], [-2.0, 0.0]], [1, 0])
    array([0.5, 0. ])
    >>> max_margin([[2.0, 0.0], [-2.0, 0.0]], [1, 1]) is None
    True
    """
    signed = _signed(X, y)
    n, p = signed.shape
    target = np.r_[np.zeros(p), 1.0]
    weights, _ = nnls(np.vstack([signed.T, np.ones(n)]), target, maxiter=30 * max(n, p))
    shortfall = 1.0 - weights.sum()  # the squared distance, positive if and only if separable
    direction = signed.T @ weights
    if shortfall < 1e-10 or (signed @ direction).min() <= 0:
        return None
    return direction / shortfall


def is_separable(X, y):
    """Decide exactly whether a hyperplane through the origin separates the outcomes.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Inputs, one a row.
    y : array-like of shape (n,)
        Outcomes, each 0 or 1.

    Returns
    -------
    bool
        True if some w has a positive margin on every row, see `max_margin`.

    Examples
    --------
    >>> is_separable([[2.0, 0.0], [-2.0, 0.0]], [1, 0])
    True
    """
    return max_margin(X, y) is not None


def critical_dimension(n, gamma, seed):
    """Smallest dimension at which n simulated observations become separable.

    The coordinates are revealed one by one, the one along the truth first. A further coordinate
    can only help to separate, so bisection finds the point of change with a few exact decisions.

    Parameters
    ----------
    n : int
        Observations.
    gamma : float
        Norm of the true parameter.
    seed : int or sequence of int
        Source of randomness.

    Returns
    -------
    int
        The dimension: in the limit of large n, n times `separability_threshold`.

    Examples
    --------
    >>> dimension = critical_dimension(200, gamma=1.0, seed=0)
    >>> bool(abs(dimension / 200 - separability_threshold(1.0)) < 0.1)
    True
    """
    n, gamma = check_integer(n, "n"), check_number(gamma, "gamma", 0)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n))
    y = rng.random(n) < expit(gamma * X[:, 0])
    low, high = 0, n  # n coordinates separate anything, almost surely
    guess = int(n * separability_threshold(gamma))
    step = max(4, n // 40)
    for edge in (guess - step, guess + step):  # a bracket round the formula's value, if it holds
        if low < edge < high:
            low, high = (low, edge) if is_separable(X[:, :edge], y) else (edge, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_separable(X[:, :middle], y) else (middle, high)
    return high


def _signed(X, y):
    """Rows x_i (2 y_i - 1): a separator has a positive product with each."""
    X, y = np.asarray(X, dtype=np.float64), check_outcomes(y, "y")
    if X.ndim != 2 or X.shape[0] != len(y) or X.shape[1] == 0:
        raise ValueError(f"X must be of shape ({len(y)}, p) with p >= 1; got shape {X.shape}.")
    return X * (2 * y - 1)[:, None]
