"""The tasks of the chapter: which images, which question, and how each is trained and stored."""

from collections import namedtuple
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from probnb.experiment.profiles import make_profile
from probnb.images.files import cache_folder
from probnb.methods import check_methods
from probnb.metrics.votes import check_votes
from probnb.pretrained.backbone import Backbone
from probnb.pretrained.features import load_features
from probnb.training.models import network as network_of
from probnb.validation import check_choice

from ..data import voted_images
from ..studies import train_rows

Data = namedtuple("Data", "label questions usual size most cells")
"""A data set: its name, what can be asked of it and what is asked where no question is named;
height and width of its images in pixels, how many train, and the parts along each side in which
gradients are counted."""


DATA = {
    "digits": Data("scikit-learn's digits", ("rule", "judged"), "judged", 16, 1_078, 4),
    "cifar10": Data("CIFAR-10", ("rule",), "rule", 32, 45_000, 8),
    "cifar10h": Data("CIFAR-10H", voted_images.CLASSES, "cat", 32, 6_000, 8),
    "ferplus": Data("FER+", tuple(voted_images.QUESTIONS), "neutral", 48, 27_224, 6),
}

IMAGES = {"smoke": 120, "quick": 4_000, "cpu": 12_000, "paper": 50_000}
"""Training images of each profile, at most those that there are."""

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

PIXELS = RECIPE | dict(
    width=8, epochs=10, plateau_patience=1, learning_rate=0.05, finetune_epochs=2, members=3
)
"""How the ResNet-18 on pixels is trained at profiles quick and cpu: minutes a seed on one core."""

INPUTS = {
    "gradients": "two-layer network on oriented gradients",
    "pixels": "ResNet-18",
    "features": "head on the features of lite0",
}
"""What a network may see, `oriented_gradients`, images or features of images enlarged to `ENLARGED`
pixels; and what records of runs call it."""

ENLARGED = 96

SMALLER = {
    ("quick", "ferplus"): {"size": 24},
    ("cpu", "ferplus"): {"size": 24},
    ("cpu", "cifar10"): {"images": 20_000},
}
"""Where its images are not the data's own, or their number not the profile's."""


Task = namedtuple("Task", "data question splits votes inputs")
"""What `train_task` needs: a key of `DATA`, one of its questions, what training takes, the other
votes as `probnb_book.data.voted_images.Judged` has them, or None, and one of `INPUTS`. Where votes
are known and probabilities are not, the test part has the share of the other votes in place of
probabilities: the mean squared distance from them differs from MSE_p by the same amount for every
model, so that the curves of a training need no votes."""


def load_task(data, question, data_dir=None, n=None, size=None, seed=0, inputs="gradients"):
    """Load the images and outcomes of a task.

    Parameters
    ----------
    data, question : str
        A key of `DATA` and one of its questions: ``"rule"`` is p = c/10 for class c,
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
    inputs : {"gradients", "pixels", "features"}, default="gradients"
        What the network sees; see `INPUTS`.

    Returns
    -------
    Task
        Splits and votes; ValueError for an unknown task, FileNotFoundError where data are missing.
    """
    check_choice(data, DATA, "data")
    check_choice(question, DATA[data].questions, "question")
    check_choice(inputs, INPUTS, "inputs")
    settings = {"n": n, "seed": seed} | ({} if size is None else {"size": size})
    if data == "digits":
        load = voted_images.load_cifar10 if question == "rule" else voted_images.load_judged_digits
        loaded = load(**settings)
    elif data_dir is None:
        raise ValueError(f"data_dir must be the folder of the data for {data!r}; got None.")
    elif data == "ferplus":
        loaded = voted_images.load_ferplus(question, Path(data_dir).expanduser(), **settings)
    else:
        folder = Path(data_dir).expanduser()
        names = ("cifar-10-batches-py", "cifar10", "cifar10-jpeg.tar.gz")
        images = next((folder / name for name in names if (folder / name).exists()), None)
        if images is None:
            raise FileNotFoundError(
                f"data_dir must hold CIFAR-10 as {', '.join(names)}; {str(folder)!r} does not."
            )
        if data == "cifar10":
            loaded = voted_images.load_cifar10(images, **settings)
        else:
            loaded = voted_images.load_cifar10h(question, images, folder / "cifar10h", **settings)
    votes = getattr(loaded, "votes", None)
    splits = loaded if votes is None else loaded.splits
    if inputs == "gradients":
        splits = on_gradients(splits, DATA[data].cells)
    if inputs == "features":
        backbone = Backbone("lite0", size=ENLARGED)
        splits = load_features(splits, backbone, cache_folder(), "lite0")
    if splits.test.probabilities is None:
        others = votes.loc[splits.test.ids]
        share = (others["k"] / others["n"]).to_numpy().copy()
        splits = replace(splits, test=replace(splits.test, probabilities=share))
    return Task(data, question, splits, votes, inputs)


