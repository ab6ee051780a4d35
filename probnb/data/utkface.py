"""UTKFace: photographs of faces with their ages, decoded once to a uint8 cache.

The images are read from a folder or straight from the archive as distributed, whose names are
``[age]_[gender]_[race]_[time].jpg.chip.jpg``. Only the age is used.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import os
import re
import tarfile
import uuid
import zlib
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from tqdm.auto import tqdm

from ..validation import check_integer

__all__ = ["age_from_name", "read_utkface"]

log = logging.getLogger(__name__)

CACHE_FORMAT = 1  # raise it when decoding changes, so that older caches are left alone
_IMAGE = re.compile(r"\.jpe?g$", re.IGNORECASE)
_WELL_FORMED = re.compile(r"\d+_[01]_[0-4]_\d+\.jpg(\.chip\.jpg)?", re.IGNORECASE)


def age_from_name(name):
    """Read the age from the name of a UTKFace image.

    Parameters
    ----------
    name : str
        File name, without folders.

    Returns
    -------
    age : int or None
        Age in years; None where the name does not start with an age from 0 to 150.
    well_formed : bool
        Whether the rest of the name follows the pattern as well. A missing field or dot does
        not hide the age.

    Examples
    --------
    >>> age_from_name("26_0_1_20170117195838909.jpg.chip.jpg")
    (26, True)
    >>> age_from_name("61_1_20170109150557335.jpg.chip.jpg")
    (61, False)
    >>> age_from_name("unknown.jpg")
    (None, False)
    """
    match = re.match(r"(\d{1,3})_", name)
    if match is None or int(match[1]) > 150:
        return None, False
    return int(match[1]), _WELL_FORMED.fullmatch(name) is not None


def read_utkface(path, size, cache_dir=None):
    """Read UTKFace from a folder or an archive, through the cache.

    Parameters
    ----------
    path : path-like
        A folder of JPEGs (subfolders included), or the ``.tar.gz`` as distributed, which is
        streamed and never unpacked.
    size : int
        Height and width of the images returned, in pixels; resized with antialiasing.
    cache_dir : path-like, optional
        Where decoded images are kept: by default the environment variable ``PROBNB_CACHE``,
        else ``$XDG_CACHE_HOME/probnb`` or ``~/.cache/probnb``.

    Returns
    -------
    images : torch.Tensor of shape (n, 3, size, size)
        uint8, in the order of the file names, whatever the order on disk.
    ages : ndarray of shape (n,)
        int64, in years.
    checksum : str
        SHA-256 of the archive, or of the names and contents of the folder's images (so that a
        copy of the folder is the same data).
    report : dict
        ``images`` read; names that are ``malformed`` but readable; files skipped because they
        are ``corrupt`` or have an ``unreadable_age``; how many ``other_files`` lie there.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    ValueError
        If `path` holds no readable image or is not an archive, or `size` is not positive.

    Notes
    -----
    The cache is one file per size and checksum, written under a temporary name and renamed:
    a reader never sees half of one.
    """
    size = check_integer(size, "size")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"data_dir must be a folder of UTKFace images or UTKFace.tar.gz; {str(path)!r} "
            "does not exist."
        )
    checksum = _checksum(path)
    cache = _cache_folder(cache_dir) / f"utkface-v{CACHE_FORMAT}-{size}-{checksum[:16]}.safetensors"
    if (found := _load(cache, checksum)) is None:
        images, ages, report = _decode(path, size)
        _save(cache, images, ages, checksum, report)
        found = images, ages, report
    images, ages, report = found
    return images, ages.numpy(), checksum, report


def _cache_folder(cache_dir):
    if cache_dir is None:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "probnb"
        cache_dir = os.environ.get("PROBNB_CACHE") or base
    return Path(cache_dir).expanduser()


def _files(path):
    """Yield (name, function that reads it) of every file; an archive is read front to back."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield file.relative_to(path).as_posix(), file.read_bytes
        return
    try:
        with _uncompressed(path) as file, tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                if member.isfile():
                    yield member.name, archive.extractfile(member).read
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"data_dir {str(path)!r} cannot be read as an archive: {error}") from None


