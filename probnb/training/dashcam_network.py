"""A small network for one vehicle in frames of a dashboard camera."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from ..validation import check_integer, check_number

__all__ = ["DashNet"]


class DashNet(nn.Module):
    """Four strided convolutions and two layers that know where in the picture things are.

    The shape of the paper's VGG-16 at a size that a processor can train. What a ResNet averages
    away is half of the answer here: how low a box ends and how far it is from the middle of the
    frame are the vehicle's distance and its lane.

    Parameters
    ----------
    width : int, default=16
        Channels of the first convolution; the last has four times as many.
    dropout : float, default=0.5
        Share of the last feature map left out in training, as in VGG-16.
    in_channels : int, default=12
        Three RGB frames and three masks.
    num_classes : int, default=2
        Number of logits.
    """

    grid = (3, 7)
    """Rows and columns to which the last feature map is averaged."""

    def __init__(self, width=16, dropout=0.5, in_channels=12, num_classes=2):
        super().__init__()
        check_integer(width, "width")
        check_number(dropout, "dropout", 0, 1)
        widths = (in_channels, width, 2 * width, 2 * width, 4 * width)
        self.body = nn.Sequential(
            *(_convolution(inputs, outputs) for inputs, outputs in pairwise(widths)),
            nn.AdaptiveAvgPool2d(self.grid),
        )
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(widths[-1] * self.grid[0] * self.grid[1], 4 * width),
            nn.ReLU(),
            nn.Linear(4 * width, num_classes),
        )

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        return self.head(self.body(x))


def _convolution(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )
