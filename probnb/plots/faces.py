"""A contact sheet of faces."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch

__all__ = ["face_grid"]


def face_grid(images, ages=None, columns=8, ax=None):
    """Show images side by side, each with the age beneath it.

    Parameters
    ----------
    images : torch.Tensor or ndarray of shape (n, 3, height, width)
        uint8, RGB.
    ages : array-like of shape (n,), optional
        Ages in years, written into the corner of the images.
    columns : int, default=8
        Images per row.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.
    """
    images = torch.as_tensor(np.asarray(images)).numpy()
    n, _, height, width = images.shape
    columns = min(columns, n)
    rows = -(-n // columns)
    if ax is None:
        _, ax = plt.subplots(figsize=(7.2, 7.2 * rows * height / (columns * width)))
    gap = max(1, width // 16)
    sheet = np.full((rows * (height + gap), columns * (width + gap), 3), 255, np.uint8)
    for i, image in enumerate(images):
        top, left = i // columns * (height + gap), i % columns * (width + gap)
        sheet[top : top + height, left : left + width] = image.transpose(1, 2, 0)
        if ages is not None:
            ax.text(
                left + 0.04 * width,
                top + 0.04 * height,
                f"{int(ages[i])}",
                fontsize=8,
                ha="left",
                va="top",
                bbox={"facecolor": "white", "alpha": 0.75, "pad": 1, "lw": 0},
            )
    ax.imshow(sheet, interpolation="nearest")
    ax.set_axis_off()
    return ax
