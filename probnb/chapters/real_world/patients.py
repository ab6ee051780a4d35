"""TCGA's patients: five folds of sites under each rule for the censored, and what may be kept.

``python -m probnb.chapters.real_world.patients lung --data-dir DIR`` trains whatever is not yet
stored and writes a folder of results. Patients' rows stay where they are: what is written are
predictions by row number, without outcomes or follow-up, and tables of scores.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from sksurv.nonparametric import kaplan_meier_estimator

from ... import store
from ...data.survival import HORIZON, RULES, STAGES, label, survival_splits
from ...experiment.provenance import machine
from ...methods import METHODS, check_methods
from ...metrics import METRICS, Bootstrap, bootstrap, compare, difference
from ...metrics.sample import check_sample
from ...notebook import results_path
from .references import references
from .tasks import get_task, strata_of

STUDIES = {"lung": {}, "clinical": {"inputs": "clinical"}, "all": {"cohorts": "all"}}
"""What a study is about: parameters of the cancer task."""

PAIRS = (
    ("ce", "Constant"), ("ensemble", "Constant"), ("ce", "Cox, clinical"), ("cape_bin", "ce"),
    ("cape_kernel", "ce"), ("cape_bin", "ce_finetuned"), ("ensemble", "ce"), ("ensemble", "platt"),
)  # fmt: skip
"""Rows that are compared."""

SPREADS = (
    ("between", "ensemble", "ce"), ("within", "ensemble", "ce"),
    ("between", "cape_bin", "ensemble"), ("within", "cape_bin", "ce"),
)  # fmt: skip
"""Spreads of predictions between and within stages that the paper compares in its Figure 16."""


def run_study(name, data_dir, folder, fits, profile="quick"):
    """Train every row of the table on five folds by three rules, and write what may be kept.

    Parameters
    ----------
    name : str
        One of `STUDIES`.
    data_dir, folder, fits : path-like
        TCGA's tables; where the study goes, in a folder of that name; where trainings are kept.
    profile : str, default="quick"
        Name of the profile.

    Returns
    -------
    pathlib.Path
        The folder written.
    """
    from ...experiment.plan import plan
    from ...experiment.results import collect
    from ...experiment.run import run_jobs

    task, tables = get_task("cancer"), []
    settings = task.profile(profile)
    for rule in RULES:
        for seed in range(5):
            splits = task.load(data_dir, settings, seed, rule=rule, **STUDIES[name])
            jobs = plan(check_methods(known=False), settings, seed, task.network(settings, splits))
            rows = collect(jobs, run_jobs(jobs, splits, fits), splits).predictions
            rows = rows[rows["split"] == "test"].reset_index(drop=True)
            table = rows[["id", *(m for m in METHODS if m in rows)]].assign(rule=rule, seed=seed)
            tables.append(table.assign(**references(splits, seed)))
    cohort, target = splits.report["cohort"], Path(folder) / name
    for file, table in summarise(pd.concat(tables, ignore_index=True), cohort).items():
        write = table.to_parquet
        store.replace_file(target / f"{file}.parquet", lambda to, w=write: w(to, index=False))
    known = {k: v for k, v in cohort.report.items() if np.isscalar(v)}
    record = {"task": "cancer", "data": name, "profile": profile, "seeds": list(range(5))}
    record |= {"rules": RULES, "settings": settings, "source": cohort.source, **known, **machine()}
    text = json.dumps(record, indent=1, default=store.plain) + "\n"
    store.replace_file(target / "run.json", lambda path: path.write_text(text))
    return target


def read_study(folder):
    """Read the tables of a study by name, and its record as ``"record"``."""
    folder = Path(folder)
    tables = {path.stem: pd.read_parquet(path) for path in folder.glob("*.parquet")}
    return tables | {"record": json.loads((folder / "run.json").read_text())}


def summarise(predictions, cohort, replicates=1000):
    """Turn predictions of all rules and folds into the tables of a study.

    Parameters
    ----------
    predictions : DataFrame
        One line a rule and test patient: ``rule`` by which networks were trained, ``seed`` (which
        fold), ``id`` (a row number of the cohort), a column each method and reference.
    cohort : probnb.data.survival.Cohort
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
    return {
        "predictions": predictions, "scores": scores, "differences": differences, "stages": stages,
        "spread": spread,
    }  # fmt: skip


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
    methods = [c for c in predictions if c not in ("rule", "seed", "id")]
    paired = [m for m in methods if any(m in pair for pair in PAIRS)]
    scores, differences = [], []
    for rule, rows in predictions.groupby("rule", sort=False):
        labels = label(cohort.months, cohort.died, rule, strata=strata)
        y, weights = labels.outcomes, labels.weights
        survivors = np.average(y[rows["id"]], weights=weights[rows["id"]])
        for method in methods:
            for metric in ("brier", "auc", "ece"):
                parts = [p for _, p in rows.groupby("seed")] if metric == "auc" else [rows]
                samples = [
                    check_sample(y[p["id"]], p[method], weights=weights[p["id"]]) for p in parts
                ]
                value = np.mean([METRICS[metric].of(sample) for sample in samples])
                scores.append((rule, method, metric, value, survivors))
        for unit, groups in (("patient", cohort.numbers), ("site", cohort.sites)):
            boot = _five_folds(rows, y, weights, np.asarray(groups), paired, replicates)
            for a, b in (pair for pair in PAIRS if set(pair) <= set(paired)):
                for metric in ("brier", "auc"):
                    gap = compare([boot], a, b, metric).__dict__
                    differences.append(dict(rule=rule, unit=unit, metric=metric, a=a, b=b, **gap))
    columns = ["rule", "method", "metric", "value", "survivors"]
    return pd.DataFrame(scores, columns=columns), pd.DataFrame(differences)


