"""Train the jobs of a table side by side, each one once, and keep what is finished.

Every finished training is stored under the hash of its configuration, and an interrupted one
continues. Two processes that want the same training do it once.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import filelock
import joblib
import torch

from .. import store
from ..methods import METHODS
from ..training import losses
from ..training.batches import device_type, precision_of, predict_logits
from ..training.loop import Fit, fit
from ..training.targets import Surroundings
from ..training.teachers import teach, without
from .devices import Place, can_spread, check_devices
from .plan import before, job_key, legacy, lineage
from .progress import Epochs, epoch_bar
from .provenance import fingerprint

__all__ = ["load_fit", "run_jobs", "stored_path"]


def run_jobs(
    jobs,
    splits,
    directory,
    device="auto",
    workers=None,
    progress=True,
    retrain=False,
    devices=1,
):
    """Train whatever is not yet stored, side by side on a CPU, one after the other on a GPU.

    Each CPU training has one thread: two of them on two cores are faster than one with two
    threads, and the numbers do not depend on how many run at a time. Several GPUs have a training
    each; only when fewer trainings than GPUs are left is each spread over all of them.

    Parameters
    ----------
    jobs : dict of str to list of Job, or iterable of Job
        From `probnb.experiment.plan.plan`. Repeated ones are trained once; those that a job
        starts from are trained first.
    splits : probnb.data.Splits
        The data; ``source`` is part of every key.
    directory : path-like
        Where finished work is kept, a file for each job.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to train.
    workers : int, optional
        Trainings at a time; by default one for each core that this process may use on a CPU, else
        one for each device.
    progress : bool, default=True
        Whether to show a bar, in epochs; the environment variable ``PROBNB_PROGRESS=text`` makes
        it plain text where a notebook would show a widget.
    retrain : bool, default=False
        Whether to train again what other code has trained.
    devices : int, default=1
        GPUs of this machine to use; on a CPU, processes. A training with a device for itself
        has the numbers of any other; one that is spread has them up to rounding (see `fit`).
        Where a CPU would change more than that, for a network with batch normalisation, a
        training stays in one process.

    Returns
    -------
    dict of Job to Fit
        The result of each job.

    Warns
    -----
    UserWarning
        If a stored result was trained by other code, or is damaged and was set aside.
    """
    device = device_type(device)
    place = Place(
        device,
        precision_of(device),
        check_devices(devices, device),
        workers or (joblib.cpu_count() if device == "cpu" else devices),
    )
    labels = _labels(jobs)
    every = list(dict.fromkeys(step for job in labels for step in lineage(job)))
    paths = {job: stored_path(job, splits, directory, device) for job in every}
    old = {job: stored_path(legacy(job), splits, directory, device) for job in every}
    missing = [job for job in every if not _usable(job, paths[job], old[job], retrain)]
    missing.sort(key=lambda job: job.recipe.patience is not None)  # the longest first
    total = sum(_expected(job.recipe) for job in missing)
    with epoch_bar(total, progress and missing) as advance:
        place = replace(place, locks=advance.folder)
        for stage in sorted({_depth(job) for job in missing}):  # a start before what it starts
            todo = [job for job in missing if _depth(job) == stage]
            for wait in (False, True):  # first what no other process is at
                here = replace(place, spread=_few(todo, splits, place))
                calls = [
                    joblib.delayed(_run_job)(
                        job, splits, paths, here, advance, labels.get(job, "its start"), wait
                    )
                    for job in todo
                ]
                done = here.call(calls)
                todo = [job for job, finished in zip(todo, done) if not finished]
    return {job: load_fit(paths[job]) for job in labels}


def stored_path(job, splits, directory, device="cpu"):
    """Return where the result of a job is kept, whether it is there or not."""
    name = job_key(job, splits, device, precision_of(device))
    return Path(directory) / f"{name}.safetensors"


def load_fit(path):
    """Read a stored `Fit`."""
    tensors, meta = store.load(path)
    weights, logits = (store.part(tensors, prefix) for prefix in ("weights.", "logits."))
    return Fit(weights, logits, meta["history"], meta["best_epoch"], meta.get("code"))


def _labels(jobs):
    """Distinct jobs with the label of the first row that needs them."""
    if not isinstance(jobs, Mapping):
        return dict.fromkeys(jobs, "training")
    labels = {}
    for name, candidates in jobs.items():
        for job in candidates:
            labels.setdefault(job, METHODS[name].label if name in METHODS else name)
    return labels


def _depth(job):
    """How many trainings have to come one after the other, this one the last."""
    return 1 + max(map(_depth, before(job)), default=0)


def _usable(job, path, old, retrain):
    """Whether a job's result is stored whole, and by this code or with a warning."""
    if not path.exists() and job.start is None and old.exists():
        os.replace(old, path)  # an ensemble's member, from when seeds were derived otherwise
    found = store.load_or_set_aside(path)
    if found is None:
        return False
    if found[1].get("code") == fingerprint(job):
        return True
    if not retrain:
        warnings.warn(
            f"{path.name} was trained by other code than today's (or before that was recorded): "
            "its numbers are used as they are; retrain=True makes them anew.",
            stacklevel=3,
        )
    return not retrain


