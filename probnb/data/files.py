"""The files of a folder or an archive, read where they lie: nothing is unpacked, no link leads out.

A tar (plain, gzip, bzip2, xz, zstandard where Python has it) is streamed front to back, a zip read
by its index. Links inside are followed to their content, and all that is not read is named with
its reason.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

__all__ = ["Listing", "list_files", "read_files"]

LIMIT = 256 * 2**20
"""Bytes of one file, unpacked: no photograph is larger, a decompression bomb is."""

LEADS_OUT = "its name leads out of the archive"

ROOM, GROWTH = 2**30, 100
"""An archive may unpack to the larger of 1 GiB and a hundred times its own size."""

# kind: "file", "link", or why it is neither
_Entry = namedtuple("_Entry", "name kind size target read")

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"version https://git-lfs": "lfs",
    b"<!DOCTYPE": "html",
    b"<html": "html",
}
_REMEDY = {
    "zstd": "is compressed with zstandard, which needs Python 3.14: decompress it with `zstd -d`",
    "7z": "is a 7z archive: unpack it with `7z x` and give the folder",
    "rar": "is a RAR archive: unpack it with `unrar x` and give the folder",
    "lfs": "is a pointer of Git LFS, not the file itself: fetch it with `git lfs pull`",
    "html": "is a web page, not an archive: the download went wrong",
}
_OPEN = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open, "tar": partial(open, mode="rb")}
with contextlib.suppress(ImportError):  # Python 3.14
    from compression import zstd

    _OPEN["zstd"] = zstd.open
_NO_FILE = "neither a file nor a link"
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,  # a zip of a kind that Python cannot undo
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
)


@dataclass(frozen=True)
class Listing:
    """What a folder or archive holds.

    Attributes
    ----------
    files : dict of str to int
        Name of each file, and the place of its content for `read_files`. Names that are links to
        one file share its place; of a name that an archive has twice the last counts, as when
        unpacking.
    skipped : dict of str to str
        What is never read, and why: links that lead out, to a folder or nowhere, names that
        lead out, files of more than 256 MiB, devices.
    """

    files: dict
    skipped: dict


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
        damaged, or unpacks to more than a hundred times its size.
    """
    path = Path(path)
    files, links, skipped, total = {}, {}, {}, 0
    allowed = np.inf if path.is_dir() else max(ROOM, GROWTH * path.stat().st_size)
    with _entries(path) as entries:
        for place, entry in enumerate(entries):
            total += entry.size
            if total > allowed:
                raise ValueError(
                    f"{str(path)!r} unpacks to more than {allowed:,} bytes, {GROWTH} times its "
                    "size or more: refused as a decompression bomb."
                )
            if _leads_out(entry.name):
                skipped[entry.name] = LEADS_OUT
            elif entry.kind == "link":
                links[entry.name] = entry.target
            elif entry.kind != "file":
                skipped[entry.name] = entry.kind
            elif entry.size > LIMIT:
                skipped[entry.name] = f"{entry.size:,} bytes are more than the {LIMIT:,} allowed"
            else:
                links.pop(entry.name, None)
                files[entry.name] = place
    found = dict(files)
    for name in links:
        target, seen = links[name], {name}
        while target in links and target not in seen:
            seen.add(target)
            target = links[target]
        if target is None or _leads_out(target):
            skipped[name] = "a link that leads out"
        elif target in seen:
            skipped[name] = "a link in a circle"
        elif target not in files:
            skipped[name] = "a link to no file"
        else:
            found[name] = files[target]
    return Listing(found, skipped)


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
                yield place, entry.read()


def _leads_out(name):
    return name.startswith("/") or name == ".." or name.startswith("../")


@contextlib.contextmanager
def _entries(path):
    """Give the entries of a folder or an archive, and say in plain words what is wrong with it."""
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist.")
    if path.is_dir():
        yield _folder(path)
        return
    kind = _kind(path)
    if kind in _REMEDY and kind not in _OPEN:
        raise ValueError(f"{str(path)!r} {_REMEDY[kind]}.")
    try:
        yield _zip(path) if kind == "zip" else _tar(path, _OPEN[kind])
    except _BROKEN as error:
        raise ValueError(f"{str(path)!r} cannot be read as an archive: {error}") from None


def _kind(path):
    with path.open("rb") as file:
        start = file.read(32)
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "tar")


def _folder(path):
    root, found = path.resolve(), []
    unreadable = []
    for folder, folders, names in os.walk(root, onerror=unreadable.append):
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        found += [(Path(folder, name), "a link to a folder") for name in linked]
        found += [(Path(folder, name), None) for name in names]
    for error in unreadable:
        found.append((Path(error.filename), f"cannot be opened ({error.strerror})"))
    for file, problem in sorted(found, key=lambda pair: pair[0]):
        name, status = file.relative_to(root).as_posix(), file.lstat()
        if problem is not None:
            yield _Entry(name, problem, 0, None, None)
        elif stat.S_ISLNK(status.st_mode):
            yield _Entry(name, "link", 0, _inside(file, root), None)
        elif stat.S_ISREG(status.st_mode):
            read = partial(_or_none, file.read_bytes)
            yield _Entry(name, "file", status.st_size, None, read)
        else:
            yield _Entry(name, _NO_FILE, 0, None, None)


def _inside(link, root):
    """Where a link leads, as a name in the folder; None outside it."""
    target = Path(os.path.realpath(link))  # stops at a circle instead of raising
    return target.relative_to(root).as_posix() if target.is_relative_to(root) else None


def _tar(path, opener):
    # tarfile's own decompression does not notice a missing end
    with opener(path) as file, tarfile.open(fileobj=file, mode="r|") as archive:
        for member in archive:
            name, target = posixpath.normpath(member.name), None
            if member.isfile():
                read = partial(_member, archive, member)
                yield _Entry(name, "file", member.size, None, read)
            elif member.issym() or member.islnk():
                base = posixpath.dirname(name) if member.issym() else ""
                target = posixpath.normpath(posixpath.join(base, member.linkname))
                yield _Entry(name, "link", 0, target, None)
            elif not member.isdir():
                yield _Entry(name, _NO_FILE, 0, None, None)
    if opener is _OPEN["tar"]:  # a cut between two files passes for the end
        with path.open("rb") as file:
            file.seek(-1024, os.SEEK_END)
            if any(file.read()):
                raise tarfile.ReadError("its end is missing")


def _member(archive, member):
    return archive.extractfile(member).read()


def _zip(path):
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = posixpath.normpath(member.filename.replace("\\", "/"))
            read = partial(_or_none, partial(archive.read, member))
            if member.flag_bits & 1:
                raise ValueError(
                    f"{str(path)!r} is encrypted: unpack it with its password, give the folder."
                )
            if member.is_dir():
                continue
            if member.compress_type not in _ZIP_METHODS:
                reason = f"compressed by method {member.compress_type}, which Python cannot undo"
                yield _Entry(name, reason, 0, None, None)
            elif stat.S_ISLNK(member.external_attr >> 16) and member.file_size < 4096:
                link = (read() or b"").decode(errors="surrogateescape")
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
                yield _Entry(name, "link", 0, target, None)
            else:
                yield _Entry(name, "file", member.file_size, None, read)


def _or_none(read):
    """Content of one file, None where it alone cannot be read."""
    try:
        return read()
    except _BROKEN:
        return None
