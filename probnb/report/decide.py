"""What the columns of a table are worth to who acts on them from a threshold on."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..metrics.registry import benefit_rows
from ..settings import check_numbers
from ..text import Markdown
from .judge import mean_of
from .tell import _cell, show_table
from .understand import PLAIN

GRID = 48
"""Thresholds of a decision curve, besides those asked for."""


def decision_curve(table, threshold):
    """Net benefit of every column at many thresholds, beside treating all rows and none.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    threshold : float, sequence of float, str or None
        Probabilities, in (0, 1), from which on somebody would act; several as text, with commas.

    Returns
    -------
    DataFrame or None
        One row per threshold, up to twice the highest asked for, and column (index levels
        ``threshold``, ``column``), with what needs no model last: ``benefit`` (see
        `probnb.metrics.net_benefit`) with its 95 % interval ``low``, ``high``; the ``gain`` over
        the better of treating all and none, with ``gain_low``, ``gain_high``; of the rows,
        whatever their weight, the number ``acted`` on, and of them the ``true`` positives; and
        whether the threshold was ``asked`` for. None without a threshold.

    Notes
    -----
    Both are means over rows, so that their intervals are Student's over rows or clusters: what the
    bootstrap of other metrics comes to with ever more resamples.

    Examples
    --------
    >>> from probnb.report import check_table, draw_example
    >>> curve = decision_curve(check_table(draw_example(300)), 0.2)
    >>> curve.loc[0.2].index.tolist()
    ['careful', 'overconfident', 'noisy', 'treat all', 'treat none']
    """
    if threshold is None:
        return None
    asked = check_numbers(threshold, "threshold", 0, 1, exclusive=True)
    grid = np.linspace(0, min(1, 2 * max(asked)), GRID + 2)[1:-1]
    columns = {name: p + 0 * table.y for name, p in {**table.predictions, **PLAIN}.items()}
    rows = {}
    for t in np.union1d(grid, asked):
        terms = {name: benefit_rows(table.y, p, t) for name, p in columns.items()}
        best = max(PLAIN, key=lambda name: mean_of(table, terms[name])[0])
        for name, term in terms.items():
            acted = columns[name] >= t
            value, gain = (mean_of(table, each) for each in (term, term - terms[best]))
            counts = acted.sum(), int(table.y[acted].sum()), t in asked
            rows[t, name] = value[0], *value[2:], gain[0], *gain[2:], *counts
    names = "benefit low high gain gain_low gain_high acted true asked"
    curve = pd.DataFrame.from_dict(rows, orient="index", columns=names.split())
    return curve.set_axis(pd.MultiIndex.from_tuples(rows, names=["threshold", "column"]))


def show_decisions(curve):
    """The decisions at the thresholds asked for, as a page shows them.

    Parameters
    ----------
    curve : DataFrame or None
        From `decision_curve`.

    Returns
    -------
    str
        HTML or Markdown; an asterisk marks a gain whose interval leaves out 0.
    """
    if curve is None:
        return Markdown("Nothing to show: no threshold was given, such as `-p threshold 0.2`.")
    rows, lines = curve[curve["asked"]], {}
    for t, name, *value in rows.reset_index().itertuples(index=False):
        told = " *" if value[4] > 0 or value[5] < 0 else ""
        counts = f"{value[6]:,}\n{value[7]:,} rightly"
        lines[f"{t:g}: {name}"] = _cell(*value[:3]), _cell(*value[3:6], sign="+") + told, counts
    heads = ["net benefit", "more than all or none", "acted on"]
    return show_table(pd.DataFrame.from_dict(lines, orient="index", columns=heads))
