"""Guards of what the appendix says of other processors."""

from collections import Counter, defaultdict

import pytest

from probnb_book import evidence, storage

from .pages import RESULTS


@pytest.fixture(scope="module")
def study():
    return storage.read(RESULTS, "machines", "instructions")


def test_five_seeds_on_three_machines(study):
    assert study.groupby("machine")["seed"].nunique().tolist() == [5, 5, 5]
    assert set(study["row"]) >= {"ce", "ce_finetuned", "cape_bin", "ce_averaged", "ensemble"}


def test_another_instruction_set_is_another_training(study):
    """Its deviation is of the size of that between trainings on the same data."""
    ce = study[study["row"] == "ce"]
    processors = ce.groupby("seed")["mse_p"].var().mean() ** 0.5
    members = study[study["row"].str.startswith("member")]
    trainings = members.groupby(["seed", "machine"])["mse_p"].var().mean() ** 0.5
    assert 0.5 < processors / trainings < 2
    assert (ce.groupby("seed")["mse_p"].nunique() == 3).all()  # no two have one number


def test_one_stored_study_mixes_precisions():
    kinds = defaultdict(Counter)
    for run, record in storage.records(RESULTS, "ablations").items():
        kinds[run.rpartition("-seed")[0]][record.get("precision")] += 1
    mixed = {kind: counts for kind, counts in kinds.items() if len(counts) > 1}
    assert mixed == {"starts-linear-utkface-cpu": {"32-true": 2, "bf16-mixed": 1}}
    for chapter in ("synthetic", "cifar10", "real_world"):
        for group in evidence.kinds(evidence.find([RESULTS], chapter)):
            assert len({run.record.get("precision") for run in group["run"]}) == 1


def test_lung_cancer_comes_back_in_bfloat16():
    record = storage.records(RESULTS, "machines")["lung again"]
    assert record["stored"]["precision"] == record["again"]["precision"] == "bf16-mixed"
    assert record["stored"]["processor"] != record["again"]["processor"]
    table = storage.read(RESULTS, "machines", "lung_again", "lung again")
    gaps = (table["stored"] - table["again"]).abs().set_axis(table["row"])
    half, single = (gaps[table["precision"].eq(p).to_numpy()] for p in ("bf16-mixed", "32-true"))
    assert half.idxmax() == "mmce" and half["mmce"] > 0.005
    assert half.drop("mmce").max() < 1e-4 and len(half) > 13
    assert single.max() > 0.01
