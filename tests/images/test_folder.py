"""Anybody's images: tables, folders, arrays, archives; every kind of bad file with its message."""

import logging
import os
import pickle
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from probnb.data.base import Mirror
from probnb.images import folder as images
from probnb.images import pictures
from probnb.images.folder import load_images
from probnb.images.pictures import MappedRows
from probnb.images.predict import image_entries

from ..made import encode, write_files

pytestmark = pytest.mark.usefixtures("cache")
N = 60
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (N, 12, 12, 3), dtype=np.uint8)
Y = np.arange(N) % 3 == 0
FILES = {f"{i:03d}.png": encode(pixels) for i, pixels in enumerate(PIXELS)}


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path / "pictures", FILES)


@pytest.fixture
def table():
    return pd.DataFrame({"path": [*FILES], "y": Y.astype(int)})


def divided(root, place):
    """Cats and dogs in the folders that `place` makes of outcome and part."""
    parts = [("train", "val", "test")[i % 2 + (i % 4 == 3)] for i in range(N)]
    names = zip(FILES, (("cat", "dog")[int(y)] for y in Y), parts)
    return write_files(root, {f"{place(y, part)}/{name}": FILES[name] for name, y, part in names})


def every(splits):
    """Inputs and outcomes of all parts by id."""
    return {
        name: (x.numpy(), float(y))
        for part in splits.parts().values()
        for name, x, y in zip(part.ids, part.inputs, part.outcomes)
    }


# Reading


def test_table_and_folder(folder, table, tmp_path):
    table.to_csv(tmp_path / "outcomes.csv", index=False)
    data = load_images(folder, tmp_path / "outcomes.csv", size=12)
    assert [len(part) for part in data.parts().values()] == [36, 12, 12]
    for name, (x, y) in every(data).items():
        i = int(name[:3])
        assert (x == PIXELS[i].transpose(2, 0, 1)).all() and y == Y[i]
    for part in data.parts().values():  # in about the same proportion
        assert abs(part.outcomes.mean() - 1 / 3) < 0.05
        assert part.probabilities is part.weights is part.groups is None and part.augment == ()
    assert load_images(folder, table, size=12, mirror=True).train.augment == (Mirror(),)
    assert load_images(folder, table, size=12).source == data.source
    assert load_images(folder, table, size=12, seed=1).source != data.source


def test_table_in_other_words_and_formats(folder, table, tmp_path):
    plain = every(load_images(folder, table, size=12))
    words = table.assign(y=np.where(Y, "ill", "well"))
    words = words.rename(columns={"path": "Path", "y": "what"})
    words["Path"] = "C:\\somewhere\\pictures\\" + words["Path"]
    words.to_csv(tmp_path / "x.csv", index=False, sep=";", encoding="utf-16")
    read = load_images(folder, tmp_path / "x.csv", size=12, y="what", positive="ill")
    other = every(read)
    assert {k: v[1] for k, v in other.items()} == {k: v[1] for k, v in plain.items()}
    table.to_parquet(tmp_path / "x.parquet")
    assert every(load_images(folder, tmp_path / "x.parquet", size=12)).keys() == plain.keys()
    with pytest.raises(ValueError, match="'ill' and 'well': say which of them is outcome 1"):
        load_images(folder, tmp_path / "x.csv", size=12, y="what")


