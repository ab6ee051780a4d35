import numpy as np
import pytest
from scipy.stats import kstest

from probnb.data.rain import encode
from probnb.data.simulated_rain import Climate, draw_scenes, simulated_splits


def scenes(n=40, seed=0, **climate):
    day = np.arange(n) // 8
    return draw_scenes(n, day, Climate(**climate), np.random.default_rng(seed))


def test_means_equal_means_of_the_drawn_maps():
    drawn = scenes()
    for minutes in (-20, 0, 60):
        np.testing.assert_allclose(drawn.means(minutes, 16), drawn.maps(minutes, 16).mean((1, 2)))


def test_maps_by_brute_force():
    drawn, size, hours = scenes(3), 7, 0.5
    pixel = (np.arange(size) + 0.5) * 95 / size
    for n in range(3):
        expected = np.zeros((size, size))
        for i, x in enumerate(pixel):
            for j, z in enumerate(pixel):
                for k in range(drawn.peaks.shape[1]):
                    at = drawn.centres[n, k] + hours * drawn.wind[n]
                    square = (x - at[0]) ** 2 + (z - at[1]) ** 2
                    bell = np.exp(-square / (2 * drawn.widths[n, k] ** 2))
                    expected[i, j] += drawn.peaks[n, k] * np.exp(hours * drawn.growth[n, k]) * bell
        np.testing.assert_allclose(drawn.maps(30, size)[n], expected)


def test_probabilities_against_many_futures():
    drawn, futures = scenes(200), 4000
    p = drawn.probabilities(16)
    factor = np.exp(0.9 * np.random.default_rng(1).standard_normal((futures, 200)))
    later = drawn.maps(60, 16).mean((1, 2)) * factor
    share = (later > drawn.maps(0, 16).mean((1, 2))).mean(0)
    error = (share - p) / np.sqrt(np.maximum(p * (1 - p), 1e-4) / futures)
    assert np.abs(error).max() < 4.5  # 200 binomial deviations
    assert kstest(error[(p > 0.02) & (p < 0.98)], "norm").pvalue > 0.01


def test_wind_alone_moves_and_growth_alone_grows():
    still = scenes(wind=0.0, growth=0.0, shared=0.0)
    np.testing.assert_allclose(still.maps(60), still.maps(0))
    np.testing.assert_allclose(still.probabilities(), 0.5)
    growing = scenes(wind=0.0, growth=0.0, shared=1.0)
    rates = growing.growth[:, :1]
    np.testing.assert_allclose(growing.means(60), growing.means(0) * np.exp(rates[:, 0]))


def test_splits_are_calibrated_by_days_and_reproducible():
    splits, again = (simulated_splits(1200, 8, seed=3) for _ in range(2))
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
    assert simulated_splits(1200, 8, seed=4).source != splits.source


def test_inputs_are_the_encoded_maps():
    splits = simulated_splits(60, 8, seed=0)
    rng = np.random.default_rng(np.random.SeedSequence([0, 0x5241494E]))
    drawn = draw_scenes(60, np.arange(60) // 20, Climate(), rng)
    np.testing.assert_array_equal(splits.train.inputs[:, 2], encode(drawn.maps(0, 8))[:20])
    np.testing.assert_array_equal(splits.train.inputs[:, 0], encode(drawn.maps(-20, 8))[:20])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(n=10), "n must be"),
        (dict(size=1), "size must be"),
        (dict(seed=-1), "seed must be"),
    ],
)
def test_bad_sizes(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulated_splits(**arguments)


def test_bad_climate():
    with pytest.raises(ValueError, match="sigma must be"):
        Climate(sigma=0.0)
