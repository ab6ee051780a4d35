"""Schedules of soft targets: what a network is trained on in each epoch.

Every training method of the paper is one of these together with a loss. A schedule is called at
the start of epoch ``t`` (counted from 1) and returns one target per training example. What it
draws depends only on its settings, the seed and the epoch, so an interrupted training resumes
exactly.

A schedule that needs more than the training data and the network's predictions on them (other
networks, other data, a memory) has a method ``bind``: `probnb.experiment.run` calls it with the
`Surroundings` of the training and trains towards what it returns.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from .. import store
from ..calibrators import CALIBRATORS
from ..data.base import one_hot
from ..validation import check_number, check_probabilities
from .batches import predict_logits, probabilities
from .cape import Calibrated, HeldOut

__all__ = ["TARGETS", "Observed", "Resampled", "RunningMean", "Smoothed", "Surroundings", "Taught"]


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
        p, seed = data.probabilities.cpu(), np.random.SeedSequence([seed, epoch])
        if p.ndim == 1:
            return data.outcomes.new_tensor(draw_outcomes(p, seed))
        u = np.random.default_rng(seed).random((len(p), 1))  # one of K
        drawn = (u > np.cumsum(p.numpy(), axis=1)[:, :-1]).sum(axis=1)
        return one_hot(drawn, p.shape[1]).to(data.outcomes)


@dataclass(frozen=True)
class Smoothed:
    """Outcomes moved towards one half: label smoothing.

    Parameters
    ----------
    smoothing : float, default=0.1
        Targets are ``(1 - smoothing) y + smoothing / K`` for K outcomes.
    """

    smoothing: float = 0.1

    def __post_init__(self):
        check_number(self.smoothing, "smoothing", 0, 1)

    def __call__(self, epoch, data, predict, seed):
        """Return the smoothed outcomes of `data`."""
        return (1 - self.smoothing) * data.outcomes + self.smoothing / data.classes


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a schedule may ask of the training that it belongs to.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data, on the device.
    predict : callable
        ``predict(data)``: `probabilities` by the network as it is now.
    memory : pathlib.Path
        A file that is the schedule's own and goes when the training is finished.
    teach : callable, optional
        ``teach(calibrator)``: what the teachers say of the training rows; see `teach`.
    """

    splits: object
    predict: Callable
    memory: Path
    teach: Callable | None = None


@dataclass(frozen=True)
class Taught:
    """Predictions of other networks, mixed with the outcomes; the same in every epoch.

    Where the teachers did not see the row (out-of-fold predictions) its target says nothing of the
    row's own outcome but by `share`. Where they did see it, it holds what they have memorised.

    Parameters
    ----------
    share : float, default=0
        Targets are ``share y + (1 - share) taught``. Below 0, down to -1, the teachers have a
        weight above 1 (Das and Sanghavi 2023) and the row's own outcome is subtracted: for
        `probnb.training.losses.CrossEntropy` with ``beyond`` alone.
    calibrator : str or None, default=None
        Name in `probnb.calibrators.CALIBRATORS`: fitted to each teacher's validation predictions
        and applied to what it teaches.
    """

    share: float = 0.0
    calibrator: str | None = None

    def __post_init__(self):
        check_number(self.share, "share", -1, 1)

    def bind(self, around):
        """Return the schedule; ValueError where the training has no teachers."""
        if around.teach is None:
            raise ValueError("targets Taught need a job with teachers; got none.")
        taught = around.teach(self.calibrator)

        def targets(epoch, data, predict, seed):
            return self.share * data.outcomes + (1 - self.share) * taught.to(data.outcomes)

        return targets


@dataclass(frozen=True)
class RunningMean:
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
        found = store.load_or_set_aside(around.memory)
        if found is not None:
            mean, known = found[0]["mean"], found[1]["epoch"]

        def targets(epoch, data, predict, seed):
            nonlocal mean, known
            if epoch != known:  # an epoch that is taken up again has its mean
                if epoch != known + 1:  # begun anew: what is known is of another training
                    mean = None
                now = predict().float().cpu()
                mean = now if mean is None else self.decay * mean + (1 - self.decay) * now
                known = epoch
                store.save(around.memory, {"mean": mean}, {"epoch": epoch})
            return self.share * data.outcomes + (1 - self.share) * mean.to(data.outcomes)

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


