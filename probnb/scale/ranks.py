"""One column of predictions in order, seen once: what depends on their ranks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from .engine import BLOCKS, number

CELLS = 1 << 16
"""Cells of equal width, for the diagrams, and for a quick AUC."""

PIECES = 100
"""Resamples are of strips of predictions, in each of which is a hundredth of the ones, or less, and
of the zeros."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """What depends on the order of one column's predictions; made by `count_ranks`.

    Attributes
    ----------
    atoms : DataFrame
        Weighted sums in cells of equal width, in order: ``mass``, ``ones``, ``sp`` (predictions).
    bins : dict of int to dict of str to ndarray
        By number of bins, for those that have rows, in order: their least prediction ``low``,
        ``rows``, and weighted sums: those of `atoms`, ``spp`` (squared predictions), ``spy``
        (times outcomes), ``ww`` (squared weights), ``spread`` (variance).
    strips : DataFrame
        Sums as in `atoms`, by ``block`` and ``strip``.
    ks, auc : float
        The Kolmogorov-Smirnov error and the AUC.
    auc_error : float
        What the AUC is off by at most: 0 where it was asked for exactly.
    """

    atoms: pd.DataFrame
    bins: dict
    strips: pd.DataFrame
    ks: float
    auc: float
    auc_error: float


def count_ranks(data, name):
    """Go through one column's predictions in order, block by block.

    Parameters
    ----------
    data : probnb.scale.DataSet
        Its ``exact_auc`` says whether each prediction is told from the next, or only `CELLS` of
        equal width, its ``ties`` whether rows are many for each distinct prediction, so that the
        engine had better count.
    name : str
        The column.

    Returns
    -------
    Ranks
        The counts.
    """
    rows, (low, high), exact = data.rows_of(name), data.ends[name], data.exact_auc
    total, ones, bins = data.total, data.ones, data.bins
    p, y, w = rows.p, rows.y, rows.w if "w" in rows.columns else 1.0
    scale, zeros = CELLS / max(high - low, 1e-300), total - ones
    terms = {"rows": number(1), "ones": w * y}
    terms |= {"mass": w, "ww": w * w} if "w" in rows.columns else {}
    if not exact:
        terms |= {"sp": w * p, "spp": w * p * p, "spy": w * p * y, "spread": w * w * p * (1 - p)}
    cell = p if exact else ((p - number(low)) * number(scale)).floor()
    cells = rows.select("p", "block", cell=cell, **terms)
    if data.ties[name] or not exact:
        sums = {name: cells[name].sum() for name in terms}
        sums |= {"low": cells.p.min(), "high": cells.p.max()}
        cells = cells.group_by("cell", "block").agg(**sums)
    asked = cells.order_by("cell")
    targets = {b: 2 * total * np.arange(1, b) / b - 1e-11 * total for b in bins}
    atoms, parts, strips = [], {b: [] for b in bins}, np.zeros((3, BLOCKS * 2 * PIECES))
    below = dict.fromkeys(("mass", "zeros", "ones", "gap"), 0.0)
    ks = pairs = unsure = 0.0
    shown = {"desc": f"{name}: predictions in order", "delay": 3, "leave": False}
    for held in tqdm(_uncut(data.engine.batches(asked)), **shown):
        q, mass = held["cell"], held.setdefault("mass", held["rows"])
        ww = held.setdefault("ww", held["rows"])
        if exact:
            held |= {"sp": mass * q, "spp": mass * q * q, "spy": held["ones"] * q, "low": q}
            held |= {"spread": ww * q * (1 - q), "high": q}
        each, value = _runs(held, held["cell"])
        each |= {"zeros": each["mass"] - each["ones"], "gap": each["ones"] - each["sp"]}
        up_to = {c: below[c] + np.cumsum(each[c]) for c in below}
        middle = {c: up_to[c] - each[c] / 2 for c in below}
        ks = max(ks, np.abs(up_to["gap"]).max())
        pairs += each["ones"] @ middle["zeros"]
        unsure += each["ones"] @ np.where(each["low"] < each["high"], each["zeros"], 0) / 2
        strip = _share(middle["zeros"], zeros) + _share(middle["ones"], ones)
        place = held["block"].astype(int) * 2 * PIECES + strip[value]
        strips += [np.bincount(place, held[c], strips.shape[1]) for c in ("mass", "ones", "sp")]
        atoms.append(_runs(each, np.floor((each["low"] - low) * scale))[0])
        for b, cuts in targets.items():
            index = np.searchsorted(cuts, 2 * middle["mass"], side="right")
            parts[b].append(_runs(each | {"bin": index}, index)[0])
        below = {c: sums[-1] for c, sums in up_to.items()}
    shape = {"block": BLOCKS, "strip": 2 * PIECES}
    places = pd.MultiIndex.from_product(map(range, shape.values()), names=[*shape])
    strips = pd.DataFrame(strips.T, places, ["mass", "ones", "sp"])
    return Ranks(
        atoms=pd.DataFrame(_joined(atoms)),
        bins={b: _runs(joined := _joined(held), joined["bin"])[0] for b, held in parts.items()},
        strips=strips[strips["mass"] > 0],
        ks=ks / total,
        auc=pairs / (ones * zeros),
        auc_error=unsure / (ones * zeros),
    )


def _uncut(batches):
    """Yield batches as arrays by name so that no cell begins in one and ends in the next."""
    rest = {}
    for batch in batches:
        held = {
            c: np.append(rest.get(c, []), x.to_numpy(zero_copy_only=False))
            for c, x in zip(batch.schema.names, batch.columns)
        }
        cut = np.searchsorted(held["cell"], held["cell"][-1])
        rest = {c: x[cut:] for c, x in held.items()}
        if cut:
            yield {c: x[:cut] for c, x in held.items()}
    yield rest


def _runs(sums, key):
    """Sum up runs of the same key, and number them for each row."""
    new = np.append(True, key[1:] != key[:-1])
    starts, how = np.flatnonzero(new), {"high": np.maximum, "block": np.minimum}
    how |= dict.fromkeys(("low", "cell", "bin"), np.minimum)
    return {c: how.get(c, np.add).reduceat(x, starts) for c, x in sums.items()}, np.cumsum(new) - 1


def _joined(tables):
    return {c: np.concatenate([held[c] for held in tables]) for c in tables[0]}


def _share(middle, total):
    """Which of equal pieces of a total middle ranks belong to."""
    return np.clip(middle / total * PIECES, 0, PIECES - 1).astype(int)
