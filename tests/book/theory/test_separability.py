"""The separability threshold against its definition, exact counts, peers and simulation."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog, minimize_scalar
from scipy.special import expit, ndtr
from scipy.stats import binom
from sklearn.svm import SVC

from probnb_book.theory import critical_dimension, max_margin, separability_threshold


def is_separable(X, y):
    return max_margin(X, y) is not None


def simulate(n, p, gamma, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, (rng.random(n) < expit(gamma * X[:, 0])).astype(float)


def separable_by_linear_programme(X, y):
    """A w with margins of at least 1, by HiGHS: the reference."""
    signed = X * (2 * np.asarray(y) - 1)[:, None]
    n, p = signed.shape
    return linprog(np.zeros(p), -signed, -np.ones(n), bounds=(None, None)).status == 0


def test_threshold_without_signal_is_one_half():
    assert separability_threshold(0.0) == pytest.approx(0.5, abs=1e-6)
    assert separability_threshold(1e-7) == pytest.approx(0.5, abs=1e-6)


def test_threshold_decreases():
    values = separability_threshold(np.r_[0, np.geomspace(1e-3, 1e6, 80)])
    assert (np.diff(values) <= 0).all()
    assert (np.diff(values[10:]) < 0).all()  # strictly, once above rounding
    assert (values > 0).all()


@pytest.mark.parametrize("gamma", [0.5, 2.0, 10.0])
def test_threshold_equals_its_definition(gamma):
    # E(tV - Z)_+^2 by adaptive integration over V, with the inner expectation over Z by parts
    def expectation(t):
        def integrand(v):
            m, density = t * v, np.exp(-v * v / 2) / np.sqrt(2 * np.pi)
            square = (1 + m * m) * ndtr(m) + m * np.exp(-m * m / 2) / np.sqrt(2 * np.pi)
            return 2 * density * expit(gamma * v) * square

        return quad(integrand, -9, 9, points=[0.0, -1 / gamma, 1 / gamma], limit=200)[0]

    best = minimize_scalar(expectation, bounds=(-50, 0), method="bounded", options={"xatol": 1e-9})
    assert separability_threshold(gamma) == pytest.approx(best.fun, abs=1e-8)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_simulation_crosses_one_half_at_the_threshold(gamma):
    p, share = 240, {}
    for side in (-0.05, 0.05):
        n = round(p / (separability_threshold(gamma) + side))
        found = [is_separable(*simulate(n, p, gamma, [1, seed])) for seed in range(5)]
        share[side] = np.mean(found)
    assert share[-0.05] < 0.5 < share[0.05]


def test_without_signal_separability_follows_covers_count():
    n, p, trials = 30, 14, 1000
    chance = binom.cdf(p - 1, n - 1, 0.5)  # Cover (1965)
    found = np.mean([is_separable(*simulate(n, p, 0.0, [2, s])) for s in range(trials)])
    assert abs(found - chance) < 3 * np.sqrt(chance * (1 - chance) / trials)


@pytest.mark.parametrize(("n", "p", "gamma"), [(60, 20, 2.0), (60, 28, 0.5)])
def test_linear_programme_agrees_near_the_threshold(n, p, gamma):
    answers = []
    for seed in range(12):
        X, y = simulate(n, p, gamma, [3, seed])
        answers.append(is_separable(X, y))
        assert separable_by_linear_programme(X, y) == answers[-1]
    assert 0 < sum(answers) < 12


def test_degenerate_inputs_are_decided():
    X = np.array([[1.0, 1.0], [2.0, 2.0], [-1.0, -1.0], [3.0, 3.0]])  # of rank 1
    assert is_separable(X, [1, 1, 0, 1])
    assert not is_separable(X, [1, 0, 0, 1])
    assert not is_separable([[0.0, 0.0], [1.0, 0.0]], [1, 1])  # a row at the origin
    assert is_separable(np.eye(4), [1, 0, 0, 1])  # p = n


def test_max_margin_equals_support_vector_machine():
    X, y = simulate(40, 25, 1.0, 5)
    ours = max_margin(X, y)
    # SVC has an intercept; on data joined to their mirror image it is 0
    peer = SVC(kernel="linear", C=1e8, tol=1e-8).fit(np.r_[X, -X], np.r_[y, 1 - y])
    np.testing.assert_allclose(ours, peer.coef_[0], rtol=1e-4, atol=1e-5)
    margins = (X @ ours) * (2 * y - 1)
    assert margins.min() == pytest.approx(1, abs=1e-9)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="gamma must be"):
        separability_threshold(-1.0)
    with pytest.raises(ValueError, match="y must hold only 0 and 1"):
        is_separable(np.ones((2, 1)), [-1, 1])


def test_critical_dimension_is_where_the_answer_changes():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 80))
        y = rng.random(80) < expit(1.5 * X[:, 0])
        p = critical_dimension(80, 1.5, seed)
        assert is_separable(X[:, :p], y)
        assert not is_separable(X[:, : p - 1], y)
