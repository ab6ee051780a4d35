from types import SimpleNamespace

import numpy as np
import pytest
import torch

from probnb.training.cape import CAPE, Calibrated, p_emp_bin, p_emp_kernel
from probnb.training.targets import TARGETS, Observed, Resampled, Smoothed

RNG = np.random.default_rng(0)
P_HAT = RNG.random(400)
DATA = SimpleNamespace(
    outcomes=torch.tensor((RNG.random(400) < P_HAT).astype(np.float32)),
    probabilities=torch.tensor(P_HAT, dtype=torch.float32),
    weights=None,
    classes=2,
)


def predict():
    return torch.tensor(P_HAT)


def forbidden():
    raise AssertionError("an epoch on the outcomes needs no predictions")


def test_observed():
    assert Observed()(3, DATA, forbidden, 0) is DATA.outcomes


def test_resampled_depends_on_seed_and_epoch_alone():
    first = Resampled()(1, DATA, forbidden, 0)
    assert torch.equal(first, Resampled()(1, DATA, forbidden, 0))
    assert not torch.equal(first, Resampled()(2, DATA, forbidden, 0))
    assert not torch.equal(first, Resampled()(1, DATA, forbidden, 1))
    mean = torch.stack([Resampled()(t, DATA, forbidden, 0) for t in range(400)]).mean(0)
    assert (mean - DATA.probabilities).abs().max() < 5 * 0.5 / np.sqrt(400)


def test_resampled_needs_probabilities():
    unknown = SimpleNamespace(outcomes=DATA.outcomes, probabilities=None)
    with pytest.raises(ValueError, match="probabilities"):
        Resampled()(1, unknown, forbidden, 0)


@pytest.mark.parametrize(
    ("every", "phase", "calibration"),
    [(1, 0, [1, 2, 3, 4, 5, 6]), (2, 0, [2, 4, 6]), (3, 0, [3, 6]), (3, 2, [1, 4])],
)
def test_schedule_is_algorithm_1(every, phase, calibration):
    schedule = Calibrated("bin", every, phase)
    used = [t for t in range(1, 7) if schedule(t, DATA, predict, 0) is not DATA.outcomes]
    assert used == calibration


def test_calibration_epochs_use_the_empirical_probabilities():
    y = DATA.outcomes.numpy()
    np.testing.assert_allclose(
        Calibrated("bin", bins=7)(2, DATA, predict, 0), p_emp_bin(P_HAT, y, 7), atol=1e-7
    )
    np.testing.assert_allclose(
        Calibrated("kernel", neighbours=30, sigma=0.1)(2, DATA, predict, 0),
        p_emp_kernel(P_HAT, y, 30, 0.1),
        atol=1e-7,
    )


def test_mixed_targets_are_in_between_in_every_epoch():
    y = DATA.outcomes.numpy()
    mixed = Calibrated("bin", mix=3.0)
    for t in (1, 2):
        expected = (y + 3 * p_emp_bin(P_HAT, y, 15)) / 4
        np.testing.assert_allclose(mixed(t, DATA, predict, 0), expected, atol=1e-7)


def test_weights_reach_the_empirical_probabilities():
    weights = torch.tensor(np.random.default_rng(1).random(400), dtype=torch.float32)
    data = SimpleNamespace(**{**vars(DATA), "weights": weights})
    expected = p_emp_bin(P_HAT, DATA.outcomes.numpy(), 7, weights=weights.numpy())
    np.testing.assert_allclose(Calibrated("bin", bins=7)(2, data, predict, 0), expected, atol=1e-7)
    assert np.abs(expected - p_emp_bin(P_HAT, DATA.outcomes.numpy(), 7)).max() > 1e-3


def test_smoothed_outcomes():
    targets = Smoothed(0.2)(1, DATA, forbidden, 0)
    torch.testing.assert_close(targets, torch.where(DATA.outcomes == 1, 0.9, 0.1))


def test_published_settings_are_what_the_paper_and_the_release_say():
    def epochs(schedule):
        return [t for t in range(1, 9) if schedule(t, DATA, predict, 0) is not DATA.outcomes]

    printed = {k: TARGETS[k](**v) for k, v in CAPE["printed"].items()}
    released = {k: TARGETS[k](**v) for k, v in CAPE["released"].items()}
    assert epochs(printed["bin"]) == epochs(printed["kernel"]) == [2, 4, 6, 8]
    assert epochs(released["bin"]) == [1, 4, 7] and epochs(released["kernel"]) == [1, 5]
    assert released["kernel"].sigma == pytest.approx(0.05 * np.sqrt(2), abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": "spline"},
        {"every": 0},
        {"every": 2.5},
        {"phase": -1},
        {"bins": 0},
        {"neighbours": 0.5},
        {"sigma": 0},
        {"mix": -1.0},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Calibrated(**options)
