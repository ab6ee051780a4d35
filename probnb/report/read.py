"""Anybody's predictions, read from a file or a table and checked before any is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..notebook import find_path
from ..validation import check_choice
from .columns import Columns
from .example import draw_example
from .files import Source, read_file
from .numbers import plain_objects
from .roles import find_column, find_roles, refuse_repeated

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
    weight : ndarray of shape (n,) or None
        How much each row counts, above 0.
    id : Series of shape (n,) or None
        Names of the rows.
    ones, counts : ndarray of shape (n,) or None
        Outcomes 1, and all outcomes, of a row that was observed more than once.
    """

    y: np.ndarray
    predictions: pd.DataFrame
    p: np.ndarray | None = None
    group: pd.Series | None = None
    cluster: pd.Series | None = None
    notes: tuple = ()
    weight: np.ndarray | None = None
    id: pd.Series | None = None
    ones: np.ndarray | None = None
    counts: np.ndarray | None = None


def read_predictions(
    path=None, columns=None, y="y", p="p", group="group", cluster=None, scale="auto",
    weight="weight", id="id", split="split", part="test", k=None, n=None,
):  # fmt: skip
    """Read a file of predictions.

    Parameters
    ----------
    path : str or Path, optional
        A file of text with separated columns, in any usual encoding and compression, or a Parquet
        file or folder; by default the example of `probnb.report.example` is drawn. A relative
        path follows the rule of `probnb.notebook.find_path`.
    columns : list of str, or str with commas, optional
        Prediction columns; by default every numeric column that may be one.
    y, p, group, cluster : str or None
        Columns of the other roles; see `check_table`.
    scale : {"auto", "probability", "logit", "each"}, default="auto"
        What the prediction columns hold; see `check_table`.
    weight, id, split : str or None
        Columns of further roles; see `check_table`.
    part : str, default="test"
        The part of the data to judge; see `check_table`.
    k, n : str, optional
        Columns of repeated outcomes; see `check_table`.

    Returns
    -------
    PredictionTable
        The checked rows.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names the places that were tried.
    ValueError
        If the file cannot be read, or its contents fail the checks of `check_table`; the message
        names the file, the column, the cell and the remedy.
    """
    roles = {"y": y, "p": p, "group": group, "cluster": cluster, "weight": weight, "id": id,
             "split": split, "k": k, "n": n}  # fmt: skip
    if path is None:
        return check_table(draw_example(), columns, scale=scale, part=part, **roles)

    def used(present):
        if columns is None:
            return present
        names = {*_columns(columns, present), *find_roles(present, **roles).values()}
        return [name for name in present if name in names]

    path = find_path(path, "predictions")
    frame, source = read_file(path, used)
    if not len(frame):
        raise ValueError(f"{path.name} has a header ({', '.join(frame)}) but no rows.")
    try:
        table = check_table(frame, columns, scale=scale, part=part, source=source, **roles)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    rows = f"Read {len(frame):,} rows of {path.name}."
    return replace(table, notes=(rows, *source.notes, *table.notes))


