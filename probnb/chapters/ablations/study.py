"""Train the rows of a study and judge them: one line of numbers for each row and seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ...calibrators import CALIBRATORS
from ...data.augment import Brightness, Mirror, Shift
from ...data.drawn import VERSION
from ...data.faces import load_faces
from ...experiment.cost import cost_of, passes
from ...experiment.plan import lineage, plan
from ...experiment.results import collect, on_test
from ...experiment.run import run_jobs
from ...metrics import METRICS, evaluate
from . import several, stopping
from .studies import STUDIES, settings_of, sizes_of

__all__ = ["COLUMNS", "load", "run_rows", "run_study", "with_augmentation"]

COLUMNS = (
    "study", "scenario", "data", "profile", "seed", "n", "row", "label", "part", "x",
    *METRICS, "val_ce", "epoch", "kept_start", "cost",
)  # fmt: skip
"""Columns of every study's table; times 1, in nats, and cost in cross-entropy trainings."""


def load(scenario, settings, seed, data_dir=None, images=None):
    """Return the faces of a scenario at the settings' size."""
    n = settings.images if images is None else images
    return load_faces(scenario, data_dir, size=settings.size, n=n, seed=seed)


def with_augmentation(splits):
    """Return the data with what leaves a face's age as it is: mirrored, moved, lit."""
    pixels = max(1, round(splits.train.inputs.shape[-1] * 3 / 32))
    steps = (Mirror(), Shift(pixels), Brightness(0.2))
    return replace(splits, train=replace(splits.train, augment=steps))


