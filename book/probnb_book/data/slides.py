"""Slides as bags of tiles: on disk, read bag by bag, or simulated with a truth.

A file holds the tiles of all slides one after the other (``values``), how many each has
(``lengths``), and any vectors of one entry a slide; HDF5, read without loading more than a batch::

    with h5py.File("slides.h5", "w") as file:
        file["values"], file["lengths"] = np.concatenate(bags), [len(bag) for bag in bags]
        file["outcomes"], file["ids"] = outcomes, np.char.encode(ids)

Simulated slides stand in for data that may not be passed on, and have what those lack: every
patient's probability of being alive at the horizon, and what censoring hides.
"""

import hashlib
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
from scipy.optimize import brentq

from probnb.data.base import Bags, ProbabilityData, Splits
from probnb.validation import check_integer, check_number

from .survival import HORIZON, Cohort

SUFFIXES = (".h5", ".hdf5")
"""File names that `read_bags` knows."""

USED = ("outcomes", "groups", "ids", "weights")
"""Columns that `slide_splits` takes."""

MEDIAN_SURVIVAL = 0.5
"""Probability of being alive at the horizon for a patient of severity 0."""

PEOPLE = 1_000_000
"""Numbers of patients that a seed has for itself."""

EFFECT = 0.7
"""How much one unit of severity adds to the logarithm of the hazard."""

FEATURES, TILES = 32, 15
"""Features of a simulated tile, and the median number of tiles of a slide, which vary by a factor
of 2 in each direction and more, from 1 up."""

INFORMATIVE, NOISE = 0.15, 0.3
"""Expected share of tiles that show the tumour (each slide has at least one), and the standard
deviation of the severity as one of them shows it, about the patient's."""


def read_bags(path):
    """Open a file of bags; tiles stay on disk until a batch asks for them.

    Parameters
    ----------
    path : path-like
        In the layout above.

    Returns
    -------
    bags : probnb.data.base.Bags
        The slides. May be pickled to another process, which opens the file itself.
    columns : dict of str to ndarray of shape (n,)
        Everything else of one entry a slide.

    Raises
    ------
    ValueError
        If the file is damaged, or not of that layout.
    """
    try:
        with h5py.File(path, "r") as file:
            columns = {name: file[name][:] for name in file if name != "values"}
        values, lengths = StoredTiles(path), columns.pop("lengths")
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(f"path must hold values and lengths; {path}: {error}.") from None
    text = {k: np.char.decode(v, "utf-8") for k, v in columns.items() if v.dtype.kind == "S"}
    return Bags(values, lengths), columns | text


class StoredTiles:
    """The tiles of a file, indexed like an array of shape (total, features); opened on demand."""

    dtype = np.dtype(np.float32)

    def __init__(self, path):
        self.path, self._file = Path(path), None
        self.shape = self._values().shape

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        """Return tiles as a float32 array."""
        return np.asarray(self._values()[rows], np.float32)

    def __getstate__(self):
        return self.__dict__ | {"_file": None}

    def _values(self):
        self._file = self._file or h5py.File(self.path, "r")
        return self._file["values"]


def slide_splits(folder):
    """Read the paper's split: ``train``, ``val`` and ``test`` files of bags with outcomes.

    Parameters
    ----------
    folder : path-like
        Holds a file of each name, ending in one of `SUFFIXES`, with a column ``outcomes`` and, if
        slides share patients, ``groups``; also ``ids`` and ``weights``.

    Returns
    -------
    probnb.data.base.Splits
        The three parts; tiles stay on disk. ``report`` names the columns that are not used.
    """
    parts, owners, unused, digest = {}, [], [], hashlib.sha256()
    for name in ("train", "val", "test"):
        found = [f for f in Path(folder).glob(f"{name}.*") if f.suffix in SUFFIXES]
        if len(found) != 1:
            raise ValueError(
                f"folder must hold one file {name}{'|'.join(SUFFIXES)}; {folder} has {len(found)}."
            )
        bags, columns = read_bags(found[0])
        used = {k: columns.pop(k) for k in USED if k in columns}
        if "outcomes" not in used:
            raise ValueError(f"{found[0].name} must have a column outcomes; it has none.")
        owners += [*np.unique(used.get("groups", used.get("ids", [])))]
        unused += [f"{found[0].name}/{k}" for k in columns]
        parts[name] = ProbabilityData(bags, **used)
        with found[0].open("rb") as file:  # other features of as many tiles are other data
            digest.update(hashlib.file_digest(file, "sha256").digest())
    if len({part.groups is None for part in parts.values()}) > 1:
        raise ValueError("groups must be in all three files or in none; some have them.")
    if shared := [owner for owner, times in Counter(owners).items() if times > 1]:
        raise ValueError(f"parts must not share a patient or slide; two have {shared[0]!s}.")
    source = f"slides sha256:{digest.hexdigest()[:16]}"
    return Splits(**parts, source=source, report={"unused columns": unused})


