"""One image file, whatever it is: eight bits, three channels, upright, at the size asked for.

JPEG, PNG, TIFF, WebP and BMP, told by their content; grey, palette, CMYK, 16 bits, with alpha.
What cannot be read is refused with the reason, an image that would fill the memory before it does.
"""

from __future__ import annotations

import hashlib
import io
import re

import numpy as np
from PIL import Image, ImageOps

__all__ = ["ASPECTS", "ENDINGS", "decode", "decode_array", "open_picture"]

ASPECTS = ("crop", "pad", "stretch")
"""What may happen to an image that is not square."""

ENDINGS = re.compile(r"\.(jpe?g|png|webp|tiff?|bmp)$", re.IGNORECASE)
"""Names that are taken for images."""

PIXELS = 89_478_485
"""Width times height at most, as Pillow warns: beyond lie bombs, and scans to be tiled first."""

_FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP")
_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def open_picture(content, reduced=None):
    """Decode an image file to RGB, as a viewer would show it.

    Parameters
    ----------
    content : bytes
        The file.
    reduced : int, optional
        Let the JPEG decoder halve the image, to no less than this height and width, which is
        much faster.

    Returns
    -------
    PIL.Image.Image
        RGB, eight bits, turned as its EXIF tag says, transparent parts on white, 16 bits scaled
        by their full range; of several pages or frames the first.

    Raises
    ------
    ValueError
        With the reason, if it cannot be decoded to the end or has more than 89 million pixels.
    """
    try:
        image = Image.open(io.BytesIO(content), formats=_FORMATS)
        width, height = image.size
        if width * height > PIXELS:
            raise ValueError(f"{width:,} x {height:,} pixels are more than {PIXELS:,}")
        if reduced is not None:
            image.draft("RGB", (reduced, reduced))
        image.load()  # a TIFF turns here, and loses its tag
        turn = _TURNS.get(_orientation(image))
        image = _rgb(image)
        return image if turn is None else image.transpose(turn)
    except Image.UnidentifiedImageError:
        raise ValueError(_unknown(content)) from None
    except Exception as error:  # what decoders raise on hostile bytes has no common base
        raise ValueError(str(error) or type(error).__name__) from None


def _unknown(content):
    """What a file is that is none of the formats."""
    if not content:
        return "empty"
    if content[4:8] == b"ftyp":
        return "HEIC, AVIF or a film: save it as JPEG or PNG"
    return "not a JPEG, PNG, TIFF, WebP or BMP"


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

    Raises
    ------
    ValueError
        With the reason, if it cannot be decoded.
    """
    digest = _digest(open_picture(content))
    # the decoder's own halving; never below twice
    return _resized(open_picture(content, 2 * size), size, aspect), digest


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
    if values.dtype == np.uint16:
        values = (values >> 8).astype(np.uint8)
    values = np.ascontiguousarray(values[:, :, 0] if values.shape[2:] == (1,) else values)
    image = _rgb(Image.fromarray(values))
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


def _orientation(image):
    try:
        return image.getexif().get(_ORIENTATION)
    except Exception:  # a damaged tag does not make the image unreadable
        return None


def _rgb(image):
    if image.mode.startswith("I;16") or image.mode == "I":
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 0xFFFF:
            raise ValueError("32-bit integers: save it with 8 or 16 bits")
        image = Image.fromarray((values >> 8).astype(np.uint8))  # as Pillow does in colour
    elif image.mode == "F":
        raise ValueError("floating-point pixels: save it with 8 or 16 bits")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
