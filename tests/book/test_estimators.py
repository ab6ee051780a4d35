"""Estimates of the calibration error against closed forms, and the page Metrics on them."""

import numpy as np
import pytest

from probnb.metrics import difference, ece, ece_debiased, ece_smooth
from probnb_book import estimators, evidence
from probnb_book.authors import derived

from .pages import RESULTS, said


def wave(rng, a, k, spread=0.14, n=2329):
    """Predictions u, uniform, whose E(p | u) is u + a sin(2 pi k u), and p about that."""
    u = rng.uniform(size=n)
    c = u + a * np.sin(2 * np.pi * k * u)
    away = np.minimum(np.minimum(c, 1 - c), spread) * rng.choice([-1, 1], n)
    return np.clip(c + away, 0, 1), u


@pytest.mark.parametrize(("a", "k"), [(0, 1), (0.01, 1), (0.03, 1), (0.03, 2), (0.05, 3), (0.1, 1)])
def test_exact_errors_of_a_sine(a, k):
    """Its mean absolute error is 2 a / pi, its mean square a^2 / 2."""
    rng = np.random.default_rng(0)
    found = np.mean([estimators.exact_errors(*wave(rng, a, k)) for _ in range(20)], axis=0)
    assert found[0] == pytest.approx(2 * a / np.pi, abs=0.003)
    assert found[1] == pytest.approx(a**2 / 2, rel=0.12, abs=3e-5)
    if not a:
        assert found[0] == pytest.approx(0.002, abs=0.001)


def test_estimates_in_sample_are_those_of_the_library_and_of_a_loop():
    rng = np.random.default_rng(1)
    p, p_hat = wave(rng, 0.1, 1)
    y = (rng.random(len(p)) < p).astype(float)
    found = estimators.estimates(y, p_hat)
    assert found["quantile"][0] == pytest.approx(ece(y, p_hat))
    assert found["debiased"][0] == ece_debiased(y, p_hat)
    assert found["smooth"][0] == ece_smooth(y, p_hat)
    inside = [(p_hat >= k / 15) & (p_hat < (k + 1) / 15) for k in range(15)]
    gaps = np.array([np.mean(y[rows] - p_hat[rows]) for rows in inside])
    share = np.array([rows.mean() for rows in inside])
    assert found["uniform"] == pytest.approx((share @ abs(gaps), share @ gaps**2))
    bins = np.array_split(np.argsort(p_hat), 15)  # sizes may differ by one row from the library's
    squares = [np.mean(y[rows] - p_hat[rows]) ** 2 for rows in bins]
    assert found["quantile"][1] == pytest.approx(np.mean(squares), rel=0.05)


def test_maps_out_of_fold_find_a_shift_and_nothing_where_there_is_nothing():
    rng, shifted, true = np.random.default_rng(2), [], []
    for _ in range(8):
        p = rng.uniform(0.1, 0.8, 1000)
        y = (rng.random(1000) < p).astype(float)
        for found, p_hat in ((shifted, p + 0.1), (true, p)):
            found.append(estimators.estimates(y, p_hat))
    for name in estimators.MAPS:
        l1, l2 = np.mean([found[name] for found in shifted], axis=0)
        assert 0.08 < l1 < 0.11 and 0 < l2 < 0.0115
        l1, l2 = np.mean([found[name] for found in true], axis=0)
        assert l1 < 0.01 and l2 < 0
    assert np.mean([found["quantile"][0] for found in true]) > 0.03
    assert abs(np.mean([found["debiased"][1] for found in true])) < 4e-4  # squares are unbiased


@pytest.fixture(scope="module")
def table():
    return derived([RESULTS], "estimators")


@pytest.fixture(scope="module")
def found(table):
    return estimators.summary(table)


def test_the_stored_table_is_what_the_runs_give(table, best):
    line = next(best["discrete"].itertuples())
    test = evidence.tables(line)[1]
    rows = table.query("start == 'random weights' and scenario == 'discrete' and seed == 0")
    rows = rows.set_index("method")
    for method in ("ce", "ensemble"):
        y, p, p_hat = (test[c].to_numpy(float) for c in ("y", "p", method))
        exact, again = estimators.exact_errors(p, p_hat), estimators.estimates(y, p_hat)
        assert rows.loc[method, "exact"] == pytest.approx(exact[0], abs=2e-6)
        for name, (value, square) in again.items():
            stored = rows.loc[method, [name, f"{name}_squared"]].to_numpy(float)
            assert stored == pytest.approx([value, square], abs=2e-5, nan_ok=True)
    assert set(rows.index) == set(evidence.methods_of(test))


def test_how_far_off_estimates_are(table, found):
    rows = table[table["method"] != "ce_overfit"]
    draws = [rows[c] for c in ("start", "scenario", "seed")]
    exact = 100 * rows["exact"].groupby(draws).mean().groupby(["scenario", "seed"]).mean()
    said(f"The {len(rows):,} predictions", "metrics")
    said(f"their errors are {difference(exact).value:.2f} on average", "metrics")
    over = found["less exact"].map(lambda gap: gap.value)
    said(f"**The ECE says twice the error**: it is {over['quantile']:.2f} too high", "metrics")
    assert 2 < (rows["quantile"] / rows["exact"]).median() < 2.5
    assert found.loc["quantile", "too high, %"].value > 95
    assert 0 < over["debiased"] < over["uniform"] < over["quantile"]
    off = found["off"].map(lambda gap: gap.value)
    assert off.nsmallest(2).index.tolist() == ["beta", "quadratic"]
    assert off[["beta", "quadratic"]].max() < off["quantile"] / 2
    assert off["isotonic"] > 1.1 * off["beta"]
    for name in ("beta", "quadratic"):
        assert found.loc[name, "too high, %"].value == pytest.approx(100 / 3, abs=1.5)
    for name in estimators.MAPS:
        assert found.loc[name, "less exact"].high < 0
    squares = found["squares off"].map(lambda gap: gap.value)
    assert squares["beta"] < squares["debiased"] < squares["quantile"] < squares["corp"]


def test_saying_the_median_is_off_by_less(table, found):
    rows = table[table["method"] != "ce_overfit"]
    median = rows["exact"].median()
    assert f"{100 * median:.1f}" == "1.3"
    miss = 100 * (rows["exact"] - median).abs()
    miss = miss.groupby([rows[c] for c in ("start", "scenario", "seed")]).mean()
    miss = miss.groupby(["scenario", "seed"]).mean().mean()
    assert miss < min(gap.low for gap in found["off"])


def test_how_estimates_rank(table, found):
    rank = found["rank"]
    assert 0.45 < max(gap.value for gap in rank) < 0.55
    runs = estimators.misses(table).groupby(["estimate", "scenario", "seed", "start"])
    each = runs[["value", "exact"]].corr("spearman").xs("value", level=-1)["exact"]
    each = each.groupby(["estimate", "scenario", "seed"]).mean().unstack(0)
    good = ["smooth", "corp", "beta", "quadratic"]
    gaps = [difference(each[name] - each["quantile"]) for name in good]
    assert all(gap.low > 0 for gap in gaps)
    assert all(difference(each[name] - each["uniform"]).low > 0 for name in good[:2])
    assert abs(difference(each["debiased"] - each["quantile"]).value) < 0.02
