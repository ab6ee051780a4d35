"""Predictions from where they are: a file that memory holds, or files that an engine reads.

Of the latter all rows are judged; what an engine has no quick answer to (slopes, gains, parts) is
that of a sample, which is said.
"""

import numpy as np
import pandas as pd
from scipy.special import expit

from ..paths import find_path
from ..settings import TableSettings, check_engine
from ..tables import read_table
from ..validation import check_integer
from . import judge
from .read import PredictionTable, check_table
from .understand import find_names, understand


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
