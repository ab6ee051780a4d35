"""Stored runs of a task: one for each seed, put together to judge methods rather than trainings."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd

from ... import store
from ...experiment.results import find_runs, on_test, read_results
from ...methods import METHODS
from ...metrics import bootstrap

__all__ = ["add_references", "data_name", "methods_of", "pool", "references_of", "score"]

_FIXED = ("split", "id", "y", "p", "group", "weight", "seed")


def data_name(task, splits, given):
    """Name the data of a run: measured or simulated, and what of the task was not left alone.

    Parameters
    ----------
    task : Task
        The task.
    splits : probnb.data.base.Splits
        Its data.
    given : dict
        The task's parameters as used.

    Returns
    -------
    str
        Such as ``"real"`` or ``"real-lead65"``; part of a folder's name.
    """
    defaults = {**task.parameters, **(task.smoke if splits.known else {})}
    changed = [f"-{k}{v}" for k, v in given.items() if v != defaults[k]]
    return "".join(["simulated" if splits.known else "real", *changed])


def add_references(results, references):
    """Put the predictions of simple models beside those of the methods, on the test rows.

    Parameters
    ----------
    results : probnb.experiment.results.Results
        A run.
    references : mapping of str to array-like of shape (n_test,)
        From ``task.references``.

    Returns
    -------
    probnb.experiment.results.Results
        The same with a column for each reference, NaN on validation rows.
    """
    table = results.predictions.copy()
    rows = table.index[table["split"] == "test"]
    for name, values in references.items():
        table[name] = pd.Series(values, index=rows, dtype=float)
    return replace(results, predictions=table)


def pool(folders, task, **wanted):
    """Put the test rows of all seeds of a task together.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results, in which ``real_world/*/run.json`` record runs.
    task : Task
        Which task.
    **wanted
        What a run's record must say besides: ``data``, ``profile``, ``settings``.

    Returns
    -------
    pandas.DataFrame
        Test rows with a column ``seed``, methods that all seeds have, and references; empty where
        there are no runs. Of two runs of one seed the first is taken.
    """
    wanted = json.loads(json.dumps(wanted, default=store.plain))  # as records are stored
    runs = {}
    for run in find_runs(folders, "real_world", task=task.name, **wanted):
        runs.setdefault(run.record["seed"], run)
    tables = [
        on_test(read_results(run).predictions).assign(seed=seed)
        for seed, run in sorted(runs.items())
    ]
    if not tables:
        return pd.DataFrame(columns=[*_FIXED])
    return pd.concat(tables, join="inner", ignore_index=True)


def methods_of(table):
    """Return the methods among the columns of a table of predictions, in the order of tables."""
    return [name for name in METHODS if name in table]


def references_of(table):
    """Return the columns that are neither methods nor facts: the reference models."""
    return [name for name in table if name not in METHODS and name not in _FIXED]


def score(table, columns, replicates=1000, seed=0):
    """Compute every metric, resampling whole groups: days, patients, scenes.

    Parameters
    ----------
    table : pandas.DataFrame
        Test rows of one seed or of several. A group keeps its rows of all seeds together.
    columns : list of str
        Methods or references.
    replicates : int, default=1000
        Bootstrap replicates.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    probnb.metrics.resampling.Bootstrap
        Point values and resamples.
    """
    optional = {k: table[c] for k, c in (("p", "p"), ("weights", "weight")) if c in table}
    groups = table["group"] if table["group"].nunique() > 1 else None
    return bootstrap(
        table["y"],
        table[columns],
        replicates=replicates,
        seed=seed,
        groups=groups,
        progress=False,
        **optional,
    )
