"""The networks of the paper, each a function of a few integers.

Every network maps a batch of inputs to two logits (outcome 0, outcome 1), as in the paper;
the predicted probability is the softmax's second column.
"""

from __future__ import annotations

from torch import nn
from torchvision.models.resnet import BasicBlock

__all__ = ["ResNet18"]


class ResNet18(nn.Module):
    """ResNet-18 of any width, with a stem for large or for small images.

    At ``width=64, stem="large"`` the parameters and the function are those of
    `torchvision.models.resnet18`, which has the width wired in, so its weights load here.

    Parameters
    ----------
    width : int, default=64
        Channels of the first stage; the last has eight times as many.
    stem : {"large", "small"}, default="large"
        ``"large"``: 7x7 convolution with stride 2 and max-pooling, for images of about 200 pixels.
        ``"small"``: one 3x3 convolution with stride 2 and no pooling, for 32 to 64 pixels.
    in_channels : int, default=3
        Channels of the input: 3 for RGB or for three radar maps.
    num_classes : int, default=2
        Number of logits.
    """

    def __init__(self, width=64, stem="large", in_channels=3, num_classes=2):
        super().__init__()
        if width < 1:
            raise ValueError(f"width must be a positive integer, got {width!r}")
        if stem == "large":
            self.conv1 = nn.Conv2d(in_channels, width, 7, stride=2, padding=3, bias=False)
            self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        elif stem == "small":
            self.conv1 = nn.Conv2d(in_channels, width, 3, stride=2, padding=1, bias=False)
            self.maxpool = nn.Identity()
        else:
            raise ValueError(f"stem must be 'large' or 'small', got {stem!r}")
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = _stage(width, width, stride=1)
        self.layer2 = _stage(width, 2 * width, stride=2)
        self.layer3 = _stage(2 * width, 4 * width, stride=2)
        self.layer4 = _stage(4 * width, 8 * width, stride=2)
        self.fc = nn.Linear(8 * width, num_classes)
        for module in self.modules():  # He initialisation, as torchvision's
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


def _stage(inplanes, planes, stride):
    """Two residual blocks; the first one changes the width and the resolution."""
    downsample = None
    if stride != 1 or inplanes != planes:
        downsample = nn.Sequential(
            nn.Conv2d(inplanes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes)
        )
    return nn.Sequential(
        BasicBlock(inplanes, planes, stride, downsample), BasicBlock(planes, planes)
    )
