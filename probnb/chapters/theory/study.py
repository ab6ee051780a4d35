"""The experiments of the chapter on theory: what is run at which settings, tables out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from ...theory import critical_dimension, descent, draw, max_margin, stable_step
from ...theory.compare import against_baseline
from ...validation import check_choice, check_integer, check_number

SMOKE = {
    "n": 60, "replicates": 2, "iterations": 300,
    "phase_n": 60, "phase_gammas": [0.0, 2.0], "phase_replicates": 4,
    "appendix_n": 60, "appendix_iterations": 300,
    "grid_n": 60, "grid_kappas": [0.2, 1.0], "grid_gammas": [1.0, 3.0], "grid_replicates": 3,
}  # fmt: skip
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
        sample = draw(setting)
        if limit:
            step = min(step, 0.9 * float(stable_step(sample).min()))
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
            slopes = descent.measured_slope(draw(replace(model, n=n, gamma=gamma, gamma_0=gamma_0)))
            error = slopes.std(ddof=1) / np.sqrt(len(slopes))
            limit = float(descent.initial_slope(gamma, gamma_0))
            rows.append((gamma, gamma_0, n, slopes.mean(), error, limit))
    return pd.DataFrame(rows, columns=["gamma", "gamma_0", "n", "slope", "error", "limit"])


def gap_table(model, etas, horizon):
    """Farthest distance of gradient descent from gradient flow, by step size and replicate."""
    sample, tables = draw(model), []
    for eta in etas:
        parameters, errors = descent.flow_gap(sample, eta, horizon)
        tables.append(pd.DataFrame({"eta": eta, "parameters": parameters, "errors": errors}))
    return pd.concat(tables).rename_axis("replicate").reset_index()


def memorise(model, eta, iterations):
    """Follow training until the outcomes are memorised, and beyond: Theorem A.2.

    `eta` is in stretched time, see `probnb.theory.descent.late_training`; angles to the max-margin
    separator are NaN for replicates that are not separable. Returns the run, the angle in radians
    to the limit (r, k) and which data sets are separable (r,).
    """
    sample = draw(model)
    found = [max_margin(X, y) for X, y in zip(sample.inputs.cpu(), sample.outcomes.cpu())]
    separable = np.array([w is not None for w in found])
    nowhere = np.full(model.p, np.nan)
    onto = np.stack([nowhere if w is None else w / np.linalg.norm(w) for w in found])
    onto = torch.from_numpy(onto).to(model.device)
    path = descent.late_training(sample, eta, iterations, descent.record_at(iterations), onto)
    with np.errstate(invalid="ignore"):  # a start of length 0 has no direction
        angle = np.arccos(np.clip(path.onto / path.norm, -1, 1))
    return path, angle, separable


def critical_ratios(n, gammas, replicates, seed=0):
    """Aspect ratios at which simulated data become separable, (gammas, replicates), sorted."""
    found = [
        [critical_dimension(n, gamma, [seed, i, r]) / n for r in range(replicates)]
        for i, gamma in enumerate(gammas)
    ]
    return np.sort(found, axis=1)


def appendix_b(model, eta=0.05, iterations=6000, batch=100):
    """SGD on finite and on resampled labels, same data and batches; the paper's n = p = 500.

    Returns the iterations recorded and the two runs.
    """
    sample, record = draw(model), descent.record_at(iterations)
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
    start = table["chosen"] == 0
    means["kept its start (%)"] = 100 * start.groupby(table["method"]).mean()
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
