"""When to stop: rules that choose an epoch of cross entropy, and what each does to CaPE's start.

The store keeps one epoch's weights of a training. For these few trainings the chapter keeps the
logits of every epoch, and the weights of those that some rule chooses.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ... import store
from ...calibrators import CALIBRATORS
from ...experiment.plan import job_key, plan
from ...experiment.provenance import fingerprint
from ...methods import METHODS
from ...metrics import brier, evaluate, nll
from ...training.batches import device_type, make_fabric, precision_of, predict_logits
from ...training.loop import fit

__all__ = ["RULES", "choose", "run", "trace"]

RULES = ("val CE", "val Brier", "val CE after Platt", "patience 2", "patience 4", "last")
"""What is looked at on validation data after every epoch; the least of it is kept.

``"val CE after Platt"`` is refinement (Berta et al. 2025): what is left of the cross entropy when a
calibrator has done what it can. ``"patience k"`` stops at the first k epochs without a lower cross
entropy; ``"last"`` does not look."""


def run(splits, settings, seed, fits_dir, device="auto"):
    """Apply every rule to one training; judge what it keeps, Platt scaling of it, and CaPE from it.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    settings : Profile
        Sizes.
    seed : int
        Of the trainings.
    fits_dir : path-like
        Where finished trainings are kept.
    device : str, default="auto"
        Where to compute.

    Returns
    -------
    DataFrame
        Lines by rule; ``part`` is ``"kept"``, ``"platt"`` or ``"cape"``, ``x`` the epoch.
    """
    device = device_type(device)
    job = plan(["ce"], settings, seed)["ce"][0]
    logits, weights = trace(job, splits, fits_dir, device)
    y = {k: getattr(splits, k).outcomes.cpu().numpy() for k in ("val", "test")}
    p = splits.test.probabilities.cpu().numpy()
    tune = replace(METHODS["cape_bin"], grid={"finetune_learning_rate": (1e-2,), "bins": (15,)})
    (cape,) = plan(["cape"], settings, seed, rows={"cape": tune})["cape"]
    lines = []
    for rule, epoch in choose(logits["val"], y["val"]).items():
        z = {k: v[epoch - 1].astype(float) for k, v in logits.items()}
        from_it = _cape(cape, job, epoch, weights[epoch], splits, fits_dir, device)
        said = {
            "kept": _softmax(z["test"]),
            "platt": CALIBRATORS["platt"]().fit(z["val"], y["val"]).predict_proba(z["test"])[:, 1],
            "cape": _softmax(from_it["best_test"].double().numpy()),
        }
        for part, p_hat in said.items():
            row = rule if part == "kept" else f"{rule}, {part}"
            facts = {"row": row, "label": rule, "part": part, "x": epoch, "epoch": epoch}
            lines.append(facts | evaluate(y["test"], p_hat, p) | {"cost": np.nan})
    return pd.DataFrame(lines)


def choose(val_logits, y):
    """Return the epoch, from 1, that each rule keeps.

    Parameters
    ----------
    val_logits : ndarray of shape (epochs, n, 2)
        Of the validation rows after every epoch.
    y : ndarray of shape (n,)
        Their outcomes.

    Returns
    -------
    dict of str to int
        An epoch for each of `RULES`.
    """
    p = [_softmax(z.astype(float)) for z in val_logits]
    after = [
        CALIBRATORS["platt"]().fit(z.astype(float), y).predict_proba(z.astype(float))[:, 1]
        for z in val_logits
    ]
    seen = {
        "val CE": [nll(y, q) for q in p],
        "val Brier": [brier(y, q) for q in p],
        "val CE after Platt": [nll(y, q) for q in after],
    }
    chosen = {rule: int(np.argmin(values)) + 1 for rule, values in seen.items()}
    for patience in (2, 4):
        chosen[f"patience {patience}"] = _patient(seen["val CE"], patience)
    return chosen | {"last": len(p)}


def _patient(values, patience):
    best = 0
    for epoch, value in enumerate(values):
        if value < values[best]:
            best = epoch
        if epoch - best >= patience:
            break
    return best + 1


def trace(job, splits, fits_dir, device="cpu"):
    """Train with a look at every epoch.

    Parameters
    ----------
    job : Job
        A training from random weights.
    splits : probnb.data.Splits
        The data.
    fits_dir : path-like
        Where it is kept, in a file beside the job's own.
    device : str, default="cpu"
        Where to compute.

    Returns
    -------
    logits : dict of str to ndarray of shape (epochs, n, 2)
        Of the validation and test rows after every epoch.
    weights : dict of int to dict
        Weights after the epochs that a rule chooses.
    """
    path = (
        Path(fits_dir) / f"{job_key(job, splits, device, precision_of(device))}.trace.safetensors"
    )
    found = store.load_or_set_aside(path)
    if found is None or found[1]["code"] != fingerprint(job):
        tensors = _train(job, splits, device)
        store.save(path, tensors, {"code": fingerprint(job)})
        found = tensors, None
    tensors = found[0]
    logits = {k: tensors[f"logits.{k}"].numpy() for k in ("val", "test")}
    epochs = {int(name.split(".")[1]) for name in tensors if name.startswith("epoch.")}
    return logits, {e: store.part(tensors, f"epoch.{e}.") for e in epochs}


def _train(job, splits, device):
    fabric = make_fabric(device)
    data = splits.to(fabric.device)
    torch.manual_seed(job.init_seed)
    model = job.network.build(splits.train.inputs)
    seen = []

    def look(record):
        state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
        said = {k: predict_logits(fabric, model, getattr(data, k)).cpu() for k in ("val", "test")}
        seen.append((state, said))

    threads = torch.get_num_threads()
    torch.set_num_threads(1 if device == "cpu" else threads)
    try:
        fit(model, splits, job.recipe, fabric=fabric, on_epoch=look)
    finally:
        torch.set_num_threads(threads)
    tensors = {f"logits.{k}": torch.stack([said[k] for _, said in seen]) for k in ("val", "test")}
    val = tensors["logits.val"].numpy()
    for epoch in set(choose(val, splits.val.outcomes.cpu().numpy()).values()):
        tensors |= {f"epoch.{epoch}.{k}": v for k, v in seen[epoch - 1][0].items()}
    return tensors


def _cape(cape, job, epoch, weights, splits, fits_dir, device):
    """Logits of CaPE from the weights of an epoch, stored under the two keys and the epoch."""
    keys = [job_key(one, splits, device, precision_of(device)) for one in (job, cape)]
    name = store.key({"trace": keys, "epoch": epoch, "code": fingerprint(cape)})
    path = Path(fits_dir) / f"{name}.trace.safetensors"
    found = store.load_or_set_aside(path)
    if found is not None:
        return found[0]
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if device == "cpu" else threads)
    try:
        model = job.network.build(splits.train.inputs)
        model.load_state_dict(weights)
        result = fit(
            model, splits, cape.recipe, targets=cape.targets, fabric=make_fabric(device),
            on_epoch=lambda record: None, keep_start=True,
        )  # fmt: skip
    finally:
        torch.set_num_threads(threads)
    store.save(path, result.logits, {})
    return result.logits


def _softmax(z):
    """Probability of outcome 1."""
    return 1 / (1 + np.exp(z[:, 0] - z[:, 1]))
