"""More than two outcomes: the same loop, losses and targets, of which two are the usual case."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from probnb.data import ProbabilityData, Splits
from probnb.data.base import one_hot
from probnb.experiment.plan import Job
from probnb.experiment.run import run_jobs
from probnb.training.batches import make_fabric
from probnb.training.cape import Calibrated, p_emp_bin, p_emp_cells, p_emp_kernel
from probnb.training.loop import Recipe, fit
from probnb.training.losses import LOSSES
from probnb.training.models import MLP, network
from probnb.training.targets import Observed, Resampled, RunningMean, Smoothed

RNG = np.random.default_rng(0)
P_HAT = RNG.dirichlet([1, 2, 1], 300)
Y = (RNG.random(300)[:, None] > np.cumsum(P_HAT, axis=1)[:, :-1]).sum(axis=1)
RECIPE = Recipe(epochs=3, batch_size=32, learning_rate=0.05)


def both(p):
    return np.stack([1 - np.asarray(p), p], axis=1)


def p_emp_rest(p_hat, y, bins=15, weights=None):
    """One outcome against the rest, as calibration epochs estimate it."""
    return Calibrated("bin", bins=bins).p_emp(p_hat, np.eye(p_hat.shape[1])[y], weights)


def test_one_against_the_rest_by_hand():
    found = p_emp_rest(P_HAT, Y, 6)
    each = np.stack([p_emp_bin(P_HAT[:, k], k == Y, 6) for k in range(3)], axis=1)
    np.testing.assert_allclose(found, each / each.sum(1, keepdims=True))
    np.testing.assert_allclose(found.sum(1), 1)


@pytest.mark.parametrize("digits", [1, 2, 16])  # with many ties, some, none
@pytest.mark.parametrize("bins", [2, 3, 7])
def test_two_outcomes_are_the_binary_case(digits, bins):
    """Also where a middle rank lies on a cut, which from the other side rounds the other way."""
    rng = np.random.default_rng(digits * bins)
    for n in (3, 4, 30, 90):
        p, w = rng.random(n).round(digits), rng.integers(1, 4, n)
        y = (rng.random(n) < p).astype(int)
        expected = p_emp_bin(p, y, bins)
        np.testing.assert_array_equal(p_emp_rest(both(p), y, bins)[:, 1], expected)
        np.testing.assert_array_equal(p_emp_cells(both(p), y, bins)[:, 1], expected)
        expected = p_emp_bin(p, y, bins, w)
        np.testing.assert_array_equal(p_emp_rest(both(p), y, bins, w)[:, 1], expected)
        np.testing.assert_array_equal(p_emp_cells(both(p), y, bins, w)[:, 1], expected)


def test_cells_hold_their_own_mean_outcome():
    found = p_emp_cells(P_HAT, Y, 4)
    np.testing.assert_allclose(found.sum(1), 1)
    np.testing.assert_allclose(found.mean(0), np.bincount(Y, minlength=3) / 300)
    cuts = [np.quantile(p, [0.25, 0.5, 0.75]) for p in P_HAT.T]
    cell = [tuple(int((p[k] >= cuts[k]).sum()) for k in range(3)) for p in P_HAT]
    for row in range(0, 300, 37):
        same = [i for i in range(300) if cell[i] == cell[row]]
        np.testing.assert_allclose(found[row], np.eye(3)[Y[same]].mean(0))
    np.testing.assert_allclose(p_emp_cells(P_HAT, Y, 1), np.tile(found.mean(0), (300, 1)))


def test_weights_are_repeated_rows():
    w = RNG.integers(1, 4, 300)
    rows = np.repeat(np.arange(300), w)
    for estimate in (p_emp_rest, p_emp_cells):
        np.testing.assert_allclose(
            estimate(P_HAT, Y, 3, w)[rows], estimate(P_HAT[rows], Y[rows], 3), atol=1e-12
        )


def table(n, seed, classes=2):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3)).astype(np.float32)
    p = 1 / (1 + np.exp(-2 * x[:, 0]))
    y = (rng.random(n) < p).astype(int)
    p = both(p)
    if classes == 3:  # outcome 2 takes its share of both
        y, p = np.where(rng.random(n) < 0.3, 2, y), np.column_stack([0.7 * p, np.full(n, 0.3)])
    return ProbabilityData(torch.tensor(x), one_hot(y, classes), p, weights=rng.random(n) + 0.5)


def data(classes):
    parts = [table(n, seed, classes) for seed, n in enumerate((120, 60, 50))]
    return Splits(*parts, source="a table")


def model(classes, seed=0):
    torch.manual_seed(seed)
    return MLP(3, (8,), num_classes=classes)


def trained(splits, recipe=RECIPE, **options):
    return fit(
        model(splits.train.classes),
        splits,
        recipe,
        fabric=make_fabric("cpu"),
        on_epoch=lambda row: None,
        **options,
    )


def test_two_columns_are_the_usual_vector():
    part = table(20, 0)
    assert part.outcomes.shape == (20,) and part.classes == 2 and part.probabilities.shape == (20,)
    assert table(20, 0, 3).outcomes.shape == (20, 3)
    assert table(20, 0, 3).take([4, 2]).outcomes.shape == (2, 3)
    with pytest.raises(ValueError, match="outcomes must hold probabilities that sum to 1"):
        replace(part, outcomes=np.ones((20, 3)))
    with pytest.raises(ValueError, match="inputs and outcomes of one shape"):
        Splits(part, part, table(20, 0, 3), "x")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("targets", [Calibrated("bin", 2, bins=5)])
def test_two_outcomes_train_as_ever_whichever_shape_their_targets_have(loss, targets):
    """Bit for bit: a target of two columns is the target of outcome 1."""
    splits = data(2)

    def wide(epoch, data, predict, seed):
        soft = targets(epoch, data, predict, seed)
        return torch.stack([1 - soft, soft], dim=1)

    one = trained(splits, loss=LOSSES[loss](), targets=targets)
    other = trained(splits, loss=LOSSES[loss](), targets=wide)
    for name, value in one.logits.items():
        assert torch.equal(value, other.logits[name])


@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        ("ce", Observed()),
        ("focal", Resampled()),
        ("entropy", Smoothed(0.1)),
        ("mmce", Calibrated("bin", 1, bins=5)),
        ("ce", Calibrated("kernel", 1, neighbours=30)),
        ("focal", Calibrated("cells", 1, bins=3)),
    ],
)
def test_three_outcomes_learn_with_every_loss_and_schedule(loss, targets):
    splits = data(3)
    result = trained(splits, replace(RECIPE, epochs=12), loss=LOSSES[loss](), targets=targets)
    assert result.logits["best_test"].shape == (50, 3)
    assert result.val_ce < result.history[0]["val_ce"]
    assert {"mse_p", "kl_p", "ece", "brier", "nll"} <= set(result.history[-1])
    z, y, w = result.logits["best_val"].double(), splits.val.outcomes, splits.val.weights
    nll = -(y * z.log_softmax(1)).sum(1)
    assert result.val_ce == pytest.approx(float((w * nll).sum() / w.sum()), rel=1e-6)


def test_fresh_outcomes_follow_their_probabilities():
    part = table(120, 0, 3)
    drawn = torch.stack([Resampled()(t, part, None, 0) for t in range(800)]).mean(0)
    assert (drawn - part.probabilities).abs().max() < 5 * 0.5 / np.sqrt(800)


def test_a_calibration_epoch_trains_on_p_emp():
    part = data(3).train
    y, w = part.outcomes.numpy(), part.weights.numpy()
    p = np.random.default_rng(1).dirichlet([1, 1, 1], 120)
    schedule = Calibrated("bin", every=1, bins=4)
    found = schedule(1, part, lambda: torch.tensor(p), 0).numpy()
    np.testing.assert_allclose(found, p_emp_rest(p, y.argmax(1), 4, w), atol=1e-6)
    found = Calibrated("kernel", 1, neighbours=20)(1, part, lambda: torch.tensor(p), 0).numpy()
    each = [p_emp_kernel(p[:, k], y[:, k], 20, weights=w) for k in range(3)]
    np.testing.assert_allclose(found, np.transpose(each) / np.sum(each, 0)[:, None], atol=1e-6)


def test_jobs_of_three_outcomes_are_kept_and_resumed_as_others(tmp_path):
    net = network("mlp", hidden=(8,), num_classes=3)
    start = Job(net, RECIPE)
    tuned = Job(net, RECIPE, targets=Calibrated("cells", bins=3), start=start)
    again = Job(net, RECIPE, targets=RunningMean(), start=start)
    fits = run_jobs([tuned, again], data(3), tmp_path, "cpu", 1, progress=False)
    twice = run_jobs([tuned, again], data(3), tmp_path, "cpu", 1, progress=False)
    for job in (tuned, again):
        assert torch.equal(fits[job].logits["last_test"], twice[job].logits["last_test"])
