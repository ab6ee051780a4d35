"""Predictions of a kept model for a folder, an archive or an array of new images."""

import logging
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from ..report.base_rate import at_rate, rate_with_interval
from .files import LINKED, is_array, list_files, open_array, read_files
from .pictures import try_to_decode

__all__ = ["image_entries", "predict_entries", "predict_images"]

log = logging.getLogger(__name__)


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
    for block in iter(lambda: list(islice(entries, batch_size)), []):
        block = Parallel(n_jobs=-1, prefer="threads")(
            delayed(_decode)(*one, model) for one in block
        )
        good = [image for _, image, _ in block if image is not None]
        told = model.describe(np.stack(good), device, batch_size) if good else {}
        told = iter(pd.DataFrame(told).to_dict("records"))
        for name, image, reason in block:
            values = dict.fromkeys(model.columns) if image is None else next(told)
            yield {"path": name, "probability": None, "reason": reason} | values


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
        As they were, with other probabilities.
    text : str
        The rate, with its interval where it is estimated.
    """
    old, ends = model.record.get("rate"), ""
    if old is None:
        raise ValueError("rate must not be given: the model does not say for which it was made.")
    if rate == "estimate":
        rows = list(rows)
        p = np.array([row["probability"] for row in rows if row["probability"] is not None])
        rate, *ends = rate_with_interval(p, old)
        ends = " [{:.4g}, {:.4g}]".format(*ends)

    def moved(row):  # its numbers with a fraction are probabilities
        return {k: at_rate(v, old, rate) if isinstance(v, float) else v for k, v in row.items()}

    return map(moved, rows), f"Base rate: {rate:.4g}{ends} in place of {old:.4g}."


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
        Of each its name, its content (bytes, an array, or None) and why it has none; folders
        that are links are among them. A warning says what else is left out.
    """
    path = Path(images).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"images must be an existing file or folder; found none at {path}.")
    if is_array(path, key):
        array = open_array(path, key)[0]
        n = array.shape[0]
        if not n:
            raise ValueError(f"images: {str(path)!r} holds no rows.")
        return n, ((i, np.asarray(array[i : i + 1])[0], None) for i in range(n))
    listing = list_files(path)
    pictures, left = listing.pictures(), listing.left_out()
    names = {listing.files[name]: name for name in pictures if name in listing.files}
    shown, skipped = {*pictures}, listing.skipped.items()
    unread = [(name, None, why) for name, why in skipped if why == LINKED or name in shown]
    if not names and not unread:
        what = f"holds no JPEG, PNG, TIFF, WebP, BMP or GIF. {left}".rstrip()
        raise ValueError(f"images: {str(path)!r} {what}")
    if left:
        log.warning("%s", left)
    contents, why = read_files(path, names), "the file cannot be read"
    found = ((names[place], content, why) for place, content in contents)
    return len(names) + len(unread), chain(unread, found)


def _decode(name, content, reason, model):
    image, _, why = try_to_decode(content, model.size, model.aspect)
    return name, image, reason if content is None else why
