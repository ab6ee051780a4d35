"""Anybody's predictions, read from a file or a table and checked before any is judged."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

from ..metrics.binning import brier_decomposition
from ..metrics.votes import check_votes
from ..parts import part_names
from ..settings import SCALES
from ..tables import column, find_column
from ..validation import check_choice

ROUNDING = 1e-6
"""A probability so little outside [0, 1] is a rounding error of 32 bits."""


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
    group : ndarray of shape (n,) or None
        Group of each row, for its calibration.
    cluster : ndarray of shape (n,) or None
        Rows of one cluster depend on each other and are resampled together.
    weight : ndarray of shape (n,) or None
        How much each row counts, above 0.
    id : ndarray of shape (n,) or None
        Names of the rows.
    ones, counts : ndarray of shape (n,) or None
        Outcomes 1, and all outcomes, of a row that was observed more than once.
    notes : tuple of str
        What was read, how it was understood and what was left out.
    """

    y: np.ndarray
    predictions: pd.DataFrame
    p: np.ndarray | None = None
    group: np.ndarray | None = None
    cluster: np.ndarray | None = None
    weight: np.ndarray | None = None
    id: np.ndarray | None = None
    ones: np.ndarray | None = None
    counts: np.ndarray | None = None
    notes: tuple = ()

    @property
    def units(self):
        """How many rows, or clusters of them, are independent of each other."""
        return self.size if self.cluster is None else len(pd.unique(self.cluster))

    @property
    def kind(self):
        """What intervals resample."""
        return "rows" if self.cluster is None else "clusters"

    @property
    def size(self):
        """How many rows there are."""
        return len(self.y)

    @property
    def share(self):
        """Share of outcome 1, of the weight where rows have some."""
        return np.average(self.y, weights=self.weight)

    @property
    def groups(self):
        """How many groups there are."""
        return 0 if self.group is None else len(pd.unique(self.group))

    def brier_decomposition(self, name, bins):
        """Return the parts of one column's Brier score."""
        return brier_decomposition(self.y, self.predictions[name], bins, self.weight)

    def drawn(self, bins):
        """Return the arguments of `probnb.plots.reliability_grid`."""
        return {"y_true": self.y, "predictions": self.predictions, "p": self.p, "bins": bins,
                "corp": self.p is None, "weights": self.weight}  # fmt: skip


def check_table(
    frame, columns=None, y="y", p="p", group="group", cluster="cluster", scale="auto",
    weight="weight", id="id", split="split", part="test", k=None, n=None,
):  # fmt: skip
    """Check a table of predictions and turn logits into probabilities.

    Parameters
    ----------
    frame : DataFrame
        One row per case. Its columns' names count as text.
    columns : list of str, or str with commas, optional
        Prediction columns; by default every numeric column without another role, but those that
        count the rows, hold only 0 and 1, or whose names say that they are ids, weights or dates.
    y : str, default="y"
        Column of outcomes, 0 or 1.
    p : str or None, default="p"
        Column of true probabilities; the default is used if present, as are the next five.
    group : str or None, default="group"
        Column of groups.
    cluster : str or None, default="cluster"
        Column of clusters; without one, ids that stand in several rows are clusters.
    scale : {"auto", "probability", "logit", "each"}, default="auto"
        ``"auto"`` takes columns within [0, 1] for probabilities, and columns with values on both
        sides of 0 and at least a fifth outside [0, 1] for logits (log-odds); all must be alike.
        ``"each"`` lets the columns differ.
    weight : str or None, default="weight"
        Column of weights, at least 0, by which rows count in every number.
    id : str or None, default="id"
        Column of the rows' names.
    split : str or None, default="split"
        Column that says to which part of the data a row belongs.
    part : str, default="test"
        The part to judge, "holdout" being one word for "test"; all rows are judged, with a note,
        where no row belongs to it.
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
        If a column is missing or a value is not what it must be (column, place and value are
        named), outcomes are all the same, a column is neither probabilities nor logits, or the
        table is long: each id once for every model.

    Examples
    --------
    >>> frame = pd.DataFrame({"y": [0, 1, 1], "model": [-2.0, 0.0, 3.0]})
    >>> check_table(frame).predictions["model"].round(3).to_list()
    [0.119, 0.5, 0.953]
    """
    check_choice(scale, SCALES, "scale")
    if (k is None) != (n is None):
        raise ValueError(f"k and n must be columns, or both None; got {k!r} and {n!r}.")
    # What is not from `read_table` counts its rows from 0.
    frame = frame if "name" in frame.attrs else frame.reset_index(drop=True)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    notes, present = list(frame.attrs.get("notes", ())), list(frame.columns)
    wanted = {"p": p, "group": group, "cluster": cluster, "weight": weight, "id": id,
              "split": split, "k": k, "n": n}  # fmt: skip
    roles = find_roles(present, y, wanted)
    named = None if columns is None else _named_columns(columns, present, roles)
    frame = _keep_part(frame, roles["split"], part, notes) if "split" in roles else frame
    out = {"y": column(frame, roles["y"], "outcome")}
    for role, kind in (("weight", "weight"), ("p", "probability"), ("group", "label"),
                       ("cluster", "label"), ("id", "label")):  # fmt: skip
        out[role] = column(frame, roles[role], kind) if role in roles else None
    if "k" in roles:
        out["ones"], out["counts"] = column(frame, roles["k"]), column(frame, roles["n"])
        check_votes(out["ones"], out["counts"], (f"column {k!r}", f"column {n!r}"))
    _look_at_ids(frame, roles, out, notes)
    named = _candidates(frame, roles, scale, notes) if named is None else named
    if "p" in roles:
        notes.append(f"Column {roles['p']} is taken for the true probability (else set p to None).")
    predictions = _probabilities(frame, named, scale, notes)
    if out["weight"] is not None:
        keep = out["weight"] > 0
        left = "" if keep.all() else f"; {np.sum(~keep):,} have weight 0 and are left out"
        notes.append(f"Rows are weighted by column {roles['weight']}{left}.")
        out = {role: None if held is None else held[keep] for role, held in out.items()}
        predictions = predictions[keep].reset_index(drop=True)
    if (mean := np.average(out["y"], weights=out["weight"])) in (0, 1):  # to rounding
        only = f"all {len(out['y'])} rows, or all their weight, are {mean:g}"
        raise ValueError(f"column {roles['y']!r} must hold both outcomes; {only}.")
    return PredictionTable(predictions=predictions, notes=tuple(notes), **out)


