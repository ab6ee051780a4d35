"""Predictions of a kept model for new images, and which of those are unlike its training images."""

import logging
from itertools import chain, islice
from math import ceil

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from sklearn.covariance import LedoitWolf
from torch import nn

from ..paths import find_path
from ..report.keep import at_rate, rate_with_interval
from .files import LINKED, is_array, list_files, open_array, read_files
from .pictures import try_to_decode

log = logging.getLogger(__name__)

SHARE = 0.99
"""Of images like those of validation, that are not flagged."""

UNLIKE = "unlike_training"
"""The column of the flag."""


def predict_images(model, images, device="auto", batch_size=256, key=None):
    """Predict for every image of a folder, an archive or an array, batch by batch.

    Parameters
    ----------
    model : KeptModel
        From `probnb.images.model.load_model`.
    images : path-like
        A single image, a folder, a tar or zip, or an array; see `probnb.images.folder`.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.
    batch_size : int, default=256
        Images at a time.
    key : str, optional
        Which array of a file that holds several.

    Yields
    ------
    name : str or int
        The image's file, or its row.
    probability : float or None
        Of outcome 1; None for an image that cannot be read.
    reason : str or None
        Why not.

    Raises
    ------
    FileNotFoundError
        If there is nothing at `images`.
    ValueError
        If it holds no images at all.
    """
    for row in predict_entries(model, image_entries(images, key)[1], device, batch_size):
        yield row["path"], row["probability"], row["reason"]


def predict_entries(model, entries, device="auto", batch_size=256):
    """Yield a dict for each of the entries that `image_entries` found.

    It has ``path``, ``probability`` and ``reason``, as `predict_images` gives them, and what else
    `KeptModel.describe` says of an image, None where it cannot be read.
    """
    if model.size is None:
        raise ValueError("model must be one of images; this one does not say how to prepare them.")
    decode = delayed(lambda content: try_to_decode(content, model.size, model.aspect))
    for block in iter(lambda: list(islice(entries, batch_size)), []):
        found = Parallel(n_jobs=-1, prefer="threads")(decode(content) for _, content, _ in block)
        good = [image for image, *_ in found if image is not None]
        told = model.describe(np.stack(good), device, batch_size) if good else {}
        told = iter(pd.DataFrame(told).to_dict("records"))
        for (name, _, known), (image, _, reason) in zip(block, found):
            values = dict.fromkeys(model.columns) if image is None else next(told)
            yield {"path": name, "probability": None, "reason": known or reason} | values


def at_base_rate(model, rows, rate):
    """Return what `predict_entries` gives for another share of outcome 1 than validation had.

    Parameters
    ----------
    model : KeptModel
        Its record says that share.
    rows : iterable
        From `predict_entries`; to estimate a rate, all are read first.
    rate : float or "estimate"
        The share, in (0, 1); or it is estimated from the predictions.

    Returns
    -------
    rows : iterable
        As they were, with other probabilities; with the same where no rate can be estimated.
    text : str
        The rate, with its interval where it is estimated, or why it cannot be.
    moved : bool
        Whether they are for that rate.
    """
    old, ends = model.record.get("rate"), ""
    if old is None:
        raise ValueError("rate must not be given: the model does not say for which it was made.")
    if rate == "estimate":
        rows = list(rows)
        p = np.array([row["probability"] for row in rows if row["probability"] is not None])
        try:
            rate, *ends = rate_with_interval(p, old)
        except ValueError as error:  # all has been predicted by now, and is not lost
            return rows, f"Base rate: {old:.4g} as it was; {error}", False
        ends = " [{:.4g}, {:.4g}]".format(*ends)

    def moved(row):  # its numbers with a fraction are probabilities
        return {k: at_rate(v, old, rate) if isinstance(v, float) else v for k, v in row.items()}

    return map(moved, rows), f"Base rate: {rate:.4g}{ends} in place of {old:.4g}.", True


def image_entries(images, key=None):
    """Find the images that there are to predict: those that training would find.

    Parameters
    ----------
    images : path-like
        As for `predict_images`.
    key : str, optional
        Which array of a file that holds several.

    Returns
    -------
    total : int
        How many.
    entries : iterator
        Of each its name, its content (bytes, an array, or None) and, where that is known, why it
        has none; folders that are links are among them. A warning says what else is left out.
    """
    path = find_path(images, "images")
    if is_array(path, key):
        array = open_array(path, key)[0]
        n = array.shape[0]
        if not n:
            raise ValueError(f"images: {str(path)!r} holds no rows.")
        return n, ((i, np.asarray(array[i : i + 1])[0], None) for i in range(n))
    listing = list_files(path)
    pictures, left = {*listing.pictures()}, listing.left_out()
    names = {listing.files[name]: name for name in pictures if name in listing.files}
    skipped = listing.skipped.items()
    unread = [(name, None, why) for name, why in skipped if why == LINKED or name in pictures]
    if not names and not unread:
        what = f"holds no JPEG, PNG, TIFF, WebP, BMP or GIF. {left}".rstrip()
        raise ValueError(f"images: {str(path)!r} {what}")
    if left:
        log.warning("%s", left)
    found = ((names[place], content, None) for place, content in read_files(path, names))
    return len(names) + len(unread), chain(unread, found)


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
