"""Figures of the chapter on your own images."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from ...methods import METHODS
from ...plots.style import COLOURS, face_grid


def learning_curve_figure(points, differences, choice):
    """Draw what more training images bring, beside what the best other row brings.

    Parameters
    ----------
    points, differences : DataFrame, dict of str to Difference
        From `probnb.chapters.images.study.learning_curve`.
    choice : DataFrame
        From `probnb.experiment.keep.choose_model`.

    Returns
    -------
    matplotlib.axes.Axes
        Test negative log-likelihood against the number of training images.
    """
    _, ax = plt.subplots(figsize=(5.6, 3.6))
    ends = np.abs(points[["low", "high"]].to_numpy().T - points["nll"].to_numpy())
    ax.errorbar(
        points["rows"], points["nll"], np.nan_to_num(ends), color=COLOURS["blue"], marker="o",
        capsize=3, label=METHODS["ce"].label,
    )  # fmt: skip
    others = [name for name in choice.index if name in differences]
    if others:
        value = points["nll"].iloc[-1] + differences[others[0]].value
        beside = 1.05 * points["rows"].iloc[-1]  # not on the bar
        label = f"{METHODS[others[0]].label}, the best other row"
        ax.plot(beside, value, "D", color=COLOURS["vermilion"], label=label)
    ax.set_xscale("log")
    ax.set_xticks(points["rows"], [f"{rows:,}" for rows in points["rows"]])
    ax.minorticks_off()
    ax.set(xlabel="training images (logarithmic)", ylabel="test NLL (nats); bars: 95 %")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return ax


def example_images(data, columns=12):
    """Show some images of each outcome, those of outcome 0 above; the outcome in the corner."""
    y = data.outcomes.cpu().numpy()
    some = np.concatenate([np.flatnonzero(y == outcome)[:columns] for outcome in (0, 1)])
    return face_grid(data.take(some).inputs, y[some].astype(int), columns=columns)
