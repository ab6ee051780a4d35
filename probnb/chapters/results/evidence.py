"""Stored runs, read once, with their metrics and resamples; and what two methods differ by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from ...experiment.profiles import PROFILES
from ...experiment.results import find_runs, on_test, read_results
from ...methods import METHODS
from ...metrics import METRICS, bootstrap
from ...scenarios import SCENARIOS

__all__ = ["Evidence", "Gap", "Trained", "gather", "run_table"]

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Trained:
    """One stored run.

    Attributes
    ----------
    run : StoredRun
        Where it is, and its record.
    results : Results
        Its tables.
    test : DataFrame
        Its predictions on test rows.
    bootstrap : Bootstrap
        Every metric of every method on them, with resamples.
    """

    run: object
    results: object = field(repr=False)
    test: pd.DataFrame = field(repr=False)
    bootstrap: object = field(repr=False)
    cache: dict = field(default_factory=dict, repr=False)

    @property
    def methods(self):
        """Its rows, in table order."""
        return [name for name in METHODS if name in self.test]

    @cached_property
    def std(self):
        """One bootstrap standard deviation of every metric of every row."""
        return self.bootstrap.std()

    @property
    def photographs(self):
        """Whether the faces are photographs."""
        return self.run.record["data"] != "drawn"

    @property
    def size(self):
        """Height and width of its images in pixels, where recorded."""
        return (self.run.record.get("settings") or {}).get("size")

    @property
    def kind(self):
        """What runs that differ in their seed alone have in common."""
        record = self.run.record
        inputs = record.get("inputs", "gradients")
        return record["data"], record["profile"], bool(record.get("altered")), self.size, inputs

    def difference(self, a, b):
        """Return `Bootstrap.difference` of two rows, computed once."""
        if (a, b) not in self.cache:
            self.cache[a, b] = self.bootstrap.difference(a, b, LEVEL)
        return self.cache[a, b]

    def kept_fit(self, method):
        """Return the fit that a row reads, or None."""
        chosen = self.results.chosen
        rows = chosen[(chosen["method"] == method) & chosen["chosen"].astype(bool)]
        return None if rows.empty else rows.iloc[0]

    def history(self, method):
        """Return the epochs of the fit that a row reads, in order; empty where none is stored."""
        epochs, kept = self.results.epochs, self.kept_fit(method)
        if kept is None:
            return epochs.iloc[:0]
        return epochs[epochs["fit"] == kept["fit"]].sort_values("epoch").reset_index(drop=True)


@dataclass(frozen=True)
class Gap:
    """A difference of two methods, a less b, over the trainings of one scenario.

    Attributes
    ----------
    value, low, high : float
        Mean over trainings and interval: of the test rows, and from two trainings on also of the
        trainings (the two half-widths at right angles).
    rows, seeds : float
        Standard deviation over resampled rows, and between trainings (NaN for one).
    trainings : int
        How many.
    """

    value: float
    low: float
    high: float
    rows: float
    seeds: float
    trainings: int


class Evidence:
    """All stored runs of the scenarios.

    Parameters
    ----------
    runs : iterable of Trained
        Any number, of any scenarios.
    elsewhere : iterable of Trained, default=()
        Runs of other chapters' tasks that claims name; tables and figures leave them out.
    """

    def __init__(self, runs, elsewhere=()):
        self.runs, self.elsewhere = tuple(runs), tuple(elsewhere)

    @property
    def scenarios(self):
        """Scenarios that have a run, in the paper's order."""
        return [name for name in SCENARIOS if self.best(name)]

    def kinds(self, scenario):
        """Return runs that differ in seed alone, together, the best evidence first."""
        groups = {}
        for trained in self.runs + self.elsewhere:
            if trained.run.record["task"] == scenario:
                groups.setdefault(trained.kind, []).append(trained)
        return sorted(groups.values(), key=_rank)

    def best(self, scenario, photographs=None):
        """Return the best runs of a scenario, of photographs alone or of drawn faces if asked."""
        kinds = [
            group
            for group in self.kinds(scenario)
            if photographs is None or group[0].photographs == photographs
        ]
        return kinds[0] if kinds else []

    def gap(self, runs, a, b, metric="mse_p"):
        """Return the `Gap` of a to b over the runs that have both, or None."""
        runs = [r for r in runs if a in r.methods and b in r.methods]
        if not runs or metric not in runs[0].bootstrap.point:
            return None
        rows = [r.difference(a, b).loc[metric] for r in runs]
        values = np.array([row["difference"] for row in rows])
        if not np.isfinite(values).all():
            return None
        noise = float(np.sqrt(np.mean([row["std"] ** 2 for row in rows])))
        if len(runs) == 1:
            return Gap(values[0], rows[0]["low"], rows[0]["high"], noise, np.nan, 1)
        spread = float(values.std(ddof=1))
        half = np.hypot(
            norm.ppf((1 + LEVEL) / 2) * noise,
            student.ppf((1 + LEVEL) / 2, len(runs) - 1) * spread / np.sqrt(len(runs)),
        )
        mean = float(values.mean())
        return Gap(mean, mean - half, mean + half, noise, spread, len(runs))

    def scores(self, metrics=None):
        """Return every metric of every row of every run, times 100.

        Returns
        -------
        DataFrame
            Columns ``scenario``, ``data``, ``run``, ``seed``, ``method``, ``metric``, ``value``
            and ``rows`` (one bootstrap standard deviation over test rows).
        """
        parts = []
        for trained in self.runs:
            record = trained.run.record
            long = (100 * trained.bootstrap.point).stack().rename("value").to_frame()
            long["rows"] = (100 * trained.bootstrap.std()).stack()
            long.index.names = ["method", "metric"]
            parts.append(
                long.reset_index().assign(
                    scenario=record["task"],
                    data=record["data"],
                    run=trained.run.directory.name,
                    seed=record["seed"],
                )
            )
        columns = ["scenario", "data", "run", "seed", "method", "metric", "value", "rows"]
        table = pd.concat(parts) if parts else pd.DataFrame(columns=columns)
        table = table if metrics is None else table[table["metric"].isin(metrics)]
        return table[columns].reset_index(drop=True)


