"""Rows as models: what they say is what the table says; the choice follows its rule."""

import numpy as np
import pytest
import torch

from probnb.calibrators import PlattScaling
from probnb.data import ProbabilityData, Splits
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import collect, on_test
from probnb.experiment.run import run_jobs
from probnb.images.choose import Kept, choice_folds, choose_model, keep_models
from probnb.images.model import KeptModel
from probnb.training.batches import precision_of
from probnb.training.models import network

METHODS = ["ce", "platt", "ensemble", "ce_finetuned", "cape_bin"]
NETWORK = network("mlp", hidden=(8,))


@pytest.fixture(scope="module")
def splits():
    rng = np.random.default_rng(0)

    def part(n):
        x = rng.normal(size=(n, 4)).astype(np.float32)
        y = rng.random(n) < 1 / (1 + np.exp(-2 * x[:, 0]))
        return ProbabilityData(torch.from_numpy(x), y, groups=np.arange(n) // 2)

    return Splits(part(200), part(120), part(100), "made for tests")


@pytest.fixture(scope="module")
def run(splits, tmp_path_factory):
    jobs = plan(METHODS, make_profile("smoke", candidates=2), network=NETWORK)
    folder = tmp_path_factory.mktemp("fits")
    fits = run_jobs(jobs, splits, folder, device="cpu", workers=1, progress=False)
    return jobs, fits, collect(jobs, fits, splits), folder


@pytest.fixture(scope="module")
def kept(run, splits):
    return keep_models(*run[:2], splits, run[2], device="cpu", record={"seed": 0})


def test_models_say_what_the_table_says(run, kept, splits):
    table = on_test(run[2].predictions)
    close = 1e-5 if precision_of("cpu") == "32-true" else 0.02  # bfloat16 in the table alone
    assert list(kept) == METHODS
    for name, one in kept.items():
        np.testing.assert_allclose(one.test, table[name], atol=close)
        np.testing.assert_allclose(one.model.predict(splits.test, "cpu"), one.test, atol=1e-7)
        assert one.model.record["method"] == name and one.model.record["seed"] == 0
    assert len(kept["ensemble"].model.members) == 2


def test_rows_of_the_last_epoch_are_not_kept(splits, run):
    jobs = plan(["ce", "ce_overfit"], make_profile("smoke", candidates=2), network=NETWORK)
    fits = run_jobs(jobs, splits, run[3], device="cpu", workers=1, progress=False)
    assert list(keep_models(jobs, fits, splits, collect(jobs, fits, splits), device="cpu")) == [
        "ce"
    ]


def made(logits, calibrator=None, members=1):
    """A kept row with given validation log-odds."""
    z = np.stack([np.zeros_like(logits), logits], axis=1)
    return Kept(KeptModel(NETWORK, ({},) * members, 4, calibrator=calibrator), z[None], None)


def test_the_plainest_of_what_cannot_be_told_apart_is_chosen():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=400)
    y = rng.random(400) < 1 / (1 + np.exp(-truth))
    val = ProbabilityData(torch.zeros(400, 4), y)
    fitted = PlattScaling().fit(truth, y)
    rows = {
        "ce": made(truth),
        "platt": made(truth, fitted),
        "focal": made(truth + 3),
        "ensemble": made(truth + 1e-3 * (2 * y - 1), members=5),
    }
    table = choose_model(rows, val)
    assert table.index[0] == "ensemble" and table["chosen"]["ensemble"]  # surely better, if little
    noisy = made(truth + 0.1 * rng.normal(size=400) + 0.02 * (2 * y - 1), members=5)
    table = choose_model({**rows, "ensemble": noisy}, val)
    near = table.index[table["gap"] <= table["se"]]
    assert {"ce", "ensemble"} <= set(near) and table["chosen"]["ce"]
    assert table.index[-1] == "focal" and table["gap"]["focal"] > table["se"]["focal"]
    p = 1 / (1 + np.exp(-truth))
    np.testing.assert_allclose(table["nll"]["ce"], -np.log(np.where(y, p, 1 - p)).mean())


def test_a_calibrator_is_judged_on_rows_that_it_was_not_fitted_to():
    """Isotonic regression of noise looks better than a constant where it was fitted, not beyond."""
    from probnb.calibrators import IsotonicCalibration

    rng = np.random.default_rng(2)
    z, y = rng.normal(size=200), rng.random(200) < 0.5
    fitted = IsotonicCalibration().fit(z, y)
    p = np.clip(fitted.predict_proba(z)[:, 1], 1e-15, 1 - 1e-15)
    assert -np.log(np.where(y, p, 1 - p)).mean() < np.log(2)
    val = ProbabilityData(torch.zeros(200, 4), y)
    table = choose_model({"ce": made(0 * z), "platt": made(z, fitted)}, val)
    assert table["nll"]["platt"] > np.log(2) + 0.01 and table["chosen"]["ce"]


def grouped(groups, y, weights=None):
    n = len(y)
    return ProbabilityData(torch.zeros(n, 4), y, groups=np.asarray(groups), weights=weights)


@pytest.mark.parametrize(
    ("groups", "y", "folds"),
    [
        (np.zeros(24), np.arange(24) % 2, 0),  # one hospital
        (np.arange(24) // 12, np.arange(24) % 2, 2),
        (np.arange(24) // 8, np.arange(24) % 2, 3),  # each left out once
        (np.arange(24) // 2, np.arange(24) % 2, 5),
        (np.arange(24) // 12, np.arange(24) >= 12, 0),  # a group holds one outcome
        (np.arange(24) // 6, np.arange(24) // 6 % 2, 4),
        (np.arange(24) // 6, np.arange(24) >= 6, 0),  # one group has all of outcome 0
        (np.arange(24) // 2, np.arange(24) // 2 % 2, 5),
    ],
)
def test_few_groups_have_fewer_folds_or_none_and_a_model_is_chosen(groups, y, folds):
    """Every fit sees both outcomes, no group is judged by a calibrator that was fitted to it."""
    val = grouped(groups, y)
    plan = choice_folds(val)
    assert len(plan) == folds
    for fit_rows, rows in plan:
        assert set(np.asarray(y)[fit_rows]) == {0, 1}
        assert not set(groups[fit_rows]) & set(groups[rows])
    if plan:
        assert sorted(np.concatenate([rows for _, rows in plan])) == list(range(24))
    z = np.random.default_rng(0).normal(size=24) + y
    fitted = PlattScaling().fit(np.stack([0 * z, z], axis=1), np.asarray(y, int))
    table = choose_model({"ce": made(z), "platt": made(z, fitted)}, val)
    assert np.isfinite(table["nll"]).all() and table["chosen"].sum() == 1


def test_rows_without_weight_are_no_outcomes_of_a_fold():
    y = np.arange(24) % 2
    weights = np.where((y == 1) & (np.arange(24) >= 12), 0.0, 1.0)
    assert len(choice_folds(grouped(np.arange(24) // 12, y, weights))) == 0


def test_one_group_is_certain_of_nothing():
    """Its standard error is unknown, so that the plainest row is taken."""
    y = np.arange(40) % 2
    z = (2 * y - 1) * 0.5
    val = grouped(np.zeros(40), y)
    table = choose_model({"ce": made(z), "ensemble": made(2.0 * z, members=5)}, val)
    assert table.index[0] == "ensemble" and table["chosen"]["ce"] and np.isinf(table["se"]).all()
