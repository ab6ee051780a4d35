"""The parts of a gain: on cases where it is known where the gain comes from."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from probnb.metrics import brier, kl_p, mse_p, nll
from probnb.report.gain_parts import PARTS, gain_parts, ladder


def drawn(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n) * 1.5
    return s, (rng.random(n) < expit(s)) * 1, rng


def distorted(s):
    """A rising map that no intercept and no slope undoes."""
    return np.where(s > 0, 3 * s, s / 3) + 0.6 * np.sign(s)


CASES = {
    "bias": lambda s, rng: s + 0.8,
    "slope": lambda s, rng: 2.5 * s,
    "monotone": lambda s, rng: distorted(s) - distorted(s).mean(),
    "ranking": lambda s, rng: None,
}


@pytest.mark.parametrize("part", PARTS)
def test_a_gain_is_found_where_it_was_put(part):
    s, y, rng = drawn()
    if part == "ranking":  # two halves of the evidence, each calibrated, one weaker
        u = rng.normal(size=(2, 8000))
        y = (rng.random(8000) < expit(u[0] + u[1])) * 1
        grid, share = np.polynomial.hermite_e.hermegauss(30)
        a = expit(u[1][:, None] + grid) @ (share / share.sum())  # the mean over the other half
        b = expit(u.sum(axis=0))
    else:
        a, b = expit(CASES[part](s, rng)), expit(s)
    for metric, table in gain_parts(y, a, b).groupby("metric"):
        table = table.droplevel("metric")
        total, others = table.loc["total"], [x for x in PARTS if x != part]
        assert total["gain"] > 5 * total["std"], metric
        share = table["gain"] / total["gain"]
        if part != "monotone":
            assert share[part] == pytest.approx(1, abs=0.1), metric
            assert np.abs(share[others]).max() < 0.1, metric
        else:  # an intercept and a slope undo a part of it
            assert table.loc[part, "low"] > 0, metric
            assert abs(share["ranking"]) < 1e-9, metric
            assert share[["monotone", "slope", "bias"]].sum() == pytest.approx(1)


def test_a_rising_map_gives_and_takes_no_ranking():
    s, y, _ = drawn(500, 3)
    for f in (lambda s: s + 2, lambda s: 4 * s, distorted, lambda s: s + s**3 / 20):
        table = gain_parts(y, expit(f(s)), expit(s))
        assert np.abs(table.xs("ranking", level="part").to_numpy()).max() < 1e-12


def test_noise_is_ranking_once_its_slope_is_taken():
    s, y, rng = drawn(8000, 4)
    table = gain_parts(y, expit(s + 1.5 * rng.normal(size=8000)), expit(s))["gain"]["brier"]
    assert table["ranking"] > 0.5 * table["total"] > 0
    assert table["slope"] > 0 and table["slope"] + table["ranking"] == pytest.approx(
        table["total"], rel=0.05
    )


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@settings(max_examples=4, deadline=None)
def test_parts_add_up_to_the_difference_of_the_scores(seed, weighted, grouped):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 120))
    y, p = rng.integers(0, 2, n), rng.random(n)
    a, b = rng.random((2, n)).round(int(rng.integers(1, 9))) * 0.98 + 0.01
    w = rng.integers(1, 4, n) / 3 if weighted else None
    groups = rng.integers(0, 12, n) if grouped else None
    table = gain_parts(y, a, b, p, w, groups, folds=3, seed=seed)["gain"]
    for metric, score in (
        ("brier", lambda x: brier(y, x, weights=w)),
        ("nll", lambda x: nll(y, x, weights=w)),
        ("mse_p", lambda x: mse_p(p, x, weights=w)),
        ("kl_p", lambda x: kl_p(p, x, weights=w)),
    ):
        assert table[metric]["total"] == pytest.approx(score(a) - score(b), abs=1e-12)
        assert table[metric][list(PARTS)].sum() == pytest.approx(table[metric]["total"], abs=1e-12)
    swapped = gain_parts(y, b, a, p, w, groups, folds=3, seed=seed)
    np.testing.assert_allclose(swapped["gain"], -table, atol=1e-12)


def test_each_map_of_the_ladder_contains_the_one_before():
    s, y, rng = drawn(300, 5)
    s = distorted(s) + 0.5
    w = rng.random(300) + 0.1
    losses = [nll(y, f(s), weights=w) for f in ladder(s, y, w)[:3]]
    assert losses[0] > losses[1] > losses[2]
    shifted = ladder(s, y, w)[1](s)
    assert np.average(shifted, weights=w) == pytest.approx(np.average(y, weights=w), abs=1e-9)
    steps = ladder(s, y, w)[3](np.linspace(-30, 30, 1000))
    assert (np.diff(steps) >= 0).all() and steps.min() > 0 and steps.max() < 1


def test_inverted_predictions_differ_in_slope_alone():
    s, y, _ = drawn(2000, 6)
    table = gain_parts(y, expit(-s), expit(s))["gain"]["brier"]
    assert table["slope"] == pytest.approx(table["total"], rel=0.02)
    assert abs(table["ranking"]) < 1e-3


def test_intervals_cover_under_no_difference():
    # two equally noisy versions of one prediction: every part is 0 on average
    inside = []
    for seed in range(12):
        s, y, rng = drawn(400, 1000 + seed)
        a, b = (expit(s + rng.normal(size=400)) for _ in range(2))
        table = gain_parts(y, a, b, seed=seed).loc["brier"]
        inside.append(((table["low"] <= 0) & (table["high"] >= 0)).to_numpy())
    bias, slope, monotone, ranking, total = np.mean(inside, axis=0)
    assert min(bias, slope, ranking, total) > 0.8  # of 12, at 95 % nominal
    assert monotone > 0.6  # too short, as the docstring says


def test_no_fold_and_no_standard_error_cuts_through_a_group():
    rng = np.random.default_rng(7)
    day = np.repeat(np.arange(50), 20)
    s = np.repeat(rng.normal(size=50), 20)
    y = np.repeat((rng.random(50) < expit(s[::20])) * 1, 20)  # one outcome a day
    a, b = expit(s + np.repeat(rng.normal(size=50), 20)), expit(s)
    grouped = gain_parts(y, a, b, groups=day).loc["brier", :]
    single = gain_parts(y, a, b).loc["brier", :]
    assert grouped.loc["total", "std"] == pytest.approx(
        np.sqrt(20) * single.loc["total", "std"], rel=0.02
    )
    named = gain_parts(y, a, b, groups=[f"day {d}" for d in day]).loc["brier", :]
    pd.testing.assert_frame_equal(named, grouped)


def test_weights_constant_zero_and_bad_input():
    s, y, rng = drawn(200, 8)
    a, b = expit(s + 1), expit(2 * s)
    plain = gain_parts(y, a, b)
    pd.testing.assert_frame_equal(gain_parts(y, a, b, weights=np.full(200, 0.3)), plain)
    w = rng.integers(0, 3, 200)
    kept = w > 0
    pd.testing.assert_frame_equal(
        gain_parts(y, a, b, weights=w), gain_parts(y[kept], a[kept], b[kept], weights=w[kept])
    )
    for arguments, message in [
        (([0, 1], [0.5, 0.5], [0.5]), "y_true and b must have the same length; got 2 and 1"),
        (([0, 1], [0.5, 1.5], [0.5, 0.5]), "a must hold probabilities"),
        (([0, 0, 1], [0.5] * 3, [0.5] * 3), "outcomes must have two rows of 0 and of 1"),
        ((y, a, b, None, None, np.zeros(200)), "outcomes must have two rows of 0 and of 1"),
        ((y, a, b, None, None, [None] * 200), "groups must not be missing"),
        ((y, a, b, a[:5]), "p and y_true must have the same length; got 5 and 200"),
    ]:
        with pytest.raises(ValueError, match=message):
            gain_parts(*arguments)
    with pytest.raises(ValueError, match="folds must be an integer of at least 2"):
        gain_parts(y, a, b, folds=1)


def test_predictions_of_0_and_1_are_scored_as_they_are():
    y = np.array([0, 1] * 30)
    table = gain_parts(y, np.where(y == 1, 1.0, 0.0), np.full(60, 0.5))["gain"]
    assert table["brier"]["total"] == pytest.approx(-0.25)
    assert table["nll"]["total"] == pytest.approx(-np.log(2))


def test_the_authors_gain_on_linear_is_a_bias_and_on_discrete_is_not(data_dir):
    linear, discrete = (
        pd.read_csv(data_dir / "authors-predictions" / f"{name}.csv")
        for name in ("linear", "discrete")
    )
    parts = gain_parts(linear.y, linear.early_stop, linear.cape_bin, linear.p).loc["mse_p"]
    assert linear.early_stop.mean() - linear.y.mean() == pytest.approx(0.1056, abs=1e-4)
    assert parts.loc["bias", "gain"] / parts.loc["total", "gain"] == pytest.approx(1, abs=0.05)
    assert 0 < parts.loc["ranking", "high"] < 0.12 * parts.loc["total", "gain"]
    parts = gain_parts(discrete.y, discrete.early_stop, discrete.cape_bin, discrete.p).loc["mse_p"]
    assert parts.loc["bias", "high"] < 0 < parts.loc["slope", "low"]
    assert parts.loc["ranking", "low"] > 0


def test_the_intercept_is_found_where_the_search_is_slow():
    """Certain predictions, one of them wrong: brentq needs 101 steps and by default takes 100."""
    log_odds, y = np.array([36.04, -36.04, 2.2]), np.array([0, 1, 1])
    shifted = ladder(log_odds, y, np.full(3, 1 / 3))[1]
    assert np.isclose(shifted(log_odds).mean(), y.mean())
