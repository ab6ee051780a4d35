"""The report on a page: tables of cells, one table of verdicts of fixed wording, few sentences."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..calibrators import CALIBRATORS, PARTS
from ..metrics import METRICS
from ..metrics.differences import FEWEST
from ..metrics.resampling import Bootstrap
from ..validation import check_choice, check_integer
from . import judge
from .judge import DOUBT
from .read import PredictionTable

__all__ = ["Report", "describe", "gain_cells", "make_report"]

FEW = 20
"""With fewer clusters a resample of them is told to be rough."""

SMALL = 0.001
"""A gain below this share of the Brier score is called small, however sure it is."""

_EMPTY = {
    "pairs": "There is one column of predictions, and nothing to compare it with.",
    "distances": "No row has repeated outcomes.",
    "groups": "There is no column of groups.",
    "gains": "There are too few rows of one outcome to fit a calibrator and judge it on others.",
    "parts": "There are fewer than two columns, too few rows of one outcome, or too many rows.",
}
_ORDER = {
    "ordinary": "better than chance",
    "chance": "no better than chance",
    "few": "not told",
    "constant": "all predictions are the same",
    "separated": "separates these rows without an error",
    "inverted": "inverted: is a label swapped?",
}


class Text(str):
    """Markdown that a notebook shows as such."""

    __slots__ = ()

    def _repr_markdown_(self):
        return str(self)


@dataclass(frozen=True, eq=False)
class Report:
    """What a table of predictions says; made by `make_report`.

    Attributes
    ----------
    table : PredictionTable
        The rows judged.
    boot : probnb.metrics.resampling.Bootstrap
        Metrics and their resamples.
    pairs, decomposition, calibration, groups, distances, gains, parts : DataFrame
        From the functions of `probnb.report.judge`; empty where there is nothing to say.
    """

    table: PredictionTable
    boot: Bootstrap
    pairs: pd.DataFrame
    distances: pd.DataFrame
    decomposition: pd.DataFrame
    calibration: pd.DataFrame
    groups: pd.DataFrame
    gains: pd.DataFrame
    parts: pd.DataFrame

    def in_short(self):
        """Which column is best, in a sentence, and verdicts on each, in one table (Markdown)."""
        brier = self.boot.point["brier"]
        best, rows = brier.idxmin(), {}
        gaps = {a if b == best else b: row for (a, b, metric), row in self.pairs.iterrows()
                if metric == "brier" and best in (a, b)}  # fmt: skip
        told = sum(row["distinct"] for row in gaps.values())
        lead = f"**{_escape(best)}** has the lowest Brier score, {number(brier[best])}"
        lead += f"; these rows tell it from {told} of {len(gaps)} others." if gaps else "."
        for name in brier.index:
            words = describe(name, self.calibration, self.boot)
            advice = advise(name, self.gains, self.calibration.loc[name, "order"])
            against = ["best" if name == best else _gap(gaps.get(name))]
            off = [] if self.groups.empty else self.groups["off"].xs(name, level="column")
            groups = f"off in {sum(off)} of {len(off)}"
            rows[_escape(name)] = [number(brier[name]), *against, *words, groups, advice]
        head = ["Brier", "less the best", "mean", "order", "spread", "bins", "groups", "calibrate?"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=head)
        none = ["less the best"] * (len(rows) == 1) + ["groups"] * self.groups.empty
        table = _narrow(table.drop(columns=none))
        lines = [["", *table], ["---"] * (len(table.columns) + 1), *map(list, table.itertuples())]
        return Text("\n".join([lead, "", *(f"| {' | '.join(line)} |" for line in lines)]))

    def what_was_read(self):
        """What was read, how it was understood, and what intervals and verdicts rest on."""
        table, clusters = self.table, self.table.cluster is not None
        kind, units = "clusters" if clusters else "rows", self.table.units
        share = np.average(table.y, weights=table.weight)
        weighed = "" if table.weight is None else "of the weight "
        notes = [
            *table.notes,
            f"{len(table.y):,} rows, {share:.2%} {weighed}with outcome 1.",
            "Intervals cover 95 %; those of metrics and differences rest on "
            f"{len(self.boot.samples):,} resamples of {units:,} {kind}.",
            f"A verdict that a column is off (mean, bins, inverted) has p < {DOUBT}.",
        ]
        if units < FEWEST:
            notes.append(f"Fewer than {FEWEST} {kind} ({units}): no interval can be had.")
        elif clusters and units < FEW:
            notes.append(f"{units} clusters are few: intervals may be too short.")
        if table.group is not None and (count := len(pd.unique(table.group))) > judge.LARGEST:
            notes.append(f"Of {count:,} groups, the {judge.LARGEST} largest are shown.")
        return Text("\n".join(f"- {note}" for note in notes))

    def cells(self, part):
        """One of the tables as text, each number over its interval.

        Parameters
        ----------
        part : {"metrics", "pairs", "distances", "decomposition", "calibration", "groups", \
"gains", "parts"}
            Which one.

        Returns
        -------
        DataFrame
            Cells to show; empty where there is nothing to say.
        """
        form = _FORMS[check_choice(part, PARTS_OF_PAGE, "part")]
        held = self if part == "metrics" else getattr(self, part)
        return pd.DataFrame() if part != "metrics" and held.empty else form(held)

    def show(self, part):
        """One of the tables as a page shows it, or a sentence that says why there is none.

        Parameters
        ----------
        part : str
            As in `cells`.

        Returns
        -------
        pandas.io.formats.style.Styler or Text
            Shown by a notebook.
        """
        cells = self.cells(part)
        return Text(_EMPTY[part]) if cells.empty else show_table(cells)


def make_report(table, reference=None, bins=15, replicates=1000, seed=0, calibrators=None):
    """Judge a table of predictions in every way that the report has.

    Parameters
    ----------
    table : PredictionTable
        From `read_predictions` or `check_table`.
    reference : str, optional
        Compare each other column with this one; by default all pairs.
    bins : int, default=15
        Quantile bins of the decomposition, at most as many as rows.
    replicates : int, default=1000
        Resamples, lowered for large tables.
    seed : int, default=0
        Seed of the resamples and of the folds.
    calibrators : sequence of str, optional
        Names from `probnb.calibrators.CALIBRATORS`; by default four classical ones.

    Returns
    -------
    Report
        All tables of the report.

    Raises
    ------
    ValueError
        If a setting is out of range or `reference` is not one of the columns.

    Examples
    --------
    >>> from probnb.report import check_table, draw_example
    >>> report = make_report(check_table(draw_example(300)), replicates=20)
    >>> report.in_short()[:33]
    '**careful** has the lowest Brier '
    """
    check_integer(replicates, "replicates", minimum=2)
    check_integer(seed, "seed", minimum=0)
    if reference is not None:
        reference = check_choice(str(reference), list(table.predictions), "reference")
    decomposition = judge.decomposition_table(table, bins)
    boot, none = judge.resample(table, replicates, seed), pd.DataFrame()
    settings = {} if calibrators is None else {"calibrators": calibrators}
    return Report(
        table, boot, judge.paired_table(boot, reference),
        none if table.ones is None else judge.distance_table(table), decomposition,
        judge.calibration_table(table), none if table.group is None else judge.group_table(table),
        judge.calibration_gains(table, seed=seed, **settings),
        judge.gain_parts_table(table, reference, seed),
    )  # fmt: skip


def describe(name, off, boot):
    """Verdicts on one column: its mean, how it orders the outcomes, its spread, its bins.

    Parameters
    ----------
    name : str
        The prediction column.
    off : DataFrame
        From `probnb.report.judge.calibration_table`.
    boot : probnb.metrics.resampling.Bootstrap
        From `probnb.report.judge.resample`.

    Returns
    -------
    list of str
        Four verdicts.
    """
    row, (low, high) = off.loc[name], (frame.loc[name, "auc"] for frame in boot.interval())
    order, spread = row["order"], "right"
    if boot.units < FEWEST:
        order = "few"
    elif order == "ordinary" and not low > 0.5:
        order = "inverted" if high < 0.5 else "chance"
    wide = row["slope_low"] < 0.5 and row["slope_high"] > 2
    if wide or math.isnan(row["slope_low"]) or order in ("inverted", "separated"):
        spread = "not told"
    elif row["slope_high"] < 1 or row["slope_low"] > 1:
        spread = "too extreme" if row["slope_high"] < 1 else "too timid"
    slope = f" (slope {number(row['slope'], 2)})" if math.isfinite(row["slope"]) else ""
    side = f"too {'high' if row['bias'] > 0 else 'low'} by {number(abs(row['bias']))}"
    mean, bins = (
        "not told" if math.isnan(p) else off if p < DOUBT else right
        for p, off, right in ((row["bias_p"], side, "as observed"),
                              (row["bins_p"], "off", "as chance makes"))
    )  # fmt: skip
    return [mean, _ORDER[order], spread + slope, bins]


def advise(name, gains, order="ordinary"):
    """Whether to calibrate one column after the fact, and with what: a verdict.

    Parameters
    ----------
    name : str
        The prediction column.
    gains : DataFrame
        From `probnb.report.judge.calibration_gains`.
    order : str, default="ordinary"
        From `probnb.report.judge.calibration_table`.

    Returns
    -------
    str
        The verdict.
    """
    if order == "inverted":
        return "first find out which outcome it predicts"
    if gains.empty:
        return "too few rows to tell"
    rows = gains.loc[name]
    sure = rows[rows["brier_low"] > 0]
    if sure.empty:
        return "no: every one harms" if rows["brier_high"].max() < 0 else "no gain beyond chance"
    best = (sure["brier_gain"] >= 0.95 * sure["brier_gain"].max()).idxmax()  # the simplest of these
    if sure.loc[best, "brier_gain"] < SMALL * sure.loc[best, "brier"]:
        return "no: the gain is below a thousandth"
    return f"yes: {CALIBRATORS[best].label}, gain {number(sure.loc[best, 'brier_gain'])}"


def _gap(row):
    if row is None:
        return "not compared"
    told = "told" if row["distinct"] else "not told"
    return f"{number(abs(row['difference']), sign='+')} ({told} apart)"


def metric_cells(report):
    """Metrics over their intervals; a row a metric where there are few columns."""
    boot = report.boot
    low, high = boot.interval()
    if report.table.units < FEWEST:
        low, high = low * math.nan, high * math.nan
    cells = {_label(m): map(_cell, boot.point[m], low[m], high[m]) for m in boot.point}
    return _narrow(pd.DataFrame({k: list(v) for k, v in cells.items()}, index=boot.point.index))


def pair_cells(pairs):
    """Paired differences; those whose interval leaves out 0 end in an asterisk."""
    text = pairs["text"].str.replace(" [", "\n[") + pairs["distinct"].map({True: " *", False: ""})
    wide = text.unstack("metric", sort=False).rename(columns=_label).rename_axis(columns=None)
    wide.index = [f"{a} − {b}" for a, b in wide.index]
    return _narrow(wide)


def calibration_cells(off):
    """How each column is off, with intervals and p-values."""
    rows = [row for _, row in off.iterrows()]
    cells = {
        "bias": [f"{number(r['bias'], sign='+')}\n{_p(r['bias_p'])}" for r in rows],
        "slope": [f"none\n({r['order']})" if math.isnan(r["slope"]) else
                  _cell(r["slope"], r["slope_low"], r["slope_high"], digits=2) for r in rows],
        "bins": [_p(r["bins_p"]) for r in rows],
        "ECE": [number(r["ece"]) for r in rows],
        "ECE if calibrated": [number(r["ece_null"]) for r in rows],
    }  # fmt: skip
    return pd.DataFrame(cells, index=off.index)


def distance_cells(found):
    """Distances from the true probabilities; what of them may be bias."""
    cells = {}
    for m in ("mse_p", "kl_p"):
        cells[_label(m)] = list(map(_cell, found[m], found[f"{m}_low"], found[f"{m}_high"]))
    cells["bias of KL_p, at most"] = list(map(number, found["kl_p_bias"]))
    return pd.DataFrame(cells, index=found.index)


def group_cells(groups):
    """Predictions and outcomes of each group; predictions that are off end in an asterisk."""
    star = groups["off"].map({True: " *", False: ""})
    cells = {
        "rows": groups["rows"].map("{:,}".format),
        "predicted": groups["predicted"].map(number) + star,
        "observed": list(map(_cell, groups["observed"], groups["low"], groups["high"])),
    }
    return pd.DataFrame(cells, index=groups.index)


def gain_cells(gains):
    """Gains of post-hoc calibration with their intervals."""
    cells = {"Brier": gains["brier"].map(number)}
    for m in ("brier", "nll"):
        ends = (gains[f"{m}_{part}"] for part in ("gain", "low", "high"))
        cells[f"gain in {_label(m)}"] = [_cell(*row, sign="+") for row in zip(*ends)]
    return pd.DataFrame(cells, index=gains.index)


def part_cells(parts):
    """What a column scores worse than the reference, split into its parts."""
    text = [_cell(*row, sign="+") for row in parts[["gain", "low", "high"]].itertuples(index=False)]
    wide = pd.Series(text, parts.index).unstack("part", sort=False)
    return _narrow(wide[[*PARTS, "total"]].rename_axis(columns=None))


_FORMS = {
    "metrics": metric_cells,
    "pairs": pair_cells,
    "distances": distance_cells,
    "decomposition": lambda parts: parts.map(number),
    "calibration": calibration_cells,
    "groups": group_cells,
    "gains": gain_cells,
    "parts": part_cells,
}
PARTS_OF_PAGE = tuple(_FORMS)
"""The report's tables, in the order of its page."""


