"""Images that many people judged: one vote to learn from, the others to score with.

Nobody knows the probability that a person calls a face neutral, but ten people who were asked
about the same face measure it. One of their votes, drawn at random, becomes the outcome y that
training and every ordinary metric see; the others, k of n, say how far a prediction is from the
probability, without bias, through `probnb.metrics.repeated_distance`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from ..metrics.votes import check_votes
from ..validation import check_integer
from .base import ProbabilityData, Splits

__all__ = ["Judged", "draw_vote", "judge"]


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