def _keep_part(frame, split, part, notes):
    """Keep the rows of one part of the data."""
    names = pd.Series(column(frame, split, "label")).astype(str)
    keep = names.isin(part_names(part, names.unique())).to_numpy()
    if not keep.any():
        text = f"No row is of part {part} (column {split}), but of {', '.join(names.unique()[:8])}"
        notes.append(f"{text}: all rows are judged.")
        return frame
    notes.append(f"Only the {keep.sum():,} rows of part {part} are judged (column {split}).")
    return frame[keep]


def _probabilities(frame, names, scale, notes):
    """Bring all prediction columns to probabilities; say how they were understood."""
    kinds = {name: kind_of(frame, name, scale) for name in names}
    held = {k: ", ".join(name for name in names if kinds[name] == k) for k in SCALES[1:3]}
    if scale == "auto" and all(held.values()):
        raise ValueError(
            f"scale: {held['probability']} look like probabilities and {held['logit']} like logits."
            " If that is right, set scale='each'; if not, 'probability' or 'logit'."
        )
    how = "as told" if scale in held else "found by their range"
    notes += [f"{kind.capitalize()} columns ({how}): {of}." for kind, of in held.items() if of]
    out = {}
    for name in names:
        values = column(frame, name)
        out[name] = expit(values) if kinds[name] == "logit" else np.clip(values, 0, 1)
        if moved := sum((out[name] != values) & (kinds[name] == "probability")):
            notes.append(f"Column {name}: {moved} rows outside [0, 1] by rounding count as 0 or 1.")
        if certain := np.isin(out[name], (0, 1)).sum():
            notes.append(f"Column {name} is certain (0 or 1) in {certain:,} rows.")
    return pd.DataFrame(out)


def kind_of(frame, name, scale):
    """Whether a column holds probabilities or logits; what is neither for certain is refused."""
    values = column(frame, name)
    outside = (values < -ROUNDING) | (values > 1 + ROUNDING)
    both = values.min() < 0 < values.max() and outside.mean() >= 0.2
    if scale == "logit" or (both and scale != "probability"):
        return "logit"
    if not outside.any():
        return "probability"
    row = int(np.argmax(outside))
    raise ValueError(
        f"column {name!r} must hold probabilities in [0, 1], or logits; {outside.sum():,} of "
        f"{len(values):,} values are outside [0, 1], the first {values[row].item()!r} in "
        f"{frame.index.name or 'row'} {frame.index[row]}. If these are percentages, divide them by "
        "100; if log probabilities, exp them; to judge logits, set scale to 'logit'."
    )


USUAL = ("p", "group", "cluster", "weight", "id", "split")
"""Roles that a column takes by its name, unless a parameter says otherwise."""

_ASIDE = {  # what a column of numbers holds that is no prediction, by its name
    "ids": "index idx id ids row rows row_id row_number nr no # case case_id patient patient_id "
    "subject subject_id sample_id image_id key uuid seed",
    "weights": "weight weights w wt sample_weight sample_weights sampleweight case_weight",
    "dates or times": "date dates time timestamp datetime year month day hour week season",
    "parts of the data": "split fold folds part partition",
}


