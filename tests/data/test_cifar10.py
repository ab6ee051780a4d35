import hashlib
import io
import pickle
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.datasets import CIFAR10

from probnb.data.cifar10 import (
    CLASSES,
    _read_counts,
    load_cifar10,
    load_cifar10h,
    load_judged_digits,
    read_cifar10,
)

SIDE = 32


def png(value):
    file = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), (value, 2 * value, 255 - value)).save(file, "PNG")
    return file.getvalue()


# The class is in the colour: image j of class k of part b has red 20 k + 4 j + b.
FILES = {
    f"cifar10/{part}/{name}/{j:04d}.png": png(20 * k + 4 * j + b)
    for b, (part, count) in enumerate({"train": 4, "test": 3}.items())
    for k, name in enumerate(CLASSES)
    for j in range(count)
}


@pytest.fixture
def folder(tmp_path):
    for name, content in reversed(FILES.items()):  # order on disk must not matter
        file = tmp_path / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return tmp_path / "images" / "cifar10"


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "cifar10.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name, content in reversed(FILES.items()):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
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
    meta = write("batches.meta", {"label_names": list(CLASSES)})
    monkeypatch.setattr(CIFAR10, "train_list", [["data_batch_1", train]])
    monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", test]])
    monkeypatch.setattr(CIFAR10, "meta", CIFAR10.meta | {"md5": meta})
    return root


