"""Inputs of any kind, in memory or on disk, of one length or not: how their rows are read."""

import numpy as np
import torch

from ..validation import refuse_masked

CELLS = 1 << 26
"""Numbers of the padded bags that are predicted at a time: 256 MB."""

POOL = 20
"""Batches whose bags are sorted by length together: 1 would be a plain random order."""

SAMPLE = 1024
"""Rows of an array on disk from which the scale of its channels is estimated."""

BLOCK = 1 << 26
"""Bytes of inputs that are looked at at a time."""


class Bags:
    """Inputs of unequal length, each a bag of instances: the tiles of a slide.

    Parameters
    ----------
    values : array of shape (total, features)
        The instances of all bags, one bag after the other; floating point. May be on disk.
    lengths : array-like of shape (n,)
        Instances in each bag, at least 1.
    offsets : array-like of shape (n,), optional
        First instance of each bag; by default bags follow each other without gaps.
    """

    def __init__(self, values, lengths, offsets=None):
        self.values = values.cpu().numpy() if torch.is_tensor(values) else values
        self.lengths = np.asarray(lengths, dtype=np.int64)
        if len(self.lengths) and self.lengths.min() < 1:
            empty = int(np.argmin(self.lengths))
            raise ValueError(f"lengths must be at least 1; bag {empty} has {self.lengths[empty]}.")
        ends = np.cumsum(self.lengths)
        self.offsets = ends - self.lengths if offsets is None else np.asarray(offsets)
        if offsets is None and len(ends) and ends[-1] != len(values):
            raise ValueError(
                f"lengths must add up to {len(values)}, the rows of values; got {ends[-1]}."
            )

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, rows):
        """Return some bags; the values are shared, not copied."""
        return Bags(self.values, self.lengths[rows], self.offsets[rows])

    @property
    def shape(self):
        """Number of bags, and of features of an instance."""
        return (len(self), self.values.shape[1])

    def batch(self, rows):
        """Return bags padded to the longest, (k, longest, features), and a mask of what is real."""
        rows = np.asarray(rows)
        lengths, offsets = self.lengths[rows], self.offsets[rows]
        out = np.zeros((len(rows), int(lengths.max()), self.values.shape[1]), np.float32)
        for i, (first, length) in enumerate(zip(offsets, lengths)):
            out[i, :length] = self.values[first : first + length]
        check_finite(out, rows, "bag")
        return torch.from_numpy(out), torch.arange(out.shape[1]) < torch.as_tensor(lengths)[:, None]

    def blocks(self):
        """Yield what identifies the bags, one at a time: lengths, and every number."""
        yield f"bags {self.shape}".encode() + self.lengths.tobytes()
        for bag in range(len(self)):
            yield self.batch([bag])[0].numpy()

    def order(self, order, batch_size, generator):
        """Change a random order so that batches cut from it hold bags of similar length.

        In random company bags are mostly padding where lengths span orders of magnitude. Pools of
        `POOL` batches are sorted by length and cut, and the batches shuffled: company still
        changes from epoch to epoch.

        Parameters
        ----------
        order : torch.Tensor of shape (n,)
            Row numbers in random order.
        batch_size : int
            Bags in a batch.
        generator : torch.Generator
            Source of the order of batches.

        Returns
        -------
        torch.Tensor of shape (n,)
            The same row numbers; a last batch that is not full stays last.
        """
        lengths, batches = torch.as_tensor(self.lengths), []
        for pool in order.split(POOL * batch_size):
            batches += pool[lengths[pool].argsort(stable=True)].split(batch_size)
        full = len(order) // batch_size
        shuffled = [batches[i] for i in torch.randperm(full, generator=generator)]
        return torch.cat([*shuffled, *batches[full:]])

    def chunks(self, batch_size):
        """Cut all row numbers, shortest bag first, so that no padded part is larger than memory.

        Parameters
        ----------
        batch_size : int
            Bags at a time at most.

        Returns
        -------
        list of torch.Tensor
            Parts of one bag, or of at most `CELLS` numbers when padded.
        """
        order = np.argsort(self.lengths, kind="stable")
        parts, first = [], 0
        for i, row in enumerate(order):
            padded = (i - first + 1) * int(self.lengths[row]) * self.shape[1]
            if i > first and (padded > CELLS or i - first == batch_size):
                parts.append(torch.as_tensor(order[first:i]))
                first = i
        return [*parts, torch.as_tensor(order[first:])] if len(order) else parts


