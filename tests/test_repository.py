"""What the repository promises about itself: docstrings, notebooks, pins, pages."""

import ast
import importlib
import itertools
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jupytext
import nbformat
import pytest
import yaml
from packaging.requirements import Requirement

import probnb
import probnb_book
from probnb.experiment.profiles import PROFILE_FIELDS

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
NOTEBOOKS = sorted(BOOK.glob("*.ipynb"))
MODULES = {m.name for m in pkgutil.walk_packages(probnb.__path__, "probnb.")}
MODULES |= {m.name for m in pkgutil.walk_packages(probnb_book.__path__, "probnb_book.")}


def tracked():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def test_lines_are_packed_in_few_places():
    """Where ruff is kept from a statement it is a table of data."""
    sources = [path for path in tracked() if path.suffix == ".py" and path.is_file()]
    packed = sum(path.read_text().count("  # fmt: " + "skip") for path in sources)
    assert len(sources) > 200 and packed <= 20


def test_the_page_of_the_library_names_modules_that_exist():
    listed = re.findall(r"automodule:: (\S+)", (BOOK / "api.md").read_text())
    assert len(listed) == len(set(listed)) > 20
    assert set(listed) <= {"probnb", *MODULES}
    missing = [
        f"{name}.{public}"
        for name in listed
        for public in getattr(importlib.import_module(name), "__all__", ())
        if not hasattr(importlib.import_module(name), public)
    ]
    assert not missing


def contracts(folder):
    """What import-linter says of the contracts in pyproject."""
    pytest.importorskip("importlinter")
    command = [sys.executable, "-c", "import importlinter.cli as c; c.lint_imports_command()"]
    paths = os.pathsep.join([str(folder), str(folder / "book")])
    environment = os.environ | {"PYTHONPATH": paths, "COLUMNS": "200"}
    done = subprocess.run(
        [*command, "--no-cache"], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.returncode, " ".join(done.stdout.split())


WRONG = {
    "probnb/training/cape.py": ("from ..experiment import plan", "probnb.training.cape ->"),
    "probnb/metrics/votes.py": ("import matplotlib.pyplot", "probnb.metrics.votes ->"),
    "probnb/store.py": ("def f():\n    import timm", "probnb.store ->"),
    "probnb/tables.py": ("import probnb_book.scenarios", "probnb.tables ->"),
    "probnb/metrics/sample.py": ("from .registry import brier", ".sample -> .registry"),
    "book/probnb_book/published.py": ("from . import evidence", ".published ->"),
}


def test_a_wrong_import_is_told(tmp_path):
    for package in ("probnb", "book/probnb_book"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, (line, _) in WRONG.items():
        path = tmp_path / file
        path.write_text(f"{path.read_text()}\n{line}\n")
    (tmp_path / "probnb" / "room.py").touch()  # of which no contract says where it belongs
    status, text = contracts(tmp_path)
    told = [*(broken for _, broken in WRONG.values()), "probnb.room"]
    assert status == 1 and all(broken in text for broken in told), text


def test_every_chapter_is_in_the_contents_and_paired():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [c["file"] for part in contents["parts"] for c in part["chapters"]]
    for chapter in [contents["root"], *chapters]:
        assert (BOOK / f"{chapter}.md").exists() or (BOOK / f"{chapter}.ipynb").exists()
    assert {f.stem for f in NOTEBOOKS} <= set(chapters)
    assert {f.stem for f in NOTEBOOKS} == {f.stem for f in BOOK.glob("*.py")} - {"conftest"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_and_its_python_twin_are_the_same(path):
    def cells(notebook):
        return [
            (c["cell_type"], c["source"], sorted(c["metadata"].get("tags", [])))
            for c in notebook["cells"]
        ]

    assert cells(jupytext.read(path)) == cells(jupytext.read(path.with_suffix(".py")))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_checks_its_parameters_first(path):
    code = [c for c in jupytext.read(path)["cells"] if c["cell_type"] == "code"]
    tags = [c["metadata"].get("tags", []) for c in code]
    at = int("parameters" not in tags[0])  # those that few change may stand before it
    tagged = [i for i, names in enumerate(tags) if "parameters" in names]
    assert tagged == [at], "the first code cell holds the parameters"
    given = [node for cell in code[: at + 1] for node in ast.parse(cell["source"]).body]
    assert all(isinstance(node, ast.Assign) for node in given)
    assigned = {target.id for node in given for target in node.targets}
    check = code[at + 1]["source"]
    calls = [
        node
        for node in ast.walk(ast.parse(check))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check_parameters"
    ]
    assert len(calls) == 1, "the next code cell checks them"
    named = [n.value for n in ast.walk(calls[0].args[1]) if isinstance(n, ast.Constant)]
    fields = PROFILE_FIELDS if "profiles.PROFILE_FIELDS" in check else ()  # all may be overridden
    assert {*" ".join(named).split(), *fields} == assigned
    assert "import torch" not in check


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_figure_says_what_it_shows(path):
    drawn = re.compile(r"^ *(ax|axes|facets|figure|grid) = ", re.MULTILINE)
    cells = [c for c in jupytext.read(path)["cells"] if c["cell_type"] == "code"]
    for cell in (c for c in cells if drawn.search(c["source"])):
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        assert 40 < len(alt) < 300, cell["source"]


def test_pins_satisfy_what_the_package_asks_for():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert list(pins) == sorted(pins, key=str.lower)
    pins = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    del extras["spark"]  # what it brings is the cluster's own to choose
    del extras["larger"]
    for line in itertools.chain(project["dependencies"], *extras.values()):
        requirement = Requirement(line)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert requirement.specifier.contains(pins[name]), f"{line}, pinned {pins[name]}"


def test_errata_name_checks_that_exist():
    text = (BOOK / "errata.md").read_text()
    named = re.findall(r"`(test_\w+)\.py::(\w+)`", text)
    assert named
    for file, function in named:
        (path,) = (ROOT / "tests").rglob(f"{file}.py")
        source = path.read_text()
        assert f"def {function}(" in source, f"{file}.py::{function}"


def test_commands_are_the_same_everywhere():
    readme, ci = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    for command in ("make run", "make test"):
        assert command in readme
    assert "make test" in ci


def test_no_photograph_and_no_path_of_a_machine_is_tracked():
    private = re.compile(rb"/(?:home|root|Users|mnt)/\w")
    for path in tracked():
        assert path.suffix.lower() not in {".jpg", ".jpeg", ".gz", ".pt", ".pkl"}, path
        if path.is_file():
            content = path.read_bytes()
            stored = path.suffix == ".parquet"  # one file a study
            assert len(content) < (50_000_000 if stored else 2_000_000), path
            assert not private.search(content), path


def test_built_pages_load_nothing_from_a_network():
    pages = sorted((BOOK / "_build" / "html").glob("*.html"))
    if not pages:
        pytest.skip("the book is not built")
    tag = re.compile(
        r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)\s*=\s*[\"']?(?:https?:)?//"
    )
    for page in pages:
        assert not tag.search(page.read_text()), page.name


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_benchmarks_ask_for_what_there_is(path):
    """They are not run with the tests, so that a renamed function would go unnoticed."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("probnb"):
            module = importlib.import_module(node.module)
            missing = [a.name for a in node.names if not hasattr(module, a.name)]
            assert not missing, f"{node.module} has no {', '.join(missing)}"
