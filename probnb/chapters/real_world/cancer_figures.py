"""Figures of the cancer task: predictions by stage, survival by predicted group, rules."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data.survival import HORIZON, RULES
from ...plots.style import COLOURS, grid
from .cancer_study import stage_quantiles, stage_spread, survival_by_group, survival_by_stage

__all__ = [
    "kept_groups",
    "kept_stage_boxes",
    "predicted_groups",
    "rule_bias_figure",
    "rule_scores_figure",
    "stage_boxes",
]

RULE_COLOURS = {"paper": "vermilion", "known": "orange", "ipcw": "blue"}


def stage_boxes(stages, predictions, months=None, died=None, horizon=HORIZON):
    """Draw predictions by pathological stage, as the paper's Figure 16, with what was observed.

    Parameters
    ----------
    stages : array-like of str of shape (n,)
        Stage of each patient; unknown ones have a box of their own.
    predictions : mapping of str to array-like of shape (n,)
        Predicted survival by method, one panel each.
    months, died : array-like of shape (n,), optional
        Follow-up: the Kaplan-Meier estimate of each stage at the horizon is drawn beside its box.
    horizon : float, default=60
        Months.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a method. Boxes are quartiles and medians, whiskers the 5th and 95th percentile,
        dots everybody beyond; below, the spread between and within stages.
    """
    boxes = stage_quantiles(stages, predictions)
    spread = stage_spread(stages, predictions)
    observed = None if months is None else survival_by_stage(stages, months, died, horizon, 5)
    axes = kept_stage_boxes(boxes, spread, observed, horizon)
    for ax, (name, rows) in zip(axes, boxes.groupby("method", sort=False)):
        for k, row in enumerate(rows.itertuples()):
            values = np.asarray(predictions[name])[np.asarray(stages) == row.stage]
            beyond = values[(values < row.whislo) | (values > row.whishi)]
            ax.plot(np.full(len(beyond), k - 0.12), beyond, ".", ms=3, color=COLOURS["grey"])
    return axes


def kept_stage_boxes(boxes, spread, observed=None, horizon=HORIZON, labels=None):
    """Draw predictions by stage from their quantiles, where patients' rows are not kept.

    Parameters
    ----------
    boxes : DataFrame
        From `probnb.chapters.real_world.cancer_study.stage_quantiles`.
    spread : DataFrame
        From `probnb.chapters.real_world.cancer_study.stage_spread`.
    observed : DataFrame, optional
        From `probnb.chapters.real_world.cancer_study.survival_by_stage`.
    horizon : float, default=60
        Months.
    labels : mapping of str to str, optional
        How to call the methods.

    Returns
    -------
    list of matplotlib.axes.Axes
        As `stage_boxes`, without the dots.
    """
    methods = list(dict.fromkeys(boxes["method"]))
    _, axes = grid(len(methods), columns=2, size=(3.3, 2.9), sharey=True)
    for ax, name in zip(axes, methods):
        rows = boxes[boxes["method"] == name]
        place = np.arange(len(rows), dtype=float)
        ax.bxp(
            rows[["whislo", "q1", "med", "q3", "whishi"]].to_dict("records"),
            positions=place - 0.12,
            widths=0.5,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": COLOURS["sky"], "alpha": 0.6, "linewidth": 0.8},
            medianprops={"color": COLOURS["blue"], "linewidth": 2},
        )
        if observed is not None:
            seen = observed.set_index("stage").reindex(rows["stage"])
            gaps = seen["survival"] - seen["low"], seen["high"] - seen["survival"]
            ax.errorbar(
                place + 0.32,
                seen["survival"],
                gaps,
                fmt="D",
                ms=4,
                lw=1.2,
                color=COLOURS["vermilion"],
                label="observed (Kaplan-Meier, 95 %)",
            )
        ax.set_xticks(place, [f"{_short(r.stage)}\n{r.patients}" for r in rows.itertuples()])
        ax.set(
            title=(labels or {}).get(name, name), ylim=(-0.02, 1.02), xlim=(-0.6, len(rows) - 0.4)
        )
        between, within = spread.loc[name, ["between", "within"]]
        ax.set_xlabel(f"Stage, patients\nspread between {between:.3f}, within {within:.3f}")
        ax.grid(axis="x", visible=False)
    for ax in axes[::2]:
        ax.set_ylabel(f"Probability of being\nalive at {horizon:g} months")
    if observed is not None:
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center")
    return axes


def predicted_groups(predictions, months, died, horizon=HORIZON, groups=3):
    """Draw the survival of patients grouped by their predictions: calibration in time.

    Parameters
    ----------
    predictions : mapping of str to array-like of shape (n,)
        Predicted survival by method, one panel each.
    months, died : array-like of shape (n,)
        Follow-up.
    horizon : float, default=60
        Months.
    groups : int, default=3
        Groups of equally many patients.

    Returns
    -------
    list of matplotlib.axes.Axes
        Kaplan-Meier curves with 95 % bands; a diamond at the horizon is the group's mean
        prediction, which lies on the curve of calibrated predictions.
    """
    tables = {
        name: survival_by_group(p_hat, months, died, groups, horizon)
        for name, p_hat in dict(predictions).items()
    }
    return kept_groups(tables, horizon)


def kept_groups(tables, horizon=HORIZON):
    """Draw the survival of groups that `survival_by_group` has made.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        By method; one panel each.
    horizon : float, default=60
        Months.

    Returns
    -------
    list of matplotlib.axes.Axes
        As `predicted_groups`.
    """
    _, axes = grid(len(tables), columns=2, size=(3.3, 2.7), sharey=True)
    for ax, (name, table) in zip(axes, tables.items()):
        colours = ["vermilion", "grey", "blue"] if len(table) == 3 else list(COLOURS)
        for row, colour in zip(table.itertuples(), colours):
            curve = row.curve[row.curve["months"] <= 1.5 * horizon]
            ax.step(curve["months"], curve["survival"], where="post", color=COLOURS[colour],
                    label=f"{row.predicted:.2f}, {row.patients}")  # fmt: skip
            ax.fill_between(curve["months"], curve["low"], curve["high"], step="post",
                            color=COLOURS[colour], alpha=0.15, lw=0)  # fmt: skip
            ax.plot(horizon, row.predicted, "D", ms=7, mec="white", color=COLOURS[colour])
        ax.axvline(horizon, color=COLOURS["grey"], ls=":", lw=1)
        ax.set(title=name, xlabel="Months", xlim=(0, 1.5 * horizon), ylim=(0, 1.02))
        ax.legend(title="mean prediction, patients", loc="lower left", fontsize=8,
                  title_fontsize=8)  # fmt: skip
    for ax in axes[::2]:
        ax.set_ylabel("Alive (line: Kaplan-Meier,\ndiamond: predicted)")
    return axes


def rule_bias_figure(table):
    """Draw what each rule makes of simulated censoring.

    Parameters
    ----------
    table : DataFrame
        From `probnb.chapters.real_world.censoring.rule_bias`.

    Returns
    -------
    list of matplotlib.axes.Axes
        Bias of the share of survivors, and slope that the true probabilities seem to have; bars
        span single samples of that many patients (one standard deviation).
    """
    _, axes = grid(2, columns=2, size=(3.6, 2.8))
    for ax, quantity in zip(axes, ("all", "slope")):
        rows = table[table["quantity"] == quantity]
        for k, rule in enumerate(RULES):
            own = rows[rows["rule"] == rule]
            y = own["bias"] if quantity == "all" else own["estimate"]
            ax.errorbar(100 * own["censored"] + 1.2 * (k - 1), y, own["sd"], fmt="o-", capsize=2,
                        color=COLOURS[RULE_COLOURS[rule]], label=rule)  # fmt: skip
        ax.axhline(0 if quantity == "all" else 1, color=COLOURS["grey"], ls=":", lw=1)
        ax.set_xlabel("Patients whose outcome is hidden (%)")
    axes[0].set_ylabel("Share of survivors:\nestimate less truth")
    axes[1].set_ylabel("Slope of outcomes on the\ntrue log-odds (truth: 1)")
    axes[0].legend(title="rule")
    return axes


def rule_scores_figure(scores, methods, labels, metrics=("brier", "auc", "ece")):
    """Draw each method's score under each rule, judged by that rule.

    Parameters
    ----------
    scores : DataFrame
        From `probnb.chapters.real_world.cancer_study.compare_rules`.
    methods : sequence of str
        Rows of the figure, from the top.
    labels : mapping of str to str
        How to call them.
    metrics : sequence of str, default=("brier", "auc", "ece")
        One panel each.

    Returns
    -------
    list of matplotlib.axes.Axes
        Points with 95 % intervals over resampled patients.
    """
    own = scores[scores["trained"] == scores["judged"]]
    place = pd.Series(np.arange(len(methods))[::-1], index=list(methods), dtype=float)
    _, axes = grid(len(metrics), columns=3, size=(2.7, 0.27 * len(methods) + 1.1), sharey=True)
    for ax, metric in zip(axes, metrics):
        for k, rule in enumerate(RULES):
            rows = own[(own["trained"] == rule) & (own["metric"] == metric)].set_index("method")
            rows = rows.loc[[m for m in methods if m in rows.index]]
            y = place[rows.index] + 0.22 * (1 - k)
            ax.errorbar(100 * rows["value"], y, fmt="o", ms=4, lw=1,
                        xerr=100 * np.abs(rows[["low", "high"]].sub(rows["value"], axis=0)).T,
                        color=COLOURS[RULE_COLOURS[rule]], label=rule)  # fmt: skip
        ax.set_xlabel(f"{metric.upper() if metric != 'brier' else 'Brier'} (×100)")
        ax.grid(axis="y", visible=False)
    axes[0].set_yticks(place, [labels.get(m, m) for m in place.index])
    handles, names = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, [f"rule {name}" for name in names], ncols=3,
                          loc="outside upper center")  # fmt: skip
    return axes


def _short(stage):
    return "?" if stage == "unknown" else stage
