"""Early stopping, CaPE and ridge in the logistic model, on the same data and validation data.

Beyond the paper: a model in which the error of each method is known exactly. Every method picks
its moment, or its strength, by cross entropy on one validation sample; `oracle` is the best moment
of gradient descent by the exact error, which no method could know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from . import mse, mse_parts
from .methods import calibrated_targets, mean_cross_entropy, ridge, train
from .model import draw, stable_step

__all__ = [
    "Protocol",
    "cape_curves",
    "cape_variants",
    "compare",
    "step_table",
    "sweep",
]


@dataclass(frozen=True)
class Protocol:
    """How the methods are run.

    Parameters
    ----------
    horizon : float, default=150.0
        Training time (step size times iterations) of gradient descent from the start.
    cape_horizon : float, default=30.0
        Training time of CaPE, from the early-stopped estimate.
    step : float, default=0.9
        Step size as a share of the bound 2n/||X||^2 of Theorem A.2, the least over replicates.
    epoch : int, default=1
        Iterations between two looks at the validation data, and in one CaPE epoch.
    every : int, default=2
        CaPE's m: epoch t is a calibration epoch where t mod m = 0.
    bins : int, default=15
        Quantile bins of CaPE (bin).
    neighbours : int, default=100
        Neighbours of CaPE (kernel).
    sigma : float, default=0.05
        Kernel width of CaPE (kernel).
    validation : float, default=1.0
        Validation examples as a multiple of n.
    penalties : tuple of float
        Ridge strengths to choose from, strongest first.
    """

    horizon: float = 150.0
    cape_horizon: float = 30.0
    step: float = 0.9
    epoch: int = 1
    every: int = 2
    bins: int = 15
    neighbours: int = 100
    sigma: float = 0.05
    validation: float = 1.0
    penalties: tuple = tuple(np.geomspace(3.0, 3e-3, 9).tolist())


def compare(model, protocol=None):
    """Run every method on the data sets of one model.

    Parameters
    ----------
    model : Model
        The setting.
    protocol : Protocol, optional
        How to run the methods.

    Returns
    -------
    DataFrame
        One row per method and replicate: `method`, `replicate`, `mse` (exact), its two parts
        `calibration` and `grouping` (see `probnb.theory.mse_parts`), and `chosen`: the training
        time, the CaPE epoch, or the ridge strength.
    """
    protocol = Protocol() if protocol is None else protocol
    sample, validation, fit, unit = _prepare(model, protocol)
    stopped, when, norm, along = fit(sample.start, protocol.horizon)
    best = mse(norm, along, model.gamma).argmin(axis=1)[:, None]
    pick = [np.take_along_axis(v, best, axis=1)[:, 0] for v in (norm, along)]
    rows = {
        "oracle": (*pick, unit * best[:, 0]),
        "early stop": (*_lengths(stopped), unit * when),
        "end of training": (
            norm[:, -1],
            along[:, -1],
            np.full(len(norm), unit * (norm.shape[1] - 1)),
        ),
    }
    for estimator in ("bin", "kernel"):
        targets = calibrated_targets(sample, protocol, estimator)
        kept, when, *_ = fit(stopped, protocol.cape_horizon, targets)
        rows[f"CaPE ({estimator})"] = (*_lengths(kept), when)
    kept, when, *_ = fit(torch.zeros_like(sample.start), protocol.horizon)
    rows["early stop from 0"] = (*_lengths(kept), unit * when)
    found = ridge(sample, protocol.penalties)
    chosen = torch.stack([mean_cross_entropy(validation, theta) for theta in found]).argmin(dim=0)
    theta = found[chosen, torch.arange(len(chosen))]
    strength = np.asarray(protocol.penalties)[chosen.cpu().numpy()]
    rows["ridge"] = (*_lengths(theta), strength)
    return pd.concat([_table(k, *v, model.gamma) for k, v in rows.items()], ignore_index=True)


def _prepare(model, protocol):
    """Draw the data; return them, `train` on them for a given time, and the time of an epoch."""
    sample = draw(model)
    validation = draw(model, rows=max(1, round(protocol.validation * model.n)), stream=1)
    unit = protocol.step * float(stable_step(sample).min()) * protocol.epoch

    def fit(start, time, targets=None):
        epochs = int(np.ceil(time / unit))
        return train(
            sample, validation, start, unit / protocol.epoch, epochs, protocol.epoch, targets
        )

    return sample, validation, fit, unit


def cape_curves(model, protocol=None):
    """Error after the early stop: going on with the outcomes, or with CaPE's targets.

    Parameters
    ----------
    model : Model
        The setting.
    protocol : Protocol, optional
        How to run the methods.

    Returns
    -------
    time : ndarray of shape (k,)
        Training time since the early stop.
    curves : dict of ndarray of shape (r, k)
        Exact mean squared errors for "cross entropy", "CaPE (bin)" and "CaPE (kernel)".
    """
    protocol = Protocol() if protocol is None else protocol
    sample, _, fit, unit = _prepare(model, protocol)
    stopped = fit(sample.start, protocol.horizon)[0]
    goals = {"cross entropy": None}
    for estimator in ("bin", "kernel"):
        goals[f"CaPE ({estimator})"] = calibrated_targets(sample, protocol, estimator)
    curves = {
        name: mse(*fit(stopped, protocol.cape_horizon, goal)[2:], model.gamma)
        for name, goal in goals.items()
    }
    return unit * np.arange(curves["cross entropy"].shape[1]), curves


def cape_variants(model, changes, protocol=None):
    """Run CaPE with other settings, on the same data.

    Parameters
    ----------
    model : Model
        The setting.
    changes : dict of dict
        By label, the fields of `Protocol` to change.
    protocol : Protocol, optional
        What they are changed from.

    Returns
    -------
    DataFrame
        The table of `compare` with a column `variant`.
    """
    protocol = Protocol() if protocol is None else protocol
    tables = [
        compare(model, replace(protocol, **change)).assign(variant=label)
        for label, change in changes.items()
    ]
    return pd.concat(tables, ignore_index=True)


def step_table(model, protocol=None):
    """Take apart the first step after the early stop: how much confidence, how much direction.

    Parameters
    ----------
    model : Model
        The setting, with a signal.
    protocol : Protocol, optional
        How to run the methods.

    Returns
    -------
    DataFrame
        A row per kind of targets; means over replicates of the step's length per unit of training
        time, its component along the estimate ("confidence"), its component towards the truth at
        right angles to the estimate ("direction"), and the standard error of the latter.
    """
    protocol = replace(Protocol() if protocol is None else protocol, every=1)
    sample, _, fit, _ = _prepare(model, protocol)
    theta = fit(sample.start, protocol.horizon)[0]
    along = theta / theta.norm(dim=1, keepdim=True)
    truth = sample.truth - (along @ sample.truth)[:, None] * along
    truth = truth / truth.norm(dim=1, keepdim=True)
    goals = {"cross entropy": sample.outcomes}
    for estimator in ("bin", "kernel"):
        targets = calibrated_targets(sample, protocol, estimator)
        goals[f"CaPE ({estimator})"] = targets(1, theta)
    rows = {}
    for name, goal in goals.items():
        step = -sample.gradient(theta, goal)
        new = (step * truth).sum(dim=1)
        parts = step.norm(dim=1), (step * along).sum(dim=1), new
        error = float(new.std()) / np.sqrt(len(new))
        rows[name] = [float(part.mean()) for part in parts] + [error]
    columns = ["length", "confidence", "direction", "standard error"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _lengths(theta):
    """Norm and component along the truth, which is the first axis (see `draw`)."""
    return theta.norm(dim=1).cpu().numpy(), theta[:, 0].cpu().numpy()


def _table(method, norm, along, chosen, gamma):
    calibration, grouping = mse_parts(norm, along, gamma)
    return pd.DataFrame(
        {
            "method": method,
            "replicate": np.arange(len(norm)),
            "mse": mse(norm, along, gamma),
            "calibration": calibration,
            "grouping": grouping,
            "chosen": chosen,
        }
    )


def sweep(model, kappas, gammas, protocol=None):
    """Run `compare` on a grid of aspect ratios and signal strengths.

    Parameters
    ----------
    model : Model
        The setting; its kappa and gamma are replaced.
    kappas, gammas : sequence of float
        The grid.
    protocol : Protocol, optional
        How to run the methods.

    Returns
    -------
    DataFrame
        The tables of `compare` one after the other, with columns `kappa` and `gamma`.
    """
    cells = [(kappa, gamma) for kappa in kappas for gamma in gammas]
    return pd.concat(
        [
            compare(replace(model, kappa=k, gamma=g), protocol).assign(kappa=k, gamma=g)
            for k, g in cells
        ],
        ignore_index=True,
    )
