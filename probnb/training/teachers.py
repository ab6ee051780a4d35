"""Networks that teach others: folds of the training rows, and what teachers say of them.

Out-of-fold predictions (cross-fitting) are what K networks say of the rows that each of them has
not seen, so that no row's target holds its own outcome.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ..calibrators import CALIBRATORS
from ..data.base import channel_scale
from .batches import predict_logits

__all__ = ["check_fold", "left_out", "teach", "without"]


def check_fold(fold):
    """Return a fold ``(which, of, seed)``; ValueError where it is none."""
    whole = isinstance(fold, tuple) and len(fold) == 3 and all(type(v) is int for v in fold)
    if not whole or not 0 <= fold[0] < fold[1] or fold[1] < 2 or fold[2] < 0:
        raise ValueError(
            f"fold must be (which, of, seed) with 0 <= which < of and of at least 2; got {fold!r}."
        )
    return fold


def left_out(splits, fold):
    """Return the training rows that the network of a fold does not see.

    Folds cut through groups where the data's own splits do (faces of one age), and never where
    those do not (patients, days).

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    fold : tuple of int
        Which fold, of how many, and the seed of the cut.

    Returns
    -------
    ndarray of shape (k,)
        Row numbers in increasing order; over all folds each row comes once.

    Raises
    ------
    ValueError
        If the fold is none, or there are fewer rows or groups than folds.
    """
    which, of, seed = check_fold(fold)
    train, n = splits.train, len(splits.train)
    units = np.arange(n)
    if train.groups is not None and not np.isin(train.groups, splits.val.groups).any():
        units = np.unique(train.groups, return_inverse=True)[1]
    count = units.max() + 1
    if count < of:
        raise ValueError(f"fold must be one of at most {count} (rows or groups); got {fold!r}.")
    rank = np.random.default_rng(np.random.SeedSequence([seed, of])).permutation(count)
    size = np.bincount(rank[units], minlength=count)
    # The fold of a unit is where its middle lies among all rows; no fold stays empty.
    middle = (np.cumsum(size) - size / 2) / n
    part = np.minimum((middle * of).astype(int), of - 1)
    if len(np.unique(part)) < of:
        part = np.arange(count) * of // count
    return np.flatnonzero(part[rank[units]] == which)


def without(splits, fold):
    """Return the data without the rows of a fold, images scaled as in all training data."""
    rows = np.setdiff1d(np.arange(len(splits.train)), left_out(splits, fold))
    scale = splits.train.scale or channel_scale(splits.train.inputs)
    train = replace(splits.train.take(rows), scale=scale)
    return replace(splits, train=train)


def teach(teachers, splits, fabric, calibrator=None):
    """Say what teachers predict for the training rows.

    Parameters
    ----------
    teachers : list of (Network, Fit, tuple or None)
        For each: its network, its finished training, and the fold that it left out. A teacher with
        a fold speaks of that fold's rows only, one without of all, also those that it has seen.
    splits : probnb.data.Splits
        The data.
    fabric : lightning_fabric.Fabric
        Device and precision.
    calibrator : str, optional
        Name in `probnb.calibrators.CALIBRATORS`, fitted to each teacher's validation predictions.

    Returns
    -------
    torch.Tensor of shape (n,)
        Mean probability of outcome 1 over the teachers that speak of a row, float32.

    Raises
    ------
    ValueError
        If nobody speaks of some row.
    """
    splits = splits.to(fabric.device)
    train, n = splits.train, len(splits.train)
    total, voices = np.zeros(n), np.zeros(n)
    for network, fit, fold in teachers:
        rows = np.arange(n) if fold is None else left_out(splits, fold)
        model = network.build(splits.train.inputs)
        model.load_state_dict(fit.weights)
        model = model.to(fabric.device)
        z = predict_logits(fabric, model, train.take(rows)).double().cpu()
        total[rows] += _calibrated(z, fit, splits.val, calibrator)
        voices[rows] += 1
    if not voices.all():
        raise ValueError(
            f"teachers must speak of every row; none does of {int((voices == 0).sum())}."
        )
    return torch.as_tensor(total / voices, dtype=torch.float32)


def _calibrated(logits, fit, val, calibrator):
    if calibrator is None:
        return logits.softmax(1)[:, 1].numpy()
    weights = None if val.weights is None else val.weights.cpu().numpy()
    known = fit.logits["best_val"].double().numpy()
    fitted = CALIBRATORS[calibrator]().fit(known, val.outcomes.cpu().numpy(), sample_weight=weights)
    return fitted.predict_proba(logits.numpy())[:, 1]
