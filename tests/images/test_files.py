"""Folders and archives of every kind, links and names that lead out, bombs, wrong files."""

import os
import stat
import struct
import tarfile
import unicodedata
import zipfile

import pytest

from probnb.images import files
from probnb.images.files import list_files, match_names, plain_name, read_files

from ..made import CONTENT, PACK, member, tar_of, write_files, zip_of


def everything(path):
    listing = list_files(path)
    read = dict(read_files(path, listing.files.values()))
    return {name: read[place] for name, place in listing.files.items()}, listing.skipped


@pytest.mark.parametrize("kind", PACK)
def test_archives_are_told_by_content_and_read_as_the_folder_is(tmp_path, kind):
    path = tmp_path / "archive.of_any_name"
    path.write_bytes(PACK[kind](CONTENT.items()))
    folder = write_files(tmp_path / "folder", CONTENT)
    assert everything(path) == everything(folder) == (CONTENT, {})


@pytest.mark.parametrize("kind", [k for k in PACK if "zip" not in k])
def test_archive_that_breaks_off_is_refused(tmp_path, kind):
    path = tmp_path / "x"
    whole = PACK[kind]((f"{i}.jpg", os.urandom(2000)) for i in range(20))
    for end in (len(whole) // 3, len(whole) // 3 + 700):  # of a tar: between files, within one
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="x' cannot be read as an archive"):
            everything(path)


@pytest.mark.parametrize(
    "start",
    [b"7z\xbc\xaf\x27\x1c\0\4", b"no archive" * 50, b"\x1f\x8bgarbage", b"", b"PK\x03\x04 cut"],
)
def test_what_is_no_readable_archive_is_refused_with_the_remedy(tmp_path, start):
    path = tmp_path / "UTKFace.tar.gz"
    path.write_bytes(start)
    remedy = "UTKFace.tar.gz' cannot be read as an archive.*unpack it and give the folder"
    with pytest.raises(ValueError, match=remedy):
        list_files(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list_files(tmp_path / "nowhere")


def encrypted(content):
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.find(magic) + flags] |= 1


def flipped(content):
    content[content.find(b"two" * 2) + 7] ^= 1


def lying(content):
    """Sizes of one byte, which fails the checksum."""
    for magic, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = content.find(magic) + at
        content[start : start + 4] = struct.pack("<I", 1)


@pytest.mark.parametrize(
    ("damage", "name"), [(encrypted, "a.jpg"), (flipped, "sub/b.jpg"), (lying, "a.jpg")]
)
def test_one_file_of_a_zip_that_cannot_be_read_is_that_file_alone(tmp_path, damage, name):
    content = bytearray(zip_of(CONTENT.items(), zipfile.ZIP_STORED))
    damage(content)
    (tmp_path / "x.zip").write_bytes(content)
    assert everything(tmp_path / "x.zip")[0] == {**CONTENT, name: None}


@pytest.mark.parametrize("name", ["../a.jpg", "/b.jpg", "x/../../c.jpg", "..\\d.jpg"])
def test_an_archive_with_names_that_lead_out_is_refused(tmp_path, name):
    for pack in (tar_of, zip_of) if "\\" not in name else (zip_of,):
        (tmp_path / "x").write_bytes(pack([("./y/../e.jpg", b"4"), (name, b"1")]))
        with pytest.raises(ValueError, match=r"^'[^']*x' is refused: the name '.*\.jpg' leads out"):
            list_files(tmp_path / "x")


def test_devices_and_pipes_are_named(tmp_path):
    pipe = member("pipe.jpg", type=tarfile.FIFOTYPE)
    (tmp_path / "x.tar").write_bytes(tar_of([], [pipe]))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "pipe.jpg")
    for place in ("x.tar", "folder"):
        assert everything(tmp_path / place) == ({}, {"pipe.jpg": "neither a file nor a link"})


def test_files_beyond_the_limit_are_named_and_the_last_of_a_repeated_name_counts(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "LIMIT", 10)
    large, path = b"1" * 11, tmp_path / "x.tar"
    entries = [("a", b"old"), ("a", large), ("b", large), ("b", b"n"), ("c", b"1" * 10)]
    path.write_bytes(tar_of(entries))
    told = "11 bytes are more than the 10 allowed"
    assert everything(path) == ({"b": b"n", "c": b"1" * 10}, {"a": told})
    (tmp_path / "one.jpg").write_bytes(large)  # a single image
    assert everything(tmp_path / "one.jpg") == ({}, {"one.jpg": told})


def test_names_that_are_not_unicode(tmp_path):
    name = os.fsdecode(b"26_\xff\xe4.jpg")
    assert everything(write_files(tmp_path / "folder", {name: b"x"}))[0] == {name: b"x"}


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
        *((here, "scan.2023") for here in (".", "", "../scan.2023", "x/..")),
    ],
)
def test_what_a_folder_is_called_is_all_of_its_name(path, name, tmp_path, monkeypatch):
    (tmp_path / "scan.2023").mkdir()
    monkeypatch.chdir(tmp_path / "scan.2023")
    assert plain_name(path) == name and list_files(".").root == "scan.2023"


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


