"""What stored runs of a task say: scores of methods and simple models, and their differences.

Test rows come in clusters, the windows of a day, the vehicles of a scene, the rows of a patient,
and intervals never cut through one. Which rule of `probnb.metrics.differences` holds follows from
the data: runs on simulated data have test rows of their own, so that seeds count; runs on measured
data are folds of one data set, whose test rows are put together, or share their test rows.

``python -m probnb_book train real_world lung --data-dir DIR`` trains TCGA's patients in DIR.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sksurv.nonparametric import kaplan_meier_estimator

from probnb.methods import METHODS, check_methods
from probnb.metrics import Bootstrap, bootstrap, compare, difference
from probnb.store import machine
from probnb.validation import check_choice

from .. import evidence, storage
from ..data.survival import HORIZON, RULES, STAGES, label, survival_splits
from . import get_task, strata_of
from .references import references

FACTS = ("split", "id", "y", "p", "group", "weight", "seed")
"""Columns of a table of predictions that hold no predictions."""

STUDIES = {"lung": {}, "clinical": {"inputs": "clinical"}, "all": {"cohorts": "all"}}
"""What a study is about: parameters of the cancer task."""

PAIRS = (
    ("ce", "Constant"),
    ("ensemble", "Constant"),
    ("ce", "Cox, clinical"),
    ("cape_bin", "ce"),
    ("cape_kernel", "ce"),
    ("cape_bin", "ce_finetuned"),
    ("ensemble", "ce"),
    ("ensemble", "platt"),
)
"""Rows that are compared."""

SPREADS = ("ensemble", "ce"), ("cape_bin", "ensemble")
"""Rows whose spread between stages the paper compares in its Figure 16."""


def label_of(name):
    """Return what tables call a method; references are called what they are."""
    return METHODS[name].label if name in METHODS else name


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
        Lines of `probnb_book.evidence.find`, one a seed.
    """
    kinds = evidence.kinds(evidence.find(folders, "real_world", task=task, **wanted))
    return next((k for k in kinds if name is None or name in set(k["name"])), pd.DataFrame())


def test_rows(runs):
    """Return the test rows of some runs, one table a seed, with the columns that all have."""
    tables = [evidence.tables(line)[1] for line in runs.itertuples(index=False)]
    common = [c for c in tables[0] if all(c in t for t in tables)]
    return [t[common].assign(seed=s) for t, s in zip(tables, runs["seed"])]


class Scores(NamedTuple):
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
        return replace(compare(self.boots, a, b, metric, self.shared), seeds=self.seeds)


def score(runs, replicates=1000):
    """Score every method and reference of some runs of one kind.

    Parameters
    ----------
    runs : DataFrame
        From `runs_like`.
    replicates : int, default=1000
        Bootstrap replicates over whole groups, where test rows are resampled.

    Returns
    -------
    Scores
        In the order of `METHODS`, references last.
    """
    tests, rows = test_rows(runs), ["id", "y"]
    shared = len(tests) > 1 and all(t[rows].equals(tests[0][rows]) for t in tests[1:])
    if not shared and not runs["data"].iloc[0].startswith("simulated"):  # folds of one data set
        tests = [pd.concat(tests, ignore_index=True)]
    columns = [c for c in METHODS if c in tests[0]]
    columns += [c for c in tests[0] if c not in METHODS and c not in FACTS]
    metrics = ["brier", "auc", "ece", *(["mse_p"] if "p" in tests[0] else [])]
    given = {"metrics": metrics, "progress": False}
    given["replicates"] = replicates if shared or len(tests) == 1 else 2
    boots = []
    for t in tests:
        given["groups"] = t["group"] if t["group"].nunique() > 1 else None
        boots.append(bootstrap(t["y"], t[columns], t.get("p"), weights=t.get("weight"), **given))
    return Scores(boots, shared, runs["task"].iloc[0], len(runs))


