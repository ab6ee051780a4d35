"""The whole pretrained network, trained gently from a head that is right: does it pay?

``python benchmarks/finetune.py UTKFACE FOLDER --seeds 0 1 2`` puts the logistic regression of each
seed on its backbone and trains both, with averaged weights and mirrored faces (Linear, 128 pixels).
Epoch 0 is the regression itself. A killed training goes on, and ``FOLDER/finetune.jsonl`` has a
row an epoch. One thread (``OMP_NUM_THREADS=1``).
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch

from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.run import run_jobs
from probnb.methods import Recipe
from probnb.pretrained.backbone import Pretrained
from probnb.pretrained.features import features_of
from probnb.training.loop import fit
from probnb_book.data.faces import load_faces

RECIPE = Recipe(2, 64, 3e-4, schedule="constant", averaging=0.99)


def fine_tune(path, folder, seed, backbone="lite0"):
    """Return the history of the fine-tuning of one seed."""
    splits = load_faces("linear", path, size=128, seed=seed, mirror=True)
    settings = make_profile("features", backbone=backbone)
    features = features_of(splits, settings, folder)
    (job,) = plan(["logistic"], settings, seed)["logistic"]
    head = run_jobs([job], features, folder / "fits", "cpu")[job]
    model = Pretrained(backbone)
    mean, deviation = (part[0] for part in features.train.scale)
    model.norm.running_mean.copy_(mean)
    model.norm.running_var.copy_(deviation**2)
    model.head.load_state_dict(head.weights)
    seen = replace(splits, train=replace(splits.train, scale=model.backbone.scale))
    how = {"keep_start": True, "on_epoch": lambda row: print(seed, row, flush=True)}
    return fit(
        model, seen, replace(RECIPE, seed=seed), checkpoint=folder / f"seed{seed}.epoch", **how
    ).history


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    torch.set_num_threads(1)
    for seed in given.seeds:
        history = fine_tune(given.path, given.folder, seed)
        with open(given.folder / "finetune.jsonl", "a") as file:
            file.writelines(f"{json.dumps({'seed': seed} | row)}\n" for row in history)
