"""From rows of a table to finished fits: plan, train side by side, choose on validation data.

A `Job` is one training. Rows that read the same training share it, every finished one is stored
under the hash of its configuration, and an interrupted one continues.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import joblib
import torch
from tqdm.auto import tqdm

from . import losses, models, store
from .batches import device_type, make_fabric, precision_of
from .methods import METHODS
from .targets import Calibrated, Observed, Resampled
from .training import Fit, Recipe, fit

__all__ = ["Job", "job_key", "load_fit", "plan", "run_jobs"]


@dataclass(frozen=True)
class Job:
    """One training: everything that `probnb.training.fit` needs but the data.

    Parameters
    ----------
    width : int
        Width of ResNet-18.
    stem : str
        Stem of ResNet-18.
    recipe : Recipe
        Optimiser, schedule, epochs and seed.
    loss : str, default="ce"
        Name in `probnb.losses.LOSSES`.
    strength : float or None, default=None
        The loss's hyperparameter.
    targets : object, default=Observed()
        Schedule of soft targets.
    init_seed : int, default=0
        Seed of the initial weights.
    start : Job or None, default=None
        The training from whose best weights this one starts.
    """

    width: int
    stem: str
    recipe: Recipe
    loss: str = "ce"
    strength: float | None = None
    targets: object = Observed()
    init_seed: int = 0
    start: Job | None = None

    @property
    def tuned(self):
        """The values that the row's grid chose among, by name."""
        values = {} if self.strength is None else {"strength": self.strength}
        if self.start is not None:
            values["learning_rate"] = self.recipe.learning_rate
        if isinstance(self.targets, Calibrated):
            name = {"bin": "bins", "kernel": "sigma"}[self.targets.estimator]
            values[name] = getattr(self.targets, name)
        return values


def plan(methods, profile, seed=0):
    """Say which trainings the rows of a table need.

    Parameters
    ----------
    methods : iterable of str
        Names in `probnb.methods.METHODS`.
    profile : Profile
        Sizes and grids.
    seed : int, default=0
        Seed of weights, order and resampled labels.

    Returns
    -------
    dict of str to list of Job
        For each row the candidates among which validation cross entropy chooses; for a deep
        ensemble its members. Post-processing rows have the candidates of ``"ce"``.

    Examples
    --------
    >>> from probnb.profiles import make_profile
    >>> jobs = plan(["ce", "platt"], make_profile("smoke"))
    >>> jobs["ce"] == jobs["platt"]
    True
    """
    recipe = Recipe(
        epochs=profile.epochs,
        batch_size=profile.batch_size,
        learning_rate=profile.learning_rate,
        plateau_patience=profile.plateau_patience,
        seed=seed,
    )
    ce = Job(profile.width, profile.stem, recipe, init_seed=seed)
    return {name: _candidates(METHODS[name], ce, profile) for name in methods}


def _candidates(method, ce, profile):
    """Trainings of one row, as variations of the cross-entropy training."""
    if method.finetune:
        return [
            replace(ce, start=ce, targets=targets, recipe=_finetuning(ce.recipe, rate, profile))
            for rate in profile.finetune_learning_rates
            for targets in _schedules(method.targets, profile)
        ]
    if method.targets == "resampled":
        # Nothing to memorise, nothing to stop early: the rate falls to 0 as planned.
        return [replace(ce, targets=Resampled(), recipe=replace(ce.recipe, schedule="cosine"))]
    stopped = replace(ce, recipe=replace(ce.recipe, patience=profile.patience))
    if method.members > 1:
        return _members(method.members, ce, stopped, profile)
    if method.loss != "ce":
        grid = {
            "focal": profile.gammas,
            "entropy": profile.entropy_betas,
            "mmce": profile.mmce_betas,
        }
        return [replace(stopped, loss=method.loss, strength=s) for s in grid[method.loss]]
    return [ce]


def _schedules(targets, profile):
    if targets == "bin":
        return [Calibrated("bin", profile.every, profile.phase, bins=b) for b in profile.bins]
    if targets == "kernel":
        return [
            Calibrated(
                "kernel", profile.every, profile.phase, neighbours=profile.neighbours, sigma=sigma
            )
            for sigma in profile.sigmas
        ]
    return [Observed()]


def _finetuning(recipe, rate, profile):
    return replace(
        recipe,
        epochs=profile.finetune_epochs,
        learning_rate=rate,
        schedule="cosine",
        seed=recipe.seed + 500_000,  # an order of its own
    )


def _members(count, ce, stopped, profile):
    """Members of a deep ensemble; the first is the plain fit, unless adversarial steps differ."""
    members = []
    for member in range(count):
        seed = ce.init_seed + 1000 * member
        recipe = replace(stopped.recipe, seed=seed, adversarial=profile.adversarial)
        members.append(replace(stopped, recipe=recipe, init_seed=seed))
    return members if profile.adversarial else [ce, *members[1:]]


def job_key(job, source, device="cpu", precision="bf16-mixed"):
    """Return the hash under which the result of a job is stored."""
    return store.key(
        {
            "format": 1,
            "source": source,
            "device": device,
            "precision": precision,
            **asdict(job),
            "targets": [type(job.targets).__name__, asdict(job.targets)],
            "start": job.start and job_key(job.start, source, device, precision),
        }
    )


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
