"""Every allowed choice of rows gives a page."""

import matplotlib.pyplot as plt
import pytest

from probnb.chapters.synthetic import figures, words
from probnb.data.faces import load_faces
from probnb.experiment import summary
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import collect, on_test, write_results
from probnb.experiment.run import run_jobs
from probnb.methods import METHODS, check_methods
from probnb.metrics import bootstrap
from probnb.plots.reliability import reliability_grid

PROFILE = make_profile("smoke", images=120, size=16, epochs=2, patience=1, width=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    splits = load_faces("discrete", size=16, n=120)
    jobs = plan(METHODS, PROFILE)
    return splits, jobs, run_jobs(jobs, splits, folder, "cpu", workers=1, progress=False), folder


@pytest.mark.parametrize("asked", [None, *METHODS, "resampled, focal_platt"])
def test_every_choice_of_rows_gives_a_page(trained, asked):
    splits, jobs, fits, folder = trained
    methods = check_methods(asked)
    outcome = collect({name: jobs[name] for name in methods}, fits, splits)
    run = write_results(
        folder / "synthetic", outcome, task="discrete", data="drawn", profile="smoke", seed=0,
        settings=PROFILE, precision="any",
    )  # fmt: skip
    assert "processor seconds" in words.record_sentence(run, outcome)
    table = on_test(outcome.predictions)
    for discrete in (False, True):
        axes = figures.overfitting_figure(table["y"], table["p"], table[methods], discrete)
        assert len(axes) == len(methods)
    assert len(figures.learning_curves(outcome)) == 4
    reliability_grid(table["y"], figures.labelled(table[methods]), p=table["p"])
    result = bootstrap(table["y"], table[methods], table["p"], 20, progress=False)
    page = summary.comparison_table(result, "discrete")
    assert list(page.index) == [METHODS[m].label for m in methods]
    assert len(summary.chosen_table(outcome.chosen)) >= 1
    assert "seed" in words.seed_sentence(outcome)
    plt.close("all")
