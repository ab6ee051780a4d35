"""Images that many people judged: FER+, and whatever else comes with counts of votes.

Nobody knows the probability that a person calls a face neutral, but ten people who were asked
about the same face measure it. One of their votes, drawn at random, becomes the outcome y that
training and every ordinary metric see; the others, k of n, say how far a prediction is from the
probability, without bias, through `probnb.metrics.repeated_distance`.

FER+: Barsoum et al. (2016) asked ten people about each image of FER-2013 which of eight emotions
they see, or none that they can name. Nothing of the data set comes with this project.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ..metrics.votes import check_votes
from ..validation import check_choice, check_integer
from .augment import Mirror
from .base import ProbabilityData, Splits

__all__ = [
    "EMOTIONS",
    "QUESTIONS",
    "Judged",
    "draw_vote",
    "judge",
    "load_ferplus",
    "read_ferplus",
]

_NAMES = "neutral happiness surprise sadness anger disgust fear contempt unknown"
EMOTIONS = tuple(_NAMES.split())
"""What a voter could say, in the order of the columns."""

QUESTIONS = {
    **{name: (name,) for name in EMOTIONS[:-1]},
    "negative": ("sadness", "anger", "disgust", "fear", "contempt"),
}
"""Yes-or-no questions, and the answers that count as yes; a vote for "unknown" is a no."""

SIDE = 48
"""Height and width of the images as distributed, in pixels."""


def load_ferplus(question, data_dir, size=24, n=None, seed=0):
    """Load faces with one person's answer to a question, and what the others answered.

    Parameters
    ----------
    question : {"neutral", "happiness", "negative", ...}
        A key of `QUESTIONS`: one of eight emotions, or ``"negative"`` for five of them.
    data_dir : path-like
        As `read_ferplus` takes it.
    size : {48, 24, 16, 12}, default=24
        Height and width of the images in pixels; smaller ones are means of blocks.
    n : int, optional
        How many training images, a random sample; of validation and test then at most half as
        many. By default all of every part.
    seed : int, default=0
        Seed of the vote that is the outcome, and of the sample of training and validation
        images; the sample of test images is the same for every seed.

    Returns
    -------
    Judged
        Splits as the data set has them (training, public test, private test); inputs are uint8 of
        shape (n, 1, size, size), row ids the numbers of the images in the file. A mirrored face
        has the same expression, so training images are mirrored at random.

    Raises
    ------
    ValueError
        If an argument is out of range or the files are not FER+.
    FileNotFoundError
        If there is nothing at `data_dir`.
    """
    check_choice(question, QUESTIONS, "question")
    if SIDE % check_integer(size, "size", minimum=12):
        raise ValueError(f"size must be 48, 24, 16 or 12; got {size}.")
    seed = check_integer(seed, "seed", minimum=0)
    images, votes, split, checksum = read_ferplus(data_dir)
    yes = votes[:, [EMOTIONS.index(name) for name in QUESTIONS[question]]].sum(1)
    rows = {name: np.flatnonzero(split == i) for i, name in enumerate(("train", "val", "test"))}
    parts = cut(rows, n, seed) | {"test": cut(rows, n, 0)["test"]}
    source = f"ferplus sha256={checksum} question={question} size={size} n={n}"
    return judge(
        shrink(images, size), yes, votes.sum(1), parts, source, seed=seed, augment=(Mirror(),)
    )


def read_ferplus(path):
    """Read the images and all votes.

    Parameters
    ----------
    path : path-like
        A folder with ``fer2013.csv`` (pixels, as Kaggle gives it) and ``fer2013new.csv`` (votes, as
        Microsoft gives it), or an ``.npz`` of ``images`` (n, 48, 48), ``votes`` (n, 9) and
        ``split`` (n,), 0 training, 1 public test, 2 private test; or a folder with
        ``ferplus.npz``.

    Returns
    -------
    images : ndarray of shape (n, 48, 48)
        uint8.
    votes : ndarray of shape (n, 9)
        How many of ten people chose each of `EMOTIONS`; int64.
    split : ndarray of shape (n,)
        0, 1 or 2.
    checksum : str
        SHA-256 of what was read.

    Raises
    ------
    ValueError
        If the files do not hold what they should.
    FileNotFoundError
        If there is nothing at `path`.

    Notes
    -----
    Of the CSV files three kinds of rows are left out: images that a voter called no face, images
    without at least two votes, and later copies of an image that occurs more than once, in
    whatever part, so that no test image was trained on.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"data_dir must be FER+; {str(path)!r} does not exist.")
    if path.is_dir() and (path / "ferplus.npz").exists():
        path = path / "ferplus.npz"
    images, votes, split = _read_csv(path) if path.is_dir() else _read_npz(path)
    digest = hashlib.sha256(np.ascontiguousarray(images))
    for part in (votes.astype("<i8"), split.astype("<i8")):
        digest.update(np.ascontiguousarray(part))
    return images, votes, split, digest.hexdigest()


