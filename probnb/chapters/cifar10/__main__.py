"""Train a task with several seeds and keep what may be published of it.

``python -m probnb.chapters.cifar10 ferplus neutral --data-dir DATA --seeds 0 1 2`` trains what is
not yet trained, writes ``results/cifar10/{question}-{data}-...`` for each seed, and the comparison
over seeds, which needs the votes, to ``results/cifar10/{question}-{data}.csv``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...experiment.profiles import make_profile
from .stored import publish
from .tasks import TASKS, load_task, train_task

SETTINGS = {
    "digits": {"images": None, "size": 16},
    "cifar10": {"images": 12_000, "size": 32},
    "cifar10h": {"images": 6_000, "size": 32},
    "ferplus": {"images": 12_000, "size": 48},
}
"""Training images and their size in pixels."""

RECIPE = {
    "epochs": 16,
    "patience": 3,
    "plateau_patience": 2,
    "batch_size": 128,
    "learning_rate": 0.01,
    "finetune_epochs": 6,
}
"""What the small network on oriented gradients needs of the profile ``cpu``."""


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probnb.chapters.cifar10", description=__doc__)
    parser.add_argument("data", choices=list(TASKS))
    parser.add_argument("question")
    parser.add_argument("--data-dir")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--results", default="results", help="what may be published")
    parser.add_argument("--runs", default="runs", help="finished trainings")
    parser.add_argument("--workers", type=int)
    given = parser.parse_args(arguments)
    settings = make_profile("cpu", **SETTINGS[given.data], **RECIPE)
    runs = []
    for seed in given.seeds:
        task = load_task(
            given.data, given.question, given.data_dir, settings.images, settings.size, seed
        )
        runs.append(
            train_task(task, settings, given.runs, "cpu", seed, device="cpu", workers=given.workers)
        )
        print(runs[-1][1].directory)
    publish(runs, Path(given.results) / "cifar10")


if __name__ == "__main__":
    main()
