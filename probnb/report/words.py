"""The report in words: sentences that follow from its tables, and from nothing else."""

from __future__ import annotations

import math
import re

from ..calibrators import CALIBRATORS
from ..metrics import METRICS
from .cells import number

__all__ = ["advise", "compare", "describe", "describe_groups", "in_short"]

DOUBT = 0.01
"""A p-value below this is called a departure from calibration."""

SMALL = 0.001
"""A gain below this share of the Brier score is called small, however sure it is."""


def compare(boot, pairs, metric="brier"):
    """Which prediction column is best, and which of the others the rows can tell from it.

    Parameters
    ----------
    boot : probnb.metrics.resampling.Bootstrap
        From `probnb.report.tables.resample`.
    pairs : DataFrame
        From `probnb.report.tables.paired_table`.
    metric : str, default="brier"
        A name from `probnb.metrics.METRICS`.

    Returns
    -------
    list of str
        Sentences in Markdown.
    """
    values = boot.point[metric]
    low_wins, title = METRICS[metric].lower_is_better, _metric(metric)
    best = values.idxmin() if low_wins else values.idxmax()
    most, better = ("lowest", "lower") if low_wins else ("highest", "higher")
    if len(values) == 1:
        low, high = (frame.loc[best, metric] for frame in boot.interval())
        return [f"The {title} is {number(values[best])} {_interval(low, high)}."]
    out = [f"**{_escape(best)}** has the {most} {title}, {number(values[best])}."]
    for (a, b, m), row in pairs.iterrows():
        if m != metric or best not in (a, b):
            continue
        sign, other = (1, b) if a == best else (-1, a)
        low, high = sorted((sign * row["low"], sign * row["high"]))
        gap = f"difference {number(sign * row['difference'])} {_interval(low, high)}"
        if row["distinct"]:
            out.append(f"It is {better} than that of **{_escape(other)}**: {gap}.")
        else:
            out.append(f"These rows do not tell it from **{_escape(other)}**: {gap}.")
    return out


def describe(name, off, boot):
    """How one column is calibrated, and whether it orders the outcomes.

    Parameters
    ----------
    name : str
        The prediction column.
    off : DataFrame
        From `probnb.report.tables.calibration_table`.
    boot : probnb.metrics.resampling.Bootstrap
        From `probnb.report.tables.resample`.

    Returns
    -------
    list of str
        Sentences in Markdown.
    """
    row, out = off.loc[name], []
    if row["bias_p"] < DOUBT:
        side = "high" if row["bias"] > 0 else "low"
        out.append(f"Predictions are too {side} by {number(abs(row['bias']))} on average.")
    else:
        out.append("The mean prediction agrees with the share of outcomes 1.")
    low, high = (frame.loc[name, "auc"] for frame in boot.interval())
    out.append(_spread(row, inverted=row["order"] == "inverted" or high < 0.5))
    ece = f"ECE {number(row['ece'])}, where calibrated ones would have {number(row['ece_null'])}"
    if row["bins_p"] < DOUBT:
        out.append(f"Chance does not explain the gaps of the bins ({ece}).")
    else:
        out.append(f"The gaps of the bins are such as chance makes ({ece}).")
    if low <= 0.5 <= high and row["order"] != "constant":
        out.append(
            f"They do not order the outcomes better than chance (AUC {_interval(low, high)})."
        )
    return out


def _spread(row, inverted):
    """Whether predictions are too extreme, or why these rows cannot say."""
    slope = "which leaves no finite slope"
    if math.isfinite(row["slope"]):
        slope = f"slope {number(row['slope'], 2)} {_slope_interval(row)}"
    if row["order"] == "constant":
        return "All predictions are the same, so that they tell no case from another."
    if inverted:
        return (
            f"They are inverted: the outcomes fall as predictions rise ({slope}): is a label "
            "swapped?"
        )
    if row["order"] == "separated":
        return (
            f"They separate the outcomes of these rows without an error ({slope}): more rows are "
            "needed to see whether they are too extreme."
        )
    if row["slope_high"] < 1:
        return f"They are too extreme: the outcomes follow with a {slope}."
    if row["slope_low"] > 1:
        return f"They are too timid: the outcomes follow with a {slope}."
    if row["slope_low"] < 0.5 and row["slope_high"] > 2:
        return f"These rows do not tell whether they are too extreme or too timid ({slope})."
    return f"They are neither too extreme nor too timid ({slope})."


