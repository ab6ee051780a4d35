"""Every allowed choice of rows gives a page."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import Results, collect, on_test, write_results
from probnb.experiment.run import run_jobs
from probnb.methods import METHODS, check_methods
from probnb.metrics import bootstrap, difference
from probnb.plots import reliability_grid
from probnb_book import evidence
from probnb_book import synthetic as chapter
from probnb_book.data.faces import load_faces

PROFILE = make_profile("smoke", images=120, size=16, epochs=2, patience=1, width=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    splits = load_faces("discrete", size=16, n=120)
    jobs = plan([*check_methods(None), "focal_platt"], PROFILE)
    return splits, jobs, run_jobs(jobs, splits, folder, "cpu", workers=1, progress=False)


ASKED = [None, "ce", "cape_bin", "resampled, focal_platt"]


@pytest.mark.parametrize("asked", ASKED)
def test_every_choice_of_rows_gives_a_page(trained, asked, tmp_path):
    splits, jobs, fits = trained
    methods = check_methods(asked)
    outcome = collect({name: jobs[name] for name in methods}, fits, splits)
    run = write_results(
        tmp_path,
        outcome,
        task="discrete",
        data="drawn",
        profile="smoke",
        seed=0,
        settings=PROFILE,
        precision="any",
    )
    facts = chapter.facts(splits, run, outcome)
    assert facts.loc["trained by other code", ""] == "none"
    table = on_test(outcome.predictions)
    for discrete in {False, asked is not None}:
        axes = chapter.overfitting_figure(table["y"], table["p"], table[methods], discrete)
        assert len(axes) == len(methods) * (table["p"].nunique() if discrete else 1)
    assert len(chapter.learning_curves(outcome)) == 4
    chapter.finetuning_figure(outcome)
    reliability_grid(table["y"], chapter.labelled(table[methods]), p=table["p"])
    result = bootstrap(table["y"], table[methods], table["p"], 20, progress=False)
    page = evidence.comparison_table(result, "discrete")
    assert list(page.index) == [METHODS[m].label for m in methods]
    assert len(evidence.chosen_table(outcome.chosen)) >= 1
    capes = sum(name.startswith("cape") for name in methods) * ("ce_finetuned" in methods)
    assert len(chapter.verdicts(result, outcome.chosen)) == len(methods) - 1 + capes
    assert len(chapter.member_errors(outcome)) == (PROFILE.members if "ensemble" in methods else 0)
    plt.close("all")


def test_words_are_about_stored_seeds_and_never_about_this_run(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 400)
    predictions = {
        "ce": np.clip(p + 0.1, 0, 1),
        "platt": p,
        "focal": np.clip(p + 0.3, 0, 1),
        "ce_finetuned": np.clip(p + 0.1, 0, 1),
        "cape_bin": np.clip(p + 0.1, 0, 1),
    }
    result = bootstrap((rng.random(400) < p).astype(int), predictions, p, 50, progress=False)
    chosen = pd.DataFrame(
        {"method": ["ce", "cape_bin"], "chosen": True, "kept_start": [False, True]}
    )
    alone = chapter.verdicts(result, chosen).set_index(["row", "less"])
    assert (alone[["stored seeds", ""]] == "").all(axis=None)  # whatever this run says
    assert alone.loc[("Platt, two logits", "CE early-stop"), "this run"].startswith("-1.00 [")
    assert alone.loc[("CaPE (bin)", "CE early-stop"), "this run"] == "kept its start"
    assert alone.loc[("CaPE (bin)", "CE fine-tuned"), "this run"].startswith("+0.00")

    seeds = {
        "platt": [0.01, 0.011, 0.012],
        "focal": [-0.02, -0.021, -0.022],
        "ce_finetuned": [-0.1, 0.0, 0.1],
    }
    stored = lambda runs, a, b, metric: difference(seeds[a]) if a in seeds else None  # noqa: E731
    monkeypatch.setattr(chapter.evidence, "compare", stored)
    words = chapter.verdicts(result, chosen, stored=range(3)).set_index(["row", "less"])[""]
    assert words["Platt, two logits", "CE early-stop"] == "higher"  # here it is lower
    assert words["Focal loss", "CE early-stop"] == "lower"
    assert words["CE fine-tuned", "CE early-stop"] == "not told apart"
    assert words["CaPE (bin)", "CE early-stop"] == ""  # nothing is stored


def test_members_differ_in_their_seed_and_count_at_their_kept_epoch():
    epochs = pd.DataFrame(
        {"fit": ["a", "a", "b", "b"], "epoch": [1, 2, 1, 2], "mse_p": [0.1, 0.2, 0.3, 0.4]}
    )
    chosen = pd.DataFrame({"method": "ensemble", "fit": ["a", "b"], "best_epoch": [2, 1]})
    assert chapter.member_errors(Results(None, chosen, epochs)).tolist() == pytest.approx([20, 30])


def test_without_an_ensemble_there_are_no_members(trained):
    splits, jobs, fits = trained
    outcome = collect({name: jobs[name] for name in ("ce", "cape_bin")}, fits, splits)
    summary_of_none = chapter.member_errors(outcome).describe()[
        ["count", "mean", "std", "min", "max"]
    ]
    assert summary_of_none["count"] == 0 and summary_of_none.drop("count").isna().all()
