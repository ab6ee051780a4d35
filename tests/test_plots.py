"""Reliability diagrams and the contact sheet, read back from what is drawn."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest

from probnb.metrics.binning import reliability_bins
from probnb.plots import face_grid, reliability_diagram, reliability_grid


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 2000)
    return (rng.random(2000) < p).astype(int), p, np.clip(p + 0.1 * rng.normal(size=2000), 0, 1)


def bars(ax):
    """Ends of the drawn interval bars, one row per bin."""
    return np.array([path.vertices[:, 1] for path in ax.collections[0].get_paths()])


def test_points_are_the_bins_and_areas_their_counts(data):
    y, _, p_hat = data
    ax = reliability_diagram(y, p_hat, bins=10)
    table = reliability_bins(y, p_hat, 10)
    points = ax.collections[-1]
    np.testing.assert_allclose(
        points.get_offsets(), np.column_stack([table.mean_prediction, table.mean_outcome])
    )
    sizes = points.get_sizes()
    np.testing.assert_allclose(sizes / sizes.sum(), table.count / 2000)


def test_five_zeros_in_a_bin_have_an_upper_bound_above_zero():
    y, p_hat = [0] * 5 + [1] * 5, [0.1] * 5 + [0.9] * 5
    drawn = bars(reliability_diagram(y, p_hat, bins=2))
    np.testing.assert_allclose(drawn[0], [0, 1 - 0.025**0.2])
    np.testing.assert_allclose(drawn[1], [0.025**0.2, 1])
    plain = reliability_diagram(y, p_hat, bins=2, interval=False)
    assert len(plain.collections) == 1  # the points only


def test_histogram_counts_rows(data):
    y, _, p_hat = data
    _, ax = plt.subplots()
    assert reliability_diagram(y, p_hat, ax=ax) is ax  # taken from outside
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Predicted probability", "Observed frequency")
    assert ax.get_aspect() == 1
    heights = np.array([bar.get_height() for bar in ax.patches])
    counts = np.histogram(p_hat, (np.arange(42) - 0.5) / 40)[0]
    np.testing.assert_allclose(heights / heights.max(), counts / counts.max())
    assert ax.patches[0].get_y() < 0 and max(b.get_y() + b.get_height() for b in ax.patches) < 0


def test_isotonic_curve_never_falls_and_truth_is_drawn(data):
    y, p, p_hat = data
    ax = reliability_diagram(y, p_hat, corp=True, p=p)
    curve = next(line for line in ax.lines if "isotonic" in line.get_label())
    assert (np.diff(curve.get_ydata()) >= 0).all()
    scatter = next(c for c in ax.collections if c.get_gid() == "truth")
    np.testing.assert_allclose(sorted(map(tuple, scatter.get_offsets())), sorted(zip(p_hat, p)))


def test_grid_has_a_titled_panel_for_each_method(data):
    y, p, p_hat = data
    axes = reliability_grid(y, {"truth": p, "noisy": p_hat, "flat": np.full(2000, 0.4)}, columns=2)
    assert [ax.get_title(loc="left").split("\n")[0] for ax in axes] == ["truth", "noisy", "flat"]
    assert axes[2].get_title(loc="left").endswith(f"Brier {np.mean((y - 0.4) ** 2):.3f}")
    points = [ax.collections[-1].get_offsets() for ax in axes]
    np.testing.assert_allclose(points[2], [[0.4, y.mean()]])
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    assert axes[0].figure.get_size_inches()[0] <= 7.5  # a wider one would be shrunk to the page


@pytest.mark.parametrize(
    ("more", "p", "words"),
    [
        (1, None, "y_prob must hold probabilities"),
        (0, [-0.5, 0.5], "p must hold probabilities"),
        (0, [0.5] * 3, "p and y_prob must have the same length"),
    ],
)
def test_bad_input_is_named(more, p, words):
    with pytest.raises(ValueError, match=words):
        reliability_diagram([0, 1], np.array([0.2, 0.7]) + more, p=p)


def test_contact_sheet():
    images = np.random.default_rng(0).integers(0, 256, (10, 3, 16, 16), dtype=np.uint8)
    ages = np.arange(20, 30)
    ax = face_grid(images, ages, columns=4)
    sheet = ax.images[0].get_array()
    assert sheet.shape == (1 + 3 * 17, 1 + 4 * 17, 3)
    np.testing.assert_array_equal(sheet[1:17, 1:17], images[0].transpose(1, 2, 0))
    np.testing.assert_array_equal(sheet[18:34, 18:34], images[5].transpose(1, 2, 0))
    assert (sheet[35:, 35:] == 255).all()  # two places stay empty
    assert [text.get_text() for text in ax.texts] == [str(age) for age in ages]
