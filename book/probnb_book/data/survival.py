"""Survival known in part: outcomes at a horizon with weights, splits by site, TCGA's tables.

A patient whose follow-up ends before the horizon while alive is censored: whether they lived to
the horizon is not known. `label` turns follow-up into outcomes by one of three rules; the weights
it gives go wherever outcomes go: loss, p_emp, calibrators and metrics take them.

The tables of thirteen cohorts of The Cancer Genome Atlas are not part of the project
(non-commercial academic use). Expression spans four orders of magnitude, so it is put on a signed
logarithmic scale; sites are the codes of the institutions that sent the tissue.
"""

import hashlib
import re
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import StratifiedGroupKFold

from probnb.data.base import Bags, ProbabilityData, Splits
from probnb.validation import (
    check_choice,
    check_integer,
    check_number,
    check_outcomes,
    check_same_length,
    check_vector,
    check_weights,
)

RULES = ("paper", "known", "ipcw")
"""Rules by which follow-up becomes an outcome; see `label`."""

HORIZON = 60.0
"""Months: the paper's five years."""

FOLDS = 5
"""Parts of the sites: one tests, one validates, three train."""

WIDE = 64
"""Standardised features whose total variance a wider table is brought down to, so that one
learning rate serves tables of any width."""


_NAMES = "blca brca coadread gbmlgg hnsc kirc kirp lihc luad lusc paad skcm stad"
COHORTS = tuple(_NAMES.split())
"""TCGA's cohorts by the name of their file, ``tcga_<name>.csv.zip``."""

POOLS = {"lung": ("luad", "lusc"), "all": COHORTS}
"""Names for several cohorts together; ``"lung"`` is the paper's choice."""

STAGES = ("I", "II", "III", "IV", "unknown")
"""Pathological stages, early to late, and a place for patients without one."""


Labels = namedtuple("Labels", "outcomes weights known")
"""Outcomes at a horizon, one entry a row: 1 where the patient was alive then or counts as such, 0
where they had died; how much the row counts, 0 where its outcome is not known; and whether
follow-up settles it."""


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
        If a time is negative or not finite, a setting is out of range, no outcome is known, or
        nobody in a stratum is followed to the time at which a weight is needed.

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
    months, died = check_weights(months, "months"), check_outcomes(died, "died").astype(bool)
    check_same_length(months, died, ("months", "died"))
    dead = died & (months <= horizon)
    known = dead | (months >= horizon)
    if not known.any():
        raise ValueError(f"died must tell somebody's outcome at {horizon:g} months; all are lost.")
    outcomes = np.where(dead, 0.0, 1.0)
    if rule == "paper":
        return Labels(outcomes, np.ones(len(months)), known)
    weights = known.astype(float)
    if rule == "ipcw":
        followed = _followed(months, died, np.minimum(months, horizon), strata, reference)
        if (followed[known] <= 0).any():
            raise ValueError(f"horizon must be within each stratum's follow-up; got {horizon:g}.")
        weights[known] = 1 / followed[known]
    return Labels(outcomes, weights, known)


def _followed(months, died, at, strata, reference):
    """Estimate the probability of being followed up to just before each time `at`."""
    from sksurv.nonparametric import kaplan_meier_estimator

    strata = np.zeros(len(months)) if strata is None else check_vector(strata, "strata")
    check_same_length(strata, months, ("strata", "months"))
    followed = np.ones(len(months))
    for stratum in np.unique(strata):
        inside = strata == stratum
        used = inside if reference is None else inside & reference
        if not used.any():
            raise ValueError(f"strata: {stratum!s} has no row that may tell who is followed.")
        if died[used].all():
            continue  # nobody is censored, everybody is followed
        times, survival = kaplan_meier_estimator(died[used], months[used], reverse=True)
        # A death at t is seen if censoring comes at t or later: the value before the step at t.
        followed[inside] = np.append(1.0, survival)[np.searchsorted(times, at[inside])]
    return followed


