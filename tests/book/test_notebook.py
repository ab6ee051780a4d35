import re
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest

from probnb.paths import find_path
from probnb_book.notebook import check_parameters, default_profile, results_path

from .pages import ROOT


@pytest.mark.parametrize(
    "name", ["sed", "_bins", "__bins", "_i_x", "bins_", "_seed", "_x1", "___x"]
)
def test_a_name_with_an_underscore_is_no_way_around(name):
    with pytest.raises(ValueError, match=f"got '{name}'"):
        check_parameters({"bins": 15, name: 5}, "bins seed")


def test_what_ipython_and_papermill_define_is_let_through():
    own = ["In", "Out", "_", "__", "___", "_dh", "_oh", "_ih", "_i", "_ii", "_iii", "_i1", "_12",
           "_exit_code", "__builtins__", "__name__", "__doc__", "__vsc_ipynb_file__",
           "PAPERMILL_OUTPUT_PATH"]  # fmt: skip
    check_parameters(dict.fromkeys(own, "x") | {"sys": sys, "f": len}, ["bins"])


def test_papermills_strings_are_undone_but_digits_stay_text():
    given = {"TRUE": True, "False": False, " none ": None, "None": None, "null": None, "": None}
    given |= {word: word for word in ("15", "1e-3", "no", "linear", 0)}
    names = {f"p{k}": word for k, word in enumerate(given)}
    check_parameters(names, [*names])
    assert [*names.values()] == [*given.values()]


def test_the_default_profile_follows_the_environment(monkeypatch):
    monkeypatch.delenv("PROBNB_SMOKE", raising=False)
    assert default_profile(None) == "quick" and default_profile(None, "cpu") == "cpu"
    monkeypatch.setenv("PROBNB_SMOKE", "1")
    assert default_profile(None) == "smoke" and default_profile("quick") == "quick"
    monkeypatch.setenv("PROBNB_SMOKE", "yes")
    with pytest.raises(ValueError, match="PROBNB_SMOKE must be one of"):
        default_profile(None)


def test_one_rule_for_all_paths(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "mine.csv").touch()
    (tmp_path / "stored").mkdir()
    for folder in (tmp_path, tmp_path / "book"):
        monkeypatch.chdir(folder)
        assert find_path("mine.csv", "data").resolve() == tmp_path / "mine.csv"
        for name in ("stored", "new"):  # one that is there, one that will be made
            assert results_path(name).resolve() == tmp_path / name
        with pytest.raises(ValueError, match=r"results_dir must be a folder; .*' is a file"):
            results_path("mine.csv")
    (tmp_path / "book" / "mine.csv").touch()
    assert find_path("mine.csv", "data") == Path("mine.csv")
    assert find_path(str(tmp_path), "data") == tmp_path
    with pytest.raises(FileNotFoundError, match=r"data must be .* found none at .* and .*no\.csv"):
        find_path("no.csv", "data")
    for bad in (5, True, "", " ", "a\0b", ["x"]):
        for function in (find_path, lambda path, name: results_path(path)):
            with pytest.raises(ValueError, match="must be the path of a file or folder"):
                function(bad, "data")


def test_where_results_lie_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT / "book")
    assert results_path() == ROOT / "runs"
    monkeypatch.setenv("PROBNB_SMOKE", "1")
    assert results_path() == ROOT / "_smoke"
    monkeypatch.setenv("PROBNB_SMOKE", "0")
    monkeypatch.chdir(tmp_path)
    assert results_path() == tmp_path / "runs"


def test_checking_parameters_needs_no_torch():
    """So that a wrong parameter stops a notebook in its first second."""
    code = (
        "import sys, probnb.methods, probnb.settings, probnb.experiment.profiles;"
        "import probnb_book.notebook, probnb_book.scenarios, probnb_book.ablations.rows;"
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("synthetic scenario linaer", "scenario must be one of linear, sigmoid, centered, skewed"),
        ("synthetic profile big", "profile must be one of smoke, quick, features, finetune, cpu"),
        ("synthetic methods plat", "Did you mean 'platt'?"),
        ("synthetic epocs 3", "Did you mean 'epochs'?"),
        ("synthetic data_dir nowhere", "data_dir must be an existing file or folder"),
        ("synthetic seed -1", "seed must be an integer of at least 0"),
        ("ablations studies targts", "Did you mean 'targets'?"),
        ("ablations scenario linaer", "scenario must be one of"),
        ("ablations profile big", "profile must be one of smoke, quick, features, cpu"),
        ("ablations data_dir nowhere", "data_dir must be an existing"),
        ("ablations seed -1", "seed must be an integer of at least 0"),
        ("ablations retrain 3", "retrain must be one of True, False"),
        ("ablations epochs 3", "parameter must be one of"),
    ],
)
def test_a_notebook_refuses_bad_parameters(parameter, message):
    """In the cell after its parameters, as papermill would change them."""
    page, name, value = parameter.split()
    cells = jupytext.read(ROOT / "book" / f"{page}.py")["cells"]
    code = [c for c in cells if c["cell_type"] == "code"]
    at = next(i for i, c in enumerate(code) if "parameters" in c["metadata"].get("tags", []))
    kernel = {}
    exec("\n".join(c["source"] for c in code[: at + 1]), kernel)
    kernel[name] = int(value) if value.lstrip("-").isdigit() else value
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
        exec(code[at + 1]["source"], kernel)


@pytest.mark.parametrize("value", [2, True, 2020, 0.5])
def test_names_that_papermill_took_for_values_are_to_be_given_as_text(value):
    """A folder may be called 02, yes or 2020."""
    with pytest.raises(ValueError, match=r"positive must be text; got .*-r positive NAME"):
        check_parameters({"positive": value, "seed": 0}, "positive seed", text="positive")


@pytest.mark.parametrize("value", ["true", "None", "02", "", None])
def test_names_stay_as_they_are(value):
    namespace = {"positive": value, "mirror": "true"}
    check_parameters(namespace, "positive mirror", text=["positive"])
    assert namespace == {"positive": value, "mirror": True}


def test_a_page_can_be_run_twice_in_one_kernel():
    kernel = {"seed": 0, "get_ipython": print}
    check_parameters(kernel, "seed")
    kernel |= {"outcome": 1, "mirror": "true"}  # of the page's own, after its first cell
    check_parameters(kernel, "seed mirror")
    assert kernel["mirror"] is True
    with pytest.raises(ValueError, match="got 'outcome'"):
        check_parameters({"seed": 0, "outcome": 1}, "seed")
