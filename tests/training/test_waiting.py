"""A step of training on a GPU does not wait for the host; shown without one.

Tensors on "cuda" can be made up: they have a shape and a device, and no numbers. Whatever asks for
a number, as a step that waits does, ends in an error, and so does an operation on tensors of two
devices.
"""

from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from probnb.data.base import Brightness, Mirror, ProbabilityData, Shift
from probnb.training import loop
from probnb.training.losses import LOSSES
from probnb.training.models import network
from probnb_book.networks import DashNet, RainNet

SIZE, ROWS, BATCH = 200, 10, 4
IMAGES = {
    "paper": (network("resnet18", width=64, stem="large"), 3),
    "small": (network("resnet18", width=8, stem="small"), 3),
    "rain": (network(RainNet), 3),
    "dashcam": (network(DashNet), 12),
}


class Data:
    """What the loop asks of images on a device, made up."""

    classes, groups, weights = 2, None, None
    batch, order, draws = ProbabilityData.batch, ProbabilityData.order, ProbabilityData.draws

    def __init__(self, channels, weights):
        self.inputs = torch.empty(ROWS, channels, SIZE, SIZE, dtype=torch.uint8)
        self.outcomes = torch.empty(ROWS)
        self.weights = torch.empty(ROWS) if weights else None
        self.augment = (Mirror(), Shift(), Brightness())
        self.scale = torch.empty(channels, 1, 1), torch.empty(channels, 1, 1)

    def __len__(self):
        return ROWS


def one_epoch(kind, loss, monkeypatch, weights=False):
    """Run all of an epoch but its gradients, and what it asks once: targets, and the mean loss."""
    monkeypatch.setattr(loop, "check_targets", lambda soft, loss: None)
    monkeypatch.setattr(loop, "float", lambda value: value, raising=False)
    monkeypatch.setattr(torch, "isfinite", lambda value: True)
    losses = []
    fabric = SimpleNamespace(
        device=torch.device("cuda"), world_size=1, global_rank=0, backward=losses.append
    )
    optimizer = SimpleNamespace(zero_grad=lambda **_: None, step=lambda: None)
    wanted, channels = IMAGES[kind]
    with FakeTensorMode(), torch.device("cuda"):
        data = Data(channels, weights)
        model = wanted.build(data.inputs)
        recipe = loop.Recipe(batch_size=BATCH)
        args = fabric, model, optimizer, data, torch.empty(ROWS), loss, recipe, 1
        mean = loop.train_one_epoch(*args)
        losses.append(mean)
        assert all(value.device.type == "cuda" for value in losses)
    return losses


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", IMAGES)
def test_no_step_asks_for_a_number(kind, name, monkeypatch):
    assert len(one_epoch(kind, LOSSES[name](), monkeypatch)) == 4  # of ten rows in fours, and all


@pytest.mark.parametrize("name", LOSSES)
def test_nor_does_one_of_weighted_rows(name, monkeypatch):
    # which batches have weight at all is asked once an epoch: of that, numbers there must be
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: torch.ones(ROWS, device="cpu") > 0)
    monkeypatch.setattr(torch.Tensor, "any", lambda self: True)
    assert len(one_epoch("small", LOSSES[name](), monkeypatch, weights=True)) == 4


def test_the_test_would_see_a_step_that_waits(monkeypatch):
    def waits(logits, targets, weights=None):
        return logits.mean() if (targets > 1).any() else logits.sum()

    with pytest.raises(DataDependentOutputException):
        one_epoch("small", waits, monkeypatch)

    def elsewhere(logits, targets, weights=None):
        return (logits * torch.ones(len(logits), 2, device="cpu")).sum()

    with pytest.raises(RuntimeError, match="device"):
        one_epoch("small", elsewhere, monkeypatch)
