"""Figures of the chapter on theory."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from ...plots.style import COLOURS, CYCLE, grid
from ...theory import fresh_predictions, mse, mse_parts, reliability
from ...theory.compare import against_baseline
from ...theory.descent import collapsed
from ...theory.separability import separability_threshold

__all__ = [
    "appendix_b_curves",
    "appendix_b_panels",
    "cape_figure",
    "early_learning_figure",
    "gap_figure",
    "grid_maps",
    "landscape",
    "memorisation_figure",
    "parts_figure",
    "phase_figure",
    "slope_figure",
]

_MSE = r"MSE$_p$ $\times$ 100"


def _band(ax, x, values, colour, label):
    """Mean over replicates (rows) in percent, in a band of one standard deviation."""
    mean, spread = 100 * values.mean(axis=0), 100 * values.std(axis=0)
    ax.fill_between(x, mean - spread, mean + spread, color=COLOURS[colour], alpha=0.15, lw=0)
    ax.plot(x, mean, color=COLOURS[colour], lw=1.8, label=label)


def landscape(paths, gamma, ax=None):
    """Error as a function of the two components of the estimate, with training runs through it.

    Parameters
    ----------
    paths : dict of Trajectory
        Runs by label; the mean over replicates is drawn.
    gamma : float
        Norm of the truth.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1] if ax is None else ax
    across = {k: np.sqrt(np.maximum(v.norm**2 - v.along**2, 0)) for k, v in paths.items()}
    right = 1.05 * max(1.3 * gamma, *(v.along.mean(0).max() for v in paths.values()))
    left = min(-0.15 * gamma, *(v.along.mean(0).min() for v in paths.values()))
    top = 1.05 * max(gamma, *(v.mean(0).max() for v in across.values()))
    x, y = np.meshgrid(np.linspace(left, right, 90), np.linspace(0, top, 80))
    error = 100 * mse(np.hypot(x, y), x, gamma)
    lines = ax.contourf(x, y, error, levels=14, cmap="Greys", alpha=0.75)
    ax.figure.colorbar(lines, ax=ax, label=_MSE, pad=0.02)
    for (name, path), colour in zip(paths.items(), CYCLE):
        a, b = path.along.mean(0), across[name].mean(0)
        ax.plot(a, b, color="white", lw=3.6)
        ax.plot(a, b, color=COLOURS[colour], lw=2, label=name)
        best = path.mse.mean(0).argmin()
        ax.plot(a[best], b[best], "o", color=COLOURS[colour], mec="white", ms=8, zorder=3)
    ax.plot(gamma, 0, "*", color=COLOURS["black"], ms=13, clip_on=False, zorder=4, label="truth")
    ax.set(xlabel="component along the truth", ylabel="length of the rest", ylim=(0, top))
    ax.grid(False)
    ax.legend(loc="upper left", frameon=True, facecolor="white", framealpha=0.9, edgecolor="none")
    return ax


def early_learning_figure(panels):
    """Error against training time, a panel for each thing that varies.

    Parameters
    ----------
    panels : dict of dict of Trajectory
        As `probnb.chapters.theory.study.early_learning` returns them.

    Returns
    -------
    list of matplotlib.axes.Axes
        The panels.
    """
    _, axes = grid(len(panels), columns=3, size=(3.1, 3.2), sharey=True)
    for ax, (title, runs) in zip(axes, panels.items()):
        for (label, path), colour in zip(runs.items(), CYCLE):
            _band(ax, path.time, path.mse, colour, label)
        ax.set(title=f"Varying the {title}", xlabel=r"training time $t = k\eta$")
        ax.legend()
    axes[0].set_ylabel(_MSE)
    return axes


