"""Simulated streams: the loop over many of them is the library's watch, and what the page says."""

import numpy as np
import pytest
from scipy.special import expit

from probnb.watch.sequential import watch
from probnb_book import simulated_streams as study


@pytest.mark.parametrize("world", ["0.05 too high", "0.05 too low after 2,000"])
def test_each_stream_is_a_watch(world):
    streams, rows = 3, 5000
    rng = np.random.default_rng(5)
    drawn = [study.draw_row(world, row, streams, rng) for row in range(1, rows + 1)]
    first = study.first_alarms(world, streams, rows, seed=5)
    p, y = study.SAID[[k for k, _ in drawn]], np.array([y for _, y in drawn])
    for s in range(streams):
        assert first["watch"][s] == watch(y[:, s], p[:, s])[0].alarm
        for name, by in (("z of the mean", 1.0), ("Spiegelhalter's z", 1 - 2 * p[:, s])):
            error, variance = by * (y - p)[:, s], by**2 * (p * (1 - p))[:, s]
            z = error.cumsum() / np.sqrt(variance.cumsum() * np.ones(rows))
            end = int(first["watch"].max())  # no test is looked at once every watch is done
            crossed = np.flatnonzero(np.abs(z[29:end]) > study.Z)
            np.testing.assert_equal(first[name][s], crossed[0] + 30 if len(crossed) else np.nan)


def test_worlds():
    assert (study.WORLDS["0.05 too low"] <= 1).all() and (study.WORLDS["0.05 too high"] >= 0).all()
    np.testing.assert_allclose(study.WORLDS["slope 0.8"][0], expit(0.8 * np.log(0.05 / 0.95)))
    rng = np.random.default_rng(0)
    for name, truth in study.WORLDS.items():
        k, y = study.draw_row(name, 3000, 200_000, rng)
        assert abs(y.mean() - truth[k].mean()) < 0.005
    k, y = study.draw_row("0.05 too low after 2,000", 2000, 200_000, rng)
    assert abs(y.mean() - study.SAID[k].mean()) < 0.005


def test_a_table_without_alarms_has_no_median():
    table = study.alarm_table(streams=20, rows=40)
    assert table["watch", "median row"].isna().all()
    assert list(table.index) == list(study.WORLDS)
