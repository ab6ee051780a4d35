"""Each sentence of the page on metrics that tells a finding, held against the stored runs."""

from pathlib import Path

import pandas as pd
import pytest

from probnb.chapters import metrics as study
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
    assert found.loc["brier", "min"] >= 0.9 and found.loc["nll", "min"] >= 0.7
    assert found.loc[["ece", "mce", "ks"], "max"].max() < 0.7
    assert found.loc["ece", "min"] < 0 and found.loc["ks", "min"] < 0


def test_across_methods_proper_scores_follow_the_truth_and_calibration_errors_do_not(table):
    check_methods(table)


def test_across_epochs_nearly_everything_goes_together(table):
    found = spans(table, "epoch")
    assert found.loc["brier", "min"] > 0.985 and found.loc["ece", "min"] >= 0.865
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


def test_the_guard_fails_when_a_stored_number_is_changed(table):
    changed = table.copy()
    place = changed.query("kind == 'method' and target == 'mse_p' and metric == 'brier'").index[0]
    changed.loc[place, "pearson"] = 0.5
    with pytest.raises(AssertionError):
        check_methods(changed)
