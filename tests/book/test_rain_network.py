import pytest
import torch

from probnb.training.models import network
from probnb_book.networks import RainNet


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
