"""A watch over a file of outcomes that grows; what was seen is kept, and must not change."""

import hashlib
import json
import re
from operator import index
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import SoftFileLock  # which leaves no file behind

from ..metrics import auc
from ..paths import check_output, find_path
from ..store import replace_file
from ..tables import MISSING, column, find_column, read_table
from .sequential import watch

__all__ = ["watch_file"]

TIMES = "at date datetime datum day month time timestamp ts when year zeit zeitpunkt"
"""Words that a column's name begins or ends with where its cells may say when."""

DATE = r"(?!\d?\d:).*(\d{4}|\d\D+\d+\D+\d)"
"""A cell with a year: times of day, and days and months without one, begin again."""

EVENTS = "case encounter file filename id ids image key path patient subject uuid"
"""Words in the name of a column whose rows may be of one event where it repeats."""

IDLE = ("weight", "cluster", "split")
"""Columns that the report uses and a watch does not."""


def watch_file(
    outcomes, prediction="probability", outcome="y", alpha=0.05, model=None, state=None, id=None
):
    """Look at a table of predictions with outcomes, and go on where the last look ended.

    Parameters
    ----------
    outcomes : path-like
        As `probnb.tables.read_table` takes it: a row for each prediction whose outcome is known,
        in the order in which they became known. New rows come at the end. A column of dates or
        times that says otherwise is named.
    prediction, outcome : str
        Columns of the probabilities that were given, and of what came true: 0 or 1.
    alpha : float, default=0.05
        Probability of a false alarm at any look; it stays what it was at the first.
    model : path-like, optional
        Folder of the model that gave them, which then must stay the same.
    state : path-like, optional
        Where to keep what was seen; by default beside the table, with the ending ``.watch.json``.
        One watch at a time has it.
    id : str, optional
        Column of the rows' names; by default ``id`` or ``path`` where there is one. A row whose
        name stood above is no new evidence and is left out.

    Returns
    -------
    now : probnb.watch.sequential.Watch
        After the last row, the same as if all rows had been seen at once.
    table : DataFrame
        Every row that counts, as `probnb.watch.sequential.watch` has it.
    text : str
        What to tell.

    Raises
    ------
    ValueError
        If the table cannot be read; if a row that was seen has changed or is gone, or `alpha` or
        the model is another.
    """
    path = find_path(outcomes, "outcomes")
    record = model and find_path(Path(model, "model.json"), "model")  # has sums of all other files
    settings = {"alpha": alpha, "model": record and _sum(record.read_bytes())}
    state = check_output(state or f"{path}.watch.json", "state")
    with SoftFileLock(f"{state}.lock", timeout=60):
        frame = read_table(path)
        told = frame.attrs["notes"]
        frame, notes = _bets(frame, id)
        y = column(frame, find_column(outcome, [*frame], "outcome"), "outcome")
        p = column(frame, find_column(prediction, [*frame], "prediction"), "probability")
        now, table = watch(y, p, alpha)
        seen = _seen(state, settings, y, p) if state.exists() else 0
        record = settings | {"rows": len(y), "seen": _sum([y, p]), "alarm": now.alarm}
        replace_file(state, lambda file: file.write_text(json.dumps(record, indent=1) + "\n"))
    return now, table, _tell(now, table, frame, len(y) - seen, [_expected(p), *told, *notes])


def _expected(p):
    """Say what probabilities score if they are right, which no outcome is needed for."""
    score, rank = expected_scores(p)
    told = "" if np.isnan(rank) else f", AUC {rank:.4f}"
    return f"If the probabilities are right, their Brier score is {score:.4f} on average{told}."


def expected_scores(p):
    """Return the Brier score and the AUC that true probabilities have on average.

    Parameters
    ----------
    p : ndarray of shape (n,)
        Probabilities.

    Returns
    -------
    brier, auc : float
        The former exactly; of the latter the expected number of pairs of a 1 and a 0 that are in
        order over that of all pairs, NaN where no pair can be.

    Examples
    --------
    >>> brier, auc = expected_scores(np.array([0.2, 0.5, 0.5]))
    >>> round(brier, 3), round(auc, 3)
    (0.22, 0.7)
    """
    own = float(p @ (1 - p))  # a row is no pair with itself
    pairs = p.sum() * (1 - p).sum()
    if not pairs - own > 1e-12 * pairs:  # but for rounding
        return own / len(p), np.nan
    y = np.repeat([1, 0], len(p))
    order = auc(y, np.tile(p, 2), np.concatenate([p, 1 - p]))
    return own / len(p), float((order * pairs - own / 2) / (pairs - own))


