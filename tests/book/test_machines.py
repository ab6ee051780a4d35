"""Guards of what the appendix says of other processors."""

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from probnb_book import evidence

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.fixture(scope="module")
def study():
    return pd.read_parquet(RESULTS / "instructions" / "study.parquet")


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
    mixed = []
    for path in sorted((RESULTS / "ablations").glob("*.json")):
        for kind, record in json.loads(path.read_text()).items():
            counts = Counter(seed.get("precision") for seed in record["seeds"].values())
            mixed += [(path.stem, kind, counts)] if len(counts) > 1 else []
    counts = {"32-true": 2, "bf16-mixed": 1}
    assert mixed == [("starts", "linear-utkface-cpu", counts)]
    for chapter in ("synthetic", "cifar10", "real_world"):
        for group in evidence.kinds(evidence.find([RESULTS], chapter)):
            assert len({run.record.get("precision") for run in group["run"]}) == 1


def test_lung_cancer_comes_back_in_bfloat16():
    record = json.loads((RESULTS / "instructions" / "lung-again.json").read_text())
    assert record["stored"]["precision"] == record["again"]["precision"] == "bf16-mixed"
    assert record["stored"]["processor"] != record["again"]["processor"]
    gaps = {row: abs(a - b) for row, (a, b) in record["cross entropy, stored and again"].items()}
    assert max(gaps, key=gaps.get) == "mmce" and gaps.pop("mmce") > 0.005
    assert max(gaps.values()) < 1e-4 and len(gaps) > 12
    single = {row: abs(a - b) for row, (a, b) in record["in float32"].items()}
    assert max(single.values()) > 0.01