def run_study(
    name, scenario="linear", profile="quick", seed=0, data_dir=None, fits_dir="runs/fits",
    device="auto", workers=None, progress=True, retrain=False, rows=None, sizes=None, **overrides,
):  # fmt: skip
    """Train and judge the rows of a study.

    Parameters
    ----------
    name : str
        Of `STUDIES`.
    scenario : str, default="linear"
        Of `probnb.scenarios.SCENARIOS`.
    profile : str, default="quick"
        Sizes, as `settings_of` has them.
    seed : int, default=0
        Of data, weights and order.
    data_dir : path-like, optional
        UTKFace; faces are drawn without it.
    fits_dir : path-like, default="runs/fits"
        Where finished trainings are kept.
    device : str, default="auto"
        Where to train.
    workers : int, optional
        Trainings at a time; see `probnb.experiment.run.run_jobs`.
    progress : bool, default=True
        Whether to show a bar.
    retrain : bool, default=False
        Whether to train again what other code has trained.
    rows : iterable of str, optional
        Names of rows; by default all.
    sizes : iterable of int, optional
        Training images of the study on scale; by default the profile's.
    **overrides
        Of the profile.

    Returns
    -------
    DataFrame
        `COLUMNS`; for the study on scale, rows at every size.
    """
    settings = settings_of(profile, **overrides)
    how = {"device": device, "workers": workers, "progress": progress, "retrain": retrain}
    every = [None]
    if name == "scaling":
        sizes = sizes or sizes_of(profile)
        every = [(n, max(60, n // 4), _test_rows(settings)) for n in sizes]
    tables = []
    for images in every:
        splits = load(scenario, settings, seed, data_dir, images)
        if name == "stopping":
            table = stopping.run(splits, settings, seed, fits_dir, device)
        elif name == "several":
            table = several.run(splits, scenario, settings, seed, fits_dir, device)
        else:
            chosen = STUDIES[name]
            chosen = chosen if rows is None else {row: chosen[row] for row in rows}
            table = run_rows(chosen, splits, settings, seed, fits_dir, **how)
            if name == "ensembles":
                table = pd.concat([table, _members_first(splits, settings, seed, fits_dir, how)])
        tables.append(table.assign(n=len(splits.train)))
    facts = {"study": name, "scenario": scenario, "profile": profile, "seed": seed}
    facts["data"] = "utkface" if data_dir else f"drawn v{VERSION}"  # another version, other faces
    return pd.concat(tables, ignore_index=True).assign(**facts).reindex(columns=COLUMNS)


def _test_rows(settings):
    images = settings.images
    return images[2] if isinstance(images, tuple) else 300 if isinstance(images, int) else 2329


def run_rows(rows, splits, settings, seed, fits_dir, **how):
    """Train rows and judge them on the test data.

    Parameters
    ----------
    rows : dict of str to Row
        What to compare; ``"ce"`` need not be among them.
    splits : probnb.data.Splits
        The data, without augmentation.
    settings : Profile
        From `settings_of`.
    seed : int
        Of the trainings.
    fits_dir : path-like
        Where finished trainings are kept.
    **how
        For `probnb.experiment.run.run_jobs`.

    Returns
    -------
    DataFrame
        One line a row: ``row``, ``label``, ``part``, ``x``, the metrics, ``val_ce``, ``epoch``,
        ``kept_start`` and ``cost``.
    """
    ce = plan(["ce"], settings, seed)["ce"][0]
    parts = {False: splits, True: with_augmentation(splits)}
    fits = run_jobs([ce], splits, fits_dir, **how)
    unit = passes(ce, fits[ce], splits, settings.patience)
    tables = []
    for augment, data in parts.items():
        some = {name: row for name, row in rows.items() if row.augment == augment}
        if not some:
            continue
        methods = {name: row.method for name, row in some.items()}
        jobs = plan(methods, settings, seed, rows=methods)
        fits = run_jobs(jobs, data, fits_dir, **how)
        every = list(dict.fromkeys(s for row in jobs.values() for j in row for s in lineage(j)))
        fits |= run_jobs(every, data, fits_dir, **{**how, "progress": False, "retrain": False})
        results = collect(jobs, fits, data, methods)
        tables.append(_judged(some, jobs, fits, data, settings, unit, results))
    return pd.concat(tables, ignore_index=True).set_index("row").loc[list(rows)].reset_index()


def _judged(rows, jobs, fits, splits, settings, unit, results):
    test, lines = on_test(results.predictions), []
    for name, row in rows.items():
        kept = results.chosen.query("method == @name and chosen").iloc[0]
        lines.append(
            {
                "row": name,
                "label": row.method.label,
                "part": row.part,
                "x": row.x,
                **evaluate(test["y"], test[name], test["p"]),
                "val_ce": kept["val_ce"],
                "epoch": kept["best_epoch"],
                "kept_start": bool(kept["kept_start"]),
                "cost": cost_of(
                    jobs[name], fits, splits, settings.patience, unit, row.method.epoch == "last"
                ),
            }
        )
    return pd.DataFrame(lines)


def _members_first(splits, settings, seed, fits_dir, how):
    """Rows whose members are calibrated before they are averaged."""
    lines = []
    ce = plan(["ce"], settings, seed)["ce"][0]
    unit = passes(ce, run_jobs([ce], splits, fits_dir, **how)[ce], splits, settings.patience)
    for name, label in (
        ("ensemble", "Members, then Platt each"),
        ("cape_ensemble", "CaPE, Platt each"),
    ):
        method = STUDIES["ensembles"][name].method
        jobs = plan([name], settings, seed, rows={name: method})[name]
        every = list(dict.fromkeys(step for job in jobs for step in lineage(job)))
        fits = run_jobs(every, splits, fits_dir, **{**how, "progress": False})
        y = {k: getattr(splits, k).outcomes.numpy() for k in ("val", "test")}
        parts = []
        for job in jobs:
            z = {k: fits[job].logits[f"best_{k}"].double().numpy() for k in ("val", "test")}
            platt = CALIBRATORS["platt"]().fit(z["val"], y["val"])
            parts.append(platt.predict_proba(z["test"])[:, 1])
        p_hat = np.mean(parts, axis=0)
        lines.append(
            {
                "row": f"{name}_members",
                "label": label,
                "part": "",
                **evaluate(y["test"], p_hat, splits.test.probabilities.numpy()),
                "cost": cost_of(jobs, fits, splits, settings.patience, unit),
            }
        )
    return pd.DataFrame(lines)
