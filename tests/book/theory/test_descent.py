"""Training in the logistic model against plain loops, and its theorems and lemmas."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from probnb_book.theory import Model, draw, exact_mse, max_margin, mean_slope, stable_step
from probnb_book.theory.descent import (
    collapsed,
    flow_gap,
    gradient_descent,
    initial_slope,
    late_training,
    measured_slope,
    record_at,
    sgd,
)

from .quadrature import gaussian_integral

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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_gpu_gives_the_same_path():
    sample = draw(Model(**{**vars(SMALL), "device": "cuda"}))
    on_gpu = gradient_descent(sample, 0.3, 25).mse
    np.testing.assert_allclose(on_gpu, gradient_descent(draw(SMALL), 0.3, 25).mse, atol=1e-10)


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
    sample = draw(Model(n=60, kappa=1.2, replicates=1, seed=0))
    path = late_training(sample, 0.1, 6000, record_at(6000))
    assert (np.diff(path.norm[:, -20:]) > 0).all()
    assert (path.norm[:, -1] > 100).all()
    assert (collapsed(path.norm[:, -1]) > 0.93).all()
    assert np.isfinite(path.time[:, 1:]).all() and (np.diff(path.time[:, 1:]) > 0).all()
    target = max_margin(sample.inputs[0], sample.outcomes[0])
    direction = path.theta[0].numpy() / path.norm[0, -1]
    assert direction @ target / np.linalg.norm(target) > 0.999


def test_collapsed_share_equals_sampling():
    a = 5.0 * np.random.default_rng(0).standard_normal(1_000_000)
    p = expit(a)
    share = ((p < 0.001) | (p > 0.999)).mean()
    assert collapsed(5.0) == pytest.approx(share, abs=2e-3)


def test_resampled_labels_do_not_overfit():
    sample = draw(Model(n=200, kappa=0.5, replicates=3, seed=0))
    paths = {
        labels: sgd(sample, 0.1, 2000, labels, batch=200, record=record_at(2000))
        for labels in ("observed", "resampled")
    }
    assert (paths["resampled"].mse[:, -1] < 0.15 * paths["resampled"].mse[:, 0]).all()
    assert (paths["observed"].mse[:, -1] > 3 * paths["resampled"].mse[:, -1]).all()
    assert (paths["observed"].mse.min(axis=1) < paths["observed"].mse[:, 0]).all()


GRID = [(g, g0) for g in (0.3, 1.0, 3.0) for g0 in (0.0, 0.5, 2.0)]


@pytest.mark.parametrize(("gamma", "gamma_0"), GRID)
def test_initial_slope_equals_the_papers_expectation(gamma, gamma_0):
    def slope(x, x0):
        z, z0 = gamma * x, gamma_0 * x0
        steepness = expit(z0) * expit(-z0)
        return 2 * (expit(z0) - expit(z)) * steepness * (mu * z - mu_0 * z0)

    mu, mu_0 = mean_slope(gamma), mean_slope(gamma_0)
    expected = gaussian_integral(slope, gamma, gamma_0)
    assert initial_slope(gamma, gamma_0) == pytest.approx(expected, abs=1e-8)


def test_initial_slope_is_negative_everywhere():
    gamma, gamma_0 = np.meshgrid(np.geomspace(1e-2, 100, 30), np.r_[0, np.geomspace(1e-2, 100, 30)])
    assert (initial_slope(gamma, gamma_0) < 0).all()


@pytest.mark.parametrize(("gamma", "gamma_0"), GRID)
def test_initial_slope_equals_simulation(gamma, gamma_0):
    model = Model(n=250, kappa=0.8, gamma=gamma, gamma_0=gamma_0, replicates=24, seed=3)
    slopes = measured_slope(draw(model))
    standard_error = slopes.std(ddof=1) / np.sqrt(len(slopes))
    assert abs(slopes.mean() - initial_slope(gamma, gamma_0)) < 3 * standard_error


def test_gap_to_gradient_flow_halves_with_the_step():
    sample = draw(Model(n=120, kappa=0.8, gamma=2.0, replicates=4, seed=1))
    gaps = np.array([flow_gap(sample, eta, horizon=3.0) for eta in (0.1, 0.05, 0.025)])
    ratios = gaps[:-1] / gaps[1:]  # (step, parameters or errors, replicate)
    np.testing.assert_allclose(ratios[0], 2, atol=0.12)
    np.testing.assert_allclose(ratios[1], 2, atol=0.06)  # the nearer to 2 the smaller the step
