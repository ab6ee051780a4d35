import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

from probnb import metrics
from probnb.metrics import evaluate_outcomes

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], 200)
P_HAT = RNG.dirichlet([2, 1, 1], 200)
Y = (RNG.random(200)[:, None] > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)


@given(st.data())
@settings(max_examples=30)
def test_two_outcomes_are_the_binary_numbers_to_the_bit(data):
    n = data.draw(st.integers(1, 30))
    values = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1)
    p, p_hat = (np.array(data.draw(st.lists(values, min_size=n, max_size=n))) for _ in range(2))
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    w = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)))
    two, two_hat = np.stack([1 - p, p], 1), np.stack([1 - p_hat, p_hat], 1)
    ours = evaluate_outcomes(y, two_hat, two, w)
    assert ours == {
        m: metrics.METRICS[m].function(p if m.endswith("_p") else y, p_hat, weights=w) for m in ours
    }


def test_a_middle_rank_on_a_cut_does_not_tell_two_outcomes_apart():
    p_hat, y = np.repeat([0.014, 0.137, 0.456], [15, 15, 16]), np.repeat([0, 0, 1], [15, 15, 16])
    two = np.stack([1 - p_hat, p_hat], 1)
    assert evaluate_outcomes(y, two)["ece"] == metrics.ece(y, p_hat)


def test_three_outcomes_against_peers_and_brute_force():
    found = evaluate_outcomes(Y, P_HAT, P)
    assert found["nll"] == pytest.approx(log_loss(Y, P_HAT))
    rest = [brier_score_loss(k == Y, P_HAT[:, k]) for k in range(3)]
    assert found["brier"] == pytest.approx(sum(rest) / 2)
    divergence = [sum(p * np.log(p / q) for p, q in zip(a, b)) for a, b in zip(P, P_HAT)]
    assert found["kl_p"] == pytest.approx(np.mean(divergence))
    each = [metrics.ece(k == Y, P_HAT[:, k]) for k in range(3)]
    assert found["ece"] == pytest.approx(np.mean(each))


def test_weights_repeat_rows():
    w = RNG.integers(0, 4, 200)
    again = [np.repeat(x, w, axis=0) for x in (Y, P_HAT, P)]
    assert evaluate_outcomes(Y, P_HAT, P, w) == pytest.approx(evaluate_outcomes(*again))
    assert list(evaluate_outcomes(Y, P_HAT)) == ["ece", "brier", "nll"]


def test_expected_brier_is_the_distance_and_what_nothing_changes():
    """Averaged over all outcomes, brier = mse_p + what outcomes scatter: the paper's Section 3."""
    expected = sum(P[:, k] * ((P_HAT - np.eye(3)[k]) ** 2).sum(1) / 2 for k in range(3)).mean()
    noise = (1 - (P**2).sum(1)).mean() / 2
    assert expected == pytest.approx(evaluate_outcomes(Y, P_HAT, P)["mse_p"] + noise)


@pytest.mark.parametrize(
    ("y", "p", "words"),
    [
        ([0, 1], [[0.5, 0.5]], r"y_true must be of shape \(1,\)"),
        ([3], [[0.2, 0.3, 0.5]], "outcomes 0 to 2; got 3"),
        ([0.5], [[0.2, 0.3, 0.5]], "outcomes 0 to 2"),
        ([0], [[0.2, 0.3, 0.6]], "sum to 1; got .* row 0"),
        ([0], [[-0.2, 0.6, 0.6]], "sum to 1"),
        ([0], [[np.nan, 0.5, 0.5]], "sum to 1"),
        ([0], [0.2, 0.8], r"of shape \(n, K\)"),
        ([0], [[1.0]], "K at least 2"),
        ([0], [["0.5", "0.5"]], "y_prob must be numeric; got <U3"),
        ([0], np.array([[0.5, None]]), "y_prob must have every value; row 0 is missing"),
        ([0], [[0.5, 0.5], [1.0]], "y_prob must be numeric"),
        (np.ma.array([0, 1], mask=[0, 1]), np.eye(3)[:2], "y_true must have every value"),
        ([0], np.ma.array([[0.5, 0.2, 0.3]], mask=[[0, 1, 0]]), "y_prob must have every value"),
    ],
)
def test_bad_input(y, p, words):
    with pytest.raises(ValueError, match=words):
        evaluate_outcomes(y, p)
    with pytest.raises(ValueError, match="one shape"):
        evaluate_outcomes(Y[:5], P_HAT[:5], P)
