"""Which rows train, choose and test, so that no row in one part gives away one in another."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

__all__ = ["PARTS", "connected", "read_parts", "split_rows"]

PARTS = ("train", "val", "test")

FOLDS = 5
"""One fifth of the rows tests, one fifth validates, three fifths train."""

_SPELT = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
    "holdout": "test",
}


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
    n = len(labels[0])
    rows, columns, width = [], [], n
    for values in labels:
        codes, names = pd.factorize(np.asarray(values))
        rows.append(np.arange(n))
        columns.append(width + codes)
        width += len(names)
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(width, width))
    return pd.factorize(connected_components(graph, directed=False)[1][:n])[0]


def read_parts(values, place):
    """Return a user's own division as "train", "val" and "test", however spelt.

    Parameters
    ----------
    values : iterable of str
        The part of each row.
    place : str
        Where they stand, for the message.

    Returns
    -------
    ndarray of str
        The parts.
    """
    text = pd.Series(list(values), dtype="str").str.strip().str.lower()
    parts = text.map(_SPELT)
    if parts.isna().any():
        row = int(np.argmax(parts.isna()))
        raise ValueError(
            f"{place} must hold train, val (or validation) and test; got {list(values)[row]!r}."
        )
    missing = {"train", "test"} - set(parts)
    if missing:
        raise ValueError(f"{place} must hold train and test at least; {min(missing)} is missing.")
    return parts.to_numpy(dtype=object)


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
    """Yield the rows of one fifth after the other."""
    for outcome in (0, 1):
        sets = len(np.unique(together[outcomes == outcome]))
        if sets < FOLDS:
            raise ValueError(
                f"outcomes must have {FOLDS} rows or groups of 0 and of 1 at least, to be divided; "
                f"got {sets} of {outcome}."
            )
    alone = len(np.unique(together)) == len(together)  # much quicker, and exact
    kind = StratifiedKFold if alone else StratifiedGroupKFold
    folds = kind(FOLDS, shuffle=True, random_state=seed)
    return (rows for _, rows in folds.split(outcomes, outcomes, None if alone else together))
