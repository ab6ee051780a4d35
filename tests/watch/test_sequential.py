"""The test that may be looked at after every outcome."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit

from probnb.watch.sequential import ALTERNATIVES, SHARE, odds, watch


def forecast(past):
    """A probability that depends on everything that has happened."""
    return expit(0.7 - 0.9 * sum(past) + 0.4 * len(past))


@pytest.mark.parametrize("stop", [None, 1.1])
def test_no_bet_can_expect_to_gain(stop):
    """Over all 2^9 courses of events, with forecasts that follow them, and at any time to stop."""
    mean = mass = 0
    for y in product((0, 1), repeat=9):
        p = np.array([forecast(y[:t]) for t in range(9)])
        e = np.exp(watch(y, p)[1]["log_e"].to_numpy())
        stopped = np.flatnonzero(e >= stop) if stop else []
        chance = np.where(y, p, 1 - p).prod()
        mean += chance * e[stopped[0] if len(stopped) else -1]
        mass += chance
    assert mass == pytest.approx(1, abs=1e-12) and mean == pytest.approx(1, abs=1e-12)


def test_against_the_sum_over_all_ways_to_move_the_money():
    """Money may move after each row: e is the mean over the paths of alternatives."""
    rng = np.random.default_rng(0)
    p, y = rng.uniform(0.05, 0.95, 5), rng.integers(0, 2, 5)
    q = expit(ALTERNATIVES[:, 0] + ALTERNATIVES[:, 1] * logit(p)[:, None])
    ratios = np.where(y[:, None], q / p[:, None], (1 - q) / (1 - p[:, None]))
    g = len(ALTERNATIVES)
    wealth = ratios[0] / g
    for t in range(1, 5):
        move = (1 - SHARE / t) * np.eye(g) + SHARE / t / g
        wealth = (wealth @ move) * ratios[t]
    assert watch(y, p)[0].log_e == pytest.approx(np.log(wealth.sum()), abs=1e-12)


def test_an_alarm_stays_where_it_was():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.95, 6000)
    y = (rng.random(6000) < np.clip(p + 0.06, 0, 1)).astype(int)
    now, table = watch(y, p)
    at, log_e = now.alarm, table["log_e"]
    assert len(table) == now.rows == 6000
    assert log_e.iloc[at - 1] >= np.log(20) > log_e[: at - 1].max()
    for rows in (at - 1, at, 4999):  # the numbers of the first rows are those of all, to the bit
        less, lines = watch(y[:rows], p[:rows])
        assert lines.equals(table[:rows]) and less.alarm == (at if rows >= at else None)
    assert watch(np.r_[np.ones(200), np.arange(4000) % 10 < 3], np.full(4200, 0.3))[0].alarm < 30


def test_certainty():
    """Whoever says 0 or 1 and is right loses nothing, and is refuted at once if wrong."""
    now, table = watch([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(table["log_e"], 0, atol=1e-12)
    assert now.alarm is None
    now, table = watch([0, 1, 1, 1], [0.0, 1.0, 0.0, 0.5])
    assert np.isinf(table["log_e"]).tolist() == [False, False, True, True] and now.alarm == 3
    for p in (5e-324, 1 - 2**-53):
        assert np.isfinite(watch([p < 0.5], [p])[0].log_e)  # all but certain, and wrong


def test_it_finds_what_is_wrong():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.98, 8000)
    y = rng.random(8000) < expit(0.4 + 2 ** (-2 / 3) * logit(p))  # one of the alternatives
    last = watch(y, p)[1].iloc[-1]
    assert last["intercept"] == pytest.approx(0.4, abs=0.03)
    assert last["slope"] == pytest.approx(2 ** (-2 / 3), abs=0.04)


def test_outcomes_and_their_names_may_be_swapped():
    rng = np.random.default_rng(3)
    p, y = rng.uniform(0.1, 0.9, 300), rng.integers(0, 2, 300)
    one, other = watch(y, p)[1], watch(1 - y, 1 - p)[1]
    np.testing.assert_allclose(one["log_e"], other["log_e"], atol=1e-9)
    np.testing.assert_allclose(one["intercept"], -other["intercept"], atol=1e-9)


def test_the_forecaster_is_an_alternative_and_odds_are_fair():
    rng = np.random.default_rng(4)
    p = rng.uniform(0, 1, 50)
    fair = p[:, None] * odds(np.ones(50), p) + (1 - p[:, None]) * odds(np.zeros(50), p)
    np.testing.assert_allclose(fair, 1, atol=1e-12)
    assert (ALTERNATIVES == [0, 1]).all(axis=1).sum() == 1


def test_bad_input():
    with pytest.raises(ValueError, match=r"alpha must be a finite number in \(0, 1\); got 1.5"):
        watch([0], [0.5], alpha=1.5)
    with pytest.raises(ValueError, match="y_prob must hold probabilities"):
        watch([0], [1.5])
    with pytest.raises(ValueError, match="at least one row"):
        watch([], [])
