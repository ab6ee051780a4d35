"""One image file: every encoding gives the same picture, every bad file its reason."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms, TiffImagePlugin

from probnb.images.pictures import decode, decode_array, open_picture

from ..made import encode

SIDE = 24
RNG = np.random.default_rng(0)
SMOOTH = np.kron(RNG.integers(30, 220, (3, 3, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))


EXACT = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}
"""Settings under which an encoding keeps the pixels, or nearly."""


def seen(content):
    return np.asarray(open_picture(content))


def off(content, expected):
    """By how much the picture is another than it was drawn, on average."""
    return np.abs(seen(content).astype(int) - expected).mean()


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_jpeg_is_close(options):
    assert off(encode(SMOOTH, "JPEG", quality=95, **options), SMOOTH) < 8


def test_digest_is_of_pixels_not_of_bytes():
    first = encode(SMOOTH, "PNG")
    second = encode(SMOOTH, "PNG", compress_level=0)
    assert first != second and decode(first, 8)[1] == decode(second, 8)[1]
    others = [
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("BMP", {}),
        ("WEBP", EXACT["WEBP"]),
    ]
    for kind, options in others:
        image, digest = decode(encode(SMOOTH, kind, **options), 12)
        reference, same = decode(first, 12)
        assert digest == same and (image == reference).all()
        assert image.shape == (3, 12, 12) and image.dtype == np.uint8
    other = SMOOTH.copy()
    other[0, 0, 0] += 1
    assert decode(encode(other, "PNG"), 8)[1] != decode(first, 8)[1]
    wide, high = Image.new("RGB", (4, 2), "red"), Image.new("RGB", (2, 4), "red")
    assert decode(encode(wide, "PNG"), 8)[1] != decode(encode(high, "PNG"), 8)[1]


def test_grey_alpha_palette_cmyk_and_bilevel():
    grey = SMOOTH[:, :, 0]
    for image in (grey, Image.fromarray(grey).convert("P")):
        assert (seen(encode(image)) == grey[:, :, None]).all()
    alpha = np.dstack([SMOOTH, np.full((SIDE, SIDE), 255, np.uint8)])
    alpha[:12, :, 3] = 0
    found = seen(encode(alpha))
    assert (found[:12] == 255).all() and (found[12:] == SMOOTH[12:]).all()
    found = seen(encode(np.dstack([grey, np.full_like(grey, 128)]))).astype(float)
    np.testing.assert_allclose(found[:, :, 1], 255 + (grey - 255.0) * 128 / 255, atol=1)
    for kind in ("JPEG", "TIFF"):
        content = encode(Image.fromarray(SMOOTH).convert("CMYK"), kind)
        assert Image.open(io.BytesIO(content)).mode == "CMYK" and off(content, SMOOTH) < 8
    bits = Image.fromarray((grey > 100).astype(np.uint8) * 255).convert("1")
    assert (seen(encode(bits, "TIFF"))[:, :, 0] == 255 * (grey > 100)).all()


DEEP = np.arange(SIDE * SIDE, dtype=np.uint16).reshape(SIDE, SIDE) * 113


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_not_clipped(kind):
    found = seen(encode(DEEP, kind))
    assert (found == (DEEP >> 8)[:, :, None]).all() and found.max() > 250


def test_white_at_zero_is_turned_in_sixteen_bits_as_in_eight():
    found = seen(encode(DEEP, "TIFF", tiffinfo={262: 0}))
    assert (found == (0xFFFF - DEEP >> 8)[:, :, None]).all()


@pytest.mark.parametrize("top", [256, 4096])
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "array"])
def test_eight_to_twelve_bits_in_files_of_sixteen_are_refused(kind, top):
    """They would be black, and different ones copies of each other."""
    grey = RNG.integers(0, top, (SIDE, SIDE)).astype(np.uint16)
    with pytest.raises(ValueError, match=r"16 bits whose brightest pixel is .*% of full"):
        decode_array(grey, 16) if kind == "array" else decode(encode(grey, kind), 16)
    assert not decode_array(0 * grey, 8)[0].any()  # all black may be


def swapped():
    """The profile of sRGB with the colours of red and blue exchanged."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = struct.unpack(">I", profile[128:132])[0]
    at = {bytes(profile[i : i + 4]): i + 4 for i in range(132, 132 + 12 * count, 12)}
    red, blue = (slice(at[name], at[name] + 8) for name in (b"rXYZ", b"bXYZ"))
    profile[red], profile[blue] = profile[blue], profile[red]
    return bytes(profile)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG", "WEBP"])
