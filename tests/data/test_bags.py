"""Bags on disk: what is written is read, batch by batch, and nothing in a file is run."""

import io
import pickle

import h5py
import numpy as np
import pytest
import torch

from probnb.data import Bags, ProbabilityData, ragged
from probnb.data.bags import convert_release, load_tensors, read_bags, slide_splits, write_bags
from probnb.training.batches import make_fabric, predict_logits
from probnb.training.models import AttentionMIL

LENGTHS = [3, 1, 7, 2]


def bags(dtype=np.float32, features=5):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, features)).astype(dtype) for n in LENGTHS]


@pytest.mark.parametrize("suffix", [".h5", ".hdf5", ".safetensors"])
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


@pytest.mark.parametrize("suffix", [".h5", ".safetensors"])
def test_stored_bags_go_to_other_processes_and_are_cut_by_row(tmp_path, suffix):
    path = tmp_path / f"slides{suffix}"
    write_bags(path, bags())
    stored, _ = read_bags(path)
    stored.batch([0])  # the file is open now
    again = pickle.loads(pickle.dumps(stored))
    for rows in ([0], [3, 0]):
        assert torch.equal(again.batch(rows)[0], stored.batch(rows)[0])
    data = ProbabilityData(stored, [0, 1, 0, 1]).take([3, 2])
    assert torch.equal(data.batch([0])[0], stored.batch([3])[0])


def test_only_what_a_batch_asks_for_is_read(tmp_path):
    path = tmp_path / "slides.h5"
    write_bags(path, bags())
    stored, _ = read_bags(path)
    read = []
    inner = stored.values

    class Watched:
        shape = inner.shape

        def __getitem__(self, rows):
            read.append(rows)
            return inner[rows]

    Bags(Watched(), stored.lengths, stored.offsets).batch([2])
    assert read == [slice(4, 11)]


@pytest.mark.parametrize(
    ("given", "columns", "message"),
    [
        ([], {}, "bags must hold at least one bag; got none"),
        ([np.ones((2, 3)), np.ones((0, 3))], {}, r"bag 1 has shape \(0, 3\)"),
        ([np.ones((2, 3)), np.ones((2, 4))], {}, r"bag 1 has shape \(2, 4\)"),
        ([np.ones(3)], {}, r"bag 0 has shape \(3,\)"),
        ([np.ones((2, 3)), np.full((1, 3), np.nan)], {}, "bag 1 .* is not"),
        ([np.ones((2, 3), int)], {}, "bag 0 .int64. is not"),
        ([np.ones((2, 3))], {"outcomes": [0, 1]}, "outcomes must have one entry a bag, 1"),
        ([np.ones((2, 3))], {"lengths": [2]}, "must not be named 'lengths'"),
    ],
)
def test_wrong_bags_are_named_and_leave_no_file(tmp_path, given, columns, message):
    with pytest.raises(ValueError, match=message):
        write_bags(tmp_path / "slides.h5", given, **columns)
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "slides.h5"
    write_bags(path, bags())
    before = path.read_bytes()

    class Cut(list):  # a source that ends while it is copied
        def __iter__(self):
            self.times = getattr(self, "times", 0) + 1
            if self.times == 2:
                yield self[0]
                raise OSError("the disk is gone")
            yield from list.__iter__(self)

    with pytest.raises(OSError, match="the disk is gone"):
        write_bags(path, Cut(bags()))
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["slides.h5"]


def test_files_that_are_not_bags(tmp_path):
    with pytest.raises(ValueError, match=r"path's end must be one of .h5, .hdf5, .safetensors"):
        read_bags(tmp_path / "slides.pt")
    with pytest.raises(ValueError, match="does not exist"):
        read_bags(tmp_path / "slides.h5")
    for suffix in (".h5", ".safetensors"):
        (tmp_path / f"broken{suffix}").write_bytes(b"not a file of bags")
        with pytest.raises(ValueError, match="must hold values and lengths"):
            read_bags(tmp_path / f"broken{suffix}")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["values"] = np.ones((3, 2))
    with pytest.raises(ValueError, match="has no lengths"):
        read_bags(tmp_path / "other.h5")


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
    monkeypatch.setattr(ragged, "CELLS", 50_000)
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
    monkeypatch.setattr(ragged, "CELLS", 40)
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


# The authors' release, two pickled mappings by slide.


def release(tmp_path, tiles, outcomes, how="pickle"):
    paths = tmp_path / "train_embeddings.pkl", tmp_path / "train_outcomes.pkl"
    for path, content in zip(paths, (tiles, outcomes)):
        if how == "torch":
            torch.save(content, path)
        else:
            path.write_bytes(pickle.dumps(content))
    return paths


