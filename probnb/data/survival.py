"""Survival that is known in part: outcomes at a horizon, with weights.

A patient whose follow-up ends before the horizon while alive is censored: whether they lived to
the horizon is not known. `label` turns follow-up into outcomes by one of three rules; the weights
it gives go wherever outcomes go: loss, p_emp, calibrators and metrics take them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..validation import check_choice, check_number, check_outcomes, check_vector

__all__ = [
    "HORIZON",
    "RULES",
    "Labels",
    "check_follow_up",
    "effective_size",
    "kaplan_meier",
    "label",
]

RULES = ("paper", "known", "ipcw")
"""Rules by which follow-up becomes an outcome; see `label`."""

HORIZON = 60.0
"""Months: the paper's five years."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Outcomes at a horizon; made by `label`.

    Attributes
    ----------
    outcomes : ndarray of shape (n,)
        1 where the patient was alive at the horizon or counts as such, 0 where they had died.
    weights : ndarray of shape (n,)
        How much each row counts; 0 where its outcome is not known.
    known : ndarray of bool of shape (n,)
        Whether follow-up settles the outcome.
    """

    outcomes: np.ndarray
    weights: np.ndarray
    known: np.ndarray


def label(months, died, rule="ipcw", horizon=HORIZON, strata=None, reference=None):
    r"""Turn follow-up into the outcome "alive at the horizon", with a weight.

    Parameters
    ----------
    months : array-like of shape (n,)
        Months from diagnosis to death or to the last time the patient was seen; at least 0.
    died : array-like of shape (n,)
        1 where follow-up ended with death, 0 where it is censored.
    rule : {"paper", "known", "ipcw"}, default="ipcw"
        ``"paper"``: whoever is not known to have died counts as a survivor, which is the only way
        to the published 352 deaths among 1,009 patients. ``"known"``: the censored are left out.
        ``"ipcw"``: the censored are left out, and the others count for them: each known outcome
        is weighted by the inverse of the probability that it would still have been observed.
    horizon : float, default=60
        Months.
    strata : array-like of shape (n,), optional
        Groups within which censoring is estimated on its own: cohorts whose follow-up differs.
    reference : array-like of bool of shape (n,), optional
        Rows from which censoring is estimated; all by default.

    Returns
    -------
    Labels
        Outcomes, weights and which outcomes are known.

    Raises
    ------
    ValueError
        If a time is negative or not finite, a setting is out of range, no outcome is known (all
        are censored), or nobody in a stratum is followed to the time at which a weight is needed.

    Notes
    -----
    With :math:`G(t) = P(C \ge t)`, the probability of being followed for :math:`t` months, the
    weight of a known outcome is :math:`1 / \hat G(\min(T, \text{horizon}))`, with the Kaplan-Meier
    estimate of the censoring (Graf et al. 1999). If :math:`\hat G` comes from the rows themselves,
    weights sum to n and the weighted mean outcome *is* the Kaplan-Meier estimate of survival.
    Censoring is taken to be independent of survival within a stratum.

    Examples
    --------
    >>> labels = label([10, 70, 20, 80], died=[1, 0, 0, 1])
    >>> labels.outcomes, labels.weights
    (array([0., 1., 1., 1.]), array([1. , 1.5, 0. , 1.5]))
    """
    check_choice(rule, RULES, "rule")
    check_number(horizon, "horizon", 0, exclusive=True)
    months, died = check_follow_up(months, died)
    dead = died & (months <= horizon)
    known = dead | (months >= horizon)
    if not known.any():
        raise ValueError(
            f"died must tell somebody's outcome at {horizon:g} months; all {len(months)} patients "
            "are censored before."
        )
    outcomes = np.where(dead, 0.0, 1.0)
    if rule == "paper":
        return Labels(outcomes, np.ones(len(months)), known)
    weights = known.astype(float)
    if rule == "ipcw":
        followed = _followed(months, died, np.minimum(months, horizon), known, strata, reference)
        weights[known] = 1 / followed[known]
    return Labels(outcomes, weights, known)


def _followed(months, died, at, known, strata, reference):
    """Estimate the probability of being followed up to just before each time `at`."""
    from sksurv.nonparametric import kaplan_meier_estimator

    codes = np.zeros(len(months), int)
    if strata is not None:
        codes, names = pd.factorize(check_vector(strata, "strata"))
    rows = np.ones(len(months), bool) if reference is None else np.asarray(reference, bool)
    for name, given in (("strata", codes), ("reference", rows)):
        if len(given) != len(months):
            raise ValueError(f"{name} must have {len(months)} rows, as months; got {len(given)}.")
    followed = np.ones(len(months))
    for code in np.unique(codes):
        inside, used = codes == code, (codes == code) & rows
        where = "" if strata is None else f" in stratum {names[code]!r}"
        if not used.any():
            raise ValueError(f"reference must have patients{where}; it has none.")
        if died[used].all():
            continue  # nobody is censored, everybody is followed
        times, survival = kaplan_meier_estimator(died[used], months[used], reverse=True)
        # A death at t is seen if censoring comes at t or later: the value before the step at t.
        steps = np.append(1.0, survival)[np.searchsorted(times, at[inside], side="left")]
        followed[inside] = steps
        lost = inside & known & (followed <= 0)
        if lost.any():
            raise ValueError(
                f"horizon must be within follow-up; nobody{where} is followed for "
                f"{at[lost].min():g} months."
            )
    return followed


def kaplan_meier(months, died, level=0.95):
    """Kaplan and Meier's estimate of survival, with pointwise log-log intervals.

    Parameters
    ----------
    months, died : array-like of shape (n,)
        Follow-up in months, and whether it ended with death.
    level : float, default=0.95
        Coverage aimed at.

    Returns
    -------
    DataFrame
        Columns ``months``, ``survival``, ``low``, ``high``, one row a distinct time, from 0.
    """
    from sksurv.nonparametric import kaplan_meier_estimator

    months, died = check_follow_up(months, died)
    check_number(level, "level", 0, 1, exclusive=True)
    times, survival, (low, high) = kaplan_meier_estimator(
        died, months, conf_level=level, conf_type="log-log"
    )
    curve = pd.DataFrame({"months": times, "survival": survival, "low": low, "high": high})
    start = pd.DataFrame({"months": [0.0], "survival": [1.0], "low": [1.0], "high": [1.0]})
    return pd.concat([start, curve], ignore_index=True)


def effective_size(weights):
    """Return how many equally weighted rows are worth as much as these (Kish 1965)."""
    weights = np.asarray(weights, float)
    return float(weights.sum() ** 2 / (weights**2).sum())


def check_follow_up(months, died):
    """Return months as float64, at least 0 and finite, and deaths as bool, of the same length."""
    months = np.asarray(months, float)
    died = check_outcomes(died, "died").astype(bool)
    wrong = ~((months >= 0) & np.isfinite(months))
    if months.shape != died.shape:
        raise ValueError(
            f"months and died must have the same length; got {len(months)} and {len(died)}."
        )
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"months must be finite and at least 0; got {months[row].item()!r} in row {row}."
        )
    return months, died
