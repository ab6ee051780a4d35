import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import entr
from scipy.stats import binom

from probnb.metrics import kl_p
from probnb.metrics.people import entropy_terms, kl_terms, second_group

P = np.linspace(0, 1, 1001)
ENTROPY = entr(P) + entr(1 - P)


def expectation(values):
    """Expectation over k of a table of n + 1 values, for each p of P."""
    n = len(values) - 1
    return binom.pmf(np.arange(n + 1), n, P[:, None]) @ values


@pytest.mark.parametrize("n", [1, 2, 8, 9, 50])
def test_bias_of_the_entropy_is_within_its_bound_and_reaches_it(n):
    table, bias = entropy_terms(np.arange(n + 1), np.full(n + 1, n))
    worst = np.abs(expectation(table) - ENTROPY).max()
    assert np.ptp(bias) == 0 and worst == pytest.approx(bias[0], rel=0.02)
    assert np.abs(table).max() <= 1 + 1e-9
    assert np.allclose(table, table[::-1])


def test_bias_is_far_below_that_of_the_plain_entropy_and_of_miller_and_madow():
    n, k = 9, np.arange(10)
    plain = entr(k / n) + entr(1 - k / n)
    madow = plain + ((k > 0) & (k < n)) / (2 * n)
    bias = entropy_terms(k, np.full(10, n))[1][0]
    assert bias < 0.004
    for table in (plain, madow):
        assert np.abs(expectation(table) - ENTROPY).max() > 6 * bias


def test_no_table_has_a_smaller_bias():
    table, bias = entropy_terms(np.arange(5), np.full(5, 4))
    rng = np.random.default_rng(0)
    for scale in (0.3, 0.1, 0.03, 0.01, 0.001):
        for _ in range(200):
            other = np.clip(table + scale * rng.standard_normal(5), -1, 1)
            assert np.abs(expectation(other) - ENTROPY).max() > bias[0] - 1e-4


def test_kl_from_answers_is_kl_of_the_probabilities():
    rng = np.random.default_rng(1)
    p = rng.beta(1.2, 2, 100_000)
    p_hat = np.clip(p + 0.15 * rng.standard_normal(len(p)), 0.02, 0.98)
    n = np.full(len(p), 9)
    terms, bias = kl_terms(rng.binomial(n, p), n, p_hat)
    error = 4 * terms.std() / len(p) ** 0.5 + bias[0]
    assert error < 0.015
    assert abs(terms.mean() - kl_p(p, p_hat)) < error


def test_difference_of_two_predictions_has_no_bias():
    p_hat, other = np.array([0.3]), np.array([0.55])
    n, k = 7, np.arange(8)
    gap = [float((kl_terms([j], [n], p_hat)[0] - kl_terms([j], [n], other)[0]).item()) for j in k]
    truth = [kl_p([p], p_hat) - kl_p([p], other) for p in P]
    assert np.allclose(expectation(np.array(gap)), truth)


def test_certain_and_contradicted_is_infinite_certain_and_right_is_not():
    terms = kl_terms([0, 1, 9], [9, 9, 9], [0.0, 0.0, 1.0])[0]
    assert np.isfinite(terms[[0, 2]]).all() and terms[1] == np.inf


def test_second_group_by_trying_all_pairs_of_groups():
    votes = [[1, 1, 0, 0, 1], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]]
    k, n = np.sum(votes, axis=1), np.full(3, 5)
    table = second_group(k, n, sizes=[1, 2])
    for m in (1, 2):
        squares, crosses, floors = [], [], []
        for row in votes:
            for order in itertools.permutations(row):
                share, left = np.mean(order[:m]), np.array(order[m:])
                squares.append(np.mean((share - left) ** 2))
                smooth = (m * share + 0.5) / (m + 1)
                crosses.append(-np.mean(np.log(np.where(left == 1, smooth, 1 - smooth))))
                floors.append((order[0] - order[1]) ** 2 / 2)
        assert table.loc[m, "brier"] == pytest.approx(np.mean(squares))
        assert table.loc[np.inf, "brier"] == pytest.approx(np.mean(floors))
        assert table.loc[m, "mse_p"] == pytest.approx(np.mean(squares) - np.mean(floors))
        entropy = entropy_terms(k, n)[0].mean()
        assert table.loc[m, "kl_p"] == pytest.approx(np.mean(crosses) - entropy)


def test_second_group_of_unknown_size_has_no_kl():
    assert np.isnan(second_group([3, 2], [5, 4], sizes=[4]).loc[4, "kl_p"])
    assert isinstance(second_group([3, 2], [5, 4]), pd.DataFrame)


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        ([3], [2], "k must be in .0, n.; got 3 of 2 in row 0"),
        ([-1], [2], "got -1 of 2"),
        ([0.5], [2], "k must be whole numbers; got 0.5 in row 0"),
        ([], [], "k must have at least one row"),
        ([1, 1], [2], "same length; got 2 and 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(k, n, message):
    for function in (entropy_terms, second_group):
        with pytest.raises(ValueError, match=message):
            function(k, n)


def test_predictions_of_another_length_are_refused():
    with pytest.raises(ValueError, match="same length; got 2 and 1"):
        kl_terms([1, 0], [2, 2], [0.5])
