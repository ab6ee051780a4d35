"""Venn-Abers, the quadratic and the spline against peers and brute force."""

import json
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from probnb.calibrators import (
    IsotonicCalibration,
    PlattScaling,
    QuadraticCalibration,
    SplineCalibration,
    VennAbers,
    from_dict,
    to_dict,
)
from probnb.calibrators.base import cross_fit_folds, fit_logistic, fit_rising, log_loss


def draw(seed, n, rounded=None):
    rng = np.random.default_rng(seed)
    s = 2 * rng.normal(size=n)
    s = s if rounded is None else s.round(rounded)
    y = (rng.random(n) < expit(s)).astype(int)
    y[:2] = 0, 1
    return s, y


# --- Venn-Abers -----------------------------------------------------------------------------


def refitted(s, y, w, new, at):
    """The definition: isotonic regression with the new row added, once with each outcome."""

    def value(x, outcome):
        fit = IsotonicRegression(y_min=0, y_max=1)
        fit.fit(np.append(s, x), np.append(y, outcome), sample_weight=np.append(w, new))
        return fit.predict([x])[0]

    return np.array([[value(x, 0), value(x, 1)] for x in at])


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    rounded=st.sampled_from([0, 1, None]),
    weighted=st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_venn_abers_is_isotonic_regression_refitted_with_the_new_row(seed, n, rounded, weighted):
    s, y = draw(seed, n, rounded)
    w = np.random.default_rng(seed).choice([0.3, 1, 2, 50], n) if weighted else np.ones(n)
    fit = VennAbers().fit(s, y, sample_weight=w)
    at = np.concatenate([s, s + 1e-3, [-9, 9]])
    found = fit.predict_interval(at)
    np.testing.assert_allclose(found, refitted(s, y, w, w @ w / w.sum(), at), atol=1e-9)
    p0, p1 = found.T
    np.testing.assert_allclose(fit.predict_proba(at)[:, 1], p1 / (1 - p0 + p1), atol=1e-12)
    assert (p0 <= p1).all()


SETS = {
    "drawn": draw(0, 500),
    "ties": draw(1, 500, 0),
    "separable": (np.arange(40.0), np.repeat([0, 1], 20)),
    "inverted": (np.arange(40.0), np.repeat([1, 0], 20)),
    "one of outcome 1": (np.arange(40.0), (np.arange(40) == 7).astype(int)),
    "one of outcome 0": (np.arange(40.0), (np.arange(40) != 7).astype(int)),
    "all the same": (np.zeros(30), np.repeat([0, 1], [20, 10])),
}


@pytest.mark.parametrize("name", SETS)
def test_venn_abers_equals_its_peer(name):
    with np.errstate(), warnings.catch_warnings(action="ignore"):  # its import sets NumPy for good
        peer = pytest.importorskip("venn_abers.venn_abers")
        s, y = SETS[name]
        at = np.concatenate([s, [-99, 99, 0.25]])
        p0, p1, c = peer.calc_p0p1(np.column_stack([1 - expit(s / 9), expit(s / 9)]), y)
        new = expit(at / 9)
        _, expected = peer.calc_probs(p0, p1, c, np.column_stack([1 - new, new]))
    found = VennAbers().fit(s, y).predict_interval(at)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_venn_abers_of_many_rows_lies_between_its_ends_and_near_isotonic_regression():
    s, y = draw(2, 100_000)
    fit = VennAbers().fit(s, y)
    p0, p1 = fit.predict_interval(s).T
    steps = IsotonicCalibration().fit(s, y).predict_proba(s)[:, 1]
    assert (p0 <= steps + 1e-12).all() and (steps <= p1 + 1e-12).all()
    assert (p1 - p0).mean() < 0.01 and len(fit.thresholds_) < 5000
    again = from_dict(json.loads(json.dumps(to_dict(fit))))
    np.testing.assert_array_equal(again.predict_interval(s), fit.predict_interval(s))


