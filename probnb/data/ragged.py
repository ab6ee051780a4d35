"""Inputs of unequal length."""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["Bags"]

CELLS = 1 << 26
"""Numbers of the padded bags that are predicted at a time: 256 MB."""

POOL = 20
"""Batches whose bags are sorted by length together: 1 would be a plain random order."""


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
                f"lengths must add up to the {len(values)} rows of values; they sum to {ends[-1]}."
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
            if not np.isfinite(out[i, :length]).all():
                raise ValueError(f"inputs must be finite; got NaN or infinity in bag {rows[i]}.")
        return torch.from_numpy(out), torch.arange(out.shape[1]) < torch.as_tensor(lengths)[:, None]

    def blocks(self, size):
        """Yield what identifies the bags, some instances at a time: lengths, and every number."""
        yield f"bags {self.shape}".encode() + self.lengths.tobytes()
        step = max(1, size // (4 * max(1, self.shape[1])))
        for bag, (first, length) in enumerate(zip(self.offsets, self.lengths)):
            for start in range(first, first + length, step):
                x = np.asarray(self.values[start : min(start + step, first + length)], np.float32)
                if not np.isfinite(x).all():
                    raise ValueError(f"inputs must be finite; got NaN or infinity in bag {bag}.")
                yield np.ascontiguousarray(x)

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
