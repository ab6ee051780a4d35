"""Every fine-tuning of every run: what was kept, what it gained, what its control did."""

import json

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from probnb.chapters.results import evidence, finetunings

matplotlib.use("Agg")


def change(folder, seed, tail="", cape=None, size=32, **columns):
    """Alter the fine-tuning by CaPE of a stored run, and its settings."""
    run = folder / "synthetic" / f"linear-utkface-cpu-seed{seed}{tail}"
    epochs = pd.read_parquet(run / "epochs.parquet")
    for name, values in columns.items():
        epochs.loc[epochs["fit"] == "cape_bin", name] = values
    epochs.to_parquet(run / "epochs.parquet", index=False)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"settings": {"size": size, "cape": cape}}))


@pytest.fixture
def table(tmp_path, store):
    """Two seeds, the released schedule; the printed one for seed 0; and one of other images."""
    for seed, fall in ((0, 0.004), (1, 0.002)):
        store(tmp_path, seed=seed)
        curve = 0.02 - fall * np.array([0, 1, 2, 1.5, 0.5])
        change(tmp_path, seed, mse_p=curve, val_ce=[0.6, 0.5, 0.4, 0.5, 0.6],
               calibration=[0, 1, 0, 0, 1])  # fmt: skip
    store(tmp_path, seed=0, altered=True)
    change(tmp_path, 0, "-x", "printed", mse_p=0.3)
    store(tmp_path, seed=7, altered=True)
    change(tmp_path, 7, "-x", size=48)
    return finetunings.finetunings(evidence.gather([tmp_path], replicates=5), "linear")


def test_candidates_of_alike_runs_each_once(table):
    runs = table.groupby(["seed", "method", "schedule"]).size()
    assert dict(runs) == {
        (0, "cape_bin", "printed"): 5, (0, "cape_bin", "released"): 5,
        (0, "ce_finetuned", "released"): 5,
        (1, "cape_bin", "released"): 5, (1, "ce_finetuned", "released"): 5,
    }  # fmt: skip
    assert set(table["bins"]) == {0, 15} and set(table["length"]) == {4}


def test_gain_is_what_validation_keeps_less_the_start(table):
    shown = finetunings.candidates(table)
    row = shown[shown["schedule"] == "released"].iloc[0]
    assert row["kept"] == "2, 2" and row["calibration"] == "1, 1" and row["seeds"] == 2
    gains = 100 * np.array([-0.008, -0.004])
    low, high = stats.t.interval(0.95, 1, gains.mean(), stats.sem(gains))
    assert row["kept less start"] == f"{gains.mean():+.2f} [{low:+.2f}, {high:+.2f}]"
    assert row["last less start"].startswith("-0.15") and row["best less start"].startswith("-0.60")
    assert shown.loc["CaPE (bin)", "schedule"].tolist() == ["released", "printed"]
    control = shown.loc["control"]
    assert control["schedule"] == "" and control["kept less start"] == "-18.00 [-18.00, -18.00]"


def test_sentence_takes_the_control_of_the_same_seeds(table):
    said = finetunings.due_sentence(table)
    assert "lowest for CaPE (bin), released, rate 0.01, 15 bins" in said
    assert "less its start -0.60" in said and "at the same rate +17.40" in said
    assert "-0.15" in said.split("last epoch")[1] and "+9.85" in said


def test_figure_has_a_panel_for_each_rate_and_marks_calibration(table):
    (ax,) = finetunings.finetuning_figure(table)
    marks = [line for line in ax.lines if line.get_marker() == "x"]
    assert [line.get_xdata().tolist() for line in marks] == [[1, 4]]
    assert len(ax.lines) == 1 + 2 * (2 + 1) + 1  # zero; seeds and mean of both; the marks
    printed = table[table["schedule"] == "printed"]
    assert finetunings.finetuning_figure(printed) == []


def test_nothing_stored():
    table = finetunings.finetunings(evidence.Evidence([]), "linear")
    assert finetunings.candidates(table).to_numpy().tolist() == [["not run yet"]]
    assert finetunings.due_sentence(table) == "" and finetunings.finetuning_figure(table) == []
