"""What a model looks at, for the chapter on your own images: maps of what covering a place does."""

from itertools import product

import numpy as np

from probnb.images.model import map_input
from probnb.plots import grid
from probnb.validation import check_integer

GRID = 8
"""Places along each side that are covered in turn, each with half of its neighbours."""


def surest(p, n=12):
    """Return the rows of the n most sure and of the n least sure predictions, no row in both.

    Examples
    --------
    >>> [rows.tolist() for rows in surest(np.array([0.5, 0.9, 0.02, 0.6]), n=1)]
    [[2], [0]]
    """
    order = np.argsort(-np.abs(p - 0.5), kind="stable")
    n = min(check_integer(n, "n"), len(p) // 2)
    return order[:n], order[::-1][:n]


def occlusion(model, images, device="auto", side=GRID):
    """How much of the log-odds an image loses where a square of it is covered by its mean colour.

    Parameters
    ----------
    model : probnb.images.model.KeptModel
        One of images, of a pretrained network's features too: it is only asked to predict.
    images : array-like of shape (n, channels, size, size)
        uint8.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.
    side : int, default=8
        Places along each side; a square is twice as wide, cut at the edges.

    Returns
    -------
    ndarray of shape (n, side, side)
        Log-odds before calibration, of the image as it is less those with the square covered:
        above 0 where what is seen there speaks for outcome 1.

    Notes
    -----
    Zeiler and Fergus (2014), "Visualizing and understanding convolutional networks".
    """
    images, maps = np.asarray(images), []
    edges = np.linspace(0, images.shape[-1], 2 * side + 1).round().astype(int)
    spans = [slice(edges[max(2 * k - 1, 0)], edges[min(2 * k + 3, 2 * side)]) for k in range(side)]
    for image in images:
        several = np.repeat(image[None], side**2 + 1, axis=0)
        for k, (rows, columns) in enumerate(product(spans, spans), 1):
            several[k, :, rows, columns] = image.mean((1, 2), keepdims=True).round()
        s = np.diff(map_input(model.logits(several, device)), axis=1)[:, 0]
        maps.append((s[0] - s[1:]).reshape(side, side))
    return np.array(maps)


def look_inside(model, data, p, rows, device="auto"):
    """Show some images, each beside its `occlusion`, with its probability and outcome.

    Parameters
    ----------
    model : probnb.images.model.KeptModel
        One of images.
    data : probnb.data.ProbabilityData
        Images and outcomes.
    p : array-like of shape (n,)
        Predicted probabilities.
    rows : array-like of int
        Which.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.

    Returns
    -------
    list of matplotlib.axes.Axes
        Two for each image; the maps have one scale, the same on both sides of 0.
    """
    some, height = data.take(rows), 1.2 + 0.6 / -(-len(rows) // 4)  # the bar takes its part
    images = np.asarray(some.inputs)
    maps = occlusion(model, images, device)
    figure, axes = grid(2 * len(rows), 8, (0.93, height))
    most = np.abs(maps).max() or 1.0
    for k, row in enumerate(rows):
        told = f"p {p[row]:.2f}, outcome {some.outcomes[k]:.0f}"
        axes[2 * k].imshow(images[k].transpose(1, 2, 0))
        axes[2 * k].set_title(told, fontsize=8, loc="left")
        drawn = axes[2 * k + 1].imshow(maps[k], "vlag", vmin=-most, vmax=most)
    for ax in axes:
        ax.set(xticks=[], yticks=[])
    label = "log-odds lost when covered"
    figure.colorbar(drawn, ax=axes, location="bottom", shrink=0.4, aspect=30, label=label)
    return axes
