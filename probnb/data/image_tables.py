"""Which image has which outcome: from a table of paths, or from the folders they lie in."""

from __future__ import annotations

import contextlib
import posixpath
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from ..report.columns import Columns
from ..report.files import Source, read_file
from ..report.roles import find_column, find_roles, refuse_repeated
from .image_splits import read_parts
from .pictures import ENDINGS

__all__ = ["ROLES", "match_names", "outcome_folders", "read_outcomes"]

ROLES = ("path", "y", "group", "split", "weight", "p")
"""What a column of the table may be."""

_PATHS = ("path", "file", "filename", "file_name", "image", "image_path", "filepath", "image_id")


def read_outcomes(outcomes, columns, positive=None, paths=True):
    """Read the table of outcomes.

    Parameters
    ----------
    outcomes : path-like or DataFrame
        CSV (any encoding and separator), Parquet or a DataFrame; a row per image.
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

    Raises
    ------
    ValueError
        If a column is missing, or a value is not what its column must hold; the message names
        the file, the column, the place and the remedy.
    """
    if isinstance(outcomes, pd.DataFrame):
        frame, source = outcomes.reset_index(drop=True), Source(name="outcomes")
        frame.columns = [str(name) for name in frame]
    else:
        path = Path(outcomes).expanduser()
        if not path.exists():
            raise FileNotFoundError(f"outcomes must be an existing file; found none at {path}.")
        frame, source = read_file(path)
    present = list(frame.columns)
    wanted = {role: columns.get(role, role) for role in ROLES[1:]}
    try:
        roles = find_roles(present, wanted.pop("y"), **wanted)
        if paths:
            roles["path"] = _path_column(columns.get("path"), present)
        refuse_repeated(present, roles.values(), source.name)
        read = Columns(frame, source, [v for r, v in roles.items() if r in ("y", "weight", "p")])
        table = {"y": _outcomes(read, roles["y"], positive)}
        for role, take in (("weight", read.weights), ("p", lambda name: _p(read, name))):
            if role in roles:
                table[role] = take(roles[role])
        for role in ("path", "group", "split"):
            if role in roles:
                table[role] = read.labels(roles[role]).to_numpy()
    except ValueError as error:
        where = "" if isinstance(outcomes, pd.DataFrame) else f" ({source.name})"
        raise ValueError(f"outcomes{where}: {error}") from None
    if "split" in table:
        table["split"] = read_parts(table["split"], f"column {roles['split']!r}")
    notes = [
        f"Read {len(frame):,} rows of {source.name or 'the table'}.",
        *source.notes,
        *read.notes,
    ]
    return pd.DataFrame(table), notes


def _p(read, name):
    notes = []
    values = read.probabilities(name, notes)
    read.notes += notes
    return values


def _path_column(name, present):
    if name is not None:
        return find_column(name, present, "path")
    folded = {column.casefold(): column for column in present}
    for usual in _PATHS:
        if usual in folded:
            return folded[usual]
    return find_column("path", present, "path")


def _outcomes(read, name, positive):
    """Outcomes as 0 and 1; other labels need to be told which of them is 1."""
    labels = read.frame[name].dropna().astype("str").str.strip()
    different = sorted(set(labels))
    if positive is not None:
        return (read.labels(name).astype("str") == _positive(positive, different)).to_numpy(float)
    try:
        return read.outcomes(name)
    except ValueError:
        if len(different) == 2 and len(labels) == len(read.frame):
            _positive(None, different)
        raise


def _positive(positive, labels):
    """Return the label of outcome 1 of two labels."""
    if len(labels) != 2:
        shown = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "") or "none"
        raise ValueError(f"there must be two outcomes; found {len(labels)}: {shown}.")
    if positive is None and set(labels) == {"0", "1"}:
        return "1"
    if positive is None or str(positive) not in labels:
        raise ValueError(
            f"the outcomes are called {labels[0]!r} and {labels[1]!r}: say which of them is "
            f"outcome 1, such as positive={labels[1]!r}; got {positive!r}."
        )
    return str(positive)


def match_names(paths, listing):
    """Find the file that each path of a table means.

    A path may be relative to the folder, or start higher up; the name alone is enough where one
    file has it, with or without its ending.

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
    by_name, by_stem = defaultdict(list), defaultdict(list)
    for name in listing.files:
        base = posixpath.basename(name)
        by_name[base].append(name)
        if ENDINGS.search(base):
            by_stem[posixpath.splitext(base)[0]].append(name)
    names, reasons = [], []
    for path in map(str, paths):
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
        tails = ["/".join(parts[k:]) for k in range(len(parts))]
        name, reason = None, None
        if ".." in parts:
            reason = "its path leads out of the folder"
        elif whole := [tail for tail in tails if tail in listing.files]:
            name = whole[0]
        elif skipped := [tail for tail in tails if tail in listing.skipped]:
            reason = listing.skipped[skipped[0]]
        else:
            found = by_name.get(parts[-1]) or by_stem.get(parts[-1]) if parts else None
            if found and len(found) == 1:
                name = found[0]
            else:
                reason = f"{len(found)} files have this name" if found else "there is no such file"
        names.append(name)
        reasons.append(reason)
    return names, reasons


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
    entries = [*listing.files, *listing.skipped]
    shown = (name for name in entries if ENDINGS.search(name) and "/." not in f"/{name}")
    names = np.array(sorted(shown), dtype=object)
    parts = [name.split("/") for name in names]

    def folders(depth):
        return [p[depth] if len(p) > depth + 1 else "" for p in parts]

    depth, split = 0, None
    while any(folders(depth + 1)) and len({*folders(depth)} - {""}) == 1:
        depth += 1  # one folder holds all
    with contextlib.suppress(ValueError):
        split = read_parts(folders(depth), "folders")
        depth += 1
    tops = folders(depth)
    inside = np.array([top != "" for top in tops], bool)
    labels = sorted({top for top in tops if top})
    try:
        one = _positive(positive, labels)
    except ValueError as error:
        raise ValueError(
            f"images: without a table of outcomes, there must be a folder for each; {error}"
        ) from None
    paths = pd.Series(names, dtype=object)  # a name need not be Unicode
    table = pd.DataFrame({"path": paths, "y": [float(top == one) for top in tops]})
    if split is not None:
        table["split"] = split
    zero = next(label for label in labels if label != one)
    notes = [f"Read the images of two folders: {one} is outcome 1, {zero} is outcome 0."]
    if not inside.all():
        notes.append(f"{np.sum(~inside):,} images lie in neither folder and are left out.")
    return table[inside].reset_index(drop=True), notes
