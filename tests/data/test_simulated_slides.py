"""Simulated slides: the truth is the truth, and the slides show it."""

import numpy as np
import pytest
from scipy.stats import kstest, spearmanr

from probnb.data.cohort import survival_splits
from probnb.data.simulated_slides import (
    simulate_follow_up,
    simulate_slides,
    survival_probability,
)


def test_the_truth_is_how_often_patients_live_to_the_horizon():
    for severity in (-1.0, 0.0, 1.5):
        _, _, survival = simulate_follow_up(np.full(20_000, severity), seed=1)
        share = (survival > 60).mean()
        assert share == pytest.approx(survival_probability(severity), abs=0.015)
    assert survival_probability(0) == 0.5


def test_survival_is_exponential_with_proportional_hazards():
    severity = np.full(5000, 1.0)
    _, _, survival = simulate_follow_up(severity, seed=2)
    hazard = np.log(2) * np.exp(0.7) / 60
    assert kstest(survival * hazard, "expon").pvalue > 0.01


@pytest.mark.parametrize("censored", [0, 0.2, 0.5, 0.9])
def test_censoring_hides_the_share_asked_for(censored):
    severity = np.random.default_rng(0).standard_normal(20_000)
    months, died, survival = simulate_follow_up(severity, censored, seed=3)
    hidden = (died == 0) & (months < 60)
    assert hidden.mean() == pytest.approx(censored, abs=0.015)
    assert (months <= survival).all()
    np.testing.assert_array_equal(died == 1, months == survival)
    if censored:  # independent of the severity
        assert abs(spearmanr(severity, months / survival)[0]) < 0.5


def test_follow_up_is_the_same_for_the_same_seed_whatever_is_censored():
    severity = np.linspace(-1, 1, 50)
    _, _, a = simulate_follow_up(severity, 0.2, seed=4)
    _, _, b = simulate_follow_up(severity, 0.8, seed=4)
    np.testing.assert_array_equal(a, b)


def test_slides_of_a_patient_share_the_truth_and_have_tiles():
    cohort = simulate_slides(100, seed=0)
    assert len(cohort) > 100
    assert cohort.report["slides"] == len(cohort)
    assert cohort.inputs.lengths.min() >= 1
    assert len(np.unique(cohort.patients)) == 100
    assert set(cohort.covariates["stage"]) <= {"I", "II", "III", "IV", "unknown"}
    splits = survival_splits(cohort)
    assert splits.known
    again = simulate_slides(100, seed=0)
    np.testing.assert_array_equal(again.inputs.values, cohort.inputs.values)
    other = simulate_slides(100, seed=1)
    assert other.source != cohort.source


def test_few_tiles_carry_the_severity():
    cohort = simulate_slides(300, features=8, noise=0.0, seed=5)
    bags, p = cohort.inputs, cohort.probabilities
    severity = np.log(np.log(p) / np.log(0.5)) / 0.7
    first = bags.values[bags.offsets]  # the first tile of each slide shows the tumour
    design = np.column_stack([first, np.ones(len(first))])
    fitted = design @ np.linalg.lstsq(design, severity, rcond=None)[0]
    np.testing.assert_allclose(fitted, severity, atol=1e-3)
    last = bags.values[bags.offsets + bags.lengths - 1][bags.lengths > 1]
    design = np.column_stack([last, np.ones(len(last))])
    of = severity[bags.lengths > 1]
    fitted = design @ np.linalg.lstsq(design, of, rcond=None)[0]
    assert np.corrcoef(fitted, of)[0, 1] < 0.6  # most other tiles do not


def test_a_lone_tile_is_enough():
    cohort = simulate_slides(20, tiles=1, seed=6)
    assert (cohort.inputs.lengths == 1).any()
    x, mask = survival_splits(cohort, folds=3).train.batch([0])
    assert mask.any()
    assert x.ndim == 3


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"patients": 3}, "patients must be an integer of at least 10"),
        ({"features": 1}, "features must be an integer of at least 2"),
        ({"informative": 1.5}, "informative must be a finite number"),
        ({"censored": 1}, "censored must be a finite number"),
        ({"noise": -1}, "noise must be a finite number"),
    ],
)
def test_wrong_settings(kwargs, message):
    with pytest.raises(ValueError, match=message):
        simulate_slides(**kwargs)