def run_study(name, data_dir, profile="quick", seeds=range(5), results="results", runs="runs"):
    """Train TCGA's patients on five folds by three rules, and write what may be kept.

    Patients' rows stay where they are: what is written are predictions by row number, without
    outcomes or follow-up, and tables of scores.

    Parameters
    ----------
    name : str
        One of `STUDIES`.
    data_dir : path-like
        TCGA's tables.
    profile, seeds : str, iterable of int
        Sizes, and folds.
    results, runs : path-like
        Where the tables go, to the study ``cancer``, and where trainings are kept, in ``fits``.

    Returns
    -------
    pathlib.Path
        The study's file.
    """
    from probnb import compare as train_all

    study, task, tables = STUDIES[check_choice(name, STUDIES, "name")], get_task("cancer"), []
    settings = task.profile(profile)
    for rule in RULES:
        for seed in seeds:
            splits = task.load(data_dir, settings, seed, rule=rule, **study)
            network, fits = task.network(settings, splits), Path(runs) / "fits"
            rows = train_all(splits, check_methods(known=False), settings, seed, fits, network)
            rows = rows.predictions
            table = rows[["id", *(m for m in METHODS if m in rows)]].reset_index(drop=True)
            tables.append(table.assign(rule=rule, seed=seed, **references(splits, seed)))
    cohort = splits.report["cohort"]
    record = {"task": "cancer", "data": name, "profile": profile, "seeds": [*seeds]}
    record |= {"rules": RULES, "settings": settings, "source": cohort.source}
    record |= cohort.report | machine()
    tables = summarise(pd.concat(tables, ignore_index=True), cohort)
    return storage.keep(results, "cancer", {name: (record, tables)})


def read_study(folder, name):
    """Read the tables of one of `STUDIES` by name, and its record as ``"record"``."""
    tables = ("predictions", "scores", "differences", "stages", "spread")
    found = {table: storage.read(folder, "cancer", table, name) for table in tables}
    return found | {"record": storage.records(folder, "cancer")[name]}


def summarise(predictions, cohort, replicates=1000):
    """Turn predictions of all rules and folds into the tables of a study.

    Parameters
    ----------
    predictions : DataFrame
        One line a rule and test patient: ``rule`` by which networks were trained, ``seed`` (which
        fold), ``id`` (a row number of the cohort), a column each method and reference.
    cohort : probnb_book.data.survival.Cohort
        The patients.
    replicates : int, default=1000
        Bootstrap replicates.

    Returns
    -------
    dict of str to DataFrame
        ``predictions`` as they came, with the ``Constant`` of each fold and rule; ``scores`` and
        ``differences`` of `compare_rules`; ``stages`` and ``spread`` of `stage_spread`.
    """
    predictions, strata = predictions.copy(), strata_of(cohort)
    for (rule, seed), rows in predictions.groupby(["rule", "seed"]):
        train = survival_splits(cohort, rule, seed=seed, strata=strata).train
        share = np.average(train.outcomes.numpy(), weights=train.weights.numpy())
        predictions.loc[rows.index, "Constant"] = share
    scores, differences = compare_rules(predictions, cohort, replicates)
    own = predictions[predictions["rule"] == "ipcw"].reset_index(drop=True)
    stages, spread = stage_spread(own, cohort, replicates)
    found = {"predictions": predictions, "scores": scores, "differences": differences}
    return found | {"stages": stages, "spread": spread}


def compare_rules(predictions, cohort, replicates=1000):
    """Score networks by the rule that trained them, all folds as one sample.

    Parameters
    ----------
    predictions, cohort, replicates
        As in `summarise`.

    Returns
    -------
    scores : DataFrame
        Columns ``rule``, ``method``, ``metric``, ``value``, and ``survivors``, the share of those
        who count as alive. AUC is the mean over folds, which are predicted by different networks.
    differences : DataFrame
        Of `PAIRS`, in Brier score and AUC, over patients and over sites: ``rule``, ``unit``,
        ``metric``, ``a``, ``b`` and the fields of `probnb.metrics.Difference`.
    """
    column = strata_of(cohort)
    strata = None if column is None else cohort.covariates[column].to_numpy()
    scores, differences = [], []
    for rule, rows in predictions.groupby("rule", sort=False):
        labels = label(cohort.months, cohort.died, rule, strata=strata)
        y, weights = labels.outcomes, labels.weights
        survivors = np.average(y[rows["id"]], weights=weights[rows["id"]])
        for unit, groups in (("patient", cohort.numbers), ("site", cohort.sites)):
            boot = _five_folds(rows, y, weights, np.asarray(groups), replicates)
            for a, b in (pair for pair in PAIRS if set(pair) <= set(rows)):
                for metric in ("brier", "auc"):
                    gap = compare([boot], a, b, metric).__dict__
                    differences.append(dict(rule=rule, unit=unit, metric=metric, a=a, b=b, **gap))
        for (method, metric), value in boot.point.stack().items():
            scores.append((rule, method, metric, value, survivors))
    columns = ["rule", "method", "metric", "value", "survivors"]
    return pd.DataFrame(scores, columns=columns), pd.DataFrame(differences)


