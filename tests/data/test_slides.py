"""Slides: what is written is read, batch by batch; of simulated ones the truth is the truth."""

import h5py
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from probnb.data import Bags, ProbabilityData, inputs
from probnb.data import slides as slides_module
from probnb.data.slides import (
    simulate_follow_up,
    simulate_slides,
    slide_splits,
    survival_probability,
)
from probnb.data.survival import survival_splits
from probnb.training.batches import make_fabric, predict_logits
from probnb.training.models import AttentionMIL

LENGTHS = [3, 1, 7, 2]


def bags(dtype=np.float32, features=5):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, features)).astype(dtype) for n in LENGTHS]


def write_bags(path, bags, **columns):
    with h5py.File(path, "w") as file:
        file["values"], file["lengths"] = np.concatenate(bags), [len(bag) for bag in bags]
        for name, values in columns.items():
            file[name] = [v.encode() for v in values] if isinstance(values[0], str) else values


# Batches of similar length, and predictions in bounded memory.


def slides(n=1000, seed=1):
    """Bags of which only the lengths matter: from one tile to twenty thousand."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(np.exp(rng.normal(5, 1.8, n)), 1, 20_000).astype(int)
    values = np.lib.stride_tricks.as_strided(
        np.ones(1, np.float32), (int(lengths.sum()), 8), (0, 0)
    )
    return ProbabilityData(Bags(values, lengths), np.arange(n) % 2)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n", [1000, 992, 17, 16, 5])
def test_an_epoch_has_every_bag_once(n):
    order = slides(n).order(16, generator())
    np.testing.assert_array_equal(order.sort().values, np.arange(n))


def test_batches_of_similar_length_save_padding():
    data = slides()
    lengths = data.inputs.lengths

    def padded(order):
        return sum(len(rows) * lengths[rows].max() for rows in order.split(16))

    ours = padded(data.order(16, generator()))
    assert ours < 0.5 * padded(torch.randperm(1000, generator=generator()))
    one, two = data.order(16, generator(3)), data.order(16, generator(4))
    assert torch.equal(one, data.order(16, generator(3)))
    assert not torch.equal(one, two)


def test_the_order_of_other_data_is_what_it_was():
    data = ProbabilityData(torch.zeros(50, 2), np.arange(50) % 2)
    expected = torch.randperm(50, generator=generator(7))
    assert torch.equal(data.order(8, generator(7)), expected)
    assert [len(rows) for rows in data.chunks(20)] == [20, 20, 10]


def test_parts_to_predict_fit_into_memory(monkeypatch):
    monkeypatch.setattr(inputs, "CELLS", 50_000)
    data = slides()
    chunks = data.chunks(64)
    np.testing.assert_array_equal(torch.cat(chunks).sort().values, np.arange(1000))
    lengths = data.inputs.lengths
    for rows in chunks:
        assert len(rows) <= 64
        assert len(rows) == 1 or 8 * len(rows) * lengths[rows].max() <= 50_000
    assert any(len(rows) == 1 for rows in chunks)  # longer than memory by itself
    assert any(len(rows) == 64 for rows in chunks)


def test_predictions_come_back_in_the_order_of_the_rows(monkeypatch):
    monkeypatch.setattr(inputs, "CELLS", 40)
    torch.manual_seed(0)
    net = AttentionMIL(5, hidden=4, attention=3)
    rng = np.random.default_rng(0)
    lengths = [3, 1, 7, 2, 5, 1]
    values = rng.normal(size=(sum(lengths), 5)).astype(np.float32)
    data = ProbabilityData(Bags(values, lengths), [0, 1, 0, 1, 0, 1])
    logits = predict_logits(make_fabric("cpu", "32-true"), net, data)
    with torch.no_grad():
        alone = torch.cat([net(*data.batch([i])) for i in range(6)])
    torch.testing.assert_close(logits, alone)


# Splits of stored slides.


def three_parts(folder, groups, dtype=np.float32):
    for name, own in groups.items():
        ids = [f"{name} ü {i}" for i in range(4)]
        columns = {"outcomes": [0, 1, 1, 0], "groups": list(own), "ids": ids}
        write_bags(folder / f"{name}.h5", bags(dtype), **columns, age=[1] * 4)


GROUPS = {"train": "aabc", "val": "defg", "test": "hijk"}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_stored_slides_are_splits(tmp_path, dtype):
    three_parts(tmp_path, GROUPS, dtype)
    splits = slide_splits(tmp_path)
    assert [len(part) for part in splits.parts().values()] == [4, 4, 4]
    assert splits.train.groups.tolist() == list("aabc")
    assert splits.val.ids.tolist()[1] == "val ü 1"
    assert splits.report["unused columns"] == ["train.h5/age", "val.h5/age", "test.h5/age"]
    x, mask = splits.to("cpu").test.batch(torch.tensor([0, 2]))
    assert (x.shape, mask.sum().item()) == ((2, 7, 5), 10)
    np.testing.assert_allclose(x[1], bags(dtype)[2].astype(np.float32))


def test_other_features_of_as_many_tiles_are_other_data(tmp_path):
    three_parts(tmp_path, GROUPS)
    before = slide_splits(tmp_path)
    with h5py.File(tmp_path / "train.h5", "a") as file:
        file["values"][0, 0] += 1
    after = slide_splits(tmp_path)
    assert after.source != before.source and after.digest != before.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.unlink(), "val.h5 must hold values.*No such file"),
        (lambda file: file.write_bytes(b"not a file of bags"), "val.h5 must hold values"),
        (lambda file: write_bags(file, bags()), "val.h5 must hold values.*outcomes"),
        (lambda file: write_bags(file, bags(), outcomes=[0, 1, 1, 0]), "groups must be in all"),
        (
            lambda file: write_bags(file, bags(), outcomes=[0, 1, 1, 0], groups=list("defa")),
            "must not share a patient or slide; two have a",
        ),
    ],
)
def test_parts_that_do_not_go_together_are_refused(tmp_path, change, message):
    three_parts(tmp_path, GROUPS)
    change(tmp_path / "val.h5")
    with pytest.raises(ValueError, match=message):
        slide_splits(tmp_path)


def test_the_truth_is_how_often_patients_live_to_the_horizon():
    for severity in (-1.0, 0.0, 1.5):
        _, _, survival = simulate_follow_up(np.full(20_000, severity), seed=1)
        share = (survival > 60).mean()
        assert share == pytest.approx(survival_probability(severity), abs=0.015)
    assert survival_probability(0) == 0.5


@pytest.mark.parametrize("censored", [0, 0.2, 0.5, 0.9])
def test_censoring_hides_the_share_asked_for(censored):
    severity = np.random.default_rng(0).standard_normal(20_000)
    months, died, survival = simulate_follow_up(severity, censored, seed=3)
    hidden = (died == 0) & (months < 60)
    assert hidden.mean() == pytest.approx(censored, abs=0.015)
    assert (months <= survival).all()
    np.testing.assert_array_equal(died == 1, months == survival)
    if censored:  # independent of the severity
        assert abs(spearmanr(severity, months / survival)[0]) < 0.5


def test_slides_of_a_patient_share_the_truth_and_have_tiles():
    cohort = simulate_slides(100, seed=0)
    assert len(cohort) > 100
    assert cohort.report["slides"] == len(cohort)
    assert cohort.inputs.lengths.min() >= 1
    assert len(np.unique(cohort.patients)) == 100
    assert set(cohort.covariates["stage"]) <= {"I", "II", "III", "IV", "unknown"}
    splits = survival_splits(cohort)
    assert splits.known
    again = simulate_slides(100, seed=0)
    np.testing.assert_array_equal(again.inputs.values, cohort.inputs.values)
    other = simulate_slides(100, seed=1)
    assert other.source != cohort.source


def test_few_tiles_carry_the_severity(monkeypatch):
    monkeypatch.setattr(slides_module, "NOISE", 0.0)
    monkeypatch.setattr(slides_module, "FEATURES", 8)
    cohort = simulate_slides(300, seed=5)
    bags, p = cohort.inputs, cohort.probabilities
    severity = np.log(np.log(p) / np.log(0.5)) / 0.7
    first = bags.values[bags.offsets]  # the first tile of each slide shows the tumour
    design = np.column_stack([first, np.ones(len(first))])
    fitted = design @ np.linalg.lstsq(design, severity, rcond=None)[0]
    np.testing.assert_allclose(fitted, severity, atol=1e-3)
    last = bags.values[bags.offsets + bags.lengths - 1][bags.lengths > 1]
    design = np.column_stack([last, np.ones(len(last))])
    of = severity[bags.lengths > 1]
    fitted = design @ np.linalg.lstsq(design, of, rcond=None)[0]
    assert np.corrcoef(fitted, of)[0, 1] < 0.6  # most other tiles do not
