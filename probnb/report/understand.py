"""What the columns of a table are: decided from all of its rows, in memory or by an engine."""

import re

import numpy as np

from ..paths import composed
from ..settings import SCALES, part_names
from ..tables import find_column
from ..text import Named

HELD = {"y": "outcome", "weight": "weight", "p": "probability"}
HELD |= dict.fromkeys(("group", "cluster", "id"), "label") | dict.fromkeys("kn", "number")
"""What the column of a role must hold."""

PLAIN = {"treat all": 1.0, "treat none": 0.0}
"""What needs no model and every column faces in decisions, as predictions."""


def understand(rows, columns, asked):
    """Decide what the columns of a table are, from all of its rows.

    Parameters
    ----------
    rows : probnb.tables.Rows or probnb.scale.Engine
        The table.
    columns
        As in `check_table`.
    asked : probnb.settings.TableSettings
        What is said of it.

    Returns
    -------
    rows : as given
        The rows of the part that is judged.
    roles : dict of str to str
        Columns by role.
    held : dict
        Checked values of the outcomes and of the roles in `HELD`.
    kinds : dict of str to str
        "probability" or "logit", for each column of predictions.
    notes : list of str
        How the table was understood and what was left out.
    """
    notes, scale = [], asked.scale
    roles, named = find_names(rows.names, columns, asked)
    rows = _keep_part(rows, roles.get("split"), asked.part, notes)
    held = {r: rows.column(roles[r], kind) for r, kind in HELD.items() if r in roles}
    if "id" in roles:
        _look_at_ids(rows, roles, held, notes)
    named = _candidates(rows, roles, scale, notes) if named is None else named
    if clash := [name for name in PLAIN if name in named]:
        raise ValueError(f"columns must not be called {clash[0]!r}, which is what they face.")
    if "p" in roles:
        notes.append(f"Column {roles['p']} is taken for the true probability (else set p to None).")
    kinds = _kinds(rows, named, scale, notes)
    if "weight" in roles:
        zeros = rows.look(roles["weight"]).zeros
        left = f"; {zeros:,} have weight 0 and are left out" if zeros else ""
        notes.append(f"Rows are weighted by column {roles['weight']}{left}.")
    return rows, roles, held, kinds, notes


def _keep_part(rows, split, part, notes):
    """Keep the rows of one part of the data, if a column tells the parts."""
    if split is None:
        if part != "test":
            notes.append(f"No column tells which rows are of part {part}: all are taken.")
        return rows
    names = rows.labels(split)
    labels = part_names(part, names)
    if not labels:
        text = f"No row is of part {part} (column {split}), but of {', '.join(names[:8])}"
        notes.append(f"{text}: all rows are judged.")
        return rows
    rows = rows.part(split, labels)
    notes.append(f"Only the {rows.size:,} rows of part {part} are judged (column {split}).")
    return rows


def _kinds(rows, names, scale, notes):
    """Find which columns hold probabilities and which logits; say how they were understood."""
    facts = {name: rows.look(name) for name in names}
    for name in names:
        rows.column(name)  # says where there is no number
    kinds = {name: kind_of(rows, name, facts[name], scale) for name in names}
    held = {k: ", ".join(name for name in names if kinds[name] == k) for k in SCALES[1:3]}
    if scale == "auto" and all(held.values()):
        raise ValueError(
            f"scale: {held['probability']} look like probabilities and {held['logit']} like logits."
            " If that is right, set scale='each'; if not, 'probability' or 'logit'."
        )
    how = "as told" if scale in held else "found by their range"
    notes += [f"{kind.capitalize()} columns ({how}): {of}." for kind, of in held.items() if of]
    for name, found in facts.items():
        moved, certain = found.moved, found.certain
        if kinds[name] == "logit":
            moved, certain = 0, found.saturated
        if moved:
            notes.append(f"Column {name}: {moved} rows outside [0, 1] by rounding count as 0 or 1.")
        if certain:
            notes.append(f"Column {name} is certain (0 or 1) in {certain:,} rows.")
    return kinds


