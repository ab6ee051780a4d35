"""Logistic regression: scikit-learn's optimum, soft targets, weights, and the path of penalties."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from probnb.data import ProbabilityData, Splits
from probnb.data.base import Mirror
from probnb.methods import Recipe
from probnb.pretrained.logistic import CONVEX, PENALTIES, fit_logistic
from probnb.training.cape import Calibrated
from probnb.training.loop import fit
from probnb.training.losses import CrossEntropy, Focal
from probnb.training.models import network
from probnb.training.targets import Resampled


def made(n, seed, features=30, weights=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, features)) * np.linspace(0.1, 3, features)
    p = 1 / (1 + np.exp(-x[:, -1] + 1))
    w = rng.integers(0, 3, n).astype(float) if weights else None
    return ProbabilityData(torch.tensor(x, dtype=torch.float32), rng.random(n) < p, p, weights=w)


def trained(splits, targets=None):
    model = network("mlp", hidden=()).build(splits.train.inputs)
    return fit_logistic(model, splits, targets=targets)


@pytest.mark.parametrize("weights", [False, True])
def test_every_penalty_has_the_optimum_of_scikit_learn(weights):
    splits = Splits(made(300, 0, weights=weights), made(200, 1), made(200, 2), "made")
    fitted, train = trained(splits), splits.train
    w = train.weights.numpy() if weights else np.ones(300)
    penalty = fitted.history[fitted.best_epoch]["penalty"]
    peer = LogisticRegression(C=1 / (penalty * w.sum()), tol=1e-8, max_iter=1000)
    peer.fit(train.inputs.numpy(), train.outcomes.numpy(), sample_weight=w)
    ours = fitted.logits["best_test"].diff(dim=1)[:, 0].numpy()
    np.testing.assert_allclose(ours, peer.decision_function(splits.test.inputs), atol=2e-3)
    lowest = min(fitted.history[1:], key=lambda row: row["val_ce"])
    assert penalty == lowest["penalty"] and fitted.val_ce == lowest["val_ce"]
    assert [row["penalty"] for row in fitted.history[1:]] == [*PENALTIES[: len(fitted.history) - 1]]


def test_labels_drawn_without_end_are_their_probabilities():
    splits = Splits(made(300, 0), made(200, 1), made(200, 2), "made")
    many = replace(
        splits,
        train=ProbabilityData(
            splits.train.inputs.repeat(2, 1),
            np.r_[np.ones(300), np.zeros(300)],
            weights=np.r_[splits.train.probabilities, 1 - splits.train.probabilities],
        ),
    )
    drawn, both = trained(splits, Resampled()), trained(many)
    torch.testing.assert_close(
        drawn.logits["best_test"], both.logits["best_test"], atol=1e-3, rtol=0
    )


def test_only_features_and_one_layer():
    splits = Splits(*(made(20, seed, features=3) for seed in range(3)), "made")
    with pytest.raises(ValueError, match="one layer"):
        fit_logistic(network("mlp", hidden=(4,)).build(splits.train.inputs), splits)
    turned = replace(splits, train=replace(splits.train, augment=(Mirror(),)))
    with pytest.raises(ValueError, match="as they are"):
        trained(turned)
    one_sided = replace(splits, train=replace(splits.train, outcomes=0 * splits.train.outcomes))
    with pytest.raises(ValueError, match="training outcomes must be of both kinds; all are 0"):
        trained(one_sided)


class Looks:
    """Targets of one's own that look at what the network predicts."""

    def __call__(self, epoch, data, predict, seed):
        return predict()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("loss", {"loss": Focal(2.0)}),
        ("loss", {"loss": CrossEntropy(0.5)}),  # targets beyond [0, 1]
        ("checkpoint", {"checkpoint": "state"}),
        ("keep_start", {"keep_start": True}),
        ("targets", {"targets": Calibrated("bin")}),
        ("targets", {"targets": Looks()}),
        ("probabilities", {"targets": Resampled()}),
        ("recipe.solver", {"recipe": Recipe()}),
    ],
)
def test_what_a_convex_fit_does_not_use_is_refused(name, given):
    train = replace(made(50, 0), probabilities=None)
    splits = Splits(train, made(50, 1), made(50, 2), "made")
    model = network("mlp", hidden=()).build(train.inputs)
    with pytest.raises(ValueError, match=name):
        fit_logistic(model, splits, **given)
    assert fit_logistic(model, splits, loss=CrossEntropy()).history


OTHERS = {"averaging": 0.9, "adversarial": 0.1, "epochs": 5, "seed": 1}
OTHERS |= {"schedule": "cosine", "patience": 3}


@pytest.mark.parametrize("name", OTHERS)
def test_a_convex_recipe_has_nothing_else(name):
    with pytest.raises(ValueError, match=f"{name} must be .* with solver 'convex'"):
        Recipe(solver="convex", **{name: OTHERS[name]})


def test_descent_refuses_a_convex_recipe():
    splits = Splits(*(made(20, seed) for seed in range(3)), "made")
    with pytest.raises(ValueError, match="recipe must have solver 'sgd'"):
        fit(network("mlp", hidden=()).build(splits.train.inputs), splits, CONVEX)
