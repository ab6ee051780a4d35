"""Figures of the chapter on real data."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.colors import LinearSegmentedColormap

from ...data import Bags
from ...data.dashcam import DashcamInputs
from ...data.rain import encode
from ...plots import COLOURS, forest, grid, reliability_grid
from .study import label_of

RAIN = LinearSegmentedColormap.from_list(
    "rain", ["#FFFFFF", *(COLOURS[c] for c in ("sky", "blue", "purple", "vermilion"))]
)


def input_figure(splits):
    """Draw some inputs, where they may be shown: rain, and simulated traffic."""
    inputs = splits.test.inputs
    if isinstance(inputs, DashcamInputs):
        return _frames(splits) if splits.known else None
    return None if isinstance(inputs, Bags) or len(inputs.shape) != 4 else _maps(splits)


def _maps(splits, examples=3):
    """Windows of the test part: three maps in a row and what came of it."""
    test = splits.test
    chosen = np.linspace(0, len(test) - 1, 2 * examples + 1).astype(int)[1::2]
    figure, axes = grid(3 * examples, columns=3, size=(1.9, 1.5))
    for place, index in enumerate(chosen):
        row = axes[3 * place : 3 * place + 3]
        for ax, values in zip(row, np.asarray(test.inputs[[index]])[0]):
            image = ax.imshow(values, cmap=RAIN, vmin=0, vmax=encode(30), origin="lower")
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
        verdict = "more" if float(test.outcomes[index]) else "less"
        row[0].set_ylabel(f"{test.groups[index]}\nthen {verdict} rain", fontsize=8)
    for ax, title in zip(axes, ("20 minutes before", "10 minutes before", "last map")):
        ax.set_title(title)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, label="Rain (mm/h)")
    bar.set_ticks(encode([0, 0.1, 1, 10]), labels=["0", "0.1", "1", "10"])
    return axes


def _frames(splits, examples=4):
    """The latest frame and the box of some vehicles, from the least to the most dangerous."""
    train = splits.train
    p, y = train.probabilities.cpu().numpy(), train.outcomes.cpu().numpy()
    rows = [int(np.abs(p - goal).argmin()) for goal in np.linspace(0.03, 0.97, examples)]
    _, axes = grid(examples, columns=2, size=(3.6, 1.7))
    for ax, image, row in zip(axes, np.asarray(train.inputs[rows]), rows):
        ax.imshow(image[:3].transpose(1, 2, 0), interpolation="nearest", aspect="equal")
        ax.contour(image[9], levels=[127], colors=COLOURS["yellow"], linewidths=1.4)
        happened = "collides" if y[row] else "does not collide"
        ax.set_title(f"p = {p[row]:.2f}: {happened}", fontsize=10)
        ax.set_axis_off()
    return axes


def reliability_figure(table, names):
    """Draw reliability diagrams; without bars, since rows of a cluster are not independent."""
    shown = {label_of(name): table[name] for name in names if name in table}
    given = {k: table[c] for k, c in (("p", "p"), ("weights", "weight")) if c in table}
    return reliability_grid(table["y"], shown, columns=3, interval=False, **given)


def group_figure(table, names, cluster):
    """Draw the Brier score of the largest groups, a mark a method, in the order of their names."""
    sizes = table["group"].value_counts()
    largest = sorted(sizes.index[:12])
    scores = 100 * table[[n for n in names if n in table]].sub(table["y"], axis=0) ** 2
    means = scores.rename(columns=label_of).groupby(table["group"]).mean().loc[largest]
    _, ax = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    sns.scatterplot(means, s=60, ax=ax)
    ax.set_xticks(range(len(largest)), [f"{g[-5:]}\n{sizes[g]:,}" for g in largest])
    ax.set(xlabel=f"{cluster.capitalize()}, and its rows", ylabel="Brier score (× 100)")
    sns.move_legend(ax, "lower center", bbox_to_anchor=(0.5, 1), ncols=4, title=None)
    return ax


def stage_figure(stages):
    """Draw predictions by stage as medians and quartiles, beside what was observed."""
    stages = stages[stages["stage"] != "unknown"]
    names = {name: f"{label_of(name)} (quartiles)" for name in stages["method"]}
    method = stages["method"].map({**names, "observed": "observed (Kaplan-Meier, 95 %)"})
    place = [f"{s} ({n:,} patients)" for s, n in zip(stages["stage"], stages["patients"])]
    shown = stages.assign(method=method, label=place, seeds=0)
    return forest(shown, hue="method", xlabel="alive at 60 months, in per cent")
