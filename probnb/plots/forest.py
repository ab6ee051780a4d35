"""The one picture of differences: a point and an interval a line, and where nothing differs."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from .style import COLOURS, CYCLE


def forest(table, label="label", hue=None, scale=100, xlabel=None, ax=None):
    """Draw differences with their intervals, one line a row of the table.

    Parameters
    ----------
    table : DataFrame
        Columns ``value``, ``low``, ``high`` and ``seeds`` (see `probnb.metrics.Difference`), the
        column `label` and that of `hue`. Lines of one label share a place.
    label : str, default="label"
        Column whose values name the places, from the top.
    hue : str, optional
        Column whose values are told apart by colour and marker.
    scale : float, default=100
        What the numbers are multiplied by.
    xlabel : str, optional
        What was subtracted from what, with its unit.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure as tall as the table needs.

    Returns
    -------
    matplotlib.axes.Axes
        With hollow marks for single trainings, whose intervals are about their test rows alone.
    """
    places = list(dict.fromkeys(table[label]))
    series = [None] if hue is None else list(dict.fromkeys(table[hue]))
    if ax is None:
        height = 0.8 + 0.16 * len(places) * max(2, len(series))
        _, ax = plt.subplots(figsize=(7, height), layout="constrained")
    ax.axvline(0, color=COLOURS["black"], linewidth=0.8, zorder=1)
    offsets = np.linspace(-0.28, 0.28, len(series)) if len(series) > 1 else [0]
    for k, (name, offset) in enumerate(zip(series, offsets)):
        part = table if name is None else table[table[hue] == name]
        y = np.array([places.index(place) for place in part[label]]) + offset
        value, low, high = (scale * part[c].to_numpy(float) for c in ("value", "low", "high"))
        colour, single = COLOURS[CYCLE[k % len(CYCLE)]], (part["seeds"] == 1).to_numpy()
        ax.hlines(y, low, high, color=colour, linewidth=1.6)
        for alone in (False, True):
            rows = single == alone
            told = None if pd.isna(name) or (alone and not single.all()) else str(name)
            face = "white" if alone else colour
            marks, marker = (value[rows], y[rows]), "osD^vP"[k % 6]
            ax.plot(*marks, marker, color=colour, mfc=face, ms=5.5, label=told)
    ax.set_yticks(range(len(places)), places)
    ax.set_ylim(len(places) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(xlabel or f"difference (× {scale:g})")
    if hue is not None:
        ax.legend(title=None, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return ax
