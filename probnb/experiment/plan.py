"""From rows of a table to trainings: which ones each row needs, each of them data.

Rows that read the same training share its `Job`, and a job's hash names its stored result.
"""

import itertools
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial

import numpy as np

from .. import store
from ..methods import METHODS, TARGETS, Recipe
from ..training import targets as schedules
from ..training.cape import CAPE
from ..training.models import Network
from ..training.models import network as _network
from ..training.targets import Observed
from ..validation import check_integer

__all__ = ["Job", "job_key", "lineage", "plan", "sub_seed"]


@dataclass(frozen=True)
class Job:
    """One training: everything that `probnb.training.loop.fit` needs but the data.

    Parameters
    ----------
    network : Network
        Which network; see `probnb.training.models.network`.
    recipe : Recipe
        Optimiser, schedule, epochs and seed.
    loss : str or callable, default="ce"
        Name in `probnb.training.losses.LOSSES`, or a loss.
    strength : float or None, default=None
        The named loss's hyperparameter.
    targets : object, default=Observed()
        Schedule of soft targets.
    init_seed : int, default=0
        Seed of the initial weights.
    start : Job or None, default=None
        The training from whose kept weights this one starts.
    tuned : tuple of (str, float), default=()
        The values that the row's grid chose among.
    place : tuple of int, default=(0, 0, 0)
        Seed, member and stage from which the seeds were derived.
    teachers : tuple of Job, default=()
        The trainings whose networks the targets `probnb.training.targets.Taught` come from.
    fold : tuple of int, optional
        ``(which, of, seed)``: the part of the training rows that this training leaves out; see
        `probnb.training.targets.left_out`.
    """

    network: Network
    recipe: Recipe
    loss: object = "ce"
    strength: float | None = None
    targets: object = Observed()
    init_seed: int = 0
    start: "Job | None" = None
    tuned: tuple = field(default=(), compare=False)
    place: tuple = field(default=(0, 0, 0), compare=False)
    teachers: tuple = ()
    fold: tuple | None = None


def plan(methods, profile, seed=0, network=None, rows=METHODS):
    """Say which trainings the rows of a table need.

    Parameters
    ----------
    methods : iterable of str
        Names in `rows`.
    profile : Profile
        Sizes and grids.
    seed : int, default=0
        Seed of weights, order and resampled labels.
    network : Network, optional
        From `probnb.training.models.network`; by default the profile's ResNet-18.
    rows : mapping of str to Method, default=METHODS
        The rows by name, where they are one's own.

    Returns
    -------
    dict of str to list of Job
        For each row the candidates among which validation cross entropy chooses; an ensemble has
        every candidate once for each member. Post-processing rows have the candidates of the row
        that they calibrate.

    Examples
    --------
    >>> from probnb.experiment.profiles import make_profile
    >>> jobs = plan(["ce", "platt"], make_profile("smoke"))
    >>> jobs["ce"] == jobs["platt"]
    True
    """
    seed = check_integer(seed, "seed", minimum=0)
    if network is not None and not isinstance(network, Network):
        raise TypeError(f"network must come from probnb.training.models.network; got {network!r}.")
    if network is not None and profile.backbone != "none":
        raise ValueError(
            f"backbone must be none for a network of one's own; got {profile.backbone!r}."
        )
    if network is None and profile.backbone == "none":
        network = _network("resnet18", width=profile.width, stem=profile.stem)
    head = {"hidden": (profile.width,), "dropout": profile.dropout}
    if profile.tune:
        network = _network("pretrained", backbone=profile.backbone, layers=profile.layers, **head)
    network = network or _network("mlp", **head)
    jobs = {}
    for name in methods:
        members = range(min(rows[name].members, profile.members))
        each = (_candidates(rows[name], profile, network, seed, member) for member in members)
        jobs[name] = [job for candidates in each for job in candidates]
    return jobs


def before(job):
    """Return the trainings that a job waits for: its start and its teachers."""
    return [*([job.start] if job.start else []), *job.teachers]


def lineage(job):
    """Return everything that a job rests on, and itself, each after what it rests on."""
    return list(dict.fromkeys([*(step for one in before(job) for step in lineage(one)), job]))


def _candidates(method, profile, network, seed, member):
    """Trainings of one member of a row: one for each start and each combination of its grid."""
    jobs, starts = [], [None]
    if method.recipe.get("solver") == "convex":
        network = _network("mlp", hidden=())
    if method.start is not None:
        starts = _candidates(METHODS[method.start], profile, network, seed, member)
    grid, teachers = _grid(method, profile), _teachers(method, profile, network, seed)
    for start, values in itertools.product(starts, itertools.product(*grid.values())):
        settings = dict(zip(grid, values))
        stage = 0 if start is None else start.place[2] + 1
        targets = _targets(method.targets, settings, profile)
        strength = settings.get(method.loss) if isinstance(method.loss, str) else None
        if method.loss == "ce" and getattr(targets, "share", 0) < 0:
            strength = -targets.share  # how far beyond [0, 1] the targets lie
        jobs.append(
            Job(
                start.network if start else network,
                _recipe(method, profile, settings, sub_seed(seed, member, stage), member),
                loss=method.loss,
                strength=strength,
                targets=targets,
                init_seed=sub_seed(seed, member),
                start=start,
                tuned=(*(start.tuned if start else ()), *settings.items()),
                place=(seed, member, stage),
                teachers=teachers,
            )
        )
    return jobs


