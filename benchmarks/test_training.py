"""Training: ours against the loop that one would write first, on the same model and data."""

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from probnb.training.batches import make_fabric, precision_of, use_fast_layout
from probnb.training.loop import Recipe, train_one_epoch
from probnb.training.losses import CrossEntropy
from probnb.training.models import ResNet18
from probnb_book.data.faces import load_faces

RECIPE = Recipe(batch_size=128)


class Images(Dataset):
    """One PIL image at a time, as a folder of files would give."""

    def __init__(self, data):
        self.images = [transforms.functional.to_pil_image(x) for x in data.inputs]
        self.outcomes = data.outcomes.long()
        self.transform = transforms.Compose(
            [
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize([0.5] * 3, [0.25] * 3),
            ]
        )

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i]), self.outcomes[i]


def sgd(model):
    return torch.optim.SGD(
        model.parameters(), RECIPE.learning_rate, RECIPE.momentum, weight_decay=RECIPE.weight_decay
    )


def plain_epoch(model, optimizer, loader):
    model.train()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("size", [32, 48])
def test_epoch_against_a_plain_loop(benchmark, size):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the project trains: one thread a network
    data = load_faces("linear", size=size, n=2900).to("cpu").train
    model = ResNet18(16, "small")
    loader = DataLoader(Images(data), RECIPE.batch_size, shuffle=True)
    optimizer = sgd(model)
    plain_epoch(model, optimizer, loader)
    began = time.perf_counter()
    plain_epoch(model, optimizer, loader)
    plain = time.perf_counter() - began

    def ours_at(precision):
        fabric = make_fabric("cpu", precision)
        model = use_fast_layout(ResNet18(16, "small"))
        model, optimizer = fabric.setup(model, sgd(model))

        def epoch():
            train_one_epoch(
                fabric, model, optimizer, data, data.outcomes, CrossEntropy(), RECIPE, 1
            )

        return epoch

    half = ours_at("bf16-mixed")
    half()
    began = time.perf_counter()
    half()
    halved = time.perf_counter() - began
    epoch = ours_at("32-true")
    benchmark.pedantic(epoch, rounds=3, warmup_rounds=1)
    ours = benchmark.stats.stats.min
    benchmark.extra_info |= {
        "images per second": round(len(data) / ours),
        "plain loop, images per second": round(len(data) / plain),
        "times faster": round(plain / ours, 2),
        "bfloat16 in place of float32, times faster": round(ours / halved, 2),
        "what training takes here": precision_of("cpu"),
    }
    print(f"\n{size} pixels: {benchmark.extra_info}")
    torch.set_num_threads(threads)