def slope_figure(table, ax=None):
    """Slope of the error at the start against sample size, with its limit.

    Parameters
    ----------
    table : DataFrame
        As `probnb.chapters.theory.study.slope_table` returns it.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")[1] if ax is None else ax
    for i, ((gamma, gamma_0), rows) in enumerate(table.groupby(["gamma", "gamma_0"])):
        colour = COLOURS[CYCLE[i % len(CYCLE)]]
        label = rf"$\gamma$ = {gamma:g}, $\gamma_0$ = {gamma_0:g}"
        shift = rows.n * (1 + 0.02 * (i - 1))
        ax.axhline(rows.limit.iloc[0], color=colour, lw=1, ls="--")
        ax.errorbar(shift, rows.slope, 2 * rows.error, fmt="o", color=colour, ms=5, label=label)
    ax.axhline(0, color=COLOURS["grey"], lw=0.8)
    ax.set_xscale("log", base=2)
    ax.set_xticks(sorted(table.n.unique()), sorted(table.n.unique()))
    ax.minorticks_off()
    ax.set(xlabel="sample size n", ylabel=r"$\mathrm{MSE}'(0)$ per unit of time")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return ax


def gap_figure(table, ax=None):
    """Distance between gradient descent and gradient flow against the step size.

    Parameters
    ----------
    table : DataFrame
        As `probnb.chapters.theory.study.gap_table` returns it.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")[1] if ax is None else ax
    mean = table.groupby("eta")[["parameters", "errors"]].mean()
    for column, label, colour in (
        ("parameters", r"estimates, $\sup\|\hat\theta_\eta - \hat\theta\|$", "blue"),
        ("errors", r"errors, $\sup|\mathrm{MSE}_\eta - \mathrm{MSE}|$", "vermilion"),
    ):
        ax.loglog(mean.index, mean[column], "o-", color=COLOURS[colour], ms=5, label=label)
        line = mean[column].iloc[0] * mean.index / mean.index[0]
        ax.loglog(mean.index, line, "--", color=COLOURS["grey"], lw=1)
    ax.plot([], [], "--", color=COLOURS["grey"], lw=1, label=r"proportional to $\eta$")
    ax.set_xticks(mean.index, [f"{eta:.3g}" for eta in mean.index])
    ax.minorticks_off()
    ax.set(xlabel=r"step size $\eta$", ylabel="largest gap")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def memorisation_figure(run):
    """Norm, direction and collapse of the predictions over all of training.

    Parameters
    ----------
    run : Memorisation
        As `probnb.chapters.theory.study.memorise` returns it.

    Returns
    -------
    list of matplotlib.axes.Axes
        Three panels: norm against log time, angle and collapsed share against norm.
    """
    _, axes = grid(3, columns=3, size=(3.1, 3.1))
    path, blue = run.path, COLOURS["blue"]
    for r in range(len(path.norm)):
        log_time = path.time[r, 1:] / np.log(10)
        axes[0].plot(log_time, path.norm[r, 1:], color=blue, alpha=0.6, lw=1.2)
        axes[1].loglog(path.norm[r], run.angle[r], color=blue, alpha=0.6, lw=1.2)
    scale = np.geomspace(max(path.norm.min(), 0.1), path.norm.max(), 200)
    axes[2].semilogx(scale, 100 * collapsed(scale), color=blue, lw=1.8)
    axes[0].set(xlabel=r"$\log_{10}$ of training time", ylabel=r"$\|\hat\theta\|$", title="Norm")
    axes[1].set(
        xlabel=r"$\|\hat\theta\|$", ylabel="angle (radians)", title="Angle to max-margin direction"
    )
    axes[2].set(
        xlabel=r"$\|\hat\theta\|$",
        ylabel="share of predictions (%)",
        title="Within 0.001 of 0 or 1",
        ylim=(0, 100),
    )
    return axes


