"""Figures of the chapter on metrics."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from ...metrics.binning import ks_curves
from ...metrics.decomposition import brier_decomposition
from ...metrics.registry import METRICS
from ...metrics.scores import brier, mse_p
from ...plots.style import COLOURS, grid
from .study import oriented

__all__ = [
    "correlation_summary",
    "decomposition_bars",
    "dot_stacks",
    "ece_and_bins",
    "ece_bias",
    "ks_figure",
    "metric_scatter",
    "scatter_matrix",
]

_KINDS = {"epoch": ("grey", ".", 4), "method": ("blue", "o", 5), "paper": ("vermilion", "D", 4)}


def _label(metric):
    """The label of a metric, with its index set lower."""
    return METRICS[metric].label.replace("_p", "$_p$")


def dot_stacks(models, columns=("truth", "one answer")):
    """Draw small models as stacks of rows over their predictions: calibration is not enough.

    Parameters
    ----------
    models : DataFrame
        Columns ``y``, ``p`` and one of predictions for each model.
    columns : sequence of str, default=("truth", "one answer")
        The models to draw.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a model: a dot for each row, coloured by its true probability and filled where
        the outcome is 1.
    """
    _, axes = grid(len(columns), columns=2, size=(3.6, 2.7), sharex=True, sharey=True)
    hues = dict(zip(sorted(models["p"].unique()), ("blue", "vermilion", "green", "orange")))
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
        ax.set(xlabel=r"Prediction $\hat p$", xlim=(0, 1), ylim=(-0.7, 8.7), yticks=[])
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
        ax.grid(False)
    for p, hue in hues.items():
        axes[0].plot([], [], "o", mfc="white", mec=COLOURS[hue], mew=1.8, label=f"p = {p:g}")
    axes[0].plot([], [], "o", mfc="0.4", mec="0.4", label="filled: y = 1")
    axes[0].legend(loc="upper center", ncols=3, columnspacing=0.8, handletextpad=0.1)
    return axes


def decomposition_bars(models, bins=15, ax=None):
    """Draw the Brier score of each model as the sum of its parts.

    Parameters
    ----------
    models : DataFrame
        Columns ``y`` and one of predictions for each model (``p`` is left out).
    bins : int, default=15
        Number of quantile bins of the decomposition.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Stacked bars; what the two within-bin terms add or take is drawn last, and a mark stands
        at the score.
    """
    ax = ax or plt.subplots(figsize=(7.2, 2.8), layout="constrained")[1]
    names = models.columns.drop(["y", "p"], errors="ignore")
    parts = [brier_decomposition(models["y"], models[name], bins) for name in names]
    refinement = np.array([part.refinement for part in parts])
    calibration = np.array([part.calibration for part in parts])
    total = np.array([part.total for part in parts])
    ax.barh(names, refinement, color=COLOURS["sky"], label="refinement")
    ax.barh(names, calibration, left=refinement, color=COLOURS["vermilion"], label="calibration")
    within = total - refinement - calibration
    start = refinement + calibration
    ax.barh(
        names, within, left=start, height=0.35, color=COLOURS["grey"], label="within bins"
    )  # usually negative: it takes back part of the bar
    ax.plot(total, np.arange(len(names)), "k|", ms=18, mew=2, label="Brier score")
    for k, value in enumerate(np.maximum(total, start)):
        ax.text(value + 0.004, k, f"{total[k]:.4f}", va="center", fontsize=9)
    ax.invert_yaxis()
    ax.set(xlabel="Brier score and its parts", xlim=(0, start.max() * 1.12))
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1), ncols=4)
    return ax


def ks_figure(y_true, predictions):
    """Draw the two cumulative curves of the KS error, and the gap at which it is read off.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    predictions : mapping of str to array-like of shape (n,), or DataFrame
        Predicted probabilities of outcome 1 by model.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a model.
    """
    _, axes = grid(len(predictions.keys()), columns=3, size=(2.5, 2.8), sharex=True, sharey=True)
    for ax, name in zip(axes, predictions.keys()):
        sigma, observed, predicted = ks_curves(y_true, predictions[name])
        ax.step(sigma, observed, where="post", color=COLOURS["black"], label=r"$\phi_1$: observed")
        ax.step(sigma, predicted, where="post", color=COLOURS["blue"], label=r"$\phi_2$: predicted")
        k = np.argmax(np.abs(observed - predicted))
        ax.plot([sigma[k]] * 2, [observed[k], predicted[k]], color=COLOURS["vermilion"], lw=3)
        gap = abs(observed[k] - predicted[k])
        ax.plot([], [], color=COLOURS["vermilion"], lw=3, label="largest gap")
        ax.set_title(f"{name}: KS {gap:.3f}", loc="left")
        ax.set(xlabel=r"Prediction up to $\sigma$", xlim=(0, 1))
    axes[0].set_ylabel("Cumulative share of rows")
    axes[0].legend(loc="upper left")
    return axes


def ece_bias(table, ax=None):
    """Draw how far from 0 each estimator puts the error of a perfect model, by size of test set.

    Parameters
    ----------
    table : DataFrame
        From `probnb.chapters.metrics.examples.ece_by_rows`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        Logarithmic axes.
    """
    ax = ax or plt.subplots(figsize=(6.4, 3.8), layout="constrained")[1]
    styles = zip(table.columns, "oosv^x", ("sky", "blue", "purple", "green", "orange", "black"))
    for name, marker, colour in styles:
        theory = name.startswith("normal")
        line = dict(ls=":", marker="") if theory else dict(ls="-", marker=marker, ms=5)
        ax.plot(table.index, table[name], color=COLOURS[colour], label=name, **line)
    ax.set(xscale="log", yscale="log", xlabel="Rows in the test set, n")
    ax.set_ylabel("Mean estimate (true error: 0)")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def ece_and_bins(table):
    """Draw the ECE of each model against the number of bins, with what chance would give.

    Parameters
    ----------
    table : DataFrame
        From `probnb.chapters.metrics.examples.ece_by_bins`.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a model.
    """
    names = table["model"].unique()
    _, axes = grid(len(names), columns=3, size=(2.5, 2.5), sharex=True, sharey=True)
    for ax, name in zip(axes, names):
        rows = table[table["model"] == name]
        band = dict(color=COLOURS["grey"], alpha=0.3, lw=0)
        ax.fill_between(rows["bins"], rows["low"], rows["high"], label="by chance (95 %)", **band)
        ax.plot(rows["bins"], rows["ece"], "o-", ms=4, color=COLOURS["blue"], label="ECE")
        ax.set_title(name, loc="left")
        ax.set(xscale="log", xlabel="Bins, B")
        ax.set_xticks([2, 5, 15, 60], ["2", "5", "15", "60"])
        ax.minorticks_off()
    axes[0].set(ylabel="ECE", ylim=(0, None))
    axes[0].legend(loc="upper left")
    return axes


def metric_scatter(models, table, scenario, target="mse_p", kinds=("epoch", "method")):
    """Draw every trained model of a scenario: each metric against the distance from the truth.

    Parameters
    ----------
    models : DataFrame
        From `probnb.chapters.metrics.study.collect_models`.
    table : DataFrame
        Their correlations, from `probnb.chapters.metrics.study.correlations`.
    scenario : str
        Which scenario.
    target : {"mse_p", "kl_p"}, default="mse_p"
        The distance from the truth.
    kinds : sequence of str, default=("epoch", "method")
        Which models.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel a metric, titled with the correlation across the models of each kind.
    """
    metrics = table["metric"].unique()
    _, axes = grid(len(metrics), columns=3, size=(2.6, 2.5), sharex=True)
    for ax, metric in zip(axes, metrics):
        r = _points(ax, models, table, scenario, target, metric, kinds)
        title = ", ".join(f"{value:.2f} ({kind}s)" for kind, value in r.items())
        ax.set_title(f"r {title}", loc="left", fontsize=9)
        ax.set_ylabel(_label(metric))
    for ax in axes[-3:]:
        ax.set_xlabel(_label(target))
    if len(kinds) > 1:
        axes[0].legend(loc="upper left", markerscale=1.2, handletextpad=0.2)
    return axes


def scatter_matrix(models, table, target="mse_p", kinds=("epoch", "method")):
    """Draw metrics against the distance from the truth, a row a metric and a column a scenario.

    Parameters
    ----------
    models : DataFrame
        From `probnb.chapters.metrics.study.collect_models`.
    table : DataFrame
        Their correlations, from `probnb.chapters.metrics.study.correlations`.
    target : {"mse_p", "kl_p"}, default="mse_p"
        The distance from the truth.
    kinds : sequence of str, default=("epoch", "method")
        Which models.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Above each panel the correlation of each kind, in its colour.
    """
    metrics, scenarios = table["metric"].unique(), table["scenario"].unique()
    figure, axes = plt.subplots(
        len(metrics), len(scenarios), figsize=(1.55 * len(scenarios) + 0.3, 1.3 * len(metrics)),
        sharex="col", sharey=False, squeeze=False, layout="constrained",
    )  # fmt: skip
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, hspace=0, wspace=0)
    for row, metric in zip(axes, metrics):
        for ax, scenario in zip(row, scenarios):
            r = _points(ax, models, table, scenario, target, metric, kinds)
            ax.tick_params(labelleft=False, labelsize=7)
            for k, (kind, value) in enumerate(r.items()):
                colour = "0.35" if kind == "epoch" else COLOURS[_KINDS[kind][0]]
                ax.set_title(
                    f"r {value:.2f}", loc=("left", "right")[k], color=colour, fontsize=8.5, pad=2
                )
        row[0].set_ylabel(_label(metric))
    for ax, scenario in zip(axes[-1], scenarios):
        ax.set_xlabel(f"{scenario.capitalize()}\n{_label(target)}", fontsize=8)
    return axes


def _points(ax, models, table, scenario, target, metric, kinds):
    """Scatter one panel; return the correlation of each kind."""
    r = {}
    for kind in kinds:
        rows = models[(models["scenario"] == scenario) & (models["kind"] == kind)]
        found = table.query(
            "scenario == @scenario and kind == @kind and target == @target and metric == @metric"
        )
        if not len(found):
            continue
        colour, marker, size = _KINDS[kind]
        style = dict(ms=size, color=COLOURS[colour], mec="white", mew=0.3, rasterized=True)
        ax.plot(rows[target], rows[metric], marker, label=f"{kind}s", **style)
        r[kind] = found["pearson"].iloc[0]
    ax.xaxis.set_major_locator(MaxNLocator(3))
    return r


def correlation_summary(table, target="mse_p"):
    """Draw the correlation of each metric with the distance from the truth, with its interval.

    Parameters
    ----------
    table : DataFrame
        From `probnb.chapters.metrics.study.correlations`; several kinds of models may be stacked.
    target : {"mse_p", "kl_p"}, default="mse_p"
        The distance from the truth.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a scenario. For AUC, 1 - AUC is shown, so that to the right is better for every
        metric.
    """
    rows = table[table["target"] == target]
    scenarios, metrics = rows["scenario"].unique(), table["metric"].unique()
    _, axes = grid(len(scenarios), columns=5, size=(1.75, 3.4), sharex=True, sharey=True)
    kinds = [kind for kind in _KINDS if kind in set(rows["kind"])]
    for ax, scenario in zip(axes, scenarios):
        for k, kind in enumerate(kinds):
            part = rows[(rows["scenario"] == scenario) & (rows["kind"] == kind)]
            part = part.set_index("metric").reindex(metrics)
            sign = np.array([oriented(metric)[0] for metric in metrics])
            r, ends = sign * part["pearson"], sign * part[["low", "high"]].to_numpy().T
            height = np.arange(len(metrics)) + 0.24 * (k - (len(kinds) - 1) / 2)
            colour, marker, _ = _KINDS[kind]
            colour = "0.35" if colour == "grey" else COLOURS[colour]
            ax.hlines(height, ends.min(axis=0), ends.max(axis=0), color=colour, lw=1.3)
            ax.plot(r, height, marker if marker != "." else "s", ms=4, color=colour, label=kind)
        ax.axvline(0, color=COLOURS["grey"], lw=0.8)
        ax.set_title(scenario.capitalize(), fontsize=10)
        ax.set(xlim=(-1.05, 1.08), xticks=[-1, 0, 1])
        ax.set_xlabel(f"r with {_label(target)}", fontsize=9)
    axes[0].set_yticks(np.arange(len(metrics)), [oriented(metric)[1] for metric in metrics])
    axes[0].set_ylim(len(metrics) - 0.4, -0.6)
    words = {"epoch": "epochs", "method": "methods", "paper": "the paper's tables"}
    handles, kinds_shown = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(
        handles, [words[kind] for kind in kinds_shown], loc="outside upper center", ncols=3
    )
    return axes
