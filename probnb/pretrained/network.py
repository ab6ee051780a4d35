"""The network of a backbone: its features, scaled, and a head on them."""

from __future__ import annotations

import torch
from torch import nn

from ..training.models import MLP
from .backbone import Backbone


class Pretrained(nn.Module):
    """A backbone, its features scaled, and a head on them: logits of images.

    Scaled by their mean and variance over training images, or where it is trained as a whole over
    the batch, as batch normalisation does.

    Parameters
    ----------
    backbone, layers, size, mirror, bare : str, str, int, bool, bool
        See `probnb.pretrained.backbone.Backbone`.
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
        self,
        backbone="lite0",
        layers="stages",
        size=None,
        mirror=False,
        bare=False,
        hidden=(),
        dropout=0.0,
        in_channels=3,
        num_classes=2,
    ):
        super().__init__()
        if in_channels != 3:
            raise ValueError(f"a backbone sees images of 3 channels; got {in_channels}.")
        self.backbone = Backbone(backbone, layers, size, mirror, bare)
        weight = next(self.backbone.parameters())
        with torch.no_grad():
            self.backbone.eval()
            own = torch.zeros(1, 3, *self.backbone.own_size, device=weight.device)
            features = self.backbone(own).shape[1]
        self.norm = nn.BatchNorm1d(features, eps=1e-8, affine=False)
        self.head = MLP(features, hidden, dropout, num_classes)

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        return self.head(self.norm(self.backbone(x)))
