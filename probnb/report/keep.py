"""A map to take away: fitted to one column of a table, kept as JSON, applied to new tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import ks_2samp

from ..calibrators import CALIBRATORS, from_dict, logits_from_probabilities, to_dict
from ..metrics.resampling import draw_weights
from ..metrics.sample import effective_rows
from ..paths import check_output, find_path
from ..tables import Rows, read_table
from ..validation import check_choice, check_number
from .base_rate import as_rate, at_rate, estimate_rate, rate_interval
from .judge import FIT_ROWS, USUAL, calibration_gains, calibration_table
from .tell import choose_map

ENOUGH = 500
"""Independent rows, or clusters, from which on a map is chosen: of 300, what looks best of five
harms as often as it helps. A tenth of it for one that is named; a tenth again of either outcome."""

REPLICATES = 200
"""Resamples behind the interval of an estimated rate."""

CHANCE = 1e-6
"""A column of log-odds is refused where fewer such files would look like probabilities."""


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
        What it was fitted on: anything that JSON can hold, with the range of the predictions,
        ``low`` and ``high``, and how many were in [0, 1], ``inside``, or above 0, ``positive``.
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
        logit = self.scale == "logit"
        p = expit(x) if logit else np.clip(x, 0, 1)
        if self.calibrator is not None:
            s = x if logit else np.diff(logits_from_probabilities(p), axis=1)[:, 0]
            p = self.calibrator.predict_proba(s)[:, 1]
        return at_rate(p, *self.rates) if self.rates else p

    def expression(self, x):
        """Return the same of an engine's column."""
        from ..scale.maps import expression  # here, since engines are an extra

        logit = self.scale == "logit"
        p = 1 / (1 + (-x).exp()) if logit else x.clip(0.0, 1.0)
        p = p if self.calibrator is None else expression(self.calibrator, x, logit)
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
    table = table.sample
    if len(table.predictions.columns) > 1:
        names = ", ".join(table.predictions)
        raise ValueError(f"prediction must name one column; those of predictions are {names}.")
    ((column, p),) = table.predictions.items()
    _check_enough(table, name)
    if calibration_table(table).loc[column, "order"] == "inverted":
        raise ValueError(f"column {column!r} must not be inverted; is a label swapped?")
    gains = calibration_gains(table, USUAL if name is None else (name,), seed=seed)
    if gains.empty:
        raise ValueError("clusters must leave both outcomes in every fit; these do not.")
    gains = gains.loc[column]
    chosen, why = (name, "as named") if name else choose_map(gains)
    s = np.diff(logits_from_probabilities(p), axis=1)[:, 0]
    x = s if column in table.logits else p.to_numpy()
    fitted = {"rows": table.size, "share": float(table.share), "low": x.min(), "high": x.max()}
    fitted |= {"inside": np.mean((x >= 0) & (x <= 1)), "positive": np.mean(x >= 0)}
    fitted["notes"] = table.notes
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
        if (count := len(drawn)) < ENOUGH // 10:
            raise ValueError(
                f"rate must be estimated from {ENOUGH // 10} rows at least; got {count}."
            )
        rate = estimate_rate(kept.predict(drawn), old)
        if not 0 < rate < 1:
            raise ValueError(f"rate must be in (0, 1); that of {count:,} new rows seems {rate:g}.")
        low, high = rate_interval((m.predict(drawn), r) for m, r in _again(table, fit, rng))
        kept.fitted["estimate"] = {"rows": count, "low": low, "high": high}
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


def _check_enough(table, name):
    least = ENOUGH if name is None else ENOUGH // 10
    units = table.units
    if table.cluster is None and table.weight is not None:
        units = int(effective_rows(table.weight)[0])
    rarer = int(min(table.y.sum(), table.size - table.y.sum()))
    if units < least or rarer < least // 10:
        what = "to choose a map, none being safer with fewer" if name is None else "to fit a map"
        raise ValueError(
            f"validation must have at least {least} independent {table.kind}, {least // 10} of "
            f"either outcome, {what}; it has {units:,}, {rarer:,} of the rarer outcome."
        )


def check_part(table):
    """Return the table, unless a column of parts names none to calibrate on."""
    if missed := [note for note in table.notes if note.startswith("No row is of part")]:
        raise ValueError(f"part must be one of the file's: {missed[0]}")
    return table


def read_rate(text):
    """Return a base rate that a user gives: a number, or the rows of a file to estimate it from."""
    if text is not None and Path(text).is_file():
        return None, Rows(read_table(text))
    return text and as_rate(text, "a file of predictions to estimate it from"), None


def save_map(path, kept):
    """Write a map as JSON, whole or not at all."""
    from ..store import replace_file  # here, since it takes torch

    held = None if kept.calibrator is None else to_dict(kept.calibrator)
    content = vars(kept) | {"calibrator": held}
    text = json.dumps(content, indent=1, allow_nan=False, default=float)
    replace_file(map_path(path), lambda file: file.write_text(f"{text}\n"))


def map_path(path):
    """Return where a map can be written."""
    check_choice(Path(path).suffix, (".json",), "map: the ending")
    return check_output(path, "map")


def load_map(path):
    """Read a map that `save_map` wrote; what is none is refused."""
    path = find_path(path, "map")
    check_choice(path.suffix, (".json",), "map: the ending")
    try:
        held = json.loads(path.read_text())
        if held["calibrator"] is not None:
            held["calibrator"] = from_dict(held["calibrator"])
        kept = KeptMap(**held)
        {kept.fitted[name] + 0 for name in ("low", "high", "inside", "positive")}
        kept.predict(np.array([0.5]))
    except Exception as error:  # whatever JSON may hold
        raise ValueError(f"map must be a file that calibrate wrote; {path}: {error!r}.") from None
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
        So many rows at a time, as they are, with the column ``NAME_calibrated`` last.

    Raises
    ------
    ValueError
        If the file lacks the column, or this holds another scale, before anything is given.
    """
    if engine is None:
        rows, new = Rows(read_table(find_path(path, "predictions"))), f"{kept.column}_calibrated"
        x = column_of(kept, rows)
        if new in rows.names:
            raise ValueError(f"{path} must not have a column {new!r}; it has one already.")
        yield rows.frame.assign(**{new: kept.predict(x)})
        return
    from ..scale.files import open_rows
    from ..scale.maps import beside

    rows = open_rows(path, engine, memory)
    made, names = beside(rows, kept.expression(column_of(kept, rows)), kept.column)
    for batch in rows.batches(made):
        yield batch.to_pandas().set_axis(names, axis=1)


def column_of(kept, rows):
    """Return the map's column of other rows, if they have it on its scale."""
    name, held = kept.column, kept.fitted
    if name not in rows.names:
        there = ", ".join(rows.names[:12])
        raise ValueError(f"predictions must have the map's column, {name!r}; the file has {there}.")
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
