"""The report on a table that no memory holds: read by an engine, judged as a whole.

What an engine has no quick answer to (slopes, gains, parts) is that of a sample, which is said.
"""

from __future__ import annotations

import ibis
import numpy as np
import pandas as pd
from scipy.special import stdtrit

from ..metrics.binning import BINS
from ..metrics.differences import proportion_interval
from ..metrics.sample import FEWEST
from . import judge


def resample(data, replicates=1000, seed=0):
    """Bootstrap every metric of every column over the same blocks; as `judge.resample`."""
    return data.bootstrap(replicates=replicates, seed=seed)


def calibration_table(data):
    """How each column is off, and whether chance explains it; as `judge.calibration_table`."""
    off = judge.calibration_table(data.sample)
    for name in data.names:
        blocks, bins = data.sums(name), data.binned(name, BINS)[1]
        gaps, found = bins["ones"] - bins["sp"], data.evaluate(name)
        bias, std, _, _ = _mean(blocks["sp"] - blocks["ones"], blocks["mass"])
        clustered = None if data.cluster is None else (bias, std, data.units)
        exact = judge.departures(gaps, bins["spread"], data.total, clustered)
        exact |= {"bias": bias, "ece": found["ece"]}
        if off.loc[name, "order"] == "separated" and found["auc"] < 1:
            exact["order"] = "ordinary"  # of the sample alone
        off.loc[name, list(exact)] = list(exact.values())
    return off


def group_table(data):
    """Calibration of the 20 largest groups; as `judge.group_table`."""
    if data.group is None:
        return pd.DataFrame()
    rows = data.rows
    largest = rows.group_by("group").agg(rows=rows.count())
    largest = largest.order_by([ibis.desc("rows"), "group"]).limit(judge.LARGEST)
    largest = list(data.engine.ask(largest)["group"])
    rows = rows.filter(rows.group.isin(largest))
    w = rows.w if data.weight else 1.0
    sums = {f"p{k}": (w * rows[f"p{k}"]).sum() for k in range(len(data.names))}
    sums |= {"mass": (w + 0 * rows.y).sum(), "ww": (w * w + 0 * rows.y).sum()}
    sums |= {"ones": (w * rows.y).sum(), "rows": rows.count()}
    held = data.engine.ask(rows.group_by(["group", "block"]).agg(**sums))
    out = {}
    for label in largest:
        blocks = held[held["group"] == label].drop(columns=["group", "block"])
        all_of, (observed, _, low, high) = blocks.sum(), _mean(blocks["ones"], blocks["mass"])
        if data.cluster is None:
            effective = max(all_of["mass"] ** 2 / all_of["ww"], 1)
            low, high = np.ravel(
                proportion_interval(np.clip(observed, 0, 1) * effective, effective)
            )
        for k, name in enumerate(data.names):
            predicted = all_of[f"p{k}"] / all_of["mass"]
            out[label, name] = {
                "rows": int(all_of["rows"]), "predicted": predicted, "observed": observed,
                "low": low, "high": high, "off": bool(predicted < low or predicted > high),
            }  # fmt: skip
    return pd.DataFrame.from_dict(out, orient="index").rename_axis(["group", "column"])


def _mean(sums, mass):
    """A mean with its error over blocks, as `probnb.metrics.differences.clustered_mean`."""
    value, units = sums.sum() / mass.sum(), len(sums)
    if units < FEWEST:
        return value, np.nan, np.nan, np.nan
    deviation = (sums - value * mass) / mass.sum()
    std = float(np.sqrt(deviation @ deviation * units / (units - 1)))
    half = float(stdtrit(units - 1, 0.975)) * std
    return value, std, value - half, value + half
