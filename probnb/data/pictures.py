"""One image file, whatever it is: eight bits, three channels, upright, at the size asked for.

What cannot be shown as a viewer shows it is refused with the reason, an image that would fill the
memory before it does.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io

import numpy as np
from PIL import Image, ImageCms, ImageOps

__all__ = ["ASPECTS", "decode", "decode_array", "open_picture"]

ASPECTS = ("crop", "pad", "stretch")
"""What may happen to an image that is not square."""

PIXELS = 89_478_485
"""Width times height at most, as Pillow warns: beyond lie bombs, and scans to be tiled first."""

DIM = 32
"""Of 16 bits, the brightest high byte below which an image is refused: 8 to 12 bits were stored."""

_FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")
_BITS, _PHOTOMETRIC = 258, 262


def open_picture(content, reduced=None):
    """Decode an image file to RGB, as a viewer would show it.

    Parameters
    ----------
    content : bytes
        The file: JPEG, PNG, TIFF, WebP, BMP or GIF; grey, palette, CMYK, 16 bits, with alpha.
    reduced : int, optional
        Let the JPEG decoder halve the image, to no less than this height and width, which is
        much faster.

    Returns
    -------
    PIL.Image.Image
        sRGB, eight bits (of 16 the higher), turned as its EXIF tag says, transparent parts on
        white.

    Raises
    ------
    ValueError
        With the reason: it cannot be decoded to the end, has more than 89 million pixels, several
        pages or frames, floats or 32-bit integers, or 16 bits of which only the lowest are used.
    """
    try:
        image = Image.open(io.BytesIO(content), formats=_FORMATS)
        width, height = image.size
        if width * height > PIXELS:
            raise ValueError(f"{width:,} x {height:,} pixels are more than {PIXELS:,}")
        if getattr(image, "is_animated", False) and image.format != "MPO":  # whose first is it
            raise ValueError("several pages or frames: save the one that counts as its own file")
        if reduced is not None:
            image.draft("RGB", (reduced, reduced))
        tags = dict(getattr(image, "tag_v2", {}))
        deep = content[24] if image.format == "PNG" else max(tags.get(_BITS, (8,)))
        image.load()  # a TIFF turns here, and loses its tag
        with contextlib.suppress(Exception):  # a damaged tag does not make the image unreadable
            ImageOps.exif_transpose(image, in_place=True)
        return _rgb(image, deep == 16, inverted=tags.get(_PHOTOMETRIC) == 0)
    except Image.UnidentifiedImageError:
        film = "HEIC, AVIF or a film: save it as JPEG or PNG" if content[4:8] == b"ftyp" else ""
        what = film or "not a JPEG, PNG, TIFF, WebP, BMP or GIF"
        raise ValueError(what if content else "empty") from None
    except Exception as error:  # what decoders raise on hostile bytes has no common base
        raise ValueError(str(error) or type(error).__name__) from None


def decode(content, size, aspect="stretch"):
    """Decode an image file to an array of one size, with a digest of its pixels.

    Parameters
    ----------
    content : bytes
        The file.
    size : int
        Height and width in pixels; resized with antialiasing.
    aspect : {"stretch", "crop", "pad"}, default="stretch"
        What happens to an image that is not square: it is stretched, its centre is cut out, or
        it is put on black.

    Returns
    -------
    image : ndarray of shape (3, size, size)
        uint8, RGB.
    digest : str
        The same for two files if and only if they show the same pixels at full size, however
        encoded.
    """
    image = open_picture(content)
    digest = _digest(image)
    if content.startswith(b"\xff\xd8"):  # the decoder's own halving; never below twice
        image = open_picture(content, 2 * size)
    return _resized(image, size, aspect), digest


def decode_array(values, size, aspect="stretch"):
    """Bring an image that is an array already to one size, as `decode` does a file.

    Parameters
    ----------
    values : ndarray of shape (height, width) or (height, width, channels)
        uint8 or uint16; 1, 2, 3 or 4 channels: grey, grey with alpha, RGB, RGB with alpha.
    size, aspect : int, str
        As for `decode`.

    Returns
    -------
    image : ndarray of shape (3, size, size)
        uint8, RGB.
    digest : str
        As of `decode`.
    """
    values = values[:, :, 0] if values.shape[2:] == (1,) else values
    values = _high_byte(values) if values.dtype == np.uint16 else values
    image = _rgb(Image.fromarray(np.ascontiguousarray(values)))
    return _resized(image, size, aspect), _digest(image)


def _digest(image):
    return hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()


def _resized(image, size, aspect):
    box, method = (size, size), Image.Resampling.BICUBIC
    if aspect == "crop":
        image = ImageOps.fit(image, box, method)
    elif aspect == "pad":
        image = ImageOps.pad(image, box, method)
    else:
        image = image.resize(box, method)
    return np.asarray(image).transpose(2, 0, 1)


def _rgb(image, deep=False, inverted=False):
    profile = image.info.get("icc_profile")
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 0xFFFF:
            raise ValueError("32-bit integers: save it with 8 or 16 bits")
        # in 16 bits Pillow leaves white at 0, where the file says so
        image = Image.fromarray(_high_byte(0xFFFF - values if inverted else values))
    elif image.mode == "F":
        raise ValueError("floating-point pixels: save it with 8 or 16 bits")
    elif deep:  # colour, of which Pillow takes the high byte
        _refuse_dim(np.asarray(image.convert("RGB")).max())
    alpha = image.convert("RGBA").getchannel("A") if image.has_transparency_data else None
    if image.mode not in ("L", "RGB", "CMYK"):
        image = image.convert("L" if image.mode == "LA" else "RGB")
    if profile and (change := _to_srgb(profile, image.mode)):
        image = ImageCms.applyTransform(image, change)
    image = image.convert("RGB")
    if alpha is not None:
        image = Image.composite(image, Image.new("RGB", image.size, "white"), alpha)
    return image


def _high_byte(values):
    _refuse_dim(values.max() / 256 or DIM)  # all black may be
    return (values >> 8).astype(np.uint8)


def _refuse_dim(brightest):
    """Refuse 8 to 12 bits in a file of 16, which would become black, and different ones alike."""
    if brightest < DIM:
        raise ValueError(
            f"16 bits whose brightest pixel is {brightest / 256:.1%} of full: bring it to 8 bits "
            "yourself, since only you know its range"
        )


@functools.lru_cache(maxsize=64)
def _to_srgb(profile, mode):
    """The transform of a colour profile; None where it changes nothing, or is no profile."""
    levels = {"RGB": 9, "L": 256, "CMYK": 5}[mode]
    channels = np.meshgrid(*[np.linspace(0, 255, levels).astype(np.uint8)] * len(mode))
    sample = np.stack(channels, axis=-1)
    sample = Image.frombytes(mode, (1, sample.size // len(mode)), sample.tobytes())
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        change = ImageCms.buildTransform(source, ImageCms.createProfile("sRGB"), mode, "RGB")
    except (ImageCms.PyCMSError, OSError, TypeError):
        return None  # as viewers do
    moved = np.asarray(ImageCms.applyTransform(sample, change)).astype(int)
    return change if np.abs(moved - np.asarray(sample.convert("RGB"))).max() > 2 else None
