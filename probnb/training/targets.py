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
from ..validation import check_choice, check_integer, check_number

__all__ = ["CAPE", "TARGETS", "Calibrated", "Observed", "Resampled", "Smoothed"]


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
class Smoothed:
    """Outcomes moved towards one half: label smoothing.

    Parameters
    ----------
    smoothing : float, default=0.1
        Targets are ``(1 - smoothing) y + smoothing / 2``.
    """

    smoothing: float = 0.1

    def __post_init__(self):
        check_number(self.smoothing, "smoothing", 0, 1)

    def __call__(self, epoch, data, predict, seed):
        """Return the smoothed outcomes of `data`."""
        return (1 - self.smoothing) * data.outcomes + self.smoothing / 2


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
    Liu et al. (2022), Section 5 and Algorithm 1. `CAPE` holds the two published settings.
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
        for name in ("every", "bins", "neighbours"):
            check_integer(getattr(self, name), name)
        check_integer(self.phase, "phase", minimum=0)
        check_number(self.sigma, "sigma", 0, exclusive=True)
        if self.mix is not None:
            check_number(self.mix, "mix", 0)

    def __call__(self, epoch, data, predict, seed):
        """Return the targets of `epoch`; `predict` gives predictions on the training inputs."""
        if self.mix is None and (epoch + self.phase) % self.every != 0:
            return data.outcomes
        p_hat, y = predict().cpu().numpy(), data.outcomes.cpu().numpy()
        weights = None if data.weights is None else data.weights.cpu().numpy()
        if self.estimator == "bin":
            p_emp = p_emp_bin(p_hat, y, self.bins, weights=weights)
        else:
            p_emp = p_emp_kernel(
                p_hat,
                y,
                self.neighbours,
                self.sigma,
                weights=weights,
            )
        if self.mix is not None:
            p_emp = (y + self.mix * p_emp) / (1 + self.mix)
        return torch.as_tensor(p_emp, dtype=torch.float32).to(data.outcomes.device)


TARGETS = {
    "observed": Observed,
    "resampled": Resampled,
    "smoothed": Smoothed,
    "bin": lambda **settings: Calibrated("bin", **settings),
    "kernel": lambda **settings: Calibrated("kernel", **settings),
}
"""Schedules by name, made from the settings that a method's grid gives."""

CAPE = {
    "printed": {
        "bin": {"every": 2, "phase": 0},
        "kernel": {"every": 2, "phase": 0, "sigma": 0.05},
    },
    "released": {
        "bin": {"every": 3, "phase": 2},
        "kernel": {"every": 4, "phase": 3, "sigma": 0.0707, "neighbours": 200},
    },
}
"""CaPE's schedule as Algorithm 1 prints it, with the outcomes first, and as the authors' released
code has it, with a calibration epoch first; a Gaussian's 0.05 is a width of 0.0707 here."""
