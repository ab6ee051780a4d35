"""Three outcomes: the scenarios with two draws of their probability, which is our extension.

With the age's probability psi, two independent draws have 0, 1 or 2 successes with probabilities
(1 - psi)^2, 2 psi (1 - psi) and psi^2: three outcomes whose probabilities are known in each of
the paper's scenarios.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ...data.base import one_hot
from ...experiment.plan import plan
from ...experiment.run import run_jobs
from ...metrics.several import evaluate
from ...training.cape import Calibrated
from ...training.models import network

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
    p = {k: probabilities(part.probabilities.cpu()) for k, part in splits.parts().items()}
    names = list(p)
    y = {k: draw(p[k], np.random.SeedSequence([seed, 3, names.index(k)])) for k in names}
    parts = {
        k: replace(part, outcomes=one_hot(y[k], 3), probabilities=p[k])
        for k, part in splits.parts().items()
    }
    three = replace(splits, **parts)
    spec = network("resnet18", width=settings.width, stem=settings.stem, num_classes=3)
    jobs = plan(["resampled", "ce", "ce_finetuned"], settings, seed, spec)
    (tune,) = [job for job in jobs["ce_finetuned"] if job.recipe.learning_rate == 1e-2]
    rows = {
        "resampled": jobs["resampled"][0],
        "ce": jobs["ce"][0],
        "ce_finetuned": tune,
        "cape_rest": replace(tune, targets=Calibrated("bin", EVERY, PHASE)),
        "cape_cells": replace(tune, targets=Calibrated("cells", EVERY, PHASE, bins=5)),
    }
    trained = run_jobs(rows.values(), three, fits_dir, device=device, progress=False)
    fits = {name: trained[job] for name, job in rows.items()}
    ce = fits["ce"]
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
