"""What CaPE's first targets would be: empirical probabilities before training, and after it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from ...experiment.plan import plan
from ...experiment.run import run_jobs
from ...training.batches import device_type, make_fabric, predict_logits
from ...training.cape import p_emp_bin

__all__ = ["first_targets", "spread_of_targets"]

BINS = 15


def first_targets(splits, settings, seed, fits_dir, device="auto"):
    """Compute p_emp of a network at epoch 0 and at the early-stopped epoch.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    settings : Profile
        Sizes.
    seed : int
        Of the training.
    fits_dir : path-like
        Where the trained cross entropy is kept.
    device : str, default="auto"
        Where to compute.

    Returns
    -------
    DataFrame
        One line a training row and network: ``network`` (``"epoch 0"`` or ``"early-stopped"``),
        ``p``, ``p_hat`` and ``p_emp``.
    """
    device = device_type(device)
    (job,) = plan(["ce"], settings, seed)["ce"]
    fit = run_jobs([job], splits, fits_dir, device=device, progress=False)[job]
    fabric, data = make_fabric(device), splits.to(device)
    y, p = (v.cpu().numpy() for v in (splits.train.outcomes, splits.train.probabilities))
    tables = []
    for name, weights in (("epoch 0", None), ("early-stopped", fit.weights)):
        torch.manual_seed(job.init_seed)
        model = job.network.build(splits.train.inputs)
        if weights is not None:
            model.load_state_dict(weights)
        model = model.to(fabric.device)
        p_hat = predict_logits(fabric, model, data.train).double().softmax(1)[:, 1].cpu().numpy()
        p_emp = p_emp_bin(p_hat, y, BINS)
        tables.append(pd.DataFrame({"network": name, "p": p, "p_hat": p_hat, "p_emp": p_emp}))
    return pd.concat(tables, ignore_index=True)


def spread_of_targets(table):
    """Compare the spread of the targets with that of the truth and of noise.

    Parameters
    ----------
    table : DataFrame
        From `first_targets`.

    Returns
    -------
    DataFrame
        For each network: ``variance`` of p_emp over the rows, ``noise`` that bins of random rows
        would have, ``truth`` (the variance of p), and ``distance``, the mean squared distance of
        p_emp from p.
    """
    lines = {}
    for name, part in table.groupby("network", sort=False):
        rate, n = part["p_emp"].mean(), len(part)
        lines[name] = {
            "variance": part["p_emp"].var(ddof=0),
            "noise": rate * (1 - rate) * (part["p_emp"].nunique() - 1) / n,
            "truth": part["p"].var(ddof=0),
            "distance": np.mean((part["p_emp"] - part["p"]) ** 2),
        }
    return pd.DataFrame(lines).T