def _few(jobs, splits, place):
    """Whether to spread each of some jobs, since some devices would have none.

    One whose targets know their surroundings (teachers, a memory) stays whole.
    """
    return len(jobs) < place.devices and all(
        can_spread(job.network, splits.train.inputs, place.device)
        and not (job.teachers or hasattr(job.targets, "bind"))
        for job in jobs
    )


def _run_job(job, splits, paths, place, advance, label, wait):
    """Train one job and store it; False if another process is at it and `wait` is not set."""
    path = paths[job]
    path.parent.mkdir(parents=True, exist_ok=True)
    epochs = Epochs(advance, label, _expected(job.recipe))
    try:
        with filelock.FileLock(path.with_suffix(".lock"), timeout=-1 if wait else 0):
            if not path.exists() or store.load(path)[1].get("code") != fingerprint(job):
                if place.spread:  # a damaged one is set aside once, not by each process
                    store.load_or_set_aside(path.with_suffix(".partial"))
                place.run(_train, job, splits, paths, epochs)
            else:
                epochs.finish()
    except filelock.Timeout:
        return False
    return True


def _expected(recipe):
    """Epochs that the bar counts on: a training with patience rarely sees the last of them."""
    return recipe.epochs if recipe.patience is None else min(recipe.epochs, 3 * recipe.patience)


def _train(job, splits, paths, epochs, fabric):
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if fabric.device.type == "cpu" else threads)
    try:
        targets, whole = job.targets, splits
        if job.fold is not None:
            splits = without(splits, job.fold)
        torch.manual_seed(job.init_seed)
        model = job.network.build(splits.train.inputs)
        if job.start is not None:
            model.load_state_dict(load_fit(paths[job.start]).weights)
        memory = paths[job].with_suffix(".memory")
        if hasattr(targets, "bind"):
            targets = targets.bind(
                Surroundings(
                    splits.to(fabric.device),
                    lambda data: predict_logits(fabric, model, data).softmax(1)[:, 1],
                    _teaching(job, whole, paths, fabric) if job.teachers else None,
                    memory,
                )
            )
        loss = job.loss
        if isinstance(loss, str):
            kind = losses.LOSSES[loss]
            loss = kind() if job.strength is None else kind(job.strength)
        partial = paths[job].with_suffix(".partial")
        result = fit(
            model,
            splits,
            job.recipe,
            loss,
            targets,
            fabric,
            checkpoint=partial,
            on_epoch=epochs.count if fabric.is_global_zero else _say_nothing,
            keep_start=job.start is not None,
        )
        if fabric.is_global_zero:
            _store(paths[job], result, splits, fingerprint(job))
            partial.unlink(missing_ok=True)
            memory.unlink(missing_ok=True)
            epochs.finish()
    finally:
        torch.set_num_threads(threads)


def _teaching(job, splits, paths, fabric):
    """What the targets call to hear a job's teachers."""
    teachers = [(t.network, load_fit(paths[t]), t.fold) for t in job.teachers]
    return lambda calibrator: teach(teachers, splits, fabric, calibrator)


def _store(path, result, splits, code):
    tensors = {f"weights.{k}": v for k, v in result.weights.items()}
    tensors |= {f"logits.{k}": v for k, v in result.logits.items()}
    meta = {
        "history": result.history,
        "best_epoch": result.best_epoch,
        "source": splits.source,
        "code": code,
    }
    store.save(path, tensors, meta)


def _say_nothing(record):
    """Of an epoch that another process reports."""
