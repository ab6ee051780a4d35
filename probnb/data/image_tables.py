"""Which image has which outcome: from a table of paths, or from the folders they lie in."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from ..tables import column, find_column, read_table
from .files import PICTURE

__all__ = ["ROLES", "match_names", "outcome_folders", "read_outcomes"]

ROLES = {"y": "outcome", "weight": "weight", "p": "probability", "path": "label", "group": "label",
         "split": "label"}  # fmt: skip
"""What a column of the table may be, and what it then holds."""

_PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing", "holdout"), "test"),
}
_PLAIN = {"0", "1", "0.0", "1.0", "True", "False", "true", "false"}


def read_outcomes(outcomes, columns, positive=None, paths=True):
    """Read the table of outcomes.

    Parameters
    ----------
    outcomes : path-like or DataFrame
        As `probnb.tables.read_table` takes it, or a table; a row per image.
    columns : dict of str to str
        Columns by role, where they have other names than the role.
    positive : str, optional
        The label of outcome 1.
    paths : bool, default=True
        Whether there is a column of paths; the rows of an array need none.

    Returns
    -------
    table : DataFrame
        Columns named as `ROLES`, those that there are; checked.
    notes : list of str
        How the file was understood.
    """
    frame, notes = outcomes, []
    if not isinstance(outcomes, pd.DataFrame):
        frame = read_table(Path(outcomes).expanduser())
        notes = [f"Read {len(frame):,} rows of {frame.attrs['name']}.", *frame.attrs["notes"]]
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    roles = {role: find_column(name, [*frame], role) for role, name in columns.items()}
    free = [name for name in frame if name not in roles.values()]
    roles |= {role: role for role in ROLES if role in free and role not in roles}
    for role in {*("y", "path")[: 1 + paths]} - {*roles}:
        roles[role] = find_column(role, free, role)
    table = {}
    labels = pd.Series(column(frame, roles["y"], "label")).astype("str")
    names = sorted({*labels})
    if positive is not None or (len(names) == 2 and not {*names} <= _PLAIN):
        table["y"] = (labels == positive_label(positive, names)).to_numpy(float)
    for role, kind in ROLES.items():
        if role in roles and role not in table:
            table[role] = column(frame, roles[role], kind)
    if "split" in table:
        table["split"] = read_parts(table["split"], f"column {roles['split']!r}")
    return pd.DataFrame(table), notes


def positive_label(positive, labels):
    """Return the label of outcome 1 of two labels."""
    if len(labels) != 2:
        shown = ", ".join(labels[:8]) or "none"
        raise ValueError(f"there must be two outcomes; found {len(labels)}: {shown}.")
    if positive is None and labels == ["0", "1"]:
        return "1"
    if positive is None or str(positive) not in labels:
        raise ValueError(
            f"the outcomes are called {labels[0]!r} and {labels[1]!r}: say which of them is "
            f"outcome 1, such as positive={labels[1]!r}; got {positive!r}."
        )
    return str(positive)


def read_parts(values, place):
    """Return a user's own division, however spelt, as "train", "val" and "test"."""
    parts = [_PARTS.get(str(value).strip().lower()) for value in values]
    if None in parts:
        raise ValueError(
            f"{place} must hold train, val (or validation) and test; got "
            f"{values[parts.index(None)]!r}."
        )
    if missing := {"train", "test"} - {*parts}:
        raise ValueError(f"{place} must hold train and test at least; {min(missing)} is missing.")
    return np.array(parts, dtype=object)


def match_names(paths, listing):
    """Find the file that each path of a table means, exactly or not at all.

    A path is relative to the folder, or starts higher up: in a folder of the same name, or in one
    that all paths share. A name without folders is enough where one file has it. The ending may
    be missing.

    Parameters
    ----------
    paths : iterable of str
        As they stand in the table.
    listing : probnb.data.files.Listing
        The files.

    Returns
    -------
    names : list of str or None
        The file of each row.
    reasons : list of str or None
        Why there is none.
    """
    known = defaultdict(set)
    for name in listing.files:
        for spelt in (name, PICTURE.sub("", name)):
            known[spelt].add(name)
            known["/" + posixpath.basename(spelt)].add(name)  # without its folders
    split = [str(path).replace("\\", "/").split("/") for path in paths]
    split = [[part for part in parts if part not in ("", ".")] for parts in split]
    shared = posixpath.commonprefix([parts[:-1] for parts in split if parts])
    found = [_match(parts, shared, known, listing) for parts in split]
    return [name for name, _ in found], [reason for _, reason in found]


def _match(parts, shared, known, listing):
    """The file of one path and None, or None and the reason."""
    if ".." in parts:
        return None, "its path leads out of the folder"
    starts = [0, *(k for k in range(1, len(parts)) if parts[k - 1] == listing.root)]
    starts += [k for k in range(1, len(shared) + 1) if parts[:k] == shared[:k]]
    for spelt in ("/".join(parts[k:]) for k in starts):
        if spelt in listing.skipped:
            return None, listing.skipped[spelt]
        names = {spelt} if spelt in listing.files else known.get("/" * (len(parts) == 1) + spelt)
        if names:
            several = f"{len(names)} files have this name"
            return (None, several) if len(names) > 1 else (*names, None)
    return None, "there is no such file"


def outcome_folders(listing, positive=None):
    """Take the folder that an image lies in for its outcome.

    Parameters
    ----------
    listing : probnb.data.files.Listing
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
    parts = [name.split("/") for name in table["path"]]

    def folders(depth):
        return np.array([p[depth] if len(p) > depth + 1 else "" for p in parts], dtype=object)

    depth = 0
    while any(folders(depth + 1)) and len({*folders(depth)} - {""}) == 1:
        depth += 1  # one folder holds all
    try:
        if len({top.lower() for top in folders(depth)} & {*_PARTS}) > 1:  # no outcomes
            inside = folders(depth) != ""
            table.loc[inside, "split"] = read_parts(folders(depth)[inside], "folders")
            depth += 1
        labels = sorted({*folders(depth)} - {""})
        one = positive_label(positive, labels)
    except ValueError as error:
        raise ValueError(
            f"images: without a table of outcomes, there must be a folder for each; {error}"
        ) from None
    table["y"] = (folders(depth) == one).astype(float)
    zero = next(label for label in labels if label != one)
    notes = [f"Read the images of two folders: {one} is outcome 1, {zero} is outcome 0."]
    outside = folders(depth) == ""
    if outside.any():
        notes.append(f"{outside.sum():,} images lie in neither folder and are left out.")
    return table[~outside].reset_index(drop=True), notes
