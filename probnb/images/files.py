"""The files of a folder or an archive, and images in one array, read where they lie.

One listing serves training and prediction. Nothing is unpacked, no link leads out, and what is not
read is named with its reason. What is made of the files is kept in the cache folder.
"""

import contextlib
import hashlib
import io
import os
import posixpath
import re
import stat
import tarfile
import zipfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..paths import HIDDEN, composed

PICTURE = re.compile(r"\.(jpe?g|jpe|jfif|png|webp|tiff?|bmp|gif)$", re.IGNORECASE)
"""Names that are taken for images."""

LIMIT = 256 * 2**20
"""Bytes of one file, unpacked: no photograph is larger, a decompression bomb is."""

LINKED, NEITHER = "a link to a folder", "neither a file nor a link"
PACKED_LINK = "a symbolic link in an archive: unpack it and give the folder"

PACKED = re.compile(
    r"(?<=.)\.(zip|tgz|tbz2?|txz|tar(\.(gz|bz2|xz|zst))?|np[yz]|h5|hdf5|zarr)$", re.IGNORECASE
)
"""Endings of archives and arrays, which are no part of what is in them is called."""

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar")
"""Endings of archives, which are not looked into where they lie among the images."""

ARRAYS = (".npy", ".npz", ".h5", ".hdf5", ".zarr")
"""Endings of files that hold images as one array."""


@dataclass(frozen=True)
class Listing:
    """What a folder or archive holds.

    Attributes
    ----------
    root : str
        Its own name, without an ending.
    files : dict of str to object
        Name of each file, and the place of its content for `read_files` (in a folder the name, as
        files may be added while it is read); of a name that an archive has twice the last counts,
        as when unpacking.
    skipped : dict of str to str
        What is never read, and why: links that lead out or to a folder, symbolic ones in an
        archive, files of more than 256 MiB, devices.
    """

    root: str
    files: dict
    skipped: dict

    def pictures(self):
        """Return the names of all images, of `files` and `skipped`; hidden ones are none."""
        names = (name for name in [*self.files, *self.skipped] if PICTURE.search(name))
        return sorted(name for name in names if not HIDDEN.search(name))

    def left_out(self):
        """Return a sentence on what is no image, empty where there is no such file."""
        others, kinds = self.files.keys() - {*self.pictures()}, []
        endings = ["hidden" if HIDDEN.search(n) else Path(n).suffix.lower() for n in others]
        for kind, count in sorted(Counter(endings).items()):
            hint = " (unpack them)" if kind in ARCHIVES else ""
            kinds.append(f"{count:,} {kind or 'without an ending'}{hint}")
        kinds += [f"{n!r}: {why}" for n, why in self.skipped.items() if not PICTURE.search(n)]
        return f"Left out, since they are no images: {'; '.join(kinds)}." if kinds else ""


def list_files(path):
    """List the files of a folder (subfolders included) or an archive.

    Parameters
    ----------
    path : path-like
        A folder, a tar (compressed or not) or a zip, told by its content and not its ending; or
        one image.

    Returns
    -------
    Listing
        Files in the order of the sorted folder, or of the archive.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    ValueError
        If `path` is a file but no archive that can be read (the message says what to do), is
        damaged, or has names that lead out of it.
    """
    path = Path(path)
    found = {}
    with _entries(path) as entries:
        for place, name, size, problem, _ in entries:
            if name.startswith("/") or name.split("/")[0] == "..":
                raise ValueError(f"{str(path)!r} is refused: the name {name!r} leads out of it.")
            if size > LIMIT:
                problem = f"{size:,} bytes are more than the {LIMIT:,} allowed"
            found.pop(name, None)  # the last counts
            found[name] = place, problem
    files = {name: place for name, (place, problem) in found.items() if not problem}
    skipped = {name: problem for name, (_, problem) in found.items() if problem}
    return Listing(plain_name(path), files, skipped)


def plain_name(path):
    """Return what a folder, an archive or an array is called, without the ending of its kind.

    Examples
    --------
    >>> plain_name("/data/scan.2023.tar.gz")
    'scan.2023'
    """
    return PACKED.sub("", Path(os.path.abspath(Path(path).expanduser())).name)


def read_files(path, places):
    """Yield (place, content) of some files, in the order in which they lie.

    Parameters
    ----------
    path : path-like
        As `list_files` was given.
    places : collection
        Values of ``Listing.files``.

    Yields
    ------
    place : object
        Which file.
    content : bytes or None
        None where this one file cannot be read. An archive that breaks off raises ValueError.
    """
    places = set(places)
    with _entries(Path(path)) as entries:
        for place, *_, read in entries:
            if place in places:
                try:
                    content = read()
                except Exception:  # what unpacking raises on damaged bytes has no common base
                    content = None
                yield place, content


