"""Figures of the synthetic chapter: scenario, overfitting and learning curves."""

from __future__ import annotations

import numpy as np

from ..methods import METHODS
from ..scenarios import probability
from .reliability import reliability_diagram
from .style import COLOURS, grid

__all__ = ["learning_curves", "overfitting_figure", "prediction_histograms", "scenario_figure"]

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
    if discrete:
        return prediction_histograms(p, predictions)
    columns = min(4, len(predictions))
    _, axes = grid(len(predictions), columns=columns, size=(2.5, 2.7), sharex=True, sharey=True)
    for ax, (name, p_hat) in zip(axes, predictions.items()):
        reliability_diagram(y, p_hat, ax=ax, p=p, histogram=False, legend=ax is axes[0])
        ax.set_title(METHODS[name].label)
        if ax is not axes[0]:
            ax.set_ylabel("")
    return axes


def prediction_histograms(p, predictions):
    """Draw histograms of predictions, one colour for each ground-truth probability.

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
    p = np.asarray(p)
    levels = np.unique(p.round(6))
    colours = [COLOURS[c] for c in ("blue", "sky", "green", "orange", "vermilion", "purple")]
    columns = min(4, len(predictions))
    _, axes = grid(len(predictions), columns=columns, size=(2.5, 2.7), sharex=True, sharey=True)
    for ax, (name, p_hat) in zip(axes, predictions.items()):
        for level, colour in zip(levels, colours):
            values = np.asarray(p_hat)[np.isclose(p, level)]
            weights = np.full(len(values), 100 / len(values))
            style = dict(bins=np.linspace(0, 1, 26), weights=weights, color=colour)
            ax.hist(values, histtype="stepfilled", alpha=0.25, **style)
            ax.hist(values, histtype="step", lw=1.3, label=f"p = {level:g}", **style)
            ax.axvline(level, color=colour, ls=":", lw=1)
        ax.set(title=METHODS[name].label, xlabel=r"Prediction $\hat p$")
    axes[0].set_ylabel("Test faces of that p (%)")
    axes[0].set_ylim(0, 60)
    axes[0].legend(fontsize=8, loc="upper center", ncols=2, handlelength=1, columnspacing=0.8)
    return axes


def learning_curves(epochs, start, finetuned, window=1):
    """Draw the learning curves of cross entropy, and of fine-tunings that branch off it.

    Parameters
    ----------
    epochs : pandas.DataFrame
        As `probnb.rows.Rows.epochs`.
    start : int
        Early-stopped epoch of ``"ce"``, where the fine-tunings begin.
    finetuned : mapping of str to str
        Fit to draw for each method: method names to values of ``epochs["fit"]``.
    window : int, default=1
        Epochs of the moving average drawn; the paper uses 5.

    Returns
    -------
    list of matplotlib.axes.Axes
        Training and validation cross entropy, MSE_p and KL_p.
    """
    _, axes = grid(4, columns=4, size=(2.5, 2.7))
    ce = epochs[epochs["fit"] == "ce"]
    lines = [("CE", ce, ce["epoch"], COLOURS["black"])]
    colours = [COLOURS[c] for c in ("grey", "blue", "vermilion", "green")]
    for (method, fit), colour in zip(finetuned.items(), colours):
        rows = epochs[(epochs["fit"] == fit)]
        lines.append((METHODS[method].label, rows, rows["epoch"] + start, colour))
    for ax, (column, label) in zip(axes, _CURVES.items()):
        scale = 100 if column in ("mse_p", "kl_p") else 1
        for name, rows, x, colour in lines:
            values = scale * rows[column].rolling(window, min_periods=1, center=True).mean()
            ax.plot(x, values, color=colour, label=name, lw=1.6)
        ax.axvline(start, color=COLOURS["grey"], ls=":", lw=1)
        ax.set(xlabel="Epoch", title=label)
        ax.title.set_fontsize(9)
    early = ce[ce["epoch"] >= 1]
    for ax, column in zip(axes[1:], ("val_ce", "mse_p", "kl_p")):
        scale = 100 if column != "val_ce" else 1
        low = scale * epochs[epochs["fit"].isin(["ce", *finetuned.values()])][column].min()
        high = scale * early[column].max()
        if high > 4 * low:  # the overfitted end would flatten what matters
            ax.set_yscale("log")
    axes[0].legend(loc="lower left")
    return axes
