"""The protocol between data and training: rows by number, what is known of each, and batches.

Every data module returns `Splits` of three `ProbabilityData`. Training asks them for one thing,
``batch(rows, train)``, and never looks at the inputs itself, so images on the device, arrays larger
than memory, tables and ragged bags all go through the same loop.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import torch

from ..validation import (
    check_integer,
    check_outcomes,
    check_probabilities,
    check_vector,
    check_weights,
)
from .inputs import as_array, blocks, channel_scale, check_finite, check_inputs, take_rows
from .ragged import Bags

__all__ = ["Bags", "ProbabilityData", "Splits", "one_hot"]


@dataclass(frozen=True, eq=False)
class ProbabilityData:
    """One set of examples.

    Parameters
    ----------
    inputs : torch.Tensor, array or Bags, of n rows
        Images as uint8 of shape (n, channels, height, width), or any floating-point inputs. A
        tensor moves to the device as a whole; anything else that is indexed like an array (a
        memory-mapped file, an HDF5 or Zarr data set) stays where it is and is read batch by batch.
    outcomes : array-like of shape (n,) or (n, K)
        Zeros and ones, or for K outcomes rows with a single one (see `one_hot`); kept as a float32
        tensor. Two columns are the usual case: the second is kept.
    probabilities : array-like of shape (n,) or (n, K), optional
        Ground-truth probabilities of outcome 1 (of each outcome), where they are known; kept as a
        float32 tensor.
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
        Mean and standard deviation per channel, by which a batch is scaled; of uint8 images
        `Splits.to` takes them from the training part, and without it no batch can be had.

    Raises
    ------
    ValueError
        If lengths differ, outcomes are not 0 or 1, probabilities not in [0, 1], weights negative,
        or inputs neither uint8 images nor finite floating point.
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
        n = check_inputs(self.inputs)
        ids = np.arange(n) if self.ids is None else self.ids
        checked = {
            "outcomes": _of_outcomes(self.outcomes, "outcomes", check_outcomes),
            "probabilities": _of_outcomes(self.probabilities, "probabilities", check_probabilities),
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
    def classes(self):
        """Number of outcomes, K."""
        return 2 if self.outcomes.ndim == 1 else self.outcomes.shape[1]

    @cached_property
    def digest(self):
        """Checksum of everything that is known of the rows: inputs, outcomes and the others.

        Inputs on disk are read once, in blocks; they are the same as those in memory.
        """
        digest = hashlib.sha256()
        for block in blocks(self.inputs):
            digest.update(block)
        for name in ("outcomes", "probabilities", "weights", "groups", "ids"):
            value = getattr(self, name)
            digest.update(f"\0{name}\0".encode())
            if value is not None:
                digest.update(_bytes(as_array(value)))
        return digest.hexdigest()

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
        x = take_rows(self.inputs, rows).to(device)
        if x.is_floating_point():
            if not torch.is_tensor(self.inputs):  # what was not looked at as a whole
                check_finite(x, rows)
        elif self.scale is None:
            raise ValueError(
                "inputs of uint8 must have a scale before they are a batch; got None. Splits.to "
                "takes it from the training part."
            )
        if train is not None:
            used = 0
            for step in self.augment:
                x = step(x, train[:, used : used + step.draws].to(device))
                used += step.draws
        x = x.float()
        if self.scale is not None:
            mean, deviation = self.scale
            x = (x - mean.to(device)) / deviation.to(device)
        return (x,)

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
        rows = np.ascontiguousarray(rows, dtype=np.int64)
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
        What the data are, for a person: generator, parameters and seed, or file and checksum.
        Finished work is found by `digest`, which is taken of the data themselves.
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
        counts = {name: part.classes for name, part in self.parts().items()}
        if len(set(counts.values())) > 1:
            raise ValueError(f"train, val and test must have one number of outcomes; got {counts}.")

    @cached_property
    def digest(self):
        """Checksum of all parts and of the scale of their channels, and what rows are called."""
        parts = [part.digest for part in self.parts().values()]
        scale = [as_array(value).tobytes().hex() for value in self.scale or ()]
        return hashlib.sha256("\n".join([*parts, *scale]).encode()).hexdigest()

    @property
    def scale(self):
        """Mean and standard deviation per channel of uint8 images, as the training part says."""
        return self.train.scale or channel_scale(self.train.inputs)

    @property
    def known(self):
        """Whether the ground-truth probabilities are known in every part."""
        return all(part.probabilities is not None for part in self.parts().values())

    def parts(self):
        """Return the three parts by name."""
        return {"train": self.train, "val": self.val, "test": self.test}

    def to(self, device):
        """Return the same data on a device, uint8 images scaled as the training part says."""
        scale = self.scale
        moved = {k: replace(part, scale=scale).to(device) for k, part in self.parts().items()}
        return replace(self, **moved)


def _bytes(values):
    """A vector as bytes: numbers as they are, names as text."""
    if values.dtype.kind in "biuf":
        return (
            f"{values.dtype.kind}{values.shape}".encode() + np.ascontiguousarray(values).tobytes()
        )
    return "\0".join(f"{type(value).__name__} {value}" for value in values.tolist()).encode()


def one_hot(y, classes):
    """Return outcomes 0 to K - 1 as float32 rows with a single one, of shape (n, K).

    Examples
    --------
    >>> one_hot([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    y = np.asarray(as_array(y))
    wrong = ~np.isin(y, np.arange(check_integer(classes, "classes", minimum=2)))
    if y.ndim != 1 or wrong.any():
        seen = f"shape {y.shape}" if y.ndim != 1 else f"{y[wrong][0]!s} in row {wrong.argmax()}"
        raise ValueError(f"y must be a vector of outcomes 0 to {classes - 1}; got {seen}.")
    return torch.nn.functional.one_hot(torch.as_tensor(y.astype(np.int64)), classes).float()


def _of_outcomes(values, name, check):
    """Check what is said of the outcomes of each row: of outcome 1, or of each of K."""
    if values is None:
        return None
    values = as_array(values)
    if getattr(values, "ndim", 1) != 2 or values.shape[1] < 2:
        return check(values, name, empty=True)
    columns = np.stack([check(column, name, empty=True) for column in values.T], axis=1)
    wrong = np.abs(columns.sum(axis=1) - 1) > 1e-4
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{name} must sum to 1 in each row; got {columns[row].tolist()}, row {row}."
        )
    return columns[:, 1] if columns.shape[1] == 2 else columns


def _optional(values, name, check):
    return None if values is None else check(as_array(values), name, empty=True)


def _device(inputs):
    return inputs.device if torch.is_tensor(inputs) else "cpu"
