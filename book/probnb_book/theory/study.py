"""The chapter on theory: what is run at which settings, tables out, and the figures of them."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch

from probnb.plots import COLOURS, CYCLE, grid
from probnb.validation import check_choice, check_integer, check_number

from .. import theory
from . import descent
from .compare import against_baseline

SMOKE = {
    "n": 60,
    "replicates": 2,
    "iterations": 300,
    "phase_n": 60,
    "phase_gammas": [0.0, 2.0],
    "phase_replicates": 4,
    "appendix_n": 60,
    "appendix_iterations": 300,
    "grid_n": 60,
    "grid_kappas": [0.2, 1.0],
    "grid_gammas": [1.0, 3.0],
    "grid_replicates": 3,
}
"""Sizes at which the whole chapter runs in seconds."""


def check_settings(settings):
    """Check the page's parameters (its ``globals()``) before anything slow begins."""
    check_choice(settings["device"], ("cpu", "cuda"), "device")
    for name in [*(name for name in SMOKE if isinstance(SMOKE[name], int)), "threads"]:
        check_integer(settings[name], name, minimum=2 if name == "grid_replicates" else 1)
    check_number(settings["eta"], "eta", minimum=0, exclusive=True)
    for name in ("grid_kappas", "grid_gammas", "phase_gammas"):
        for value in settings[name]:
            check_number(value, name, minimum=0, exclusive=name == "grid_kappas")


def early_learning(model, eta, horizon):
    """Gradient descent at several step sizes, sample sizes and aspect ratios: Theorem A.1.

    Returns panels "step size", "sample size" and "aspect ratio", each a dict of `Trajectory` by
    label. Other sample sizes and aspect ratios take steps of 0.9 of their own bound 2n/||X||^2
    where `eta` is longer; it is training time t = k eta that is compared.
    """

    def run(setting, step, limit=False):
        sample = theory.draw(setting)
        if limit:
            step = min(step, 0.9 * float(theory.stable_step(sample).min()))
        return descent.gradient_descent(sample, step, max(1, round(horizon / step)))

    sizes = [max(2, round(model.n * f)) for f in (0.2, 0.4, 1)]
    ratios = [model.kappa * f for f in (0.25, 0.5, 1, 2)]
    return {
        "step size": {rf"$\eta$ = {eta * f:.3g}": run(model, eta * f) for f in (1, 0.5, 0.25)},
        "sample size": {f"n = {n}": run(replace(model, n=n), eta, True) for n in sizes},
        "aspect ratio": {
            rf"$\kappa$ = {k:.3g}": run(replace(model, kappa=k), eta, True) for k in ratios
        },
    }


def slope_table(model, pairs, sizes):
    """Slopes of the error at the start, measured (mean, standard error) and in the limit."""
    rows = []
    for gamma, gamma_0 in pairs:
        for n in sizes:
            sample = theory.draw(replace(model, n=n, gamma=gamma, gamma_0=gamma_0))
            slopes = pd.Series(descent.measured_slope(sample)).agg(["mean", "sem"])
            limit = float(descent.initial_slope(gamma, gamma_0))
            rows.append((gamma, gamma_0, n, *slopes, limit))
    return pd.DataFrame(rows, columns=["gamma", "gamma_0", "n", "slope", "error", "limit"])


def gap_table(model, etas, horizon):
    """Farthest distance of gradient descent from gradient flow by step size, over replicates."""
    sample, columns = theory.draw(model), ["parameters", "errors"]
    gaps = [np.mean(descent.flow_gap(sample, eta, horizon), axis=1) for eta in etas]
    return pd.DataFrame(gaps, pd.Index(etas, name="eta"), columns)


