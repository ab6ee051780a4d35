import numpy as np
import pandas as pd
import pytest
import torch

from probnb.chapters.cifar10 import __main__ as command
from probnb.chapters.cifar10 import tables, words
from probnb.chapters.cifar10.gradients import on_gradients, oriented_gradients
from probnb.chapters.cifar10.stored import about, read_stored
from probnb.chapters.cifar10.study import across_seeds
from probnb.chapters.cifar10.tasks import load_task, task_settings, train_task
from probnb.data.cifar10 import load_cifar10
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import on_test

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
    with pytest.raises(ValueError, match=r"cells must divide the side.*got 5"):
        oriented_gradients(image, cells=5)


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
    truth = results.epochs.query("fit == 'ce'")["mse_p"].iloc[-1]
    assert across_seeds([table.drop(columns=["k", "n"])]).loc["ce_overfit", "value"] == (
        pytest.approx(truth, abs=1e-6)
    )


def test_pixels_go_to_a_resnet(tmp_path):
    task = load_task("digits", "rule", n=40, size=16, inputs="pixels")
    assert task.splits.train.inputs.shape == (40, 1, 16, 16) and task.votes is None
    results, stored = train_task(task, TINY, tmp_path, "smoke", 0, ["ce"], device="cpu", workers=1)
    assert stored.record["network"] == "ResNet-18" and "k" not in results.predictions


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
    command.main([*arguments, *places, "--workers", "1"])
    patch.undo()
    return folder


def test_what_is_published_of_votes_has_no_votes(faces):
    (stored,) = read_stored(faces / "results")
    assert (stored.data, stored.question, len(stored.runs)) == ("ferplus", "neutral", 2)
    for results in stored.results():
        assert {"y", "p", "k", "n", "group"}.isdisjoint(results.predictions.columns)
        assert results.predictions["ce"].dtype == np.float32
        assert len(results.predictions) == 30
    assert set(stored.ceiling()) == {1, 3, 9}


def test_published_comparison_is_the_one_that_the_votes_give(faces):
    (stored,) = read_stored(faces / "results")
    tables = []
    for run in stored.runs:
        task = load_task("ferplus", "neutral", faces, 60, 48, run.record["seed"])
        kept = pd.read_parquet(run.directory / "predictions.parquet")
        votes = task.votes.loc[kept["id"], ["k", "n"]].reset_index(drop=True)
        tables.append(pd.concat([kept, votes], axis=1))
    expected = across_seeds(tables)
    shown = stored.table()
    columns = ["value", "difference", "low", "high"]
    assert np.allclose(shown[columns], expected[columns], atol=1e-5)
    assert shown["verdict"].tolist() == expected["verdict"].tolist()
    points = stored.models()
    assert set(points["kind"]) == {"method", "epoch"}
    ce = points.query("kind == 'method' and name == 'ce'")["mse_p"].mean()
    assert ce == pytest.approx(expected.loc["ce", "value"], abs=1e-5)
    last = points.query("kind == 'epoch' and unit == 'ce'")["mse_p"].iloc[1]
    overfit = points.query("kind == 'method' and name == 'ce_overfit'")["mse_p"].iloc[0]
    assert last == pytest.approx(overfit, abs=1e-5)


def test_pixels_are_kept_beside_gradients_and_are_told_from_them(faces, monkeypatch):
    few = {"images": 60, "epochs": 1, "finetune_epochs": 1, "finetune_learning_rate": 1e-3}
    monkeypatch.setattr(command, "task_settings", lambda *a: task_settings(*a, width=2, **few))
    arguments = ["ferplus", "neutral", "--data-dir", str(faces), "--inputs", "pixels"]
    places = ["--results", str(faces / "results"), "--runs", str(faces / "runs")]
    rows = ["--methods", "ce, platt", "--seeds", "0", "--workers", "1"]
    command.main([*arguments, *places, *rows])
    pixels, gradients = read_stored(faces / "results")
    assert (pixels.label, gradients.label) == ("FER+, neutral (pixels)", "FER+, neutral")
    assert [len(pixels.runs), len(gradients.runs)] == [1, 2]
    assert list(pixels.table().index) == ["ce", "platt"]
    said = words.say_inputs([pixels, gradients])
    assert said.startswith("FER+, neutral: with cross entropy the ResNet-18 on pixels has MSE_p")
    assert f"{100 * pixels.table().loc['ce', 'value']:.2f}" in said
    assert words.say_inputs([gradients]).startswith("No task")
    assert "of width 2, 24 pixels" in words.say_runs(pixels.runs)
    said = words.say_kl([gradients])
    assert f"KL_p × 100 = {100 * gradients.table('kl_p').loc['ce', 'value']:.2f}" in said
    assert set(tables.stored_table([pixels, gradients], "kl_p").columns.get_level_values(0)) == {
        pixels.label,
        gradients.label,
    }


def test_classes_stand_in_one_table(faces):
    gradients = read_stored(faces / "results")[-1]
    table = tables.classes_table([gradients])
    row = gradients.table().loc["cape_bin"]
    shown = table.loc["neutral", "CaPE (bin) less CE"]
    assert shown.startswith(f"{100 * row['difference']:+.2f} [{100 * row['low']:+.2f}, ")
    assert shown.endswith("*") == (row["verdict"] in ("better", "worse"))
    assert table.loc["neutral", "one other person"] == f"{100 * gradients.ceiling()[1]:.2f}"
    assert tables.say_classes([gradients]) == "Stored of 10 classes: 1."
    said = tables.say_classes([gradients, gradients])
    assert said.startswith("Of 2 classes") and f"in {2 * _beats_one_person(gradients)}." in said
    assert about([gradients], "classes") == [] and about([gradients], "people") == [gradients]


def _beats_one_person(task):
    return int(task.table().loc["ce", "value"] < task.ceiling()[1])


def test_settings_fit_the_data():
    assert task_settings("digits").images == 1_078 and task_settings("digits").size == 16
    assert task_settings("ferplus", "cpu", epochs=5).epochs == 5
    assert task_settings("ferplus", "cpu").learning_rate == 0.01
    small = task_settings("ferplus", "cpu", "pixels")
    assert (small.width, small.size, small.images) == (8, 24, 12_000)
    assert task_settings("ferplus", "paper", "pixels").width == 64


def test_nothing_kept_is_no_error(tmp_path):
    assert read_stored(tmp_path) == []
