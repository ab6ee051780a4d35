"""Figures of the page that shows CaPE."""

from __future__ import annotations

import pandas as pd
import seaborn as sns

from ...plots.style import COLOURS

_TARGETS = {"outcomes only": "vermilion", "every second epoch": "green", "calibration only": "blue"}


def movement_figure(moves, start, epochs):
    """Draw training faces, prediction across and true probability up, at a few epochs."""
    shown = moves.query("start == @start and epoch in @epochs and targets != 'every second epoch'")
    facets = sns.relplot(
        shown.rename(columns={"y": "outcome"}), x="p_hat", y="p", hue="outcome", style="outcome",
        row="targets", col="epoch", kind="scatter", height=1.95, aspect=0.9, s=9, alpha=0.6,
        linewidth=0, palette=[COLOURS["blue"], COLOURS["vermilion"]], rasterized=True,
        facet_kws={"margin_titles": True, "legend_out": False},
    )  # fmt: skip
    for ax in facets.axes.flat:
        ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1, zorder=0)
    facets.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    facets.set(xticklabels=["0", "½", "1"], yticklabels=["0", "½", "1"])
    facets.set_axis_labels(r"prediction $\hat p$", "true probability $p$")
    facets.set_titles(col_template="epoch {col_name}", row_template="{row_name}")
    return _legend_above(facets, "outcome")


def scores_figure(scores):
    """Draw the error on test faces after each epoch; a ring marks what validation data kept."""
    facets = sns.relplot(
        scores, x="epoch", y="MSE_p", hue="targets", style="targets", col="start", kind="line",
        height=2.9, aspect=1.25, palette={k: COLOURS[v] for k, v in _TARGETS.items()},
        markers=True, dashes=False, mec="white", ms=6, facet_kws={"legend_out": False},
    )  # fmt: skip
    for name, ax in facets.axes_dict.items():
        kept = scores[(scores["start"] == name) & scores["kept"]]
        ax.plot(kept["epoch"], kept["MSE_p"], "o", ms=13, mfc="none", mec="black", mew=1.2)
    facets.set_axis_labels("epoch of fine-tuning", r"test MSE$_p$ $\times$ 100")
    facets.set_titles("from the {col_name}").set(ylim=(0, None))
    facets.set(xticks=range(0, scores["epoch"].max() + 1, 3))
    return _legend_above(facets)


def empirical_figure(estimates):
    """Draw training faces in the order of their predictions: `estimates` by start and name."""
    tables = {
        start: pd.DataFrame(columns).sort_values("prediction", kind="stable", ignore_index=True)
        for start, columns in estimates.items()
    }
    table = pd.concat(tables, names=["start", "rank"]).reset_index()
    table["rank"] = (table["rank"] + 0.5) / table.groupby("start")["rank"].transform("size")
    table = table.melt(["start", "rank"], var_name="estimate")
    facets = sns.relplot(
        table, x="rank", y="value", hue="estimate", col="start", kind="line", height=2.9,
        aspect=1.25, palette=[COLOURS[c] for c in ("black", "blue", "sky", "vermilion")],
        facet_kws={"legend_out": False},
    )  # fmt: skip
    facets.set_axis_labels("training faces, by prediction", "probability")
    facets.set_titles("after the {col_name}").set(xlim=(0, 1), ylim=(-0.02, 1.02), xticks=[])
    return _legend_above(facets)


def _legend_above(facets, title=None):
    """Put the legend over the panels, which then have the width of the page."""
    sns.move_legend(facets, "lower center", bbox_to_anchor=(0.5, 1), ncols=4, title=title)
    return facets
