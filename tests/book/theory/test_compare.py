"""Methods in the logistic model against plain loops and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from probnb_book.theory import Model, draw
from probnb_book.theory.compare import (
    Protocol,
    calibrated_targets,
    cape_curves,
    compare_methods,
    ridge,
    sweep,
    train,
)

SMALL = Model(n=60, kappa=0.5, gamma=2.0, replicates=3, seed=4)


@pytest.mark.parametrize("kappa", [0.5, 1.5])
def test_ridge_equals_scikit_learn(kappa):
    sample = draw(Model(n=50, kappa=kappa, replicates=2, seed=0))
    found = ridge(sample, (1.0, 0.05))
    for penalty, thetas in zip((1.0, 0.05), found):
        for r in range(2):
            peer = LogisticRegression(
                C=1 / (penalty * 50), fit_intercept=False, tol=1e-10, max_iter=1000
            ).fit(sample.inputs[r], sample.outcomes[r])
            np.testing.assert_allclose(thetas[r], peer.coef_[0], atol=5e-5)


def test_the_estimate_kept_has_the_lowest_validation_loss():
    sample, validation = draw(SMALL), draw(SMALL, stream=1)
    kept, when, norm, along = train(sample, validation, sample.start, 0.3, 40)
    theta, losses = sample.start, []
    for _ in range(41):
        logits = validation.logits(theta)
        losses.append(
            torch.nn.functional.binary_cross_entropy_with_logits(
                logits, validation.outcomes, reduction="none"
            ).mean(1)
        )
        theta = theta - 0.3 * sample.gradient(theta, sample.outcomes)
    np.testing.assert_array_equal(torch.stack(losses).argmin(0), when)
    rows = np.arange(3)
    np.testing.assert_allclose(kept.norm(dim=1), norm[rows, when.astype(int)])
    np.testing.assert_allclose(kept[:, 0], along[rows, when.astype(int)])


def test_the_start_is_a_candidate_itself():
    sample, validation = draw(SMALL), draw(SMALL, rows=20_000, stream=1)
    truth = sample.truth.expand(3, -1)  # no training on 60 examples comes nearer
    kept, when, norm, _ = train(sample, validation, truth, 0.3, 20)
    assert (when == 0).all() and torch.equal(kept, truth)
    assert (norm[:, -1] > norm[:, 0]).all()  # though the training went on


def test_cape_alternates_outcomes_and_empirical_probabilities():
    sample = draw(SMALL)
    targets = calibrated_targets(sample, Protocol(every=3, bins=4), "bin")
    assert targets(1, sample.start) is sample.outcomes
    assert targets(2, sample.start) is sample.outcomes
    third = targets(3, sample.start)
    for goal, logits, y in zip(third, sample.logits(sample.start), sample.outcomes):
        for rows in logits.argsort().reshape(4, 15):  # four bins of the sixty examples
            np.testing.assert_allclose(goal[rows], float(y[rows].mean()))
    # with one bin everyone gets the base rate
    base = calibrated_targets(sample, Protocol(every=1, bins=1), "bin")(1, sample.start)
    np.testing.assert_allclose(base, sample.outcomes.mean(1, keepdim=True).expand_as(base))


def test_compare_and_sweep():
    protocol = Protocol(horizon=20.0, cape_horizon=4.0, penalties=(1.0, 0.1), neighbours=20)
    table = compare_methods(SMALL, protocol)
    wide = table.pivot(index="replicate", columns="method", values="mse")
    methods = (
        "oracle, early stop, end of training, CaPE (bin), CaPE (kernel), early stop from 0, ridge"
    )
    assert {*wide} == {*methods.split(", ")}
    for other in ("early stop", "end of training"):  # the same path, judged by the exact error
        assert (wide["oracle"] <= wide[other] + 1e-15).all()
    np.testing.assert_allclose(table.calibration + table.grouping, table.mse, atol=1e-12)
    grid = sweep(SMALL, (0.25, 0.5), (1.0, 2.0), protocol)
    assert len(grid) == 4 * len(table)
    cell = grid[(grid.kappa == 0.5) & (grid.gamma == 2.0)]
    np.testing.assert_array_equal(cell.mse, table.mse)


def test_cape_curves_start_at_the_early_stopped_error():
    protocol = Protocol(horizon=20.0, cape_horizon=4.0, neighbours=20)
    time, curves = cape_curves(SMALL, protocol)
    table = compare_methods(SMALL, Protocol(**{**vars(protocol), "penalties": (1.0,)}))
    stopped = table[table.method == "early stop"].mse.to_numpy()
    assert list(curves) == ["cross entropy", "CaPE (bin)", "CaPE (kernel)"]
    for errors in curves.values():
        assert errors.shape == (3, len(time))
        np.testing.assert_allclose(errors[:, 0], stopped, atol=1e-14)