def _teachers(method, profile, network, seed):
    """The networks that a row's targets come from: of a row as it is, or on folds."""
    if method.teachers is None:
        return ()
    row, teachers = METHODS[method.teachers], []
    for member in range(method.folds * method.repeats or min(row.members, profile.members)):
        job, *others = _candidates(row, profile, network, seed, member)
        if others:
            raise ValueError(f"teachers must be a row with one candidate; got {method.teachers!r}.")
        if method.folds:
            repeat, which = divmod(member, method.folds)
            job = replace(job, fold=(which, method.folds, seed + repeat))
            # Cross entropy without an end is for figures.
            if (job.recipe.solver, job.recipe.schedule) == ("sgd", "plateau"):
                job = replace(job, recipe=replace(job.recipe, patience=profile.patience))
        teachers.append(job)
    return tuple(teachers)


def _grid(method, profile):
    """The values that a row tries: the profile's where it has some, else its own first ones."""
    own = {name: values[: profile.candidates] for name, values in method.grid.items()}
    return own | {name: v for name, v in profile.grid.items() if name in method.tunable}


def _targets(name, settings, profile):
    """The schedule of a row, with the published setting that the profile names."""
    if not isinstance(name, str):
        return name
    published = CAPE[profile.cape].get(name, {})
    given = {key: value for key, value in settings.items() if key in TARGETS[name]}
    return schedules.TARGETS[name](**(published | given))


def _recipe(method, profile, settings, seed, member):
    """The recipe of a row: the profile's, and what the row says of its own."""
    if method.recipe.get("solver") == "convex":  # which uses nothing of a profile
        return Recipe(**method.recipe)
    shared = {k: getattr(profile, k) for k in ("batch_size", "plateau_patience", "weight_decay")}
    usual = Recipe(seed=seed, **shared)
    if method.start is not None:
        own = {"epochs": profile.finetune_epochs, "schedule": profile.finetune_schedule}
        own["learning_rate"] = settings.get("finetune_learning_rate", 1e-2)
        return replace(usual, **own | method.recipe)
    adversarial = profile.adversarial if method.members > 1 else 0.0
    plain = method.loss == "ce" and method.targets == "observed"
    plain = plain and not (member or adversarial or method.recipe)
    # Plain cross entropy goes on to overfit, for the figures; resampled labels leave nothing to
    # memorise, so that nothing need be stopped and the rate falls to 0 as planned.
    endless = plain or method.targets == "resampled" or method.epoch == "last"
    endless = endless or method.recipe.get("schedule") == "cosine"  # whose end is the point
    own = {"epochs": profile.epochs, "learning_rate": profile.learning_rate}
    own["schedule"] = "cosine" if method.targets == "resampled" else "plateau"
    own["patience"] = None if endless else profile.patience
    return replace(usual, adversarial=adversarial, **own | method.recipe)


def sub_seed(seed, *place):
    """Return the seed of a member and stage; `seed` itself for the first of all."""
    if not any(place):
        return seed
    return int(np.random.SeedSequence([seed, *place]).generate_state(1)[0])


def job_key(job, splits, device="cpu", precision="bf16-mixed"):
    """Return the hash under which the result of a job is stored.

    A field of a dataclass that came later is marked ``metadata={"later": True}``: it is part of the
    key where it is not at its default, so that what was trained before keeps its name.

    Parameters
    ----------
    job : Job
        The training.
    splits : Splits
        The data, by their digest.
    device, precision : str
        As `probnb.training.batches` names them.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    key = partial(job_key, splits=splits, device=device, precision=precision)
    facts = {
        "format": 2,
        "data": splits.digest,
        "device": device,
        "precision": precision,
        "network": [job.network.name, dict(job.network.settings)],
        "recipe": _fields(job.recipe),
        "loss": configuration(job.loss),
        "strength": job.strength,
        "targets": configuration(job.targets),
        "init_seed": job.init_seed,
        "start": key(job.start) if job.start else None,
    }
    later = {
        "augment": [configuration(step) for step in splits.train.augment],
        "teachers": [key(one) for one in job.teachers],
        "fold": list(job.fold or ()),
    }
    return store.key(facts | {name: value for name, value in later.items() if value})


def configuration(value):
    """Say what a loss, a schedule or an augmentation is, as JSON can hold it.

    ValueError where that cannot be said: what has settings must be a frozen dataclass.
    """
    if isinstance(value, str):
        return value
    named = hasattr(value, "__qualname__")  # a function or a class, else an instance
    if getattr(value, "__closure__", None) or not (named or is_dataclass(value)):
        raise ValueError(
            f"{value!r} must be a plain function or a frozen dataclass, so that its settings are "
            "part of the name of what is trained with it."
        )
    kind = value if named else type(value)
    ours = kind.__module__.split(".")[0] in ("probnb", "probnb_book")
    name = kind.__qualname__ if ours else f"{kind.__module__}.{kind.__qualname__}"
    return [name, {} if named else _fields(value)]


def _fields(value):
    return {
        f.name: getattr(value, f.name)
        for f in fields(value)
        if not f.metadata.get("later") or getattr(value, f.name) != f.default
    }
