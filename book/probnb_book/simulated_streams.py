"""Streams of outcomes for the chapter on metrics: how soon a watch tells, and how often wrongly."""

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from probnb.watch.sequential import ALTERNATIVES, odds, stake

SAID = np.linspace(0.05, 0.95, 181)
"""Predictions of the streams, each as likely as any other."""

CHANGE = 2000
"""After so many rows the last of the worlds changes."""

WORLDS = {
    "true": SAID,
    "slope 0.8": expit(0.8 * logit(SAID)),
    "slope 1.25": expit(1.25 * logit(SAID)),
    "0.05 too low": SAID + 0.05,
    "0.05 too high": SAID - 0.05,
    f"0.05 too low after {CHANGE:,}": SAID + 0.05,
}
"""What is true where `SAID` is predicted."""

ALPHA, Z, FIRST = 0.05, 1.959964, 30
"""Level, its two-sided quantile, and the rows after which the z-tests are first looked at."""


def draw_row(world, row, streams, rng):
    """Draw a row, counted from 1, of some streams: which of `SAID` was predicted, and outcomes."""
    k = rng.integers(len(SAID), size=streams)
    right = "after" in world and row <= CHANGE
    return k, (rng.random(streams) < (SAID if right else WORLDS[world])[k]).astype(int)


def draw_stream(rows=3000, seed=0):
    """Return (y, p_hat) of a stream of the last world, with so many rows after its change."""
    world, rng = [*WORLDS][-1], np.random.default_rng(seed)
    parts = [draw_row(world, at, n, rng) for at, n in ((1, CHANGE), (CHANGE + 1, rows))]
    k, y = np.concatenate(parts, axis=1)
    return y, SAID[k]


def first_alarms(world, streams=1000, rows=10_000, seed=0):
    """Return the row of the first alarm in each stream, NaN where there is none.

    Columns: the watch, and two z-tests at the two-sided level `ALPHA` that are looked at after
    every row, of the mean outcome and of Spiegelhalter (1986), which weighs errors by 1 - 2p. It
    stops once every watch has raised its alarm.
    """
    rng, payout = np.random.default_rng(seed), np.stack([odds(0 * SAID + y, SAID) for y in (0, 1)])
    weights = np.full((streams, len(ALTERNATIVES)), 1 / len(ALTERNATIVES))
    log_e = np.zeros(streams)
    sums = variances = np.zeros((2, streams))
    first = np.full((3, streams), np.nan)
    for row in range(1, rows + 1):
        k, y = draw_row(world, row, streams, rng)
        growth, weights = stake(weights, payout[y, k], row)
        log_e += np.log(growth)
        p, by = SAID[k], np.stack([np.ones(streams), 1 - 2 * SAID[k]])
        sums, variances = sums + by * (y - p), variances + by**2 * p * (1 - p)
        z = (row >= FIRST) & (np.abs(sums) > Z * np.sqrt(variances))
        first[np.vstack([log_e >= -np.log(ALPHA), z]) & np.isnan(first)] = row
        if not np.isnan(first[0]).any():
            break
    return pd.DataFrame(first.T, columns=["watch", "z of the mean", "Spiegelhalter's z"])


def alarm_table(streams=1000, rows=10_000, seed=0):
    """Return for each world and test the share of streams with an alarm and its median row.

    The median is over all streams, NaN where fewer than half raise one.
    """
    first = pd.concat({w: first_alarms(w, streams, rows, seed) for w in WORLDS}).fillna(np.inf)
    told = [("alarms", lambda rows: np.isfinite(rows).mean()), ("median row", "median")]
    return first.groupby(level=0, sort=False).agg(told).replace(np.inf, np.nan)
