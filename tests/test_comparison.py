"""The facade: what it gives is what its steps give, and what is wrong is refused at once."""

import numpy as np
import pytest

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
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_trained(table, tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        probnb.compare(table, directory=tmp_path / "fits", **given)
    assert not (tmp_path / "fits").exists()


def test_data_that_are_no_splits_are_refused():
    with pytest.raises(TypeError, match=r"splits must be probnb.data.Splits; got ndarray"):
        probnb.compare(np.zeros(3))


def test_what_the_package_lacks_is_named():
    with pytest.raises(AttributeError, match="module 'probnb' has no attribute 'nothing'"):
        probnb.nothing  # noqa: B018
