"""The protocol between data and training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from probnb.data import Bags, ProbabilityData, Splits
from probnb.data.base import Brightness, Mirror, Shift
from probnb.data.inputs import channel_scale

RNG = np.random.default_rng(0)
IMAGES = torch.tensor(RNG.integers(0, 256, (30, 3, 6, 5)), dtype=torch.uint8)
Y = torch.arange(30) % 2


def test_what_is_known_of_a_row_stays_with_it():
    data = ProbabilityData(
        IMAGES,
        Y,
        probabilities=np.linspace(0, 1, 30),
        groups=[f"day {i // 5}" for i in range(30)],
        weights=np.arange(30) + 1.0,
        ids=np.arange(100, 130),
    )
    rows = [7, 3, 29]
    part = data.take(rows)
    assert len(part) == 3 and list(part.ids) == [107, 103, 129]
    assert list(part.groups) == ["day 1", "day 0", "day 5"] and part.weights.tolist() == [8, 4, 30]
    assert torch.equal(part.inputs, IMAGES[rows])
    assert part.outcomes.dtype == part.probabilities.dtype == torch.float32
    assert list(ProbabilityData(IMAGES, Y).ids) == list(range(30))
    for mask in (data.weights > 28, np.arange(30) > 27, [False] * 28 + [True] * 2, slice(28, None)):
        assert list(data.take(mask).ids) == [128, 129]
    with pytest.raises(IndexError, match="index 30 is out of bounds"):
        data.take([30])


def test_images_are_scaled_as_the_training_part_says():
    train = ProbabilityData(IMAGES, Y)
    bright = ProbabilityData((IMAGES // 2) + 100, Y)
    splits = Splits(train, bright, bright, "images").to("cpu")
    x = splits.train.batch(torch.arange(30))[0]
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3), unbiased=False), torch.ones(3))
    mean, deviation = channel_scale(IMAGES)
    expected = (bright.inputs[[4]].float() - mean) / deviation
    torch.testing.assert_close(splits.val.batch(torch.tensor([4]))[0], expected)
    constant = torch.full((4, 1, 2, 2), 7, dtype=torch.uint8)
    assert channel_scale(constant)[1].item() == 1


@pytest.mark.parametrize("inputs", [IMAGES, IMAGES.numpy()])
def test_images_without_a_scale_are_no_batch(inputs):
    """Raw pixels once went through a trained network in silence."""
    splits = Splits(*[ProbabilityData(inputs, Y)] * 3, "images")
    for part in splits.parts().values():
        with pytest.raises(ValueError, match=r"must have the scale that Splits\.to"):
            part.batch(torch.arange(2))
    assert abs(splits.to("cpu").train.batch(torch.arange(30))[0].mean()) < 1e-5


def test_floating_point_inputs_pass_as_they_are():
    table = torch.randn(30, 4, dtype=torch.float64)
    splits = Splits(*[ProbabilityData(table, Y)] * 3, "table").to("cpu")
    x = splits.train.batch(torch.tensor([5, 2]))[0]
    assert x.dtype == torch.float32 and torch.equal(x, table[[5, 2]].float())


class Increasing:
    """What HDF5 asks for: rows in increasing order, each once."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def __getitem__(self, rows):
        assert (np.diff(rows) > 0).all()
        return self.values[rows]


@pytest.mark.parametrize("kind", ["memmap", "array", "increasing"])
def test_inputs_on_disk_give_the_batches_of_tensors(tmp_path, kind):
    values = IMAGES.numpy()
    np.save(tmp_path / "x.npy", values)
    inputs = {
        "memmap": lambda: np.load(tmp_path / "x.npy", mmap_mode="r"),
        "array": lambda: values,
        "increasing": lambda: Increasing(values),
    }[kind]()
    rows = torch.tensor([9, 2, 2, 28])
    batches = [
        Splits(*[ProbabilityData(x, Y)] * 3, "x").to("cpu").train.batch(rows)[0]
        for x in (inputs, IMAGES)
    ]
    torch.testing.assert_close(*batches)


