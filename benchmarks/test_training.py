"""Training: ours against the loop that one would write first, on the same model and data."""

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from probnb.data.faces import load_faces
from probnb.training.batches import input_scale, make_fabric
from probnb.training.loop import Recipe, train_one_epoch
from probnb.training.losses import CrossEntropy
from probnb.training.models import ResNet18

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
    data = load_faces("linear", size=size, n=2900).train
    model = ResNet18(16, "small")
    loader = DataLoader(Images(data), RECIPE.batch_size, shuffle=True)
    optimizer = sgd(model)
    plain_epoch(model, optimizer, loader)
    began = time.perf_counter()
    plain_epoch(model, optimizer, loader)
    plain = time.perf_counter() - began

    fabric = make_fabric("cpu")
    model = ResNet18(16, "small").to(memory_format=torch.channels_last)
    model, optimizer = fabric.setup(model, sgd(model))
    scale = input_scale(data.inputs)

    def epoch():
        train_one_epoch(
            fabric, model, optimizer, scale, data, data.outcomes, CrossEntropy(), RECIPE, 1
        )

    benchmark.pedantic(epoch, rounds=3, warmup_rounds=1)
    ours = benchmark.stats.stats.min
    benchmark.extra_info |= {
        "images per second": round(len(data) / ours),
        "plain loop, images per second": round(len(data) / plain),
        "times faster": round(plain / ours, 2),
    }
    print(f"\n{size} pixels: {benchmark.extra_info}")
    torch.set_num_threads(threads)
