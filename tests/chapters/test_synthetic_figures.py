import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from probnb.chapters.synthetic.figures import (
    learning_curves,
    overfitting_figure,
    prediction_histograms,
    scenario_figure,
)
from probnb.experiment.results import Results
from probnb.scenarios import SCENARIOS, probability

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
    assert sum(patch.get_height() for patch in axes[1].patches) == pytest.approx(200)
    assert len(axes[2].get_legend().get_texts()) == 2
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in axes)


@pytest.mark.parametrize("as_frame", [True, False])
def test_overfitting_figure_has_a_panel_a_method(as_frame):
    p = probability(AGES, "linear")
    y = (RNG.random(200) < p).astype(float)
    predictions = {"ce": p, "ce_overfit": RNG.random(200), "cape_bin": p}
    if as_frame:
        predictions = pd.DataFrame(predictions)
    axes = overfitting_figure(y, p, predictions)
    assert [t.split("\n")[0] for t in titles(axes)] == ["CE early-stop", "CE overfit", "CaPE (bin)"]
    assert len(overfitting_figure(y, p, predictions, discrete=True)) == 3


def test_histograms_have_a_row_a_probability():
    p = np.repeat([0.1, 0.5, 0.9], 50)
    axes = prediction_histograms(p, {"ce": np.clip(p + 0.01, 0, 1)})
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["0.1", "0.5", "0.9"]
    marks = [line.get_xdata()[0] for line in axes[0].lines]
    assert marks == [0.1, 0.5, 0.9]


def test_learning_curves_branch_off_where_fine_tuning_starts():
    def history(fit, n):
        e = np.arange(n)
        return pd.DataFrame(
            {"fit": fit, "epoch": e, "train_ce": 1 / (1 + e), "val_ce": 1 / (1 + e),
             "mse_p": np.where(e > 5, 1.0, 0.01), "kl_p": 0.1 + 0 * e}
        )  # fmt: skip

    epochs = pd.concat([history("ce", 10), history("cape_bin lr=1", 3)])
    chosen = pd.DataFrame(
        {"method": ["ce", "cape_bin"], "fit": ["ce", "cape_bin lr=1"], "best_epoch": [4, 2]}
    )
    axes = learning_curves(Results(None, chosen.assign(chosen=True), epochs))
    assert len(axes) == 4
    assert axes[0].lines[1].get_xdata().tolist() == [4, 5, 6]
    assert axes[2].get_yscale() == "log" and axes[3].get_yscale() == "linear"
    assert axes[2].lines[0].get_ydata()[0] == pytest.approx(1)  # times 100
