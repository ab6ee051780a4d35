"""Reliability diagrams: what came true among the cases with about the same prediction."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from sklearn.isotonic import IsotonicRegression

from ..metrics.binning import reliability_bins
from ..metrics.differences import proportion_interval
from ..metrics.registry import brier
from ..validation import check_pair, check_probabilities, check_same_length
from .style import COLOURS

STRIP = 0.16  # height of the histogram's strip below 0, in units of the vertical axis
MAX_POINTS = 5000  # of a scatter: more only darken it


def reliability_diagram(
    y_true, y_prob, ax=None, bins=15, interval=True, corp=False, p=None, weights=None
):
    """Mean outcome against mean prediction, by quantile bin of the predictions.

    The strip below 0 shows how often each prediction occurs.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,)
        Outcomes, 0 or 1, and predicted probabilities of outcome 1.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    bins : int, default=15
        Number of bins with equally many rows; equal predictions share a bin.
    interval : bool, default=True
        Whether to draw Clopper and Pearson's 95 % interval about each bin's mean outcome.
    corp : bool, default=False
        Whether to add the isotonic regression of the outcomes on the predictions, which needs no
        bins: Dimitriadis, Gneiting and Jordan (2021), "Stable reliability diagrams for
        probabilistic classifiers".
    p : array-like of shape (n,), optional
        True probabilities: each row is drawn as a point, as in the paper's figure of overfitting
        (at most 5,000 rows, evenly spaced over the order of the predictions).
    weights : array-like of shape (n,), optional
        Weight of each row; bars are then those of Kish's effective number of rows.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with equal scales. Markers' areas are in proportion to the rows of the bins.

    Examples
    --------
    >>> ax = reliability_diagram([0, 1, 0, 1], [0.2, 0.2, 0.7, 0.9], bins=2)
    >>> ax.get_ylabel()
    'Observed frequency'
    """
    y, p_hat = check_pair(y_true, y_prob)
    ax = plt.subplots(figsize=(4.2, 4.6), layout="constrained")[1] if ax is None else ax
    table = reliability_bins(y, p_hat, bins, weights)
    ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1, zorder=1)
    ax.set(xlabel="Predicted probability", ylabel="Observed frequency", aspect="equal")
    ax.set(xlim=(-0.02, 1.02), ylim=(-STRIP - 0.03, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    if p is not None:
        p = check_probabilities(p, "p")
        check_same_length(p, p_hat, ("p", "y_prob"))
        rows = np.argsort(p_hat)[np.linspace(0, len(p) - 1, min(len(p), MAX_POINTS)).astype(int)]
        style = {"color": COLOURS["blue"], "linewidth": 0, "zorder": 2}
        ax.scatter(p_hat[rows], p[rows], s=4, alpha=0.2, rasterized=True, gid="truth", **style)
        ax.scatter([], [], s=14, alpha=0.8, label="true probability", **style)  # for the legend
    share, edges = np.histogram(p_hat, (np.arange(42) - 0.5) / 40, weights=weights)
    share = share / share.max() * (STRIP - 0.03)
    ax.axhline(0, color=COLOURS["grey"], linewidth=0.8, zorder=1)
    ax.bar(edges[:-1], share, 0.025, -STRIP - 0.01, align="edge", color="black", alpha=0.35)
    if corp:
        curve = IsotonicRegression(y_min=0, y_max=1).fit(p_hat, y, sample_weight=weights)
        ax.plot(curve.X_thresholds_, curve.y_thresholds_, color=COLOURS["vermilion"], lw=1.4,
                alpha=0.8, zorder=2.5, label="isotonic (no bins)")  # fmt: skip
    x, observed = table.mean_prediction, table.mean_outcome
    if interval:
        rows = np.maximum(table.effective, 1)  # against rounding, as in the next line
        low, high = proportion_interval(np.clip(observed, 0, 1) * rows, rows)
        bars = [np.maximum(observed - low, 0), np.maximum(high - observed, 0)]
        ax.errorbar(x, observed, bars, fmt="none", ecolor="black", elinewidth=1.2, alpha=0.75)
    ax.plot(x, observed, color="black", lw=1.2, zorder=3)
    size = 26 * table.weight / table.weight.mean()
    ax.scatter(x, observed, s=size, color="black", edgecolor="white", linewidth=0.6, zorder=4)
    ax.plot([], [], "o-", color="black", ms=4, lw=1.2, label="observed, by bin")
    return ax


def reliability_grid(y_true, predictions, p=None, columns=4, weights=None, **kwargs):
    """Reliability diagrams of many methods, one panel each, on common scales.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    predictions : mapping of str to array-like of shape (n,), or DataFrame
        Predicted probabilities of outcome 1 by method.
    p : array-like of shape (n,), optional
        True probabilities, drawn as points.
    columns : int, default=4
        At most this many panels side by side.
    weights : array-like of shape (n,), optional
        Weight of each row.
    **kwargs
        Passed to `reliability_diagram`.

    Returns
    -------
    list of matplotlib.axes.Axes
        One per method, titled with its name and Brier score.

    Examples
    --------
    >>> axes = reliability_grid([0, 1], {"a": [0.2, 0.6], "b": [0.5, 0.5]})
    >>> axes[1].get_title(loc="left").split()
    ['b', 'Brier', '0.250']
    """
    rows = -(-len(predictions.keys()) // columns)
    columns = -(-len(predictions.keys()) // rows)  # as few rows, evenly filled
    width = min(7.4 / columns, 2.5)
    frame, height = pd.DataFrame({"method": list(predictions.keys())}), 1.3 * width
    facets = sns.FacetGrid(frame, col="method", col_wrap=columns, height=height, aspect=1 / 1.3)
    facets.set_titles("")
    for name, ax in facets.axes_dict.items():
        p_hat = predictions[name]
        reliability_diagram(y_true, p_hat, ax=ax, p=p, weights=weights, **kwargs)
        title = f"{name}\nBrier {brier(y_true, p_hat, weights):.3f}".replace("$", r"\$")
        ax.set_title(title, loc="left", fontsize=9)
        ax.set(xlabel="", ylabel="")
    figure, (handles, labels) = facets.figure, ax.get_legend_handles_labels()
    figure.set_layout_engine("constrained")
    figure.supxlabel("Predicted probability", fontsize=10)
    figure.supylabel("Observed frequency", fontsize=10)
    if len(labels) > 1:  # above the panels, where it hides nothing
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    return list(facets.axes_dict.values())
