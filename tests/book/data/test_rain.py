from datetime import timedelta
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from probnb_book.data import rain
from probnb_book.data.radar import MISSING, Series

DAY = 288  # maps of 5 minutes


def series(days=1, rows=8, columns=13, seed=0, drop=()):
    rng = np.random.default_rng(seed)
    n = days * DAY
    level = rng.gamma(1.0, 20, n)[:, None, None] * (rng.random((n, rows, columns)) < 0.4)
    times = np.datetime64("2020-03-01T00:00") + 5 * np.arange(n).astype("timedelta64[m]")
    keep = np.setdiff1d(np.arange(n), drop)
    return Series(level.astype(np.int16)[keep], times[keep], 0.12, "test")


ASK = rain.Question(tile=4, wet=0.0)


def minutes(*numbers):
    return [timedelta(minutes=number) for number in numbers]


def brute_force(maps, wet):
    """Outcomes of all windows by time and corner: loops over times and places, from the rules."""
    at, expected = {time: k for k, time in enumerate(maps.times.tolist())}, {}
    for time in (time for time in at if time.minute % 10 == 0):
        stack = [time + after for after in minutes(-20, -10, 0, 60)]
        if not at.keys() >= {*stack} or stack[0].date() != stack[-1].date():
            continue
        for top, left in product(range(0, maps.maps.shape[1] - 3, 4), (0, 4, 8)):
            seen = [maps.maps[at[t], top : top + 4, left : left + 4].astype(float) for t in stack]
            full, (now, later) = min((one != MISSING).mean() for one in seen), seen[2:]
            if full >= 0.9 and now[now != MISSING].mean() * 0.12 > wet:
                both = (now != MISSING) & (later != MISSING)
                expected[time, top, left] = later[both].mean() > now[both].mean()
    return expected


def hole(maps):
    """All rain of the last map lies where the later one has a hole: it is raining all the same."""
    maps[:] = 0
    maps[100, 0, 0] = 80  # 0.6 mm/h on average over the area of 16 pixels
    maps[112, 0, 0] = MISSING


def tie(maps):
    maps[:200], maps[200:] = 7, 8


CASES = {  # what is done to the maps of a day, and what is reported
    "a pixel is missing": ({}, lambda maps: maps[40].put(16, MISSING), {"gap": 8, "midnight": 0}),
    "a map is missing": ({"drop": [100]}, None, {"gap": 8 + 3}),  # of four, one is no window's last
    "rows are missing": ({}, lambda maps: maps[100, :4].fill(MISSING), {"no data": 3 * 3}),
    "two days": ({"days": 2}, None, {"midnight": 8}),
    "dry at first": ({}, lambda maps: maps[:150].fill(0), {}),
    "a tie": ({}, tie, {"dry": 0}),
    "a hole": ({"wet": 0.3}, hole, {"unseen": 0}),
}


