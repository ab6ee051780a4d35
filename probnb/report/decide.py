"""What the columns of a table are worth where somebody acts on them at a threshold."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..metrics.decision import decision_curve
from ..validation import check_numbers
from .judge import BUDGET
from .tell import Text, _cell, show_table

GRID = 24
"""Thresholds of a decision curve, besides those asked for."""


def decisions(table, threshold, replicates=1000, seed=0):
    """The decision curve of every column, with what follows at the thresholds asked for.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    threshold : float, sequence of float, str or None
        Probabilities, in (0, 1), from which on somebody would act; several as text, with commas.
    replicates : int, default=1000
        Number of resamples of rows or clusters; lowered for large tables.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    DataFrame or None
        From `probnb.metrics.decision_curve`, up to twice the highest threshold, with ``asked``, and
        of the rows at or above the threshold (whatever their weight) the number ``acted`` on and of
        them the ``true`` positives. None without a threshold.
    """
    if threshold is None:
        return None
    asked = check_numbers(threshold, "threshold", 0, 1, exclusive=True)
    grid = np.linspace(0, min(1, 2 * max(asked)), GRID + 2)[1:-1]
    affordable = max(100, int(BUDGET / table.predictions.size))
    curve = decision_curve(
        table.y, table.predictions, np.union1d(grid, asked), table.weight, table.cluster,
        min(replicates, affordable), seed,
    )  # fmt: skip
    t = curve.index.get_level_values("threshold").to_numpy()
    columns = {"treat all": np.ones(len(table.y)), "treat none": np.zeros(len(table.y))}
    columns |= dict(table.predictions.items())
    on = [np.asarray(columns[name]) >= least for least, name in curve.index]
    return curve.assign(
        asked=np.isin(t, asked), acted=[k.sum() for k in on], true=[int(table.y @ k) for k in on]
    )


def show_decisions(found):
    """The decisions at the thresholds asked for, as a page shows them.

    Parameters
    ----------
    found : DataFrame or None
        From `decisions`.

    Returns
    -------
    str
        HTML or Markdown; an asterisk marks a gain whose interval leaves out 0.
    """
    if found is None:
        return Text("Nothing to show: no threshold was given, such as `-p threshold 0.2`.")
    found = found[found["asked"]]
    told = np.where((found["gain_low"] > 0) | (found["gain_high"] < 0), " *", "")
    gains = found[["gain", "gain_low", "gain_high"]].to_numpy()
    counts = {"acted on": found["acted"], "rightly": found["true"]}
    counts["in vain"] = found["acted"] - found["true"]
    cells = {
        "net benefit": [_cell(*row) for row in found[["benefit", "low", "high"]].to_numpy()],
        "more than all or none": [_cell(*row, sign="+") + star for row, star in zip(gains, told)],
        **{name: column.map("{:,}".format).to_numpy() for name, column in counts.items()},
    }
    return show_table(pd.DataFrame(cells, index=[f"{t:g}: {name}" for t, name in found.index]))
