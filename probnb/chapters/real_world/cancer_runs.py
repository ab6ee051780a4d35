"""All rules and seeds of the cancer task, and what may be kept of them.

``python -m probnb.chapters.real_world.cancer_runs lung --data-dir DIR`` trains whatever is not yet
stored and writes a folder of results. Patients' rows stay where they are: what is written are
predictions by row number, without outcomes or follow-up, and tables of scores.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from ... import store
from ...data.survival import RULES
from ...experiment.provenance import machine
from ...methods import METHODS, check_methods
from ...notebook import results_path
from . import cancer_study
from .cancer import TASK

__all__ = ["DATA", "run_study", "summarise", "train_rule"]

DATA = {
    "lung": {},
    "clinical": {"inputs": "clinical"},
    "all": {"cohorts": "all"},
}
"""What a study is about: parameters of `probnb.chapters.real_world.cancer.load`."""


SHOWN = ("ce", "ensemble", "ce_finetuned", "cape_bin", "cape_kernel")
"""Methods whose predictions by stage and by group are kept."""

LEAST = 20
"""Patients of a stage that is described at least."""

STEP = 6
"""Months between the points of survival curves that are kept."""


def train_rule(data, rule, seed, data_dir, fits, profile="quick", progress=True):
    """Train every row of the table on one fold by one rule.

    Parameters
    ----------
    data : str
        Name in `DATA`.
    rule : {"paper", "known", "ipcw"}
        What becomes of the censored.
    seed : int
        Which fold, and the seed of the trainings.
    data_dir : path-like
        Folder of TCGA's tables.
    fits : path-like
        Where finished trainings are kept.
    profile : str, default="quick"
        Name of the profile.
    progress : bool, default=True
        Whether to show a bar.

    Returns
    -------
    predictions : DataFrame
        Columns ``rule``, ``seed``, ``id``, methods and references, one row a test patient.
    splits : probnb.data.base.Splits
        The data.
    """
    from ...experiment.plan import plan
    from ...experiment.results import collect
    from ...experiment.run import run_jobs

    settings = TASK.profile(profile)
    splits = TASK.load(data_dir, settings, seed, rule=rule, **DATA[data])
    jobs = plan(check_methods(known=False), settings, seed, TASK.network(settings, splits))
    results = collect(jobs, run_jobs(jobs, splits, fits, progress=progress), splits)
    rows = results.predictions
    rows = rows[rows["split"] == "test"].reset_index(drop=True)
    methods = [name for name in METHODS if name in rows]
    table = pd.DataFrame({"rule": rule, "seed": seed, "id": rows["id"], **rows[methods]})
    return table.assign(**TASK.references(splits, seed)), splits


def summarise(predictions, cohort, strata=None, replicates=1000):
    """Turn predictions of all rules and folds into the tables of a study.

    Parameters
    ----------
    predictions : DataFrame
        Of `train_rule`, all together.
    cohort : probnb.data.cohort.Cohort
        The patients, by row number.
    strata : ndarray, optional
        See `probnb.data.survival.label`.
    replicates : int, default=1000
        Bootstrap replicates.

    Returns
    -------
    dict of str to DataFrame
        `cancer_study.TABLES`. ``differences`` has the paired differences by patient and by site;
        ``stages`` the observed survival of each stage and ``boxes`` the quantiles of predictions
        in it; ``groups`` predicted and observed survival of thirds of the patients, and ``curves``
        their survival in time.
    """
    follow_up = cohort.months, cohort.died
    scores = cancer_study.compare_rules(predictions, *follow_up, strata, replicates=replicates)
    own = predictions[predictions["rule"] == "ipcw"].drop(columns="rule")
    differences = []
    for unit, groups in (("patient", cohort.numbers), ("site", cohort.sites)):
        result = cancer_study.five_fold_bootstrap(
            own, *follow_up, "ipcw", strata, replicates=replicates, groups=groups
        )
        differences.append(cancer_study.paired(result).assign(unit=unit))
    at = own["id"].to_numpy()
    shown = {name: own[name] for name in (*SHOWN, "Cox regression", "Cox, clinical") if name in own}
    stages = cohort.covariates["stage"].to_numpy()
    spread = cancer_study.stage_spread(stages[at], shown).rename_axis("method").reset_index()
    groups, curves = [], []
    for name, p_hat in shown.items():
        table = cancer_study.survival_by_group(p_hat, cohort.months[at], cohort.died[at])
        groups.append(table.drop(columns="curve").assign(method=name))
        curves += [_on_grid(curve, name, k) for k, curve in enumerate(table["curve"])]
    return {
        "predictions": predictions.astype({c: "float32" for c in predictions.columns[3:]}),
        "scores": scores,
        "differences": pd.concat(differences, ignore_index=True),
        "spread": spread,
        "contrasts": cancer_study.stage_contrasts(stages[at], shown, replicates),
        "stages": cancer_study.survival_by_stage(stages, *follow_up),
        "boxes": cancer_study.stage_quantiles(stages[at], shown, LEAST),
        "groups": pd.concat(groups, ignore_index=True),
        "curves": pd.concat(curves, ignore_index=True),
    }


def _on_grid(curve, method, group):
    """A Kaplan-Meier estimate at every sixth month: no patient's follow-up can be read off it."""
    months = np.arange(0, curve["months"].max() + 1, STEP)
    at = np.searchsorted(curve["months"], months, side="right") - 1
    rows = curve.iloc[at][["survival", "low", "high"]].reset_index(drop=True)
    return rows.assign(method=method, group=group, months=months)


