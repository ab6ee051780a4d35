"""A small convolutional network, for tables with many trainings on small pictures."""

from __future__ import annotations

from torch import nn

__all__ = ["SmallCNN"]


class SmallCNN(nn.Module):
    """Three convolutions and two linear layers: an eighth of the cost of the narrow ResNet-18.

    Parameters
    ----------
    in_channels : int
        Channels of the input.
    width : int, default=16
        Channels of the first convolution; the others have twice and four times as many.
    """

    def __init__(self, in_channels, width=16):
        super().__init__()
        layers = []
        for channels in (width, 2 * width, 4 * width):
            layers += [
                nn.Conv2d(in_channels, channels, 3, padding=1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
            ]
            in_channels = channels
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.head = nn.Sequential(
            nn.Linear(9 * in_channels, 8 * width), nn.ReLU(inplace=True), nn.Linear(8 * width, 2)
        )

    def forward(self, x):
        """Return the logits, of shape (n, 2)."""
        return self.head(self.features(x))
