"""Three outcomes: the scenarios with two draws of their probability, which is our extension.

With the age's probability psi, two independent draws have 0, 1 or 2 successes with probabilities
(1 - psi)^2, 2 psi (1 - psi) and psi^2: three outcomes whose probabilities are known in each of
the paper's scenarios.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ... import store
from ...experiment.plan import plan
from ...metrics.several import evaluate
from ...training.batches import device_type, make_fabric, precision_of
from ...training.loop import Fit
from ...training.models import network
from ...training.several import fit_several, p_emp_cells, p_emp_rest

__all__ = ["ROWS", "draw", "probabilities", "run"]

ROWS = {
    "resampled": "CE + resampled outcomes",
    "ce": "CE early-stop",
    "ce_finetuned": "CE fine-tuned",
    "cape_rest": "CaPE, one against the rest",
    "cape_cells": "CaPE, cells of the simplex",
}
EVERY, PHASE = 3, 2
"""A calibration epoch first, then every third: the released schedule of CaPE (bin)."""


def probabilities(psi):
    """Return the probabilities of 0, 1 and 2 successes in two draws, of shape (n, 3)."""
    psi = np.asarray(psi, dtype=float)
    return np.stack([(1 - psi) ** 2, 2 * psi * (1 - psi), psi**2], axis=1)


def draw(p, seed):
    """Return one outcome for each row of probabilities (n, K), as int64."""
    u = np.random.default_rng(seed).random(len(p))
    return (u[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


def run(splits, scenario, settings, seed, fits_dir, device="auto"):
    """Train the rows on three outcomes and judge them.

    Parameters
    ----------
    splits : probnb.data.Splits
        Faces of a scenario.
    scenario : str
        Its name.
    settings : Profile
        Sizes.
    seed : int
        Of outcomes, weights and order.
    fits_dir : path-like
        Where finished trainings are kept.
    device : str, default="auto"
        Where to compute.

    Returns
    -------
    DataFrame
        One line a row, in the columns of `probnb.chapters.ablations.study.run_study`.
    """
    device = device_type(device)
    p = {k: probabilities(part.probabilities.cpu()) for k, part in splits.parts().items()}
    names = list(p)
    y = {k: draw(p[k], np.random.SeedSequence([seed, 3, names.index(k)])) for k in names}
    jobs = plan(["resampled", "ce", "ce_finetuned"], settings, seed)

    def train(row, job, targets=None, start=None):
        facts = {
            "three": 1, "row": row, "source": splits.source, "recipe": asdict(job.recipe),
            "network": [settings.width, settings.stem], "device": device,
            "precision": precision_of(device), "start": start and start.code,
        }  # fmt: skip
        key = store.key(facts)
        path = Path(fits_dir) / f"{key}.several.safetensors"
        found = store.load_or_set_aside(path)
        if found is not None:
            tensors, meta = found
            weights, logits = (store.part(tensors, k) for k in ("weights.", "logits."))
            return Fit(weights, logits, meta["history"], meta["best_epoch"], key)
        model = _model(settings, splits, job.init_seed)
        if start is not None:
            model.load_state_dict(start.weights)
        fit = _one_thread(
            lambda: fit_several(
                model, splits, y, job.recipe, targets, make_fabric(device), start is not None
            )
        )
        tensors = {f"weights.{k}": v for k, v in fit.weights.items()}
        tensors |= {f"logits.{k}": v for k, v in fit.logits.items()}
        store.save(path, tensors, {"history": fit.history, "best_epoch": fit.best_epoch})
        return Fit(fit.weights, fit.logits, fit.history, fit.best_epoch, key)

    def fresh(epoch, predict):
        return np.eye(3)[draw(p["train"], np.random.SeedSequence([seed, epoch, 4]))]

    def calibrated(estimate):
        def targets(epoch, predict):
            return estimate(predict(), y["train"]) if (epoch + PHASE) % EVERY == 0 else None

        return targets

    (tune,) = [job for job in jobs["ce_finetuned"] if job.recipe.learning_rate == 1e-2]
    ce = train("ce", jobs["ce"][0])
    fits = {
        "resampled": train("resampled", jobs["resampled"][0], fresh),
        "ce": ce,
        "ce_finetuned": train("ce_finetuned", tune, None, ce),
        "cape_rest": train("cape_rest", tune, calibrated(p_emp_rest), ce),
        "cape_cells": train("cape_cells", tune, calibrated(p_emp_cells), ce),
    }
    unit = min(len(ce.history) - 1, ce.best_epoch + settings.patience)
    lines = []
    for row, fit in fits.items():
        which = "last" if row == "resampled" else "best"
        p_hat = fit.logits[f"{which}_test"].double().softmax(1).numpy()
        epochs = unit if row == "ce" else len(fit.history) - 1
        epochs += 0 if row in ("ce", "resampled") else unit
        lines.append(
            {
                "row": row,
                "label": ROWS[row],
                "part": "",
                **evaluate(y["test"], p_hat, p["test"]),
                "val_ce": fit.val_ce,
                "epoch": fit.best_epoch,
                "kept_start": row not in ("ce", "resampled") and fit.best_epoch == 0,
                "cost": epochs / unit,
            }
        )
    return pd.DataFrame(lines)


def _model(settings, splits, seed):
    torch.manual_seed(seed)
    made = network("resnet18", width=settings.width, stem=settings.stem, num_classes=3)
    return made.build(splits.train.inputs)


def _one_thread(work):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return work()
    finally:
        torch.set_num_threads(threads)
