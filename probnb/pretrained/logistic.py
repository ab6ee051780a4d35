"""Logistic regression on features: the same data, targets and records, but a convex problem.

A penalty takes the place of time: from the strongest to the weakest the map goes from the mean
outcome to what memorises, and each penalty is an "epoch" of the history, of which validation cross
entropy keeps one.
"""

import time

import numpy as np
import torch
from scipy.optimize import minimize

from ..methods import Recipe
from ..training.batches import make_fabric
from ..training.checkpoint import Run
from ..training.loop import Fit, assess
from ..training.losses import CrossEntropy
from ..training.targets import Observed, Resampled
from ..validation import check_choice

__all__ = ["PENALTIES", "fit_logistic"]

PENALTIES = 10.0 ** np.arange(1, -4.1, -0.5)
"""L2 penalties in the mean loss, of features with variance 1."""

CONVEX = Recipe(solver="convex")

PATIENCE = 3
"""Penalties without a lower validation cross entropy after which no weaker one is tried."""


def fit_logistic(
    model, splits, recipe=CONVEX, loss=None, targets=None, fabric=None, on_epoch=None, **others
):
    """Fit a linear head for each penalty and keep the one with the lowest validation cross entropy.

    Parameters
    ----------
    model : torch.nn.Module
        A linear layer with two outputs, and nothing else that has parameters.
    splits : probnb.data.Splits
        Features of shape (n, F), without augmentation.
    recipe : Recipe
        One with solver "convex".
    targets : callable, optional
        Outcomes, or a schedule that does not change from epoch to epoch, nor with what the network
        predicts. Outcomes that are drawn afresh without end are, for a convex fit, their
        probabilities.
    fabric : lightning_fabric.Fabric, optional
        The device; the precision is float32.
    on_epoch : callable, optional
        Called with the record of each penalty.
    loss, **others
        Those of `probnb.training.loop.fit` have no meaning here, and are refused.

    Returns
    -------
    Fit
        As of `probnb.training.loop.fit`; a record has ``penalty`` besides.

    Raises
    ------
    ValueError
        If the data, the model or an argument is not for a convex fit.
    """
    check_choice(recipe.solver, ("convex",), "recipe.solver")
    given, unused = {"loss": loss, **others}, (None, False, CrossEntropy())
    if wrong := ", ".join(name for name, value in given.items() if value not in unused):
        raise ValueError(
            f"{wrong} must be left alone with solver 'convex', which has no use for it."
        )
    device = "cpu" if fabric is None else fabric.device.type
    targets, fabric = targets or Observed(), make_fabric(device, "32-true")
    splits = splits.to(fabric.device)
    train, linear = splits.train, [m for m in model.modules() if isinstance(m, torch.nn.Linear)]
    if len(linear) != 1 or train.inputs.ndim != 2 or train.classes != 2 or train.augment:
        raise ValueError(
            "logistic regression is for features (n, F) as they are, two outcomes and one layer."
        )
    drawn = isinstance(targets, Resampled) and train.probabilities is not None
    soft = train.probabilities if drawn else _fixed(targets, train)
    solve = _solver(train.batch(torch.arange(len(train)))[0], soft.double(), train.weights)
    run = Run(fabric.setup(model).module, None, None)
    run.start(*assess(fabric, model, splits), keep=False)
    for penalty in PENALTIES:
        began, worked = time.perf_counter(), time.process_time()
        weight, bias, loss = solve(penalty)
        with torch.no_grad():  # half of the logit to each side, as the softmax of two has it
            linear[0].weight.copy_(torch.stack([-weight, weight]) / 2)
            linear[0].bias.copy_(torch.stack([-bias, bias]) / 2)
        row, logits = assess(fabric, model, splits)
        row |= {"penalty": float(penalty), "train_ce": loss, "calibration": int(drawn)}
        row |= {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}
        run.record(row, logits)
        if on_epoch is not None:
            on_epoch(run.history[-1])
        if run.epoch - run.best_epoch >= PATIENCE:
            break
    return Fit(run.best, run.logits, run.history, run.best_epoch)


def _fixed(targets, train):
    """The targets of all epochs, which must be the same and know nothing of the network."""

    def predict():
        raise ValueError("targets must not look at predictions with solver 'convex'.")

    soft, *others = (targets(k + 1, train, predict, 0) for k in range(len(PENALTIES)))
    if not all(torch.equal(soft, other) for other in others):
        raise ValueError("targets must be the same in every epoch with solver 'convex'.")
    return soft


def _solver(x, soft, weights):
    """A function of the penalty: weights, bias and mean loss at the optimum.

    In the eigenvectors of the features, each divided by the root of its curvature, the problem is
    nearly round, and L-BFGS needs some twenty passes whatever the penalty.
    """
    share = torch.ones(len(x), dtype=torch.float64) if weights is None else weights.double().cpu()
    share = (share / share.sum()).to(x.device)
    values, vectors = torch.linalg.eigh((x.T @ (x * share[:, None].to(x.dtype))).double().cpu())
    x = x @ vectors.to(x)
    mean = float((share * soft).sum())
    if not 0 < mean < 1:
        raise ValueError(f"training outcomes must be of both kinds; all are {mean:g}.")
    state = [torch.zeros(x.shape[1], dtype=torch.float64), np.log(mean / (1 - mean))]

    def solve(penalty):
        root = (0.7 * mean * (1 - mean) * values.clamp(min=0) + penalty).rsqrt()

        def loss(u):
            w, bias = torch.from_numpy(u[:-1]) * root, u[-1]
            z = (x @ w.to(x)).double() + bias
            residual = share * (torch.sigmoid(z) - soft)
            value = float((share * (torch.nn.functional.softplus(z) - soft * z)).sum())
            loss.mean = value
            slope = (x.T @ residual.to(x)).double().cpu() + penalty * w
            gradient = torch.cat([slope * root, residual.sum().cpu()[None]])
            return value + penalty / 2 * float(w @ w), gradient.numpy()

        start = np.append((state[0] / root).numpy(), state[1])
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxcor": 20})
        state[:] = torch.from_numpy(found.x[:-1]) * root, found.x[-1]
        loss(found.x)
        return vectors @ state[0], torch.tensor(state[1]), loss.mean

    return solve
