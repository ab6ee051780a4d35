"""Training in the logistic model against plain loops, its theorems and scikit-learn."""

import warnings

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from probnb.theory import exact_cross_entropy, exact_mse
from probnb.theory.compare import Protocol, cape_curves, compare, sweep
from probnb.theory.descent import collapsed, gradient_descent, late_training, record_at, sgd
from probnb.theory.methods import calibrated_targets, ridge, train
from probnb.theory.model import Model, draw, stable_step
from probnb.theory.separability import max_margin

SMALL = Model(n=60, kappa=0.5, gamma=2.0, replicates=3, seed=4)


def test_gradient_descent_equals_a_plain_loop():
    sample = draw(SMALL)
    path = gradient_descent(sample, 0.3, 25, record=[0, 10, 25])
    for r in range(3):
        X, y = sample.inputs[r].numpy(), sample.outcomes[r].numpy()
        theta, seen = sample.start[r].numpy().copy(), []
        for k in range(26):
            if k in (0, 10, 25):
                seen.append(exact_mse(theta, sample.truth))
            if k < 25:
                theta -= 0.3 * X.T @ (expit(X @ theta) - y) / 60
        np.testing.assert_allclose(path.mse[r], seen, atol=1e-13)
        np.testing.assert_allclose(path.theta[r], theta, atol=1e-12)
    np.testing.assert_allclose(path.time, [0, 3, 7.5])


def test_data_follow_the_model():
    model = Model(n=4000, kappa=0.005, gamma=2.0, gamma_0=0.7, replicates=5)
    sample = draw(model)
    assert sample.inputs.shape == (5, 4000, 20) and sample.inputs.dtype == torch.float64
    np.testing.assert_allclose(sample.start.norm(dim=1), 0.7)
    p = torch.sigmoid(sample.inputs @ sample.truth)
    surplus = (sample.outcomes - p).sum() / (p * (1 - p)).sum().sqrt()
    assert abs(surplus) < 3
    np.testing.assert_allclose(sample.inputs.var(), 1, atol=0.02)


def test_replicates_do_not_depend_on_each_other_or_on_repetition():
    few, many = draw(SMALL), draw(Model(**{**vars(SMALL), "replicates": 5}))
    assert torch.equal(few.inputs, many.inputs[:3])
    assert torch.equal(few.outcomes, draw(SMALL).outcomes)
    assert not torch.equal(few.inputs, draw(SMALL, stream=1).inputs)
    assert not torch.equal(few.inputs[0], few.inputs[1])
    assert np.array_equal(sgd(few, 0.3, 20).norm, sgd(draw(SMALL), 0.3, 20).norm)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_gpu_gives_the_same_path():
    sample = draw(Model(**{**vars(SMALL), "device": "cuda"}))
    on_gpu = gradient_descent(sample, 0.3, 25).mse
    np.testing.assert_allclose(on_gpu, gradient_descent(draw(SMALL), 0.3, 25).mse, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be an integer of at least 1; got 0"),
        ({"kappa": 0}, r"kappa must be a finite number in \(0, inf\); got 0"),
        ({"kappa": -0.5}, r"kappa must be a finite number in \(0, inf\); got -0.5"),
        ({"kappa": 0.001}, "kappa must give at least one dimension"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"gamma_0": float("nan")}, "gamma_0 must be"),
        ({"replicates": 0}, "replicates must be"),
    ],
)
def test_impossible_models_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Model(**change)


def test_long_steps_are_warned_of():
    sample = draw(SMALL)
    bound = stable_step(sample)
    largest = [torch.linalg.matrix_norm(X, 2) for X in sample.inputs]
    np.testing.assert_allclose(bound, [2 * 60 / s**2 for s in largest], rtol=1e-10)
    least = bound.min()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient_descent(sample, 0.99 * least, 1)
    with pytest.warns(UserWarning, match=r"exceeds 2n/\|\|X\|\|\^2 = .* still sure up to"):
        gradient_descent(sample, 1.01 * least, 1)
    with pytest.warns(UserWarning, match=r"exceeds 8n/\|\|X\|\|\^2 = .* oscillate or diverge"):
        gradient_descent(sample, 4.01 * least, 1)
    with pytest.raises(ValueError, match="eta must be"):
        gradient_descent(sample, 0.0, 1)
    with pytest.raises(ValueError, match="steps must be"):
        gradient_descent(sample, 0.1, 0)


def test_training_loss_falls_up_to_four_times_the_papers_bound():
    sample = draw(SMALL)
    eta, theta, losses = 3.99 * stable_step(sample).min(), sample.start, []
    for _ in range(60):
        logits = sample.logits(theta)
        losses.append(torch.nn.functional.softplus(logits).sub(sample.outcomes * logits).mean(1))
        theta = theta - eta * sample.gradient(theta, sample.outcomes)
    assert (torch.stack(losses).diff(dim=0) <= 1e-12).all()


def test_error_falls_first_and_rises_later():
    path = gradient_descent(draw(Model(n=200, kappa=1.0, seed=2)), 0.3, 400, record_at(400))
    mean = path.mse.mean(axis=0)
    best = mean.argmin()
    assert 0 < best < len(mean) - 1
    assert (np.diff(mean[: best + 1]) < 0).all()  # Theorem A.1
    assert mean[-1] > 1.5 * mean[best]


