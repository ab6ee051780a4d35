"""Every allowed choice of rows gives a page, whose words are about stored seeds."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest

from probnb.methods import METHODS, check_methods
from probnb.metrics import bootstrap, difference
from probnb_book import evidence

from .pages import run

SMALL = {"images": 120, "size": 16, "epochs": 2, "patience": 1, "width": 4, "scenario": "discrete"}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Run the page with some rows; trainings are kept from one run to the next."""
    folder, patch = tmp_path_factory.mktemp("page"), pytest.MonkeyPatch()
    patch.setenv("PROBNB_SMOKE", "1")
    plt.switch_backend("Agg")
    given = {**SMALL, "replicates": 20, "device": "cpu", "results_dir": str(folder)}

    @cache
    def page_of(methods):
        try:
            return run("synthetic", methods=methods, **given)
        finally:
            plt.close("all")

    yield page_of
    patch.undo()


@pytest.mark.parametrize("asked", [None, "ce", "resampled, focal_platt"])
def test_every_choice_of_rows_gives_a_page(page, asked):
    there = page(asked)
    methods = check_methods(asked)
    assert list(there["comparison"].index) == [METHODS[m].label for m in methods]
    capes = sum(name.startswith("cape") for name in methods) * ("ce_finetuned" in methods)
    assert len(there["answers"]) == len(methods) - 1 + capes
    # members of the ensemble differ in their seed alone and count at their kept epoch
    members = there["members"]
    assert len(members) == (there["settings"].members if "ensemble" in methods else 0)
    assert (members["epoch"] == members["best_epoch"]).all() and members["fit"].is_unique
    # fine-tunings are drawn from their start, a ring at what was kept
    tuned = there["tuned"]
    assert (tuned.groupby("method")["kept"].sum() == 1).all() and (tuned["epoch"] == 0).sum() == (
        "ce_finetuned" in methods
    ) + sum(name.startswith("cape") for name in methods)


def test_words_are_about_stored_seeds_and_never_about_this_run(page, monkeypatch):
    there = page("ce")
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 400)
    wrong = {"ce": 0.1, "platt": 0, "focal": 0.3, "ce_finetuned": 0.1, "cape_bin": 0.1}
    predictions = {name: np.clip(p + by, 0, 1) for name, by in wrong.items()}
    result = bootstrap((rng.random(400) < p).astype(int), predictions, p, 50, progress=False)
    alone = there["verdicts"](result, ()).set_index(["row", "less"])
    assert (alone[["stored seeds", ""]] == "").all(axis=None)  # whatever this run says
    assert alone.loc[("Platt, two logits", "CE early-stop"), "this run"].startswith("-1.00 [")
    assert alone.loc[("CaPE (bin)", "CE early-stop"), "this run"].startswith("+0.00")
    assert alone.loc[("CaPE (bin)", "CE fine-tuned"), "this run"].startswith("+0.00")
    seeds = {"platt": [0.01, 0.011, 0.012], "focal": [-0.02, -0.021, -0.022]}
    seeds["ce_finetuned"] = [-0.1, 0.0, 0.1]
    stored = lambda runs, a, b, metric: difference(seeds[a]) if a in seeds else None  # noqa: E731
    monkeypatch.setattr(evidence, "compare", stored)
    words = there["verdicts"](result, range(3)).set_index(["row", "less"])[""]
    assert words["Platt, two logits", "CE early-stop"] == "higher"  # here it is lower
    assert words["Focal loss", "CE early-stop"] == "lower"
    assert words["CE fine-tuned", "CE early-stop"] == "not told apart"
    assert words["CaPE (bin)", "CE early-stop"] == ""  # nothing is stored
