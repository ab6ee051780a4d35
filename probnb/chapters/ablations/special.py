"""What is no row of a table: three outcomes, rules that stop, and CaPE's first targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from ...calibrators import CALIBRATORS
from ...data.base import one_hot
from ...experiment.plan import cost_of, lineage, passes, plan
from ...experiment.run import run_jobs
from ...methods import METHODS
from ...metrics import brier, evaluate, evaluate_outcomes, nll
from ...training.batches import device_type, make_fabric, predict_logits
from ...training.cape import CAPE, Calibrated, p_emp_bin
from ...training.loop import fit
from ...training.models import network

RULES = ("val CE", "val Brier", "val CE after Platt", "patience 2", "patience 4", "last")
"""What is looked at on validation data after every epoch; the least of it is kept.

``"val CE after Platt"`` is refinement (Berta et al. 2025): what is left of the cross entropy when a
calibrator has done what it can. ``"patience k"`` stops at the first k epochs without a lower cross
entropy; ``"last"`` does not look."""


_RATE = {"finetune_learning_rate": (1e-2,)}
_SCHEDULE = CAPE["released"]["bin"]


def _cape(label, kind, bins):
    targets = Calibrated(kind, **_SCHEDULE, bins=bins)
    return replace(METHODS["cape_bin"], label=label, targets=targets, grid=_RATE)


SEVERAL = {
    "resampled": METHODS["resampled"],
    "ce": METHODS["ce"],
    "ce_finetuned": replace(METHODS["ce_finetuned"], grid=_RATE),
    "cape_rest": _cape("CaPE, one against the rest", "bin", 15),
    "cape_cells": _cape("CaPE, cells of the simplex", "cells", 5),
}
"""Rows for three outcomes."""


def three_outcomes(splits, seed):
    """Give each row two draws of its probability: 0, 1 or 2 successes, which is our extension.

    Parameters
    ----------
    splits : probnb.data.Splits
        Data with known probabilities psi.
    seed : int
        Of the outcomes.

    Returns
    -------
    probnb.data.Splits
        The same with outcomes of probabilities (1 - psi)^2, 2 psi (1 - psi) and psi^2.
    """
    parts = {}
    for place, (name, part) in enumerate(splits.parts().items()):
        psi = part.probabilities.cpu().numpy().astype(float)
        p = np.stack([(1 - psi) ** 2, 2 * psi * (1 - psi), psi**2], axis=1)
        u = np.random.default_rng(np.random.SeedSequence([seed, 3, place])).random((len(psi), 1))
        drawn = (u > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        parts[name] = replace(part, outcomes=one_hot(drawn, 3), probabilities=p)
    return replace(splits, **parts, source=f"{splits.source} two draws")


def fits_of(jobs, splits, fits_dir, how):
    """Trainings and all that they rest on."""
    every = list(dict.fromkeys(step for job in jobs for step in lineage(job)))
    return run_jobs(every, splits, fits_dir, **how)


def run_several(splits, settings, seed, fits_dir, **how):
    """Train the rows of `SEVERAL` on three outcomes and judge them; a line a row."""
    splits = three_outcomes(splits, seed)
    net = network("resnet18", width=settings.width, stem=settings.stem, num_classes=3)
    jobs = {m: one for m, (one,) in plan(SEVERAL, settings, seed, net, SEVERAL).items()}
    fits = fits_of(jobs.values(), splits, fits_dir, how)
    unit = passes(jobs["ce"], fits[jobs["ce"]], splits, settings.patience)
    y, p = (getattr(splits.test, k).cpu().numpy() for k in ("outcomes", "probabilities"))
    lines = []
    for row, job in jobs.items():
        method, last = SEVERAL[row], SEVERAL[row].epoch == "last"
        p_hat = fits[job].logits[f"{method.epoch}_test"].double().softmax(1).numpy()
        kept_start = job.start is not None and fits[job].best_epoch == 0
        facts = {"row": row, "label": method.label, "part": "", "kept_start": kept_start}
        facts |= {"val_ce": fits[job].val_ce, "epoch": fits[job].best_epoch}
        facts["cost"] = cost_of([job], fits, splits, settings.patience, unit, last)
        lines.append(facts | evaluate_outcomes(y.argmax(1), p_hat, p))
    return pd.DataFrame(lines)


def run_stopping(splits, settings, seed, device="auto"):
    """Apply every rule to one training; judge what it keeps, Platt scaling of it, and CaPE from it.

    Finished work holds one epoch's weights. Here those of every epoch are needed, so that these few
    trainings are done anew each time.

    Returns
    -------
    DataFrame
        Lines by rule; ``part`` is ``"kept"``, ``"platt"`` or ``"cape"``, ``x`` the epoch.
    """
    fabric = make_fabric(device_type(device))
    tune = replace(METHODS["cape_bin"], grid={"finetune_learning_rate": (1e-2,), "bins": (15,)})
    (job,) = plan(["ce"], settings, seed)["ce"]
    (cape,) = plan(["cape"], settings, seed, rows={"cape": tune})["cape"]
    data, seen = splits.to(fabric.device), []
    torch.manual_seed(job.init_seed)
    model = job.network.build(splits.train.inputs)

    def look(record):
        state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
        said = {k: predict_logits(fabric, model, getattr(data, k)) for k in ("val", "test")}
        seen.append((state, {k: z.double().cpu().numpy() for k, z in said.items()}))

    fit(model, splits, job.recipe, fabric=fabric, on_epoch=look)
    y, p = splits.val.outcomes.cpu().numpy(), splits.test.probabilities.cpu().numpy()
    chosen, tuned = choose([z["val"] for _, z in seen], y), {}
    for epoch in sorted(set(chosen.values())):
        model = job.network.build(splits.train.inputs)
        model.load_state_dict(seen[epoch - 1][0])
        options = {"targets": cape.targets, "fabric": fabric, "keep_start": True}
        found = fit(model, splits, cape.recipe, on_epoch=lambda record: None, **options)
        tuned[epoch] = found.logits["best_test"].double().numpy()
    lines = []
    for rule, epoch in chosen.items():
        z = seen[epoch - 1][1]
        said = {
            "kept": _softmax(z["test"]),
            "platt": CALIBRATORS["platt"]().fit(z["val"], y).predict_proba(z["test"])[:, 1],
            "cape": _softmax(tuned[epoch]),
        }
        for part, p_hat in said.items():
            row = rule if part == "kept" else f"{rule}, {part}"
            facts = {"row": row, "label": rule, "part": part, "x": epoch, "epoch": epoch}
            lines.append(facts | evaluate(splits.test.outcomes.cpu().numpy(), p_hat, p))
    return pd.DataFrame(lines)


def choose(val_logits, y):
    """Return the epoch, from 1, that each rule keeps, given validation logits after every epoch."""
    p = [_softmax(z) for z in val_logits]
    after = [CALIBRATORS["platt"]().fit(z, y).predict_proba(z)[:, 1] for z in val_logits]
    seen = {
        "val CE": [nll(y, q) for q in p],
        "val Brier": [brier(y, q) for q in p],
        "val CE after Platt": [nll(y, q) for q in after],
    }
    chosen = {rule: int(np.argmin(values)) + 1 for rule, values in seen.items()}
    for patience in (2, 4):
        best = 0
        for epoch, value in enumerate(seen["val CE"]):
            best = epoch if value < seen["val CE"][best] else best
            if epoch - best >= patience:
                break
        chosen[f"patience {patience}"] = best + 1
    return chosen | {"last": len(p)}


def _softmax(z):
    """Probability of outcome 1."""
    return 1 / (1 + np.exp(z[:, 0] - z[:, 1]))


def first_targets(splits, settings, seed, fits_dir, device="auto"):
    """Compute p_emp of the training rows by a network at epoch 0 and at the early-stopped epoch.

    Returns
    -------
    DataFrame
        One line a training row and network: ``network`` (``"epoch 0"`` or ``"early-stopped"``),
        ``p``, ``p_hat`` and ``p_emp``.
    """
    device = device_type(device)
    (job,) = plan(["ce"], settings, seed)["ce"]
    ce = run_jobs([job], splits, fits_dir, device=device, progress=False)[job]
    fabric, data = make_fabric(device), splits.to(device)
    y, p = (v.cpu().numpy() for v in (splits.train.outcomes, splits.train.probabilities))
    tables = []
    for name, weights in (("epoch 0", None), ("early-stopped", ce.weights)):
        torch.manual_seed(job.init_seed)
        model = job.network.build(splits.train.inputs)
        if weights is not None:
            model.load_state_dict(weights)
        logits = predict_logits(fabric, model.to(fabric.device), data.train)
        p_hat = logits.double().softmax(1)[:, 1].cpu().numpy()
        found = {"network": name, "p": p, "p_hat": p_hat, "p_emp": p_emp_bin(p_hat, y, 15)}
        tables.append(pd.DataFrame(found))
    return pd.concat(tables, ignore_index=True)
