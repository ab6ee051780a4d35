"""Folders and archives of every kind, links and names that lead out, bombs, wrong files."""

import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile

import pytest

from probnb.images import files
from probnb.images.files import list_files, plain_name, read_files

CONTENT = {"a.jpg": b"one", "sub/b.jpg": b"two" * 1000, "sub/c.txt": b""}


def tar_of(entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in entries:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(entries, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


def everything(path):
    listing = list_files(path)
    read = dict(read_files(path, listing.files.values()))
    return {name: read[place] for name, place in listing.files.items()}, listing.skipped


PACK = {
    "tar": tar_of,
    "gzip": lambda entries: gzip.compress(tar_of(entries)),
    "bzip2": lambda entries: bz2.compress(tar_of(entries)),
    "xz": lambda entries: lzma.compress(tar_of(entries)),
    "zip": zip_of,
    "stored zip": lambda entries: zip_of(entries, zipfile.ZIP_STORED),
    "lzma zip": lambda entries: zip_of(entries, zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize("kind", PACK)
def test_archives_are_told_by_content_and_read_as_the_folder_is(tmp_path, kind):
    path = tmp_path / "archive.of_any_name"
    path.write_bytes(PACK[kind](CONTENT.items()))
    for name, content in CONTENT.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(content)
    assert everything(path) == everything(tmp_path / "folder") == (CONTENT, {})


@pytest.mark.parametrize("kind", [k for k in PACK if "zip" not in k])
def test_archive_that_breaks_off_is_refused(tmp_path, kind):
    path = tmp_path / "x"
    whole = PACK[kind]((f"{i}.jpg", os.urandom(2000)) for i in range(20))
    for end in (len(whole) // 3, len(whole) // 3 + 700):  # of a tar: between files, within one
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="x' cannot be read as an archive"):
            everything(path)


@pytest.mark.parametrize(
    ("start", "remedy"),
    [
        (b"7z\xbc\xaf\x27\x1c\0\4", "unpack it and give the folder"),
        (b"not an archive at all" * 50, "cannot be read as an archive"),
        (b"\x1f\x8bgarbage", "cannot be read as an archive"),
        (b"", "cannot be read as an archive"),
        (b"PK\x03\x04 cut", "cannot be read as an archive"),
    ],
)
def test_what_is_no_readable_archive_is_refused_with_the_remedy(tmp_path, start, remedy):
    path = tmp_path / "UTKFace.tar.gz"
    path.write_bytes(start)
    with pytest.raises(ValueError, match=f"UTKFace.tar.gz.*{remedy}"):
        list_files(path)


def test_an_encrypted_file_of_a_zip_cannot_be_read(tmp_path):
    content = bytearray(zip_of(CONTENT.items()))
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(magic)
        content[at + flags] |= 1
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    assert everything(path)[0] == {**CONTENT, "a.jpg": None}


def test_one_damaged_member_of_a_zip_is_that_member_alone(tmp_path):
    content = bytearray(zip_of(CONTENT.items(), zipfile.ZIP_STORED))
    content[content.find(b"twotwo") + 7] ^= 1
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    assert everything(path)[0] == {**CONTENT, "sub/b.jpg": None}


@pytest.mark.parametrize("name", ["../a.jpg", "/b.jpg", "x/../../c.jpg", "..\\d.jpg"])
def test_an_archive_with_names_that_lead_out_is_refused(tmp_path, name):
    for pack in (tar_of, zip_of) if "\\" not in name else (zip_of,):
        (tmp_path / "x").write_bytes(pack([("./y/../e.jpg", b"4"), (name, b"1")]))
        with pytest.raises(ValueError, match=r"x' is refused: the name '.*[abcd]\.jpg' leads out"):
            list_files(tmp_path / "x")


def test_last_of_a_repeated_name_counts(tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(tar_of([("a", b"old"), ("b", b"b"), ("a", b"new")]))
    assert everything(path)[0] == {"a": b"new", "b": b"b"}


def test_links_in_a_tar(tmp_path):
    """Symbolic ones count from their folder, hard ones from the top of the archive."""
    path = tmp_path / "x.tar"
    (tmp_path / "out").write_bytes(b"outside")
    links = {
        "sub/b": ("a", tarfile.SYMTYPE),
        "c": ("sub/a", tarfile.LNKTYPE),
        "d": ("/etc/passwd", tarfile.SYMTYPE),
        "sub/e": ("../../out", tarfile.SYMTYPE),
        "f": ("../out", tarfile.LNKTYPE),
    }
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo("sub/a")
        member.size = 7
        tar.addfile(member, io.BytesIO(b"content"))
        for name, (target, kind) in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            tar.addfile(member)
    found, skipped = everything(path)
    inside = {name: b"content" for name in ("sub/a", "sub/b", "c")}
    assert found == inside | dict.fromkeys(("d", "sub/e", "f")) and not skipped


def test_devices_and_pipes_are_named(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        member = tarfile.TarInfo("pipe.jpg")
        member.type = tarfile.FIFOTYPE
        tar.addfile(member)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "pipe.jpg")
    for place in ("x.tar", "folder"):
        assert everything(tmp_path / place) == ({}, {"pipe.jpg": "neither a file nor a link"})


def test_one_file_too_large_is_named_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LIMIT", 10)
    path = tmp_path / "x.tar"
    path.write_bytes(tar_of([("a", b"1" * 10), ("b", b"1" * 11)]))
    found, skipped = everything(path)
    assert list(found) == ["a"] and skipped == {"b": "11 bytes are more than the 10 allowed"}


def test_a_zip_that_lies_about_sizes_is_not_read_beyond_them(tmp_path):
    content = bytearray(zip_of([("a.jpg", bytes(100_000))]))
    for magic, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = content.find(magic) + at
        content[start : start + 4] = struct.pack("<I", 10)
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    assert everything(path)[0] == {"a.jpg": None}  # ten bytes fail the checksum


def test_names_that_are_not_unicode(tmp_path):
    (tmp_path / "folder").mkdir()
    name = os.fsdecode(b"26_\xff\xe4.jpg")
    (tmp_path / "folder" / name).write_bytes(b"x")
    assert everything(tmp_path / "folder")[0] == {name: b"x"}


def test_missing_path(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list_files(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/scan.2023", "scan.2023"),
        ("/a/scan.2024.zip", "scan.2024"),
        ("scan.v1.0.tar.gz", "scan.v1.0"),
        ("x/Scan.TGZ", "Scan"),
        ("scan.npy/", "scan"),
        ("scan.tar.xz", "scan"),
        ("scan.zarr", "scan"),
        (".zip", ".zip"),
        ("no.ending.png", "no.ending.png"),
    ],
)
def test_what_a_folder_is_called_is_all_of_its_name(path, name, tmp_path, monkeypatch):
    assert plain_name(path) == name
    (tmp_path / "scan.2023").mkdir()
    monkeypatch.chdir(tmp_path / "scan.2023")
    for here in (".", "", "../scan.2023", "x/.."):
        assert plain_name(here) == "scan.2023"
    assert list_files(".").root == "scan.2023"