def _uncompressed(path):
    """Open an archive, compressed or not; unlike tarfile's own, gzip notices a missing end."""
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if compressed else path.open("rb")


def _checksum(path):
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    digest = hashlib.sha256()
    for name, read in _files(path):
        if _IMAGE.search(name):
            digest.update(f"{name}\0{hashlib.sha256(read()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _decode(path, size):
    """Decode every image of `path` on all cores; return images, ages and the report."""
    names = [name for name, _ in _files(path)]
    kept = [name for name in names if _IMAGE.search(name)]
    kept.sort(key=lambda name: (Path(name).name, name))  # the same for folder and archive
    parsed = {name: age_from_name(Path(name).name) for name in kept}
    row = {name: i for i, name in enumerate(n for n in kept if parsed[n][0] is not None)}
    report = {
        "malformed": [name for name in row if not parsed[name][1]],
        "unreadable_age": [name for name in kept if name not in row],
        "other_files": len(names) - len(kept),
        "corrupt": [],
    }
    images = np.zeros((len(row), 3, size, size), np.uint8)
    jobs = ((name, read()) for name, read in _files(path) if name in row)
    chunks = Parallel(n_jobs=-1, prefer="threads", return_as="generator_unordered")(
        delayed(_decode_chunk)(chunk, size) for chunk in iter(lambda: list(islice(jobs, 64)), [])
    )
    with tqdm(total=len(row), desc=f"Decoding UTKFace at {size} x {size}", unit="image") as bar:
        for chunk in chunks:
            for name, image in chunk:
                if image is None:
                    report["corrupt"].append(name)
                else:
                    images[row[name]] = image
            bar.update(len(chunk))
    report["corrupt"].sort()
    for problem in ("corrupt", "unreadable_age"):
        if report[problem]:
            log.warning(
                "UTKFace: skipped %d files (%s): %s",
                len(report[problem]),
                problem,
                ", ".join(report[problem][:10]),
            )
    corrupt = set(report["corrupt"])
    good = np.array([name not in corrupt for name in row], dtype=bool)
    if not good.any():
        raise ValueError(
            f"data_dir must hold JPEGs named [age]_[gender]_[race]_[time].jpg; {str(path)!r} has "
            f"{len(kept)} JPEGs, {len(row)} with a readable age, none that can be decoded."
        )
    ages = np.array([parsed[name][0] for name in row])
    if not good.all():
        images, ages = images[good], ages[good]
    report = {"images": len(images), **report}
    return torch.from_numpy(images), torch.from_numpy(ages), report


def _decode_chunk(chunk, size):
    return [(name, _decode_one(content, size)) for name, content in chunk]


def _decode_one(content, size):
    """Return the image as (3, size, size) uint8, or None if it is corrupt."""
    try:
        image = Image.open(io.BytesIO(content), formats=["JPEG"])
        image.draft("RGB", (2 * size, 2 * size))  # the decoder's own halving; never below twice
        image = image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return np.asarray(image).transpose(2, 0, 1)


def _load(cache, checksum):
    """Return the cache's content, or None where it is absent, unreadable or of other data."""
    try:
        with safe_open(cache, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("checksum") != checksum:
                return None
            report = json.loads(metadata["report"])
            return file.get_tensor("images"), file.get_tensor("ages"), report
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        log.warning("Cache %s cannot be read (%s): decoding again.", cache, error)
        return None


def _save(cache, images, ages, checksum, report):
    cache.parent.mkdir(parents=True, exist_ok=True)
    temporary = cache.with_name(f".{cache.name}.{uuid.uuid4().hex}.tmp")
    try:
        metadata = {"checksum": checksum, "report": json.dumps(report)}
        save_file({"images": images, "ages": ages}, temporary, metadata=metadata)
        os.replace(temporary, cache)
    finally:
        temporary.unlink(missing_ok=True)
