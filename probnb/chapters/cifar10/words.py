"""Sentences of the chapter on CIFAR-10 and on images that people judged, made from its results."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from ...methods import METHODS
from ...metrics.votes import check_votes
from .study import brier_follows, needed_at_zero
from .tables import interval_text, mean_text
from .tasks import task_label

CAPE = ("cape_bin", "cape_kernel")

__all__ = [
    "say_brier",
    "say_ceiling",
    "say_coverage",
    "say_inputs",
    "say_kl",
    "say_ratio",
    "say_runs",
    "say_stored",
    "say_task",
    "say_verdict",
]


def say_task(task):
    """Say which images there are and what was asked about them."""
    train, val, test = (task.splits.parts()[k] for k in ("train", "val", "test"))
    text = (
        f"{task_label(task.data, task.question)}: {len(train):,} images to train on, "
        f"{len(val):,} to choose and calibrate with, {len(test):,} to test on."
    )
    if task.votes is not None:
        n = task.votes["n"]
        text += (
            f" Each was judged by {n.min() + 1} to {n.max() + 1} people"
            if n.min() < n.max()
            else f" Each was judged by {n.min() + 1} people"
        )
        text += ": the vote of one is the outcome, those of the others score the predictions."
    return text


def say_inputs(stored):
    """Say which of two networks is nearer to p, where a task has been given to both.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        Tasks, some of them with pixels and with gradients.

    Returns
    -------
    str
        Markdown, a sentence a task.
    """
    tasks, lines = {(t.data, t.question, t.inputs): t for t in stored}, []
    for data, question in [k[:2] for k in tasks if k[2] == "pixels"]:
        pixels, other = (tasks.get((data, question, k)) for k in ("pixels", "gradients"))
        if other is None:
            continue
        a, b = (t.table().loc["ce"] for t in (pixels, other))
        gap = "nearer to p" if a["value"] < b["value"] else "further from p"
        if min(len(pixels.runs), len(other.runs)) == 1:
            gap += ", in one training"
        elif abs(a["value"] - b["value"]) < a["spread"] + b["spread"]:
            gap = "not told apart from the other"
        lines.append(
            f"{task_label(data, question)}: with cross entropy the ResNet-18 on pixels has MSE_p × "
            f"100 = {mean_text(a)} from {_images(pixels)} images, the two-layer network on "
            f"gradients {mean_text(b)} from {_images(other)} (mean ± standard deviation over "
            f"seeds); the first is {gap}."
        )
    return " ".join(lines) or "No task is stored both on pixels and on gradients."


def say_kl(stored):
    """Say how KL_p is measured with votes, and whether it orders the methods as MSE_p does.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        Tasks whose probabilities people's votes measure.

    Returns
    -------
    str
        Markdown.
    """
    bias = float(check_votes([0], [9]).bias()[0])
    lines = [f"With nine votes the entropy is at most {bias:.4f} nats off, in all rows alike.\n"]
    for task in stored:
        mse, kl = task.table(), task.table("kl_p")
        if kl.empty or not np.isfinite(kl["value"]).any():
            continue
        rows = [m for m in mse.index if np.isfinite(kl["value"].get(m, np.nan))]
        rank = spearmanr(mse.loc[rows, "value"], kl.loc[rows, "value"]).statistic
        others = mse.index[mse["verdict"] != ""].intersection(rows)
        same = (mse["verdict"] == kl["verdict"])[others].sum()
        lines.append(
            f"- **{task.label}:** CE early-stop has KL_p × 100 = {mean_text(kl.loc['ce'])}; rank "
            f"correlation of KL_p and MSE_p over {len(rows)} rows {rank:.2f}; the verdict on the "
            f"difference from CE early-stop is the same for {same} of {len(others)}."
        )
    return "\n".join(lines)


def say_runs(runs):
    """Say where stored results come from, and what they cost."""
    records = [run.record for run in runs]
    seconds = sum(r["cpu_seconds"] for r in records)
    one = records[0]
    s = one["settings"]
    width = f" of width {s['width']}" * (one.get("inputs") == "pixels")
    return (
        f"{len(records)} seed{'s' * (len(records) > 1)} of weights, outcomes and training images; "
        f"{one['network']}{width}, {s['size']} pixels, {s['images'] or 'all':,} training images, "
        f"at most {s['epochs']} epochs; {seconds:.0f} processor seconds in all "
        f"({one['processor']}, {one['precision']})."
    )


def say_stored(stored):
    """Say of every stored task where it comes from and what it shows.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        The tasks.

    Returns
    -------
    str
        Markdown, a paragraph a task.
    """
    if not stored:
        return "No results are stored for this section."
    parts = []
    for task in stored:
        table, control = task.table(), task.table(reference="ce_finetuned")
        text = say_verdict(task.label, table, control if len(control) else None, len(task.runs))
        if task.ceiling():
            text += " " + say_ceiling(task.ceiling(), table)
        parts.append(f"{text} *{say_runs(task.runs)}*")
    return "\n\n".join(parts)


def say_verdict(name, table, control=None, seeds=1):
    """Say which methods are nearer to the truth than CE, and what is left of CaPE's order.

    Parameters
    ----------
    name : str
        What the task is called.
    table : DataFrame
        MSE_p, from `probnb.chapters.cifar10.study.across_seeds`.
    control : DataFrame, optional
        The same with CE fine-tuned for reference.
    seeds : int, default=1
        How many there were.

    Returns
    -------
    str
        Markdown.
    """
    others = table[table["verdict"] != ""].drop(index="ce_overfit", errors="ignore")
    real = table.drop(index="resampled", errors="ignore")
    best = real["value"].idxmin()
    parts = []
    for verdict in ("better", "worse"):
        rows = others[others["verdict"] == verdict].sort_values("difference")
        listed = "; ".join(_spell(m, r) for m, r in rows.iterrows())
        parts.append(f"{verdict} than CE early-stop: {listed or 'none'}")
    over = "test rows and seeds" if seeds > 1 else "test rows alone, of one training of each row"
    text = (
        f"**{name}** ({seeds} seed{'s' * (seeds > 1)}). CE early-stop has MSE_p × 100 = "
        f"{100 * table.loc['ce', 'value']:.2f}. By paired 95 % intervals over {over}, "
        f"{parts[0]}; {parts[1]}. Lowest: {METHODS[best].label} "
        f"({100 * real.loc[best, 'value']:.2f})."
    )
    cape = [m for m in CAPE if m in table.index]
    if cape:
        ranks = real.drop(index="ce_overfit", errors="ignore")["value"].rank()
        places = " and ".join(f"{METHODS[m].label} {int(ranks[m])}" for m in cape)
        text += f" Of {len(ranks)} rows, the places of CaPE: {places}."
        start = [m for m in cape if table.loc[m, "difference"] == 0]
        if start:
            text += (
                f" {_all(start)} kept the start: no epoch of fine-tuning had a lower validation "
                "cross entropy."
            )
    if cape and control is not None:
        spelt = "; ".join(f"{_spell(m, control.loc[m])}, {control.loc[m, 'verdict']}" for m in cape)
        text += f" Against its control, CE fine-tuned: {spelt}."
    return text


def say_ceiling(ceiling, table):
    """Say what other people score, and how many of them the best network is worth.

    Parameters
    ----------
    ceiling : dict of int to float
        MSE_p of the share of so many other people.
    table : DataFrame
        MSE_p of the methods, from `probnb.chapters.cifar10.study.across_seeds`.
    """
    one = ceiling[1]
    best = table["value"].drop("resampled", errors="ignore").idxmin()
    listed = ", ".join(f"{people}: {100 * value:.2f}" for people, value in ceiling.items())
    worth = one / table.loc[best, "value"]
    text = (
        f"The share of yes among other people, taken for a prediction, has MSE_p × 100 = {listed} "
        f"(by their number). {METHODS[best].label}, at {100 * table.loc[best, 'value']:.2f}, is "
    )
    if worth < 1:
        return text + "further from p than the answer of a single other person."
    return text + (
        f"worth the votes of {worth:.1f} people: so many would have to be asked about an image to "
        "know p as well."
    )


def say_coverage(table):
    """Say whether the estimate of MSE_p from votes is unbiased and its interval holds the truth."""
    worst = ((table["mean"] - table["truth"]).abs() / table["truth"]).max()
    plain = (table["plain"] / table["truth"]).max()
    return (
        f"Over {len(table)} settings the mean estimate is within {worst:.1%} of the truth, where "
        f"the plain distance from the shares is up to {plain:.1f} times as large. The 95 % "
        f"intervals hold the truth in {table['covered'].min():.1%} to "
        f"{table['covered'].max():.1%} of the test sets."
    )


def say_ratio(paper, ratios, clips, zero):
    """Say which direction and clipping give the paper's ratios, row by row.

    Parameters
    ----------
    paper : DataFrame
        From `probnb.chapters.cifar10.study.paper_ratios`.
    ratios : DataFrame
        From `probnb.chapters.cifar10.study.kl_ratios`.
    clips : dict of str to float
        For each of the paper's methods, `implied_clip` of our predictions and its ratio.
    zero : dict of str to float
        Our mean prediction on the class with p = 0.
    """
    methods = [m for m in paper.index if m in clips]
    ours = ratios[(ratios["direction"] == "p||p_hat") & ratios["method"].isin(methods)]["ratio"]
    text = (
        f"The paper's ratios are {_list(paper['ratio'], '.1f')}. KL(p || p̂), which fits its other "
        f"tables, gives {ours.min():.1f} to {ours.max():.1f} here, whatever the clipping. "
    )
    found = {m: c for m, c in clips.items() if np.isfinite(c)}
    if not found:
        return text + "No clipping of the printed direction gives them either."
    listed = ", ".join(f"{METHODS[m].label} {c:.0e}" for m, c in found.items())
    spread = np.ptp(np.log10(list(found.values())))
    text += (
        "So it is not that direction. The printed one is infinite, because one class has p = 0, "
        "unless p is clipped, and then grows by the same amount with every decade: it meets the "
        f"paper's ratio where p is clipped at {listed}. "
    )
    if spread < 2:
        return text + "That is one constant for all rows."
    text += (
        f"These lie {spread:.0f} decades apart, so that no one constant gives all three with our "
        "predictions. With one constant the paper's must differ from ours, and between rows, on "
        "the class with p = 0, which that direction weighs above all else: their means there "
    )
    needed = [
        f"with p clipped at {clip:.0e} would be "
        + _list(needed_at_zero(paper, ours.median(), clip).loc[list(found)], ".2f")
        for clip in (1e-7, 2e-16)
    ]
    return text + ", ".join(needed) + f"; ours are {_list([zero[m] for m in found], '.2f')}."


def say_brier(points):
    """Say how well the Brier score follows MSE_p over methods and over epochs, by task.

    Parameters
    ----------
    points : dict of str to DataFrame
        From `probnb.chapters.cifar10.study.trained_models`.

    Returns
    -------
    str
        Markdown.
    """
    lines = ["Correlations within a seed, of its methods and of its epochs; mean over seeds:\n"]
    for name, table in points.items():
        spelt = []
        for kind in ("method", "epoch"):
            found = brier_follows(table, kind)
            spelt.append(
                f"{found['models'].sum()} {kind}s r = {found['r'].mean():.2f}, rank correlation "
                f"{found['rank'].mean():.2f} (lowest {found['rank'].min():.2f})"
            )
        lines.append(f"- **{name}:** {'; '.join(spelt)}.")
    return "\n".join(lines)


def _spell(method, row):
    return f"{METHODS[method].label} {interval_text(row)}"


def _images(task):
    """Training images of a stored task."""
    return format(task.runs[0].record["settings"]["images"], ",")


def _all(methods):
    return " and ".join(METHODS[m].label for m in methods)


def _list(values, form):
    *first, last = (format(v, form) for v in values)
    return f"{', '.join(first)} and {last}" if first else last
