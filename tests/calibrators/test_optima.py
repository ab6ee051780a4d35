"""Every optimiser against a second method, and on the sets that stop such optimisers short."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.exceptions import ConvergenceWarning

from probnb import calibrators
from probnb.calibrators.base import RIDGE, fit_logistic
from probnb.calibrators.maps import mixture_weights


def loss_of(fit, s, y):
    p = fit.predict_proba(s)[:, 1]
    with np.errstate(divide="ignore"):
        return -np.mean(np.log(np.where(y == 1, p, 1 - p)))


def under_confident(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 1000))
    s = rng.normal(size=n)
    return s / rng.uniform(1.5, 5), (rng.random(n) < expit(s)) * 1


def components(fit, s, y):
    signed = np.where(y == 1, s, -s)
    return np.exp(
        np.column_stack(
            [log_expit(signed / fit.temperature_), log_expit(signed), 0 * s - np.log(2)]
        )
    )


def expectation_maximisation(L, rounds=20_000):
    v = np.full(L.shape[1], 1 / L.shape[1])
    for _ in range(rounds):
        v *= (L / (L @ v)[:, None]).mean(axis=0)
    return v


def test_mixture_of_ten_rows_is_not_stopped_at_a_corner():
    s = np.array([0.19, 0.21, 0.21, -0.06, 0.15, -0.03, 0, -0.31, -0.19, 0.01])
    y = np.array([1, 1, 1, 0, 1, 0, 1, 1, 0, 1])
    assert loss_of(calibrators.MixNMatch(isotonic=False).fit(s, y), s, y) < 0.58460


@pytest.mark.parametrize("seed", range(12))
def test_mixture_of_under_confident_logits_is_the_best(seed):
    s, y = under_confident(seed)
    with warnings.catch_warnings(action="error"):
        fit = calibrators.MixNMatch(isotonic=False).fit(s, y)
    L, v = components(fit, s, y), fit.weights_
    assert v.min() >= 0 and v.sum() == pytest.approx(1, abs=1e-15)
    gain = (L / (L @ v)[:, None]).mean(axis=0)  # at most 1 at the optimum, 1 where v is above 0
    assert gain.max() < 1 + 1e-9
    assert np.abs(gain[v > 1e-6] - 1).max() < 1e-6


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 60))
@settings(max_examples=20, deadline=None)
def test_mixture_weights_against_expectation_maximisation(seed, k, n):
    rng = np.random.default_rng(seed)
    log_L = rng.normal(size=(n, k)) * rng.choice([0.01, 1, 30, 1000])
    v = mixture_weights(log_L, np.full(n, 1 / n))
    L = np.exp(log_L - log_L.max(axis=1, keepdims=True))
    peer = expectation_maximisation(L, 500)
    with np.errstate(divide="ignore"):
        ours, theirs = (-np.log(L @ v).mean() for v in (v, peer))
    assert (L / (L @ v)[:, None]).mean(axis=0).max() < 1 + 1e-9
    assert ours <= theirs + 1e-9


def logistic_columns(s):
    return np.column_stack([log_expit(s), -log_expit(-s), np.ones(len(s))])


@pytest.mark.parametrize("seed", range(6))
def test_dirichlet_with_few_ones_reaches_its_optimum(seed):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=100) * 2
    y = np.zeros(100, int)
    y[rng.choice(100, 2, replace=False)] = 1
    with warnings.catch_warnings(action="error"):
        fit = calibrators.DirichletCalibration(mu=0).fit(s, y)
    # the same problem in other coordinates, solved by BFGS from several starts
    A = logistic_columns(s)
    A = A / np.sqrt((A**2).mean(axis=0))
    best = min(
        minimize(
            lambda t: np.logaddexp(0, np.where(y == 1, -1, 1) * (A @ t)).mean(),
            start,
            method="BFGS",
            options={"gtol": 1e-10, "maxiter": 5000},
        ).fun
        for start in rng.normal(size=(4, 3)) * 3
    )
    assert loss_of(fit, s, y) < best + 1e-5  # the ridge of 1e-8 keeps steep optima finite


def test_a_separable_set_whose_optimum_is_out_of_reach_is_said():
    # A curve that separates rows so close to 1/2 would need coefficients of a hundred thousand.
    s = np.array([-0.02, -0.01, 0.01, 0.02])
    with pytest.warns(ConvergenceWarning, match="DirichletCalibration stops up to .* separable"):
        calibrators.DirichletCalibration(mu=0).fit(s, [1, 0, 0, 1])


def test_dirichlet_without_penalty_leaves_nothing_unsaid():
    rng, said = np.random.default_rng(1), 0
    for _ in range(40):
        n = int(rng.integers(4, 12))
        s = rng.standard_t(2, size=n) * 10.0 ** rng.integers(-4, 4)
        y = rng.permutation(np.arange(n) < rng.integers(1, n)) * 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = calibrators.DirichletCalibration(mu=0).fit(s, y)
        with np.errstate(divide="ignore"):
            odds = np.where(y == 1, -1, 1) * logit(fit.predict_proba(s)[:, 1])
        steeper = min(np.logaddexp(0, k * odds).mean() for k in (10, 1e4))
        assert caught or loss_of(fit, s, y) < steeper + 2e-4
        said += bool(caught)
    assert 0 < said < 40


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 30.0]), st.integers(4, 60))
@settings(max_examples=20, deadline=None)
def test_the_convex_solver_reaches_its_optimum(seed, scale, n):
    rng = np.random.default_rng(seed)
    s = rng.standard_t(2, size=n) * scale
    y = np.zeros(n)
    y[rng.choice(n, rng.integers(1, n), replace=False)] = 1
    w = rng.random(n) + 0.01
    w /= w.sum()
    A = logistic_columns(s)
    A /= np.sqrt(w @ A**2)
    start = rng.normal(size=3)
    theta = fit_logistic(A, y, w, start, np.zeros(3))
    slope = (w * (expit(A @ theta) - y)) @ A + 2 * RIDGE * (theta - start)
    assert np.abs(slope).max() < 1e-8

    def objective(t):
        loss = w @ np.logaddexp(0, np.where(y == 1, -1, 1) * (A @ t))
        return loss + RIDGE * np.sum((t - start) ** 2)

    for other in (start, theta + rng.normal(size=3), theta * 1.1, theta * 0.9):
        assert objective(theta) <= objective(other) + 1e-13


# --- weights --------------------------------------------------------------------------------

WEIGHTED = {
    name: Kind
    for name, Kind in calibrators.CALIBRATORS.items()
    if name not in ("dirichlet", "mixnmatch", "spline", "venn_abers")  # the last has its own test
} | {
    "spline": lambda: calibrators.SplineCalibration(knots=(4,)),
    "dirichlet": lambda: calibrators.DirichletCalibration(mu=0.01),  # random folds would differ
    "mixture only": lambda: calibrators.MixNMatch(isotonic=False),
}


@pytest.mark.filterwarnings("ignore:.* stops up to")
@pytest.mark.parametrize("name", WEIGHTED)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_weights_of_rows(name, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 50))
    s = rng.normal(size=n).round(int(rng.integers(1, 3))) * 2
    y, w = rng.integers(0, 2, n), rng.integers(0, 4, n)
    y[:2], w[:2] = [0, 1], [1, 2]
    make, grid = WEIGHTED[name], np.linspace(-5, 5, 41)

    def predicted(rows, labels, weights=None):
        return make().fit(rows, labels, sample_weight=weights).predict_proba(grid)[:, 1]

    whole = predicted(s, y, w)
    np.testing.assert_allclose(whole, predicted(np.repeat(s, w), np.repeat(y, w)), atol=2e-6)
    np.testing.assert_array_equal(whole, predicted(s[w > 0], y[w > 0], w[w > 0]))
    np.testing.assert_allclose(whole, predicted(s, y, w * 0.37), atol=2e-6)
    np.testing.assert_array_equal(predicted(s, y), predicted(s, y, np.full(n, 0.3)))


S4, Y4 = [-1.0, 0, 1, 2], [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("s", "y", "weights", "message"),
    [
        (S4, Y4, [1, 1, 1], "sample_weight must have a value for each of 4 rows; got 3"),
        (S4, Y4, [1, 1, 1, -1], "sample_weight must be finite and at least 0; got -1 in row 3"),
        (S4, Y4, [1, 0, 1, 0], "one class only"),
        (np.ma.array(S4, mask=[0, 1, 0, 0]), Y4, None, "X must have every value; row 1 is masked"),
        (S4, np.ma.array(Y4, mask=[0, 0, 0, 1]), None, "y must have every value; row 3 is masked"),
        ([[-1e308, 1e308], [0, 1], [1, 0]], [0, 1, 1], None, "X must hold logits of at most"),
    ],
)
def test_rows_and_weights_that_are_wrong_are_named(s, y, weights, message):
    with pytest.raises(ValueError, match=message):
        calibrators.PlattScaling().fit(s, y, sample_weight=weights)


def test_temperature_closed_form_with_weights():
    s, y = np.array([-1.0, -1, 1, 1]), np.array([0, 1, 0, 1])
    fit = calibrators.TemperatureScaling().fit(s, y, sample_weight=[7, 3, 2, 8])
    assert fit.temperature_ == pytest.approx(1 / logit(15 / 20), 1e-6)
