"""The look shared by every figure: colours, sizes and a background that any theme can carry.

Colours are Okabe and Ito's, told apart by every common form of colour-blindness. Figures have an
opaque white background, so that they read the same on a light and on a dark page.
"""

from __future__ import annotations

import matplotlib.pyplot as plt

__all__ = ["COLOURS", "CYCLE", "grid", "use_style"]

COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "black": "#000000",
    "grey": "#7F7F7F",
}
"""Okabe-Ito palette by name, with a grey for diagonals and references."""

CYCLE = ("blue", "vermilion", "green", "orange", "purple", "sky")
"""Order in which lines take their colours."""


def use_style():
    """Set matplotlib's defaults for the book: call once at the head of a notebook."""
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 110,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "savefig.bbox": "tight",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "font.size": 10,
            "axes.prop_cycle": plt.cycler(color=[COLOURS[c] for c in CYCLE]),
        }
    )


def grid(panels, columns=3, size=(3.0, 2.8), **kwargs):
    """Make a grid of axes for `panels` panels; axes that stay empty are removed.

    Parameters
    ----------
    panels : int
        How many axes are needed.
    columns : int, default=3
        At most this many side by side.
    size : (float, float), default=(3.0, 2.8)
        Width and height of one panel in inches.
    **kwargs
        Passed to `matplotlib.pyplot.subplots`.

    Returns
    -------
    figure : matplotlib.figure.Figure
        The figure, in constrained layout.
    axes : list of matplotlib.axes.Axes
        The first `panels` axes, row by row.
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(size[0] * columns, size[1] * rows),
        layout="constrained",
        squeeze=False,
        **kwargs,
    )
    for ax in axes.flat[panels:]:
        ax.remove()
    return figure, list(axes.flat[:panels])
