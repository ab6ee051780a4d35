"""Thirteen cohorts of The Cancer Genome Atlas: genes, follow-up, stage, one row a patient.

The tables are not part of the project (non-commercial academic use). Expression spans four orders
of magnitude, so it is put on a signed logarithmic scale; sites are the codes of the institutions
that sent the tissue.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from ..validation import check_choice
from .survival import Cohort

__all__ = ["COHORTS", "POOLS", "STAGES", "coarse_stage", "read_tcga", "sign_log"]

_NAMES = "blca brca coadread gbmlgg hnsc kirc kirp lihc luad lusc paad skcm stad"
COHORTS = tuple(_NAMES.split())
"""Cohorts by the name of their file, ``tcga_<name>.csv.zip``."""

POOLS = {"lung": ("luad", "lusc"), "all": COHORTS}
"""Names for several cohorts together; ``"lung"`` is the paper's choice."""

STAGES = ("I", "II", "III", "IV", "unknown")
"""Pathological stages, early to late, and a place for patients without one."""

NEEDED = ("case_id", "age", "survival_months", "censorship", "is_female")
"""Columns of a table besides the genes."""


def sign_log(x):
    r"""Return :math:`\operatorname{sign}(x)\,\log(1 + |x|)`, odd and finite wherever x is."""
    x = np.asarray(x, float)
    return np.sign(x) * np.log1p(np.abs(x))


def coarse_stage(stage):
    """Return I, II, III, IV or unknown for a pathological stage as the registry writes it.

    Parameters
    ----------
    stage : str or missing
        For example ``"Stage IIIA"``; missing, or anything else, is unknown.

    Returns
    -------
    str
        One of `STAGES`.

    Examples
    --------
    >>> [coarse_stage(s) for s in ("Stage IB", "stage iiia", "IV", None, "[Discrepancy]")]
    ['I', 'III', 'IV', 'unknown', 'unknown']
    """
    found = re.fullmatch(r"(?:STAGE )?(IV|III|II|I)[ABCS]?\d?", str(stage).strip().upper())
    return found.group(1) if found else "unknown"


def read_tcga(folder, cohorts="lung"):
    """Read patients of one or more cohorts.

    Parameters
    ----------
    folder : path-like
        Where ``tcga_<cohort>.csv.zip`` lie and, for the stages, ``clinical.csv``.
    cohorts : {"lung", "all"} or sequence of str, default="lung"
        Names from `COHORTS`, or of a pool of them.

    Returns
    -------
    probnb.data.survival.Cohort
        Inputs are the genes that all cohorts have, on a signed logarithmic scale, in the order of
        their names, and where there are several cohorts an indicator of each. Covariates are
        ``stage``, ``age`` in years (NaN where missing), ``sex`` (unknown where missing) and
        ``cohort``.

    Raises
    ------
    ValueError
        If a cohort is unknown, a file or column is missing, a gene has no value, a patient has no
        barcode, follow-up or censoring, a time is negative, or a patient's rows disagree.

    Notes
    -----
    The tables have one row a slide with the patient's genes repeated; one row a patient is kept.
    """
    folder = Path(folder)
    if isinstance(cohorts, str):
        cohorts = POOLS.get(cohorts) or (check_choice(cohorts, [*POOLS, *COHORTS], "cohorts"),)
    names = [check_choice(name, COHORTS, "cohorts") for name in dict.fromkeys(cohorts)]
    if not names:
        raise ValueError("cohorts must name at least one cohort; got none.")
    tables = {name: _read(_file(folder, name)) for name in names}
    of = [{c for c in table if c.endswith("_rnaseq")} for table in tables.values()]
    if not (genes := sorted(set.intersection(*of))):
        raise ValueError(f"cohorts must have genes in common; {', '.join(names)} have none.")
    slides = pd.concat({name: table[[*NEEDED, *genes]] for name, table in tables.items()})
    slides = slides.copy().droplevel(1).rename_axis("cohort").reset_index()
    _check_values(slides, genes)
    patients = slides.drop_duplicates("case_id").sort_values("case_id").reset_index(drop=True)
    inputs = sign_log(patients[genes])
    if len(names) > 1:
        inputs = np.column_stack([inputs, *(patients["cohort"] == name for name in names)])
    stage = patients["case_id"].map(_stages(folder)).map(coarse_stage)
    sex = patients["is_female"].map({1: "female", 0: "male"}).fillna("unknown")
    digest = hashlib.sha256(b"".join(_file(folder, name).read_bytes() for name in names))
    return Cohort(
        inputs.astype(np.float32),
        patients["survival_months"].to_numpy(float),
        1 - patients["censorship"].to_numpy(float),
        patients["case_id"].to_numpy(str),
        patients["case_id"].str.split("-").str[1].to_numpy(str),  # the barcode's second field
        f"tcga {'+'.join(names)} {len(genes)} genes sha256:{digest.hexdigest()[:16]}",
        patients[["age", "cohort"]].assign(stage=stage, sex=sex),
        report={
            "patients": len(patients),
            "slides": len(slides),
            "deaths": int((patients["censorship"] == 0).sum()),
            "genes": len(genes),
            "without_stage": int((stage == "unknown").sum()),
            "without_age": int(patients["age"].isna().sum()),
            "without_sex": int((sex == "unknown").sum()),
        },
    )


