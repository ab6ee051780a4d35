"""The device that is here: how much of what it can do training uses, and whether it repeats itself.

On a GPU at the paper's size, 200 pixels and width 64; elsewhere at the book's.
"""

import time

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from probnb.data.base import Splits
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.run import run_jobs
from probnb.training.batches import device_type, make_fabric, precision_of, use_fast_layout
from probnb.training.loop import Recipe, train_one_epoch
from probnb.training.losses import CrossEntropy
from probnb.training.models import ResNet18
from probnb_book.data.faces import load_faces

DEVICE = device_type("auto")
GPU = DEVICE == "cuda"
SIZE, WIDTH, STEM, ROWS = (200, 64, "large", 4096) if GPU else (32, 8, "small", 1024)
RECIPE = Recipe(batch_size=256)


def seconds(work):
    """Of the third of three calls, with all that the device still has to do."""
    for _ in range(3):
        began = time.perf_counter()
        work()
        if GPU:
            torch.cuda.synchronize()
        took = time.perf_counter() - began
    return took


@pytest.fixture(scope="module")
def faces():
    """Drawn once and repeated: what is on them costs nothing and changes no time."""
    splits = load_faces("linear", size=SIZE, n=400)
    rows = torch.arange(ROWS) % len(splits.train)
    return Splits(splits.train.take(rows), splits.val, splits.test, source="drawn")


def test_images_a_second_and_share_of_the_matrix_product(faces):
    fabric = make_fabric(DEVICE)
    data = faces.to(fabric.device).train
    model = use_fast_layout(ResNet18(WIDTH, STEM))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, fused=True)
    model, optimizer = fabric.setup(model, optimizer)
    rest = data, data.outcomes, CrossEntropy(), RECIPE
    with FlopCounterMode(display=False) as counted:
        train_one_epoch(fabric, model, optimizer, *rest, 1)
    took = seconds(lambda: train_one_epoch(fabric, model, optimizer, *rest, 2))

    n = 8192 if GPU else 1024
    kind = torch.bfloat16 if precision_of(DEVICE).startswith("bf16") else torch.float32
    a = torch.randn(n, n, device=fabric.device, dtype=kind)
    peak = 2 * n**3 / seconds(lambda: a @ a)
    share = counted.get_total_flops() / took / peak
    print(f"\n{SIZE} pixels, width {WIDTH}, {precision_of(DEVICE)} on {DEVICE}:")
    print(
        f"{ROWS / took:.0f} images a second, {share:.0%} of the matrix product's {peak:.2g} FLOP/s"
    )


@pytest.mark.skipif(not GPU, reason="a CPU has no queue to wait for")
def test_no_step_waits_for_the_device(faces):
    fabric = make_fabric(DEVICE)
    data = faces.to(fabric.device).train
    model = ResNet18(WIDTH, STEM)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.01))
    waited = []
    backward = fabric.backward

    def watched(loss):  # from the first step's end to the last's: an epoch's ends may wait
        backward(loss)
        torch.cuda.set_sync_debug_mode("error")
        waited.append(len(waited))

    fabric.backward = watched
    try:
        with pytest.raises(RuntimeError, match="synchroniz"):  # the epoch's mean loss, at its end
            train_one_epoch(
                fabric, model, optimizer, data, data.outcomes, CrossEntropy(), RECIPE, 1
            )
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(waited) == ROWS // RECIPE.batch_size


def test_two_trainings_at_a_time_have_the_bits_of_one(faces, tmp_path):
    settings = make_profile("cpu", size=SIZE, width=WIDTH, stem=STEM, epochs=2, members=2)
    jobs = plan(["ensemble"], settings, seed=0)
    found = [
        run_jobs(jobs, faces, tmp_path / str(n), device=DEVICE, workers=n, progress=False)
        for n in (1, 2)
    ]
    for job in jobs["ensemble"]:
        one, two = (fits[job].logits["last_test"] for fits in found)
        assert torch.equal(one, two)