def test_weight_p_and_group_come_along_and_what_columns_are_taken_for_is_said(folder, table):
    table["weight"], table["p"] = np.arange(N) + 1.0, np.linspace(0, 1, N)
    table["Group"] = np.arange(N) // 4
    data = load_images(folder, table, size=12, group="Group")
    for part in data.parts().values():
        i = np.array([int(name[:3]) for name in part.ids])
        np.testing.assert_allclose(part.weights, i + 1)
        np.testing.assert_allclose(part.probabilities, np.linspace(0, 1, N)[i], rtol=1e-6)
        assert (part.groups == i // 4).all()
    assert data.known
    uses = {"p": "the true probability", "weight": "how much a row counts"}
    uses["Group"] = "what rows share"
    told = {note for note in data.report["notes"] if note.startswith("Column ")}
    assert told == {f"Column {name} is taken for {use}." for name, use in uses.items()}


def test_a_folder_for_each_outcome(tmp_path, folder):
    root = divided(tmp_path / "x" / "data", lambda y, part: f"{y}s").parent
    write_files(root / "data", {"readme.txt": b"no image", "stray.png": encode(PIXELS[0] // 2)})
    with pytest.raises(ValueError, match=r"'cats' and 'dogs': say which.*positive='dogs'"):
        load_images(root, size=12)
    data = load_images(root, size=12, positive="dogs")
    read = every(data)
    assert len(read) == N and all((y == 1) == ("dogs" in name) for name, (_, y) in read.items())
    notes = " ".join(data.report["notes"])
    assert "dogs is outcome 1" in notes and "1 images lie in neither folder" in notes
    write_files(root / "data", {"birds/b.png": encode(PIXELS[0] // 3)})
    for other, found in ((root, "two outcomes; found 3: birds, cats, dogs"), (folder, "found 0")):
        with pytest.raises(ValueError, match=rf"a folder for each.*{found}"):
            load_images(other, size=12, positive="dogs")


def one_file(path):
    with pytest.importorskip("h5py").File(path, "w") as file:
        file["images"], file["y"] = PIXELS, Y.astype(int)


def save_zarr(path, how, *given, **named):
    getattr(pytest.importorskip("zarr"), how)(path, *given, **named)


ARRAYS = {
    "x.npy": lambda path: np.save(path, PIXELS),
    "channels second.npy": lambda path: np.save(path, PIXELS.transpose(0, 3, 1, 2)),
    "grey.npy": lambda path: np.save(path, PIXELS[:, :, :, 0]),
    "16 bit.npy": lambda path: np.save(path, PIXELS.astype(np.uint16) << 8),
    "x.zarr": lambda path: save_zarr(path, "save_array", PIXELS),
    "outcomes.zarr": lambda path: save_zarr(path, "save_group", images=PIXELS, y=Y.astype(int)),
    "outcomes.npz": lambda path: np.savez(path, images=PIXELS, y=Y.astype(int)),
    "outcomes.h5": one_file,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(tmp_path, table, name):
    ARRAYS[name](tmp_path / name)
    data = load_images(tmp_path / name, None if "outcomes" in name else table[["y"]], size=12)
    for i, (x, y) in every(data).items():
        expected = PIXELS[i].transpose(2, 0, 1)
        assert (x == (expected[:1] if "grey" in name else expected)).all() and y == Y[i]


def changed(path, change):
    """Cut a file short, or change one byte of it."""
    content = path.read_bytes()
    if isinstance(change, slice):
        content = content[change]
    else:
        content = content[:change] + bytes([content[change] ^ 255]) + content[change + 1 :]
    path.write_bytes(content)


def hdf5(path, change, **options):
    with pytest.importorskip("h5py").File(path, "w") as file:
        file.create_dataset("x", **{"data": PIXELS} | options)
    changed(path, change)


def zarr_folder(path, name, change):
    pytest.importorskip("zarr").save_array(path, PIXELS)
    found = (p for p in sorted(path.rglob("*")) if p.is_file() and name in str(p))
    changed(next(found), change)


def npz(path, change, images=PIXELS):
    np.savez(path, images=images)
    changed(path, change)


SHORT, NONE = slice(5000), slice(None)
DAMAGED = {
    "cut.h5": (lambda path: hdf5(path, SHORT), "cannot be read: .*truncated file"),
    "flip.h5": (
        lambda path: hdf5(path, 10_000, compression="gzip", fletcher32=True),
        "is damaged: ",
    ),
    "other.h5": (lambda path: path.write_bytes(b"x"), "cannot be read: .*signature not found"),
    "cut.zarr": (lambda path: zarr_folder(path, "/c/", slice(50)), "is damaged: "),
    "other.zarr": (lambda path: zarr_folder(path, "zarr.json", slice(1)), "cannot be read: "),
    "empty.zarr": (lambda path: path.mkdir(), "cannot be read: "),
    "cut.npz": (lambda path: npz(path, SHORT), "cannot be read: File is not a zip file"),
    "flip.npz": (lambda path: npz(path, 5000), "cannot be read: Bad CRC-32"),
    "pickle.npz": (lambda path: npz(path, NONE, [{}] * N), "cannot be read: .*allow_pickle"),
    "pickle.npy": (lambda path: np.save(path, np.array([{}] * N)), "cannot be read"),
    "cut.npy": (lambda path: path.write_bytes(b"\x93NUMPY"), "cannot be read"),
    "empty.npy": (lambda path: path.write_bytes(b""), "cannot be read"),
    "floats.npy": (lambda path: np.save(path, PIXELS / 255), "uint8 or uint16 .*got float64"),
    "deep.npy": (
        lambda path: np.save(path, np.zeros((N, 12, 12, 7, 7), np.uint8)),
        "one array of images",
    ),
    "many.npy": (lambda path: np.save(path, np.zeros((N, 12, 12, 9), np.uint8)), "1 to 4 channels"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_arrays_that_are_damaged_or_no_images_are_named(tmp_path, table, name):
    """Cut short, one byte changed, pickles, other shapes and ranges."""
    make, words = DAMAGED[name]
    make(tmp_path / name)
    with pytest.raises(ValueError, match=f"images: {name} .*{words}"):
        load_images(tmp_path / name, table.drop(columns="path"), size=12)


def test_an_array_without_outcomes_or_of_another_length(tmp_path, table):
    path = tmp_path / "x.npz"
    np.savez(path, images=PIXELS, other=Y)
    with pytest.raises(ValueError, match="y: the column must be one of other; got 'y'"):
        load_images(path, size=12)
    with pytest.raises(ValueError, match="must have the 60 rows of the images; got 59"):
        load_images(path, table[["y"]][1:], size=12)
    np.savez(path, images=PIXELS, masks=PIXELS)
    with pytest.raises(ValueError, match=r"holds images .*, masks .*got key=None"):
        load_images(path, size=12)
    np.savez(path, train=PIXELS, labels=Y[:, None].astype(np.uint8), test=PIXELS[:9])
    data = load_images(path, size=12, key="train", y="labels")  # of one column
    assert {name: y for name, (_, y) in every(data).items()} == dict(enumerate(Y))


def test_images_that_are_not_square(tmp_path, table):
    wide = np.zeros((N, 10, 30, 3), np.uint8)
    wide[:, :, 10:20] = RNG.integers(100, 255, (N, 1, 1, 3), dtype=np.uint8)
    np.save(tmp_path / "x.npy", wide)
    plain = table.drop(columns="path")
    crop, pad, stretch = (
        every(load_images(tmp_path / "x.npy", plain, size=30, aspect=aspect))[0][0].astype(int)
        for aspect in ("crop", "pad", "stretch")
    )
    colour = wide[0, 0, 15].astype(int)
    assert np.abs(crop - colour[:, None, None])[:, :, 3:-3].max() < 10
    assert (pad[:, :9] == 0).all() and (pad[:, 15, 15] == colour).all() and (pad[:, 21:] == 0).all()
    assert (stretch[:, 0, 15] == colour).all() and (stretch[:, :, 5] == 0).all()


# Bad files


def test_unreadable_files_are_named_counted_and_left_out(folder, table, caplog):
    (folder / "003.png").write_bytes(b"")
    (folder / "004.png").write_bytes((folder / "004.png").read_bytes()[:200])
    (folder / "005.png").unlink()
    with caplog.at_level(logging.WARNING):
        data = load_images(folder, table, size=12, unreadable=0.05)
    found = data.report["unreadable"]
    assert found["003.png"] == "empty" and found["005.png"] == "there is no such file"
    assert list(found) == ["003.png", "004.png", "005.png"]
    assert data.report["notes"][0] == "57 of 60 images were read."
    assert data.report["images"] == 60 and data.report["used"] == 57 == len(every(data))
    assert "3 of 60 images cannot be read (003.png: empty; " in caplog.text
    message = "3 of 60 images.*more than the share unreadable=0.04 allows"
    with pytest.raises(ValueError, match=message):
        load_images(folder, table, size=12, unreadable=0.04)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"y": [2, 1] + [0] * (N - 2)}, {}, "column 'y' must hold 0 or 1.*2"),
        ({"y": [0, None] * (N // 2)}, {}, "column 'y' must hold .*nothing.*30 rows in all"),
        ({"y": [0] * N}, {}, "rows or groups of 0 and of 1 at least.*got 0 of 1"),
        ({"y": [1, 1] + [0] * (N - 2)}, {}, "got 2 of 1"),
        ({"y": [1] * 30 + [0] * 30, "group": [0, 1] * 15 + [2, 3, 4] * 10}, {}, "got 2 of 1"),
        ({"weight": [-1] * N}, {}, "column 'weight' must hold a weight of at least 0"),
        ({"weight": 1 - Y}, {}, r"every part must have both outcomes; train has \[0.0\]"),
        ({"p": [1.5] * N}, {}, r"column 'p' must hold a probability in \[0, 1\].*1.5"),
        ({"group": [None] * N}, {}, "column 'group' must hold a name.*nothing"),
        ({"split": ["train"] * N}, {}, "train and test at least; test is missing"),
        ({"split": ["one"] * N}, {}, "column 'split' must hold train, val .*; got 'one'"),
        ({}, {"y": "z"}, "y: the column must be one of path, y; got 'z'"),
        ({}, {"path": "picture"}, "path: the column must be one of path, y; got 'picture'"),
        ({}, {"size": 4}, "size must be an integer of at least 8; got 4"),
        ({}, {"aspect": "squeeze"}, "aspect must be one of crop, pad, stretch; got 'squeeze'"),
        ({}, {"mirror": "yes"}, "mirror must be one of True, False; got 'yes'"),
        ({}, {"unreadable": 2}, "unreadable must be a finite number in"),
        ({}, {"seed": -1}, "seed must be an integer of at least 0; got -1"),
        ({}, {"labels": "y"}, "column must be one of y, weight, p, path.*got 'labels'"),
        ({}, {"key": "masks"}, "key must be None for pictures, which is no array; got 'masks'"),
        (None, {"group": "patient"}, "outcomes must be a table .*; got group='patient'"),
        (None, {"y": "a", "weight": "w"}, "outcomes must be a table .*; got y='a', weight='w'"),
    ],
)
def test_what_is_wrong_is_refused_by_name(folder, table, change, arguments, message):
    outcomes = None if change is None else table.assign(**change)
    with pytest.raises(ValueError, match=message):
        load_images(folder, outcomes, **{"size": 12} | arguments)


def test_files_that_are_not_there_or_empty(folder, table, tmp_path):
    with pytest.raises(ValueError, match=r"none.csv cannot be read as a table: .*No such file"):
        load_images(folder, tmp_path / "none.csv", size=12)
    with pytest.raises(FileNotFoundError, match=r"nowhere. does not exist"):
        load_images(tmp_path / "nowhere", table, size=12)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match=r"empty\.csv.*empty"):
        load_images(folder, tmp_path / "empty.csv", size=12)
    with pytest.raises(ValueError, match="key must be None for pictures"):
        image_entries(folder, key="masks")


# Division


@pytest.mark.parametrize("seed", range(4))
def test_groups_and_copies_stay_in_one_part(folder, table, seed):
    for i in range(0, 20, 2):  # the same picture, in another encoding
        Image.open(folder / f"{i:03d}.png").save(folder / f"{i + 41:03d}.png", compress_level=0)
        table.loc[i + 41, "path"] = f"{i + 41:03d}.png"
    table["group"] = np.arange(N) // 3
    data = load_images(folder, table, size=12, seed=seed)
    where = {int(n[:3]): k for k, part in data.parts().items() for n in part.ids}
    assert all(where[i] == where[i + 41] for i in range(0, 20, 2))
    assert all(len({where[3 * g + k] for k in range(3)}) == 1 for g in range(N // 3))
    assert any("10 images are copies of others" in note for note in data.report["notes"])
    (folder / "001.png").write_bytes((folder / "000.png").read_bytes())
    notes = load_images(folder, table, size=12).report["notes"]
    assert ("sets of copies have both outcomes" in " ".join(notes)) == (Y[0] != Y[1])


@pytest.mark.parametrize("groups", [np.arange(N) // 20, np.arange(N) // 10, np.arange(N) // 12])
@pytest.mark.parametrize("mixed", [True, False])
def test_few_groups_are_divided_nevertheless(folder, table, groups, mixed):
    """Three, six or five of them, with both outcomes each, or, where there are six, with one."""
    table["group"] = groups
    table["y"] = np.arange(N) % 2 if mixed else groups % 2
    if not mixed and len(set(groups)) < 6:
        with pytest.raises(ValueError, match="3 rows or groups of 0 and of 1 at least"):
            load_images(folder, table, size=12)
        return
    parts = load_images(folder, table, size=12).parts().values()
    held = [set(part.groups) for part in parts]
    assert all(len(set(part.outcomes.tolist())) == 2 for part in parts)
    assert sum(map(len, held)) == len(set(groups)) == len(set.union(*held))


def test_ones_own_division_is_kept_and_its_leaks_are_told(folder, table, caplog):
    table["split"] = np.array(["train", "train", "train", "val", "test"])[np.arange(N) % 5]
    table["group"] = np.arange(N) // 2
    (folder / "009.png").write_bytes((folder / "000.png").read_bytes())  # test and train
    with caplog.at_level(logging.WARNING):
        data = load_images(folder, table, size=12)
    for name, part in data.parts().items():
        assert all(table["split"][int(n[:3])] == name for n in part.ids)
    assert "1 images stand in more than one part" in caplog.text
    assert "groups stand in more than one part" in caplog.text
    table["split"] = np.where(np.arange(N) % 5 == 4, "test", "train")
    data = load_images(folder, table, size=12)
    assert len(data.test) == 12 and 8 <= len(data.val) <= 12


# The cache


def test_second_reading_decodes_nothing_and_other_content_does(folder, table, cache, monkeypatch):
    first = load_images(folder, table, size=12)
    with monkeypatch.context() as patch:
        patch.setattr(pictures, "_decode", lambda *_: pytest.fail("decoded again"))
        assert load_images(folder, table, size=12).source == first.source
        with pytest.raises(pytest.fail.Exception):
            load_images(folder, table, size=16)
        with pytest.raises(pytest.fail.Exception):
            load_images(folder, table, size=12, aspect="pad")
        (folder / "000.png").write_bytes(encode(PIXELS[0] // 2))
        with pytest.raises(pytest.fail.Exception):
            load_images(folder, table, size=12)
    second = load_images(folder, table, size=12)
    assert second.source != first.source
    assert (every(second)["000.png"][0] == PIXELS[0].transpose(2, 0, 1) // 2).all()


def test_damaged_or_interrupted_cache(folder, table, cache, monkeypatch, caplog):
    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pictures, "_decode", dies)
        with pytest.raises(KeyboardInterrupt):
            load_images(folder, table, size=12)
    assert not list(cache.glob("*"))
    first = every(load_images(folder, table, size=12))
    (file,) = cache.glob("*.npy")
    file.write_bytes(file.read_bytes()[:1000])
    again = every(load_images(folder, table, size=12))
    assert "decoding again" in caplog.text
    assert all((again[name][0] == first[name][0]).all() for name in first)


def test_images_beyond_memory_stay_on_disk(folder, table, monkeypatch):
    held = load_images(folder, table, size=12).to("cpu")
    monkeypatch.setattr(images, "IN_MEMORY", 1000)
    mapped = load_images(folder, table, size=12).to("cpu")
    for name, part in mapped.parts().items():
        assert isinstance(part.inputs, MappedRows)
        expected = getattr(held, name)
        rows = torch.tensor([3, 0, 3])
        assert torch.equal(part.batch(rows)[0], expected.batch(rows)[0])
        assert isinstance(part.take([1, 2]).inputs, MappedRows)
    for a, b in zip(held.train.scale, mapped.train.scale):
        assert torch.allclose(a, b)
    assert len(pickle.dumps(mapped.train.inputs)) < 2000  # how another process gets them


# Paths


def test_names_that_are_not_unicode(tmp_path):
    names = (os.fsdecode(b"%d/\xff\xe4%d.png" % (Y[i], i)) for i in range(N))
    root = write_files(tmp_path / "x", dict(zip(names, FILES.values())))
    names = {name for part in load_images(root, size=12).parts().values() for name in part.ids}
    assert names == {rf"{int(Y[i])}/\xff\xe4{i}.png" for i in range(N)}


# What vanishes


def two_folders(root, kinds):
    jpegs = (encode(pixels, "JPEG") for pixels in PIXELS)
    named = enumerate(zip(kinds, jpegs))
    return write_files(
        root, {f"{i % 2}/{i}.{k}": bytes(9) if k == "heic" else x for i, (k, x) in named}
    )


def test_what_is_no_image_is_counted_and_named(tmp_path):
    root = two_folders(tmp_path / "x", ["jpg", "jpg", "jfif", "jfif", "JPE"] * 6 + ["heic"] * 4)
    (root / "0" / "._0.jpg").write_bytes(b"x")
    (root / "outside").symlink_to(tmp_path)
    data = load_images(root, size=12)
    assert data.report["images"] == 30 and not data.report["unreadable"]
    (note,) = (note for note in data.report["notes"] if note.startswith("Left out"))
    assert note.endswith(": 4 .heic; 1 hidden; 'outside': a link to a folder.")


def test_training_and_prediction_list_the_same(tmp_path):
    root = two_folders(tmp_path / "x", ["jpg"] * 30)
    hidden = (".ipynb_checkpoints/0-checkpoint.jpg", "__MACOSX/0/._0.jpg", "0/._2.jpg")
    write_files(root, dict.fromkeys(hidden, encode(PIXELS[0], "JPEG")))
    total, entries = image_entries(root)
    trained = {name for part in load_images(root, size=12).parts().values() for name in part.ids}
    assert total == 30 and {name for name, _, _ in entries} == trained
    (root / "linked").symlink_to(tmp_path)
    total, entries = image_entries(root)
    assert total == 31 and ("linked", None, "a link to a folder") in list(entries)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_is_an_error_with_the_place(folder, table, cache, monkeypatch):
    write = pictures._decode
    monkeypatch.setattr(pictures, "_decode", lambda path, *given: write(Path("/dev/full"), *given))
    with pytest.raises(OSError, match=r"cache_dir: no place for 25,920 bytes.*No space.*cache"):
        load_images(folder, table, size=12)
    assert not list(cache.glob("*"))


def test_a_cache_within_the_folder_moves_no_image(tmp_path):
    """A file that appears while the folder is read once shifted every later image by one."""
    for i in range(12):
        Image.new("RGB", (8, 8), (20 * i, 0, 0)).save(tmp_path / f"i{i:02}.png")
    table = pd.DataFrame({"path": [f"i{i:02}.png" for i in range(12)], "y": np.arange(12) % 2})
    splits = load_images(tmp_path, table, size=8, cache_dir=tmp_path / "cache")
    for part in splits.parts().values():
        for name, image in zip(part.ids, part.inputs):
            assert int(image[0, 0, 0]) == 20 * int(name[1:3])


def test_a_path_that_is_a_number_and_leads_nowhere_is_named(tmp_path):
    for i in range(1, 41):
        Image.new("RGB", (8, 8), (i, 0, 0)).save(tmp_path / f"{i}.png")
    table = pd.DataFrame({"path": range(1, 42), "y": np.arange(41) % 2})
    splits = load_images(tmp_path, table, size=8, cache_dir=tmp_path / "cache")
    assert splits.report["unreadable"] == {"41": "there is no such file"}


def test_names_in_hdf5_are_text(tmp_path):
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["x"] = rng.integers(0, 255, (60, 8, 8, 3), dtype=np.uint8)
        file["y"] = np.array([b"cat", b"dog"])[np.arange(60) % 2]
        file["split"] = [("train", "val", "test")[i // 20] for i in range(60)]
    splits = load_images(tmp_path / "all.h5", size=8, positive="cat", cache_dir=tmp_path)
    assert len(splits.train) == len(splits.val) == 20 and splits.train.outcomes[0] == 1


LAYOUTS = {
    "cat/train": lambda y, part: f"{y}/{part}",
    "train/cat": lambda y, part: f"{part}/{y}",
    "all/cat/Training set": lambda y, part: f"all/{y}/{part}",
    "cat/2023/train": lambda y, part: f"{y}/2023/{part}",
    "cat/train/camera": lambda y, part: f"{y}/{part}/camera",
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_division_is_kept_above_and_below_the_outcomes(layout, packed, tmp_path):
    """That of cat/train and cat/test was ignored, so that test images were trained on."""
    names = {part: part for part in ("train", "val", "test")}
    if "Training" in layout:
        names = {"train": "TRAINING set", "val": "Valid", "test": "testing"}
    root = divided(tmp_path / "x", lambda y, part: LAYOUTS[layout](y, names[part]))
    root = shutil.make_archive(tmp_path / "y", "zip", root) if packed else root
    data = load_images(root, size=12, positive="dog")
    for part, rows in data.parts().items():
        assert len(rows) and all(names[part] in name.split("/") for name in rows.ids)
        assert (rows.outcomes.numpy() == ["dog" in name for name in rows.ids]).all()


PARTS = {"train": "train", "val": "val", "test": "val"}


def test_folders_called_train_that_are_no_division(tmp_path):
    """Of some images alone: they are told; of things that are trains: they are a thing."""
    root = divided(tmp_path / "x", lambda y, part: f"{y}/{part}" if y == "cat" else y)
    data = load_images(root, size=12, positive="dog")
    told = f"Only {(~Y).sum()} of {N} images lie in folders for training"
    assert told in " ".join(data.report["notes"])
    things = divided(tmp_path / "z", lambda y, part: f"{y}/{'train' if part == 'test' else 'bus'}")
    notes = " ".join(load_images(things, size=12, positive="dog").report["notes"])
    assert "for training" not in notes
    for number, half in enumerate(  # no test part
        (lambda y, part: f"{y}/{PARTS[part]}", lambda y, part: f"{PARTS[part]}/{y}")
    ):
        root = divided(tmp_path / f"w{number}", half)
        with pytest.raises(ValueError, match="folders must hold train and test at least; test is"):
            load_images(root, size=12, positive="dog")


PACKED = ["cat.zip", "cat/more.zip", "all.zip/cat.zip", "cat.tar.gz", "cat.7z"]


@pytest.mark.parametrize("layout", PACKED)
def test_archives_among_the_images_are_named_where_nothing_else_is(layout, tmp_path):
    """They were blamed on missing folders: found 0: none."""
    names = (layout.removeprefix("all.zip/").replace("cat", kind) for kind in ("cat", "dog"))
    root = write_files(tmp_path / "x", dict.fromkeys(names, b"PK"))
    root = shutil.make_archive(tmp_path / "all", "zip", root) if "all" in layout else root
    with pytest.raises(ValueError, match=r"2 \.\w+ \(unpack them\)"):
        load_images(root, size=12, positive="dog")
    outcomes = pd.DataFrame({"path": ["a.png", "b.png"], "y": [0, 1]})
    with pytest.raises(ValueError, match=r"no such file.*2 \.\w+ \(unpack them\)"):
        load_images(root, outcomes, size=12)
    with pytest.raises(ValueError, match=r"holds no JPEG.*2 \.\w+ \(unpack them\)"):
        image_entries(root)


def test_composed_accents_name_the_same_outcome(tmp_path):
    root = divided(tmp_path / "x", lambda y, part: {"cat": "Käfer", "dog": "Zoë"}[y])
    other = unicodedata.normalize("NFD", "Zoë")
    (root / "Zoë").rename(root / "moved")
    (root / "moved").rename(root / other)  # as a Mac writes it
    data = load_images(root, size=12, positive="Zoë")
    assert sum(float(part.outcomes.sum()) for part in data.parts().values()) == Y.sum()
    table = pd.DataFrame({"path": [f"Zoë/{i:03d}.png" for i in range(N) if Y[i]], "y": 1})
    table.loc[::2, "y"] = 0
    assert load_images(root, table, size=12).report["used"] == Y.sum()
    table = table.assign(y=np.where(table["y"], "Zoë", "Käfer"), group=table.index // 2)
    table["group"] = table["group"].map("Zoë {}".format)
    table.loc[::3, ["y", "group"]] = table.loc[::3, ["y", "group"]].map(
        lambda text: unicodedata.normalize("NFD", text)
    )
    data = load_images(root, table, size=12, positive=other)
    parts = [{*part.groups} for part in data.parts().values()]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len({*table.index // 2})
