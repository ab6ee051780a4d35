from dataclasses import replace

import numpy as np
import pytest
import torch

from probnb.data import ProbabilityData, Splits
from probnb.empirical import p_emp_bin
from probnb.training.batches import make_fabric
from probnb.training.loop import Recipe, fit
from probnb.training.models import MLP
from probnb.training.several import fit_several, one_hot, p_emp_cells, p_emp_rest

RNG = np.random.default_rng(0)
P_HAT = RNG.dirichlet([1, 2, 1], 300)
Y = (RNG.random(300)[:, None] > np.cumsum(P_HAT, axis=1)[:, :-1]).sum(axis=1)
RECIPE = Recipe(epochs=3, batch_size=32, learning_rate=0.05)


def test_one_against_the_rest_by_hand():
    found = p_emp_rest(P_HAT, Y, 6)
    each = np.stack([p_emp_bin(P_HAT[:, k], k == Y, 6) for k in range(3)], axis=1)
    np.testing.assert_allclose(found, each / each.sum(1, keepdims=True))
    np.testing.assert_allclose(found.sum(1), 1)


def test_two_outcomes_are_calibrated_as_the_paper_does():
    p = RNG.random(90)
    y = (RNG.random(90) < p).astype(int)
    found = p_emp_rest(np.stack([1 - p, p], 1), y, 9)
    np.testing.assert_allclose(found[:, 1], p_emp_bin(p, y, 9))


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


def table(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3)).astype(np.float32)
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(int)
    return ProbabilityData(torch.tensor(x), y), y


@pytest.fixture(scope="module")
def data():
    parts = {k: table(n, s) for k, n, s in (("train", 120, 0), ("val", 60, 1), ("test", 50, 2))}
    splits = Splits(*(part for part, _ in parts.values()), source="a table")
    return splits, {k: y for k, (_, y) in parts.items()}


def model(outcomes=2, seed=0):
    torch.manual_seed(seed)
    return MLP(3, (8,), num_classes=outcomes)


def test_two_outcomes_train_as_in_the_papers_loop(data):
    splits, y = data
    one = fit(model(), splits, RECIPE, fabric=make_fabric("cpu"), on_epoch=lambda row: None)
    other = fit_several(model(), splits, y, RECIPE, fabric=make_fabric("cpu"))
    assert one.best_epoch == other.best_epoch
    for name, value in one.logits.items():
        torch.testing.assert_close(value, other.logits[name])
    assert [r["val_ce"] for r in one.history] == pytest.approx([r["val_ce"] for r in other.history])


def test_targets_of_an_epoch_are_trained_on(data):
    splits, y = data
    seen = []

    def targets(epoch, predict):
        seen.append((epoch, predict().shape))
        return p_emp_rest(predict(), y["train"], 5) if epoch == 2 else None

    calibrated = fit_several(model(3), splits, y, RECIPE, targets, make_fabric("cpu"))
    plain = fit_several(model(3), splits, y, RECIPE, fabric=make_fabric("cpu"))
    assert seen == [(t, (120, 3)) for t in (1, 2, 3)]
    assert [row["calibration"] for row in calibrated.history] == [0, 0, 1, 0]
    assert calibrated.history[1]["val_ce"] == plain.history[1]["val_ce"]
    assert calibrated.history[2]["val_ce"] != plain.history[2]["val_ce"]


def test_the_start_is_a_candidate(data):
    splits, y = data
    wild = replace(RECIPE, learning_rate=5.0, epochs=1)
    start = fit_several(model(3), splits, y, RECIPE, fabric=make_fabric("cpu"))
    again = model(3)
    again.load_state_dict(start.weights)
    kept = fit_several(again, splits, y, wild, None, make_fabric("cpu"), keep_start=True)
    assert kept.best_epoch == 0 and kept.val_ce == start.val_ce


def test_what_is_not_for_several_is_refused(data):
    splits, y = data
    for settings in ({"adversarial": 0.1}, {"averaging": 0.9}):
        with pytest.raises(ValueError, match="adversarial=0 and averaging=0"):
            fit_several(model(3), splits, y, replace(RECIPE, **settings))
    assert one_hot([2, 0], 3).tolist() == [[0, 0, 1], [1, 0, 0]]
