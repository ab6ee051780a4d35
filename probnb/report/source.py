"""Predictions from where they are: a file that memory holds, or files that an engine reads.

Of the latter all rows are judged; what an engine has no quick answer to (slopes, gains, parts) is
that of a sample, which is said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import expit

from ..metrics.binning import BINS
from ..metrics.differences import clustered_mean
from ..settings import EngineSettings
from ..tables import read_table
from ..validation import check_integer, find_path
from . import judge
from .read import PredictionTable, check_table
from .understand import understand


def read_predictions(
    path=None, columns=None, engine=None, memory="2GB", exact_auc=True, **settings
):
    """Read a file of predictions.

    Parameters
    ----------
    path : path-like, optional
        A file that `probnb.tables.read_table` reads; by default the example of
        `draw_example`. A relative path follows `probnb.validation.find_path`.
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
    if engine is None and (memory, exact_auc) != ("2GB", True):
        raise ValueError(
            f"memory and exact_auc are of an engine; got {memory!r}, {exact_auc!r} without one."
        )
    if path is None and engine is not None:
        raise ValueError(f"path must be given with an engine; got engine={engine!r} without one.")
    if path is None:
        return check_table(draw_example(), columns, **settings)
    if engine is not None:
        EngineSettings(engine, memory, exact_auc)  # checks them
        return read_large(path, columns, engine, memory, exact_auc, **settings)
    path = find_path(path, "predictions")
    frame = read_table(path)
    table = check_table(frame, columns, **settings)
    return replace(table, notes=(f"Read {len(frame):,} rows of {path.name}.", *table.notes))


def read_large(
    path,
    columns=None,
    engine="duckdb",
    memory="2GB",
    exact_auc=True,
    y="y",
    p="p",
    group="group",
    cluster="cluster",
    scale="auto",
    weight="weight",
    id="id",
    split="split",
    part="test",
    k=None,
    n=None,
):
    """Open predictions of any size; all that decides how they are understood is asked of all rows.

    Parameters
    ----------
    path, columns, engine, memory
        As in `probnb.report.read_predictions`.
    exact_auc : bool, default=True
        As in `probnb.scale.DataSet`.
    y, p, group, cluster, scale, weight, id, split, part
        As in `probnb.report.check_table`.
    k, n : None
        Repeated outcomes, which an engine does not judge.

    Returns
    -------
    probnb.scale.DataSet
        The checked rows; its ``sample`` is a `PredictionTable`.
    """
    from ..scale import DataSet, open_rows  # here, since engines are an extra

    if k is not None or n is not None:
        raise ValueError(f"k and n must be None with an engine; got {k!r} and {n!r}.")
    opened = open_rows(path, engine, memory)
    if not opened.size:
        raise ValueError(f"{opened.name} has columns ({', '.join(opened.names)}) but no rows.")
    files = "" if len(opened.files) == 1 else f"{len(opened.files):,} files of "
    notes = [f"Read {opened.size:,} rows of {files}{opened.name} with {engine}.", *opened.notes]
    told = {
        "p": p,
        "group": group,
        "cluster": cluster,
        "weight": weight,
        "id": id,
        "split": split,
        "k": k,
        "n": n,
    }
    rows, roles, _, kinds, more = understand(opened, columns, y, told, scale, part)
    data = DataSet(
        rows,
        [*kinds],
        logits=tuple(c for c in kinds if kinds[c] == "logit"),
        exact_auc=exact_auc,
        **{role: roles.get(role) for role in ("y", "p", "group", "cluster", "weight")},
    )
    held = data.draw(judge.FIT_ROWS)
    if len(held) < data.size:
        notes.append(
            f"Slopes, gains, parts and decisions are those of a sample of {len(held):,} rows."
        )
    predictions = held[[f"p{k}" for k in range(len(data.names))]].set_axis(data.names, axis=1)
    roles = {"p": "truth", "weight": "w", "group": "group", "cluster": "cluster"}
    about = {role: held[c].to_numpy() for role, c in roles.items() if c in held}
    data.notes = (*notes, *more)
    about |= {"logits": data.logits, "notes": data.notes}
    data.sample = PredictionTable(held["y"].to_numpy(), predictions, **about)
    return data


def resample(data, replicates=1000, seed=0):
    """Bootstrap every metric of every column over the same blocks; as `judge.resample`."""
    return data.bootstrap(replicates=replicates, seed=seed)


def calibration_table(data):
    """How each column is off, and whether chance explains it; as `judge.calibration_table`."""
    off = judge.calibration_table(data.sample)
    for name in data.names:
        blocks, bins = data.sums(name), data.binned(name, BINS)
        gaps, found = bins["ones"] - bins["sp"], data.evaluate(name)
        bias, std, _, _ = _mean(blocks["sp"] - blocks["ones"], blocks["mass"])
        clustered = None if data.cluster is None else (bias, std, data.units)
        unit = bins["ww"].sum() / data.total
        exact = judge.departures(gaps, bins["spread"], data.total, unit, clustered)
        exact |= {"bias": bias, "ece": found["ece"]}
        if off.loc[name, "order"] == "separated" and found["auc"] < 1:
            exact["order"] = "ordinary"  # of the sample alone
        off.loc[name, list(exact)] = list(exact.values())
    return off


def group_table(data):
    """Calibration of the 20 largest groups; as `judge.group_table`."""
    if data.group is None:
        return pd.DataFrame()
    rows = data.rows
    largest = rows.group_by("group").agg(rows=rows.count())
    largest = largest.order_by([largest.rows.desc(), "group"]).limit(judge.LARGEST)
    largest = list(data.engine.ask(largest)["group"])
    rows = rows.filter(rows.group.isin(largest))
    w = rows.w if data.weight else 1.0
    sums = {f"p{k}": (w * rows[f"p{k}"]).sum() for k in range(len(data.names))}
    sums |= {"mass": (w + 0 * rows.y).sum(), "ww": (w * w + 0 * rows.y).sum()}
    sums |= {"ones": (w * rows.y).sum(), "rows": rows.count()}
    held = data.engine.ask(rows.group_by(["group", "block"]).agg(**sums))
    found = {}
    for label in largest:
        blocks = held[held["group"] == label].drop(columns=["group", "block"])
        total = blocks.sum()
        predicted = {name: total[f"p{k}"] / total["mass"] for k, name in enumerate(data.names)}
        effective = total["mass"] ** 2 / total["ww"]
        observed = _mean(blocks["ones"], blocks["mass"])
        found[label] = int(total["rows"]), effective, observed, predicted
    return judge.tell_groups(found, data.cluster is not None)


def _mean(sums, mass):
    """A mean with its error over blocks."""
    return clustered_mean((sums / mass).to_numpy(), mass.to_numpy())


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
