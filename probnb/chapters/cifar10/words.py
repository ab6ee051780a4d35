"""Sentences of the chapter on CIFAR-10 and on images that people judged, made from its results."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ...methods import METHODS
from ...metrics import METRICS
from ...metrics.people import entropy_terms
from .study import needed_at_zero, paper_ratios
from .tasks import task_label

__all__ = [
    "classes_table",
    "comparison_table",
    "paper_table",
    "say_brier",
    "say_ceiling",
    "say_classes",
    "say_coverage",
    "say_inputs",
    "say_kl",
    "say_ratio",
    "say_runs",
    "say_stored",
    "say_task",
    "say_verdict",
    "stored_table",
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


def comparison_table(tables):
    """Lay out several metrics of several seeds: mean over seeds, and difference from CE.

    Parameters
    ----------
    tables : dict of str to DataFrame
        From `probnb.chapters.cifar10.study.across_seeds`, by metric.

    Returns
    -------
    DataFrame
        Times 100: for each metric the mean ± the standard deviation over seeds, and the paired
        difference from CE early-stop with its 95 % interval.
    """
    columns = {}
    for metric, table in tables.items():
        rows = table.itertuples()
        columns[METRICS[metric].label, "mean ± sd over seeds"] = [
            f"{100 * r.value:.2f}" + ("" if np.isnan(r.spread) else f" ± {100 * r.spread:.2f}")
            for r in rows
        ]
        columns[METRICS[metric].label, "less CE"] = [
            "–"
            if not r.verdict
            else f"{100 * r.difference:+.2f} [{100 * r.low:+.2f}, {100 * r.high:+.2f}]"
            for r in table.itertuples()
        ]
    index = pd.Index([METHODS[m].label for m in table.index], name="×100")
    return pd.DataFrame(columns, index=index)


def stored_table(stored, metric="mse_p"):
    """Lay out a metric of several stored tasks side by side, as `comparison_table` does."""
    parts = {task.label: comparison_table({metric: task.table(metric)}) for task in stored}
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, axis=1)
    return table.droplevel(1, axis=1).fillna("–")


def paper_table(measured):
    """Put the paper's Table 11 beside what was measured.

    Parameters
    ----------
    measured : dict of str to dict of str to DataFrame
        By task, ``"mse_p"`` and ``"kl_p"`` from `probnb.chapters.cifar10.study.across_seeds`.

    Returns
    -------
    DataFrame
        In the metrics' own units, as the paper prints them, with the ratio of the two.
    """
    paper = paper_ratios()
    columns = {("paper", k): paper[k] for k in paper}
    for name, parts in measured.items():
        values = {k: parts[k]["value"].reindex(paper.index) for k in ("mse_p", "kl_p")}
        values["ratio"] = values["kl_p"] / values["mse_p"]
        columns |= {(name, k): v for k, v in values.items()}
    table = pd.DataFrame(columns)
    table.index = [METHODS[m].label for m in table.index]
    names = {"mse_p": "MSE_p", "kl_p": "KL_p", "ratio": "KL_p / MSE_p"}
    return table.rename(columns=names, level=1).round(4)


def classes_table(stored, rows=("ensemble", "ce_finetuned", "cape_bin", "cape_kernel")):
    """Lay out MSE_p of many questions about the same images, a line each.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        The tasks.
    rows : tuple of str
        Methods whose paired difference from CE early-stop is shown.

    Returns
    -------
    DataFrame
        Times 100: CE early-stop's mean ± standard deviation over seeds, differences with their
        95 % intervals (an asterisk where 0 is left out), and what one other person scores.
    """
    lines = {}
    for task in stored:
        table = task.table()
        line = {METHODS["ce"].label: _plus(table.loc["ce"])}
        for m in (m for m in rows if m in table.index):
            star = " *" if table.loc[m, "verdict"] in ("better", "worse") else ""
            line[f"{METHODS[m].label} less CE"] = _interval(table.loc[m]) + star
        line["one other person"] = f"{100 * task.ceiling()[1]:.2f}"
        lines[task.question] = line
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("is it this?")


def say_classes(stored):
    """Say in how many of many questions a method is nearer to p than CE early-stop, or further.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        The tasks.

    Returns
    -------
    str
        Markdown.
    """
    if len(stored) < 2:
        return ""
    verdicts = pd.DataFrame({task.question: task.table()["verdict"] for task in stored})
    lines = [
        f"{METHODS[m].label} {(verdicts.loc[m] == 'better').sum()} and "
        f"{(verdicts.loc[m] == 'worse').sum()}"
        for m in ("ensemble", "platt", "ce_finetuned", "cape_bin", "cape_kernel")
        if m in verdicts.index
    ]
    people = sum(task.table().loc["ce", "value"] < task.ceiling()[1] for task in stored)
    return (
        f"Of {len(stored)} classes, an interval is below CE early-stop in, and above it in: "
        f"{'; '.join(lines)}. CE early-stop is nearer to p than one other person in {people}."
    )


def say_inputs(stored):
    """Say which of two networks is nearer to p, where a task has been given to both.

    Parameters
    ----------
    stored : list of probnb.chapters.cifar10.stored.Stored
        Tasks, some of them with pixels and with gradients.

    Returns
    -------
    str
        Markdown, a sentence a task; empty where there is no such task.
    """
    tasks, lines = {(t.data, t.question, t.inputs): t for t in stored}, []
    for (data, question, inputs), pixels in tasks.items():
        other = tasks.get((data, question, "gradients"))
        if inputs != "pixels" or other is None:
            continue
        a, b = (t.table().loc["ce"] for t in (pixels, other))
        gap = "nearer to p" if a["value"] < b["value"] else "further from p"
        if abs(a["value"] - b["value"]) < a["spread"] + b["spread"]:
            gap = "not told apart from the other"
        lines.append(
            f"{task_label(data, question)}: with cross entropy the ResNet-18 on pixels has MSE_p × "
            f"100 = {_plus(a)}, the two-layer network on gradients {_plus(b)} (mean ± standard "
            f"deviation over seeds); at this size the first is {gap}."
        )
    return " ".join(lines)


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
    bias = float(entropy_terms([0], [9])[1][0])
    lines = [
        f"With nine votes the estimate of the entropy is at most {bias:.4f} nats off, in every row "
        "of a task alike.\n"
    ]
    for task in stored:
        mse, kl = task.table(), task.table("kl_p")
        if kl.empty or not np.isfinite(kl["value"]).any():
            continue
        rows = [m for m in mse.index if np.isfinite(kl["value"].get(m, np.nan))]
        rank = spearmanr(mse.loc[rows, "value"], kl.loc[rows, "value"]).statistic
        others = [m for m in rows if mse.loc[m, "verdict"]]
        same = sum(mse.loc[m, "verdict"] == kl.loc[m, "verdict"] for m in others)
        lines.append(
            f"- **{task.label}:** CE early-stop has KL_p × 100 = {_plus(kl.loc['ce'])}; rank "
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
    cape = [m for m in ("cape_bin", "cape_kernel") if m in table.index]
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
    lines = []
    for name, table in points.items():
        spelt = []
        for kind in ("method", "epoch"):
            rows = table[(table["kind"] == kind) & (table["name"] != "ce_overfit")]
            r = np.corrcoef(rows["mse_p"], rows["brier"])[0, 1]
            rank = spearmanr(rows["mse_p"], rows["brier"]).statistic
            spelt.append(f"{len(rows)} {kind}s r = {r:.2f}, rank correlation {rank:.2f}")
        lines.append(f"- **{name}:** {'; '.join(spelt)}.")
    return "\n".join(lines)


def _spell(method, row):
    return f"{METHODS[method].label} {_interval(row)}"


def _interval(row):
    """A difference times 100, with its interval."""
    ends = f"[{100 * row['low']:+.2f}, {100 * row['high']:+.2f}]"
    return f"{100 * row['difference']:+.2f} {ends}"


def _plus(row):
    """A mean times 100, with its standard deviation over seeds where there are several."""
    spread = "" if np.isnan(row["spread"]) else f" ± {100 * row['spread']:.2f}"
    return f"{100 * row['value']:.2f}{spread}"


def _all(methods):
    return " and ".join(METHODS[m].label for m in methods)


def _list(values, form):
    *first, last = (format(v, form) for v in values)
    return f"{', '.join(first)} and {last}" if first else last
