"""The report on a page: tables of cells, one table of verdicts of fixed wording, few sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..calibrators import CALIBRATORS
from ..metrics.differences import FEWEST
from ..metrics.resampling import Bootstrap
from ..validation import check_choice, check_integer
from . import judge
from .cells import FORMS, escape, narrow, number, show_table
from .judge import DOUBT
from .read import PredictionTable

__all__ = ["Report", "describe", "make_report"]

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
        lead = f"**{escape(best)}** has the lowest Brier score, {number(brier[best])}"
        lead += f"; these rows tell it from {told} of {len(gaps)} others." if gaps else "."
        for name in brier.index:
            words = describe(name, self.calibration, self.boot)
            advice = advise(name, self.gains, self.calibration.loc[name, "order"])
            against = ["best" if name == best else _gap(gaps.get(name))]
            off = [] if self.groups.empty else self.groups["off"].xs(name, level="column")
            groups = f"off in {sum(off)} of {len(off)}"
            rows[escape(name)] = [number(brier[name]), *against, *words, groups, advice]
        head = ["Brier", "less the best", "mean", "order", "spread", "bins", "groups", "calibrate?"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=head)
        none = ["less the best"] * (len(rows) == 1) + ["groups"] * self.groups.empty
        table = narrow(table.drop(columns=none))
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
        check_choice(part, FORMS, "part")
        held = getattr(self, part) if part != "metrics" else self.boot
        return pd.DataFrame() if part != "metrics" and held.empty else FORMS[part](held)

    def show(self, part):
        """One of the tables as a page shows it, or a sentence that says why there is none.

        Parameters
        ----------
        part : str
            As in `cells`.

        Returns
        -------
        str
            HTML, or Markdown, that a notebook shows as such.
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
