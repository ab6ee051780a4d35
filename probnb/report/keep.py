"""A map to take away: fitted to one column of a table, kept as JSON, applied to new tables.

With it another base rate: probabilities that were right where outcome 1 had one share, for another.
What an outcome looks like is taken to be the same in both; only how often it occurs differs (label
shift): after under-sampling or class weights, in another season, for another clinic.
"""

import contextlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import ks_2samp

from ..calibrators import CALIBRATORS, from_dict, to_dict
from ..metrics.registry import CLIP
from ..metrics.resampling import draw_weights
from ..metrics.sample import effective_rows
from ..paths import composed, find_path
from ..settings import check_engine
from ..tables import Rows, read_table
from ..validation import check_choice, check_integer, check_number, check_probabilities
from .gain_parts import log_odds
from .judge import FIT_ROWS, USUAL, calibration_gains, calibration_table
from .tell import choose_map

ENOUGH = 500
"""Independent rows, or clusters, from which on a map is chosen: of 300, what looks best of five
harms as often as it helps. A tenth of it for one that is named; a tenth again of either outcome."""

REPLICATES = 200
"""Resamples behind a map's part of the interval of an estimated rate."""

CHANCE = 1e-6
"""A column of log-odds is refused where fewer such files would look like probabilities."""

SURE = logit(1 - CLIP)
"""Log-odds beyond these were not told apart where the map was fitted, to probabilities."""

LEAST = 1e-12
"""A rate below this is 0."""

FEWEST = 50
"""Rows from which a rate is estimated at least."""


@dataclass(frozen=True, eq=False)
class KeptMap:
    """From the predictions of one column to calibrated probabilities; made by `fit_map`.

    Attributes
    ----------
    column : str
        The column that it was fitted to.
    scale : {"probability", "logit"}
        What that column holds.
    calibrator : estimator or None
        A fitted one of `probnb.calibrators.CALIBRATORS`; None for predictions as they are.
    rates : tuple of float or None
        The base rate of the rows that it was fitted to, as the map has it, and the one to predict
        for.
    fitted : dict
        What it was fitted on: anything that JSON can hold, with the largest prediction, ``high``,
        and how many were in [0, 1], ``inside``, or above 0, ``positive``.
    """

    column: str
    scale: str
    calibrator: object = None
    rates: tuple | None = None
    fitted: dict = field(default_factory=dict)

    def __post_init__(self):
        check_choice(self.scale, ("probability", "logit"), "scale")

    def predict(self, x):
        """Return the calibrated probabilities of predictions, on the scale of the column."""
        logits = self.scale == "logit"
        p = expit(x) if logits else np.clip(x, 0, 1)
        if self.calibrator is not None:
            s = np.clip(x, -SURE, SURE) if logits else log_odds(p)
            p = self.calibrator.predict_proba(s)[:, 1]
        return at_rate(p, *self.rates) if self.rates else p


