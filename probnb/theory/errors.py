r"""Errors of an estimate in the logistic model of Section 4 and Appendix A, all of them exact.

Inputs are :math:`x \sim N(0, I_p)` and outcomes :math:`y \sim \mathrm{Bernoulli}(\sigma(\langle
\theta^*, x\rangle))` with :math:`\|\theta^*\| = \gamma`. For a fresh input z the pair
:math:`a = \langle\hat\theta, z\rangle, b = \langle\theta^*, z\rangle` is Gaussian, so the quality
of an estimate depends on three numbers, its norm, its component along the truth, and gamma; the
integrals are those of `probnb.theory.logistic_normal`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from ..validation import check_number, check_probabilities
from .logistic_normal import mean_sigmoid, mean_slope, product_moment


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

    Raises
    ------
    ValueError
        If the last axes differ or a value is not finite.
    """
    hat, star = (_array(v, n) for v, n in ((theta_hat, "theta_hat"), (theta_star, "theta_star")))
    if hat.shape[-1] != star.shape[-1]:
        raise ValueError(
            f"theta_hat and theta_star must have the same last axis; got {hat.shape[-1]} and "
            f"{star.shape[-1]}."
        )
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

    Raises
    ------
    ValueError
        If the last axes differ or a value is not finite.

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


def _array(value, name):
    """Return a tensor (of any device) or an array-like as a finite float64 array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    value = np.asarray(value, dtype=np.float64)
    if value.ndim == 0 or not np.isfinite(value).all():
        raise ValueError(f"{name} must hold finite numbers along its last axis; got {value!r}.")
    return value
