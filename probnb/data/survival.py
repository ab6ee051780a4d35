"""Survival that is known in part: patients, outcomes at a horizon with weights, splits by site.

A patient whose follow-up ends before the horizon while alive is censored: whether they lived to
the horizon is not known. `label` turns follow-up into outcomes by one of three rules; the weights
it gives go wherever outcomes go: loss, p_emp, calibrators and metrics take them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import StratifiedGroupKFold

from ..validation import (
    check_choice,
    check_integer,
    check_number,
    check_outcomes,
    check_probabilities,
    check_same_length,
    check_vector,
    check_weights,
)
from .base import Bags, ProbabilityData, Splits

__all__ = ["HORIZON", "RULES", "Cohort", "Labels", "label", "refuse_shared", "survival_splits"]

RULES = ("paper", "known", "ipcw")
"""Rules by which follow-up becomes an outcome; see `label`."""

HORIZON = 60.0
"""Months: the paper's five years."""

FEATURES = 64
"""Standardised features whose total variance a wider table is brought down to, so that one
learning rate serves tables of any width."""


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
    check_same_length(codes, months, ("strata", "months"))
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


def check_follow_up(months, died):
    """Return months as float64, at least 0 and finite, and deaths as bool, of the same length."""
    months, died = check_weights(months, "months"), check_outcomes(died, "died").astype(bool)
    check_same_length(months, died, ("months", "died"))
    return months, died


@dataclass(frozen=True, eq=False)
class Cohort:
    """Patients, or slides of patients, with follow-up.

    Parameters
    ----------
    inputs : array of shape (n, features), or probnb.data.base.Bags of n
        What a network sees of each row, floating point.
    months : array-like of shape (n,)
        Follow-up in months, at least 0.
    died : array-like of shape (n,)
        Whether follow-up ended with death.
    patients : array-like of shape (n,)
        Whose row it is. All rows of a patient have the same follow-up.
    sites : array-like of shape (n,)
        Where the patient comes from; splits never cut through a site, and so through no patient.
    source : str
        What identifies the data, as `probnb.data.base.Splits` wants it.
    covariates : pandas.DataFrame of n rows, optional
        What a statistician would also use: ``stage``, ``age``, ``sex``, ``cohort``.
    probabilities : array-like of shape (n,), optional
        True probability of being alive at the horizon, where the data are simulated.
    report : dict, optional
        Counts worth telling.

    Raises
    ------
    ValueError
        If lengths differ, times are negative, or the rows of one patient disagree.
    """

    inputs: object
    months: np.ndarray
    died: np.ndarray
    patients: np.ndarray
    sites: np.ndarray
    source: str
    covariates: pd.DataFrame | None = None
    probabilities: np.ndarray | None = None
    report: dict = field(default_factory=dict)

    def __post_init__(self):
        n = len(self.inputs)
        months, died = check_follow_up(self.months, self.died)
        checked = {"months": months, "died": died}
        checked |= {name: check_vector(getattr(self, name), name) for name in ("patients", "sites")}
        if self.probabilities is not None:
            checked["probabilities"] = check_probabilities(self.probabilities, "probabilities")
        for name, value in (checked | {"covariates": self.covariates}).items():
            if value is not None and len(value) != n:
                raise ValueError(f"{name} must have the {n} rows of inputs; got {len(value)}.")
        follow_up = pd.DataFrame({"months": months, "died": died, "sites": checked["sites"]})
        differ = follow_up.groupby(checked["patients"]).nunique().gt(1).any(axis=1)
        if differ.any():
            raise ValueError(
                "months, died and sites must be the same in all rows of a patient; they differ for "
                f"{differ.index[differ][0]!r}."
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self):
        return len(self.months)

    @property
    def numbers(self):
        """Whose row it is, as a number: the patient's own, or its place among the names."""
        if self.patients.dtype.kind in "iu":
            return self.patients
        return np.unique(self.patients, return_inverse=True)[1]

    @property
    def first(self):
        """Whether a row is the first of its patient: one row a patient."""
        return ~pd.Series(self.patients).duplicated().to_numpy()


