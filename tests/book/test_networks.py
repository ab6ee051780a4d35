"""Networks of single tasks: bags of tiles, frames with a box, maps of rain."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probnb.data import Bags
from probnb.training.models import network
from probnb_book.networks import AttentionMIL, DashNet, RainNet

FEATURES = 6

# Bags: nothing but the set of instances matters.


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return AttentionMIL(FEATURES, hidden=5, attention=4).double().eval()


def batch(lengths, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(sum(lengths), FEATURES)).astype(np.float32)
    x, mask = Bags(values, lengths).batch(np.arange(len(lengths)))
    return x.double(), mask


def test_paper_size():
    net = network(AttentionMIL).build(torch.empty(0, 1536))
    assert net.embed[0].weight.shape == (512, 1536)
    assert net(torch.zeros(2, 3, 1536), torch.ones(2, 3, dtype=torch.bool)).shape == (2, 2)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 99))
def test_the_order_of_instances_changes_nothing(net, lengths, seed):
    x, mask = batch(lengths, seed)
    rng = np.random.default_rng(seed)
    order = torch.as_tensor(rng.permutation(x.shape[1]))  # moves the padding, too
    torch.testing.assert_close(net(x[:, order], mask[:, order]), net(x, mask))


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_padded_equals_unpadded(net, lengths):
    x, mask = batch(lengths)
    alone = [
        net(x[i : i + 1, :n], torch.ones(1, n, dtype=torch.bool)) for i, n in enumerate(lengths)
    ]
    torch.testing.assert_close(net(x, mask), torch.cat(alone))


def test_what_stands_in_the_padding_does_not_matter(net):
    x, mask = batch([2, 7, 1])
    other = torch.where(mask[..., None], x, torch.full_like(x, 1e3))
    torch.testing.assert_close(net(other, mask), net(x, mask))
    other.requires_grad_()
    net(other, mask).sum().backward()
    assert (other.grad[~mask] == 0).all()
    assert (other.grad[mask] != 0).any()


def test_gated_attention_by_hand(net):
    x, mask = batch([3])
    h = net.embed(x[0])
    gated = torch.tanh(net.value(h)) * torch.sigmoid(net.gate(h))
    weight = torch.exp(gated @ net.score.weight[0])
    expected = net.head((weight / weight.sum()) @ h)
    torch.testing.assert_close(net(x, mask)[0], expected, atol=1e-6, rtol=1e-6)


def test_large_scores_stay_finite(net):
    x, mask = batch([2, 5])
    assert torch.isfinite(net(1e6 * x, mask)).all()


# Frames of a camera, with a box.


def scenes(n=4, size=64):
    """Random frames with one box of 8 x 8 pixels in the upper left, moving right."""
    x = torch.randn(n, 12, size, size, generator=torch.Generator().manual_seed(0))
    x[:, 9:] = 0
    for frame in range(3):  # the latest first
        x[:, 9 + frame, 8:16, 10 - frame : 18 - frame] = 1
    return x


def test_two_logits_and_every_part_learns():
    net = network(DashNet, width=4).build(torch.zeros(2, 12, 64, 64))
    x = scenes()
    x[2:, 9:, 16:24, :24] = x[2:, 9:, 8:16, :24]  # boxes of two heights
    logits = net(x)
    assert logits.shape == (4, 2)
    (logits[:, 1] - logits[:, 0]).square().sum().backward()
    for layer in (net.body[0][0], net.body[2][0], net.norm, net.head[0], net.head[2]):
        assert layer.weight.grad.abs().sum() > 0
    with pytest.raises(ValueError, match="width must be"):
        DashNet(0)


def test_what_is_far_from_the_box_says_nothing():
    torch.manual_seed(0)
    net, x = DashNet(4).eval(), scenes()
    sky = x.clone()
    sky[:, :9, 40:, 40:] += 5
    lamp = x.clone()
    lamp[:, :3, 8:16, 10:18] += 5
    with torch.no_grad():
        torch.testing.assert_close(net(sky), net(x))
        assert (net(lamp) - net(x)).abs().min() > 1e-4


def test_size_place_and_motion_of_the_box_are_read_off():
    places = DashNet(4)._places(scenes()[:1, 9:])[0]
    across, down, wide, high, there = places[:5]
    step = 2 / 63  # a pixel, where the picture goes from -1 to 1
    torch.testing.assert_close(across, torch.tensor(13.5 * step - 1))
    torch.testing.assert_close(down, torch.tensor(11.5 * step - 1))
    torch.testing.assert_close(wide, torch.tensor(8.1).log())
    assert wide == high and there == 1
    moved = places[6:].reshape(5, 2)
    torch.testing.assert_close(moved[0], torch.full((2,), 10 * step), rtol=1e-4, atol=1e-5)
    assert moved[1:].abs().max() < 1e-5


# Maps of rain.


def test_two_logits_for_maps_of_any_size():
    for size in (8, 16, 33):
        assert RainNet(4)(torch.randn(3, 3, size, size)).shape == (3, 2)


def test_the_first_layer_sees_the_last_map_and_its_changes():
    net, seen = RainNet(4).eval(), []
    net.body.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = torch.randn(2, 3, 8, 8)
    net(x)
    assert torch.equal(seen[0][:, 0], x[:, 2])
    assert torch.allclose(seen[0][:, 1], 3 * (x[:, 2] - x[:, 1]))
    assert torch.allclose(seen[0][:, 2], 3 * (x[:, 1] - x[:, 0]))


def test_turning_all_maps_turns_what_the_statistics_see():
    net = RainNet(4).eval()
    with torch.no_grad():
        net.head.weight[:, :8] = 0  # area statistics alone
        x = torch.randn(2, 3, 8, 8)
        assert torch.allclose(net(x), net(x.flip(-1).transpose(-1, -2)), atol=1e-5)


def test_it_is_built_from_a_specification():
    built = network(RainNet, width=6).build(torch.zeros(2, 3, 8, 8))
    assert built.head.in_features == 12 + 6
    with pytest.raises(ValueError, match="width must be"):
        RainNet(0)


def test_every_weight_learns():
    net = network(RainNet, width=4).build(torch.zeros(2, 3, 8, 8))
    net(torch.randn(4, 3, 8, 8)).softmax(1)[:, 1].sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.head.parameters())
    assert net.body[0][0].weight.grad.abs().sum() > 0
