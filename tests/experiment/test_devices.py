"""Several devices: each training on one, or one over all; here they are two processes."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import numpy as np
import psutil
import pytest
import torch

from probnb.data import ProbabilityData, Splits
from probnb.experiment import devices as places
from probnb.experiment import run as experiment
from probnb.experiment.devices import Place, check_devices
from probnb.experiment.plan import Job, plan
from probnb.experiment.profiles import make_profile
from probnb.training.loop import Recipe
from probnb.training.losses import CrossEntropy
from probnb.training.models import network

PROFILE = make_profile(
    "smoke",
    batch_size=128,
    epochs=4,
    finetune_epochs=3,
    learning_rate=0.2,
    bins=5,
    finetune_learning_rate=0.05,
)
MLP = network("mlp", hidden=(8,))


def data():
    """A table: shares of two processes are uneven, and rows weigh differently."""
    rng = np.random.default_rng(0)

    def part(n):
        x = rng.normal(size=(n, 3)).astype(np.float32)
        y = rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))
        return ProbabilityData(torch.tensor(x), y.astype(float), weights=rng.uniform(0.5, 2, n))

    return Splits(part(301), part(80), part(80), "a table")


@pytest.fixture(autouse=True)
def full_precision(monkeypatch):
    """In bfloat16 another order of summation shows in the third digit."""
    monkeypatch.setattr(experiment, "precision_of", lambda device: "32-true")


def trained(jobs, folder, **options):
    options = {"device": "cpu", "progress": False} | options
    return experiment.run_jobs(jobs, data(), folder, **options)


def test_on_a_cpu_batch_normalisation_is_not_spread(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "_spread", lambda *a: pytest.fail("the batch would be cut"))
    rng = np.random.default_rng(0)
    images = torch.tensor(rng.integers(0, 256, (24, 3, 8, 8)), dtype=torch.uint8)
    part = ProbabilityData(images, np.arange(24) % 2)
    jobs = plan(["ce"], make_profile("smoke", epochs=1, width=4))
    two = experiment.run_jobs(
        jobs, Splits(part, part, part, "noise"), tmp_path, "cpu", 1, progress=False, devices=2
    )
    assert len(two) == 1


def test_with_enough_trainings_each_has_a_device_of_its_own(monkeypatch):
    monkeypatch.setattr(places, "make_fabric", lambda device, precision, gpus: gpus)
    (job,) = plan(["ce"], PROFILE, network=MLP)["ce"]
    place, at = Place("cuda", "32-true", devices=2, workers=4), []
    for number in range(4):
        place.run(number, at.append)
    assert at == [[0], [1], [0], [1]]
    assert not experiment._few([job] * 2, data(), place) and experiment._few([job], data(), place)


@pytest.mark.parametrize("device, there", [("cuda", 1), ("mps", 1)])
def test_more_devices_than_there_are(device, there, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=f"devices must be at most 1.*{device}.*got 2"):
        check_devices(2, device)
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(ValueError, match="devices must be an integer of at least 1"):
            check_devices(wrong, device)
    assert check_devices(1, device) == 1


def long_training(epochs=30):
    return plan(["ce"], replace(PROFILE, epochs=epochs), network=MLP)


SCRIPT = """
from tests.experiment.test_devices import experiment, long_training, trained

experiment.precision_of = lambda device: "32-true"
(fit,) = trained(long_training({epochs}), {folder!r}, devices=2).values()
print(len(fit.history))
"""


def in_another_process():
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_killed_in_the_middle_it_goes_on_to_the_same_numbers(tmp_path):
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", SCRIPT.format(folder=str(folder), epochs=30)]
    process = subprocess.Popen(command, env=in_another_process(), stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(folder.glob("*.partial")):
        time.sleep(0.02)
    others = psutil.Process(process.pid).children()
    ranks = [p for p in others if "popen_loky" in " ".join(p.cmdline())]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(folder.glob("*.safetensors"))
    assert len(ranks) == 2 and not psutil.wait_procs(ranks, timeout=60)[1]  # none trains on unseen
    (resumed,) = trained(long_training(), folder, devices=2).values()
    (whole,) = trained(long_training(), tmp_path / "alone", devices=2).values()
    assert len(resumed.history) == len(whole.history) == 31
    for name in whole.logits:
        assert torch.equal(resumed.logits[name], whole.logits[name])


def test_one_training_over_two_processes_has_the_numbers_of_one(tmp_path, monkeypatch):
    """Weights, uneven shares, a loss of pairs, a start, calibration epochs."""
    jobs = plan(["ce", "cape_bin", "mmce"], PROFILE, network=MLP)
    alone = trained(jobs, tmp_path / "one", workers=1)
    spread = []
    monkeypatch.setattr(places, "_spread", lambda *a, _do=places._spread: spread.append(_do(*a)))
    both = {}
    for name in jobs:  # one after the other, so that a device would have none
        both |= trained({name: jobs[name]}, tmp_path / "two", devices=2)
    assert len(spread) == 3
    for job, one in alone.items():
        two = both[job]
        assert (one.best_epoch, one.calibration_epochs) == (two.best_epoch, two.calibration_epochs)
        for name in one.logits:
            torch.testing.assert_close(two.logits[name], one.logits[name], rtol=1e-4, atol=1e-4)
    names = lambda folder: sorted(p.name for p in folder.glob("*.safetensors"))  # noqa: E731
    assert names(tmp_path / "one") == names(tmp_path / "two")  # either is taken for the other


@dataclass(frozen=True)
class Refuses:
    """A loss with which the second process fails; the first waits for it in vain."""

    def __call__(self, logits, targets, weights=None):
        if torch.distributed.get_rank() == 1:
            raise ValueError("the second process has had enough")
        return CrossEntropy()(logits, targets, weights)


def test_what_fails_in_a_process_reaches_the_caller(tmp_path):
    job = Job(MLP, Recipe(epochs=2, batch_size=128), loss=Refuses())
    with pytest.raises(ValueError, match="the second process has had enough"):
        trained([job], tmp_path, devices=2)
    assert not list(tmp_path.glob("*.safetensors"))
