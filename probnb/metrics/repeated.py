"""Distances from the true probabilities where each row's outcome was observed more than once.

k of n votes say what p is to within their own noise. The noise of a squared error can be taken off
exactly; of a divergence it can up to a bound. Predictions must not have seen the votes that judge
them: a vote that was trained on is no longer a vote.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pandas import factorize
from scipy.stats import t as student

from ..validation import (
    check_choice,
    check_integer,
    check_number,
    check_probabilities,
    check_same_length,
    check_vector,
)
from .differences import FEWEST
from .sample import check_row_weights
from .votes import check_votes

__all__ = ["Ceiling", "Estimate", "noise_ceiling", "repeated_difference", "repeated_distance"]


@dataclass(frozen=True)
class Estimate:
    """A mean over rows with what it does not know; made by the functions of this module.

    Attributes
    ----------
    value : float
        The estimate.
    std : float
        Its standard error, from the spread of rows (of clusters, where rows share one).
    low, high : float
        Ends of the interval: Student's t with one degree of freedom less than there are clusters.
    rows, left_out : int
        Rows used, and rows left out because they have a single vote.
    bias : float
        At most this much of the value is bias, upwards for a divergence and downwards for an
        entropy; 0 where the estimate is unbiased.
    """

    value: float
    std: float
    low: float
    high: float
    rows: int
    left_out: int = 0
    bias: float = 0.0


@dataclass(frozen=True)
class Ceiling:
    """What the votes' own noise leaves to be had; made by `noise_ceiling`.

    Attributes
    ----------
    brier, nll : Estimate
        Least expected Brier score and log loss of any prediction of a further vote, at p-hat = p:
        the mean of p(1 - p), unbiased, and the mean entropy, too low by at most its ``bias``.
    group_mse_p, group_brier : Estimate
        MSE_p, and Brier score on a further vote, of the share of ones among `people` other
        people: the means of p(1 - p) / people and of p(1 - p) (1 + 1 / people), unbiased.
    """

    brier: Estimate
    nll: Estimate
    group_mse_p: Estimate
    group_brier: Estimate


def repeated_distance(
    ones, counts, y_prob, metric="mse_p", weights=None, groups=None, level=0.95, single="raise"
):
    r"""Estimate MSE_p or KL_p from repeated outcomes.

    Parameters
    ----------
    ones : array-like of shape (n,)
        Votes for outcome 1, k.
    counts : array-like of shape (n,)
        All votes of the row, n, at least 2.
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
    single : {"raise", "leave out"}, default="raise"
        What to do with rows of a single vote, which cannot tell error from noise. The estimate
        says how many were left out; it then is one of the other rows.

    Returns
    -------
    Estimate
        The distance. It may be negative where it is near 0: an estimate that never were would
        not be unbiased.

    Notes
    -----
    With :math:`q = k / n`, :math:`E(\hat p - q)^2 = (\hat p - p)^2 + p(1-p)/n` and
    :math:`E\,q(1-q) = p(1-p)(n-1)/n`, so that the mean of
    :math:`(\hat p - q)^2 - q(1-q)/(n-1)` is unbiased for MSE_p whatever n is in each row. The
    divergence is the expected log loss, which is linear in p and estimated by that of the votes,
    less the entropy of p, for which no finite number of votes has an unbiased estimate: Zhang's
    [1]_ is used, which leaves a bias between 0 and the ``bias`` of the result. Differences between
    predictions have none; see `repeated_difference`.

    References
    ----------
    .. [1] Z. Zhang, "Entropy estimation in Turing's perspective", Neural Computation 24, 2012.

    Examples
    --------
    >>> estimate = repeated_distance([1, 5, 9, 6], [10, 10, 10, 10], [0.1, 0.5, 0.9, 0.9])
    >>> round(estimate.value, 4), estimate.rows
    (0.0039, 4)
    """
    check_choice(metric, ("mse_p", "kl_p"), "metric")
    check_choice(single, ("raise", "leave out"), "single")
    votes = check_votes(ones, counts, least=2 if single == "raise" else 1)
    p_hat = check_probabilities(y_prob)
    check_same_length(votes.ones, p_hat, ("ones", "y_prob"))
    used = votes.counts > 1
    if not used.any():
        raise ValueError("counts must be at least 2 in some row; every row has a single vote.")
    rows = votes[used]
    terms = rows.squared_error(p_hat[used]) if metric == "mse_p" else rows.divergence(p_hat[used])
    bias = rows.entropy_bias() if metric == "kl_p" else 0 * terms
    return _estimate(terms, _share(weights, used), groups, level, used, bias)


def repeated_difference(ones, counts, a, b, metric="mse_p", weights=None, groups=None, level=0.95):
    """Estimate how much further from the truth one prediction is than another, without bias.

    Parameters
    ----------
    ones : array-like of shape (n,)
        Votes for outcome 1.
    counts : array-like of shape (n,)
        All votes of the row, at least 1: the noise of the votes is the same for both predictions.
    a : array-like of shape (n,)
        Predicted probabilities, made without these votes.
    b : array-like of shape (n,)
        Other predictions of the same rows.
    metric : {"mse_p", "kl_p"}, default="mse_p"
        The distance.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    groups : array-like of shape (n,), optional
        What rows share; the standard error then is that of whole groups.
    level : float, default=0.95
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Estimate
        The distance of `a` less that of `b`; negative where `a` is nearer.

    Raises
    ------
    ValueError
        If both predictions rule out an outcome that was voted for, so that two infinite
        divergences would be compared, or as `repeated_distance`.

    Examples
    --------
    >>> round(repeated_difference([1, 1], [1, 1], [0.9, 0.9], [0.5, 0.5]).value, 2)
    -0.24
    """
    check_choice(metric, ("mse_p", "kl_p"), "metric")
    votes = check_votes(ones, counts, least=1)
    a, b = check_probabilities(a, "a"), check_probabilities(b, "b")
    for p_hat, name in ((a, "a"), (b, "b")):
        check_same_length(votes.ones, p_hat, ("ones", name))
    if metric == "mse_p":
        terms = (a - b) * (a + b - 2 * votes.share)
    else:
        with np.errstate(invalid="ignore"):
            terms = votes.log_loss(a) - votes.log_loss(b)
        wrong = [np.isposinf(votes.log_loss(p_hat)) for p_hat in (a, b)]
        if wrong[0].any() and wrong[1].any():
            i, j = (int(np.argmax(w)) for w in wrong)
            raise ValueError(
                "a and b must not both rule out an outcome that was voted for, which makes both "
                f"divergences infinite; got a {a[i]:g} in row {i} and b {b[j]:g} in row {j}."
            )
    used = np.ones(len(terms), bool)
    return _estimate(terms, _share(weights, used), groups, level, used, 0 * a)


def noise_ceiling(ones, counts, people=1, weights=None, groups=None, level=0.95):
    """Say how well anything could predict a further vote, and how well other people do.

    Parameters
    ----------
    ones : array-like of shape (n,)
        Votes for outcome 1.
    counts : array-like of shape (n,)
        All votes of the row, at least 2.
    people : int, default=1
        Size of the second group of people, whose share of ones is taken for a prediction.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    groups : array-like of shape (n,), optional
        What rows share; the standard errors then are those of whole groups.
    level : float, default=0.95
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    Ceiling
        The best scores, and those of the other people.

    Examples
    --------
    >>> ceiling = noise_ceiling([3, 5, 9], [10, 10, 10], people=5)
    >>> round(ceiling.brier.value, 3), round(ceiling.group_mse_p.value, 3)
    (0.204, 0.041)
    """
    votes = check_votes(ones, counts)
    people = check_integer(people, "people")
    used = np.ones(len(votes.ones), bool)
    share, spread = _share(weights, used), votes.variance()

    def estimate(terms, bias=0.0):
        return _estimate(terms, share, groups, level, used, bias + 0 * terms)

    return Ceiling(
        brier=estimate(spread),
        nll=estimate(votes.entropy(), votes.entropy_bias()),
        group_mse_p=estimate(spread / people),
        group_brier=estimate(spread * (1 + 1 / people)),
    )


def _share(weights, used):
    """Return the rows' shares of the weight, 0 for rows that are not used."""
    kept, weights = check_row_weights(weights, len(used))
    share = np.zeros(len(used))
    share[slice(None) if kept is None else kept] = 1 if weights is None else weights
    share = share * used
    if not share.any():
        raise ValueError("weights must be above 0 in a row of two votes or more; none is.")
    return share / share.sum()


