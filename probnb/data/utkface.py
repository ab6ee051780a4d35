"""UTKFace: photographs of faces with their ages, decoded once to a uint8 cache.

The images are read from a folder or straight from the archive as distributed; their names are
``[age]_[gender]_[race]_[time].jpg.chip.jpg``. Only the age is used.
"""

from __future__ import annotations

import hashlib
import logging
import re
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from .. import store
from ..validation import check_integer
from .files import list_files, read_files
from .image_cache import cache_folder
from .pictures import ENDINGS, decode

__all__ = ["age_from_name", "read_utkface"]

log = logging.getLogger(__name__)

CACHE_FORMAT = 2  # raise it when decoding changes, so that older caches are left alone
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
        A folder of images (subfolders included), or an archive: the ``.tar.gz`` as distributed,
        another tar, a zip. It is never unpacked; see `probnb.data.files`.
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
        are ``corrupt`` or have an ``unreadable_age``; how many ``other_files`` lie there;
        ``unread`` links and files by name, with the reason; ``repeated`` files, left out because
        an image of the same file name and pixels comes first; ``duplicates``, the rows of each
        set of images whose pixels are the same under different names, and how many of these
        sets have ``conflicting_ages``.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    ValueError
        If `path` holds no readable image or is no archive that can be read, or `size` is not
        positive.

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
    try:
        listing = list_files(path)
        checksum = _checksum(path, listing)
        cache = cache_folder(cache_dir)
        cache = cache / f"utkface-v{CACHE_FORMAT}-{size}-{checksum[:16]}.safetensors"
        if (found := _cached(cache, checksum)) is None:
            images, ages, report = _decode(path, listing, size)
            store.save(
                cache, {"images": images, "ages": ages}, {"checksum": checksum, "report": report}
            )
            found = images, ages, report
    except ValueError as error:
        raise ValueError(f"data_dir {error}") from None
    images, ages, report = found
    return images, ages.numpy(), checksum, report


def _cached(cache, checksum):
    """Return the cache's content, or None where it is absent, unreadable or of other data."""
    try:
        tensors, meta = store.load(cache)
        same = meta["checksum"] == checksum
        return (tensors["images"], tensors["ages"], meta["report"]) if same else None
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        log.warning("Cache %s cannot be read (%s): decoding again.", cache, error)
        return None


def _checksum(path, listing):
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = [name for name in listing.files if ENDINGS.search(name)]
    digests, digest = {}, hashlib.sha256()
    for place, content in read_files(path, [listing.files[name] for name in names]):
        digests[place] = hashlib.sha256(content or b"").hexdigest()
    for name in sorted(names, key=Path):
        line = f"{name}\0{digests[listing.files[name]]}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _decode(path, listing, size):
    """Decode every image of `path` on all cores; return images, ages and the report."""
    kept = [name for name in listing.files if ENDINGS.search(name)]
    kept.sort(key=lambda name: (Path(name).name, name))  # the same for folder and archive
    ages = {name: age_from_name(Path(name).name)[0] for name in kept}
    named = [name for name in kept if ages[name] is not None]
    index = {place: i for i, place in enumerate(dict.fromkeys(listing.files[n] for n in named))}
    images, digests = _decode_all(path, index, size)
    seen, rows, corrupt, repeated = {}, [], [], []
    for name in named:
        digest = digests[listing.files[name]]
        record = (Path(name).name, digest)
        if digest is None:
            corrupt.append(name)
        elif record in seen:
            repeated.append(name)
        else:
            seen[record] = len(rows)
            rows.append(name)
    if not rows:
        raise ValueError(
            f"must hold images named [age]_[gender]_[race]_[time].jpg; {str(path)!r} has "
            f"{len(kept)} JPEGs or other images, {len(named)} with a readable age, none that can "
            f"be decoded{_hint(listing)}."
        )
    sets = _duplicates(seen)
    report = {
        "images": len(rows),
        "malformed": [name for name in rows if not age_from_name(Path(name).name)[1]],
        "unreadable_age": [name for name in kept if ages[name] is None],
        "other_files": len(listing.files) - len(kept),
        "unread": listing.skipped,
        "corrupt": sorted(corrupt),
        "repeated": repeated,
        "duplicates": sets,
        "conflicting_ages": sum(len({ages[rows[row]] for row in group}) > 1 for group in sets),
    }
    _warn(report)
    take = [index[listing.files[name]] for name in rows]
    images = images if take == list(range(len(images))) else images[take]
    return torch.from_numpy(images), torch.tensor([ages[name] for name in rows]), report


def _decode_all(path, index, size):
    """Return the images in the order of `index`, and by place their digest, None if corrupt."""
    images, digests = np.zeros((len(index), 3, size, size), np.uint8), {}
    files = read_files(path, index)
    chunks = Parallel(n_jobs=-1, prefer="threads", return_as="generator_unordered")(
        delayed(_decode_chunk)(chunk, size) for chunk in iter(lambda: list(islice(files, 64)), [])
    )
    with tqdm(total=len(index), desc=f"Decoding UTKFace at {size} x {size}", unit="image") as bar:
        for chunk in chunks:
            for place, image, digest in chunk:
                digests[place] = digest
                if image is not None:
                    images[index[place]] = image
            bar.update(len(chunk))
    return images, digests


def _decode_chunk(chunk, size):
    return [(place, *_decode_one(content, size)) for place, content in chunk]


def _decode_one(content, size):
    try:
        return decode(content or b"", size)
    except ValueError:
        return None, None


def _duplicates(seen):
    """Rows of each set of images with the same pixels; `seen` maps (name, digest) to the row."""
    sets = {}
    for (_, digest), row in seen.items():
        sets.setdefault(digest, []).append(row)
    return [rows for rows in sets.values() if len(rows) > 1]


def _warn(report):
    for problem in ("corrupt", "unreadable_age", "unread", "repeated"):
        if report[problem]:
            log.warning(
                "UTKFace: skipped %d files (%s): %s",
                len(report[problem]),
                problem.replace("_", " "),
                ascii(list(report[problem])[:10]),  # names may hold line breaks
            )


def _hint(listing):
    archives = [name for name in listing.files if name.endswith((".gz", ".zip", ".tar", ".tgz"))]
    if archives:
        return f"; it holds {archives[0]!r}: give that file"
    if listing.skipped:
        name, reason = next(iter(listing.skipped.items()))
        return f"; {len(listing.skipped)} entries were not read, the first {name!r}: {reason}"
    return ""
