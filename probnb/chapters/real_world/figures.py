"""Figures of the chapter on real data."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from ...methods import METHODS
from ...metrics import reliability_bins
from ...plots.reliability import reliability_grid
from ...plots.style import COLOURS, CYCLE, grid
from .words import scenario_probabilities

__all__ = [
    "correspondence_figure",
    "gap_figure",
    "group_figure",
    "labelled",
    "rain_figure",
    "summary_figure",
]

RAIN = LinearSegmentedColormap.from_list(
    "rain", ["#FFFFFF", COLOURS["sky"], COLOURS["blue"], COLOURS["purple"], COLOURS["vermilion"]]
)


def labelled(predictions):
    """Return predictions under the labels of their methods, as figures show them."""
    return {
        METHODS[name].label if name in METHODS else name: values
        for name, values in dict(predictions).items()
    }


def rain_figure(splits, examples=4):
    """Draw windows of the test part: three maps in a row and what came of it."""
    test = splits.test
    chosen = np.linspace(0, len(test) - 1, 2 * examples + 1).astype(int)[1::2]
    figure, axes = grid(3 * examples, columns=3, size=(1.9, 1.5))
    for row, index in enumerate(chosen):
        maps = np.asarray(test.inputs[index : index + 1])[0]
        rate = (np.exp(maps / 255 * np.log1p(1e4)) - 1) / 100
        for column, values in enumerate(rate):
            ax = axes[3 * row + column]
            image = ax.imshow(np.log10(values + 0.01), cmap=RAIN, vmin=-2, vmax=1.5, origin="lower")
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
            if row == 0:
                ax.set_title(("20 minutes before", "10 minutes before", "last map")[column])
        verdict = "more" if float(test.outcomes[index]) else "less"
        axes[3 * row].set_ylabel(f"{test.groups[index]}\nthen {verdict} rain", fontsize=8)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, ticks=[-2, -1, 0, 1], label="Rain (mm/h)")
    bar.ax.set_yticklabels(["0", "0.1", "1", "10"])
    return axes


def summary_figure(table, columns):
    """Draw the paper's reliability panel of a task: CE, CaPE and the best of the others.

    Parameters
    ----------
    table : pandas.DataFrame
        Test rows with outcomes, groups and predictions.
    columns : list of str
        Methods, one panel each.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a method; bars are intervals over groups, not over rows.
    """
    optional = {k: table[c] for k, c in (("p", "p"), ("weights", "weight")) if c in table}
    shown = labelled(table[columns])
    axes = reliability_grid(table["y"], shown, columns=3, interval=False, **optional)
    for ax, name in zip(axes, columns):
        _group_bars(ax, table, name)
    return axes


def _group_bars(ax, table, name, replicates=200):
    """Spread of each bin's mean outcome when whole groups are drawn again."""
    weights = table["weight"].to_numpy() if "weight" in table else np.ones(len(table))
    found = reliability_bins(table["y"], table[name], weights=weights)
    row, bins = found.assign(table[name].to_numpy()), len(found.mean_prediction)
    names, group = np.unique(table["group"], return_inverse=True)
    rng, means = np.random.default_rng(0), []
    for _ in range(replicates):
        drawn = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
        weight = drawn[group] * weights
        total = np.bincount(row, weight, bins)
        positive = np.bincount(row, weight * table["y"], bins)
        means.append(np.where(total > 0, positive / np.maximum(total, 1e-300), np.nan))
    ends = np.nanpercentile(means, [2.5, 97.5], axis=0)
    ax.vlines(found.mean_prediction, *ends, color=COLOURS["grey"], lw=1.2, zorder=2)


