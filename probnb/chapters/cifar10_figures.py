"""Figures of the chapter on CIFAR-10 and on images that people judged. No face is shown."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from torchvision.utils import make_grid

from ..experiment.results import find_runs, read_results
from ..methods import METHODS
from ..plots import COLOURS
from .cifar10_tasks import task_label


def digit_rows(splits):
    """Show some digits of each class beside the probability that the class is given."""
    p, images = splits.test.probabilities, splits.test.inputs
    levels, side = np.unique(p), images.shape[-1] + 2
    rows = torch.cat([images[p == value][:12] for value in levels])
    _, ax = plt.subplots(figsize=(4.6, 4.0), layout="constrained")
    ax.imshow(255 - make_grid(rows, nrow=12)[0], cmap="gray", vmin=0, vmax=255)
    ax.set_yticks(side * np.arange(len(levels)) + side / 2, [f"{v:.1f}" for v in levels])
    ax.set(xticks=[], ylabel="Probability of outcome 1, $p = c/10$")
    ax.grid(False)
    sns.despine(left=True, bottom=True)
    return ax


def ratio_figure(ratios, paper):
    """Draw KL_p / MSE_p against the clipping, and the range of the paper's Table 11.

    Parameters
    ----------
    ratios : DataFrame
        From `probnb.chapters.cifar10.kl_ratios`.
    paper : DataFrame
        From `probnb.chapters.cifar10.paper_ratios`.

    Returns
    -------
    seaborn.FacetGrid
        A panel for each direction of the divergence.
    """
    names = {"p||p_hat": r"KL$(p\,\|\,\hat p)$", "p_hat||p": r"KL$(\hat p\,\|\,p)$, as printed"}
    labels = ratios["method"].map(lambda m: METHODS[m].label)
    shown = ratios.assign(direction=ratios["direction"].map(names), method=labels)
    grid = sns.relplot(
        shown, x="clip", y="ratio", hue="method", style="method", col="direction", kind="line",
        markers=True, dashes=False, height=2.9, aspect=1.2, facet_kws={"legend_out": False},
    )  # fmt: skip
    grid.set(xscale="log", ylim=(0, 30), xticks=[1e-2, 1e-6, 1e-12, 1e-16])
    grid.axes.flat[0].invert_xaxis()  # which both panels share
    for ax in grid.axes.flat:
        ax.axhspan(*paper["ratio"].agg(["min", "max"]), color=COLOURS["yellow"], alpha=0.4, lw=0)
    grid.set_axis_labels("Clipping before the logarithm", "KL$_p$ / MSE$_p$")
    grid.set_titles("{col_name}")
    sns.move_legend(grid, "lower center", bbox_to_anchor=(0.5, 1), ncols=3, title=None)
    return grid


def people_figure(stored, methods=("ce_overfit", "ce", "cape_bin", "ensemble")):
    """Draw MSE_p of some methods and of other people, for each task.

    Parameters
    ----------
    stored : DataFrame
        From `probnb.chapters.cifar10.read_stored`.
    methods : sequence of str
        Which methods.

    Returns
    -------
    matplotlib.axes.Axes
        A line a task, a mark a method (mean over seeds) or group of people.
    """
    rows = stored[(stored["metric"] == "mse_p") & stored["reference"].isin(["ce", "1", "3", "9"])]
    rows = rows[rows["method"].isin([*methods, "people"])]
    people = {"1": "1 other person", "3": "3 other people", "9": "9 other people"}
    who = [people[number] if method == "people" else METHODS[method].label
           for method, number in zip(rows["method"], rows["reference"])]  # fmt: skip
    task = [task_label(*pair) for pair in zip(rows["data"], rows["question"])]
    shown = pd.DataFrame({"task": task, "who": who, "mse": 100 * rows["mean"].to_numpy()})
    order = [METHODS[m].label for m in methods] + [w for w in dict.fromkeys(who) if "other" in w]
    greens = sns.color_palette("Greens_d", 3).as_hex()
    names = [COLOURS[c] for c in ("grey", "black", "vermilion", "blue")] + greens
    _, ax = plt.subplots(figsize=(7.2, 1.2 + 0.42 * len(set(task))), layout="constrained")
    sns.scatterplot(
        shown, x="mse", y="task", hue="who", style="who", hue_order=order, style_order=order,
        palette=dict(zip(order, names)), s=55, ax=ax,
    )  # fmt: skip
    ax.set(xlabel="MSE$_p$ (× 100)", ylabel="", xlim=(0, None))
    ax.margins(y=0.12)
    sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=4, title=None)
    return ax


def epoch_figure(folder, tasks):
    """Draw MSE_p of cross entropy by epoch, a line a seed; dots mark the epochs that were kept.

    Parameters
    ----------
    folder : path-like
        Folder of results.
    tasks : iterable of (str, str)
        Data and question.

    Returns
    -------
    seaborn.FacetGrid
        A panel a task.
    """
    lines = []
    for data, question in tasks:
        for run in find_runs([folder], "cifar10", data=data, task=question, inputs="gradients"):
            epochs = read_results(run).epochs.query("fit == 'ce' and epoch > 0")
            kept = epochs["epoch"] == epochs.loc[epochs["val_ce"].idxmin(), "epoch"]
            facts = {"task": task_label(data, question), "seed": str(run.record["seed"])}
            lines.append(epochs.assign(**facts, mse=100 * epochs["mse_p"], kept=kept))
    table = pd.concat(lines, ignore_index=True)
    grid = sns.relplot(
        table, x="epoch", y="mse", hue="seed", style="seed", col="task", kind="line", height=2.4,
        col_wrap=3, facet_kws={"sharey": False, "legend_out": False},
    )  # fmt: skip
    for name, ax in grid.axes_dict.items():
        dots = table[table["kept"] & (table["task"] == name)]
        ax.plot(dots["epoch"], dots["mse"], "o", color=COLOURS["black"], markersize=5)
        ax.set_ylim(bottom=0)
    grid.set_axis_labels("Epoch", "MSE$_p$ of CE (× 100)").set_titles("{col_name}")
    sns.move_legend(grid, "lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    return grid


def brier_figure(found):
    """Draw how well the Brier score ranks models as MSE_p does, a mark a seed.

    Parameters
    ----------
    found : DataFrame
        Of several tasks (column ``task``), from `probnb.chapters.cifar10.brier_follows`.

    Returns
    -------
    matplotlib.axes.Axes
        Rank correlations.
    """
    _, ax = plt.subplots(figsize=(7.2, 1 + 0.4 * found["task"].nunique()), layout="constrained")
    sns.stripplot(found, x="rank", y="task", hue="kind", dodge=True, jitter=False, size=7, ax=ax)
    ax.set(xlabel="Rank correlation of Brier score and MSE$_p$", ylabel="", xlim=(0.5, 1.02))
    sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=2, title=None)
    return ax