@dataclass(frozen=True, eq=False)
class Cohort:
    """Patients, or slides of patients, with follow-up.

    Parameters
    ----------
    inputs : array of shape (n, features), or probnb.data.base.Bags of n
        What a network sees of each row, floating point.
    months : ndarray of shape (n,)
        Follow-up in months, at least 0.
    died : ndarray of shape (n,)
        Whether follow-up ended with death.
    patients : ndarray of shape (n,)
        Whose row it is. All rows of a patient have the same follow-up.
    sites : ndarray of shape (n,)
        Where the patient comes from; splits never cut through a site, and so through no patient.
    source : str
        What identifies the data, as `probnb.data.base.Splits` wants it.
    covariates : pandas.DataFrame of n rows
        What a statistician would also use: ``stage``, ``age``, ``sex``, ``cohort``.
    probabilities : array-like of shape (n,), optional
        True probability of being alive at the horizon, where the data are simulated.
    report : dict, optional
        Counts worth telling.
    """

    inputs: object
    months: np.ndarray
    died: np.ndarray
    patients: np.ndarray
    sites: np.ndarray
    source: str
    covariates: pd.DataFrame
    probabilities: np.ndarray | None = None
    report: dict = field(default_factory=dict)

    def __len__(self):
        return len(self.months)

    @property
    def numbers(self):
        """Whose row it is, as a number: the patient's own, or its place among the names."""
        own = self.patients.dtype.kind in "iu"
        return self.patients if own else np.unique(self.patients, return_inverse=True)[1]

    @property
    def first(self):
        """Whether a row is the first of its patient: one row a patient."""
        return ~pd.Series(self.patients).duplicated().to_numpy()


