"""Which column of a table of predictions is what: by its name, or by what it holds."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from ..tables import column, find_column

__all__ = ["candidates", "find_roles", "look_at_ids", "named_columns"]

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
    roles = {"y": find_column(y, present, "y")}
    usual = [role for role, name in wanted.items() if role in USUAL and name == role]
    for role, name in wanted.items():
        if name is not None and role not in usual:
            roles[role] = find_column(name, present, role)
    taken = set(roles.values())
    return roles | {role: role for role in usual if role in present and role not in taken}


def named_columns(columns, present, roles):
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
    for role, name in roles.items():
        if name in names:
            hint = f" If it holds predictions, set {role} to None." if role != "y" else ""
            raise ValueError(f"columns must differ from {role}, which is {name!r} too.{hint}")
    return names


def look_at_ids(frame, roles, out, notes):
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


def candidates(frame, roles, scale, notes):
    """The columns of numbers that may be predictions; `notes` say what the others are."""
    taken, out, binary, aside = set(roles.values()), [], [], []
    for name in (c for c in dict.fromkeys(frame.columns) if c not in taken):
        try:
            values = column(frame, name)
        except ValueError:
            text = frame[name].map(str) if frame[name].ndim == 1 else pd.Series("0")
            if pd.to_numeric(text, errors="coerce").notna().mean() > 0.5:
                raise  # numbers were meant
            aside.append(f"Not numeric, and left out: {name} ({text.iloc[0]!r}).")
            continue
        if reason := _not_a_prediction(name, values, taken):
            aside.append(f"Column {name} {reason}: it is left out.")
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
    aside += [f"Column {name} holds only 0 and 1, as outcomes do{left}." for name in binary]
    if not out + binary:
        hint = " If 'p' holds predictions, set p to None." if roles.get("p") == "p" else ""
        raise ValueError(
            f"no numeric prediction column beside {', '.join(roles.values())}.{hint}"
            + "".join(f" {reason}" for reason in aside)
        )
    notes += aside
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