def left_out(splits, fold):
    """Return the training rows that the network of a fold does not see.

    Folds cut through groups where the data's own splits do (faces of one age), and never where
    those do not (patients, days).

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    fold : tuple of int
        Which fold, of how many, and the seed of the cut.

    Returns
    -------
    ndarray of shape (k,)
        Row numbers in increasing order; over all folds each row comes once.

    Raises
    ------
    ValueError
        If the fold is none, or there are fewer rows or groups than folds.
    """
    which, of, seed = fold
    if not 0 <= which < of or of < 2:
        raise ValueError(f"fold must be (which, of, seed), 0 <= which < of, 2 <= of; got {fold!r}.")
    train, n = splits.train, len(splits.train)
    units = np.arange(n)
    if train.groups is not None and not np.isin(train.groups, splits.val.groups).any():
        units = np.unique(train.groups, return_inverse=True)[1]
    count = units.max() + 1
    if count < of:
        raise ValueError(f"fold must be one of at most {count} (rows or groups); got {fold!r}.")
    rank = np.random.default_rng(np.random.SeedSequence([seed, of])).permutation(count)
    size = np.bincount(rank[units], minlength=count)
    # The fold of a unit is where its middle lies among all rows; no fold stays empty.
    middle = (np.cumsum(size) - size / 2) / n
    part = np.minimum((middle * of).astype(int), of - 1)
    if len(np.unique(part)) < of:
        part = np.arange(count) * of // count
    return np.flatnonzero(part[rank[units]] == which)


def without(splits, fold):
    """Return the data without the rows of a fold, images scaled as in all training data."""
    rows = np.setdiff1d(np.arange(len(splits.train)), left_out(splits, fold))
    return replace(splits, train=replace(splits.train.take(rows), scale=splits.scale))


def teach(teachers, splits, fabric, calibrator=None):
    """Say what teachers predict for the training rows.

    Parameters
    ----------
    teachers : list of (Network, Fit, tuple or None)
        For each: its network, its finished training, and the fold that it left out. A teacher with
        a fold speaks of that fold's rows only, one without of all, also those that it has seen.
    splits : probnb.data.Splits
        The data.
    fabric : lightning_fabric.Fabric
        Device and precision.
    calibrator : str, optional
        Name in `probnb.calibrators.CALIBRATORS`, fitted to each teacher's validation predictions.

    Returns
    -------
    torch.Tensor of shape (n,), or (n, K) for more outcomes
        Mean probabilities over the teachers that speak of a row, float32.

    Raises
    ------
    ValueError
        If nobody speaks of some row.
    """
    splits = splits.to(fabric.device)
    train, n = splits.train, len(splits.train)
    total, voices = np.zeros(train.outcomes.shape), np.zeros(n)
    for network, fit, fold in teachers:
        rows = np.arange(n) if fold is None else left_out(splits, fold)
        model = network.build(train.inputs)
        model.load_state_dict(fit.weights)
        z = predict_logits(fabric, model.to(fabric.device), train.take(rows)).double().cpu()
        total[rows] += _calibrated(z, fit, splits.val, calibrator)
        voices[rows] += 1
    if not voices.all():
        raise ValueError(f"teachers must speak of every row; none does of {(voices == 0).sum()}.")
    return torch.as_tensor((total.T / voices).T, dtype=torch.float32)


def _calibrated(logits, fit, val, calibrator):
    if calibrator is None:
        return probabilities(logits).numpy()
    known, y = fit.logits["best_val"].double().numpy(), val.numbers("outcomes")
    fitted = CALIBRATORS[calibrator]().fit(known, y, sample_weight=val.numbers("weights"))
    return fitted.predict_proba(logits.numpy())[:, 1]


def draw_outcomes(probabilities, seed):
    """Draw one outcome per probability: y ~ Bernoulli(p).

    Parameters
    ----------
    probabilities : array-like of shape (n,)
        Probabilities of outcome 1.
    seed : int, SeedSequence or Generator
        Source of randomness; the same seed draws the same outcomes.

    Returns
    -------
    ndarray of shape (n,)
        Outcomes 0.0 and 1.0, float64.

    Examples
    --------
    >>> draw_outcomes([0.0, 1.0, 1.0], seed=0)
    array([0., 1., 1.])
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    check_probabilities(probabilities.ravel(), "probabilities", empty=True)
    return (np.random.default_rng(seed).random(probabilities.shape) < probabilities).astype(float)
