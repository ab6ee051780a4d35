"""What several yes-or-no answers about each row say beyond MSE_p: entropy, KL_p, and the ceiling.

Where k of n people said yes, k/n estimates p without bias, and so does every polynomial in p of
degree at most n have an unbiased estimate. The entropy of p is no polynomial; the least biased
estimate that n answers allow is found here by linear programming, with a bound on its bias. It is
several times nearer than the series that `probnb.metrics.repeated` cuts off, and may be off in
either direction.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.special import entr, xlogy
from scipy.stats import binom, hypergeom

from ..validation import check_integer, check_probabilities, check_same_length
from .votes import check_votes

__all__ = ["entropy_terms", "kl_terms", "second_group"]

GRID = 801
"""Probabilities between 0 and 1 at which the bias is held down."""

LARGEST = 1.0
"""Largest absolute value, in nats, that an estimate of one row's entropy may have."""


def entropy_terms(k, n):
    r"""Estimate the entropy of each row's probability from k of n answers.

    Parameters
    ----------
    k : array-like of shape (rows,)
        Answers that were yes.
    n : array-like of shape (rows,)
        Answers, at least 1.

    Returns
    -------
    terms : ndarray of shape (rows,)
        Estimates in nats. A single one says little, and may be negative; their mean estimates the
        mean entropy :math:`-p \ln p - (1 - p) \ln (1 - p)`.
    bias : ndarray of shape (rows,)
        The largest bias that an estimate can have, whatever p: 0.004 for nine answers.

    Raises
    ------
    ValueError
        If counts are not whole numbers with k in [0, n] and n at least 1.

    Notes
    -----
    An estimate is a table :math:`g_0, \dots, g_n`, and its expectation the polynomial
    :math:`\sum_k g_k \binom nk p^k (1 - p)^{n - k}`. The table is the one whose expectation is
    nearest to the entropy in the largest difference, among those with :math:`|g_k| \le 1`, which
    keeps the variance down. The plain entropy of k/n is far more biased, 0.06 for nine answers.

    Examples
    --------
    >>> terms, bias = entropy_terms([0, 4, 9], [9, 9, 9])
    >>> terms.round(2), bias.round(4)
    (array([0.  , 0.62, 0.  ]), array([0.0037, 0.0037, 0.0037]))
    """
    k, n = _counts(k, n)
    terms, bias = np.empty(len(k)), np.empty(len(k))
    for size in np.unique(n):
        rows = n == size
        table, bias[rows] = _entropy_table(int(size))
        terms[rows] = table[k[rows]]
    return terms, bias


def kl_terms(k, n, p_hat):
    r"""Estimate KL(p || p_hat) of each row from k of n answers.

    Parameters
    ----------
    k : array-like of shape (rows,)
        Answers that were yes.
    n : array-like of shape (rows,)
        Answers, at least 1.
    p_hat : array-like of shape (rows,)
        Predicted probabilities of a yes, made without these answers.

    Returns
    -------
    terms : ndarray of shape (rows,)
        Estimates in nats, whose mean estimates KL_p; infinite where a prediction rules out what
        somebody answered.
    bias : ndarray of shape (rows,)
        The largest bias of each, that of its entropy. It is the same for every prediction, so
        that *differences* between predictions have none.

    Raises
    ------
    ValueError
        As `entropy_terms`, or if probabilities are invalid or of another length.

    Notes
    -----
    :math:`\mathrm{KL}(p\,\|\,\hat p)` is the cross entropy :math:`-p \ln \hat p - (1 - p)
    \ln(1 - \hat p)`, which is linear in p and estimated by putting k/n for p, less the entropy.

    Examples
    --------
    >>> a = kl_terms([2, 7], [9, 9], [0.2, 0.9])[0]
    >>> b = kl_terms([2, 7], [9, 9], [0.3, 0.8])[0]
    >>> round(float((a - b).mean()), 4)
    0.0243
    """
    k, n = _counts(k, n)
    p_hat = check_probabilities(p_hat, "p_hat")
    check_same_length(k, p_hat, ("k", "p_hat"))
    q = k / n
    entropy, bias = entropy_terms(k, n)
    with np.errstate(divide="ignore"):
        return -xlogy(q, p_hat) - xlogy(1 - q, 1 - p_hat) - entropy, bias