def _file(folder, name):
    path = folder / f"tcga_{name}.csv.zip"
    if not path.is_file():
        raise ValueError(f"folder must hold {path.name}; {folder} does not.")
    return path


def _table(path, columns):
    """Read a table, or say which file cannot be read or lacks a column."""
    try:
        table = pd.read_csv(path, low_memory=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} must be a table, CSV; it cannot be read: {error}.") from None
    for column in columns:
        if column not in table:
            raise ValueError(f"{path.name} must have a column {column!r}; it has none.")
    return table


def _read(path):
    table = _table(path, NEEDED)
    months = pd.to_numeric(table["survival_months"], errors="coerce")
    female = table["is_female"]
    right = {
        "case_id": table["case_id"].astype(str).str.fullmatch(r"[^-]+-[^-]+-[^-]+"),
        "survival_months": months >= 0,
        "censorship": table["censorship"].isin([0, 1]),
        "is_female": female.isin([0, 1]) | female.isna(),
    }
    meaning = "a barcode such as TCGA-05-4244", "a number of at least 0"
    meaning += "0 (died) or 1 (censored)", "0, 1 or empty"
    for (column, rows), what in zip(right.items(), meaning):
        if not rows.all():
            row = int(np.argmin(rows))
            raise ValueError(
                f"{column} must be {what} in every row of {path.name}; got "
                f"{table[column].astype(object).iloc[row]!r} in row {row}."
            )
    return table


def _check_values(slides, genes):
    missing = slides[genes].isna().sum()
    if missing.any():
        gene = missing.idxmax()
        raise ValueError(
            f"genes must have a value in every row; {gene.removesuffix('_rnaseq')!r} is missing in "
            f"{missing[gene]}."
        )
    repeated = slides[slides["case_id"].duplicated(keep=False)]
    once = repeated.drop_duplicates(["case_id", *genes, "survival_months", "censorship"])
    twice = once["case_id"].duplicated()
    if twice.any():
        raise ValueError(
            "genes and follow-up must be the same in all rows of a patient; they differ for "
            f"{once['case_id'][twice].iloc[0]!r}."
        )


def _stages(folder):
    """Stage by patient; empty where there is no clinical table."""
    path = folder / "clinical.csv"
    if not path.is_file():
        return {}
    columns = ["bcr_patient_barcode", "pathologic_stage"]
    stages = _table(path, columns)[columns].drop_duplicates().set_index(columns[0])[columns[1]]
    if stages.index.has_duplicates:
        twice = stages.index[stages.index.duplicated()][0]
        raise ValueError(f"{path.name} must have one stage a patient; {twice!r} has several.")
    return stages.to_dict()
