"""Where trainings run, each on a device of its own or one over several.

Processes are joblib's, which start as readily from a notebook as from a script, raise in the
caller what was raised in one of them, and are ended when one fails.
"""

import os
import threading
import time
import warnings
from dataclasses import dataclass
from unittest import mock

import joblib
import torch
from lightning_fabric.plugins.environments import lightning
from torch import nn

from ..training.batches import make_fabric
from ..validation import check_integer


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
        raise ValueError(f"devices must be at most {there}, what {device} has here; got {devices}.")
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
    """

    device: str
    precision: str
    devices: int = 1
    workers: int = 1
    spread: bool = False

    def run(self, number, train, *arguments):
        """Call ``train(*arguments, fabric)`` here, or once in a process for each device.

        Training by training, by their `number`, GPUs take turns.
        """
        if self.spread:
            _spread(self, train, arguments)
        else:
            devices = [number % self.devices] if self.device == "cuda" else 1
            train(*arguments, make_fabric(self.device, self.precision, devices))

    def call(self, calls):
        """Run joblib's delayed calls, as many at a time as there are workers; yield what ends."""
        count = 1 if self.spread else max(1, min(self.workers, len(calls)))
        with self._processes(self.workers):
            parallel = joblib.Parallel(count, batch_size=1, return_as="generator_unordered")
        yield from parallel(calls)

    def _processes(self, count):
        """Joblib's processes, each with its share of the cores; one core on a CPU."""
        threads = 1 if self.device == "cpu" else max(1, joblib.cpu_count() // count)
        # Shared arrays are copied where they are written to, which nothing does.
        return joblib.parallel_config("loky", inner_max_num_threads=threads, mmap_mode="c")


def _spread(place, train, arguments):
    port = str(lightning.find_free_network_port())
    with place._processes(place.devices):
        if joblib.effective_n_jobs(place.devices) < place.devices:
            raise RuntimeError(
                f"devices must be 1 where no process can start; got {place.devices}."
            )
        run = joblib.delayed(_run_rank)
        joblib.Parallel(n_jobs=place.devices, batch_size=1)(
            run(place, port, str(rank), train, arguments) for rank in range(place.devices)
        )


def _run_rank(place, port, rank, train, arguments):
    """What each of the processes does: join the others, train, part."""
    warnings.filterwarnings("ignore", r"torch\.distributed\.nn\.functional\.all_gather is deprec")
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    # So Fabric knows that its processes run already, on one machine, and which this is.
    known = {"LOCAL_RANK": rank, "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    with mock.patch.dict(os.environ, known):
        here = lightning.LightningEnvironment()
        fabric = make_fabric(place.device, place.precision, place.devices, here)
        fabric.launch()
        train(*arguments, fabric)
        torch.distributed.destroy_process_group()  # joblib ends processes that did not get here


def _end_with(parent):
    """End this process, though it wait for others, once the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