def second_group(k, n, sizes=(1, 3, 9)):
    r"""Score other people as predictors: the ceiling for anything that predicts people.

    Parameters
    ----------
    k : array-like of shape (rows,)
        Answers that were yes.
    n : array-like of shape (rows,)
        Answers, at least 2.
    sizes : sequence of int, default=(1, 3, 9)
        People in the second group.

    Returns
    -------
    DataFrame
        Index: the sizes, and infinity for one who knows p. Columns ``mse_p`` and ``brier`` of the
        share of the group that says yes, and ``kl_p`` of that share with half a yes and half a no
        added, without which one contradiction would cost infinitely much; NaN where there are
        not more answers than people in the group.

    Raises
    ------
    ValueError
        If counts are invalid, or a size is not positive.

    Notes
    -----
    The share of m people has :math:`\mathrm{MSE}_p = p (1 - p) / m`, and the mean of
    :math:`p (1 - p)` is estimated without bias by that of :math:`\frac{k (n - k)}{n (n - 1)}`. For
    KL_p, m of the n answers make the prediction and the others score it, averaged over all
    choices of the m.

    Examples
    --------
    >>> second_group([5, 5], [10, 10], sizes=[1])[["mse_p", "brier"]].round(3)
         mse_p  brier
    1.0  0.278  0.556
    inf  0.000  0.278
    """
    k, n = _counts(k, n, least=2)
    variance = (k * (n - k) / (n * (n - 1))).mean()
    entropy = entropy_terms(k, n)[0].mean()
    rows = {}
    for m in sizes:
        m = check_integer(m, "sizes")
        kl = _group_cross_entropy(k, n, m) - entropy if (n > m).all() else np.nan
        rows[float(m)] = (variance / m, variance * (1 + 1 / m), kl)
    rows[np.inf] = (0.0, variance, 0.0)
    return pd.DataFrame(rows, index=["mse_p", "brier", "kl_p"]).T


def _counts(k, n, least=1):
    votes = check_votes(k, n, ("k", "n"), least)
    return votes.ones.astype(int), votes.counts.astype(int)


@cache
def _entropy_table(n):
    """Return the least biased table of n + 1 estimates, and its largest bias."""
    p = (1 - np.cos(np.linspace(0, np.pi, GRID))) / 2
    expectation = binom.pmf(np.arange(n + 1), n, p[:, None])
    entropy = entr(p) + entr(1 - p)
    ones = np.ones((GRID, 1))
    result = linprog(
        np.append(np.zeros(n + 1), 1),
        A_ub=np.block([[expectation, -ones], [-expectation, -ones]]),
        b_ub=np.append(entropy, -entropy),
        bounds=[(-LARGEST, LARGEST)] * (n + 1) + [(0, None)],
    )
    if not result.success:
        raise RuntimeError(f"no table of entropy estimates for n = {n}: {result.message}")
    table = result.x[:-1]
    return (table + table[::-1]) / 2, float(result.x[-1])  # yes and no are alike


def _group_cross_entropy(k, n, m):
    """Mean cross entropy of the answers left when m of them make the prediction."""
    total, rows = 0.0, 0
    yes = np.arange(m + 1)
    share = (yes + 0.5) / (m + 1)
    for (ones, size), count in pd.Series(zip(k, n)).value_counts().items():
        left = np.clip((ones - yes) / (size - m), 0, 1)
        loss = -left * np.log(share) - (1 - left) * np.log(1 - share)
        total += count * (hypergeom.pmf(yes, size, ones, m) * loss).sum()
        rows += count
    return total / rows
