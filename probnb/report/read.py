"""Anybody's predictions, read from where they are and checked before any is judged.

A file is one that memory holds, or files that an engine reads. Of the latter all rows are judged;
what an engine has no quick answer to (slopes, gains, parts) is that of a sample, which is said.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

from ..metrics.binning import brier_decomposition
from ..metrics.sample import check_row_weights
from ..metrics.votes import check_votes
from ..paths import composed, find_path
from ..settings import SCALES, TableSettings, check_engine, part_names
from ..tables import Rows, find_column, one_outcome, read_table
from ..text import Named
from ..validation import check_integer
from . import judge

HELD = {"y": "outcome", "weight": "weight", "p": "probability"}
HELD |= dict.fromkeys(("group", "cluster", "id"), "label") | dict.fromkeys("kn", "number")
"""What the column of a role must hold."""

PLAIN = {"treat all": 1.0, "treat none": 0.0}
"""What needs no model and every column faces in decisions, as predictions."""

USUAL = ("p", "group", "cluster", "weight", "id", "split")
"""Roles that a column takes by its name, unless a parameter says otherwise."""

_ASIDE = {  # what a column of numbers holds that is no prediction, by its name
    "ids": "index idx id ids row rows row_id row_number nr no # case case_id patient patient_id "
    "subject subject_id sample_id image_id key uuid seed",
    "weights": "weight weights w wt sample_weight sample_weights sampleweight case_weight",
    "dates or times": "date dates time timestamp datetime year month day hour week season",
    "parts of the data": "split fold folds part partition",
}


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
    logits : tuple of str
        Which columns of predictions were logits.
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
    logits: tuple = ()
    notes: tuple = ()

    sample = property(lambda self: self, doc="The rows that memory holds: all.")
    size = property(lambda self: len(self.y), doc="How many rows there are.")

    @property
    def units(self):
        """How many rows, or clusters of them, are independent of each other."""
        return self.size if self.cluster is None else len(pd.unique(self.cluster))

    @property
    def kind(self):
        """What intervals resample."""
        return "rows" if self.cluster is None else "clusters"

    @property
    def share(self):
        """Share of outcome 1, of the weight where rows have some."""
        return np.average(self.y, weights=self.weight)

    @property
    def groups(self):
        """How many groups there are."""
        return 0 if self.group is None else len(pd.unique(self.group))

    @property
    def mass(self):
        """Weights of all rows, scaled so that their squares stay finite and above 0."""
        weights = check_row_weights(self.weight, self.size)[1]
        return np.ones(self.size) if weights is None else weights

    def brier_decomposition(self, name, bins):
        """Return the parts of one column's Brier score."""
        return brier_decomposition(self.y, self.predictions[name], bins, self.weight)

    def by_group(self, largest):
        """Return the weighted sums of the largest groups, by group and by row or cluster."""
        w, names = self.mass, [f"p{k}" for k in range(len(self.predictions.columns))]
        sums = self.predictions.set_axis(names, axis=1).mul(w, axis=0)
        sums = sums.assign(rows=1, mass=w, ww=w * w, ones=w * self.y, group=self.group)
        sums["unit"] = np.arange(self.size) if self.cluster is None else self.cluster
        kept = sums["group"].value_counts().sort_index()
        kept = kept.sort_values(ascending=False, kind="stable").index[:largest]
        found = sums[sums["group"].isin(kept)].groupby(["group", "unit"], sort=False).sum()
        return {group: found.loc[group] for group in kept}

    def drawn(self, bins):
        """Return the arguments of `probnb.plots.reliability_grid`."""
        how = {"bins": bins, "corp": self.p is None, "weights": self.weight}
        return {"y_true": self.y, "predictions": self.predictions, "p": self.p, **how}


