"""What stored runs of a task say: scores of methods and simple models, and their differences.

Test rows come in clusters, the windows of a day, the vehicles of a scene, the rows of a patient,
and intervals never cut through one. Which rule of `probnb.metrics.differences` holds follows from
the data: runs on simulated data have test rows of their own, so that seeds count; runs on measured
data are folds of one data set, whose test rows are put together, or share their test rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import wasserstein_distance

from ...data.drawn import AGES
from ...experiment import evidence
from ...methods import METHODS
from ...metrics import METRICS, bootstrap, compare
from ...published import published
from ...scenarios import SCENARIOS, probability
from .tasks import TASKS

FACTS = ("split", "id", "y", "p", "group", "weight", "seed")
"""Columns of a table of predictions that hold no predictions."""


def label_of(name):
    """Return what tables call a method; references are called what they are."""
    return METHODS[name].label if name in METHODS else name


def add_references(results, references):
    """Put the predictions of simple models beside those of the methods, on the test rows."""
    table = results.predictions.copy()
    rows = table.index[table["split"] == "test"]
    for name, values in references.items():
        table[name] = pd.Series(values, index=rows, dtype=float)
    return replace(results, predictions=table)


def runs_like(folders, task, name=None, **wanted):
    """Return the stored runs of one kind, which differ in their seed alone.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results.
    task : str
        Name of a task.
    name : str, optional
        Name of a run of that kind; by default the kind with most seeds.
    **wanted
        What a run's record must say.

    Returns
    -------
    DataFrame
        Lines of `probnb.experiment.evidence.find`, one a seed.
    """
    kinds = evidence.kinds(evidence.find(folders, "real_world", task=task, **wanted))
    return next((k for k in kinds if name is None or name in set(k["name"])), pd.DataFrame())


def test_rows(runs):
    """Return the test rows of some runs, one table a seed, with the columns that all have."""
    tables = [evidence.tables(line)[1] for line in runs.itertuples(index=False)]
    common = [c for c in tables[0] if all(c in t for t in tables)]
    return [t[common].assign(seed=s) for t, s in zip(tables, runs["seed"])]


@dataclass(frozen=True, eq=False)
class Scores:
    """Metrics of the rows of a task; made by `score`.

    Attributes
    ----------
    boots : list of probnb.metrics.Bootstrap
        One a sample of test rows: a seed's, or those of all folds together.
    shared : bool
        Whether the samples are the same rows.
    task : str
        Name of the task.
    seeds : int
        Trainings of each row.
    """

    boots: list
    shared: bool
    task: str
    seeds: int

    @property
    def point(self):
        """Metrics, one line a row of the table: means over samples."""
        return sum(boot.point for boot in self.boots) / len(self.boots)

    def difference(self, a, b, metric="brier"):
        """Compare two rows; see `probnb.metrics.compare`."""
        found = compare(self.boots, a, b, metric, self.shared)
        return found if len(self.boots) > 1 else replace(found, seeds=self.seeds)


def score(runs, replicates=1000, metrics=("brier", "auc", "ece")):
    """Score every method and reference of some runs of one kind.

    Parameters
    ----------
    runs : DataFrame
        From `runs_like`.
    replicates : int, default=1000
        Bootstrap replicates over whole groups, where test rows are resampled.
    metrics : sequence of str
        Which metrics; those that need known probabilities come along where these are.

    Returns
    -------
    Scores
        In the order of `METHODS`, references last.
    """
    tests = test_rows(runs)
    same = [all(t[c].equals(tests[0][c]) for c in ("id", "y")) for t in tests[1:]]
    shared = len(tests) > 1 and all(same)
    if not shared and not runs["data"].iloc[0].startswith("simulated"):  # folds of one data set
        tests = [pd.concat(tests, ignore_index=True)]
    columns = [c for c in METHODS if c in tests[0]]
    columns += [c for c in tests[0] if c not in METHODS and c not in FACTS]
    known = [m for m in METRICS if METRICS[m].needs_truth] if "p" in tests[0] else []
    resampled = shared or len(tests) == 1
    how = {"replicates": replicates if resampled else 2, "metrics": [*metrics, *known]}
    groups = [t["group"] if t["group"].nunique() > 1 else None for t in tests]
    boots = [bootstrap(t["y"], t[columns], t.get("p"), groups=g, weights=t.get("weight"),
                       progress=False, **how) for t, g in zip(tests, groups)]  # fmt: skip
    return Scores(boots, shared, runs["task"].iloc[0], len(runs))


def score_table(scores):
    """Show the scores, times 100.

    Parameters
    ----------
    scores : Scores
        From `score`.

    Returns
    -------
    DataFrame
        One line a row; ``paper`` is the paper's Brier score, of its own data; ``skill`` the share
        of the constant's Brier score that is saved, in per cent. Where probabilities are known
        ``MSE_p`` comes first.
    """
    point, constant = scores.point, TASKS[scores.task].constant
    printed = published(scores.task, metric="brier").set_index("method")["value"]
    table = {"Brier": point["brier"], "AUC": point["auc"], "ECE": point["ece"]}
    if "mse_p" in point:
        table = {"MSE_p": point["mse_p"], **table}
    shown = pd.DataFrame({k: [f"{100 * v:.2f}" for v in c] for k, c in table.items()}, point.index)
    shown.insert(0, "paper", [f"{printed[m]:.2f}" if m in printed else "" for m in point.index])
    if constant in point.index:
        skill = 100 * (1 - point["brier"] / point.loc[constant, "brier"])
        shown["skill"] = [f"{v:.1f}" for v in skill]
    return shown.rename(index=label_of)


def gap_table(scores):
    """Show the Brier score, times 100, less the constant's and less cross entropy's."""
    rows = scores.point.index
    found = {
        f"less {label_of(name)}": [
            "" if row == name else scores.difference(row, name).text() for row in rows
        ]
        for name in (TASKS[scores.task].constant, "ce")
        if name in rows
    }
    return pd.DataFrame(found, [label_of(row) for row in rows])


def difference_table(scores, pairs, **columns):
    """Return differences in Brier score as `probnb.plots.forest` draws them, one line a pair."""
    lines = [
        {"label": f"{label_of(a)} – {label_of(b)}", **columns, **scores.difference(a, b).__dict__}
        for a, b in pairs
        if {a, b} <= set(scores.point.index)
    ]
    return pd.DataFrame(lines)


def scenario_probabilities(n=20_000):
    """Probabilities of the five synthetic scenarios, with the ages of the drawn faces."""
    weights = np.array([weight for weight, _ in AGES])
    counts = np.rint(n * weights / weights.sum()).astype(int)
    ages = np.concatenate([draw((np.arange(c) + 0.5) / c) for c, (_, draw) in zip(counts, AGES)])
    return {name: probability(np.clip(np.rint(ages), 0, 116), name) for name in SCENARIOS}


def correspondence(predictions, weights=None):
    """Measure how far the predictions of a task are from the probabilities of each scenario.

    Parameters
    ----------
    predictions : array-like of shape (n,)
        Predicted probabilities of one method on the test rows.
    weights : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    Series
        Mean distance between the two distributions (Wasserstein's, in units of probability), by
        scenario, the nearest first.
    """
    found = {
        name: wasserstein_distance(predictions, p, weights)
        for name, p in scenario_probabilities().items()
    }
    return pd.Series(found, name="mean distance").sort_values()
