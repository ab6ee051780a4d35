"""Reliability diagrams: what came true among the cases with about the same prediction."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.isotonic import IsotonicRegression

from ..metrics.binning import reliability_bins
from ..metrics.intervals import proportion_interval
from ..metrics.scores import brier
from ..validation import check_pair, check_probabilities
from .style import COLOURS, grid

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
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
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
        Whether to add the isotonic regression of the outcomes on the predictions, which needs
        no bins.
    p : array-like of shape (n,), optional
        True probabilities: each row is drawn as a point, as in the paper's figure of
        overfitting (at most 5,000 rows, evenly spaced over the order of the predictions).
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

    Raises
    ------
    ValueError
        If outcomes are not 0 or 1, probabilities are outside [0, 1], the lengths differ, or a
        setting is out of range.

    Notes
    -----
    The isotonic curve is that of Dimitriadis, Gneiting and Jordan (2021), "Stable reliability
    diagrams for probabilistic classifiers".

    Examples
    --------
    >>> ax = reliability_diagram([0, 1, 0, 1], [0.2, 0.2, 0.7, 0.9], bins=2)
    >>> ax.get_ylabel()
    'Observed frequency'
    """
    y, p_hat = check_pair(y_true, y_prob)
    ax = _new_axes() if ax is None else ax
    colour = COLOURS.get(colour, colour)
    table = reliability_bins(y, p_hat, bins, weights)
    first = _frame(ax, histogram)
    if p is not None:
        _scatter_truth(ax, p_hat, p)
    if histogram:
        _strip(ax, p_hat, colour, filled=first, weights=weights)
    if corp:
        _isotonic_curve(ax, y, p_hat, colour, weights)
    x, observed = table.mean_prediction, table.mean_outcome
    if interval:
        rows = np.maximum(table.effective, 1)  # against rounding, as in the next line
        low, high = proportion_interval(np.clip(observed, 0, 1) * rows, rows, level)
        bars = [np.maximum(observed - low, 0), np.maximum(high - observed, 0)]
        ax.errorbar(x, observed, bars, fmt="none", ecolor=colour, elinewidth=1.2, alpha=0.75)
    ax.plot(x, observed, color=colour, linewidth=1.2, zorder=3)
    size = 26 * table.weight / table.weight.mean()
    ax.scatter(x, observed, s=size, color=colour, edgecolor="white", linewidth=0.6, zorder=4)
    ax.plot([], [], "o-", color=colour, markersize=4, linewidth=1.2, label=label or "binned")
    if first:
        _note_counts(ax, table.count)
    if label or corp or p is not None:
        ax.legend(loc="upper left", handlelength=1.6, frameon=True, framealpha=0.8, edgecolor="w")
    return ax


def reliability_grid(
    y_true, predictions, p=None, columns=3, size=(2.6, 3.2), weights=None, **kwargs
):
    """Reliability diagrams of many methods, one panel each, on common scales.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    predictions : mapping of str to array-like of shape (n,), or DataFrame
        Predicted probabilities of outcome 1 by method.
    p : array-like of shape (n,), optional
        True probabilities, drawn as points.
    columns : int, default=3
        At most this many panels side by side.
    size : (float, float), default=(2.6, 3.2)
        Width and height of a panel in inches.
    weights : array-like of shape (n,), optional
        Weight of each row.
    **kwargs
        Passed to `reliability_diagram`.

    Returns
    -------
    list of matplotlib.axes.Axes
        One per method, titled with its name and Brier score.

    Raises
    ------
    ValueError
        As `reliability_diagram`.

    Examples
    --------
    >>> axes = reliability_grid([0, 1], {"a": [0.2, 0.6], "b": [0.5, 0.5]})
    >>> [ax.get_title(loc="left") for ax in axes]
    ['a', 'b']
    """
    names = list(predictions.keys())
    columns = -(-len(names) // -(-len(names) // columns))  # as few rows, more evenly filled
    _, axes = grid(len(names), columns=columns, size=size, sharex=True, sharey=True)
    for ax, name in zip(axes, names):
        p_hat = predictions[name]
        reliability_diagram(y_true, p_hat, ax=ax, p=p, weights=weights, **kwargs)
        ax.set_title(str(name).replace("$", r"\$"), loc="left", pad=16)
        if legend := ax.get_legend():
            legend.remove()
        note = next(text for text in ax.texts if text.get_gid() == "note")
        rows = note.get_text().replace(" to ", "–").removesuffix(" rows")
        note.set(text=f"Brier {brier(y_true, p_hat, weights):.3f} · {rows}", fontsize=8)
    figure, (handles, labels) = axes[0].figure, axes[0].get_legend_handles_labels()
    if len(labels) > 1:  # below the panels, where it hides nothing
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    for k, ax in enumerate(axes):
        if k % columns:
            ax.set_ylabel("")
        below = k + columns < len(axes)
        ax.tick_params(labelbottom=not below)
        if below:
            ax.set_xlabel("")
    return axes


def _new_axes():
    _, ax = plt.subplots(figsize=(4.2, 4.6), layout="constrained")
    return ax


def _frame(ax, histogram):
    """Draw the diagonal, limits and labels; return whether this is the first call on `ax`."""
    if ax.get_xlabel():
        return False
    ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], linewidth=1, zorder=1)
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


def _isotonic_curve(ax, y, p_hat, colour, weights=None):
    fit = IsotonicRegression(y_min=0, y_max=1).fit(p_hat, y, sample_weight=weights)
    x, level = fit.X_thresholds_, fit.y_thresholds_
    ax.plot(
        x, level, color=COLOURS["vermilion"] if colour == COLOURS["black"] else colour,
        linewidth=1.4, alpha=0.8, zorder=2.5, label="isotonic (no bins)",
    )  # fmt: skip


def _note_counts(ax, count):
    low, high = count.min(), count.max()
    rows = f"{low:,} to {high:,}" if high - low > 1 else f"{high:,}"
    rows = f"about {rows}" if high - low == 1 else rows
    text = f"{len(count)} bin{'s' if len(count) > 1 else ''} of {rows} row{'s' if high > 1 else ''}"
    ax.text(0, 1.01, text, transform=ax.transAxes, va="bottom", fontsize=8.5, color="0.35",
            gid="note")  # fmt: skip
