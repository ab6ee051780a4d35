"""Memory of an epoch over maps that do not fit into it; the figure is the process's peak."""

import os
import subprocess
import sys

import numpy as np
import pytest

EPOCH = """
import resource, sys
import numpy as np, torch
from torch import nn
from probnb.data import ProbabilityData, Splits
from probnb.training import Recipe, fit
from probnb.training.batches import make_fabric

maps = np.load(sys.argv[1], mmap_mode="r")
torch.set_num_threads(1)
y = np.arange(len(maps)) % 2

def part(first, last):
    return ProbabilityData(maps[first:last], y[first:last])

splits = Splits(part(0, len(maps) - 400), part(-400, -200), part(-200, None), "generated")
pool = nn.Sequential(nn.AvgPool2d(50), nn.Flatten(), nn.Linear(3 * 36, 2))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fit(pool, splits, Recipe(epochs=1, batch_size=64), fabric=make_fabric("cpu", "32-true"),
    on_epoch=lambda row: None)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before / 2**20, after / 2**20)
"""


@pytest.mark.parametrize("count", [int(os.environ.get("PROBNB_MAPS", 20_000))])
def test_an_epoch_over_maps_on_disk_stays_below_three_gigabytes(tmp_path, count):
    path = tmp_path / "maps.npy"
    maps = np.lib.format.open_memmap(path, "w+", np.uint8, (count, 3, 300, 300))
    rng = np.random.default_rng(0)
    for first in range(0, count, 1000):
        maps[first : first + 1000, :, ::50] = rng.integers(0, 255, dtype=np.uint8)
    maps.flush()
    del maps
    run = subprocess.run(
        [sys.executable, "-c", EPOCH, str(path)], capture_output=True, text=True, check=True
    )
    before, after = map(float, run.stdout.split())
    print(f"peak {after:.2f} GB, of which {before:.2f} before the epoch; {count} maps")
    assert after < 3