def shrink(images, size):
    """Images of shape (n, side, side) as a tensor (n, 1, size, size) of rounded block means."""
    n, side, _ = images.shape
    block = side // size
    sums = images.reshape(n, size, block, size, block).sum((2, 4), dtype=np.uint16)
    return torch.from_numpy(((sums + block * block // 2) // block**2).astype(np.uint8))[:, None]


def _read_npz(path):
    wanted = f"data_dir must be an .npz of images (n, {SIDE}, {SIDE}), votes (n, 9) and split (n,)"
    try:
        with np.load(path, allow_pickle=False) as file:
            images, votes, split = (file[name] for name in ("images", "votes", "split"))
    except (KeyError, ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{wanted}; {str(path)!r}: {error}.") from None
    n, shapes = len(images), (images.shape, votes.shape, split.shape)
    right = shapes == ((n, SIDE, SIDE), (n, len(EMOTIONS)), (n,)) and images.dtype == np.uint8
    if not right or votes.dtype.kind not in "ui" or not np.isin(split, (0, 1, 2)).all():
        raise ValueError(
            f"{wanted}: uint8, whole numbers and 0, 1 or 2; {str(path)!r} has {shapes} of "
            f"{images.dtype}, {votes.dtype} and {split.dtype}."
        )
    return images, votes.astype(np.int64), split.astype(np.int64)


def _read_csv(folder):
    tables = []
    for name in ("fer2013.csv", "fer2013new.csv"):
        if not (folder / name).exists():
            raise FileNotFoundError(f"data_dir must hold {name}; {str(folder)!r} does not.")
        try:
            tables.append(pd.read_csv(folder / name))
        except (ValueError, OSError) as error:  # of pandas' parser, too
            raise ValueError(f"data_dir: {name} cannot be read: {error}") from None
    pixels, labels = tables
    missing = [c for c in ("Usage", *EMOTIONS, "NF") if c not in labels]
    missing += [c for c in ("Usage", "pixels") if c not in pixels]
    if missing or not np.array_equal(pixels["Usage"], labels["Usage"]):
        raise ValueError(
            "data_dir must hold fer2013.csv and fer2013new.csv, the same images row by row, as "
            f"their columns Usage say; got {len(pixels)} and {len(labels)} rows, columns missing: "
            f"{', '.join(missing) or 'none'}."
        )
    usage = {"Training": 0, "PublicTest": 1, "PrivateTest": 2}
    split = labels["Usage"].map(usage).fillna(-1).to_numpy(np.int64)
    first = ~pixels["pixels"].duplicated().to_numpy()
    try:
        votes = labels[list(EMOTIONS)].to_numpy(np.int64)
        keep = first & (labels["NF"] == 0).to_numpy() & (votes.sum(1) >= 2) & (split >= 0)
        images = [np.array(text.split(), np.uint8) for text in pixels["pixels"][keep]]
        images = np.stack(images).reshape(-1, SIDE, SIDE)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"fer2013.csv must have {SIDE}x{SIDE} values from 0 to 255 in each row, and "
            f"fer2013new.csv whole numbers of votes: {error}."
        ) from None
    return images, votes[keep], split[keep]


@dataclass(frozen=True, eq=False)
class Judged:
    """Data whose outcome is one vote of many.

    Attributes
    ----------
    splits : Splits
        What training takes; outcomes are one vote an image, probabilities are unknown but where
        people were simulated.
    votes : DataFrame
        Index ``id``, the row ids of all three parts; columns ``k``, the number of *other* people
        who said yes, ``n``, how many others there are, and ``split``.
    """

    splits: Splits
    votes: pd.DataFrame


def draw_vote(k, n, seed=0):
    """Take one vote of each row at random, without regard to what it says.

    Parameters
    ----------
    k : array-like of shape (rows,)
        Number of people who said yes.
    n : array-like of shape (rows,)
        Number of people who were asked, at least 2 so that one is left to score with.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    y : ndarray of shape (rows,)
        The vote, 0 or 1; int64.
    k_rest, n_rest : ndarray of shape (rows,)
        The others: given the probability of a yes, independent of `y`; int64.

    Raises
    ------
    ValueError
        If a count is not an integer, `n` is less than 2, or `k` is not in [0, n].

    Examples
    --------
    >>> draw_vote([0, 10], [10, 10])
    (array([0, 1]), array([0, 9]), array([9, 9]))
    """
    seed = check_integer(seed, "seed", minimum=0)
    votes = check_votes(k, n, ("k", "n"))
    k, n = votes.ones.astype(np.int64), votes.counts.astype(np.int64)
    y = (np.random.default_rng(seed).random(len(k)) * n < k).astype(np.int64)
    return y, k - y, n - 1


def judge(images, k, n, parts, source, seed=0, probabilities=None, augment=()):
    """Make data to train on from images and the votes about them.

    Parameters
    ----------
    images : torch.Tensor of shape (rows, channels, height, width)
        uint8.
    k : array-like of shape (rows,)
        Number of people who said yes.
    n : array-like of shape (rows,)
        Number of people who were asked.
    parts : dict of str to array-like of int
        Row numbers of ``"train"``, ``"val"`` and ``"test"``; they become the row ids.
    source : str
        What identifies images, votes and question; the seed is added to it.
    seed : int, default=0
        Seed of the vote that becomes the outcome: a vote depends on it and on the row's number
        alone, not on which other rows are used.
    probabilities : array-like of shape (rows,), optional
        Where people are simulated, the probabilities of a yes.
    augment : tuple of callable, default=()
        As `probnb.data.base.ProbabilityData` takes it; for the training part.

    Returns
    -------
    Judged
        Splits and the other votes.

    Raises
    ------
    ValueError
        As `draw_vote` and `probnb.data.base.Splits`.
    """
    y, k, n = draw_vote(k, n, seed)
    data, votes = {}, []
    for name, rows in parts.items():
        rows = np.asarray(rows)
        data[name] = ProbabilityData(
            images[torch.from_numpy(rows)],
            y[rows],
            probabilities=None if probabilities is None else np.asarray(probabilities)[rows],
            ids=rows,
            augment=augment if name == "train" else (),
        )
        votes.append(pd.DataFrame({"id": rows, "split": name, "k": k[rows], "n": n[rows]}))
    splits = Splits(**data, source=f"{source} seed={seed}", report={"images": len(images)})
    return Judged(splits, pd.concat(votes, ignore_index=True).set_index("id"))


def cut(rows, n, seed=0):
    """Take a random sample of `n` training rows, and at most half as many of each other part.

    `rows` are the row numbers of the three parts by name. A small experiment is not spent on
    predicting a large test set after every epoch; samples of fewer rows are within those of more.
    """
    if n is None:
        return rows
    n = check_integer(n, "n", minimum=8)
    most = {"train": n, "val": n // 2, "test": n // 2}
    if n > len(rows["train"]):
        raise ValueError(f"n must be at most the {len(rows['train'])} training images; got {n}.")
    sub = dict(zip(rows, np.random.SeedSequence([seed, zlib.crc32(b"cut")]).spawn(3)))
    return {
        name: np.sort(np.random.default_rng(sub[name]).permutation(part)[: most[name]])
        for name, part in rows.items()
    }
