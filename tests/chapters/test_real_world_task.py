import ast
from dataclasses import replace
from pathlib import Path

import jupytext
import pytest

from probnb.chapters.real_world.task import TASKS, Task, get_task
from probnb.experiment.profiles import PROFILES

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = ROOT / "probnb" / "chapters" / "real_world"
AVAILABLE = [name for name in TASKS if (CHAPTER / f"{name}.py").exists()]


def task(**changes):
    given = dict.fromkeys(
        ("name", "title", "question", "load", "network", "cluster", "scenario", "attribution")
    )
    return Task(**{**given, "name": "weather", "describe": None, **changes})


def test_a_task_changes_a_profile_and_a_person_changes_the_task():
    own = task(profiles={"quick": dict(size=16, images=None)})
    assert own.profile("quick") == replace(PROFILES["quick"], size=16, images=None)
    changed = own.profile("quick", dict(size="20", images=500, epochs=None, other=3))
    assert changed == replace(PROFILES["quick"], size=20, images=500)
    assert own.profile("cpu") == PROFILES["cpu"]
    with pytest.raises(ValueError, match="size must be"):
        own.profile("quick", dict(size=-1))


def test_parameters_have_defaults_and_smaller_ones_for_tests():
    own = task(parameters=dict(tile=95, source="radar"), smoke=dict(source="simulated"))
    assert own.given({}) == dict(tile=95, source="radar")
    assert own.given(dict(tile=64, rule=None)) == dict(tile=64, source="radar")
    assert own.given({}, "smoke") == dict(tile=95, source="simulated")
    assert own.given(dict(source="radar"), "smoke")["source"] == "radar"
    with pytest.raises(ValueError, match=r"rule must be left at None for task 'weather'.*tile"):
        own.given(dict(rule="ipcw"))


def test_unknown_task():
    with pytest.raises(ValueError, match="task must be one of weather, cancer, collision"):
        get_task("wether")


@pytest.mark.parametrize("name", AVAILABLE)
def test_tasks_are_whole(name):
    own = get_task(name)
    assert own.name == name
    assert own.question.strip() and own.attribution.strip()
    for profile in PROFILES:
        own.profile(profile)
    assert set(own.smoke) <= set(own.parameters)


def test_the_notebook_has_every_task_s_parameters():
    cells = jupytext.read(ROOT / "book" / "real_world.py")["cells"]
    source = "\n".join(c["source"] for c in cells if c["cell_type"] == "code")
    calls = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict"
    ]
    own = {keyword.arg for call in calls for keyword in call.keywords}
    for name in AVAILABLE:
        assert set(get_task(name).parameters) <= own, f"{name} has parameters the notebook lacks"
