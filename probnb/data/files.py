"""The files of a folder or an archive, read where they lie: nothing is unpacked, no link leads out.

One listing serves training and prediction. What is not read is named with its reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import lzma
import os
import posixpath
import re
import tarfile
import zipfile
import zlib
from collections import Counter, namedtuple
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

__all__ = ["LINKED", "PICTURE", "Listing", "checksum", "list_files", "read_files"]

PICTURE = re.compile(r"\.(jpe?g|jpe|jfif|png|webp|tiff?|bmp|gif)$", re.IGNORECASE)
"""Names that are taken for images."""

LIMIT = 256 * 2**20
"""Bytes of one file, unpacked: no photograph is larger, a decompression bomb is."""

LINKED = "a link to a folder"

_Entry = namedtuple("_Entry", "name size problem read")
# RuntimeError: a zip's password, or links in a circle; NotImplementedError: a zip's method
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError, KeyError,
           lzma.LZMAError, zlib.error, EOFError, OSError)  # fmt: skip


@dataclass(frozen=True)
class Listing:
    """What a folder or archive holds.

    Attributes
    ----------
    root : str
        Its own name, without an ending.
    files : dict of str to int
        Name of each file, and the place of its content for `read_files`; of a name that an
        archive has twice the last counts, as when unpacking.
    skipped : dict of str to str
        What is never read, and why: links that lead out or to a folder, files of more than
        256 MiB, devices.
    """

    root: str
    files: dict
    skipped: dict

    def pictures(self):
        """Return the names of all images, of `files` and `skipped`; hidden ones are none."""
        names = (name for name in [*self.files, *self.skipped] if PICTURE.search(name))
        return sorted(name for name in names if not _hidden(name))

    def left_out(self):
        """Return a sentence on what is no image, empty where there is no such file."""
        rest = Counter(
            "hidden" if _hidden(name) else PurePosixPath(name).suffix.lower() or "without an ending"
            for name in self.files
            if _hidden(name) or not PICTURE.search(name)
        )
        kinds = [f"{count:,} {kind}" for kind, count in sorted(rest.items())]
        kinds += [f"{n!r}: {why}" for n, why in self.skipped.items() if not PICTURE.search(n)]
        return f"Left out, since they are no images: {'; '.join(kinds)}." if kinds else ""


def list_files(path):
    """List the files of a folder (subfolders included) or an archive.

    Parameters
    ----------
    path : path-like
        A folder, a tar (compressed or not) or a zip, told by its content and not its ending.

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
    files, skipped = {}, {}
    with _entries(path) as entries:
        for place, (name, size, problem, _) in enumerate(entries):
            if name.startswith("/") or name.split("/")[0] == "..":
                raise ValueError(f"{str(path)!r} is refused: the name {name!r} leads out of it.")
            if size > LIMIT:
                problem = f"{size:,} bytes are more than the {LIMIT:,} allowed"
            if problem is None:
                files[name] = place
            else:
                skipped[name] = problem
    return Listing(path.name.split(".")[0], files, skipped)


def read_files(path, places):
    """Yield (place, content) of some files, in the order in which they lie.

    Parameters
    ----------
    path : path-like
        As `list_files` was given.
    places : collection of int
        Values of ``Listing.files``.

    Yields
    ------
    place : int
        Which file.
    content : bytes or None
        None where this one file cannot be read. An archive that breaks off raises ValueError.
    """
    places = set(places)
    with _entries(Path(path)) as entries:
        for place, entry in enumerate(entries):
            if place in places:
                try:
                    content = entry.read()
                except _BROKEN:
                    content = None
                yield place, content


def checksum(path, listing, names):
    """SHA-256 of an archive, or of some files of a folder: a copy of it is the same data."""
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    digests, digest = {}, hashlib.sha256()
    for place, content in read_files(path, [listing.files[name] for name in names]):
        digests[place] = hashlib.sha256(content or b"").hexdigest()
    for name in sorted(names, key=Path):
        line = f"{name}\0{digests[listing.files[name]]}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _hidden(name):
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


@contextlib.contextmanager
def _entries(path):
    """Give the entries of a folder or an archive, and say in plain words what is wrong with it."""
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist.")
    if path.is_dir():
        yield _folder(path.resolve())
        return
    try:
        yield _zip(path) if zipfile.is_zipfile(path) else _tar(path)
    except _BROKEN as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(":")
        raise ValueError(
            f"{str(path)!r} cannot be read as an archive, tar or zip: {reason}. Of another kind, "
            "unpack it and give the folder."
        ) from None


def _folder(root):
    found, unreadable = {}, []
    for folder, folders, names in os.walk(root, onerror=unreadable.append):
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        found |= {Path(folder, name): LINKED for name in linked}
        found |= {Path(folder, name): _problem(Path(folder, name), root) for name in names}
    found |= {Path(e.filename): f"cannot be opened ({e.strerror})" for e in unreadable}
    for file, problem in sorted(found.items(), key=lambda pair: pair[0]):
        size = file.stat().st_size if problem is None else 0
        yield _Entry(file.relative_to(root).as_posix(), size, problem, file.read_bytes)


def _problem(file, root):
    """Why a file in a folder is not read; links are followed within the folder."""
    if not Path(os.path.realpath(file)).is_relative_to(root):
        return "a link that leads out"
    if file.is_file():
        return None
    return "a link to no file" if file.is_symlink() else "neither a file nor a link"


def _tar(path):
    with tarfile.open(path) as archive:
        for member in archive:

            def read(member=member):  # of a link what it leads to, if inside
                return archive.extractfile(member).read()

            known = member.isfile() or member.islnk() or member.issym()
            problem = None if known else "neither a file nor a link"
            if not member.isdir():
                yield _Entry(posixpath.normpath(member.name), member.size, problem, read)
        plain = isinstance(archive.fileobj, io.BufferedReader)
    if plain:  # a cut between two files passes for the end
        with path.open("rb") as file:
            file.seek(-1024, os.SEEK_END)
            if any(file.read()):
                raise tarfile.ReadError("its end is missing")


def _zip(path):
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.flag_bits & 1:
                raise ValueError(
                    f"{str(path)!r} is encrypted: unpack it with its password, give the folder."
                )
            if not member.is_dir():
                name = posixpath.normpath(member.filename.replace("\\", "/"))
                yield _Entry(name, member.file_size, None, partial(archive.read, member))
