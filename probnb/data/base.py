"""The protocol between data and training: rows by number, what is known of each, and batches.

Every data module returns `Splits` of three `ProbabilityData`. Training asks them for one thing,
``batch(rows, train)``, and never looks at the inputs itself, so images on the device, arrays larger
than memory, tables and ragged bags all go through the same loop.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from ..validation import check_outcomes, check_probabilities, check_vector, check_weights
from .ragged import Bags

__all__ = ["Bags", "ProbabilityData", "Splits"]


SAMPLE = 1024
"""Rows of an array on disk from which the scale of its channels is estimated."""


@dataclass(frozen=True, eq=False)
class ProbabilityData:
    """One set of examples.

    Parameters
    ----------
    inputs : torch.Tensor, array or Bags, of n rows
        Images as uint8 of shape (n, channels, height, width), or any floating-point inputs. A
        tensor moves to the device as a whole; anything else that is indexed like an array (a
        memory-mapped file, an HDF5 or Zarr data set) stays where it is and is read batch by batch.
    outcomes : array-like of shape (n,)
        Zeros and ones; kept as a float32 tensor.
    probabilities : array-like of shape (n,), optional
        Ground-truth probabilities of outcome 1, where they are known; kept as a float32 tensor.
    groups : array-like of shape (n,), optional
        Whatever rows share: an age, a patient, a day, a scene. Splits and bootstraps never cut
        through one.
    weights : array-like of shape (n,), optional
        How much each row counts, at least 0: for censoring and for unequal sampling. By default
        all count alike.
    ids : array-like of shape (n,), optional
        What identifies a row wherever it goes; by default its number.
    augment : tuple of callable, default=()
        Applied in turn to training batches; see `probnb.data.augment`. None by default: whether a
        mirrored image has the same outcome is known to the data, not to the loop.
    scale : tuple of torch.Tensor, optional
        Mean and standard deviation per channel of uint8 images; `Splits.to` takes them from the
        training part.

    Raises
    ------
    ValueError
        If lengths differ, outcomes are not 0 or 1, probabilities not in [0, 1], weights negative,
        or inputs neither uint8 images nor floating point.
    """

    inputs: object
    outcomes: torch.Tensor
    probabilities: torch.Tensor | None = None
    groups: np.ndarray | None = None
    weights: torch.Tensor | None = None
    ids: np.ndarray | None = None
    augment: tuple = ()
    scale: tuple | None = None

    def __post_init__(self):
        n = _check_inputs(self.inputs)
        ids = np.arange(n) if self.ids is None else self.ids
        checked = {
            "outcomes": check_outcomes(_array(self.outcomes), "outcomes", empty=True),
            "probabilities": _optional(self.probabilities, "probabilities", check_probabilities),
            "weights": _optional(self.weights, "weights", check_weights),
            "groups": None if self.groups is None else check_vector(self.groups, "groups"),
            "ids": check_vector(ids, "ids"),
        }
        for name, value in checked.items():
            if value is None:
                continue
            if len(value) != n:
                raise ValueError(f"{name} must have the {n} rows of inputs; got {len(value)}.")
            if name not in ("groups", "ids"):
                value = torch.as_tensor(value, dtype=torch.float32).to(_device(self.inputs))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "augment", tuple(self.augment))

    def __len__(self):
        return len(self.outcomes)

    @property
    def draws(self):
        """Uniform random numbers that the augmentation of one row takes."""
        return sum(step.draws for step in self.augment)

    def batch(self, rows, train=None):
        """Return the inputs of some rows as a network takes them.

        Parameters
        ----------
        rows : torch.Tensor of shape (k,)
            Row numbers, int64.
        train : torch.Tensor of shape (k, draws), optional
            Uniform random numbers in [0, 1) that decide the augmentation of each row; by default
            rows are as they are.

        Returns
        -------
        tuple of torch.Tensor
            What the network is called with, on the device of the outcomes: scaled inputs of shape
            (k, ...), and for bags a mask.
        """
        device = self.outcomes.device
        if isinstance(self.inputs, Bags):
            return tuple(part.to(device) for part in self.inputs.batch(rows))
        x = _take(self.inputs, rows).to(device)
        if train is not None:
            used = 0
            for step in self.augment:
                x = step(x, train[:, used : used + step.draws].to(device))
                used += step.draws
        if self.scale is not None:
            mean, deviation = self.scale
            x = (x.float() - mean.to(device)) / deviation.to(device)
        return (x.float(),)

    def order(self, batch_size, generator):
        """Return all row numbers in the random order of an epoch; see `Bags.order`."""
        order = torch.randperm(len(self), generator=generator)
        if isinstance(self.inputs, Bags):
            return self.inputs.order(order, batch_size, generator)
        return order

    def chunks(self, batch_size):
        """Cut all row numbers into parts that are predicted at a time; see `Bags.chunks`."""
        if isinstance(self.inputs, Bags):
            return self.inputs.chunks(batch_size)
        return torch.arange(len(self)).split(batch_size)

    def take(self, rows):
        """Return some rows as a data set of their own, in the order of `rows`."""
        rows = np.asarray(rows, dtype=np.int64)
        index = torch.as_tensor(rows, device=self.outcomes.device)
        cut = {
            name: getattr(self, name)[index if torch.is_tensor(getattr(self, name)) else rows]
            for name in ("outcomes", "probabilities", "groups", "weights", "ids")
            if getattr(self, name) is not None
        }
        if hasattr(self.inputs, "part"):  # rows on disk stay there
            inputs = self.inputs.part(rows)
        else:
            inputs = self.inputs[torch.as_tensor(rows) if torch.is_tensor(self.inputs) else rows]
        return replace(self, inputs=inputs, **cut)

    def to(self, device):
        """Return the same data with every tensor on `device`; inputs on disk stay there."""
        moved = {
            f.name: getattr(self, f.name).to(device)
            for f in fields(self)
            if torch.is_tensor(getattr(self, f.name))
        }
        return replace(self, **moved)


@dataclass(frozen=True, eq=False)
class Splits:
    """Training, validation and test data, with a name that identifies their source.

    Parameters
    ----------
    train, val, test : ProbabilityData
        The three sets.
    source : str
        What identifies the data: generator, parameters and seed, or file and checksum. It is
        part of the key under which finished work is stored.
    report : dict, optional
        Counts worth telling a person: images read, malformed names, corrupt files skipped.

    Raises
    ------
    ValueError
        If a part has no rows (training: fewer than two, which batch normalisation needs), or the
        inputs of the parts differ in shape.
    """

    train: ProbabilityData
    val: ProbabilityData
    test: ProbabilityData
    source: str
    report: dict | None = None

    def __post_init__(self):
        for name, least in (("train", 2), ("val", 1), ("test", 1)):
            rows = len(getattr(self, name))
            if rows < least:
                raise ValueError(f"{name} must have at least {least} rows; got {rows}.")
        shapes = {name: tuple(part.inputs.shape[1:]) for name, part in self.parts().items()}
        if len(set(shapes.values())) > 1:
            raise ValueError(f"inputs of train, val and test must have one shape; got {shapes}.")

    @property
    def known(self):
        """Whether the ground-truth probabilities are known in every part."""
        return all(part.probabilities is not None for part in self.parts().values())

    def parts(self):
        """Return the three parts by name."""
        return {"train": self.train, "val": self.val, "test": self.test}

    def to(self, device):
        """Return the same data on a device, uint8 images scaled as the training part says."""
        scale = self.train.scale or channel_scale(self.train.inputs)
        moved = {k: replace(part, scale=scale).to(device) for k, part in self.parts().items()}
        return replace(self, **moved)


def channel_scale(inputs):
    """Mean and standard deviation per channel of uint8 images; None for other inputs."""
    if "uint8" not in str(getattr(inputs, "dtype", "")):
        return None
    if not torch.is_tensor(inputs):  # evenly spaced rows of what may be larger than memory
        inputs = _take(inputs, np.unique(np.linspace(0, inputs.shape[0] - 1, SAMPLE).astype(int)))
    shape = (1, -1, *[1] * (inputs.ndim - 2))
    count = inputs.numel() // inputs.shape[1]
    sums, squares = 0, 0
    for block in inputs.split(64):  # integers: exact, whatever the order
        channels = block.transpose(0, 1).flatten(1).to(torch.int32)
        sums = sums + channels.sum(1)
        squares = squares + (channels * channels).sum(1)
    mean = sums.double() / count
    variance = squares.double() / count - mean**2
    return tuple(v.float().reshape(shape) for v in (mean, variance.clamp(min=1).sqrt()))


def _take(inputs, rows):
    """Rows of a tensor, or of anything else that is indexed like an array."""
    if torch.is_tensor(inputs):
        return inputs[torch.as_tensor(rows, device=inputs.device)]
    rows = rows.cpu().numpy() if torch.is_tensor(rows) else np.asarray(rows)
    unique, inverse = np.unique(rows, return_inverse=True)  # files on disk want increasing rows
    taken = torch.from_numpy(np.asarray(inputs[unique])[inverse])
    _release(inputs)
    return taken


def _release(inputs):
    """Let go of the pages of a mapped file that were read, lest an epoch end with all of it."""
    mapped = inputs
    while mapped is not None and not isinstance(mapped, mmap.mmap):
        mapped = getattr(mapped, "base", None)
    if mapped is not None and hasattr(
        mmap, "MADV_DONTNEED"
    ):  # not on Windows, which does so itself
        mapped.madvise(mmap.MADV_DONTNEED)


def _check_inputs(inputs):
    """Return the number of rows, or say what is wrong with the inputs."""
    if isinstance(inputs, Bags):
        return len(inputs)
    shape, kind = getattr(inputs, "shape", None), str(getattr(inputs, "dtype", None))
    if shape is None or len(shape) < 2:
        raise ValueError(
            "inputs must be a tensor or an array of shape (n, ...); got "
            f"{type(inputs).__name__ if shape is None else f'shape {tuple(shape)}'}."
        )
    if kind.removeprefix("torch.") not in ("uint8", "float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"inputs must be uint8 images or floating point; got {kind}.")
    images = "uint8" in kind
    if images and len(shape) == 4 and shape[1] > 4 and shape[3] in (1, 3, 4):
        raise ValueError(
            "inputs must be of shape (n, channels, height, width); got what looks like (n, height, "
            f"width, channels), {tuple(shape)}."
        )
    if images and len(shape) != 4:
        raise ValueError(
            f"inputs of uint8 must be of shape (n, channels, height, width); got {tuple(shape)}."
        )
    if torch.is_tensor(inputs) and not images and not torch.isfinite(inputs).all():
        row = int((~torch.isfinite(inputs)).flatten(1).any(1).nonzero()[0])
        raise ValueError(f"inputs must be finite; got NaN or infinity in row {row}.")
    return shape[0]


def _array(values):
    return values.detach().cpu().numpy() if torch.is_tensor(values) else values


def _optional(values, name, check):
    return None if values is None else check(_array(values), name, empty=True)


def _device(inputs):
    return inputs.device if torch.is_tensor(inputs) else "cpu"
