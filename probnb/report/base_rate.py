"""Another base rate: probabilities that were right where outcome 1 had one share, for another.

What an outcome looks like is taken to be the same in both; only how often it occurs differs (label
shift): after under-sampling or class weights, in another season, for another clinic.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from ..validation import check_number, check_probabilities

LEAST = 1e-12
"""A rate below this is 0."""


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


def estimate_rate(p, old, weights=None):
    """Estimate the share of outcome 1 among rows of which only predictions are known.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities that are right at the old rate.
    old : float
        That rate, in (0, 1).
    weights : ndarray of shape (n,), optional
        How much each row counts.

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
    p, w = check_probabilities(p, "p"), np.ones(len(p)) if weights is None else weights
    check_number(old, "old", 0, 1, exclusive=True)
    if np.ptp(p) == 0:
        raise ValueError(f"p must differ between rows to tell a rate; all {len(p):,} are {p[0]:g}.")
    one, zero = p / old, (1 - p) / (1 - old)

    def slope(rate):
        return w @ ((one - zero) / (rate * one + (1 - rate) * zero))

    if slope(LEAST) <= 0 or slope(1 - LEAST) >= 0:
        return float(slope(LEAST) > 0)
    return brentq(slope, LEAST, 1 - LEAST)


def as_rate(text, otherwise):
    """Return a base rate that a user gives as text, or say what else may be given."""
    try:
        rate = float(text)
    except ValueError:
        rule = f"rate must be a number in (0, 1), or {otherwise}"
        raise ValueError(f"{rule}; got {text!r}.") from None
    return check_number(rate, "rate", 0, 1, exclusive=True)


def rate_interval(estimates, seed=0):
    """Return the 95 % interval of an estimated rate, by resampling its rows.

    Parameters
    ----------
    estimates : iterable of (ndarray, float)
        Predictions and the old rate of each resample: the same each time, or those of a map that
        was fitted anew, which makes its noise part of the interval.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    low, high : float
        Ends of the interval.
    """
    rng, found = np.random.default_rng(seed), []
    for p, old in estimates:
        drawn = np.bincount(rng.integers(len(p), size=len(p)), minlength=len(p)).astype(float)
        found.append(estimate_rate(p, old, drawn))
    return tuple(np.quantile(found, [0.025, 0.975]).tolist())
