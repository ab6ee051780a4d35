import numpy as np
import pytest
from scipy import stats

from probnb.metrics import bootstrap, calibration_null_band
from probnb.metrics.differences import clustered_mean, proportion_interval
from probnb.metrics.sample import effective_rows


def test_mean_of_rows_and_of_equal_groups_is_students():
    terms, groups = np.random.default_rng(0).normal(size=45), np.repeat(list("edcba"), 9)
    value, std, low, high = clustered_mean(terms)
    assert (value, std) == pytest.approx((terms.mean(), stats.sem(terms)))
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 44, value, std))
    means = terms.reshape(5, 9).mean(axis=1)
    value, std, low, high = clustered_mean(terms, groups=groups)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 4, means.mean(), stats.sem(means)))


@pytest.mark.parametrize("units", [1, 2, 4])
def test_few_units_have_no_interval_wherever_one_is_made(units):
    y, p_hat = np.tile([0, 1], 10), np.linspace(0.1, 0.9, 20)
    groups = np.arange(20) % units
    assert np.isnan(clustered_mean(p_hat, groups=groups)[1:]).all()
    result = bootstrap(y, {"a": p_hat}, replicates=20, groups=groups)
    assert np.isnan(result.interval()).all()
    assert result.difference("a", "a")[["low", "high"]].isna().all(axis=None)
    band = calibration_null_band(p_hat[:units], replicates=20)
    assert np.isnan([band.low, band.high]).all() and band.mean > 0


def test_intervals_of_the_brier_score_cover_over_nine_groups(groups=9, runs=250):
    rng = np.random.default_rng(0)
    names, held = np.repeat(np.arange(groups), 20), 0

    def study(count):
        p_hat = rng.uniform(0.1, 0.9, (count, 20))
        y = rng.random((count, 20)) < np.clip(p_hat + rng.uniform(-0.2, 0.2, (count, 1)), 0, 1)
        return y.ravel(), p_hat.ravel()

    y, p_hat = study(200_000)
    truth = np.mean((p_hat - y) ** 2)
    for seed in range(runs):
        y, p_hat = study(groups)
        options = {"metrics": ["brier"], "groups": names, "seed": seed, "progress": False}
        low, high = bootstrap(y, {"a": p_hat}, replicates=150, **options).interval()
        held += low.iat[0, 0] <= truth <= high.iat[0, 0]
    assert 0.92 <= held / runs <= 0.98


def test_intervals_stay_in_the_metrics_range():
    y, p_hat = np.tile([0, 1], 10), np.tile([0.2, 0.9], 10)
    result = bootstrap(y, {"a": p_hat, "b": np.full(20, 0.5)}, replicates=100)
    low, high = result.interval()
    assert (low >= 0).all(axis=None) and (high.drop(columns="nll") <= 1).all(axis=None)
    assert low.loc["b", "ece"] == 0 == result.point.loc["b", "ece"] < high.loc["b", "ece"]


def test_effective_rows():
    w = np.array([3.0, 1, 1, 1, 1e-200, 1e-200])
    np.testing.assert_allclose(effective_rows(w[:4]), [36 / 12])
    np.testing.assert_allclose(effective_rows(w, [0, 1, 4]), [1, 3, 2])


def test_clopper_pearson_against_scipy():
    for count in (1, 7, 40):
        ones = np.arange(count + 1)
        low, high = proportion_interval(ones, np.full(count + 1, count))
        peers = [stats.binomtest(int(k), count).proportion_ci(0.95, "exact") for k in ones]
        np.testing.assert_allclose(low, [ci.low for ci in peers], atol=1e-12)
        np.testing.assert_allclose(high, [ci.high for ci in peers], atol=1e-12)