def check_table(frame, columns=None, **settings):
    """Check a table of predictions and turn logits into probabilities.

    Parameters
    ----------
    frame : DataFrame
        One row per case. Its columns' names count as text.
    columns : list of str, or str with commas, optional
        Prediction columns; by default every numeric column without another role, but those that
        count the rows, hold only 0 and 1, or whose names say that they are ids, weights or dates.
    **settings
        The fields of `probnb.settings.TableSettings`: which column has which role (``y``, ``p``,
        ``group``, ``cluster``, ``weight``, ``id``, ``split``, ``k``, ``n``), the ``part`` to judge
        and the ``scale`` of the predictions.

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
    # What is not from `read_table` counts its rows from 0.
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame must be a DataFrame of pandas; got {type(frame).__name__}.")
    if not len(frame):
        raise ValueError(f"frame must have at least one row; its columns {[*frame]} have none.")
    frame = frame if "name" in frame.attrs else frame.reset_index(drop=True)
    rows = Rows(frame.set_axis([*map(composed, frame.columns)], axis=1))
    rows, roles, out, kinds, notes = _understand(rows, columns, TableSettings(**settings))
    if "k" in roles:
        out["ones"], out["counts"] = out.pop("k"), out.pop("n")
        check_votes(out["ones"], out["counts"], [f"column {roles[role]!r}" for role in "kn"])
    scaled = {"logit": expit, "probability": lambda x: np.clip(x, 0, 1)}
    predictions = pd.DataFrame({c: scaled[kind](rows.column(c)) for c, kind in kinds.items()})
    if "weight" in out:
        keep = out["weight"] > 0
        out = {role: held[keep] for role, held in out.items()}
        predictions = predictions[keep].reset_index(drop=True)
    if (mean := np.average(out["y"], weights=out.get("weight"))) in (0, 1):  # to rounding
        raise one_outcome(roles["y"], len(out["y"]), mean)
    logits = tuple(name for name in kinds if kinds[name] == "logit")
    return PredictionTable(predictions=predictions, logits=logits, notes=tuple(notes), **out)


def read_predictions(
    path=None, columns=None, engine=None, memory="2GB", exact_auc=True, **settings
):
    """Read a file of predictions.

    Parameters
    ----------
    path : path-like, optional
        A file that `probnb.tables.read_table` reads; by default the example of
        `draw_example`. A relative path follows `probnb.paths.find_path`.
    columns : list of str, or str with commas, optional
        Prediction columns; by default every numeric column that may be one.
    engine : str, optional
        Leave the rows where they are and let an engine read them: ``duckdb``, or the master of a
        Spark, such as ``local[2]``. `path` may then be a folder or a glob, of CSV or Parquet.
    memory : str, default="2GB"
        What an engine may take.
    exact_auc : bool, default=True
        As in `probnb.scale.DataSet`, for an engine.
    **settings
        As in `check_table`.

    Returns
    -------
    PredictionTable or probnb.scale.DataSet
        The checked rows, the latter with an engine.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names the places that were tried.
    ValueError
        If the file cannot be read, or its contents fail the checks of `check_table`.
    """
    check_engine(engine, memory, exact_auc)
    asked = TableSettings(**settings)  # before anything is read
    if engine is not None:
        return _open_predictions(path, columns, engine, memory, exact_auc, asked)
    frame = draw_example() if path is None else read_table(find_path(path, "predictions"))
    return check_table(frame, columns, **settings)


def _open_predictions(path, columns, engine, memory, exact_auc, asked):
    """Open predictions of any size; all that decides how they are understood is asked of all rows.

    Of the data set the ``sample`` is a `PredictionTable`.
    """
    from ..scale import DataSet, open_rows  # here, since engines are an extra

    if path is None:
        raise ValueError(f"path must be given with an engine; got engine={engine!r} without one.")
    if asked.k is not None:
        raise ValueError(f"k and n must be None with an engine; got {asked.k!r} and {asked.n!r}.")
    opened = open_rows(path, engine, memory, lambda names: _find_names(names, columns, asked))
    rows, roles, _, kinds, notes = _understand(opened, columns, asked)
    logits = tuple(c for c in kinds if kinds[c] == "logit")
    roles = {role: roles.get(role) for role in ("y", "p", "group", "cluster", "weight")}
    data = DataSet(rows, [*kinds], logits=logits, exact_auc=exact_auc, **roles)
    held = data.draw(judge.FIT_ROWS)
    if len(held) < data.size:
        of = f"of a sample of {len(held):,} rows"
        notes.insert(len(opened.notes), f"Slopes, gains, parts and decisions are those {of}.")
    data.notes = tuple(notes)
    predictions = held[[f"p{k}" for k in range(len(data.names))]].set_axis(data.names, axis=1)
    held = held.rename(columns={"truth": "p", "w": "weight"})
    about = {c: held[c].to_numpy() for c in (*roles,) if c in held}
    data.sample = PredictionTable(predictions=predictions, logits=logits, notes=data.notes, **about)
    return data


def _understand(rows, columns, asked):
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
    notes, scale = [*rows.notes], asked.scale
    roles, named = _find_names(rows.names, columns, asked)
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
    kinds = {name: _kind_of(rows, name, facts[name], scale) for name in names}
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


def _kind_of(rows, name, found, scale):
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


def _find_names(present, columns, asked):
    """Which column has which role, and those of predictions, None where none are named.

    A usual name counts where a column has it and no other role.
    """
    named = {role: name for role, name in vars(asked).items() if role in (*HELD, "split")}
    usual = [role for role, name in named.items() if role in USUAL and name == role]
    roles = {
        role: find_column(name, present, role)
        for role, name in named.items()
        if role == "y" or (name is not None and role not in usual)
    }
    taken = set(roles.values())
    roles |= {role: role for role in usual if role in present and role not in taken}
    return roles, None if columns is None else _named_columns(columns, present, roles)


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
        beside = " ".join([f"{', '.join(roles.values())}.{hint}", *notes])
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


def draw_example(n=3000, seed=0):
    """Draw predictions of three models whose faults are known, with the truth beside them.

    Parameters
    ----------
    n : int, default=3000
        Number of rows.
    seed : int, default=0
        Seed; the same seed draws the same rows.

    Returns
    -------
    DataFrame of shape (n, 6)
        Outcomes ``y``, true probabilities ``p``, ``group`` (north or south), and three models:
        ``careful`` knows the truth but for a little noise, ``overconfident`` has the same logits
        twice as large, ``noisy`` has more noise, and is 0.7 too high (in log-odds) in the south.

    Raises
    ------
    ValueError
        If `n` is not a positive integer.

    Examples
    --------
    >>> list(draw_example(10))
    ['y', 'p', 'group', 'careful', 'overconfident', 'noisy']
    """
    rng = np.random.default_rng(seed)
    s = rng.normal(-0.6, 1.1, check_integer(n, "n"))
    south = rng.random(n) < 0.3
    careful = s + rng.normal(0, 0.15, n)
    noisy = s + rng.normal(0, 0.8, n) + 0.7 * south
    logits = {"p": s, "careful": careful, "overconfident": 2 * careful, "noisy": noisy}
    frame = expit(pd.DataFrame(logits))
    frame.insert(0, "y", (rng.random(n) < frame["p"]).astype(int))
    frame.insert(2, "group", np.where(south, "south", "north"))
    return frame
