"""Train the jobs of a table side by side, each one once, and keep what is finished.

Every finished training is stored under the hash of its configuration, and an interrupted one
continues.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import joblib
import torch
from tqdm.auto import tqdm

from .. import store
from ..training import losses, models
from ..training.batches import device_type, make_fabric, precision_of
from ..training.loop import Fit, fit
from .plan import job_key

__all__ = ["load_fit", "run_jobs"]


def run_jobs(jobs, splits, directory, device="auto", workers=None, progress=True):
    """Train whatever is not yet stored, side by side on a CPU, one after the other on a GPU.

    Each CPU training has one thread: two of them on two cores are faster than one with two
    threads, and the numbers do not depend on how many run at a time.

    Parameters
    ----------
    jobs : iterable of Job
        Repeated ones are trained once; those that a job starts from are trained first.
    splits : probnb.data.Splits
        The data; ``source`` is part of every key.
    directory : path-like
        Where finished work is kept, a file for each job.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to train.
    workers : int, optional
        Trainings at a time; by default one for each core on a CPU, else one.
    progress : bool, default=True
        Whether to show a bar, in epochs.

    Returns
    -------
    dict of Job to Fit
        The result of each job.
    """
    device = device_type(device)
    workers = workers or (os.cpu_count() or 1 if device == "cpu" else 1)
    jobs = list(dict.fromkeys(jobs))
    paths = {}
    for job in [*(job.start for job in jobs if job.start), *jobs]:
        name = job_key(job, splits.source, device, precision_of(device))
        paths[job] = Path(directory) / f"{name}.safetensors"
    missing = [job for job in paths if not paths[job].exists()]
    missing.sort(key=lambda job: job.recipe.patience is not None)  # the longest first
    with _progress(sum(job.recipe.epochs for job in missing), progress and missing) as advance:
        for stage in (False, True):  # fine-tuning needs the weights that it starts from
            calls = [
                joblib.delayed(_run_job)(job, splits, paths, device, advance)
                for job in missing
                if (job.start is not None) == stage
            ]
            if calls and workers > 1:
                with joblib.parallel_config("loky", inner_max_num_threads=1):
                    joblib.Parallel(n_jobs=min(workers, len(calls)), batch_size=1)(calls)
            else:
                for function, args, _ in calls:
                    function(*args)
    return {job: load_fit(paths[job]) for job in jobs}


def _run_job(job, splits, paths, device, advance):
    """Train one job and store it; an unfinished training of the same job is continued."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if device == "cpu" else threads)
    try:
        torch.manual_seed(job.init_seed)
        channels = splits.train.inputs.shape[1]
        model = models.ResNet18(job.width, job.stem, in_channels=channels)
        if job.start is not None:
            model.load_state_dict(load_fit(paths[job.start]).weights)
        kind = losses.LOSSES[job.loss]
        loss = kind() if job.strength is None else kind(job.strength)
        partial = paths[job].with_suffix(".partial")
        result = fit(
            model,
            splits,
            job.recipe,
            loss,
            job.targets,
            make_fabric(device),
            checkpoint=partial,
            on_epoch=lambda record: advance(1),
        )
        tensors = {f"weights.{k}": v for k, v in result.weights.items()}
        tensors |= {f"logits.{k}": v for k, v in result.logits.items()}
        meta = {"history": result.history, "best_epoch": result.best_epoch, "source": splits.source}
        store.save(paths[job], tensors, meta)
        partial.unlink(missing_ok=True)
        advance(job.recipe.epochs - len(result.history) + 1)  # epochs spared by early stopping
    finally:
        torch.set_num_threads(threads)


def load_fit(path):
    """Read a stored `Fit`."""
    tensors, meta = store.load(path)
    weights, logits = (store.part(tensors, prefix) for prefix in ("weights.", "logits."))
    return Fit(weights, logits, meta["history"], meta["best_epoch"])


@contextmanager
def _progress(total, show):
    """A bar in epochs that trainings in any process advance by appending bytes to a file."""
    handle, path = tempfile.mkstemp()
    os.close(handle)
    stop = threading.Event()
    with tqdm(total=total, unit="epoch", disable=not show) as bar:

        def watch():
            while not stop.wait(0.5):
                if (finished := os.path.getsize(path)) > bar.n:
                    bar.update(finished - bar.n)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield _Advance(path)
        finally:
            stop.set()
            watcher.join()
            bar.update(os.path.getsize(path) - bar.n)
            os.unlink(path)


@dataclass(frozen=True)
class _Advance:
    """Tells the bar's process, from any other, how many epochs are finished."""

    path: str

    def __call__(self, epochs):
        with open(self.path, "ab") as file:
            file.write(b"." * epochs)
