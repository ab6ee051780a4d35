"""Figures of the collision task: what goes in, and predictions against the known probability."""

from __future__ import annotations

import numpy as np

from ...methods import METHODS
from ...plots.style import COLOURS, CYCLE, grid

__all__ = ["frames_figure", "truth_figure"]

SHOWN = ("ce", "cape_bin", "cape_kernel", "resampled")
REFERENCES = ("Time to collision", "Boxes, boosted trees")


def frames_figure(splits, examples=4):
    """Draw the latest frame and the box of some vehicles, from the least to the most dangerous.

    Parameters
    ----------
    splits : probnb.data.base.Splits
        Simulated scenes.
    examples : int, default=4
        Vehicles, one from each equal share of the colliding and near-colliding ones.

    Returns
    -------
    list of matplotlib.axes.Axes
        One a vehicle; the title has p, and what happened.
    """
    train = splits.train
    p, y = train.probabilities.cpu().numpy(), train.outcomes.cpu().numpy()
    rows = [int(np.abs(p - goal).argmin()) for goal in np.linspace(0.03, 0.97, examples)]
    pixels = np.asarray(train.inputs[rows])
    _, axes = grid(examples, columns=2, size=(3.6, 1.7))
    for ax, image, row in zip(axes, pixels, rows):
        ax.imshow(image[:3].transpose(1, 2, 0), interpolation="nearest", aspect="equal")
        ax.contour(image[9], levels=[127], colors=COLOURS["yellow"], linewidths=1.4)
        happened = "collides" if y[row] else "does not collide"
        ax.set_title(f"p = {p[row]:.2f}: {happened}", fontsize=10)
        ax.set_axis_off()
    return axes


def truth_figure(table, bins=10):
    """Draw the known probability against what was predicted.

    Parameters
    ----------
    table : pandas.DataFrame
        Test rows with ``p`` and a column for each method and reference.
    bins : int, default=10
        Equal shares of the rows, by prediction.

    Returns
    -------
    list of matplotlib.axes.Axes
        Left, mean p within bins of the prediction, for the methods that are there; the line at 45
        degrees is a perfect estimate on average. Right, the share of rows below each probability.
    """
    _, (left, right) = grid(2, columns=2, size=(3.6, 3.2))
    names = [name for name in (*SHOWN, *REFERENCES) if name in table]
    for name, colour in zip(names, CYCLE):
        order = np.argsort(table[name].to_numpy(), kind="stable")
        cut = [rows for rows in np.array_split(order, bins) if len(rows)]
        x = [table[name].to_numpy()[rows].mean() for rows in cut]
        y = [table["p"].to_numpy()[rows].mean() for rows in cut]
        label = METHODS[name].label if name in METHODS else name
        left.plot(x, y, ".-", color=COLOURS[colour], label=label, lw=1.2)
        right.plot(*_below(table[name]), color=COLOURS[colour], lw=1.2)
    left.plot([0, 1], [0, 1], color=COLOURS["grey"], lw=0.8, ls=":")
    left.set(xlabel="predicted probability", ylabel="mean known probability", ylim=(-0.02, 1.02))
    left.legend(fontsize=8)
    right.plot(*_below(table["p"]), color=COLOURS["black"], lw=1.6, label="known p")
    right.set(xlabel="probability", ylabel="share of vehicles below", ylim=(0, 1.02))
    right.legend(fontsize=8)
    return [left, right]


def _below(values):
    values = np.sort(np.asarray(values, float))
    return values, (np.arange(len(values)) + 1) / len(values)
