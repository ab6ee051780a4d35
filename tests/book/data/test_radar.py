import bz2
import gzip
import hashlib
import os

import h5py
import numpy as np
import pytest

from probnb_book.data import radar
from probnb_book.data.radar import MISSING, decode, open_series, read_example

from ...made import PACK, zip_of


def file(raw, product="RY", precision="E-02", interval=5, time="011500", year="0120", **more):
    """A composite written by the format's description, not by the reader."""
    tokens, sites = more.get("tokens", ""), more.get("sites", "boo")
    raw = np.asarray(raw, "<u2")
    rows, columns = raw.shape
    header = f"{product}{time}10000{year}BY{raw.nbytes + 200}VS 3SW   2.21.0"
    header += f"PR {precision}INT{interval:4d}"
    header += f"GP{rows:4d}x{columns:4d}{tokens}MS{len(sites) + 2:3d}<{sites}> "
    return header.encode("latin-1") + b"\x03" + raw.tobytes()


RAW = np.arange(12, dtype="<u2").reshape(3, 4)


def test_values_and_marks_bit_by_bit():
    raw = [[5, 5 | 0x1000, 5 | 0x2000], [5 | 0x4000, 5 | 0x8000, 0x2000 | 0x09C4]]
    _, counts, unit = decode(file(raw))
    np.testing.assert_array_equal(counts, [[5, 5, MISSING], [-5, 5, MISSING]])
    assert unit == 0.12


def test_rows_come_first_and_time_and_units_are_read():
    time, counts, unit = decode(file(RAW, "RW", "E-01", 60, time="311550", year="1235"))
    assert counts.shape == (3, 4)
    assert time == np.datetime64("2035-12-31T15:50")
    assert counts[2, 3] * unit == pytest.approx(1.1)  # 11 x 0.1 mm in an hour


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["raw", "gz", "bz2"])
def test_every_packing_reads_the_same(pack):
    np.testing.assert_array_equal(decode(pack(file(RAW)))[1], RAW)


@pytest.mark.parametrize(
    "options",
    [
        dict(sites="boo,m\u00fcn,\u00df"),  # bytes above 0x7F
        dict(tokens="QN 001"),
        dict(tokens="MF 00000002QN 001"),
        dict(tokens="U0MF 00000000VR2017.002"),
        dict(sites="PR E-07,GP1x1"),  # tokens inside the list of sites are names
    ],
)
def test_headers_of_any_kind(options):
    _, counts, unit = decode(file(RAW, **options))
    np.testing.assert_array_equal(counts, RAW)
    assert unit == 0.12


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (file(RAW)[:-1], "f is cut short: 23 bytes of 3 x 4 pixels of two"),
        (file(RAW) + b"0", "f is too long: 25 bytes"),
        (gzip.compress(file(RAW))[:-9], "f is damaged or cut short"),
        (bz2.compress(file(RAW))[:-9], "f is damaged or cut short"),
        (b"\x1f\x8bnonsense of some length", "f is damaged or cut short"),
        (b"", "no end of the header"),
        (b"<html>not found</html>", "no end of the header"),
        (file(RAW, "RX"), "f must be one of RY, YW, RW; got 'RX'"),
        (file(RAW).replace(b"GP", b"XX"), "f must have GP in its header"),
        (file(RAW, time="321500"), "f must have a time in its header"),
        (file(RAW, interval=0), "f must have INT in its header"),
    ],
    ids=range(11),  # the contents would be names of tests, and differ with the time of day
)
def test_damage_is_named(content, message):
    with pytest.raises(ValueError, match=message):
        decode(content, "f")


def test_folder_with_archives_and_damage(tmp_path):
    def name(minute):
        return f"raa01-ry_10000-20010115{minute:02d}-dwd---bin"

    (tmp_path / name(0)).write_bytes(file(RAW, time="011500"))
    (tmp_path / f"{name(5)}.gz").write_bytes(gzip.compress(file(RAW, time="011505"))[:-5])
    (tmp_path / "README.txt").write_text("not radar")
    whole = PACK["gzip"](
        (f"deep/{name(minute)}.gz", gzip.compress(file(RAW + minute, time=f"0115{minute}")))
        for minute in (10, 15)
    )
    (tmp_path / "x.tar.gz").write_bytes(whole)
    (tmp_path / "y.tar.bz2").write_bytes(b"BZh9" + whole[:50])
    series = open_series(tmp_path, side=3)
    assert [str(time)[-5:] for time in series.times] == ["15:00", "15:10", "15:15"]
    assert series.maps[:, 0, 0].tolist() == [0, 10, 15]
    bad = {text.split()[0]: text for text in series.report["left out"]}
    assert set(bad) == {f"{name(5)}.gz", "y.tar.bz2", "README.txt"}
    assert "no end of the header" in bad.pop("README.txt")
    assert all("damaged or cut short" in message for message in bad.values())


def test_all_published_files_have_the_recorded_values(data_dir):
    folder = data_dir / "radolan"
    if not folder.is_dir():
        pytest.skip("no RADOLAN files there")
    counts = hashlib.sha256()
    for file in sorted(folder.iterdir()):  # 13 maps RY of 2020 and 12 YW of 2017
        counts.update(file.name.encode() + decode(file.read_bytes())[1].astype("<i2").tobytes())
    assert counts.hexdigest()[:16] == "e82b75543ae97b7a"
    with pytest.raises(ValueError, match="one grid and unit"):
        open_series(folder)