def task_settings(data, profile="quick", inputs="gradients", **overrides):
    """Say how large the trainings of a task are.

    Parameters
    ----------
    data : str
        A key of `DATA`.
    profile : str, default="quick"
        Name of a profile.
    inputs : {"gradients", "pixels", "features"}, default="gradients"
        As `load_task` takes it. Each has a recipe of its own, `RECIPE`, `PIXELS` and that of the
        profile ``features``.
    **overrides
        As `probnb.experiment.profiles.make_profile` takes them; None leaves what there is.

    Returns
    -------
    probnb.experiment.profiles.Profile
        The profile with the number and the size of the images of these data.
    """
    check_choice(data, DATA, "data")
    check_choice(profile, IMAGES, "profile")
    usual = {"images": min(IMAGES[profile], DATA[data].most), "size": DATA[data].size}
    if inputs == "features":
        profile = "features"
    elif inputs == "gradients":
        usual |= {"learning_rate": RECIPE["learning_rate"]} if profile == "smoke" else RECIPE
    elif profile in ("quick", "cpu"):
        usual |= PIXELS | SMALLER.get((profile, data), {})
    return make_profile(profile, **usual | {k: v for k, v in overrides.items() if v is not None})


def task_label(data, question, inputs="gradients"):
    """Say in a few words what a task is, and what else than gradients the network sees."""
    asked = {"rule": "p = c/10", "judged": "simulated people"}.get(question, question)
    return f"{DATA[data].label}, {asked}" + f" ({inputs})" * (inputs != "gradients")


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
    inputs = task.inputs
    methods = check_methods(methods, task.splits.known, inputs == "features")
    run["network"] = network_of("mlp", hidden=(128,)) if inputs == "gradients" else None
    if inputs != "pixels" and not run.get("workers") and run.get("devices", 1) == 1:
        run["workers"] = 1  # to start a process takes longer than such a training
    facts = {"task": task.question, "data": task.data, "profile": profile, "seed": seed}
    facts |= {"base": task_settings(task.data, profile, inputs)}
    facts |= {"inputs": inputs, "network": INPUTS[inputs]}
    facts["changed"] = {"inputs": inputs} if inputs != "gradients" else {}
    amend = partial(_with_votes, task=task)
    given = task.splits, methods, settings, results_dir, facts, amend
    compared, stored = train_rows("cifar10", *given, **run)
    return compared.results, stored


def _with_votes(results, task):
    """Put the other votes beside the predictions, and distances from p beside every epoch.

    Where p is not known, an epoch's distance is from the shares of votes, and the same too large in
    every epoch; its divergence is left out.
    """
    if task.votes is None:
        return results
    table, epochs = results.predictions, results.epochs
    table = table.assign(**task.votes.loc[table["id"], ["k", "n"]].reset_index(drop=True))
    if not task.splits.known:
        table = table.drop(columns="p")
        test = table[table["split"] == "test"]
        votes = check_votes(test["k"], test["n"])
        noise = (votes.variance() / votes.counts).mean()
        epochs = epochs.assign(mse_p=epochs["mse_p"] - noise).drop(columns="kl_p")
    return replace(results, predictions=table, epochs=epochs)


BINS = 9
"""Directions of gradients, over half a turn."""


def oriented_gradients(images, cells):
    """Describe images by how strong their edges are, in each direction, in each part.

    Parameters
    ----------
    images : torch.Tensor of shape (n, channels, side, side)
        uint8.
    cells : int
        Parts along each side; it must divide the side.

    Returns
    -------
    torch.Tensor of shape (n, cells * cells * (BINS + channels))
        For each part the gradient magnitudes by direction, relative to those of the parts around
        it, and the mean of each channel in [0, 1]; float32.

    Notes
    -----
    A gradient counts in the two directions nearest to its own. Magnitudes are those of the mean of
    the channels; the norm is over 3 x 3 parts.
    """
    x = images.float() / 255
    grey = x.mean(1)
    padded = torch.nn.functional.pad(grey[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    place = torch.atan2(down, across) / np.pi * BINS % BINS  # half a turn is all bins
    lower = place.floor()
    share, size = place - lower, torch.hypot(across, down)
    n, side, _ = grey.shape
    maps = torch.zeros(n, BINS, side, side)
    for index, weight in ((lower, 1 - share), (lower + 1, share)):
        maps.scatter_add_(1, (index.long() % BINS)[:, None], (size * weight)[:, None])
    pool = torch.nn.functional.avg_pool2d
    histograms, means = pool(maps, side // cells), pool(x, side // cells)
    energy = (histograms**2).sum(1, keepdim=True)
    around = pool(energy, 3, stride=1, padding=1, count_include_pad=False)
    return torch.cat([histograms / (around + 1e-4).sqrt(), means], 1).flatten(1)


def on_gradients(splits, cells):
    """Put `oriented_gradients` in place of the images, each scaled as in the training part.

    Parameters
    ----------
    splits : Splits
        Images, whose side `cells` must divide.
    cells : int
        As `oriented_gradients` takes it.

    Returns
    -------
    Splits
        The same outcomes; nothing is mirrored any more.
    """
    data = {}
    for name, part in splits.parts().items():
        x = torch.cat([oriented_gradients(some, cells) for some in part.inputs.split(2048)])
        if name == "train":
            mean, deviation = x.mean(0), x.std(0).clamp(min=1e-3)
        data[name] = replace(part, inputs=(x - mean) / deviation, augment=())
    return replace(splits, **data, source=f"{splits.source} gradients={cells},{BINS}")
