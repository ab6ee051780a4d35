"""Figures of the chapter on ablations, besides the forest of differences."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from probnb.metrics import difference
from probnb.plots import COLOURS, plain_ticks

AXES = {
    "focal": "Focal loss: strength γ",
    "entropy": "Entropy: strength β",
    "mmce": "MMCE: strength β",
    "m": "m (every m-th epoch)",
    "phase": "Phase (2: starts with it)",
    "B": "B: bins",
    "rate": "Learning rate",
    "r": "r: neighbours",
    "sigma": "σ of the kernel",
    "length": "Length (epochs)",
    "lambda": "λ: weight of p$_{emp}$",
    "unseen": "ξ: weight of teachers\nthat did not see the face",
    "seen": "ξ: of one that did",
}
"""Panels of `settings_figure` and the names of their axes."""

MSE = "MSE$_p$ (× 100)"


def first_targets_figure(table):
    """Draw p_emp against p for the training rows, before training and early-stopped."""
    grid = sns.relplot(table, x="p", y="p_emp", col="network", s=12, lw=0, height=3.2)
    grid.map(lambda **_: plt.plot([0, 1], [0, 1], color=COLOURS["grey"], lw=1, ls="--"))
    grid.set(xlim=(0, 1), ylim=(0, 1), xticks=(0.2, 0.4, 0.6, 0.8)).set_titles("{col_name}")
    return grid.set_axis_labels("True probability p", "Target p$_{emp}$")


def settings_figure(table, parts, base):
    """Draw differences in MSE_p from one row against settings, with intervals over seeds.

    Parameters
    ----------
    table : DataFrame
        Of one study and kind of data; scenarios are told apart by colour.
    parts : sequence of str
        Panels, keys of `AXES`.
    base : str
        The row that is subtracted.

    Returns
    -------
    seaborn.FacetGrid
        A panel for each part.
    """
    same = ["scenario", "n", "seed"]
    shown, start = table[table["part"].isin(parts)], table[table["row"] == base]
    shown = shown.merge(start[[*same, "mse_p"]], on=same, suffixes=("", "_base"))
    shown["gap"] = 100 * (shown["mse_p"] - shown["mse_p_base"])
    shown["scenario"] = shown["scenario"].str.capitalize()
    several = shown["scenario"].nunique() > 1
    grid = sns.relplot(
        shown,
        x="x",
        y="gap",
        col="part",
        col_order=parts,
        col_wrap=min(3, len(parts)),
        hue="scenario",
        style="scenario",
        kind="line",
        markers=True,
        dashes=False,
        height=2.4,
        aspect=1 if len(parts) > 1 else 2,
        errorbar=_interval,
        err_style="bars",
        legend=several,
        facet_kws={"sharex": False, "legend_out": False},
    )
    for part, ax in grid.axes_dict.items():
        ax.axhline(0, color=COLOURS["grey"], lw=1, ls="--")
        x = np.unique(shown.loc[shown["part"] == part, "x"])
        if x.min() > 0 and x.max() / x.min() > 6:
            ax.set_xscale("log")
        plain_ticks(ax.xaxis, x)
        ax.set(xlabel=AXES[part], title="")
    grid.set_ylabels("Difference (× 100)")
    if several:
        sns.move_legend(grid, "lower center", bbox_to_anchor=(0.45, 1), ncols=2, title="")
    return grid


def _interval(gaps):
    """Student's interval over seeds, for seaborn's error bars."""
    found = difference(gaps)
    return found.low, found.high


def stopping_figure(table):
    """Draw MSE_p of what each rule keeps, and what Platt scaling and CaPE make of it, by seed."""
    names = {"kept": "as kept", "platt": "then Platt, two logits", "cape": "then CaPE (bin)"}
    shown = table.assign(mse=100 * table["mse_p"], then=table["part"].map(names))
    _, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    sns.stripplot(shown, x="mse", y="label", hue="then", dodge=True, jitter=False, size=6, ax=ax)
    ax.set(xscale="log", xlabel=f"{MSE}, a mark a seed", ylabel="Epoch that is kept")
    plain_ticks(ax.xaxis, (2, 3, 4, 6, 8, 12))
    sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=3, title=None)
    return ax


def where(table):
    """Name the kind of faces and the scenario of each line."""
    faces = np.where(table["data"] == "utkface", "photographs, ", "drawn faces, ")
    return faces + table["scenario"].str.capitalize()


def reversal_figure(table):
    """Draw MSE_p after every epoch, before and after Platt scaling: means over seeds."""
    shown = table[table["part"].str.startswith("epoch")].rename(columns={"label": "Predictions"})
    judged = np.where(shown["part"] == "epoch", "as they are", "after Platt scaling")
    shown = shown.assign(mse=100 * shown["mse_p"], on=where(shown), Judged=judged)
    grid = sns.relplot(
        shown,
        x="x",
        y="mse",
        hue="Predictions",
        style="Judged",
        col="on",
        col_wrap=2,
        kind="line",
        errorbar=None,
        height=2.6,
        aspect=1.3,
        palette="colorblind",
        facet_kws={"sharex": False, "sharey": False},
    )
    grid.set_titles("{col_name}").set_axis_labels("Epoch", MSE)
    sns.move_legend(grid, "lower center", bbox_to_anchor=(0.45, 1), ncols=4, title="")
    return grid


def steps_figure(table):
    """Draw what share of a step is a function of the old logit, a mark a seed, a bar their mean."""
    shown = table[table["share"].notna()].assign(on=where(table)).sort_values("data", kind="stable")
    _, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    order = sorted(shown["label"].unique(), key=lambda label: label.startswith("averaged"))
    look = {"x": "share", "y": "label", "hue": "on", "order": order, "dodge": True, "ax": ax}
    sns.stripplot(shown, **look, jitter=False, size=5, alpha=0.6)
    sns.pointplot(
        shown,
        **look | {"dodge": 0.6},
        linestyle="none",
        marker="|",
        errorbar=None,
        markersize=12,
        legend=False,
    )
    ax.set(xlim=(0, 1), xlabel="Share of the step that is a function of the old logit")
    ax.set_ylabel("Two epochs towards (last: another training)")
    sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=2, title=None)
    return ax


def size_figure(table):
    """Draw MSE_p against the number of training images: means, and bars from seed to seed."""
    shown = table.assign(mse=100 * table["mse_p"])
    _, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    sns.lineplot(
        shown,
        x="n",
        y="mse",
        hue="label",
        style="label",
        markers=True,
        dashes=False,
        errorbar=("pi", 100),
        err_style="bars",
        ax=ax,
    )
    ax.set(xscale="log", yscale="log", xlabel="Training images", ylabel=MSE)
    plain_ticks(ax.xaxis, sorted(table["n"].unique()))
    plain_ticks(ax.yaxis, (0.5, 1, 2, 4, 8))
    sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1), title=None)
    return ax


def by_label(found, costs=False):
    """Sort differences for `probnb.plots.forest`; costs in their labels if asked for."""
    first = found.groupby("label", sort=False)["value"].transform("min")
    found = found.assign(first=first).sort_values(["first", "label"], kind="stable")
    if costs:
        found["label"] += [f" ({cost:.1f})" for cost in found["cost"]]
    return found.reset_index(drop=True)
