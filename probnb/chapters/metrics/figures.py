"""Figures of the chapter on metrics; each draws tables of `.examples` and `.study`."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.ticker import MaxNLocator

from ...metrics.binning import brier_decomposition, ks_curves
from ...metrics.registry import METRICS, brier, mse_p
from ...plots import COLOURS, forest, grid

KINDS = {"epoch": "epochs of trainings", "method": "methods", "paper": "the paper's tables"}
_PALETTE = {"epoch": "0.6", "method": COLOURS["blue"]}


def _label(metric):
    """The label of a metric, with its index set lower, of which less is better."""
    label = METRICS[metric].label.replace("_p", "$_p$")
    return label if METRICS[metric].lower_is_better else f"1 - {label}"


def dot_stacks(models, columns=("truth", "one answer")):
    """Draw small models as stacks of rows over their predictions, filled where y is 1."""
    _, axes = grid(len(columns), columns=2, size=(3.6, 2.7), sharex=True, sharey=True)
    hues = dict(zip(sorted(models["p"].unique()), ("blue", "vermilion")))
    for ax, column in zip(axes, columns):
        for prediction, rows in models.sort_values(["y", "p"]).groupby(column):
            for height, (y, p) in enumerate(zip(rows["y"], rows["p"])):
                colour = COLOURS[hues[p]]
                face = colour if y else "white"
                ax.plot(prediction, height, "o", ms=11, mfc=face, mec=colour, mew=1.8)
            text = f"{rows['y'].mean():.0%} are 1"
            ax.text(prediction, len(rows), text, ha="center", va="center", fontsize=9)
        scores = brier(models["y"], models[column]), mse_p(models["p"], models[column])
        ax.set_title(f"{column}: Brier {scores[0]:.3f}, MSE$_p$ {scores[1]:.3f}", loc="left")
        ax.set(xlabel=r"prediction $\hat p$", xlim=(0, 1), ylim=(-0.7, 9.7), yticks=[],
               xticks=[0, 0.25, 0.5, 0.75, 1])  # fmt: skip
        ax.grid(False)
    for p, hue in hues.items():
        axes[0].plot([], [], "o", mfc="white", mec=COLOURS[hue], mew=1.8, label=f"p = {p:g}")
    axes[0].plot([], [], "o", mfc="0.4", mec="0.4", label="y = 1")
    axes[0].legend(loc="upper center", ncols=3, columnspacing=0.8, handletextpad=0.1)
    return axes


def decomposition_bars(models, bins=15):
    """Draw refinement and calibration of each model's Brier score, with a mark at the score.

    Where the two do not add up to the mark, the rest is the two within-bin terms.
    """
    names = models.columns.drop(["y", "p"], errors="ignore")
    parts = [brier_decomposition(models["y"], models[name], bins) for name in names]
    table = pd.DataFrame([vars(part) for part in parts], names)[["refinement", "calibration"]]
    ax = plt.subplots(figsize=(7.2, 2.8), layout="constrained")[1]
    table.plot.barh(stacked=True, width=0.8, ax=ax, color=[COLOURS["sky"], COLOURS["vermilion"]])
    total = [part.total for part in parts]
    ax.plot(total, np.arange(len(names)), "k|", ms=18, mew=2, label="Brier score")
    for k, value in enumerate(np.maximum(total, table.sum(axis=1))):
        ax.text(value + 0.004, k, f"{total[k]:.4f}", va="center", fontsize=9)
    ax.invert_yaxis()
    ax.set(xlabel="Brier score and its parts", xlim=(0, 1.14 * max(total)))
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1), ncols=4)
    return ax


def ks_figure(y_true, predictions):
    """Draw the two cumulative curves of the KS error, and the gap at which it is read off."""
    _, axes = grid(len(predictions.keys()), columns=3, size=(2.5, 2.8), sharex=True, sharey=True)
    for ax, name in zip(axes, predictions.keys()):
        sigma, observed, predicted = ks_curves(y_true, predictions[name])
        ax.step(sigma, observed, where="post", color="black", label=r"$\phi_1$: observed")
        ax.step(sigma, predicted, where="post", color=COLOURS["blue"], label=r"$\phi_2$: predicted")
        k = np.argmax(np.abs(observed - predicted))
        ax.plot([sigma[k]] * 2, [observed[k], predicted[k]], color=COLOURS["vermilion"], lw=3,
                label="largest gap")  # fmt: skip
        ax.set_title(f"{name}: KS {abs(observed[k] - predicted[k]):.3f}", loc="left", fontsize=10)
        ax.set(xlabel=r"prediction up to $\sigma$", xlim=(0, 1))
    axes[0].set_ylabel("cumulative share of rows")
    axes[0].legend(loc="upper left", fontsize=9)
    return axes


def ece_bias(table):
    """Draw how far from 0 each estimator puts the error of a perfect model, by rows."""
    ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")[1]
    sns.lineplot(table, markers=True, ax=ax)
    ax.set(xscale="log", yscale="log", xlabel="rows in the test set",
           ylabel="mean estimate (true error: 0)")  # fmt: skip
    sns.move_legend(ax, "center left", bbox_to_anchor=(1, 0.5))
    return ax


def ece_and_bins(table):
    """Draw the ECE of each model against the number of bins, with what chance would give."""
    facets = sns.relplot(table, x="bins", y="ece", col="model", kind="line", marker="o",
                         height=2.5, aspect=0.98)  # fmt: skip
    for name, ax in facets.axes_dict.items():
        rows = table[table["model"] == name]
        ax.fill_between(rows["bins"], rows["low"], rows["high"], color=COLOURS["grey"], alpha=0.3,
                        lw=0, label="by chance (95 %)")  # fmt: skip
    facets.axes.flat[0].legend(loc="upper left")
    facets.set(xscale="log", ylim=(0, None)).set_axis_labels("bins", "ECE")
    facets.set(xticks=[2, 5, 15, 60], xticklabels=["2", "5", "15", "60"]).set_titles("{col_name}")
    return facets


def metric_scatter(models, table, scenarios, target="mse_p"):
    """Draw every trained model: metrics in rows, scenarios in columns (or one, wrapped).

    In each panel the correlation of the epochs (grey) and of the methods (blue).
    """
    scenarios = [scenarios] if isinstance(scenarios, str) else list(scenarios)
    rows = models[models["scenario"].isin(scenarios) & models["kind"].isin(_PALETTE)]
    rows = rows.assign(auc=1 - rows["auc"])
    metrics = list(table["metric"].unique())
    long = rows.melt(["scenario", "kind", target], metrics, "metric").replace(np.inf, np.nan)
    long = long.sort_values("kind")  # methods over epochs
    one = len(scenarios) == 1
    layout = {"col": "metric", "col_wrap": 3} if one else {"row": "metric", "col": "scenario"}
    facets = sns.relplot(
        long, x=target, y="value", hue="kind", style="kind", palette=_PALETTE, legend=False,
        size="kind", sizes={"epoch": 8, "method": 30}, markers={"epoch": "o", "method": "o"},
        facet_kws={"sharex": False, "sharey": False, "margin_titles": not one},
        height=2.2 if one else 1.3, aspect=1.1, rasterized=True, **layout,
    )  # fmt: skip
    found = table.query("target == @target").set_index(["scenario", "kind", "metric"])["pearson"]
    for (i, j, _), part in facets.facet_data():
        ax, where = facets.facet_axis(i, j), part.iloc[0]
        for kind, x, side in (("epoch", 0.04, "left"), ("method", 0.96, "right")):
            r = found.get((where["scenario"], kind, where["metric"]), np.nan)
            ax.text(x, 1.01, f"{r:.2f}", transform=ax.transAxes, ha=side, va="bottom", fontsize=9,
                    color="0.4" if kind == "epoch" else COLOURS["blue"])  # fmt: skip
        ax.xaxis.set_major_locator(MaxNLocator(3 if one else 2, min_n_ticks=1))
        ax.set_title("")
        if one:
            ax.set(xlabel=_label(target), ylabel=_label(where["metric"]))
            continue
        last = i + 1 == len(metrics)
        ax.set(yticklabels=[], ylabel="" if j else _label(where["metric"]))
        ax.set_xlabel(f"{_label(target)}\n{where['scenario']}" if last else "")
        ax.tick_params(labelbottom=last, labelsize=8)
    for text in facets._margin_titles_texts:
        text.remove()
    facets.figure.tight_layout(w_pad=0.3, h_pad=0.3)
    return facets


def correlation_summary(table, target="mse_p"):
    """Draw the correlation of each metric with the truth, with its interval, by kind of model."""
    rows = table[table["target"] == target].set_index(["kind", "metric", "scenario"])
    kinds = [kind for kind in KINDS if kind in rows.index]
    places = [table["metric"].unique(), table["scenario"].unique()]  # the same in every panel
    _, axes = grid(len(kinds), columns=3, size=(2.5, 4.2), sharex=True, sharey=True)
    for ax, kind in zip(axes, kinds):
        part = rows.loc[kind].reindex(pd.MultiIndex.from_product(places))
        part = part.reset_index(names=["m", "scenario"])
        part = part.assign(seeds=2, value=part["pearson"], label=part["m"].map(_label))
        forest(part, hue="scenario", scale=1, ax=ax, xlabel="correlation")
        handles, names = ax.get_legend_handles_labels()
        ax.get_legend().remove()
        ax.set(title=f"across {KINDS[kind]}", xlim=(-1.05, 1.05), xticks=[-1, 0, 1])
    axes[0].figure.legend(handles, names, loc="outside upper center", ncols=5)
    return axes