def memorise(model, eta, iterations):
    """Follow training until the outcomes are memorised, and beyond: Theorem A.2.

    `eta` is in stretched time, see `probnb_book.theory.descent.late_training`; angles to the
    max-margin separator are NaN for replicates that are not separable. Returns the run, the angle
    in radians to the limit (r, k) and which data sets are separable (r,).
    """
    sample = theory.draw(model)
    found = [theory.max_margin(X, y) for X, y in zip(sample.inputs.cpu(), sample.outcomes.cpu())]
    separable = np.array([w is not None for w in found])
    nowhere = np.full(model.p, np.nan)
    onto = [nowhere if w is None else w / np.linalg.norm(w) for w in found]
    onto = torch.from_numpy(np.stack(onto)).to(model.device)
    path = descent.late_training(sample, eta, iterations, descent.record_at(iterations), onto)
    with np.errstate(invalid="ignore"):  # a start of length 0 has no direction
        angle = np.arccos(np.clip(path.onto / path.norm, -1, 1))
    return path, angle, separable


def critical_ratios(n, gammas, replicates, seed=0):
    """Aspect ratios at which simulated data become separable, (gammas, replicates), sorted."""
    found = [
        [theory.critical_dimension(n, gamma, [seed, i, r]) / n for r in range(replicates)]
        for i, gamma in enumerate(gammas)
    ]
    return np.sort(found, axis=1)


def appendix_b(model, eta=0.05, iterations=6000, batch=100):
    """SGD on finite and on resampled labels, same data and batches; the paper's n = p = 500.

    Returns the iterations recorded and the two runs.
    """
    sample, record = theory.draw(model), descent.record_at(iterations)
    runs = (
        descent.sgd(sample, eta, iterations, labels, batch, record=record, seed=model.seed)
        for labels in ("observed", "resampled")
    )
    return record, *runs


def summary_table(table, baseline="early stop"):
    """Mean errors of `compare_methods` (x 100), and the paired difference from a baseline."""
    means = 100 * table.groupby("method", sort=False)[["mse", "calibration", "grouping"]].mean()
    wide = 100 * table.pivot(index="replicate", columns="method", values="mse")
    difference = wide.sub(wide[baseline], axis=0)
    means["difference"], means["standard error"] = difference.mean(), difference.sem()
    means["kept its start (%)"] = 100 * (table["chosen"] == 0).groupby(table["method"]).mean()
    return means.rename(columns={"mse": "MSE x 100"}).rename_axis(None)


def variant_changes(table, baseline="early stop"):
    """Change of mean error against a baseline in per cent, with z, by variant and method."""
    cells = table.assign(kappa=table["variant"], gamma=0)
    names = ("CaPE (bin)", "CaPE (kernel)", "oracle", "ridge")
    changes = {m: against_baseline(cells, m, baseline).droplevel("gamma") for m in names}
    return pd.concat(changes, axis=1).loc[table["variant"].unique()].rename_axis(None)


def bold_where_clear(changes):
    """Show changes in per cent, those of more than two standard errors in bold."""
    clear = changes.xs("z", axis=1, level=1).abs() > 2
    shown = changes.xs("change", axis=1, level=1).style.format("{:+.1f}")
    return shown.apply(lambda _: clear.map(lambda c: "font-weight: bold" if c else ""), axis=None)


