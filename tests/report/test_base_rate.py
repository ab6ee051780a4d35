"""Another base rate: Bayes' rule, Saerens' own steps, known shifts and what is refused."""

import numpy as np
import pytest
from scipy.special import expit, logit

from probnb.report.keep import at_rate, estimate_rate, rate_with_interval


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
    p, before, rate = shifted(np.random.default_rng(1), 4000, new)[1], 0, 0.5
    while abs(rate - before) > 1e-10:  # the paper's two steps
        before, rate = rate, at_rate(p, 0.5, rate).mean()
    assert estimate_rate(p, 0.5) == pytest.approx(rate, abs=1e-6)


def test_intervals_cover_known_shifts():
    """Of 400 intervals of 95 %, fewer than 366 would cover in one case of a thousand."""
    rng, covered, estimates = np.random.default_rng(4), 0, []
    for k in range(400):
        new = (0.1, 0.2, 0.5, 0.8)[k % 4]
        rate, low, high = rate_with_interval(shifted(rng, 600, new, old=0.3)[1], 0.3)
        assert 0 < low < rate < high < 1
        covered += low <= new <= high
        estimates.append(rate - new)
    assert 366 <= covered < 400
    assert abs(np.mean(estimates)) < 4 * np.std(estimates) / np.sqrt(400)


def test_the_interval_is_that_of_resampled_rows():
    rng = np.random.default_rng(6)
    p = shifted(rng, 2000, 0.3)[1]
    drawn = [estimate_rate(rng.choice(p, len(p)), 0.5) for _ in range(400)]
    _, low, high = rate_with_interval(p, 0.5)
    assert high - low == pytest.approx(3.92 * np.std(drawn), rel=0.15)
    wide = rate_with_interval(p, 0.5, [(p, 0.5), (p / 2, 0.5)])
    assert wide[0] == rate_with_interval(p, 0.5)[0] and wide[1] < low < high < wide[2]


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
