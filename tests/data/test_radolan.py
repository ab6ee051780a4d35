import bz2
import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest

from probnb.data.radolan import MISSING, decode, read_folder

CHECKSUMS = {  # of the counts, little-endian 16 bits, of what the German Weather Service publishes
    "raa01-ry_10000-2001011500-dwd---bin.gz": "0f9b33612a01e37b",
    "raa01-ry_10000-2001011505-dwd---bin.gz": "18fdcefa574c4a5f",
    "raa01-ry_10000-2001011510-dwd---bin.gz": "9fd3be0a6b679311",
    "raa01-ry_10000-2001011515-dwd---bin.gz": "ec5ac11eeaca0fd8",
    "raa01-ry_10000-2001011520-dwd---bin.gz": "c6086e62bb7cf238",
    "raa01-ry_10000-2001011525-dwd---bin.gz": "5f03e015ba3f82af",
    "raa01-ry_10000-2001011530-dwd---bin.gz": "4070d4f98f926ce5",
    "raa01-ry_10000-2001011535-dwd---bin.gz": "c334d35b9a29fd8c",
    "raa01-ry_10000-2001011540-dwd---bin.gz": "f4ef183f68983c21",
    "raa01-ry_10000-2001011545-dwd---bin.gz": "144e94737cb6b0a4",
    "raa01-ry_10000-2001011550-dwd---bin.gz": "9fcd28fc259ce07a",
    "raa01-ry_10000-2001011555-dwd---bin.gz": "4b4940678af63ebd",
    "raa01-ry_10000-2001011600-dwd---bin.gz": "27d53740e65c2171",
    "raa01-yw2017.002_10000-1708160055-dwd---bin.gz": "c4f91e73f889fbc9",
    "raa01-yw2017.002_10000-1708160100-dwd---bin.gz": "db9a90f42853660b",
    "raa01-yw2017.002_10000-1708160105-dwd---bin.gz": "39293f44e353901f",
    "raa01-yw2017.002_10000-1708160110-dwd---bin.gz": "6cdcab025bd02661",
    "raa01-yw2017.002_10000-1708160115-dwd---bin.gz": "db5d91dddd16840b",
    "raa01-yw2017.002_10000-1708160120-dwd---bin.gz": "c15308da4af45621",
    "raa01-yw2017.002_10000-1708160125-dwd---bin.gz": "c8e0d934e6794129",
    "raa01-yw2017.002_10000-1708160130-dwd---bin.gz": "8ebe4f60ca5fbf1d",
    "raa01-yw2017.002_10000-1708160135-dwd---bin.gz": "773b8a3abc43f331",
    "raa01-yw2017.002_10000-1708160140-dwd---bin.gz": "7b750fd57620f822",
    "raa01-yw2017.002_10000-1708160145-dwd---bin.gz": "87bad835fd662eca",
    "raa01-yw2017.002_10000-1708160150-dwd---bin.gz": "1892513a7cc1b3ea",
}


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
    found = decode(file(raw))
    np.testing.assert_array_equal(found.counts, [[5, 5, MISSING], [-5, 5, MISSING]])
    np.testing.assert_array_equal(found.secondary, [[False, True, False], [False] * 3])
    np.testing.assert_array_equal(found.clutter, [[False] * 3, [False, True, False]])
    np.testing.assert_allclose(found.rate[0], [0.6, 0.6, np.nan], rtol=1e-6)
    assert found.rate.dtype == np.float32


def test_rows_come_first_and_time_and_units_are_read():
    found = decode(file(RAW, "RW", "E-01", 60, time="311550", year="1299"))
    assert found.counts.shape == (3, 4)
    assert found.time == np.datetime64("2099-12-31T15:50")
    assert found.rate[2, 3] == pytest.approx(1.1)  # 11 x 0.1 mm in an hour


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["raw", "gz", "bz2"])
def test_every_packing_reads_the_same(pack):
    np.testing.assert_array_equal(decode(pack(file(RAW))).counts, RAW)


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
    found = decode(file(RAW, **options))
    np.testing.assert_array_equal(found.counts, RAW)
    assert found.precision == 0.01


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (file(RAW)[:-1], "f is cut short: 23 bytes of data, 3 x 4 pixels need 24"),
        (file(RAW) + b"0", "f is too long: 25 bytes"),
        (gzip.compress(file(RAW))[:-9], "f is damaged or cut short"),
        (bz2.compress(file(RAW))[:-9], "f is damaged or cut short"),
        (b"\x1f\x8bnonsense of some length", "f is damaged or cut short"),
        (b"", "no end of the header"),
        (b"<html>not found</html>", "no end of the header"),
        (file(RAW, "RX"), "f must be one of RY, YW, RW; got 'RX'"),
        (file(RAW).replace(b"GP", b"XX"), "f must have GP in its header"),
        (file(RAW, time="321500"), "f must have a time in its header"),
        (file(RAW, interval=0), "f must have INT of at least 1"),
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
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        for minute in (10, 15):
            content = gzip.compress(file(RAW + minute, time=f"0115{minute}"))
            entry = tarfile.TarInfo(f"deep/{name(minute)}.gz")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    whole = (tmp_path / "x.tar.gz").read_bytes()
    (tmp_path / "y.tar.bz2").write_bytes(b"BZh9" + whole[:50])
    read = dict(read_folder(tmp_path))
    good = {k: v for k, v in read.items() if not isinstance(v, Exception)}
    assert [str(v.time)[-5:] for v in good.values()] == ["15:00", "15:10", "15:15"]
    assert good[f"x.tar.gz/deep/{name(15)}.gz"].counts[0, 0] == 15
    bad = {k: str(v) for k, v in read.items() if isinstance(v, Exception)}
    assert set(bad) == {f"{name(5)}.gz", "y.tar.bz2"}
    assert all("damaged or cut short" in message for message in bad.values())


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not there"):
        list(read_folder(tmp_path / "nowhere"))


def test_all_published_files_have_the_recorded_values(data_dir):
    folder = data_dir / "radolan"
    if not folder.is_dir():
        pytest.skip("no RADOLAN files there")
    found = {
        name: hashlib.sha256(composite.counts.astype("<i2").tobytes()).hexdigest()[:16]
        for name, composite in read_folder(folder)
    }
    assert found == CHECKSUMS


def test_equal_to_wradlib(data_dir):
    wradlib = pytest.importorskip("wradlib")
    for path in sorted((data_dir / "radolan").glob("raa01*"))[::12]:
        theirs, _ = wradlib.io.read_radolan_composite(str(path), missing=-9999)
        (_, ours), *_ = read_folder(path)
        depth = np.where(ours.counts == MISSING, -9999, ours.counts * ours.precision)
        np.testing.assert_allclose(depth, theirs, atol=1e-5)
