"""Histograms of oriented gradients: a picture as a few hundred numbers that a small network takes.

A table with three seeds of fifteen rows is some hundred trainings. On pixels that is a matter of
days on two cores; on these features (Dalal and Triggs, 2005) it is one of minutes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ...data.base import Splits
from ...validation import check_integer

__all__ = ["on_gradients", "oriented_gradients"]

BLOCK = 2048
"""Images at a time."""


def oriented_gradients(images, cells=6, bins=9):
    """Describe images by how strong their edges are, in each direction, in each part.

    Parameters
    ----------
    images : torch.Tensor of shape (n, channels, side, side)
        uint8.
    cells : int, default=6
        Parts along each side; it must divide the side.
    bins : int, default=9
        Directions, over half a turn.

    Returns
    -------
    torch.Tensor of shape (n, cells * cells * (bins + channels))
        For each part the gradient magnitudes by direction, relative to those of the parts around
        it, and the mean of each channel in [0, 1]; float32.

    Raises
    ------
    ValueError
        If `cells` does not divide the side.

    Notes
    -----
    A gradient counts in the two directions nearest to its own. Magnitudes are those of the mean of
    the channels; the norm is over 3 x 3 parts.
    """
    side = images.shape[-1]
    if side % check_integer(cells, "cells") or images.shape[-2] != side:
        raise ValueError(
            f"cells must divide the side of square images; got {cells} of {tuple(images.shape)}."
        )
    return torch.cat([_describe(part, cells, bins) for part in images.split(BLOCK)])


def on_gradients(splits, cells=6, bins=9):
    """Put `oriented_gradients` in place of the images, each scaled as in the training part.

    Parameters
    ----------
    splits : Splits
        Images.
    cells, bins : int
        As `oriented_gradients` takes them.

    Returns
    -------
    Splits
        The same outcomes; nothing is mirrored any more.
    """
    parts = {k: oriented_gradients(v.inputs, cells, bins) for k, v in splits.parts().items()}
    mean, deviation = parts["train"].mean(0), parts["train"].std(0).clamp(min=1e-3)
    data = {
        name: replace(part, inputs=(parts[name] - mean) / deviation, augment=())
        for name, part in splits.parts().items()
    }
    return Splits(**data, source=f"{splits.source} gradients={cells},{bins}", report=splits.report)


def _describe(images, cells, bins):
    x = images.float() / 255
    grey = x.mean(1)
    padded = torch.nn.functional.pad(grey[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    place = torch.atan2(down, across) / np.pi * bins % bins  # half a turn is all bins
    lower = place.floor()
    share, size = place - lower, torch.hypot(across, down)
    n, side, _ = grey.shape
    maps = torch.zeros(n, bins, side, side)
    for index, weight in ((lower, 1 - share), (lower + 1, share)):
        maps.scatter_add_(1, (index.long() % bins)[:, None], (size * weight)[:, None])
    pool = torch.nn.functional.avg_pool2d
    histograms, means = pool(maps, side // cells), pool(x, side // cells)
    energy = (histograms**2).sum(1, keepdim=True)
    around = pool(energy, 3, stride=1, padding=1, count_include_pad=False)
    return torch.cat([histograms / (around + 1e-4).sqrt(), means], 1).flatten(1)