def phase_figure(critical, gammas, n, ax=None):
    """Share of separable data sets over the plane, with the theoretical boundary through it.

    Parameters
    ----------
    critical : ndarray of shape (g, replicates)
        As `probnb.chapters.theory.study.critical_ratios` returns it.
    gammas : sequence of float
        Signal strengths of the rows, increasing and evenly spaced.
    n : int
        Observations per data set.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")[1] if ax is None else ax
    gammas, kappas = np.asarray(gammas, float), np.linspace(0, 0.7, 141)
    share = 100 * (critical[:, None] <= kappas[:, None]).mean(axis=2)
    image = ax.pcolormesh(gammas, kappas, share.T, cmap="Blues", shading="nearest", vmin=0)
    ax.figure.colorbar(image, ax=ax, label="separable data sets (%)", pad=0.02)
    fine = np.linspace(gammas[0], gammas[-1], 200)
    ax.plot(
        fine,
        separability_threshold(fine),
        color=COLOURS["vermilion"],
        lw=2.2,
        label=r"theory, $\kappa^*(\gamma)$",
    )
    ax.plot(
        gammas,
        np.median(critical, axis=1),
        "o",
        color=COLOURS["black"],
        ms=5,
        mec="white",
        label=f"simulated 50 % point, n = {n}",
    )
    ax.text(0.97, 0.93, "memorised in the end", transform=ax.transAxes, ha="right", color="white")
    ax.text(0.03, 0.05, "a finite optimum", transform=ax.transAxes, color=COLOURS["black"])
    ax.set(xlabel=r"signal strength $\gamma$", ylabel=r"aspect ratio $\kappa = p/n$")
    ax.grid(False)
    ax.legend(
        loc="upper center",
        ncols=2,
        frameon=True,
        facecolor="white",
        framealpha=0.9,
        edgecolor="none",
        bbox_to_anchor=(0.5, 1.13),
    )
    return ax


def appendix_b_panels(run, seed=0, points=1000):
    """True against predicted probability: start, early learning, memorised, resampled labels.

    Parameters
    ----------
    run : AppendixB
        As `probnb.chapters.theory.study.appendix_b` returns it; the first replicate is drawn.
    seed : int, default=0
        Source of the fresh inputs.
    points : int, default=1000
        Fresh inputs.

    Returns
    -------
    list of matplotlib.axes.Axes
        The four panels of the paper's figure. The black reliability curve is exact.
    """
    panels = (
        ("Start", run.observed, 0),
        ("Early learning", run.observed, run.best),
        ("Finite labels, end", run.observed, -1),
        ("Resampled labels, end", run.resampled, -1),
    )
    _, axes = grid(4, columns=4, size=(2.35, 2.7), sharey=True)
    for ax, (title, path, k) in zip(axes, panels):
        norm, along = float(path.norm[0, k]), float(path.along[0, k])
        p_hat, p = fresh_predictions(norm, along, path.gamma, points, seed)
        ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1)
        ax.plot(p_hat, p, "o", ms=2.2, color=COLOURS["sky"], alpha=0.45, mew=0)
        q = np.linspace(0.001, 0.999, 300)
        if norm > 0:
            ax.plot(q, reliability(q, norm, along, path.gamma), color=COLOURS["black"], lw=1.8)
        else:  # a start at 0: one prediction, and as good as a coin
            ax.plot(0.5, 0.5, "o", color=COLOURS["black"], ms=5)
        error = 100 * float(path.mse[0, k])
        ax.set(title=title, xlabel="prediction", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.text(0.04, 0.91, f"MSE {error:.2f}", transform=ax.transAxes, fontsize=9)
    axes[0].set_ylabel("probability")
    axes[0].plot([], [], color=COLOURS["black"], label="exact reliability curve")
    axes[0].plot([], [], "o", color=COLOURS["sky"], ms=4, label="fresh examples")
    axes[0].figure.legend(loc="outside lower center", ncols=2)
    return axes


def appendix_b_curves(run, ax=None):
    """Error of SGD on finite and on resampled labels against iterations.

    Parameters
    ----------
    run : AppendixB
        As `probnb.chapters.theory.study.appendix_b` returns it.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")[1] if ax is None else ax
    for label, path, colour in (
        ("finite labels", run.observed, "green"),
        ("resampled labels", run.resampled, "vermilion"),
    ):
        _band(ax, 1 + run.iterations, path.mse, colour, label)
    ax.set(xscale="log", xlabel="iterations + 1", ylabel=_MSE, ylim=(0, None))
    ax.legend()
    return ax