def grid_summary(cells, methods, baseline="early stop"):
    """Cells of the grid in which each method is better or worse by two standard errors."""
    rows = {}
    for method in methods:
        found = against_baseline(cells, method, baseline)
        better, worse = int((found.z < -2).sum()), int((found.z > 2).sum())
        rows[f"{method}, against {baseline}"] = (better, worse, len(found), found.change.mean())
    columns = ["better", "worse", "cells", "mean change (%)"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


_MSE = r"MSE$_p$ $\times$ 100"


def _axes(columns=1, height=3.2, width=None, **kwargs):
    width = width or (7.4 if columns > 1 else 5.6)
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained", **kwargs)[1]


def _bands(ax, runs, **look):
    """Means over replicates in a band of one standard deviation: times and errors by name."""
    tables = {
        name: pd.DataFrame(100 * errors, columns=time).melt(var_name="time", value_name="mse")
        for name, (time, errors) in runs.items()
    }
    long = pd.concat(tables, names=["run", ""]).reset_index("run")
    palette = [COLOURS[c] for c in CYCLE[: len(runs)]]
    sns.lineplot(
        long,
        x="time",
        y="mse",
        hue="run",
        errorbar="sd",
        palette=palette,
        ax=ax,
        err_kws={"alpha": 0.15, "lw": 0},
    )
    ax.legend(title=None)
    ax.set(ylabel=_MSE, **look)
    return ax


def landscape(paths, gamma):
    """Error over the two components of the estimate, with the mean path of training runs."""
    ax = _axes(height=4.2, width=6.8)
    across = {k: np.sqrt(np.maximum(v.norm**2 - v.along**2, 0)) for k, v in paths.items()}
    right = 1.05 * max(1.3 * gamma, *(v.along.mean(0).max() for v in paths.values()))
    left = min(-0.15 * gamma, *(v.along.mean(0).min() for v in paths.values()))
    top = 1.05 * max(gamma, *(v.mean(0).max() for v in across.values()))
    x, y = np.meshgrid(np.linspace(left, right, 90), np.linspace(0, top, 80))
    error = 100 * theory.mse(np.hypot(x, y), x, gamma)
    shades = ax.contourf(x, y, error, levels=14, cmap="Greys", alpha=0.75)
    ax.figure.colorbar(shades, ax=ax, label=_MSE, pad=0.02)
    for (name, path), colour in zip(paths.items(), CYCLE):
        a, b = path.along.mean(0), across[name].mean(0)
        ax.plot(a, b, color="white", lw=3.6)
        ax.plot(a, b, color=COLOURS[colour], lw=2, label=name)
        best = path.mse.mean(0).argmin()
        ax.plot(a[best], b[best], "o", color=COLOURS[colour], mec="white", ms=8, zorder=3)
    ax.plot(gamma, 0, "*", color="black", ms=13, clip_on=False, zorder=4, label="truth")
    ax.set(xlabel="component along the truth", ylabel="length of the rest", ylim=(0, top))
    ax.grid(False)
    ax.legend(loc="upper left", frameon=True, facecolor="white", framealpha=0.9, edgecolor="none")
    return ax


def early_learning_figure(panels):
    """Error against training time, a panel for each thing that varies."""
    axes = _axes(len(panels), sharey=True)
    for ax, (title, runs) in zip(axes, panels.items()):
        runs = {name: (run.time, run.mse) for name, run in runs.items()}
        _bands(ax, runs, title=f"Varying the {title}", xlabel=r"training time $t = k\eta$")
    return axes


def curves_figure(time, errors, **look):
    """Errors by name over one time; `look` is set on the axes."""
    return _bands(_axes(), {name: (time, values) for name, values in errors.items()}, **look)


def memorisation_figure(path, angles):
    """Norm against log time, and angle to the limit against the norm, a line a data set."""
    axes, blue = _axes(2, height=3.0), COLOURS["blue"]
    for norm, angle, time in zip(path.norm, angles, path.time):
        axes[0].plot(time[1:] / np.log(10), norm[1:], color=blue, alpha=0.6, lw=1.2)
        axes[1].loglog(norm, angle, color=blue, alpha=0.6, lw=1.2)
    norm = r"$\|\hat\theta\|$"
    axes[0].set(xlabel=r"$\log_{10}$ of training time", ylabel=norm)
    axes[1].set(xlabel=norm, ylabel="radians to the max-margin separator")
    return axes


def phase_figure(critical, gammas, n):
    """Share of separable data sets over the plane, with the theoretical boundary through it."""
    ax = _axes(height=4.2, width=6.8)
    gammas, kappas = np.asarray(gammas, float), np.linspace(0, 0.7, 141)
    share = 100 * (critical[:, None] <= kappas[:, None]).mean(axis=2)
    image = ax.pcolormesh(
        gammas, kappas, share.T, cmap="Blues", shading="nearest", vmin=0, rasterized=True
    )
    ax.figure.colorbar(image, ax=ax, label="separable data sets (%)", pad=0.02)
    fine = np.linspace(gammas[0], gammas[-1], 200)
    ax.plot(
        fine,
        theory.separability_threshold(fine),
        color=COLOURS["vermilion"],
        lw=2.2,
        label=r"theory, $\kappa^*(\gamma)$",
    )
    ax.plot(
        gammas,
        np.median(critical, axis=1),
        "o",
        color="black",
        ms=5,
        mec="white",
        label=f"simulated 50 % point, n = {n}",
    )
    ax.text(0.97, 0.93, "memorised in the end", transform=ax.transAxes, ha="right", color="white")
    ax.text(0.03, 0.05, "a finite optimum", transform=ax.transAxes)
    ax.set(xlabel=r"signal strength $\gamma$", ylabel=r"aspect ratio $\kappa = p/n$")
    ax.grid(False)
    ax.legend(loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    return ax


def appendix_b_panels(observed, resampled, seed=0, points=1000):
    """True against predicted probability in the first replicate: the paper's four panels."""
    panels = {
        "Start": (observed, 0),
        "Early learning": (observed, observed.mse[0].argmin()),
        "Finite labels, end": (observed, -1),
        "Resampled labels, end": (resampled, -1),
    }
    axes, q = _axes(4, height=2.7, sharey=True), np.linspace(0.001, 0.999, 300)
    for ax, (title, (path, k)) in zip(axes, panels.items()):
        norm, along = float(path.norm[0, k]), float(path.along[0, k])
        p_hat, p = theory.fresh_predictions(norm, along, path.gamma, points, seed)
        ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1)
        ax.plot(p_hat, p, "o", ms=2.2, color=COLOURS["sky"], alpha=0.45, mew=0, rasterized=True)
        if norm > 0:  # a start at 0 has one prediction
            ax.plot(q, theory.reliability(q, norm, along, path.gamma), color="black", lw=1.8)
        ax.set(xlabel="prediction", xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.5, 1])
        ax.set_title(f"{title}\nMSE {100 * float(path.mse[0, k]):.2f}", fontsize=9, loc="left")
    axes[0].set_ylabel("probability")
    return axes