def fit_map(table, name=None, rate=None, new=None, seed=0):
    """Fit a map to the one column of a table.

    Parameters
    ----------
    table : PredictionTable or probnb.scale.DataSet
        Rows that the predictions have not seen; of a data set its sample.
    name : str, optional
        One of `probnb.calibrators.CALIBRATORS`; by default the one that is told to gain on rows
        that it has not seen, as `probnb.report.tell.advise` has it.
    rate : float, optional
        Base rate, in (0, 1), to predict for.
    new : probnb.tables.Rows, optional
        Rows without outcomes, from whose predictions to estimate that rate.
    seed : int, default=0
        Seed of the folds and resamples.

    Returns
    -------
    KeptMap or None
        None where no map is told to gain and no other rate is asked for.
    DataFrame
        The gains, from `calibration_gains`.
    str
        Why.

    Raises
    ------
    ValueError
        If there are several columns, or too few rows.
    """
    check_integer(seed, "seed", minimum=0)
    whole, table = table, table.sample
    if len(table.predictions.columns) > 1:
        names = ", ".join(table.predictions)
        raise ValueError(f"prediction must name one column; those of predictions are {names}.")
    ((column, p),) = table.predictions.items()
    _check_enough(table, name, "" if table.size == whole.size else ", in a sample of its rows")
    if calibration_table(table).loc[column, "order"] == "inverted":
        raise ValueError(f"column {column!r} must not be inverted; is a label swapped?")
    gains = calibration_gains(table, USUAL if name is None else (name,), seed=seed)
    if gains.empty:
        raise ValueError("clusters must leave both outcomes in every fit; these do not.")
    gains = gains.loc[column]
    chosen, why = (name, "as named") if name else choose_map(gains)
    s = log_odds(p)
    x = s if column in table.logits else p.to_numpy()
    fitted = {"rows": table.size, "share": float(table.share), "high": x.max()}
    fitted |= {"inside": np.mean((x >= 0) & (x <= 1)), "positive": np.mean(x >= 0)}
    fitted["notes"] = [getattr(note, "public", note) for note in table.notes]
    if chosen:
        fitted["gain"] = gains.loc[chosen].to_dict()
    kept = KeptMap(column, "logit" if column in table.logits else "probability", fitted=fitted)

    def fit(weights):
        """Return the map with these weights, and its base rate."""
        made = CALIBRATORS[chosen]().fit(s, table.y, sample_weight=weights) if chosen else None
        again = replace(kept, calibrator=made)
        return again, float(np.average(again.predict(x), weights=weights))

    kept, old = fit(table.weight)
    if new is not None:
        rng = np.random.default_rng(seed)
        drawn = rng.permutation(column_of(kept, new))[:FIT_ROWS]
        again = ((m.predict(drawn), share) for m, share in _again(table, fit, rng))
        rate, low, high = rate_with_interval(kept.predict(drawn), old, again)
        kept.fitted["estimate"] = {"rows": len(drawn), "low": low, "high": high}
        kept.fitted["alike"] = _alike(x, table, drawn, rate, rng)
    if rate is not None:
        kept = replace(kept, rates=(old, check_number(rate, "rate", 0, 1, exclusive=True)))
    return kept if chosen or kept.rates else None, gains, why


def _again(table, fit, rng):
    """Fit again to resampled rows, or clusters."""
    codes = None if table.cluster is None else pd.factorize(table.cluster)[0]
    for _ in range(REPLICATES):
        weights = draw_weights(rng, 1, table.size, codes)[0]
        weights = weights if table.weight is None else weights * table.weight
        if np.ptp(table.y[weights > 0]) > 0:
            yield fit(weights)


def _alike(x, table, new, rate, rng):
    """Kolmogorov and Smirnov's p-value that predictions are those of such rows at another rate."""
    weights = np.where(table.y == 1, rate / table.share, (1 - rate) / (1 - table.share))
    weights = weights if table.weight is None else weights * table.weight
    chosen = rng.random(len(x)) < weights / weights.max()  # a sample at that rate
    return float(ks_2samp(x[chosen], new, method="asymp").pvalue)


def _check_enough(table, name, where):
    if missed := [note for note in table.notes if note.startswith("No row is of part")]:
        raise ValueError(f"part must be one of the file's: {missed[0]}")
    least = ENOUGH if name is None else ENOUGH // 10
    units = table.units
    if table.cluster is None and table.weight is not None:
        units = int(effective_rows(table.weight)[0])
    rarer = int(min(table.y.sum(), table.size - table.y.sum()))
    if units < least or rarer < least // 10:
        what = "to choose a map, none being safer with fewer" if name is None else "to fit a map"
        raise ValueError(
            f"validation must have at least {least} independent {table.kind}, {least // 10} of "
            f"either outcome, {what}; it has {units:,}, {rarer:,} of the rarer outcome{where}."
        )


def read_rate(text):
    """Return a base rate that a user gives: a number, or the rows of a file to estimate it from."""
    if text is not None and Path(text).is_file():
        return None, Rows(read_table(text))
    return text if text is None else as_rate(text, "a file of predictions to tell it"), None


