"""Sentences of the synthetic chapter, made from its results."""

from __future__ import annotations

import numpy as np

from ...methods import METHODS

__all__ = ["record_sentence", "seed_sentence", "task_sentence"]


def task_sentence(splits):
    """Say which data there are and how they are split."""
    train, val, test = splits.train, splits.val, splits.test
    height, width = train.inputs.shape[-2:]
    text = (
        f"The data, {splits.source.split()[0]}: {len(train):,} faces of {height} × {width} pixels "
        f"to train on, {len(val):,} to choose and calibrate with, {len(test):,} to test on."
    )
    mirrored = [type(step).__name__.lower() for step in train.augment]
    if mirrored:
        text += f" Training images are changed at random in every epoch ({', '.join(mirrored)})."
    return text


def seed_sentence(results):
    """Say what one training can and cannot show, from the trainings that differ in seed alone.

    Parameters
    ----------
    results : probnb.experiment.results.Results
        Of a run whose rows include the deep ensemble.

    Returns
    -------
    str
        Markdown; how far early-stopped networks of other seeds lie apart.
    """
    rows = results.chosen[results.chosen["method"] == "ensemble"].drop_duplicates("fit")
    keyed = results.epochs.set_index(["fit", "epoch"])["mse_p"]
    values = 100 * np.array(
        [keyed.loc[fit, epoch] for fit, epoch in rows[["fit", "best_epoch"]].values]
    )
    if len(values) < 2:
        return (
            "**One training.** The intervals below are over test faces of one training of each "
            "row. They say nothing about another seed."
        )
    listed = ", ".join(f"{value:.2f}" for value in sorted(values))
    return (
        f"**What one training can show.** The ensemble's {len(values)} members are early-stopped "
        f"CE trainings that differ in their seed alone: MSE_p × 100 = {listed} (standard deviation "
        f"{values.std(ddof=1):.2f}). The intervals below are over test faces of *one* training of "
        "each row, and leave this out: of two rows that were trained apart, a difference of "
        f"less than about {2 * np.sqrt(2) * values.std(ddof=1):.2f} may be the luck of a seed. "
        "Fine-tunings and calibrators share their start with CE early-stop, so that most of that "
        "luck cancels."
    )


def record_sentence(run, results):
    """Say what the run cost, where it ran, and whether all of it was trained by today's code."""
    record = run.record
    cost = (
        f"{record['cpu_seconds']:.0f} processor seconds ({record['processor']}, "
        f"{record['precision']})"
    )
    text = f"{record['epochs']} epochs of {results.epochs['fit'].nunique()} trainings took {cost}."
    if results.foreign:
        text += (
            f" **{len(results.foreign)} of them were trained by other code than today's** and are "
            "shown as they were stored (`-p retrain True` trains them again): "
            + ", ".join(results.foreign)
            + "."
        )
    kept = results.chosen.query("chosen and kept_start")["method"].unique()
    if len(kept):
        text += (
            " Kept their start, since no epoch of fine-tuning had a lower validation cross "
            f"entropy: {', '.join(METHODS[name].label for name in kept)}."
        )
    return text
