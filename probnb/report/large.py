"""The report on a table that no memory holds: read by an engine, judged as a whole.

What an engine has no quick answer to (slopes, gains, parts) is that of a sample, which is said.
"""

from __future__ import annotations

import ibis
import pandas as pd

from ..metrics.binning import BINS
from ..metrics.differences import clustered_mean
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
        unit = bins["ww"].sum() / data.total
        exact = judge.departures(gaps, bins["spread"], data.total, unit, clustered)
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
    found = {}
    for label in largest:
        blocks = held[held["group"] == label].drop(columns=["group", "block"])
        total = blocks.sum()
        predicted = {name: total[f"p{k}"] / total["mass"] for k, name in enumerate(data.names)}
        effective = total["mass"] ** 2 / total["ww"]
        observed = _mean(blocks["ones"], blocks["mass"])
        found[label] = int(total["rows"]), effective, observed, predicted
    return judge.tell_groups(found, data.cluster is not None)


def _mean(sums, mass):
    """A mean with its error over blocks."""
    return clustered_mean((sums / mass).to_numpy(), mass.to_numpy())
