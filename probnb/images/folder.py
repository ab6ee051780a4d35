"""Anybody's images with their outcomes, read from a folder, an archive or an array.

The outcomes stand in a table (a path and an outcome per row), or each outcome has a folder of its
own. What cannot be read is named and counted; copies of one image never land in two parts.
"""

import contextlib
import hashlib
import io
import logging
import re
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..data.base import Mirror, ProbabilityData, split
from ..paths import composed
from ..settings import parts_of
from ..tables import ROLES, positive_label, read_outcomes
from ..text import Named, plain
from ..validation import check_choice, check_integer, check_number
from .files import is_array, list_files, match_names, open_array, read_files
from .pictures import ASPECTS, decode_files, decode_rows

log = logging.getLogger(__name__)

FOLDS = 5
"""One fifth of the rows tests, one fifth validates, three fifths train; fewer where few groups."""

SAMPLE = 50
"""Images whose sizes are looked at."""

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
        What happens to an image that is not square; see `probnb.images.pictures.decode`.
    mirror : bool, default=False
        Whether training mirrors half of the images of each batch, left to right. Only you know
        whether a mirrored image has the same outcome.
    seed : int, default=0
        Which division into parts.
    unreadable : float, default=0.05
        Share of images that may be unreadable; they are left out and named. Beyond, all is
        refused.
    cache_dir : path-like, optional
        Where decoded images are kept; see `probnb.images.files.cache_folder`.
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
    how = check_integer(size, "size", minimum=8), check_choice(aspect, ASPECTS, "aspect"), cache_dir
    check_choice(mirror, (True, False), "mirror")
    check_number(unreadable, "unreadable", 0, 1)
    check_integer(seed, "seed", minimum=0)
    for role in columns:
        check_choice(role, ROLES, "column")
    path = Path(images).expanduser()
    if columns and outcomes is None and not is_array(path):
        told = ", ".join(f"{role}={name!r}" for role, name in columns.items())
        raise ValueError(f"outcomes must be a table where its columns are named; got {told}.")
    if is_array(path, key):
        array, beside = open_array(path, key)
        text = pd.DataFrame(beside).map(lambda v: v.decode() if isinstance(v, bytes) else v)  # HDF5
        outcomes = text if outcomes is None else outcomes
        table, notes = read_outcomes(outcomes, columns, positive, needed=("y",))
        if len(table) != array.shape[0]:
            raise ValueError(
                f"outcomes must have the {array.shape[0]} rows of the images; got {len(table)}."
            )
        pixels, found, checksum = decode_rows(array, *how)
        table = table.assign(name=found.index).join(found)
    else:
        pixels, table, checksum, notes = _read_files(path, outcomes, how, positive, columns)
    if "split" in table and outcomes is not None:
        table["split"] = read_parts(table["split"], f"column {columns.get('split', 'split')!r}")
    bad = table.loc[table["reason"].notna(), ["name", "reason"]]
    notes.insert(0, f"{len(table) - len(bad):,} of {len(table):,} images were read.")
    _judge(bad, len(table), unreadable, notes)
    table = table[table["reason"].isna()].reset_index(drop=True).astype({"row": int})
    parts = _divide(table, seed, notes)
    pixels = pixels[table["row"]]
    pixels = pixels.tensor() if np.prod(pixels.shape) <= IN_MEMORY else pixels
    known = (table[c].to_numpy() if c in table else None for c in ("p", "group", "weight", "name"))
    data = ProbabilityData(pixels, table["y"].to_numpy(), *known)
    told = hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()
    source = f"images sha256={checksum} table={told[:16]} size={size} aspect={aspect}"
    report = {"images": len(table) + len(bad), "used": len(table), "notes": notes}
    report["unreadable"] = dict(bad.itertuples(index=False))
    return split(data, parts, f"{source} seed={seed}", (Mirror(),) if mirror else (), report)


