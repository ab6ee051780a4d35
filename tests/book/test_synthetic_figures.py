import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from probnb.experiment.results import Results
from probnb_book.scenarios import SCENARIOS, probability
from probnb_book.synthetic import (
    finetuning_figure,
    learning_curves,
    overfitting_figure,
    scenario_figure,
)

RNG = np.random.default_rng(0)
AGES = RNG.integers(0, 100, 200)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def titles(axes):
    return [ax.get_title(loc="left") or ax.get_title() for ax in axes]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_figure_draws_psi_and_both_outcomes(scenario):
    p = probability(AGES, scenario)
    y = (RNG.random(200) < p).astype(float)
    axes = scenario_figure(scenario, AGES, p, y)
    z, psi = axes[0].lines[0].get_data()
    np.testing.assert_allclose(psi, probability(z, scenario))
    for ax in axes[1:]:
        assert sum(patch.get_height() for patch in ax.patches) == pytest.approx(200)


@pytest.mark.parametrize("as_frame", [True, False])
def test_overfitting_figure_has_a_panel_a_method(as_frame):
    p = probability(AGES, "linear")
    y = (RNG.random(200) < p).astype(float)
    predictions = {"ce": p, "ce_overfit": RNG.random(200), "cape_bin": p}
    if as_frame:
        predictions = pd.DataFrame(predictions)
    axes = overfitting_figure(y, p, predictions)
    assert [t.split("\n")[0] for t in titles(axes)] == ["CE early-stop", "CE overfit", "CaPE (bin)"]


def test_histograms_have_a_row_a_probability_with_its_mark():
    p = np.repeat([0.1, 0.5, 0.9], 50)
    axes = overfitting_figure(None, p, {"ce": np.clip(p + 0.01, 0, 1)}, discrete=True)
    assert [ax.lines[-1].get_xdata()[0] for ax in axes] == [0.9, 0.5, 0.1]  # 0.1 lies lowest


def results():
    def history(fit, n):
        e = np.arange(n)
        return pd.DataFrame(
            {
                "fit": fit,
                "method": fit.split()[0],
                "epoch": e,
                "train_ce": 1 / (1 + e),
                "val_ce": 1 / (1 + e),
                "mse_p": np.where(e > 5, 1.0, 0.01),
                "kl_p": 0.1 + 0 * e,
                "calibration": e % 2,
            }
        )

    epochs = pd.concat([history("ce", 10), history("cape_bin lr=1", 3)])
    chosen = pd.DataFrame(
        {"method": ["ce", "cape_bin"], "fit": ["ce", "cape_bin lr=1"], "best_epoch": [4, 2]}
    )
    return Results(None, chosen.assign(chosen=True), epochs)


def test_learning_curves_branch_off_where_fine_tuning_starts():
    axes = learning_curves(results())
    assert len(axes) == 4
    assert axes[0].lines[1].get_xdata().tolist() == [4, 5, 6]
    assert axes[2].get_yscale() == "log" and axes[3].get_yscale() == "linear"
    assert axes[2].lines[0].get_ydata()[0] == pytest.approx(1)  # times 100


def test_fine_tunings_are_drawn_from_their_start_with_a_ring_at_what_was_kept():
    ax = finetuning_figure(results()).axes_dict["val_ce"]
    line = next(line for line in ax.lines if len(line.get_xdata()) == 3)
    np.testing.assert_allclose(line.get_ydata(), [1, 1 / 2, 1 / 3])
    assert ax.lines[-1].get_xdata() == [2]
    only_ce = results()
    only_ce = Results(None, only_ce.chosen.head(1), only_ce.epochs)
    assert finetuning_figure(only_ce) is None