def _rank(group):
    """Photographs, profiles as they are, larger profiles, more seeds, pixels before gradients."""
    data, profile, altered, _, inputs = group[0].kind
    order = list(PROFILES)
    place = order.index(profile) if profile in order else -1
    return data == "drawn", altered, -place, -len(group), inputs != "pixels"


def gather(folders, replicates=1000, seed=0):
    """Read every stored run of the scenarios, and those of CIFAR-10 with the paper's rule.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results; need not exist. Of two runs of one name the first folder's counts.
    replicates : int, default=1000
        Bootstrap replicates of each run.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    Evidence
        Empty where nothing is stored.
    """
    parts = []
    for chapter in ("synthetic", "cifar10"):
        found = {}
        for run in find_runs(folders, chapter):
            run = replace(run, record=run.record | {"task": _task(run.record)})
            if run.record["task"] in (*SCENARIOS, "cifar10"):
                found.setdefault(run.directory.name, run)
        parts.append([_read(run, replicates, seed) for run in found.values()])
    return Evidence(*parts)


def _task(record):
    """Name a run's task as the paper's tables do: the appendix's rule on its own pictures."""
    return "cifar10" if (record["task"], record["data"]) == ("rule", "cifar10") else record["task"]


def _read(run, replicates, seed):
    results = read_results(run)
    test = on_test(results.predictions)
    methods = [name for name in METHODS if name in test]
    metrics = [name for name in METRICS if name not in ("nll",)]
    result = bootstrap(
        test["y"], test[methods], test["p"], replicates, seed, metrics, progress=False
    )
    return Trained(run, results, test, result)


def run_table(evidence):
    """Show which runs the page has: one line a scenario and kind of run; and which it lacks.

    Parameters
    ----------
    evidence : Evidence
        From `gather`.

    Returns
    -------
    DataFrame
        Index: scenarios.
    """
    rows = []
    for scenario in SCENARIOS:
        kinds = evidence.kinds(scenario)
        if not any(group[0].photographs for group in kinds):
            rows.append(
                (scenario.capitalize(), "photographs (UTKFace)", *["not run yet"] + [""] * 5)
            )
        for group in kinds:
            first, record = group[0], group[0].run.record
            name = "photographs (UTKFace)" if first.photographs else "drawn faces"
            seconds = np.sum([r.run.record.get("cpu_seconds") or np.nan for r in group])
            rows.append(
                (
                    scenario.capitalize(),
                    name,
                    record["profile"] + (" (altered)" if record.get("altered") else ""),
                    f"{first.size} px" if first.size else "",
                    ", ".join(str(r.run.record["seed"]) for r in sorted(group, key=_seed)),
                    f"{len(first.test):,}",
                    len(first.methods),
                    "" if np.isnan(seconds) else f"{seconds / 60:.0f} min",
                )
            )
    columns = ["", "faces", "profile", "size", "seeds", "test rows", "rows", "processor time"]
    return pd.DataFrame(rows, columns=columns).set_index("")


def _seed(trained):
    return trained.run.record["seed"]
