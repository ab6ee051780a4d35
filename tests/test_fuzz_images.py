"""Images, archives and arrays cut short and with bytes changed: read, or refused by name.

PROBNB_FUZZ sets about how many inputs each area has; see `tests.test_fuzz`.
"""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image, ImageCms

from probnb.images.files import list_files, open_array, read_files
from probnb.images.folder import load_images
from probnb.images.pictures import decode

from .made import CONTENT, PACK, encode
from .test_fuzz import fuzz

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 255, (16, 16, 3), dtype=np.uint8)
COLOUR, GREY = Image.fromarray(PIXELS), Image.fromarray(PIXELS[:, :, 0])
DEEP = Image.fromarray(PIXELS[:, :, 0].astype(np.uint16) << 8)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


IMAGES = [
    *(encode(COLOUR, kind) for kind in ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")),
    encode(COLOUR, "TIFF", compression="tiff_lzw"),
    encode(COLOUR.convert("CMYK"), "JPEG", icc_profile=PROFILE),
    encode(COLOUR, "PNG", icc_profile=PROFILE),
    encode(COLOUR.convert("RGBA"), "WEBP"),
    encode(GREY.convert("P"), "PNG"),
    encode(DEEP, "PNG"),
    encode(DEEP, "TIFF"),
    encode(GREY, "GIF", save_all=True, append_images=[GREY.rotate(90)]),
]
CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8)


def damaged(content, changes, cut):
    content = bytearray(content)
    for at, value in changes:
        content[at % len(content)] = value
    return bytes(content[: max(1, cut % (2 * len(content)))])


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(IMAGES), CHANGES, st.integers(0, 10_000))
@fuzz()
def test_images(content, changes, cut):
    try:
        image, digest = decode(damaged(content, changes, cut), 8, "crop")
    except ValueError as error:
        assert type(error) is ValueError and str(error)
    else:
        assert image.shape == (3, 8, 8) and image.dtype == np.uint8 and len(digest) == 64


@given(st.sampled_from(list(PACK)), CHANGES, st.integers(0, 10_000))
@example("zip", [(153, 8), (1807, 18)], 327)  # a name that is no text
@example("zip", [(10_000, 0)], 327)  # and one of no letters
@fuzz(0.3)
def test_archives(tmp_path_factory, kind, changes, cut):
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(damaged(PACK[kind](CONTENT.items()), changes, cut))
    try:
        listing = list_files(path)
        found = dict(read_files(path, listing.files.values()))
    except ValueError as error:
        assert type(error) is ValueError and "fuzzed'" in str(error)
    else:
        assert all(value is None or isinstance(value, bytes) for value in found.values())
        assert all(listing.skipped.values()) and isinstance(listing.left_out(), str)


def array_files(folder):
    images, y = np.stack([PIXELS] * 4), np.arange(4) % 2
    np.save(folder / "x.npy", images)
    np.savez(folder / "x.npz", images=images, y=y)
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("images", data=images, compression="gzip")
        file["y"] = y
    return [folder / name for name in ("x.npy", "x.npz", "x.h5")]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    return {p.suffix: p.read_bytes() for p in array_files(tmp_path_factory.mktemp("arrays"))}


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from([".npy", ".npz", ".h5"]), CHANGES, st.integers(0, 100_000))
@fuzz(0.2)
def test_arrays(arrays, tmp_path_factory, ending, changes, cut):
    path = tmp_path_factory.getbasetemp() / f"fuzzed{ending}"
    path.unlink(missing_ok=True)
    path.write_bytes(damaged(arrays[ending], changes, cut))
    try:
        images, beside = open_array(path)
        assert images[0:1].shape[0] <= 1 and isinstance(beside, dict)
    except ValueError as error:
        assert type(error) is ValueError and path.name in str(error)


@pytest.mark.filterwarnings("ignore")
@given(
    st.lists(st.tuples(st.sampled_from(IMAGES), CHANGES, st.integers(0, 10_000)), max_size=4),
    st.integers(0, 9),
)
@fuzz(0.02)
def test_folders_leave_nothing_half_written(tmp_path_factory, bad, seed):
    root = tmp_path_factory.mktemp("folder")
    for i in range(30):
        pixels = np.random.default_rng([seed, i]).integers(0, 255, (9, 9, 3), dtype=np.uint8)
        content = damaged(*bad[i]) if i < len(bad) else encode(Image.fromarray(pixels), "PNG")
        (root / "x" / str(i % 2)).mkdir(parents=True, exist_ok=True)
        (root / "x" / str(i % 2) / f"{i}.png").write_bytes(content)
    try:
        report = load_images(root / "x", size=8, unreadable=0.1, cache_dir=root / "cache").report
        assert report["used"] + len(report["unreadable"]) == 30
    except ValueError as error:
        assert type(error) is ValueError and "images cannot be read" in str(error)
    left = sorted(path.suffix for path in (root / "cache").iterdir())
    assert left == [".json", ".npy"]