def test_bags_are_padded_and_masked():
    values, lengths = torch.randn(10, 4), [1, 3, 6]
    bags = Bags(values, lengths)
    x, mask = bags.batch([2, 0])
    assert x.shape == (2, 6, 4) and mask.sum(1).tolist() == [6, 1]
    assert torch.equal(x[0], values[4:]) and torch.equal(x[1, :1], values[:1])
    assert (x[1, 1:] == 0).all()
    part = ProbabilityData(bags, [0, 1, 1]).take([1, 2])
    assert torch.equal(part.batch(torch.tensor([0]))[0][0], values[1:4])
    with pytest.raises(ValueError, match="bag 1 has 0"):
        Bags(values, [4, 0, 6])
    with pytest.raises(ValueError, match="add up to 10, the rows"):
        Bags(values, [4, 5])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"outcomes": torch.full((30,), 2.0)}, "outcomes must hold only 0 and 1; got 2"),
        ({"outcomes": torch.full((30,), float("nan"))}, "outcomes must"),
        ({"outcomes": Y[:-1]}, "outcomes must have the 30 rows of inputs; got 29"),
        ({"outcomes": Y[:, None]}, "outcomes must be one-dimensional"),
        ({"outcomes": ["a"] * 30}, "outcomes must"),
        ({"outcomes": np.ma.array(Y.numpy(), mask=Y.numpy())}, "outcomes .*masked"),
        ({"probabilities": torch.full((30,), 1.2)}, r"probabilities must .*\[0, 1\]"),
        ({"probabilities": torch.full((30,), float("nan"))}, "probabilities must"),
        ({"weights": -torch.ones(30)}, "weights must"),
        ({"weights": torch.zeros(30)}, "weights must have a value above 0"),
        ({"weights": torch.full((30,), float("inf"))}, "weights must"),
        ({"groups": [None] * 30}, "groups must not be missing"),
        ({"ids": np.zeros((30, 2))}, "ids must be one-dimensional"),
        ({"inputs": IMAGES.long()}, "inputs must be uint8 images or floating point; got .*int64"),
        ({"inputs": IMAGES.bool()}, "inputs must be uint8 images or floating point"),
        ({"inputs": IMAGES.permute(0, 2, 3, 1)}, "looks like .n, height, width, channels."),
        ({"inputs": IMAGES[:, 0]}, "inputs of uint8 must be .n, channels"),
        ({"inputs": np.ma.array(np.eye(30), mask=np.eye(30))}, "inputs .* row 0 is masked"),
        (
            {"inputs": csr_array(np.eye(30))},
            "inputs must be a tensor or an array .*; got csr_array",
        ),
        ({"inputs": [1, 2, 3]}, "inputs must be a tensor or an array"),
        ({"inputs": torch.full((30, 2), float("inf"))}, "inputs must be finite; .* in row 0"),
    ],
)
def test_what_data_cannot_be(change, words):
    with pytest.raises(ValueError, match=words):
        ProbabilityData(**{"inputs": IMAGES, "outcomes": Y, **change})


def test_what_parts_cannot_be():
    part = ProbabilityData(IMAGES, Y)
    empty, one = part.take([]), part.take([0])
    for name, other, least in (("train", one, 2), ("val", empty, 1), ("test", empty, 1)):
        parts = {"train": part, "val": part, "test": part, name: other}
        with pytest.raises(ValueError, match=f"{name} must have at least {least} row"):
            Splits(**parts, source="x")
    other = replace(part, inputs=torch.zeros(30, 1, 6, 5, dtype=torch.uint8))
    with pytest.raises(ValueError, match="must have inputs and outcomes of one shape"):
        Splits(part, other, part, "x")
    assert not Splits(part, part, part, "x").known


def test_a_mirror_is_a_mirror():
    u = torch.tensor([[0.1], [0.9], [0.49]])
    x = Mirror()(IMAGES[:3], u)
    assert torch.equal(x[0], IMAGES[0].flip(-1)) and torch.equal(x[1], IMAGES[1])
    assert torch.equal(x[2], IMAGES[2].flip(-1))


def test_a_shift_repeats_the_edge():
    u = torch.tensor([[0.0, 0.5], [0.999, 0.999], [0.5, 0.0]])  # by (-1, 0), (1, 1), (0, -1)
    moved = Shift(1)(IMAGES[:3], u)
    for image, original, (down, right) in zip(moved, IMAGES, [(-1, 0), (1, 1), (0, -1)]):
        for i in range(6):
            for j in range(5):
                row, column = min(max(i + down, 0), 5), min(max(j + right, 0), 4)
                assert torch.equal(image[:, i, j], original[:, row, column])


def test_brightness_scales_mean_and_contrast():
    x = torch.full((1, 3, 4, 4), 100, dtype=torch.uint8)
    x[:, :, 0] = 140
    out = Brightness(0.2)(x, torch.tensor([[1.0, 0.5]])).float()
    torch.testing.assert_close(out, x.float() * 1.2, atol=0.51, rtol=0)
    out = Brightness(0.2)(x, torch.tensor([[0.5, 0.0]])).float()
    expected = 110 + 0.8 * (x.float() - 110)
    torch.testing.assert_close(out, expected, atol=0.51, rtol=0)


def test_augmentations_take_their_own_numbers_in_turn():
    none = (torch.zeros(1, 3, 1, 1), torch.ones(1, 3, 1, 1))
    data = ProbabilityData(IMAGES, Y, augment=(Mirror(), Shift(2)), scale=none)
    assert data.draws == 3
    u = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    rows = torch.arange(4)
    expected = Shift(2)(Mirror()(IMAGES[:4], u[:, :1]), u[:, 1:]).float()
    assert torch.equal(data.batch(rows, u)[0], expected)
    assert torch.equal(data.batch(rows)[0], IMAGES[:4].float())


