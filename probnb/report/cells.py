"""The report's tables as text, each number with its interval below it."""

from __future__ import annotations

import math

import pandas as pd

from ..metrics import METRICS

__all__ = [
    "calibration_cells",
    "decomposition_cells",
    "distance_cells",
    "gain_cells",
    "group_cells",
    "metric_cells",
    "number",
    "pair_cells",
    "show_table",
]

NARROW = 4
"""Up to so many columns, a table has a row per metric; beyond that a column per metric."""

MOST = 7
"""Decimals that a cell has at most."""

NOTHING = 1e-12
"""What is smaller is what rounding leaves of 0."""


def metric_cells(boot, level=0.95):
    """Metrics with their intervals.

    Parameters
    ----------
    boot : probnb.metrics.resampling.Bootstrap
        From `probnb.report.tables.resample`.
    level : float, default=0.95
        Coverage, in (0, 1).

    Returns
    -------
    DataFrame of str
        One row per metric and one column per prediction column; the reverse where there are more
        than four of the latter.
    """
    low, high = boot.interval(level)
    cells = {
        _label(m): [_cell(*row) for row in zip(boot.point[m], low[m], high[m])] for m in boot.point
    }
    return _narrow(pd.DataFrame(cells, index=boot.point.index))


def pair_cells(pairs):
    """Paired differences with their intervals; those that leave out 0 end in an asterisk.

    Parameters
    ----------
    pairs : DataFrame
        From `probnb.report.tables.paired_table`.

    Returns
    -------
    DataFrame of str
        One row per metric and one column per pair; the reverse where there are more than four
        pairs.
    """
    if pairs.empty:
        return pd.DataFrame()
    text = [
        _cell(row["difference"], row["low"], row["high"], sign="+") + " *" * bool(row["distinct"])
        for _, row in pairs.iterrows()
    ]
    wide = pd.Series(text, pairs.index, dtype=object).unstack("metric", sort=False)
    wide.index = [f"{a} − {b}" for a, b in wide.index]
    return _narrow(wide.rename(columns=_label).rename_axis(columns=None))


def calibration_cells(off):
    """How each column is off, with intervals and p-values.

    Parameters
    ----------
    off : DataFrame
        From `probnb.report.tables.calibration_table`.

    Returns
    -------
    DataFrame of str
        One row per prediction column.
    """
    cells = {
        "bias": [f"{row.bias:+.4f}\np {_p_value(row.bias_p)}" for row in off.itertuples()],
        "slope": [_slope(row) for row in off.itertuples()],
        "bins": [f"p {_p_value(value)}" for value in off["bins_p"]],
        "ECE": [f"{value:.4f}" for value in off["ece"]],
        "ECE if calibrated": [f"{value:.4f}" for value in off["ece_null"]],
    }
    return pd.DataFrame(cells, index=off.index)


def distance_cells(distances):
    """Distances from the true probabilities with their intervals.

    Parameters
    ----------
    distances : DataFrame
        From `probnb.report.tables.distance_table`.

    Returns
    -------
    DataFrame of str
        One row per prediction column.
    """
    cells = {
        _label(m): [_cell(*row) for row in distances[[m, f"{m}_low", f"{m}_high"]].values]
        for m in ("mse_p", "kl_p")
    }
    return pd.DataFrame(cells, index=distances.index)


def decomposition_cells(parts):
    """Parts of the Brier score.

    Parameters
    ----------
    parts : DataFrame
        From `probnb.report.tables.decomposition_table`.

    Returns
    -------
    DataFrame of str
        One row per prediction column.
    """
    return parts.map(number)


def group_cells(groups):
    """Predictions and outcomes of each group, with intervals.

    Parameters
    ----------
    groups : DataFrame
        From `probnb.report.tables.group_table`.

    Returns
    -------
    DataFrame of str
        One row per group and prediction column; groups that are off are marked by an asterisk.
    """
    cells = {
        "rows": [f"{value:,}" for value in groups["rows"]],
        "predicted": [
            f"{value:.4f}" + " *" * bool(off)
            for value, off in zip(groups["predicted"], groups["off"])
        ],
        "observed": [_cell(*row) for row in groups[["observed", "low", "high"]].values],
    }
    return pd.DataFrame(cells, index=groups.index)


def gain_cells(gains):
    """Gains of post-hoc calibration with their intervals.

    Parameters
    ----------
    gains : DataFrame
        From `probnb.report.gains.calibration_gains`.

    Returns
    -------
    DataFrame of str
        One row per prediction column and calibrator.
    """
    cells = {"Brier": [f"{value:.4f}" for value in gains["brier"]]}
    cells |= {
        f"gain in {_label(m)}": [
            _cell(row[f"{m}_gain"], row[f"{m}_low"], row[f"{m}_high"], sign="+")
            for _, row in gains.iterrows()
        ]
        for m in ("brier", "nll")
    }
    return pd.DataFrame(cells, index=gains.index)


def show_table(frame, digits=4):
    """Style a table for the page: line breaks within cells, numbers to so many digits.

    Parameters
    ----------
    frame : DataFrame
        Numbers or text.
    digits : int, default=4
        Decimals of numbers.

    Returns
    -------
    pandas.io.formats.style.Styler
        Shown by a notebook as a table.
    """
    cell = {"selector": "td", "props": "white-space: pre; text-align: right; line-height: 1.3"}
    style = frame.style.format(precision=digits, thousands=",", escape="html")
    for axis in ("index", "columns"):
        style = style.format_index(str, axis=axis, escape="html")
    # The class by which the book's theme knows a table to colour for a dark page.
    return style.set_table_styles([cell]).set_table_attributes('class="dataframe"')


def _narrow(frame):
    return frame.T if len(frame) <= NARROW else frame


def number(x, digits=4, sign=""):
    """Write a number with so many decimals, or with two digits where it is very small or large.

    Parameters
    ----------
    x : float
        The number.
    digits : int, default=4
        Decimals.
    sign : {"", "+"}, default=""
        Whether a positive number has a sign.

    Returns
    -------
    str
        The number, or "undefined" for NaN.
    """
    if math.isnan(x):
        return "undefined"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if abs(x) < NOTHING:
        return f"{0:{sign}.{digits}f}"
    fixed = 9.5 * 10.0 ** (-digits - 1) <= abs(x) < 1e5
    return f"{x:{sign}.{digits}f}" if fixed else f"{x:{sign}.2g}"


def _label(metric):
    return METRICS[metric].label


def _slope(row):
    """The slope's cell; where there is no finite slope, why."""
    if math.isnan(row.slope):
        return f"none\n({row.order})"
    return _cell(row.slope, row.slope_low, row.slope_high, digits=2)


def _cell(value, low, high, sign="", digits=4):
    """A number over its interval, whose width gets two digits at least, within reason."""
    if NOTHING < high - low < math.inf:
        digits = min(max(digits, 1 - math.floor(math.log10(high - low))), MOST)
    value, low, high = (_fixed(x, digits, sign) for x in (value, low, high))
    return f"{value}\n[{low}, {high}]"


def _fixed(x, digits, sign):
    return number(x, digits, sign) if abs(x) >= 1e5 or not math.isfinite(x) else (
        f"{x if abs(x) >= NOTHING else 0:{sign}.{digits}f}"
    )  # fmt: skip


def _p_value(p):
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"