def correspondence_figure(predictions, task, measured, weights=None):
    """Draw the predictions of a task beside the probabilities of the synthetic scenarios.

    Parameters
    ----------
    predictions : array-like of shape (n,)
        Predicted probabilities of one method on the test rows.
    task : Task
        The task; its scenario is the one that the paper names.
    measured : pandas.DataFrame
        From `words.correspondence`.
    weights : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    list of matplotlib.axes.Axes
        Histograms of the task and of its scenario; cumulative distributions of all.
    """
    predictions, scenarios = np.asarray(predictions), scenario_probabilities()
    weights = np.ones(len(predictions)) if weights is None else np.asarray(weights)
    _, axes = grid(2, columns=2, size=(4.0, 3.0))
    edges = np.linspace(0, 1, 26)
    axes[0].hist(
        [predictions, scenarios[task.scenario]],
        edges,
        weights=[weights, np.ones(len(scenarios[task.scenario]))],
        density=True,
        histtype="stepfilled",
        alpha=0.45,
        color=[COLOURS["blue"], COLOURS["vermilion"]],
        label=[f"{task.name}: predictions", f"{task.scenario.capitalize()}: probabilities"],
    )
    axes[0].set(xlabel="Probability", ylabel="Density")
    x = np.linspace(0, 1, 401)
    axes[1].plot(x, _below(predictions, x, weights), color="black", lw=2.4, label=task.name)
    styles = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
    for name, colour, style in zip(measured.index, CYCLE, styles):
        label = f"{name.capitalize()} ({measured.loc[name, 'distance']:.2f})"
        axes[1].plot(
            x, _below(scenarios[name], x), ls=style, color=COLOURS[colour], lw=1.6, label=label
        )
    axes[1].set(xlabel="Probability", ylabel="Share of rows below")
    axes[1].legend(title="Mean distance", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return axes


def _below(values, x, weights=None):
    order = np.argsort(values)
    weights = np.ones(len(values)) if weights is None else weights[order]
    below = np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum()
    return below[np.searchsorted(values[order], x, side="right")]


def group_figure(table, columns, task):
    """Draw the Brier score of each group, the largest groups only, one mark a method."""
    largest = table["group"].value_counts().index[:15]
    largest = sorted(largest)
    _, (ax,) = grid(1, columns=1, size=(7.0, 3.0))
    marks = ("o", "s", "^", "D", "v", "P")
    for name, colour, mark in zip(columns, ("black", *CYCLE), marks):
        squares = (table[name] - table["y"]) ** 2
        means = squares.groupby(table["group"]).mean().reindex(largest)
        ax.plot(
            range(len(largest)),
            100 * means,
            mark,
            color=COLOURS.get(colour, colour),
            label=labelled({name: 0}).popitem()[0],
            mfc="none" if name not in METHODS else None,
        )
    sizes = table["group"].value_counts()
    ax.set_xticks(
        range(len(largest)), [f"{g}\n{sizes[g]:,}" for g in largest], fontsize=7, rotation=0
    )
    ax.set(xlabel=f"{task.cluster.capitalize()}, and its rows", ylabel="Brier score ×100")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return [ax]


def gap_figure(result, reference="ce", metric="brier"):
    """Draw the difference of every method to one of them, with intervals over whole groups."""
    names = [name for name in result.point.index if name != reference]
    rows = [result.difference(name, reference).loc[metric] for name in names]
    _, (ax,) = grid(1, columns=1, size=(6.4, 0.28 * len(names) + 1.0))
    for height, row in enumerate(rows[::-1]):
        sure = row["low"] > 0 or row["high"] < 0
        colour = COLOURS["vermilion"] if row["difference"] > 0 else COLOURS["blue"]
        ends = [[100 * row["low"], 100 * row["high"]], [height, height]]
        ax.plot(*ends, color=colour, lw=1.6)
        ax.plot(100 * row["difference"], height, "o", color=colour, mfc=colour if sure else "white")
    ax.axvline(0, color=COLOURS["grey"], lw=1)
    ax.set_yticks(range(len(names)), [*labelled(dict.fromkeys(names))][::-1])
    ax.set(xlabel=f"Brier score less {METHODS[reference].label} (×100); filled: interval without 0")
    return [ax]