@pytest.mark.parametrize("how", ["pickle", "torch"])
@pytest.mark.parametrize("kind", [torch.from_numpy, np.asarray])
def test_released_layout_becomes_bags(tmp_path, how, kind):
    if how == "torch" and kind is np.asarray:
        pytest.skip("torch's restricted reader takes tensors only")
    tiles = {i: kind(bag) for i, bag in enumerate(bags())}
    outcomes = {i: (i % 2, 0.5) for i in tiles}
    paths = release(tmp_path, tiles, outcomes, how)
    assert convert_release(*paths, tmp_path / "train.h5") == 4
    stored, columns = read_bags(tmp_path / "train.h5")
    np.testing.assert_array_equal(columns["outcomes"], [0, 1, 0, 1])
    assert columns["ids"].tolist() == ["0", "1", "2", "3"]
    for i, bag in enumerate(bags()):
        np.testing.assert_array_equal(stored.batch([i])[0][0], bag)


class Harmful:
    """What a hostile file would hold: a call of the reader's own Python."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


class HarmfulInside:
    """The same, hidden in the bytes of a tensor's storage."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        buffer = io.BytesIO()
        torch.save(Harmful(self.path), buffer)
        return torch.storage._load_from_bytes, (buffer.getvalue(),)


@pytest.mark.parametrize("harm", [Harmful, HarmfulInside])
@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_nothing_in_a_released_file_is_run(tmp_path, harm, how):
    trap = tmp_path / "trap"
    paths = release(tmp_path, {0: harm(trap)}, {0: (1, 0.5)}, how)
    with pytest.raises(ValueError, match="path must hold tensors and arrays only"):
        convert_release(*paths, tmp_path / "train.h5")
    assert not trap.exists()
    assert not (tmp_path / "train.h5").exists()


def test_a_cut_release_and_one_that_does_not_match(tmp_path):
    tiles = {0: bags()[0], 1: bags()[1]}
    first, second = release(tmp_path, tiles, {0: (1, 0.5)})
    with pytest.raises(ValueError, match="must have the same slides; 1 are in one only: '1'"):
        convert_release(first, second, tmp_path / "train.h5")
    first.write_bytes(first.read_bytes()[:-20])
    with pytest.raises(ValueError, match="path must hold tensors"):
        load_tensors(first)
    first.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ValueError, match="must be a mapping by slide; got list"):
        convert_release(first, second, tmp_path / "train.h5")
    with pytest.raises(ValueError, match="does not exist"):
        load_tensors(tmp_path / "absent")


def test_an_empty_bag_in_a_release_is_an_error(tmp_path):
    paths = release(tmp_path, {0: torch.ones(2, 3), 1: torch.ones(0, 3)}, {0: (1, 0), 1: (0, 0)})
    with pytest.raises(ValueError, match=r"bag 1 has shape \(0, 3\)"):
        convert_release(*paths, tmp_path / "train.h5")


# Splits of stored slides.


def three_parts(folder, groups):
    for name, own in groups.items():
        suffix = ".safetensors" if name == "val" else ".h5"
        columns = {"outcomes": [0, 1, 1, 0], "groups": np.array(own)}
        write_bags(folder / (name + suffix), bags(), **columns)


def test_stored_slides_are_splits(tmp_path):
    three_parts(tmp_path, {"train": list("aabc"), "val": list("defg"), "test": list("hijk")})
    splits = slide_splits(tmp_path)
    assert [len(part) for part in splits.parts().values()] == [4, 4, 4]
    assert splits.train.groups.tolist() == list("aabc")
    x, mask = splits.to("cpu").test.batch(torch.tensor([0, 2]))
    assert (x.shape, mask.sum().item()) == ((2, 7, 5), 10)


def test_stored_slides_that_share_a_patient_are_refused(tmp_path):
    three_parts(tmp_path, {"train": list("aabc"), "val": list("defg"), "test": list("hbjk")})
    with pytest.raises(ValueError, match="train and test must not share a patient; both have 'b'"):
        slide_splits(tmp_path)


def test_a_part_that_is_missing_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"one file train.h5\|.hdf5\|.safetensors"):
        slide_splits(tmp_path)
    write_bags(tmp_path / "train.h5", bags())
    with pytest.raises(ValueError, match=r"train.h5 must have a column outcomes"):
        slide_splits(tmp_path)
