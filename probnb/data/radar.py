"""Radar maps in order of time: RADOLAN composites, HDF5 of the authors' layout.

A RADOLAN file of the German Weather Service is a header of ASCII characters up to the byte 0x03,
then one little-endian 16-bit number a pixel: bits 0 to 11 hold the value in the header's precision
(``PR``), four bits above say how to take it. Rows are kept in the file's order, which starts in the
south. Maps stay the 16-bit counts that were published, in memory where they are few and in a
memory-mapped file where they are many.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import re
import tarfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from ..validation import check_integer
from .files import cache_folder, new_folder

__all__ = ["MISSING", "Composite", "Series", "decode", "open_series", "read_maps"]

MISSING = np.int16(-32768)
"""Count of a pixel without data."""

PRODUCTS = ("RY", "YW", "RW")
"""Rainfall depths of 16 bits a pixel: per 5 minutes twice, and per hour."""

_VALUE, _NO_DATA, _NEGATIVE = 0x0FFF, 0x2000, 0x4000  # 0x1000 filled, 0x8000 clutter: both kept
_TOKENS = {"PR": r"PR\s*E([+-]\d\d)", "INT": r"INT\s*0*([1-9]\d*)", "GP": r"GP\s*(\d+)\s*x\s*(\d+)"}


class Composite(NamedTuple):
    """One map: end of its interval (UTC), int16 counts, and the rain rate of one count in mm/h."""

    time: np.datetime64
    counts: np.ndarray
    unit: float


@dataclass(frozen=True, eq=False)
class Series:
    """Radar maps of one area in order of time.

    Parameters
    ----------
    maps : array of int16 of shape (n, rows, columns)
        Rain in counts; `MISSING` where there is no data. May be on disk.
    times : ndarray of datetime64 of shape (n,)
        End of the interval of each map, in minutes, UTC, increasing.
    unit : float
        Rain rate of one count in mm/h.
    source : str
        What identifies the maps: file and checksum.
    report : dict
        What was read, and what was left out, by name.
    """

    maps: np.ndarray
    times: np.ndarray
    unit: float
    source: str
    report: dict = field(default_factory=dict)

    def __post_init__(self):
        times, increase = np.asarray(self.times), np.diff(self.times) > np.timedelta64(0)
        if self.maps.ndim != 3 or not len(times) == len(self.maps) > 0 or not increase.all():
            raise ValueError(
                "maps must be of shape (n, rows, columns) with a time each; times must increase; "
                f"got {self.maps.shape} and the times {times[:3]}."
            )


def open_series(path, side=300):
    """Open radar maps of any of the layouts, converting them once.

    Parameters
    ----------
    path : path-like
        What `read_maps` reads.
    side : int, default=300
        Height and width in pixels (km) of the square cut from the middle; the paper's 300.

    Returns
    -------
    Series
        The maps in order of time, memory-mapped from the cache. ``report`` counts and names what is
        not among them: files that cannot be read, maps of a time that is there already, and maps
        of another unit or grid than most.

    Raises
    ------
    FileNotFoundError
        If `path` is not there.
    ValueError
        If nothing in it can be read; the message names files and reasons.
    """
    check_integer(side, "side")
    path = Path(path).expanduser().resolve()
    if not path.exists():
        raise FileNotFoundError(f"data_dir must be a file or folder of maps; {path} is not there.")
    stamp = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in _files(path) if f.exists()]
    key = hashlib.sha256(json.dumps([2, stamp, side]).encode()).hexdigest()[:16]
    folder = cache_folder() / "radar" / key
    if not (folder / "series.json").exists():
        _convert(read_maps(path), folder, side)
    about = json.loads((folder / "series.json").read_text())
    maps, times = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("maps", "times"))
    return Series(maps, np.array(times), **about)


def read_maps(path):
    """Read all maps of a file, or of all files of a folder, one at a time.

    Parameters
    ----------
    path : path-like
        A RADOLAN file, compressed or not, a tar of them, an HDF5 file with one data set a time
        (the authors' layout: keys such as ``"201705162355"``, mm per 5 minutes, NaN or below 0
        for no data), or a folder of any of these. What a file is, its content says.

    Returns
    -------
    iterator of str, Composite or ValueError
        The name, and what was read or why it could not be: nothing is skipped in silence.
    """
    return (found for file in _files(Path(path)) for found in _read(file))


def decode(content, name="file"):
    """Read one RADOLAN composite from the bytes of a file, compressed with gzip or bzip2 or not.

    Raises ValueError, which calls the file `name`, if the content is cut short, damaged, too long,
    or not a product of 16 bits a pixel.
    """
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        elif content[:3] == b"BZh":
            content = bz2.decompress(content)
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise ValueError(f"{name} is damaged or cut short: {error}.") from None
    header, found, data = content.partition(b"\x03")
    if not found or len(header) > 10_000:
        raise ValueError(f"{name} must be RADOLAN: no end of the header (byte 0x03) was found.")
    # Sites are named in the header, not always in ASCII; no token needs what they are called.
    header = header.decode("latin-1")
    if header[:2] not in PRODUCTS:
        raise ValueError(f"{name} must be one of {', '.join(PRODUCTS)}; got {header[:2]!r}.")
    # Tokens follow each other in varying order, some unknown; the list of sites comes last.
    body = header[17:].split("MS", 1)[0]
    tokens = {key: re.search(pattern, body) for key, pattern in _TOKENS.items()}
    if missing := [key for key, token in tokens.items() if token is None]:
        raise ValueError(f"{name} must have {missing[0]} in its header; got {header!r}.")
    rows, columns = map(int, tokens["GP"].groups())
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
    unit = round(10.0 ** int(tokens["PR"][1]) * 60 / int(tokens["INT"][1]), 6)
    return Composite(_time(header[2:8] + header[13:17], "%d%H%M%m%y", name), counts, unit)


def _files(path):
    """The files of a folder in any depth, and links to folders, which are named, not followed."""
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.is_symlink() or not p.is_dir())


def _read(file):
    try:
        kind = _hdf5 if h5py.is_hdf5(file) else _tar if tarfile.is_tarfile(file) else _composite
        for name, read, content in kind(file):
            try:
                found = read(content, name)
            except ValueError as error:
                found = error
            yield name, found
    except (tarfile.TarError, EOFError, OSError, KeyError, RuntimeError, zlib.error) as error:
        yield file.name, ValueError(f"{file.name} is damaged or cut short: {error}.")


def _composite(file):
    yield file.name, decode, file.read_bytes()


def _tar(file):
    with tarfile.open(file) as archive:
        for member in archive:
            if member.isfile():
                yield f"{file.name}/{member.name}", decode, archive.extractfile(member).read()


def _hdf5(file):
    with h5py.File(file) as opened:
        for key in opened:
            yield f"{file.name}/{key}", _from_hdf5, opened[key]


def _from_hdf5(dataset, name):
    time = _time(re.sub(r"\D", "", name.rsplit("/", 1)[1])[:12], "%Y%m%d%H%M", name)
    if getattr(dataset, "ndim", 0) != 2:
        raise ValueError(f"{name} must be a map of rows and columns; it is {dataset}.")
    rain = dataset[:].astype(np.float64)
    counts = np.rint(np.nan_to_num(rain, nan=-1.0) / 0.01)
    if counts.max(initial=0) > np.iinfo(np.int16).max:
        raise ValueError(f"{name} must be in mm per 5 minutes; got {rain.max():g} mm in 5 minutes.")
    return Composite(time, np.where(counts < 0, MISSING, counts).astype(np.int16), 0.12)


def _time(digits, form, name):
    try:
        return np.datetime64(datetime.strptime(digits, form), "m")
    except ValueError:
        raise ValueError(f"{name} must have a time in its header or key; got {digits!r}.") from None


def _convert(maps, folder, side):
    """Write the squares in the middle of maps to `folder`, whole or not at all, ordered by time."""
    with new_folder(folder) as temporary:
        spool = temporary / "squares"
        found, unreadable = _spool(maps, spool, side)
        if not found:
            raise ValueError(
                "data_dir must hold maps that can be read; left out: "
                f"{'; '.join(unreadable[:3]) or 'nothing, it is empty'}."
            )
        usual = Counter(kind for *_, kind in found).most_common(1)[0][0]  # one grid and unit
        rows, other, twice = {}, [], []
        for row, (name, time, kind) in enumerate(found):
            if kind != usual:
                other.append(f"{name} is of another grid or unit, {kind[1]}, {kind[0]:g}")
            elif rows.setdefault(time, row) != row:
                twice.append(f"{name} is of {time}, which is there already")
        times = sorted(rows)
        raw, digest = np.memmap(spool, "<i2", "r").reshape(-1, side, side), hashlib.sha256()
        maps_file = temporary / "maps.npy"
        out = np.lib.format.open_memmap(maps_file, "w+", "<i2", (len(times), side, side))
        for place, time in enumerate(times):
            out[place] = raw[rows[time]]
            digest.update(str(time).encode() + raw[rows[time]].tobytes())
        out.flush()
        np.save(temporary / "times.npy", np.array(times, "datetime64[m]"))
        spool.unlink()
        report = {
            "maps": len(times),
            "twice": len(twice),
            "other grid": len(other),
            "unreadable": len(unreadable),
            "left out": unreadable + other + twice,
        }
        source = f"radar sha256:{digest.hexdigest()[:16]}"
        about = {"unit": usual[0], "source": source, "report": report}
        (temporary / "series.json").write_text(json.dumps(about, indent=1))


def _spool(maps, path, side):
    """Append squares to a file, one map in memory at a time; name, time and kind of each."""
    found, unreadable = [], []
    with path.open("wb") as file:
        for name, read in maps:
            if isinstance(read, Exception):
                unreadable.append(str(read))
                continue
            least = min(read.counts.shape)
            if least < side:
                raise ValueError(f"side must be at most {least} for {name}; got {side}.")
            top, left = ((length - side) // 2 for length in read.counts.shape)
            square = read.counts[top : top + side, left : left + side]
            file.write(square.astype("<i2").tobytes())
            found.append((name, read.time, (read.unit, read.counts.shape)))
    return found, unreadable
