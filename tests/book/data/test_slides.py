"""Slides: what is written is read, batch by batch; of simulated ones the truth is the truth."""

import pickle

import h5py
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression

from probnb.data import Bags, ProbabilityData, inputs
from probnb.training.batches import make_fabric, predict_logits
from probnb_book.data import slides as slides_module
from probnb_book.data.slides import (
    read_bags,
    simulate_follow_up,
    simulate_slides,
    slide_splits,
    survival_probability,
)
from probnb_book.data.survival import survival_splits
from probnb_book.networks import AttentionMIL

LENGTHS = [3, 1, 7, 2]


def bags(dtype=np.float32, features=5):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, features)).astype(dtype) for n in LENGTHS]


def write_bags(path, bags, **columns):
    path.unlink(missing_ok=True)  # who has it open keeps what it was
    with h5py.File(path, "w") as file:
        file["values"], file["lengths"] = np.concatenate([*bags]), [len(bag) for bag in bags]
        for name, column in columns.items():
            text = np.asarray(column).dtype.kind == "U"
            file[name] = np.char.encode(column) if text else column


@pytest.fixture
def stored(tmp_path):
    write_bags(tmp_path / "slides.h5", bags())
    return read_bags(tmp_path / "slides.h5")[0]


@pytest.mark.parametrize("suffix", [".h5", ".hdf5"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_file_of_bags_comes_back(tmp_path, suffix, dtype):
    path = tmp_path / f"slides{suffix}"
    names = ["a", "slide of another length", "ü", "d"]
    write_bags(path, bags(dtype), outcomes=[0, 1, 1, 0], ids=names)
    stored, columns = read_bags(path)
    assert stored.shape == (4, 5)
    np.testing.assert_array_equal(stored.lengths, LENGTHS)
    np.testing.assert_array_equal(columns["outcomes"], [0, 1, 1, 0])
    assert columns["ids"].tolist() == names
    x, mask = stored.batch([2, 1])  # any order
    assert x.dtype == torch.float32
    np.testing.assert_array_equal(mask.sum(1), [7, 1])
    np.testing.assert_allclose(x[0], bags(dtype)[2].astype(np.float32))
    np.testing.assert_allclose(x[1, :1], bags(dtype)[1].astype(np.float32))
    assert (x[1, 1:] == 0).all()


def test_stored_bags_go_to_other_processes_and_are_cut_by_row(stored):
    stored.batch([0])  # the file is open now
    again = pickle.loads(pickle.dumps(stored))
    for rows in ([0], [3, 0]):
        assert torch.equal(again.batch(rows)[0], stored.batch(rows)[0])
    data = ProbabilityData(stored, [0, 1, 0, 1]).take([3, 2])
    assert torch.equal(data.batch([0])[0], stored.batch([3])[0])


def test_only_what_a_batch_asks_for_is_read(stored):
    read, inner = [], stored.values

    class Watched:
        shape = inner.shape

        def __getitem__(self, rows):
            read.append(rows)
            return inner[rows]

    Bags(Watched(), stored.lengths, stored.offsets).batch([2])
    assert read == [slice(4, 11)]


def test_files_that_are_not_bags(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        read_bags(tmp_path / "slides.h5")
    (tmp_path / "broken.h5").write_bytes(b"not a file of bags")
    with pytest.raises(ValueError, match="must hold values and lengths"):
        read_bags(tmp_path / "broken.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["values"] = np.ones((3, 2))
    with pytest.raises(ValueError, match="must hold values and lengths"):
        read_bags(tmp_path / "other.h5")


# Batches of similar length, and predictions in bounded memory.


def slides(n=1000, seed=1):
    """Bags of which only the lengths matter: from one tile to twenty thousand."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(np.exp(rng.normal(5, 1.8, n)), 1, 20_000).astype(int)
    values = np.broadcast_to(np.float32(1), (int(lengths.sum()), 8))
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


GROUPS = {"train": list("aabc"), "val": list("defg"), "test": list("hijk")}


def three_parts(folder):
    for name, own in GROUPS.items():
        suffix = ".hdf5" if name == "val" else ".h5"
        columns = {"outcomes": [0, 1, 1, 0], "groups": np.array(own)}
        write_bags(folder / (name + suffix), bags(), **columns)


def test_stored_slides_are_splits(tmp_path):
    three_parts(tmp_path)
    splits = slide_splits(tmp_path)
    assert [len(part) for part in splits.parts().values()] == [4, 4, 4]
    assert splits.train.groups.tolist() == list("aabc") and not splits.report["unused columns"]
    x, mask = splits.to("cpu").test.batch(torch.tensor([0, 2]))
    assert (x.shape, mask.sum().item()) == ((2, 7, 5), 10)


def test_a_part_that_is_missing_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"one file train.h5\|.hdf5"):
        slide_splits(tmp_path)
    write_bags(tmp_path / "train.h5", bags())
    with pytest.raises(ValueError, match=r"train.h5 must have a column outcomes"):
        slide_splits(tmp_path)


def test_other_features_of_as_many_tiles_are_other_data(tmp_path):
    three_parts(tmp_path)
    before = slide_splits(tmp_path)
    columns = {"outcomes": [0, 1, 1, 0], "groups": np.array(GROUPS["train"])}
    write_bags(tmp_path / "train.h5", [2 * bag for bag in bags()], **columns)
    after = slide_splits(tmp_path)
    assert len(after.train.inputs.values) == len(before.train.inputs.values)
    assert after.source != before.source
    three_parts(tmp_path)
    assert slide_splits(tmp_path).source == before.source


def test_columns_that_are_not_used_are_named(tmp_path):
    for name in ("train", "val", "test"):
        names = [f"{name}{i}" for i in range(4)]
        write_bags(tmp_path / f"{name}.h5", bags(), outcomes=[0, 1, 1, 0], ids=names, age=[1] * 4)
    report = slide_splits(tmp_path).report
    assert report["unused columns"] == ["train.h5/age", "val.h5/age", "test.h5/age"]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({}, "groups must be in all three files or in none"),
        ({"groups": np.array(list("hbjk"))}, "must not share a patient or slide; two have b"),
    ],
)
def test_patients_of_some_parts_or_of_two_are_refused(tmp_path, groups, words):
    three_parts(tmp_path)
    write_bags(tmp_path / "test.h5", bags(), outcomes=[0, 1, 1, 0], **groups)
    with pytest.raises(ValueError, match=words):
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
    assert cohort.report["slides"] == len(cohort) > len(np.unique(cohort.patients)) == 100
    assert cohort.inputs.lengths.min() >= 1 and survival_splits(cohort).known
    assert set(cohort.covariates["stage"]) <= {"I", "II", "III", "IV", "unknown"}
    again, other = (simulate_slides(100, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.inputs.values, cohort.inputs.values)
    assert other.source != cohort.source


def test_few_tiles_carry_the_severity(monkeypatch):
    monkeypatch.setattr(slides_module, "NOISE", 0.0)
    monkeypatch.setattr(slides_module, "FEATURES", 8)
    cohort = simulate_slides(300, seed=5)
    bags, p = cohort.inputs, cohort.probabilities
    severity = np.log(np.log(p) / np.log(0.5)) / 0.7

    def fitted(tiles, severity):
        return LinearRegression().fit(tiles, severity).predict(tiles)

    first = bags.values[bags.offsets]  # the first tile of each slide shows the tumour
    np.testing.assert_allclose(fitted(first, severity), severity, atol=1e-3)
    several = bags.lengths > 1
    last, of = bags.values[bags.offsets + bags.lengths - 1][several], severity[several]
    assert np.corrcoef(fitted(last, of), of)[0, 1] < 0.6  # most other tiles do not
