"""The loader, on files written in the public layout by code that is not the loader's."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from probnb_book.data.dashcam import DashcamInputs, read_dashcam

from ...made import encode

GREY = (90, 90, 90)


@cache
def jpeg(colour, size, mode):
    return encode(Image.new("RGB", size, colour).convert(mode), "JPEG", quality=95)


def frame(folder, number, vehicles=(), colour=GREY, size=(710, 400), mode="RGB", key="label"):
    """Write <number>.jpg and <number>.json; a vehicle is (hashcode, x, y, w, h, label)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.jpg").write_bytes(jpeg(colour, size, mode))
    entries = [
        {"hashcode": c, "x": x, "y": y, "width": w, "height": h, key: label}
        for c, x, y, w, h, label in vehicles
    ]
    (folder / f"{number}.json").write_text(json.dumps({"vehicleInfo": entries}))


CAR = ("7", 100, 200, 60, 40)


def scene(folder, first=0, frames=20, label=False, vehicles=None):
    """Write a scene in which one vehicle stands still, labelled in every frame."""
    for number in range(first, first + frames):
        frame(folder, number, [(*CAR, label)] if vehicles is None else vehicles)


@pytest.fixture
def layout(tmp_path):
    """The least that can be read: whole scenes to test, the first four frames of one elsewhere."""
    root = tmp_path / "YouTubeCrash"
    scene(root / "test" / "nonaccident")
    for part in ("train", "val"):
        scene(root / part / "accident", frames=4, label=True)
    return root


@pytest.fixture
def read(tmp_path):
    def read(root, **settings):
        return read_dashcam(root, **{"size": (13, 71), **settings}, cache_dir=tmp_path / "cache")

    return read


def edit(root, number, **changed):
    """Change what one JSON of test/nonaccident says of its vehicle."""
    file = root / "test" / "nonaccident" / f"{number}.json"
    (vehicle,) = json.loads(file.read_text())["vehicleInfo"]
    file.write_text(json.dumps({"vehicleInfo": [vehicle | changed]}))


def places(data, scene="test/nonaccident/0"):
    """Numbers of the frames that have a sample in one scene."""
    ids = [i for i, g in zip(data.ids, data.groups, strict=True) if g == scene]
    return [int(i.split("/")[2]) for i in ids]


def sample(data, name, vehicle=7):
    """Inputs and masks of a vehicle of test/nonaccident in one frame."""
    inputs = data.inputs[[list(data.ids).index(f"test/nonaccident/{name}/{vehicle}")]]
    return np.asarray(inputs)[0], inputs.masks()[0]


def test_a_scene_gives_18_samples_from_its_third_frame_on(layout, read):
    scene(layout / "test" / "accident", label=True)
    splits = read(layout)
    test = splits.test
    assert (len(test), test.outcomes.sum(), test.probabilities) == (36, 18, None)
    assert places(test) == places(test, "test/accident/0") == list(range(2, 20))
    assert test.ids[0] == "test/accident/2/7"
    assert (splits.report["frames"], splits.report["lost"]) == (48, 0)
    assert tuple(test.inputs.shape) == (36, 12, 13, 71)


def test_files_are_sorted_by_number_and_samples_go_back_in_time(layout, read):
    for number in range(20):
        frame(layout / "test" / "nonaccident", number, [(*CAR, False)], (10 * number,) * 3)
    pixels, _ = sample(read(layout).test, 11)
    shades = pixels[:9].reshape(3, -1).mean(axis=1)
    np.testing.assert_allclose(shades, [110, 100, 90], atol=1.5)  # not 9.jpg after 19.jpg


