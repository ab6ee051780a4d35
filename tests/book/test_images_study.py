"""The page on your own images: its verdicts follow from the numbers, its example is as drawn."""

import shlex

import numpy as np
import pandas as pd
import pytest
import torch

import probnb
from probnb.data import ProbabilityData, Splits
from probnb.images.folder import load_images
from probnb.metrics.differences import Difference
from probnb_book.images import (
    how_to_repeat,
    learning_curve,
    shortened,
    verdicts,
    what_was_read,
    write_example,
)

BETTER, WORSE, UNSURE = (-0.03, -0.04, -0.02), (0.03, 0.02, 0.04), (-0.01, -0.03, 0.01)
LARGER, NONE = (-0.05, -0.06, -0.04), (-0.05, np.nan, np.nan)


def choice(chosen="ce"):
    columns = {"nll": [0.50, 0.51], "gap": [0.0, 0.01], "se": [0.0, 0.02], "networks": [5, 1]}
    table = pd.DataFrame(columns, index=["ensemble", "ce"])
    return table.assign(chosen=table.index == chosen)


def differences(**rows):
    return {name: Difference(*row, 0.01, 0.5, 1, 100) for name, row in rows.items()}


def splits(ones=500, groups=None):
    part = ProbabilityData(torch.zeros(1000, 3, 8, 8), np.arange(1000) < ones, groups=groups)
    return Splits(part, part, part, "x", {"notes": ["Read 3,000 rows."]})


@pytest.mark.parametrize(
    ("half", "method", "lever"),
    [
        (LARGER, BETTER, "more images"),
        (LARGER, UNSURE, "more images"),
        (UNSURE, BETTER, "the method"),
        ((-0.01, -0.015, -0.005), BETTER, "the method"),
        (UNSURE, UNSURE, "neither for sure"),
        (WORSE, UNSURE, "neither for sure"),
        (NONE, NONE, "neither for sure"),  # too few groups for an interval
    ],
)
def test_the_lever_is_what_surely_brings_more(half, method, lever):
    answers = verdicts(splits(), choice(), differences(half=half, ensemble=method))["answer"]
    assert answers["More images, or a better method?"] == lever
    words = {BETTER: "yes", UNSURE: "not told apart", WORSE: "no, it is worse"}
    words |= {LARGER: "yes", (-0.01, -0.015, -0.005): "yes", NONE: "no interval can be had"}
    assert answers["Do twice the images help?"] == words[half]
    assert answers["Is Deep ensemble better than CE early-stop?"] == words[method]


def test_the_chosen_row_and_what_it_was_chosen_over():
    gaps = differences(half=UNSURE, ensemble=UNSURE)
    table = verdicts(splits(), choice(), gaps)
    assert table["answer"]["Which row to use?"] == "CE early-stop"
    assert "Deep ensemble is lower" in table["answer"]["Is it the lowest on validation?"]
    table = verdicts(splits(), choice("ensemble"), gaps)
    assert table["answer"]["Which row to use?"] == "Deep ensemble"
    assert "Is it the lowest on validation?" not in table.index


@pytest.mark.parametrize(("ones", "enough"), [(200, False), (201, True), (800, False)])
def test_few_rows_of_the_rarer_outcome_are_told(ones, enough):
    answer = verdicts(splits(ones), choice(), differences(half=UNSURE))["answer"]
    assert (answer["Enough test images?"] == "yes") == enough


@pytest.mark.parametrize(
    ("groups", "folds", "told"),
    [
        (1, "no: too few", "no interval can be had"),
        (6, "yes", "few: intervals are rough"),
        (100, "yes", "yes"),
    ],
)
def test_few_groups_are_told(groups, folds, told):
    data = splits(500, np.arange(1000) % groups)
    answer = verdicts(data, choice(), differences(half=UNSURE))["answer"]
    assert answer["Enough test groups?"] == told
    assert answer["Calibrators judged on images they have not seen?"].startswith(folds)
    assert what_was_read(data).splitlines()[1].endswith(f"outcome 1, {groups} groups")


def test_example_is_read_as_it_was_drawn(tmp_path, cache):
    images, outcomes = write_example(tmp_path / "x", n=40, size=24)
    before = outcomes.stat().st_mtime_ns
    assert write_example(tmp_path / "x", n=40) == (images, outcomes)
    assert outcomes.stat().st_mtime_ns == before and len(list(images.iterdir())) == 40
    data = load_images(images, outcomes, size=24)
    assert sum(map(len, data.parts().values())) == 40 and not data.report["unreadable"]


def test_the_page_can_be_run_again_as_it_was_asked():
    asked = {"images": "my scans", "y": "02", "seed": 1, "mirror": False, "p": None, "size": 64}
    words = shlex.split(how_to_repeat(asked))
    assert words[:3] == ["papermill", "book/images.ipynb", "report.ipynb"]
    options = list(zip(words[3::3], words[4::3], words[5::3]))
    assert options == [
        ("-r", "images", "my scans"),
        ("-r", "y", "02"),
        ("-p", "seed", "1"),
        ("-p", "mirror", "False"),
        ("-p", "size", "64"),
    ]


def test_learning_curve(tmp_path):
    def part(n, seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 4)).astype(np.float32)
        y = rng.random(n) < 1 / (1 + np.exp(-2 * x[:, 0]))
        return ProbabilityData(x, y, groups=np.arange(n) // 2)

    rows = Splits(part(200, 0), part(120, 1), part(100, 2), "drawn")
    quarter, half = shortened(rows, 0.25), shortened(rows, 0.5)
    assert len(quarter.train) == 50 and len(half.train) == 100
    assert set(quarter.train.groups) <= set(half.train.groups)
    assert (np.unique(half.train.groups, return_counts=True)[1] == 2).all()  # whole groups
    assert len({quarter.source, half.source, rows.source}) == 3
    methods, how = ["ce", "ensemble"], {"device": "cpu", "progress": False}
    kept = probnb.compare(rows, methods, "smoke", 0, tmp_path, **how).models
    points, gaps = learning_curve(rows, kept, "smoke", tmp_path, replicates=50, **how)
    assert points["rows"].tolist() == [50, 100, 200]
    assert (points["low"] <= points["nll"]).all() and (points["nll"] <= points["high"]).all()
    p, y = kept["ce"].test, rows.test.outcomes.numpy()
    nll = -np.log(np.where(y == 1, p, 1 - p)).mean()
    np.testing.assert_allclose(points["nll"].iloc[-1], nll, rtol=1e-6)
    assert list(gaps) == ["half", "ensemble"] and gaps["half"].units == 50  # groups of two rows
    np.testing.assert_allclose(gaps["half"].value, points["nll"].iloc[2] - points["nll"].iloc[1])
