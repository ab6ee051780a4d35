"""Train a task with several seeds and keep what may be published of it.

``python -m probnb.chapters.cifar10 ferplus neutral --data-dir DATA --seeds 0 1 2`` trains what is
not yet trained, writes ``results/cifar10/{question}-{data}-{profile}-seed{seed}`` for each seed,
and the comparison over seeds, which needs the votes, to ``results/cifar10/{question}-{data}.csv``
(``...-pixels.csv`` with ``--inputs pixels``).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .study import publish
from .tasks import TASKS, load_task, task_settings, train_task


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probnb.chapters.cifar10", description=__doc__)
    parser.add_argument("data", choices=list(TASKS))
    parser.add_argument("question")
    parser.add_argument("--data-dir")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--results", default="results", help="what may be published")
    parser.add_argument("--runs", default="runs", help="finished trainings")
    parser.add_argument("--profile", default="cpu")
    parser.add_argument("--inputs", choices=("gradients", "pixels"), default="gradients")
    parser.add_argument("--methods", help='names of rows, as in "ce, platt"; all by default')
    parser.add_argument("--workers", type=int)
    given = parser.parse_args(arguments)
    data, inputs = given.data, given.inputs
    settings = task_settings(data, given.profile, inputs)
    sizes, how = (settings.images, settings.size), {"device": "cpu", "workers": given.workers}
    runs = []
    for seed in given.seeds:
        task = load_task(data, given.question, given.data_dir, *sizes, seed, inputs)
        run = train_task(task, settings, given.runs, given.profile, seed, given.methods, **how)
        runs.append(run)
        print(run[1].directory, flush=True)
    print(publish(runs, Path(given.results) / "cifar10"))


if __name__ == "__main__":
    main()
