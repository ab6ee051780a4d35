"""A small network for radar maps, which a week of rain can teach."""

from __future__ import annotations

import torch
from torch import nn

from ..validation import check_integer

__all__ = ["RainNet"]


class RainNet(nn.Module):
    """Three convolutions over changes of rain, and the area's own statistics beside them.

    A ResNet-18 has to find out that the three maps are nearly equal and that only their differences
    say where things go; with some thousand windows of ten days it does not. Here the first layer is
    given the last map and the two changes, and the last layer sees mean and spread of each of them
    besides what the convolutions found: what is asked is about area means.

    Parameters
    ----------
    width : int, default=16
        Channels of the first convolution; the others have twice as many.
    in_channels : int, default=3
        Maps, first to last.
    num_classes : int, default=2
        Number of logits.
    """

    gain = 3.0
    """Changes within ten minutes are about a third of the spread of the maps."""

    def __init__(self, width=16, in_channels=3, num_classes=2):
        super().__init__()
        check_integer(width, "width")
        self.body = nn.Sequential(
            _convolution(in_channels, width, 1),
            _convolution(width, 2 * width, 2),
            _convolution(2 * width, 2 * width, 2),
        )
        self.head = nn.Linear(2 * width + 2 * in_channels, num_classes)

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        last, changes = x[:, -1:], x[:, 1:] - x[:, :-1]
        x = torch.cat([last, self.gain * changes.flip(1)], dim=1)
        found = self.body(x).mean(dim=(2, 3))
        return self.head(torch.cat([found, x.mean(dim=(2, 3)), x.std(dim=(2, 3))], dim=1))


def _convolution(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )
