"""Tables of the chapter on CIFAR-10 and on images that people judged, made from its results."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data.cifar10 import CLASSES
from ...methods import METHODS
from ...metrics import METRICS
from .study import paper_ratios

__all__ = [
    "classes_table",
    "comparison_table",
    "interval_text",
    "mean_text",
    "paper_table",
    "say_classes",
    "stored_table",
]


def comparison_table(tables):
    """Lay out several metrics of several seeds: mean over seeds, and difference from CE.

    Parameters
    ----------
    tables : dict of str to DataFrame
        From `probnb.chapters.cifar10.study.across_seeds`, by metric.

    Returns
    -------
    DataFrame
        Times 100: for each metric the mean ± the standard deviation over seeds, and the paired
        difference from CE early-stop with its 95 % interval.
    """
    columns = {}
    for metric, table in tables.items():
        rows = table.itertuples()
        columns[METRICS[metric].label, "mean ± sd over seeds"] = [
            f"{100 * r.value:.2f}" + ("" if np.isnan(r.spread) else f" ± {100 * r.spread:.2f}")
            for r in rows
        ]
        columns[METRICS[metric].label, "less CE"] = [
            "–"
            if not r.verdict
            else f"{100 * r.difference:+.2f} [{100 * r.low:+.2f}, {100 * r.high:+.2f}]"
            for r in table.itertuples()
        ]
    index = pd.Index([METHODS[m].label for m in table.index], name="×100")
    return pd.DataFrame(columns, index=index)


def stored_table(stored, metric="mse_p"):
    """Lay out a metric of several stored tasks side by side, as `comparison_table` does."""
    parts = {task.label: comparison_table({metric: task.table(metric)}) for task in stored}
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, axis=1)
    return table.droplevel(1, axis=1).fillna("–")


def classes_table(stored, rows=("ensemble", "ce_finetuned", "cape_bin", "cape_kernel")):
    """Lay out MSE_p of many questions about the same images, a line each.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        The tasks.
    rows : tuple of str
        Methods whose paired difference from CE early-stop is shown.

    Returns
    -------
    DataFrame
        Times 100: CE early-stop's mean ± standard deviation over seeds, differences with their
        95 % intervals (an asterisk where 0 is left out), and what one other person scores.
    """
    lines = {}
    for task in stored:
        table = task.table()
        line = {METHODS["ce"].label: mean_text(table.loc["ce"])}
        for m in (m for m in rows if m in table.index):
            star = " *" if table.loc[m, "verdict"] in ("better", "worse") else ""
            line[f"{METHODS[m].label} less CE"] = interval_text(table.loc[m]) + star
        line["one other person"] = f"{100 * task.ceiling()[1]:.2f}"
        lines[task.question] = line
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("is it this?")


def say_classes(stored):
    """Say in how many of many questions a method is nearer to p than CE early-stop, or further.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        The tasks.

    Returns
    -------
    str
        Markdown.
    """
    if len(stored) < 2:
        return f"Stored of {len(CLASSES)} classes: {len(stored)}."
    verdicts = pd.DataFrame({task.question: task.table()["verdict"] for task in stored})
    rows = verdicts.index.intersection(
        ("ensemble", "platt", "ce_finetuned", "cape_bin", "cape_kernel")
    )
    better, worse = ((verdicts == v).sum(axis=1) for v in ("better", "worse"))
    lines = [f"{METHODS[m].label} {better[m]} and {worse[m]}" for m in rows]
    people = sum(task.table().loc["ce", "value"] < task.ceiling()[1] for task in stored)
    return (
        f"Of {len(stored)} classes, an interval is below CE early-stop in, and above it in: "
        f"{'; '.join(lines)}. CE early-stop is nearer to p than one other person in {people}."
    )


def paper_table(measured):
    """Put the paper's Table 11 beside what was measured.

    Parameters
    ----------
    measured : dict of str to dict of str to DataFrame
        By task, ``"mse_p"`` and ``"kl_p"`` from `probnb.chapters.cifar10.study.across_seeds`.

    Returns
    -------
    DataFrame
        In the metrics' own units, as the paper prints them, with the ratio of the two.
    """
    paper = paper_ratios()
    columns = {("paper", k): paper[k] for k in paper}
    for name, parts in measured.items():
        values = {k: parts[k]["value"].reindex(paper.index) for k in ("mse_p", "kl_p")}
        values["ratio"] = values["kl_p"] / values["mse_p"]
        columns |= {(name, k): v for k, v in values.items()}
    table = pd.DataFrame(columns)
    table.index = [METHODS[m].label for m in table.index]
    names = {"mse_p": "MSE_p", "kl_p": "KL_p", "ratio": "KL_p / MSE_p"}
    return table.rename(columns=names, level=1).round(4)


def interval_text(row):
    """Return a difference times 100, with its interval."""
    ends = f"[{100 * row['low']:+.2f}, {100 * row['high']:+.2f}]"
    return f"{100 * row['difference']:+.2f} {ends}"


def mean_text(row):
    """Return a mean times 100, with its standard deviation where there are several seeds."""
    spread = "" if np.isnan(row["spread"]) else f" ± {100 * row['spread']:.2f}"
    return f"{100 * row['value']:.2f}{spread}"
