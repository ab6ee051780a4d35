"""The networks, and how a training names the one it wants.

Every network maps what `probnb.data.ProbabilityData.batch` returns to a logit for each outcome: two
(outcome 0, outcome 1), as in the paper, whose softmax has the predicted probability in its second
column, or K with ``num_classes=K``.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from itertools import pairwise

import torch
import torchvision
from torch import nn
from torchvision.models.resnet import BasicBlock

from ..validation import check_choice, check_integer, check_number
from .backbone import Backbone


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
        ``"small"``: one 3x3 convolution with stride 2 and no pooling, for 24 to 64 pixels.
    in_channels : int, default=3
        Channels of the input: 3 for RGB or for three radar maps.
    num_classes : int, default=2
        Number of logits.
    """

    def __init__(self, width=64, stem="large", in_channels=3, num_classes=2):
        super().__init__()
        check_integer(width, "width")
        check_choice(stem, ("large", "small"), "stem")
        if stem == "large":
            self.conv1 = nn.Conv2d(in_channels, width, 7, stride=2, padding=3, bias=False)
            self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        else:
            self.conv1 = nn.Conv2d(in_channels, width, 3, stride=2, padding=1, bias=False)
            self.maxpool = nn.Identity()
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


class MLP(nn.Module):
    """Layers of rectified units, for tables.

    Parameters
    ----------
    features : int
        Columns of the input.
    hidden : tuple of int, default=(64, 64)
        Units of each layer.
    dropout : float, default=0
        Share of units left out in training.
    num_classes : int, default=2
        Number of logits.
    """

    def __init__(self, features, hidden=(64, 64), dropout=0.0, num_classes=2):
        super().__init__()
        check_number(dropout, "dropout", 0, 1)
        layers, width = [], features
        for units in hidden:
            layers += [nn.Linear(width, check_integer(units, "hidden")), nn.ReLU()]
            layers += [nn.Dropout(dropout)] if dropout else []
            width = units
        self.layers = nn.Sequential(*layers, nn.Linear(width, num_classes))

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        return self.layers(x.flatten(1))


class Pretrained(nn.Module):
    """A backbone, its features scaled, and a head on them: logits of images.

    Scaled by their mean and variance over training images, or where it is trained as a whole over
    the batch, as batch normalisation does.

    Parameters
    ----------
    backbone, layers, size, mirror, bare : str, str, int, bool, bool
        See `probnb.training.backbone.Backbone`.
    hidden : tuple of int, default=()
        Units of each layer of the head; none for logistic regression.
    dropout : float, default=0
        Of the head.
    in_channels : int, default=3
        Must be 3.
    num_classes : int, default=2
        Number of logits.
    """

    def __init__(
        self, backbone="lite0", layers="stages", size=None, mirror=False, bare=False, hidden=(),
        dropout=0.0, in_channels=3, num_classes=2,
    ):  # fmt: skip
        super().__init__()
        if in_channels != 3:
            raise ValueError(f"a backbone sees images of 3 channels; got {in_channels}.")
        self.backbone = Backbone(backbone, layers, size, mirror, bare)
        weight = next(self.backbone.parameters())
        with torch.no_grad():
            self.backbone.eval()
            features = self.backbone(torch.zeros(1, 3, 64, 64, device=weight.device)).shape[1]
        self.norm = nn.BatchNorm1d(features, eps=1e-8, affine=False)
        self.head = MLP(features, hidden, dropout, num_classes)

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        return self.head(self.norm(self.backbone(x)))


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


def _convolution(inputs, outputs, stride=2):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


NETWORKS = {
    "resnet18": ResNet18,
    "mlp": MLP,
    "pretrained": Pretrained,
    "attention_mil": AttentionMIL,
    "vgg16_bn": VGG16BN,
    "rain": RainNet,
    "dashcam": DashNet,
}
"""Networks by name; what `network` takes besides is any class of the same kind."""


@dataclass(frozen=True)
class Network:
    """Which network to build; made by `network`.

    Parameters
    ----------
    kind : str or type
        Name in `NETWORKS`, or a class.
    settings : tuple of (str, object)
        Keyword arguments beside the one that the data set, in alphabetical order.
    """

    kind: object = "resnet18"
    settings: tuple = ()

    def build(self, inputs, bare=False):
        """Return the network for some inputs; their second axis is what they have per row.

        Parameters
        ----------
        inputs : object with a shape
            Its second entry gives `in_channels` or `features`, whichever the network asks for.
        bare : bool, default=False
            Whether all weights will be replaced, so that no pretrained ones need be found.

        Returns
        -------
        torch.nn.Module
            With weights drawn from torch's global generator.
        """
        make = NETWORKS.get(self.kind, self.kind)
        wanted = inspect.signature(make).parameters
        size = {name: inputs.shape[1] for name in ("in_channels", "features") if name in wanted}
        if bare and "bare" in wanted:
            size["bare"] = True
        return make(**size, **dict(self.settings))

    @property
    def name(self):
        """The name in `NETWORKS`, or where the class is defined."""
        if isinstance(self.kind, str):
            return self.kind
        return f"{self.kind.__module__}.{self.kind.__qualname__}"


def network(kind="resnet18", **settings):
    """Say which network to train.

    Parameters
    ----------
    kind : str or type, default="resnet18"
        Name in `NETWORKS`, or a class that takes `in_channels` (images, maps) or `features`
        (tables, bags) and returns two logits.
    **settings
        Its other arguments, such as ``width`` and ``stem`` of a ResNet-18.

    Returns
    -------
    Network
        What a `probnb.experiment.plan.Job` holds.

    Examples
    --------
    >>> network("mlp", hidden=(8,)).build(torch.zeros(5, 3)).layers[0]
    Linear(in_features=3, out_features=8, bias=True)
    """
    make = kind if isinstance(kind, type) else NETWORKS[check_choice(kind, NETWORKS, "network")]
    known = inspect.signature(make).parameters
    allowed = [name for name in known if name not in ("in_channels", "features")]
    for name in settings:
        check_choice(name, allowed, f"setting of network {kind}")
    plain = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return Network(kind, tuple(sorted(plain.items())))
