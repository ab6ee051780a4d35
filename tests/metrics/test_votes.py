"""Distances from repeated outcomes: exact expectations, coverage, and what cannot be had."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr
from scipy.stats import binom

from probnb.metrics import bootstrap, evaluate, kl_p, mse_p, repeated_distance
from probnb.metrics.votes import check_votes

P = np.linspace(0, 1, 1001)
ENTROPY = entr(P) + entr(1 - P)


def table(function, n):
    """A function of each number of ones among n votes."""
    return function(check_votes(np.arange(n + 1), np.full(n + 1, n), least=1))


def expectation(values):
    """Mean of a table over all outcomes of n votes, for each p of P: exact, no sampling."""
    n = len(values) - 1
    return binom.pmf(np.arange(n + 1), n, P[:, None]) @ values


@given(st.floats(0, 1), st.integers(2, 12))
def test_squared_error_and_variance_are_unbiased(p_hat, n):
    squares = expectation(table(lambda v: v.squared_error(p_hat), n))
    np.testing.assert_allclose(squares, (p_hat - P) ** 2, atol=1e-12)
    np.testing.assert_allclose(expectation(table(lambda v: v.variance(), n)), P * (1 - P))


@pytest.mark.parametrize("n", [1, 2, 5, 9, 18, 50, 137])
def test_bias_of_the_entropy_is_within_its_bound_and_reaches_it(n):
    values, bias = table(lambda v: v.entropy(), n), table(lambda v: v.bias(), n)
    worst = np.abs(expectation(values) - ENTROPY).max()
    assert np.ptp(bias) == 0 and worst == pytest.approx(bias[0], rel=0.03)
    assert np.abs(values).max() <= 1 + 1e-9
    np.testing.assert_allclose(values, values[::-1], atol=1e-12)


def test_no_table_has_a_smaller_bias():
    values, bias = table(lambda v: v.entropy(), 4), check_votes([0], [4]).bias()[0]
    rng = np.random.default_rng(0)
    for scale in (0.3, 0.1, 0.03, 0.01, 0.001):
        for _ in range(100):
            other = np.clip(values + scale * rng.standard_normal(5), -1, 1)
            assert np.abs(expectation(other) - ENTROPY).max() > bias - 1e-4


def test_half_of_many_votes_tell_the_entropy_with_less_noise_than_a_few():
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 1.5, 20_000)
    spread = [
        np.std(check_votes(rng.binomial(n, p), np.full(len(p), n)).entropy()) for n in (9, 25, 50)
    ]
    assert spread[0] > 1.3 * spread[1] and spread[1] > spread[2]


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_differences_of_divergences_have_no_bias(n):
    gap = table(lambda v: v.divergence(0.3) - v.divergence(0.55), n)
    truth = [kl_p([p], [0.3]) - kl_p([p], [0.55]) for p in P]
    np.testing.assert_allclose(expectation(gap), truth, atol=1e-12)


def test_ruled_out_and_voted_for_is_infinite():
    terms = check_votes([0, 1, 9], [9, 9, 9]).divergence(np.array([0.0, 0.0, 1.0]))
    assert np.isfinite(terms[[0, 2]]).all() and terms[1] == np.inf
    estimate = repeated_distance([1] * 9, [2] * 9, [0] + [0.5] * 8, "kl_p")
    assert estimate.value == np.inf and np.isnan([estimate.std, estimate.low]).all()


def world(rng, rows, noise=0.4):
    p = np.clip(rng.beta(0.7, 1.5, rows), 1e-3, 1 - 1e-3)
    return p, 1 / (1 + (1 - p) / p * np.exp(-noise * rng.standard_normal(rows)))


TRUTH = {f.__name__: f(*world(np.random.default_rng(0), 1_000_000)) for f in (mse_p, kl_p)}


@pytest.mark.parametrize("n", [2, 10, 50])
def test_intervals_cover_and_biases_are_within_what_is_said(n, rows=400, runs=400):
    rng = np.random.default_rng(n)
    found = {"mse_p": [], "kl_p": []}
    for _ in range(runs):
        p, p_hat = world(rng, rows)
        k = rng.binomial(n, p)
        for metric, list_ in found.items():
            list_.append(repeated_distance(k, np.full(rows, n), p_hat, metric))
    for metric, estimates in found.items():
        truth = TRUTH[metric]
        value, std = np.transpose([(e.value, e.std) for e in estimates])
        covered = np.mean([e.low <= truth <= e.high for e in estimates])
        assert covered >= 0.92, (metric, covered)
        assert covered <= 0.98 or estimates[0].bias > 0
        assert np.mean(std) == pytest.approx(value.std(), rel=0.12)
        assert abs(value.mean() - truth) < estimates[0].bias + 4 * value.std() / runs**0.5


@pytest.mark.parametrize("patients", [9, 60])
def test_the_interval_of_groups_covers(patients):
    rng = np.random.default_rng(patients)
    groups = np.repeat(np.arange(patients), 5)  # five rows share p and the error
    covered, ignoring = [], []
    for _ in range(250):
        p, error = (
            np.repeat(x, 5) for x in rng.uniform([[0], [0.2]], [[0.4], [0.6]], (2, patients))
        )
        k, truth = rng.binomial(8, p), (0.6**3 - 0.2**3) / 1.2
        for g, out in ((groups, covered), (None, ignoring)):
            e = repeated_distance(k, np.full(len(p), 8), p + error, groups=g)
            out.append(e.low <= truth <= e.high)
    assert 0.92 <= np.mean(covered) <= 0.98
    assert np.mean(ignoring) < 0.85


def test_weights_repeat_rows():
    rng = np.random.default_rng(6)
    p, p_hat = world(rng, 60)
    n, w = rng.integers(2, 12, 60), rng.integers(0, 4, 60)
    k = rng.binomial(n, p)
    for metric in ("mse_p", "kl_p"):
        weighted = repeated_distance(k, n, p_hat, metric, weights=w)
        again = [np.repeat(x, w) for x in (k, n, p_hat)]
        repeated = repeated_distance(*again, metric, groups=np.repeat(np.arange(60), w))
        assert vars(weighted) == pytest.approx(vars(repeated))
        kept = w > 0
        alone = repeated_distance(k[kept], n[kept], p_hat[kept], metric, weights=w[kept])
        assert weighted == alone


def test_votes_in_place_of_the_truth_in_tables():
    rng = np.random.default_rng(7)
    p, p_hat = world(rng, 300)
    n, w, days = rng.integers(2, 12, 300), rng.integers(0, 3, 300), rng.integers(0, 40, 300)
    k, y, other = rng.binomial(n, p), rng.integers(0, 2, 300), rng.random(300)
    values = evaluate(y, p_hat, weights=w, votes=(k, n))
    assert list(values)[:2] == ["mse_p", "kl_p"]
    result = bootstrap(
        y, {"a": p_hat, "b": other}, votes=(k, n), weights=w, groups=days, replicates=2000
    )
    low, high = result.interval()
    for metric in ("mse_p", "kl_p"):
        direct = repeated_distance(k, n, p_hat, metric, w, days)
        assert values[metric] == pytest.approx(direct.value)
        assert result.bias.get(metric, 0) == pytest.approx(direct.bias)
        unclipped = max(direct.low, 0)
        assert low.loc["a", metric] == pytest.approx(unclipped, abs=0.2 * direct.std)
        assert high.loc["a", metric] == pytest.approx(direct.high, abs=0.2 * direct.std)


def test_a_negative_estimate_lies_in_its_interval():
    y, k, n, p_hat = [0, 1] * 3, [1] * 6, [2] * 6, [0.5] * 6
    result = bootstrap(y, {"a": p_hat}, votes=(k, n), replicates=20)
    low, high = (end.loc["a", "mse_p"] for end in result.interval())
    assert result.point.loc["a", "mse_p"] == -0.25 == low and high == -0.25


@pytest.mark.parametrize(
    ("ones", "counts", "message"),
    [
        ([3], [2], r"ones must be in \[0, counts\]; got 3 of 2 in row 0"),
        ([-1], [2], r"ones must be in \[0, counts\]; got -1 of 2"),
        ([1.5], [2], "ones must be whole numbers; got 1.5 in row 0"),
        ([1], [2, 2], "ones and counts must have the same length; got 1 and 2"),
        ([], [], "ones must have at least one row"),
        (["1"], [2], "ones must be numeric"),
        ([1], [np.inf], "counts must be whole numbers"),
        ([10**400], [2], "ones must be numeric"),
        ([np.nan], [2], "ones must be whole numbers; got nan in row 0"),
        (pd.Series([None, 1], dtype="Int64"), [2, 2], "ones must be whole numbers; got nan"),
        (np.ma.array([1, 1], mask=[0, 1]), [2, 2], "ones must have every value; row 1"),
        ([0, 0], [3, 1], "counts must be at least 2; got 0 of 1 in row 1, and so in 1 of 2 rows"),
    ],
)
def test_bad_votes_are_named(ones, counts, message):
    with pytest.raises(ValueError, match=message):
        repeated_distance(ones, counts, [0.5] * len(counts))


def test_other_bad_input_is_named():
    k, n, p_hat = [1, 1], [2, 2], [0.2, 0.7]
    with pytest.raises(ValueError, match="ones and y_prob must have the same length"):
        repeated_distance(k, n, [0.5])
    with pytest.raises(ValueError, match="metric must be one of"):
        repeated_distance(k, n, p_hat, "brier")
    with pytest.raises(ValueError, match="groups must not be missing; it is in row 1"):
        repeated_distance(k, n, p_hat, groups=["a", None])
    with pytest.raises(ValueError, match="p and votes must not both"):
        evaluate([0, 1], p_hat, p=p_hat, votes=(k, n))
    with pytest.raises(ValueError, match="votes must be a pair"):
        evaluate([0, 1], p_hat, votes=np.ones(2))
    with pytest.raises(ValueError, match=r"votes\[0\] and y must have the same length"):
        bootstrap([0, 1], {"a": p_hat}, votes=([1], [2]))
