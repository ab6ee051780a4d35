"""Weights of rows: their scale says nothing, whole ones repeat rows, and 0 leaves a row out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probnb import metrics
from probnb.training.cape import p_emp_bin, p_emp_kernel

SOME_TIMES = settings(max_examples=20)
SOME = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.75, 1.0]) | st.floats(0, 1)


@st.composite
def rows(draw, smallest=0):
    n = draw(st.integers(1, 25))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    p, q = (draw(st.lists(SOME, min_size=n, max_size=n)) for _ in range(2))
    w = draw(st.lists(st.integers(smallest, 5), min_size=n, max_size=n).filter(any))
    return np.array(y), np.array(p), np.array(q), np.array(w)


def everything(y, p_hat, p, weights=None):
    """Every number that takes weights as repeated rows."""
    with warnings.catch_warnings(action="ignore"):  # AUC of one class
        values = metrics.evaluate(y, p_hat, p, weights)
    for bins in (1, 2, 5):
        values[f"ece {bins}"] = metrics.ece(y, p_hat, bins, weights=weights)
        values[f"plain {bins}"] = metrics.ece(y, p_hat, bins, "plain", weights=weights)
        values[f"mce {bins}"] = metrics.mce(y, p_hat, bins, weights=weights)
    values["smooth"] = metrics.ece_smooth(y, p_hat, weights)
    values["other direction"] = metrics.kl_p(p, p_hat, "p_hat||p", weights)
    for bins in (None, 3):
        parts = vars(metrics.brier_decomposition(y, p_hat, bins, weights))
        values |= {f"{k} {bins}": v for k, v in parts.items()}
    for k, curve in enumerate(metrics.ks_curves(y, p_hat, weights)):
        values |= {f"curve {k} {i}": v for i, v in enumerate(curve)}
    return values


def assert_equal(a, b, tolerance=1e-12):
    assert a.keys() == b.keys()
    for name in a:
        limit = 1e-7 if name == "smooth" else tolerance  # a root found to 1e-9
        np.testing.assert_allclose(a[name], b[name], rtol=limit, atol=limit, err_msg=name)


@SOME_TIMES
@given(rows(1))
def test_whole_weights_are_repeated_rows(data):
    y, p_hat, p, w = data
    again = [np.repeat(v, w) for v in (y, p_hat, p)]
    assert_equal(everything(y, p_hat, p, w), everything(*again))


@SOME_TIMES
@given(rows(1), st.sampled_from([0.1, 1 / 3, 1e-300, 1e300, 7.0]))
def test_the_scale_of_weights_says_nothing(data, scale):
    y, p_hat, p, w = data
    assert_equal(everything(y, p_hat, p, w * scale), everything(y, p_hat, p, w))


@SOME_TIMES
@given(rows(), st.sampled_from([0.1, 2.0, 1e-320]))
def test_constant_weights_change_no_bit(data, weight):
    y, p_hat, p, _ = data
    weighted = everything(y, p_hat, p, np.full(len(y), weight))
    assert_equal(weighted, everything(y, p_hat, p), 0)
    w = np.full(len(y), weight)
    assert metrics.ece_debiased(y, p_hat, 3, weights=w) == metrics.ece_debiased(y, p_hat, 3)
    np.testing.assert_array_equal(p_emp_bin(p_hat, y, 3, w), p_emp_bin(p_hat, y, 3))
    np.testing.assert_array_equal(p_emp_kernel(p_hat, y, 4, 0.2, w), p_emp_kernel(p_hat, y, 4, 0.2))


@SOME_TIMES
@given(rows())
def test_rows_of_weight_zero_are_not_there(data):
    y, p_hat, p, w = data
    kept = w > 0
    assert_equal(everything(y, p_hat, p, w), everything(y[kept], p_hat[kept], p[kept], w[kept]), 0)
    assert metrics.ece_debiased(y, p_hat, 3, weights=w) == metrics.ece_debiased(
        y[kept], p_hat[kept], 3, weights=w[kept]
    )
    for function in (p_emp_bin, p_emp_kernel):
        np.testing.assert_array_equal(
            function(p_hat, y, 3, weights=w)[kept],
            function(p_hat[kept], y[kept], 3, weights=w[kept]),
        )


def test_weighted_bins_by_hand():
    # half of the weight lies on the first row: two bins cut behind it
    table = metrics.reliability_bins([1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6], 2, weights=[3, 1, 1, 1])
    assert table.count.tolist() == [1, 3]
    assert table.weight.tolist() == [0.5, 0.5]
    assert table.mean_outcome.tolist() == pytest.approx([1, 2 / 3])
    assert table.mean_prediction.tolist() == pytest.approx([0.1, 0.4])
    assert table.effective.tolist() == pytest.approx([1, 3])
    assert metrics.reliability_bins([0, 1], [0.1, 0.2], 1, [3, 1]).effective[0] == pytest.approx(
        16 / 10
    )


def test_bootstrap_of_whole_weights_draws_groups_of_repeated_rows():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y, p_hat, w = (rng.random(60) < p) * 1, rng.random(60).round(1), rng.integers(1, 5, 60)
    weighted = metrics.bootstrap(y, {"a": p_hat}, p, 30, weights=w)
    y_again, q_again, p_again, who = (np.repeat(v, w) for v in (y, p_hat, p, np.arange(60)))
    repeated = metrics.bootstrap(y_again, {"a": q_again}, p_again, 30, groups=who)
    np.testing.assert_allclose(weighted.samples, repeated.samples, rtol=1e-12, atol=1e-12)
    pd.testing.assert_frame_equal(weighted.point, repeated.point)


def test_bootstrap_of_constant_and_of_no_weight():
    rng = np.random.default_rng(1)
    y, p_hat, days = rng.integers(0, 2, 80), rng.random(80), rng.integers(0, 9, 80)
    plain = metrics.bootstrap(y, {"a": p_hat}, replicates=20)
    same = metrics.bootstrap(y, {"a": p_hat}, replicates=20, weights=np.full(80, 0.3))
    assert np.array_equal(plain.samples, same.samples)
    w = np.where(days == 4, 0, rng.random(80))
    kept = w > 0
    whole = metrics.bootstrap(y, {"a": p_hat}, replicates=20, weights=w, groups=days)
    part = metrics.bootstrap(
        y[kept], {"a": p_hat[kept]}, replicates=20, weights=w[kept], groups=days[kept]
    )
    assert np.array_equal(whole.samples, part.samples)


def test_null_band_with_weights():
    p = np.full(400, 0.5)
    plain = metrics.calibration_null_band(p, replicates=50)
    assert np.array_equal(
        metrics.calibration_null_band(p, replicates=50, weights=np.full(400, 2)).draws, plain.draws
    )
    half = np.arange(400) < 200  # rows without weight draw nothing
    assert np.array_equal(
        metrics.calibration_null_band(p, replicates=50, weights=half).draws,
        metrics.calibration_null_band(p[half], replicates=50).draws,
    )
    skewed = metrics.calibration_null_band(p, replicates=500, weights=np.where(half, 9, 1))
    effective = (200 * 10) ** 2 / (200 * 82)
    assert skewed.mean == pytest.approx(np.sqrt(2 / np.pi / effective) / 2, rel=0.1)


@pytest.mark.parametrize("name", metrics.METRICS)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1], "weights must have a value for each of 2 rows; got 1"),
        ([1, -1], "weights must be finite and at least 0; got -1 in row 1"),
        ([np.nan, 1], "weights must be finite and at least 0; got nan in row 0"),
        ([0, 0], "weights must have a value above 0; all 2 are zero"),
        ([[1], [1]], r"weights must be one-dimensional; got shape \(2, 1\)"),
    ],
)
def test_bad_weights_are_named(name, weights, message):
    with pytest.raises(ValueError, match=message):
        metrics.METRICS[name].function([0, 1], [0.2, 0.7], weights=weights)
