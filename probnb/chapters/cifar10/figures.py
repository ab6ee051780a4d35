"""Figures of the chapter on CIFAR-10 and on images that people judged. No face is shown."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import PercentFormatter

from ...methods import METHODS
from ...plots.style import COLOURS, grid
from .study import brier_follows

__all__ = [
    "difference_figure",
    "digit_rows",
    "epoch_figure",
    "models_figure",
    "ratio_figure",
    "share_figure",
    "value_figure",
]

_VERDICTS = {"better": "blue", "worse": "vermilion", "no difference shown": "grey", "": "black"}


def digit_rows(splits, examples=12):
    """Show some digits of each class beside the probability that the class is given.

    Parameters
    ----------
    splits : probnb.data.Splits
        Digits with their probabilities.
    examples : int, default=12
        How many of each class.

    Returns
    -------
    matplotlib.axes.Axes
        One row of images a class.
    """
    test = splits.test
    p = test.probabilities.numpy()
    levels = np.unique(p)
    side = test.inputs.shape[-1]
    rows = []
    for value in levels:
        found = np.flatnonzero(p == value)[:examples]
        images = np.zeros((examples, side, side + 2), np.uint8)
        images[: len(found), :, :side] = test.inputs[found, 0].numpy()
        rows.append(np.pad(np.concatenate(images, axis=1), ((0, 2), (0, 0))))
    _, (ax,) = grid(1, size=(4.6, 4.0))
    ax.imshow(255 - np.concatenate(rows), cmap="gray", vmin=0, vmax=255)
    ax.set_yticks(
        (side + 2) * np.arange(len(levels)) + side / 2, [f"{value:.1f}" for value in levels]
    )
    ax.set(xticks=[], ylabel="Probability of outcome 1, $p = c/10$")
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return ax


def share_figure(shares):
    """Draw how often people agree: the distribution of the share of yes over images.

    Parameters
    ----------
    shares : dict of str to array-like
        For each task the share of votes that are yes, by image.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel a task.
    """
    _, axes = grid(len(shares), columns=3, size=(2.6, 2.4), sharex=True)
    edges = np.linspace(-0.05, 1.05, 12)
    for ax, (name, share) in zip(axes, shares.items()):
        share = np.asarray(share)
        ax.hist(share, edges, weights=np.full(len(share), 1 / len(share)), color=COLOURS["sky"])
        between = ((share >= 0.1) & (share <= 0.9)).mean()
        ax.set_title(f"{name}\n{between:.0%} between 0.1 and 0.9", fontsize=10)
        ax.set(xlabel="Share of people who say yes", xlim=(-0.05, 1.05))
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes[0].set_ylabel("Share of images")
    return axes


def ratio_figure(ratios, paper, methods=("ce", "cape_bin", "cape_kernel")):
    """Draw KL_p / MSE_p against the clipping, with the range of the paper's Table 11.

    Parameters
    ----------
    ratios : DataFrame
        From `probnb.chapters.cifar10.study.kl_ratios`.
    paper : DataFrame
        From `probnb.chapters.cifar10.study.paper_ratios`.
    methods : sequence of str
        Rows to draw.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel for each direction of the divergence.
    """
    _, axes = grid(2, columns=2, size=(3.5, 3.0), sharey=True)
    names = {"p||p_hat": r"KL$(p\,\|\,\hat p)$", "p_hat||p": r"KL$(\hat p\,\|\,p)$, as printed"}
    marks = dict(zip(methods, ("o", "s", "^")))
    for ax, (direction, name) in zip(axes, names.items()):
        low, high = paper["ratio"].min(), paper["ratio"].max()
        ax.axhspan(low, high, color=COLOURS["yellow"], alpha=0.4, lw=0, label="paper's Table 11")
        for m in methods:
            rows = ratios[(ratios["direction"] == direction) & (ratios["method"] == m)]
            ax.plot(rows["clip"], rows["ratio"], marker=marks[m], ms=4, label=METHODS[m].label)
        ax.set(xscale="log", xlabel="Clipping before the logarithm", title=name)
        ax.set_xticks([1e-2, 1e-4, 1e-8, 1e-12, 1e-16])
        ax.minorticks_off()
        ax.invert_xaxis()
        ax.set_ylim(0, 30)
    axes[0].set_ylabel("KL$_p$ / MSE$_p$")
    axes[0].legend(loc="upper left")
    return axes


def value_figure(tables, ceilings=None):
    """Draw MSE_p of every method for each task, with what other people score.

    Parameters
    ----------
    tables : dict of str to DataFrame
        From `probnb.chapters.cifar10.study.across_seeds`, by task.
    ceilings : dict of str to dict of int to float, optional
        By task, MSE_p of the share of so many other people.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel a task: means over seeds with one standard deviation over seeds.
    """
    _, axes = _panels(tables)
    for ax, (name, table) in zip(axes, tables.items()):
        place = np.arange(len(table))[::-1]
        ax.errorbar(
            table["value"], place, xerr=table["spread"].fillna(0), fmt="o", ms=4, color="black"
        )
        for (people, value), style in zip(
            (ceilings or {}).get(name, {}).items(), ("--", ":", "-.")
        ):
            word = "person" if people == 1 else "people"
            ax.axvline(value, color=COLOURS["green"], ls=style, label=f"{people} other {word}")
        ax.set(title=name, xlabel="MSE$_p$")
        ax.set_xlim(left=0)
    handles, labels = axes[0].get_legend_handles_labels()
    if labels:
        axes[0].figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return axes


def difference_figure(tables, reference="ce"):
    """Draw paired differences from a method with their intervals, for each task.

    Parameters
    ----------
    tables : dict of str to DataFrame
        From `probnb.chapters.cifar10.study.across_seeds`, by task.
    reference : str, default="ce"
        The method they were compared with.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel a task.
    """
    tables = {
        k: t.drop(index=[reference, "ce_overfit"], errors="ignore") for k, t in tables.items()
    }
    _, axes = _panels(tables)
    for ax, (name, table) in zip(axes, tables.items()):
        place = np.arange(len(table))[::-1]
        ax.axvline(0, color=COLOURS["grey"], lw=1)
        for verdict, colour in _VERDICTS.items():
            rows = (table["verdict"] == verdict).to_numpy()
            if rows.any():
                part = table[rows]
                ends = [part["difference"] - part["low"], part["high"] - part["difference"]]
                ax.errorbar(
                    100 * part["difference"],
                    place[rows],
                    xerr=100 * np.array(ends),
                    fmt={"better": "o", "worse": "s"}.get(verdict, "D"),
                    ms=4,
                    color=COLOURS[colour],
                    label=verdict,
                )
        ax.set(title=name, xlabel=f"MSE$_p$ × 100, less {METHODS[reference].label}")
    handles = {h.get_label(): h for ax in axes for h in ax.containers}
    axes[0].figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=3, title="95 % interval says"
    )
    return axes


def models_figure(points):
    """Draw what the Brier score says of a model against its distance from p, for each task.

    Parameters
    ----------
    points : dict of str to DataFrame
        From `probnb.chapters.cifar10.study.trained_models`, by task.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel a task; every method's model and every epoch that a training passed through, less
        the means of its seed; the rank correlation is the mean over seeds.
    """
    _, axes = grid(len(points), columns=3, size=(2.7, 2.7))
    styles = {"epoch": ("grey", ".", 4), "method": ("blue", "o", 4)}
    for ax, (name, table) in zip(axes, points.items()):
        values = table[["mse_p", "brier"]]
        values = values - values.groupby(table["seed"]).transform("mean")
        for kind, (colour, mark, size) in styles.items():
            rows = values[table["kind"] == kind]
            ax.plot(
                rows["mse_p"], rows["brier"], mark, ms=size, color=COLOURS[colour], label=f"{kind}s"
            )
        rank = brier_follows(table, "method")["rank"].mean()
        ax.set_title(f"{name}\nmethods: rank correlation {rank:.2f}", fontsize=10)
        ax.set(xlabel="MSE$_p$ less its mean", ylabel="Brier score less its mean")
    axes[0].legend(loc="lower right")
    return axes


def epoch_figure(runs):
    """Draw the distance from p over the epochs of cross entropy, for each task.

    Parameters
    ----------
    runs : dict of str to list of probnb.experiment.results.Results
        Runs of each task, one a seed.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel a task, a line a seed; a dot marks the epoch that validation data kept.
    """
    _, axes = grid(len(runs), columns=3, size=(2.7, 2.5))
    for ax, (name, seeds) in zip(axes, runs.items()):
        for number, results in enumerate(seeds):
            rows = results.epochs[(results.epochs["fit"] == "ce") & (results.epochs["epoch"] > 0)]
            kept = results.chosen.query("method == 'ce' and chosen")["best_epoch"].iloc[0]
            (line,) = ax.plot(rows["epoch"], rows["mse_p"], label=f"seed {number}")
            best = rows[rows["epoch"] == kept]
            ax.plot(best["epoch"], best["mse_p"], "o", color=line.get_color(), ms=6)
        ax.set(title=name, xlabel="Epoch", ylabel="MSE$_p$ of CE")
        ax.set_ylim(bottom=0)
    axes[0].legend(loc="lower right")
    return axes


def _panels(tables):
    """One panel a task; methods are named where they are not those of the panel to the left."""
    rows = max(len(table) for table in tables.values())
    figure, axes = grid(len(tables), columns=3, size=(2.7, 1.1 + 0.23 * rows))
    left = None
    for number, (ax, table) in enumerate(zip(axes, tables.values())):
        place = np.arange(len(table))[::-1]
        labels = [METHODS[m].label for m in table.index]
        named = number % 3 == 0 or labels != left
        ax.set_yticks(place, labels if named else [""] * len(labels))
        ax.set_ylim(-0.7, len(table) - 0.3)
        left = labels
    return figure, axes