def test_late_training_follows_gradient_descent():
    sample = draw(Model(n=60, kappa=1.0, replicates=3, seed=1))
    slow = gradient_descent(sample, 0.01, 4000)
    late = late_training(sample, 0.005, 2000)
    for r in range(3):
        norm, along = (
            np.interp(np.exp(late.time[r, 1:]), slow.time, v[r]) for v in (slow.norm, slow.along)
        )
        inside = np.exp(late.time[r, 1:]) < 40
        assert inside.sum() > 100
        np.testing.assert_allclose(late.norm[r, 1:][inside], norm[inside], atol=0.02)
        np.testing.assert_allclose(late.along[r, 1:][inside], along[inside], atol=0.02)


def test_separable_data_are_memorised_along_the_max_margin_direction():
    sample = draw(Model(n=60, kappa=1.2, replicates=3, seed=0))
    path = late_training(sample, 0.1, 6000, record_at(6000))
    assert (np.diff(path.norm[:, -20:]) > 0).all()
    assert (path.norm[:, -1] > 100).all()
    assert (collapsed(path.norm[:, -1]) > 0.93).all()
    assert np.isfinite(path.time[:, 1:]).all() and (np.diff(path.time[:, 1:]) > 0).all()
    for r in range(3):
        target = max_margin(sample.inputs[r], sample.outcomes[r])
        direction = path.theta[r].numpy() / path.norm[r, -1]
        assert direction @ target / np.linalg.norm(target) > 0.999


def test_collapsed_share_equals_sampling():
    a = 5.0 * np.random.default_rng(0).standard_normal(1_000_000)
    p = expit(a)
    share = ((p < 0.01) | (p > 0.99)).mean()
    assert collapsed(5.0, within=0.01) == pytest.approx(share, abs=2e-3)


def test_resampled_labels_do_not_overfit():
    sample = draw(Model(n=200, kappa=0.5, replicates=3, seed=0))
    paths = {
        labels: sgd(sample, 0.3, 3000, labels, batch=40, half_life=500, record=record_at(3000))
        for labels in ("observed", "resampled")
    }
    assert (paths["resampled"].mse[:, -1] < 0.15 * paths["resampled"].mse[:, 0]).all()
    assert (paths["observed"].mse[:, -1] > 3 * paths["resampled"].mse[:, -1]).all()
    assert (paths["observed"].mse.min(axis=1) < paths["observed"].mse[:, 0]).all()


@pytest.mark.parametrize("kappa", [0.5, 1.5])
def test_ridge_equals_scikit_learn(kappa):
    sample = draw(Model(n=50, kappa=kappa, replicates=2, seed=0))
    found = ridge(sample, (1.0, 0.05))
    for penalty, thetas in zip((1.0, 0.05), found):
        for r in range(2):
            peer = LogisticRegression(
                C=1 / (penalty * 50), fit_intercept=False, tol=1e-10, max_iter=1000
            ).fit(sample.inputs[r], sample.outcomes[r])
            np.testing.assert_allclose(thetas[r], peer.coef_[0], atol=1e-5)


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


def test_cape_alternates_outcomes_and_empirical_probabilities():
    sample = draw(SMALL)
    targets = calibrated_targets(sample, Protocol(every=3, bins=4), "bin")
    assert targets(1, sample.start) is sample.outcomes
    assert targets(2, sample.start) is sample.outcomes
    third = targets(3, sample.start)
    assert third.shape == sample.outcomes.shape
    assert [len(row.unique()) for row in third] == [4, 4, 4] or third.unique().numel() <= 12
    np.testing.assert_allclose(third.mean(1), sample.outcomes.mean(1))  # bins of equal size
    # with one bin everyone gets the base rate
    base = calibrated_targets(sample, Protocol(every=1, bins=1), "bin")(1, sample.start)
    np.testing.assert_allclose(base, sample.outcomes.mean(1, keepdim=True).expand_as(base))
    with pytest.raises(ValueError, match="estimator must be one of bin, kernel"):
        calibrated_targets(sample, Protocol(), "kernal")


def test_compare_and_sweep():
    protocol = Protocol(horizon=20.0, cape_horizon=4.0, penalties=(1.0, 0.1), neighbours=20)
    table = compare(SMALL, protocol)
    wide = table.pivot(index="replicate", columns="method", values="mse")
    assert set(wide) == {
        "oracle",
        "early stop",
        "end of training",
        "CaPE (bin)",
        "CaPE (kernel)",
        "early stop from 0",
        "ridge",
    }
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
    table = compare(SMALL, Protocol(**{**vars(protocol), "penalties": (1.0,)}))
    stopped = table[table.method == "early stop"].mse.to_numpy()
    assert list(curves) == ["cross entropy", "CaPE (bin)", "CaPE (kernel)"]
    for errors in curves.values():
        assert errors.shape == (3, len(time))
        np.testing.assert_allclose(errors[:, 0], stopped, atol=1e-14)


def test_exact_cross_entropy_equals_a_large_validation_sample():
    model = Model(n=20, kappa=0.5, gamma=2.0, replicates=1)
    sample, fresh = draw(model), draw(model, rows=400_000, stream=1)
    logits = fresh.logits(sample.start)
    loss = torch.nn.functional.softplus(logits) - fresh.outcomes * logits
    standard_error = float(loss.std() / 400_000**0.5)
    expected = exact_cross_entropy(sample.start, sample.truth)[0]
    assert abs(float(loss.mean()) - expected) < 3 * standard_error
