"""Repeated outcomes: k of n votes a row, and what they say about the distance from its probability.

The share k/n estimates p without bias, and k and n together so estimate its square, and with it
every squared distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..validation import check_probabilities, check_same_length, check_vector
from .differences import clustered_mean
from .sample import check_groups, check_row_weights


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes for outcome 1 and votes in all, by row; make one with `check_votes`."""

    ones: np.ndarray
    counts: np.ndarray

    @property
    def share(self):
        """Share of the votes for outcome 1, the paper's mean outcome of a row."""
        return self.ones / self.counts

    def variance(self):
        """Return the unbiased estimate of p(1 - p) of each row, from two votes or more."""
        return self.share * (self.ones - self.counts) / (1 - self.counts)

    def squared_error(self, p_hat):
        """Return the unbiased estimate of (p_hat - p)^2 of each row."""
        return (p_hat - self.share) ** 2 - self.variance() / self.counts


def repeated_distance(ones, counts, y_prob, weights=None, groups=None):
    r"""Estimate MSE_p from repeated outcomes.

    Parameters
    ----------
    ones : array-like of shape (n,)
        Votes for outcome 1, k.
    counts : array-like of shape (n,)
        All votes of the row, at least 2.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1, made without these votes.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    groups : array-like of shape (n,), optional
        What rows share, for example a patient; the standard error then is that of whole groups.

    Returns
    -------
    value, std, low, high : float
        The distance, its standard error and Student's interval. It may be negative where it is near
        0: an estimate that never were would not be unbiased. With fewer than five rows or groups it
        has no interval (NaN).

    Notes
    -----
    With :math:`q = k / n`, :math:`E(\hat p - q)^2 = (\hat p - p)^2 + p(1-p)/n` and
    :math:`E\,q(1-q) = p(1-p)(n-1)/n`, so that the mean of :math:`(\hat p - q)^2 - q(1-q)/(n-1)` is
    unbiased for MSE_p whatever n is in each row.

    Examples
    --------
    >>> value, *_ = repeated_distance([1, 5, 9, 6], [10, 10, 10, 10], [0.1, 0.5, 0.9, 0.9])
    >>> round(value, 4)
    0.0039
    """
    votes, p_hat = check_votes(ones, counts), check_probabilities(y_prob)
    check_same_length(votes.ones, p_hat, ("ones", "y_prob"))
    kept, weights = check_row_weights(weights, len(p_hat))
    groups, terms = check_groups(groups, len(p_hat), kept), votes.squared_error(p_hat)
    return clustered_mean(terms if kept is None else terms[kept], weights, groups)


def check_votes(ones, counts, names=("ones", "counts"), least=2):
    """Return checked `Votes`: whole numbers, 0 <= ones <= counts, at least `least` votes a row."""
    ones, counts = (_whole(x, name) for x, name in zip((ones, counts), names))
    check_same_length(ones, counts, names)
    for wrong, rule in (
        ((ones < 0) | (ones > counts), f"{names[0]} must be in [0, {names[1]}]"),
        (counts < least, f"{names[1]} must be at least {least}"),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            found = f"{ones[i]:g} of {counts[i]:g} in row {i}"
            raise ValueError(f"{rule}; got {found}, and so in {wrong.sum()} of {len(ones)} rows.")
    return Votes(ones, counts)


def _whole(x, name):
    x = check_vector(x, name)
    try:
        numbers = x.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be whole numbers; {error}.") from None
    if not len(x) or x.dtype.kind not in "biufO" or not (numbers % 1 == 0).all():
        raise ValueError(f"{name} must be whole numbers; got {x[numbers % 1 != 0][:1].tolist()}.")
    return numbers
