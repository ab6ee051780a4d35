"""Which column is what: names as people write them, and columns that are no predictions."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from ..validation import check_choice

__all__ = ["USUAL", "aside", "find_column", "find_roles", "refuse_repeated"]

USUAL = {"p": "p", "group": "group", "weight": "weight", "id": "id", "split": "split"}
"""Roles that a column takes by its name, unless a parameter says otherwise."""

_IDS = {"index", "idx", "id", "ids", "row", "rows", "row_id", "rowid", "row_number", "rownames",
        "nr", "no", "#", "case", "case_id", "patient", "patient_id", "subject", "subject_id",
        "sample_id", "image_id", "key", "uuid", "level_0", "seed"}  # fmt: skip
_WEIGHTS = {"weight", "weights", "w", "wt", "sample_weight", "sample_weights", "sampleweight",
            "case_weight", "importance_weight"}  # fmt: skip
_DATES = {"date", "dates", "time", "timestamp", "datetime", "year", "month", "day", "hour", "week",
          "season"}  # fmt: skip
_SPLITS = {"split", "fold", "folds", "part", "partition"}


def find_column(name, present, role):
    """The column that a parameter names, by its text; an error names the nearest.

    Parameters
    ----------
    name : str or int
        What the parameter holds: a name of digits arrives as a number.
    present : list of str
        The table's columns.
    role : str
        The parameter, for the message.
    """
    text = str(name).strip()
    if str(name) in present:
        return str(name)
    if text in present:
        return text
    folded = [column for column in present if column.casefold() == text.casefold()]
    if folded:
        raise ValueError(
            f"{role}: the column must be one of {', '.join(present)}; got {name!r}. Did you mean "
            f"{folded[0]!r}?"
        )
    if all(re.fullmatch(r"[-+\d.,e]+", column) for column in present):
        raise ValueError(
            f"{role}: no column {name!r}; the first line must name the columns, and it holds "
            f"numbers ({', '.join(present[:5])})."
        )
    return check_choice(name, present, f"{role}: the column")


def find_roles(present, y, **roles):
    """Which column has which role; a usual name counts where a column has it.

    Parameters
    ----------
    present : list of str
        The table's columns.
    y : str or int
        The column of outcomes.
    **roles
        The columns of the other roles; None for one that no column has.

    Returns
    -------
    dict of str to str
        Columns by role, ``y`` among them.
    """
    named = {role: name for role, name in roles.items() if name is not None}
    usual = {role: name for role, name in named.items() if name == USUAL.get(role)}
    out = {"y": find_column(y, present, "y")}
    for role, name in named.items():
        if role not in usual:
            out[role] = find_column(name, present, role)
    taken = set(out.values())
    for role, name in usual.items():
        if name in present and name not in taken:
            out[role] = name
    return out


def refuse_repeated(present, used, place):
    """Raise if a column in use stands twice.

    Parameters
    ----------
    present, used : iterable of str
        The table's columns, and those that matter.
    place : str
        The table's name, for the message.
    """
    for name, count in Counter(present).items():
        if count > 1 and name in used:
            where = " and ".join(str(k + 1) for k, other in enumerate(present) if other == name)
            often = "twice" if count == 2 else f"{count} times"
            raise ValueError(
                f"column {name!r} stands {often} in {place} (columns {where}); rename or remove "
                "all but one."
            )


def aside(name, values, taken):
    """Why a column of numbers is not taken for predictions unless it is named; empty if it is.

    Parameters
    ----------
    name : str
        The column.
    values : ndarray of shape (n,)
        Its numbers.
    taken : collection of str
        Columns that have a role.
    """
    plain = name.strip().casefold().replace(" ", "_")
    base = re.fullmatch(r"(.+)\.\d+", name)
    if re.fullmatch(r"unnamed: \d+|__index_level_\d+__|", name.strip().casefold()):
        return "has no name"
    if base and base[1] in taken:
        return f"repeats {base[1]}"
    if plain in _WEIGHTS:
        return f"holds weights, by its name; set weight={name!r} to use them"
    for kind, names in (("ids", _IDS), ("dates or times", _DATES), ("parts of the data", _SPLITS)):
        if plain in names:
            return f"holds {kind}, by its name"
    return "counts the rows" if _counts(values) else ""


def _counts(values):
    """Whether the numbers are whole, all different and lie close together, as rows' numbers do."""
    if len(values) < 3 or not np.array_equal(values, np.round(values)):
        return False
    dense = np.ptp(values) < 2 * len(values)
    return values.min() >= 0 and dense and len(np.unique(values)) == len(values)
