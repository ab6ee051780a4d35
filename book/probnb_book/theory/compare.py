"""Early stopping, CaPE and ridge in the logistic model, on the same data and validation data.

Beyond the paper: a model in which the error of each method is known exactly. Every method picks
its moment, or its strength, by cross entropy on one validation sample; `oracle` is the best moment
of gradient descent by the exact error, which no method could know.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import softplus

from probnb.training.cape import p_emp_bin, p_emp_kernel

from . import draw, mse, mse_parts, stable_step

CAPE = {"CaPE (bin)": "bin", "CaPE (kernel)": "kernel"}
KINDS = {"cross entropy": None, **CAPE}


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
        CaPE's m: epoch t = 1, 2, ... is a calibration epoch where (t + phase) mod m = 0.
    phase : int, default=0
        0 as Algorithm 1 prints it; m - 1 to begin with a calibration epoch, as the released code.
    bins : int, default=15
        Quantile bins of CaPE (bin).
    neighbours : int, default=100
        Neighbours of CaPE (kernel).
    sigma : float, default=0.05
        Kernel width of CaPE (kernel).
    penalties : tuple of float
        Ridge strengths to choose from, strongest first.
    """

    horizon: float = 150.0
    cape_horizon: float = 30.0
    step: float = 0.9
    epoch: int = 1
    every: int = 2
    phase: int = 0
    bins: int = 15
    neighbours: int = 100
    sigma: float = 0.05
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
    """Mean cross entropy of estimates (r, p) on a sample, in nats, of shape (r,)."""
    logits = sample.logits(theta)
    return (softplus(logits) - sample.outcomes * logits).mean(dim=1)


def calibrated_targets(sample, protocol, estimator):
    """Return CaPE's schedule: empirical probabilities in every m-th epoch, else the outcomes.

    Without an estimator (None) all epochs have the outcomes.
    """
    outcomes = sample.outcomes.cpu().numpy()

    def targets(t, theta):
        if estimator is None or (t + protocol.phase) % protocol.every:
            return sample.outcomes
        predictions = torch.sigmoid(sample.logits(theta)).cpu().numpy()
        if estimator == "bin":
            of, settings = p_emp_bin, (protocol.bins,)
        else:
            of, settings = p_emp_kernel, (protocol.neighbours, protocol.sigma)
        rows = [of(p, y, *settings) for p, y in zip(predictions, outcomes)]
        return torch.from_numpy(np.stack(rows)).to(theta.device)

    return targets


def ridge(sample, penalties):
    r"""Ridge logistic regression at several strengths, by scikit-learn's Newton method.

    Parameters
    ----------
    sample : Sample
        Training data.
    penalties : sequence of float
        Strengths :math:`\lambda > 0` of :math:`L_n(\theta) + \frac\lambda2\|\theta\|^2`; fastest
        from strong to weak, as each solution starts the next.

    Returns
    -------
    Tensor of shape (len(penalties), r, p)
        The minimisers, on the sample's device.
    """
    inputs, outcomes = sample.inputs.cpu().numpy(), sample.outcomes.cpu().numpy()
    replicates, n, p = inputs.shape
    found = np.empty((len(penalties), replicates, p))
    for r in range(replicates):
        model = LogisticRegression(
            fit_intercept=False, solver="newton-cholesky", tol=1e-6, warm_start=True
        )
        for k, penalty in enumerate(penalties):
            model.set_params(C=1 / (penalty * n)).fit(inputs[r], outcomes[r])
            found[k, r] = model.coef_[0]
    return torch.from_numpy(found).to(sample.inputs.device)


def compare_methods(model, protocol=Protocol()):
    """Run every method on the data sets of one model.

    Parameters
    ----------
    model : Model
        The setting.
    protocol : Protocol, default=Protocol()
        How to run the methods.

    Returns
    -------
    DataFrame
        One row per method and replicate: `method`, `replicate`, `mse` (exact), its two parts
        `calibration` and `grouping` (see `probnb_book.theory.mse_parts`), and `chosen`: the
        training time, the CaPE epoch, or the ridge strength.
    """
    sample, validation, fit, unit = _prepare(model, protocol)
    stopped, when, norm, along = fit(sample.start, protocol.horizon)
    best = mse(norm, along, model.gamma).argmin(axis=1)[:, None]
    pick = [np.take_along_axis(v, best, axis=1)[:, 0] for v in (norm, along)]
    rows = {
        "oracle": (*pick, unit * best[:, 0]),
        "early stop": (*_lengths(stopped), unit * when),
        "end of training": (norm[:, -1], along[:, -1], unit * (norm.shape[1] - 1)),
    }
    for name, estimator in CAPE.items():
        targets = calibrated_targets(sample, protocol, estimator)
        kept, when, *_ = fit(stopped, protocol.cape_horizon, targets)
        rows[name] = (*_lengths(kept), when)
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
    validation, epoch = draw(model, stream=1), protocol.epoch
    unit = protocol.step * float(stable_step(sample).min()) * epoch

    def fit(start, time, targets=None):
        epochs = int(np.ceil(time / unit))
        return train(sample, validation, start, unit / epoch, epochs, epoch, targets)

    return sample, validation, fit, unit


