"""The costs and shares of the ways to do better, on stored runs and by hand."""

import numpy as np
import pandas as pd
import pytest

from probnb_book import costs, evidence

from .pages import RESULTS


@pytest.fixture(scope="module")
def table():
    return costs.stored([RESULTS])


@pytest.fixture(scope="module")
def sums(table):
    return costs.shares(table).set_index(["start", "row"])


def test_seconds_are_those_of_the_epochs_that_a_row_needs(best):
    (line, *_) = best["linear"].itertuples()
    results, _ = evidence.tables(line)
    epochs = results.epochs.dropna(subset="cpu_seconds").set_index(["fit", "epoch"])["cpu_seconds"]
    patience = line.run.record["settings"]["patience"]
    kept = results.chosen[results.chosen["method"] == "ce"]["best_epoch"].item()
    ce = sum(epochs["ce", k] for k in range(1, kept + patience + 1))
    found = costs.seconds(line)
    assert found["ce"] == found["platt"] == pytest.approx(ce)
    assert found["ce_overfit"] == pytest.approx(found["ce"])  # the network is the same
    members = [epochs[f"ensemble member={k}"].sum() for k in (2, 3)]  # stopped by themselves
    assert found["ensemble"] == pytest.approx(ce + sum(members))
    assert found["ce_mean"] == pytest.approx(found["ensemble"] / 3)
    assert found["resampled"] == pytest.approx(epochs["resampled"].sum())
    tuned = results.chosen[results.chosen["method"] == "cape_bin"].set_index("fit")["best_epoch"]
    tuned = sum(epochs[fit].loc[: k + patience].sum() for fit, k in tuned.items())
    assert len(results.chosen.query("method == 'cape_bin'")) == 4
    assert found["cape_bin"] == pytest.approx(ce + tuned)


def test_shares_of_a_table_by_hand():
    rows = [
        ("linear", 0, 1.0, 2.0),
        ("linear", 1, 2.0, 5.0),
        ("skewed", 0, 0.1, 0.4),
        ("skewed", 1, 0.1, 0.4),
    ]
    table = pd.DataFrame(rows, columns=["scenario", "seed", "gain", "whole"])
    table = table.assign(start=costs.SCRATCH, row="ensemble", trainings=[3, 4, 5, 4], seconds=2)
    alone = table[:2].assign(row="platt")
    found = costs.shares(pd.concat([table, alone])).set_index("row")
    line, other = found.loc["ensemble"], found.loc["platt"]
    assert (line["linear"], line["skewed"], line["least"]) == pytest.approx((3 / 7, 0.25, 0.25))
    assert (line["share"], line["trainings"]) == pytest.approx(((3 / 7 + 0.25) / 2, 4))
    # Without seed 1 or 0 the share is 3/8 or 13/40: pseudo-values are .025 from their mean.
    half = 12.7062 * 0.025  # Student's, one degree of freedom
    assert (line["high"] - line["low"]) / 2 == pytest.approx(half, rel=1e-4)
    assert other["linear"] == pytest.approx(3 / 7)
    assert np.isnan([other["share"], other["skewed"]]).all()


def test_both_starts_have_the_same_faces_and_outcomes(best, strong):
    pairs = 0
    for scenario in best:
        first, second = (
            {r.seed: r for r in runs[scenario].itertuples()} for runs in (best, strong)
        )
        for seed in first.keys() & second.keys():
            a, b = (evidence.tables(runs[seed])[1][["id", "y", "p"]] for runs in (first, second))
            pd.testing.assert_frame_equal(a, b, check_dtype=False)
            pairs += 1
    assert pairs >= 10


def test_what_a_row_is_compared_with(table, best):
    """A map or a fine-tuning changes one network, which is its baseline; others have the mean."""
    assert {row: evidence.baseline_of(row) for row in ("platt", "cape_bin", "ce_finetuned")} == {
        "platt": "ce",
        "cape_bin": "ce",
        "ce_finetuned": "ce",
    }
    assert evidence.baseline_of("logistic_bin") == "logistic"
    for row in ("ensemble", "ensemble_platt", "ce_averaged", "beginning_bin", "focal"):
        assert evidence.baseline_of(row) == "ce_mean"
    own = table[table["start"] == costs.SCRATCH].set_index(["scenario", "seed", "row"])
    (line, *_) = best["linear"].itertuples()
    errors = evidence.values(line, "mse_p")
    for row, base in (("cape_bin", "ce"), ("ensemble", "ce_mean")):
        gain, percent = own.loc[("linear", line.seed, row), ["gain", "percent"]]
        assert gain == pytest.approx(errors[base] - errors[row])
        assert percent == pytest.approx(100 * (1 - errors[row] / errors[base]))