@pytest.mark.parametrize("kind", ["tensor", "array", "memmap", "bags", "bags on disk"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_wherever_it_lies(tmp_path, kind, value):
    """At the first line that can know: on disk that is the reading of it, before any training."""
    x = RNG.normal(size=(30, 4)).astype(np.float32)
    x[17, 2] = value
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    make = {
        "tensor": lambda: torch.tensor(x),
        "array": lambda: x,
        "memmap": lambda: mapped,
        "bags": lambda: Bags(x, [1] * 30),
        "bags on disk": lambda: Bags(mapped, [1] * 30),
    }[kind]
    where = "bag 17" if kind == "bags on disk" else "row 17"
    if kind in ("memmap", "bags on disk"):
        part = ProbabilityData(make(), Y)
        with pytest.raises(ValueError, match=f"inputs must be finite; .*{where}"):
            part.digest  # noqa: B018
        with pytest.raises(ValueError, match=f"inputs must be finite; .*{where}"):
            part.batch(torch.tensor([3, 17]))
    else:
        with pytest.raises(ValueError, match=f"inputs must be finite; .*{where}"):
            ProbabilityData(make(), Y)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float16])
@pytest.mark.parametrize("tensor", [True, False])
def test_channels_last_are_refused_whatever_they_hold(dtype, tensor):
    x = np.zeros((30, 16, 16, 3), dtype)
    with pytest.raises(ValueError, match=r"looks like .n, height, width, channels."):
        ProbabilityData(torch.tensor(x) if tensor else x, Y)
    assert len(ProbabilityData(torch.zeros(30, 16, 1, 1), Y)) == 30  # features of a pixel


def known(**change):
    facts = {
        "inputs": IMAGES,
        "outcomes": Y,
        "probabilities": np.linspace(0, 1, 30),
        "groups": np.arange(30) // 3,
        "weights": np.arange(30) + 1.0,
        "ids": [f"row {i}" for i in range(30)],
    }
    return ProbabilityData(**{**facts, **change})


FLIPPED = Y.clone()
FLIPPED[11] = 1 - FLIPPED[11]
OTHER = IMAGES.clone()
OTHER[29, 2, 5, 4] ^= 1


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize(
    "change",
    [
        {"inputs": OTHER},
        {"inputs": IMAGES.flip(0)},
        {"outcomes": 1 - Y},
        {"outcomes": FLIPPED},
        {"probabilities": np.linspace(0, 0.99, 30)},
        {"probabilities": None},
        {"groups": np.arange(30) // 2},
        {"groups": None},
        {"weights": np.arange(30) + 2.0},
        {"weights": None},
        {"ids": [f"row {i}" for i in range(1, 31)]},
        {"ids": range(30)},
    ],
)
def test_the_digest_of_data_sees_whatever_they_hold(split, change):
    parts = dict.fromkeys(("train", "val", "test"), known())
    before = Splits(**parts, source="the same words").digest
    assert before == Splits(**dict.fromkeys(parts, known()), source="others").digest
    changed = Splits(**parts | {split: known(**change)}, source="the same words")
    assert before != changed.digest
    turned = known().take(np.arange(30)[::-1])  # whole rows in another order
    assert before != Splits(**parts | {split: turned}, source="the same words").digest


def test_the_digest_is_that_of_the_numbers_wherever_they_lie(tmp_path):
    x = RNG.normal(size=(30, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    kinds = (x, torch.tensor(x), np.load(tmp_path / "x.npy", mmap_mode="r"), Increasing(x))
    assert len({ProbabilityData(kind, Y).digest for kind in kinds}) == 1
    lengths = [1, 2, 3, 4]
    bags = [Bags(v, lengths) for v in (x[:10], torch.tensor(x[:10]), x[1:11])]
    digests = [ProbabilityData(bag, [0, 1, 0, 1]).digest for bag in bags]
    assert digests[0] == digests[1] != digests[2]  # as many tiles, other features
    exchanged = Bags(x[:10], lengths)[np.array([1, 0, 2, 3])]
    assert ProbabilityData(exchanged, [0, 1, 0, 1]).digest not in digests


def test_large_inputs_are_read_in_blocks(monkeypatch):
    asked = []

    class Watched(Increasing):
        def __getitem__(self, rows):
            asked.append(len(rows))
            return super().__getitem__(rows)

    whole = ProbabilityData(IMAGES, Y).digest
    monkeypatch.setattr("probnb.data.inputs.BLOCK", 4 * 7 * 3 * 6 * 5)
    assert ProbabilityData(Watched(IMAGES.numpy()), Y).digest == whole
    assert asked == [7, 7, 7, 7, 2]
