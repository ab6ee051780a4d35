"""A small network for one vehicle in frames of a dashboard camera."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from ..validation import check_integer, check_number

__all__ = ["DashNet"]


class DashNet(nn.Module):
    """Three strided convolutions, looked at inside the box, and the box itself beside them.

    From some thousand samples a network that averages over the picture does not find out that the
    masks say where to look, and that their sizes and changes are distance, lane and closing speed.
    Here the last layers see what the convolutions found within the latest box (lamps, indicators)
    and place and size of the boxes with their changes. What lies outside the box reaches them no
    other way: two hundred scenes can be told apart, and learnt by heart, by their skies.

    Parameters
    ----------
    width : int, default=16
        Channels of the first convolution; the last has four times as many.
    dropout : float, default=0.5
        Share of what the convolutions found that is left out in training.
    in_channels : int, default=12
        Frames of three colours, then as many masks, the latest first.
    num_classes : int, default=2
        Number of logits.
    """

    gain = 10.0
    """Changes are per frame of 0.1 s; times ten they are per second."""

    def __init__(self, width=16, dropout=0.5, in_channels=12, num_classes=2):
        super().__init__()
        check_integer(width, "width")
        check_number(dropout, "dropout", 0, 1)
        self.frames = in_channels // 4
        widths = (in_channels, width, 2 * width, 4 * width)
        self.body = nn.Sequential(*(_convolution(a, b) for a, b in pairwise(widths)))
        places = 5 * self.frames + 1
        self.norm = nn.BatchNorm1d(places)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Sequential(
            nn.Linear(widths[-1] + places, 4 * width),
            nn.ReLU(),
            nn.Linear(4 * width, num_classes),
        )

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        masks = _coverage(x[:, 3 * self.frames :])
        found = self.body(x)
        within = nn.functional.adaptive_avg_pool2d(masks[:, :1], found.shape[2:])
        inside = (found * within).sum((2, 3)) / (within.sum((2, 3)) + 1e-3)
        boxes = self.norm(self._places(masks))
        return self.head(torch.cat([self.dropout(inside), boxes], dim=1))

    def _places(self, masks):
        """Size and place of each box: the latest, then the changes, and how far off the middle."""
        across, wide = _extent(masks.amax(2))
        down, high = _extent(masks.amax(3))
        there = (masks.amax((2, 3)) > 0).float()
        now = torch.stack([across, down, wide, high, there], dim=1)
        both = (there[:, :-1] * there[:, 1:])[:, None]
        changes = self.gain * both * (now[:, :, :-1] - now[:, :, 1:])
        return torch.cat([now[:, :, 0], across[:, :1].abs(), changes.flatten(1)], dim=1)


def _coverage(masks):
    """Masks between 0 and 1, however they were scaled; 0 where there is no box."""
    low, high = masks.amin((2, 3), keepdim=True), masks.amax((2, 3), keepdim=True)
    return (masks - low) / (high - low).clamp(min=1e-6)


def _extent(line):
    """Middle, from -1 to 1, and logarithm of the length of what is covered of each line."""
    place = torch.linspace(-1, 1, line.shape[-1], device=line.device, dtype=line.dtype)
    length = line.sum(-1)
    middle = (line * place).sum(-1) / length.clamp(min=1e-3)
    return middle, torch.log(length + 0.1)


def _convolution(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )
