"""Intervals for a share of outcomes: what the rows of a bin or a group say about it."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from ..validation import check_number

__all__ = ["proportion_interval"]


def proportion_interval(ones, count, level=0.95):
    """Clopper and Pearson's interval for a probability of which `ones` in `count` rows came true.

    Parameters
    ----------
    ones : array-like of shape (k,)
        Number of outcomes 1, each in [0, count].
    count : array-like of shape (k,)
        Number of rows, each at least 1; fractions (effective rows) are allowed.
    level : float, default=0.95
        Coverage, in (0, 1).

    Returns
    -------
    low, high : ndarray of shape (k,)
        Ends of the intervals, in [0, 1], which cover at least as often as `level` says.

    Raises
    ------
    ValueError
        If a count is less than 1 or `ones` outside [0, count], or a setting is out of range.

    Notes
    -----
    Clopper and Pearson (1934): quantiles of Beta(ones, zeros + 1) and Beta(ones + 1, zeros).

    Examples
    --------
    >>> low, high = proportion_interval([0, 5], [5, 5])
    >>> low.round(3), high.round(3)
    (array([0.   , 0.478]), array([0.522, 1.   ]))
    """
    check_number(level, "level", 0, 1, exclusive=True)
    ones, count = np.atleast_1d(ones).astype(float), np.atleast_1d(count).astype(float)
    wrong = ~((count >= 1) & (ones >= 0) & (ones <= count))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"ones must be in [0, count] and count at least 1; got {ones[k]:g} of {count[k]:g}."
        )
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):  # Beta(0, .) at the ends, which are known
        low = np.where(ones == 0, 0, beta.ppf(tail, ones, count - ones + 1))
        high = np.where(ones == count, 1, beta.ppf(1 - tail, ones + 1, count - ones))
    return low, high