def _estimate(terms, share, groups, level, used, bias):
    """Return the mean of the terms of the used rows with the standard error over clusters."""
    weighed = share[used] > 0
    weight = share[used][weighed]
    if groups is not None:
        groups = check_vector(groups, "groups")
        check_same_length(groups, used, ("groups", "ones"))
        groups = groups[used][weighed]
    return Estimate(
        *clustered_mean(terms[weighed], weight, groups, level),
        int(weighed.sum()),
        int(np.count_nonzero(~used)),
        float(weight @ bias[weighed]),
    )


def clustered_mean(terms, weight, groups=None, level=0.95):
    """Return a mean, its standard error over rows or groups of rows, and its interval.

    Parameters
    ----------
    terms : ndarray of shape (n,)
        What is averaged.
    weight : ndarray of shape (n,)
        Weights above 0 with the sum 1.
    groups : ndarray of shape (n,), optional
        What rows share.
    level : float, default=0.95
        Coverage aimed at by Student's t.

    Returns
    -------
    value, std, low, high : float
        NaN but for the value where there are fewer than 5 rows or groups.
    """
    check_number(level, "level", 0, 1, exclusive=True)
    with np.errstate(invalid="ignore"):  # infinity less infinity: no standard error
        value = weight @ terms
        deviation = weight * (terms - value)
        if groups is not None:
            deviation = np.bincount(factorize(groups)[0], deviation)
        clusters = len(deviation)
        if clusters < FEWEST:
            return float(value), np.nan, np.nan, np.nan
        std = np.sqrt(deviation @ deviation * clusters / (clusters - 1))
        half = student.ppf((1 + level) / 2, clusters - 1) * std
        return float(value), float(std), float(value - half), float(value + half)
