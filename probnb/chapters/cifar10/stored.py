"""Results of the chapter that are kept with the book: predictions by row number, and comparisons.

The votes of people are data of others and are not kept. What can only be computed with them, the
distances from the probabilities and their intervals, is kept as numbers.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ... import store
from ...experiment.results import TABLES, find_runs, on_test, read_results
from ...methods import METHODS
from ...metrics.votes import check_votes
from .study import across_seeds, trained_models
from .tasks import TASKS, USUAL, task_label

__all__ = [
    "Stored",
    "about",
    "ceilings",
    "first_predictions",
    "models",
    "paper_metrics",
    "publish",
    "publishable",
    "read_stored",
    "runs",
    "tables",
]

PEOPLE = (1, 3, 9)
"""Sizes of the second group of people."""


class Stored:
    """What is kept of one task; made by `read_stored`.

    Parameters
    ----------
    data, question, inputs : str
        The task, and what the network sees.
    runs : list of StoredRun
        One a seed.
    comparison : DataFrame
        As `publish` writes it.
    """

    def __init__(self, data, question, inputs, runs, comparison):
        self.data, self.question, self.inputs = data, question, inputs
        self.runs, self.comparison = runs, comparison

    @property
    def label(self):
        """What the task is, in a few words."""
        return task_label(self.data, self.question, self.inputs)

    def table(self, metric="mse_p", reference="ce"):
        """Return the comparison as `probnb.chapters.cifar10.study.across_seeds` does."""
        rows = self.comparison
        rows = rows[(rows["metric"] == metric) & (rows["reference"] == reference)]
        rows = rows.set_index("method").drop(columns=["metric", "reference"])
        return rows.assign(verdict=rows["verdict"].fillna("")).rename_axis(None)

    def ceiling(self):
        """Return MSE_p of so many other people, by their number; empty where none were asked."""
        rows = self.comparison[self.comparison["method"] == "people"]
        return {int(k): v for k, v in zip(rows["reference"], rows["value"])}

    def results(self):
        """Return the `Results` of every seed."""
        return [read_results(run) for run in self.runs]

    def models(self):
        """Return every model of every seed, as `trained_models` does."""
        rows = self.comparison[self.comparison["metric"] == "models"]
        if rows.empty:
            parts = [trained_models(r).assign(seed=i) for i, r in enumerate(self.results())]
            return pd.concat(parts, ignore_index=True)
        methods = rows.rename(columns={"method": "name", "value": "mse_p", "spread": "brier"})
        seed = methods.groupby("name").cumcount()  # they stand seed by seed
        methods = methods.assign(kind="method", unit=methods["name"], seed=seed)
        epochs = [
            r.epochs.query("epoch > 0")
            .rename(columns={"fit": "unit", "method": "name"})
            .assign(kind="epoch", seed=seed)
            for seed, r in enumerate(self.results())
        ]
        columns = ["kind", "name", "unit", "brier", "mse_p", "seed"]
        return pd.concat([t[columns] for t in (methods, *epochs)], ignore_index=True)


def publish(runs, directory):
    """Write what may be published of several seeds of one task.

    Parameters
    ----------
    runs : list of (Results, StoredRun)
        From `probnb.chapters.cifar10.tasks.train_task`, of the same task.
    directory : path-like
        Where to: a folder for each seed and a CSV of comparisons.

    Returns
    -------
    DataFrame
        The comparisons: for each metric, reference and method what `across_seeds` says; MSE_p of
        other people as method ``people``; and each seed's models (metric ``models``: MSE_p and
        Brier score in the columns ``value`` and ``spread``).
    """
    directory = Path(directory)
    tests = [on_test(results.predictions) for results, _ in runs]
    rows = []
    for metric in ("mse_p", "kl_p", "brier"):
        for reference in ("ce", "ce_finetuned"):
            if all(reference in table for table in tests):
                table = across_seeds(tests, reference, metric).rename_axis("method").reset_index()
                rows.append(table.assign(metric=metric, reference=reference))
    for results, _ in runs:
        points = trained_models(results).query("kind == 'method'")
        points = points.rename(columns={"name": "method", "mse_p": "value", "brier": "spread"})
        rows.append(points[["method", "value", "spread"]].assign(metric="models", reference=""))
    if "k" in tests[0]:
        pooled = pd.concat(tests)
        # the share of m other people has MSE_p = p (1 - p) / m
        variance = check_votes(pooled["k"].to_numpy(), pooled["n"].to_numpy()).variance().mean()
        people = {"method": "people", "metric": "mse_p", "reference": PEOPLE}
        rows.append(pd.DataFrame({**people, "value": variance / np.array(PEOPLE)}))
    comparison = pd.concat(rows, ignore_index=True)
    record = runs[0][1].record
    for results, stored in runs:
        folder = directory / stored.directory.name
        kept = publishable(results)
        for table in TABLES:
            write = partial(getattr(kept, table).to_parquet, index=False, compression="zstd")
            store.replace_file(folder / f"{table}.parquet", write)
        text = json.dumps(stored.record, indent=1, default=store.plain) + "\n"
        store.replace_file(folder / "run.json", lambda path, text=text: path.write_text(text))
    pixels = "-pixels" * (record.get("inputs") == "pixels")
    path = directory / f"{record['task']}-{record['data']}{pixels}.csv"
    write = partial(comparison.to_csv, index=False, float_format="%.6g")
    store.replace_file(path, write)
    return comparison


def publishable(results):
    """Return results without what belongs to the data: of people's votes nothing is left.

    Parameters
    ----------
    results : probnb.experiment.results.Results
        From `probnb.chapters.cifar10.tasks.train_task`.

    Returns
    -------
    Results
        Test predictions as float32 by row number. Where outcomes are votes, they and the other
        votes are left out; outcomes and probabilities that we made stay.
    """
    table = on_test(results.predictions)
    if "p" not in table:
        table = table.drop(columns=["y", "k", "n"])
    methods = [c for c in table if c in METHODS]
    table = table.astype(dict.fromkeys(methods, np.float32))
    return replace(results, predictions=table)


def read_stored(folder):
    """Read what is kept of every task.

    Parameters
    ----------
    folder : path-like
        Folder of results, with ``cifar10`` in it.

    Returns
    -------
    list of Stored
        One a task, in the order of their data sets, pixels before gradients; empty where there
        is nothing.
    """
    found = []
    for path in sorted((Path(folder) / "cifar10").glob("*.csv")):
        question, data, *pixels = path.stem.split("-")
        inputs = "pixels" if pixels else "gradients"
        runs = find_runs([folder], "cifar10", task=question, data=data)
        runs = [run for run in runs if run.record.get("inputs", "gradients") == inputs]
        comparison = pd.read_csv(path, keep_default_na=False, na_values=["", "nan"])
        found.append(Stored(data, question, inputs, runs, comparison))
    return sorted(
        found, key=lambda t: (list(TASKS).index(t.data), t.question, t.inputs != "pixels")
    )


def about(stored, subject):
    """Return the tasks about the paper's ``"rule"``, real ``"people"``, or all ``"classes"``.

    Of the classes of CIFAR-10H only the usual one is among the people.
    """
    if subject == "rule":
        return [task for task in stored if task.question == "rule"]
    if subject == "classes":
        return [task for task in stored if task.data == "cifar10h"]
    usual = ("cifar10h", USUAL["cifar10h"])
    return [t for t in stored if t.data == "ferplus" or (t.data, t.question) == usual]


def first_predictions(stored):
    """Return the predictions of the first seed of the first task."""
    return stored[0].results()[0].predictions


def paper_metrics(stored):
    """Return MSE_p and KL_p of several tasks by label, for the table beside the paper's."""
    return {task.label: {m: task.table(m) for m in ("mse_p", "kl_p")} for task in stored}


def tables(stored, metric="mse_p", reference="ce"):
    """Return the comparisons of several tasks by label."""
    return {task.label: task.table(metric, reference) for task in stored}


def ceilings(stored):
    """Return what other people score, by label of the task and their number."""
    return {task.label: task.ceiling() for task in stored}


def models(stored):
    """Return the trained models of several tasks by label."""
    return {task.label: task.models() for task in stored}


def runs(stored):
    """Return the results of every seed of several tasks by label."""
    return {task.label: task.results() for task in stored}
