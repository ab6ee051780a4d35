"""The theorem of the chapter: a calibration step rescales the estimate and cannot turn it."""

import numpy as np
import pytest

from probnb_book.theory.compare import population_steps


@pytest.mark.parametrize("seed", range(5))
def test_calibration_step_is_parallel_and_pushes_like_the_outcomes(seed):
    theta, truth = np.random.default_rng(seed).normal(size=(2, 2))
    outcomes, calibration = population_steps(theta, truth)
    assert abs(calibration[1]) < 1e-12
    assert calibration[0] == pytest.approx(outcomes[0], abs=1e-12)
    assert abs(outcomes[1]) > 1e-3  # the outcomes do turn it


def test_step_of_the_truth_itself_is_none():
    np.testing.assert_allclose(population_steps([1.0, -2.0], [1.0, -2.0]), 0, atol=1e-15)
