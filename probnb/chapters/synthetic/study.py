"""Tables of the synthetic chapter, whatever its parameters: facts, verdicts, seeds, starts."""

from __future__ import annotations

import pandas as pd

from ...methods import METHODS
from ...metrics.differences import compare

FINETUNED = ("ce_finetuned", "cape_bin", "cape_kernel")
"""Rows that start from early stopping and may keep it."""


def facts(splits, run, results):
    """What was run on what, as a table of two columns; what other code trained is named."""
    parts = {"train on": splits.train, "choose and calibrate with": splits.val,
             "test on": splits.test}  # fmt: skip
    record, shape = run.record, "x".join(map(str, splits.train.inputs.shape[-2:]))
    rows = {
        "data": f"{splits.source.split()[0]}, {shape} pixels",
        "faces": ", ".join(f"{len(part):,} to {what}" for what, part in parts.items()),
        "augmentation": ", ".join(type(s).__name__.lower() for s in splits.train.augment) or "none",
        "trainings": f"{results.epochs['fit'].nunique()}, in all {record['epochs']} epochs",
        "processor seconds": f"{record['cpu_seconds']:.0f} ({record['processor']}, "
        f"{record['precision']})",
        "trained by other code": ", ".join(results.foreign) or "none",
    }
    return pd.Series(rows, name="").to_frame()


def kept_start(chosen):
    """Labels of the rows whose chosen weights are those of their start."""
    kept = chosen.query("chosen and kept_start")["method"].unique()
    return [METHODS[name].label for name in kept]


def member_errors(results):
    """MSE_p of the ensemble's members: early-stopped trainings that differ in their seed alone."""
    rows = results.chosen[results.chosen["method"] == "ensemble"].drop_duplicates("fit")
    epochs = results.epochs.set_index(["fit", "epoch"])["mse_p"]
    kept = [100 * epochs.loc[key] for key in zip(rows["fit"], rows["best_epoch"])]
    return pd.Series(kept, dtype=float)


def verdicts(result, chosen, metric="mse_p", reference="ce"):
    """Difference of each row from early stopping (and of fine-tunings from their control).

    Words are fixed: "lower" and "higher" where the interval over test rows leaves out 0. Of one
    training they are about these test faces, and not about the methods.
    """
    kept = kept_start(chosen)
    rows = {}
    for name in result.point.index.drop(reference):
        label = METHODS[name].label
        cells = {"vs CE early-stop": compare([result], name, reference, metric)}
        if name.startswith("cape") and "ce_finetuned" in result.point.index:
            cells["vs CE fine-tuned"] = compare([result], name, "ce_finetuned", metric)
        rows[label] = {"start": "kept" if label in kept else ""}
        for column, found in cells.items():
            rows[label][column] = found.text()
            rows[label][f"{column}:"] = _word(found)
    return pd.DataFrame.from_dict(rows, orient="index").fillna("").rename_axis("MSE_p × 100")


def _word(found):
    if found.value == 0:
        return "the same"
    return "not told apart" if not found.resolved else "lower" if found.value < 0 else "higher"
