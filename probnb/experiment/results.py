"""From finished fits to the rows of a table: choose, post-process, predict, keep.

Validation data decide everything that is chosen here; test data are only predicted.
"""

import json
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from .. import store
from ..calibrators import CALIBRATORS, logits_from_probabilities
from ..methods import METHODS
from ..metrics.sample import weighted_mean
from .plan import configuration
from .profiles import PROFILES

__all__ = ["Results", "StoredRun", "collect", "on_test", "read_results", "write_results"]

TABLES = ("predictions", "chosen", "epochs")
PARTS = ("val", "test")


@dataclass(frozen=True)
class Results:
    """Predictions of every row of a table, and how they came about.

    Attributes
    ----------
    predictions : pandas.DataFrame
        One line a validation or test example: ``split``, ``id``, ``y``, ``p`` where known,
        ``group`` and ``weight`` where given, and a column of predicted probabilities for each
        method. A calibrator's predictions on validation rows are on what it was fitted to.
    chosen : pandas.DataFrame
        One line a candidate: ``method``, ``fit``, the tuned values, ``val_ce``, ``best_epoch``,
        ``calibration_epochs`` (that lie behind the kept weights), ``kept_start`` and whether it
        was ``chosen``.
    epochs : pandas.DataFrame
        One line an epoch of every fit: ``fit``, ``method``, ``epoch``, ``train_ce``, ``val_ce``,
        and the test metrics.
    foreign : tuple of str
        Fits that other code than today's has trained, or that rest on such.
    made : dict
        What else decides the numbers, as `write_results` has to know it: ``digest`` of the data,
        and where there are any ``augment`` and ``rows`` that are one's own.
    """

    predictions: pd.DataFrame
    chosen: pd.DataFrame
    epochs: pd.DataFrame
    foreign: tuple = ()
    made: dict = field(default_factory=dict)


def collect(jobs, fits, splits, rows=METHODS):
    """Choose each row's fit on validation data and predict with it.

    Parameters
    ----------
    jobs : dict of str to list of Job
        From `probnb.experiment.plan.plan`.
    fits : dict of Job to Fit
        From `probnb.experiment.run.run_jobs`.
    splits : probnb.data.Splits
        The data that the fits saw.
    rows : mapping of str to Method, default=METHODS
        The rows by name, where they are one's own.

    Returns
    -------
    Results
        Predictions in the order of `jobs`.
    """
    if splits.train.classes > 2:
        raise ValueError(f"splits must have two outcomes; got {splits.train.classes}.")
    columns, chosen, names = {}, [], _fit_names(jobs, rows)
    for name, candidates in jobs.items():
        method, teams = rows[name], {}  # the members of an ensemble share their settings
        for job in candidates:
            teams.setdefault(job.tuned, []).append(job)
        said = {tuned: _average(method, [fits[j] for j in team]) for tuned, team in teams.items()}
        losses = {tuned: _cross_entropy(p["val"], splits.val) for tuned, (p, _) in said.items()}
        best = min(losses, key=losses.get)
        columns[name] = _calibrated(method, *said[best], splits.val)
        for job in (job for team in teams.values() for job in team):
            tried = {**dict(job.tuned), "val_ce": losses[job.tuned], **_kept(method, job, fits)}
            tried["chosen"] = job.tuned == best
            chosen.append({"method": name, "fit": names[job], **tried})
    tables = [
        _known(getattr(splits, part), part).assign(**{k: p[part] for k, p in columns.items()})
        for part in PARTS
    ]
    epochs = [
        pd.DataFrame(fits[job].history).assign(fit=label, method=label.split()[0])
        for job, label in names.items()
    ]
    own = {name: rows[name] for name in jobs if rows[name] != METHODS.get(name)}
    made = {
        "digest": splits.digest,
        "augment": [configuration(step) for step in splits.train.augment],
        "rows": {name: _described(row) for name, row in own.items()},
    }
    predictions, epochs = (pd.concat(each, ignore_index=True) for each in (tables, epochs))
    foreign = tuple(name for job, name in names.items() if fits[job].stale)
    made = {name: value for name, value in made.items() if value}
    return Results(predictions, pd.DataFrame(chosen), epochs, foreign, made)


def _described(row):
    """A row of one's own, as JSON can hold it."""
    return vars(row) | {name: configuration(getattr(row, name)) for name in ("loss", "targets")}


