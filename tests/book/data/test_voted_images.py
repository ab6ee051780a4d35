"""CIFAR-10 by its rule, and images that many people judged: the digits, CIFAR-10H and FER+."""

import hashlib
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torchvision.datasets import CIFAR10

from probnb_book.data import voted_images

from ...made import PACK, encode, write_files

SIDE = 32
pytestmark = pytest.mark.usefixtures("cache")


def png(value):
    return encode(Image.new("RGB", (SIDE, SIDE), (value, 2 * value, 255 - value)))


# The class is in the colour: image j of class k of part b has red 20 k + 4 j + b.
FILES = {
    f"cifar10/{part}/{name}/{j:04d}.png": png(20 * k + 4 * j + b)
    for b, (part, count) in enumerate({"train": 4, "test": 3}.items())
    for k, name in enumerate(voted_images.CLASSES)
    for j in range(count)
}


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path / "images", dict(reversed(FILES.items()))) / "cifar10"


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "cifar10.tar.gz"
    path.write_bytes(PACK["gzip"](reversed(FILES.items())))  # the order must not matter
    return path


@pytest.fixture
def torchvision_folder(tmp_path, monkeypatch):
    """The format of the Python release, small, with its checksums in place of the real ones."""
    root = tmp_path / "tv"
    (root / "cifar-10-batches-py").mkdir(parents=True)

    def write(name, content):
        data = pickle.dumps(content)
        (root / "cifar-10-batches-py" / name).write_bytes(data)
        return hashlib.md5(data).hexdigest()

    def batch(part, shift):
        labels = [(k + shift) % 10 for k in range(10)]
        data = [np.full(3 * SIDE * SIDE, 20 * k + part, np.uint8) for k in labels]
        return {"data": np.stack(data), "labels": labels}

    train, test = write("data_batch_1", batch(0, 3)), write("test_batch", batch(1, 7))
    meta = write("batches.meta", {"label_names": list(voted_images.CLASSES)})
    monkeypatch.setattr(CIFAR10, "train_list", [["data_batch_1", train]])
    monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", test]])
    monkeypatch.setattr(CIFAR10, "meta", CIFAR10.meta | {"md5": meta})
    return root / "cifar-10-batches-py"


