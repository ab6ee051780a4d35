"""Images of any kind decoded once: eight bits, three channels, upright, at the size asked for.

What cannot be shown as a viewer shows it is refused with the reason, an image that would fill the
memory before it does. UTKFace, CIFAR-10 and anybody's own go through one cache: rows of a
memory-mapped file whose name is a hash of what went in. A second run with the same files, size and
aspect reads the file; any other content gets another.
"""

import contextlib
import functools
import hashlib
import io
import json
import logging
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from PIL import Image, ImageCms, ImageOps
from tqdm.auto import tqdm

from .. import store
from .files import cache_folder, checksum, read_files

log = logging.getLogger(__name__)

ASPECTS = {"crop": ImageOps.fit, "pad": ImageOps.pad, "stretch": Image.Image.resize}
"""What may happen to an image that is not square."""

PIXELS = 89_478_485
"""Width times height at most, as Pillow warns: beyond lie bombs, and scans to be tiled first."""

DIM = 32
"""Of 16 bits, the brightest high byte below which an image is refused: 8 to 12 bits were stored."""

VERSION = 3  # raise it when decoding changes, so that older caches are left alone
BLOCK = 64

_FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")
_BITS, _PHOTOMETRIC, _SAMPLES, _PLANES, _SIGN = 258, 262, 277, 284, 339


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
        pages or frames, floats, signed or 32-bit integers, planes or a transparent colour that
        Pillow takes for others, or 16 bits of which only the lowest are used.
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
        colour = deep == 8 and tags.get(_PHOTOMETRIC) == 2 and tags.get(_SAMPLES) in (3, 4)
        if tags.get(_PLANES) == 2 and tags.get(_SAMPLES, 1) > 1 and not colour:
            raise ValueError("separate planes, other than RGB of 8 bits: save it without planes")
        if deep <= 16 and 2 in tags.get(_SIGN, ()):
            raise ValueError("signed integers: bring it to 8 bits yourself, you know its range")
        if deep not in (1, 8) and image.mode != "P" and "transparency" in image.info:
            raise ValueError("a transparent colour in other than 8 bits: save it with an alpha")
        image.load()  # a TIFF turns here, and loses its tag
        with contextlib.suppress(Exception):  # a damaged tag does not make the image unreadable
            ImageOps.exif_transpose(image, in_place=True)
        return _rgb(image, deep == 16, inverted=tags.get(_PHOTOMETRIC) == 0)
    except Image.UnidentifiedImageError:
        film = "HEIC, AVIF or a film: save it as JPEG or PNG" if content[4:8] == b"ftyp" else ""
        tiff = content[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
        kind = "a TIFF of a kind that is not read: save it with 8 bits, grey or RGB" if tiff else ""
        what = film or kind or "not a JPEG, PNG, TIFF, WebP, BMP or GIF"
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
    resized = ASPECTS[aspect](image, (size, size), Image.Resampling.BICUBIC)
    return np.asarray(resized).transpose(2, 0, 1)


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
    if alpha is not None and not alpha.getextrema()[1]:  # white, whatever it may hold
        raise ValueError("all of it is transparent: save it without its alpha")
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


class MappedRows:
    """Rows of a NumPy file that stay on disk until they are made an array.

    Indexed like an array, so that `probnb.data.ProbabilityData` takes it for its inputs; a copy
    sent to another process is the path and the row numbers.

    Parameters
    ----------
    path : path-like
        The ``.npy`` file.
    rows : array-like of shape (n,)
        Which of its rows.
    """

    def __init__(self, path, rows):
        self.path, self.rows = Path(path), np.asarray(rows, dtype=np.int64)
        array = np.load(path, mmap_mode="r")
        self.shape, self.dtype, self.ndim = (len(rows), *array.shape[1:]), array.dtype, array.ndim

    def __getitem__(self, rows):
        """Return some rows, still on disk."""
        return MappedRows(self.path, self.rows[np.asarray(rows, np.int64)])

    def __array__(self, dtype=None, copy=None):
        """Return the rows in memory; the file is closed again, with its pages."""
        return np.array(np.load(self.path, mmap_mode="r")[self.rows], dtype=dtype)

    def tensor(self):
        """Return the rows as a tensor in memory."""
        return torch.from_numpy(np.asarray(self))


def decode_files(path, listing, size, aspect="stretch", cache_dir=None, names=None):
    """Decode image files of a folder or an archive through the cache.

    Parameters
    ----------
    path : path-like
        The folder or archive.
    listing : probnb.images.files.Listing
        What it holds.
    size, aspect : int, str
        As `decode` takes them.
    cache_dir : path-like, optional
        As `probnb.images.files.cache_folder` takes it.
    names : iterable of str, optional
        Which of its files; by default all images.

    Returns
    -------
    images : MappedRows of shape (n, 3, size, size)
        uint8, in the order of the sorted names; 0 where unreadable.
    table : DataFrame
        A line for each of them, by the file's name (of an array by its number): its ``row`` among
        them, the ``digest`` of its pixels at full size, equal for the same picture however
        encoded, None where unreadable, and the ``reason`` why it is unreadable, or None.
    checksum : str
        SHA-256 of the content.
    """
    pictures = listing.pictures() if names is None else names
    names = sorted({name for name in pictures if name in listing.files})
    rows = {listing.files[name]: i for i, name in enumerate(names)}
    contents = ((rows[place], content) for place, content in read_files(path, rows))
    total = checksum(path, listing, names)
    return _through_cache(names, contents, (size, aspect), total, cache_dir)


def decode_rows(array, size, aspect="stretch", cache_dir=None):
    """Bring the rows of an array of images to one size, through the cache.

    Parameters
    ----------
    array : array of shape (n, height, width) or (n, height, width, channels)
        Anything that is sliced like an array.
    size, aspect, cache_dir : int, str, path-like
        As for `decode_files`.

    Returns
    -------
    images, table, checksum
        As of `decode_files`.
    """
    n = array.shape[0]
    starts, total = range(0, n, BLOCK), hashlib.sha256()
    total.update(f"{array.shape} {array.dtype}".encode())
    for i in starts:
        total.update(np.ascontiguousarray(array[i : i + BLOCK]))
    rows = ((i + j, row) for i in starts for j, row in enumerate(array[i : i + BLOCK]))
    return _through_cache(range(n), rows, (size, aspect), total.hexdigest(), cache_dir)


def _through_cache(names, contents, how, total, cache_dir):
    """Read images from the cache, or decode their contents, (row, content) each, into it."""
    key = "\0".join([total, *map(str, names)]).encode("utf-8", "surrogateescape")
    key, size = hashlib.sha256(key).hexdigest(), how[0]
    path = cache_folder(cache_dir) / f"images-v{VERSION}-{size}-{how[1]}-{key[:16]}.npy"
    record, shape = path.with_suffix(".json"), (len(names), 3, size, size)
    notes = _cached(path, record, key, shape)
    if notes is None:
        notes = {"key": key}
        record.unlink(missing_ok=True)
        try:
            store.replace_file(path, lambda file: notes.update(_decode(file, shape, contents, how)))
            store.replace_file(record, lambda file: file.write_text(json.dumps(notes)))
        except OSError as error:
            what = f"cache_dir: no place for {np.prod(shape):,} bytes of images ({error.strerror})"
            raise OSError(error.errno, what, str(path.parent)) from None
    columns = {"row": range(len(names)), "digest": notes["digests"], "reason": notes["reasons"]}
    names = names if isinstance(names, range) else pd.Index(names, dtype=object)
    images = MappedRows(path, range(len(names)))
    return images, pd.DataFrame(columns, names, dtype=object), total


def _cached(path, record, key, shape):
    """Return the notes of what the cache holds, or None where it is absent or damaged."""
    try:
        notes = json.loads(record.read_text())
        if np.load(path, mmap_mode="r").shape != shape or notes["key"] != key:
            raise ValueError("it is of other data")
        return notes
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError, OSError, EOFError) as error:
        log.warning("Cache %s cannot be read (%s): decoding again.", path, error)
        return None


