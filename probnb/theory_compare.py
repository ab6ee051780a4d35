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
from torch.nn.functional import softplus

from .empirical import p_emp_bin, p_emp_kernel
from .theory import mse, mse_parts
from .theory_model import Sample, draw, stable_step
from .validation import check_choice

__all__ = [
    "Protocol",
    "calibrated_targets",
    "cape_curves",
    "compare",
    "ridge",
    "sweep",
    "train",
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


def train(sample, validation, start, eta, epochs, epoch=1, targets=None):
    """Gradient descent on soft targets; keeps the estimate of lowest validation cross entropy.

    Parameters
    ----------
    sample, validation : Sample
        Training and validation data.
    start : Tensor of shape (r, p)
        Starting estimates; they are candidates themselves.
    eta : float
        Step size.
    epochs : int
        Epochs.
    epoch : int, default=1
        Iterations per epoch.
    targets : callable, optional
        ``targets(t, theta)`` gives the soft targets (r, n) of epoch t = 1, 2, ...; the observed
        outcomes by default.

    Returns
    -------
    kept : Tensor of shape (r, p)
        Estimates of lowest validation cross entropy, one per replicate.
    when : ndarray of shape (r,)
        Epochs at which they were reached.
    norm, along : ndarray of shape (r, epochs + 1)
        Geometry of all estimates on the way.
    """
    theta, kept, seen = start.clone(), start.clone(), []
    lowest = torch.full_like(start[:, 0], torch.inf)
    when = torch.zeros_like(lowest)
    for t in range(epochs + 1):
        if t > 0:
            goal = sample.outcomes if targets is None else targets(t, theta)
            for _ in range(epoch):
                theta = theta - eta * sample.gradient(theta, goal)
        loss = _cross_entropy(validation, theta)
        better = loss < lowest
        lowest, when = torch.where(better, loss, lowest), torch.where(better, t, when)
        kept = torch.where(better[:, None], theta, kept)
        seen.append(torch.stack([theta.norm(dim=1), theta[:, 0]]))  # the truth is along axis 0
    norm, along = torch.stack(seen, dim=-1).cpu().numpy()
    return kept, when.cpu().numpy(), norm, along


def _cross_entropy(sample, theta):
    logits = sample.logits(theta)
    return (softplus(logits) - sample.outcomes * logits).mean(dim=1)


def calibrated_targets(sample, protocol, estimator):
    """Return CaPE's schedule: empirical probabilities in every m-th epoch, else the outcomes."""
    check_choice(estimator, ("bin", "kernel"), "estimator")
    outcomes = sample.outcomes.cpu().numpy()

    def targets(t, theta):
        if t % protocol.every:
            return sample.outcomes
        predictions = torch.sigmoid(sample.logits(theta)).cpu().numpy()
        if estimator == "bin":
            rows = [p_emp_bin(p, y, protocol.bins) for p, y in zip(predictions, outcomes)]
        else:
            settings = protocol.neighbours, protocol.sigma
            rows = [p_emp_kernel(p, y, *settings) for p, y in zip(predictions, outcomes)]
        return torch.from_numpy(np.stack(rows)).to(theta.device)

    return targets


def ridge(sample, penalties, tolerance=1e-8):
    r"""Ridge logistic regression at several strengths, by Newton's method on all replicates.

    Parameters
    ----------
    sample : Sample
        Training data.
    penalties : sequence of float
        Strengths :math:`\lambda > 0` of :math:`L_n(\theta) + \frac\lambda2\|\theta\|^2`; fastest
        from strong to weak, as each solution starts the next.
    tolerance : float, default=1e-8
        Norm of the gradient at which to stop.

    Returns
    -------
    Tensor of shape (len(penalties), r, p)
        The minimisers.

    Raises
    ------
    RuntimeError
        If Newton's method has not converged after 50 steps.
    """
    X = sample.inputs
    if X.shape[2] > X.shape[1]:  # the minimiser lies in the span of the rows: n coordinates do
        basis, square = torch.linalg.qr(X.mT)
        zero = torch.zeros_like(square[:, 0])
        inner = ridge(
            Sample(square.mT.contiguous(), sample.outcomes, zero, zero), penalties, tolerance
        )
        return (basis @ inner[..., None])[..., 0]
    n, p = X.shape[1:]
    theta, found = torch.zeros_like(sample.start), []
    identity = torch.eye(p, dtype=X.dtype, device=X.device)
    for penalty in penalties:
        for _ in range(50):
            gradient = sample.gradient(theta, sample.outcomes) + penalty * theta
            if gradient.norm(dim=1).max() < tolerance:
                break
            prediction = torch.sigmoid(sample.logits(theta))
            weight = (prediction * (1 - prediction))[..., None] / n
            hessian = X.mT @ (weight * X) + penalty * identity
            theta = (
                theta
                - torch.cholesky_solve(gradient[..., None], torch.linalg.cholesky(hessian))[..., 0]
            )
        else:
            raise RuntimeError(f"ridge did not converge at penalty {penalty!r}.")
        found.append(theta)
    return torch.stack(found)


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
    chosen = torch.stack([_cross_entropy(validation, theta) for theta in found]).argmin(dim=0)
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
