"""Tables about a finished comparison."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..methods import METHODS
from ..metrics import METRICS
from ..published import published
from .profiles import GRID_FIELDS

__all__ = ["chosen_table", "comparison_table"]


def comparison_table(result, scenario):
    """Put the measured table beside the paper's, both times 100.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Metrics of every method on the test data.
    scenario : str
        Scenario or task of the paper, for its numbers.

    Returns
    -------
    pandas.DataFrame
        One line a method; for each metric a column ``ours`` with one bootstrap standard deviation
        and, where the paper has numbers, a column ``paper``. Marked values are misprints or
        suspect; see `probnb.published.published`.
    """
    std = result.std()
    paper = published(scenario)
    columns = {}
    for metric in result.point.columns:
        ours = [
            f"{100 * value:.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{100 * spread:.2f}"
            for value, spread in zip(result.point[metric], std[metric])
        ]
        columns[METRICS[metric].label, "ours"] = ours
        printed = paper[paper["metric"] == metric].set_index("method")
        if len(printed):
            columns[METRICS[metric].label, "paper"] = [
                _printed(printed.loc[name]) if name in printed.index else "–"
                for name in result.point.index
            ]
    labels = [METHODS[name].label for name in result.point.index]
    return pd.DataFrame(columns, index=pd.Index(labels, name="×100"))


def _printed(row):
    gap = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
    spread = "" if np.isnan(row["std"]) else f"{gap}{row['std']:.2f}"
    return f"{row['value']:.2f}{spread}{'*' if row['mark'] else ''}"


def chosen_table(chosen):
    """Show what validation data chose in each row, without the rows that only post-process CE.

    Parameters
    ----------
    chosen : pandas.DataFrame
        As `probnb.experiment.results.Results.chosen`.

    Returns
    -------
    pandas.DataFrame
        One line a candidate that was trained for its row.
    """
    own = [m for m in chosen["method"].unique() if METHODS[m].calibrator is None]
    rows = chosen[chosen["method"].isin(own) & (chosen["method"] != "ce_overfit")]
    tuned = [c for c in GRID_FIELDS if c in rows and rows[c].notna().any()]
    return pd.DataFrame(
        {
            "tried": [_settings(row) for row in rows[tuned].to_dict("records")],
            "validation CE": [f"{value:.4f}" for value in rows["val_ce"]],
            "kept epoch": rows["best_epoch"].to_numpy(),
            "calibration epochs": rows["calibration_epochs"].to_numpy(),
            "chosen": np.where(rows["chosen"], "✓", ""),
        },
        index=pd.Index([METHODS[m].label for m in rows["method"]], name=""),
    )


def _settings(row):
    """Values that a candidate has, by name."""
    given = {name.removeprefix("finetune_"): value for name, value in row.items() if value == value}
    return ", ".join(f"{name} {value:g}" for name, value in given.items())