def check_table(
    frame, columns=None, y="y", p="p", group="group", cluster=None, scale="auto",
    weight="weight", id="id", split="split", part="test", source=None,
    k=None, n=None,
):  # fmt: skip
    """Check a table of predictions and turn logits into probabilities.

    Parameters
    ----------
    frame : DataFrame
        One row per case. Its columns' names count as text.
    columns : list of str, or str with commas, optional
        Prediction columns; by default every numeric column without another role, but those that
        count the rows or whose names say that they are ids, weights or dates.
    y : str, default="y"
        Column of outcomes, 0 or 1.
    p : str or None, default="p"
        Column of true probabilities; the default is used if present, as are the next four.
    group : str or None, default="group"
        Column of groups.
    cluster : str, optional
        Column of clusters.
    scale : {"auto", "probability", "logit", "each"}, default="auto"
        ``"auto"`` takes columns within [0, 1] for probabilities, and columns with negative
        values and at least a fifth of all values outside [0, 1] for logits (log-odds); all must
        be alike. ``"each"`` lets the columns differ.
    weight : str or None, default="weight"
        Column of weights, at least 0, by which rows count in every number.
    id : str or None, default="id"
        Column of the rows' names, which are not predictions.
    split : str or None, default="split"
        Column that says to which part of the data a row belongs.
    part : str, default="test"
        The part to judge; all rows are, with a note, where no row belongs to it.
    source : probnb.report.files.Source, optional
        How messages count the rows; by default from 0.
    k, n : str, optional
        Columns of repeated outcomes, k ones of n in all (n at least 2), which the predictions
        have not seen. They stand in place of `p`: the distance from it is then estimated.

    Returns
    -------
    PredictionTable
        The checked rows; none is dropped but those of other parts and of weight 0, with a note.

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
    source = Source() if source is None else source
    present = [str(name) for name in frame.columns]
    frame = frame.set_axis(range(len(present)), axis=1).reset_index(drop=True)
    frame = frame.apply(plain_objects).set_axis(present, axis=1)
    if (k is None) != (n is None):
        raise ValueError(f"k and n must be columns, or both None; got {k!r} and {n!r}.")
    roles = find_roles(present, y, p=p, group=group, cluster=cluster, weight=weight, id=id,
                       split=split, k=k, n=n)  # fmt: skip
    named = None if columns is None else _columns(columns, present)
    for name in named or ():
        if role := next((role for role, taken in roles.items() if taken == name), None):
            raise ValueError(
                f"columns must differ from the other roles; got {name!r} twice, as {role} too."
                + (f" If it holds predictions, set {role} to None." if role != "y" else "")
            )
    used = {*roles.values(), *(present if named is None else named)}
    refuse_repeated(present, used, source.name or "the table")
    frame, source, notes = _keep_part(frame, source, roles.get("split"), part)
    reader = Columns(frame, source, [n for n in used if n not in _labels(roles)])
    outcomes = reader.outcomes(roles["y"])
    weights = reader.weights(roles["weight"]) if "weight" in roles else None
    named = reader.candidates(present, roles, scale, notes) if named is None else named
    predictions = reader.predictions(named, scale, notes)
    truth = reader.probabilities(roles["p"], notes) if "p" in roles else None
    labels = {role: reader.labels(name) for role, name in roles.items()
              if role in ("group", "cluster", "id")}  # fmt: skip
    ones, counts = reader.votes(roles["k"], roles["n"]) if "k" in roles else (None, None)
    notes += reader.notes
    table = PredictionTable(
        outcomes, predictions, truth, weight=weights, ones=ones, counts=counts, **labels
    )
    table = _count_only_weighted(table, roles, notes)
    if table.y.min() == table.y.max():
        raise ValueError(
            f"column {roles['y']!r} must hold both outcomes; all {len(table.y)} rows are "
            f"{table.y[0]:g}."
        )
    if table.group is not None and (groups := table.group.nunique()) > LARGEST:
        notes.insert(0, f"Of {groups:,} groups, the report shows the {LARGEST} largest.")
    return replace(table, notes=tuple(notes))


def _columns(columns, present):
    """The prediction columns that a parameter names."""
    if isinstance(columns, str) and columns not in present:
        columns = [name for name in columns.split(",") if name.strip()]
    elif isinstance(columns, str | int | float):
        columns = [columns]
    try:
        names = [find_column(name, present, "columns") for name in columns]
    except TypeError:
        raise ValueError(f"columns must name columns; got {columns!r}.") from None
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns must name each column once, and at least one; got {columns!r}.")
    return names


def _labels(roles):
    return {name for role, name in roles.items() if role in ("group", "cluster", "id", "split")}


def _keep_part(frame, source, split, part):
    """Keep the rows of one part of the data, if a column tells the parts."""
    if split is None:
        return frame, source, []
    names = frame[split].astype("str").str.strip()
    keep = (names.str.casefold() == str(part).casefold()).fillna(False).to_numpy(bool)
    if not keep.any():
        found = ", ".join(names.fillna("missing").unique()[:5])
        note = f"No row is of part {part} (column {split} has {found}): all rows are judged."
        return frame, source, [note]
    note = f"Only the {keep.sum():,} rows of part {part} are judged (column {split})."
    kept = frame[keep].reset_index(drop=True)
    return kept, replace(source, rows=np.flatnonzero(keep)), [note]


def _count_only_weighted(table, roles, notes):
    """Leave out rows of weight 0, which count in nothing."""
    if table.weight is None:
        return table
    keep = table.weight > 0
    notes.append(f"Rows are weighted by column {roles['weight']}.")
    if keep.all():
        return table
    notes.append(f"{np.count_nonzero(~keep):,} rows have weight 0 and are left out.")
    rows = {name: value[keep] for name, value in vars(table).items()
            if name != "notes" and value is not None}  # fmt: skip
    tidy = {name: value.reset_index(drop=True) if hasattr(value, "reset_index") else value
            for name, value in rows.items()}  # fmt: skip
    return replace(table, **tidy)