def grid_maps(table, methods, baseline="early stop"):
    """Maps over the grid: best stopping time, its error, each method's change in per cent.

    Changes of more than two paired standard errors are in bold.
    """
    _, axes = grid(2 + len(methods), columns=2, size=(3.7, 3.0))
    oracle = table[table.method == "oracle"].groupby(["kappa", "gamma"])
    first = dict(cmap="viridis", cbar=False, annot=True)
    sns.heatmap(oracle.chosen.mean().unstack(), fmt=".3g", ax=axes[0], **first)
    sns.heatmap(100 * oracle.mse.mean().unstack(), fmt=".1f", ax=axes[1], **first)
    axes[0].set_title("Best stopping time")
    axes[1].set_title("MSE there $\\times$ 100")
    for ax, method in zip(axes[2:], methods):
        cells = against_baseline(table, method, baseline)
        sns.heatmap(
            cells.change.unstack(),
            fmt="+.0f",
            ax=ax,
            cmap="RdBu_r",
            vmin=-60,
            vmax=60,
            cbar=False,
            annot=True,
        )
        for text, z in zip(ax.texts, cells.z.unstack().to_numpy().ravel()):
            text.set_weight("bold" if abs(z) > 2 else "normal")
        ax.set_title(f"{method}, change (%)")
    for ax in axes:
        ax.invert_yaxis()
        ax.set(xlabel=r"signal $\gamma$", ylabel=r"$\kappa = p/n$")
    return axes