def parts_figure(path, ax=None):
    """Error over training time, split into miscalibration and what calibration cannot mend.

    Parameters
    ----------
    path : Trajectory
        A run; means over replicates are drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")[1] if ax is None else ax
    calibration, grouping = (
        100 * part.mean(axis=0) for part in mse_parts(path.norm, path.along, path.gamma)
    )
    time = path.time[1:]
    ax.stackplot(
        time,
        grouping[1:],
        calibration[1:],
        colors=[COLOURS["sky"], COLOURS["orange"]],
        labels=["wrong direction (grouping)", "wrong confidence (calibration)"],
        alpha=0.85,
        lw=0,
    )
    total = calibration + grouping
    best = total.argmin()
    ax.plot(time, total[1:], color=COLOURS["black"], lw=1.6, label="sum")
    ax.axvline(path.time[best], color=COLOURS["grey"], ls="--", lw=1, label="least error")
    ax.set(xscale="log", xlabel="training time t", ylabel=_MSE, xlim=(time[0], time[-1]))
    ax.set_ylim(0, 1.02 * total.max())
    ax.legend(loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    return ax


def cape_figure(time, curves, ax=None):
    """Error after the early stop: going on with the outcomes, or with CaPE.

    Parameters
    ----------
    time : ndarray of shape (k,)
        Training time since the early stop.
    curves : dict of ndarray of shape (r, k)
        As `probnb.theory.compare.cape_curves` returns them.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")[1] if ax is None else ax
    for (label, values), colour in zip(curves.items(), ("black", "blue", "vermilion")):
        _band(ax, time, values, colour, label)
    start = 100 * next(iter(curves.values()))[:, 0].mean()
    ax.axhline(start, color=COLOURS["grey"], ls="--", lw=1, label="early stop")
    ax.set(xlabel="training time since the early stop", ylabel=_MSE, xlim=(0, time[-1]))
    ax.legend()
    return ax


def grid_maps(table, methods, baseline="early stop"):
    """Maps over the grid: best stopping time, its error, and each method against early stopping.

    Parameters
    ----------
    table : DataFrame
        As `probnb.theory.compare.sweep` returns it.
    methods : sequence of str
        Methods to compare with the baseline.
    baseline : str, default="early stop"
        The method that the differences are relative to.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel each. Differences are of mean errors in percent; those of more than two paired
        standard errors are in bold.
    """
    _, axes = grid(2 + len(methods), columns=3, size=(3.1, 3.0))
    oracle = table[table.method == "oracle"].groupby(["kappa", "gamma"])
    _map(axes[0], oracle.chosen.mean(), "Best stopping time", "{:.3g}", "viridis")
    _map(axes[1], 100 * oracle.mse.mean(), "MSE there $\\times$ 100", "{:.1f}", "viridis")
    for ax, method in zip(axes[2:], methods):
        cells = against_baseline(table, method, baseline)
        title = f"{method}, change (%)"
        _map(ax, cells.change, title, "{:+.0f}", "RdBu_r", limit=60, bold=cells.z.abs() > 2)
    return axes


def _map(ax, values, title, pattern, cmap, limit=None, bold=None):
    cells = values.unstack("gamma")
    low, high = (-limit, limit) if limit else (None, None)
    image = ax.imshow(cells, cmap=cmap, vmin=low, vmax=high, origin="lower", aspect="auto")
    for (i, j), value in np.ndenumerate(cells.to_numpy()):
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        text = pattern.format(value) if abs(value) >= 0.5 or limit is None else "0"
        weight = "bold" if bold is not None and bold.unstack("gamma").iloc[i, j] else "normal"
        colour = "white" if dark else "black"
        ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour, weight=weight)
    ax.set_xticks(range(cells.shape[1]), [f"{g:g}" for g in cells.columns])
    ax.set_yticks(range(cells.shape[0]), [f"{k:g}" for k in cells.index])
    ax.set(title=title, xlabel=r"signal $\gamma$", ylabel=r"$\kappa = p/n$")
    ax.grid(False)
