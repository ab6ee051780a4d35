"""Whether an image is unlike those that a model was trained on: how far its features are off."""

from math import ceil

import numpy as np
import torch
from sklearn.covariance import LedoitWolf
from torch import nn

__all__ = ["SHARE", "UNLIKE", "distances", "listen", "summarize"]

SHARE = 0.99
"""Of images like those of validation, that are not flagged."""

UNLIKE = "unlike_training"
"""The column of the flag."""


def summarize(train, val):
    """Summarise the features of training images, and how far from them others usually lie.

    Parameters
    ----------
    train, val : torch.Tensor of shape (n, F)
        Features of training and of validation images.

    Returns
    -------
    dict of str to torch.Tensor, or None
        Their ``mean``, the ``precision``, which is the inverse of their covariance (of features of
        variance 1 shrunk as Ledoit and Wolf, 2004, do), and the ``limit`` beyond which a new image
        that is like the validation images lies with probability 1 % at most (the rank of conformal
        prediction). None where too few validation images, fewer than 99, could tell, or without
        features.
    """
    rank = ceil(SHARE * (len(val) + 1))
    if rank > len(val) or not val.shape[1]:
        return None
    mean, scale = train.double().mean(0), train.double().std(0).clamp(min=1e-6)
    fitted = LedoitWolf(assume_centered=True).fit(((train - mean) / scale).numpy())
    precision = torch.from_numpy(fitted.precision_) / (scale * scale[:, None])
    summary = {"mean": mean.float(), "precision": precision.float()}
    return summary | {"limit": torch.tensor(np.sort(distances(summary, val))[rank - 1])}


def distances(summary, features):
    """Return the squared Mahalanobis distance of each row of features, an array (n,)."""
    gap = (features - summary["mean"]).double()
    return ((gap @ summary["precision"].double()) * gap).sum(1).numpy()


def listen(network):
    """Return a list to which a network adds, batch by batch, what its head sees.

    That is what enters the first fully connected layer, of a backbone's head where there is one;
    where there is no such layer the list stays empty.
    """
    modules, found = getattr(network, "head", network).modules(), []
    layer = next((m for m in modules if isinstance(m, nn.Linear)), nn.Identity())
    layer.register_forward_pre_hook(lambda _, x: found.append(x[0].float().cpu()))
    return found
