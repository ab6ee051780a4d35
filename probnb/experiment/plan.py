"""From rows of a table to trainings: which ones each row needs, each of them data.

Rows that read the same training share its `Job`, and a job's hash names its stored result.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from .. import store
from ..methods import METHODS
from ..training.loop import Recipe
from ..training.targets import Calibrated, Observed, Resampled

__all__ = ["Job", "job_key", "plan"]


@dataclass(frozen=True)
class Job:
    """One training: everything that `probnb.training.loop.fit` needs but the data.

    Parameters
    ----------
    width : int
        Width of ResNet-18.
    stem : str
        Stem of ResNet-18.
    recipe : Recipe
        Optimiser, schedule, epochs and seed.
    loss : str, default="ce"
        Name in `probnb.training.losses.LOSSES`.
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
    >>> from probnb.experiment.profiles import make_profile
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
