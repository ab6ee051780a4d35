import io
import logging

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.linear_model import Ridge

from probnb.data.base import Mirror
from probnb_book import scenarios
from probnb_book.data import faces
from probnb_book.data.drawn_faces import drawn_faces
from probnb_book.data.faces import age_from_name, load_faces, read_utkface

from ...made import PACK, encode, write_files

pytestmark = pytest.mark.usefixtures("cache")


def jpeg(colour, side=40):
    return encode(Image.new("RGB", (side, side), colour), "JPEG", quality=95)


FILES = {f"{10 * k}_0_1_2017010{k}.jpg.chip.jpg": jpeg((20 * k, 100, 50)) for k in range(1, 8)}


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path / "UTKFace", dict(reversed(FILES.items())))  # in any order


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "UTKFace.tar.gz"
    path.write_bytes(PACK["gzip"]((f"UTKFace/{name}", x) for name, x in reversed(FILES.items())))
    return path


# Drawn faces


def test_more_faces_of_a_seed_begin_with_the_same_ones_bit_for_bit():
    few, few_ages = drawn_faces(70, size=16, seed=4)
    many, many_ages = drawn_faces(200, size=16, seed=4)
    assert torch.equal(few, many[:70]) and (few_ages == many_ages[:70]).all()
    assert not torch.equal(few, drawn_faces(70, size=16, seed=5)[0])


@pytest.mark.parametrize("size", [8, 33, 64])
def test_any_size_shows_the_same_faces(size):
    images, ages = drawn_faces(20, size=size)
    assert images.shape == (20, 3, size, size) and images.dtype == torch.uint8
    reference, reference_ages = drawn_faces(20, size=32)
    assert (ages == reference_ages).all()

    def small(batch):
        return torch.nn.functional.adaptive_avg_pool2d(batch.float(), 8).flatten(1)

    distance = torch.cdist(small(images), small(reference))
    assert (distance.argmin(dim=1) == torch.arange(20)).all()


def test_every_face_differs_and_uses_the_range():
    images, _ = drawn_faces(400)
    assert len(torch.unique(images.flatten(1), dim=0)) == 400
    assert images.min() < 10 and images.max() > 245
    assert 60 < images.float().mean() < 190


def test_ages_are_distributed_like_utkfaces():
    _, ages = drawn_faces(6_000, size=8)
    assert ages.dtype == np.int64 and ages.min() >= 0 and 100 < ages.max() <= 116
    found = np.percentile(ages, [5, 10, 25, 50, 75, 90, 95])
    np.testing.assert_allclose(found, [2, 6, 23, 29, 45, 61, 72], atol=2)
    assert np.bincount(ages).argmax() == 26
    assert (ages == 1).sum() > 2 * (ages == 12).sum()


def test_age_shows_but_not_all_of_it():
    images, ages = drawn_faces(1600, seed=1)
    pooled = torch.nn.functional.avg_pool2d(images.float(), 2).flatten(1).numpy() / 255
    model = Ridge(alpha=30).fit(pooled[:1200], ages[:1200])
    r2 = model.score(pooled[1200:], ages[1200:])
    assert 0.35 < r2 < 0.85


# Loading


def joined(data, field):
    """One field of all three parts."""
    return np.concatenate([np.asarray(getattr(part, field)) for part in data.parts().values()])


@pytest.mark.parametrize(
    ("n", "expected"), [(1000, [702, 200, 98]), (6, None), (7, None), (9, None), (20, None)]
)
def test_splits_have_the_papers_proportions_share_nothing_and_are_not_empty(n, expected):
    data = load_faces("linear", n=n, size=16, seed=2)
    sizes = [len(part) for part in data.parts().values()]
    assert sizes == (expected or sizes) and min(sizes) > 0
    assert len(np.unique(joined(data, "inputs").reshape(n, -1), axis=0)) == n


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS)
def test_probabilities_follow_from_the_ages(scenario):
    data = load_faces(scenario, n=60, size=8)
    for part in data.parts().values():
        expected = scenarios.probability(part.groups, scenario)
        np.testing.assert_allclose(part.probabilities, expected, rtol=1e-6)
        assert part.probabilities.dtype == part.outcomes.dtype == torch.float32
        assert set(part.outcomes.tolist()) <= {0.0, 1.0}


def test_outcomes_have_the_probability_of_their_faces():
    data = load_faces("linear", n=3000, size=8, seed=3)
    p, y = data.train.probabilities.double(), data.train.outcomes.double()
    z = (y - p).sum() / (p * (1 - p)).sum().sqrt()
    assert abs(z) < 4
    assert p[y == 1].mean() > p[y == 0].mean() + 0.05


