import numpy as np
import pytest
import torch

from probnb.chapters.results.displaced import (
    REPAIRS,
    _estimate_statistics,
    displaced_epochs,
    displaced_figure,
    displaced_sentence,
    repair_table,
)
from probnb.data.faces import load_faces
from probnb.training.loop import Recipe
from probnb.training.models import network


@pytest.fixture(scope="module")
def splits():
    return load_faces("linear", n=(96, 48, 64), size=16, seed=0)


@pytest.fixture(scope="module")
def table(splits, tmp_path_factory):
    recipe = Recipe(epochs=4, batch_size=32, learning_rate=0.05)
    scratch = tmp_path_factory.mktemp("displaced") / "state.safetensors"
    found = displaced_epochs(
        splits, network("resnet18", width=8, stem="small"), recipe, scratch, every=2
    )
    assert not scratch.exists()
    return found.assign(seed=0)


def test_every_second_epoch_is_repaired_in_every_way(table):
    assert table.groupby("epoch")["repair"].apply(list).to_dict() == {
        2: list(REPAIRS),
        4: list(REPAIRS),
    }
    assert np.isfinite(table.drop(columns="repair").to_numpy(float)).all()


def test_maps_keep_the_order_of_the_rows(table):
    auc = table.pivot(index="epoch", columns="repair", values="auc")
    np.testing.assert_allclose(auc["intercept"], auc["none"], atol=1e-12)


def test_shift_is_that_of_the_network_itself(table):
    """The validation shift is the history's, from before any repair."""
    assert table.groupby("epoch")["val_shift"].nunique().eq(1).all()
    assert table.groupby("epoch")["shift"].nunique().gt(1).all()


def test_statistics_are_the_average_over_the_data(splits):
    layer = torch.nn.BatchNorm2d(3)
    model = torch.nn.Sequential(layer, torch.nn.Flatten())
    layer.running_mean += 7
    _estimate_statistics(model, splits.train, 32)
    x = splits.train.batch(torch.arange(len(splits.train)))[0]
    torch.testing.assert_close(layer.running_mean, x.mean((0, 2, 3)), atol=1e-5, rtol=1e-4)


def test_displaced_epochs_are_told_apart(table):
    table = table.assign(val_shift=np.where(table["epoch"] == 2, -0.2, 0.01))
    shown = repair_table(table)
    assert list(shown.columns) == ["displaced epochs (1)", "other epochs (1)"]
    first = table.query("epoch == 2 and repair == 'platt'")["mse_p"].item()
    assert shown.loc["Platt scaling", "displaced epochs (1)"] == f"{100 * first:.2f}"
    said = displaced_sentence(table)
    assert "1 epochs are off by more than 0.05" in said and "epoch 2 (-0.200)" in said
    assert len(displaced_figure(table)) == 2
    assert displaced_sentence(None) == "" and displaced_figure(None) is None
    assert "not run yet" in repair_table(None).to_string()
