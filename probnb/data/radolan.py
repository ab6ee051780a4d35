"""RADOLAN binary composites of the German Weather Service: RY, YW and RW, in files and archives.

A file is a header of ASCII characters up to the byte 0x03, then one little-endian 16-bit number a
pixel: bits 0 to 11 hold the value in the header's precision (``PR``), four bits above say how to
take it. Rows are kept in the file's order, which starts in the south.
"""

from __future__ import annotations

import bz2
import gzip
import io
import re
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["MISSING", "Composite", "decode", "read_folder"]

MISSING = np.int16(-32768)
"""Count of a pixel without data."""

PRODUCTS = ("RY", "YW", "RW")
"""Rainfall depths of 16 bits a pixel: per 5 minutes twice, and per hour."""

_VALUE, _SECONDARY, _NO_DATA, _NEGATIVE, _CLUTTER = 0x0FFF, 0x1000, 0x2000, 0x4000, 0x8000
_TOKENS = {
    "PR": r"PR\s*E([+-]\d\d)",
    "INT": r"INT\s*(\d+)",
    "GP": r"GP\s*(\d+)\s*x\s*(\d+)",
}


@dataclass(frozen=True, eq=False)
class Composite:
    """One radar composite.

    Parameters
    ----------
    product : str
        ``"RY"``, ``"YW"`` or ``"RW"``.
    time : numpy.datetime64
        End of the interval, in minutes, UTC.
    counts : ndarray of int16 of shape (rows, columns)
        Rain in units of the header's precision; `MISSING` where there is no data.
    precision : float
        Millimetres of one count.
    interval : int
        Minutes over which the rain was collected.
    clutter, secondary : ndarray of bool of shape (rows, columns)
        Pixels marked as clutter, whose values are kept, and as filled from another source.
    """

    product: str
    time: np.datetime64
    counts: np.ndarray
    precision: float
    interval: int
    clutter: np.ndarray
    secondary: np.ndarray

    @property
    def rate(self):
        """Rain rate in mm/h, float32 of shape (rows, columns), NaN where there is no data."""
        unit = np.float32(self.precision * 60 / self.interval)
        return np.where(self.counts == MISSING, np.float32(np.nan), self.counts * unit)


def decode(content, name="file"):
    """Read one composite from the bytes of a file, compressed or not.

    Parameters
    ----------
    content : bytes
        A whole file: as it is, or compressed with gzip or bzip2.
    name : str, default="file"
        What to call it in messages.

    Returns
    -------
    Composite
        Product, time, rain and marks.

    Raises
    ------
    ValueError
        If the content is cut short, damaged, too long, or not a product of 16 bits a pixel.
    """
    content = _uncompressed(content, name)
    header, found, data = content.partition(b"\x03")
    if not found or len(header) > 10_000:
        raise ValueError(f"{name} must be RADOLAN: no end of the header (byte 0x03) was found.")
    # Sites are named in the header, not always in ASCII; no token needs what they are called.
    header = header.decode("latin-1")
    if header[:2] not in PRODUCTS:
        raise ValueError(f"{name} must be one of {', '.join(PRODUCTS)}; got {header[:2]!r}.")
    tokens = {key: _token(key, header, name) for key in _TOKENS}
    rows, columns = (int(v) for v in tokens["GP"])
    if not int(tokens["INT"][0]):
        raise ValueError(f"{name} must have INT of at least 1 minute; got 0.")
    expected = 2 * rows * columns
    if len(data) != expected:
        kind = "is cut short" if len(data) < expected else "is too long"
        raise ValueError(
            f"{name} {kind}: {len(data)} bytes of data, {rows} x {columns} pixels need {expected}."
        )
    raw = np.frombuffer(data, "<u2").reshape(rows, columns)
    counts = (raw & _VALUE).astype(np.int16)
    counts[raw & _NEGATIVE > 0] *= -1
    counts[raw & _NO_DATA > 0] = MISSING
    return Composite(
        product=header[:2],
        time=_time(header, name),
        counts=counts,
        precision=10.0 ** int(tokens["PR"][0]),
        interval=int(tokens["INT"][0]),
        clutter=raw & _CLUTTER > 0,
        secondary=raw & _SECONDARY > 0,
    )


def _uncompressed(content, name):
    try:
        if content[:2] == b"\x1f\x8b":
            return gzip.decompress(content)
        if content[:3] == b"BZh":
            return bz2.decompress(content)
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise ValueError(f"{name} is damaged or cut short: {error}.") from None
    return content


def _token(key, header, name):
    # Tokens follow each other in varying order, some unknown; the list of sites comes last.
    match = re.search(_TOKENS[key], header[17:].split("MS", 1)[0])
    if match is None:
        raise ValueError(f"{name} must have {key} in its header; got {header!r}.")
    return match.groups()


def _time(header, name):
    """Day, hour, minute, site, month and year stand at fixed places: ``RY011500100000120``."""
    day, hour, minute, month, year = (header[i : i + 2] for i in (2, 4, 6, 13, 15))
    try:
        return np.datetime64(f"20{year}-{month}-{day}T{hour}:{minute}", "m")
    except ValueError:
        raise ValueError(f"{name} must have a time in its header; got {header[:17]!r}.") from None


def read_folder(path):
    """Read all composites of a folder, in order of their names, one at a time.

    Parameters
    ----------
    path : path-like
        A folder with files ``raa01-*`` in any depth, an archive (``.tar``, ``.tar.gz``,
        ``.tar.bz2``) of such files, a folder of such archives, or one file.

    Yields
    ------
    str, Composite or ValueError
        The name, and what was read or why it could not be. Nothing is skipped in silence: the
        caller counts the errors.

    Raises
    ------
    FileNotFoundError
        If `path` is not there.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"path must be a folder or file of composites; {path} is not there."
        )
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        for name, content in _members(file):
            try:
                yield name, content if isinstance(content, Exception) else decode(content, name)
            except ValueError as error:
                yield name, error


def _members(file):
    """Names and contents of a file, or of the members of an archive."""
    if not re.search(r"\.(tar|tgz|tbz2?)(\.|$)", file.name):
        if "raa01" in file.name:
            yield file.name, file.read_bytes()
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(file.read_bytes())) as archive:
            for member in archive:
                if member.isfile() and "raa01" in member.name:
                    yield f"{file.name}/{member.name}", archive.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        yield file.name, ValueError(f"{file.name} is damaged or cut short: {error}.")