def test_folder_and_archive_are_the_same_images(folder, archive):
    images, labels, part, names, _ = voted_images.read_cifar10(folder)
    for _ in ("first", "again"):
        other, *numbers = voted_images.read_cifar10(archive)[:3]
        assert torch.equal(images, other) and np.array_equal(numbers, [labels, part])
    assert images.shape == (70, 3, SIDE, SIDE) and names[0] == "0000.png"
    red = images[:, 0, 0, 0].numpy().astype(int)
    assert np.array_equal(labels, red // 20) and np.array_equal(part, red % 2)
    assert part.tolist() == sorted(part) and part.sum() == 30


def test_torchvisions_format_keeps_its_order(torchvision_folder):
    images, labels, part, names, _ = voted_images.read_cifar10(torchvision_folder)
    assert names is None
    assert labels.tolist() == [(k + shift) % 10 for shift in (3, 7) for k in range(10)]
    assert np.array_equal(images[:, 1, 5, 5], 20 * labels + part)
    assert voted_images.read_cifar10(torchvision_folder, size=16)[0].shape == (20, 3, 16, 16)


def test_torchvisions_files_are_not_unpickled_when_they_are_not_the_published_ones(
    torchvision_folder,
):
    (torchvision_folder / "test_batch").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(RuntimeError, match="corrupted"):
        voted_images.read_cifar10(torchvision_folder)


def test_corrupt_images_and_others_are_named(folder, caplog):
    (folder / "train" / "cat" / "0001.png").write_bytes(b"not an image")
    (folder / "stray.png").write_bytes(png(0))
    _, labels, part, _, _ = voted_images.read_cifar10(folder)
    assert len(labels) == 69 and part.sum() == 30
    assert "skipped 2 files: ['stray.png', 'train/cat/0001.png']" in caplog.text


def test_what_holds_no_classes_is_refused(tmp_path):
    words = r"data_dir must hold images in train.* has 0 that can be decoded"
    with pytest.raises(ValueError, match=words):
        voted_images.read_cifar10(tmp_path)


def test_class_c_has_probability_c_of_ten(archive):
    splits = voted_images.load_cifar10(archive)
    parts = splits.parts().values()
    assert [len(part) for part in parts] == [36, 4, 30]
    assert sorted(np.concatenate([part.ids for part in parts])) == list(range(70))
    for part in parts:
        assert np.allclose(part.probabilities, part.inputs[:, 0, 0, 0] // 20 / 10)
    assert splits.known and splits.train.augment and not splits.val.augment


def test_digits_are_there_without_data_and_their_outcomes_follow_p():
    splits = voted_images.load_cifar10(seed=2)
    assert splits.train.inputs.shape == (1078, 1, 16, 16)
    parts = splits.parts().values()
    y, p = (torch.cat([getattr(a, b) for a in parts]) for b in ("outcomes", "probabilities"))
    assert not y[p == 0].any()
    assert abs((y - p).mean()) < 4 * float((p * (1 - p)).mean() / len(y)) ** 0.5
    other = voted_images.load_cifar10(seed=3)
    assert np.array_equal(splits.test.ids, other.test.ids)
    assert not splits.test.outcomes.equal(other.test.outcomes)
    small = voted_images.load_cifar10(n=100, seed=2)
    lookup = dict(zip(splits.train.ids, splits.train.outcomes.tolist()))
    assert [lookup[i] for i in small.train.ids] == small.train.outcomes.tolist()


def test_simulated_people_judge_digits_with_the_same_probabilities():
    data = voted_images.load_judged_digits(seed=1)
    assert data.splits.known and (data.votes["n"] == 9).all()
    share = data.votes.loc[data.splits.train.ids, "k"] / 9
    p = data.splits.train.probabilities.numpy()
    assert abs((share - p).mean()) < 4 * (p * (1 - p) / 9).mean() ** 0.5 / len(p) ** 0.5


def count(folder, labels):
    """Write CIFAR-10H of 30 test images of these classes, and return the counts."""
    counts = 40 * np.eye(10, dtype=int)[labels]
    counts[np.arange(30), (labels + 1) % 10] += np.arange(30)  # tells the images apart
    np.save(folder / "counts.npy", counts)
    np.save(folder / "test_labels.npy", labels)
    return counts


SHUFFLED = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 3))


def test_counts_meet_their_images(archive, tmp_path):
    counts = count(tmp_path, SHUFFLED)
    data = voted_images.load_cifar10h("cat", archive, tmp_path)
    assert [len(part) for part in data.splits.parts().values()] == [18, 4, 8]
    seen = {}
    for part in data.splits.parts().values():
        total = part.outcomes.numpy() + data.votes.loc[part.ids, "k"]
        assert np.array_equal(total, counts[part.ids, voted_images.CLASSES.index("cat")])
        assert np.array_equal(data.votes.loc[part.ids, "n"], counts[part.ids].sum(1) - 1)
        seen |= dict(zip(part.ids, part.inputs[:, 0, 0, 0].int().tolist()))
    original = np.argsort(SHUFFLED, kind="stable").reshape(10, 3)
    for k, rows in enumerate(original):  # the j-th image of class k is its file j
        assert [seen[i] for i in rows] == [20 * k + 4 * j + 1 for j in range(3)]