def survival_probability(severity):
    r"""Probability of being alive at the horizon for a patient of some severity.

    The hazard is proportional, :math:`p = 0.5^{\exp(0.7\,s)}`: for standard normal severities, most
    probabilities lie between 0.2 and 0.8, as the paper describes its cancer task.

    Parameters
    ----------
    severity : array-like of shape (n,)
        How far the disease has gone, in standard deviations.

    Returns
    -------
    ndarray of shape (n,)
        The probabilities.
    """
    return MEDIAN_SURVIVAL ** np.exp(EFFECT * np.asarray(severity, float))


def simulate_follow_up(severity, censored=0.5, seed=0, horizon=HORIZON):
    """Draw survival times given severity, and end follow-up at random.

    Parameters
    ----------
    severity : array-like of shape (n,)
        Severities, in standard deviations.
    censored : float, default=0.5
        Expected share of patients whose outcome at the horizon censoring hides, in [0, 0.95]; half,
        as in TCGA's lung cohorts. Follow-up is exponential and independent of everything else.
    seed : int, default=0
        Seed of both times.
    horizon : float, default=60
        Months.

    Returns
    -------
    months, died, survival : ndarray of shape (n,)
        Follow-up in months, whether it ended with death, and the months that each patient would
        have been seen to live without censoring.
    """
    check_number(censored, "censored", 0, 0.95)
    severity = np.asarray(severity, float)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0]))
    hazard = -np.log(survival_probability(severity)) / horizon
    survival = rng.exponential(size=len(severity)) / hazard
    spare = rng.exponential(size=len(severity))  # censoring in units of its mean

    def hidden(rate):  # P(censored before death and horizon), in expectation over survival
        both = hazard + rate
        return np.mean(rate / both * -np.expm1(-both * horizon)) - censored

    if censored == 0:
        return survival, np.ones(len(severity)), survival
    followed = spare / brentq(hidden, 1e-9, 1e3)
    return np.minimum(survival, followed), (survival <= followed).astype(float), survival


def simulate_slides(patients=600, seed=0):
    r"""Draw a cohort of patients with slides.

    Parameters
    ----------
    patients : int, default=600
        Number of patients; each has one slide, and half of them a second one. Censoring hides the
        outcome of half of them.
    seed : int, default=0
        Seed of everything.

    Returns
    -------
    probnb_book.data.survival.Cohort
        One row a slide. Tiles are standard normal; those that show the tumour are moved by 3 along
        one direction, which tells them from the others, and by the severity along another. Stage
        is severity seen with an error as large as half its spread, cut into four; one patient in
        fifty has none.

    Notes
    -----
    The truth is the probability given the patient's severity, which a slide shows up to `NOISE`.
    """
    check_integer(patients, "patients", 10)
    people, slides = np.random.SeedSequence([seed, 1]).spawn(2)
    rng = np.random.default_rng(people)
    severity = rng.standard_normal(patients)
    months, died, _ = simulate_follow_up(severity, seed=seed)
    seen = severity + 0.5 * rng.standard_normal(patients)
    stage = np.array(["I", "II", "III", "IV"], "U7")[np.digitize(seen, (-0.3, 0.5, 1.2))]
    stage[rng.random(patients) < 0.02] = "unknown"
    age = rng.normal(66 + 2 * severity, 9).round()
    owner = np.repeat(np.arange(patients), 1 + (rng.random(patients) < 0.5))
    sites = rng.integers(max(patients // 15, 5), size=patients)
    covariates = pd.DataFrame({"stage": stage, "age": age, "sex": "unknown"})
    given = f"{patients} patients, {FEATURES} features, {TILES} tiles, {INFORMATIVE:g} informative"
    given += f", noise {NOISE:g}, censored 0.5, seed {seed}"
    report = {"patients": patients, "slides": len(owner), "deaths": int(died.sum())}
    report["without_stage"] = int((stage == "unknown").sum())
    bags, names = _draw_bags(severity[owner], slides), owner + PEOPLE * seed  # in one simulation
    people = bags, months[owner], died[owner], names, sites[owner], f"simulated slides 1: {given}"
    covariates = covariates.iloc[owner].reset_index(drop=True)
    return Cohort(*people, covariates, survival_probability(severity)[owner], report)


def _draw_bags(severity, sequence):
    """Tiles of one slide for each severity."""
    rng = np.random.default_rng(sequence)
    lengths = np.clip(np.rint(TILES * np.exp(0.7 * rng.standard_normal(len(severity)))), 1, 20_000)
    lengths = lengths.astype(int)
    frame, _ = np.linalg.qr(rng.standard_normal((FEATURES, 2)))
    values = rng.standard_normal((lengths.sum(), FEATURES)).astype(np.float32)
    owner = np.repeat(np.arange(len(severity)), lengths)
    tumour = rng.random(len(owner)) < INFORMATIVE
    tumour[np.cumsum(lengths) - lengths] = True  # at least one; the order of tiles means nothing
    shown = severity[owner] + NOISE * rng.standard_normal(len(owner))
    shift = 3 * frame[:, 0] + shown[:, None] * frame[:, 1]
    along = values - values @ frame[:, 1:].astype(np.float32) * frame[:, 1].astype(np.float32)
    values = np.where(tumour[:, None], along + shift, values)
    return Bags(values.astype(np.float32), lengths)
