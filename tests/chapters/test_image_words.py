"""Advice follows from the numbers, in every case that there is."""

import numpy as np
import pandas as pd
import pytest
import torch

from probnb.chapters.images import words
from probnb.chapters.images.example import write_example
from probnb.chapters.images.figures import learning_curve_figure
from probnb.data import ProbabilityData, Splits
from probnb.data.images import load_images


def choice(gap, se, chosen, nll=0.5):
    index = ["ensemble", "ce"]
    return pd.DataFrame(
        {
            "nll": [nll, nll + gap],
            "gap": [0.0, gap],
            "se": [0.0, se],
            "networks": [5, 1],
            "chosen": [name == chosen for name in index],
        },
        index=index,
    )


def differences(**rows):
    names = ["difference", "low", "high"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names)


POINTS = pd.DataFrame(
    {"rows": [250, 500, 1000], "nll": [0.6, 0.55, 0.5], "low": [0.5] * 3, "high": [0.7] * 3}
)
BETTER, UNSURE = (-0.03, -0.04, -0.02), (-0.01, -0.03, 0.01)
MANY = ProbabilityData(torch.zeros(1000, 2), np.arange(1000) % 2)


def test_the_best_row_is_recommended_with_its_gain():
    text = words.advice(choice(0.05, 0.01, "ensemble"), differences(ensemble=BETTER), MANY)
    assert text.startswith("**Use Deep ensemble.** It has the lowest validation NLL of the 2 rows")
    assert "its NLL is lower than that of CE early-stop by 0.0300 [-0.0400, -0.0200]" in text
    assert "do not tell it" not in text


def test_a_plainer_row_is_recommended_where_the_best_is_not_surely_better():
    text = words.advice(choice(0.01, 0.02, "ce"), differences(ensemble=UNSURE), MANY)
    assert text.startswith("**Use CE early-stop.** The lowest validation NLL is that of Deep ens")
    assert "less than its standard error, 0.0200" in text and "needs one network" in text


@pytest.mark.parametrize(
    ("half", "method", "said"),
    [
        ((-0.05, -0.06, -0.04), BETTER, "More data is the lever"),
        ((-0.05, -0.06, -0.04), UNSURE, "More data is the lever"),
        ((-0.01, -0.015, -0.005), BETTER, "The method is the lever"),
        (UNSURE, BETTER, "The method is the lever"),
        (UNSURE, UNSURE, "Neither is a sure lever"),
        ((0.05, 0.04, 0.06), UNSURE, "Neither is a sure lever"),
    ],
)
def test_the_lever(half, method, said):
    gaps = differences(half=half, ensemble=method)
    text = words.lever(POINTS, gaps, choice(0.01, 0.02, "ce"))
    assert said in text and "From 500 to 1,000 training images" in text


def test_without_other_rows_there_is_no_lever_but_data():
    text = words.lever(POINTS, differences(half=BETTER), choice(0.01, 0.02, "ce"))
    assert text.endswith("is lower by 0.0300 [-0.0400, -0.0200].")


@pytest.mark.parametrize(("ones", "warned"), [(200, True), (201, False), (800, True)])
def test_few_positives_are_warned_of(ones, warned):
    test = ProbabilityData(torch.zeros(1000, 3, 8, 8), np.arange(1000) < ones)
    splits = Splits(test, test, test, "x", {"notes": ["Read 3,000 rows."]})
    text = words.what_was_read(splits)
    assert ("mostly noise" in text) == warned
    assert text.startswith("- Read 3,000 rows.\n- At 8 × 8 pixels: 1,000 to train on")


def test_example_is_read_as_it_was_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBNB_CACHE", str(tmp_path / "cache"))
    images, outcomes = write_example(tmp_path / "x", n=40, size=24)
    before = outcomes.stat().st_mtime_ns
    assert write_example(tmp_path / "x", n=40) == (images, outcomes)
    assert outcomes.stat().st_mtime_ns == before and len(list(images.iterdir())) == 40
    splits = load_images(images, outcomes, size=24)
    assert sum(map(len, splits.parts().values())) == 40 and not splits.report["unreadable"]


def test_figure_shows_the_curve_and_the_best_other_row():
    ax = learning_curve_figure(
        POINTS, differences(half=BETTER, ensemble=BETTER), choice(0.01, 0.02, "ce")
    )
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["Deep ensemble, the best other row", "CE early-stop"]
    (point,) = (line for line in ax.lines if line.get_marker() == "D")
    assert point.get_ydata()[0] == pytest.approx(0.47) and point.get_xdata()[0] > 1000
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["250", "500", "1,000"]
