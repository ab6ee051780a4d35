"""What is no row of a table: three outcomes, rules that stop or keep, CaPE's steps and targets."""

import zlib
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
from scipy.special import expit, logit

from probnb import store
from probnb.calibrators import CALIBRATORS
from probnb.data.base import one_hot
from probnb.experiment.plan import plan, sub_seed
from probnb.experiment.run import run_jobs
from probnb.methods import METHODS
from probnb.metrics import brier, evaluate, nll
from probnb.training.batches import device_type, make_fabric, predict_logits
from probnb.training.cape import CAPE, Calibrated, p_emp_bin
from probnb.training.loop import fit
from probnb.training.targets import Observed

from .rows import RATE, Row


def _cape(label, kind, bins):
    targets = Calibrated(kind, **CAPE["released"]["bin"], bins=bins)
    return Row(replace(METHODS["cape_bin"], label=label, targets=targets, grid=RATE))


SEVERAL = {
    "resampled": Row(METHODS["resampled"]),
    "ce": Row(METHODS["ce"]),
    "ce_finetuned": Row(replace(METHODS["ce_finetuned"], grid=RATE)),
    "cape_rest": _cape("CaPE, one against the rest", "bin", 15),
    "cape_cells": _cape("CaPE, cells of the simplex", "cells", 5),
}
"""Rows for three outcomes."""


