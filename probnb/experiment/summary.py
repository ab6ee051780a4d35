"""Tables and sentences about a finished comparison, made from its numbers alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..methods import METHODS
from ..metrics import METRICS
from ..published import published
from .profiles import GRID_FIELDS

__all__ = ["chosen_table", "compare", "comparison_table", "conclusions"]


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


def compare(result, reference, metric="mse_p", level=0.95):
    """Difference of every method to one of them, on the same resamples.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Metrics of every method on the test data.
    reference : str
        The method to compare with.
    metric : str, default="mse_p"
        The metric to compare.
    level : float, default=0.95
        Coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        Index: the other methods. Columns ``difference`` (method less reference), ``low``,
        ``high`` and ``verdict``: ``"better"``, ``"worse"`` or ``"no difference shown"``, for a
        metric of which less is better.
    """
    others = [name for name in result.point.index if name != reference]
    rows = {name: result.difference(name, reference, level).loc[metric] for name in others}
    columns = ["difference", "low", "high"]
    table = pd.DataFrame({name: row[columns] for name, row in rows.items()}, index=columns).T
    table = table.astype(float)
    table["verdict"] = np.select(
        [table["high"] < 0, table["low"] > 0], ["better", "worse"], "no difference shown"
    )
    return table


def conclusions(result, scenario, metric=None, level=0.95):
    """Say in words what a comparison shows: which methods beat CE, and what CaPE adds.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Metrics of every method on the test data; ``"ce"`` must be among the methods.
    scenario : str
        Name for the text.
    metric : str, optional
        The metric to judge by, of which less is better; by default the distance from the true
        probabilities where they are known, else the Brier score.
    level : float, default=0.95
        Coverage of the paired intervals.

    Returns
    -------
    str
        Markdown, every number of it measured.
    """
    metric = metric or ("mse_p" if "mse_p" in result.point else "brier")
    against = compare(result, "ce", metric, level)
    name = METRICS[metric].label
    lines = [
        f"On *{scenario.capitalize()}*, CE early-stop has {name} × 100 = "
        f"{100 * result.point.loc['ce', metric]:.2f}. Paired {level:.0%} intervals on the same "
        f"resampled test rows ({len(result.samples):,} replicates) say of the others:"
    ]
    if against.empty:
        return f"{lines[0].split('. Paired')[0]}. No other row was asked for."
    wording = {
        "better": "Lower than CE early-stop in this training",
        "worse": "Higher than CE early-stop in this training",
        "no difference shown": "Not told apart from CE early-stop",
    }
    for verdict, words in wording.items():
        rows = against[against["verdict"] == verdict].sort_values("difference")
        if len(rows):
            lines.append(f"- **{words}:** " + "; ".join(_spell(rows.loc[m], m) for m in rows.index))
    cape = [m for m in ("cape_bin", "cape_kernel") if m in result.point.index]
    if cape and "ce_finetuned" in result.point.index:
        control = compare(result, "ce_finetuned", metric, level)
        spelt = "; ".join(f"{_spell(control.loc[m], m)}: {control.loc[m, 'verdict']}" for m in cape)
        lines.append(
            "- **What calibration epochs add.** CaPE's own gain is its gain over the same "
            f"fine-tuning without them, CE fine-tuned: {spelt}."
        )
    lines.append(_ranking(result, metric, name))
    return "\n".join([lines[0], "", *lines[1:]])


def _spell(row, method):
    """Label, difference and interval, times 100, with digits enough to see the difference."""
    digits = 2 if abs(row["difference"]) >= 5e-4 else 4
    value, low, high = (f"{100 * row[k]:+.{digits}f}" for k in ("difference", "low", "high"))
    return f"{METHODS[method].label} {value} [{low}, {high}]"


def _ranking(result, metric, name):
    """Say which row is best, with and without the one that cannot be had in practice."""
    values = result.point[metric]
    possible = values.drop("resampled", errors="ignore")
    text = (
        f"- **Lowest {name} among methods that see each outcome once:** "
        f"{METHODS[possible.idxmin()].label} ({100 * possible.min():.2f})."
    )
    if "resampled" in values.index:
        text += f" Resampled labels, the best case, reach {100 * values['resampled']:.2f}."
    return text