def _five_folds(rows, y, weights, groups, replicates):
    """Resample groups of all folds; AUC is the mean over folds, each with resamples of its own."""

    def resampled(part, metrics):
        at, methods = part["id"].to_numpy(), part.drop(columns=["rule", "seed", "id"])
        given = dict(weights=weights[at], groups=groups[at], progress=False, replicates=replicates)
        return bootstrap(y[at], methods, metrics=metrics, **given)

    whole = resampled(rows, ["brier", "auc", "ece"])
    folds = [resampled(part, ["auc"]) for _, part in rows.groupby("seed")]
    point, samples = whole.point.copy(), whole.samples.copy()
    point["auc"] = np.mean([fold.point["auc"] for fold in folds], axis=0)
    samples[..., 1] = np.mean([fold.samples[..., 0] for fold in folds], axis=0)
    return Bootstrap(point, samples, whole.units)


def stage_spread(predictions, cohort, replicates=1000, least=20):
    """Describe predictions by pathological stage, the paper's Figure 16, beside what was observed.

    Parameters
    ----------
    predictions : DataFrame
        Of one rule.
    cohort, replicates
        As in `summarise`.
    least : int, default=20
        Stages of fewer patients are left out: too few to say, and to hide in.

    Returns
    -------
    stages : DataFrame
        One line a stage and method (``"observed"``: the Kaplan-Meier estimate at the horizon):
        ``patients``, ``value`` (a median), ``low``, ``high`` (quartiles; a 95 % interval).
    spread : DataFrame
        `SPREADS`: ``spread``, ``a``, ``b`` and the fields of `probnb.metrics.Difference`.
    """
    at = predictions["id"].to_numpy()
    stage = cohort.covariates["stage"].to_numpy()[at]
    months, died = cohort.months[at], cohort.died[at].astype(bool)
    methods, lines = sorted({name for pair in SPREADS for name in pair} & set(predictions)), []
    for name in (s for s in STAGES if (stage == s).sum() >= least):
        rows = stage == name
        curve = kaplan_meier_estimator(died[rows], months[rows], conf_type="log-log")
        last = np.searchsorted(curve[0], HORIZON, side="right") - 1
        lines.append(("observed", name, rows.sum(), curve[1][last], *curve[2][:, last]))
        for method in methods:
            low, value, high = predictions.loc[rows, method].quantile([0.25, 0.5, 0.75])
            lines.append((method, name, rows.sum(), value, low, high))
    stages = pd.DataFrame(lines, columns=["method", "stage", "patients", "value", "low", "high"])
    known = stage != "unknown"
    member = np.equal.outer(stage[known], STAGES).astype(float)
    rng, n = np.random.default_rng(0), int(known.sum())
    drawn = [np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(replicates)]
    weights = np.array([np.ones(n), *drawn])
    between = {m: _between(predictions.loc[known, m].to_numpy(), member, weights) for m in methods}
    found = []
    for a, b in (pair for pair in SPREADS if set(pair) <= set(methods)):
        gaps = between[a] - between[b]
        found.append(dict(spread="between", a=a, b=b, **difference(gaps[:1], gaps[1:], n).__dict__))
    return stages, pd.DataFrame(found)


def _between(p_hat, member, weights):
    """Standard deviation of the stages' mean predictions, for each row of weights."""
    n, sizes = weights.sum(1), weights @ member
    sums = weights @ (member * p_hat[:, None])
    explained = (sums**2 / np.maximum(sizes, 1)).sum(1) / n
    return np.sqrt((explained - (weights @ p_hat / n) ** 2).clip(0))


def arguments(parser):
    """Say what a shell may ask for."""
    parser.add_argument("study", choices=list(STUDIES))
    parser.set_defaults(profile="quick", seeds=[*range(5)])


def train(given):
    """Train TCGA's patients; print where their tables are kept."""
    where = given.results, given.runs
    print(run_study(given.study, given.data_dir, given.profile, given.seeds, *where))
