"""Data of the logistic model of Appendix A, many data sets in one tensor.

All arithmetic is float64; the draws come from the CPU, one stream per replicate, so that a
replicate is the same on every device and whatever the number of others.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from ..validation import check_integer, check_number


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
        check_integer(self.n, "n")
        check_number(self.kappa, "kappa", 0, exclusive=True)
        check_number(self.gamma, "gamma", 0)
        check_number(self.gamma_0, "gamma_0", 0)
        check_integer(self.replicates, "replicates")
        check_integer(self.seed, "seed", 0)
        if self.p < 1:
            raise ValueError(
                f"kappa must give at least one dimension, p = round(kappa n) >= 1; got "
                f"kappa = {self.kappa!r} with n = {self.n!r}."
            )

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
        If `eta` exceeds the bound of `stable_step` for a replicate; the text differs beyond the
        four times longer step for which descent is still sure.
    """
    eta, bound = check_number(eta, "eta", 0, exclusive=True), float(stable_step(sample).min())
    if eta > 4 * bound:
        warnings.warn(
            f"eta = {eta:.4g} exceeds 8n/||X||^2 = {4 * bound:.4g}: gradient descent may "
            "oscillate or diverge.",
            stacklevel=3,
        )
    elif eta > bound:
        warnings.warn(
            f"eta = {eta:.4g} exceeds 2n/||X||^2 = {bound:.4g}, the bound of Theorem A.2 "
            f"(descent is still sure up to 8n/||X||^2 = {4 * bound:.4g}).",
            stacklevel=3,
        )
    return eta