def advise(name, gains, order="ordinary"):
    """Whether to calibrate one column after the fact, and with what.

    Parameters
    ----------
    name : str
        The prediction column.
    gains : DataFrame
        From `probnb.report.gains.calibration_gains`.
    order : str, default="ordinary"
        How the column orders the outcomes, from `probnb.report.tables.calibration_table`.

    Returns
    -------
    str
        A sentence in Markdown.
    """
    if order == "inverted":
        return "Do not calibrate it before it is clear which outcome it predicts."
    if not len(gains):
        return "Too few rows of one outcome to fit a calibrator and judge it on others."
    rows = gains.loc[name]
    sure = rows[rows["brier_low"] > 0]
    pool = sure if len(sure) else rows
    best = (pool["brier_gain"] >= 0.95 * pool["brier_gain"].max()).idxmax()  # the simplest of these
    row, title = pool.loc[best], CALIBRATORS[best].label
    gain = f"{number(row['brier_gain'])} {_interval(row['brier_low'], row['brier_high'])}"
    if len(sure) and row["brier_gain"] < SMALL * row["brier"]:
        return (
            f"Leave as it is: {title} gains {gain}, which is more than chance but less than a "
            "thousandth of the Brier score."
        )
    if len(sure):
        return (
            f"Calibrate: {title} lowers the Brier score of unseen rows by {gain}, to "
            f"{number(row['brier'])}."
        )
    worse = rows["brier_high"].max() < 0
    verdict = "every calibrator makes it worse" if worse else "no gain that chance does not explain"
    return f"Leave as it is: {verdict} (at best {title}, {gain})."


def describe_groups(groups):
    """Which groups' outcomes differ from the predictions made for them.

    Parameters
    ----------
    groups : DataFrame
        From `probnb.report.tables.group_table`.

    Returns
    -------
    list of str
        Sentences in Markdown, one per column.
    """
    out = []
    for name in groups.index.unique("column"):
        rows = groups.xs(name, level="column")
        wrong = rows[rows["off"]]
        cases = [
            f"{_escape(group)} (predicted {number(row['predicted'])}, observed "
            f"{number(row['observed'])} {_interval(row['low'], row['high'])})"
            for group, row in wrong.head(5).iterrows()
        ]
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        found = f"{len(wrong)} of {len(rows)} groups off: {'; '.join(cases)}{more}"
        out.append(f"**{_escape(name)}**: {found if cases else f'none of {len(rows)} groups off'}.")
    return out


def in_short(boot, pairs, off, gains, groups=None):
    """The whole report as a list in Markdown: the best column, then each column by itself.

    Parameters
    ----------
    boot, pairs, off, gains : Bootstrap, DataFrame, DataFrame, DataFrame
        From `probnb.report.tables` and `probnb.report.gains`.
    groups : DataFrame, optional
        From `probnb.report.tables.group_table`.

    Returns
    -------
    str
        Markdown.
    """
    lines = ["- " + " ".join(compare(boot, pairs))]
    if "mse_p" in boot.point:
        lines.append("- Against the true probabilities: " + " ".join(compare(boot, pairs, "mse_p")))
    for name in boot.point.index:
        text = " ".join(
            [*describe(name, off, boot), f"*{advise(name, gains, off.loc[name, 'order'])}*"]
        )
        lines.append(f"- **{_escape(name)}**. {text}")
    if groups is not None:
        lines.append("- By group (chance puts one in twenty off):")
        lines += [f"  - {text}" for text in describe_groups(groups)]
    return "\n".join(lines)


def _metric(name):
    return METRICS[name].label + " score" * (name == "brier")


def _escape(name):
    """Keep Markdown from reading a column's name as markup."""
    return re.sub(r"([\\`*_{}\[\]<>|$~#])", r"\\\1", str(name))


def _interval(low, high):
    return f"[{number(low)}, {number(high)}]"


def _slope_interval(row):
    return f"[{number(row['slope_low'], 2)}, {number(row['slope_high'], 2)}]"