def _known(data, split):
    """What is known of the rows of one part."""
    columns = {"split": split, "id": data.ids, "y": data.numbers("outcomes", int)}
    more = {"p": data.numbers("probabilities", float), "weight": data.numbers("weights", float)}
    more["group"] = data.groups
    return pd.DataFrame(columns | {k: v for k, v in more.items() if v is not None})


def _average(method, fits):
    """Probabilities of outcome 1 of each part, averaged over networks, and logits to calibrate."""
    each = {p: torch.stack([f.logits[f"{method.epoch}_{p}"].double() for f in fits]) for p in PARTS}
    p = {part: z.softmax(2).mean(0)[:, 1].numpy() for part, z in each.items()}
    if len(fits) > 1:  # of an average there are no logits but those of its probabilities
        return p, {part: logits_from_probabilities(value) for part, value in p.items()}
    return p, {part: z[0].numpy() for part, z in each.items()}


def _calibrated(method, p, z, val):
    """Probabilities of a row after its calibrator, which is fitted to validation data."""
    if method.calibrator is None:
        return p
    calibrator = CALIBRATORS[method.calibrator]()
    y, weights = val.numbers("outcomes", float), val.numbers("weights", float)
    calibrator.fit(z["val"], y, sample_weight=weights)
    return {part: calibrator.predict_proba(z[part])[:, 1] for part in PARTS}


def _cross_entropy(p, data):
    """Mean negative log-likelihood; infinite where a certain prediction is wrong."""
    y, w = data.numbers("outcomes", float), data.numbers("weights", float)
    with np.errstate(divide="ignore"):
        terms = -np.log(np.where(y == 1, p, 1 - p))
    return weighted_mean(terms, None) if w is None else weighted_mean(terms[w > 0], w[w > 0])


def _kept(method, job, fits):
    """Which epoch a row reads, and how many calibration epochs lie behind its weights."""
    last = len(fits[job].history) - 1 if method.epoch == "last" else fits[job].best_epoch
    behind = sum(row["calibration"] for row in fits[job].history[: last + 1])
    if job.start in fits:
        behind += fits[job.start].calibration_epochs
    return {
        "best_epoch": last,
        "calibration_epochs": behind if method.targets in ("bin", "kernel", "held_out") else 0,
        "kept_start": job.start is not None and last == 0,
    }


def _fit_names(jobs, rows=METHODS):
    """A readable name for every distinct fit: its first row's, and what tells it apart."""
    names = {}
    for method, candidates in jobs.items():
        for job in candidates:
            tuned = [f"{key}={value:g}" for key, value in job.tuned]
            member = [f"member={job.place[1] + 1}"] if rows[method].members > 1 else []
            names.setdefault(job, " ".join([_owner(method, rows), *tuned, *member]))
    return names


def chosen_jobs(name, jobs, results):
    """Return the trainings that a row's predictions come from: one, or an ensemble's members."""
    names = _fit_names(jobs)
    table = results.chosen
    kept = set(table.loc[(table["method"] == name) & table["chosen"], "fit"])
    return [job for job in jobs[name] if names[job] in kept]


def _owner(name, rows=METHODS):
    """The row whose training a row reads."""
    wanted = replace(rows[name], label="", kind="extension", calibrator=None, epoch="best")
    same = (m for m in METHODS if replace(METHODS[m], label="", kind="extension") == wanted)
    return next(same, name)


