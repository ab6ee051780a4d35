"""Another base rate: probabilities that were right where outcome 1 had one share, for another.

What an outcome looks like is taken to be the same in both; only how often it occurs differs (label
shift): after under-sampling or class weights, in another season, for another clinic.
"""

import contextlib

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from ..validation import check_number, check_probabilities

LEAST = 1e-12
"""A rate below this is 0."""

FEWEST = 50
"""Rows from which a rate is estimated at least."""


def at_rate(p, old, new):
    r"""Return probabilities of outcome 1 where its share is `new` in place of `old`.

    The odds are multiplied by :math:`\frac{new}{1 - new} / \frac{old}{1 - old}`, by Bayes' rule.

    Parameters
    ----------
    p : ndarray of shape (n,), or an engine's column
        Probabilities that are right at the old rate.
    old, new : float
        Rates, in (0, 1).

    Returns
    -------
    ndarray of shape (n,), or column
        Probabilities; those of 0 and 1 stay.

    Examples
    --------
    >>> at_rate(np.array([0.1, 0.5, 0.9]), 0.5, 0.1).round(3)
    array([0.012, 0.1  , 0.5  ])
    """
    for rate, name in ((old, "old"), (new, "rate")):
        check_number(rate, name, 0, 1, exclusive=True)
    up = p * (new / old)
    return up / (up + (1 - p) * ((1 - new) / (1 - old)))


def estimate_rate(p, old):
    """Estimate the share of outcome 1 among rows of which only predictions are known.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities that are right at the old rate.
    old : float
        That rate, in (0, 1).

    Returns
    -------
    float
        The rate of greatest likelihood, in [0, 1].

    Notes
    -----
    Saerens, Latinne and Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure": the likelihood that their EM climbs is concave.

    Examples
    --------
    >>> p = np.repeat([0.2, 0.8], [70, 30])  # of zeros 20 of 100 are told 0.8, of ones 80
    >>> round(estimate_rate(p, 0.5), 6)  # so that one in six is a one
    0.166667
    """
    p = check_probabilities(p, "p")
    check_number(old, "old", 0, 1, exclusive=True)
    if np.ptp(p) == 0:
        raise ValueError(f"p must differ between rows to tell a rate; all {len(p):,} are {p[0]:g}.")
    one, zero = p / old, (1 - p) / (1 - old)

    def slope(rate):
        return np.sum((one - zero) / (rate * one + (1 - rate) * zero))

    if slope(LEAST) <= 0 or slope(1 - LEAST) >= 0:
        return float(slope(LEAST) > 0)
    return brentq(slope, LEAST, 1 - LEAST)


def as_rate(text, otherwise):
    """Return a base rate that a user gives as text, or say what else may be given."""
    with contextlib.suppress(ValueError):
        text = float(text)
    return check_number(text, f"rate (or {otherwise})", 0, 1, exclusive=True)


def rate_with_interval(p, old, again=()):
    """Estimate a rate with its 95 % interval.

    Parameters
    ----------
    p, old : ndarray, float
        As `estimate_rate` takes them, of `FEWEST` rows at least.
    again : iterable of (ndarray, float), optional
        The same of a map that was fitted anew to resampled rows, so often that its noise becomes
        part of the interval.

    Returns
    -------
    rate, low, high : float
        The estimate, inside (0, 1), and the ends of the interval, normal on the scale of log-odds,
        by the curvature of the likelihood.
    """
    if len(p) < FEWEST:
        raise ValueError(f"rate must be estimated from {FEWEST} rows at least; got {len(p)}.")
    rate = estimate_rate(p, old)
    if not 0 < rate < 1:
        raise ValueError(f"rate must be in (0, 1); that of {len(p):,} new rows seems {rate:g}.")
    slopes = (p - old) / (rate * (p - old) + old * (1 - p))  # of each row's log-likelihood
    noise = np.var([estimate_rate(*fitted) for fitted in again] or [0])
    half = 1.96 * np.sqrt(1 / (slopes @ slopes) + noise) / (rate * (1 - rate))
    return rate, *expit(logit(rate) + half * np.array([-1, 1])).tolist()
