"""Intervals of a mean over rows or groups, of a share of outcomes, of a distance from votes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit  # Student's distribution
from scipy.stats import beta

from ..validation import check_choice, check_number, check_probabilities, check_same_length
from .sample import check_groups, check_row_weights, weighted_mean
from .votes import check_votes

__all__ = ["FEWEST", "Estimate", "clustered_mean", "proportion_interval", "repeated_distance"]

FEWEST = 5
"""With fewer rows or groups than this no interval over them is given."""


def clustered_mean(terms, weights=None, groups=None, level=0.95):
    """Return a mean over rows, its standard error over rows or groups, and Student's interval.

    Parameters
    ----------
    terms : ndarray of shape (n,)
        What is averaged.
    weights : ndarray of shape (n,), optional
        Weights above 0.
    groups : ndarray of shape (n,), optional
        What rows share.
    level : float, default=0.95
        Coverage aimed at, in (0, 1).

    Returns
    -------
    value, std, low, high : float
        NaN but for the value where there are fewer than five rows or groups, or infinite terms.
    """
    check_number(level, "level", 0, 1, exclusive=True)
    share = np.full(len(terms), 1 / len(terms)) if weights is None else weights / weights.sum()
    with np.errstate(invalid="ignore"):  # infinity less infinity: no standard error
        value = float(share @ terms)
        deviation = share * (terms - value)
        if groups is not None:
            deviation = np.bincount(np.unique(groups, return_inverse=True)[1], deviation)
        units = len(deviation)
        if units < FEWEST:
            return value, np.nan, np.nan, np.nan
        std = float(np.sqrt(deviation @ deviation * units / (units - 1)))
    half = float(stdtrit(units - 1, (1 + level) / 2)) * std
    return value, std, value - half, value + half


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
        Ends of the intervals, in [0, 1], which cover at least as often as `level` says: quantiles
        of Beta(ones, zeros + 1) and Beta(ones + 1, zeros).

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


@dataclass(frozen=True)
class Estimate:
    """A mean over rows with what it does not know; made by `repeated_distance`.

    Attributes
    ----------
    value : float
        The estimate.
    std : float
        Its standard error, from the spread of rows (of groups, where rows share one).
    low, high : float
        Ends of the interval: Student's, widened by the bias on either side so that it covers.
    bias : float
        At most this much of the value is bias, in either direction; 0 where it is unbiased.
    """

    value: float
    std: float
    low: float
    high: float
    bias: float = 0.0


def repeated_distance(ones, counts, y_prob, metric="mse_p", weights=None, groups=None, level=0.95):
    r"""Estimate MSE_p or KL_p from repeated outcomes.

    Parameters
    ----------
    ones : array-like of shape (n,)
        Votes for outcome 1, k.
    counts : array-like of shape (n,)
        All votes of the row, at least 2.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1, made without these votes.
    metric : {"mse_p", "kl_p"}, default="mse_p"
        The distance; the second is KL(p || p_hat), in nats.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    groups : array-like of shape (n,), optional
        What rows share, for example a patient; the standard error then is that of whole groups.
    level : float, default=0.95
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Estimate
        The distance. It may be negative where it is near 0: an estimate that never were would
        not be unbiased. With fewer than five rows or groups it has no interval (NaN).

    Notes
    -----
    With :math:`q = k / n`, :math:`E(\hat p - q)^2 = (\hat p - p)^2 + p(1-p)/n` and
    :math:`E\,q(1-q) = p(1-p)(n-1)/n`, so that the mean of :math:`(\hat p - q)^2 - q(1-q)/(n-1)` is
    unbiased for MSE_p whatever n is in each row. KL_p is off by at most 0.13 nats from 2 votes a
    row, 0.012 from 5, 0.004 from 9 and 0.0008 from 50; differences of it between predictions, by
    `probnb.metrics.bootstrap`, are unbiased.

    Examples
    --------
    >>> estimate = repeated_distance([1, 5, 9, 6], [10, 10, 10, 10], [0.1, 0.5, 0.9, 0.9])
    >>> round(estimate.value, 4), estimate.bias
    (0.0039, 0.0)
    """
    check_choice(metric, ("mse_p", "kl_p"), "metric")
    votes, p_hat = check_votes(ones, counts), check_probabilities(y_prob)
    check_same_length(votes.ones, p_hat, ("ones", "y_prob"))
    kept, weights = check_row_weights(weights, len(p_hat))
    groups = check_groups(groups, len(p_hat), kept)
    if kept is not None:
        votes, p_hat = votes[kept], p_hat[kept]
    terms = votes.squared_error(p_hat) if metric == "mse_p" else votes.divergence(p_hat)
    value, std, low, high = clustered_mean(terms, weights, groups, level)
    bias = 0.0 if metric == "mse_p" else weighted_mean(votes.bias(), weights)
    return Estimate(value, std, low - bias, high + bias, bias)
