r"""Data of the logistic model of Appendix A, many data sets in one tensor.

All arithmetic is float64; the draws come from the CPU, one stream per replicate, so that a
replicate is the same on every device and whatever the number of others.

Where a hyperplane tells the outcomes apart training memorises them in the end. Theorem A.2 rests
on the phase transition of Candes and Sur (2018): as :math:`p/n \to \kappa`, data are separable with
probability tending to 1 above a threshold :math:`\kappa^*(\gamma)` and to 0 below it. Here are the
threshold, an exact decision for a given data set, and the separator that training tends to.
"""

from __future__ import annotations

import bisect
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.optimize import brentq, nnls
from scipy.special import expit, ndtr

from ..validation import check_integer, check_number, check_outcomes


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

    low, high = 0, n  # n coordinates separate anything, almost surely
    guess = int(n * separability_threshold(gamma))
    step = max(4, n // 40)
    for edge in (guess - step, guess + step):  # a bracket round the formula's value, if it holds
        if low < edge < high:
            low, high = (low, edge) if separable(edge) else (edge, high)
    return bisect.bisect_left(range(n), True, low + 1, high, key=separable)