def _bets(frame, id):
    """Leave out rows whose name stood above; say so, and what contradicts the order of the rows."""
    usual = [c for role in ("id", "path") for c in frame if c.casefold() == role]
    names, notes = [find_column(id, [*frame], "id")] if id else usual[:1], []
    for name in names:
        labels = pd.Series(column(frame, name, "label"), frame.index).map(str)
        again = labels.str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True).duplicated()
        frame = frame[~again]
        if count := again.sum():
            left = f"{count:,} rows whose {name} stood above are no new evidence"
            notes.append(f"Column {name!r} repeats: {left}, and left out.")
    for name in (c for c in frame if frame[c].ndim == 1 and c not in names):
        words = [word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", name)]
        if {*EVENTS.split()} & {*words} and frame[name].duplicated().any():
            notes.append(f"Column {name!r} repeats: if its rows are one event, make it the id.")
        if {*TIMES.split()} & {*words[:1], *words[-1:]}:
            notes += _disorder(frame, name)
    idle = (f"Column {name!r} plays no role: a row is a bet." for name in IDLE if name in frame)
    return frame, [*notes, *idle]


def _disorder(frame, name):
    """Where a column of dates, or of large numbers such as seconds, goes back, if it does."""
    missing = frame[name].astype(str).str.strip().str.lower().isin(MISSING)
    values = frame[name][~missing]
    numbers = pd.to_numeric(values.astype(str), errors="coerce")
    parse, readings = {"errors": "coerce", "utc": True, "format": "mixed"}, []
    if numbers.gt(366).all():  # no hours, days or months, which begin again
        readings = [numbers]
    elif values.astype(str).str.match(DATE).all():
        readings = [pd.to_datetime(values, dayfirst=first, **parse) for first in (False, True)]
    readings = [times.to_numpy() for times in readings if times.notna().all()]
    falls = [np.flatnonzero(times[1:] < times[:-1]) for times in readings]
    fewest = min(falls, key=len, default=[])
    if not len(fewest):
        return []
    k = fewest[0]
    (above, earlier), (below, later) = values.iloc[k : k + 2].items()
    place = f"{frame.index.name} {below} ({str(later)!r}) stands below {above} ({str(earlier)!r})"
    return [f"Column {name!r} contradicts the order of the rows: {place}."]


def _tell(now, table, frame, fresh, notes):
    """Say whether the probabilities can be believed, and if not, what is wrong with them."""
    size = f"{np.exp(now.log_e):,.3g}" if now.log_e < 20 else f"10^{now.log_e / np.log(10):,.1f}"
    text = f"{now.rows:,} outcomes, {fresh:,} new: e = {size}; alarm at {1 / now.alpha:,.4g}.\n"
    text += "".join(f"{note}\n" for note in notes)
    if now.alarm is None:
        return text + "No alarm: so far the probabilities can be believed."
    log_e, a, b = table.loc[now.alarm]
    wrong = f"the outcomes look like those of {b:.2f} times the logit, plus {a:+.2f}"
    wrong = wrong if np.isfinite(log_e) else "what came true had been given probability 0"
    place = f"{frame.index.name} {frame.index[now.alarm - 1]} of {frame.attrs['name']}"
    rare = f"at most {now.alpha:.3g} of all watches would ever raise one"
    text += f"ALARM at outcome {now.alarm:,}, {place}: {wrong}. "
    return f"{text}If the probabilities were true, {rare}."


def _sum(data):
    """SHA-256 of bytes, or of the outcomes and probabilities of rows."""
    data = data if isinstance(data, bytes) else np.transpose(data).astype("<f8").tobytes()
    return hashlib.sha256(data).hexdigest()


def _seen(state, settings, y, p):
    """Return how many rows were seen before, if they and the settings are the same; else raise."""
    try:
        record = json.loads(state.read_text())
        rows, known = index(record["rows"]), record["seen"]
        before = {k: record[k] for k in settings}
    except (ValueError, KeyError, TypeError) as error:
        why = f"{state}: {type(error).__name__}, {error}"
        raise ValueError(f"state must be a file that a watch wrote; {why}.") from None
    wrong = [f"{k} must stay {before[k]}; got {v}" for k, v in settings.items() if before[k] != v]
    if len(y) < rows or _sum([y[:rows], p[:rows]]) != known:
        wrong += [f"outcomes must begin with the {rows:,} rows seen before, unchanged and in order"]
    if wrong:
        again = f"A watch that goes on keeps them; for a new one give another state than {state}."
        raise ValueError(f"{'; '.join(wrong)}. {again}")
    return rows