def survival_splits(cohort, rule="ipcw", horizon=HORIZON, seed=0, folds=5, strata=None):
    """Split a cohort by site into training, validation and test, with outcomes by a rule.

    Parameters
    ----------
    cohort : Cohort
        The patients.
    rule : {"paper", "known", "ipcw"}, default="ipcw"
        How follow-up becomes an outcome; see `label`.
    horizon : float, default=60
        Months.
    seed : int, default=0
        Seeds 0 to ``folds - 1`` share one partition of the sites and take its folds in turn as
        test part, so that together they test every patient once; the next seeds take another
        partition.
    folds : int, default=5
        Parts of the partition: one for test, the next for validation, the rest for training.
    strata : str, optional
        Column of the covariates within which censoring is estimated on its own.

    Returns
    -------
    probnb.data.base.Splits
        Rows whose outcome is not known are left out of training and validation, and counted in
        the report; in the test part they stay with weight 0, so that they too get predictions.
        Groups are numbers of patients, which name nobody, and ids the row numbers in `cohort`. The
        report also holds the `cohort` and its ``members``: all row numbers of each part.

    Raises
    ------
    ValueError
        If a setting is out of range, or there are fewer sites than folds.

    Notes
    -----
    Weights of training and validation come from the censoring of these two parts, those of the
    test part from all patients, so that the five test parts together are one weighted sample.
    Tables are standardised by the training part, and divided by the square root of how many times
    64 features they have.
    """
    check_integer(seed, "seed", 0)
    check_integer(folds, "folds", 3)
    sites = len(np.unique(cohort.sites))
    if sites < folds:
        raise ValueError(f"folds must be at most the {sites} sites of the cohort; got {folds}.")
    everybody = _label_rows(cohort, rule, horizon, strata)
    status = np.where(everybody.known, everybody.outcomes, 2).astype(int)
    partition = StratifiedGroupKFold(folds, shuffle=True, random_state=seed // folds)
    parts = [rows for _, rows in partition.split(status, status, cohort.sites)]
    test, val = parts[seed % folds], parts[(seed + 1) % folds]
    train = np.setdiff1d(np.arange(len(cohort)), np.r_[test, val])
    rows = {"train": train, "val": val, "test": test}
    members = dict(rows)
    development = np.isin(np.arange(len(cohort)), test, invert=True)
    labels = _label_rows(cohort, rule, horizon, strata, development)
    if rule != "paper":
        rows |= {name: rows[name][labels.known[rows[name]]] for name in ("train", "val")}
    scale = None if isinstance(cohort.inputs, Bags) else _scale(cohort.inputs[rows["train"]])
    data = {
        name: _part(cohort, index, everybody if name == "test" else labels, scale)
        for name, index in rows.items()
    }
    report = cohort.report | {
        "rule": rule,
        "horizon": horizon,
        "rows": {name: len(index) for name, index in rows.items()},
        "left_out": len(cohort) - sum(map(len, rows.values())),
        "censored_in_test": int((~everybody.known[test]).sum()),
        "largest_weight": float(max(part.weights.max() for part in data.values())),
        "cohort": cohort,
        "members": members,
    }
    source = f"{cohort.source} {rule} at {horizon:g} months, fold {seed % folds} of {folds}"
    source += f", partition {seed // folds}" + (f", censoring by {strata}" if strata else "")
    return Splits(**data, source=source, report=report)


def refuse_shared(parts, what="patient"):
    """Raise if somebody is in two parts: a model would be judged on whom it has seen.

    Parameters
    ----------
    parts : mapping of str to array-like
        Whose rows each part holds.
    what : str, default="patient"
        What the members are, for the message.

    Raises
    ------
    ValueError
        If two parts share a member.
    """
    for (a, of_a), (b, of_b) in itertools.combinations(parts.items(), 2):
        shared = np.intersect1d(of_a, of_b)
        if len(shared):
            raise ValueError(
                f"{a} and {b} must not share a {what}; both have {shared[0].item()!r} "
                f"({len(shared)} in all)."
            )


def _label_rows(cohort, rule, horizon, strata, reference=None):
    """Label rows; censoring is estimated from one row a patient."""
    groups = None
    if strata is not None:
        columns = () if cohort.covariates is None else cohort.covariates.columns
        groups = cohort.covariates[check_choice(strata, columns, "strata")].to_numpy()
    used = cohort.first if reference is None else cohort.first & reference
    return label(cohort.months, cohort.died, rule, horizon, groups, used)


def _part(cohort, rows, labels, scale):
    known = cohort.probabilities
    inputs = cohort.inputs[rows]
    if scale is not None:
        inputs = (torch.as_tensor(inputs).float() - scale[0]) / scale[1]
    return ProbabilityData(
        inputs,
        labels.outcomes[rows],
        probabilities=None if known is None else known[rows],
        weights=labels.weights[rows],
        groups=cohort.numbers[rows],
        ids=rows,
    )


def _scale(x):
    """Mean and deviation of each feature, the latter times the square root of many features."""
    x = torch.as_tensor(np.asarray(x, np.float64))
    deviation = x.std(0, correction=0)
    deviation[deviation == 0] = 1  # a constant feature is only centred
    wide = max(1, x.shape[1] / FEATURES) ** 0.5
    return x.mean(0, keepdim=True).float(), wide * deviation[None].float()
