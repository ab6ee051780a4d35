"""Rows of outcomes and predictions, checked and sorted once: what every metric reads."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from ..validation import (
    check_pair,
    check_probabilities,
    check_same_length,
    check_vector,
    check_weights,
)
from .votes import Votes, check_votes

FEWEST = 5
"""With fewer rows or groups than this no interval over them is given."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked rows; make one with `check_sample`. Rows of weight 0 are gone."""

    y: np.ndarray
    p_hat: np.ndarray
    weights: np.ndarray | None = None
    """None where all weigh the same."""
    p: np.ndarray | None = None
    votes: Votes | None = None
    """Repeated outcomes, which stand in for `p`."""

    @cached_property
    def order(self):
        """Rows by increasing prediction."""
        return np.argsort(self.p_hat)

    @cached_property
    def starts(self):
        """Ranks at which a new value begins among the sorted predictions."""
        ranked = self.p_hat[self.order]
        return np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))

    @cached_property
    def ranked(self):
        """The distinct predictions with the weights as they are."""
        return self.reweighted(np.ones(len(self.y)) if self.weights is None else self.weights)

    def reweighted(self, weights):
        """Return the distinct predictions under other weights, of shape (k, n) or (n,)."""
        mass = np.atleast_2d(weights)[:, self.order]
        ones = mass * self.y[self.order]
        values = self.p_hat[self.order[self.starts]]
        if len(values) < len(self.y):
            mass = np.add.reduceat(mass, self.starts, axis=1)
            ones = np.add.reduceat(ones, self.starts, axis=1)
        return Ranked(values, mass, ones)

    def mean(self, terms):
        """Return the weighted mean of one term a row."""
        return weighted_mean(terms, self.weights)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Distinct predictions, and what lies on each, for k sets of weights at once.

    Equal predictions are one entry, so that nothing can depend on the order of the rows.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Distinct predictions, increasing.
    mass, ones : ndarray of shape (k, m)
        Weight of all rows, and of those with outcome 1, at each value.
    """

    values: np.ndarray
    mass: np.ndarray
    ones: np.ndarray
    _bins: dict = field(default_factory=dict, repr=False)

    @cached_property
    def total(self):
        """Weight of all rows, of shape (k,)."""
        return self.up_to[:, -1]

    @cached_property
    def up_to(self):
        """Weight up to and at each value, of shape (k, m)."""
        return np.cumsum(self.mass, axis=1)

    @cached_property
    def gap_up_to(self):
        """Outcomes less predictions, summed up to and at each value, of shape (k, m)."""
        return np.cumsum(self.ones - self.mass * self.values, axis=1)

    def bin_gaps(self, bins):
        """Return weight and mean absolute gap of each bin, both (k, B); empty ones hold 0."""
        if bins not in self._bins:
            edges = np.pad(bin_cuts(2 * self.up_to - self.mass, self.total, bins), ((0, 0), (1, 1)))
            edges[:, -1] = len(self.values)

            def sums(cumulated):
                below = np.take_along_axis(cumulated, np.maximum(edges - 1, 0), 1)
                return np.diff(np.where(edges > 0, below, 0))

            mass = sums(self.up_to)
            gaps = np.abs(sums(self.gap_up_to)) / np.where(mass > 0, mass, 1)
            self._bins[bins] = mass, np.where(mass > 0, gaps, 0)
        return self._bins[bins]


def bin_cuts(twice_rank, total, bins):
    r"""Return the first value of bins 1 to B - 1: the one rule that decides every bin.

    A value whose rows have the middle rank r belongs to bin :math:`\lfloor Br/\text{total} \rfloor`
    (ranks cumulate weights). A middle that meets a cut but for rounding counts as on it, and
    what is on a cut belongs to the bin above: of ``1 - p_hat`` the bins are mirrored but for these.
    """
    targets = 2 * total[:, None] * (np.arange(1, bins) / bins) - 1e-11 * total[:, None]
    rows = [np.searchsorted(ranks, target) for ranks, target in zip(twice_rank, targets)]
    return np.array(rows, dtype=np.int64).reshape(len(total), bins - 1)


def bin_starts(values, weights, bins):
    """Return the first rank of every bin that has rows, for sorted values of any kind."""
    mass = np.ones(len(values)) if weights is None else weights
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    mass = np.add.reduceat(mass, first)
    up_to = np.cumsum(mass)
    cuts = np.unique(bin_cuts((2 * up_to - mass)[None], up_to[-1:], bins))
    return first[np.concatenate([[0], cuts[(cuts > 0) & (cuts < len(first))]]).astype(int)]


def check_sample(y_true, y_prob, weights=None, p=None, votes=None, names=("y_true", "y_prob")):
    """Return a checked `Sample` without its rows of weight 0."""
    y, p_hat = check_pair(y_true, y_prob, names)
    if p is not None:
        if votes is not None:
            raise ValueError("p and votes must not both be given; votes stand in for p.")
        p = check_probabilities(p, "p")
        check_same_length(p, y, ("p", names[0]))
    if votes is not None:
        if not isinstance(votes, tuple | list) or len(votes) != 2:
            raise ValueError(f"votes must be a pair (ones, counts); got {type(votes).__name__}.")
        votes = check_votes(*votes, ("votes[0]", "votes[1]"))
        check_same_length(votes.ones, y, ("votes[0]", names[0]))
    kept, weights = check_row_weights(weights, len(y))
    if kept is not None:
        y, p_hat, p, votes = (x if x is None else x[kept] for x in (y, p_hat, p, votes))
    return Sample(y, p_hat, weights, p, votes)


def check_row_weights(weights, n, name="weights"):
    """Return which rows to keep and their weights, largest in [1/2, 1): None, None if all equal.

    Scaling by a power of two changes no digit and keeps every sum finite.
    """
    if weights is None:
        return None, None
    weights = check_weights(weights, name)
    if len(weights) != n:
        raise ValueError(f"{name} must have a value for each of {n} rows; got {len(weights)}.")
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])
    kept = weights > 0
    weights = weights[kept]
    return None if kept.all() else kept, None if np.ptp(weights) == 0 else weights


def weighted_mean(terms, weights):
    """Return the mean of one term a row; all weights above 0, or None."""
    return float(np.mean(terms) if weights is None else weights @ terms / weights.sum())


def effective_rows(weights, starts=(0,)):
    """Return Kish's effective number of rows of each run of rows that begins at `starts`.

    Squared sum of the weights over the sum of their squares: so many rows of equal weight would
    leave a mean as uncertain.
    """
    starts = np.asarray(starts)
    ends = np.append(starts[1:], len(weights))
    largest = np.maximum.reduceat(weights, starts)
    scaled = weights / np.repeat(largest, ends - starts)  # squares stay above 0
    return np.add.reduceat(scaled, starts) ** 2 / np.add.reduceat(scaled**2, starts)


def check_groups(groups, n, kept=None):
    """Return groups as codes 0 to G - 1 of the rows that are kept, in order of appearance."""
    if groups is None:
        return None
    codes = pd.factorize(check_vector(groups, "groups"))[0]
    if len(codes) != n:
        raise ValueError(f"groups must name a group for each of the {n} rows; got {len(codes)}.")
    return codes if kept is None else pd.factorize(codes[kept])[0]
