import subprocess
import sys
import types
from pathlib import Path

import pytest

from probnb.notebook import check_parameters, check_path, results_path

ROOT = Path(__file__).resolve().parent.parent


def test_known_parameters_pass_and_strings_become_values():
    names = {"seed": 0, "methods": "None", "flag": "true", "other": "False", "scenario": "linear"}
    check_parameters(names, "seed methods flag other scenario")
    assert names == {"seed": 0, "methods": None, "flag": True, "other": False, "scenario": "linear"}


def test_what_a_notebook_has_anyway_is_not_a_parameter():
    namespace = {"_i1": "x", "In": [], "Out": {}, "sys": sys, "f": len, "__name__": "__main__"}
    check_parameters(namespace, ["seed"])


def test_a_misspelt_name_stops_with_the_nearest():
    with pytest.raises(ValueError, match="got 'sed'"):
        check_parameters({"sed": 1}, "seed scenario")


def test_paths(tmp_path, monkeypatch):
    assert check_path(None, "data_dir") is None
    assert check_path(str(tmp_path), "data_dir") == tmp_path
    with pytest.raises(FileNotFoundError, match="data_dir must be an existing"):
        check_path(tmp_path / "no", "data_dir")
    assert results_path("here") == Path("here")
    monkeypatch.chdir(ROOT / "book")
    assert results_path() == ROOT / "runs"
    monkeypatch.chdir(tmp_path)
    assert results_path() == tmp_path / "runs"


def test_checking_parameters_needs_no_torch():
    """So that a wrong parameter stops a notebook in its first second."""
    code = (
        "import sys, probnb.notebook, probnb.methods, probnb.experiment.profiles, probnb.scenarios;"
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("scenario linaer", "scenario must be one of linear, sigmoid, centered, skewed, discrete"),
        ("profile big", "profile must be one of smoke, quick, cpu, paper"),
        ("methods plat", "Did you mean 'platt'?"),
        ("epocs 3", "Did you mean 'epochs'?"),
        ("data_dir nowhere", "data_dir must be an existing file or folder"),
        ("seed -1", "seed must be an integer of at least 0"),
    ],
)
def test_the_synthetic_notebook_refuses_bad_parameters(tmp_path, parameter, message):
    import papermill
    from papermill.exceptions import PapermillExecutionError

    name, value = parameter.split()
    value = int(value) if value.lstrip("-").isdigit() else value
    with pytest.raises(PapermillExecutionError, match=message.replace("?", r"\?")):
        papermill.execute_notebook(
            ROOT / "book" / "synthetic.ipynb",
            tmp_path / "out.ipynb",
            {name: value},
            progress_bar=False,
        )


def test_module_names_are_no_parameters():
    check_parameters({"probnb": types.ModuleType("probnb")}, "seed")
