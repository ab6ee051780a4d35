"""Memory of an epoch over maps that do not fit into it; the figure is the process's peak."""

import os
import subprocess
import sys

import numpy as np
import pytest

EPOCH = """
import sys
from pathlib import Path
import numpy as np, torch
from torch import nn
from probnb.data import ProbabilityData, Splits
from probnb.training.loop import Recipe, fit
from probnb.training.batches import make_fabric

def peak():  # of this program alone: what getrusage tells includes the one that started it
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20

maps = np.load(sys.argv[1], mmap_mode="r")
torch.set_num_threads(1)
y = np.arange(len(maps)) % 2

def part(first, last):
    return ProbabilityData(maps[first:last], y[first:last])

splits = Splits(part(0, len(maps) - 400), part(-400, -200), part(-200, None), "generated")
pool = nn.Sequential(nn.AvgPool2d(50), nn.Flatten(), nn.Linear(3 * 36, 2))
before = peak()
fit(pool, splits, Recipe(epochs=1, batch_size=64), fabric=make_fabric("cpu", "32-true"),
    on_epoch=lambda row: None)
print(before, peak())
"""


@pytest.mark.parametrize("count", [int(os.environ.get("PROBNB_MAPS", 20_000))])
def test_an_epoch_over_maps_on_disk_stays_below_three_gigabytes(tmp_path, count):
    path = tmp_path / "maps.npy"
    maps = np.lib.format.open_memmap(path, "w+", np.uint8, (count, 3, 300, 300))
    maps[:, :, 0, 0] = np.random.default_rng(0).integers(0, 255, (count, 3), dtype=np.uint8)
    maps.flush()
    del maps
    run = subprocess.run(
        [sys.executable, "-c", EPOCH, str(path)], capture_output=True, text=True, check=True
    )
    before, after = map(float, run.stdout.split())
    print(f"peak {after:.2f} GB, of which {before:.2f} before the epoch; {count} maps")
    assert after < 3
