"""From finished fits to the rows of a table: choose, post-process, predict, keep.

Validation data decide everything that is chosen here; test data are only predicted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import torch

from .. import store
from ..calibrators import CALIBRATORS
from ..methods import METHODS

__all__ = ["Rows", "collect", "read_rows", "run_directory", "write_rows"]


@dataclass(frozen=True)
class Rows:
    """Predictions of every row of a table on the test data, and how they came about.

    Attributes
    ----------
    predictions : pandas.DataFrame
        One line a test example: ``y``, ``p`` where known, ``group`` where given, and a column of
        predicted probabilities for each method.
    chosen : pandas.DataFrame
        One line a candidate: ``method``, ``fit``, the tuned values, ``val_ce``, ``best_epoch`` and
        whether it was ``chosen``.
    epochs : pandas.DataFrame
        One line an epoch of every fit: ``fit``, ``method``, ``epoch``, ``train_ce``, ``val_ce``,
        and the test metrics.
    """

    predictions: pd.DataFrame
    chosen: pd.DataFrame
    epochs: pd.DataFrame


def collect(jobs, fits, splits):
    """Choose each row's fit on validation data and predict the test data with it.

    Parameters
    ----------
    jobs : dict of str to list of Job
        From `probnb.experiment.plan.plan`.
    fits : dict of Job to Fit
        From `probnb.experiment.run.run_jobs`.
    splits : probnb.data.Splits
        The data that the fits saw.

    Returns
    -------
    Rows
        Predictions in the order of `jobs`.
    """
    test = splits.test
    columns = {"y": test.outcomes.numpy().astype(int)}
    if test.probabilities is not None:
        columns["p"] = test.probabilities.double().numpy()
    if test.groups is not None:
        columns["group"] = test.groups.numpy()
    names = _fit_names(jobs)
    chosen = []
    for name, candidates in jobs.items():
        best = min(candidates, key=lambda job: fits[job].val_ce)
        averaged = METHODS[name].members > 1
        used = candidates if averaged else [best]
        columns[name] = _predict(METHODS[name], [fits[job] for job in used], splits.val)
        chosen += [
            {
                "method": name,
                "fit": names[job],
                **job.tuned,
                "val_ce": fits[job].val_ce,
                "best_epoch": fits[job].best_epoch,
                "chosen": job in used,
            }
            for job in candidates
        ]
    epochs = [
        pd.DataFrame(fits[job].history).assign(fit=label, method=label.split()[0])
        for job, label in names.items()
    ]
    return Rows(pd.DataFrame(columns), pd.DataFrame(chosen), pd.concat(epochs, ignore_index=True))


def _predict(method, fits, val):
    """Test probabilities of one row: an average over its fits, or a calibrator on one."""
    if method.calibrator is None:
        parts = [fit.logits[f"{method.epoch}_test"].double().softmax(1)[:, 1] for fit in fits]
        return torch.stack(parts).mean(0).numpy()
    calibrator = CALIBRATORS[method.calibrator]()
    calibrator.fit(fits[0].logits["best_val"].double().numpy(), val.outcomes.numpy())
    return calibrator.predict_proba(fits[0].logits["best_test"].double().numpy())[:, 1]


def _fit_names(jobs):
    """A readable name for every distinct fit: its first row's, and what tells it apart."""
    names = {}
    for method, candidates in jobs.items():
        for number, job in enumerate(candidates):
            tuned = [f"{key}={value:g}" for key, value in job.tuned.items()]
            member = [f"member={number + 1}"] if METHODS[method].members > 1 else []
            names.setdefault(job, " ".join([_owner(method), *tuned, *member]))
    return names


def _owner(name):
    method = METHODS[name]
    overfit = method.epoch == "last" and method.targets == "observed"
    return "ce" if method.calibrator is not None or overfit else name


def run_directory(results_dir, task, data, profile_name, profile, base, seed):
    """Return the folder of one run, ``{task}-{data}-{profile}-seed{seed}`` under `results_dir`.

    Parameters
    ----------
    results_dir : path-like
        Where results are kept.
    task : str
        The chapter's task, such as a scenario.
    data : str
        Short name of the data.
    profile_name : str
        Name of the profile.
    profile, base : Profile
        The profile used and the one of that name; where they differ the folder's name says so
        with a hash, so that an altered recipe never passes for the profile.
    seed : int
        The run's seed.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist yet.
    """
    name = f"{task}-{data}-{profile_name}-seed{seed}"
    if profile != base:
        name += f"-{store.key(asdict(profile))[:8]}"
    return Path(results_dir) / name


def write_rows(directory, rows):
    """Write a run's tables as Parquet, each whole or not at all."""
    for name, table in asdict_shallow(rows).items():
        path = Path(directory) / f"{name}.parquet"
        store.replace_file(path, partial(table.to_parquet, index=False))


def read_rows(directory):
    """Read what `write_rows` wrote; FileNotFoundError names a file that is missing."""
    tables = {name: Path(directory) / f"{name}.parquet" for name in Rows.__dataclass_fields__}
    for path in tables.values():
        if not path.exists():
            raise FileNotFoundError(f"directory must hold the tables of a run; {path} is missing.")
    return Rows(**{name: pd.read_parquet(path) for name, path in tables.items()})


def asdict_shallow(rows):
    """Tables of a `Rows` by name, not copied."""
    return {name: getattr(rows, name) for name in Rows.__dataclass_fields__}
