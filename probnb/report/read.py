"""Anybody's predictions, read from where they are and checked before any is judged.

A file is one that memory holds, or files that an engine reads. Of the latter all rows are judged;
what an engine has no quick answer to (slopes, gains, parts) is that of a sample, which is said.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

from ..metrics.binning import brier_decomposition
from ..metrics.sample import check_row_weights
from ..metrics.votes import check_votes
from ..paths import composed, find_path
from ..settings import TableSettings, check_engine
from ..tables import Rows, one_outcome, read_table
from ..validation import check_integer
from . import judge
from .understand import find_names, understand


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

    @property
    def sample(self):
        """The rows that memory holds: all."""
        return self

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
    notes = [*rows.notes]
    rows, roles, out, kinds, more = understand(rows, columns, TableSettings(**settings))
    notes += more
    if "k" in roles:
        out["ones"], out["counts"] = out.pop("k"), out.pop("n")
        check_votes(out["ones"], out["counts"], [f"column {roles[role]!r}" for role in "kn"])
    predictions = pd.DataFrame({name: rows.column(name) for name in kinds})
    for name, x in predictions.items():
        predictions[name] = expit(x) if kinds[name] == "logit" else np.clip(x, 0, 1)
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
    if engine is not None:
        return read_large(path, columns, engine, memory, exact_auc, **settings)
    check_engine(engine, memory, exact_auc)
    TableSettings(**settings)  # before anything is read
    frame = draw_example() if path is None else read_table(find_path(path, "predictions"))
    return check_table(frame, columns, **settings)


def read_large(path, columns=None, engine="duckdb", memory="2GB", exact_auc=True, **settings):
    """Open predictions of any size; all that decides how they are understood is asked of all rows.

    Parameters
    ----------
    path, columns, engine, memory, exact_auc, **settings
        As in `probnb.report.read_predictions`.

    Returns
    -------
    probnb.scale.DataSet
        The checked rows; its ``sample`` is a `PredictionTable`.
    """
    from ..scale import DataSet, open_rows  # here, since engines are an extra

    asked = TableSettings(**settings)
    check_engine(engine, memory, exact_auc)
    if path is None:
        raise ValueError(f"path must be given with an engine; got engine={engine!r} without one.")
    if asked.k is not None:
        raise ValueError(f"k and n must be None with an engine; got {asked.k!r} and {asked.n!r}.")
    opened = open_rows(path, engine, memory, lambda names: find_names(names, columns, asked))
    notes = [*opened.notes]
    rows, roles, _, kinds, more = understand(opened, columns, asked)
    logits = tuple(c for c in kinds if kinds[c] == "logit")
    roles = {role: roles.get(role) for role in ("y", "p", "group", "cluster", "weight")}
    data = DataSet(rows, [*kinds], logits=logits, exact_auc=exact_auc, **roles)
    held = data.draw(judge.FIT_ROWS)
    if len(held) < data.size:
        notes.append(
            f"Slopes, gains, parts and decisions are those of a sample of {len(held):,} rows."
        )
    data.notes = (*notes, *more)
    predictions = held[[f"p{k}" for k in range(len(data.names))]].set_axis(data.names, axis=1)
    held = held.rename(columns={"truth": "p", "w": "weight"})
    about = {c: held[c].to_numpy() for c in (*roles,) if c in held}
    data.sample = PredictionTable(predictions=predictions, logits=logits, notes=data.notes, **about)
    return data


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