def test_channels_are_rgb_of_three_frames_then_their_masks(layout, read):
    folder = layout / "test" / "nonaccident"
    for number, x in ((2, 300), (1, 290), (0, 280)):
        frame(folder, number, [("7", x, 200, 100, 60, False)], (200, 100, 0))
    pixels, _ = sample(read(layout, size=(130, 355)).test, 2)
    np.testing.assert_allclose(pixels[:9].mean((1, 2)), [200, 100, 0] * 3, atol=2)
    for channel, x in ((9, 300), (10, 290), (11, 280)):
        mask = np.zeros((130, 355))
        mask[50:80, x // 2 : x // 2 + 50] = 255  # rows 200 to 260, less the 100 cut off, halved
        np.testing.assert_array_equal(pixels[channel], mask)


def test_rows_100_to_360_are_cut_out_and_halved(layout, read):
    ramp = np.zeros((400, 710, 3), np.uint8)
    ramp[100:360, :, 0] = np.linspace(20, 220, 260)[:, None]
    for number in range(20):
        file = layout / "test" / "nonaccident" / f"{number}.jpg"
        Image.fromarray(ramp).save(file, quality=100, subsampling=0)
    red = np.asarray(read(layout, size=(130, 355)).test.inputs[[2]])[0, 0]
    expected = ramp[100:360, :, 0].reshape(130, 2, 355, 2).mean((1, 3))
    np.testing.assert_allclose(red[2:-2], expected[2:-2], atol=2)
    assert red[0].mean() > 15, "rows above 100 leave no trace"


def test_part_of_a_pixel_is_part_of_a_mask():
    inputs = DashcamInputs(
        np.zeros((1, 3, 13, 71), np.uint8),
        np.zeros((1, 3), int),
        np.array([[[5, 100, 10, 20], [0, 0, 0, 0], [700, 350, 30, 30]]], float),
    )
    first, empty, corner = inputs.masks()[0]
    assert first[0, :3].tolist() == [128, 128, 0]  # pixels are 10 wide and 20 high here
    assert not first[1:].any() and not empty.any()
    assert corner[12, 70] == corner.sum() == 128  # the box goes on outside of the frame


def test_same_frames_are_kept_once_and_read_from_the_cache(layout, read, monkeypatch):
    first = read(layout)
    assert isinstance(first.train.inputs.frames, np.memmap)
    assert first.train.inputs.frames.shape[0] == 28  # for 22 samples of 3 frames
    monkeypatch.setattr("probnb_book.data.dashcam.decode", None)  # would fail
    second = read(layout)
    assert second.source == first.source
    assert np.array_equal(second.test.inputs, first.test.inputs)
    assert second.report == first.report


def test_nothing_is_left_half_written(layout, read, tmp_path, monkeypatch):
    def interrupted(content, out):
        raise KeyboardInterrupt

    monkeypatch.setattr("probnb_book.data.dashcam.decode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(layout)
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("what", ["jpg", "json"])
def test_other_content_is_other_data(layout, read, what):
    source = read(layout).source
    if what == "jpg":
        frame(layout / "test" / "nonaccident", 3, [(*CAR, False)], (1, 2, 3))
    else:
        edit(layout, 3, x=101)
    assert read(layout).source != source


def test_scenes_never_straddle_parts(tmp_path, read):
    root = tmp_path / "data"
    scene(root / "test" / "accident", frames=3, label=True)
    for k in range(10):
        scene(root / "train" / "accident", 20 * k, frames=4, label=True)
        scene(root / "train" / "nonaccident", 20 * k, frames=4)
    splits = read(root)
    train, val = set(splits.train.groups), set(splits.val.groups)
    assert not train & val and len(train) == 14
    assert sorted(g.split("/")[1] for g in val) == ["accident"] * 3 + ["nonaccident"] * 3
    other = read(root, seed=1)
    assert set(other.val.groups) != val and other.source != splits.source


def test_a_lost_file_does_not_shift_the_scenes_after_it(layout, read):
    folder = layout / "test" / "nonaccident"
    scene(folder, first=20)
    for suffix in ("jpg", "json"):
        (folder / f"5.{suffix}").unlink()
    splits = read(layout)
    assert splits.report["lost"] == 2  # 6 and 7 follow back through 5
    assert places(splits.test) == [2, 3, 4, *range(8, 20)]
    assert places(splits.test, "test/nonaccident/20") == list(range(22, 40))


def test_label_null_is_skipped_and_counted(layout, read):
    edit(layout, 8, label=None)
    splits = read(layout)
    assert splits.report["unlabelled"] == 1
    assert places(splits.test) == [n for n in range(2, 20) if n != 8]  # 9 still follows back


@pytest.mark.parametrize("mode", ["CMYK", "L"])
def test_other_colour_spaces_are_converted(layout, read, mode):
    frame(layout / "test" / "nonaccident", 19, [(*CAR, False)], (200, 60, 10), mode=mode)
    expected = [200, 60, 10] if mode == "CMYK" else [96, 96, 96]
    latest, _ = sample(read(layout).test, 19)
    np.testing.assert_allclose(latest[:3].mean((1, 2)), expected, atol=4)


def test_numbers_may_be_text(layout, read):
    edit(layout, 19, x="100", y="200", width="60", height="40")
    _, (now, before, _) = sample(read(layout).test, 19)
    assert np.array_equal(now, before)


def test_a_vehicle_that_was_not_there_before_has_empty_masks(layout, read):
    for number in range(19):
        edit(layout, number, hashcode="8")
    splits = read(layout)
    assert splits.report["without_history"] == 1
    _, masks = sample(splits.test, 19)
    assert [bool(mask.any()) for mask in masks] == [True, False, False]


def test_wrong_arguments(layout, read, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="train and test"):
        read(layout / "train")
    with pytest.raises(ValueError, match="Did you mean 'adaptedLabel'"):
        read(layout, label="adapted_label")


def test_a_part_without_a_labelled_vehicle(layout, read):
    for file in (layout / "test").rglob("*.json"):
        Path(file).write_text('{"vehicleInfo": []}')
    with pytest.raises(ValueError, match="test has none"):
        read(layout)


@pytest.mark.parametrize(("key", "positive"), [("adaptedLabel", 0), ("syntheticLabel", 6)])
def test_gtacrash_has_two_labels(tmp_path, read, key, positive):
    for part in ("train", "val", "test"):
        for number in range(4):
            frame(tmp_path / part / "accident", number, [(*CAR, True)], key="syntheticLabel")
            file = tmp_path / part / "accident" / f"{number}.json"
            (vehicle,) = json.loads(file.read_text())["vehicleInfo"]
            file.write_text(json.dumps({"vehicleInfo": [vehicle | {"adaptedLabel": False}]}))
    splits = read(tmp_path, label=key)
    assert sum(part.outcomes.sum() for part in splits.parts().values()) == positive
    with pytest.raises(ValueError, match=r"\d.jpg: KeyError: 'label'"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("10.jpg", b"no picture", "cannot identify"),
        ("10.jpg", jpeg(GREY, (710, 400), "RGB")[:-400], "truncated"),
        ("10.jpg", jpeg(GREY, (640, 480), "RGB"), "must be of 710 x 400 pixels, is of 640 x 480"),
        ("10.json", b"{", "JSONDecodeError"),
        ("10.json", b"[]", "TypeError"),
        ("10.json", b'{"vehicleInfo": [{"x": 1}]}', "KeyError: 'hashcode'"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(layout, read, file, content, message):
    (layout / "test" / "nonaccident" / file).write_bytes(content)
    with pytest.raises(ValueError, match=rf"path must hold frames.*10.jpg: .*{message}"):
        read(layout)
    (layout / "test" / "nonaccident" / "10.json").unlink()
    with pytest.raises((FileNotFoundError, ValueError), match=r"10.js?o?n?p?g?"):
        read(layout)


@pytest.mark.parametrize("value", ["true", 2, []])
def test_a_label_that_is_none(layout, read, value):
    edit(layout, 3, label=value)
    with pytest.raises(ValueError, match=r"3.jpg: .*label must be true, false or null"):
        read(layout)


def test_boxes_outside_the_frame(layout, read):
    """Wholly outside now: lost. Before: an empty mask. Partly outside: cut."""
    for number in range(14, 20):
        edit(layout, number, hashcode=8, x=-30, y=120)
    edit(layout, 15, y=60)  # ends at row 100
    edit(layout, 19, x=-60)  # ends at column 0
    splits = read(layout)
    assert splits.report["lost"] == 2
    _, (now, outside, before) = sample(splits.test, 16, 8)
    assert now[:, 0].any() and not now[:, 3:].any()  # from -30 to 30: three pixels of ten
    assert not outside.any() and before.any()


@pytest.mark.parametrize("change", [{"width": 0}, {"height": -3}, {"x": float("nan")}])
def test_broken_boxes(layout, read, change):
    edit(layout, 18, **change)
    splits = read(layout)
    assert splits.report["lost"] == 1
    _, (_, broken, _) = sample(splits.test, 19)
    assert not broken.any()


def test_duplicate_hashcodes_in_a_frame(layout, read):
    twice = [(*CAR, False), ("7", 400, *CAR[2:], False)]
    frame(layout / "test" / "nonaccident", 10, twice)
    with pytest.raises(ValueError, match=r"hashcode must differ .*test/nonaccident/10"):
        read(layout)