@pytest.mark.parametrize("case", CASES)
def test_windows_and_outcomes_by_brute_force(case):
    given, change, told = CASES[case]
    wet, maps = given.get("wet", 0.0), series(**{k: v for k, v in given.items() if k != "wet"})
    if change:
        change(maps.maps)
    found, report = rain.find_windows(maps, rain.Question(tile=4, wet=wet))
    keys = [(t, *c) for t, c in zip(found["times"].tolist(), found["corners"].tolist())]
    more = found["means"][:, 1] > found["means"][:, 0]
    expected = brute_force(maps, wet)
    assert expected and dict(zip(keys, more.tolist())) == expected and len(keys) == len(expected)
    frames = [t + before for t, *_ in keys for before in minutes(-20, -10, 0)]
    assert maps.times[found["frames"]].ravel().tolist() == frames
    assert told.items() <= report.items()
    if not given:
        asked = len(expected) + report["dry"] + report["unseen"] + report["no data"]
        assert asked == 6 * (DAY // 2 - 2 - 6)


def test_a_window_whose_outcome_nobody_knows_is_none():
    maps = series()
    hole(maps.maps)
    maps.maps[112, :2, :4] = MISSING  # half of what came after was not measured
    with pytest.raises(ValueError, match="'unseen': 1"):
        rain.find_windows(maps, rain.Question(tile=4, wet=0.3))


@given(st.floats(0, 300))
def test_encoding_is_monotone_and_fine(rate):
    code = int(rain.encode(rate))
    assert code <= int(rain.encode(rate * 1.05 + 0.01))
    back = (np.exp(code / 255 * np.log1p(1e4)) - 1) / 100
    if rate < 100:
        assert abs(back - rate) <= 0.02 * (rate + 0.01)
    else:
        assert code == 255


def test_windows_read_what_was_written():
    maps = series()
    windows = rain.cut_windows(maps, np.array([[0, 2, 4], [7, 9, 11]]), [[0, 4], [4, 8]], 4)
    assert windows.shape == (2, 3, 4, 4)
    np.testing.assert_array_equal(windows[1], rain.encode(maps.maps[[7, 9, 11], 4:8, 8:12] * 0.12))


@pytest.mark.parametrize(
    ("counts", "rates"),
    [  # the mean over pixels with data; missing and negative counts show no rain
        ([[10, MISSING, 0, 0], [10, 10, 0, 0], [MISSING] * 4, [MISSING] * 4], [[1.2, 0], [0, 0]]),
        ([[MISSING, -3], [0, 5]], [[0, 0], [0, 0.6]]),
    ],
)
def test_pooling_of_what_has_no_data(counts, rates):
    maps = np.array([counts], np.int16).repeat(3, 0)
    given = Series(maps, None, 0.12, "test")
    found = rain.cut_windows(given, np.array([[0, 1, 2]]), [[0, 0]], len(counts), size=2)
    np.testing.assert_array_equal(found[0, 2], rain.encode(rates))


def test_few_days_are_dealt_so_that_each_is_tested_once():
    times = np.concatenate(
        [
            np.datetime64(f"2018-05-{10 + d:02d}T12:00") + np.arange(n).astype("m8[m]")
            for d, n in enumerate([50, 90, 5, 70, 60, 20, 30, 80, 40])
        ]
    )
    days = times.astype("M8[D]")
    parts = [rain.split_days(times, fold) for fold in range(5)]
    tested = [set(days[part == 2]) for part in parts]
    assert sorted(d for hand in tested for d in hand) == sorted(set(days))
    for fold, part in enumerate(parts):
        assert set(days[part == 1]) == tested[(fold + 1) % 5]
        assert not set(days[part == 0]) & (tested[fold] | tested[(fold + 1) % 5])
        assert (part == 2).sum() >= 60
    np.testing.assert_array_equal(rain.split_days(times, 7), parts[2])


def test_many_days_follow_each_other_in_time():
    times = np.datetime64("2006-01-01") + np.arange(29 * 24 * 10).astype("m8[h]")
    part = rain.split_days(times, fold=3)
    assert (np.diff(part) >= 0).all()
    assert [(part == k).sum() for k in range(3)] == [20 * 240, 6 * 240, 3 * 240]


def test_too_few_days():
    with pytest.raises(ValueError, match="windows of 5 days at least; got 2"):
        rain.split_days(np.array(["2020-01-01", "2020-01-02"], "M8[m]"))


def test_splits_are_whole_and_reproducible():
    maps = series(days=5)
    splits = rain.weather_splits(maps, ASK, size=2, fold=1)
    again = rain.weather_splits(maps, ASK, size=2, fold=1)
    groups = [set(part.groups) for part in splits.parts().values()]
    assert not (groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2])
    assert sum(map(len, splits.parts().values())) == splits.report["windows"]
    assert torch.equal(splits.test.inputs, again.test.inputs)
    assert splits.test.inputs.shape[1:] == (3, 2, 2)
    assert len(set(splits.test.ids)) == len(splits.test)
    limited = rain.weather_splits(maps, ASK, size=2, fold=1, limit=600)
    assert sum(map(len, limited.parts().values())) == 600
    assert limited.source != splits.source
    assert rain.weather_splits(maps, ASK, size=3, fold=1).source != splits.source


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(tile=9), "tile must be at most 8; got 9"),
        (dict(wet=1e6), "the maps must have a window"),
    ],
)
def test_nothing_to_ask(change, message):
    with pytest.raises(ValueError, match=message):
        rain.find_windows(series(), rain.Question(**{"tile": 4, **change}))


