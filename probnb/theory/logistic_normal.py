r"""Expectations of sigmoids of Gaussian variables, to rounding error at any scale.

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
from scipy.special import ndtr


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
