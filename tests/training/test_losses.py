import numpy as np
import pytest
import torch
from torch.nn import functional as F

from probnb.training.losses import (
    MMCE,
    CrossEntropy,
    EntropyRegularised,
    Focal,
    check_targets,
)

ALL = [CrossEntropy(), Focal(0.5), Focal(2.0), EntropyRegularised(1.0), MMCE(3.0)]


def draw(n=64, seed=0, soft=False):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    targets = torch.rand(n, generator=generator, dtype=torch.float64)
    return logits, targets if soft else (targets < 0.5).double()


def test_cross_entropy_is_torchs_on_outcomes_and_linear_in_the_target():
    logits, y = draw()
    torch.testing.assert_close(CrossEntropy()(logits, y), F.cross_entropy(logits, y.long()))
    _, p = draw(seed=1, soft=True)
    mixed = (y + 2 * p) / 3
    torch.testing.assert_close(
        CrossEntropy()(logits, mixed),
        (CrossEntropy()(logits, y) + 2 * CrossEntropy()(logits, p)) / 3,
    )


def test_focal_by_hand_and_at_zero():
    logits, y = draw()
    torch.testing.assert_close(Focal(0.0)(logits, y), CrossEntropy()(logits, y))
    p = logits.softmax(1).gather(1, y.long()[:, None])[:, 0]
    torch.testing.assert_close(Focal(2.0)(logits, y), -((1 - p) ** 2 * p.log()).mean())


def test_entropy_by_hand():
    logits, y = draw()
    p = logits.softmax(1)
    entropy = -(p * p.log()).sum(1).mean()
    torch.testing.assert_close(
        EntropyRegularised(0.3)(logits, y), F.cross_entropy(logits, y.long()) - 0.3 * entropy
    )


def test_mmce_by_hand():
    logits, y = draw(n=17)
    p = logits.softmax(1).numpy()
    r, guess = p.max(1), p.argmax(1)
    c = guess == y.numpy()
    total = sum(
        (c[i] - r[i]) * (c[j] - r[j]) * np.exp(-abs(r[i] - r[j]) / 0.4)
        for i in range(17)
        for j in range(17)
    )
    penalty = float(MMCE(1.0)(logits, y) - CrossEntropy()(logits, y))
    assert penalty == pytest.approx(np.sqrt(total / 17**2), abs=2e-6)


@pytest.mark.parametrize("loss", ALL, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_finite_at_extreme_logits(loss, dtype):
    logits = torch.tensor(
        [[100, -100], [-100, 100], [100, 100], [0, 0], [1e4, -1e4]], dtype=dtype, requires_grad=True
    )
    for y in ([0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [0.5] * 5):
        value = loss(logits, torch.tensor(y, dtype=dtype))
        (gradient,) = torch.autograd.grad(value, logits)
        assert torch.isfinite(value) and torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("logits", "y"),
    [
        ([[9.0, -9.0]] * 4, [0.0] * 4),  # all right, identical
        ([[9.0, -9.0]] * 4, [1.0] * 4),  # all wrong, identical
        ([[3.0, -3.0], [-2.0, 2.0]], [0.0, 1.0]),
        ([[0.0, 0.0]] * 4, [0.0, 1.0, 0.0, 1.0]),  # calibrated: the penalty is 0
        ([[1.0, 0.0]], [1.0]),  # a single row
        ([[200.0, -200.0]] * 2, [0.0, 0.0]),  # certain and right: 0 under the root
    ],
)
def test_mmce_degenerate_batches(logits, y):
    logits = torch.tensor(logits, requires_grad=True)
    value = MMCE(3.0)(logits, torch.tensor(y))
    (gradient,) = torch.autograd.grad(value, logits)
    assert torch.isfinite(value) and torch.isfinite(gradient).all()
    assert value >= CrossEntropy()(logits, torch.tensor(y)) - 1e-6


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_gradients_match_finite_differences(loss):
    logits, y = draw(n=6, soft=True)
    assert torch.autograd.gradcheck(lambda x: loss(x, y), logits.requires_grad_())


@pytest.mark.parametrize("loss", [CrossEntropy(), EntropyRegularised(0.0), Focal(0.0), MMCE(0.0)])
def test_minimum_of_a_proper_loss_is_the_probability(loss):
    q = np.linspace(0.01, 0.99, 99)
    logits = torch.tensor(np.stack([np.log(1 - q), np.log(q)], 1))
    y = torch.tensor([1.0] * 3 + [0.0] * 7, dtype=torch.float64)
    values = [float(loss(row.expand(10, 2), y)) for row in logits]
    assert q[np.argmin(values)] == pytest.approx(0.3)


def test_targets_beyond_certainty_are_for_cross_entropy_that_was_told_so():
    logits, _ = draw()
    t = torch.linspace(-1, 2, len(logits), dtype=torch.float64)
    log_p = logits.log_softmax(1)
    expected = -((1 - t) * log_p[:, 0] + t * log_p[:, 1]).mean()
    torch.testing.assert_close(CrossEntropy(1.0)(logits, t), expected)
    weights = torch.rand(len(t), dtype=torch.float64)
    weighted = -weights @ ((1 - t) * log_p[:, 0] + t * log_p[:, 1]) / weights.sum()
    torch.testing.assert_close(CrossEntropy(1.0)(logits, t, weights), weighted)
    for loss in ALL:
        with pytest.raises(ValueError, match=r"targets must be probabilities in \[0, 1\]; got -1"):
            check_targets(t, loss)
        with pytest.raises(ValueError, match="targets must be probabilities"):
            loss(logits, t)
        with pytest.raises(ValueError, match="got nan"):
            check_targets(t * torch.nan, loss)
        check_targets(t.clamp(0, 1), loss)
    with pytest.raises(ValueError, match=r"targets must lie at most 0.5 beyond those in .* got -1"):
        check_targets(t, CrossEntropy(0.5))
    check_targets(t, CrossEntropy(1.0))
    with pytest.raises(ValueError, match="beyond must be"):
        CrossEntropy(2.0)
