"""The two lemmas behind Theorem A.1, held against simulation.

Lemma A.3: the error falls at the start of gradient flow, at a rate known in the limit
(`initial_slope`). Lemma A.4: gradient descent stays within a multiple of its step
size of gradient flow.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.integrate import solve_ivp

from ..validation import check_number
from . import exact_mse
from .logistic_normal import mean_slope, slope_bend
from .model import check_step

__all__ = ["flow_gap", "initial_slope", "measured_slope"]


def initial_slope(gamma, gamma_0):
    r"""Slope of the error at the start of gradient flow in the limit of many samples: Lemma A.3.

    Parameters
    ----------
    gamma, gamma_0 : array-like
        Norms of the truth and of the starting point, at least 0.

    Returns
    -------
    ndarray
        :math:`\lim \mathrm{MSE}'_n(0) = -2\mu(\gamma_0)\{\gamma^2\mu(\gamma)^2 +
        E[(\sigma(Z_0) - \frac12)\sigma'(Z_0)Z_0]\}` with :math:`Z_0 \sim N(0, \gamma_0^2)` and
        :math:`\mu(s) = E\,\sigma'(N(0, s^2))`; per unit of training time.

    Notes
    -----
    The paper prints the formula without the factor 2, the derivative of a square, and writes
    gamma and gamma_0 for the variances where its norms call for their squares. Both are put right
    here; the sign, all that Theorem A.1 needs, is the same.

    Examples
    --------
    >>> round(float(initial_slope(1.0, 0.0)), 6)
    -0.021346
    """
    gamma, gamma_0 = np.asarray(gamma, float), np.asarray(gamma_0, float)
    signal = (gamma * mean_slope(gamma)) ** 2
    return -2 * mean_slope(gamma_0) * (signal + slope_bend(gamma_0))


def measured_slope(sample, width=1e-3):
    r"""Measure the slope of the exact error at the start of gradient flow, on given data.

    Parameters
    ----------
    sample : Sample
        Data sets and starting points.
    width : float, default=1e-3
        Training time of the central difference, whose error is of the order of its square.

    Returns
    -------
    ndarray of shape (r,)
        d/dt of the mean squared error at t = 0. Its mean over data sets and starting points tends
        to `initial_slope`.

    Examples
    --------
    >>> from probnb.theory.model import Model, draw
    >>> bool(measured_slope(draw(Model(n=200))).mean() < 0)
    True
    """
    step = check_number(width, "width", 0, exclusive=True) * sample.gradient(
        sample.start, sample.outcomes
    )
    ahead, behind = (exact_mse(sample.start + s * step, sample.truth) for s in (-1, 1))
    return (ahead - behind) / (2 * width)


def flow_gap(sample, eta, horizon):
    r"""Farthest that gradient descent strays from gradient flow: Lemma A.4.

    Parameters
    ----------
    sample : Sample
        Data sets and starting points.
    eta : float
        Step size.
    horizon : float
        Training time t up to which to compare.

    Returns
    -------
    parameters : ndarray of shape (r,)
        :math:`\sup_{k \le t/\eta}\|\hat\theta^k_\eta - \hat\theta^{k\eta}\|`.
    errors : ndarray of shape (r,)
        The same for the exact mean squared error.

    Notes
    -----
    The flow is solved by scipy's DOP853 to a relative tolerance of 1e-10.
    """
    eta, horizon = check_step(sample, eta), check_number(horizon, "horizon", eta)
    y, shape = sample.outcomes, sample.start.shape
    steps = int(np.floor(horizon / eta + 1e-9))

    def slope(_, flat):
        theta = torch.from_numpy(flat).to(y.device).reshape(shape)
        return -sample.gradient(theta, y).reshape(-1).cpu().numpy()

    time = eta * np.arange(steps + 1)
    start = sample.start.reshape(-1).cpu().numpy()
    flow = solve_ivp(
        slope, (0, time[-1]), start, "DOP853", time, rtol=1e-10, atol=1e-12
    ).y.T.reshape(steps + 1, *shape)
    theta, descent = sample.start, []
    for _ in range(steps + 1):
        descent.append(theta.cpu().numpy())
        theta = theta - eta * sample.gradient(theta, y)
    descent, truth = np.stack(descent), sample.truth.cpu().numpy()
    gap = np.linalg.norm(descent - flow, axis=-1).max(axis=0)
    return gap, np.abs(exact_mse(descent, truth) - exact_mse(flow, truth)).max(axis=0)