def save_map(path, kept):
    """Write a map as JSON, whole or not at all."""
    from ..store import replace_file  # here, since it takes torch

    content = vars(kept) | {"calibrator": kept.calibrator and to_dict(kept.calibrator)}
    text = json.dumps(content, indent=1, allow_nan=False, default=float)
    refuse_other_map(path, kept.column)
    replace_file(path, lambda file: file.write_text(f"{text}\n"))


def refuse_other_map(path, column=None):
    """Raise where a map would replace one of another column, or a file that is none."""
    if Path(path).is_file() and (held := load_map(path).column) != (column or held):
        raise ValueError(
            f"map must be a new file or one of column {column!r}; {path} is of column {held!r}. "
            "Remove it if it is no longer wanted, or name another."
        )


def load_map(path):
    """Read a map that `save_map` wrote; what is none is refused."""
    path = find_path(path, "map")
    try:
        held = json.loads(path.read_text(), parse_constant=int)  # which no infinity is
        held["calibrator"] = held["calibrator"] and from_dict(held["calibrator"])
        kept = KeptMap(**held)
        {kept.fitted[name] + 0 for name in ("high", "inside", "positive")}
        check_probabilities(kept.predict(np.linspace(kept.scale == "logit" and -9, 1, 99)), "it")
    except Exception as error:  # whatever JSON may hold
        why = f"{path}: {type(error).__name__}, {str(error).rstrip('.')}"
        raise ValueError(f"map must be a file that calibrate wrote; {why}.") from None
    return kept


def apply_map(kept, path, engine=None, memory="2GB"):
    """Calibrate the rows of a file, in order.

    Parameters
    ----------
    kept : KeptMap
        From `load_map`.
    path : path-like
        As for `probnb.tables.read_table`; with an engine, for `probnb.scale.open_rows`.
    engine, memory
        As in `probnb.report.read_predictions`.

    Yields
    ------
    DataFrame
        So many rows at a time, as they are, with the column ``NAME_calibrated`` last; ``attrs``
        are those of `probnb.tables.read_table`.

    Raises
    ------
    ValueError
        If the file lacks the column, or this holds another scale, before anything is given.
    """
    check_engine(engine, memory)
    if engine is None:
        rows = Rows(read_table(find_path(path, "predictions")))
    else:
        from ..scale import open_rows  # here, since engines are an extra

        rows = open_rows(path, engine, memory, lambda names: _check_column(kept, names))
    x, new = column_of(kept, rows), f"{kept.column}_calibrated"
    if new in rows.names:
        raise ValueError(f"{path} must not have a column {new!r}; it has one already.")
    for frame, part in rows.beside(x):
        frame = frame.assign(**{new: kept.predict(part)})
        frame.attrs = {"decimal": rows.decimal, "notes": rows.notes}
        yield frame


def _check_column(kept, names):
    if (name := composed(kept.column)) not in names:
        there = ", ".join(names[:12])
        raise ValueError(f"predictions must have the map's column, {name!r}; the file has {there}.")
    return name


def column_of(kept, rows):
    """Return the map's column of other rows, if they have it on its scale."""
    name, held = _check_column(kept, rows.names), kept.fitted
    x, found = rows.column(name), rows.look(name)
    inside, positive = (held[k] ** rows.size < CHANCE for k in ("inside", "positive"))
    if kept.scale == "probability" and found.outside:
        value, place = rows.first(name, "outside")
        wrong = f"{found.outside:,} values are outside [0, 1], the first {value} in {place}"
    elif kept.scale == "logit" and not found.moved and inside:
        wrong = "all lie in [0, 1], as probabilities do"
    elif kept.scale == "logit" and found.low >= 0 and positive and found.high > 2 * held["high"]:
        wrong = f"all lie from {found.low:g} to {found.high:g}, as percentages do"
    else:
        return x
    kind = "probabilities in [0, 1]" if kept.scale == "probability" else "log-odds"
    raise ValueError(f"column {name!r} must hold {kind}, as where the map was fitted; {wrong}.")


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
