"""Images decoded once: rows of a memory-mapped file of bytes, whose name is a hash of what went in.

UTKFace, CIFAR-10 and anybody's own images go through it. A second run with the same files, size and
aspect reads the file; any other content gets another.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from .. import store
from .files import checksum, read_files
from .pictures import decode, decode_array

__all__ = ["Decoded", "MappedRows", "cache_folder", "decode_files", "decode_rows", "new_folder"]

log = logging.getLogger(__name__)

VERSION = 2  # raise it when decoding changes, so that older caches are left alone
BLOCK = 64


@dataclass(frozen=True, eq=False)
class Decoded:
    """Images of one size, in the cache.

    Attributes
    ----------
    path : pathlib.Path
        A NumPy file, uint8 of shape (n, 3, size, size); rows of unreadable images are 0.
    row : dict
        The row of each image by its file's name (of an array by its number).
    digests : list of str or None
        Of the pixels at full size: equal for the same picture however encoded. None where
        unreadable.
    reasons : list of str or None
        Why an image is unreadable.
    checksum : str
        SHA-256 of the content.
    """

    path: Path
    row: dict
    digests: list
    reasons: list
    checksum: str


class MappedRows:
    """Rows of a NumPy file that stay on disk until they are asked for.

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

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, rows):
        """Return some rows as an array in memory; the file is closed again, with its pages."""
        return np.array(np.load(self.path, mmap_mode="r")[self.rows[rows]])

    def part(self, rows):
        """Return some rows, still on disk."""
        return MappedRows(self.path, self.rows[rows])

    def tensor(self):
        """Return all rows as a tensor in memory."""
        return torch.from_numpy(self[np.arange(len(self))])


def cache_folder(cache_dir=None):
    """Return where decoded images are kept.

    Parameters
    ----------
    cache_dir : path-like, optional
        By default the environment variable ``PROBNB_CACHE``, else ``$XDG_CACHE_HOME/probnb`` or
        ``~/.cache/probnb``.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist yet.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "probnb"
    return Path(cache_dir or os.environ.get("PROBNB_CACHE") or base).expanduser()


@contextlib.contextmanager
def new_folder(folder):
    """Give a temporary folder, which then becomes `folder`: it appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        yield Path(temporary)
        try:
            os.replace(temporary, folder)
        except OSError:
            if not folder.is_dir():  # else somebody was quicker, with the same data
                raise


def decode_files(path, listing, names, size, aspect="stretch", cache_dir=None):
    """Decode image files of a folder or an archive through the cache.

    Parameters
    ----------
    path : path-like
        The folder or archive.
    listing : probnb.data.files.Listing
        What it holds.
    names : iterable of str
        Which of its files.
    size, aspect : int, str
        As `probnb.data.pictures.decode` takes them.
    cache_dir : path-like, optional
        As `cache_folder` takes it.

    Returns
    -------
    Decoded
        Every image, or the reason why not; rows in the order of the names.
    """
    names = sorted(set(names))
    total = checksum(path, listing, names)
    places = {listing.files[name]: i for i, name in enumerate(names)}

    def read():
        return ((places[place], content) for place, content in read_files(path, places))

    return _through_cache(names, read, decode, (size, aspect), total, cache_dir)


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
    Decoded
        The rows as images.
    """
    n = array.shape[0]

    def blocks():
        return ((i, np.asarray(array[i : i + BLOCK])) for i in range(0, n, BLOCK))

    def read():
        return ((start + i, row) for start, block in blocks() for i, row in enumerate(block))

    content = hashlib.sha256(f"{array.shape} {array.dtype}".encode())
    for _, block in blocks():
        content.update(np.ascontiguousarray(block).tobytes())
    return _through_cache(
        range(n), read, decode_array, (size, aspect), content.hexdigest(), cache_dir
    )


def _through_cache(names, read, decoder, how, total, cache_dir):
    size, aspect = how
    key = "\0".join([total, *map(str, names)]).encode("utf-8", "surrogateescape")
    key = hashlib.sha256(key).hexdigest()
    path = cache_folder(cache_dir) / f"images-v{VERSION}-{size}-{aspect}-{key[:16]}.npy"
    record, shape = path.with_suffix(".json"), (len(names), 3, size, size)
    found = _cached(path, record, key, shape)
    if found is None:
        notes = {"key": key}
        record.unlink(missing_ok=True)
        try:
            store.replace_file(
                path, lambda file: notes.update(_decode(file, shape, read, decoder, how))
            )
            store.replace_file(record, lambda file: file.write_text(json.dumps(notes)))
        except OSError as error:
            what = f"cache_dir: no place for {np.prod(shape):,} bytes of images ({error.strerror})"
            raise OSError(error.errno, what, str(path.parent)) from None
        found = notes
    row = {name: i for i, name in enumerate(names)}
    return Decoded(path, row, found["digests"], found["reasons"], total)


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


def _decode(path, shape, read, decoder, how):
    """Write the images to a NumPy file; return their digests and the reasons of those left 0."""
    n, row = shape[0], int(np.prod(shape[1:]))
    digests, reasons = [None] * n, [None] * n
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    sources = read()
    blocks = Parallel(n_jobs=-1, prefer="threads", return_as="generator_unordered")(
        delayed(_decode_block)(block, decoder, how)
        for block in iter(lambda: [*islice(sources, BLOCK)], [])
    )
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


def _decode_block(block, decoder, how):
    out = []
    for i, content in block:
        try:
            if content is None:
                raise ValueError("the file cannot be read")
            out.append((i, *decoder(content, *how), None))
        except ValueError as error:
            out.append((i, None, None, str(error)))
    return out
