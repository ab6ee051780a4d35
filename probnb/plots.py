"""The figures that several chapters draw, and the look shared by all.

`use_style` sets seaborn's theme and colour-blind palette on a white background; `forest` is the one
picture of differences; `reliability_diagram` shows what came true among the cases with about the
same prediction. Each takes data, draws on an Axes and returns it. Figures are drawings (SVG) in a
notebook, about 7.5 inches wide for a column of 720 pixels, and their background is opaque, so that
they read the same on a light and on a dark page.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator
from sklearn.isotonic import IsotonicRegression
from torchvision.utils import make_grid

from .metrics import brier, reliability_bins
from .metrics.differences import proportion_interval
from .text import plain
from .validation import check_pair, check_probabilities, check_same_length

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


def named(text, longest=40):
    """Return a user's text as a figure shows it: no part of it is mathematics, nor too long."""
    text = plain(text)
    return (text if len(text) <= longest else f"{text[:longest]}...").replace("$", r"\$")


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
        box = {"facecolor": "white", "alpha": 0.75, "pad": 1, "lw": 0}
        ax.annotate(f"{int(age)}", place, fontsize=8, va="top", bbox=box)
    ax.imshow(sheet, interpolation="nearest")
    ax.set_axis_off()
    return ax


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
    shown = []  # told to the legend, which passes over names that begin with _
    offsets = np.linspace(-0.28, 0.28, len(series)) if len(series) > 1 else [0]
    for k, (name, offset) in enumerate(zip(series, offsets)):
        part = table if name is None else table[table[hue] == name]
        y = np.array([places.index(place) for place in part[label]]) + offset
        value, low, high = (scale * part[c].to_numpy(float) for c in ("value", "low", "high"))
        colour, single = COLOURS[CYCLE[k % len(CYCLE)]], (part["seeds"] == 1).to_numpy()
        ax.hlines(y, low, high, color=colour, linewidth=1.6)
        for alone in (False, True):
            rows = single == alone
            told = not (pd.isna(name) or (alone and not single.all()))
            face = "white" if alone else colour
            marks, marker = (value[rows], y[rows]), "osD^vP"[k % 6]
            mark = ax.plot(*marks, marker, color=colour, mfc=face, ms=5.5, label=named(name, 100))
            shown += mark * told
    ax.set_yticks(range(len(places)), [named(place, 100) for place in places])
    ax.set_ylim(len(places) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(xlabel or f"difference (× {scale:g})")
    if hue is not None:
        ax.legend(handles=shown, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return ax


def decision_figure(curve):
    """Draw the net benefit of every column against the threshold, with 95 % bands.

    Parameters
    ----------
    curve : DataFrame
        From `probnb.report.decide.decision_curve`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; a column below a dashed line does harm at that threshold. Dotted lines mark the
        thresholds asked for.
    """
    _, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    ends = {"treat all": COLOURS["black"], "treat none": COLOURS["grey"]}
    lines = []
    for k, (name, part) in enumerate(curve.groupby(level="column", sort=False)):
        t, colour = part.index.unique("threshold"), ends.get(name, COLOURS[CYCLE[k % len(CYCLE)]])
        style = "--" if name in ends else "-:"[k // len(CYCLE) % 2]
        lines += ax.plot(t, part["benefit"], style, color=colour, label=named(name))
        if name not in ends:
            ax.fill_between(t, part["low"], part["high"], color=colour, alpha=0.15, linewidth=0)
    for threshold in curve[curve["asked"]].index.unique("threshold"):
        ax.axvline(threshold, color=COLOURS["grey"], linewidth=0.8, linestyle=":")
    limits = np.array([-0.15, 1.05]) * curve["high"].max()
    ax.set(xlabel="threshold probability", ylabel="net benefit (true positives a row)", ylim=limits)
    ax.legend(handles=lines, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


STRIP = 0.16  # height of the histogram's strip below 0, in units of the vertical axis
MAX_POINTS = 5000  # of a scatter: more only darken it


def reliability_diagram(
    y_true, y_prob, ax=None, bins=15, interval=True, corp=False, p=None, weights=None, table=None
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
    table : probnb.metrics.ReliabilityBins, optional
        The bins to draw, where the rows are but cells of all rows.

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
    table = reliability_bins(y, p_hat, bins, weights) if table is None else table
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
        style = {"color": COLOURS["vermilion"], "lw": 1.4, "alpha": 0.8, "zorder": 2.5}
        ax.plot(curve.X_thresholds_, curve.y_thresholds_, label="isotonic (no bins)", **style)
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
        Predicted probabilities of outcome 1 by method, or arguments of `reliability_diagram`.
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
    frame, height = pd.DataFrame({"method": range(len(predictions.keys()))}), 1.3 * width
    facets = sns.FacetGrid(frame, col="method", col_wrap=columns, height=height, aspect=1 / 1.3)
    facets.set_titles("")
    for name, ax in zip(predictions.keys(), facets.axes_dict.values()):
        rows = {"y_true": y_true, "y_prob": predictions[name], "weights": weights}
        if isinstance(predictions[name], dict):  # cells of rows that no memory holds
            rows = predictions[name]
        reliability_diagram(ax=ax, p=p, **rows, **kwargs)
        score = brier(rows["y_true"], rows["y_prob"], rows["weights"])
        ax.set_title(f"{named(name)}\nBrier {score:.3f}", loc="left", fontsize=9)
        ax.set(xlabel="", ylabel="")
    figure, (handles, labels) = facets.figure, ax.get_legend_handles_labels()
    figure.set_layout_engine("constrained")
    figure.supxlabel("Predicted probability", fontsize=10)
    figure.supylabel("Observed frequency", fontsize=10)
    if len(labels) > 1:  # above the panels, where it hides nothing
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    return list(facets.axes_dict.values())


def watch_over_time(table, alpha=0.05):
    """Draw what the bets against a forecaster came to, and what they say is wrong.

    Parameters
    ----------
    table : DataFrame
        From `probnb.watch.sequential.watch`, or several of them in turn.
    alpha : float, default=0.05
        The alarm is raised where e reaches 1 / alpha.

    Returns
    -------
    list of matplotlib.axes.Axes
        e on a logarithmic scale with the alarm; the intercept and the slope of the logit on which
        the money is, 0 and 1 where there is nothing to win.
    """
    _, axes = grid(2, columns=1, size=(7.2, 2.3), sharex=True)
    log_e, limit = table["log_e"] / np.log(10), -np.log10(alpha)
    axes[0].plot(log_e.replace(np.inf, np.nan), color=COLOURS["blue"], lw=1.3)
    axes[0].axhline(limit, color=COLOURS["vermilion"], ls="--", lw=1.2)
    axes[0].text(table.index[0], limit, f"alarm: e = {1 / alpha:g}", va="bottom", fontsize=9)
    if (log_e >= limit).any():
        row = (log_e >= limit).idxmax()
        axes[0].plot(row, min(log_e[row], 2 * limit), "o", color=COLOURS["vermilion"], ms=6)
        style = {"xytext": (6, -6), "textcoords": "offset points", "va": "top", "fontsize": 9}
        axes[0].annotate(f"row {row:,}", (row, limit), **style)
    axes[0].set_ylabel("evidence against\n" + r"the model ($\log_{10}$ e)")
    for name, style in {"intercept": "-", "slope": "--"}.items():
        colour = COLOURS[CYCLE[2 + (name == "slope")]]
        axes[1].axhline(name == "slope", color=COLOURS["grey"], lw=0.8)
        axes[1].plot(table[name], style, color=colour, lw=1.5, label=name)
    axes[1].set(xlabel="outcomes seen", ylabel="where the money is\n(of the logit)")
    axes[1].legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=2)
    return axes
