import json
import shutil
import zipfile

import h5py
import numpy as np
import pytest

from probnb.data import radar_example
from probnb.data.radar_example import read_example
from probnb.data.radar_series import Series, cache_folder, convert, open_series, read_hdf5
from probnb.data.radolan import MISSING, Composite


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBNB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def composite(minute, value, side=6, interval=5):
    counts = np.full((side, side + 2), value, np.int16)
    counts[0, 0] = MISSING
    time = np.datetime64("2020-01-01T00:00") + np.timedelta64(minute, "m")
    nowhere = np.zeros(counts.shape, bool)
    return Composite("RY", time, counts, 0.01, interval, nowhere, nowhere)


def frames(*minutes):
    return [(f"f{m}", composite(m, m)) for m in minutes]


def test_convert_keeps_the_middle_and_counts_what_it_leaves_out(tmp_path):
    read = [*frames(0, 5), ("bad", ValueError("bad is cut short")), *frames(5, 10, 3)]
    convert(read, tmp_path / "out", side=4)
    about = json.loads((tmp_path / "out" / "series.json").read_text())
    maps = np.load(tmp_path / "out" / "maps.npy", mmap_mode="r")
    assert maps.shape == (3, 4, 4) and maps.dtype == np.int16
    assert [int(m[0, 0]) for m in maps] == [0, 5, 10]
    assert about["unit"] == 0.12
    report = about["report"]
    assert (report["maps"], report["unreadable"], report["out of order"]) == (3, 1, 2)
    assert report["left out"][0] == "bad is cut short" and "f3" in report["left out"][2]


def test_convert_leaves_nothing_half_written(tmp_path):
    def interrupted():
        yield from frames(0, 5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(interrupted(), tmp_path / "out", side=4)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("read", "side", "message"),
    [
        ([], 4, "readable maps of one unit; got 0 maps"),
        ([("x", ValueError("x is damaged"))], 4, "left out: x is damaged"),
        ([*frames(0), ("h", composite(60, 1, interval=60))], 4, r"units \[0.01, 0.12\]"),
        (frames(0), 7, "side must be at most 6 for f0; got 7"),
    ],
)
def test_convert_says_what_is_wrong(tmp_path, read, side, message):
    with pytest.raises(ValueError, match=message):
        convert(read, tmp_path / "out", side=side)


def test_hdf5_by_time_is_converted_once(tmp_path, monkeypatch):
    path = tmp_path / "maps.h5"
    rain = np.arange(36).reshape(6, 6) / 100
    with h5py.File(path, "w") as file:
        for minute in (0, 5):
            file[f"20200101{minute:04d}"] = rain + minute
        file["2020-01-01 00:10"] = np.where(rain > 0.2, np.nan, -1.0)
        file["about"] = np.zeros((6, 6))
        file["202001010015"] = np.zeros(6)
        file.create_group("202001010020")
    series = open_series(path, side=4)
    np.testing.assert_array_equal(series.maps[0], np.arange(36).reshape(6, 6)[1:5, 1:5])
    assert series.maps[1, 0, 0] == 507
    assert (series.maps[2] == MISSING).all() is np.True_
    assert [str(t)[-5:] for t in series.times] == ["00:00", "00:05", "00:10"]
    assert series.report["unreadable"] == 3
    assert isinstance(series.maps, np.memmap)
    monkeypatch.setattr("probnb.data.radar_series.read_hdf5", None)  # a second time would fail
    again = open_series(path, side=4)
    assert again.source == series.source
    np.testing.assert_array_equal(again.maps, series.maps)


def test_hdf5_in_another_unit_is_refused(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["202001010000"] = np.full((4, 4), 400.0)
    ((_, error),) = read_hdf5(tmp_path / "x.h5")
    assert "400 mm in 5 minutes" in str(error)


def test_published_files_open_as_one_series(data_dir):
    if not (data_dir / "radolan").is_dir():
        pytest.skip("no RADOLAN files there")
    series = open_series(data_dir / "radolan")
    # Of two years: YW of 2017 follows RY of 2020 by name, and is left out by name.
    assert series.maps.shape == (13, 300, 300)
    assert series.report["out of order"] == 12
    assert np.diff(series.times).astype(int).tolist() == [5] * 12


def test_series_must_be_in_order():
    maps, times = np.zeros((2, 3, 3), np.int16), np.array(["2020-01-01", "2020-01-01"], "M8[m]")
    with pytest.raises(ValueError, match="times must increase"):
        Series(maps, times, 0.12, "x")
    with pytest.raises(ValueError, match="a time each"):
        Series(maps, times[:1], 0.12, "x")


def test_a_path_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="data_dir"):
        open_series("/nowhere/at/all")


def test_no_network_says_what_to_do(monkeypatch, cache):
    monkeypatch.delenv("PROBNB_DATA", raising=False)
    monkeypatch.setattr(radar_example, "WHEEL", "pycomlink==0.6.0 --no-such-option")
    with pytest.raises(ConnectionError, match="source='simulated'"):
        read_example()
    assert not list(cache.iterdir())


def test_a_file_that_is_not_the_known_one_is_refused(tmp_path):
    (tmp_path / "x.nc").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"x.nc must have the SHA-256 c72fb031"):
        read_example(tmp_path / "x.nc")
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr(radar_example.MEMBER, "something else")
    with pytest.raises(ValueError, match=r"x.whl must have the SHA-256 03e7e030"):
        read_example(tmp_path / "x.whl")


def test_example_is_taken_out_of_the_wheel_and_kept(tmp_path, monkeypatch, cache):
    file = tmp_path / "x.nc"
    with h5py.File(file, "w") as out:
        rain = np.array([[[3, -9999]], [[0, 1]]], np.int16)
        out["rainfall_amount"] = rain
        out["rainfall_amount"].attrs["scale_factor"] = np.array([0.01])
        out["time"] = np.array([0.0, 0.0833333333])
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.write(file, radar_example.MEMBER)
    monkeypatch.setattr(radar_example, "MEMBER_SHA256", radar_example._sha256(file))
    monkeypatch.setattr(radar_example, "WHEEL_SHA256", radar_example._sha256(tmp_path / "x.whl"))
    given = tmp_path / "data" / "pycomlink-0.6.0-py3-none-any.whl"
    given.parent.mkdir()
    shutil.copy(tmp_path / "x.whl", given)
    for path, folder in ((None, given.parent), (tmp_path / "x.whl", tmp_path), (None, tmp_path)):
        monkeypatch.setenv("PROBNB_DATA", str(folder))
        if path is not None:
            next(cache.glob("*.nc")).unlink()
        series = read_example(path)  # the third time from the cache
        np.testing.assert_array_equal(series.maps, [[[3, MISSING]], [[0, 1]]])
        assert [str(t)[-5:] for t in series.times] == ["00:50", "00:55"]
        assert series.unit == 0.12 and series.report["share without data"] == 0.25
    assert [f.suffix for f in cache_folder().iterdir()] == [".nc"]
