"""The experiments of the chapter on theory, and what their chapter draw."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from probnb_book.theory import Model, separability_threshold
from probnb_book.theory import study as chapter
from probnb_book.theory.compare import Protocol, against_baseline, cape_variants, step_table, sweep
from probnb_book.theory.study import (
    SMOKE,
    appendix_b,
    check_settings,
    critical_ratios,
    early_learning,
    gap_table,
    grid_summary,
    memorise,
    slope_table,
    summary_table,
    variant_changes,
)

matplotlib.use("Agg")
SMALL = Model(n=50, kappa=1.0, replicates=3, seed=0)
QUICK = Protocol(horizon=15.0, cape_horizon=3.0, neighbours=15, penalties=(1.0, 0.2))


@pytest.fixture(scope="module")
def cells():
    return sweep(SMALL, (0.2, 1.0), (1.0, 3.0), QUICK)


def test_early_learning_varies_one_thing_at_a_time():
    panels = early_learning(SMALL, 0.3, horizon=3.0)
    assert list(panels) == ["step size", "sample size", "aspect ratio"]
    steps = [run.time[1] for run in panels["step size"].values()]
    np.testing.assert_allclose(steps, [0.3, 0.15, 0.075])
    assert [run.theta.shape[1] for run in panels["aspect ratio"].values()] == [12, 25, 50, 100]
    assert [run.theta.shape[1] for run in panels["sample size"].values()] == [10, 20, 50]
    for runs in panels.values():
        for run in runs.values():
            assert run.time[-1] == pytest.approx(3.0, abs=run.time[1])
    axes = chapter.early_learning_figure(panels)
    for ax, runs in zip(axes, panels.values()):
        assert [text.get_text() for text in ax.get_legend().get_texts()] == list(runs)
        for line, run in zip(ax.lines, runs.values()):
            np.testing.assert_allclose(line.get_ydata(), 100 * run.mse.mean(0))
    ax = chapter.landscape(panels["aspect ratio"], 1.0)
    lines = {line.get_label(): line for line in ax.lines}
    for label, run in panels["aspect ratio"].items():
        np.testing.assert_allclose(lines[label].get_xdata(), run.along.mean(0))
    assert lines["truth"].get_xdata()[0] == 1.0


def test_slope_table_holds_mean_and_limit():
    table = slope_table(SMALL, [(1.0, 0.5), (2.0, 1.0)], [40, 80])
    assert len(table) == 4 and (table.limit < 0).all()
    assert table.limit.nunique() == 2


def test_gap_table_and_its_factor():
    table = gap_table(SMALL, [0.2, 0.1], 1.0)
    halved = table.loc[0.2] / table.loc[0.1]
    np.testing.assert_allclose(halved, 2, atol=0.2)  # Lemma A.4


def test_memorisation_tells_what_is_separable():
    path, angles, separable = memorise(SMALL, 0.1, 300)
    assert separable.all()
    assert (angles[:, -1] < angles[:, 1]).all()
    norm, angle = chapter.memorisation_figure(path, angles)
    np.testing.assert_allclose(norm.lines[0].get_ydata(), path.norm[0, 1:])
    np.testing.assert_allclose(angle.lines[2].get_ydata(), angles[2])
    _, angles, separable = memorise(Model(n=80, kappa=0.05, replicates=2), 0.1, 50)
    assert not separable.any() and np.isnan(angles).all()


def test_critical_ratios_are_sorted_and_near_the_formula():
    gammas = [0.0, 2.0]
    critical = critical_ratios(100, gammas, 8)
    assert critical.shape == (2, 8) and (np.diff(critical, axis=1) >= 0).all()
    assert np.abs(np.median(critical, 1) - separability_threshold(gammas)).max() < 0.08
    ax = chapter.phase_figure(critical, gammas, 100)
    shown = ax.collections[0].get_array().reshape(-1, 2)  # kappa upwards, gamma across
    assert (shown[0] == 0).all() and (shown[-1] == 100).all()  # of the data sets in per cent
    at = np.searchsorted(np.linspace(0, 0.7, 141), np.median(critical, 1) + 1e-9)
    assert [50 <= shown[row, g] < 80 for g, row in enumerate(at)] == [True, True]
    theory = next(line for line in ax.lines if "theory" in line.get_label())
    np.testing.assert_allclose(theory.get_ydata()[[0, -1]], separability_threshold(gammas))


@pytest.mark.parametrize("gamma_0", [0.0, 1.0])
def test_appendix_b_figures(gamma_0):
    model = Model(n=60, kappa=1.0, gamma_0=gamma_0, replicates=2)
    recorded, observed, resampled = appendix_b(model, iterations=300, batch=20)
    assert observed.norm.shape == resampled.norm.shape == (2, len(recorded))
    assert np.array_equal(observed.norm[:, 0], resampled.norm[:, 0])
    panels = chapter.appendix_b_panels(observed, resampled, points=50)
    errors = [100 * observed.mse[0, k] for k in (0, observed.mse[0].argmin(), -1)]
    errors.append(100 * resampled.mse[0, -1])
    shown = [ax.get_title(loc="left").split("\n")[1] for ax in panels]
    assert shown == [f"MSE {e:.2f}" for e in errors]
    errors = {"finite": observed.mse, "resampled": resampled.mse}
    curve = chapter.curves_figure(1 + recorded, errors, xscale="log").lines[1]
    np.testing.assert_allclose(curve.get_ydata(), 100 * resampled.mse.mean(0))


def test_against_baseline_by_hand():
    frame = pd.DataFrame(
        {
            "kappa": 1.0,
            "gamma": 2.0,
            "replicate": [0, 1, 2, 0, 1, 2],
            "method": ["early stop"] * 3 + ["ridge"] * 3,
            "mse": [0.10, 0.12, 0.14, 0.09, 0.11, 0.10],
        }
    )
    cell = against_baseline(frame, "ridge").iloc[0]
    difference = np.array([-0.01, -0.01, -0.04])
    assert cell.change == pytest.approx(100 * difference.mean() / 0.12)
    assert cell.z == pytest.approx(difference.mean() / (difference.std(ddof=1) / 3**0.5))
    assert against_baseline(frame, "early stop").iloc[0].z == 0


def drawn(ax, table):
    """The numbers of a heat map, in the shape of the table."""
    return np.asarray(ax.collections[0].get_array()).reshape(table.shape)


def test_grid_counts_and_maps(cells):
    cell = against_baseline(cells, "ridge")
    counted = grid_summary(cells, ["ridge"]).iloc[0]
    assert counted[["better", "worse", "cells"]].tolist() == [
        (cell.z < -2).sum(),
        (cell.z > 2).sum(),
        4,
    ]
    assert counted["mean change (%)"] == pytest.approx(cell.change.mean())
    axes = chapter.grid_maps(cells, ["ridge", "CaPE (bin)"])
    assert [ax.get_title() for ax in axes[2:]] == ["ridge, change (%)", "CaPE (bin), change (%)"]
    change = against_baseline(cells, "ridge").change.unstack("gamma")
    np.testing.assert_allclose(drawn(axes[2], change), change)
    bold = [text.get_weight() == "bold" for text in axes[2].texts]
    assert bold == (cell.z.unstack("gamma").abs() > 2).to_numpy().ravel().tolist()
    best = cells[cells.method == "oracle"].groupby(["kappa", "gamma"]).mse.mean().unstack("gamma")
    np.testing.assert_allclose(drawn(axes[1], best), 100 * best)
    table = summary_table(cells[(cells.kappa == 1.0) & (cells.gamma == 1.0)])
    assert table.loc["early stop", "difference"] == 0
    chosen = cells.query("kappa == 1 and gamma == 1 and method == 'CaPE (bin)'").chosen
    assert table.loc["CaPE (bin)", "kept its start (%)"] == pytest.approx(
        100 * (chosen == 0).mean()
    )
    assert table.loc["ridge", "kept its start (%)"] == 0
    np.testing.assert_allclose(table["MSE x 100"], table.calibration + table.grouping, atol=1e-10)


def test_cape_variants_and_steps():
    table = cape_variants(SMALL, {"a": {}, "b": {"every": 1}}, QUICK)
    shown = variant_changes(table)
    assert list(shown.index) == ["a", "b"]
    wide = table.query("variant == 'b'").groupby("method").mse.mean()
    assert shown.loc["b", ("CaPE (bin)", "change")] == pytest.approx(
        100 * (wide["CaPE (bin)"] / wide["early stop"] - 1)
    )
    steps = step_table(SMALL, QUICK)
    assert list(steps.index) == ["cross entropy", "CaPE (bin)", "CaPE (kernel)"]
    assert (steps.length >= steps.confidence.abs() - 1e-12).all()
    # targets coarser than the predictions shrink the estimate
    coarse = step_table(SMALL, Protocol(**{**vars(QUICK), "bins": 1, "sigma": 10.0}))
    assert coarse.loc["CaPE (bin)", "confidence"] < 0
    # with a bin for each example CaPE trains on the outcomes
    one = step_table(SMALL, Protocol(**{**vars(QUICK), "bins": SMALL.n}))
    np.testing.assert_allclose(one.loc["CaPE (bin)"], one.loc["cross entropy"], atol=1e-10)


def test_settings_of_the_page_are_checked():
    good = {"device": "cpu", "threads": 1, "seed": 0, "kappa": 1.0, "eta": 0.4, "gamma": 1.0}
    check_settings({**good, "gamma_0": 0, **SMOKE})
    for name, value in {
        "grid_replicates": 1,
        "phase_n": 0,
        "eta": 0,
        "grid_kappas": [0.0],
        "device": "tpu",
    }.items():
        with pytest.raises(ValueError, match=name):
            check_settings({**good, "gamma_0": 0, **SMOKE, name: value})


@pytest.mark.parametrize(("kappa", "share"), [(0.3, 0.2), (0.1, 0.1)])
def test_the_turn_that_is_left_grows_with_the_dimension(kappa, share):
    """ "A fifth at 0.3 and a tenth at 0.1", of what a step towards the outcomes turns."""
    turn = step_table(Model(kappa=kappa, replicates=100))["direction"]
    assert turn["CaPE (bin)"] / turn["cross entropy"] == pytest.approx(share, abs=0.05)
