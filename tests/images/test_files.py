"""Folders and archives of every kind, links and names that lead out, bombs, wrong files."""

import bz2
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import unicodedata
import zipfile

import pytest

from probnb.images import files
from probnb.images.files import list_files, match_names, plain_name, read_files

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
    assert found == inside and skipped == dict.fromkeys(
        ("d", "sub/e", "f"), "a link that leads out"
    )


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


LINKS = {  # of a name: what it is a link to
    "soft.jpg": "sub/big.jpg",
    "sub/beside.jpg": "big.jpg",
    "chain.jpg": "soft.jpg",
    "good.jpg": "sub/small.jpg",
    "sub/up.jpg": "../sub/small.jpg",
    "to_folder": "sub",
    "nowhere.jpg": "gone.jpg",
    "circle.jpg": "circle.jpg",
    "out.jpg": "../out.jpg",
    "absolute.jpg": "/etc/passwd",
}


def linked_tar(path, hard=()):
    with tarfile.open(path, "w") as tar:
        for name, target in LINKS.items():  # before what they lead to
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
        for name, content in (("sub/big.jpg", b"1" * 11), ("sub/small.jpg", b"small")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, target in hard:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.LNKTYPE, target
            tar.addfile(member)


def linked_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, target in LINKS.items():
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
        archive.writestr("sub/big.jpg", b"1" * 11)
        archive.writestr("sub/small.jpg", b"small")


def linked_folder(path):
    (path / "sub").mkdir(parents=True)
    (path / "sub" / "big.jpg").write_bytes(b"1" * 11)
    (path / "sub" / "small.jpg").write_bytes(b"small")
    for name, target in LINKS.items():
        (path / name).symlink_to(target)


@pytest.mark.parametrize("make", [linked_tar, linked_zip, linked_folder])
def test_a_link_is_what_it_leads_to_in_the_folder_or_named(make, tmp_path, monkeypatch):
    """A file beyond the limit was read by a link of none; in a zip the link was the picture."""
    monkeypatch.setattr(files, "LIMIT", 10)
    make(tmp_path / "x")
    found, skipped = everything(tmp_path / "x")
    assert found == dict.fromkeys(("sub/small.jpg", "good.jpg", "sub/up.jpg"), b"small")
    large = "11 bytes are more than the 10 allowed"
    wanted = dict.fromkeys(("sub/big.jpg", "soft.jpg", "sub/beside.jpg", "chain.jpg"), large)
    wanted |= dict.fromkeys(("out.jpg", "absolute.jpg"), "a link that leads out")
    assert skipped.pop("circle.jpg") in ("a link to no file", "a link that leads out")
    wanted |= {"to_folder": "a link to a folder", "nowhere.jpg": "a link to no file"}
    assert skipped == wanted
    listing = list_files(tmp_path / "x")
    assert "'nowhere.jpg'" not in listing.left_out() and "'to_folder'" in listing.left_out()


def test_hard_links_and_names_that_stand_twice_do_not_go_round_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LIMIT", 10)
    hard = [("hard.jpg", "sub/big.jpg"), ("of_link.jpg", "soft.jpg"), ("fine.jpg", "sub/small.jpg")]
    linked_tar(tmp_path / "x", hard)
    found, skipped = everything(tmp_path / "x")
    assert found["fine.jpg"] == b"small" and {"hard.jpg", "of_link.jpg"} <= {*skipped}
    (tmp_path / "y").write_bytes(
        tar_of([("a", b"old"), ("a", b"1" * 11), ("b", b"1" * 11), ("b", b"n")])
    )
    found, skipped = everything(tmp_path / "y")
    assert found == {"b": b"n"} and [*skipped] == ["a"]
    (tmp_path / "one.jpg").write_bytes(b"1" * 11)  # a single image
    assert everything(tmp_path / "one.jpg") == (
        {},
        {"one.jpg": "11 bytes are more than the 10 allowed"},
    )


OWN = (
    "_DSC0001.JPG",
    "cats/_MG_1.jpeg",
    "trash/a.jpg",
    "_cats/a.png",
    "a._b.TIF",
    "temporary/b.webp",
)
NOT_OWN = (
    ".trash/a.jpg",
    ".ipynb_checkpoints/a-checkpoint.jpg",
    "__MACOSX/._a.jpg",
    "cats/._a.jpg",
    "_temporary/0/a.jpg",
    "cats/@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg",
    "$RECYCLE.BIN/a.jpg",
    "cats/.Trash-1000/files/a.jpg",
    "__macosx/a.jpg",
    "#recycle/a.jpg",
)


@pytest.mark.parametrize("kind", ["folder", "tar", "zip"])
def test_what_systems_keep_for_themselves_is_counted_and_not_read(kind, tmp_path):
    names = (*OWN, *NOT_OWN, "notes.txt", "cats/more.zip", "x.tar.gz", "photo.jpg.part", "README")
    path = tmp_path / "x"
    if kind == "folder":
        for name in names:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(b"x")
    else:
        path.write_bytes(PACK[kind]([(name, b"x") for name in names]))
    listing = list_files(path)
    assert listing.pictures() == sorted(OWN)
    told = "1 .gz (unpack them); 1 .part; 1 .txt; 1 .zip (unpack them); 10 hidden"
    assert sorted(listing.left_out()[36:-1].split("; ")) == sorted(
        [*told.split("; "), "1 without an ending"]
    )


def test_capitals_and_composed_accents_are_matched_where_only_one_file_can_be_meant(tmp_path):
    folder = tmp_path / "Müller"  # composed
    decomposed = unicodedata.normalize("NFD", "Zoë.JPG")
    for name in (decomposed, "IMG_1.JPG", "a.jpg", "A.jpg", "sub/B.png", ".old/B.png", "sub/c.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    other = unicodedata.normalize("NFD", "Müller")
    asked = {
        "Zoë.JPG": decomposed,
        "zoë.jpg": decomposed,
        "zoë": decomposed,
        "img_1.jpg": "IMG_1.JPG",
        "a.jpg": "a.jpg",
        "A.jpg": "A.jpg",
        "A.JPG": None,
        "b.PNG": "sub/B.png",
        f"/data/{other}/SUB/c.png": "sub/c.png",
        "x/c.png": None,
    }
    found, reasons = match_names(asked, list_files(folder))
    assert dict(zip(asked, found)) == asked
    assert reasons[6] == "2 files have this name" and reasons[9] == "there is no such file"
