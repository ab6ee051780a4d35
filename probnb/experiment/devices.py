"""Where trainings run, each on a device of its own or one over several, and how far they are.

Processes are joblib's, which start as readily from a notebook as from a script, raise in the
caller what was raised in one of them, and are ended when one fails.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from unittest import mock

import filelock
import joblib
import torch
import tqdm.auto
from lightning_fabric.plugins.environments import lightning
from torch import nn

from ..data.base import ProbabilityData, Splits
from ..training.batches import make_fabric
from ..validation import check_integer

__all__ = ["Epochs", "Place", "Shared", "can_spread", "check_devices", "epoch_bar"]


def check_devices(devices, device):
    """Return the number of devices to use, if there are as many.

    Parameters
    ----------
    devices : int
        GPUs, or on a CPU processes.
    device : {"cuda", "cpu", "mps"}
        Which kind.
    """
    check_integer(devices, "devices", minimum=1)
    there = {"cuda": torch.cuda.device_count(), "mps": 1}.get(device, devices)
    if devices > there:
        raise ValueError(
            f"devices must be at most {there}, the {device} devices here; got {devices}."
        )
    return devices


def can_spread(network, inputs, device):
    """Whether a training is the same over several devices as on one.

    Batch normalisation needs the whole batch. PyTorch shares its sums between GPUs only.

    Parameters
    ----------
    network : Network
        From `probnb.training.models.network`.
    inputs : object
        Of the training data.
    device : str
        Which kind.
    """
    if device == "cuda":
        return True
    with torch.device("meta"):
        model = network.build(inputs)
    normed = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
    return device == "cpu" and not any(isinstance(m, normed) for m in model.modules())


@dataclass(frozen=True)
class Place:
    """Where a training runs.

    Parameters
    ----------
    device : {"cuda", "cpu", "mps"}
        Which kind of device.
    precision : str
        As Fabric names it.
    devices : int, default=1
        How many there are for all trainings.
    workers : int, default=1
        Trainings at a time; more than `devices` share them.
    spread : bool, default=False
        Whether one training goes over all devices.
    locks : path-like, optional
        A folder in which trainings note which GPU they are on.
    """

    device: str
    precision: str
    devices: int = 1
    workers: int = 1
    spread: bool = False
    locks: str | None = None

    def run(self, train, *arguments):
        """Call ``train(*arguments, fabric)`` here, or once in a process for each device."""
        if self.spread:
            _spread(self, train, arguments)
            return
        if self.device != "cuda" or self.devices == 1:
            train(*arguments, make_fabric(self.device, self.precision))
            return
        with _free(self.locks, self.workers) as slot:
            gpu = slot % self.devices
            train(*arguments, make_fabric(self.device, self.precision, [gpu]))

    def call(self, calls):
        """Run joblib's delayed calls, as many at a time as there are workers."""
        count = 1 if self.spread else max(1, min(self.workers, len(calls)))
        with self._processes(self.workers):
            return joblib.Parallel(n_jobs=count, batch_size=1)(calls)

    def _processes(self, count):
        """Joblib's processes, each with its share of the cores; one core on a CPU."""
        threads = 1 if self.device == "cpu" else max(1, joblib.cpu_count() // count)
        # Shared arrays are copied where they are written to, which nothing does.
        return joblib.parallel_config("loky", inner_max_num_threads=threads, mmap_mode="c")


class Shared:
    """Splits whose tensors all processes share: pickled, they would go along with every training.

    Joblib writes an array to memory once, however many calls have it, and maps it in each process.
    """

    def __init__(self, splits):
        self.splits, self._packed = splits, None

    def __getstate__(self):
        if self._packed is None:
            self._packed = {name: _pack(part) for name, part in self.splits.parts().items()}
        return self._packed, self.splits.source

    def __setstate__(self, state):
        parts = {
            name: ProbabilityData(**known, **{k: torch.from_numpy(v) for k, v in arrays.items()})
            for name, (known, arrays) in state[0].items()
        }
        self.__init__(Splits(**parts, source=state[1]))


def _pack(data):
    known = {f.name: getattr(data, f.name) for f in fields(data)}
    if not torch.is_tensor(data.inputs) or data.inputs.dtype == torch.bfloat16:
        return known, {}
    return known, {"inputs": known.pop("inputs").cpu().numpy()}


@contextmanager
def _free(folder, slots):
    """Take one of some slots until the training is over, or its process."""
    for slot in itertools.cycle(range(slots)):
        lock = filelock.FileLock(Path(folder) / f"{slot}.lock", timeout=0.1)
        try:
            lock.acquire()
        except filelock.Timeout:
            continue
        try:
            yield slot
        finally:
            lock.release()
        return


def _spread(place, train, arguments):
    port = lightning.find_free_network_port()
    with place._processes(place.devices):
        if joblib.effective_n_jobs(place.devices) < place.devices:
            raise RuntimeError(
                f"devices must be 1 where joblib can start no processes; got {place.devices}."
            )
        joblib.Parallel(n_jobs=place.devices, batch_size=1)(
            joblib.delayed(_run_rank)(place, str(port), str(rank), train, arguments)
            for rank in range(place.devices)
        )


def _run_rank(place, port, rank, train, arguments):
    """What each of the processes does: join the others, train, part."""
    warnings.filterwarnings("ignore", r"torch\.distributed\.nn\.functional\.all_gather is deprec")
    # So Fabric knows that its processes run already, on one machine, and which this is.
    known = {"LOCAL_RANK": rank, "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    with _not_an_orphan(), mock.patch.dict(os.environ, known):
        here = lightning.LightningEnvironment()
        fabric = make_fabric(place.device, place.precision, place.devices, here)
        fabric.launch()
        train(*arguments, fabric)
        torch.distributed.destroy_process_group()  # joblib ends processes that did not get here


@contextmanager
def _not_an_orphan():
    """End this process, though it wait for others, once the one that started it is gone."""
    parent = os.getppid()
    with _meanwhile(lambda: os.getppid() == parent or os._exit(1), 1):
        yield


@contextmanager
def _meanwhile(step, seconds):
    """Call `step` in a thread every so many seconds while the block runs, and once after it."""
    over = threading.Event()

    def watch():
        ended = False
        while not ended:
            ended = over.wait(seconds)
            step()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def epoch_bar(total, show):
    """Show a bar of `total` epochs while the block runs; yields a folder for `Epochs` and locks.

    The environment variable ``PROBNB_PROGRESS=text`` makes it plain text.
    """
    text = os.environ.get("PROBNB_PROGRESS") == "text"
    make = tqdm.tqdm if text else tqdm.auto.tqdm
    bar = make(total=total, unit="epoch", disable=not show, mininterval=5 if text else 0.1)
    with bar, tempfile.TemporaryDirectory(prefix="probnb-") as folder:
        Path(folder, "epochs").touch()

        def update():
            lines = Path(folder, "epochs").read_text().splitlines()
            bar.update(len(lines) - bar.n)
            if lines:
                bar.set_description_str(lines[-1], refresh=text)

        with _meanwhile(update, 5 if text else 0.5):
            yield folder


@dataclass
class Epochs:
    """Counts a training's epochs for the bar, in whichever process: a line an epoch in a file."""

    folder: str
    label: str
    expected: int
    seen: int = 0

    def count(self, record):
        """Count one more; the bar counts on `expected` of them at most."""
        if self.seen < self.expected:
            self.finish(self.seen + 1)

    def finish(self, seen=None):
        """Count what was spared: resumed, stopped early, or another's work."""
        seen = self.expected if seen is None else seen
        with open(Path(self.folder, "epochs"), "a") as file:
            file.write(f"{self.label}\n" * (seen - self.seen))
        self.seen = seen
