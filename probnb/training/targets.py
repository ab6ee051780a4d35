"""Schedules of soft targets: what a network is trained on in each epoch.

Every training method of the paper is one of these together with a loss. A schedule is called at
the start of epoch ``t`` (counted from 1) and returns one target per training example. What it
draws depends only on its settings, the seed and the epoch, so an interrupted training resumes
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..empirical import p_emp_bin, p_emp_kernel
from ..scenarios import draw_outcomes
from ..validation import check_choice

__all__ = ["Calibrated", "Observed", "Resampled"]


@dataclass(frozen=True)
class Observed:
    """The observed outcomes, in every epoch."""

    def __call__(self, epoch, data, predict, seed):
        """Return the outcomes of `data`."""
        return data.outcomes


@dataclass(frozen=True)
class Resampled:
    """Fresh outcomes drawn from the ground-truth probabilities in every epoch.

    The paper's best case, "CE + resampled labels": as if the data were infinite.
    """

    def __call__(self, epoch, data, predict, seed):
        """Return outcomes drawn from the probabilities of `data`."""
        if data.probabilities is None:
            raise ValueError("resampled labels need data.probabilities; got None.")
        drawn = draw_outcomes(data.probabilities.cpu(), np.random.SeedSequence([seed, epoch]))
        return torch.as_tensor(drawn, dtype=torch.float32).to(data.outcomes.device)


@dataclass(frozen=True)
class Calibrated:
    r"""CaPE: empirical probabilities of the model's own predictions in every m-th epoch.

    Parameters
    ----------
    estimator : {"bin", "kernel"}, default="bin"
        How to estimate the empirical probability; see `probnb.empirical`.
    every : int, default=2
        m: epoch t is a calibration epoch where (t + phase) mod m = 0, others use the outcomes.
    phase : int, default=0
        0 is the paper's Algorithm 1, whose first epoch is on the outcomes for m > 1; m - 1
        starts with a calibration epoch, as the authors' released code does.
    mix : float or None, default=None
        lambda: where given, every epoch uses (y + lambda p_emp) / (1 + lambda), the paper's
        weighted sum of the two losses, and `every` and `phase` do not matter.
    bins : int, default=15
        Bins of the ``"bin"`` estimator.
    neighbours : int, default=200
        Neighbours of the ``"kernel"`` estimator.
    sigma : float, default=0.05
        Width of the ``"kernel"`` estimator, in units of probability.

    Notes
    -----
    Liu et al. (2022), Section 5 and Algorithm 1.
    """

    estimator: str = "bin"
    every: int = 2
    phase: int = 0
    mix: float | None = None
    bins: int = 15
    neighbours: int = 200
    sigma: float = 0.05

    def __post_init__(self):
        check_choice(self.estimator, ("bin", "kernel"), "estimator")
        if self.every < 1:
            raise ValueError(f"every must be at least 1; got {self.every!r}.")

    def __call__(self, epoch, data, predict, seed):
        """Return the targets of `epoch`; `predict` gives predictions on the training inputs."""
        if self.mix is None and (epoch + self.phase) % self.every != 0:
            return data.outcomes
        p_hat, y = predict().cpu().numpy(), data.outcomes.cpu().numpy()
        if self.estimator == "bin":
            p_emp = p_emp_bin(p_hat, y, self.bins)
        else:
            p_emp = p_emp_kernel(p_hat, y, self.neighbours, self.sigma)
        if self.mix is not None:
            p_emp = (y + self.mix * p_emp) / (1 + self.mix)
        return torch.as_tensor(p_emp, dtype=torch.float32).to(data.outcomes.device)