def cape_curves(model, protocol=Protocol()):
    """Error after the early stop: going on with the outcomes, or with CaPE's targets.

    Parameters
    ----------
    model : Model
        The setting.
    protocol : Protocol, default=Protocol()
        How to run the methods.

    Returns
    -------
    time : ndarray of shape (k,)
        Training time since the early stop.
    curves : dict of ndarray of shape (r, k)
        Exact mean squared errors for "cross entropy", "CaPE (bin)" and "CaPE (kernel)".
    """
    sample, _, fit, unit = _prepare(model, protocol)
    stopped = fit(sample.start, protocol.horizon)[0]
    curves = {}
    for name, estimator in KINDS.items():
        goal = calibrated_targets(sample, protocol, estimator)
        curves[name] = mse(*fit(stopped, protocol.cape_horizon, goal)[2:], model.gamma)
    return unit * np.arange(curves["cross entropy"].shape[1]), curves


def cape_variants(model, changes, protocol=Protocol()):
    """Run CaPE with other settings, on the same data.

    Parameters
    ----------
    model : Model
        The setting.
    changes : dict of dict
        By label, the fields of `Protocol` to change.
    protocol : Protocol, default=Protocol()
        What they are changed from.

    Returns
    -------
    DataFrame
        The table of `compare_methods` with a column `variant`.
    """
    tables = [
        compare_methods(model, replace(protocol, **change)).assign(variant=label)
        for label, change in changes.items()
    ]
    return pd.concat(tables, ignore_index=True)


def step_table(model, protocol=Protocol()):
    """Take apart the first step after the early stop: how much confidence, how much direction.

    Parameters
    ----------
    model : Model
        The setting, with a signal.
    protocol : Protocol, default=Protocol()
        How to run the methods.

    Returns
    -------
    DataFrame
        A row per kind of targets; means over replicates of the step's length per unit of training
        time, its component along the estimate ("confidence"), its component towards the truth at
        right angles to the estimate ("direction"), and the standard error of the latter.
    """
    protocol = replace(protocol, every=1)
    sample, _, fit, _ = _prepare(model, protocol)
    theta = fit(sample.start, protocol.horizon)[0]
    along = theta / theta.norm(dim=1, keepdim=True)
    truth = sample.truth - (along @ sample.truth)[:, None] * along
    truth = truth / truth.norm(dim=1, keepdim=True)
    rows = {}
    for name, estimator in KINDS.items():
        step = -sample.gradient(theta, calibrated_targets(sample, protocol, estimator)(1, theta))
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
    parts = dict(zip(("calibration", "grouping"), mse_parts(norm, along, gamma)))
    table = pd.DataFrame({"mse": mse(norm, along, gamma), **parts, "chosen": chosen})
    return table.assign(method=method).rename_axis("replicate").reset_index()


def sweep(model, kappas, gammas, protocol=Protocol()):
    """Run `compare_methods` on a grid of aspect ratios and signal strengths.

    Parameters
    ----------
    model : Model
        The setting; its kappa and gamma are replaced.
    kappas, gammas : sequence of float
        The grid.
    protocol : Protocol, default=Protocol()
        How to run the methods.

    Returns
    -------
    DataFrame
        The tables of `compare_methods` one after the other, with columns `kappa` and `gamma`.
    """
    cells = [(kappa, gamma) for kappa in kappas for gamma in gammas]
    tables = [
        compare_methods(replace(model, kappa=k, gamma=g), protocol).assign(kappa=k, gamma=g)
        for k, g in cells
    ]
    return pd.concat(tables, ignore_index=True)


def against_baseline(table, method, baseline="early stop"):
    """Paired differences in error between a method and a baseline, for each cell of a grid.

    Parameters
    ----------
    table : DataFrame
        As `probnb_book.theory.compare.sweep` returns it.
    method, baseline : str
        Names in its column `method`.

    Returns
    -------
    DataFrame
        Index (kappa, gamma); columns `change` (mean difference as a percentage of the baseline's
        mean error) and `z` (mean difference in standard errors; 0 where nothing differs).
    """
    wide = table.pivot(index=["kappa", "gamma", "replicate"], columns="method", values="mse")
    difference = (wide[method] - wide[baseline]).groupby(level=[0, 1])
    base = wide[baseline].groupby(level=[0, 1]).mean()
    mean, error = difference.mean(), difference.sem()
    return pd.DataFrame({"change": 100 * mean / base, "z": (mean / error).fillna(0.0)})


def population_steps(theta, truth, order=8):
    """Steps of gradient descent towards outcomes and towards p_emp, for an infinite sample.

    Parameters
    ----------
    theta, truth : array-like of shape (2,)
        The estimate, and the parameters that give the probabilities.
    order : int, default=8
        Points of the Gauss-Hermite rule in each of two dimensions, at most 12.

    Returns
    -------
    ndarray of shape (2, 2)
        Towards the outcomes and towards their empirical probabilities (rows): the component along
        `theta` and the one at right angles.
    """
    nodes, mass = np.polynomial.hermite_e.hermegauss(order)
    norm = np.linalg.norm(theta)
    axes = np.array([theta, [-theta[1], theta[0]]]) / norm
    x = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.outer(mass, mass).ravel() / mass.sum() ** 2
    p, p_hat = expit(x @ axes @ np.asarray(truth)), expit(norm * x[:, 0])
    both = {"p_hat": np.tile(p_hat, 2), "y": np.repeat([1, 0], len(p))}
    # So many bins that each distinct prediction has its own, whatever its mass.
    p_emp = p_emp_bin(**both, bins=10**7, weights=np.concatenate([mass * p, mass * (1 - p)]))
    return np.array([(mass * (q - p_hat)) @ x for q in (p, p_emp[: len(p)])])
