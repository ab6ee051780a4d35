"""From rows of a table to trainings: which ones each row needs, each of them data.

Rows that read the same training share its `Job`, and a job's hash names its stored result.
"""

from __future__ import annotations

import itertools
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace

import numpy as np

from .. import store
from ..data.augment import Mirror
from ..methods import METHODS, TARGETS
from ..training import targets as schedules
from ..training.loop import Recipe
from ..training.models import Network, network
from ..training.targets import Observed

__all__ = ["Job", "job_key", "legacy", "plan", "sub_seed"]


@dataclass(frozen=True)
class Job:
    """One training: everything that `probnb.training.fit` needs but the data.

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
    """

    network: Network
    recipe: Recipe
    loss: object = "ce"
    strength: float | None = None
    targets: object = Observed()
    init_seed: int = 0
    start: Job | None = None
    tuned: tuple = field(default=(), compare=False)
    place: tuple = field(default=(0, 0, 0), compare=False)


def plan(methods, profile, seed=0, network=None):
    """Say which trainings the rows of a table need.

    Parameters
    ----------
    methods : iterable of str
        Names in `probnb.methods.METHODS`.
    profile : Profile
        Sizes and grids.
    seed : int, default=0
        Seed of weights, order and resampled labels.
    network : Network, optional
        From `probnb.training.models.network`; by default the profile's ResNet-18.

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
    network = network or _resnet(profile)
    return {
        name: [
            job
            for member in range(_members(METHODS[name], profile))
            for job in _candidates(METHODS[name], profile, network, seed, member)
        ]
        for name in methods
    }


def _resnet(profile):
    return network("resnet18", width=profile.width, stem=profile.stem)


def _members(method, profile):
    return min(method.members, profile.members) if method.members > 1 else 1


def _candidates(method, profile, network, seed, member):
    """Trainings of one member of a row: one for each start and each combination of its grid."""
    jobs = []
    starts = [None]
    if method.start is not None:
        starts = _candidates(METHODS[method.start], profile, network, seed, member)
    grid = _grid(method, profile)
    for start, values in itertools.product(starts, itertools.product(*grid.values())):
        settings = dict(zip(grid, values))
        stage = 0 if start is None else start.place[2] + 1
        targets = _targets(method.targets, settings, profile)
        jobs.append(
            Job(
                network,
                _recipe(method, profile, settings, sub_seed(seed, member, stage), member),
                loss=method.loss,
                strength=settings.get(method.loss) if isinstance(method.loss, str) else None,
                targets=targets,
                init_seed=sub_seed(seed, member),
                start=start,
                tuned=(*(start.tuned if start else ()), *settings.items()),
                place=(seed, member, stage),
            )
        )
    return jobs


def _grid(method, profile):
    """The values that a row tries: the profile's where it has some, else its own first ones."""
    fitting = {method.loss} if isinstance(method.loss, str) else set()
    if isinstance(method.targets, str):
        fitting |= {*TARGETS[method.targets]}
    if method.start is not None:
        fitting.add("finetune_learning_rate")
    own = {name: values[: profile.candidates] for name, values in method.grid.items()}
    return own | {name: values for name, values in profile.grid.items() if name in fitting}


def _targets(name, settings, profile):
    """The schedule of a row, with the published setting that the profile names."""
    if not isinstance(name, str):
        return name
    published = schedules.CAPE[profile.cape].get(name, {})
    given = {key: value for key, value in settings.items() if key in TARGETS[name]}
    return schedules.TARGETS[name](**(published | given))


def _recipe(method, profile, settings, seed, member):
    if method.start is not None:
        return Recipe(
            epochs=profile.finetune_epochs,
            batch_size=profile.batch_size,
            learning_rate=settings.get("finetune_learning_rate", 1e-2),
            schedule=profile.finetune_schedule,
            plateau_patience=profile.plateau_patience,
            seed=seed,
        )
    adversarial = profile.adversarial if method.members > 1 else 0.0
    plain = method.loss == "ce" and method.targets == "observed" and not (member or adversarial)
    # Plain cross entropy goes on to overfit, for the figures; resampled labels leave nothing to
    # memorise, so that nothing need be stopped and the rate falls to 0 as planned.
    endless = plain or method.targets == "resampled" or method.epoch == "last"
    return Recipe(
        epochs=profile.epochs,
        batch_size=profile.batch_size,
        learning_rate=profile.learning_rate,
        schedule="cosine" if method.targets == "resampled" else "plateau",
        plateau_patience=profile.plateau_patience,
        patience=None if endless else profile.patience,
        adversarial=adversarial,
        seed=seed,
    )


def sub_seed(seed, *place):
    """Return the seed of a member and stage; `seed` itself for the first of all."""
    if not any(place):
        return seed
    return int(np.random.SeedSequence([seed, *place]).generate_state(1)[0])


def legacy(job):
    """Return the job with the seeds that versions before 0.2 derived, under which work may lie."""
    seed, member, stage = job.place
    first = seed + 1000 * member
    return replace(
        job,
        init_seed=first,
        recipe=replace(job.recipe, seed=first + 500_000 * stage),
        start=job.start and legacy(job.start),
    )


_ALWAYS = {
    "Recipe": (
        "epochs batch_size learning_rate momentum weight_decay schedule plateau_patience patience "
        "adversarial seed"
    ),
    "Calibrated": "estimator every phase mix bins neighbours sigma",
}
"""Fields that are part of every key. A field that came later is part of it where it is not at its
default, so that what was trained before keeps its name."""


def job_key(job, source, device="cpu", precision="bf16-mixed"):
    """Return the hash under which the result of a job is stored.

    Parameters
    ----------
    job : Job
        The training.
    source : str or Splits
        The data, or the text that identifies data without augmentation.
    device, precision : str
        As `probnb.training.batches` names them.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    text, augment = (source, ()) if isinstance(source, str) else (source.source, _augment(source))
    recipe = {**_described(job.recipe), "flip": augment == (Mirror(),)}
    configuration = {
        "format": 1,
        "source": text,
        "device": device,
        "precision": precision,
        **_network(job.network),
        "recipe": recipe,
        "loss": job.loss if isinstance(job.loss, str) else _object(job.loss),
        "strength": job.strength,
        "targets": _object(job.targets),
        "init_seed": job.init_seed,
        "start": job.start and job_key(job.start, source, device, precision),
    }
    if augment not in ((), (Mirror(),)):
        configuration["augment"] = [_object(step) for step in augment]
    return store.key(configuration)


def _augment(splits):
    return tuple(splits.train.augment)


def _network(network):
    settings = dict(network.settings)
    if network.kind == "resnet18" and set(settings) <= {"width", "stem"}:
        return {"width": 64, "stem": "large"} | settings
    return {"network": [network.name, settings]}


def _object(value):
    """What a loss, a schedule or an augmentation is, as JSON can hold it."""
    kind = value if hasattr(value, "__qualname__") else type(value)  # a function, or an instance
    ours = kind.__module__.startswith("probnb.")
    name = kind.__qualname__ if ours else f"{kind.__module__}.{kind.__qualname__}"
    return [name, _described(value)]


def _described(value):
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    always = _ALWAYS.get(type(value).__name__, "").split()
    return {
        f.name: getattr(value, f.name)
        for f in fields(value)
        if f.name in always or f.default is MISSING or getattr(value, f.name) != f.default
    }
