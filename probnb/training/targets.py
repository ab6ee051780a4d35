"""Schedules of soft targets: what a network is trained on in each epoch.

Every training method of the paper is one of these together with a loss. A schedule is called at
the start of epoch ``t`` (counted from 1) and returns one target per training example. What it
draws depends only on its settings, the seed and the epoch, so an interrupted training resumes
exactly.

A schedule that needs more than the training data and the network's predictions on them (other
networks, other data, a memory) has a method ``bind``: `probnb.experiment.run` calls it with the
`Surroundings` of the training and trains towards what it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from .. import store
from ..empirical import p_emp_bin, p_emp_kernel
from ..scenarios import draw_outcomes
from ..validation import check_choice, check_integer, check_number

__all__ = [
    "CAPE",
    "TARGETS",
    "Calibrated",
    "HeldOut",
    "Observed",
    "Resampled",
    "RunningMean",
    "Smoothed",
    "Surroundings",
    "Taught",
]


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


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a schedule may ask of the training that it belongs to.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data, on the device.
    predict : callable
        ``predict(data)``: probabilities of outcome 1 by the network as it is now, of shape (n,).
    teach : callable, optional
        ``teach(calibrator)``: what the teachers say of the training rows, of shape (n,); see
        `probnb.training.teachers.teach`.
    memory : pathlib.Path, optional
        A file that is the schedule's own and goes when the training is finished.
    """

    splits: object
    predict: Callable
    teach: Callable | None = None
    memory: Path | None = None


class _Bound:
    """A schedule that has to be bound first."""

    def __call__(self, epoch, data, predict, seed):
        """Say that the schedule was not bound."""
        raise ValueError(
            f"targets {type(self).__name__} must be bound to the surroundings of a training; "
            "probnb.experiment.run.run_jobs does so."
        )


@dataclass(frozen=True)
class Taught(_Bound):
    """Predictions of other networks, mixed with the outcomes; the same in every epoch.

    Where the teachers did not see the row (out-of-fold predictions) its target says nothing of the
    row's own outcome but by `share`. Where they did see it, it holds what they have memorised.

    Parameters
    ----------
    share : float, default=0
        Targets are ``share y + (1 - share) taught``.
    calibrator : str or None, default=None
        Name in `probnb.calibrators.CALIBRATORS`: fitted to each teacher's validation predictions
        and applied to what it teaches.
    """

    share: float = 0.0
    calibrator: str | None = None

    def __post_init__(self):
        check_number(self.share, "share", 0, 1)

    def bind(self, around):
        """Return the schedule; ValueError where the training has no teachers."""
        if around.teach is None:
            raise ValueError("targets Taught need a job with teachers; got none.")
        taught = around.teach(self.calibrator)

        def targets(epoch, data, predict, seed):
            return self.share * data.outcomes + (1 - self.share) * taught.to(data.outcomes)

        return targets


@dataclass(frozen=True)
class RunningMean(_Bound):
    """A running mean over epochs of the network's own predictions, mixed with the outcomes.

    Self-distillation, or temporal ensembling (Laine and Aila 2017) without unlabelled data. The
    first epoch's mean is what the network says before it, so that it wants a start.

    Parameters
    ----------
    decay : float, default=0.8
        How much of the mean is kept from epoch to epoch.
    share : float, default=0
        Targets are ``share y + (1 - share) mean``.
    """

    decay: float = 0.8
    share: float = 0.0

    def __post_init__(self):
        check_number(self.decay, "decay", 0, 1)
        check_number(self.share, "share", 0, 1)

    def bind(self, around):
        """Return the schedule, whose mean is kept in the surroundings' file between epochs."""
        mean, known = None, 0
        found = store.load_or_set_aside(around.memory) if around.memory else None
        if found is not None:
            mean, known = found[0]["mean"], found[1]["epoch"]

        def targets(epoch, data, predict, seed):
            nonlocal mean, known
            if epoch != known:  # an epoch that is taken up again has its mean
                now = predict().float().cpu()
                mean = now if mean is None else self.decay * mean + (1 - self.decay) * now
                known = epoch
                if around.memory:
                    store.save(around.memory, {"mean": mean}, {"epoch": epoch})
            return self.share * data.outcomes + (1 - self.share) * mean.to(data.outcomes)

        return targets


@dataclass(frozen=True)
class HeldOut(Calibrated, _Bound):
    """CaPE with empirical probabilities of rows that the network does not train on.

    The bins, or the neighbours, are those of the validation data; a training row gets the mean
    outcome of the validation rows that were predicted alike.

    Parameters
    ----------
    estimator : {"bin", "kernel"}, default="bin"
        How to estimate the empirical probability.
    every, phase : int, default=2, 0
        Which epochs calibrate; as in `Calibrated`.
    mix : float or None, default=None
        Weight of the weighted sum, where given.
    bins, neighbours : int, default=15, 200
        Of either estimator.
    sigma : float, default=0.05
        Width of the ``"kernel"`` estimator.
    """

    __call__ = _Bound.__call__

    def bind(self, around):
        """Return the schedule."""
        val = around.splits.val

        def targets(epoch, data, predict, seed):
            ones = torch.ones_like(val.outcomes) if val.weights is None else val.weights
            both = SimpleNamespace(
                outcomes=torch.cat([data.outcomes, val.outcomes]),
                weights=torch.cat([torch.zeros_like(data.outcomes), ones]),
            )
            soft = Calibrated.__call__(
                self, epoch, both, lambda: torch.cat([predict(), around.predict(val)]), seed
            )
            return data.outcomes if soft is both.outcomes else soft[: len(data)]

        return targets


TARGETS = {
    "observed": Observed,
    "resampled": Resampled,
    "smoothed": Smoothed,
    "bin": lambda **settings: Calibrated("bin", **settings),
    "kernel": lambda **settings: Calibrated("kernel", **settings),
    "held_out": lambda **settings: HeldOut("bin", **settings),
    "taught": Taught,
    "taught_platt": lambda **settings: Taught(calibrator="platt", **settings),
    "running": RunningMean,
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