def checksum(path, listing, names):
    """SHA-256 of an archive, or of some files of a folder: a copy of it is the same data."""
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    contents = read_files(path, [listing.files[name] for name in names])
    digests = {place: hashlib.sha256(content or b"").hexdigest() for place, content in contents}
    lines = (f"{name}\0{digests[listing.files[name]]}\n" for name in sorted(names, key=Path))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def match_names(paths, listing):
    """Find the file that each path of a table means, and no other.

    A path is relative to the folder, or starts higher up: in a folder of the same name, or in one
    that all paths share. A name without folders is enough where one file has it. The ending may
    be missing. Where no file is spelt so, one counts that alone differs in nothing but capitals
    or in how accents are composed, as systems disagree about both.

    Parameters
    ----------
    paths : iterable of str
        As they stand in the table.
    listing : Listing
        The files.

    Returns
    -------
    names : list of str or None
        The file of each row.
    reasons : list of str or None
        Why there is none.
    """
    known, alike = defaultdict(set), defaultdict(set)
    for name in listing.files:
        for spelt in {name, PICTURE.sub("", name)}:
            known[spelt].add(name)
            if not HIDDEN.search(name):
                known["/" + posixpath.basename(spelt)].add(name)  # without its folders
    for spelt, names in known.items():
        alike[_folded(spelt)] |= names
    split = [str(path).replace("\\", "/").split("/") for path in paths]
    split = [[part for part in parts if part not in ("", ".")] for parts in split]
    shared = posixpath.commonprefix([parts[:-1] for parts in split if parts])
    found = [_match(parts, shared, known, alike, listing) for parts in split]
    return [name for name, _ in found], [reason for _, reason in found]


def _folded(text):
    return composed(text).casefold()


def _match(parts, shared, known, alike, listing):
    """The file of one path and None, or None and the reason."""
    if ".." in parts:
        return None, "its path leads out of the folder"
    root = _folded(listing.root)
    starts = [0, *(k for k in range(1, len(parts)) if _folded(parts[k - 1]) == root)]
    starts += [k for k in range(1, len(shared) + 1) if parts[:k] == shared[:k]]
    spellings = ["/".join(parts[k:]) for k in starts]
    for spelt in spellings:
        if spelt in listing.skipped:
            return None, listing.skipped[spelt]
        if spelt in listing.files:
            return spelt, None
    alone = "/" * (len(parts) == 1)
    for names in (
        *(known.get(alone + spelt) for spelt in spellings),
        *(alike.get(_folded(alone + spelt)) for spelt in spellings),
    ):
        if names:
            several = f"{len(names)} files have this name"
            return (None, several) if len(names) > 1 else (*names, None)
    return None, "there is no such file"


@contextlib.contextmanager
def _entries(path):
    """Give the place, name, size, problem and reading of each entry."""
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist.")
    if path.is_dir():
        yield ((entry[0], *entry) for entry in _folder(path.resolve()))
        return
    if PICTURE.search(path.name):
        yield [(path.name, path.name, path.stat().st_size, None, path.read_bytes)]
        return
    try:
        entries = _zip(path) if zipfile.is_zipfile(path) else _tar(path)
        yield ((place, *entry) for place, entry in enumerate(entries))
    except Exception as error:
        if type(error) is ValueError:  # our own, of a name that leads out
            raise
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(":")
        raise ValueError(
            f"{str(path)!r} cannot be read as an archive, tar or zip: {reason}. Of another kind, "
            "unpack it and give the folder."
        ) from None


def _folder(root):
    found = {}

    def unreadable(error):
        found[Path(error.filename)] = f"cannot be opened ({error.strerror})"

    for folder, folders, names in os.walk(root, onerror=unreadable):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        files = (Path(folder, name) for name in [*links, *names])
        found |= {file: _problem(file, root) for file in files}
    for file, problem in sorted(found.items()):
        size = file.stat().st_size if problem is None else 0
        yield file.relative_to(root).as_posix(), size, problem, file.read_bytes


def _problem(file, root):
    """Why a file in a folder is not read; links are followed within the folder, not to folders."""
    if file.is_dir():
        return LINKED
    if not Path(os.path.realpath(file)).is_relative_to(root):
        return "a link that leads out"
    if file.is_file():
        return None
    return "a link to no file" if file.is_symlink() else NEITHER


