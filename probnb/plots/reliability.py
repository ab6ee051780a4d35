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
from ..validation import check_pair, check_probabilities
from .style import COLOURS

__all__ = ["reliability_diagram", "reliability_grid"]

STRIP = 0.16  # height of the histogram's strip below 0, in units of the vertical axis
MAX_POINTS = 5000  # of a scatter: more only darken it


def reliability_diagram(
    y_true,
    y_prob,
    ax=None,
    bins=15,
    interval=True,
    level=0.95,
    histogram=True,
    corp=False,
    p=None,
    label=None,
    colour="black",
    weights=None,
):
    """Mean outcome against mean prediction, by quantile bin of the predictions.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,)
        Outcomes, 0 or 1, and predicted probabilities of outcome 1.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure. A second call adds a second method.
    bins : int, default=15
        Number of bins with equally many rows; equal predictions share a bin.
    interval : bool, default=True
        Whether to draw Clopper and Pearson's interval about each bin's mean outcome.
    level : float, default=0.95
        Coverage of the bars, in (0, 1).
    histogram : bool, default=True
        Whether the strip below 0 shows how often each prediction occurs.
    corp : bool, default=False
        Whether to add the isotonic regression of the outcomes on the predictions, which needs no
        bins: Dimitriadis, Gneiting and Jordan (2021), "Stable reliability diagrams for
        probabilistic classifiers".
    p : array-like of shape (n,), optional
        True probabilities: each row is drawn as a point, as in the paper's figure of overfitting
        (at most 5,000 rows, evenly spaced over the order of the predictions).
    label : str, optional
        Name in the legend.
    colour : str, default="black"
        Name from `probnb.plots.style.COLOURS`, or any colour of matplotlib.
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
    colour = COLOURS.get(colour, colour)
    table = reliability_bins(y, p_hat, bins, weights)
    first = _frame(ax, histogram)
    if p is not None:
        _scatter_truth(ax, p_hat, p)
    if histogram:
        _strip(ax, p_hat, colour, filled=first, weights=weights)
    if corp:
        curve = IsotonicRegression(y_min=0, y_max=1).fit(p_hat, y, sample_weight=weights)
        tint = COLOURS["vermilion"] if colour == COLOURS["black"] else colour
        ax.plot(curve.X_thresholds_, curve.y_thresholds_, color=tint, lw=1.4, alpha=0.8,
                zorder=2.5, label="isotonic (no bins)")  # fmt: skip
    x, observed = table.mean_prediction, table.mean_outcome
    if interval:
        rows = np.maximum(table.effective, 1)  # against rounding, as in the next line
        low, high = proportion_interval(np.clip(observed, 0, 1) * rows, rows, level)
        bars = [np.maximum(observed - low, 0), np.maximum(high - observed, 0)]
        ax.errorbar(x, observed, bars, fmt="none", ecolor=colour, elinewidth=1.2, alpha=0.75)
    ax.plot(x, observed, color=colour, lw=1.2, zorder=3)
    size = 26 * table.weight / table.weight.mean()
    ax.scatter(x, observed, s=size, color=colour, edgecolor="white", linewidth=0.6, zorder=4)
    ax.plot([], [], "o-", color=colour, ms=4, lw=1.2, label=label or "observed, by bin")
    if first:
        _note_counts(ax, table.count)
    if label or corp or p is not None:
        ax.legend(loc="upper left", handlelength=1.6, frameon=True, framealpha=0.8, edgecolor="w")
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
    facets = sns.FacetGrid(
        pd.DataFrame({"method": list(predictions.keys())}),
        col="method",
        col_wrap=columns,
        height=1.3 * width,
        aspect=1 / 1.3,
    )
    facets.set_titles("")
    for name, ax in facets.axes_dict.items():
        p_hat = predictions[name]
        reliability_diagram(y_true, p_hat, ax=ax, p=p, weights=weights, **kwargs)
        ax.texts[0].remove()
        if legend := ax.get_legend():
            legend.remove()
        title = f"{name}\nBrier {brier(y_true, p_hat, weights):.3f}".replace("$", r"\$")
        ax.set_title(title, loc="left", fontsize=9)
        ax.set(xlabel="", ylabel="", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    figure, (handles, labels) = facets.figure, ax.get_legend_handles_labels()
    figure.set_layout_engine("constrained")
    figure.supxlabel("Predicted probability", fontsize=10)
    figure.supylabel("Observed frequency", fontsize=10)
    if len(labels) > 1:  # above the panels, where it hides nothing
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    return list(facets.axes_dict.values())


def _frame(ax, histogram):
    """Draw the diagonal, limits and labels; return whether this is the first call on `ax`."""
    if ax.get_gid() == "reliability":
        return False
    ax.set_gid("reliability")
    ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1, zorder=1)
    ax.set(
        xlabel="Predicted probability",
        ylabel="Observed frequency",
        xlim=(-0.02, 1.02),
        ylim=(-STRIP - 0.03 if histogram else -0.02, 1.02),
        aspect="equal",
        xticks=np.linspace(0, 1, 6),
        yticks=np.linspace(0, 1, 6),
    )
    return True


def _scatter_truth(ax, p_hat, p):
    p = check_probabilities(p, "p")
    if len(p) != len(p_hat):
        raise ValueError(f"p and y_prob must have the same length; got {len(p)}, {len(p_hat)}.")
    order = np.argsort(p_hat)
    rows = order[np.linspace(0, len(p) - 1, min(len(p), MAX_POINTS)).astype(int)]
    style = {"color": COLOURS["blue"], "linewidth": 0, "zorder": 2}
    ax.scatter(p_hat[rows], p[rows], s=4, alpha=0.2, rasterized=True, gid="truth", **style)
    ax.scatter([], [], s=14, alpha=0.8, label="true probability", **style)  # for the legend


def _strip(ax, p_hat, colour, filled, weights=None):
    """A histogram of the predictions in the strip below 0, scaled to its height."""
    edges = (np.arange(42) - 0.5) / 40  # bars centred on 0, .025, ...
    share, edges = np.histogram(p_hat, edges, weights=weights)
    share = share / share.max() * (STRIP - 0.03)
    base = -STRIP - 0.01
    if filled:
        ax.axhline(0, color=COLOURS["grey"], linewidth=0.8, zorder=1)
        ax.bar(edges[:-1], share, np.diff(edges), base, align="edge", color=colour, alpha=0.35)
    else:
        ax.stairs(share + base, edges, baseline=base, color=colour, linewidth=1)


def _note_counts(ax, count):
    low, high = count.min(), count.max()
    rows = f"{low:,} to {high:,}" if high - low > 1 else f"{high:,}"
    rows = f"about {rows}" if high - low == 1 else rows
    text = f"{len(count)} bin{'s' if len(count) > 1 else ''} of {rows} row{'s' if high > 1 else ''}"
    ax.text(0, 1.01, text, transform=ax.transAxes, va="bottom", fontsize=9, color="0.35")
