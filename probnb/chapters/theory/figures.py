"""Figures of the chapter on theory; each draws data of `.study` and returns its axes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ...plots import COLOURS, CYCLE
from ...theory import fresh_predictions, mse, mse_parts, reliability, separability_threshold
from ...theory.compare import against_baseline
from ...theory.descent import collapsed

_MSE = r"MSE$_p$ $\times$ 100"


def _axes(columns=1, height=3.2, width=None, **kwargs):
    width = width or (7.4 if columns > 1 else 5.6)
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained", **kwargs)[1]


def _bands(ax, curves, time, colours=CYCLE):
    """Means over replicates in a band of one standard deviation."""
    palette = [COLOURS[c] for c in colours[: len(curves)]]
    tables = [pd.DataFrame(100 * v, columns=at).melt(var_name="time", value_name="mse")
              for v, at in zip(curves.values(), time)]  # fmt: skip
    long = pd.concat(dict(zip(curves, tables)), names=["run", ""]).reset_index("run")
    sns.lineplot(long, x="time", y="mse", hue="run", errorbar="sd",
                 palette=palette, ax=ax, err_kws={"alpha": 0.15, "lw": 0})  # fmt: skip
    ax.legend(title=None)
    ax.set(ylabel=_MSE)


def landscape(paths, gamma):
    """Error over the two components of the estimate, with the mean path of training runs."""
    ax = _axes(height=4.2, width=6.8)
    across = {k: np.sqrt(np.maximum(v.norm**2 - v.along**2, 0)) for k, v in paths.items()}
    right = 1.05 * max(1.3 * gamma, *(v.along.mean(0).max() for v in paths.values()))
    left = min(-0.15 * gamma, *(v.along.mean(0).min() for v in paths.values()))
    top = 1.05 * max(gamma, *(v.mean(0).max() for v in across.values()))
    x, y = np.meshgrid(np.linspace(left, right, 90), np.linspace(0, top, 80))
    error = 100 * mse(np.hypot(x, y), x, gamma)
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
        _bands(ax, {k: v.mse for k, v in runs.items()}, [v.time for v in runs.values()])
        ax.set(title=f"Varying the {title}", xlabel=r"training time $t = k\eta$")
    return axes


def lemma_figure(slopes, gaps):
    """The lemmas behind Theorem A.1: slope at the start by sample size, gap to the flow by step."""
    first, second = _axes(2, height=3.8)
    for k, ((gamma, gamma_0), rows) in enumerate(slopes.groupby(["gamma", "gamma_0"])):
        colour, at = COLOURS[CYCLE[k % len(CYCLE)]], rows.n * (1 + 0.02 * (k - 1))
        first.axhline(rows.limit.iloc[0], color=colour, lw=1, ls="--")
        first.errorbar(at, rows.slope, 2 * rows.error, fmt="o", color=colour, ms=5,
                       label=rf"$\gamma$ = {gamma:g}, $\gamma_0$ = {gamma_0:g}")  # fmt: skip
    first.axhline(0, color=COLOURS["grey"], lw=0.8)
    first.set_xscale("log", base=2)
    first.set_xticks(sorted(slopes.n.unique()), sorted(slopes.n.unique()))
    first.set(xlabel="sample size n", ylabel=r"$\mathrm{MSE}'(0)$ per unit of time")
    mean = gaps.groupby("eta")[["parameters", "errors"]].mean()
    names = (r"$\sup\|\hat\theta_\eta - \hat\theta\|$", r"$\sup|\mathrm{MSE}_\eta - \mathrm{MSE}|$")
    for column, label, colour in zip(mean, names, CYCLE):
        second.loglog(mean.index, mean[column], "o-", color=COLOURS[colour], ms=5, label=label)
        line = mean[column].iloc[0] * mean.index / mean.index[0]
        second.loglog(mean.index, line, "--", color=COLOURS["grey"], lw=1)
    second.plot([], [], "--", color=COLOURS["grey"], lw=1, label=r"proportional to $\eta$")
    second.set_xticks(mean.index, [f"{eta:.3g}" for eta in mean.index])
    second.set(xlabel=r"step size $\eta$", ylabel="largest gap")
    for ax in (first, second):
        ax.minorticks_off()
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    return first, second


def memorisation_figure(path, angles):
    """Norm against log time, angle to the limit and collapsed share against the norm."""
    axes, blue = _axes(3, height=3.0), COLOURS["blue"]
    for norm, angle, time in zip(path.norm, angles, path.time):
        axes[0].plot(time[1:] / np.log(10), norm[1:], color=blue, alpha=0.6, lw=1.2)
        axes[1].loglog(norm, angle, color=blue, alpha=0.6, lw=1.2)
    scale = np.geomspace(max(path.norm.min(), 0.1), path.norm.max(), 200)
    axes[2].semilogx(scale, 100 * collapsed(scale), color=blue, lw=1.8)
    norm = r"$\|\hat\theta\|$"
    axes[0].set(xlabel=r"$\log_{10}$ of training time", ylabel=norm, title="Norm")
    axes[1].set(xlabel=norm, ylabel="radians", title="Angle to max-margin")
    axes[2].set(xlabel=norm, ylabel="predictions (%)", title="Within 0.001 of 0 or 1",
                ylim=(0, 100))  # fmt: skip
    return axes


def phase_figure(critical, gammas, n):
    """Share of separable data sets over the plane, with the theoretical boundary through it."""
    ax = _axes(height=4.2, width=6.8)
    gammas, kappas = np.asarray(gammas, float), np.linspace(0, 0.7, 141)
    share = 100 * (critical[:, None] <= kappas[:, None]).mean(axis=2)
    image = ax.pcolormesh(gammas, kappas, share.T, cmap="Blues", shading="nearest", vmin=0,
                          rasterized=True)  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label="separable data sets (%)", pad=0.02)
    fine = np.linspace(gammas[0], gammas[-1], 200)
    ax.plot(fine, separability_threshold(fine), color=COLOURS["vermilion"], lw=2.2,
            label=r"theory, $\kappa^*(\gamma)$")  # fmt: skip
    ax.plot(gammas, np.median(critical, axis=1), "o", color="black", ms=5, mec="white",
            label=f"simulated 50 % point, n = {n}")  # fmt: skip
    ax.text(0.97, 0.93, "memorised in the end", transform=ax.transAxes, ha="right", color="white")
    ax.text(0.03, 0.05, "a finite optimum", transform=ax.transAxes)
    ax.set(xlabel=r"signal strength $\gamma$", ylabel=r"aspect ratio $\kappa = p/n$")
    ax.grid(False)
    ax.legend(loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    return ax


def appendix_b_panels(observed, resampled, seed=0, points=1000):
    """True against predicted probability in the first replicate: the paper's four panels."""
    panels = {
        "Start": (observed, 0), "Early learning": (observed, observed.mse[0].argmin()),
        "Finite labels, end": (observed, -1), "Resampled labels, end": (resampled, -1),
    }  # fmt: skip
    axes = _axes(4, height=2.7, sharey=True)
    for ax, (title, (path, k)) in zip(axes, panels.items()):
        norm, along = float(path.norm[0, k]), float(path.along[0, k])
        p_hat, p = fresh_predictions(norm, along, path.gamma, points, seed)
        ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1)
        ax.plot(p_hat, p, "o", ms=2.2, color=COLOURS["sky"], alpha=0.45, mew=0, rasterized=True)
        q = np.linspace(0.001, 0.999, 300)
        if norm > 0:
            ax.plot(q, reliability(q, norm, along, path.gamma), color="black", lw=1.8)
        else:  # a start at 0: one prediction, and as good as a coin
            ax.plot(0.5, 0.5, "o", color="black", ms=5)
        ax.set(xlabel="prediction", xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.5, 1])
        ax.set_title(f"{title}\nMSE {100 * float(path.mse[0, k]):.2f}", fontsize=9, loc="left")
    axes[0].set_ylabel("probability")
    axes[0].plot([], [], color="black", label="exact reliability curve")
    axes[0].plot([], [], "o", color=COLOURS["sky"], ms=4, label="fresh examples")
    axes[0].figure.legend(loc="outside lower center", ncols=2)
    return axes


