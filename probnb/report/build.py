"""The whole report on a table of predictions: every table of it once, and how to show each."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..metrics.resampling import Bootstrap
from ..validation import check_choice, check_integer
from . import cells
from .gains import calibration_gains
from .read import PredictionTable
from .tables import (
    calibration_table,
    check_rows,
    decomposition_table,
    distance_table,
    group_table,
    paired_table,
    resample,
)
from .words import in_short

__all__ = ["Report", "Text", "make_report"]

_FORMS = {  # part: how its cells are made, and from which attribute of the report
    "metrics": (cells.metric_cells, "boot"),
    "pairs": (cells.pair_cells, "pairs"),
    "distances": (cells.distance_cells, "distances"),
    "decomposition": (cells.decomposition_cells, "decomposition"),
    "calibration": (cells.calibration_cells, "calibration"),
    "groups": (cells.group_cells, "groups"),
    "gains": (cells.gain_cells, "gains"),
}

PARTS = tuple(_FORMS)
"""The report's tables, in the order of its page."""

_WHY_EMPTY = {
    "pairs": "There is one column of predictions, and nothing to compare it with.",
    "distances": "No row has repeated outcomes.",
    "groups": "There is no column of groups.",
    "gains": "There are too few rows of one outcome to fit a calibrator and judge it on others.",
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
    pairs, decomposition, calibration : DataFrame
        From the functions of `probnb.report.tables`.
    groups : DataFrame or None
        The same by group, where rows have one.
    distances : DataFrame or None
        Distances from the true probabilities, where outcomes were repeated.
    gains : DataFrame
        From `probnb.report.gains.calibration_gains`.
    replicates : int
        Resamples asked for; `boot` may hold fewer.
    """

    table: PredictionTable
    boot: Bootstrap
    pairs: pd.DataFrame
    decomposition: pd.DataFrame
    calibration: pd.DataFrame
    groups: pd.DataFrame | None
    distances: pd.DataFrame | None
    gains: pd.DataFrame
    replicates: int

    def in_short(self):
        """The report in a few sentences."""
        return Text(in_short(self.boot, self.pairs, self.calibration, self.gains, self.groups))

    def what_was_read(self):
        """What was read, how it was understood, and what the intervals are."""
        y, weight, drawn = self.table.y, self.table.weight, len(self.boot.samples)
        share = (y if weight is None else y * weight / weight.mean()).mean()
        whole = "whole clusters" if self.table.cluster is not None else "the rows"
        of = "" if weight is None else "of the weight "
        notes = [
            *self.table.notes,
            f"{len(y):,} rows, {share:.2%} {of}with outcome 1.",
            f"Intervals cover 95 %; those of the next two tables come from {drawn:,} resamples of "
            f"{whole}.",
        ]
        if drawn < self.replicates:
            notes[-1] += (
                f" For so many rows fewer were drawn than the {self.replicates:,} asked for, which "
                "leaves the ends of an interval uncertain by about a tenth of its width."
            )
        return Text("\n".join(f"- {note}" for note in notes))

    def cells(self, part):
        """One of the tables as text, each number over its interval.

        Parameters
        ----------
        part : {"metrics", "pairs", "distances", "decomposition", "calibration", "groups", "gains"}
            Which one.

        Returns
        -------
        DataFrame
            Cells to show; empty where there is nothing to say.
        """
        check_choice(part, PARTS, "part")
        form, held = _FORMS[part]
        found = getattr(self, held)
        empty = found is None or (part != "metrics" and found.empty)
        return pd.DataFrame() if empty else form(found)

    def show(self, part):
        """One of the tables as a page shows it, or a sentence that says why there is none.

        Parameters
        ----------
        part : {"metrics", "pairs", "distances", "decomposition", "calibration", "groups", "gains"}
            Which one.

        Returns
        -------
        pandas.io.formats.style.Styler or Text
            Shown by a notebook.
        """
        frame = self.cells(part)
        return Text(_WHY_EMPTY[part]) if frame.empty else cells.show_table(frame)


def make_report(table, reference=None, bins=15, replicates=1000, seed=0, calibrators=None):
    """Judge a table of predictions in every way that the report has.

    Parameters
    ----------
    table : PredictionTable
        From `probnb.report.read.read_predictions` or `check_table`.
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
    >>> from probnb.report import draw_example
    >>> from probnb.report.read import check_table
    >>> report = make_report(check_table(draw_example(300)), replicates=20)
    >>> report.in_short().splitlines()[0][:38]
    '- **careful** has the lowest Brier sco'
    """
    check_integer(replicates, "replicates", minimum=2)
    check_integer(seed, "seed", minimum=0)
    check_rows(table, bins)
    if reference is not None:
        reference = check_choice(str(reference), list(table.predictions), "reference")
    boot = resample(table, replicates, seed)
    settings = {} if calibrators is None else {"calibrators": calibrators}
    return Report(
        table=table,
        boot=boot,
        pairs=paired_table(boot, reference),
        decomposition=decomposition_table(table, bins),
        calibration=calibration_table(table),
        groups=None if table.group is None else group_table(table),
        distances=None if table.ones is None else distance_table(table),
        gains=calibration_gains(table, seed=seed, **settings),
        replicates=replicates,
    )
