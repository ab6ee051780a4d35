"""Anybody's predictions, read from a CSV or Parquet file and checked before any is judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
from scipy.special import expit

from ..validation import check_choice, check_outcomes, check_probabilities

__all__ = ["PredictionTable", "check_table", "read_predictions"]

LARGEST = 20
"""Groups that a report shows at most."""

SCALES = ("auto", "probability", "logit", "each")


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """Outcomes and predictions of the same rows, ready to judge.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Outcomes, 0.0 and 1.0.
    predictions : DataFrame of shape (n, methods)
        Predicted probabilities of outcome 1.
    p : ndarray of shape (n,) or None
        True probabilities.
    group : Series of shape (n,) or None
        Group of each row, for its calibration.
    cluster : Series of shape (n,) or None
        Rows of one cluster depend on each other and are resampled together.
    notes : tuple of str
        What was read, how it was understood and what was left out.
    """

    y: np.ndarray
    predictions: pd.DataFrame
    p: np.ndarray | None = None
    group: pd.Series | None = None
    cluster: pd.Series | None = None
    notes: tuple = ()


def read_predictions(path, columns=None, y="y", p="p", group="group", cluster=None, scale="auto"):
    """Read a file of predictions.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` (also compressed) or ``.parquet`` file. A relative path is looked up from the
        working directory and, where that is a folder named ``book``, from the folder above too.
    columns : list of str, or str with commas, optional
        Prediction columns; by default every numeric column without another role.
    y, p, group, cluster : str, optional
        Columns of the outcomes, true probabilities, groups and clusters; see `check_table`.
    scale : {"auto", "probability", "logit", "each"}, default="auto"
        What the prediction columns hold; see `check_table`.

    Returns
    -------
    PredictionTable
        The checked rows.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names the places that were tried.
    ValueError
        If the file is of another kind, or its contents fail the checks of `check_table`.
    """
    path = _find(path)
    is_parquet = path.suffix == ".parquet"
    if is_parquet:
        present = pyarrow.parquet.read_schema(path).names
    elif ".csv" in path.suffixes:
        present = list(pd.read_csv(path, nrows=0).columns)
    else:
        raise ValueError(f"predictions must be a .csv or .parquet file; got {path.name!r}.")
    wanted = None
    if columns is not None:  # the others need not be read
        columns = _names(columns)
        wanted = [c for c in present if c in {*columns, y, p, group, cluster}]
    frame = (
        pd.read_parquet(path, columns=wanted) if is_parquet else pd.read_csv(path, usecols=wanted)
    )
    if columns is not None:
        for name in columns:
            _require(name, present, "columns")
    table = check_table(frame, columns, y, p, group, cluster, scale)
    return PredictionTable(
        **{**vars(table), "notes": (f"Read {len(frame):,} rows of {path.name}.", *table.notes)}
    )


def check_table(frame, columns=None, y="y", p="p", group="group", cluster=None, scale="auto"):
    """Check a table of predictions and turn logits into probabilities.

    Parameters
    ----------
    frame : DataFrame
        One row per case.
    columns : list of str, or str with commas, optional
        Prediction columns; by default every numeric column without another role.
    y : str, default="y"
        Column of outcomes, 0 or 1.
    p : str or None, default="p"
        Column of true probabilities; the default is used if present.
    group : str or None, default="group"
        Column of groups; the default is used if present.
    cluster : str, optional
        Column of clusters.
    scale : {"auto", "probability", "logit", "each"}, default="auto"
        ``"auto"`` takes columns within [0, 1] for probabilities, and columns with negative
        values and at least a fifth of all values outside [0, 1] for logits (log-odds); all must
        be alike. ``"each"`` lets the columns differ.

    Returns
    -------
    PredictionTable
        The checked rows; none is dropped.

    Raises
    ------
    ValueError
        If a column is missing, a value is missing or infinite (the rows are named), outcomes are
        not 0 and 1 or are all the same, or a column is neither probabilities nor logits.

    Examples
    --------
    >>> frame = pd.DataFrame({"y": [0, 1, 1], "model": [-2.0, 0.0, 3.0]})
    >>> table = check_table(frame)
    >>> table.predictions["model"].round(3).to_list()
    [0.119, 0.5, 0.953]
    >>> table.notes
    ('Column model holds logits (found by their range).',)
    """
    check_choice(scale, SCALES, "scale")
    present = list(frame.columns)
    _require(y, present, "y")
    p, group = (name if name in present or name != usual else None
                for name, usual in ((p, "p"), (group, "group")))  # fmt: skip
    roles = {"p": p, "group": group, "cluster": cluster}
    roles = {role: name for role, name in roles.items() if name is not None}
    for role, name in roles.items():
        _require(name, present, role)
    notes, taken = [], {y, *roles.values()}
    if columns is None:
        columns = [c for c in present if c not in taken and _is_numeric(frame[c])]
        left = [str(c) for c in present if c not in taken and c not in columns]
        if left:
            notes.append(f"Not numeric, and left out: {', '.join(left)}.")
        if not columns:
            hint = f" If {p!r} holds predictions, set p to None." if p in present else ""
            roles_of = ", ".join(map(str, taken))
            raise ValueError(f"no numeric prediction column beside {roles_of}.{hint}")
    columns = _names(columns)
    for name in columns:
        _require(name, present, "columns")
        if name in taken:
            raise ValueError(f"columns must differ from the other roles; got {name!r} twice.")
        if not _is_numeric(frame[name]):
            raise ValueError(f"column {name!r} must be numeric; got {frame[name].iloc[0]!r}.")
    for name in (y, *columns, *roles.values()):
        _refuse_rows(frame[name].isna(), name, "is missing")
    outcomes = check_outcomes(frame[y], f"column {y!r}")
    if outcomes.min() == outcomes.max():
        raise ValueError(
            f"column {y!r} must hold both outcomes; all {len(outcomes)} rows are {outcomes[0]:g}."
        )
    predictions, scale_notes = _probabilities(frame[columns], scale)
    if group is not None and (groups := frame[group].nunique()) > LARGEST:
        notes.append(f"Of {groups:,} groups, the report shows the {LARGEST} largest.")
    return PredictionTable(
        y=outcomes,
        predictions=predictions,
        p=None if p is None else check_probabilities(frame[p], f"column {p!r}"),
        group=None if group is None else frame[group],
        cluster=None if cluster is None else frame[cluster],
        notes=(*notes, *scale_notes),
    )


def _find(path):
    path = Path(path).expanduser()
    tried = [path] if path.is_absolute() or Path.cwd().name != "book" else [path, ".." / path]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    places = " and ".join(str(candidate.resolve()) for candidate in tried)
    raise FileNotFoundError(f"predictions must name a file; found none at {places}.")


def _names(columns):
    if isinstance(columns, str):
        columns = [name.strip() for name in columns.split(",")]
    return list(columns)


def _require(name, present, role):
    if name not in present:
        check_choice(name, present, f"{role}: the column")


def _is_numeric(column):
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _refuse_rows(wrong, name, what):
    """Raise with the numbers of the first wrong rows, counted from 0 without a header."""
    rows = np.flatnonzero(wrong)
    if len(rows):
        shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        raise ValueError(
            f"column {name!r} {what} in {len(rows)} row{'s' if len(rows) > 1 else ''}: {shown} "
            "(counted from 0). No row is dropped in silence: mend or remove them first."
        )


def _probabilities(frame, scale):
    """Bring all prediction columns to probabilities; say how they were understood."""
    for name in frame:
        _refuse_rows(np.isinf(frame[name].to_numpy(float)), name, "is infinite")
    kinds = {name: _kind(frame[name].to_numpy(float), name, scale) for name in frame}
    logits = [name for name in frame if kinds[name] == "logit"]
    others = [name for name in frame if kinds[name] == "probability"]
    if scale == "auto" and logits and others:
        raise ValueError(
            f"scale: {', '.join(others)} look like probabilities and {', '.join(logits)} like "
            "logits. If that is right, set scale='each'; if not, 'probability' or 'logit'."
        )
    out = {
        name: expit(frame[name].to_numpy(float)) if name in logits else
        check_probabilities(frame[name], f"column {name!r}") for name in frame
    }  # fmt: skip
    how = "as told" if scale in ("probability", "logit") else "found by their range"
    notes = [
        f"Column{'s' * (len(names) > 1)} {', '.join(map(str, names))} hold"
        f"{'s' * (len(names) == 1)} {kind} ({how})."
        for names, kind in ((others, "probabilities"), (logits, "logits"))
        if names
    ]
    for name, values in out.items():
        if certain := int(np.sum((values == 0) | (values == 1))):
            notes.append(
                f"Column {name} is certain (0 or 1) in {certain:,} rows; in logarithms these "
                "count as 2.2e-16 and 1 - 2.2e-16."
            )
    return pd.DataFrame(out), notes


def _kind(values, name, scale):
    if scale in ("probability", "logit"):
        return scale
    outside = (values < 0) | (values > 1)
    if not outside.any():
        return "probability"
    if values.min() < 0 and outside.mean() >= 0.2:
        return "logit"
    row = int(np.argmax(outside))
    raise ValueError(
        f"column {name!r} has {int(outside.sum())} of {len(values)} values outside [0, 1], the "
        f"first {values[row]:g} in row {row}: too many for probabilities, and unlike logits. Set "
        "scale to 'probability' or 'logit', or name the prediction columns in columns."
    )
