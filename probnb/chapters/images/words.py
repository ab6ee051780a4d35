"""Sentences of the chapter on your own images, made from its results."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from ...methods import METHODS

__all__ = ["advice", "choice_cells", "how_to_predict", "lever", "what_was_read"]

FEW = 200
"""With so few positive test images, or fewer, differences between methods are mostly noise."""

PARTS = {"train": "to train on", "val": "to choose and calibrate with", "test": "to test on"}


def what_was_read(splits):
    """Say what was read and divided, what was left out, and whether it is enough.

    Parameters
    ----------
    splits : probnb.data.Splits
        From `probnb.data.images.load_images`.

    Returns
    -------
    str
        Markdown, one point a line.
    """
    height, width = splits.train.inputs.shape[-2:]
    sizes = "; ".join(
        f"{len(part):,} {PARTS[name]} ({float(part.outcomes.mean()):.1%} with outcome 1)"
        for name, part in splits.parts().items()
    )
    mirrored = "Training images are mirrored at random." if splits.train.augment else ""
    points = [*splits.report["notes"], f"At {height} × {width} pixels: {sizes}. {mirrored}".strip()]
    if warning := _too_few(splits.test):
        points.append(warning)
    return "\n".join(f"- {point}" for point in points)


def _too_few(test):
    """A warning where the rarer outcome has few test rows; empty otherwise."""
    ones = int(test.outcomes.sum())
    rare, outcome = min((ones, 1), (len(test) - ones, 0))
    if rare > FEW:
        return ""
    return (
        f"**The test part has only {rare:,} images with outcome {outcome}.** With {FEW} or fewer, "
        "differences between methods are mostly noise: look at the widths of the intervals, and "
        "do not take the order of the rows for their worth."
    )


def choice_cells(choice):
    """Show what the validation data say of each row.

    Parameters
    ----------
    choice : DataFrame
        From `probnb.experiment.keep.choose_model`.

    Returns
    -------
    DataFrame
        Cells to show, one line a row.
    """
    return pd.DataFrame(
        {
            "validation NLL": [f"{value:.4f}" for value in choice["nll"]],
            "gap": [f"{value:.4f}" for value in choice["gap"]],
            "se": [f"{value:.4f}" for value in choice["se"]],
            "networks": choice["networks"].to_numpy(),
            "chosen": np.where(choice["chosen"], "✓", ""),
        },
        index=[METHODS[name].label for name in choice.index],
    )


def advice(choice, differences, test):
    """Say which row to use, and why.

    Parameters
    ----------
    choice : DataFrame
        From `probnb.experiment.keep.choose_model`.
    differences : DataFrame
        Of the test NLL, from `probnb.chapters.images.study.learning_curve`.
    test : probnb.data.ProbabilityData
        The test rows.

    Returns
    -------
    str
        Markdown.
    """
    name, best = choice.index[choice["chosen"]][0], choice.index[0]
    row, label = choice.loc[name], METHODS[name].label
    text = f"**Use {label.rstrip('.')}.** "
    if name == best:
        text += f"It has the lowest validation NLL of the {len(choice)} rows, {row['nll']:.4f}."
        near = [m for m in choice.index[1:] if choice["gap"][m] <= choice["se"][m]]
        if near:
            text += f" Validation data do not tell it from {_listed(near)}, which are less plain."
    else:
        text += (
            f"The lowest validation NLL is that of {METHODS[best].label}, "
            f"{choice['nll'][best]:.4f}, but the difference, {row['gap']:.4f}, is less than its "
            f"standard error, {row['se']:.4f}; of the rows that the validation data do not tell "
            f"apart, {label} is the plainest"
            + (" and needs one network" if row["networks"] == 1 < choice["networks"][best] else "")
            + "."
        )
    if name in differences.index:
        text += (
            " On the test images its NLL is "
            f"{_change(differences.loc[name], 'that of ' + METHODS['ce'].label)}."
        )
    elif name == "ce":
        text += " No other row is surely better than plain cross entropy, stopped early."
    if _too_few(test):
        text += " With so few test images of the rarer outcome, this may change with more data."
    return text


def lever(points, differences, choice):
    """Say whether more data or a better method promises more.

    Parameters
    ----------
    points, differences : DataFrame
        From `probnb.chapters.images.study.learning_curve`.
    choice : DataFrame
        From `probnb.experiment.keep.choose_model`.

    Returns
    -------
    str
        Markdown.
    """
    half, others = differences.loc["half"], differences.drop("half")
    rows = points["rows"].tolist()
    text = (
        f"From {rows[-2]:,} to {rows[-1]:,} training images, the test NLL of plain cross entropy "
        f"is {_change(half)}."
    )
    if others.empty:
        return text
    best = next(name for name in choice.index if name in others.index)
    method = others.loc[best]
    text += (
        f" With all of them, that of {METHODS[best].label}, the best other row by validation, is "
        f"{_change(method, 'that of plain cross entropy')}. "
    )
    data, rows_help = -half["difference"], half["high"] < 0
    gain, method_helps = -method["difference"], method["high"] < 0
    if rows_help and (data > gain or not method_helps):
        return text + (
            "**More data is the lever**: twice the images brought more than the method, and the "
            "curve has not flattened."
        )
    if method_helps:
        return text + "**The method is the lever**: it brought more than twice the images did."
    return text + (
        "**Neither is a sure lever here**: these test images can tell neither difference from 0."
    )


def how_to_predict(folder, name, largest):
    """Say how the kept model is used, and that it gives the numbers of this page.

    Parameters
    ----------
    folder : path-like
        Where the model was saved.
    name : str
        Its row.
    largest : float
        The largest difference between the saved model's probabilities and those of the report.
    """
    folder = os.path.relpath(folder)
    digits = "exactly" if largest == 0 else f"to {largest:.0e}"
    return (
        f"The model of the row {METHODS[name].label} is kept in `{folder}`. Read back from there, "
        f"it gives the test images the probabilities of this report {digits}. For new images:\n\n"
        f"```\npython -m probnb predict {folder} new_images/ > predictions.csv\n```"
    )


def _change(row, other=""):
    """A difference of NLL in words, with its interval; `other` is what it is compared with."""
    interval = f"[{row['low']:+.4f}, {row['high']:+.4f}]"
    if row["low"] <= 0 <= row["high"]:
        what = other or "what it was"
        return f"not to be told from {what} ({row['difference']:+.4f} {interval})"
    than = f" than {other}" if other else ""
    way = "lower" if row["difference"] < 0 else "higher"
    return f"{way}{than} by {abs(row['difference']):.4f} {interval}"


def _listed(names):
    labels = [METHODS[name].label for name in names]
    return ", ".join(labels[:-1]) + " and " * (len(labels) > 1) + labels[-1]
