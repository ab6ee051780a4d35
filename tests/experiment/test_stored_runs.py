"""Finding stored runs, and making small ones."""

import numpy as np
import pandas as pd
import pytest

from probnb.chapters.metrics import study
from probnb.experiment import results as rows_module
from probnb.experiment import stored_runs
from probnb.scenarios import SCENARIOS


def store(root, name):
    """A made-up run."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 30)
    directory = root / "synthetic" / name
    directory.mkdir(parents=True)
    table = pd.DataFrame({"y": (rng.random(30) < p).astype(int), "p": p, "ce": p})
    table.to_parquet(directory / "predictions.parquet")
    pd.DataFrame({"fit": ["ce"], "epoch": [1]}).to_parquet(directory / "epochs.parquet")
    return directory


def test_the_best_run_is_found(tmp_path):
    first, second = tmp_path / "runs", tmp_path / "results"
    store(first, "linear-drawn-smoke-seed0")
    store(first, "linear-drawn-quick-seed1")
    store(first, "linear-drawn-quick-seed0-0123abcd")
    assert stored_runs.find_runs([first, second])["linear"].seed == 1  # as the profile says
    store(second, "linear-drawn-quick-seed0")
    assert stored_runs.find_runs([first, second])["linear"].directory.parts[-3] == "results"
    store(second, "linear-utkface-cpu-seed3")
    run = stored_runs.find_runs([first, second])["linear"]
    assert (run.data, run.profile, run.seed) == ("utkface", "cpu", 3)
    assert str(run) == "linear (UTKFace, profile cpu, seed 3)"
    assert list(stored_runs.find_runs([first, second])) == ["linear"]


def test_what_is_not_a_run_is_passed_over(tmp_path):
    store(tmp_path, "linear-drawn-quick-seed0-notes!")
    (store(tmp_path, "discrete-drawn-quick-seed0") / "epochs.parquet").unlink()
    assert stored_runs.find_runs([tmp_path]) == {}


@pytest.mark.parametrize("given", ["discrete, linear", ["discrete", "linear"], "linear discrete"])
def test_names_of_scenarios(given):
    assert stored_runs.check_scenarios(given) == ["linear", "discrete"]
    assert stored_runs.check_scenarios() == list(SCENARIOS)
    with pytest.raises(ValueError, match="Did you mean 'linear'"):
        stored_runs.check_scenarios("linaer")


def test_a_missing_scenario_is_trained(tmp_path, monkeypatch):
    store(tmp_path, "linear-drawn-quick-seed0")
    made = []

    def stand_in(scenario, results, seed):
        made.append(scenario)
        name = f"{scenario}-drawn-smoke-seed{seed}"
        return stored_runs.Run(scenario, "drawn", "smoke", seed, True, store(results, name))

    monkeypatch.setattr(stored_runs, "embedded_run", stand_in)
    runs = stored_runs.complete_runs([tmp_path], "linear, skewed")
    assert made == ["skewed"] and list(runs) == ["linear", "skewed"]
    stored_runs.complete_runs([tmp_path], "linear, skewed")
    assert made == ["skewed"]  # found the second time


@pytest.mark.filterwarnings("ignore::probnb.calibrators.CalibrationWarning")
def test_an_embedded_run_can_be_collected(tmp_path, monkeypatch):
    small = dict(images=300, epochs=2)
    monkeypatch.setattr(stored_runs, "EMBEDDED", small)
    run = stored_runs.embedded_run("discrete", tmp_path, seed=1)
    assert stored_runs.find_runs([tmp_path], "discrete")["discrete"] == run
    read = rows_module.read_rows(run.directory)
    assert {"resampled", "ce", "temperature"} <= set(read.predictions.columns)
    assert set(study.collect_models([run])["kind"]) == {"method", "epoch"}
