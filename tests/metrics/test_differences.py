"""The rule for differences: closed forms, and its coverage by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from probnb.metrics import bootstrap, compare, difference, holm


def test_seeds_with_rows_of_their_own_are_students_interval():
    values = np.array([0.3, -0.1, 0.25, 0.4])
    gap = difference(values)
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (gap.low, gap.high) == pytest.approx(expected)
    assert gap.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert (gap.seeds, gap.units) == (4, None)


def test_one_training_is_students_interval_over_groups():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 2, 90), np.repeat(np.arange(9), 10)
    a, b = rng.random(90), rng.random(90)
    run = bootstrap(y, {"a": a, "b": b}, replicates=5000, metrics=["brier"], groups=groups)
    terms = ((a - y) ** 2 - (b - y) ** 2).reshape(9, 10).mean(axis=1)
    gap, expected = compare([run], "a", "b", "brier"), stats.ttest_1samp(terms, 0)
    interval = expected.confidence_interval()
    assert (gap.low, gap.high) == pytest.approx(tuple(interval), abs=0.003)
    assert gap.p == pytest.approx(expected.pvalue, abs=0.01)


@pytest.mark.parametrize("units", [1, 4])
def test_few_units_have_no_interval(units):
    gap = difference([0.2], np.zeros((50, 1)) + 0.2, units)
    assert np.isnan([gap.low, gap.high, gap.p]).all() and not gap.resolved
    assert gap.text() == "+20.00"


def test_identical_methods_do_not_differ():
    gap = difference([0.0, 0.0, 0.0])
    assert (gap.low, gap.high, gap.p) == (0, 0, 1) and not gap.resolved


def test_small_differences_show_their_digits():
    assert difference([2e-5, 3e-5]).text(scale=100) == "+0.0025 [-0.0039, +0.0089]"


def test_infinite_scores_have_no_interval():
    truth, rules_out = [0.5] * 8, {"a": [0.0] * 8, "b": [1.0] * 8, "c": [0.5] * 8}
    run = bootstrap([0, 1] * 4, rules_out, truth, replicates=20, metrics=["kl_p"])
    gap = compare([run, run], "a", "c", "kl_p")
    assert gap.value == np.inf and np.isnan([gap.low, gap.p]).all() and gap.text() == "+inf"
    both = compare([run], "a", "b", "kl_p")
    assert np.isnan(both.value) and not both.resolved and both.text() == "not defined"
    assert run.difference("c", "c").loc["kl_p", "low"] == 0


def test_holm_equals_the_definition():
    p = [0.01, np.nan, 0.02, 0.03, 0.5]
    np.testing.assert_allclose(holm(p), [0.04, np.nan, 0.06, 0.06, 0.5])


@pytest.mark.parametrize(
    ("values", "samples", "units", "message"),
    [([], None, None, "values"), ([0.1], None, None, "samples"), ([0.1], np.ones((9, 2)), 9, "1")],
)
def test_bad_input_is_named(values, samples, units, message):
    with pytest.raises(ValueError, match=message):
        difference(values, samples, units)


SEEDS, GROUPS = (3, 5, 10), (9, 200)
EFFECTS = {"rows": (1, 0.02, 0.5), "seeds": (0.5, 1, 0.5), "both": (1, 0.1, 1)}
"""Deviations of a row's (or group's) effect, of a training's, and of what is left."""


def coverage(seeds, groups, effects, shared, runs=2000):
    """Share of simulated studies, of true difference 0, whose interval holds it.

    As many points as groups, with the covariance that infinitely many resamples have, stand for
    the resamples.
    """
    rng = np.random.default_rng([seeds, groups, shared])
    row, seed, rest = EFFECTS[effects]
    covered = 0
    for _ in range(runs):
        shape = (1, groups) if shared else (seeds, groups)
        table = rng.normal(0, row, shape) + rng.normal(0, rest, (seeds, groups))
        table = table + rng.normal(0, seed, (seeds, 1))
        values, samples = table.mean(axis=1), None
        if shared:
            samples = (table - values[:, None]).T * np.sqrt(groups - 1) / groups
        gap = difference(values, samples, groups, shared)
        covered += gap.low <= 0 <= gap.high
    return covered / runs


@pytest.mark.parametrize("effects", EFFECTS)
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(("groups", "shared"), [(9, True), (200, True), (200, False)])
def test_intervals_cover(seeds, groups, effects, shared):
    assert 0.93 <= coverage(seeds, groups, effects, shared) <= 0.97


def test_holm_goes_by_place_and_refuses_what_is_no_probability():
    np.testing.assert_allclose(holm(pd.Series([0.04, 0.01], index=["a", "a"])), [0.04, 0.02])
    with pytest.raises(ValueError, match=r"p_values must be in \[0, 1\] or NaN; got -1 to 2"):
        holm([2, -1])


def test_what_a_mask_hides_is_no_number():
    """It counted as if it were there."""
    hidden = np.ma.array([0.1, 0.2, 0.3], mask=[False, True, False])
    shared = {"samples": np.ma.array(np.eye(9, 3), mask=np.eye(9, 3)), "units": 9, "shared": True}
    for name, call in {
        "values": lambda: difference(hidden),
        "samples": lambda: difference(hidden.data, **shared),
        "p_values": lambda: holm(hidden),
    }.items():
        with pytest.raises(ValueError, match=rf"{name} must have every value; row \d is masked"):
            call()
