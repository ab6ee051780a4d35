"""The tasks of the chapter: which images, which question, and how each is trained and stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from ...data.base import Splits
from ...data.cifar10 import CLASSES, load_cifar10, load_cifar10h, load_judged_digits
from ...data.ferplus import QUESTIONS, load_ferplus
from ...experiment.plan import plan
from ...experiment.profiles import make_profile
from ...experiment.results import collect, write_results
from ...experiment.run import run_jobs
from ...methods import check_methods
from ...training.batches import device_type, precision_of
from ...training.models import network as network_of
from ...validation import check_choice
from .gradients import on_gradients
from .study import unbias_epochs

__all__ = ["TASKS", "Task", "load_task", "task_label", "task_settings", "train_task"]

TASKS = {
    "digits": (("rule", "judged"), "scikit-learn's digits"),
    "cifar10": (("rule",), "CIFAR-10"),
    "cifar10h": (CLASSES, "CIFAR-10H"),
    "ferplus": (tuple(QUESTIONS), "FER+"),
}
"""For each data set the questions that can be asked of it, and its name."""


USUAL = {"digits": "judged", "cifar10": "rule", "cifar10h": "cat", "ferplus": "neutral"}
"""The question that is asked where none is named."""

SIZES = {"digits": 16, "cifar10": 32, "cifar10h": 32, "ferplus": 48}
"""Height and width of the images in pixels."""

IMAGES = {"smoke": 120, "quick": 4_000, "cpu": 12_000, "paper": 50_000}
"""Training images of each profile, at most those that there are."""

MOST = {"digits": 1_078, "cifar10": 45_000, "cifar10h": 6_000, "ferplus": 27_224}
"""Training images of each data set."""

RECIPE = {
    "epochs": 16,
    "patience": 3,
    "plateau_patience": 2,
    "batch_size": 128,
    "learning_rate": 0.01,
    "finetune_epochs": 6,
    "finetune_learning_rate": (1e-2, 1e-3),
}
"""How the small network on oriented gradients is trained in every profile but the smallest."""

PIXELS = {
    "width": 8,
    "epochs": 10,
    "patience": 3,
    "plateau_patience": 1,
    "batch_size": 128,
    "learning_rate": 0.05,
    "finetune_epochs": 2,
    "finetune_learning_rate": (1e-2, 1e-3),
    "members": 3,
}
"""How the ResNet-18 on pixels is trained at profiles quick and cpu: minutes a seed on one core."""

PIXEL_SIZES = SIZES | {"ferplus": 24}
"""Height and width of the images that it sees there."""

PIXEL_IMAGES = {"cifar10": 20_000}
"""Training images that it has at profile cpu, where they are not the profile's."""

CELLS = {"digits": 4, "cifar10": 8, "cifar10h": 8, "ferplus": 6}
"""Parts along each side in which gradients are counted."""

HIDDEN = (128,)
"""Units of the hidden layer of the small network."""


@dataclass(frozen=True, eq=False)
class Task:
    """What `train_task` needs.

    Attributes
    ----------
    data, question : str
        A key of `TASKS` and one of its questions.
    splits : Splits
        What training takes. Where votes are known and probabilities are not, the test part has
        the share of the other votes in place of probabilities: the mean squared distance from
        them differs from MSE_p by the same amount for every model, so that the curves of a
        training need no votes.
    votes : DataFrame or None
        The other votes, as `probnb.data.judged.Judged` has them.
    """

    data: str
    question: str
    splits: Splits
    votes: pd.DataFrame | None


def load_task(data, question, data_dir=None, n=None, size=None, seed=0, inputs="gradients"):
    """Load the images and outcomes of a task.

    Parameters
    ----------
    data, question : str
        A key of `TASKS` and one of its questions: ``"rule"`` is p = c/10 for class c,
        ``"judged"`` the same with simulated people.
    data_dir : path-like, optional
        Folder with ``cifar10`` (a folder), ``cifar10-jpeg.tar.gz`` or ``cifar-10-batches-py``,
        with ``cifar10h`` and with ``ferplus.npz``, whichever the task needs; digits need none.
    n : int, optional
        Training images; by default all.
    size : int, optional
        Height and width of the images in pixels; by default the data set's own choice.
    seed : int, default=0
        Seed of outcomes and sample.
    inputs : {"gradients", "pixels"}, default="gradients"
        What the network sees: `probnb.chapters.cifar10.gradients.oriented_gradients` for a small
        network, or the images for a ResNet-18.

    Returns
    -------
    Task
        Splits and votes.

    Raises
    ------
    ValueError
        If the task is unknown or its data are not what they should be.
    FileNotFoundError
        If its data are not in `data_dir`.
    """
    check_choice(data, TASKS, "data")
    check_choice(question, TASKS[data][0], "question")
    check_choice(inputs, ("gradients", "pixels"), "inputs")
    settings = {"n": n, "seed": seed} | ({} if size is None else {"size": size})
    if data == "digits":
        load = load_cifar10 if question == "rule" else load_judged_digits
        loaded = load(**settings)
    else:
        if data_dir is None:
            raise ValueError(f"data_dir must be the folder of the data for {data!r}; got None.")
        folder = Path(data_dir).expanduser()
        if data == "cifar10":
            loaded = load_cifar10(_cifar10(folder), **settings)
        elif data == "cifar10h":
            loaded = load_cifar10h(question, _cifar10(folder), folder / "cifar10h", **settings)
        else:
            loaded = load_ferplus(question, folder, **settings)
    votes = None if isinstance(loaded, Splits) else loaded.votes
    splits = loaded if votes is None else loaded.splits
    if inputs == "gradients":
        splits = on_gradients(splits, CELLS[data])
    if splits.test.probabilities is None:
        others = votes.loc[splits.test.ids]
        share = (others["k"] / others["n"]).to_numpy().copy()
        splits = replace(splits, test=replace(splits.test, probabilities=share))
    return Task(data, question, splits, votes)


