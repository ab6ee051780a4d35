import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probnb.data.ferplus import cut, draw_vote, judge


@given(
    st.lists(
        st.integers(2, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1
    )
)
def test_one_vote_and_the_others_are_all_votes(counts):
    k, n = np.array(counts, int).reshape(-1, 2).T
    y, k_rest, n_rest = draw_vote(k, n, seed=3)
    assert np.array_equal(y + k_rest, k) and np.array_equal(n_rest, n - 1)
    assert ((k_rest >= 0) & (k_rest <= n_rest)).all()


def test_the_vote_is_yes_as_often_as_the_votes_are_and_independent_of_the_others_given_p():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    k = rng.binomial(5, p)
    y, k_rest, n_rest = draw_vote(k, np.full(len(k), 5), seed=1)
    assert abs(y.mean() - k.mean() / 5) < 0.004
    residual = (y - p) * (k_rest / n_rest - p)
    assert abs(residual.mean()) < 4 * residual.std() / len(p) ** 0.5
    again = draw_vote(k, np.full(len(k), 5), seed=1)[0]
    other = draw_vote(k, np.full(len(k), 5), seed=2)[0]
    assert np.array_equal(y, again) and (y != other).any()


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        ([0], [1], "n must be at least 2.*got 1 in row 0"),
        ([0, 4], [3, 3], "k must be in .0, n.; got 4 of 3 in row 1"),
        ([0.5], [3], "k must be whole numbers"),
        ([[1]], [3], "k must be one-dimensional"),
        ([1, 1], [3], "same length; got 2 and 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(k, n, message):
    with pytest.raises(ValueError, match=message):
        draw_vote(k, n)


def test_rows_keep_their_numbers_and_votes_whatever_else_is_taken():
    images = torch.arange(12, dtype=torch.uint8)[:, None, None, None].expand(12, 1, 8, 8)
    k, n = np.arange(12) % 5, np.full(12, 4)
    parts = {"train": [7, 3, 5], "val": [0], "test": [11, 2]}
    full = judge(images, k, n, parts, "made", seed=5)
    small = judge(images, k, n, parts | {"train": [3, 7]}, "made", seed=5)
    assert full.splits.train.ids.tolist() == [7, 3, 5]
    assert full.splits.train.inputs[:, 0, 0, 0].tolist() == [7, 3, 5]
    assert full.splits.test.outcomes.equal(small.splits.test.outcomes)
    assert full.votes.loc[[3, 7]].equals(small.votes.loc[[3, 7]])
    outcomes = dict(zip([7, 3, 5], full.splits.train.outcomes.int().tolist()))
    assert all(outcomes[i] + full.votes.loc[i, "k"] == k[i] for i in outcomes)
    assert full.splits.source == "made seed=5" and not full.splits.known


def test_parts_of_a_sample_are_in_proportion_and_nested():
    rows = {"train": np.arange(100), "val": np.arange(100, 130), "test": np.arange(130, 180)}
    few, many = cut(rows, 20, 1), cut(rows, 40, 1)
    assert [len(v) for v in few.values()] == [20, 10, 10]
    assert all(set(few[k]) <= set(many[k]) <= set(rows[k]) for k in rows)
    assert cut(rows, None) is rows
    with pytest.raises(ValueError, match="at most the 100 training images; got 101"):
        cut(rows, 101)