def written(folder, *minutes, raw=RAW, **more):
    for minute in minutes:
        path = folder / f"{more.get('prefix', 'raa01')}-{minute:02d}"
        path.write_bytes(file(raw + minute, time=f"0115{minute:02d}", **more))


def test_unsorted_maps_are_put_in_order_and_a_second_one_of_a_time_is_named(tmp_path):
    raw = np.arange(48, dtype="<u2").reshape(6, 8)
    for name, minute in (("a", 10), ("b", 0), ("c", 5), ("d", 5)):
        (tmp_path / name).write_bytes(file(raw + minute, time=f"0115{minute:02d}"))
    (tmp_path / "cut").write_bytes(file(raw)[:-1])
    series = open_series(tmp_path, side=4)
    assert [str(t)[-5:] for t in series.times] == ["15:00", "15:05", "15:10"]
    np.testing.assert_array_equal(series.maps[:, 0, 0], raw[1, 2] + np.array([0, 5, 10]))
    assert series.maps.shape == (3, 4, 4) and series.maps.dtype == np.int16
    report = series.report
    assert (report["maps"], report["unreadable"], report["twice"]) == (3, 1, 1)
    assert any(text.startswith("d is of") for text in report["left out"])
    assert any(text.startswith("cut is cut short") for text in report["left out"])


def test_a_link_to_a_folder_is_named_and_a_link_to_a_file_is_read(tmp_path):
    (tmp_path / "more").mkdir()
    written(tmp_path / "more", 0, raw=np.zeros((4, 4), "<u2"))
    (tmp_path / "in").mkdir()
    os.symlink(tmp_path / "more", tmp_path / "in" / "folder")
    os.symlink(tmp_path / "more" / "raa01-00", tmp_path / "in" / "file")
    series = open_series(tmp_path / "in", side=4)
    assert len(series.times) == 1
    assert len(series.report["left out"]) == 1 and "folder" in series.report["left out"][0]


def test_cut_and_flipped_files_are_named_and_nothing_else_is_raised(tmp_path):
    """Every kind of file, cut anywhere and with bytes flipped: a map, or an error by name."""
    whole = file(np.zeros((4, 4), "<u2"))
    rng = np.random.default_rng(0)
    for content in [
        PACK["gzip"]([("a", whole)]),
        whole,
        gzip.compress(whole),
        bz2.compress(whole),
    ]:
        for _ in range(25):
            damaged = bytearray(content[: rng.integers(1, len(content) + 1)])
            for at in rng.integers(len(damaged), size=rng.integers(4)):
                damaged[at] ^= 1 << rng.integers(8)
            (tmp_path / "damaged").write_bytes(damaged)
            try:
                assert open_series(tmp_path / "damaged", side=1).maps.shape == (1, 1, 1)
            except ValueError as error:
                assert "damaged" in str(error)


@pytest.mark.parametrize("name", ["radar.bin", "maps", "raa01.h5"])
def test_a_file_is_what_its_content_says(tmp_path, name):
    (tmp_path / name).write_bytes(file(np.zeros((4, 4), "<u2")))
    assert len(open_series(tmp_path / name, side=4).times) == 1


def test_what_cannot_be_opened_says_why(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="left out: nothing, it is empty"):
        open_series(tmp_path / "empty")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match=r"left out: notes.txt must be RADOLAN"):
        open_series(tmp_path / "notes.txt")
    (tmp_path / "small").write_bytes(file(RAW))
    with pytest.raises(ValueError, match="side must be at most 3 for small; got 7"):
        open_series(tmp_path / "small", side=7)


def test_maps_of_two_grids_or_units_are_refused(tmp_path):
    written(tmp_path, 0, raw=np.zeros((4, 4), "<u2"))
    for more in ({"raw": np.zeros((5, 4), "<u2")}, {"raw": RAW[:, :3], "interval": 60}):
        written(tmp_path, 10, prefix="x", **more)
        with pytest.raises(ValueError, match=r"maps must be of one grid and unit.*x-10 has"):
            open_series(tmp_path, side=3)


def test_no_network_says_what_to_do(cache, monkeypatch):
    monkeypatch.setattr(radar, "WHEEL", "pycomlink==0.6.0 --no-such-option")
    with pytest.raises(ConnectionError, match="source='simulated'"):
        read_example()


def test_example_is_taken_out_of_the_wheel_and_kept(tmp_path, cache, monkeypatch):
    file, given = tmp_path / "x.nc", tmp_path / "x.whl"
    with h5py.File(file, "w") as out:
        out["rainfall_amount"] = np.array([[[3, -9999]], [[0, 1]]], np.int16)
        out["rainfall_amount"].attrs["scale_factor"] = np.array([0.01])
        out["time"] = np.array([0.0, 0.0833333333])
    given.write_bytes(zip_of([(radar.MEMBER, file.read_bytes())]))
    for path in (file, given):
        with pytest.raises(ValueError, match=rf"{path.name} must have the SHA-256 c72fb031"):
            read_example(path)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    monkeypatch.setattr(radar, "MEMBER_SHA256", digest)
    monkeypatch.setattr(radar, "_fetch", None)  # would fail: the last time is from the cache
    for path in (file, given, None):
        series = read_example(path)
        np.testing.assert_array_equal(series.maps, [[[3, MISSING]], [[0, 1]]])
        assert [str(t)[-5:] for t in series.times] == ["00:50", "00:55"]
        assert series.unit == 0.12 and series.report["share without data"] == 0.25