def show_table(cells):
    """Style text for the page: line breaks within cells, nothing read as markup."""
    look = {"selector": "td", "props": "white-space: pre; text-align: right; line-height: 1.3"}
    style = cells.style.format(escape="html")
    for axis in ("index", "columns"):
        style = style.format_index(str, axis=axis, escape="html")
    # The class by which the book's theme knows a table to colour for a dark page.
    return style.set_table_styles([look]).set_table_attributes('class="dataframe"')


def number(x, digits=4, sign=""):
    """Write a number with so many decimals, or with two digits where it is very small or large."""
    if not math.isfinite(x):
        return "undefined" if math.isnan(x) else "∞" if x > 0 else "−∞"
    if abs(x) < 1e-12:  # what rounding leaves of 0
        return f"{0:{sign}.{digits}f}"
    fixed = 0.5 * 10.0**-digits <= abs(x) < 1e5
    return f"{x:{sign}.{digits}f}" if fixed else f"{x:{sign}.2g}"


def _cell(value, low, high, sign="", digits=4):
    """A number over its interval, where there is one."""
    interval = (
        ""
        if math.isnan(low + high)
        else f"\n[{number(low, digits, sign)}, {number(high, digits, sign)}]"
    )
    return number(value, digits, sign) + interval


def _p(p):
    return "not told" if math.isnan(p) else "p < 0.0001" if p < 0.0001 else f"p {p:.4f}"


def _label(metric):
    return METRICS[metric].label


def _narrow(frame):
    return frame.T if len(frame) <= 4 else frame


def _escape(name):
    """Keep Markdown from reading a column's name as markup."""
    return re.sub(r"([\\`*_{}\[\]<>|$~#])", r"\\\1", str(name))
