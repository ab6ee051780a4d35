"""The page that shows CaPE: its own code gives the library's numbers, and is caught if not."""

import copy
import re

import matplotlib
import numpy as np
import pytest

from probnb_book import method as chapter

from .pages import ROOT

matplotlib.use("Agg")
BOOK = ROOT / "book" / "method.py"


def cells():
    """The page's code, a text for each cell that is not Markdown."""
    parts = re.split(r"^# %%", BOOK.read_text(), flags=re.M)[1:]
    return [part.split("\n", 1)[1] for part in parts if "[markdown]" not in part.split("\n")[0]]


@pytest.fixture(scope="module")
def page():
    """The variables that the page has after its plumbing, at the size of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBNB_SMOKE", "1")
        namespace = {}
        for text in cells()[:3]:
            exec(text, namespace)
    return namespace


def rest(page, old="", new=""):
    """Run what follows the plumbing, with one piece of the page's text replaced."""
    namespace = dict(page) | {"smoke": lambda: True}
    texts = cells()[3:]
    assert any(old in text for text in texts)
    for text in texts:
        if "facets = " not in text:
            exec(text.replace(old, new) if old else text, namespace)


def test_the_page_gives_the_numbers_of_the_library(page):
    rest(page)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bins * middle / len(y)", "bins * (middle + 3) / len(y)"),
        ("np.exp(-(", "np.exp(-2 * ("),
        ("momentum=0.9", "momentum=0.8"),
        ("t % every == 0", "t % every == 1"),
        ("[seed, t, 1]", "[seed, t, 2]"),
        ("network.train()", "network.eval()"),
        ("losses[t] == min(losses)", "t == 1"),
    ],
)
def test_the_assertions_catch_another_algorithm(page, old, new):
    with pytest.raises(AssertionError):
        rest(page, old, new)


def test_watching_does_not_change_the_training(page):
    setting, splits = page["setting"], page["splits"]
    network = copy.deepcopy(page["networks"]["early stop"])
    schedule = chapter.SCHEDULES["calibration only"]
    alone = setting.train(network, splits, setting.finetuning, schedule, True)
    watched = page["fits"]["early stop", "calibration only"]
    assert [row["val_ce"] for row in alone.history] == [row["val_ce"] for row in watched.history]


def test_memorised_is_what_predictions_know_of_outcomes_beyond_the_truth(page):
    moves = page["moves"].assign(p_hat=lambda t: t["p"])
    np.testing.assert_allclose(chapter.memorised(moves), 0, atol=1e-7)
    known = chapter.memorised(moves.assign(p_hat=moves["y"]))
    assert known.between(0.3, 1).all()