def test_weights_scale_and_rows_without_weight():
    s, y = draw(3, 60, 1)
    w = np.random.default_rng(0).integers(0, 4, 60).astype(float)
    w[:2] = 1
    of = VennAbers().fit(s, y, sample_weight=w).predict_interval(s)
    for rows, weights in ((slice(None), 0.37 * w), (w > 0, w[w > 0])):
        again = VennAbers().fit(s[rows], y[rows], sample_weight=weights)
        np.testing.assert_allclose(again.predict_interval(s), of, atol=1e-12)
    same = VennAbers().fit(s, y, sample_weight=np.full(60, 7.0)).predict_interval(s)
    np.testing.assert_array_equal(same, VennAbers().fit(s, y).predict_interval(s))


# --- parabola and spline --------------------------------------------------------------------


def free(columns, y, w):
    """Probabilities of a logistic regression without penalty."""
    fit = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, fit_intercept=False)
    return fit.fit(columns, y, sample_weight=w).predict_proba(columns)[:, 1]


def bent(seed, n=800, square=0.15):
    rng = np.random.default_rng(seed)
    s = rng.uniform(-2, 2.5, n)
    return s, (rng.random(n) < expit(0.3 + s + square * s**2)).astype(int), rng.integers(1, 4, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_quadratic_is_logistic_regression_on_the_square_where_that_rises(weighted):
    s, y, w = bent(0, square=0.1)
    w = w if weighted else np.ones(len(s))
    fit = QuadraticCalibration().fit(s, y, sample_weight=w)
    assert fit.slopes_.min() > 0
    peer = free(np.column_stack([s, s**2, np.ones(len(s))]), y, w)
    np.testing.assert_allclose(fit.predict_proba(s)[:, 1], peer, atol=5e-6)


def test_quadratic_stops_where_its_parabola_would_turn():
    s, y, _ = bent(1, 4000, 0.6)  # turns at -0.83
    fit = QuadraticCalibration().fit(s, y)
    assert fit.slopes_[0] == 0 and fit.slopes_[1] > 0
    grid = np.linspace(-9, 9, 2001)
    p = fit.predict_proba(grid)[:, 1]
    assert (np.diff(p) >= 0).all() and np.ptp(p[grid < s.min()]) == 0
    odds = logit(p[grid > s.max()])
    assert np.abs(np.diff(odds[:200], 2)).max() < 1e-8  # the tangent beyond
    inverted = QuadraticCalibration().fit(-s, y)
    assert (inverted.slopes_ >= 0).all()


def truncated_powers(x, knots):
    """The natural cubic splines of the books."""

    def d(k):
        cubes = np.maximum(x - knots[k], 0) ** 3 - np.maximum(x - knots[-1], 0) ** 3
        return cubes / (knots[-1] - knots[k])

    last = len(knots) - 2
    return np.column_stack([np.ones(len(x)), x, *(d(k) - d(last) for k in range(last))])


@pytest.mark.parametrize("number", [2, 3, 4, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_spline_against_the_basis_of_the_books(number, weighted):
    s, y, w = bent(2, 3000, 0.1)
    w = w if weighted else np.ones(len(s))
    fit = SplineCalibration(knots=(number,)).fit(s, y, sample_weight=w)
    assert len(fit.knots_) == number and fit.slopes_.min() > 0
    peer, share = free(truncated_powers(s, fit.knots_), y, w), w / w.sum()
    np.testing.assert_allclose(fit.predict_proba(s)[:, 1], peer, atol=5e-6)
    for shares, end in ((0.05, 0), (0.95, -1)):
        assert share[s <= fit.knots_[end]].sum() == pytest.approx(shares, abs=2e-3)
    beyond = logit(fit.predict_proba(np.linspace(3, 6, 50))[:, 1])
    assert np.abs(np.diff(beyond, 2)).max() < 1e-8


@given(seed=st.integers(0, 10**6), k=st.integers(1, 5))
@settings(max_examples=10, deadline=None)
def test_coefficients_at_least_0_are_the_best_of_all_sets(seed, k):
    rng = np.random.default_rng(seed)
    columns = np.column_stack([rng.normal(size=(60, k)) + rng.normal(size=(60, 1)), np.ones(60)])
    y = (rng.random(60) < expit(columns @ rng.normal(size=k + 1))).astype(float)
    w, start = np.full(60, 1 / 60), np.zeros(k + 1)

    def loss(theta):
        return log_loss(columns @ theta, y, w)

    best = np.inf
    for held in product([False, True], repeat=k):
        free, theta = ~np.array([*held, False]), np.zeros(k + 1)
        theta[free] = fit_logistic(columns[:, free], y, w, start[free], start[free])
        best = min(best, loss(theta)) if (theta[:-1] >= 0).all() else best
    found = fit_rising(columns, y, w, start)
    assert (found[:-1] >= 0).all() and loss(found) == pytest.approx(best, abs=1e-9)


def test_two_knots_are_platt_scaling():
    s, y, w = bent(3)
    two = SplineCalibration(knots=(2,)).fit(s, y, sample_weight=w).predict_proba(s)
    np.testing.assert_allclose(
        two, PlattScaling().fit(s, y, sample_weight=w).predict_proba(s), atol=1e-6
    )


def test_number_of_knots_follows_the_curve_and_the_map_never_falls():
    rng = np.random.default_rng(4)
    s = rng.uniform(-5, 5, 3000)
    truth = 0.15 + 0.7 * expit(4 * s)  # no line, no parabola
    y = (rng.random(len(s)) < truth).astype(int)
    fit = SplineCalibration(knots=(2, 4, 8)).fit(s, y)
    others = (PlattScaling().fit(s, y), QuadraticCalibration().fit(s, y))
    errors = [np.mean((one.predict_proba(s)[:, 1] - truth) ** 2) for one in (fit, *others)]
    assert errors[0] < 0.25 * min(errors[1:]) and len(fit.knots_) == 8
    grid = np.linspace(-9, 9, 999)
    assert (np.diff(fit.predict_proba(grid)[:, 1]) >= -1e-15).all()
    straight = (rng.random(len(s)) < expit(0.7 * s)).astype(int)
    near = SplineCalibration(knots=(2, 4, 8)).fit(s, straight).predict_proba(s)[:, 1]
    assert np.abs(near - expit(0.7 * s)).max() < 0.03
    down = SplineCalibration(knots=(2, 4)).fit(-s, straight).predict_proba(grid)[:, 1]
    assert np.ptp(down) < 1e-6 and down[0] == pytest.approx(straight.mean(), abs=1e-6)


def test_cross_fitting_decides_the_number():
    s, y, w = bent(6, 600, 0.3)
    order = np.random.default_rng(0).permutation(len(s))  # in which the folds are dealt
    s, y, w = s[order], y[order], w[order]
    losses = {}
    for number in (2, 3, 5):
        p = np.empty(len(s))
        for fit, test in cross_fit_folds(y, None, 5, 0):
            one = SplineCalibration(knots=(number,)).fit(s[fit], y[fit], sample_weight=w[fit])
            p[test] = one.predict_proba(s[test])[:, 1]
        losses[number] = -w @ np.log(np.where(y == 1, p, 1 - p))
    back = np.argsort(order)
    chosen = SplineCalibration(knots=(5, 3, 2)).fit(s[back], y[back], sample_weight=w[back])
    assert len(chosen.knots_) == min(losses, key=losses.get)


@pytest.mark.parametrize("s, y", [([0.0, 1, 2, 3], [0, 0, 1, 0]), ([0.0] * 9 + [1], [0, 1] * 5)])
def test_splines_of_few_rows_and_few_values(s, y):
    with pytest.raises(ValueError, match="knots must be an integer of at least 2; got 1"):
        SplineCalibration(knots=(1, 3)).fit(s, y)
    p = SplineCalibration().fit(s, y).predict_proba([-1e100, -1.0, 0.5, 1e100])
    assert np.isfinite(p).all()