def test_folder_and_archive_are_the_same_images(folder, archive, tmp_path):
    ours = read_cifar10(folder, cache_dir=tmp_path / "a")
    theirs = read_cifar10(archive, cache_dir=tmp_path / "b")
    again = read_cifar10(archive, cache_dir=tmp_path / "b")
    for other in (theirs, again):
        assert torch.equal(ours[0], other[0])
        assert np.array_equal(ours[1], other[1]) and np.array_equal(ours[2], other[2])
    images, labels, part, names, _ = ours
    assert images.shape == (70, 3, SIDE, SIDE) and names[0] == "0000.png"
    red = images[:, 0, 0, 0].numpy().astype(int)
    assert np.array_equal(labels, red // 20) and np.array_equal(part, red % 2)
    assert part.tolist() == sorted(part) and part.sum() == 30


def test_a_damaged_cache_is_made_again(archive, tmp_path, caplog):
    first = read_cifar10(archive, cache_dir=tmp_path / "c")[0]
    (cache,) = (tmp_path / "c").glob("*.npy")
    cache.write_bytes(b"damaged")
    assert torch.equal(read_cifar10(archive, cache_dir=tmp_path / "c")[0], first)
    assert "decoding again" in caplog.text


def test_torchvisions_format_keeps_its_order(torchvision_folder):
    for path in (torchvision_folder, torchvision_folder / "cifar-10-batches-py"):
        images, labels, part, names, _ = read_cifar10(path)
        assert names is None and labels.tolist() == [(k + 3) % 10 for k in range(10)] + [
            (k + 7) % 10 for k in range(10)
        ]
        assert np.array_equal(images[:, 1, 5, 5], 20 * labels + part)
    assert read_cifar10(torchvision_folder, size=16)[0].shape == (20, 3, 16, 16)


def test_torchvisions_files_are_not_unpickled_when_they_are_not_the_published_ones(
    torchvision_folder,
):
    file = torchvision_folder / "cifar-10-batches-py" / "test_batch"
    file.write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(ValueError, match="data_dir must hold CIFAR-10 whole"):
        read_cifar10(torchvision_folder)


def test_corrupt_images_and_others_are_named(folder, tmp_path, caplog):
    (folder / "train" / "cat" / "0001.png").write_bytes(b"not an image")
    (folder / "stray.png").write_bytes(png(0))
    _, labels, part, _, _ = read_cifar10(folder, cache_dir=tmp_path / "c")
    assert len(labels) == 69 and part.sum() == 30
    assert "skipped 2 files: ['stray.png', 'train/cat/0001.png']" in caplog.text


def test_what_holds_no_classes_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_cifar10(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"at least two classes.* has 0 that can be decoded"):
        read_cifar10(tmp_path, cache_dir=tmp_path / "c")
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(ValueError, match="cannot be read as an archive"):
        read_cifar10(tmp_path / "x.tar.gz", cache_dir=tmp_path / "c")


def test_class_c_has_probability_c_of_ten(archive, tmp_path):
    splits = load_cifar10(archive, cache_dir=tmp_path / "c")
    assert [len(part) for part in splits.parts().values()] == [36, 4, 30]
    ids = np.concatenate([part.ids for part in splits.parts().values()])
    assert sorted(ids) == list(range(70))
    for part in splits.parts().values():
        assert np.allclose(part.probabilities, part.inputs[:, 0, 0, 0] // 20 / 10)
    assert splits.known and splits.train.augment and not splits.val.augment


def test_digits_are_there_without_data_and_their_outcomes_follow_p():
    splits = load_cifar10(seed=2)
    assert splits.train.inputs.shape == (1078, 1, 16, 16)
    y = torch.cat([part.outcomes for part in splits.parts().values()])
    p = torch.cat([part.probabilities for part in splits.parts().values()])
    assert not y[p == 0].any()
    assert abs((y - p).mean()) < 4 * float((p * (1 - p)).mean() / len(y)) ** 0.5
    other = load_cifar10(seed=3)
    assert np.array_equal(splits.test.ids, other.test.ids)
    assert not splits.test.outcomes.equal(other.test.outcomes)
    small = load_cifar10(n=100, seed=2)
    lookup = dict(zip(splits.train.ids, splits.train.outcomes.tolist()))
    assert [lookup[i] for i in small.train.ids] == small.train.outcomes.tolist()


def test_simulated_people_judge_digits_with_the_same_probabilities():
    data = load_judged_digits(seed=1)
    assert data.splits.known and (data.votes["n"] == 9).all()
    share = data.votes.loc[data.splits.train.ids, "k"] / 9
    p = data.splits.train.probabilities.numpy()
    assert abs((share - p).mean()) < 4 * (p * (1 - p) / 9).mean() ** 0.5 / len(p) ** 0.5


@pytest.fixture
def counted(tmp_path):
    """CIFAR-10H for the 30 test images of the folder, in an order of its own."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(10), 3))
    counts = 40 * np.eye(10, dtype=int)[labels]
    counts[np.arange(30), (labels + 1) % 10] += np.arange(30)  # tells the images apart
    np.save(tmp_path / "counts.npy", counts)
    np.save(tmp_path / "test_labels.npy", labels)
    return tmp_path, counts, labels


def test_counts_meet_their_images(archive, counted, tmp_path):
    path, counts, labels = counted
    data = load_cifar10h("cat", archive, path, cache_dir=tmp_path / "c")
    assert [len(part) for part in data.splits.parts().values()] == [18, 4, 8]
    seen = {}
    for part in data.splits.parts().values():
        total = part.outcomes.numpy() + data.votes.loc[part.ids, "k"]
        assert np.array_equal(total, counts[part.ids, CLASSES.index("cat")])
        assert np.array_equal(data.votes.loc[part.ids, "n"], counts[part.ids].sum(1) - 1)
        seen |= dict(zip(part.ids, part.inputs[:, 0, 0, 0].int().tolist()))
    for k in range(10):  # the j-th image of class k in the original order is its file j
        reds = [seen[i] for i in np.flatnonzero(labels == k)]
        assert reds == [20 * k + 4 * j + 1 for j in range(3)]


def test_counts_of_other_images_are_refused(archive, counted, tmp_path):
    path, counts, labels = counted
    cache = tmp_path / "c"
    np.save(path / "counts.npy", counts[::-1])
    with pytest.raises(ValueError, match="counts must be in the order of the test images"):
        load_cifar10h("cat", archive, path, cache_dir=cache)
    np.save(path / "counts.npy", counts[:20])
    with pytest.raises(ValueError, match="a row for each test image; got 20 and 30"):
        load_cifar10h("cat", archive, path, cache_dir=cache)
    np.save(path / "test_labels.npy", labels[:20])
    with pytest.raises(ValueError, match="as many images of each class"):
        load_cifar10h("cat", archive, path, cache_dir=cache)
    (path / "test_labels.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"test_labels\.npy"):
        load_cifar10h("cat", archive, path, cache_dir=cache)
    (path / "counts.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"counts_dir must hold counts\.npy"):
        load_cifar10h("cat", archive, path, cache_dir=cache)


def numbered(root, names):
    """Test images whose colour is the class, under the names given as (class, file)."""
    for part in ("train", "test"):
        for j, (label, name) in enumerate(names):
            file = root / part / CLASSES[label] / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(20 * label + 2 * j % 20))
    return root


def test_votes_meet_images_by_the_numbers_in_their_names(tmp_path):
    """9 comes before 10, whatever the alphabet says; a name without a number is refused."""
    labels = np.arange(30) % 10
    np.save(tmp_path / "test_labels.npy", labels)
    counts = 40 * np.eye(10, dtype=int)[labels]
    counts[np.arange(30), (labels + 1) % 10] += np.arange(30)
    np.save(tmp_path / "counts.npy", counts)
    for kind, name in {
        "rank": lambda i: f"{i // 10 + 8}.png",
        "all": lambda i: f"{i}_x.png",
    }.items():
        root = numbered(tmp_path / kind, [(labels[i], name(i)) for i in range(30)])
        data = load_cifar10h("cat", root, tmp_path, cache_dir=tmp_path / "c")
        for part in data.splits.parts().values():
            reds = part.inputs[:, 0, 0, 0].int().numpy()
            assert (reds == 20 * labels[part.ids] + 2 * part.ids % 20).all()
    root = numbered(tmp_path / "none", [(labels[i], f"{'abc'[i // 10]}.png") for i in range(30)])
    with pytest.raises(ValueError, match=r"number of a test image in the name.*'a\.png'"):
        load_cifar10h("cat", root, tmp_path, cache_dir=tmp_path / "c")
    root = numbered(tmp_path / "off", [(labels[i], f"{29 - i}.png") for i in range(30)])
    with pytest.raises(ValueError, match="the classes of data_dir's images by their numbers"):
        load_cifar10h("cat", root, tmp_path, cache_dir=tmp_path / "c")


def test_real_counts_name_the_images_own_class(data_dir):
    if not (data_dir / "cifar10h").is_dir():
        pytest.skip(f"no CIFAR-10H in {data_dir}")
    counts, labels = _read_counts(data_dir / "cifar10h")
    assert counts.shape == (10_000, 10) and np.bincount(labels).tolist() == [1000] * 10
    assert counts.sum(1).min() >= 40
    assert (counts.argmax(1) == labels).mean() > 0.98
