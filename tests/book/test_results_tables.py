"""Tables and figures of the page of results, from runs that are made up."""

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probnb.experiment.profiles import PROFILES
from probnb_book import authors, evidence, storage
from probnb_book import results as tables
from probnb_book.claims import stored_runs

from .pages import defined

page = defined("appendix")
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


def test_tables_hold_the_papers_numbers_and_ours(best):
    table = page.beside_the_paper(best)
    assert table.loc["ce", ("paper", "linear", "mse_p")] == "4.21 ± 0.15"
    assert table["paper", "linear", "mse_p"].notna().sum() >= 12  # rows of Table 1
    values = evidence.scores(best["linear"], ["mse_p"]).set_index(["method", "seed"])["value"]
    platt = 100 * values["platt"]
    ours = table["ours"]
    assert ours.loc["platt", ("linear", "mse_p")] == f"{platt.mean():.2f} ({platt.std():.2f})"
    assert "focal" not in ours["linear"].dropna().index
    assert "(" not in ours.loc["platt", ("discrete", "mse_p")]
    assert table.loc["mmce", ("paper", "discrete", "brier")].startswith("21.12")
    # early stopping is the mean of all trainings, whose epochs, made up, lack the Brier score
    assert (
        ours.loc["ce", ("linear", "mse_p")] == "2.00 (0.00)" != ours.loc["ce", ("linear", "brier")]
    )


def test_differences_and_settings(best):
    table = tables.differences(best, [("cape_bin", "ce"), ("focal", "ce")], fewest=1)
    assert table["label"].tolist() == ["Linear (2 seeds)", "Discrete (one training)"]
    gap = evidence.compare(best["linear"], "cape_bin", "ce")
    assert table["value"].iloc[0] == gap.value and table["text"].iloc[0] == gap.text()


def test_settings_of_cape(best):
    lines = best["linear"]
    for run in lines["run"]:
        run.record["settings"]["cape"] = "released"
    one, two = (
        setting
        for line in lines.itertuples()
        for setting in page.settings_of(line)
        if setting["row"] == "CaPE (bin)"
    )
    assert (one["seed"], two["seed"]) == (0, 1) and one["schedule"] == "released"
    assert [one[k] for k in ("epochs", "rate", "bins", "kept")] == ["4", "0.01", "15", "2"]
    assert one["kept less start"] == pytest.approx(-18)
    assert one["last less start"] == pytest.approx(-10)


def test_shown_tables_are_whole():
    table = pd.DataFrame({"a": ["word " * 40] * 90})
    page = tables.show(table, words=True).data
    assert page.count("<tr") == 91 and "..." not in page and "…" not in page


def test_details_name_every_profile():
    rows = pd.read_csv(ROOT / "book" / "probnb_book" / "details.csv").fillna("")
    rows = rows.set_index("detail", drop=False)
    told = {
        name: rows.apply(lambda row, name=name: page.detail(row, PROFILES[name]), axis=1)
        for name in ("cpu", "paper")
    }
    assert told["cpu"]["Batch size"] == "128"
    assert told["paper"]["Image size (pixels)"] == "200 × 200"
    assert "by default" in told["cpu"]["Augmentation"]
    assert not any(column.str.contains("{", regex=False).any() for column in told.values())


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


def test_histories_hold_every_training(best):
    table = tables.histories(best)
    assert set(table["row"]) == {"outcomes", "fresh outcomes in every epoch"}
    assert table["training"].nunique() == 4