def test_a_link_in_a_folder_is_what_it_leads_to_or_named(tmp_path, monkeypatch):
    """A file beyond the limit was read by a link of none."""
    monkeypatch.setattr(files, "LIMIT", 10)
    path = write_files(tmp_path / "x", {"sub/big.jpg": b"1" * 11, "sub/small.jpg": b"small"})
    for name, target in LINKS.items():
        (path / name).symlink_to(target)
    found, skipped = everything(path)
    assert found == dict.fromkeys(("sub/small.jpg", "good.jpg", "sub/up.jpg"), b"small")
    large = "11 bytes are more than the 10 allowed"
    wanted = dict.fromkeys(("sub/big.jpg", "soft.jpg", "sub/beside.jpg", "chain.jpg"), large)
    wanted |= dict.fromkeys(("out.jpg", "absolute.jpg"), "a link that leads out")
    assert skipped.pop("circle.jpg") in ("a link to no file", "a link that leads out")
    wanted |= {"to_folder": "a link to a folder", "nowhere.jpg": "a link to no file"}
    assert skipped == wanted
    listing = list_files(path)
    assert "'nowhere.jpg'" not in listing.left_out() and "'to_folder'" in listing.left_out()
    assert match_names(["out.jpg"], listing) == ([None], ["a link that leads out"])


def test_a_symbolic_link_in_an_archive_is_named_and_not_read(tmp_path):
    """In a zip the link was the picture."""
    soft = [member(name, type=tarfile.SYMTYPE, linkname=to) for name, to in LINKS.items()]
    (tmp_path / "tar").write_bytes(tar_of(CONTENT.items(), soft))
    (tmp_path / "zip").write_bytes(zip_of(CONTENT.items()))
    with zipfile.ZipFile(tmp_path / "zip", "a") as archive:
        for name, target in LINKS.items():
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
    why = dict.fromkeys(LINKS, "a symbolic link in an archive: unpack it and give the folder")
    for kind in ("tar", "zip"):
        assert everything(tmp_path / kind) == (CONTENT, why)


def test_a_hard_link_in_a_tar_is_the_file_again_and_goes_round_no_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LIMIT", 10)
    contents = {"a.jpg": b"as it is", "big.jpg": b"eleven more"}
    targets = {"b.jpg": "a.jpg", "c.jpg": "b.jpg", "d.jpg": "big.jpg", "e.jpg": "none.jpg"}
    hard = [member(name, type=tarfile.LNKTYPE, linkname=to) for name, to in targets.items()]
    (tmp_path / "tar").write_bytes(tar_of(contents.items(), hard))
    found, skipped = everything(tmp_path / "tar")
    assert found == dict.fromkeys(("a.jpg", "b.jpg", "c.jpg"), b"as it is")
    large = "11 bytes are more than the 10 allowed"
    assert skipped == {"big.jpg": large, "d.jpg": large, "e.jpg": "a link to no file"}


OWN = ["_DSC0001.JPG", "cats/_MG_1.jpeg", "trash/a.jpg", "_cats/a.png", "a._b.TIF", "tmp/b.webp"]
NOT_OWN = """.trash/a.jpg .ipynb_checkpoints/a-checkpoint.jpg __MACOSX/._a.jpg cats/._a.jpg
_temporary/0/a.jpg cats/@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg $RECYCLE.BIN/a.jpg
cats/.Trash-1000/files/a.jpg __macosx/a.jpg #recycle/a.jpg"""


@pytest.mark.parametrize("kind", ["folder", "tar", "zip"])
def test_what_systems_keep_for_themselves_is_counted_and_not_read(kind, tmp_path):
    others = ("notes.txt", "cats/more.zip", "x.tar.gz", "photo.jpg.part", "README")
    contents, path = dict.fromkeys((*OWN, *NOT_OWN.split(), *others), b"x"), tmp_path / "x"
    if kind == "folder":
        write_files(path, contents)
    else:
        path.write_bytes(PACK[kind](contents.items()))
    listing = list_files(path)
    assert listing.pictures() == sorted(OWN)
    told = "1 .gz (unpack them); 1 .part; 1 .txt; 1 .zip (unpack them); 1 without an ending"
    assert sorted(listing.left_out()[36:-1].split("; ")) == sorted([*told.split("; "), "10 hidden"])


def test_paths_are_found_however_written_and_never_in_another_folder(tmp_path):
    names = ("a/1.jpg", "a/2.jpg", "b/2.jpg", "b/3.jpg", "c/x.1.png")
    listing = list_files(write_files(tmp_path / "x", dict.fromkeys(names, b"")))
    none = "there is no such file"
    wanted = {
        "a/1.jpg": "a/1.jpg",
        "./a/1.jpg": "a/1.jpg",
        "a\\1.jpg": "a/1.jpg",
        "1.jpg": "a/1.jpg",
        "1": "a/1.jpg",
        "a/1": "a/1.jpg",
        "x.1": "c/x.1.png",
        "/any/x/b/2.jpg": "b/2.jpg",
        "x/a/2.jpg": "a/2.jpg",
        "C:\\x\\b\\2.jpg": "b/2.jpg",
        "2.jpg": "2 files have this name",
        "../a/1.jpg": "its path leads out of the folder",
        **dict.fromkeys(("4.jpg", "a/3.jpg", "/any/y/b/3.jpg", ""), none),
    }
    found, reasons = match_names(wanted, listing)
    assert [name or reason for name, reason in zip(found, reasons)] == list(wanted.values())
    shared = {f"/any/y/{path}": path for path in ("a/1.jpg", "b/2.jpg")}  # moved as a whole
    assert match_names(shared, listing)[0] == list(shared.values())
    assert match_names(["p/3.jpg", "p/1.jpg"], listing)[0] == [None, None]


def test_capitals_and_composed_accents_are_matched_where_only_one_file_can_be_meant(tmp_path):
    decomposed, other = (unicodedata.normalize("NFD", name) for name in ("Zoë.JPG", "Müller"))
    names = (decomposed, "IMG_1.JPG", "a.jpg", "A.jpg", "sub/B.png", ".old/B.png", "sub/c.png")
    folder = write_files(tmp_path / "Müller", dict.fromkeys(names, b"x"))  # composed
    asked = {
        **dict.fromkeys(("Zoë.JPG", "zoë.jpg", "zoë"), decomposed),
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