def test_seed_and_scenario_decide_everything():
    asked = {"scenario": "skewed", "n": 80, "seed": 1}
    one, two = load_faces(**asked), load_faces(**asked)
    assert one.source == two.source
    for field in ("inputs", "outcomes", "probabilities", "groups", "ids"):
        np.testing.assert_array_equal(joined(one, field), joined(two, field))
    others = ({"seed": 2}, {"scenario": "linear"}, {"n": 81}, {"size": 16})
    assert len({one.source, *(load_faces(**asked | other).source for other in others)}) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "liner"}, "scenario must be one of linear.*Did you mean 'linear'"),
        ({"size": 0}, "size must be an integer of at least 8; got 0"),
        ({"size": 32.0}, "size must be an integer"),
        ({"n": 5}, "n must be an integer of at least 6; got 5"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"n": (20, 20)}, r"n must be a number or three.*got \(20, 20\)"),
        ({"n": (1, 20, 20)}, r"n\[0\] must be an integer of at least 2; got 1"),
        ({"n": (20, 20, 0)}, r"n\[2\] must be an integer of at least 1; got 0"),
        ({"n": (2, 1, 1)}, "n must be an integer of at least 6; got 4"),
        ({"mirror": 2}, "mirror must be one of True, False; got 2"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_faces(**{"scenario": "linear", **arguments})


# UTKFace


@pytest.mark.parametrize(
    ("name", "age"),
    [
        ("26_0_1_20170117195838909.jpg.chip.jpg", 26),
        ("1_1_4_2017011719583890.jpg", 1),
        ("39_1_20170116174525125.jpg.chip.jpg", 39),  # a field is missing
        ("55_0_0_20170116232725357jpg.chip.jpg", 55),  # a dot is missing
        ("24_0_1_20170116220224657\n.jpg.chip.jpg", 24),  # a line break
        ("116_0_0_2017.jpg.chip.jpg", 116),
        ("151_0_0_2017.jpg.chip.jpg", None),
        ("face.jpg", None),
        ("._26_0_1_20170117195838909.jpg.chip.jpg", None),
        ("", None),
    ],
)
def test_age_from_name(name, age):
    assert age_from_name(name) == age


def test_folder_and_archive_give_the_same_images(folder, archive):
    images, ages, checksum, report = read_utkface(folder, 16)
    assert images.shape == (7, 3, 16, 16) and ages.tolist() == [10, 20, 30, 40, 50, 60, 70]
    for k, image in enumerate(images, 1):  # flat colours survive JPEG and resizing
        colour = image.float().mean(dim=(1, 2))
        np.testing.assert_allclose(colour, [20 * k, 100, 50], atol=3)
    again, ages_again, other_checksum, _ = read_utkface(archive, 16)
    assert torch.equal(images, again) and (ages == ages_again).all() and checksum != other_checksum
    assert report.pop("images") == 7 and not any(report.values())


def test_problem_files_are_named_counted_and_skipped(folder, tmp_path_factory, caplog):
    (folder / "5_0_1.jpg").write_bytes(jpeg("grey"))
    (folder / "portrait.jpg").write_bytes(jpeg("white"))
    (folder / "readme.txt").write_text("not an image")
    (folder / "8_0_1_2017.jpg").write_bytes(FILES["10_0_1_20170101.jpg.chip.jpg"][:200])
    (folder / "9_0_1_2017.jpg").write_bytes(b"not a JPEG")
    (folder / "11_0_1_2017.jpg").write_bytes(b"")
    (folder / "82_0_1_2017.jpg").symlink_to(tmp_path_factory.mktemp("else") / "82_0_1_2017.jpg")
    with caplog.at_level(logging.WARNING):
        data = load_faces("linear", folder, size=16)
    assert data.report == {
        "images": 8,
        "used": 8,
        "unreadable_age": ["portrait.jpg"],
        "left_out": "Left out, since they are no images: 1 .txt.",
        "corrupt": ["11_0_1_2017.jpg", "8_0_1_2017.jpg", "9_0_1_2017.jpg"],
        "unread": {"82_0_1_2017.jpg": "a link that leads out"},
        "repeated": [],
        "duplicates": [],
    }
    assert "skipped 3 files (corrupt)" in caplog.text and "8_0_1_2017.jpg" in caplog.text
    assert sorted(joined(data, "groups")) == [5, 10, 20, 30, 40, 50, 60, 70]


def test_sample_of_the_photographs(folder, tmp_path):
    assert len(joined(load_faces("linear", folder, size=16, n=6), "ids")) == 6
    with pytest.raises(ValueError, match="n must be from 6 to the 7 images of data_dir; got 8"):
        load_faces("linear", folder, size=16, n=8)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has 0 images"):
        load_faces("linear", tmp_path / "empty")


def test_utkface_as_distributed(data_dir, request):
    path = data_dir / "UTKFace.tar.gz"
    if not path.exists():
        pytest.skip("UTKFace.tar.gz is not in PROBNB_DATA")
    kept = request.config.cache.mkdir("utkface")  # decoding takes half a minute
    data = load_faces("discrete", path, size=16, cache_dir=kept)
    report = data.report
    assert report["images"] == 23_707
    assert not report["corrupt"] and not report["unreadable_age"] and not report["left_out"]
    assert [len(part) for part in data.parts().values()] == [16_640, 4_738, 2_329]
    ages = joined(data, "groups")
    assert ages.min() == 1 and ages.max() == 116 and np.median(ages) == 29
    assert (ages > 100).sum() == 21
    # the same photograph under several names, mostly with several ages
    assert len(report["duplicates"]) == 375
    assert sum(len(rows) - 1 for rows in report["duplicates"]) == 390
    assert not report["repeated"] and data.source.endswith("copies=together")
    assert copies_lie_together(data)


# The same photograph twice


def noise(seed):
    pixels = np.random.default_rng(seed).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    return encode(pixels, "JPEG")


def copies_lie_together(data):
    """Whether the rows of each photograph are in one part."""
    parts = [set(part.ids) for part in data.parts().values()]
    return all(any(part.issuperset(rows) for part in parts) for rows in data.report["duplicates"])


def test_a_photograph_in_two_folders_counts_once(tmp_path):
    for sub in ("a", "b/c"):
        write_files(tmp_path / "x" / sub, {f"{20 + i}_0_1_2017.jpg": noise(i) for i in range(8)})
    data = load_faces("linear", tmp_path / "x")
    assert data.report["images"] == 8 and not data.report["duplicates"]
    assert data.report["repeated"] == [f"b/c/{20 + i}_0_1_2017.jpg" for i in range(8)]
    one = load_faces("linear", tmp_path / "x" / "a")
    for field in ("inputs", "outcomes"):
        np.testing.assert_array_equal(joined(data, field), joined(one, field))


@pytest.mark.parametrize("seed", range(2))
def test_identical_pixels_stay_in_one_split_however_named_and_encoded(tmp_path, seed):
    for i in range(12):
        content = noise(i)
        (tmp_path / f"{20 + i}_0_1_2017.jpg").write_bytes(content)
        (tmp_path / f"{60 + i}_1_0_2018.jpg").write_bytes(content)  # another name, another age
        again = encode(Image.open(io.BytesIO(content)))
        (tmp_path / f"{90 + i}_1_0_2019.png").write_bytes(again)
    data = load_faces("linear", tmp_path, seed=seed)
    assert len(data.report["duplicates"]) == 12 and copies_lie_together(data)
    assert sorted(joined(data, "ids")) == list(range(36))
    pixels = [{x.numpy().tobytes() for x in part.inputs} for part in data.parts().values()]
    assert len(set.union(*pixels)) == sum(map(len, pixels))


@given(st.lists(st.integers(0, 5), min_size=6, max_size=40), st.integers(0, 100), st.data())
def test_copies_together_keeps_sets_whole_and_the_order_else(labels, seed, data):
    labels = np.array(labels)
    copies = [np.flatnonzero(labels == k).tolist() for k in range(4)]  # 4 and 5: no copies
    copies = [rows for rows in copies if len(rows) > 1]
    given_order = np.random.default_rng(seed).permutation(len(labels))
    order, end_of = faces.copies_together(given_order, copies)
    assert sorted(order) == list(range(len(labels)))
    cut = data.draw(st.integers(0, len(labels)))
    assert cut <= end_of[cut] <= cut + max([len(rows) - 1 for rows in copies], default=0)
    before = set(order[: end_of[cut]].tolist())
    assert all(set(rows) <= before or not set(rows) & before for rows in copies)
    free = [row for row in order if not any(row in rows for rows in copies)]
    assert free == [row for row in given_order if row in free]
    for rows in copies:  # they follow the first of them, in the order given
        at = order.tolist().index(next(row for row in given_order if row in rows))
        assert order[at : at + len(rows)].tolist() == [r for r in given_order if r in rows]


def test_without_copies_order_and_source_are_as_ever(folder):
    order = np.random.default_rng(3).permutation(50)
    same, end_of = faces.copies_together(order, [])
    assert (same == order).all() and (end_of == np.arange(51)).all()
    data = load_faces("linear", folder, size=16, seed=3)
    checksum = read_utkface(folder, 16)[2]
    assert data.source == f"utkface sha256={checksum} scenario=linear size=16 n=7 seed=3"
    np.testing.assert_array_equal(joined(data, "ids"), np.random.default_rng(3).permutation(7))


# Sizes, mirroring, numbers


def test_sizes_in_place_of_n():
    data = load_faces("linear", size=8, n=(40, 20, 30), seed=5)
    assert [len(part) for part in data.parts().values()] == [40, 20, 30]
    drawn = f"drawn-faces v{faces.VERSION} scenario=linear size=8"
    assert data.source == f"{drawn} sizes=40+20+30 seed=5"
    same = load_faces("linear", size=8, n=90, seed=5)
    assert same.source == f"{drawn} n=90 seed=5"
    assert torch.equal(data.train.inputs[:10], same.train.inputs[:10])
    images, ages = drawn_faces(90, size=8, seed=5)
    rows = joined(data, "ids")  # the id is the number of the face
    np.testing.assert_array_equal(joined(data, "inputs"), images[rows])
    np.testing.assert_array_equal(joined(data, "groups"), ages[rows])


def test_only_training_faces_are_mirrored_and_only_when_asked():
    data = load_faces("linear", size=8, n=50, mirror=True)
    assert data.train.augment == (Mirror(),) and data.val.augment == data.test.augment == ()
    plain = load_faces("linear", size=8, n=50)
    assert plain.train.augment == () and plain.source == data.source
    assert torch.equal(plain.train.inputs, data.train.inputs)