def task_settings(data, profile="quick", inputs="gradients", **overrides):
    """Say how large the trainings of a task are.

    Parameters
    ----------
    data : str
        A key of `TASKS`.
    profile : str, default="quick"
        Name of a profile.
    inputs : {"gradients", "pixels"}, default="gradients"
        As `load_task` takes it. Each has a recipe of its own, `RECIPE` and `PIXELS`.
    **overrides
        As `probnb.experiment.profiles.make_profile` takes them; None leaves what there is.

    Returns
    -------
    probnb.experiment.profiles.Profile
        The profile with the number and the size of the images of these data.
    """
    check_choice(data, TASKS, "data")
    check_choice(profile, IMAGES, "profile")
    images = min(IMAGES[profile], MOST[data])
    usual = {"images": images, "size": SIZES[data]}
    if inputs == "gradients":
        usual |= {"learning_rate": RECIPE["learning_rate"]} if profile == "smoke" else RECIPE
    elif profile in ("quick", "cpu"):
        usual |= PIXELS | {"size": PIXEL_SIZES[data]}
        if profile == "cpu":
            usual["images"] = PIXEL_IMAGES.get(data, images)
    return make_profile(profile, **usual | {k: v for k, v in overrides.items() if v is not None})


def task_label(data, question, inputs="gradients"):
    """Say in a few words what a task is, and where the network sees pixels."""
    name = TASKS[data][1]
    asked = {"rule": "p = c/10", "judged": "simulated people"}.get(question, question)
    return f"{name}, {asked}" + " (pixels)" * (inputs == "pixels")


def train_task(task, settings, results_dir, profile="quick", seed=0, methods=None, **run):
    """Train every row of a table on a task, and store what came out.

    Parameters
    ----------
    task : Task
        From `load_task`, with the same seed.
    settings : Profile
        Sizes and grids.
    results_dir : path-like
        Where finished trainings (``fits``) and the run (``cifar10``) are kept.
    profile : str, default="quick"
        The name under which `settings` go.
    seed : int, default=0
        Seed of the weights.
    methods : sequence of str, optional
        Names of rows; by default all of the paper's that the task allows.
    **run
        Passed to `probnb.experiment.run.run_jobs`, for example ``device`` or ``devices``.

    Returns
    -------
    results : probnb.experiment.results.Results
        Predictions, choices and epochs.
    stored : probnb.experiment.results.StoredRun
        Where they are kept.
    """
    results_dir = Path(results_dir)
    methods = check_methods(methods, known=task.splits.known)
    pixels = task.splits.train.inputs.ndim == 4
    network = None if pixels else network_of("mlp", hidden=HIDDEN)
    if not pixels and not run.get("workers") and run.get("devices", 1) == 1:
        run["workers"] = 1  # to start a process takes longer than such a training
    jobs = plan(methods, settings, seed, network)
    fits = run_jobs(jobs, task.splits, results_dir / "fits", **run)
    results = _with_votes(collect(jobs, fits, task.splits), task)
    device = device_type(run.get("device", "auto"))
    stored = write_results(
        results_dir / "cifar10",
        results,
        task=task.question,
        data=task.data,
        profile=profile,
        seed=seed,
        settings=settings,
        inputs="pixels" if pixels else "gradients",
        network="ResNet-18" if pixels else "two-layer network on oriented gradients",
        source=task.splits.source,
        device=device,
        precision=precision_of(device),
    )
    return results, stored


def _with_votes(results, task):
    """Put the other votes beside the predictions, and distances from p beside every epoch."""
    if task.votes is None:
        return results
    table = results.predictions
    votes = task.votes.loc[table["id"], ["k", "n"]]
    table = table.assign(**{name: votes[name].to_numpy() for name in ("k", "n")})
    epochs = results.epochs
    if not task.splits.known:  # what stands under p are the shares of the votes
        table = table.drop(columns="p")
        test = table[table["split"] == "test"]
        epochs = unbias_epochs(epochs, test["k"], test["n"])
    return replace(results, predictions=table, epochs=epochs)


def _cifar10(folder):
    """The first of the places where CIFAR-10 may lie."""
    for name in ("cifar-10-batches-py", "cifar10", "cifar10-jpeg.tar.gz"):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(
        "data_dir must hold CIFAR-10 as cifar-10-batches-py, cifar10 or cifar10-jpeg.tar.gz; "
        f"{str(folder)!r} does not."
    )
