"""Tables and figures of the page of results, from runs that are made up."""

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probnb_book import authors, evidence, storage
from probnb_book import results as tables
from probnb_book.claims import stored_runs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def best(tmp_path, store):
    """Two trainings of Linear, one of Discrete."""
    for seed in (0, 1):
        store(tmp_path, seed=seed)
    store(tmp_path, "discrete")
    return stored_runs([tmp_path])


def test_most_seeds_of_photographs_speak_for_a_scenario(tmp_path, store):
    store(tmp_path, data="drawn")
    store(tmp_path, altered=True)
    for seed in (0, 1):
        store(tmp_path, seed=seed)
    (lines,) = stored_runs([tmp_path]).values()
    assert lines["data"].eq("utkface").all() and lines["variant"].eq("").all()
    assert lines["seed"].tolist() == [0, 1]


def test_tables_have_the_papers_layout_and_numbers(best):
    table = tables.paper_table(best, "mse_p")
    assert table.loc[("CE early-stop", "paper"), "Linear"] == "4.21 ± 0.15"
    assert (table.xs("paper", level=1)["Linear"] != "–").sum() == 12  # rows of Table 1
    values = evidence.scores(best["linear"], ["mse_p"]).set_index(["method", "seed"])["value"]
    platt = 100 * values["platt"]
    assert table.loc[("Platt, two logits", "ours"), "Linear"] == (
        f"{platt.mean():.2f} ({platt.std():.2f})"
    )
    assert table.loc[("Focal loss", "ours"), "Linear"] == "not run yet"
    assert "(" not in table.loc[("Platt, two logits", "ours"), "Discrete"]
    full = tables.paper_table(best, scenario="discrete")
    assert full.loc[("MMCE reg.", "paper"), "Brier"].startswith("21.12")


def test_early_stopping_is_the_mean_of_all_trainings(best):
    table = tables.paper_table(best, "mse_p")
    assert table.loc[("CE early-stop", "ours"), "Linear"] == "2.00 (0.00)"  # of the epochs' tables
    table = tables.paper_table(best, "brier")  # which the made-up epochs lack
    assert table.loc[("CE early-stop", "ours"), "Linear"] != "2.00 (0.00)"


def test_what_lies_behind(best):
    behind = tables.behind(best)
    assert behind.loc["Linear, seed 1", "CaPE (bin)"] == "epoch 2, 1 of calibration"
    assert behind.loc["Linear, seed 1", "CaPE (kernel)"] == "–"


def test_differences_and_settings(best):
    table = tables.differences(best, [("cape_bin", "ce"), ("focal", "ce")], fewest=1)
    assert table["label"].tolist() == ["Linear (2 seeds)", "Discrete (one training)"]
    gap = evidence.compare(best["linear"], "cape_bin", "ce")
    assert table["value"].iloc[0] == gap.value and table["text"].iloc[0] == gap.text()


def test_settings_of_cape(best):
    lines = best["linear"]
    for run in lines["run"]:
        run.record["settings"]["cape"] = "released"
    table = tables.candidates(lines)
    row = table.loc[("CaPE (bin)", "released", "4", "0.01", "15")]
    assert row[["seeds", "kept", "calibration"]].tolist() == [2, "2, 2", "0, 0"]
    assert row["kept less start"].startswith("-18.00") and row["last less start"].startswith("-10")


def test_gains_are_split_over_seeds(best):
    table = tables.gains(best, ("platt",))
    assert table.loc[("Linear", "Platt, two logits"), "bias"].startswith("+0.")
    assert "one training" in table.loc[("Discrete", "Platt, two logits"), "bias"]


def test_shown_tables_are_whole():
    table = pd.DataFrame({"a": ["word " * 40] * 90})
    page = tables.show(table, words=True).data
    assert page.count("<tr") == 91 and "..." not in page and "…" not in page


def test_details_name_every_profile():
    table = tables.training_details(("cpu", "paper"))
    assert table.loc["Batch size", "here: cpu"] == "128"
    assert table.loc["Image size (pixels)", "here: paper"] == "200 × 200"
    assert "by default" in table.loc["Augmentation", "here: cpu"]
    assert not table.map(lambda text: "{" in text).any().any()


def test_derived_numbers_are_recomputed_and_recorded(data_dir):
    folder = data_dir / "authors-predictions"
    for name, compute in (
        ("authors-predictions", authors.authors_scores),
        ("authors-gains", authors.authors_gains),
    ):
        stored = authors.derived([ROOT / "results"], name)
        pd.testing.assert_frame_equal(stored, compute(folder), atol=2e-6)
        record = storage.records(ROOT / "results", "derived")[name]
        for file, digest in record["sha256"].items():
            assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest
        assert {"command", "version", "commit", "date"} <= set(record)
    assert authors.derived([ROOT / "book"], "authors-gains") is None


def test_a_shift_is_repaired_by_one_intercept():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 2000)
    y = rng.random(2000) < p
    shifted = 1 / (1 + (1 - p) / p * np.exp(-0.8))
    for repaired in authors.cross_fitted(y, shifted).values():
        assert np.mean((repaired - p) ** 2) < 0.1 * np.mean((shifted - p) ** 2)


def test_figures_draw_every_run(best):
    table = tables.histories(best)
    assert set(table["row"]) == {"outcomes", "fresh outcomes in every epoch"}
    assert table["training"].nunique() == 4 and len(tables.curves_figure(table).axes.flat) == 2
