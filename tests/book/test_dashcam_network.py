import pytest
import torch

from probnb.training.models import network
from probnb_book.networks import DashNet


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