def test_colour_profiles_count(kind):
    flat = np.zeros((16, 16, 3), np.uint8)
    flat[:, :, 0] = 255
    red, _, blue = seen(encode(flat, kind, icc_profile=swapped(), **EXACT.get(kind, {})))[0, 0]
    assert blue > 200 > 50 > red


def test_the_profile_of_srgb_and_a_damaged_one_change_nothing():
    plain = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for profile in (plain, plain[:200], b"no profile"):
        for image in (SMOOTH, SMOOTH[:, :, 0]):
            found = seen(encode(image, icc_profile=profile))
            assert (found == image.reshape(SIDE, SIDE, -1)).all()


def test_sixteen_bit_colour():
    pixels = (SMOOTH.astype(np.uint16) << 8 | 7).astype(">u2")  # Pillow writes none
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    assert (seen(png(SIDE, 16, lines)) == SMOOTH).all()
    dim = b"".join(b"\0" + row.tobytes() for row in (pixels >> 8).astype(">u2"))
    with pytest.raises(ValueError, match="16 bits whose brightest pixel"):
        open_picture(png(SIDE, 16, dim))


TURNED = {  # how the pixels are stored so that a viewer shows them upright
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, 1),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: lambda a: np.rot90(a, -1),
}


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG"])
@pytest.mark.parametrize("orientation", TURNED)
def test_orientation_is_obeyed(orientation, kind):
    upright, exif = SMOOTH[:16], Image.Exif()  # not square
    exif[0x0112] = orientation
    stored = np.ascontiguousarray(TURNED[orientation](upright))
    content = encode(stored, kind, exif=exif, **EXACT.get(kind, {}))
    assert seen(content).shape == upright.shape
    assert off(content, upright) < (3 if kind == "JPEG" else 1e-9)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_unknown_orientation_and_damaged_exif_do_not_lose_the_image():
    exif = Image.Exif()
    exif[0x0112] = 99
    assert (seen(encode(SMOOTH, exif=exif)) == SMOOTH).all()
    for damaged in (b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\xff\xff\xff"):
        assert open_picture(encode(SMOOTH, "JPEG", exif=damaged)).size == (SIDE, SIDE)


def test_large_photographs_are_reduced_while_decoding():
    big = np.kron(SMOOTH, np.ones((32, 32, 1), np.uint8))
    content = encode(big, "JPEG", quality=95)
    assert max(open_picture(content, 100).size) < 200 and open_picture(content).size == (768, 768)
    small = decode(content, 24)[0].transpose(1, 2, 0).astype(int)
    assert np.abs(small - SMOOTH).mean() < 8


def pages(kind):
    """A file of two pictures."""
    return encode(SMOOTH, kind, save_all=True, append_images=[Image.new("RGB", (SIDE, SIDE))])


NOISE = RNG.integers(0, 255, (64, 64, 3), dtype=np.uint8)


def png(side, bits=8, lines=b"", colour=2, clear=b""):
    """A PNG put together by hand: its header may promise what it does not hold."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", side, side, bits, colour, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + (chunk(b"tRNS", clear) if clear else b"")
    chunks += chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.filterwarnings("ignore:Image size")  # Pillow's, before we refuse
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\0\0\0\x18ftypheic\0\0", "HEIC, AVIF or a film: save it as JPEG or PNG"),
        (b"text", "not a JPEG, PNG, TIFF, WebP, BMP or GIF"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a JPEG"),
        (encode(NOISE, "PPM"), "not a JPEG"),
        *[(pages(kind), "several pages or frames: save the") for kind in ("TIFF", "GIF", "WEBP")],
        (encode(NOISE, "JPEG")[:2000], "truncated"),
        (encode(NOISE, "PNG")[:2000], "."),
        (encode(NOISE, "WEBP")[:500], "."),
        (encode(NOISE, "TIFF")[:2000], "."),
        (encode(NOISE, "PNG").replace(b"IDAT", b"IDAX"), "."),
        (png(60_000), "pixels"),
        (encode(Image.new("1", (10_000, 9_000)), "PNG"), "10,000 x 9,000 pixels are more than"),
        (png(8, 16, bytes(136), 0, b"\x12\x34"), "a transparent colour in other than 8 bits"),
        (png(8, 16, bytes(392), 2, bytes(6)), "a transparent colour in other than 8 bits"),
        (png(8, 2, bytes(24), 0, b"\0\2"), "a transparent colour in other than 8 bits"),
        *[
            (encode(Image.new("RGBA", (8, 8), (9, 90, 200, 0)), kind), "all of it is transparent")
            for kind in ("PNG", "TIFF", "WEBP")
        ],
        (encode(Image.new("LA", (8, 8), (9, 0)), "PNG"), "all of it is transparent"),
        (png(8, 8, bytes(72), 0, b"\0\0"), "all of it is transparent"),
        (encode(Image.new("F", (8, 8)), "TIFF"), "floating-point pixels: save it with 8 or 16"),
        (encode(Image.new("I", (8, 8), 1 << 20), "TIFF"), "32-bit integers: save it with 8"),
    ],
)
def test_bad_files_are_refused_with_the_reason(content, reason):
    with pytest.raises(ValueError, match=reason):
        open_picture(content)


def tiff(values, planes=1, order="<", more=None):
    """A TIFF of some samples, one strip a plane, whose tags may be wrong."""
    height, width, samples = values.shape
    kind, bits = values.dtype.newbyteorder(order), 8 * values.dtype.itemsize
    planed = values.transpose(2, 0, 1) if planes == 2 else values[None]
    strips = [plane.astype(kind).tobytes() for plane in planed]
    sizes = [len(strip) for strip in strips]
    tags = {256: width, 257: height, 258: [bits] * samples, 259: 1, 262: 2 if samples > 2 else 1}
    tags |= {273: [sum(sizes[:k]) for k in range(len(sizes))], 279: sizes}  # offsets from its end
    tags |= {277: samples, 278: height, 284: planes}
    tags |= ({338: 2} if samples in (2, 4) else {}) | (more or {})
    tags = {tag: value for tag, value in tags.items() if value is not None}
    written = TiffImagePlugin.ImageFileDirectory_v2(prefix=b"II" if order == "<" else b"MM")
    for tag, value in tags.items():
        written.tagtype[tag], written[tag] = 4, value  # all of 32 bits
    head = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8)
    return head + written.tobytes(8) + b"".join(strips)


@pytest.mark.parametrize("order", ["<", ">"])
def test_planes_of_a_tiff_are_right_or_refused(order):
    """Colours of 16 bits in planes came out as another picture, and nothing was said."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (8, 6, 4)).astype(np.uint8)
    deep = small.astype(np.uint16) * 257
    for planes in (1, 2):
        seen = open_picture(tiff(small[..., :3], planes, order))
        np.testing.assert_array_equal(seen, small[..., :3])
    np.testing.assert_array_equal(open_picture(tiff(deep[..., :3], 1, order)), small[..., :3])
    for values in (deep[..., :3], deep, deep[..., :2], small[..., :2]):
        words = "separate planes, other than RGB of 8 bits|a TIFF of a kind that is not read"
        with pytest.raises(ValueError, match=words):
            open_picture(tiff(values, 2, order))
    more = {262: 5, 338: None}
    with pytest.raises(ValueError, match="separate planes"):  # CMYK
        open_picture(tiff(small, 2, order, more))
    for signed in ((deep[..., :1] // 4).astype(np.int16), small[..., :1].astype(np.int8)):
        with pytest.raises(ValueError, match="signed integers"):
            open_picture(tiff(signed, 1, order, {339: [2]}))
    with pytest.raises(ValueError, match="a TIFF of a kind that is not read"):
        open_picture(tiff(deep[..., :2], 1, order))
