"""Figures of the chapter of results, over all scenarios that have runs."""

from __future__ import annotations

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from ...methods import METHODS
from ...plots.reliability import reliability_diagram
from ...plots.style import COLOURS, grid
from ...published import published
from ...scenarios import SCENARIOS, probability
from ..synthetic.figures import overfitting_figure

__all__ = [
    "curves_figure",
    "gain_figure",
    "glance_figure",
    "outcomes_figure",
    "overfitting",
    "psi_figure",
    "reliability_figure",
]

FOUR = ("resampled", "ce_overfit", "ce", "cape_bin")
CURVES = {
    "train_ce": "Training CE\n(nats)",
    "val_ce": "Validation CE\n(nats)",
    "mse_p": "Test MSE$_p$\n(×100)",
    "kl_p": "Test KL$_p$\n(×100 nats)",
}
SOURCES = {  # colour, marker, face: told apart without colour, too
    "published": ("black", "D", "black"),
    "saved by the authors": ("purple", "s", "purple"),
    "here, photographs": ("blue", "o", "blue"),
    "here, drawn faces": ("vermilion", "o", "none"),
}


def _plain(axis):
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_locator(NullLocator())


def _title(trained):
    faces = "" if trained.photographs else " (drawn)"
    return trained.run.record["task"].capitalize() + faces


def _firsts(evidence, needs):
    """The first training of the best kind of every scenario that has the rows needed."""
    runs = [r for s in SCENARIOS for r in evidence.best(s)[:1]]
    return [r for r in runs if set(needs) <= set(r.methods)]


def _handles(names):
    return [
        Line2D([], [], ls="", marker=m, color=COLOURS[c], mfc=f if f == "none" else COLOURS[f],
               label=n)
        for n, (c, m, f) in ((n, SOURCES[n]) for n in names)
    ]  # fmt: skip


def _mark(ax, x, y, source, **kwargs):
    colour, marker, face = SOURCES[source]
    face = face if face == "none" else COLOURS[face]
    ax.plot(x, y, ls="", marker=marker, color=COLOURS[colour], mfc=face, ms=5, **kwargs)


def glance_figure(evidence, metric="mse_p"):
    """Draw a panel a scenario: the error of every row in print, on photographs, on drawn faces.

    Parameters
    ----------
    evidence : Evidence
        Stored runs; a panel without any shows the paper's numbers alone.
    metric : {"mse_p", "kl_p"}, default="mse_p"
        What is drawn, times 100, on a logarithmic scale.

    Returns
    -------
    list of matplotlib.axes.Axes
        Five panels.
    """
    rows = [m for m in METHODS if m in _all_rows(evidence)]
    place = {m: k for k, m in enumerate(rows[::-1])}
    figure, axes = grid(5, columns=3, size=(2.8, 3.7), sharey=True)
    names = ["published", "here, photographs", "here, drawn faces"]
    for k, (ax, scenario) in enumerate(zip(axes, SCENARIOS)):
        printed = published(scenario, metric=metric).set_index("method")["value"]
        printed = printed[[m for m in printed.index if m in place]]
        _mark(ax, printed, [place[m] for m in printed.index], names[0], zorder=3)
        for photographs, source in ((True, names[1]), (False, names[2])):
            for trained in evidence.best(scenario, photographs):
                point = 100 * trained.bootstrap.point.loc[trained.methods, metric]
                std = 100 * trained.std.loc[trained.methods, metric]
                point = point[np.isfinite(point) & point.index.isin(list(place))]
                y = [place[m] + (0.18 if photographs else -0.18) for m in point.index]
                _mark(ax, point, y, source)
                ax.hlines(y, (point - 1.96 * std[point.index]).clip(lower=point / 2),
                          point + 1.96 * std[point.index], lw=1,
                          color=COLOURS[SOURCES[source][0]])  # fmt: skip
        ax.set_xscale("log")
        _plain(ax.xaxis)
        ax.tick_params(axis="x", labelsize=8)
        ax.set(title=scenario.capitalize(), xlabel="MSE$_p$ ×100" if metric == "mse_p" else
               "KL$_p$ ×100 (nats)")  # fmt: skip
        if k % 3 == 0:
            ax.set_yticks(range(len(rows)), [METHODS[m].label for m in rows[::-1]], fontsize=8.5)
    figure.legend(handles=_handles(names), loc="outside lower center", ncols=3)
    return axes