@pytest.mark.parametrize(
    ("name", "kept", "words"),
    [
        ("counts", slice(None, None, -1), "counts must be in the order of the test images"),
        ("counts", slice(20), r"shapes \(20,\) \(30,\)"),
        ("test_labels", slice(20), "shape mismatch"),
    ],
)
def test_counts_of_other_images_are_refused(archive, tmp_path, name, kept, words):
    count(tmp_path, SHUFFLED)
    np.save(tmp_path / f"{name}.npy", np.load(tmp_path / f"{name}.npy")[kept])
    with pytest.raises(ValueError, match=words):
        voted_images.load_cifar10h("cat", archive, tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("{after_8}.png", None),
        ("{number}_x.png", None),
        ("{letter}.png", r"number of a test image in the name.*'a\.png'"),
        ("{backwards}.png", "the classes of data_dir's images by their numbers"),
    ],
)
def test_votes_meet_images_by_the_numbers_in_their_names(tmp_path, name, words):
    """9 comes before 10, whatever the alphabet says; a name without a number is refused."""
    labels, contents = np.arange(30) % 10, {}
    count(tmp_path, labels)
    for i, label in enumerate(labels):
        k = i // 10
        file = name.format(after_8=k + 8, number=i, letter="abc"[k], backwards=29 - i)
        for part in ("train", "test"):
            contents[f"{part}/{voted_images.CLASSES[label]}/{file}"] = png(20 * label + 2 * i % 20)
    root = write_files(tmp_path / "images", contents)
    if words:
        with pytest.raises(ValueError, match=words):
            voted_images.load_cifar10h("cat", root, tmp_path)
        return
    for part in voted_images.load_cifar10h("cat", root, tmp_path).splits.parts().values():
        reds = part.inputs[:, 0, 0, 0].int().numpy()
        assert (reds == 20 * labels[part.ids] + 2 * part.ids % 20).all()


def test_real_counts_name_the_images_own_class(data_dir):
    if not (data_dir / "cifar10h").is_dir():
        pytest.skip(f"no CIFAR-10H in {data_dir}")
    counts, labels = (
        np.load(data_dir / "cifar10h" / f"{k}.npy") for k in ("counts", "test_labels")
    )
    assert counts.shape == (10_000, 10) and np.bincount(labels).tolist() == [1000] * 10
    assert counts.sum(1).min() >= 40
    assert (counts.argmax(1) == labels).mean() > 0.98


# FER+

ROWS = 40


