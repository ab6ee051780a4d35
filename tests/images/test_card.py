"""The card: numbers of the report, limits that follow from them, no name of a small group."""

import numpy as np
import pandas as pd
import pytest
import torch

from probnb.calibrators import PlattScaling
from probnb.images.card import FEW, model_card
from probnb.images.model import KeptModel, load_model, save_model
from probnb.report import check_table, make_report
from probnb.training.models import network

MLP = network("mlp", hidden=(4,))
WEIGHTS = MLP.build(torch.zeros(2, 3)).state_dict()
RECORD = {"label": "Platt scaling", "seed": 3, "device": "an abacus", "epochs": 9}


def made(**settings):
    return KeptModel(MLP, (WEIGHTS,), 3, record=RECORD, **settings)


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    n = 600
    p = rng.uniform(0.1, 0.9, n)
    group = np.where(np.arange(n) < 250, "north|<b>", np.where(np.arange(n) < 590, "south", "Ms X"))
    y = rng.random(n) < np.where(group == "south", np.clip(p - 0.2, 0, 1), p)
    frame = {"y": y.astype(int), "Platt scaling": p, "CE early-stop": p**2, "group": group}
    return make_report(check_table(pd.DataFrame(frame)), replicates=30)


def section(card, name):
    return card.split(f"\n## {name}\n")[1].split("\n## ")[0].strip()


def test_numbers_are_those_of_the_report(report):
    choice = pd.DataFrame({"nll": [0.51234], "chosen": [True]}, index=["Platt scaling"])
    card = model_card(made(), "- train: 180 images", choice, report, "papermill x")
    assert section(card, "Data") == "- train: 180 images"
    assert "| Platt scaling | 0.5123 | True |" in section(card, "How it was chosen")
    scores, held = section(card, "Scores"), report.tables["metrics"]
    brier = [f"{held.loc[part, 'Platt scaling']['brier']:.4f}" for part in ("value", "low", "high")]
    assert "| Brier | {} [{}, {}] |".format(*brier) in scores and "On 600 test rows" in scores
    assert "CE early-stop" not in scores + section(card, "Calibration")
    assert section(card, "To make it again") == "```\npapermill x\n```"
    facts = section(card, "Network and training")
    assert "- seed: 3" in facts and "- device: an abacus" in facts and "epochs" not in facts
    assert f"- torch: {torch.__version__}" in section(card, "Versions")


def test_limits_follow_from_the_rows_and_small_groups_are_not_named(report):
    card = model_card(made(), report=report)
    limits, calibration = section(card, "Where not to use it"), section(card, "Calibration")
    assert f"than in the test rows, {report.table.y.mean():.1%}" in limits
    assert "- Single groups, 1 of 3, that are not judged: fewer than 50 test rows" in limits
    assert "- Groups where it was off: south." in limits
    assert r"| north\|\<b> | 250 |" in calibration and "| south | 340 |" in calibration
    assert "Ms X" not in card and FEW == 50
    width = {line.replace(r"\|", "").count("|") for line in calibration.splitlines()[-4:]}
    assert width == {5}


def test_a_model_alone_has_a_card_that_others_may_add_to(tmp_path):
    model = made(calibrator=PlattScaling().fit([-1.0, -1, 1, 1], [0, 1, 0, 1]), size=32)
    folder = save_model(tmp_path / "m", model)
    card = folder / "MODEL_CARD.md"
    text = card.read_text()
    heads = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert heads == ["Network and training", "Where not to use it", "Versions"]
    assert "input: 32 × 32 pixels, 3 channels, crop" in text and "Platt scaling" in text
    card.write_text(text + "\nNot for night-time.\n")
    load_model(folder)
    save_model(folder, model, "mine")
    assert card.read_text() == "mine"
    card.unlink()
    load_model(folder)
