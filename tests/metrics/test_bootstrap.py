import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from probnb.metrics import METRICS, auc, bootstrap, evaluate


def make(n=200, seed=0, methods=3):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    predictions = {f"m{k}": np.clip(p + rng.normal(0, 0.1, n), 0.01, 0.99) for k in range(methods)}
    return y, predictions | {"ties": np.round(np.clip(p, 0.05, 0.95), 1)}, p


def literal(y, predictions, p, replicates, seed, codes=None):
    """The loop: repeat each row as often as it is drawn, and evaluate."""
    rng = np.random.default_rng(seed)
    draws = len(y) if codes is None else max(codes) + 1
    out = []
    for _ in range(replicates):
        weights = np.bincount(rng.integers(draws, size=draws), minlength=draws)
        weights = weights if codes is None else weights[codes]
        again = [np.repeat(v, weights) for v in predictions.values()]
        y_again, p_again = np.repeat(y, weights), np.repeat(p, weights)
        out.append([list(evaluate(y_again, v, p_again).values()) for v in again])
    return np.array(out)


@pytest.mark.parametrize(("n", "days"), [*((n, 0) for n in (1, 2, 7, 40, 500)), (300, 12)])
@pytest.mark.filterwarnings("ignore:auc is NaN")
def test_equals_a_literal_loop(n, days):
    y, predictions, p = make(n)
    codes = np.r_[:days, np.random.default_rng(1).integers(days, size=n - days)] if days else None
    names = None if codes is None else [f"day {c}" for c in codes]  # in order of appearance
    result = bootstrap(y, predictions, p, replicates=20, seed=5, groups=names)
    expected = literal(y, predictions, p, 20, 5, codes)
    np.testing.assert_allclose(result.samples, expected, rtol=1e-12, atol=1e-12)


@given(st.data())
@settings(max_examples=20)
@pytest.mark.filterwarnings("ignore:auc is NaN")
def test_equals_a_literal_loop_on_adversarial_rows(data):
    n = data.draw(st.integers(1, 30))
    values = st.sampled_from([0.0, 0.2, 0.5, 1.0]) | st.floats(0, 1)
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    p, q = (np.array(data.draw(st.lists(values, min_size=n, max_size=n))) for _ in range(2))
    result = bootstrap(y, {"q": q}, p, replicates=5)
    expected = literal(y, {"q": q}, p, 5, 0)
    np.testing.assert_allclose(result.samples, expected, rtol=1e-11, atol=1e-12)


def test_blocks_do_not_matter(monkeypatch):
    y, predictions, p = make()
    whole = bootstrap(y, predictions, p, replicates=25)
    monkeypatch.setattr("probnb.metrics.resampling.CELLS", 7 * len(y))
    parts = bootstrap(y, predictions, p, replicates=25)
    np.testing.assert_allclose(parts.samples, whole.samples, rtol=1e-13, atol=1e-13)


def test_point_is_evaluate():
    y, predictions, p = make()
    point = bootstrap(y, predictions, p, replicates=2).point
    for name, p_hat in predictions.items():
        assert point.loc[name].to_dict() == evaluate(y, p_hat, p)
    assert list(point.columns) == list(METRICS)


def test_deviation_of_a_mean():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    p_hat = rng.random(400)
    loss = (p_hat - y) ** 2
    result = bootstrap(y, {"a": p_hat}, replicates=4000, metrics=["brier"])
    assert result.std().loc["a", "brier"] == pytest.approx(loss.std() / 20, rel=0.04)
    low, high = result.interval(0.9)
    interval = stats.t.interval(0.9, 399, loss.mean(), stats.sem(loss))
    assert (low.iat[0, 0], high.iat[0, 0]) == pytest.approx(interval, rel=0.01)


def test_difference_is_paired():
    y, predictions, p = make(400)
    shifted = predictions["m0"] * 0.98
    result = bootstrap(y, {"a": predictions["m0"], "b": shifted, "c": predictions["m1"]}, p)
    gap = result.difference("a", "b")
    assert gap.loc["brier", "difference"] == pytest.approx(
        result.point.loc["a", "brier"] - result.point.loc["b", "brier"]
    )
    assert gap.loc["brier", "std"] < result.std().loc["a", "brier"] / 5  # same rows drawn
    mirrored = result.difference("b", "a")
    assert mirrored["low"].to_numpy() == pytest.approx(-gap["high"].to_numpy())
    same = result.difference("a", "a").drop(columns="p")
    assert not same.to_numpy().any()
    assert list(gap.columns) == ["difference", "std", "low", "high", "p"]


@pytest.mark.filterwarnings("ignore:auc is NaN")
def test_resamples_of_one_class_leave_auc_out():
    y = np.array([1, 0, 0, 0, 0])
    p_hat = np.array([0.9, 0.1, 0.2, 0.3, 0.4])
    result = bootstrap(y, {"a": p_hat}, replicates=200)
    column = list(result.point.columns).index("auc")
    missing = np.isnan(result.samples[:, 0, column])
    assert 0.1 < missing.mean() < 0.6  # (4/5)^5 = .33
    assert result.std().loc["a", "auc"] == 0 == 1 - auc(y, p_hat)
    all_ones = bootstrap(np.ones(5), {"a": p_hat}, replicates=10)
    assert np.isnan(all_ones.std().loc["a", "auc"])
    assert np.isfinite(all_ones.std().loc["a", "brier"])


def test_data_frames_and_chosen_metrics():
    y, predictions, p = make()
    result = bootstrap(y, pd.DataFrame(predictions), replicates=3, metrics=["auc", "ece"])
    assert list(result.point.index) == list(predictions)
    assert list(result.point.columns) == ["auc", "ece"]
    assert result.samples.shape == (3, 4, 2)
    full = bootstrap(y, predictions, p, replicates=3)
    assert np.array_equal(result.samples[..., 0], full.samples[..., list(METRICS).index("auc")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predictions": {}}, "predictions must map names .* without any"),
        ({"predictions": [0.5, 0.5]}, "predictions must map names .* got list"),
        ({"predictions": {"a": [0.5]}}, r"predictions\['a'\] must have the same length"),
        ({"predictions": {"a": [0.5, 2]}}, r"predictions\['a'\] must hold probabilities"),
        ({"y": [0, 3]}, "y must hold only 0 and 1"),
        ({"p": [0.5]}, "p and y must have the same length; got 1 and 2"),
        ({"metrics": ["mse_p"]}, "metrics must be one of ece"),
        ({"metrics": ["bries"]}, "Did you mean 'brier'"),
        ({"replicates": 0}, "replicates must be an integer of at least 1"),
        ({"seed": 1.5}, "seed must be an integer of at least 0; got 1.5"),
        ({"groups": ["a"]}, "groups must name a group for each of the 2 rows"),
        ({"groups": ["a", None]}, "groups must not be missing; it is in row 1"),
        ({"groups": [np.nan, "a"]}, "groups must not be missing; it is in row 0"),
    ],
)
def test_bad_input(change, message):
    arguments = {"y": [0, 1], "predictions": {"a": [0.2, 0.7]}} | change
    with pytest.raises(ValueError, match=message):
        bootstrap(**arguments)


def test_unknown_method_in_a_difference():
    y, predictions, p = make()
    result = bootstrap(y, predictions, p, replicates=2)
    with pytest.raises(ValueError, match="b must be one of m0, m1, m2, ties; got 'm3'"):
        result.difference("m0", "m3")
    with pytest.raises(ValueError, match="level must be"):
        result.interval(95)
