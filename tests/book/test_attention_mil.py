"""Gated attention over bags: nothing but the set of instances matters."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from probnb.data import Bags
from probnb.training.models import network
from probnb_book.networks import AttentionMIL

FEATURES = 6


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
def test_the_order_of_instances_changes_nothing(lengths, seed):
    torch.manual_seed(0)
    net = AttentionMIL(FEATURES, hidden=5, attention=4).double().eval()
    x, mask = batch(lengths, seed)
    rng = np.random.default_rng(seed)
    order = torch.as_tensor(rng.permutation(x.shape[1]))  # moves the padding, too
    torch.testing.assert_close(net(x[:, order], mask[:, order]), net(x, mask))


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_padded_equals_unpadded(lengths):
    torch.manual_seed(0)
    net = AttentionMIL(FEATURES, hidden=5, attention=4).double().eval()
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


def test_one_tile_has_all_the_attention(net):
    x, mask = batch([1, 4])
    alone = net.head(net.embed(x[:1, 0]))
    torch.testing.assert_close(net(x, mask)[:1], alone)


def test_repeating_every_tile_changes_nothing(net):
    x, mask = batch([3])
    torch.testing.assert_close(net(x.repeat(1, 4, 1), mask.repeat(1, 4)), net(x, mask))


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


def test_an_empty_bag_is_refused_before_it_reaches_the_network():
    with pytest.raises(ValueError, match="lengths must be at least 1; bag 1 has 0"):
        Bags(np.ones((3, 2), np.float32), [3, 0])


def test_longest_bags():
    x, mask = batch([20_000, 1])
    net = AttentionMIL(FEATURES, hidden=4, attention=2).double().eval()
    with torch.no_grad():
        both = net(x, mask)
        torch.testing.assert_close(both[1:], net(x[1:, :1], mask[1:, :1]))
