"""The protocol between data and training: rows by number, what is known of each, and batches.

Every data module returns `Splits` of three `ProbabilityData`. Training asks them for one thing,
``batch(rows, train)``, and never looks at the inputs itself, so images on the device, arrays larger
than memory, tables and ragged bags all go through the same loop.

An augmentation is a frozen dataclass that says how many uniform random numbers it takes for a row
(``draws``) and is called with a batch and those numbers. It belongs to the data: a mirrored face
has the same age; a mirrored rain field moves the mirrored way, which is right where all its maps
are mirrored alike and where wind from the east is as good as wind from the west.
"""

import hashlib
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial

import numpy as np
import torch

from ..metrics.registry import check_distributions
from ..validation import check_outcomes, check_probabilities, check_vector, check_weights
from .inputs import Bags, as_array, blocks, channel_scale, check_finite, check_inputs, take_rows

__all__ = ["Bags", "Brightness", "Mirror", "ProbabilityData", "Shift", "Splits", "one_hot", "split"]


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
        Applied in turn to training batches, such as `Mirror`. None by default: whether a mirrored
        image has the same outcome is known to the data, not to the loop.
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
        if getattr(self.inputs, "requires_grad", False):  # training takes none through them
            object.__setattr__(self, "inputs", self.inputs.detach())
        object.__setattr__(self, "ids", np.arange(n) if self.ids is None else self.ids)
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if value is None:
                continue
            value = check(as_array(value), name)
            if len(value) != n:
                raise ValueError(f"{name} must have the {n} rows of inputs; got {len(value)}.")
            if name not in ("groups", "ids"):
                device = self.inputs.device if torch.is_tensor(self.inputs) else "cpu"
                value = torch.as_tensor(value, dtype=torch.float32).to(device)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "augment", tuple(self.augment))

    def __len__(self):
        return len(self.outcomes)

    @cached_property
    def _array(self):
        """The inputs as an array in the same memory."""
        return self.inputs.cpu().numpy()

    def __getstate__(self):
        """Give joblib one array for all processes, which it writes once and maps in each."""
        state = vars(self).copy()
        if torch.is_tensor(self.inputs) and self.inputs.dtype != torch.bfloat16:
            state |= {"inputs": None, "_array": self._array}
        return state

    def __setstate__(self, state):
        if (array := state.pop("_array", None)) is not None:
            state["inputs"] = torch.from_numpy(array)
        vars(self).update(state)

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
        for name in _CHECKS:
            value = self.numbers(name)
            digest.update(f"\0{name}\0".encode())
            if value is not None:
                digest.update(_bytes(value))
        return digest.hexdigest()

    def numbers(self, name, dtype=None):
        """Return what is known of the rows, such as ``"weights"``, as an array, or None."""
        value = getattr(self, name)
        return None if value is None else np.asarray(as_array(value), dtype)

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
                "inputs of uint8 must have the scale that Splits.to gives them; got None."
            )
        if train is not None:
            draws = train.to(device).split([step.draws for step in self.augment], dim=1)
            for step, own in zip(self.augment, draws):
                x = step(x, own)
        x = x.float()
        if self.scale is not None:
            mean, deviation = self.scale
            x = (x - mean.to(device)) / deviation.to(device)  # where they are, after `to`
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
        """Return some rows, by number or by a mask, as a data set of their own, in that order."""
        rows = np.arange(len(self))[rows]
        index = torch.as_tensor(rows, device=self.outcomes.device)
        known = {name: getattr(self, name) for name in _CHECKS if getattr(self, name) is not None}
        cut = {name: x[index if torch.is_tensor(x) else rows] for name, x in known.items()}
        inputs = self.inputs[torch.as_tensor(rows) if torch.is_tensor(self.inputs) else rows]
        return replace(self, inputs=inputs, **cut)

    def to(self, device):
        """Return the same data with every tensor on `device`; inputs on disk stay there."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        moved = {name: value.to(device) for name, value in known.items() if torch.is_tensor(value)}
        if self.scale is not None:
            moved["scale"] = tuple(value.to(device) for value in self.scale)
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
        shapes = {k: (*part.inputs.shape[1:], part.classes) for k, part in self.parts().items()}
        if len(set(shapes.values())) > 1:
            raise ValueError(
                f"train, val and test must have inputs and outcomes of one shape; got {shapes}."
            )

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


def split(data, parts, source, augment=(), report=None):
    """Cut one data set into three parts by their row numbers; `augment` is for training alone."""
    taken = {name: data.take(rows) for name, rows in parts.items()}
    taken["train"] = replace(taken["train"], augment=augment)
    return Splits(**taken, source=source, report=report or {"images": len(data)})


def _bytes(values):
    """A vector as bytes: numbers as they are, names as text."""
    if values.dtype.kind in "biuf":
        return f"{values.dtype.kind}{values.shape}".encode() + values.tobytes()
    return "\0".join(f"{type(value).__name__} {value}" for value in values.tolist()).encode()


def one_hot(y, classes):
    """Return outcomes 0 to K - 1 as float32 rows with a single one, of shape (n, K).

    Examples
    --------
    >>> one_hot([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    y = torch.as_tensor(y)
    wrong = ~torch.isin(y, torch.arange(classes, device=y.device))
    if y.ndim != 1 or wrong.any():
        raise ValueError(f"y must be a vector of outcomes 0 to {classes - 1}; got {y[wrong]}.")
    return torch.nn.functional.one_hot(y.long(), classes).float()


def _of_outcomes(check, values, name):
    """Check what is said of the outcomes of each row: of outcome 1, or of each of K."""
    if getattr(values, "ndim", 1) != 2 or values.shape[1] < 2:
        return check(values, name, empty=True)
    columns = np.stack([check(column, name, empty=True) for column in values.T], axis=1)
    columns = check_distributions(columns, name, least=0)
    return columns[:, 1] if columns.shape[1] == 2 else columns


_CHECKS = {
    "outcomes": partial(_of_outcomes, check_outcomes),
    "probabilities": partial(_of_outcomes, check_probabilities),
    "weights": partial(check_weights, empty=True),
    "groups": check_vector,
    "ids": check_vector,
}


@dataclass(frozen=True)
class Mirror:
    """Mirror an image left to right with probability one half."""

    draws = 1

    def __call__(self, x, u):
        """Return the batch `x` (n, c, h, w), changed where the numbers `u` (n, 1) say so."""
        return torch.where((u[:, 0] < 0.5)[:, None, None, None], x.flip(-1), x)


@dataclass(frozen=True)
class Shift:
    """Move an image by up to some pixels in each direction; the edge is repeated.

    Parameters
    ----------
    pixels : int, default=3
        Largest shift.
    """

    pixels: int = 3
    draws = 2

    def __call__(self, x, u):
        """Return the batch `x` (n, c, h, w), moved as the numbers `u` (n, 2) say."""
        height, width = x.shape[-2:]
        by = (u * (2 * self.pixels + 1)).long() - self.pixels
        rows = (torch.arange(height, device=x.device) + by[:, :1]).clamp(0, height - 1)
        columns = (torch.arange(width, device=x.device) + by[:, 1:]).clamp(0, width - 1)
        n = torch.arange(len(x), device=x.device)[:, None, None]
        return x.permute(0, 2, 3, 1)[n, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Brightness:
    """Scale brightness and contrast of a uint8 image by random factors near 1.

    Parameters
    ----------
    by : float, default=0.2
        Factors are uniform in [1 - by, 1 + by].
    """

    by: float = 0.2
    draws = 2

    def __call__(self, x, u):
        """Return the batch `x` (n, c, h, w), scaled as the numbers `u` (n, 2) say."""
        bright, contrast = (1 + self.by * (2 * u - 1)).T[:, :, None, None, None]
        y = x.float() * bright
        mean = y.mean(dim=(1, 2, 3), keepdim=True)
        y = mean + contrast * (y - mean)
        return y.round().clamp(0, 255).to(x.dtype) if x.dtype == torch.uint8 else y
