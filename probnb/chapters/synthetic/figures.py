"""Figures of the synthetic chapter: scenario, overfitting and learning curves."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from ...methods import METHODS
from ...plots.reliability import reliability_grid
from ...plots.style import COLOURS, grid
from ...scenarios import probability

__all__ = [
    "labelled",
    "learning_curves",
    "overfitting_figure",
    "prediction_histograms",
    "scenario_figure",
    "spread_of_ages",
]

_CURVES = {
    "train_ce": "Training cross entropy (nats)",
    "val_ce": "Validation cross entropy (nats)",
    "mse_p": "Test MSE$_p$ (×100)",
    "kl_p": "Test KL$_p$ (×100 nats)",
}


def scenario_figure(scenario, ages, p, y):
    """Draw a scenario: psi over age, where its probabilities lie, and how outcomes fall by age.

    Parameters
    ----------
    scenario : str
        Name in `probnb.scenarios.SCENARIOS`.
    ages, p, y : array-like of shape (n,)
        Ages in years, ground-truth probabilities and outcomes.

    Returns
    -------
    list of matplotlib.axes.Axes
        Three panels.
    """
    ages, p, y = np.asarray(ages), np.asarray(p), np.asarray(y)
    _, axes = grid(3, columns=3, size=(3.1, 2.7))
    z = np.arange(0, 117)
    axes[0].plot(z, probability(z, scenario), color=COLOURS["blue"], lw=2)
    axes[0].set(xlabel="Age z (years)", ylabel=r"Probability $\psi(z)$", ylim=(-0.02, 1.02))
    axes[0].set_title(f"{scenario.capitalize()}: from age to probability")
    axes[1].hist(p, bins=np.linspace(0, 1, 41), color=COLOURS["blue"])
    axes[1].set(xlabel="Probability p", ylabel="People", title="Probabilities in the data")
    bins = np.arange(0, 121, 5)
    axes[2].hist(
        [ages[y == 0], ages[y == 1]],
        bins=bins,
        stacked=True,
        color=[COLOURS["sky"], COLOURS["vermilion"]],
        label=[f"y = 0 ({np.mean(y == 0):.0%})", f"y = 1 ({np.mean(y == 1):.0%})"],
    )
    axes[2].set(xlabel="Age z (years)", ylabel="People", title="Outcomes by age")
    axes[2].legend()
    return axes


def spread_of_ages(ages, count):
    """Return row numbers of `count` people whose ages are spread evenly over all ranks."""
    order = np.argsort(ages, kind="stable")
    return order[np.linspace(0, len(order) - 1, min(count, len(order))).astype(int)]


def overfitting_figure(y, p, predictions, discrete=False):
    """Draw the paper's four-column figure: what overfitting does to predictions.

    Parameters
    ----------
    y, p : array-like of shape (n,)
        Outcomes and ground-truth probabilities of the test data.
    predictions : mapping of str to array-like of shape (n,)
        Predicted probabilities by method, one column of the figure each.
    discrete : bool, default=False
        Draw histograms of the predictions for each value of p, rather than predictions against
        probabilities with a reliability diagram.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a method.
    """
    predictions = dict(predictions)
    if discrete:
        return prediction_histograms(p, predictions)
    return reliability_grid(y, labelled(predictions), p=p)


def labelled(predictions):
    """Return predictions under the labels of their methods, as figures show them."""
    return {METHODS[name].label: p_hat for name, p_hat in dict(predictions).items()}


def prediction_histograms(p, predictions):
    """Draw histograms of predictions, one above the other for each ground-truth probability.

    Parameters
    ----------
    p : array-like of shape (n,)
        Ground-truth probabilities with few distinct values.
    predictions : mapping of str to array-like of shape (n,)
        Predicted probabilities by method, one panel each.

    Returns
    -------
    list of matplotlib.axes.Axes
        One panel a method.
    """
    p, predictions = np.asarray(p), dict(predictions)
    levels = np.unique(p.round(6))
    edges = np.linspace(0, 1, 26)
    columns = min(4, len(predictions))
    _, axes = grid(len(predictions), columns=columns, size=(2.5, 3.2), sharex=True, sharey=True)
    for ax, (name, p_hat) in zip(axes, predictions.items()):
        for row, level in enumerate(levels):
            values = np.asarray(p_hat)[np.isclose(p, level)]
            height = np.histogram(values, edges)[0] / len(values)
            height = 0.85 * height / max(height.max(), 1e-9)
            ax.stairs(
                row + height, edges, baseline=row, fill=True, color=COLOURS["blue"], alpha=0.45
            )
            ax.stairs(row + height, edges, baseline=row, color=COLOURS["blue"])
            ax.plot([level, level], [row, row + 0.95], color=COLOURS["vermilion"], lw=2)
        ax.set(title=METHODS[name].label, xlabel=r"Prediction $\hat p$", xlim=(0, 1))
        ax.set_yticks(range(len(levels)), [f"{level:g}" for level in levels])
        ax.grid(axis="y", visible=False)
    axes[0].set_ylabel("True probability p (red mark);\nhistograms scaled to their peaks")
    return axes


def learning_curves(results, window=1):
    """Draw the learning curves of cross entropy, and of fine-tunings that branch off it.

    Parameters
    ----------
    results : probnb.experiment.results.Results
        Of a run with ``"ce"`` among its rows.
    window : int, default=1
        Epochs of the moving average drawn; the paper uses 5.

    Returns
    -------
    list of matplotlib.axes.Axes
        Training and validation cross entropy, MSE_p and KL_p.
    """
    epochs, chosen = results.epochs, results.chosen[results.chosen["chosen"]]
    chosen = chosen.drop_duplicates("method").set_index("method")
    start = chosen.loc["ce", "best_epoch"]
    branches = [m for m in ("ce_finetuned", "cape_bin", "cape_kernel") if m in chosen.index]
    finetuned = chosen.loc[branches, "fit"].to_dict()
    _, axes = grid(4, columns=2, size=(4.4, 2.6))
    ce = epochs[epochs["fit"] == "ce"]
    lines = [("CE", ce, ce["epoch"], ("black", "-", 1.6))]
    styles = [("green", "-", 3.2), ("blue", "-", 1.6), ("vermilion", "--", 1.6)]
    for (method, fit), style in zip(finetuned.items(), styles):
        rows = epochs[epochs["fit"] == fit]
        lines.append((METHODS[method].label, rows, rows["epoch"] + start, style))
    for ax, (column, label) in zip(axes, _CURVES.items()):
        scale = 100 if column in ("mse_p", "kl_p") else 1
        for name, rows, x, (colour, dashes, width) in lines:
            values = scale * rows[column].rolling(window, min_periods=1, center=True).mean()
            ax.plot(x, values, dashes, color=COLOURS[colour], label=name, lw=width)
        ax.axvline(start, color=COLOURS["grey"], ls=":", lw=1)
        ax.set(xlabel="Epoch", ylabel=label)
        trained = scale * epochs[epochs["fit"].isin(["ce", *finetuned.values()])][column]
        if column != "train_ce" and trained.max() > 4 * trained.min():
            ax.set_yscale("log")  # the overfitted end would flatten what matters
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter(ScalarFormatter())
            ax.yaxis.set_minor_locator(NullLocator())
    axes[0].legend(loc="lower left")
    return axes
