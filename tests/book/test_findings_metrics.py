"""Each sentence of the page on metrics that tells a finding, held against the stored runs."""

import numpy as np
import pandas as pd
import pytest

from probnb_book import evidence, simulated_streams
from probnb_book import metrics as study
from probnb_book.scenarios import SCENARIOS

from .pages import RESULTS, defined, said


def stored():
    return pd.concat(study.best_runs([RESULTS], SCENARIOS).values())


@pytest.fixture(scope="module")
def models():
    return study.collect_models(stored())


@pytest.fixture(scope="module")
def table(models):
    return study.correlations(pd.concat([models, study.paper_models()]))


def spans(table, kind, target="mse_p"):
    """Least and largest correlation over the scenarios, by metric."""
    rows = table.query("kind == @kind and target == @target")
    return rows.groupby("metric")["pearson"].agg(["min", "max"])


def leaders(table, kind, target="mse_p"):
    """The metric of the largest correlation in each scenario."""
    rows = table.query("kind == @kind and target == @target").dropna(subset="pearson")
    best = rows.loc[rows.groupby("scenario")["pearson"].idxmax()]
    return best.set_index("scenario")["metric"].to_dict()


def check_methods(table):
    rows = table.query("kind == 'method' and target == 'mse_p'").set_index(["metric", "scenario"])
    assert (rows["seeds"] == 5).all()
    brier, nll = (rows.loc[name, "pearson"].drop("centered").min() for name in ("brier", "nll"))
    said(f"by {brier:.2f} or more in four scenarios, and NLL nearly as well", "metrics")
    assert nll > 0.8 and rows.loc[("brier", "centered"), "pearson"] < 0.8
    low, high = rows.loc[("ece", "sigmoid"), ["low", "high"]]
    assert low < 0 < high  # not at all
    errors = rows.loc[["ece", "mce", "ks"], "pearson"].unstack()
    assert errors.drop(columns="skewed").max().max() < 0.7
    assert errors.loc[["ece", "ks"], "skewed"].min() > 0.95


def test_across_methods_proper_scores_follow_the_truth_and_calibration_errors_do_not(table, models):
    check_methods(table)
    methods = models.query("kind == 'method'")
    apart = methods.query("scenario == 'centered'").groupby("seed")["mse_p"].agg(np.ptp)
    proper = methods.query("scenario == 'skewed' and name not in ['focal', 'entropy']")
    proper = study.correlations(proper).query("target == 'mse_p'")
    proper = proper.set_index("metric")["pearson"]
    assert proper[["ece", "mce", "ks"]].max() < 0.35 and proper["brier"] > 0.9
    assert apart.min() > 0.001 and apart.max() < 0.0025


def test_across_epochs_nearly_everything_goes_together(table):
    found = spans(table, "epoch")
    brier, ece = found.loc[["brier", "ece"], "min"]
    assert brier > 0.98 and ece > 0.6
    assert set(leaders(table, "epoch").values()) == {"brier"}
    assert set(leaders(table, "epoch", "kl_p").values()) == {"nll"}


def test_in_the_papers_tables_brier_leads_but_in_discrete(table):
    found = leaders(table, "paper")
    assert found.pop("discrete") == "ks" and set(found.values()) == {"brier"}


def test_clear_pairs_are_ordered_rightly():
    resolution, runs = defined("metrics").brier_resolution, stored()
    found = pd.DataFrame([resolution(evidence.tables(line)[1]) for line in runs.itertuples()])
    found = found.groupby(runs["task"].to_numpy()).mean()
    assert found["clear_right"].min() > 0.99
    unclear = 1 - found["clear"]
    assert 0.38 < unclear.min() < 0.45 and 0.86 < unclear.max() < 0.92
    wrong = 1 - found["other_right"]
    assert 0.18 < wrong.min() < 0.23 and 0.27 < wrong.max() < 0.36


def check_watch(told):
    """With a third of the page's streams, so that shares are within three standard errors."""
    alarms, row = (told.xs(name, axis=1, level=1) for name in ("alarms", "median row"))
    z = ["z of the mean", "Spiegelhalter's z"]
    assert alarms.loc["true", "watch"] <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5
    assert (alarms.loc["true", z] > 0.45).all()
    wrong = row.drop(index="true").iloc[:-1]
    assert (alarms["watch"].drop("true") > 0.99).all()
    assert wrong["watch"].between(600, 1100).all()
    assert 1400 < row["watch"].iloc[-1] - simulated_streams.CHANGE < 1800
    assert (wrong[z].min(axis=1) < wrong["watch"] / 3).all()  # the right one
    assert alarms[z].drop("true").min(axis=1).between(0.35, 0.7).all()  # the wrong one


def test_a_watch_keeps_its_promise_and_a_test_that_is_looked_at_again_does_not():
    told = simulated_streams.alarm_table(streams=300)
    check_watch(told)
    changed = told.copy()
    changed.loc["true", ("watch", "alarms")] = 0.2
    with pytest.raises(AssertionError):
        check_watch(changed)
    variance = (simulated_streams.SAID * (1 - simulated_streams.SAID)).mean()
    assert round(2.8016**2 * variance / 0.05**2, -1) == 570


def test_the_guard_fails_when_a_stored_number_is_changed(table):
    changed = table.copy()
    place = changed.query("kind == 'method' and target == 'mse_p' and metric == 'brier'").index[0]
    changed.loc[place, "pearson"] = 0.5
    with pytest.raises(AssertionError):
        check_methods(changed)
