"""Finding the runs that the chapter on metrics reads, and making small ones."""

import json

import numpy as np
import pandas as pd
import pytest

from probnb.chapters.metrics import runs, study
from probnb.experiment.results import StoredRun, read_results
from probnb.scenarios import SCENARIOS


def store(root, task, data="drawn", profile="quick", seed=0, altered=False):
    """A made-up run."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 30)
    directory = root / "synthetic" / f"{task}-{data}-{profile}-seed{seed}{'-0123abcd' * altered}"
    directory.mkdir(parents=True)
    table = pd.DataFrame({"y": (rng.random(30) < p).astype(int), "p": p, "ce": p})
    table.to_parquet(directory / "predictions.parquet")
    pd.DataFrame({"fit": ["ce"], "epoch": [1]}).to_parquet(directory / "epochs.parquet")
    record = {"task": task, "data": data, "profile": profile, "seed": seed, "altered": altered}
    (directory / "run.json").write_text(json.dumps(record))
    return StoredRun(directory, record)


def test_the_best_run_is_found(tmp_path):
    first, second = tmp_path / "runs", tmp_path / "results"
    store(first, "linear", profile="smoke")
    store(first, "linear", seed=1)
    store(first, "linear", altered=True)
    assert runs.best_runs([first, second])["linear"].record["seed"] == 1  # as the profile says
    store(second, "linear")
    assert runs.best_runs([first, second])["linear"].directory.parts[-3] == "results"
    store(second, "linear", "utkface", "cpu", 3)
    assert str(runs.best_runs([first, second])["linear"]) == "linear (UTKFace, profile cpu, seed 3)"
    assert list(runs.best_runs([first, second])) == ["linear"]


def test_an_unfinished_run_is_passed_over(tmp_path):
    (store(tmp_path, "discrete").directory / "run.json").unlink()  # it is written last
    assert runs.best_runs([tmp_path]) == {}


@pytest.mark.parametrize("given", ["discrete, linear", ["discrete", "linear"], "linear discrete"])
def test_names_of_scenarios(given):
    assert runs.check_scenarios(given) == ["linear", "discrete"]
    assert runs.check_scenarios() == list(SCENARIOS)
    with pytest.raises(ValueError, match="Did you mean 'linear'"):
        runs.check_scenarios("linaer")


def test_a_missing_scenario_is_trained(tmp_path, monkeypatch):
    store(tmp_path, "linear")
    made = []

    def stand_in(scenario, results, seed):
        made.append(scenario)
        return store(results, scenario, profile="smoke", seed=seed)

    monkeypatch.setattr(runs, "embedded_run", stand_in)
    found = runs.complete_runs([tmp_path], "linear, skewed")
    assert made == ["skewed"] and list(found) == ["linear", "skewed"]
    runs.complete_runs([tmp_path], "linear, skewed")
    assert made == ["skewed"]  # found the second time


def test_an_embedded_run_can_be_collected(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "EMBEDDED", {"images": 300, "epochs": 2})
    run = runs.embedded_run("discrete", tmp_path, seed=1)
    assert runs.best_runs([tmp_path], "discrete")["discrete"].record == run.record
    assert {"resampled", "ce", "temperature"} <= set(read_results(run).predictions.columns)
    assert set(study.collect_models([run])["kind"]) == {"method", "epoch"}
