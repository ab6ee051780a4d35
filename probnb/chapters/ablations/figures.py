"""Figures of the chapter on ablations: rows with their intervals, settings, and sizes."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from ...plots.style import COLOURS, grid
from .stored import means, paired
from .verdicts import mark_of

__all__ = [
    "difference_figure",
    "first_targets_figure",
    "settings_figure",
    "size_figure",
    "stopping_figure",
    "strengths_figures",
    "targets_figure",
]

_VERDICTS = {
    "better": "blue", "worse": "vermilion", "not told apart": "grey", "one seed": "black",
}  # fmt: skip
AXES = {
    "focal": "Focal loss: strength γ",
    "entropy": "Entropy: strength β",
    "mmce": "MMCE: strength β",
    "m": "m: every m-th epoch calibrates",
    "phase": "Phase (m = 3; 2 starts with it)",
    "B": "B: bins",
    "rate": "Learning rate",
    "r": "r: neighbours",
    "sigma": "σ of the kernel",
    "length": "Length (epochs)",
    "lambda": "λ: weight of p_emp",
}
CHOSEN = {"m": 3, "phase": 2, "B": 15, "r": 200, "sigma": 0.0707, "length": 4}
"""What other chapters use, where one value is used for all."""


def first_targets_figure(table):
    """Draw p_emp against p for the training rows, before training and early-stopped.

    Parameters
    ----------
    table : DataFrame
        From `probnb.chapters.ablations.start.first_targets`.

    Returns
    -------
    list of matplotlib.axes.Axes
        Two panels.
    """
    _, axes = grid(2, columns=2, size=(3.4, 3.0), sharex=True, sharey=True)
    for ax, (name, rows) in zip(axes, table.groupby("network", sort=False)):
        ax.plot([0, 1], [0, 1], color=COLOURS["grey"], lw=1, ls="--", label="a perfect target")
        ax.plot(rows["p"], rows["p_emp"], ".", ms=3, alpha=0.4, color=COLOURS["blue"])
        ax.set(title=name.capitalize(), xlabel="True probability p", xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("Target p$_{emp}$")
    axes[0].legend(loc="upper left")
    return axes


def difference_figure(table, base, rows=None):
    """Draw paired differences in MSE_p from one row, with intervals over seeds.

    Parameters
    ----------
    table : DataFrame
        Of one study.
    base : str
        The row to compare with.
    rows : sequence of str, optional
        Which rows; by default all others.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel a scenario.
    """
    found = paired(table, base=base)
    scenarios = list(dict.fromkeys(found["scenario"]))
    label = found.set_index("row")["label"].to_dict().get(base, base)
    rows = [r for r in (rows or found["row"].unique()) if r in set(found["row"]) and r != base]
    width = 5.6 if len(scenarios) == 1 else 3.4
    _, axes = grid(len(scenarios), columns=3, size=(width, 0.9 + 0.3 * len(rows)), sharey=True)
    for ax, scenario in zip(axes, scenarios):
        part = found[found["scenario"] == scenario].set_index("row").reindex(rows)
        colours = [COLOURS[_VERDICTS.get(v, "grey")] for v in part["verdict"]]
        _points(ax, part, "difference", colours)
        ax.axvline(0, color=COLOURS["black"], lw=1)
        ax.set_title(scenario.capitalize())
        ax.set_xlabel(f"MSE$_p$ less that of\n{label} (×100)")
    return axes


def _points(ax, part, column, colours):
    """Rows from top to bottom; an interval that leaves the panel ends at its edge."""
    y = np.arange(len(part))
    x = 100 * part[column].to_numpy()
    low, high = 100 * part["low"].to_numpy(), 100 * part["high"].to_numpy()
    colours = [colours] * len(y) if isinstance(colours, str) else colours
    spread = np.nanmax(np.abs(x - np.nanmean(x))) + 1e-9
    arms = np.abs(np.concatenate([low, high]) - np.nanmean(x))
    reach = (
        1.6 * spread if np.isnan(arms).all() else np.clip(np.nanmax(arms), 1.6 * spread, 4 * spread)
    )
    ax.hlines(y, np.where(np.isnan(low), x, low), np.where(np.isnan(high), x, high), colours, lw=2)
    ax.scatter(x, y, c=colours, s=28, zorder=3)
    middle, zero = np.nanmean(x), [0] if column == "difference" else []
    ends = min(middle - reach, *zero, middle), max(middle + reach, *zero, middle)
    ax.set_xlim(ends[0] - 0.1 * reach, ends[1] + 0.1 * reach)
    ax.set_yticks(y, part["label"])
    ax.set_ylim(len(y) - 0.5, -0.5)


def settings_figure(table, parts, base, columns=3, named=False):
    """Draw paired differences in MSE_p against settings, the usual value marked.

    Parameters
    ----------
    table : DataFrame
        Of one study, one scenario.
    parts : sequence of str
        Panels.
    base : str
        The row that is subtracted.
    columns : int, default=3
        Panels side by side.
    named : bool, default=False
        Whether the panels say which scenario they are of.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel for each part; intervals are over seeds.
    """
    found = paired(table, base=base)
    parts = [part for part in parts if (found["part"] == part).any()]
    _, axes = grid(len(parts), columns=columns, size=(2.7, 2.5), sharey=True)
    across = found[found["row"] == base].iloc[0]
    for ax, part in zip(axes, parts):
        rows = found[found["part"] == part].sort_values("x")
        x, y = rows["x"].to_numpy(), 100 * rows["difference"].to_numpy()
        label = f"{across['label']} ({100 * across['value']:.2f})"
        ax.axhline(0, color=COLOURS["grey"], ls="--", lw=1.4, label=label)
        ax.errorbar(
            x, y, _reach(rows, "difference"), color=COLOURS["blue"], marker="o", ms=4, capsize=2
        )
        if part in CHOSEN and CHOSEN[part] in x:
            at = np.flatnonzero(x == CHOSEN[part])[0]
            look = {"ms": 10, "mfc": "none", "mec": COLOURS["vermilion"], "ls": "none"}
            ax.plot(x[at], y[at], marker="s", label="usual value", **look)
        if x.min() > 0 and x.max() / x.min() > 6:
            ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(x))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.set_xlabel(AXES.get(part, part))
        if named:
            ax.set_title(across["scenario"].capitalize())
    values = 100 * found.loc[found["part"].isin(parts), "difference"]
    low, high = min(values.min(), 0), max(values.max(), 0)
    arms = _reach(found[found["part"].isin(parts)], "difference").max()
    room = max(0.7 * (high - low), min(arms, 2.5 * (high - low))) + 1e-9
    axes[0].set_ylim(low - room, high + 1.3 * room)
    for ax in axes[::columns]:
        ax.set_ylabel("Difference in\nMSE$_p$ (×100)")
    axes[0].legend(loc="upper left", fontsize=8)
    return axes


def strengths_figures(table):
    """Draw Figure 13, a figure for each scenario.

    Parameters
    ----------
    table : DataFrame
        Of the study of losses; empty for no figure.

    Returns
    -------
    list of matplotlib.axes.Axes
        Three panels a scenario.
    """
    scenarios = dict.fromkeys(table["scenario"] if len(table) else ())
    parts = [table[table["scenario"] == scenario] for scenario in scenarios]
    return [
        ax
        for part in parts
        for ax in settings_figure(part, ("focal", "entropy", "mmce"), "ce", named=True)
    ]


def _reach(rows, column):
    """Lengths of the two arms of each interval, times 100; 0 where there is none."""
    arms = [rows[column] - rows["low"], rows["high"] - rows[column]]
    return 100 * np.nan_to_num(np.stack(arms))


def targets_figure(table):
    """Draw what each row gains over cross entropy and what it costs, with the mark to reach.

    Parameters
    ----------
    table : DataFrame
        Of the study of targets, one scenario.

    Returns
    -------
    list of matplotlib.axes.Axes
        Differences from CE, and cost in CE trainings.
    """
    found = paired(table).set_index("row")
    rows = [r for r in found.index if r != "ce"]
    part = found.loc[sorted(rows, key=lambda r: found.loc[r, "difference"])]
    _, axes = grid(
        2, columns=2, size=(4.2, 0.9 + 0.3 * len(part)), sharey=True, width_ratios=[3, 1]
    )
    colours = [COLOURS[_VERDICTS.get(v, "grey")] for v in part["verdict"]]
    _points(axes[0], part, "difference", colours)
    axes[0].axvline(0, color=COLOURS["black"], lw=1)
    axes[0].axvline(
        100 * (mark_of(table) - found.loc["ce", "value"]), color=COLOURS["green"], ls="--",
        label="the mark: half way to resampled",
    )  # fmt: skip
    axes[0].set_xlabel("MSE$_p$ less that of CE early-stop (×100)")
    axes[0].legend(loc="lower left", bbox_to_anchor=(-0.1, 1.0))
    axes[1].barh(np.arange(len(part)), part["cost"], color=COLOURS["sky"])
    axes[1].axvline(6, color=COLOURS["green"], ls="--")
    axes[1].set_xlabel("Cost\n(CE trainings)")
    return axes


def stopping_figure(table):
    """Draw what each stopping rule keeps, what Platt scaling and what CaPE make of it.

    Parameters
    ----------
    table : DataFrame
        Of the study on stopping, one scenario.

    Returns
    -------
    matplotlib.axes.Axes
        MSE_p by rule, three marks each.
    """
    found = means(table)
    rules = list(dict.fromkeys(found["label"]))
    _, (ax,) = grid(1, size=(6.4, 0.9 + 0.45 * len(rules)))
    looks = {"kept": ("black", "o", "as kept"), "platt": ("sky", "s", "then Platt scaling"),
             "cape": ("vermilion", "^", "then CaPE (bin)")}  # fmt: skip
    for k, (part, (colour, mark, label)) in enumerate(looks.items()):
        rows = found[found["part"] == part].set_index("label").reindex(rules)
        y = np.arange(len(rules)) + 0.2 * (k - 1)
        value = 100 * rows["value"].to_numpy()
        reach = _reach(rows, "value")
        ax.errorbar(value, y, xerr=np.minimum(reach, 0.7 * value), fmt=mark, color=COLOURS[colour],
                    label=label, capsize=2)  # fmt: skip
    ax.set_yticks(np.arange(len(rules)), rules)
    ax.set_ylim(len(rules) - 0.5, -0.5)
    ax.set_xscale("log")
    ticks = [t for t in (0.5, 1, 2, 3, 5, 10, 20, 50) if ax.get_xlim()[0] <= t <= ax.get_xlim()[1]]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("MSE$_p$ (×100), mean and interval over seeds")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return ax


def size_figure(table):
    """Draw MSE_p against the number of training images.

    Parameters
    ----------
    table : DataFrame
        Of the study on scale, one scenario.

    Returns
    -------
    matplotlib.axes.Axes
        A line a row, both axes logarithmic.
    """
    found = means(table)
    _, (ax,) = grid(1, size=(6.4, 4.2))
    marks = "osv^D*P"
    names = [n for n in COLOURS if n not in ("yellow", "grey")]
    for k, (_, rows) in enumerate(found.groupby("row", sort=False)):
        rows = rows.sort_values("n")
        ax.plot(rows["n"], 100 * rows["value"], marker=marks[k % 7], color=COLOURS[names[k % 7]],
                label=rows["label"].iloc[0])  # fmt: skip
        if rows["low"].notna().all():
            low = 100 * np.maximum(rows["low"], 0.3 * rows["value"])
            ax.fill_between(
                rows["n"], low, 100 * rows["high"], color=COLOURS[names[k % 7]], alpha=0.1
            )
    ax.set(xscale="log", yscale="log", xlabel="Training images", ylabel="MSE$_p$ (×100)")
    sizes = sorted(found["n"].unique())
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    low, high = ax.get_ylim()
    ticks = [t for t in (0.2, 0.5, 1, 2, 5, 10, 20) if low <= t <= high]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.legend(loc="best", fontsize=8)
    return ax