@pytest.fixture
def made():
    """Forty images with ten votes each, as the arrays of the file."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (ROWS, 48, 48), np.uint8)
    votes = rng.multinomial(10, [0.3, 0.3, 0.1, 0.1, 0.05, 0.05, 0.02, 0.02, 0.06], ROWS)
    return images, votes.astype(np.uint8), np.repeat([0, 1, 2], [24, 8, 8]).astype(np.uint8)


@pytest.fixture
def file(made, tmp_path):
    path = tmp_path / "ferplus.npz"
    np.savez(path, **dict(zip(("images", "votes", "split"), made)))
    return path


def write_csv(folder, images, votes, split):
    usage = np.array(["Training", "PublicTest", "PrivateTest"])[split]
    pixels = [" ".join(map(str, image.ravel())) for image in images]
    faces = pd.DataFrame({"emotion": 0, "pixels": pixels, "Usage": usage})
    table = pd.DataFrame(votes, columns=voted_images.EMOTIONS).assign(Usage=usage, NF=0)
    faces.to_csv(folder / "fer2013.csv", index=False)
    table.to_csv(folder / "fer2013new.csv", index=False)
    return table


def test_the_published_csv_files_and_the_arrays_are_the_same_data(made, file, tmp_path):
    (tmp_path / "csv").mkdir()
    write_csv(tmp_path / "csv", *made)
    ours, theirs = (voted_images.read_ferplus(path) for path in (file, tmp_path / "csv"))
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs))


def test_copies_and_images_that_are_no_face_are_left_out(made, tmp_path):
    images, votes, split = made
    images[30] = images[3]
    table = write_csv(tmp_path, images, votes, split)
    table.loc[5, "NF"] = 2
    table.loc[6, list(voted_images.EMOTIONS)] = 0
    table.to_csv(tmp_path / "fer2013new.csv", index=False)
    kept = voted_images.read_ferplus(tmp_path)[0]
    assert np.array_equal(kept, np.delete(images, [5, 6, 30], axis=0))


@pytest.mark.parametrize("question", ["neutral", "negative"])
def test_outcome_and_other_votes_answer_the_question(made, file, question):
    _, votes, split = made
    data = voted_images.load_ferplus(question, file, seed=4)
    answers = [voted_images.EMOTIONS.index(name) for name in voted_images.QUESTIONS[question]]
    yes = votes[:, answers].sum(1)
    for i, part in enumerate(data.splits.parts().values()):
        assert np.array_equal(part.ids, np.flatnonzero(split == i))
        total = part.outcomes.numpy() + data.votes.loc[part.ids, "k"]
        assert np.array_equal(total, yes[part.ids])
    assert (data.votes["n"] == 9).all()
    assert data.splits.train.augment and not data.splits.test.augment


def test_other_seeds_draw_other_votes_and_other_training_images_but_the_same_test(file):
    first, second = (voted_images.load_ferplus("neutral", file, n=8, seed=seed) for seed in (0, 1))
    assert np.array_equal(first.splits.test.ids, second.splits.test.ids)
    assert not np.array_equal(first.splits.train.ids, second.splits.train.ids)
    assert not first.votes["k"].equals(second.votes["k"])
    assert first.splits.source != second.splits.source


def test_shrinking_takes_the_rounded_mean_of_blocks(made):
    images = made[0]
    small = voted_images.shrink(images, 24)
    assert small.shape == (ROWS, 1, 24, 24) and small.dtype == torch.uint8
    block = images[7, 10:12, 4:6].astype(float)
    assert abs(int(small[7, 0, 5, 2]) - block.mean()) <= 0.5
    assert torch.equal(voted_images.shrink(images, 48)[:, 0], torch.from_numpy(images))
    white = np.full((1, 48, 48), 255, np.uint8)
    assert (voted_images.shrink(white, 12) == 255).all()


def test_what_is_not_ferplus_is_refused(made, file, tmp_path):
    with pytest.raises(ValueError, match=r"question must be one of neutral.*'happy'"):
        voted_images.load_ferplus("happy", file)
    with pytest.raises(ValueError, match="size must be 48, 24, 16 or 12; got 32"):
        voted_images.load_ferplus("neutral", file, size=32)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"fer2013\.csv"):
        voted_images.read_ferplus(tmp_path / "empty")
    images, votes, split = made
    for arrays, message in (
        ({"images": images[:5]}, "ferplus.npz must have images"),
        ({"split": split + 3}, "ferplus.npz must have images"),
        ({"images": images / 255}, "ferplus.npz must have images"),
        ({"votes": votes.astype(object)}, "allow_pickle"),
    ):
        np.savez(file, **{"images": images, "votes": votes, "split": split} | arrays)
        with pytest.raises(ValueError, match=message):
            voted_images.read_ferplus(file)


def test_votes_of_other_rows_and_files_of_other_kinds_are_refused_by_name(made, tmp_path):
    votes = write_csv(tmp_path, *made)
    votes.sample(frac=1, random_state=0).to_csv(tmp_path / "fer2013new.csv", index=False)
    with pytest.raises(ValueError, match="the same images row by row, as their columns Usage"):
        voted_images.read_ferplus(tmp_path)
    (tmp_path / "fer2013.csv").write_text("emotion,pixels,Usage\n0,1 2,Training\n0,1,Training,4\n")
    with pytest.raises(ValueError, match=r"data_dir: fer2013\.csv cannot be read: "):
        voted_images.read_ferplus(tmp_path)


def test_real_ferplus_has_the_published_counts(data_dir):
    path = data_dir / "ferplus.npz"
    if not path.exists():
        pytest.skip(f"no FER+ at {path}")
    _, votes, split, _ = voted_images.read_ferplus(path)
    assert np.bincount(split).tolist() == [27_224, 3_275, 3_196]
    share = votes[:, 0] / votes.sum(1)
    assert abs(share.mean() - 0.31) < 0.005
    assert abs(((share >= 0.1) & (share <= 0.9)).mean() - 0.59) < 0.01


# Votes


@given(
    st.lists(
        st.integers(2, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1
    )
)
def test_one_vote_and_the_others_are_all_votes(counts):
    k, n = np.array(counts, int).reshape(-1, 2).T
    y, k_rest, n_rest = voted_images.draw_vote(k, n, seed=3)
    assert np.array_equal(y + k_rest, k) and np.array_equal(n_rest, n - 1)
    assert ((k_rest >= 0) & (k_rest <= n_rest)).all()


def test_the_vote_is_yes_as_often_as_the_votes_are_and_independent_of_the_others_given_p():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    k = rng.binomial(5, p)
    y, k_rest, n_rest = voted_images.draw_vote(k, np.full(len(k), 5), seed=1)
    assert abs(y.mean() - k.mean() / 5) < 0.004
    residual = (y - p) * (k_rest / n_rest - p)
    assert abs(residual.mean()) < 4 * residual.std() / len(p) ** 0.5
    again = voted_images.draw_vote(k, np.full(len(k), 5), seed=1)[0]
    other = voted_images.draw_vote(k, np.full(len(k), 5), seed=2)[0]
    assert np.array_equal(y, again) and (y != other).any()


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        ([0], [1], "n must be at least 2.*of 1 in row 0"),
        ([0, 4], [3, 3], "k must be in .0, n.; got 4 of 3 in row 1"),
        ([0.5], [3], "k must be whole numbers"),
        ([[1]], [3], "k must be one-dimensional"),
        ([1, 1], [3], "same length; got 2 and 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(k, n, message):
    with pytest.raises(ValueError, match=message):
        voted_images.draw_vote(k, n)


def test_rows_keep_their_numbers_and_votes_whatever_else_is_taken():
    images = torch.arange(12, dtype=torch.uint8)[:, None, None, None].expand(12, 1, 8, 8)
    k, n = np.arange(12) % 5, np.full(12, 4)
    parts = {"train": [7, 3, 5], "val": [0], "test": [11, 2]}
    full = voted_images.judge(images, k, n, parts, "made", seed=5)
    small = voted_images.judge(images, k, n, parts | {"train": [3, 7]}, "made", seed=5)
    assert full.splits.train.ids.tolist() == [7, 3, 5]
    assert full.splits.train.inputs[:, 0, 0, 0].tolist() == [7, 3, 5]
    assert full.splits.test.outcomes.equal(small.splits.test.outcomes)
    assert full.votes.loc[[3, 7]].equals(small.votes.loc[[3, 7]])
    outcomes = dict(zip([7, 3, 5], full.splits.train.outcomes.int().tolist()))
    assert all(outcomes[i] + full.votes.loc[i, "k"] == k[i] for i in outcomes)
    assert full.splits.source == "made seed=5" and not full.splits.known


def test_parts_of_a_sample_are_in_proportion_and_nested():
    rows = {"train": np.arange(100), "val": np.arange(100, 130), "test": np.arange(130, 180)}
    few, many = voted_images.cut(rows, 20, 1), voted_images.cut(rows, 40, 1)
    assert [len(v) for v in few.values()] == [20, 10, 10]
    assert all(set(few[k]) <= set(many[k]) <= set(rows[k]) for k in rows)
    assert voted_images.cut(rows, None) is rows
    with pytest.raises(ValueError, match="at most the 100 training images; got 101"):
        voted_images.cut(rows, 101)
