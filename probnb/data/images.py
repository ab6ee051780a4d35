"""Anybody's images with their outcomes, read from a folder, an archive or an array.

The outcomes stand in a table (a path and an outcome per row), or each outcome has a folder of its
own. What cannot be read is named and counted; copies of one image never land in two parts.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..validation import check_choice, check_integer, check_number
from .augment import Mirror
from .base import ProbabilityData, Splits
from .files import list_files
from .image_arrays import is_array, open_array
from .image_cache import MappedRows, decode_files, decode_rows
from .image_tables import ROLES, match_names, outcome_folders, read_outcomes
from .pictures import ASPECTS

__all__ = ["connected", "load_images", "split_rows"]

log = logging.getLogger(__name__)

PARTS = ("train", "val", "test")

FOLDS = 5
"""One fifth of the rows tests, one fifth validates, three fifths train; fewer where few groups."""

IN_MEMORY = 2**31
"""Bytes of decoded images up to which they are held in memory; beyond, they stay on disk."""


def load_images(
    images,
    outcomes=None,
    size=64,
    aspect="crop",
    mirror=False,
    seed=0,
    unreadable=0.05,
    cache_dir=None,
    key=None,
    positive=None,
    **columns,
):
    """Read images and their outcomes, split into training, validation and test.

    Parameters
    ----------
    images : path-like
        A folder (subfolders included), a tar or zip of images, or an array: ``.npy``, ``.npz``,
        HDF5 or Zarr, uint8 or uint16, (n, height, width[, channels]).
    outcomes : path-like or DataFrame, optional
        CSV or Parquet (see `probnb.tables.read_table`) with a row per image. By default each
        outcome has a folder of its own in `images`, perhaps within folders ``train``, ``val`` and
        ``test``; an array may have a vector ``y`` beside it.
    size : int, default=64
        Height and width to which images are brought, at least 8.
    aspect : {"crop", "pad", "stretch"}, default="crop"
        What happens to an image that is not square; see `probnb.data.pictures.decode`.
    mirror : bool, default=False
        Whether training mirrors half of the images of each batch, left to right. Only you know
        whether a mirrored image has the same outcome.
    seed : int, default=0
        Which division into parts.
    unreadable : float, default=0.05
        Share of images that may be unreadable; they are left out and named. Beyond, all is
        refused.
    cache_dir : path-like, optional
        Where decoded images are kept; see `probnb.data.image_cache.cache_folder`.
    key : str, optional
        Which array of a file that holds several.
    positive : str, optional
        The label, or the folder, of outcome 1, where outcomes are not called 0 and 1.
    **columns
        Columns of the table, where they are not called so: ``path``, ``y``, and optionally
        ``group`` (what rows share: a patient, a day; it never lands in two parts), ``split``
        (train, val, test: your own division), ``weight``, ``p`` (the probability, if known).

    Returns
    -------
    Splits
        Inputs are uint8 of shape (n, 3, size, size); ids are the names of the files, or row
        numbers. ``report`` has the counts, ``unreadable`` (name: reason), and ``notes``: all of it
        in sentences, with copies of one image and what your own division cuts through.

    Raises
    ------
    FileNotFoundError
        If there is nothing at a path.
    ValueError
        If the table, the folder or the array is not as described, too many images are
        unreadable, an archive has names that lead out of it or unpacks to a bomb.
    """
    size = check_integer(size, "size", minimum=8)
    seed = check_integer(seed, "seed", minimum=0)
    check_choice(aspect, ASPECTS, "aspect")
    check_choice(mirror, (True, False), "mirror")
    check_number(unreadable, "unreadable", 0, 1)
    for role in columns:
        check_choice(role, ROLES, "column")
    path = Path(images).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"images must be a folder, an archive or an array; no {path}.")
    read = _read_array if is_array(path) else _read_files
    table, decoded, notes = read(path, outcomes, (size, aspect, cache_dir), key, positive, columns)
    bad = table.loc[table["reason"].notna(), ["name", "reason"]]
    _judge(bad, len(table), unreadable, notes)
    table = table[table["reason"].isna()].reset_index(drop=True)
    parts = _divide(table, seed, notes)
    rows = MappedRows(decoded.path, table["row"])
    told = hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()
    report = {
        "images": len(table) + len(bad),
        "used": len(table),
        "unreadable": dict(bad.itertuples(index=False)),
        "notes": notes,
    }
    return Splits(
        *_data(table, rows, parts, mirror),
        f"images sha256={decoded.checksum} table={told[:16]} size={size} aspect={aspect} "
        f"seed={seed}",
        report=report,
    )


def connected(*labels):
    """Number the sets of rows that are connected by any of their labels.

    Parameters
    ----------
    *labels : array-like of shape (n,)
        Rows with an equal label belong together, and so do rows that are connected through others.

    Returns
    -------
    ndarray of shape (n,)
        int, the same for rows that belong together.

    Examples
    --------
    >>> connected(["a", "a", "b", "c"], [1, 2, 2, 3]).tolist()
    [0, 0, 0, 1]
    """
    n = width = len(labels[0])
    columns = []
    for values in labels:
        codes, names = pd.factorize(np.asarray(values))
        columns.append(width + codes)
        width += len(names)
    rows = np.tile(np.arange(n), len(labels))
    graph = coo_array((np.ones(len(rows), bool), (rows, np.concatenate(columns))), (width, width))
    return pd.factorize(connected_components(graph, directed=False)[1][:n])[0]


def split_rows(outcomes, together, seed=0, parts=None):
    """Divide rows into training, validation and test, in three fifths, one and one.

    Parameters
    ----------
    outcomes : ndarray of shape (n,)
        0 and 1, which the parts have in about the same proportion.
    together : ndarray of shape (n,)
        Rows with an equal label go to one part.
    seed : int, default=0
        Which of the divisions.
    parts : ndarray of shape (n,), optional
        A division that is given. Where it has no "val", one fifth of its "train" becomes that.

    Returns
    -------
    ndarray of shape (n,)
        "train", "val" or "test".

    Raises
    ------
    ValueError
        If there are too few rows of an outcome, or a part ends up with one outcome only.
    """
    if parts is None:
        parts = np.full(len(outcomes), "train", dtype=object)
        folds = _folds(outcomes, together, seed)
        parts[next(folds)], parts[next(folds)] = "test", "val"
    elif "val" not in parts:
        parts, train = parts.copy(), np.flatnonzero(parts == "train")
        parts[train[next(_folds(outcomes[train], together[train], seed))]] = "val"
    for part in PARTS:
        held = np.unique(outcomes[parts == part])
        if len(held) < 2:
            raise ValueError(
                f"every part must have both outcomes; {part} has "
                f"{f'only {held[0]:g}' if len(held) else 'no rows'}. Give more images of the rare "
                "outcome, smaller groups, or a column that says which rows train, validate and "
                "test."
            )
    return parts


def _folds(outcomes, together, seed):
    """Yield the rows of one fifth after the other; larger parts where there are few groups."""
    sets = [len(np.unique(together[outcomes == outcome])) for outcome in (0, 1)]
    if min(sets) < 3:
        raise ValueError(
            "outcomes must have 3 rows or groups of 0 and of 1 at least, to be divided; got "
            f"{min(sets)} of {int(np.argmin(sets))}."
        )
    alone = len(np.unique(together)) == len(together)  # much quicker, and exact
    kind = StratifiedKFold if alone else StratifiedGroupKFold
    folds = kind(min(FOLDS, *sets), shuffle=True, random_state=seed)
    return (rows for _, rows in folds.split(outcomes, outcomes, None if alone else together))


def _read_files(path, outcomes, how, key, positive, columns):
    """Table of names, outcomes and what else is known, with the row of each decoded image."""
    listing = list_files(path)
    if outcomes is None:
        table, notes = outcome_folders(listing, positive)
    else:
        table, notes = read_outcomes(outcomes, columns, positive)
    names, reasons = match_names(table["path"], listing)
    table["name"] = [_shown(name or path) for name, path in zip(names, table["path"])]
    table["reason"] = pd.Series(reasons, dtype=object)
    unlisted = len({*listing.pictures()} - {*names, *listing.skipped})
    if unlisted and outcomes is not None:
        notes.append(f"{unlisted:,} images are not in the table, and left out.")
    notes += filter(None, [listing.left_out()])
    decoded = decode_files(path, listing, filter(None, names), *how)
    return _join(table.drop(columns="path"), names, decoded, notes)


def _shown(name):
    """A file's name as text, whatever its bytes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _read_array(path, outcomes, how, key, positive, columns):
    array, beside, shapes = open_array(path, key)
    if outcomes is None:
        name = columns.get("y", "y")
        if name not in beside:
            raise ValueError(
                f"outcomes: {path.name} has no vector {name!r} of {array.shape[0]} values beside "
                f"the images (it holds {shapes}); give a table of outcomes."
            )
        outcomes = pd.DataFrame(beside)
    table, notes = read_outcomes(outcomes, columns, positive, paths=False)
    if len(table) != array.shape[0]:
        raise ValueError(
            f"outcomes must have the {array.shape[0]} rows of the images; got {len(table)}."
        )
    table["name"], table["reason"] = np.arange(len(table)), None
    return _join(table, table["name"], decode_rows(array, *how), notes)


