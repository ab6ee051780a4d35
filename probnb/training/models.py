"""The networks, and how a training names the one it wants.

Every network maps what `probnb.data.ProbabilityData.batch` returns to a logit for each outcome: two
(outcome 0, outcome 1), as in the paper, whose softmax has the predicted probability in its second
column, or K with ``num_classes=K``.
"""

import inspect
import pkgutil
from dataclasses import dataclass

from torch import nn
from torchvision.models.resnet import BasicBlock

from ..validation import check_choice, check_integer, check_number


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
        side = 7 if stem == "large" else 3
        self.conv1 = nn.Conv2d(in_channels, width, side, stride=2, padding=side // 2, bias=False)
        pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.maxpool = pool if stem == "large" else nn.Identity()
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
    shortcut = None
    if stride != 1 or inplanes != planes:
        one = nn.Conv2d(inplanes, planes, 1, stride=stride, bias=False)
        shortcut = nn.Sequential(one, nn.BatchNorm2d(planes))
    first = BasicBlock(inplanes, planes, stride, shortcut)
    return nn.Sequential(first, BasicBlock(planes, planes))


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


NETWORKS = {"resnet18": ResNet18, "mlp": MLP, "pretrained": "probnb.pretrained.backbone:Pretrained"}
"""Networks by name, each a class or where one is, so that a package which few need is not loaded
before it is asked for; what `network` takes besides is any class of the same kind."""


def _class(kind):
    found = NETWORKS.get(kind, kind)
    return pkgutil.resolve_name(found) if isinstance(found, str) else found


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
        make = _class(self.kind)
        wanted = inspect.signature(make).parameters
        size = {name: inputs.shape[1] for name in ("in_channels", "features") if name in wanted}
        if bare and "bare" in wanted:
            size["bare"] = True
        return make(**size, **dict(self.settings))

    @property
    def name(self):
        """The name in `NETWORKS`, the class's own ``name``, or where the class is defined."""
        if isinstance(self.kind, str):
            return self.kind
        return getattr(self.kind, "name", f"{self.kind.__module__}.{self.kind.__qualname__}")


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
    >>> import torch
    >>> network("mlp", hidden=(8,)).build(torch.zeros(5, 3)).layers[0]
    Linear(in_features=3, out_features=8, bias=True)
    """
    if not isinstance(kind, type):
        check_choice(kind, NETWORKS, "network")
    elif getattr(kind, "name", None) in NETWORKS:
        raise ValueError(f"network: {kind.__qualname__} has the name of another, {kind.name!r}.")
    known = inspect.signature(_class(kind)).parameters
    allowed = [name for name in known if name not in ("in_channels", "features")]
    for name in settings:
        check_choice(name, allowed, f"setting of network {kind}")
    plain = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return Network(kind, tuple(sorted(plain.items())))