def write_results(directory, results, changed=None, **facts):
    """Write a run's tables as Parquet and its record as ``run.json``, each whole or not at all.

    Parameters
    ----------
    directory : path-like
        A folder of results, such as ``runs/synthetic``. The run gets a folder of its own in it,
        ``{task}-{data}-{profile}-seed{seed}``, with a hash where anything was altered.
    results : Results
        From `collect`.
    changed : dict, optional
        What else than the settings differs from what the task usually is. Augmentation and rows
        of one's own are known from `results`, ``mirror`` from the facts.
    **facts
        What the record says besides version, commit, date and processor: ``task``, ``data``,
        ``profile`` and ``seed`` must be among them; also ``settings`` (the `Profile` used),
        ``source``, ``device``, ``precision``. With ``base``, a `Profile`, it is that one which
        settings are held against, for a task that has sizes of its own.

    Returns
    -------
    StoredRun
        Where it is, and its record.

    Warns
    -----
    UserWarning
        If a run of that name is there that had other data, settings or more rows: it stays, and
        this one gets a name of its own.
    """
    settings = facts.pop("settings", None)
    base = facts.pop("base", PROFILES.get(facts["profile"]))
    others = {k: results.made[k] for k in ("augment", "rows") if k in results.made}
    others |= dict(changed or {}) | ({"mirror": True} if facts.get("mirror") else {})
    record = {
        **facts,
        **store.machine(),
        "altered": bool(others) or (settings is not None and settings != base),
        "changed": others,
        "settings": settings and asdict(settings),
        "digest": results.made.get("digest"),
        "methods": [m for m in METHODS if m in results.predictions],
        "trained_by_other_code": list(results.foreign),
        "epochs": len(results.epochs.query("epoch > 0")),
    }
    spent = results.epochs.reindex(columns=["cpu_seconds", "seconds"]).sum().round(1)
    record["cpu_seconds"], record["wall_seconds"] = spent.tolist()
    record = json.loads(json.dumps(record, default=store.plain))  # what a reader of it will see
    name = "{task}-{data}-{profile}-seed{seed}".format(**facts)
    if record["altered"]:  # an altered recipe never passes for the profile
        name += f"-{store.key({**(record['settings'] or {}), **others})[:8]}"
    folder = Path(directory) / name
    with store.locked(folder):
        if (reason := _differs(folder, record)) is not None:
            record["altered"] = True
            folder = folder.with_name(f"{name}-{store.key(identity(record))[:8]}")
            warnings.warn(
                f"{name} holds a run with {reason}, which stays (remove it to replace it); this "
                f"one is {folder.name}.",
                stacklevel=2,
            )
        store.write_run(folder, {name: getattr(results, name) for name in TABLES}, record)
    return StoredRun(folder, record)


IDENTITY = ("source", "digest", "settings", "changed", "mirror", "parameters", "network", "inputs")
IDENTITY += ("seed", "methods", "method", "calibrated")
"""What makes a run, or the model that was kept of it, another one."""


def identity(record):
    """Return what tells a record from another, as JSON has it: of what is there in `IDENTITY`."""
    found = {name: record[name] for name in IDENTITY if record.get(name) is not None}
    return json.loads(json.dumps(found, default=store.plain))


def difference(old, new, names):
    """Say in which of some entries two identities differ, with both; "" where in none."""
    pairs = {name: (old.get(name), new.get(name)) for name in names}
    return ", ".join(
        f"{name} ({_apart(a, b)}; here {_apart(b, a)})" for name, (a, b) in pairs.items() if a != b
    )


def _apart(value, other):
    """What of settings, or which words, are not so in the other."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {k: v for k, v in value.items() if other.get(k) != v}
    if isinstance(value, str) and isinstance(other, str):
        return " ".join(word for word in value.split() if word not in other.split())
    return value


def _differs(folder, record):
    """What is other in the run that lies in a folder; None where this one may replace it."""
    if not (folder / "run.json").exists():
        return None
    old, new = identity(json.loads((folder / "run.json").read_text())), identity(record)
    lost = [name for name in old.pop("methods", []) if name not in new["methods"]]
    if reason := difference(old, new, [name for name in old if name in new]):  # older have fewer
        return f"other {reason}"
    return f"more rows ({', '.join(lost)})" if lost else None


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A stored run: its folder and what its ``run.json`` says.

    Parameters
    ----------
    directory : pathlib.Path
        Where its tables are.
    record : dict
        ``task``, ``data``, ``profile``, ``seed``, ``altered`` and what else was recorded.
    """

    directory: Path
    record: dict

    def __str__(self):
        r, faces = self.record, {"utkface": "UTKFace", "drawn": "drawn faces"}
        data, altered = faces.get(r["data"], r["data"]), " altered" * bool(r.get("altered"))
        return f"{r['task']} ({data}, profile {r['profile']}{altered}, seed {r['seed']})"


def read_results(run):
    """Read a stored run's `Results`; FileNotFoundError names a file that is missing."""
    folder = Path(getattr(run, "directory", run))
    return Results(**{name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES})


def on_test(predictions):
    """Return the test rows of a table of predictions, numbered anew."""
    if "split" not in predictions:
        return predictions
    return predictions[predictions["split"] == "test"].reset_index(drop=True)
