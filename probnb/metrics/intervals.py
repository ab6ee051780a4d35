"""Intervals for a share of outcomes: what the rows of a bin or a group say about it."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta, binom

from ..validation import check_choice, check_number

__all__ = ["proportion_interval"]


def proportion_interval(ones, count, level=0.95, method="clopper-pearson"):
    """Interval for a probability of which `ones` in `count` rows came true.

    Parameters
    ----------
    ones : array-like of shape (k,)
        Number of outcomes 1, each in [0, count].
    count : array-like of shape (k,)
        Number of rows, each at least 1.
    level : float, default=0.95
        Coverage, in (0, 1).
    method : {"clopper-pearson", "bootstrap"}, default="clopper-pearson"
        Clopper and Pearson's interval covers at least as often as it says. The bootstrap's is
        the percentile interval of means of resampled outcomes, whose distribution is binomial,
        so that nothing need be drawn; it has no width where all outcomes are the same.

    Returns
    -------
    low, high : ndarray of shape (k,)
        Ends of the intervals, in [0, 1].

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
    check_choice(method, ("clopper-pearson", "bootstrap"), "method")
    ones, count = np.atleast_1d(ones).astype(float), np.atleast_1d(count).astype(float)
    wrong = ~((count >= 1) & (ones >= 0) & (ones <= count))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"ones must be in [0, count] and count at least 1; got {ones[k]:g} of {count[k]:g}."
        )
    tail = (1 - level) / 2
    if method == "bootstrap":
        return tuple(binom.ppf(q, count, ones / count) / count for q in (tail, 1 - tail))
    with np.errstate(invalid="ignore"):  # Beta(0, .) at the ends, which are known
        low = np.where(ones == 0, 0, beta.ppf(tail, ones, count - ones + 1))
        high = np.where(ones == count, 1, beta.ppf(1 - tail, ones + 1, count - ones))
    return low, high
