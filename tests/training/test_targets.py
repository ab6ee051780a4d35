from dataclasses import replace

import numpy as np
import pytest
import torch

from probnb.data import ProbabilityData
from probnb.training.cape import CAPE, Calibrated, p_emp_bin, p_emp_kernel
from probnb.training.targets import TARGETS, Observed, Resampled, Smoothed

RNG = np.random.default_rng(0)
P_HAT = RNG.random(400)
DATA = ProbabilityData(torch.zeros(400, 1), RNG.random(400) < P_HAT, P_HAT)


def predict():
    return torch.tensor(P_HAT)


def forbidden():
    raise AssertionError("an epoch on the outcomes needs no predictions")


def test_resampled_depends_on_seed_and_epoch_alone():
    first = Resampled()(1, DATA, forbidden, 0)
    assert torch.equal(first, Resampled()(1, DATA, forbidden, 0))
    assert not torch.equal(first, Resampled()(2, DATA, forbidden, 0))
    assert not torch.equal(first, Resampled()(1, DATA, forbidden, 1))
    mean = torch.stack([Resampled()(t, DATA, forbidden, 0) for t in range(400)]).mean(0)
    assert (mean - DATA.probabilities).abs().max() < 5 * 0.5 / np.sqrt(400)
    with pytest.raises(ValueError, match="probabilities"):
        Resampled()(1, replace(DATA, probabilities=None), forbidden, 0)


@pytest.mark.parametrize(
    ("every", "phase", "calibration"),
    [(1, 0, [1, 2, 3, 4, 5, 6]), (2, 0, [2, 4, 6]), (3, 0, [3, 6]), (3, 2, [1, 4])],
)
def test_schedule_is_algorithm_1(every, phase, calibration):
    schedule = Calibrated("bin", every, phase)
    used = [t for t in range(1, 7) if schedule(t, DATA, predict, 0) is not DATA.outcomes]
    assert used == calibration


Y, W = DATA.outcomes.numpy(), np.random.default_rng(1).random(400)


@pytest.mark.parametrize(
    ("schedule", "epoch", "weights", "expected"),
    [
        (Calibrated("bin", bins=7), 2, None, p_emp_bin(P_HAT, Y, 7)),
        (Calibrated("bin", bins=7), 2, W, p_emp_bin(P_HAT, Y, 7, weights=W)),
        (Calibrated("kernel", neighbours=30, sigma=0.1), 2, None, p_emp_kernel(P_HAT, Y, 30, 0.1)),
        (Calibrated("bin", mix=3.0), 1, None, (Y + 3 * p_emp_bin(P_HAT, Y, 15)) / 4),
        (Calibrated("bin", mix=3.0), 2, None, (Y + 3 * p_emp_bin(P_HAT, Y, 15)) / 4),
        (Smoothed(0.2), 1, None, np.where(Y == 1, 0.9, 0.1)),
        (Observed(), 3, None, Y),
    ],
)
def test_targets_of_an_epoch(schedule, epoch, weights, expected):
    found = schedule(epoch, replace(DATA, weights=weights), predict, 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_published_settings_are_what_the_paper_and_the_release_say():
    def epochs(schedule):
        return [t for t in range(1, 9) if schedule(t, DATA, predict, 0) is not DATA.outcomes]

    printed = {k: TARGETS[k](**v) for k, v in CAPE["printed"].items()}
    released = {k: TARGETS[k](**v) for k, v in CAPE["released"].items()}
    assert epochs(printed["bin"]) == epochs(printed["kernel"]) == [2, 4, 6, 8]
    assert epochs(released["bin"]) == [1, 4, 7] and epochs(released["kernel"]) == [1, 5]
    assert released["kernel"].sigma == pytest.approx(0.05 * np.sqrt(2), abs=1e-4)


WRONG = {"estimator": "spline", "every": 2.5, "phase": -1, "bins": 0}
WRONG |= {"neighbours": 0.5, "sigma": 0, "mix": -1.0}


@pytest.mark.parametrize("name", WRONG)
def test_bad_options(name):
    with pytest.raises(ValueError, match=name):
        Calibrated(**{name: WRONG[name]})