def _five_folds(rows, y, weights, groups, methods, replicates):
    """Resample groups of all folds; AUC is the mean over folds, each with resamples of its own."""

    def resampled(part, metrics):
        at = part["id"].to_numpy()
        given = dict(weights=weights[at], groups=groups[at], progress=False, replicates=replicates)
        return bootstrap(y[at], part[methods], metrics=metrics, **given)

    whole = resampled(rows, ["brier", "auc"])
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
    methods = sorted({name for _, *pair in SPREADS for name in pair} & set(predictions))
    lines = []
    for name in (s for s in STAGES if (stage == s).sum() >= least):
        rows = stage == name
        times, survival, ends = kaplan_meier_estimator(died[rows], months[rows],
                                                       conf_type="log-log")  # fmt: skip
        last = np.searchsorted(times, HORIZON, side="right") - 1
        lines.append(("observed", name, rows.sum(), survival[last], ends[0, last], ends[1, last]))
        for method in methods:
            low, value, high = predictions.loc[rows, method].quantile([0.25, 0.5, 0.75])
            lines.append((method, name, rows.sum(), value, low, high))
    stages = pd.DataFrame(lines, columns=["method", "stage", "patients", "value", "low", "high"])
    known = stage != "unknown"
    member = np.eye(len(STAGES))[[STAGES.index(s) for s in stage[known]]]
    rng, n = np.random.default_rng(0), int(known.sum())
    drawn = [np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(replicates)]
    weights = np.array([np.ones(n), *drawn])
    spreads = {m: _spreads(predictions.loc[known, m].to_numpy(), member, weights) for m in methods}
    found = []
    for spread, a, b in SPREADS:
        if {a, b} <= set(methods):
            gaps = spreads[a][spread] - spreads[b][spread]
            gap = difference([gaps[0]], gaps[1:], n).__dict__
            found.append(dict(spread=spread, a=a, b=b, **gap))
    return stages, pd.DataFrame(found)


def _spreads(p_hat, member, weights):
    """Standard deviations of predictions between and within stages, for each row of weights."""
    n, sizes = weights.sum(1), weights @ member
    sums = weights @ (member * p_hat[:, None])
    explained = (sums**2 / np.maximum(sizes, 1)).sum(1) / n
    between = (explained - (weights @ p_hat / n) ** 2).clip(0)
    within = ((weights @ p_hat**2) / n - explained).clip(0)
    return {"between": np.sqrt(between), "within": np.sqrt(within)}


def main():
    """Run a study from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--results", default=results_path().parent / "results" / "cancer")
    parser.add_argument("--fits", default=results_path() / "fits")
    parser.add_argument("--profile", default="quick")
    a = parser.parse_args()
    print(run_study(a.study, a.data_dir, a.results, a.fits, a.profile))


if __name__ == "__main__":
    main()
