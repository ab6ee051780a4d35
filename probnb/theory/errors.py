r"""Errors of an estimate in the logistic model of Section 4 and Appendix A, all of them exact.

Inputs are :math:`x \sim N(0, I_p)` and outcomes :math:`y \sim \mathrm{Bernoulli}(\sigma(\langle
\theta^*, x\rangle))` with :math:`\|\theta^*\| = \gamma`. For a fresh input z the pair
:math:`a = \langle\hat\theta, z\rangle, b = \langle\theta^*, z\rangle` is Gaussian, so the quality
of an estimate depends on three numbers, its norm, its component along the truth, and gamma; the
integrals are expectations of sigmoids of Gaussian variables, to rounding error at any scale.

Gauss-Hermite rules fail on these integrals once the scale grows and the sigmoid turns into a step.
But a logistic variable is a Gaussian one of random scale, :math:`L = 2KG` with K of Kolmogorov's
law (Andrews and Mallows, 1974; Stefanski, 1991), and :math:`\sigma(a) = P(L < a)`. So Gaussian
formulas hold given K: with independent :math:`K_1, K_2`, Sheppard's for the orthant says

.. math:: E\,\sigma(a)\sigma(b) = P(L_1 < a, L_2 < b) = \frac14 + \frac1{2\pi}\,
   E\arcsin\frac{\mathrm{cov}(a, b)}{\sqrt{(\mathrm{var}\,a + 4K_1^2)(\mathrm{var}\,b + 4K_2^2)}}

for centred Gaussian a and b. What is left is a smooth integral over K, which the trapezoidal rule
in log K takes to rounding error with 34 points.

References
----------
Andrews and Mallows (1974), Scale mixtures of normal distributions. Stefanski (1991), A normal
scale mixture representation of the logistic distribution. Sheppard (1899), On the application of
the theory of error to cases of normal distribution and normal correlation.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtr

from ..validation import check_number, check_probabilities


def _kolmogorov_rule(points=34, low=-1.75, high=1.55):
    """Nodes 4 K^2 and weights of the trapezoidal rule in log K; the mass outside is < 1e-16."""
    u = np.linspace(low, high, points)
    k, j = np.exp(u), np.arange(1, 30)[:, None]
    # Two series of the same density: one converges fast for large K, the other for small K.
    large = 8 * k * ((-1.0) ** (j - 1) * j**2 * np.exp(-2 * (j * k) ** 2)).sum(0)
    odd = ((2 * j - 1) * np.pi) ** 2 / (4 * k**2)
    small = np.sqrt(2 * np.pi) / k**2 * ((odd - 1) * np.exp(-odd / 2)).sum(0)
    weights = np.where(k > 1, large, small) * k * (u[1] - u[0])
    return 4 * k**2, weights


_S, _W = _kolmogorov_rule()


def mean_slope(scale):
    r"""Mean slope of the sigmoid, :math:`\mu(s) = E\,\sigma'(Z)` with :math:`Z \sim N(0, s^2)`.

    Parameters
    ----------
    scale : array-like
        Standard deviations s, at least 0.

    Returns
    -------
    ndarray
        :math:`\mu(s) = E_K (2\pi(s^2 + 4K^2))^{-1/2}`, between 0 and 1/4.

    Examples
    --------
    >>> round(float(mean_slope(0.0)), 12)
    0.25
    """
    square = np.asarray(scale, float)[..., None] ** 2
    return ((2 * np.pi * (square + _S)) ** -0.5) @ _W


def slope_bend(scale):
    r"""Return :math:`E[(\sigma(Z) - \frac12)\sigma'(Z)Z] = -\frac12 s\mu'(s)`, Z ~ N(0, s^2).

    The identity is integration by parts, with :math:`E(\sigma - \frac12)^2 = \frac14 - \mu`.

    Parameters
    ----------
    scale : array-like
        Standard deviations s, at least 0.

    Returns
    -------
    ndarray
        The expectation, at least 0.
    """
    square = np.asarray(scale, float) ** 2
    return 0.5 * square * ((square[..., None] + _S) ** -1.5 @ _W) / np.sqrt(2 * np.pi)


def mean_sigmoid(mean, variance):
    r"""Return :math:`E\,\sigma(N(m, v)) = E_K\,\Phi(m / \sqrt{v + 4K^2})`.

    Parameters
    ----------
    mean, variance : array-like
        Means m, possibly infinite, and variances v; broadcast against each other.

    Returns
    -------
    ndarray
        Probabilities.

    Examples
    --------
    >>> mean_sigmoid([0.0, np.log(3)], 0.0).round(12)
    array([0.5 , 0.75])
    """
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    return ndtr(mean[..., None] / np.sqrt(variance[..., None] + _S)) @ _W


def product_moment(var_a, var_b, cov):
    r"""Return :math:`E[\sigma(a)\sigma(b)] - \frac14` of centred jointly Gaussian a and b.

    Parameters
    ----------
    var_a, var_b, cov : array-like
        Variances and covariance; broadcast against each other.

    Returns
    -------
    ndarray
        The covariance of the two sigmoids.
    """
    var_a, var_b, cov = (v[..., None] for v in np.broadcast_arrays(var_a, var_b, cov))
    gram = np.maximum(var_a * var_b - cov**2, 0)  # >= 0 but for rounding
    total = np.zeros(cov.shape[:-1])
    for s, w in zip(_S, _W):  # a loop over one of the two scales keeps the memory at n x 32
        # arcsin(c / sqrt(uv)) = arctan(c / sqrt(uv - c^2)), without the cancellation near 1
        rest = gram + var_a * _S + s * (var_b + _S)
        total += w * (np.arctan2(cov, np.sqrt(rest)) @ _W)
    return total / (2 * np.pi)


def geometry(theta_hat, theta_star):
    r"""Return what the error of an estimate depends on: two lengths and a projection.

    Parameters
    ----------
    theta_hat : array-like or Tensor of shape (..., p)
        Estimates; any number of leading axes.
    theta_star : array-like or Tensor of shape (p,) or (..., p)
        The true parameter.

    Returns
    -------
    norm : ndarray of shape (...)
        :math:`\|\hat\theta\|`.
    along : ndarray of shape (...)
        :math:`\langle\hat\theta, \theta^*\rangle / \gamma` (0 where gamma is 0).
    gamma : ndarray
        :math:`\gamma = \|\theta^*\|`.

    """
    thetas = (t.cpu() if hasattr(t, "cpu") else t for t in (theta_hat, theta_star))
    hat, star = (np.asarray(theta, dtype=np.float64) for theta in thetas)
    gamma = np.linalg.norm(star, axis=-1)
    along = (hat * star).sum(-1) / np.where(gamma > 0, gamma, 1.0)
    return np.linalg.norm(hat, axis=-1), along, gamma


def mse(norm, along, gamma):
    r"""Mean squared error of the probabilities, exact, from the geometry of the estimate.

    Parameters
    ----------
    norm, along, gamma : array-like
        As `geometry` returns them; broadcast against each other.

    Returns
    -------
    ndarray
        :math:`E(\sigma(\langle\hat\theta,z\rangle) - \sigma(\langle\theta^*,z\rangle))^2
        = \frac12 - \mu(\|\hat\theta\|) - \mu(\gamma) - 2(E\sigma(a)\sigma(b) - \frac14)`,
        in [0, 1], with an absolute error near 1e-15.
    """
    norm, along, gamma = (np.asarray(v, float) for v in (norm, along, gamma))
    cross = product_moment(norm**2, gamma**2, along * gamma)
    return np.maximum(0.5 - mean_slope(norm) - mean_slope(gamma) - 2 * cross, 0)


def exact_mse(theta_hat, theta_star):
    r"""Mean squared error of the probabilities on a fresh Gaussian input, without sampling.

    Parameters
    ----------
    theta_hat : array-like or Tensor of shape (..., p)
        Estimates; any number of leading axes.
    theta_star : array-like or Tensor of shape (p,) or (..., p)
        The true parameter.

    Returns
    -------
    ndarray of shape (...)
        MSE_p of Section 3, the expectation taken over z alone (Appendix A takes it over the data
        too: average the result over data sets).


    References
    ----------
    Liu et al. (2022), Appendix A.

    Examples
    --------
    An uninformed forecast of 1/2 against the truth of Appendix B:

    >>> round(float(exact_mse([0.0, 0.0], [1.0, 0.0])), 6)
    0.043379
    >>> bool(exact_mse([1.0, 0.0], [1.0, 0.0]) < 1e-14)
    True
    """
    return mse(*geometry(theta_hat, theta_star))


def fresh_predictions(norm, along, gamma, size, seed):
    """Sample predictions and true probabilities on fresh inputs, from the geometry alone.

    Parameters
    ----------
    norm, along, gamma : float
        Geometry of one estimate.
    size : int
        Number of inputs.
    seed : int or Generator
        Source of randomness.

    Returns
    -------
    p_hat, p : ndarray of shape (size,)
        Predictions and true probabilities.

    Examples
    --------
    >>> p_hat, p = fresh_predictions(2.0, 1.0, 1.0, size=100_000, seed=0)
    >>> bool(abs(((p_hat - p) ** 2).mean() - mse(2.0, 1.0, 1.0)) < 2e-3)
    True
    """
    g1, g2 = np.random.default_rng(seed).standard_normal((2, size))
    across = np.sqrt(max(norm**2 - along**2, 0.0))
    return expit(along * g1 + across * g2), expit(gamma * g1)


def reliability(prediction, norm, along, gamma):
    r"""Reliability curve, exact: the chance of outcome 1 where the prediction is q.

    Parameters
    ----------
    prediction : array-like of shape (m,)
        Predictions q, each in [0, 1].
    norm, along, gamma : float
        Geometry of one estimate, with a positive norm.

    Returns
    -------
    ndarray of shape (m,)
        :math:`P(y = 1 \mid \hat p = q) = E\,\sigma(N(m, v))`, where b given the logit
        l of q is Gaussian with mean :math:`m = \langle\hat\theta,\theta^*\rangle\,l /
        \|\hat\theta\|^2` and variance :math:`v = \gamma^2 - \langle\hat\theta,\theta^*\rangle^2 /
        \|\hat\theta\|^2`.

    Raises
    ------
    ValueError
        If a prediction is outside [0, 1] or the norm is not positive.

    Examples
    --------
    The truth is calibrated:

    >>> reliability([0.1, 0.5, 0.9], norm=2.0, along=2.0, gamma=2.0).round(12)
    array([0.1, 0.5, 0.9])
    """
    level = logit(check_probabilities(prediction, "prediction"))
    norm = check_number(norm, "norm", minimum=0, exclusive=True)
    cosine = np.clip(along / norm, -1, 1)
    with np.errstate(invalid="ignore"):  # 0 * inf: a constant curve
        mean = np.where(cosine * gamma == 0, 0.0, cosine * gamma / norm * level)
    return mean_sigmoid(mean, gamma**2 * (1 - cosine**2))


def mse_parts(norm, along, gamma):
    r"""Split the mean squared error into miscalibration and what calibration cannot mend.

    With the reliability curve :math:`r = P(y = 1 \mid \hat p)`, Pythagoras gives
    :math:`E(\hat p - p)^2 = E(\hat p - r)^2 + E(p - r)^2`.

    Parameters
    ----------
    norm, along, gamma : array-like
        As `geometry` returns them; broadcast against each other.

    Returns
    -------
    calibration : ndarray
        :math:`E(\hat p - r)^2`: the squared calibration error with infinitely many bins.
    grouping : ndarray
        :math:`E(p - r)^2`: inputs of different p given one prediction. It depends on the angle
        between estimate and truth alone, so no recalibration changes it.

    Examples
    --------
    >>> calibration, grouping = mse_parts(3.0, 0.5, 1.0)
    >>> bool(np.isclose(calibration + grouping, mse(3.0, 0.5, 1.0)))
    True
    """
    norm, along, gamma = (np.asarray(v, float) for v in (norm, along, gamma))
    cosine = np.where(norm > 0, along / np.where(norm > 0, norm, 1.0), 0.0)
    curve = product_moment(gamma**2, gamma**2, (cosine * gamma) ** 2)  # E r^2 - 1/4
    grouping = np.maximum(0.25 - mean_slope(gamma) - curve, 0)
    cross = product_moment(norm**2, gamma**2, along * gamma)
    calibration = np.maximum(0.25 - mean_slope(norm) - 2 * cross + curve, 0)
    return calibration, grouping