def _tar(path):
    seen = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name, size = posixpath.normpath(member.name), member.size
            problem = None if member.isfile() else PACKED_LINK if member.issym() else NEITHER
            if member.islnk():  # another name of a file that comes before it, as tar packs copies
                target = posixpath.normpath(member.linkname)
                size, problem = seen.get(target, (0, "a link to no file"))
            seen[name] = size, problem
            read = lambda member=member: archive.extractfile(member).read()  # noqa: E731
            if not member.isdir():
                yield name, size, problem, read
        if isinstance(archive.fileobj, io.BufferedReader):  # a cut between files passes for the end
            archive.fileobj.seek(-1024, os.SEEK_END)
            if any(archive.fileobj.read()):
                raise tarfile.ReadError("its end is missing")


def _zip(path):
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.filename:
                raise zipfile.BadZipFile("a file without a name")
            if not member.is_dir():
                name = posixpath.normpath(member.filename.replace("\\", "/"))
                problem = PACKED_LINK if stat.S_ISLNK(member.external_attr >> 16) else None
                yield name, member.file_size, problem, partial(archive.read, member)


def is_array(path, key=None):
    """Whether a path names an array file (or Zarr folder) rather than images, which have no key."""
    found = Path(path).name.lower().endswith(ARRAYS)
    if key is not None and not found:
        raise ValueError(f"key must be None for {Path(path).name}, which is no array; got {key!r}.")
    return found


def open_array(path, key=None):
    """Open an array of images, (n, height, width, channels) whatever its order of axes.

    Parameters
    ----------
    path : path-like
        ``.npy``, ``.npz``, ``.h5``, ``.hdf5``, or a Zarr folder.
    key : str, optional
        Which array of a file that holds several.

    Returns
    -------
    images : array of shape (n, height, width) or (n, height, width, channels)
        uint8 or uint16, on disk where the format allows; anything that can be sliced.
    others : dict of str to ndarray
        The vectors of n values, or of shape (n, 1), that lie beside it: outcomes, groups.
    """
    path = Path(path)
    try:
        arrays = _arrays(path)
        vectors = {k: a[:] for k, a in arrays.items() if a.ndim == 1 or a.shape[1:] == (1,)}
    except Exception as error:  # as of archives; a header of NumPy's is Python, which may not parse
        raise ValueError(f"images: {path.name} cannot be read: {error}") from None
    candidates = [name for name, array in arrays.items() if array.ndim in (3, 4)]
    key = candidates[0] if key is None and len(candidates) == 1 else key
    if key not in candidates:
        shapes = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items()) or "nothing"
        raise ValueError(
            f"images: {path.name} must hold one array of images (n, height, width, channels), or "
            f"key must name one; it holds {shapes}; got key={key!r}."
        )
    images = arrays[key]
    n, second = images.shape[0], images.ndim == 4 and images.shape[3] > 4
    if str(images.dtype) not in ("uint8", "uint16") or (second and images.shape[1] > 4):
        raise ValueError(
            f"images: {path.name} must hold uint8 or uint16 of 1 to 4 channels, second or last; "
            f"got {images.dtype} of shape {tuple(images.shape)}. Bring floats to 0 to 255 "
            "yourself: only you know what their range means."
        )
    others = {name: v.reshape(n) for name, v in vectors.items() if v.size == n}
    return _Rows(images, path.name, second), others


def _arrays(path):
    """Every array in a file, by name."""
    ending = path.suffix.lower()
    if ending == ".npy":
        return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}
    if ending == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    if ending == ".zarr":
        import zarr

        store = zarr.open(path, mode="r")
        return {path.stem: store} if isinstance(store, zarr.Array) else dict(store.arrays())
    import h5py

    items = h5py.File(path, "r").items()
    return {name: item for name, item in items if isinstance(item, h5py.Dataset)}


class _Rows:
    """An array on disk, sliced as if its channels stood last; says which file is damaged."""

    def __init__(self, array, name, channels_second=False):
        self.array, self.name, self.channels_second = array, name, channels_second
        n, *rest = array.shape
        self.dtype = array.dtype
        self.shape = (n, *rest[1:], rest[0]) if channels_second else (n, *rest)

    def __getitem__(self, rows):
        try:
            found = np.asarray(self.array[rows])
        except Exception as error:
            raise ValueError(f"images: {self.name} is damaged: {error}") from None
        return np.moveaxis(found, 1, -1) if self.channels_second else found


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
