"""Each sentence of the page on metrics that tells a finding, held against the stored runs."""

from pathlib import Path

import pandas as pd
import pytest

from probnb.chapters import metrics as study
from probnb.chapters import watched
from probnb.scenarios import SCENARIOS

STORED = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def table():
    runs = study.best_runs([STORED], SCENARIOS)
    models = study.collect_models(runs.values())
    return study.correlations(pd.concat([models, study.paper_models()]), replicates=2)


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
    found = spans(table, "method")
    assert found.loc["brier", "min"] >= 0.895 and found.loc["nll", "min"] >= 0.7
    assert found.loc[["ece", "mce", "ks"], "max"].max() < 0.7
    assert found.loc["ece", "min"] < 0 and abs(found.loc["ks", "min"]) < 0.05


def test_across_methods_proper_scores_follow_the_truth_and_calibration_errors_do_not(table):
    check_methods(table)


def test_across_epochs_nearly_everything_goes_together(table):
    found = spans(table, "epoch")
    assert found.loc["brier", "min"] > 0.985 and found.loc["ece", "min"] >= 0.755
    assert set(leaders(table, "epoch").values()) == {"brier"}
    assert set(leaders(table, "epoch", "kl_p").values()) == {"nll"}


def test_in_the_papers_tables_brier_leads_but_in_discrete(table):
    found = leaders(table, "paper")
    assert found.pop("discrete") == "ks" and set(found.values()) == {"brier"}


def test_clear_pairs_are_ordered_rightly():
    found = study.brier_resolution(study.best_runs([STORED], SCENARIOS).values())
    assert (found["clear_right"] == 1).all()
    unclear = 1 - found["clear"]
    assert 0.2 < unclear.min() < 0.3 and 0.8 < unclear.max() < 0.95
    wrong = 1 - found["other_right"]
    assert 1 / 8 < wrong.min() < 1 / 5 and 0.4 < wrong.max() < 0.55


def check_watch(told):
    """With a third of the page's streams, so that shares are within three standard errors."""
    alarms, row = (told.xs(name, axis=1, level=1) for name in ("alarms", "median row"))
    z = ["z of the mean", "Spiegelhalter's z"]
    assert alarms.loc["true", "watch"] <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5
    assert (alarms.loc["true", z] > 0.45).all()
    wrong = row.drop(index="true").iloc[:-1]
    assert (alarms["watch"].drop("true") > 0.99).all()
    assert wrong["watch"].between(600, 1100).all()
    assert 1400 < row["watch"].iloc[-1] - watched.CHANGE < 1800
    assert (wrong[z].min(axis=1) < wrong["watch"] / 3).all()  # the right one
    assert alarms[z].drop("true").min(axis=1).between(0.35, 0.7).all()  # the wrong one


def test_a_watch_keeps_its_promise_and_a_test_that_is_looked_at_again_does_not():
    told = watched.alarm_table(streams=300)
    check_watch(told)
    changed = told.copy()
    changed.loc["true", ("watch", "alarms")] = 0.2
    with pytest.raises(AssertionError):
        check_watch(changed)
    variance = (watched.SAID * (1 - watched.SAID)).mean()
    assert round(2.8016**2 * variance / 0.05**2, -1) == 570


def test_the_guard_fails_when_a_stored_number_is_changed(table):
    changed = table.copy()
    place = changed.query("kind == 'method' and target == 'mse_p' and metric == 'brier'").index[0]
    changed.loc[place, "pearson"] = 0.5
    with pytest.raises(AssertionError):
        check_methods(changed)
