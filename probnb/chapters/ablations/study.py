"""Train the rows of a study and judge them; keep and compare what came out, seed by seed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import filelock
import numpy as np
import pandas as pd

from ... import store
from ...calibrators import CALIBRATORS
from ...data.base import Brightness, Mirror, Shift
from ...data.drawn import VERSION
from ...data.faces import load_faces
from ...experiment.plan import cost_of, passes, plan
from ...experiment.provenance import machine
from ...experiment.results import collect, on_test
from ...metrics import METRICS, Difference, difference, evaluate, holm
from ...scenarios import SCENARIOS
from ...training.batches import device_type, precision_of
from .special import fits_of, run_several, run_stopping
from .studies import STUDIES, settings_of, sizes_of

COLUMNS = (
    "study", "scenario", "data", "profile", "seed", "n", "row", "label", "part", "x",
    *METRICS, "val_ce", "epoch", "kept_start", "cost",
)  # fmt: skip
"""Columns of every study's table; times 1, in nats, and cost in cross-entropy trainings."""

RUN = ["scenario", "data", "profile", "seed", "n", "row"]
"""What tells one line of a study from all others."""


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
    device="auto", workers=None, progress=True, retrain=False, rows=None, sizes=None,
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
    device, workers, progress, retrain
        As `probnb.experiment.run.run_jobs` takes them.
    rows : iterable of str, optional
        Names of rows; by default all.
    sizes : iterable of int, optional
        Training images of the study on scale; by default the profile's.

    Returns
    -------
    DataFrame
        `COLUMNS`; for the study on scale, rows at every size.
    """
    settings = settings_of(profile)
    how = {"device": device, "workers": workers, "progress": progress, "retrain": retrain}
    every = [None]
    if name == "scaling":
        every = [(n, max(60, n // 4), _test_rows(settings)) for n in sizes or sizes_of(profile)]
    tables = []
    for images in every:
        splits = load(scenario, settings, seed, data_dir, images)
        if name == "stopping":
            table = run_stopping(splits, settings, seed, device)
        elif name == "several":
            table = run_several(splits, settings, seed, fits_dir, **how)
        else:
            chosen = {row: STUDIES[name][row] for row in rows or STUDIES[name]}
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
    unit, lines = _unit(splits, settings, seed, fits_dir, how), {}
    for augment, data in {False: splits, True: with_augmentation(splits)}.items():
        methods = {name: row.method for name, row in rows.items() if row.augment == augment}
        if not methods:
            continue
        jobs = plan(methods, settings, seed, rows=methods)
        fits = fits_of([job for row in jobs.values() for job in row], data, fits_dir, how)
        results = collect(jobs, fits, data, methods)
        test = on_test(results.predictions)
        for name, method in methods.items():
            kept = results.chosen.query("method == @name and chosen").iloc[0]
            last = method.epoch == "last"
            lines[name] = {
                "row": name, "label": method.label, "part": rows[name].part, "x": rows[name].x,
                **evaluate(test["y"], test[name], test["p"]), "val_ce": kept["val_ce"],
                "epoch": kept["best_epoch"], "kept_start": bool(kept["kept_start"]),
                "cost": cost_of(jobs[name], fits, data, settings.patience, unit, last),
            }  # fmt: skip
    return pd.DataFrame([lines[name] for name in rows])


def _unit(splits, settings, seed, fits_dir, how):
    """Images that one training of plain cross entropy sees: the unit of all costs."""
    (ce,) = plan(["ce"], settings, seed)["ce"]
    return passes(ce, fits_of([ce], splits, fits_dir, how)[ce], splits, settings.patience)


def _members_first(splits, settings, seed, fits_dir, how):
    """Rows whose members are calibrated before they are averaged."""
    lines, unit = [], _unit(splits, settings, seed, fits_dir, how)
    y = {k: getattr(splits, k).outcomes.numpy() for k in ("val", "test")}
    labels = {"ensemble": "Members, then Platt each", "cape_ensemble": "CaPE, Platt each"}
    for name, label in labels.items():
        method = STUDIES["ensembles"][name].method
        jobs = plan([name], settings, seed, rows={name: method})[name]
        fits, parts = fits_of(jobs, splits, fits_dir, how), []
        for job in jobs:
            z = {k: fits[job].logits[f"best_{k}"].double().numpy() for k in ("val", "test")}
            platt = CALIBRATORS["platt"]().fit(z["val"], y["val"])
            parts.append(platt.predict_proba(z["test"])[:, 1])
        judged = evaluate(y["test"], np.mean(parts, axis=0), splits.test.probabilities.numpy())
        cost = cost_of(jobs, fits, splits, settings.patience, unit)
        lines.append({"row": f"{name}_members", "label": label, "part": "", **judged, "cost": cost})
    return pd.DataFrame(lines)


def write_study(table, directory, device="auto"):
    """Add a study's lines to its table and record, for each seed, how they came about.

    Parameters
    ----------
    table : DataFrame
        From `run_study`, of any number of seeds.
    directory : path-like
        A folder of results; ``ablations/{study}.csv`` and ``ablations/{study}.json`` are written.
    device : str, default="auto"
        Where it was trained.

    Returns
    -------
    pathlib.Path
        The table, in which these lines stand for older ones of the same run.
    """
    (name,) = table["study"].unique()
    path = Path(directory) / "ablations" / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(path.with_suffix(".lock")):  # the workflow runs several at a time
        both = pd.concat([t for t in (read_study(directory, name), table) if len(t)])
        both = both.drop_duplicates(RUN, keep="last").reset_index(drop=True)
        record_path = path.with_suffix(".json")
        record = json.loads(record_path.read_text()) if record_path.exists() else {}
        for scenario, data, profile, seed in table.groupby(RUN[:4]).groups:
            run = record.setdefault(f"{scenario}-{data.replace(' ', '-')}-{profile}", {})
            settings = {k: v for k, v in asdict(settings_of(profile)).items() if k != "grid"}
            where = {"device": device_type(device), "precision": precision_of(device_type(device))}
            run.setdefault("seeds", {})[str(seed)] = {**machine(), **where, "settings": settings}
        store.replace_file(path, lambda to: both.to_csv(to, index=False, float_format="%.6g"))
        text = json.dumps(record, indent=1, default=store.plain) + "\n"
        store.replace_file(record_path, lambda to: to.write_text(text))
    return path


def read_study(folders, name, **wanted):
    """Read a stored study.

    Parameters
    ----------
    folders : path-like, or list of them
        Folders of results; of two lines of the same run the first folder's counts.
    name : str
        Of the study.
    **wanted
        What the lines must have, for example ``data="utkface"``.

    Returns
    -------
    DataFrame
        `COLUMNS`, scenarios in the paper's order; empty where nothing is stored.
    """
    folders = folders if isinstance(folders, list | tuple) else [folders]
    paths = [Path(folder) / "ablations" / f"{name}.csv" for folder in folders]
    tables = [pd.read_csv(path, dtype={"part": object}) for path in paths if path.exists()]
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    both = pd.concat(tables, ignore_index=True).drop_duplicates(RUN).fillna({"part": ""})
    for column, value in wanted.items():
        both = both[both[column] == value]
    order = {"key": lambda names: names.map(list(SCENARIOS).index), "kind": "stable"}
    return both.sort_values("scenario", **order, ignore_index=True)


def compare(table, base="ce", metric="mse_p"):
    """Compare every row with one of them, seed by seed.

    Each seed has faces, outcomes, test rows and weights of its own, so that the spread of its
    differences holds all of these.

    Parameters
    ----------
    table : DataFrame
        Of one study and kind of data; scenarios and sizes stay apart.
    base : str, default="ce"
        The row to compare with.
    metric : str, default="mse_p"
        Of which less is better.

    Returns
    -------
    DataFrame
        One line a scenario, size and other row: ``scenario``, ``n``, ``row``, ``label``, ``part``,
        ``x``, ``mean`` and ``cost`` (over seeds), the fields of `probnb.metrics.Difference` (no
        interval where one seed has both), and ``holm``, p-values corrected over the rows of the
        same scenario and size.
    """
    found = []
    for (scenario, n), part in table.groupby(["scenario", "n"], sort=False):
        wide, lines = part.pivot(index="seed", columns="row", values=metric), []
        for row, own in part[part["row"] != base].groupby("row", sort=False):
            gaps = (wide[row] - wide[base]).dropna()
            alone = Difference(gaps.mean(), *[np.nan] * 4, len(gaps))
            facts = {"scenario": scenario, "n": n, "row": row}
            facts |= {k: own[k].iloc[0] for k in ("label", "part", "x")}
            facts |= {"mean": own[metric].mean(), "cost": own["cost"].mean()}
            gap = difference(gaps) if len(gaps) > 1 else alone
            lines.append({**facts, **gap.__dict__})
        lines = pd.DataFrame(lines)
        found.append(lines.assign(holm=holm(lines["p"])))
    return pd.concat(found, ignore_index=True)


def beside(table, stored):
    """Put a run's rows beside the stored ones of the same kind and seed, times 100."""
    both = table.merge(stored[[*RUN, "mse_p"]], on=RUN, how="left", suffixes=("", "_stored"))
    values = {"MSE_p × 100": both["mse_p"], "stored": both["mse_p_stored"]}
    shown = both[["study", "n", "label", "epoch", "cost"]].round({"cost": 1})
    shown = shown.assign(**{name: (100 * v).round(3) for name, v in values.items()})
    return shown.set_index(["study", "n", "label"])
