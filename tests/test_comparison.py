"""The facade: what it gives is what its steps give, and what is wrong is refused at once."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import probnb
from probnb.data import ProbabilityData, Splits
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import collect, on_test
from probnb.experiment.run import run_jobs
from probnb.images.model import load_model
from probnb.training.models import network

METHODS = ["ce", "platt", "cape_bin"]


def drawn(shape, n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, *shape)).astype(np.float32)
    p = 1 / (1 + np.exp(-x.reshape(n, -1).mean(1) * 3))
    return ProbabilityData(x, (rng.random(n) < p).astype(int), groups=np.arange(n) // 2)


def parts(shape):
    return Splits(*(drawn(shape, seed=seed) for seed in range(3)), "drawn")


@pytest.fixture(scope="module", autouse=True)
def full_precision():
    """What is kept predicts in float32; where bf16 is fast, trainings would be in that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBNB_PRECISION", "32-true")
        yield


@pytest.fixture(scope="module")
def table():
    return parts((4,))


@pytest.fixture(scope="module")
def compared(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    return probnb.compare(table, METHODS, "smoke", 3, folder, device="cpu", progress=False), folder


def test_it_gives_what_its_steps_give(table, compared):
    found, folder = compared
    jobs = plan(METHODS, make_profile("smoke"), 3, network("mlp"))
    assert jobs == found.jobs
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.safetensors")}
    fits = run_jobs(jobs, table, folder, "cpu", progress=False)
    assert before == {path: path.stat().st_mtime_ns for path in folder.glob("*.safetensors")}
    expected = on_test(collect(jobs, fits, table).predictions)
    assert expected.equals(found.predictions) and list(expected)[-3:] == METHODS


def test_the_report_is_on_the_methods_alone(compared):
    report = compared[0].report(reference="ce", replicates=50)
    assert list(report.table.predictions) == METHODS
    assert len(report.table.group) == 300


def test_what_is_kept_predicts_as_it_did(table, compared, tmp_path):
    found, _ = compared
    assert found.save(tmp_path / "model") == found.choose().query("chosen").index[0]
    assert found.save(tmp_path / "platt", "platt") == "platt"
    p = load_model(tmp_path / "platt").predict(table.test, "cpu")
    np.testing.assert_allclose(p, found.predictions["platt"], atol=1e-6)
    with pytest.raises(ValueError, match=r"method must be one of ce, platt, cape_bin; got 'plat'"):
        found.save(tmp_path / "other", "plat")
    assert not (tmp_path / "other").exists()


def test_images_have_the_networks_of_the_profile(tmp_path):
    found = probnb.compare(parts((3, 16, 16)), "ce", "smoke", 0, tmp_path, progress=False)
    (job,) = found.jobs["ce"]
    assert job.network == network("resnet18", width=8, stem="small")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": "ce plat"}, "Did you mean 'platt'"),
        ({"methods": "resampled"}, "resampled"),  # there are no true probabilities
        ({"profile": "quik"}, "Did you mean 'quick'"),
        ({"device": "gpu"}, "device"),
        ({"seed": -1}, "seed must be an integer of at least 0; got -1"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"seed": None}, "seed must be an integer"),
        ({"seed": 2**70}, "seed must be below"),
        ({"workers": 0}, "workers must be an integer of at least 1; got 0"),
        ({"workers": -1}, "workers must be"),
        ({"workers": 1.5}, "workers must be"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_trained(table, tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        probnb.compare(table, directory=tmp_path / "fits", **given)
    assert not (tmp_path / "fits").exists()


@pytest.mark.parametrize("name", ["train", "val"])
@pytest.mark.parametrize("how", ["ones", "zeros", "by weight"])
def test_a_part_with_one_outcome_is_refused_before_anything_is_trained(table, tmp_path, name, how):
    """A map said so when everything had been trained, and of no part."""
    part, own = table.parts()[name], {}
    if how == "by weight":
        own["weights"] = part.outcomes
    else:
        own["outcomes"] = np.full(len(part), how == "ones")
    changed = replace(table, **{name: replace(part, **own)})
    with pytest.raises(ValueError, match=f"{name} must hold both outcomes; all .* are alike"):
        probnb.compare(changed, directory=tmp_path / "fits")
    assert not (tmp_path / "fits").exists()


def test_a_network_that_is_only_named_and_a_data_frame_are_refused(table, tmp_path):
    with pytest.raises(TypeError, match=r"network must come from .*; got 'mlp'"):
        probnb.compare(table, network="mlp", directory=tmp_path)
    frame = pd.DataFrame(table.train.inputs)
    with pytest.raises(ValueError, match=r"inputs must be a tensor or an array .* got DataFrame"):
        ProbabilityData(frame, table.train.outcomes)


def test_inputs_that_something_learnt_made_are_taken_as_they_are(table, tmp_path):
    """Training failed in torch's words on what asks for a gradient."""
    learnt = {
        name: replace(part, inputs=torch.tensor(part.inputs, requires_grad=True) * 1)
        for name, part in table.parts().items()
    }
    found = probnb.compare(Splits(**learnt, source="x"), "ce", "smoke", directory=tmp_path)
    plain = probnb.compare(table, "ce", "smoke", directory=tmp_path)
    assert found.predictions.equals(plain.predictions)


def test_data_that_are_no_splits_are_refused():
    with pytest.raises(TypeError, match=r"splits must be probnb.data.Splits; got ndarray"):
        probnb.compare(np.zeros(3))


def test_what_the_package_lacks_is_named():
    with pytest.raises(AttributeError, match="module 'probnb' has no attribute 'nothing'"):
        probnb.nothing  # noqa: B018