def three_outcomes(splits, seed):
    """Give each row two draws of its probability psi: 0, 1 or 2 successes, which is our extension.

    Outcomes have the probabilities (1 - psi)^2, 2 psi (1 - psi) and psi^2.
    """
    parts = {}
    for place, (name, part) in enumerate(splits.parts().items()):
        psi = part.probabilities.cpu().numpy().astype(float)
        p = np.stack([(1 - psi) ** 2, 2 * psi * (1 - psi), psi**2], axis=1)
        words = [seed, zlib.crc32(b"three"), place]  # no epoch has this number: labels are fresh
        u = np.random.default_rng(np.random.SeedSequence(words)).random((len(psi), 1))
        drawn = (u > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        parts[name] = replace(part, outcomes=one_hot(drawn, 3), probabilities=p)
    return replace(splits, **parts, source=f"{splits.source} two draws")


def platt(val, y, logits):
    """Probabilities after Platt scaling that is fitted to validation data."""
    return CALIBRATORS["platt"]().fit(val, y).predict_proba(logits)[:, 1]


def _softmax(z):
    """Probability of outcome 1."""
    return 1 / (1 + np.exp(z[:, 0] - z[:, 1]))


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
    tune = replace(METHODS["cape_bin"], grid=RATE | {"bins": (15,)})
    (job,) = plan(["ce"], settings, seed)["ce"]
    (cape,) = plan(["cape"], settings, seed, rows={"cape": tune})["cape"]
    data, seen = splits.to(fabric.device), []
    torch.manual_seed(job.init_seed)
    model = job.network.build(splits.train.inputs)

    def look(record):
        state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
        said = [predict_logits(fabric, model, part) for part in (data.val, data.test)]
        seen.append((state, *(z.double().cpu().numpy() for z in said)))

    fit(model, splits, job.recipe, fabric=fabric, on_epoch=look)
    y, p = splits.val.outcomes.cpu().numpy(), splits.test.probabilities.cpu().numpy()
    lines, tuned = [], {}
    for rule, epoch in choose([val for _, val, _ in seen], y).items():
        state, val, test = seen[epoch - 1]
        if epoch not in tuned:
            model = job.network.build(splits.train.inputs)
            model.load_state_dict(state)
            options = {"targets": cape.targets, "fabric": fabric, "keep_start": True}
            done = fit(model, splits, cape.recipe, on_epoch=lambda record: None, **options)
            tuned[epoch] = _softmax(done.logits["best_test"].double().numpy())
        said = {"kept": _softmax(test), "platt": platt(val, y, test), "cape": tuned[epoch]}
        for part, p_hat in said.items():
            row = rule if part == "kept" else f"{rule}, {part}"
            facts = {"row": row, "label": rule, "part": part, "x": epoch, "epoch": epoch}
            lines.append(facts | evaluate(splits.test.outcomes.cpu().numpy(), p_hat, p))
    return pd.DataFrame(lines)


def choose(val_logits, y):
    """Return the epoch, from 1, that each rule keeps, given validation logits after every epoch.

    ``"val CE after Platt"`` is refinement (Berta et al. 2025): what is left of the cross entropy
    when a calibrator has done what it can. ``"patience k"`` stops at the first k epochs without a
    lower cross entropy; ``"last"`` does not look.
    """
    p = [_softmax(z) for z in val_logits]
    losses = {
        "val CE": [nll(y, q) for q in p],
        "val Brier": [brier(y, q) for q in p],
        "val CE after Platt": [nll(y, platt(z, y, z)) for z in val_logits],
    }
    chosen = {rule: int(np.argmin(values)) + 1 for rule, values in losses.items()}
    best = [int(np.argmin(losses["val CE"][: k + 1])) for k in range(len(p))]  # so far
    for patience in (2, 4):
        stopped = (b for k, b in enumerate(best) if k - b >= patience)
        chosen[f"patience {patience}"] = next(stopped, best[-1]) + 1
    return chosen | {"last": len(p)}


KINDS = ("One network", "Averaged weights", "Ensemble", "Ensemble of averaged")
"""What `run_reversal` judges after every epoch."""


def run_reversal(splits, settings, seed, device="auto", members=5):
    """Look for the epoch to keep before and after post-processing (Ranjan et al. 2024).

    Members are trained to the last epoch, and what they are and what becomes of them is judged
    after each: their weights, the average of these that they keep, and the mean of either over
    members. Trained anew each time, as in `run_stopping`.

    Returns
    -------
    DataFrame
        Lines by kind (``label``, of `KINDS`) and epoch ``x``: ``val_ce`` and ``mse_p``, of members
        their mean; ``part`` is ``"epoch"`` or, after Platt scaling, ``"epoch, platt"``. Lines of
        the parts ``"kept"`` and ``"kept, platt"`` have what each rule keeps.
    """
    row = replace(METHODS["ce_averaged"], members=members)
    jobs = plan(["row"], replace(settings, members=members), seed, rows={"row": row})["row"]
    z = torch.stack([_every_epoch(job, splits, device) for job in jobs], 1).numpy()
    y, p = splits.val.outcomes.cpu().numpy(), splits.test.probabilities.cpu().numpy()

    def judge(logits):  # (val CE, MSE_p) as they are and after Platt scaling
        val, test = logits[: len(y)], logits[len(y) :]
        pairs = [(expit(val), expit(test)), (platt(val, y, val), platt(val, y, test))]
        return [(nll(y, val), np.mean((test - p) ** 2)) for val, test in pairs]

    lines, runs = [], [*z, *logit(expit(z).mean(1, keepdims=True))]
    every = [np.array([[judge(epoch) for epoch in run] for run in member]) for member in runs]
    for kind, found in zip(KINDS, every):
        bare = every[0][:, :, 0, 0]  # a rule that does not know of what comes after
        kept = {"val CE": found[:, :, 0, 0], "val CE after Platt": found[:, :, 1, 0]}
        kept["val CE of one"] = bare if len(found) > 1 else bare.mean(0, keepdims=True)
        told = {f" {t + 1}": ("epoch", t) for t in range(found.shape[1])}
        told |= {f", {rule}": ("kept", loss.argmin(1)) for rule, loss in kept.items()}
        for (name, (part, t)), then in product(told.items(), ("", ", platt")):
            ce, mse = found[np.arange(len(found)), t, int(then != "")].mean(0)
            facts = {"row": f"{kind}{name}{then}", "part": part + then, "x": np.mean(t) + 1}
            lines.append(facts | {"label": kind, "val_ce": ce, "mse_p": mse})
    return pd.DataFrame(lines)


ANEW = {"stopping": run_stopping, "reversal": run_reversal}
"""Studies whose trainings are not kept, since they look into every epoch."""


def _every_epoch(job, splits, device):
    """Log-odds (2, epochs, val and test rows) of a network and of its averaged weights."""
    fabric, seen, data = make_fabric(device_type(device)), [], splits.to(device_type(device))
    torch.manual_seed(job.init_seed)
    model, recipe = job.network.build(splits.train.inputs), replace(job.recipe, patience=None)
    with TemporaryDirectory() as folder:
        state = Path(folder) / "epoch"  # where the logits of the averaged weights are

        def look(record):
            own = [predict_logits(fabric, model, part) for part in (data.val, data.test)]
            kept = [store.load(state)[0][f"logits.last_{part}"] for part in ("val", "test")]
            seen.append(torch.stack([torch.cat(z).cpu().double() for z in (own, kept)]))

        fit(model, splits, recipe, fabric=fabric, checkpoint=state, on_epoch=look)
    return torch.stack(seen, 1).diff(dim=-1)[..., 0]


SHAPE = {k: CAPE["released"]["kernel"][k] for k in ("sigma", "neighbours")}
STEPS = {
    "outcomes": Observed(),
    **{f"{bins} bins": Calibrated("bin", every=1, phase=0, bins=bins) for bins in (15, 50, 200)},
    "kernel": Calibrated("kernel", every=1, phase=0, **SHAPE),
}
"""Targets of two epochs from the early-stopped network: all of them outcomes, or all p_emp."""


def run_steps(splits, settings, seed, fits_dir, **how):
    """Follow the test logits through two epochs from the same start, and into averaged weights.

    Returns
    -------
    DataFrame
        Lines by kind of step, the first the start itself: ``share`` of the mean squared change of
        the logits that is a function of the old logit, ``grouping`` error (the part of MSE_p that
        no map of the predictions can remove) and the metrics.
    """
    (ce,), (averaged,) = plan(["ce", "ce_averaged"], settings, seed).values()
    recipe = replace(ce.recipe, epochs=2, learning_rate=1e-2, schedule="constant")
    recipe = replace(recipe, patience=None, seed=sub_seed(seed, 0, 1))
    steps = {name: replace(ce, start=ce, recipe=recipe, targets=t) for name, t in STEPS.items()}
    fits = run_jobs([ce, averaged, *steps.values()], splits, fits_dir, **how)
    kept = {"start": (ce, "best"), "averaged weights": (averaged, "best")}
    kept |= {name: (job, "last") for name, job in steps.items()}
    y, p = (v.double().numpy() for v in (splits.test.outcomes, splits.test.probabilities))
    z = {k: fits[j].logits[f"{at}_test"].double().diff(dim=1)[:, 0] for k, (j, at) in kept.items()}
    lines = []
    for name, logits in z.items():
        moved = (logits - z["start"]).numpy()
        share = 1 - within(z["start"], moved) / (moved**2).mean() if moved.any() else np.nan
        facts = {"row": name, "label": name, "part": "", "share": share}
        facts |= {"grouping": within(logits, p), **evaluate(y, logits.sigmoid().numpy(), p)}
        lines.append(facts | {"epoch": fits[kept[name][0]].best_epoch})
    return pd.DataFrame(lines)


def within(by, values, bins=50):
    """Mean variance of values among rows that are alike in another: what no function of it says."""
    parts = np.array_split(values[np.argsort(by, kind="stable")], min(bins, len(values) // 10))
    return float(np.mean([part.var(ddof=1) for part in parts]))


def first_targets(splits, settings, seed, fits_dir, device="auto"):
    """Compute p_emp of the training rows by a network at epoch 0 and at the early-stopped epoch.

    Returns
    -------
    DataFrame
        One line a training row and network: ``network`` (``"epoch 0"`` or ``"early-stopped"``),
        ``p`` and ``p_emp``.
    """
    device = device_type(device)
    (job,) = plan(["ce"], settings, seed)["ce"]
    ce = run_jobs([job], splits, fits_dir, device=device, progress=False)[job]
    fabric, train, tables = make_fabric(device), splits.to(device).train, []
    torch.manual_seed(job.init_seed)
    model = job.network.build(splits.train.inputs).to(fabric.device)
    for name in ("epoch 0", "early-stopped"):
        if name == "early-stopped":
            model.load_state_dict(ce.weights)
        p_hat = predict_logits(fabric, model, train).double().softmax(1)[:, 1].cpu().numpy()
        found = {"network": name, "p": train.probabilities.cpu().numpy()}
        p_emp = p_emp_bin(p_hat, train.outcomes.cpu().numpy(), 15)
        tables.append(pd.DataFrame(found | {"p_emp": p_emp}))
    return pd.concat(tables, ignore_index=True)
