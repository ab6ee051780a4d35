"""Images decoded once: rows of a memory-mapped file of bytes, whose name is a hash of what went in.

A second run with the same files, size and aspect reads the file; any other content gets another.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from .. import store
from .pictures import decode, decode_array

__all__ = ["Decoded", "MappedRows", "cache_folder", "decode_rows", "decode_sources"]

log = logging.getLogger(__name__)

VERSION = 1  # raise it when decoding changes, so that older caches are left alone
BLOCK = 64


@dataclass(frozen=True, eq=False)
class Decoded:
    """Images of one size, in the order in which they were asked for.

    Attributes
    ----------
    path : pathlib.Path
        A NumPy file, uint8 of shape (n, 3, size, size); rows of unreadable images are 0.
    digests : list of str or None
        Of the pixels at full size: equal for the same picture however encoded. None where
        unreadable.
    reasons : list of str or None
        Why an image is unreadable.
    checksum : str
        SHA-256 of the names and contents.
    """

    path: Path
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

    @functools.cached_property
    def _array(self):
        return np.load(self.path, mmap_mode="r")

    @property
    def shape(self):
        """Shape of the rows as an array."""
        return (len(self.rows), *self._array.shape[1:])

    @property
    def ndim(self):
        """Number of axes."""
        return self._array.ndim

    @property
    def dtype(self):
        """Type of the values."""
        return self._array.dtype

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, rows):
        """Return some rows as an array in memory."""
        return np.array(self._array[self.rows[rows]])

    def part(self, rows):
        """Return some rows, still on disk."""
        return MappedRows(self.path, self.rows[rows])

    def tensor(self):
        """Return all rows as a tensor in memory."""
        return torch.from_numpy(self[np.arange(len(self))])

    def __getstate__(self):
        return {"path": self.path, "rows": self.rows}


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
    if cache_dir is None:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "probnb"
        cache_dir = os.environ.get("PROBNB_CACHE") or base
    return Path(cache_dir).expanduser()


def decode_sources(names, read, size, aspect, cache_dir=None):
    """Decode image files through the cache.

    Parameters
    ----------
    names : list of str
        What the images are called; part of the checksum.
    read : callable
        ``read()`` yields (number of the name, content as bytes, or None where it cannot be read)
        in any order. It is called once for the checksum, and again where there is no cache.
    size, aspect : int, str
        As `probnb.data.pictures.decode` takes them.
    cache_dir : path-like, optional
        As `cache_folder` takes it.

    Returns
    -------
    Decoded
        Every image, or the reason why not.
    """
    sums = {}
    with tqdm(total=len(names), desc="Checking images", unit="image", leave=False) as bar:
        for i, content in read():
            sums[i] = hashlib.sha256(content or b"").hexdigest()
            bar.update()
    lines = (f"{name}\0{sums.get(i, '')}\n" for i, name in enumerate(names))
    checksum = _sum(lines)

    def one(content):
        return decode(content or b"", size, aspect)

    return _through_cache(len(names), read, one, (size, aspect, checksum), cache_dir)


def decode_rows(array, size, aspect, cache_dir=None):
    """Bring the rows of an array of images to one size, through the cache.

    Parameters
    ----------
    array : array of shape (n, height, width) or (n, height, width, channels)
        Anything that is sliced like an array.
    size, aspect : int, str
        As for `decode_sources`.
    cache_dir : path-like, optional
        As for `decode_sources`.

    Returns
    -------
    Decoded
        The rows as images.
    """

    def blocks():
        for start in range(0, array.shape[0], BLOCK):
            yield start, np.asarray(array[start : start + BLOCK])

    def read():
        return ((start + i, row) for start, block in blocks() for i, row in enumerate(block))

    content = hashlib.sha256()
    for _, block in blocks():
        content.update(np.ascontiguousarray(block).tobytes())
    checksum = _sum([f"{array.shape} {array.dtype} {content.hexdigest()}"])

    def one(row):
        return decode_array(row, size, aspect)

    return _through_cache(array.shape[0], read, one, (size, aspect, checksum), cache_dir)


def _sum(lines):
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _through_cache(n, read, one, key, cache_dir):
    size, aspect, checksum = key
    path = cache_folder(cache_dir) / f"images-v{VERSION}-{size}-{aspect}-{checksum[:16]}.npy"
    record = path.with_suffix(".json")
    found = _cached(path, record, checksum, (n, 3, size, size))
    if found is None:
        known = {"checksum": checksum}

        def write(temporary):
            known["digests"], known["reasons"] = _decode(temporary, n, read, one, size)

        record.unlink(missing_ok=True)
        store.replace_file(path, write)
        store.replace_file(record, lambda temporary: temporary.write_text(json.dumps(known)))
        found = Decoded(path, known["digests"], known["reasons"], checksum)
    return found


def _cached(path, record, checksum, shape):
    """Return what the cache holds, or None where it is absent, damaged or of other data."""
    try:
        known = json.loads(record.read_text())
        if np.load(path, mmap_mode="r").shape != shape or known["checksum"] != checksum:
            raise ValueError("it is of other data")
        return Decoded(path, known["digests"], known["reasons"], checksum)
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError, OSError, EOFError) as error:
        log.warning("Cache %s cannot be read (%s): decoding again.", path, error)
        return None


def _decode(path, n, read, one, size):
    """Write the images to a NumPy file; return their digests and the reasons of those left 0."""
    if n == 0:  # nothing can be mapped
        with path.open("wb") as file:
            np.save(file, np.zeros((0, 3, size, size), np.uint8))
        return [], []
    with path.open("wb") as file:  # open_memmap would add an ending
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (n, 3, size, size)}
        )
        start = file.tell()
        file.truncate(start + n * 3 * size * size)
    images = np.memmap(path, np.uint8, "r+", start, (n, 3, size, size))
    digests, reasons = [None] * n, ["the file cannot be read"] * n
    sources = read()
    blocks = Parallel(n_jobs=-1, prefer="threads", return_as="generator_unordered")(
        delayed(_decode_block)(block, one) for block in iter(lambda: [*islice(sources, BLOCK)], [])
    )
    with tqdm(total=n, desc=f"Decoding at {size} x {size}", unit="image", leave=False) as bar:
        for block in blocks:
            for i, image, digest, reason in block:
                digests[i], reasons[i] = digest, reason
                if image is not None:
                    images[i] = image
            bar.update(len(block))
    images.flush()
    return digests, reasons


def _decode_block(block, one):
    out = []
    for i, content in block:
        try:
            out.append((i, *one(content), None))
        except ValueError as error:
            out.append((i, None, None, str(error)))
    return out
