"""Distances from repeated outcomes: exact expectations, coverage, and what cannot be had."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from probnb.metrics import mse_p, repeated_distance
from probnb.metrics.votes import check_votes

P = np.linspace(0, 1, 1001)


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


def world(rng, rows, noise=0.4):
    p = np.clip(rng.beta(0.7, 1.5, rows), 1e-3, 1 - 1e-3)
    return p, 1 / (1 + (1 - p) / p * np.exp(-noise * rng.standard_normal(rows)))


TRUTH = mse_p(*world(np.random.default_rng(0), 1_000_000))


@pytest.mark.parametrize("n", [2, 10, 50])
def test_intervals_cover_and_there_is_no_bias(n, rows=400, runs=400):
    rng, found = np.random.default_rng(n), []
    for _ in range(runs):
        p, p_hat = world(rng, rows)
        found.append(repeated_distance(rng.binomial(n, p), np.full(rows, n), p_hat))
    value, std, low, high = np.transpose(found)
    assert 0.92 <= np.mean((low <= TRUTH) & (high >= TRUTH)) <= 0.98
    assert std.mean() == pytest.approx(value.std(), rel=0.12)
    assert abs(value.mean() - TRUTH) < 4 * value.std() / runs**0.5


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
            *_, low, high = repeated_distance(k, np.full(len(p), 8), p + error, groups=g)
            out.append(low <= truth <= high)
    assert 0.92 <= np.mean(covered) <= 0.98
    assert np.mean(ignoring) < 0.85


def test_weights_repeat_rows():
    rng = np.random.default_rng(6)
    p, p_hat = world(rng, 60)
    n, w = rng.integers(2, 12, 60), rng.integers(0, 4, 60)
    k = rng.binomial(n, p)
    weighted = repeated_distance(k, n, p_hat, weights=w)
    again = [np.repeat(x, w) for x in (k, n, p_hat)]
    repeated = repeated_distance(*again, groups=np.repeat(np.arange(60), w))
    assert weighted == pytest.approx(repeated)
    kept = w > 0
    assert weighted == repeated_distance(k[kept], n[kept], p_hat[kept], weights=w[kept])


@pytest.mark.parametrize(
    ("ones", "counts", "message"),
    [
        ([3], [2], r"ones must be in \[0, counts\]; got 3 of 2 in row 0"),
        ([-1], [2], r"ones must be in \[0, counts\]; got -1 of 2"),
        ([1.5], [2], r"ones must be whole numbers; got \[1.5\]"),
        ([1], [2, 2], "ones and counts must have the same length; got 1 and 2"),
        ([], [], "ones must be whole numbers"),
        (["1"], [2], "ones must be whole numbers"),
        ([1], [np.inf], "counts must be whole numbers"),
        ([10**400], [2], "ones must be whole numbers"),
        ([np.nan], [2], "ones must not be missing"),
        (pd.Series([None, 1], dtype="Int64"), [2, 2], "ones must not be missing"),
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
    with pytest.raises(ValueError, match=r"groups must name .* 1 of them missing"):
        repeated_distance(k, n, p_hat, groups=["a", None])
