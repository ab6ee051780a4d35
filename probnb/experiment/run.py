"""Train the jobs of a table side by side, each one once, and keep what is finished.

Every finished training is stored under the hash of its configuration, and an interrupted one
continues. Two processes that want the same training do it once.
"""

import os
import pkgutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import filelock
import joblib
import torch
import tqdm.auto

from .. import store
from ..methods import METHODS
from ..training import losses
from ..training.batches import device_type, precision_of, predict_logits, probabilities
from ..training.loop import Fit, fit
from ..training.targets import Surroundings, teach, without
from ..validation import check_integer
from .devices import Place, can_spread, check_devices
from .plan import before, job_key, lineage

__all__ = ["TRAINERS", "load_fit", "run_jobs", "stored_path"]

TRAINERS = {"sgd": fit, "convex": "probnb.pretrained.logistic:fit_logistic"}
"""What trains, by a recipe's solver, or where that is; each refuses what it does not use."""


def run_jobs(
    jobs, splits, directory, device="auto", workers=None, progress=True, retrain=False, devices=1
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
        The data; their digest is part of every key.
    directory : path-like
        Where finished work is kept, a file for each job.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to train.
    workers : int, optional
        Trainings at a time; by default one for each core that this process may use on a CPU, else
        one for each device.
    progress : bool, default=True
        Whether to show a bar, in trainings, and one in epochs where there is one at a time; the
        environment variable ``PROBNB_PROGRESS=text`` makes it plain text where a notebook would
        show a widget.
    retrain : bool, default=False
        Whether to train again what other code has trained, and what rests on it.
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
        If a stored result was trained by other code or rests on one that was, or is damaged and
        was set aside.
    """
    device = device_type(device)
    if workers is None:
        workers = joblib.cpu_count() if device == "cpu" else devices
    check_integer(workers, "workers")
    place = Place(device, precision_of(device), check_devices(devices, device), workers)
    labels = {}
    for name, row in jobs.items() if isinstance(jobs, Mapping) else [("training", jobs)]:
        for job in row:
            labels.setdefault(job, METHODS[name].label if name in METHODS else name)
    every = list(dict.fromkeys(step for job in labels for step in lineage(job)))
    augment = splits.train.augment
    work = {
        job: Work(stored_path(job, splits, directory, device), store.fingerprint(job, augment))
        for job in every
    }
    for one in work.values():
        store.load_or_set_aside(one.path)  # a damaged one is made again
    stale, again = _stale(work), []
    for job in every:  # also what rests on one that is made again: it is looked at then
        missing = stale[job] is None or (retrain and stale[job])
        if missing or any(one in again for one in before(job)):
            again.append(job)
    kept = [job for job in every if stale[job] and job not in again]
    if kept:
        names = ", ".join(sorted({labels.get(job, "a start") for job in kept}))
        warnings.warn(
            f"{len(kept)} of {len(every)} trainings ({names}) were trained by other code than "
            "today's, or rest on one that was: their numbers are used as they are; retrain=True "
            "makes them anew.",
            stacklevel=2,
        )
    again.sort(key=lambda job: job.recipe.patience is not None)  # the longest first
    text = os.environ.get("PROBNB_PROGRESS") == "text"
    make = tqdm.tqdm if text else tqdm.auto.tqdm
    call, sent = joblib.delayed(_run_job), replace(splits, report=None)
    show = progress and place.workers == 1 and not text  # epochs, where that makes one bar more
    with make(total=len(again), unit="training", disable=not (progress and again)) as bar:
        for stage in sorted({_depth(job) for job in again}):  # a start before what it starts
            todo = [job for job in again if _depth(job) == stage]
            for wait in (False, True):  # first what no other process is at
                here, calls, done = replace(place, spread=_few(todo, splits, place)), [], set()
                for number, job in enumerate(todo):
                    some = {one: work[one] for one in (job, *before(job))}
                    calls.append(call(job, sent, some, here, number, show, retrain, wait))
                for number in here.call(calls):
                    done.add(number)
                    bar.update(number is not None)
                todo = [job for number, job in enumerate(todo) if number not in done]
    stale = _stale(work)
    return {job: load_fit(work[job].path, splits, bool(stale[job])) for job in labels}


@dataclass(frozen=True)
class Work:
    """The file that a training is kept in, and the fingerprint of today's code."""

    path: Path
    code: str


def stored_path(job, splits, directory, device="cpu"):
    """Return where the result of a job is kept, whether it is there or not."""
    name = job_key(job, splits, device, precision_of(device))
    return Path(directory) / f"{name}.safetensors"


def load_fit(path, splits=None, stale=False):
    """Read a stored `Fit`, whose logits must be those of the rows of `splits`, where given."""
    tensors, meta = store.load(path)
    if splits is not None and meta["ids"] != _ids(splits):
        raise ValueError(f"{path} holds logits of other rows than those of splits; remove it.")
    weights, logits = (store.part(tensors, prefix) for prefix in ("weights.", "logits."))
    return Fit(weights, logits, meta["history"], meta["best_epoch"], stale)


def _ids(splits):
    """What the rows of the logits are called, as JSON can hold it."""
    return {name: [str(i) for i in getattr(splits, name).ids.tolist()] for name in ("val", "test")}


def _stale(work):
    """Whether each result was made by other code, or from what is no longer so; None: not there."""
    stale = {}
    for job, one in work.items():  # each after what it rests on
        found, sums = store.header(one.path), _sums(job, work)
        stale[job] = found and (
            found["code"] != one.code
            or any(stale[other] for other in before(job))
            or (None not in sums and found["rests_on"] != sums)
        )
    return stale


def _sums(job, work):
    """Checksums of the results that a job rests on, None where there is none."""
    found = [store.header(work[one].path) for one in before(job)]
    return [one and one["sha256"] for one in found]


def _depth(job):
    """How many trainings have to come one after the other, this one the last."""
    return 1 + max(map(_depth, before(job)), default=0)


def _few(jobs, splits, place):
    """Whether to spread each of some jobs, since some devices would have none.

    One whose targets know their surroundings (teachers, a memory) stays whole.
    """
    return len(jobs) < place.devices and all(
        can_spread(job.network, splits.train.inputs, place.device)
        and not (job.teachers or hasattr(job.targets, "bind"))
        for job in jobs
    )


def _run_job(job, splits, work, place, number, show, retrain, wait):
    """Train one job, store it, return its number; None where another process is at it."""
    path = work[job].path
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(path.with_suffix(".lock"), timeout=-1 if wait else 0):
            if not _finished(job, work, retrain):
                if place.spread:  # a damaged one is set aside once, not by each process
                    store.load_or_set_aside(_unfinished(job, work))
                place.run(number, _train, job, splits, work, show and not place.spread)
    except filelock.Timeout:
        return None
    return number


def _finished(job, work, retrain):
    """Whether a result is there that rests on what is there now."""
    found = store.header(work[job].path)
    if found is None or (retrain and found["code"] != work[job].code):
        return False
    return found["rests_on"] == _sums(job, work)


def _unfinished(job, work):
    """Where a state between epochs is kept, which no other code and no other start take up."""
    mark = store.key({"code": work[job].code, "rests_on": _sums(job, work)})
    return work[job].path.with_suffix(f".{mark[:8]}.partial")


def _train(job, whole, work, show, fabric):
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if fabric.device.type == "cpu" else threads)
    try:
        path = work[job].path
        splits = whole if job.fold is None else without(whole, job.fold)
        torch.manual_seed(job.init_seed)
        model = job.network.build(splits.train.inputs)
        if job.start is not None:
            model.load_state_dict(load_fit(work[job.start].path).weights)
        targets, state = job.targets, _unfinished(job, work)
        if hasattr(targets, "bind"):
            teachers = [(t.network, load_fit(work[t].path), t.fold) for t in job.teachers]
            around = Surroundings(
                splits.to(fabric.device),
                lambda data: probabilities(predict_logits(fabric, model, data)),
                state.with_suffix(".memory"),
                partial(teach, teachers, whole, fabric) if teachers else None,
            )
            targets = targets.bind(around)
        loss, strength = job.loss, () if job.strength is None else (job.strength,)
        if isinstance(loss, str):
            loss = losses.LOSSES[loss](*strength)
        solver = job.recipe.solver
        how = {"on_epoch": None if show else lambda record: None, "keep_start": bool(job.start)}
        if solver == "sgd":  # the other is done within seconds
            how["checkpoint"] = state
        train = TRAINERS[solver]
        train = pkgutil.resolve_name(train) if isinstance(train, str) else train
        result = train(model, splits, job.recipe, loss, targets, fabric, **how)
        if fabric.is_global_zero:
            _store(work[job], result, splits, _sums(job, work))
            for kind in ("partial", "memory"):  # also of other code, which gave up
                for left in path.parent.glob(f"{path.stem}.*.{kind}"):
                    left.unlink(missing_ok=True)
    finally:
        torch.set_num_threads(threads)


def _store(one, result, splits, sums):
    meta = {
        "history": result.history,
        "best_epoch": result.best_epoch,
        "ids": _ids(splits),
        "source": splits.source,
        "code": one.code,
        "rests_on": sums,
    }
    tensors = store.whole({"weights": result.weights, "logits": result.logits})
    store.save(one.path, tensors, meta)
