"""The page on the method: small trainings whose predictions are watched from epoch to epoch."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pandas as pd
import seaborn as sns
import torch

from probnb.metrics.binning import reliability_bins
from probnb.plots import COLOURS
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
        fabric = make_fabric("cpu", "32-true")
        return fit(
            network,
            splits,
            recipe,
            targets=targets,
            fabric=fabric,
            keep_start=keep_start,
            on_epoch=lambda row: None,
        )


def starts(splits, setting):
    """Train on cross entropy from random weights; return the early-stopped network and the last."""
    torch.manual_seed(setting.seed)
    network = ResNet18(setting.width, "small")
    recipe = Recipe(
        setting.epochs,
        setting.batch_size,
        setting.learning_rate,
        plateau_patience=4,
        seed=setting.seed,
    )
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
        {
            "start": start,
            "targets": name,
            "epoch": row["epoch"],
            "MSE_p": 100 * row["mse_p"],
            "kept": fit.best_epoch == row["epoch"],
        }
        for (start, name), fit in fits.items()
        for row in fit.history
    ]
    return pd.DataFrame(rows)


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


_TARGETS = {"outcomes only": "vermilion", "every second epoch": "green", "calibration only": "blue"}


def movement_figure(moves, start, epochs):
    """Draw training faces, prediction across and true probability up, at a few epochs."""
    shown = moves.query("start == @start and epoch in @epochs and targets != 'every second epoch'")
    facets = sns.relplot(
        shown.rename(columns={"y": "outcome"}),
        x="p_hat",
        y="p",
        hue="outcome",
        style="outcome",
        row="targets",
        col="epoch",
        kind="scatter",
        height=1.95,
        aspect=0.9,
        s=9,
        alpha=0.6,
        linewidth=0,
        palette=[COLOURS["blue"], COLOURS["vermilion"]],
        rasterized=True,
        facet_kws={"margin_titles": True, "legend_out": False},
    )
    for ax in facets.axes.flat:
        ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1, zorder=0)
    facets.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    facets.set(xticklabels=["0", "½", "1"], yticklabels=["0", "½", "1"])
    facets.set_axis_labels(r"prediction $\hat p$", "true probability $p$")
    facets.set_titles(col_template="epoch {col_name}", row_template="{row_name}")
    return _legend_above(facets, "outcome")


def scores_figure(scores):
    """Draw the error on test faces after each epoch; a ring marks what validation data kept."""
    facets = sns.relplot(
        scores,
        x="epoch",
        y="MSE_p",
        hue="targets",
        style="targets",
        col="start",
        kind="line",
        height=2.9,
        aspect=1.25,
        palette={k: COLOURS[v] for k, v in _TARGETS.items()},
        markers=True,
        dashes=False,
        mec="white",
        ms=6,
        facet_kws={"legend_out": False},
    )
    for name, ax in facets.axes_dict.items():
        kept = scores[(scores["start"] == name) & scores["kept"]]
        ax.plot(kept["epoch"], kept["MSE_p"], "o", ms=13, mfc="none", mec="black", mew=1.2)
    facets.set_axis_labels("epoch of fine-tuning", r"test MSE$_p$ $\times$ 100")
    facets.set_titles("from the {col_name}").set(ylim=(0, None))
    facets.set(xticks=range(0, scores["epoch"].max() + 1, 3))
    return _legend_above(facets)


def empirical_figure(estimates):
    """Draw training faces in the order of their predictions: `estimates` by start and name."""
    tables = {
        start: pd.DataFrame(columns).sort_values("prediction", kind="stable", ignore_index=True)
        for start, columns in estimates.items()
    }
    table = pd.concat(tables, names=["start", "rank"]).reset_index()
    table = table.melt(["start", "rank"], var_name="estimate")
    facets = sns.relplot(
        table,
        x="rank",
        y="value",
        hue="estimate",
        col="start",
        kind="line",
        height=2.9,
        aspect=1.25,
        palette=[COLOURS[c] for c in ("black", "blue", "sky", "vermilion")],
        facet_kws={"legend_out": False},
    )
    facets.set_axis_labels("training faces, by prediction", "probability")
    facets.set_titles("after the {col_name}").set(ylim=(-0.02, 1.02), xticks=[])
    return _legend_above(facets)


def _legend_above(facets, title=None):
    """Put the legend over the panels, which then have the width of the page."""
    sns.move_legend(facets, "lower center", bbox_to_anchor=(0.5, 1), ncols=4, title=title)
    return facets
