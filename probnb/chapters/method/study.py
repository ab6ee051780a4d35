"""Small trainings on drawn faces in which the predictions can be watched from epoch to epoch."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pandas as pd
import torch

from ...training.batches import make_fabric
from ...training.cape import Calibrated
from ...training.loop import Recipe, fit
from ...training.models import ResNet18
from ...training.targets import Observed

SCHEDULES = {
    "outcomes only": Observed(),
    "every second epoch": Calibrated("bin", every=2),  # Algorithm 1 with m = 2
    "calibration only": Calibrated("bin", every=1),
}
"""The three fine-tunings of the page: no, half and all epochs are calibration epochs."""


@dataclass(frozen=True)
class Demonstration:
    """Sizes of the page's trainings; `smoke` has smaller ones."""

    sizes: tuple = (1000, 300, 600)  # faces to train, validate and test on
    size: int = 20  # pixels
    width: int = 8
    epochs: int = 24
    finetune_epochs: int = 9
    batch_size: int = 64
    learning_rate: float = 0.05
    finetune_learning_rate: float = 0.03
    seed: int = 0

    @classmethod
    def smoke(cls, seed=0):
        """Return the sizes for tests: seconds."""
        return cls((150, 60, 100), 16, 8, 3, 2, seed=seed)

    @property
    def finetuning(self):
        """The recipe of the fine-tunings."""
        rate = self.finetune_learning_rate
        return Recipe(self.finetune_epochs, self.batch_size, rate, schedule="constant",
                      seed=self.seed)  # fmt: skip

    def train(self, network, splits, recipe, targets=None, keep_start=False):
        """Train on the CPU in float32, whatever the machine, without a bar."""
        fabric = make_fabric("cpu", "32-true")
        return fit(network, splits, recipe, targets=targets, fabric=fabric, keep_start=keep_start,
                   on_epoch=lambda row: None)  # fmt: skip


def starts(splits, setting):
    """Train on cross entropy from random weights; return the early-stopped network and the last."""
    torch.manual_seed(setting.seed)
    network = ResNet18(setting.width, "small")
    recipe = Recipe(setting.epochs, setting.batch_size, setting.learning_rate,
                    plateau_patience=4, seed=setting.seed)  # fmt: skip
    best = setting.train(network, splits, recipe).weights
    early = copy.deepcopy(network)
    early.load_state_dict(best)
    return {"early stop": early, "last epoch": network}


def movements(networks, splits, setting):
    """Fine-tune from each start by each schedule; return the fits and every prediction on the way.

    Returns
    -------
    fits : dict of (str, str) to Fit
        By start and schedule.
    moves : DataFrame
        A row for each training face and epoch: ``start``, ``targets``, ``epoch``, the prediction
        ``p_hat`` before the next epoch, the true probability ``p`` and the outcome ``y``.
    """
    fits, moves = {}, []
    p, y = splits.train.probabilities.numpy(), splits.train.outcomes.numpy()
    for start, network in networks.items():
        for name, schedule in SCHEDULES.items():
            seen = []

            def watched(epoch, data, predict, seed, schedule=schedule, seen=seen):
                seen.append(predict().numpy())
                return schedule(epoch, data, predict, seed)

            copied = copy.deepcopy(network)
            fits[start, name] = setting.train(copied, splits, setting.finetuning, watched, True)
            facts = {"start": start, "targets": name, "p": p, "y": y.astype(int)}
            moves += [pd.DataFrame({**facts, "epoch": t, "p_hat": q}) for t, q in enumerate(seen)]
    return fits, pd.concat(moves, ignore_index=True)


def scores(fits):
    """Return the MSE_p on test faces after each epoch of each fine-tuning, as a long table."""
    rows = [
        {"start": start, "targets": name, "epoch": row["epoch"], "MSE_p": 100 * row["mse_p"],
         "kept": fit.best_epoch == row["epoch"]}
        for (start, name), fit in fits.items()
        for row in fit.history
    ]  # fmt: skip
    return pd.DataFrame(rows)


def memorised(moves):
    """Return by how much predictions of faces with outcome 1 exceed those with outcome 0.

    Less the same difference of the true probabilities, so that 0 is nothing memorised.
    """
    mean = moves.groupby(["start", "targets", "epoch", "y"])[["p_hat", "p"]].mean()
    gap = mean.xs(1, level="y") - mean.xs(0, level="y")
    return (gap["p_hat"] - gap["p"]).rename("memorised")
