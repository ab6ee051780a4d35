"""What the columns of a table are worth to who acts on them from a threshold on."""

import numpy as np
import pandas as pd
from scipy.special import logit

from ..metrics.registry import benefit_rows
from ..settings import check_numbers
from ..text import Markdown
from ..validation import check_number
from .judge import mean_of, table_of
from .read import PLAIN
from .tell import _cell, show_table

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
    table, asked = table.sample, check_numbers(threshold, "threshold", 0, 1, exclusive=True)
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
    return table_of(rows, "threshold column", names)


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


def crossing(calibrator, threshold, mean=None):
    """Find the lowest log-odds at which the calibrated probability reaches a threshold.

    Parameters
    ----------
    calibrator : estimator
        A fitted one of `probnb.calibrators`, or None for no calibration.
    threshold : float
        A probability, in (0, 1).
    mean : float, optional
        Mean of both columns of logits, for Platt scaling of two columns, which may read it; others
        do not.

    Returns
    -------
    float
        The log-odds s below which the probability is lower than `threshold`, and from which on it
        is at least that, as far as the map rises (histogram binning may fall in between). Infinite
        where it is never reached, minus infinity where it is never missed.

    Raises
    ------
    ValueError
        If the map falls from end to end, or depends on a mean that is not given.

    Examples
    --------
    >>> from probnb.calibrators import TemperatureScaling
    >>> fitted = TemperatureScaling().fit([-1.0] * 4 + [1.0] * 4, [0, 0, 0, 1, 1, 1, 1, 0])
    >>> round(crossing(fitted, 0.75), 6), crossing(None, 0.5)
    (1.0, 0.0)
    """
    check_number(threshold, "threshold", 0, 1, exclusive=True)
    if calibrator is None:
        return float(logit(threshold))
    coef = np.ravel(getattr(calibrator, "coef_", 0.0))
    if mean is None and len(coef) == 2 and abs(coef.sum()) > 1e-9 * np.abs(coef).max():
        raise ValueError(
            "mean must be given: this Platt scaling reads both logits, so that no log-odds alone "
            "reach a threshold. Fit it to log-odds, or give the mean of both logits."
        )

    def p(s):
        two = calibrator.n_features_in_ == 2
        columns = np.outer(s, [-0.5, 0.5]) + (mean or 0) if two else s[:, None]
        return calibrator._both(columns, s)[:, 1]

    ends = np.geomspace(1e-12, 1e150, 3000)
    s = np.union1d(np.append(ends, -ends), [0.0, *getattr(calibrator, "edges_", ())])
    if np.diff(p(s[[0, -1]])) < -1e-9:
        raise ValueError("calibrator must rise; the probabilities of this one fall.")
    while (above := p(s) >= threshold).any() and not above[0]:
        low, high = s[above.argmax() - 1 :][:2]
        if not low < (low / 2 + high / 2) < high:
            return float(high)
        s = np.linspace(low, high, 1001)
    return -np.inf if above[0] else np.inf
