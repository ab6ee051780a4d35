"""The experiments of the chapter on theory: what is run at which settings, data out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from ...theory.descent import (
    Trajectory,
    flow_gap,
    gradient_descent,
    initial_slope,
    late_training,
    measured_slope,
    record_at,
    sgd,
)
from ...theory.model import draw, stable_step
from ...theory.separability import critical_dimension, max_margin
from ...validation import check_integer

__all__ = [
    "AppendixB",
    "Memorisation",
    "appendix_b",
    "critical_ratios",
    "early_learning",
    "gap_table",
    "memorise",
    "slope_table",
]


def early_learning(model, eta, horizon):
    """Gradient descent at several step sizes, sample sizes and aspect ratios: Theorem A.1.

    Parameters
    ----------
    model : Model
        The setting around which one thing varies at a time.
    eta : float
        Largest step size, as given. Other sample sizes and aspect ratios use it too, or 0.9 of
        their own bound 2n/||X||^2 if that is shorter; it is training time that is compared.
    horizon : float
        Training time t = k eta.

    Returns
    -------
    dict of dict of Trajectory
        Panels "step size", "sample size" and "aspect ratio", each with a run per label.
    """

    def run(setting, step, limit=False):
        sample = draw(setting)
        if limit:
            step = min(step, 0.9 * float(stable_step(sample).min()))
        return gradient_descent(sample, step, max(1, round(horizon / step)))

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
    """Slope of the error at the start, measured and in the limit: Lemma A.3.

    Parameters
    ----------
    model : Model
        The setting; its n, gamma and gamma_0 are replaced.
    pairs : sequence of (float, float)
        Values of (gamma, gamma_0).
    sizes : sequence of int
        Sample sizes n.

    Returns
    -------
    DataFrame
        A row per pair and size: `gamma`, `gamma_0`, `n`, `slope` (the mean over replicates),
        `error` (its standard error) and `limit`.
    """
    rows = []
    for gamma, gamma_0 in pairs:
        for n in sizes:
            slopes = measured_slope(draw(replace(model, n=n, gamma=gamma, gamma_0=gamma_0)))
            error = slopes.std(ddof=1) / np.sqrt(len(slopes))
            limit = float(initial_slope(gamma, gamma_0))
            rows.append((gamma, gamma_0, n, slopes.mean(), error, limit))
    return pd.DataFrame(rows, columns=["gamma", "gamma_0", "n", "slope", "error", "limit"])


def gap_table(model, etas, horizon):
    """Distance of gradient descent from gradient flow at several step sizes: Lemma A.4.

    Parameters
    ----------
    model : Model
        The setting.
    etas : sequence of float
        Step sizes.
    horizon : float
        Training time up to which the largest distance is taken.

    Returns
    -------
    DataFrame
        A row per step size and replicate: `eta`, `replicate`, `parameters` (distance of the
        estimates) and `errors` (of their exact mean squared errors).
    """
    sample, tables = draw(model), []
    for eta in etas:
        parameters, errors = flow_gap(sample, eta, horizon)
        tables.append(pd.DataFrame({"eta": eta, "parameters": parameters, "errors": errors}))
    return pd.concat(tables).rename_axis("replicate").reset_index()


@dataclass(frozen=True)
class Memorisation:
    """Training to the end: the run, the angle in radians to the limit (r, k), separable (r,)."""

    path: Trajectory
    angle: np.ndarray
    separable: np.ndarray


def memorise(model, eta, iterations):
    """Follow training until the outcomes are memorised, and beyond: Theorem A.2.

    Parameters
    ----------
    model : Model
        The setting.
    eta : float
        Step size in stretched time, see `probnb.theory.descent.late_training`.
    iterations : int
        Iterations.

    Returns
    -------
    Memorisation
        The run and the angle of its estimates to the max-margin separator (not a number for
        replicates that are not separable).
    """
    sample = draw(model)
    found = [max_margin(X, y) for X, y in zip(sample.inputs.cpu(), sample.outcomes.cpu())]
    separable = np.array([w is not None for w in found])
    onto = np.stack([np.full(model.p, np.nan) if w is None else w / _norm(w) for w in found])
    onto = torch.from_numpy(onto).to(model.device)
    path = late_training(sample, eta, iterations, record_at(iterations), onto)
    with np.errstate(invalid="ignore"):  # a start of length 0 has no direction
        angle = np.arccos(np.clip(path.onto / path.norm, -1, 1))
    return Memorisation(path, angle, separable)


def _norm(w):
    return np.sqrt(w @ w)


def critical_ratios(n, gammas, replicates, seed=0):
    """Aspect ratios at which simulated data sets become separable.

    Parameters
    ----------
    n : int
        Observations per data set.
    gammas : sequence of float
        Signal strengths.
    replicates : int
        Data sets for each.
    seed : int, default=0
        Source of randomness.

    Returns
    -------
    ndarray of shape (len(gammas), replicates)
        Critical dimension over n, sorted along the rows: the share of a row at or below kappa is
        the share of data sets that are separable at kappa.
    """
    check_integer(replicates, "replicates")
    found = [
        [critical_dimension(n, gamma, [seed, i, r]) / n for r in range(replicates)]
        for i, gamma in enumerate(gammas)
    ]
    return np.sort(found, axis=1)


@dataclass(frozen=True)
class AppendixB:
    """SGD of Appendix B: iterations (k,), and a Trajectory on finite and on resampled labels."""

    iterations: np.ndarray
    observed: Trajectory
    resampled: Trajectory

    @property
    def best(self):
        """Record at which the first replicate's error on finite labels is least."""
        return int(self.observed.mse[0].argmin())


def appendix_b(model, eta=0.05, iterations=6000, batch=100):
    """Stochastic gradient descent on finite and on resampled labels, same data and batches.

    Parameters
    ----------
    model : Model
        The setting; the paper's is n = 500, kappa = 1, gamma = 1.
    eta : float, default=0.05
        Step size.
    iterations : int, default=6000
        Iterations.
    batch : int, default=100
        Rows per iteration.

    Returns
    -------
    AppendixB
        The two runs.
    """
    sample, record = draw(model), record_at(iterations)
    runs = (
        sgd(sample, eta, iterations, labels, batch, record=record, seed=model.seed)
        for labels in ("observed", "resampled")
    )
    return AppendixB(record, *runs)