def _all_rows(evidence):
    paper = set(published(table=1)["method"])
    return paper | {m for r in evidence.runs for m in r.methods if METHODS[m].kind != "extension"}


def overfitting(evidence, scenario):
    """Draw a scenario's row of the paper's figure of overfitting (histograms in Discrete).

    Parameters
    ----------
    evidence : Evidence
        Stored runs.
    scenario : str
        Name of the scenario.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a method; empty without a run.
    """
    runs = [r for r in _firsts(evidence, ("ce",)) if r.run.record["task"] == scenario]
    if not runs:
        return []
    test = runs[0].test
    predictions = test[[m for m in FOUR if m in test]]
    axes = overfitting_figure(test["y"], test["p"], predictions, discrete=scenario == "discrete")
    axes[0].figure.suptitle(_title(runs[0]), fontsize=11)
    return axes


def curves_figure(evidence, window=5):
    """Draw learning curves, a row of panels a scenario: CE, its continuation, CaPE and control.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.
    window : int, default=5
        Epochs of the moving average, as in the paper's figure; runs of fewer than 40 epochs, whose
        turn that would wash out, are drawn as they are.

    Returns
    -------
    list of matplotlib.axes.Axes
        Four panels a scenario; empty without a run.
    """
    runs = [r for r in _firsts(evidence, ("ce",)) if len(r.history("ce"))]
    if not runs:
        return []
    figure, axes = grid(4 * len(runs), columns=4, size=(2.15, 1.75))
    styles = {
        "ce": ("black", "-", 1.4),
        "ce_finetuned": ("green", "-", 3.0),
        "cape_bin": ("blue", "-", 1.5),
        "cape_kernel": ("vermilion", "--", 1.5),
    }
    for row, trained in enumerate(runs):
        start = trained.kept_fit("ce")["best_epoch"]
        smooth = window if len(trained.history("ce")) > 40 else 1
        for column, (name, title) in enumerate(CURVES.items()):
            ax, scale = axes[4 * row + column], 100 if name in ("mse_p", "kl_p") else 1
            for method, (colour, dashes, width) in styles.items():
                label = "CE" if method == "ce" else METHODS[method].label
                history = trained.history(method)
                history = history[history["epoch"] > 0]
                x = history["epoch"] + (0 if method == "ce" else start)
                y = scale * history[name].rolling(smooth, min_periods=1, center=True).mean()
                ax.plot(x, y, dashes, color=COLOURS[colour], lw=width, label=label)
            ax.axvline(start, color=COLOURS["grey"], ls=":", lw=1)
            ax.tick_params(labelsize=8)
            if scale == 100:
                ax.set_yscale("log")
                _plain(ax.yaxis)
            if row == 0:
                ax.set_title(title, fontsize=9.5)
            if row == len(runs) - 1:
                ax.set_xlabel("Epoch")
        axes[4 * row].set_ylabel(_title(trained), fontsize=9.5)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return axes


def reliability_figure(evidence):
    """Draw reliability diagrams, a row of panels a scenario: best case, overfit, early stop, CaPE.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.

    Returns
    -------
    list of matplotlib.axes.Axes
        Four panels a scenario; empty without a run that has all four rows.
    """
    runs = _firsts(evidence, FOUR)
    if not runs:
        return []
    _, axes = grid(4 * len(runs), columns=4, size=(2.15, 2.2), sharex=True, sharey=True)
    for row, trained in enumerate(runs):
        for column, method in enumerate(FOUR):
            ax = axes[4 * row + column]
            reliability_diagram(trained.test["y"], trained.test[method], ax=ax, histogram=False)
            for text in list(ax.texts):
                text.remove()
            if ax.get_legend():
                ax.get_legend().remove()
            ax.set_title(METHODS[method].label if row == 0 else "", fontsize=9)
            ax.set(xlabel="Prediction" if row == len(runs) - 1 else "", ylabel="")
        axes[4 * row].set_ylabel(f"{_title(trained)}\nobserved frequency", fontsize=9)
    return axes