def _join(table, names, decoded, notes):
    """Add the row, the digest and the reason of each decoded image."""
    table["row"] = [decoded.row.get(name, -1) for name in names]
    known = [(decoded.reasons[i], decoded.digests[i]) if i >= 0 else (reason, None)
             for i, reason in zip(table["row"], table["reason"])]  # fmt: skip
    table[["reason", "digest"]] = pd.DataFrame(known, table.index, dtype=object)
    return table, decoded, notes


def _judge(bad, n, allowed, notes):
    """Refuse too many unreadable images; name them otherwise."""
    if not len(bad):
        return
    shown = "; ".join(f"{name}: {reason}" for name, reason in bad.head(5).itertuples(index=False))
    text = f"{len(bad):,} of {n:,} images cannot be read ({shown}{'; ...' * (len(bad) > 5)})"
    if len(bad) > allowed * n:
        raise ValueError(
            f"{text}. That is more than the share unreadable={allowed:g} allows: mend or remove "
            "them, or raise it."
        )
    notes.append(f"{text}; they are left out.")
    log.warning("%s", notes[-1])


def _divide(table, seed, notes):
    """Part of each row, and what copies and groups have to do with it."""
    copies = [rows for rows in table.groupby("digest").indices.values() if len(rows) > 1]
    labels = [table["digest"]] + ([table["group"]] if "group" in table else [])
    given = table["split"].to_numpy() if "split" in table else None
    y = table["y"].to_numpy()
    parts = split_rows(y, connected(*labels), seed, given)
    across = sum(len(set(parts[rows])) > 1 for rows in copies)
    conflicting = sum(len(set(y[rows])) > 1 for rows in copies)
    if copies:
        more = sum(len(rows) - 1 for rows in copies)
        notes.append(
            f"{more:,} images are copies of others, pixel for pixel"
            + (f"; {conflicting:,} sets of copies have both outcomes" if conflicting else "")
            + ("." if across else ". Copies are in one part.")
        )
    groups = table["group"].to_numpy() if "group" in table else np.arange(len(table))
    groups = int((pd.Series(parts).groupby(groups).nunique() > 1).sum())
    for what, cut in (("images stand", across), ("groups stand", groups)):
        if cut:
            notes.append(
                f"**{cut:,} {what} in more than one part** of the division that you gave: what is "
                "measured on the test part is better than what new images will see."
            )
            log.warning("%s", notes[-1].replace("*", ""))
    return parts


def _data(table, images, parts, mirror):
    """The three parts, in memory where they are small enough."""
    small = np.prod(images.shape) <= IN_MEMORY
    for part in PARTS:
        rows = np.flatnonzero(parts == part)
        cut, inputs = table.iloc[rows], images.part(rows)

        def known(name, cut=cut):
            return cut[name].to_numpy() if name in cut else None

        yield ProbabilityData(
            inputs.tensor() if small else inputs,
            known("y"),
            probabilities=known("p"),
            groups=known("group"),
            weights=known("weight"),
            ids=known("name"),
            augment=(Mirror(),) if mirror and part == "train" else (),
        )
