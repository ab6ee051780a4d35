"""Figures of the page of results."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ..experiment import evidence
from ..plots import COLOURS, plain_ticks
from ..scenarios import SCENARIOS, probability
from .results import kept_trainings, label

GLANCE = ("ce_overfit", "ce_mean", "platt", "cape_bin", "ensemble", "resampled")


def glance_figure(best):
    """Draw the error of six rows in every scenario; dots are trainings, bars reach over all."""
    table = pd.concat(evidence.scores(runs, ["mse_p"]) for runs in best.values())
    table = table[table["method"].isin(GLANCE)]
    table = table.assign(error=100 * table["value"], row=table["method"].map(label),
                         scenario=table["task"].str.capitalize())  # fmt: skip
    grid = sns.catplot(
        table, kind="point", x="error", y="scenario", hue="row",
        hue_order=[label(m) for m in GLANCE], linestyle="none", errorbar=("pi", 100), dodge=0.5,
        markers=list("Xosd^P"), markersize=5, err_kws={"linewidth": 1.5}, height=4.2, aspect=1.45,
    )  # fmt: skip
    grid.set(xlabel="MSE$_p$ × 100, logarithmic", ylabel="", xscale="log")
    plain_ticks(grid.ax.xaxis)
    grid.legend.set_title("")
    return grid


def histories(best):
    """Gather the epochs of trainings from random weights: their metrics, ``training``, ``row``."""
    parts = []
    for scenario, runs in best.items():
        for line in runs.itertuples():
            epochs = evidence.tables(line)[0].epochs.query("epoch > 0")
            epochs = epochs[epochs["fit"].str.fullmatch(r"ce|resampled|ensemble member=\d+")]
            facts = {"scenario": scenario.capitalize(), "training": f"{line.seed} " + epochs["fit"]}
            parts.append(epochs.assign(**facts).sort_values("fit", kind="stable"))
    table = pd.concat(parts, ignore_index=True)
    fresh = table["fit"] == "resampled"
    return table.assign(row=np.where(fresh, "fresh outcomes in every epoch", "outcomes"))


def curves_figure(table):
    """Draw test MSE_p over epochs of every stored training, a panel a scenario."""
    grid = sns.relplot(
        table.assign(error=100 * table["mse_p"]), kind="line", x="epoch", y="error", col="scenario",
        col_wrap=3, hue="row", style="row", units="training", estimator=None, linewidth=1,
        height=2.1, aspect=1.15, facet_kws={"sharey": False, "sharex": False},
    )  # fmt: skip
    grid.set_titles("{col_name}").set_axis_labels("Epoch", "MSE$_p$ × 100").set(yscale="log")
    for ax in grid.axes.flat:
        plain_ticks(ax.yaxis)
    sns.move_legend(grid, "center", bbox_to_anchor=(0.8, 0.25), title="Trained on")
    return grid


def bias_figure(best, saved):
    """Draw the error of stored trainings in Linear and Discrete against what they are off by.

    Parameters
    ----------
    best : dict of str to DataFrame
        Runs by scenario.
    saved : DataFrame
        From `probnb.chapters.authors.authors_scores`.
    """
    ours = [kept_trainings(runs) for s, runs in best.items() if s in ("linear", "discrete")]
    ours = pd.concat(ours).assign(source="ours, each at its kept epoch")
    repairs = {
        "none": "authors' saved file",
        "intercept": "… with one intercept",
        "platt": "… with Platt scaling",
    }
    theirs = saved[saved["method"] == "ce"]
    theirs = theirs.assign(source=theirs["repair"].map(repairs), bias=theirs["shift"])
    table = pd.concat([ours, theirs], ignore_index=True)
    grid = sns.relplot(
        table.assign(error=100 * table["mse_p"], scenario=table["scenario"].str.capitalize()),
        x="bias", y="error", col="scenario", hue="source", style="source",
        markers=["o", "X", "s", "D"], s=60, height=3, aspect=1,
    )  # fmt: skip
    for ax in grid.axes.flat:
        ax.axvline(0, color=COLOURS["grey"], linewidth=1, zorder=0)
    grid.set_titles("{col_name}")
    grid.set_axis_labels("Bias: mean $\\hat p$ less mean $y$", "MSE$_p$ × 100")
    grid.legend.set_title("CE early-stop")
    return grid


def predictions_figure(line, rows=("resampled", "ce_overfit", "ce", "cape_bin")):
    """Draw predictions against true probabilities on the test rows of one training."""
    _, test = evidence.tables(line)
    rows = [row for row in rows if row in test]
    table = test.melt("p", rows, "row", "prediction")
    table["row"] = table["row"].map(label)
    edges = np.linspace(0, 1, 41)
    grid = sns.displot(
        table, x="p", y="prediction", col="row", bins=(edges, edges), height=2, aspect=0.95
    )
    for ax in grid.axes.flat:
        ax.axline((0, 0), slope=1, color=COLOURS["grey"], linestyle="--", linewidth=1)
    return grid.set_titles("{col_name}").set_axis_labels("True probability", "Prediction")


def scenario_figure(best):
    """Draw each scenario: probability by age, and how many test faces have which probability."""
    names = [s for s in SCENARIOS if s in best] or list(SCENARIOS)
    look = {"figsize": (7.5, 3.2), "layout": "constrained", "sharex": "row"}
    figure, axes = plt.subplots(2, len(names), **look)
    age = np.arange(117)
    for (top, low), name in zip(axes.T, names):
        sns.lineplot(x=age, y=probability(age, name), ax=top)
        top.set(title=name.capitalize(), ylim=(-0.02, 1.02), xlabel="Age")
        if name in best:
            _, test = evidence.tables(best[name].iloc[0])
            sns.histplot(
                test, x="p", hue="y", bins=20, multiple="stack", ax=low, legend=name == names[0]
            )
        low.set(xlabel="Probability", ylabel="")
    axes[0, 0].set_ylabel("Probability")
    axes[1, 0].set_ylabel("Test faces")
    return figure
