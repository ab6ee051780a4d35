r"""The logistic model of Appendix A: its data, and the errors of an estimate, all of them exact.

Many data sets are one tensor, of float64; the draws come from the CPU, one stream per
replicate, so that a replicate is the same on every device and whatever the number of others.

Where a hyperplane tells the outcomes apart training memorises them in the end. Theorem A.2 rests
on the phase transition of Candes and Sur (2018): as :math:`p/n \to \kappa`, data are separable with
probability tending to 1 above a threshold :math:`\kappa^*(\gamma)` and to 0 below it. Here are the
threshold, an exact decision for a given data set, and the separator that training tends to.

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

import bisect
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.optimize import brentq, nnls
from scipy.special import expit, logit, ndtr

from probnb.validation import check_integer, check_number, check_outcomes, check_probabilities


@dataclass(frozen=True)
class Model:
    """The setting of Appendix A.

    Parameters
    ----------
    n : int, default=250
        Training examples.
    kappa : float, default=1.0
        Aspect ratio p/n, positive; p = round(kappa n) must come to at least 1.
    gamma, gamma_0 : float, default=1.0
        Norms of the truth and of the starting point, at least 0.
    replicates : int, default=8
        Independent data sets, trained side by side.
    seed : int, default=0
        Source of randomness.
    device : str, default="cpu"
        Where tensors live; it must know float64.

    Raises
    ------
    ValueError
        If a value is outside its range.
    """

    n: int = 250
    kappa: float = 1.0
    gamma: float = 1.0
    gamma_0: float = 1.0
    replicates: int = 8
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self):
        for name, least in {"n": 1, "replicates": 1, "seed": 0}.items():
            check_integer(getattr(self, name), name, least)
        for name in ("kappa", "gamma", "gamma_0"):
            check_number(getattr(self, name), name, 0, exclusive=name == "kappa")
        if self.p < 1:
            n, kappa = self.n, self.kappa
            raise ValueError(f"kappa must give round(kappa n) >= 1; got kappa = {kappa}, n = {n}.")

    @property
    def p(self):
        """Dimension of the inputs."""
        return round(self.kappa * self.n)


@dataclass(frozen=True)
class Sample:
    """Data sets of a model: inputs (r, n, p), outcomes (r, n), start (r, p), truth (p,)."""

    inputs: torch.Tensor
    outcomes: torch.Tensor
    start: torch.Tensor
    truth: torch.Tensor

    @cached_property
    def _columns(self):  # batched row times matrix is six times as fast as matrix times column
        return self.inputs.mT.contiguous()

    def logits(self, theta):
        """Return the inner products of the inputs with `theta` (r, p), of shape (r, n)."""
        return (theta[:, None] @ self._columns)[:, 0]

    def pull(self, residual):
        """Return the mean over rows of residual (r, n) times input, of shape (r, p)."""
        return (residual[:, None] @ self.inputs)[:, 0] / self.inputs.shape[1]

    def gradient(self, theta, targets):
        """Return the gradient of the mean cross entropy to `targets` (r, n) in [0, 1]."""
        return self.pull(torch.sigmoid(self.logits(theta)) - targets)


def draw(model, rows=None, stream=0):
    """Draw data sets from a model, with a starting point on the sphere of radius gamma_0.

    Parameters
    ----------
    model : Model
        The setting.
    rows : int, optional
        Examples per data set, if not the model's n (the dimension stays the model's).
    stream : int, default=0
        0 for training data; another number for an independent sample, such as validation data.

    Returns
    -------
    Sample
        float64 tensors on the model's device. The truth is gamma times the first basis vector,
        as in Appendix B; the model is invariant to rotations.
    """
    n, p = check_integer(model.n if rows is None else rows, "rows"), model.p
    inputs, uniform = np.empty((model.replicates, n, p)), np.empty((model.replicates, n))
    start = np.empty((model.replicates, p))
    for r in range(model.replicates):
        rng = np.random.default_rng([model.seed, stream, r])
        start[r] = rng.standard_normal(p)
        inputs[r], uniform[r] = rng.standard_normal((n, p)), rng.random(n)
    start *= model.gamma_0 / np.linalg.norm(start, axis=1, keepdims=True)
    truth = np.zeros(p)
    truth[0] = model.gamma
    tensors = [torch.from_numpy(v).to(model.device) for v in (inputs, uniform, start, truth)]
    inputs, uniform, start, truth = tensors
    return Sample(inputs, (uniform < torch.sigmoid(inputs @ truth)).double(), start, truth)


def stable_step(sample):
    r"""Largest step size of Theorem A.2, :math:`2n/\|X\|^2`, for each replicate.

    Parameters
    ----------
    sample : Sample
        Data sets.

    Returns
    -------
    ndarray of shape (r,)
        The bounds. The logistic loss bends by at most :math:`\|X\|^2/4n`, so gradient descent is
        sure to descend for four times as long a step, :math:`8n/\|X\|^2`: the paper's bound is on
        the safe side.
    """
    X = sample.inputs
    n, p = X.shape[1:]
    gram = X @ X.mT if n < p else X.mT @ X
    return 2 * n / torch.linalg.eigvalsh(gram)[:, -1].cpu().numpy()


def check_step(sample, eta):
    """Return `eta` as a float; an error if it is not positive, a warning beyond the bound.

    Parameters
    ----------
    sample : Sample
        Data sets.
    eta : float
        Step size.

    Returns
    -------
    float
        The step size.

    Raises
    ------
    ValueError
        If `eta` is not a positive number.

    Warns
    -----
    UserWarning
        If `eta` exceeds the bound of `stable_step` for a replicate.
    """
    eta, bound = check_number(eta, "eta", 0, exclusive=True), float(stable_step(sample).min())
    if eta > bound:
        text = (
            f"eta = {eta:.4g} exceeds 2n/||X||^2 = {bound:.4g}, the bound of Theorem A.2; beyond "
        )
        text += f"8n/||X||^2 = {4 * bound:.4g} gradient descent may oscillate or diverge."
        warnings.warn(text, stacklevel=3)
    return eta


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
        If `y` is not 0 and 1.

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
    signed = np.asarray(X, dtype=np.float64) * (2 * check_outcomes(y, "y") - 1)[:, None]
    n, p = signed.shape
    target = np.r_[np.zeros(p), 1.0]
    weights, _ = nnls(np.vstack([signed.T, np.ones(n)]), target, maxiter=30 * max(n, p))
    shortfall = 1.0 - weights.sum()  # the squared distance, positive if and only if separable
    direction = signed.T @ weights
    if shortfall < 1e-10 or (signed @ direction).min() <= 0:
        return None
    return direction / shortfall


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
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n))
    y = rng.random(n) < expit(gamma * X[:, 0])

    def separable(p):
        return max_margin(X[:, :p], y) is not None

    # n coordinates separate anything, almost surely
    return bisect.bisect_left(range(n), True, 1, n, key=separable)


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