def appendix_b_curves(iterations, observed, resampled):
    """Error of SGD on finite and on resampled labels against iterations."""
    ax = _axes()
    curves = {"finite labels": observed.mse, "resampled labels": resampled.mse}
    _bands(ax, curves, [1 + iterations] * 2, ("green", "vermilion"))
    ax.set(xscale="log", xlabel="iterations + 1", ylim=(0, None))
    return ax


def parts_figure(path):
    """Error over training time, split into miscalibration and what calibration cannot mend."""
    ax = _axes()
    parts = mse_parts(path.norm, path.along, path.gamma)
    calibration, grouping = (100 * part.mean(axis=0) for part in parts)
    time, total = path.time[1:], calibration + grouping
    ax.stackplot(
        time, grouping[1:], calibration[1:], colors=[COLOURS["sky"], COLOURS["orange"]],
        labels=["wrong direction (grouping)", "wrong confidence (calibration)"], alpha=0.85, lw=0,
    )  # fmt: skip
    ax.plot(time, total[1:], color="black", lw=1.6, label="sum")
    ax.axvline(path.time[total.argmin()], color=COLOURS["grey"], ls="--", lw=1, label="least error")
    ax.set(xscale="log", xlabel="training time t", ylabel=_MSE, xlim=(time[0], time[-1]))
    ax.set_ylim(0, 1.02 * total.max())
    ax.legend(loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    return ax


def cape_figure(time, curves):
    """Error after the early stop: going on with the outcomes, or with CaPE."""
    ax = _axes()
    _bands(ax, curves, [time] * len(curves), ("black", "blue", "vermilion"))
    start = 100 * next(iter(curves.values()))[:, 0].mean()
    ax.axhline(start, color=COLOURS["grey"], ls="--", lw=1, label="early stop")
    ax.set(xlabel="training time since the early stop", xlim=(0, time[-1]))
    ax.legend(title=None)
    return ax


def grid_maps(table, methods, baseline="early stop"):
    """Maps over the grid: best stopping time, its error, each method's change in per cent.

    Changes of more than two paired standard errors are in bold.
    """
    count = 2 + len(methods)
    size = (7.4, 3.0 * -(-count // 2))
    axes = plt.subplots(-(-count // 2), 2, figsize=size, layout="constrained")[1]
    oracle = table[table.method == "oracle"].groupby(["kappa", "gamma"])
    first = dict(cmap="viridis", cbar=False, annot=True)
    sns.heatmap(oracle.chosen.mean().unstack(), fmt=".3g", ax=axes.flat[0], **first)
    sns.heatmap(100 * oracle.mse.mean().unstack(), fmt=".1f", ax=axes.flat[1], **first)
    axes.flat[0].set_title("Best stopping time")
    axes.flat[1].set_title("MSE there $\\times$ 100")
    for ax, method in zip(axes.flat[2:], methods):
        cells = against_baseline(table, method, baseline)
        sns.heatmap(cells.change.unstack(), fmt="+.0f", ax=ax, cmap="RdBu_r", vmin=-60, vmax=60,
                    cbar=False, annot=True)  # fmt: skip
        for text, z in zip(ax.texts, cells.z.unstack().to_numpy().ravel()):
            text.set_weight("bold" if abs(z) > 2 else "normal")
        ax.set_title(f"{method}, change (%)")
    for ax in axes.flat[:count]:
        ax.invert_yaxis()
        ax.set(xlabel=r"signal $\gamma$", ylabel=r"$\kappa = p/n$")
    for ax in axes.flat[count:]:
        ax.remove()
    return list(axes.flat[:count])