def find_roles(present, y, wanted):
    """Which column has which role; a usual name counts where a column has it and no other role."""
    usual = [role for role, name in wanted.items() if role in USUAL and name == role]
    told = {r: name for r, name in wanted.items() if name is not None and r not in usual}
    roles = {role: find_column(name, present, role) for role, name in ({"y": y} | told).items()}
    taken = set(roles.values())
    return roles | {role: role for role in usual if role in present and role not in taken}


def _named_columns(columns, present, roles):
    """The prediction columns that a parameter names."""
    if isinstance(columns, str) and columns not in present:
        columns = [name for name in columns.split(",") if name.strip()]
    elif np.ndim(columns) == 0:
        columns = [columns]
    names = [find_column(name, present, "columns") for name in columns]
    if not names or len({*names, *roles.values()}) < len(names) + len(set(roles.values())):
        raise ValueError(
            f"columns must name each column once, at least one, and none of another role "
            f"({', '.join(roles.values())}); got {columns!r}."
        )
    return names


def _look_at_ids(frame, roles, out, notes):
    """Refuse a long table; rows of one id are a cluster."""
    if out["id"] is None or (count := len(pd.unique(out["id"]))) == len(frame):
        return
    for name in [c for c in frame if frame[c].ndim == 1 and c not in roles.values()]:
        pairs = pd.DataFrame({"id": out["id"], "of": frame[name].map(str).to_numpy()})
        values = pairs["of"].nunique()
        if values > 1 and values * count == len(frame) and not pairs.duplicated().any():
            raise ValueError(
                f"column {roles['id']!r} repeats: each of {count:,} ids stands once for each of "
                f"{values} values of {name!r}. If these are models, give each its own column; if "
                f"not, set id to None and cluster to {roles['id']!r}."
            )
    notes.append(f"Column {roles['id']} repeats: {count:,} ids in {len(frame):,} rows.")
    if out["cluster"] is None:
        out["cluster"] = out["id"]
        notes.append(f"Rows of one {roles['id']} are dependent: they are resampled together.")


def _candidates(frame, roles, scale, notes):
    """The columns of numbers that may be predictions; `notes` say what the others are."""
    taken, out, binary = set(roles.values()), [], []
    for name in (c for c in dict.fromkeys(frame.columns) if c not in taken):
        try:
            values = column(frame, name)
        except ValueError:
            text = frame[name].map(str) if frame[name].ndim == 1 else pd.Series("0")
            if pd.to_numeric(text, errors="coerce").notna().mean() > 0.5:
                raise  # numbers were meant
            notes.append(f"Not numeric, and left out: {name} ({text.iloc[0]!r}).")
            continue
        if reason := _not_a_prediction(name, values, taken):
            notes.append(f"Column {name} {reason}: it is left out.")
        elif np.isin(values, (0, 1)).all():
            binary.append(name)
        elif scale == "logit" and values.min() >= 0 and (values == np.round(values)).all():
            raise ValueError(
                f"column {name!r} holds whole numbers and none below 0, which logits hardly are. "
                "Name the prediction columns in columns."
            )
        else:
            out.append(name)
    left = ": it is left out unless columns names it" if out else ""
    notes += [f"Column {name} holds only 0 and 1, as outcomes do{left}." for name in binary]
    if not out + binary:
        hint = " If 'p' holds predictions, set p to None." if roles.get("p") == "p" else ""
        beside = " ".join([f"{', '.join(roles.values())}.{hint}", *notes])
        raise ValueError(f"no numeric prediction column beside {beside}")
    return out or binary


def _not_a_prediction(name, values, taken):
    """Why a column of numbers is not taken for predictions unless it is named; empty if it is."""
    plain = name.strip().casefold().replace(" ", "_")
    if re.fullmatch(r"unnamed:_\d+|__index_level_\d+__|", plain):
        return "has no name"
    if (base := re.fullmatch(r"(.+)\.\d+", name)) and base[1] in taken:
        return f"repeats {base[1]}"
    for kind, names in _ASIDE.items():
        if plain in names.split():
            again = kind == "ids" and len(np.unique(values)) < len(values)
            use = "weight" if kind == "weights" else "cluster" if again else ""
            return f"holds {kind}, by its name" + (f"; to use it set {use}={name!r}" if use else "")
    whole = len(values) > 2 and values.min() >= 0 and np.array_equal(values, np.round(values))
    dense = whole and np.ptp(values) < 2 * len(values) and len(np.unique(values)) == len(values)
    return "counts the rows" if dense else ""
