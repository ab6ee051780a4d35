"""Another base rate: Bayes' rule, Saerens' own steps, known shifts and what is refused."""

import numpy as np
import pytest
from scipy.special import expit, logit

from probnb.report.base_rate import as_rate, at_rate, estimate_rate, rate_interval


def shifted(rng, n, rate, old=0.5, gap=1.5):
    """Outcomes at a rate, and what Bayes' rule says at another, of two normal distributions."""
    y = rng.random(n) < rate
    x = rng.normal(gap * y, 1)
    return y, expit(gap * x - gap**2 / 2 + logit(old))


@pytest.mark.parametrize(("old", "new"), [(0.5, 0.03), (0.2, 0.9), (0.01, 0.011)])
def test_it_is_bayes_rule_and_its_own_way_back(old, new):
    rng = np.random.default_rng(0)
    _, at_old = shifted(rng, 500, new, old)
    rng = np.random.default_rng(0)
    _, at_new = shifted(rng, 500, new, new)
    np.testing.assert_allclose(at_rate(at_old, old, new), at_new, rtol=1e-12)
    np.testing.assert_allclose(at_rate(at_rate(at_old, old, new), new, old), at_old, rtol=1e-12)
    assert at_rate(np.array([0.0, 1.0]), old, new).tolist() == [0, 1]


@pytest.mark.parametrize("new", [0.02, 0.3, 0.97])
def test_saerens_steps_end_at_the_estimate(new):
    p, rate = shifted(np.random.default_rng(1), 4000, new)[1], 0.5
    for _ in range(20_000):  # the paper's two steps
        rate = at_rate(p, 0.5, rate).mean()
    assert estimate_rate(p, 0.5) == pytest.approx(rate, abs=1e-6)


def test_weights_count_rows():
    p = shifted(np.random.default_rng(2), 300, 0.2)[1]
    weights = np.random.default_rng(3).integers(0, 4, 300).astype(float)
    again = np.repeat(p, weights.astype(int))
    assert estimate_rate(p, 0.5, weights) == pytest.approx(estimate_rate(again, 0.5), abs=1e-9)


def test_intervals_cover_known_shifts():
    """Of 200 intervals of 95 %, fewer than 180 would cover in one case of a thousand."""
    rng, covered, estimates = np.random.default_rng(4), 0, []
    for k in range(200):
        new = (0.05, 0.2, 0.5, 0.8)[k % 4]
        p = shifted(rng, 600, new, old=0.3)[1]
        low, high = rate_interval([(p, 0.3)] * 100, seed=k)
        covered += low <= new <= high
        estimates.append(estimate_rate(p, 0.3) - new)
    assert 180 <= covered < 200
    assert abs(np.mean(estimates)) < 4 * np.std(estimates) / np.sqrt(200)


def test_a_certain_prediction_stays_and_the_ends_are_reached():
    assert estimate_rate([0.1, 0.2, 0.1], 0.5) == 0 and estimate_rate([0.9, 0.8], 0.5) == 1
    assert 0 < estimate_rate([0.0, 1.0, 0.3, 0.6], 0.5) < 1


@pytest.mark.parametrize("p", [[0.3] * 50, [0.3], [1.0, 1.0], [0.2, 1.2], [0.2, np.nan], []])
def test_predictions_that_tell_no_rate_are_refused(p):
    with pytest.raises(ValueError, match=r"^p must"):
        estimate_rate(p, 0.5)


@pytest.mark.parametrize("rate", [0, 1, -0.1, 3, np.nan, np.inf, True])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match=r"^rate must be a finite number in \(0, 1\)"):
        at_rate(np.array([0.5]), 0.5, rate)
    with pytest.raises(ValueError, match=r"^old must be a finite number"):
        estimate_rate([0.2, 0.4], rate)


@pytest.mark.parametrize("text", ["0", "1", "3", "-0.1", "nan", "inf", "0,03", "3%", "half", ""])
def test_a_rate_that_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match=r"^rate must be a .*number in .*got"):
        as_rate(text, "none")
