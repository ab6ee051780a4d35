"""The look shared by every figure: seaborn's theme and colour-blind palette on a white background.

Figures are drawings (SVG) in a notebook, about 7.5 inches wide for a column of 720 pixels, and
their background is opaque, so that they read the same on a light and on a dark page.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator
from torchvision.utils import make_grid

_NAMES = "blue, orange, green, vermilion, purple, brown, pink, grey, yellow, sky"

COLOURS = {
    **dict(zip(_NAMES.split(", "), sns.color_palette("colorblind").as_hex())),
    "grey": "#7f7f7f",  # seaborn's is too light for a thin line
    "black": "#000000",
}
"""seaborn's colour-blind palette by name, with black and a grey for diagonals and references."""

CYCLE = ("blue", "vermilion", "green", "orange", "purple", "sky")
"""Order in which lines take their colours; the first ones differ most in lightness too."""


def use_style():
    """Set seaborn's theme, and SVG in a notebook: call once at its head."""
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=[COLOURS[name] for name in CYCLE],
        font_scale=0.85,
        rc={
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": "0.3",
            "axes.titlesize": 11,
            "grid.color": "0.92",
            "legend.frameon": False,
            "figure.figsize": (7.2, 4.0),
            "savefig.dpi": 150,  # of what is rasterised within a drawing: clouds of points
            "svg.hashsalt": "probnb",  # the same figure, the same file
        },
    )
    if "ipykernel" in sys.modules:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg")


def plain_ticks(axis, ticks=None):
    """Put plain numbers on a logarithmic axis: 1, 2 and 5 of each decade, or those given."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if ticks is None else FixedLocator(ticks))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def grid(panels, columns=3, size=(2.4, 2.4), **kwargs):
    """Return a figure in constrained layout and its first `panels` axes, row by row.

    For panels that seaborn's `FacetGrid` cannot make of one long table; `kwargs` go to
    `matplotlib.pyplot.subplots`. Figures are at most 7.5 inches wide: wider ones would be shrunk
    to the page, and their writing with them.
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    width = min(size[0] * columns, 7.5)
    size = (width, size[1] * rows * width / (size[0] * columns))
    kwargs |= {"figsize": size, "layout": "constrained", "squeeze": False}
    figure, axes = plt.subplots(rows, columns, **kwargs)
    for ax in axes.flat[panels:]:
        ax.remove()
    return figure, list(axes.flat[:panels])


def face_grid(images, ages=None, columns=8):
    """Show images side by side, each with the age beneath it.

    Parameters
    ----------
    images : torch.Tensor or ndarray of shape (n, 3, height, width)
        uint8, RGB.
    ages : array-like of shape (n,), optional
        Ages in years, written into the corner of the images.
    columns : int, default=8
        Images per row.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.
    """
    images = torch.as_tensor(np.asarray(images))
    n, _, height, width = images.shape
    columns, gap = min(columns, n), max(1, width // 16)
    sheet = make_grid(images, columns, gap, pad_value=255).permute(1, 2, 0)
    _, ax = plt.subplots(figsize=(7.2, 7.2 * sheet.shape[0] / sheet.shape[1]))
    for i, age in enumerate([] if ages is None else ages):
        place = i % columns * (width + gap) + gap, i // columns * (height + gap) + gap
        ax.annotate(f"{int(age)}", place, fontsize=8, va="top",
                    bbox={"facecolor": "white", "alpha": 0.75, "pad": 1, "lw": 0})  # fmt: skip
    ax.imshow(sheet, interpolation="nearest")
    ax.set_axis_off()
    return ax
