"""Distances from repeated outcomes: exact expectations, coverage, and what cannot be had."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from probnb.metrics import (
    bootstrap,
    evaluate,
    kl_p,
    mse_p,
    noise_ceiling,
    repeated_difference,
    repeated_distance,
)
from probnb.metrics.votes import check_votes


def expected(function, p, n):
    """Mean over all outcomes of n votes with probability p: exact, no sampling."""
    k = np.arange(n + 1)
    return binom.pmf(k, n, p) @ function(check_votes(k, np.full(n + 1, n), least=1))


@given(st.floats(0, 1), st.floats(0, 1), st.integers(2, 12))
def test_squared_error_and_variance_are_unbiased(p, p_hat, n):
    assert expected(lambda v: v.squared_error(p_hat), p, n) == pytest.approx(
        (p_hat - p) ** 2, abs=1e-12
    )
    assert expected(lambda v: v.variance(), p, n) == pytest.approx(p * (1 - p), abs=1e-12)


@given(st.floats(0, 1), st.floats(0.01, 0.99), st.integers(2, 12))
def test_divergence_is_too_high_by_no_more_than_its_bound(p, p_hat, n):
    j = np.arange(1, n)
    first = ((p * (1 - p) ** j + (1 - p) * p**j) / j).sum()
    assert expected(lambda v: v.entropy(), p, n) == pytest.approx(first, abs=1e-12)
    excess = expected(lambda v: v.divergence(p_hat), p, n) - kl_p([p], [p_hat])
    assert -1e-12 < excess <= check_votes([0], [n]).entropy_bias()[0] + 1e-5


def test_the_bound_of_the_entropys_bias():
    bounds = check_votes([0] * 4, [2, 10, 50, 10]).entropy_bias()
    assert bounds[0] == pytest.approx(np.log(2) - 0.5, abs=0.03)  # two votes see 2p(1-p) of it
    assert bounds[1] == bounds[3]
    assert bounds[0] > bounds[1] > bounds[2] > 0
    p = np.linspace(1e-5, 1 - 1e-5, 20001)
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    first = sum((p * (1 - p) ** j + (1 - p) * p**j) / j for j in range(1, 10))
    assert bounds[1] == pytest.approx((entropy - first).max(), rel=1e-4)


def draw(rng, rows=300):
    p = rng.beta(0.6, 0.8, rows)
    n = rng.integers(2, 12, rows)
    p_hat = np.clip(p + rng.normal(0, 0.15, rows), 0.02, 0.98)
    return p, p_hat, rng.binomial(n, p), n


def test_the_interval_covers_and_the_estimate_is_unbiased():
    rng = np.random.default_rng(0)
    p, p_hat, _, _ = draw(rng, 400_000)
    truth = mse_p(p, p_hat)
    got = []
    for _ in range(1500):
        _, p_hat, k, n = draw(rng)
        estimate = repeated_distance(k, n, p_hat)
        got.append((estimate.value, estimate.std, estimate.low <= truth <= estimate.high))
    value, std, covered = np.transpose(got)
    assert abs(value.mean() - truth) < 4 * value.std() / np.sqrt(1500)
    assert np.mean(std) == pytest.approx(value.std(), rel=0.06)
    assert 0.93 <= covered.mean() <= 0.97
    naive = np.mean([np.mean((h - k / n) ** 2) for _, h, k, n in (draw(rng) for _ in range(50))])
    assert naive > 2 * truth  # what the correction is for


def test_the_interval_of_clusters_covers():
    rng = np.random.default_rng(1)
    covered, ignoring = [], []
    for _ in range(800):
        p = np.repeat(rng.random(60), 5)  # five rows a patient share p and the error
        p_hat = np.clip(p + np.repeat(rng.normal(0, 0.2, 60), 5), 0, 1)
        k = rng.binomial(8, p)
        truth = TRUTH_OF_CLUSTERS
        for groups, out in ((np.repeat(np.arange(60), 5), covered), (None, ignoring)):
            e = repeated_distance(k, np.full(300, 8), p_hat, groups=groups)
            out.append(e.low <= truth <= e.high)
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(ignoring) < 0.8


def _truth_of_clusters():
    rng = np.random.default_rng(2)
    p = rng.random(2_000_000)
    return np.mean((np.clip(p + rng.normal(0, 0.2, len(p)), 0, 1) - p) ** 2)


TRUTH_OF_CLUSTERS = _truth_of_clusters()


def test_difference_is_unbiased_with_one_vote_and_paired():
    rng = np.random.default_rng(3)
    p, a, _, _ = draw(rng, 200_000)
    b = np.clip(a + rng.normal(0, 0.05, len(a)), 0.02, 0.98)
    k = rng.binomial(1, p)
    for metric, function in (("mse_p", mse_p), ("kl_p", kl_p)):
        estimate = repeated_difference(k, np.ones(len(k)), a, b, metric)
        assert abs(estimate.value - (function(p, a) - function(p, b))) < 4 * estimate.std
        assert estimate.bias == 0
        back = repeated_difference(k, np.ones(len(k)), b, a, metric)
        assert (back.value, back.low) == pytest.approx((-estimate.value, -estimate.high))
    assert estimate.std < repeated_distance(k + 1, np.full(len(k), 3), a, "kl_p").std


def test_difference_is_that_of_the_distances():
    rng = np.random.default_rng(4)
    _, a, k, n = draw(rng)
    b = rng.random(300)
    for metric in ("mse_p", "kl_p"):
        one, two = (repeated_distance(k, n, x, metric).value for x in (a, b))
        assert repeated_difference(k, n, a, b, metric).value == pytest.approx(one - two)


def test_noise_ceiling_is_what_people_score():
    rng = np.random.default_rng(5)
    p = rng.random(100_000)
    k, second = rng.binomial(9, p), rng.binomial(4, p) / 4
    vote = rng.binomial(1, p)
    ceiling = noise_ceiling(k, np.full(len(p), 9), people=4)
    for estimate, value in (
        (ceiling.group_mse_p, mse_p(p, second)),
        (ceiling.group_brier, np.mean((second - vote) ** 2)),
        (ceiling.brier, np.mean((p - vote) ** 2)),
    ):
        assert estimate.value == pytest.approx(value, abs=0.003)
        assert estimate.std < 0.001
    entropy = np.mean(-p * np.log(p) - (1 - p) * np.log(1 - p))
    assert entropy - ceiling.nll.bias < ceiling.nll.value < entropy


def test_weights_and_rows_of_one_vote():
    rng = np.random.default_rng(6)
    _, p_hat, k, n = draw(rng, 60)
    w = rng.integers(0, 4, 60)
    again = [np.repeat(x, w) for x in (k, n, p_hat, np.arange(60))]
    weighted = repeated_distance(k, n, p_hat, weights=w)
    repeated = repeated_distance(*again[:3], groups=again[3])
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.std == pytest.approx(repeated.std)
    assert weighted == repeated_distance(k[w > 0], n[w > 0], p_hat[w > 0], weights=w[w > 0])
    few = np.where(np.arange(60) < 10, 1, n)
    k = np.minimum(k, few)
    with pytest.raises(ValueError, match=r"at least 2 .* got 1 in row 0, and fewer .* 10 of 60"):
        repeated_distance(k, few, p_hat)
    estimate = repeated_distance(k, few, p_hat, single="leave out")
    assert (estimate.rows, estimate.left_out) == (50, 10)
    assert estimate.value == repeated_distance(k[10:], few[10:], p_hat[10:]).value


def test_votes_in_place_of_the_truth_in_tables():
    rng = np.random.default_rng(7)
    _, p_hat, k, n = draw(rng)
    y, other, days = rng.integers(0, 2, 300), rng.random(300), rng.integers(0, 40, 300)
    values = evaluate(y, p_hat, votes=(k, n))
    assert list(values)[:2] == ["mse_p", "kl_p"]
    for metric in ("mse_p", "kl_p"):
        assert values[metric] == pytest.approx(repeated_distance(k, n, p_hat, metric).value)
    w = rng.integers(0, 3, 300)
    weighted = evaluate(y, p_hat, weights=w, votes=(k, n))
    assert weighted["mse_p"] == pytest.approx(repeated_distance(k, n, p_hat, weights=w).value)
    result = bootstrap(y, {"a": p_hat, "b": other}, votes=(k, n), groups=days, replicates=400)
    direct = repeated_difference(k, n, p_hat, other, groups=days)
    assert result.difference("a", "b").loc["mse_p", "difference"] == pytest.approx(direct.value)
    assert result.difference("a", "b").loc["mse_p", "std"] == pytest.approx(direct.std, rel=0.15)


@pytest.mark.parametrize(
    ("ones", "counts", "message"),
    [
        ([3], [2], r"ones must be in \[0, counts\]; got 3 of 2 in row 0"),
        ([-1], [2], r"ones must be in \[0, counts\]; got -1 of 2"),
        ([1.5], [2], "ones must be whole numbers; got 1.5 in row 0"),
        ([1], [2, 2], "ones and counts must have the same length; got 1 and 2"),
        ([], [], "ones must have at least one row"),
        (["1"], [2], "ones must be whole numbers; got 1 in row 0"),
        ([1], [np.inf], "counts must be whole numbers; got inf"),
        ([10**400], [2], "ones must be whole numbers"),
        ([np.nan], [2], "ones must not be missing"),
        (pd.Series([None, 1], dtype="Int64"), [2, 2], "ones must not be missing"),
        (np.ma.array([1, 1], mask=[0, 1]), [2, 2], "ones must have every value; row 1"),
        ([0], [0], "counts must be at least 2"),
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
    with pytest.raises(ValueError, match="groups must not be missing"):
        repeated_distance(k, n, p_hat, groups=["a", None])
    with pytest.raises(ValueError, match="every row has a single vote"):
        repeated_distance([1, 1], [1, 1], p_hat, single="leave out")
    with pytest.raises(
        ValueError, match=r"must not both rule out .* got a 0 in row 0 and b 0 in row 1"
    ):
        repeated_difference(k, n, [0, 0.5], [0.5, 0], "kl_p")
    assert repeated_distance(k, n, [0, 0.5], "kl_p").value == np.inf
    with pytest.raises(ValueError, match="p and votes must not both"):
        evaluate([0, 1], p_hat, p=p_hat, votes=(k, n))
    with pytest.raises(ValueError, match="votes must be a pair"):
        evaluate([0, 1], p_hat, votes=np.ones(2))
    with pytest.raises(ValueError, match=r"votes\[0\] and y must have the same length"):
        bootstrap([0, 1], {"a": p_hat}, votes=([1], [2]))
    one_row = repeated_distance([1], [2], [0.5])
    assert np.isnan(one_row.std) and one_row.value == pytest.approx(-0.25)