def kind_of(rows, name, found, scale):
    """Whether a column holds probabilities or logits; what is neither for certain is refused."""
    both = found.low < 0 < found.high and found.outside >= 0.2 * rows.size
    if scale == "logit" or (both and scale != "probability"):
        return "logit"
    if not found.outside:
        return "probability"
    value, place = rows.first(name, "outside")
    raise ValueError(
        f"column {name!r} must hold probabilities in [0, 1], or logits; {found.outside:,} of "
        f"{rows.size:,} values are outside [0, 1], the first {value} in {place}. If these are "
        "percentages, divide them by 100; if log probabilities, exp them; to judge logits, set "
        "scale to 'logit'."
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


def find_names(present, columns, asked):
    """Which column has which role, and those of predictions, None where none are named."""
    roles = find_roles(present, asked)
    return roles, None if columns is None else _named_columns(columns, present, roles)


def find_roles(present, asked):
    """Which column has which role; a usual name counts where a column has it and no other role."""
    named = {role: name for role, name in vars(asked).items() if role in (*HELD, "split")}
    usual = [role for role, name in named.items() if role in USUAL and name == role]
    roles = {
        role: find_column(name, present, role)
        for role, name in named.items()
        if role == "y" or (name is not None and role not in usual)
    }
    taken = set(roles.values())
    return roles | {role: role for role in usual if role in present and role not in taken}


def _named_columns(columns, present, roles):
    """The prediction columns that a parameter names."""
    if isinstance(columns, str) and composed(columns) not in present:
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


def _look_at_ids(rows, roles, held, notes):
    """Refuse a long table; rows of one id are a cluster."""
    if (count := rows.distinct(roles["id"])) == rows.size:
        return
    values, taken = rows.size / count, {*roles.values(), *rows.odd}
    for name in [c for c in rows.names if c not in taken and rows.names.count(c) == 1]:
        if (
            values % 1 == 0
            and rows.distinct(name) == values
            and rows.distinct(roles["id"], name) == rows.size
        ):
            raise ValueError(
                f"column {roles['id']!r} repeats: each of {count:,} ids stands once for each of "
                f"{values:g} values of {name!r}. If these are models, give each its own column; if "
                f"not, set id to None and cluster to {roles['id']!r}."
            )
    notes.append(f"Column {roles['id']} repeats: {count:,} ids in {rows.size:,} rows.")
    if "cluster" not in roles:
        roles["cluster"], held["cluster"] = roles["id"], held["id"]
        notes.append(f"Rows of one {roles['id']} are dependent: they are resampled together.")


def _candidates(rows, roles, scale, notes):
    """The columns of numbers that may be predictions; `notes` say what the others are."""
    taken, out, binary = set(roles.values()), [], []
    for name in (c for c in dict.fromkeys(rows.names) if c not in {*taken, *rows.odd}):
        found = rows.look(name)
        if 0 < found.wrong < rows.size / 2:
            rows.column(name)  # numbers were meant: says where there is none
        if found.wrong:
            text = f"Not numeric, and left out: {name}"
            notes.append(Named(f"{text} ({str(rows.first(name)[0])!r}).", f"{text}."))
        elif reason := _not_a_prediction(rows, name, found, taken):
            notes.append(f"Column {name} {reason}: it is left out.")
        elif found.binary == rows.size:
            binary.append(name)
        elif scale == "logit" and found.low >= 0 and not found.broken:
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
        beside = " ".join([f"{', '.join(roles.values())}.{hint}", *rows.notes, *notes])
        raise ValueError(f"no numeric prediction column beside {beside}")
    return out or binary


def _not_a_prediction(rows, name, found, taken):
    """Why a column of numbers is not taken for predictions unless it is named; empty if it is."""
    plain = name.strip().casefold().replace(" ", "_")
    if re.fullmatch(r"unnamed:_\d+|__index_level_\d+__|", plain):
        return "has no name"
    if (base := re.fullmatch(r"(.+)\.\d+", name)) and base[1] in taken:
        return f"repeats {base[1]}"
    for kind, names in _ASIDE.items():
        if plain in names.split():
            again = kind == "ids" and rows.distinct(name, kind="number") < rows.size
            use = "weight" if kind == "weights" else "cluster" if again else ""
            return f"holds {kind}, by its name" + (f"; to use it set {use}={name!r}" if use else "")
    whole = rows.size > 2 and found.low >= 0 and not found.broken
    dense = whole and found.high - found.low < 2 * rows.size
    return "counts the rows" if dense and rows.distinct(name, kind="number") == rows.size else ""