def channel_scale(inputs):
    """Mean and standard deviation per channel of uint8 images; None for other inputs."""
    if "uint8" not in str(getattr(inputs, "dtype", "")):
        return None
    if not torch.is_tensor(inputs):  # evenly spaced rows of what may be larger than memory
        rows = np.linspace(0, inputs.shape[0] - 1, SAMPLE).astype(int)
        inputs = take_rows(inputs, np.unique(rows))
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


def take_rows(inputs, rows):
    """Rows of a tensor, or of anything else that is indexed like an array."""
    if torch.is_tensor(inputs):
        return inputs[torch.as_tensor(rows, device=inputs.device)]
    rows = rows.cpu().numpy() if torch.is_tensor(rows) else np.asarray(rows)
    unique, inverse = np.unique(rows, return_inverse=True)  # files on disk want increasing rows
    return torch.from_numpy(np.asarray(inputs[unique])[inverse])


def check_inputs(inputs):
    """Return the number of rows, or say what is wrong with the inputs."""
    if isinstance(inputs, Bags):
        if _in_memory(inputs.values):
            check_finite(inputs.values)
        return len(inputs)
    refuse_masked(inputs, "inputs")
    table = hasattr(inputs, "toarray") or hasattr(inputs, "columns")  # sparse, or a data frame
    shape = None if table else getattr(inputs, "shape", None)
    kind = str(getattr(inputs, "dtype", None)).removeprefix("torch.")
    if shape is None or len(shape) < 2:
        seen = type(inputs).__name__ if shape is None else f"shape {tuple(shape)}"
        raise ValueError(f"inputs must be a tensor or an array of shape (n, ...); got {seen}.")
    if kind not in ("uint8", "float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"inputs must be uint8 images or floating point; got {kind}.")
    last = len(shape) == 4 and min(shape[1], shape[2]) > 4 and shape[3] in (1, 3, 4)
    if last or (kind == "uint8" and len(shape) != 4):
        seen = f"{tuple(shape)}{', which looks like (n, height, width, channels)' * last}"
        raise ValueError(f"inputs of {kind} must be (n, channels, height, width); got {seen}.")
    if kind != "uint8" and _in_memory(inputs):
        check_finite(inputs)
    return shape[0]


def _in_memory(inputs):
    """Whether all of it can be looked at at once; what lies on disk is looked at as it is read."""
    return torch.is_tensor(inputs) or type(inputs) is np.ndarray


def check_finite(x, rows=None, unit="row"):
    """Refuse NaN and infinity, naming the row (or bag)."""
    finite = torch.isfinite(x) if torch.is_tensor(x) else np.isfinite(x)
    if not finite.all():
        row = int((~as_array(finite)).reshape(len(x), -1).any(axis=1).argmax())
        row = row if rows is None else int(rows[row])
        raise ValueError(f"inputs must be finite; got NaN or infinity in {unit} {row}.")


def blocks(inputs):
    """What identifies the inputs, a block at a time, wherever they are."""
    if isinstance(inputs, Bags):
        yield from inputs.blocks()
        return
    yield f"{str(inputs.dtype).removeprefix('torch.')}{tuple(inputs.shape)}".encode()
    row = int(np.prod(inputs.shape[1:])) * 4
    for rows in torch.arange(inputs.shape[0]).split(max(1, BLOCK // max(row, 1))):
        x = take_rows(inputs, rows).cpu().contiguous()
        if x.is_floating_point():
            check_finite(x, rows)
        yield x.reshape(-1).view(torch.uint8).numpy()


def as_array(values):
    """Return a tensor of any device as an array; anything else as it is."""
    return values.detach().cpu().numpy() if torch.is_tensor(values) else values