def psi_figure():
    """Draw all five scenarios: probability against age.

    Returns
    -------
    list of matplotlib.axes.Axes
        Five panels.
    """
    _, axes = grid(5, columns=5, size=(1.75, 1.9), sharey=True)
    age = np.arange(0, 117)
    for ax, scenario in zip(axes, SCENARIOS):
        ax.plot(age, probability(age, scenario), color=COLOURS["blue"], lw=2)
        ax.set_title(scenario.capitalize(), fontsize=10)
        ax.set(xlabel="Age z (years)", ylim=(-0.02, 1.02))
    axes[0].set_ylabel(r"Probability $\psi(z)$")
    return axes


def outcomes_figure(evidence):
    """Draw where the probabilities of test rows lie and how many outcomes are 1, by scenario.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a scenario that has a run; empty without any.
    """
    runs = _firsts(evidence, ())
    if not runs:
        return []
    _, axes = grid(len(runs), columns=5, size=(1.75, 2.1))
    edges = np.linspace(0, 1, 21)
    for ax, trained in zip(axes, runs):
        y, p = trained.test["y"].to_numpy(), trained.test["p"].to_numpy()
        ax.hist(
            [p[y == 0], p[y == 1]],
            bins=edges,
            stacked=True,
            color=[COLOURS["sky"], COLOURS["vermilion"]],
            label=["y = 0", "y = 1"],
        )
        ax.set_title(f"{_title(trained)}\ny = 1: {y.mean():.0%}", fontsize=9.5)
        ax.set(xlabel="Probability p", xlim=(0, 1))
        ax.tick_params(labelsize=8)
    axes[0].set_ylabel("Test faces")
    axes[0].legend(fontsize=8)
    return axes


def gain_figure(table):
    """Draw what CaPE takes off the error of CE, against the weakness of that baseline.

    Parameters
    ----------
    table : DataFrame
        From `probnb.chapters.results.gains.cape_gains`.

    Returns
    -------
    list of matplotlib.axes.Axes
        Against the distance of CE from the best case, and against what Platt scaling takes off.
    """
    figure, axes = grid(2, columns=2, size=(4.2, 3.6), sharey=True)
    columns = {
        "weakness": "CE early-stop less resampled labels",
        "platt": "Gain of Platt scaling on CE early-stop",
    }
    for ax, (column, text) in zip(axes, columns.items()):
        for source, rows in table.groupby("source"):
            _mark(ax, rows[column], rows["cape"], source)
        for row in table[table["source"] == "published"].itertuples():
            ax.annotate(
                row.scenario.capitalize(),
                (getattr(row, column), row.cape),
                xytext=(6, -9 if row.scenario == "skewed" else 4),
                textcoords="offset points",
                fontsize=8,
                ha="right" if getattr(row, column) > 0.8 * table[column].max() else "left",
            )
        ax.axhline(0, color=COLOURS["grey"], lw=0.8)
        ax.set_xlabel(f"{text}\n(MSE$_p$ ×100)")
    ends = [min(0, table["platt"].min()), table["platt"].max()]
    axes[1].plot(ends, ends, "--", color=COLOURS["grey"], lw=1)
    axes[1].text(ends[1], ends[1], "equal", ha="right", va="bottom", fontsize=8, color="0.35")
    axes[0].set_ylabel("Gain of CaPE (bin) on CE early-stop\n(MSE$_p$ ×100)")
    present = [s for s in SOURCES if s in set(table["source"])]
    figure.legend(handles=_handles(present), loc="outside lower center", ncols=len(present))
    return axes