def usual_size(images, key=None):
    """Return the median of the shorter sides of up to fifty images, in pixels.

    Parameters
    ----------
    images, key
        As for `load_images`.

    Returns
    -------
    int
        0 where none of them can be opened.
    """
    path = Path(images).expanduser()
    if is_array(path, key):
        return int(min(open_array(path, key)[0].shape[1:3]))
    listing = list_files(path)
    places = [listing.files[name] for name in listing.pictures() if name in listing.files]
    sides = []
    for _, content in read_files(path, places[:: -(-len(places) // SAMPLE) or 1]):
        with contextlib.suppress(Exception):  # what is unreadable is named when all are read
            sides.append(min(Image.open(io.BytesIO(content)).size))
    return int(np.median(sides or [0]))


def _read_files(path, outcomes, how, positive, columns):
    """Images, what is known of each and its row among them, their checksum, and notes."""
    listing = list_files(path)
    if outcomes is None:
        table, notes = outcome_folders(listing, positive)
    else:
        table, notes = read_outcomes(outcomes, columns, positive)
    files, reasons = match_names(table["path"], listing)
    pixels, found, checksum = decode_files(path, listing, *how, names=filter(None, files))
    unlisted = len({*listing.pictures()} - {*files, *listing.skipped})
    if unlisted and outcomes is not None:
        notes.append(f"{unlisted:,} images are not in the table, and left out.")
    if left := listing.left_out():
        counted = re.split("[;:] ['\"]", left)[0].removesuffix(".")
        notes.append(Named(left, f"{counted}."))
    found = found.reindex(pd.Index(files, dtype=object)).set_axis(table.index)
    table["name"] = [plain(file or path) for file, path in zip(files, table["path"])]
    found["reason"] = found["reason"].where(found["row"].notna(), pd.Series(reasons, dtype=object))
    return pixels, table.drop(columns="path").join(found), checksum, notes


def outcome_folders(listing, positive=None):
    """Take the folder that an image lies in for its outcome.

    Parameters
    ----------
    listing : probnb.images.files.Listing
        The files: in two folders, one for each outcome, or these within folders for training,
        validation and test.
    positive : str, optional
        The folder of outcome 1; by default that called 1, if the other is called 0.

    Returns
    -------
    table : DataFrame
        Columns ``path``, ``y`` and, where there are such folders, ``split``; sorted by path.
    notes : list of str
        Which folder is which.
    """
    table = pd.DataFrame({"path": listing.pictures()}, dtype=object)  # names need not be Unicode
    parts = [composed(name).split("/") for name in table["path"]]

    def folders(depth):
        return np.array([p[depth] if len(p) > depth + 1 else "" for p in parts], dtype=object)

    depth = 0
    while any(folders(depth + 1)) and len({*folders(depth)} - {""}) == 1:
        depth += 1  # one folder holds all
    try:
        if sum(map(bool, parts_of({*folders(depth)}))) > 1:  # no outcomes
            inside = folders(depth) != ""
            table.loc[inside, "split"] = read_parts(folders(depth)[inside], "folders")
            depth += 1
        labels = sorted({*folders(depth)} - {""})
        one = positive_label(positive, labels)
        inside = folders(depth) != ""
        zero = next(label for label in labels if label != one)
        notes = [f"Read the images of two folders: {one} is outcome 1, {zero} is outcome 0."]
        for below in range(depth + 1, max(map(len, parts))) if "split" not in table else ():
            named = parts_of(folders(below)[inside])
            if None not in named and len({*named}) > 1:  # cats/train, cats/test
                table.loc[inside, "split"] = read_parts(folders(below)[inside], "folders")
            elif len({*named} - {None}) > 1:
                few = f"{len(named) - named.count(None):,} of {len(named):,} images lie"
                notes.append(f"Only {few} in folders for training and test, which are not used.")
    except ValueError as error:
        left = f" {listing.left_out()}".rstrip()
        raise ValueError(
            f"images: without a table of outcomes, there must be a folder for each; {error}{left}"
        ) from None
    table["y"] = (folders(depth) == one).astype(float)
    if not inside.all():
        notes.append(f"{(~inside).sum():,} images lie in neither folder and are left out.")
    return table[inside].reset_index(drop=True), notes


def read_parts(values, place):
    """Return a user's own division, however spelt, as "train", "val" and "test"."""
    parts = parts_of(values)
    if None in parts:
        raise ValueError(
            f"{place} must hold train, val (or validation) and test; got "
            f"{values[parts.index(None)]!r}."
        )
    if missing := {"train", "test"} - {*parts}:
        raise ValueError(f"{place} must hold train and test at least; {min(missing)} is missing.")
    return np.array(parts, dtype=object)


def _judge(bad, n, allowed, notes):
    """Refuse too many unreadable images; name them otherwise."""
    if not len(bad):
        return
    shown = "; ".join(f"{name}: {reason}" for name, reason in bad.head(5).itertuples(index=False))
    text = f"{len(bad):,} of {n:,} images cannot be read ({shown}{'; ...' * (len(bad) > 5)})"
    if len(bad) > allowed * n:
        raise ValueError(
            f"{text}. That is more than the share unreadable={allowed:g} allows: mend or remove "
            f"them, or raise it. {' '.join(notes[1:])}".rstrip()
        )
    left = "they are left out."
    notes.append(Named(f"{text}; {left}", f"{len(bad):,} of {n:,} images cannot be read; {left}"))
    log.warning("%s", notes[-1])


def _divide(table, seed, notes):
    """Rows of each part, three fifths, one and one, and what copies and groups have to do with it.

    Copies and rows of a group go to one part, whichever of the two connects them. A division that
    is given is kept; where it has no "val", one fifth of its "train" becomes that.
    """
    y, together = table["y"].to_numpy(), pd.factorize(table["digest"])[0]
    if "group" in table:  # each row connects its picture and its group
        edges = together, together.max() + 1 + pd.factorize(table["group"])[0]
        graph = coo_array((np.ones(len(y), bool), edges), 2 * [edges[1].max() + 1])
        together = pd.factorize(connected_components(graph, directed=False)[1][together])[0]
    if "split" in table:
        parts = table["split"].to_numpy(copy=True)
        if "val" not in parts:
            train = np.flatnonzero(parts == "train")
            parts[train[next(_folds(y[train], together[train], seed))]] = "val"
    else:
        folds, parts = _folds(y, together, seed), np.full(len(y), "train", dtype=object)
        parts[next(folds)], parts[next(folds)] = "test", "val"
    rows = {part: np.flatnonzero(parts == part) for part in ("train", "val", "test")}
    counts = y if "weight" not in table else np.where(table["weight"] > 0, y, np.nan)
    for part, inside in rows.items():
        if len(held := {*counts[inside]} & {0.0, 1.0}) < 2:
            raise ValueError(
                f"every part must have both outcomes; {part} has {[*map(float, held)]}. Give "
                "more images of the rare outcome, smaller groups, or a column that says which rows "
                "train, validate and test."
            )
    table = table.assign(part=parts)
    outcomes = table.groupby("digest")["y"].nunique()
    if more := len(table) - len(outcomes):
        told = f"{more:,} images are copies of others, pixel for pixel"
        notes.append(f"{told}; {(outcomes > 1).sum():,} sets of copies have both outcomes.")
    for what, column in {"images": "digest", "groups": "group"}.items():
        if column in table and (cut := (table.groupby(column)["part"].nunique() > 1).sum()):
            notes.append(
                f"{cut:,} {what} stand in more than one part of the division that you gave: what "
                "is measured on the test part is better than what new images will see."
            )
            log.warning("%s", notes[-1])
    return rows


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
