"""Data of the logistic model: their law, their independence, and the steps they allow."""

import warnings

import numpy as np
import pytest
import torch

from probnb_book.theory import Model, draw, stable_step
from probnb_book.theory.descent import gradient_descent, sgd

SMALL = Model(n=60, kappa=0.5, gamma=2.0, replicates=3, seed=4)


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be an integer of at least 1; got 0"),
        ({"kappa": 0}, r"kappa must be a finite number in \(0, inf\); got 0"),
        ({"kappa": -0.5}, r"kappa must be a finite number in \(0, inf\); got -0.5"),
        ({"kappa": 0.001}, "kappa must give round"),
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
    with pytest.warns(UserWarning, match=r"exceeds 2n/\|\|X\|\|\^2 = .* beyond 8n"):
        gradient_descent(sample, 1.01 * least, 1)
    with pytest.warns(UserWarning, match=r"oscillate or diverge"):
        gradient_descent(sample, 4.01 * least, 1)
    with pytest.raises(ValueError, match="eta must be"):
        gradient_descent(sample, 0.0, 1)
    with pytest.raises(ValueError, match="steps must be"):
        gradient_descent(sample, 0.1, 0)
