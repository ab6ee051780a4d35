"""What the notebook on real data needs of a task: its data, its network, its words.

A task is data, as a method is. Its module (`weather`, `cancer`, `collision` beside this one) holds
one `Task` named ``TASK`` and imports torch inside functions only, so that the notebook can check
its parameters in its first second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

from ...experiment.profiles import PROFILE_FIELDS, profile_of
from ...validation import check_choice

__all__ = ["TASKS", "Task", "get_task"]

TASKS = ("weather", "cancer", "collision")
"""Names that the notebook's parameter ``task`` takes; also the paper's in `probnb.published`."""


@dataclass(frozen=True)
class Task:
    """One problem of Section 7.2.

    Parameters
    ----------
    name : str
        One of `TASKS`; the key of its numbers in `probnb.published.published` and of its folder of
        results.
    title : str
        What the page calls it.
    question : str
        Markdown: what goes in, what is asked, how the outcome is defined.
    load : callable
        ``load(data_dir, profile, seed, **parameters)`` returns `probnb.data.base.Splits`.
        `data_dir` is a path or None, which means what anybody can have. ``report`` of the splits
        holds counts worth telling and whatever `references` and `figures` need beyond the inputs;
        ``groups`` of every part are the clusters that intervals resample; ``probabilities`` where
        the data are simulated.
    network : callable
        ``network(profile, splits)`` returns the network's specification, a
        `probnb.training.models.Network`.
    cluster : str
        What a group is, in the singular: ``"day"``, ``"patient"``, ``"scene"``.
    scenario : str
        The synthetic scenario that the paper says the task resembles.
    attribution : str
        Markdown: whose data these are, and under which terms.
    describe : callable
        ``describe(splits)`` returns Markdown: sizes, base rates and everything counted on the way.
    profiles : mapping of str to mapping
        For each profile's name the values that this task replaces in it.
    parameters : mapping of str to object
        The notebook's parameters that are this task's own, with their defaults; `load` takes them
        by name.
    smoke : mapping of str to object
        Defaults of some of them at profile ``"smoke"``: data that need no download.
    references : callable, optional
        ``references(splits, seed=0)`` returns predictions of simple models, fitted to the training
        part, for the rows of the test part: a mapping of label to array of shape (n_test,).
    picture : callable, optional
        ``picture(splits)`` draws some inputs; it must show no photograph of a person and nothing
        that may not be published.
    page : callable, optional
        ``page(splits, predictions)`` draws the figures that only this task has; `predictions` is
        the table of this run's test part, one column a method or reference.
    across : callable, optional
        ``across(table)`` draws what needs the test rows of all seeds; see `runs.pool`.
    """

    name: str
    title: str
    question: str
    load: Callable
    network: Callable
    cluster: str
    scenario: str
    attribution: str
    describe: Callable
    profiles: Mapping = field(default_factory=dict)
    parameters: Mapping = field(default_factory=dict)
    smoke: Mapping = field(default_factory=dict)
    references: Callable | None = None
    picture: Callable | None = None
    page: Callable | None = None
    across: Callable | None = None

    def profile(self, name, namespace=None):
        """Return the settings of a profile as this task changes them, then as a person does.

        Parameters
        ----------
        name : str
            Name of a profile.
        namespace : dict, optional
            The notebook's ``globals()``: those of `probnb.experiment.profiles.PROFILE_FIELDS` that
            are not None replace the task's values.

        Returns
        -------
        probnb.experiment.profiles.Profile
            The settings, checked.
        """
        own = self.profiles.get(name, {})
        given = {
            key: value
            for key, value in (namespace or {}).items()
            if key in PROFILE_FIELDS and value is not None
        }
        settings = profile_of(name, {**own, **given})
        # None is a value where a task has it: all images, not as many as the profile has.
        nothing = {key: None for key, value in own.items() if value is None and key not in given}
        return replace(settings, **nothing)

    def given(self, values, profile="quick"):
        """Return the task's own parameters, with defaults where `values` has None.

        Parameters
        ----------
        values : mapping of str to object
            Parameters of any of the tasks, None where a person gave none.
        profile : str, default="quick"
            Name of the profile; at ``"smoke"`` some defaults differ.

        Returns
        -------
        dict
            Value by name, for every entry of `parameters`.

        Raises
        ------
        ValueError
            If a value was given for what another task takes, which would have no effect.
        """
        stray = [k for k, v in values.items() if v is not None and k not in self.parameters]
        if stray:
            own = ", ".join(self.parameters) or "none of its own"
            raise ValueError(
                f"{stray[0]} must be left at None for task {self.name!r}, which takes {own}; got "
                f"{values[stray[0]]!r}."
            )
        defaults = {**self.parameters, **(self.smoke if profile == "smoke" else {})}
        return {
            name: default if values.get(name) is None else values[name]
            for name, default in defaults.items()
        }


def get_task(name):
    """Return a task by name.

    Parameters
    ----------
    name : {"weather", "cancer", "collision"}
        Which one.

    Returns
    -------
    Task
        What the notebook runs.

    Raises
    ------
    ValueError
        If there is no such task.
    """
    return import_module(f"{__package__}.{check_choice(name, TASKS, 'task')}").TASK
