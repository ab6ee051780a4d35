"""Exact errors of the logistic model against integration, sampling and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm as normal

from probnb_book.theory import (
    exact_mse,
    geometry,
    mean_sigmoid,
    mean_slope,
    mse,
    mse_parts,
    product_moment,
    reliability,
    slope_bend,
)

from .quadrature import gaussian_integral

# (norm, along, gamma): an untrained estimate, good ones, memorising ones, an anti-correlated one
CASES = [
    (1.0, 0.0, 1.0),
    (0.9, 0.6, 1.0),
    (3.0, 2.5, 3.0),
    (8.0, 2.5, 1.0),
    (5.0, -4.0, 2.0),
    (40.0, 10.0, 4.0),
    (1000.0, 400.0, 1.0),
]
scales = st.floats(0.0, 1e4)


def test_the_truth_has_no_error_and_a_coin_has_the_variance_of_p():
    theta = np.array([0.3, -1.2, 2.0])
    assert exact_mse(theta, theta) == pytest.approx(0, abs=1e-15)
    for gamma in (0.1, 1.0, 10.0):
        variance = gaussian_integral(lambda x, g=gamma: (expit(g * x) - 0.5) ** 2, gamma)
        assert mse(0.0, 0.0, gamma) == pytest.approx(variance, abs=1e-14)
    assert mse(1e9, 0.0, 1e9) == pytest.approx(0.5, abs=1e-8)  # two independent coins


@pytest.mark.parametrize(("norm", "along", "gamma"), CASES)
def test_mse_equals_integration(norm, along, gamma):
    def squared(g1, g2):
        b = along * gamma / norm * g1 + gamma * np.sqrt(1 - (along / norm) ** 2) * g2
        return (expit(norm * g1) - expit(b)) ** 2

    total = gaussian_integral(squared, norm, gamma)
    assert mse(norm, along, gamma) == pytest.approx(total, abs=1e-8)


@given(scales, st.floats(-1, 1), st.floats(0.0, 1e3))
@settings(max_examples=60, deadline=None)
def test_parts_add_up_and_stay_in_range(norm, cosine, gamma):
    total = mse(norm, cosine * norm, gamma)
    calibration, grouping = mse_parts(norm, cosine * norm, gamma)
    assert 0 <= total <= (1 if cosine < 0 else 0.5) + 1e-12
    assert calibration >= 0 and grouping >= 0
    assert calibration + grouping == pytest.approx(total, abs=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_only_the_geometry_matters(seed):
    rng = np.random.default_rng(seed)
    hat, star = rng.standard_normal((2, 6))
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert exact_mse(rotation @ hat, rotation @ star) == pytest.approx(exact_mse(hat, star))
    assert exact_mse(star, hat) == pytest.approx(exact_mse(hat, star))  # a distance


def test_estimates_stack_along_leading_axes():
    rng = np.random.default_rng(0)
    hats, star = rng.standard_normal((3, 4, 5)), rng.standard_normal(5)
    stacked = exact_mse(hats, star)
    assert stacked.shape == (3, 4)
    assert stacked[2, 1] == pytest.approx(exact_mse(hats[2, 1], star))
    _, along, gamma = geometry(hats[0, 0], star)
    assert along * gamma == pytest.approx(hats[0, 0] @ star)
    assert geometry(star, np.zeros(5))[1] == 0


def test_rescaling_moves_calibration_alone():
    _, grouping = mse_parts(np.array([0.5, 1.0, 7.0, 1e3]), np.array([0.5, 1, 7, 1e3]) * 0.6, 2.0)
    np.testing.assert_allclose(grouping, grouping[0], rtol=1e-12)
    calibration, grouping = mse_parts(2.0, 2.0, 2.0)
    assert calibration == pytest.approx(0, abs=1e-15)
    assert grouping == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("scale", [0.05, 1.0, 4.0, 30.0, 1000.0])
def test_scalar_expectations_equal_integration(scale):
    def slope(x):
        return expit(scale * x) * expit(-scale * x)

    def bend(x):
        return (expit(scale * x) - 0.5) * slope(x) * scale * x

    def shifted(x):
        return expit(0.7 + scale * x) * normal.pdf(x)

    assert mean_slope(scale) == pytest.approx(gaussian_integral(slope, scale), rel=1e-10)
    assert slope_bend(scale) == pytest.approx(gaussian_integral(bend, scale), rel=1e-9)
    turns = np.array([-20.7, -0.7, 19.3]) / scale
    mean = quad(shifted, -12, 12, points=turns, epsabs=1e-12, limit=400)[0]
    assert mean_sigmoid(0.7, scale**2) == pytest.approx(mean, abs=1e-11)
    # sigma^2 = sigma - sigma': the second moment is known two ways
    moment = product_moment(scale**2, scale**2, scale**2)
    assert moment == pytest.approx(0.25 - mean_slope(scale), abs=1e-14)


def test_reliability_equals_sampling():
    norm, along, gamma, q = 3.0, 1.0, 1.5, np.array([0.1, 0.4, 0.9])
    rng = np.random.default_rng(1)
    g = rng.standard_normal(2_000_000)
    expected = []
    for level in logit(q):  # b given a = level, from the joint law of the two
        b = along * gamma / norm**2 * level + gamma * np.sqrt(1 - (along / norm) ** 2) * g
        expected.append(expit(b).mean())
    np.testing.assert_allclose(reliability(q, norm, along, gamma), expected, atol=5e-4)


def test_reliability_of_known_estimates():
    q = np.array([0.0, 0.02, 0.3, 0.5, 0.99, 1.0])
    np.testing.assert_allclose(reliability(q, 2.0, 2.0, 2.0), q, atol=1e-14)
    np.testing.assert_allclose(reliability(q, 2.0, 0.0, 2.0), 0.5)  # knows nothing
    half_as_sure = expit(logit(q[1:-1]) / 2)
    np.testing.assert_allclose(reliability(q[1:-1], 4.0, 2.0 * 2, 2.0), half_as_sure, atol=1e-14)
    over = reliability(q[1:-1], 6.0, 1.0, 1.0)  # overconfident: nearer one half than q
    assert (np.abs(over - 0.5) <= np.abs(q[1:-1] - 0.5) + 1e-12).all()


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="prediction must hold probabilities"):
        reliability([1.2], 1.0, 0.5, 1.0)
    with pytest.raises(ValueError, match="norm must be"):
        reliability([0.2], 0.0, 0.0, 1.0)
