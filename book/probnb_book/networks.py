"""Networks of single tasks: slides, rain, dashcam videos.

Each has a ``name``, by which its trainings are stored.
"""

from itertools import pairwise

import torch
import torchvision
from torch import nn
from torchvision.ops import Conv2dNormActivation

from probnb.validation import check_integer, check_number


class AttentionMIL(nn.Module):
    r"""Gated attention over the instances of a bag.

    :math:`z = \sum_k a_k h_k`, :math:`a_k \propto \exp(w^\top(\tanh(V h_k) \odot \sigma(U h_k)))`:
    Ilse, Tomczak and Welling (2018). The paper's network for slides has 1,536 features and 512
    hidden units.

    Parameters
    ----------
    features : int, default=1536
        Features of an instance.
    hidden : int, default=512
        Units of the embedding.
    attention : int, default=256
        Units of the attention.
    dropout : float, default=0
        Share of the embedding's units left out in training.
    num_classes : int, default=2
        Number of logits.
    """

    name = "attention_mil"

    def __init__(self, features=1536, hidden=512, attention=256, dropout=0.0, num_classes=2):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(dropout))
        self.value, self.gate = nn.Linear(hidden, attention), nn.Linear(hidden, attention)
        self.score = nn.Linear(attention, 1)
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x, mask):
        """Return logits (n, num_classes) of bags `x` (n, k, features); `mask` says what is real."""
        h = self.embed(x)
        score = self.score(torch.tanh(self.value(h)) * torch.sigmoid(self.gate(h)))[..., 0]
        weight = score.float().masked_fill(~mask, -torch.inf).softmax(dim=1)
        return self.head(torch.einsum("nk,nkh->nh", weight.to(h.dtype), h))


class VGG16BN(nn.Module):
    """VGG-16 with batch normalisation, torchvision's, for any number of channels.

    Parameters
    ----------
    in_channels : int, default=12
        Channels of the input: three RGB frames and three masks.
    num_classes : int, default=2
        Number of logits.
    """

    name = "vgg16_bn"

    def __init__(self, in_channels=12, num_classes=2):
        super().__init__()
        self.vgg = torchvision.models.vgg16_bn(num_classes=num_classes)
        self.vgg.features[0] = nn.Conv2d(in_channels, 64, 3, padding=1)
        nn.init.kaiming_normal_(self.vgg.features[0].weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        return self.vgg(x)


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

    name = "rain"
    gain = 3.0
    """Changes within ten minutes are about a third of the spread of the maps."""

    def __init__(self, width=16, in_channels=3, num_classes=2):
        super().__init__()
        check_integer(width, "width")
        self.body = nn.Sequential(
            Conv2dNormActivation(in_channels, width),
            Conv2dNormActivation(width, 2 * width, stride=2),
            Conv2dNormActivation(2 * width, 2 * width, stride=2),
        )
        self.head = nn.Linear(2 * width + 2 * in_channels, num_classes)

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        last, changes = x[:, -1:], x[:, 1:] - x[:, :-1]
        x = torch.cat([last, self.gain * changes.flip(1)], dim=1)
        found = self.body(x).mean(dim=(2, 3))
        return self.head(torch.cat([found, x.mean(dim=(2, 3)), x.std(dim=(2, 3))], dim=1))


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

    name = "dashcam"
    gain = 10.0
    """Changes are per frame of 0.1 s; times ten they are per second."""

    def __init__(self, width=16, dropout=0.5, in_channels=12, num_classes=2):
        super().__init__()
        check_integer(width, "width")
        check_number(dropout, "dropout", 0, 1)
        self.frames = in_channels // 4
        widths = (in_channels, width, 2 * width, 4 * width)
        layers = (Conv2dNormActivation(a, b, stride=2) for a, b in pairwise(widths))
        self.body = nn.Sequential(*layers)
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
