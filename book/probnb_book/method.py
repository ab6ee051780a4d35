"""The page on the method: small trainings whose predictions are watched from epoch to epoch."""

import copy
from dataclasses import dataclass

import pandas as pd
import torch

from probnb.metrics.binning import reliability_bins
from probnb.training.batches import make_fabric
from probnb.training.cape import Calibrated
from probnb.training.loop import Recipe, fit
from probnb.training.models import ResNet18
from probnb.training.targets import Observed

from .data.faces import load_faces

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
        return Recipe(
            self.finetune_epochs, self.batch_size, rate, schedule="constant", seed=self.seed
        )

    def train(self, network, splits, recipe, targets=None, keep_start=False):
        """Train on the CPU in float32, whatever the machine, without a bar."""
        how = {"fabric": make_fabric("cpu", "32-true"), "on_epoch": lambda row: None}
        return fit(network, splits, recipe, targets=targets, keep_start=keep_start, **how)


def starts(splits, setting):
    """Train on cross entropy from random weights; return the early-stopped network and the last."""
    torch.manual_seed(setting.seed)
    network = ResNet18(setting.width, "small")
    sizes = setting.epochs, setting.batch_size, setting.learning_rate
    recipe = Recipe(*sizes, plateau_patience=4, seed=setting.seed)
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
        (*key, row["epoch"], 100 * row["mse_p"], fit.best_epoch == row["epoch"])
        for key, fit in fits.items()
        for row in fit.history
    ]
    return pd.DataFrame(rows, columns=["start", "targets", "epoch", "MSE_p", "kept"])


def memorised(moves):
    """Return by how much predictions of faces with outcome 1 exceed those with outcome 0.

    Less the same difference of the true probabilities, so that 0 is nothing memorised.
    """
    mean = moves.groupby(["start", "targets", "epoch", "y"])[["p_hat", "p"]].mean()
    gap = mean.xs(1, level="y") - mean.xs(0, level="y")
    return (gap["p_hat"] - gap["p"]).rename("memorised")


def study(seed):
    """Train what the page trains, and return what its text speaks of.

    Returns
    -------
    DataFrame
        By ``start``, ``targets`` and ``epoch``: ``MSE_p`` (times 100) on test faces, ``memorised``
        before the next epoch, whether validation ``kept`` it; ``p_emp_error`` of the start's
        training faces, the mean distance (times 100) from the true probability of a bin.
    """
    torch.set_num_threads(1)
    setting = Demonstration(seed=seed)
    splits = load_faces("linear", size=setting.size, n=setting.sizes, seed=seed)
    fits, moves = movements(starts(splits, setting), splits, setting)
    first = moves[moves["epoch"] == 0].groupby("start")[["p_hat", "p", "y"]]
    error = {start: 100 * _p_emp_error(*table.to_numpy().T) for start, table in first}
    table = scores(fits).merge(memorised(moves).reset_index(), how="left")
    return table.assign(p_emp_error=table["start"].map(error))


def _p_emp_error(p_hat, p, y):
    bins = pd.DataFrame({"p": p, "y": y}).groupby(reliability_bins(y, p_hat, 15).assign(p_hat))
    means = bins.transform("mean")
    return (means["y"] - means["p"]).abs().mean()