def run_study(data, data_dir, folder, fits, rules=RULES, seeds=range(5), profile="quick"):
    """Train, summarise and write a study.

    Parameters
    ----------
    data : str
        Name in `DATA`.
    data_dir : path-like
        Folder of TCGA's tables.
    folder : path-like
        Where the study goes, in a folder ``cancer-{data}``.
    fits : path-like
        Where finished trainings are kept.
    rules : sequence of str, default=RULES
        Which rules; ``"ipcw"`` must be among them.
    seeds : iterable of int, default=range(5)
        Which folds.
    profile : str, default="quick"
        Name of the profile.

    Returns
    -------
    pathlib.Path
        The folder written.
    """
    seeds, tables = list(seeds), []
    for rule in rules:
        for seed in seeds:
            table, splits = train_rule(data, rule, seed, data_dir, fits, profile)
            tables.append(table)
    cohort = splits.report["cohort"]
    strata = None
    if cohort.covariates["cohort"].nunique() > 2:
        strata = cohort.covariates["cohort"].to_numpy()
    target = Path(folder) / f"cancer-{data}"
    for name, table in summarise(pd.concat(tables, ignore_index=True), cohort, strata).items():
        write_table(target / f"{name}.parquet", table)
    known = {k: v for k, v in cohort.report.items() if np.isscalar(v)}
    record = {
        "task": "cancer study",
        "data": data,
        "profile": profile,
        "seeds": seeds,
        "rules": list(rules),
        "rates": list(TASK.profile(profile).grid.get("finetune_learning_rate", ())),
        "source": cohort.source,
        **known,
        **machine(),
    }
    text = json.dumps(record, indent=1, default=store.plain) + "\n"
    store.replace_file(target / "study.json", lambda path: path.write_text(text))
    return target


def write_table(path, table):
    """Write a table as Parquet, whole or not at all."""
    store.replace_file(path, lambda to: table.to_parquet(to, index=False, compression="zstd"))


def main():
    """Run a study from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=DATA)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--results", default=results_path().parent / "results" / "real_world")
    parser.add_argument("--fits", default=results_path() / "fits")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--profile", default="quick")
    a = parser.parse_args()
    print(run_study(a.data, a.data_dir, a.results, a.fits, a.rules, a.seeds, a.profile))


if __name__ == "__main__":
    main()
