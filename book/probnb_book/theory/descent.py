"""Training in the logistic model of Appendices A and B, many data sets in one tensor.

A trajectory keeps two numbers per replicate and recorded iteration, the norm of the estimate and
its component along the truth, from which `probnb_book.theory` computes every error exactly. Beside
gradient descent there are the two lemmas behind Theorem A.1, to hold against it: how fast the
error falls at the start of gradient flow (`initial_slope`, Lemma A.3), and how far gradient
descent strays from gradient flow (`flow_gap`, Lemma A.4).
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.special import ndtr

from probnb.validation import check_choice, check_integer, check_number

from . import check_step, exact_mse, mean_slope, mse, slope_bend


@dataclass(frozen=True)
class Trajectory:
    """A training run: arrays over its k records, for each of r replicates.

    Attributes
    ----------
    time : ndarray of shape (k,)
        Training time, step size times iterations (its natural logarithm for `late_training`, of
        shape (r, k)).
    norm, along : ndarray of shape (r, k)
        Geometry of the estimates, see `probnb_book.theory.geometry`.
    gamma : float
        Norm of the truth.
    theta : Tensor of shape (r, p)
        The last estimates.
    onto : ndarray of shape (r, k), optional
        Component along the direction that was asked for.
    """

    time: np.ndarray
    norm: np.ndarray
    along: np.ndarray
    gamma: float
    theta: torch.Tensor
    onto: np.ndarray | None = None

    @property
    def mse(self):
        """Exact mean squared errors, of shape (r, k)."""
        return mse(self.norm, self.along, self.gamma)


def record_at(steps, records=60):
    """Iterations to record: 0, `steps` and up to `records` more, evenly spaced in logarithm."""
    steps = check_integer(steps, "steps")
    return np.unique(np.r_[0, np.geomspace(1, steps, records).round().astype(int)])


def _run(sample, steps, update, record, onto=None):
    """Apply `update(theta)` `steps` times: `record`, and the geometry at these iterations."""
    record = np.arange(check_integer(steps, "steps") + 1) if record is None else np.asarray(record)
    wanted, theta, kept = set(record.tolist()), sample.start.clone(), []
    gamma = float(sample.truth.norm())
    direction = sample.truth / gamma if gamma > 0 else sample.truth
    for k in range(steps + 1):
        if k in wanted:
            lengths = [theta.norm(dim=1), theta @ direction]
            kept.append(torch.stack(lengths if onto is None else [*lengths, (theta * onto).sum(1)]))
        if k < steps:
            theta = update(theta)
    norm, along, *rest = torch.stack(kept, dim=-1).cpu().numpy()
    return record, norm, along, gamma, theta, *rest


def gradient_descent(sample, eta, steps, record=None):
    """Gradient descent on the cross entropy with observed outcomes, as in Appendix A.

    Parameters
    ----------
    sample : Sample
        Data sets and starting points.
    eta : float
        Step size, positive. Beyond the bound of `stable_step` a warning says so.
    steps : int
        Iterations.
    record : sequence of int, optional
        Iterations to record; all by default.

    Returns
    -------
    Trajectory
        The run.

    Raises
    ------
    ValueError
        If `eta` or `steps` is not positive.

    Examples
    --------
    >>> from probnb_book.theory import Model, draw
    >>> path = gradient_descent(draw(Model(n=100, kappa=0.5)), eta=0.5, steps=10)
    >>> bool(path.mse[:, -1].mean() < path.mse[:, 0].mean())
    True
    """
    eta, y = check_step(sample, eta), sample.outcomes
    record, *run = _run(
        sample, steps, lambda theta: theta - eta * sample.gradient(theta, y), record
    )
    return Trajectory(eta * record, *run)


def late_training(sample, eta, steps, record=None, onto=None):
    r"""Follow training to its end, where plain gradient descent takes for ever.

    On separable data the norm grows like the logarithm of time. Steps of
    :math:`\eta\nabla L/L` go along the same curve in stretched time, :math:`dt = d\tau/L`, and
    the norm grows in proportion to their number.

    Parameters
    ----------
    sample : Sample
        Data sets and starting points; meant for separable ones.
    eta : float
        Step size in stretched time. Take it several times shorter than for gradient descent: late
        in training a few rows hold all the weight, and the bound of `stable_step` is too loose.
    steps : int
        Iterations.
    record : sequence of int, optional
        Iterations to record; all by default.
    onto : Tensor of shape (r, p), optional
        Directions along which to record the component of the estimate.

    Returns
    -------
    Trajectory
        The run; its `time` is log t, of shape (r, k), which soon leaves the range of t itself.

    References
    ----------
    Nacson et al. (2019), Convergence of gradient descent on separable data.
    """
    eta, sign, n = check_step(sample, eta), 2 * sample.outcomes - 1, sample.inputs.shape[1]
    log_time = [torch.full_like(sign[:, 0], -torch.inf)]

    def update(theta):
        margin = sign * sample.logits(theta)
        # log of log(1 + exp(-m)), which underflows itself long before its logarithm does
        log_loss = torch.where(
            margin > 30, -margin, torch.log(torch.nn.functional.softplus(-margin.clamp(max=40)))
        )
        log_mean = torch.logsumexp(log_loss, dim=1) - np.log(n)
        pull = sign * torch.exp(-torch.nn.functional.softplus(margin) - log_mean[:, None])
        log_time.append(torch.logaddexp(log_time[-1], np.log(eta) - log_mean))
        return theta + eta * sample.pull(pull)

    record, *run = _run(sample, steps, update, record, onto)
    return Trajectory(torch.stack(log_time, dim=-1).cpu().numpy()[:, record], *run)


def collapsed(norm):
    r"""Share of predictions on fresh data that lie within d = 0.001 of 0 or 1, exact.

    Parameters
    ----------
    norm : array-like
        Norms of the estimate.

    Returns
    -------
    ndarray
        :math:`2\Phi(-\mathrm{logit}(1 - d)/\|\hat\theta\|)`.

    Examples
    --------
    >>> collapsed([0.0, 1e6]).round(3)
    array([0., 1.])
    """
    with np.errstate(divide="ignore"):
        return 2 * ndtr(-np.log(999) / np.asarray(norm, float))


def sgd(sample, eta, steps, labels="observed", batch=50, record=None, seed=0):
    """Stochastic gradient descent of Appendix B, on finite or on resampled labels.

    Parameters
    ----------
    sample : Sample
        Data sets and starting points.
    eta : float
        Step size.
    steps : int
        Iterations, each on one random batch.
    labels : {"observed", "resampled"}, default="observed"
        ``"resampled"`` draws fresh outcomes from the true probabilities in every iteration.
    batch : int, default=50
        Rows per iteration, drawn with replacement.
    record : sequence of int, optional
        Iterations to record; all by default.
    seed : int, default=0
        Source of the batches and of the fresh outcomes.

    Returns
    -------
    Trajectory
        The run; its `time` counts iterations times `eta`.

    Notes
    -----
    The paper gives neither batch size nor step size nor schedule.
    """
    eta, batch = check_number(eta, "eta", 0, exclusive=True), check_integer(batch, "batch")
    fresh = check_choice(labels, ("observed", "resampled"), "labels") == "resampled"
    X, y = sample.inputs, sample.outcomes
    truth = torch.sigmoid(X @ sample.truth)
    generator = torch.Generator().manual_seed(check_integer(seed, "seed", 0))
    each = torch.arange(X.shape[0], device=X.device)[:, None]
    size = (X.shape[0], batch)

    def update(theta):
        rows = torch.randint(X.shape[1], size, generator=generator).to(X.device)
        if fresh:
            uniform = torch.rand(size, generator=generator, dtype=X.dtype).to(X.device)
            targets = (uniform < truth[each, rows]).double()
        else:
            targets = y[each, rows]
        inputs = X[each, rows]
        residual = torch.sigmoid(torch.linalg.vecdot(inputs, theta[:, None])) - targets
        return theta - eta / batch * (residual[:, None] @ inputs)[:, 0]

    record, *run = _run(sample, steps, update, record)
    return Trajectory(eta * record, *run)


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


def measured_slope(sample):
    r"""Measure the slope of the exact error at the start of gradient flow, on given data.

    Parameters
    ----------
    sample : Sample
        Data sets and starting points.

    Returns
    -------
    ndarray of shape (r,)
        d/dt of the mean squared error at t = 0. Its mean over data sets and starting points tends
        to `initial_slope`.

    Examples
    --------
    >>> from probnb_book.theory import Model, draw
    >>> bool(measured_slope(draw(Model(n=200))).mean() < 0)
    True
    """
    step = 1e-3 * sample.gradient(sample.start, sample.outcomes)
    ahead, behind = (exact_mse(sample.start + s * step, sample.truth) for s in (-1, 1))
    return (ahead - behind) / 2e-3


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
