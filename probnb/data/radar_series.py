"""Radar maps in order of time, from RADOLAN files or HDF5, of any number.

Maps are kept as the 16-bit counts that the German Weather Service publishes, in memory where they
are few and in a memory-mapped file where they are many.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..validation import check_integer
from .radolan import MISSING, Composite, read_folder

__all__ = ["ATTRIBUTION", "Series", "cache_folder", "convert", "open_series", "read_hdf5"]

ATTRIBUTION = "Deutscher Wetterdienst (RADOLAN), CC BY 4.0"
"""What must stand beside anything that is made of these maps."""


@dataclass(frozen=True, eq=False)
class Series:
    """Radar maps of one area in order of time.

    Parameters
    ----------
    maps : array of int16 of shape (n, rows, columns)
        Rain in counts; `probnb.data.radolan.MISSING` where there is no data. May be on disk.
    times : ndarray of datetime64 of shape (n,)
        End of the interval of each map, in minutes, UTC, increasing.
    unit : float
        Rain rate of one count in mm/h.
    source : str
        What identifies the maps: file and checksum.
    report : dict
        What was read, and what was left out.
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


def cache_folder():
    """Return where downloads and converted maps are kept.

    Returns
    -------
    pathlib.Path
        The environment variable ``PROBNB_CACHE``, or ``probnb`` in the user's cache folder; it
        need not exist yet.
    """
    given = os.environ.get("PROBNB_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(given or Path(home or Path.home() / ".cache") / "probnb").expanduser()


def open_series(path, side=300):
    """Open radar maps of any of the layouts, converting them once.

    Parameters
    ----------
    path : path-like
        RADOLAN files (see `probnb.data.radolan.read_folder`) or an HDF5 file in the layout of the
        authors' release (see `read_hdf5`).
    side : int, default=300
        Height and width in pixels (km) of the square cut from the middle.

    Returns
    -------
    Series
        The maps, memory-mapped from the cache.

    Raises
    ------
    FileNotFoundError
        If `path` is not there.
    ValueError
        If nothing in it can be read.
    """
    path = Path(path).expanduser().resolve()
    if not path.exists():
        raise FileNotFoundError(f"data_dir must be a file or folder of maps; {path} is not there.")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    stamp = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    key = hashlib.sha256(json.dumps([stamp, side]).encode()).hexdigest()[:16]
    folder = cache_folder() / "radar" / key
    if not (folder / "series.json").exists():
        hdf5 = path.suffix in (".h5", ".hdf5")
        frames = read_hdf5(path) if hdf5 else read_folder(path)
        convert(frames, folder, side, "HDF5" if hdf5 else "RADOLAN")
    about = json.loads((folder / "series.json").read_text())
    return Series(
        np.load(folder / "maps.npy", mmap_mode="r"), np.load(folder / "times.npy"), **about
    )


def read_hdf5(path):
    """Read composites from an HDF5 file with one data set a time, as the authors' release has it.

    Parameters
    ----------
    path : path-like
        The file. Keys are times such as ``"201705162355"`` (any characters between the digits are
        ignored), data sets are of shape (rows, columns), in mm per 5 minutes; negative values and
        NaN are no data.

    Yields
    ------
    str, Composite or ValueError
        The key, and what was read or why it could not be.
    """
    import h5py

    with h5py.File(path) as file:
        for key in sorted(file, key=_digits):
            try:
                yield key, _from_hdf5(key, file[key])
            except (OSError, TypeError, ValueError, AttributeError) as error:
                yield key, ValueError(f"{key} must be a map with a time for its key: {error}.")


def _digits(key):
    return "".join(c for c in key if c.isdigit())


def _from_hdf5(key, dataset):
    digits = _digits(key)[:12]
    if len(digits) != 12 or len(dataset.shape) != 2:
        raise ValueError(f"got shape {getattr(dataset, 'shape', None)}")
    time = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:]}"
    rain = dataset[:].astype(np.float64)
    counts = np.rint(np.nan_to_num(rain, nan=-1.0) / 0.01)
    if counts.max(initial=0) > np.iinfo(np.int16).max:
        raise ValueError(f"got {rain.max():g} mm in 5 minutes")
    counts = np.where(counts < 0, MISSING, counts).astype(np.int16)
    nowhere = np.zeros(counts.shape, dtype=bool)
    return Composite("HDF5", np.datetime64(time, "m"), counts, 0.01, 5, nowhere, nowhere)


def convert(frames, folder, side=300, source="composites"):
    """Write composites to a memory-mapped file, cut to the square in their middle.

    Parameters
    ----------
    frames : iterable of (str, Composite or Exception)
        As `probnb.data.radolan.read_folder` and `read_hdf5` yield them, in order of time.
    folder : path-like
        Where to: ``maps.npy``, ``times.npy`` and ``series.json`` appear together, when all is
        read.
    side : int, default=300
        Height and width of the square in pixels (km); the paper's 300.
    source : str
        What identifies the composites; a checksum of the maps is added.

    Raises
    ------
    ValueError
        If nothing can be read, or composites differ in unit or are smaller than the square.

    Notes
    -----
    ``series.json`` names and counts what could not be read and what came out of order or twice;
    neither is kept.
    """
    check_integer(side, "side")
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        about, times = _write(frames, temporary / "counts", side, source)
        _as_npy(temporary, len(times), side)
        np.save(temporary / "times.npy", times)
        (temporary / "series.json").write_text(json.dumps(about, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(frames, file, side, source):
    """Append the squares to a file, one composite in memory at a time."""
    times, units, left_out, counts = [], set(), [], Counter()
    digest = hashlib.sha256()
    with open(file, "wb") as out:
        for name, frame in frames:
            if isinstance(frame, Exception):
                left_out.append(str(frame))
                counts["unreadable"] += 1
            elif times and frame.time <= times[-1]:
                left_out.append(f"{name} is of {frame.time}, not after {times[-1]}.")
                counts["out of order"] += 1
            else:
                square = _middle(frame.counts, side, name).astype("<i2").tobytes()
                out.write(square)
                digest.update(str(frame.time).encode() + square)
                times.append(frame.time)
                units.add(round(frame.precision * 60 / frame.interval, 6))
                counts["clutter pixels"] += int(_middle(frame.clutter, side, name).sum())
    if len(units) != 1:
        raise ValueError(
            f"{source} must hold readable maps of one unit; got {len(times)} maps, units "
            f"{sorted(units)} mm/h, left out: {'; '.join(left_out[:3]) or 'none'}"
        )
    report = {"maps": len(times), "unreadable": 0, "out of order": 0, **counts}
    about = {
        "unit": units.pop(),
        "source": f"{source} sha256:{digest.hexdigest()[:16]}",
        "report": {**report, "left out": left_out},
    }
    return about, np.array(times, dtype="datetime64[m]")


def _as_npy(folder, n, side):
    """Turn raw counts into an array file: a header before what is there, copied block by block."""
    with open(folder / "maps.npy", "wb") as out, open(folder / "counts", "rb") as counts:
        header = {"descr": "<i2", "fortran_order": False, "shape": (n, side, side)}
        np.lib.format.write_array_header_1_0(out, header)
        shutil.copyfileobj(counts, out, 1 << 24)
    (folder / "counts").unlink()


def _middle(pixels, side, name):
    rows, columns = pixels.shape
    if min(rows, columns) < side:
        raise ValueError(f"side must be at most {min(rows, columns)} for {name}; got {side}.")
    top, left = (rows - side) // 2, (columns - side) // 2
    return pixels[top : top + side, left : left + side]
