"""Inputs of any kind, in memory or on disk: what they may be, and how their rows are read."""

from __future__ import annotations

import mmap

import numpy as np
import torch

from .ragged import Bags

__all__ = ["blocks", "channel_scale", "check_finite", "check_inputs", "take_rows"]

SAMPLE = 1024
"""Rows of an array on disk from which the scale of its channels is estimated."""

BLOCK = 1 << 26
"""Bytes of inputs that are looked at at a time."""


def channel_scale(inputs):
    """Mean and standard deviation per channel of uint8 images; None for other inputs."""
    if "uint8" not in str(getattr(inputs, "dtype", "")):
        return None
    if not torch.is_tensor(inputs):  # evenly spaced rows of what may be larger than memory
        inputs = take_rows(
            inputs, np.unique(np.linspace(0, inputs.shape[0] - 1, SAMPLE).astype(int))
        )
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


def check_inputs(inputs):
    """Return the number of rows, or say what is wrong with the inputs."""
    if isinstance(inputs, Bags):
        if _in_memory(inputs.values):
            check_finite(inputs.values)
        return len(inputs)
    shape, kind = getattr(inputs, "shape", None), str(getattr(inputs, "dtype", None))
    if shape is None or len(shape) < 2:
        raise ValueError(
            "inputs must be a tensor or an array of shape (n, ...); got "
            f"{type(inputs).__name__ if shape is None else f'shape {tuple(shape)}'}."
        )
    if kind.removeprefix("torch.") not in ("uint8", "float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"inputs must be uint8 images or floating point; got {kind}.")
    if len(shape) == 4 and min(shape[1], shape[2]) > 4 and shape[3] in (1, 3, 4):
        raise ValueError(
            "inputs must be of shape (n, channels, height, width); got what looks like (n, height, "
            f"width, channels), {tuple(shape)}."
        )
    if "uint8" in kind:
        if len(shape) != 4:
            raise ValueError(
                f"inputs of uint8 must be of shape (n, channels, height, width); got {(*shape,)}."
            )
    elif _in_memory(inputs):
        check_finite(inputs)
    return shape[0]


def _in_memory(inputs):
    """Whether all of it can be looked at at once; what lies on disk is looked at as it is read."""
    return torch.is_tensor(inputs) or type(inputs) is np.ndarray


def check_finite(x, rows=None):
    """Refuse NaN and infinity, naming the row."""
    finite = torch.isfinite(x) if torch.is_tensor(x) else np.isfinite(x)
    if not finite.all():
        row = int((~as_array(finite)).reshape(len(x), -1).any(axis=1).argmax())
        row = row if rows is None else int(rows[row])
        raise ValueError(f"inputs must be finite; got NaN or infinity in row {row}.")


def blocks(inputs):
    """What identifies the inputs, a block at a time, wherever they are."""
    if isinstance(inputs, Bags):
        yield from inputs.blocks(BLOCK)
        return
    yield f"{str(inputs.dtype).removeprefix('torch.')}{tuple(inputs.shape)}".encode()
    row = int(np.prod(inputs.shape[1:])) * 4
    for rows in torch.arange(inputs.shape[0]).split(max(1, BLOCK // max(row, 1))):
        x = take_rows(inputs, rows).cpu().contiguous()
        if x.is_floating_point():
            check_finite(x, rows)
        yield x.reshape(-1).view(torch.uint8).numpy()


def as_array(values):
    return values.detach().cpu().numpy() if torch.is_tensor(values) else values