def survival_splits(cohort, rule="ipcw", horizon=HORIZON, seed=0, strata=None):
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
        Seeds 0 to 4 share one partition of the sites and take its five folds in turn as
        test part, so that together they test every patient once (the next fold validates, the
        rest trains); the next seeds take another partition.
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
        If a setting is out of range, or there are fewer than five sites.

    Notes
    -----
    Weights of training and validation come from the censoring of these two parts, those of the
    test part from all patients, so that the five test parts together are one weighted sample.
    Tables are standardised by the training part, and divided by the square root of how many times
    64 features they have.
    """
    check_integer(seed, "seed", 0)
    sites = check_vector(cohort.sites, "sites")
    if len(np.unique(sites)) < FOLDS:
        raise ValueError(f"cohort must have {FOLDS} sites at least; got {len(np.unique(sites))}.")
    groups = None if strata is None else cohort.covariates[strata].to_numpy()
    follow_up = cohort.months, cohort.died, rule, horizon, groups  # censoring: one row a patient
    everybody = label(*follow_up, cohort.first)
    status = np.where(everybody.known, everybody.outcomes, 2).astype(int)
    partition = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed // FOLDS)
    parts = [rows for _, rows in partition.split(status, status, sites)]
    test, val = parts[seed % FOLDS], parts[(seed + 1) % FOLDS]
    everyone = np.arange(len(cohort))
    members = {"train": np.setdiff1d(everyone, np.r_[test, val]), "val": val, "test": test}
    labels = label(*follow_up, cohort.first & ~np.isin(everyone, test))
    rows = dict(members)
    if rule != "paper":
        rows |= {name: rows[name][labels.known[rows[name]]] for name in ("train", "val")}
    inputs = cohort.inputs
    if not isinstance(inputs, Bags):
        inputs = _standardise(inputs, rows["train"])
    data = {}
    for name, index in rows.items():
        found = everybody if name == "test" else labels
        p = None if cohort.probabilities is None else cohort.probabilities[index]
        y, weights, numbers = found.outcomes[index], found.weights[index], cohort.numbers[index]
        data[name] = ProbabilityData(inputs[index], y, p, numbers, weights, index)
    report = cohort.report | {"rule": rule, "horizon": horizon}
    report["left_out"] = len(cohort) - sum(map(len, rows.values()))
    report["censored_in_test"] = int((~everybody.known[test]).sum())
    report["largest_weight"] = float(max(part.weights.max() for part in data.values()))
    report |= {"cohort": cohort, "members": members}
    source = f"{cohort.source} {rule} at {horizon:g} months, fold {seed % FOLDS} of {FOLDS}"
    source += f", partition {seed // FOLDS}" + (f", censoring by {strata}" if strata else "")
    return Splits(**data, source=source, report=report)


def _standardise(inputs, train):
    """Standardise a table by some rows, and divide it by the square root of many features."""
    x = torch.as_tensor(np.asarray(inputs[train], np.float64))
    deviation = x.std(0, correction=0)
    deviation[deviation == 0] = 1  # a constant feature is only centred
    wide = max(1, x.shape[1] / WIDE) ** 0.5
    scale = wide * deviation[None].float()
    return (torch.as_tensor(inputs).float() - x.mean(0, keepdim=True).float()) / scale


def coarse_stage(stage):
    """Return one of `STAGES` for a pathological stage as the registry writes it.

    Examples
    --------
    >>> [coarse_stage(s) for s in ("Stage IB", "stage iiia", "IV", None, "[Discrepancy]")]
    ['I', 'III', 'IV', 'unknown', 'unknown']
    """
    found = re.fullmatch(r"(?:STAGE )?(IV|III|II|I)[ABCS]?\d?", str(stage).strip().upper())
    return found.group(1) if found else "unknown"


def read_tcga(folder, cohorts="lung"):
    """Read patients of one or more cohorts of TCGA.

    Parameters
    ----------
    folder : path-like
        Where ``tcga_<cohort>.csv.zip`` lie and, for the stages, ``clinical.csv``.
    cohorts : {"lung", "all"} or sequence of str, default="lung"
        Names from `COHORTS`, or of a pool of them.

    Returns
    -------
    Cohort
        Inputs are the genes that all cohorts have, on a signed logarithmic scale, in the order of
        their names, and where there are several cohorts an indicator of each. Covariates are
        ``stage``, ``age`` in years (NaN where missing), ``sex`` (unknown where missing) and
        ``cohort``.

    Raises
    ------
    FileNotFoundError
        If a cohort's file is missing.
    ValueError
        If a cohort is unknown, a patient has no barcode, follow-up or censoring, a time is
        negative, or a patient's rows disagree.

    Notes
    -----
    The tables have one row a slide with the patient's genes repeated; one row a patient is kept.
    """
    folder = Path(folder)
    if isinstance(cohorts, str):
        cohorts = POOLS.get(cohorts, (cohorts,))
    names = [check_choice(name, [*POOLS, *COHORTS], "cohorts") for name in dict.fromkeys(cohorts)]
    files = {name: folder / f"tcga_{name}.csv.zip" for name in names}
    tables = {name: pd.read_csv(file, low_memory=False) for name, file in files.items()}
    slides = pd.concat(tables, join="inner", names=["cohort"]).copy().reset_index("cohort")
    genes = sorted(column for column in slides if column.endswith("_rnaseq"))
    same = ["case_id", *genes, "survival_months", "censorship"]
    patients = slides.drop_duplicates(same).sort_values("case_id", ignore_index=True)
    if (twice := patients["case_id"][patients["case_id"].duplicated()]).any():
        raise ValueError(f"genes and follow-up of {twice.iloc[0]!r} must be the same in all rows.")
    inputs = patients[genes].to_numpy(float)
    inputs = np.sign(inputs) * np.log1p(np.abs(inputs))
    if len(names) > 1:
        inputs = np.column_stack([inputs, *(patients["cohort"] == name for name in names)])
    stage, columns = "unknown", ["bcr_patient_barcode", "pathologic_stage"]
    if (clinical := folder / "clinical.csv").is_file():
        known = pd.read_csv(clinical, usecols=columns).drop_duplicates().set_index(columns[0])
        stage = patients["case_id"].map(known[columns[1]]).map(coarse_stage)
    sex = patients["is_female"].map({1: "female", 0: "male"}).fillna("unknown")
    covariates = patients[["age", "cohort"]].assign(stage=stage, sex=sex)
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files.values()))
    months, censored = (patients[c].to_numpy(float) for c in ("survival_months", "censorship"))
    sites = patients["case_id"].str.split("-").str[1].to_numpy()  # the barcode's second field
    source = f"tcga {'+'.join(names)} {len(genes)} genes sha256:{digest.hexdigest()[:16]}"
    report = {"patients": len(patients), "slides": len(slides)}
    report |= {"deaths": int((censored == 0).sum()), "genes": len(genes)}
    who = inputs.astype(np.float32), months, 1 - censored, patients["case_id"].to_numpy(str), sites
    return Cohort(*who, source, covariates, report=report)
