"""Tables and figures of the page of results, from runs that are made up."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from probnb_book import authors, evidence, storage
from probnb_book import results as tables
from probnb_book.claims import stored_runs

from .pages import RESULTS, ROOT, defined

page = defined("appendix")


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


def test_derived_numbers_are_recomputed_and_recorded(data_dir):
    folder = data_dir / "authors-predictions"
    for name, compute in (
        ("authors-predictions", authors.authors_scores),
        ("authors-gains", authors.authors_gains),
    ):
        stored = authors.derived([RESULTS], name)
        pd.testing.assert_frame_equal(stored, compute(folder), atol=2e-6)
        record = storage.records(RESULTS, "derived")[name]
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