@pytest.mark.parametrize(
    "change", [dict(tile=0), dict(lead=-60), dict(coverage=1.5), dict(wet=-1), dict(stride=2.5)]
)
def test_settings_are_checked(change):
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be"):
        rain.Question(**change)


def test_turning_keeps_means_and_movement():
    x = torch.randint(0, 255, (64, 3, 5, 5), dtype=torch.uint8)
    u = torch.rand(64, 3)
    turned = rain.Turn()(x, u)
    assert torch.equal(x.float().mean((2, 3)), turned.float().mean((2, 3)))
    # All three maps alike: differences between maps turn as the maps do.
    change = x[:, 2].short() - x[:, 0].short()
    expected = rain.Turn()(change[:, None], u)[:, 0]
    assert torch.equal(turned[:, 2].short() - turned[:, 0].short(), expected)
    one = torch.arange(9.0).reshape(1, 1, 3, 3)
    corners = torch.tensor([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]) * 0.9
    positions = {tuple(rain.Turn()(one, u[None]).flatten().tolist()) for u in corners}
    assert len(positions) == 8


# Simulated rain.


def test_probabilities_against_many_futures():
    splits, futures = rain.simulated_splits(200, 16, seed=1), 2000
    rng = np.random.default_rng(np.random.SeedSequence([1, 0x5241494E]))
    drawn = rain.draw_scenes(np.arange(200) // 20, rng)
    last = [part.inputs[:, 2] for part in splits.parts().values()]
    np.testing.assert_array_equal(torch.cat(last), rain.encode(rain.draw_maps(drawn, 0, 16)))
    p = torch.cat([part.probabilities for part in splits.parts().values()]).double().numpy()
    factor = np.exp(0.9 * np.random.default_rng(1).standard_normal((futures, 200)))
    later = rain.draw_maps(drawn, 60, 16).mean((1, 2)) * factor
    share = (later > rain.draw_maps(drawn, 0, 16).mean((1, 2))).mean(0)
    error = (share - p) / np.sqrt(np.maximum(p * (1 - p), 1e-4) / futures)
    assert np.abs(error).max() < 4.5  # 200 binomial deviations
    assert kstest(error[(p > 0.02) & (p < 0.98)], "norm").pvalue > 0.01


def test_maps_by_brute_force():
    drawn = rain.draw_scenes(np.arange(3), np.random.default_rng(0))
    size, hours = 7, 0.5
    centres, widths, peaks, growth, wind = drawn
    pixel = (np.arange(size) + 0.5) * 95 / size
    for n in range(3):
        expected = np.zeros((size, size))
        for i, x in enumerate(pixel):
            for j, z in enumerate(pixel):
                for k in range(peaks.shape[1]):
                    at = centres[n, k] + hours * wind[n]
                    square = (x - at[0]) ** 2 + (z - at[1]) ** 2
                    bell = np.exp(-square / (2 * widths[n, k] ** 2))
                    expected[i, j] += peaks[n, k] * np.exp(hours * growth[n, k]) * bell
        np.testing.assert_allclose(rain.draw_maps(drawn, 30, size)[n], expected)


def test_splits_are_calibrated_by_days_and_reproducible():
    splits, again = (rain.simulated_splits(1200, 8, seed=3) for _ in range(2))
    parts = splits.parts().values()
    assert splits.known
    assert [len(part) for part in parts] == [840, 240, 120]
    days = [set(part.groups) for part in parts]
    assert sum(map(len, days)) == 60 == len(set.union(*days))
    p = np.concatenate([part.probabilities for part in parts])
    y = np.concatenate([part.outcomes for part in parts])
    z = (y - p).sum() / np.sqrt((p * (1 - p)).sum())
    assert abs(z) < 4
    assert np.var(p) > 0.03  # there is something to tell apart
    assert (again.test.inputs == splits.test.inputs).all()
    assert (again.test.outcomes == splits.test.outcomes).all()
    assert rain.simulated_splits(1200, 8, seed=4).source != splits.source
