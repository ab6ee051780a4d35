"""Training on one of K outcomes: our extension of CaPE, which the paper leaves to the future.

The loop is `probnb.training.loop.fit` in small: the same optimiser, order, schedules and choice by
validation cross entropy, on targets of shape (n, K). What an empirical probability of K outcomes
is can be answered in two ways: one outcome against the rest, bin by bin (`p_emp_rest`), or
predictions that lie in one cell of the simplex (`p_emp_cells`).
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch.nn import functional as F

from ..empirical import p_emp_bin
from ..metrics.several import check_distributions
from ..validation import check_integer
from .batches import cut, make_fabric, predict_logits, use_fast_layout
from .checkpoint import Run
from .loop import Fit, _make_scheduler, _out_of_patience

__all__ = ["fit_several", "one_hot", "p_emp_cells", "p_emp_rest"]


def one_hot(y, outcomes):
    """Return outcomes 0 to K - 1 as float32 rows of shape (n, K)."""
    return F.one_hot(torch.as_tensor(np.asarray(y), dtype=torch.int64), outcomes).float()


def p_emp_rest(p_hat, y, bins=15):
    """Empirical probabilities of each outcome against the rest, scaled to sum to 1.

    Parameters
    ----------
    p_hat : array-like of shape (n, K)
        Predicted probabilities.
    y : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    bins : int, default=15
        Quantile bins for each outcome.

    Returns
    -------
    ndarray of shape (n, K)
        For two outcomes `probnb.empirical.p_emp_bin` and its complement (up to ties).

    Examples
    --------
    >>> p_emp_rest([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]], [0, 1, 1, 1], bins=2)
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0. , 1. ],
           [0. , 1. ]])
    """
    p_hat, y = check_distributions(p_hat, "p_hat"), np.asarray(y)
    each = [p_emp_bin(p_hat[:, k], y == k, bins) for k in range(p_hat.shape[1])]
    stacked = np.stack(each, axis=1)
    return stacked / stacked.sum(axis=1, keepdims=True)


def p_emp_cells(p_hat, y, parts=5):
    """Mean outcome of the cell of the simplex that holds each prediction.

    Parameters
    ----------
    p_hat : array-like of shape (n, K)
        Predicted probabilities.
    y : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    parts : int, default=5
        Cells along each axis. By rank: each predicted probability is replaced by the quantile bin
        that it lies in among its outcome's, so that cells follow the predictions.

    Returns
    -------
    ndarray of shape (n, K)
        Rows that sum to 1 without scaling. Many cells of few rows: the noise of small samples is
        what the bins of one outcome at a time avoid.

    Examples
    --------
    >>> p_emp_cells([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]], [0, 1, 1, 1], parts=2)
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0. , 1. ],
           [0. , 1. ]])
    """
    p_hat, y = check_distributions(p_hat, "p_hat"), np.asarray(y)
    check_integer(parts, "parts")
    edges = [np.quantile(p, np.arange(1, parts) / parts) for p in p_hat.T]
    cells = np.stack([np.searchsorted(e, p, side="right") for e, p in zip(edges, p_hat.T)], axis=1)
    cell = np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((cell.max() + 1, p_hat.shape[1]))
    np.add.at(sums, (cell, y.astype(int)), 1)
    return (sums / sums.sum(axis=1, keepdims=True))[cell]


def fit_several(model, splits, outcomes, recipe, targets=None, fabric=None, keep_start=False):
    """Train a network of K logits and keep the weights with the lowest validation cross entropy.

    Parameters
    ----------
    model : torch.nn.Module
        Gives K logits; its present weights are the start.
    splits : probnb.data.Splits
        The inputs; their own outcomes are not looked at.
    outcomes : dict of str to array-like of shape (n,)
        Outcomes 0 to K - 1 of ``"train"`` and ``"val"``.
    recipe : Recipe
        Optimiser, schedule, epochs and seed; adversarial steps and averaging are not for K.
    targets : callable, optional
        ``targets(epoch, predict)``: rows of shape (n, K) for an epoch, where ``predict()`` gives
        the network's own; by default the outcomes.
    fabric : lightning_fabric.Fabric, optional
        Device and precision.
    keep_start : bool, default=False
        Whether the start is a candidate itself.

    Returns
    -------
    Fit
        Logits have K columns; the history has the two cross entropies.

    Raises
    ------
    ValueError
        If the recipe asks for what is not for K outcomes.
    FloatingPointError
        If the loss stops being finite.
    """
    if recipe.adversarial or recipe.averaging:
        raise ValueError("recipe must have adversarial=0 and averaging=0 for K outcomes.")
    fabric = fabric or make_fabric()
    splits = splits.to(fabric.device)
    model = use_fast_layout(model)
    optimizer = torch.optim.SGD(
        model.parameters(), recipe.learning_rate, recipe.momentum,
        weight_decay=recipe.weight_decay, fused=True,
    )  # fmt: skip
    wrapped, optimizer = fabric.setup(model, optimizer)
    run = Run(model, optimizer, _make_scheduler(optimizer, recipe))

    def predict(data):
        return predict_logits(fabric, wrapped, data)

    def assess():
        logits = {name: predict(getattr(splits, name)) for name in ("val", "test")}
        y = torch.as_tensor(np.asarray(outcomes["val"]), dtype=torch.int64)
        row = {"val_ce": float(F.cross_entropy(logits["val"].double().cpu(), y))}
        return row, {name: value.cpu() for name, value in logits.items()}

    row, logits = assess()
    run.start(row, logits, keep_start)
    hard = one_hot(outcomes["train"], logits["val"].shape[1])
    while run.epoch < recipe.epochs and not _out_of_patience(run, recipe):
        epoch, began = run.epoch + 1, time.process_time()
        soft = None
        if targets is not None:
            soft = targets(epoch, lambda: predict(splits.train).softmax(1).double().cpu().numpy())
        used = hard if soft is None else torch.as_tensor(np.asarray(soft), dtype=torch.float32)
        loss = _one_epoch(fabric, wrapped, optimizer, splits.train, used, recipe, epoch)
        row, logits = assess()
        row |= {"train_ce": loss, "calibration": int(soft is not None)}
        run.record(row | {"cpu_seconds": time.process_time() - began}, logits)
    return Fit(run.best, run.logits, run.history, run.best_epoch)


def _one_epoch(fabric, model, optimizer, data, soft, recipe, epoch):
    """One pass towards the targets; their mean cross entropy, as seen on the way."""
    model.train()
    soft, total = soft.to(fabric.device), 0.0
    seed = np.random.SeedSequence([recipe.seed, epoch, 1]).generate_state(1)[0]
    generator = torch.Generator().manual_seed(int(seed))
    order = data.order(recipe.batch_size, generator)
    draws = torch.rand(len(data), data.draws, generator=generator)
    for batch in cut(order, recipe.batch_size):
        x = data.batch(batch, draws[batch])
        loss = F.cross_entropy(model(*x).float(), soft[batch.to(fabric.device)])
        optimizer.zero_grad(set_to_none=True)
        fabric.backward(loss)
        optimizer.step()
        total += len(batch) * float(loss.detach())
    if not np.isfinite(total):
        raise FloatingPointError(
            f"the loss is not finite in epoch {epoch}; lower learning_rate={recipe.learning_rate}."
        )
    return total / len(data)
