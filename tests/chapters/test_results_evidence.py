"""Stored runs as evidence: what is best, what differs, and what is missing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probnb.chapters.results import baseline, evidence, gains, tables, words
from probnb.experiment.results import StoredRun
from probnb.published import published
from probnb.scenarios import SCENARIOS


@pytest.fixture
def two(tmp_path, store):
    """Two trainings of Linear on photographs, one of Discrete on drawn faces."""
    for seed in (0, 1):
        store(tmp_path, seed=seed)
    store(tmp_path, "discrete", "drawn")
    return evidence.gather([tmp_path, tmp_path / "none"], replicates=40)


def test_photographs_come_first_and_seeds_of_one_kind_stay_together(tmp_path, store):
    store(tmp_path, data="drawn")
    store(tmp_path, seed=0, altered=True)
    store(tmp_path, seed=1)
    found = evidence.gather([tmp_path], replicates=5)
    kinds = [[(r.photographs, r.kind[2], r.run.record["seed"]) for r in g]
             for g in found.kinds("linear")]  # fmt: skip
    assert kinds == [[(True, False, 1)], [(True, True, 0)], [(False, False, 0)]]
    assert found.best("linear", photographs=False)[0].run.record["data"] == "drawn"


def test_networks_on_pixels_are_no_seeds_of_those_on_gradients():
    def group(inputs):
        record = {"data": "cifar10", "profile": "cpu", "settings": {"size": 32}, **inputs}
        return evidence.Trained(StoredRun(Path("."), record | {"task": "cifar10"}), *3 * [None])

    old, new = group({}), group({"inputs": "gradients"})
    pixels = group({"inputs": "pixels"})
    found = evidence.Evidence([], [old, pixels, new]).kinds("cifar10")
    assert found == [[old, new], [pixels]]
    assert evidence.Evidence([], [old, pixels]).kinds("cifar10") == [[pixels], [old]]


def test_the_interval_over_trainings_is_wider_than_over_rows(two):
    runs = two.best("linear")
    both = two.gap(runs, "cape_bin", "ce")
    alone = [two.gap([r], "cape_bin", "ce") for r in runs]
    assert both.value == pytest.approx(np.mean([g.value for g in alone]))
    assert both.trainings == 2 and np.isnan(alone[0].seeds)
    spread = np.std([g.value for g in alone], ddof=1)
    half = np.hypot(1.959964 * both.rows, 12.706205 * spread / np.sqrt(2))
    assert both.high - both.value == pytest.approx(half, rel=1e-5)
    assert two.gap(runs, "focal", "ce") is None


def test_tables_have_the_papers_layout_and_numbers(two):
    table = tables.table_1(two)
    paper = published("linear", metric="mse_p").set_index("method")
    assert table.loc["CE early-stop", ("Linear", "paper")].startswith("4.21")
    assert table["Linear", "paper"].str.startswith("–").sum() == len(table) - len(
        paper.drop(["beginning_bin", "beginning_kernel"])
    )
    assert list(dict.fromkeys(table.columns.get_level_values(0))) == [
        s.capitalize() for s in SCENARIOS
    ]
    values = [100 * r.bootstrap.point.loc["ce", "mse_p"] for r in two.best("linear")]
    ours = table.loc["CE early-stop", ("Linear", "ours")]
    assert ours.startswith(f"{np.mean(values):.2f}")
    assert ours.endswith(f"({np.std(values, ddof=1):.2f})")
    assert (table["Sigmoid", "ours"] == "not run yet").all()
    full = tables.scenario_table(two, "discrete")
    assert full.loc["MMCE reg.", ("Brier", "paper")].startswith("21.12")
    assert full.loc["MMCE reg.", ("Brier", "ours (drawn)")] == "not run yet"


def test_ranks_in_print_and_here(two):
    table = tables.ranks(two)
    assert table.loc["CaPE (kernel)", ("Linear", "paper")] == "1"
    assert table.loc["CE early-stop", ("Linear", "paper")] == "11"
    assert table.loc["CE early-stop", ("Linear", "ours")] == "4"
    assert (table["Skewed", "ours"] == "not run yet").all()
    assert tables.rank_correlations(two).loc["Sigmoid", "MSE_p"] == "not run yet"


def test_paired_differences(two):
    table = tables.paired(two)
    gap = two.gap(two.best("linear"), "cape_bin", "ce")
    assert table.loc["Linear", "less CE early-stop"].startswith(f"{100 * gap.value:+.2f} [")
    assert table.loc["Linear", "less CE fine-tuned"] == "+0.00 [+0.00, +0.00]"
    assert table["trainings"].to_dict()["Linear"] == 2
    assert table.loc["Sigmoid", "less Platt scaling"] == "not run yet"
    assert "Discrete (drawn)" in table.index


def test_calibration_epochs_are_counted(two):
    table = tables.calibration_epochs(two)
    assert (table["CaPE (bin)"] == "epoch 2, 1 of calibration").all()
    assert (table["CE fine-tuned"] == "epoch 2, 0 of calibration").all()
    assert (table["CaPE (kernel)"] == "–").all()


def test_rules_of_stopping_by_hand():
    losses = np.array([0.9, 0.8, 0.7, 0.75, 0.6, 0.65, 0.66, 0.5, 0.9, 0.8, 0.7])
    kept = {name: keep(losses) for name, keep in baseline.RULES.items()}
    assert kept["lowest validation CE"] == 7
    assert kept["patience 1"] == 2  # stops at 3
    assert kept["patience 2"] == 4  # stops at 6
    assert kept["patience 3"] == 7
    assert kept["best of every fifth"] == 5
    assert kept["epoch 1"] == 1 and kept["last"] == 10 and kept["epoch 25"] is None


def test_a_shift_is_repaired_by_one_intercept(two):
    test = two.best("linear")[0].test
    repaired = baseline.cross_fitted(test["y"], test["ce"])
    for p_hat in repaired.values():
        assert np.mean((p_hat - test["p"]) ** 2) < np.mean((test["ce"] - test["p"]) ** 2)
    parts = gains.gains(two, "ce", ("platt",))
    assert [name for name, _ in parts.index] == ["Linear", "Discrete (drawn)"]
    assert float(parts["bias"].iloc[0]) > 0
    assert float(parts["slope"].iloc[0]) == pytest.approx(0, abs=0.2)


def test_derived_numbers_are_recomputed(data_dir):
    root = Path(__file__).resolve().parents[2]
    stored = baseline.derived_table([root / "results"], "authors-predictions")
    computed = baseline.authors_scores(data_dir / "authors-predictions")
    pd.testing.assert_frame_equal(stored, computed, atol=2e-6)
    stored = baseline.derived_table([root / "results"], "authors-gains")
    computed = gains.authors_gains(data_dir / "authors-predictions")
    pd.testing.assert_frame_equal(stored, computed, atol=2e-6)
    assert gains.saved_gains(stored).loc["Linear", "bias"].startswith("+1")
    scores = baseline.derived_table([root / "results"], "authors-predictions")
    text = words.baseline_sentence(evidence.Evidence([]), scores, stored)
    assert "from 3.68 to 2.40 and Platt scaling to 2.15, below their CaPE's 2.41" in text
    assert "Of the 1.27 that CaPE takes off in these files, 1.27 is" in text
    assert "not computed yet" in gains.saved_gains(None).to_string()


def test_nothing_stored_is_no_error(tmp_path):
    empty = evidence.gather([tmp_path / "none"])
    assert not empty.runs and not empty.scenarios and empty.scores().empty
    assert (evidence.run_table(empty)["profile"] == "not run yet").sum() == len(SCENARIOS)
    assert tables.rank_correlations(empty).eq("not run yet").all().all()
    assert gains.gains(empty).empty and baseline.stopping_rules(empty).empty
    assert set(gains.cape_gains(empty)["source"]) == {"published"}
    assert "Nothing" in words.verdict_sentences(empty)
    assert (baseline.demo_table(empty, None)["here, photographs"] == "not run yet").all()


def test_the_verdict_follows_the_numbers(two):
    text = words.verdict_sentences(two)
    assert "CaPE is better than CE early-stop in linear" in text
    assert "photographs (1 of 5 scenarios" in text
    linear = two.best("linear", photographs=True)
    assert ("nothing follows for the methods" in text) == (len(linear) < 2)
    assert words.runs_sentence(two).startswith("3 stored runs: photographs in 1 of 5")


def test_details_name_every_profile():
    table = tables.training_details(("cpu", "paper"))
    assert table.loc["Batch size", "here: cpu"] == "128"
    assert table.loc["Image size (pixels)", "here: paper"] == "200 × 200"
    assert table.loc["Image size (pixels)", "paper"] == "not stated"
    assert not table.map(lambda text: "{" in text).any().any()


def test_two_sizes_of_photographs_are_compared_by_their_ranks(tmp_path, store):
    store(tmp_path, seed=0)
    assert words.sizes_sentence(evidence.gather([tmp_path], replicates=5)) == ""
    shifts = {"ce": 0.4, "ce_overfit": 2.0, "platt": 0.2}
    store(tmp_path, seed=1, altered=True, shifts=shifts)
    path = tmp_path / "synthetic" / "linear-utkface-cpu-seed1-x" / "run.json"
    path.write_text(path.read_text().replace('"size": 32', '"size": 48'))
    found = evidence.gather([tmp_path], replicates=5)
    said = words.sizes_sentence(found)
    small, large = found.kinds("linear")
    assert said.startswith("Linear at 32 and at 48 pixels") and "1 and 1 trainings" in said
    values = [100 * g[0].bootstrap.point.loc["ce", "mse_p"] for g in (small, large)]
    assert f"CE early-stop {values[0]:.2f} and {values[1]:.2f}" in said
    shared = [m for m in small[0].methods if m != "resampled"]
    points = [g[0].bootstrap.point.loc[shared, "mse_p"] for g in (small, large)]
    assert f"rank correlation is {points[0].corr(points[1], 'spearman'):.2f}" in said