def _decode(path, shape, contents, how):
    """Write the images to a NumPy file; return their digests and the reasons of those left 0."""
    n, row = shape[0], int(np.prod(shape[1:]))
    digests, reasons = [None] * n, [None] * n
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    decode = delayed(lambda block: [(i, *try_to_decode(one, *how)) for i, one in block])
    blocks = map(decode, iter(lambda: [*islice(contents, BLOCK)], []))
    blocks = Parallel(n_jobs=-1, prefer="threads", return_as="generator_unordered")(blocks)
    bar = tqdm(total=n, desc=f"Decoding at {how[0]} x {how[0]}", unit="image", leave=False)
    with bar, path.open("wb") as file:  # written, not mapped: a full disk is then an error
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        for block in blocks:
            for i, image, digests[i], reasons[i] in block:
                file.seek(start + i * row)
                file.write(bytes(row) if image is None else image.tobytes())
            bar.update(len(block))
    return {"digests": digests, "reasons": reasons}


def try_to_decode(content, size, aspect):
    """Return an image, its digest and None; or None, None and the reason."""
    if content is None:
        return None, None, "the file cannot be read"
    make = decode_array if isinstance(content, np.ndarray) else decode
    try:
        return *make(content, size, aspect), None
    except ValueError as error:
        return None, None, str(error)
