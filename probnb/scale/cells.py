"""One column of predictions: what depends on their order, without an order by.

Predictions are counted in 65,536 cells. Where a bin ends, where the largest gap of the
Kolmogorov-Smirnov error may lie, and, for the AUC, wherever a cell holds both outcomes, its rows
are sorted in memory, so many at a time as it holds: the numbers are those of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ..metrics.binning import BINS
from ..metrics.sample import Sample, bin_cuts
from .engine import number, tree

CELLS = 1 << 16
TINY = 1e-300  # predictions less apart are not told apart by cells
RUNS = 16
"""Runs of cells that one question is about at most; more cost more than the rows between."""


@dataclass(frozen=True, eq=False)
class Column:
    """Predictions in order, equal to the bins' edges and finely between; made by `count_column`.

    Attributes
    ----------
    atoms : DataFrame
        Cells and single values in increasing order, none cut by a bin's edge: ``lo``, ``hi``,
        ``rows``, and weighted sums: ``mass``, ``ones``, ``sp`` (predictions), ``spp`` (their
        squares), ``spy`` (times outcomes), ``ww`` (squared weights), ``spread`` (variance).
    ks, auc : float
        The Kolmogorov-Smirnov error, exact, and the AUC.
    auc_error : float
        What the AUC is off by at most: 0 where it was asked for exactly.
    """

    atoms: pd.DataFrame
    ks: float
    auc: float
    auc_error: float

    def binned(self, bins):
        """Return the bins' inner edges, and a dict of the atoms' sums in each bin that has rows."""
        mass = self.atoms["mass"].to_numpy()
        up_to = np.cumsum(mass)
        cuts = np.unique(bin_cuts((2 * up_to - mass)[None], up_to[-1:], bins))
        starts = np.append(0, cuts[(cuts > 0) & (cuts < len(mass))])
        sums = {c: np.add.reduceat(self.atoms[c].to_numpy(), starts) for c in self.atoms}
        return self.atoms["lo"].to_numpy()[starts[1:]], sums


def count_column(engine, rows, low, high, bins=(BINS,), auc=True, name=""):
    """Count one column's predictions and find KS and AUC.

    Parameters
    ----------
    engine : probnb.scale.engine.Engine
        What runs the expressions.
    rows : ibis.Table
        Columns ``p`` and ``y`` and, where rows have weights, ``w``.
    low, high : float
        Least and largest prediction.
    bins : tuple of int
        Numbers of quantile bins whose edges are to be exact.
    auc : bool, default=True
        Whether the AUC is to be exact, which counts all distinct predictions.
    name : str
        The column, for the progress bar.

    Returns
    -------
    Column
        The counts.
    """
    atoms = _count_cells(engine, rows, low, high)
    while len(big := atoms[(atoms["rows"] > engine.chunk) & (atoms["hi"] - atoms["lo"] > TINY)]):
        finer = [_count_cells(engine, rows, lo, hi) for lo, hi in zip(big["lo"], big["hi"])]
        atoms = pd.concat([atoms.drop(big.index), *finer], ignore_index=True)
    atoms = atoms.sort_values("lo", ignore_index=True)
    lo, hi, mass, ones, sp, count = (
        atoms[c].to_numpy() for c in ("lo", "hi", "mass", "ones", "sp", "rows")
    )
    zeros, up_to, gaps = mass - ones, np.cumsum(mass), np.cumsum(ones - sp)
    total, before = up_to[-1], {"zeros": np.cumsum(zeros) - zeros, "gap": gaps - (ones - sp)}
    targets = np.concatenate([2 * total * np.arange(1, b) / b - 1e-11 * total for b in bins])
    places = np.searchsorted(np.sort(targets), [2 * (up_to - mass), 2 * up_to])
    several, cut, ks = lo < hi, places[0] != places[1], np.abs(gaps).max()
    reach = np.maximum(before["gap"] + ones * (1 - lo), zeros * hi - before["gap"])
    both = (ones > 0) & (zeros > 0)
    deciding = several & (cut | (reach > ks) | (both & auc))
    pairs, finest, refined = 0.0, [], np.zeros(len(atoms), bool)
    parts = np.cumsum(deciding * count) // engine.chunk
    own = [rows.y.cast("int8").name("y"), rows.p, *([rows.w] if "w" in rows.columns else [])]
    shown = {"desc": f"{name}: distinct values", "delay": 3, "leave": False}
    for part in tqdm(np.unique(parts[deciding]), **shown):
        starts, ends = _runs(deciding & (parts == part), count)
        for start, end in zip(starts, ends):
            refined[start:end] = True
        edges = np.ravel([lo[starts], np.append(lo, 2.0)[ends]], order="F")
        inside = tree(rows.p, edges, [k % 2 for k in range(len(edges) + 1)]) == 1
        found = engine.ask(rows.filter(inside).select(own))
        if len(near := np.flatnonzero(cut & refined & (parts == part))):
            few = [found[found["p"].between(lo[c], hi[c])] for c in near]
            finest.append(_by_value(pd.concat(few).astype(float)))
        held = [found.pop(c).to_numpy() for c in [*found]]
        ranked = Sample(*held).ranked
        p, m, k = ranked.values, ranked.mass[0], ranked.ones[0]
        del held, found, ranked  # a chunk is as large as memory allows
        firsts = np.append(np.searchsorted(p, lo), len(p))
        cell = np.repeat(np.arange(len(lo)), np.diff(firsts))
        ks = max(ks, np.abs(_up_to(k - m * p, cell, firsts, before["gap"])).max())
        pairs += k @ (2 * _up_to(m - k, cell, firsts, before["zeros"]) - (m - k))
    rest = ~refined
    pairs += ones[rest] @ (2 * before["zeros"] + zeros)[rest]
    scale = 2 * ones.sum() * zeros.sum()
    whole = atoms[~(refined & cut)]
    atoms = pd.concat([whole, *finest]).sort_values("lo", ignore_index=True)
    unsure = (rest & several).astype(float) * ones @ zeros
    return Column(atoms, ks / total, pairs / scale, unsure / scale)


def _count_cells(engine, rows, low, high):
    """Return the sums of equal cells from the least to the largest prediction."""
    scale = CELLS / (high - low) if high - low > TINY else 0.0
    part = rows.filter(rows.p.between(number(low), number(high)))
    cell = ((part.p - number(low)) * number(scale)).floor().cast("int64")
    p, y, n = part.p, part.y, part.count()
    ends = {"lo": p.min(), "hi": p.max(), "rows": n}
    if "w" in part.columns:
        w = part.w
        terms = {"mass": w, "ones": w * y, "sp": w * p, "spp": w * p * p, "spy": w * p * y,
                 "ww": w * w, "spread": w * w * p * (1 - p)}  # fmt: skip
    else:
        terms = {"ones": y, "sp": p, "spp": p * p, "spy": p * y}
    sums = {name: term.sum() for name, term in terms.items()} | ends
    found = engine.ask(part.group_by(cell=cell).agg(**sums)).drop(columns="cell")
    if "w" not in part.columns:
        n = found["rows"].astype(float)
        found = found.assign(mass=n, ww=n, spread=found["sp"] - found["spp"])
    return found


def _runs(chosen, rows):
    """Return where runs of chosen cells start and end; near ones are joined if there are many."""
    turns = np.flatnonzero(np.diff(np.pad(chosen.astype(int), 1)))
    starts, ends = turns[::2], turns[1::2]
    if len(starts) > RUNS:
        up_to = np.append(0, np.cumsum(rows))
        wide = np.sort(np.argsort(up_to[starts[1:]] - up_to[ends[:-1]])[1 - RUNS :])
        starts, ends = starts[np.append(0, wide + 1)], ends[np.append(wide, -1)]
    return starts, ends


def _up_to(terms, cell, firsts, before):
    """Return sums over all rows up to and at each value, from those within the values' cells."""
    sums = np.append(0, np.cumsum(terms))
    return (before - sums[firsts[:-1]])[cell] + sums[1:]


def _by_value(rows):
    """Return the sums of `_count_cells` for each distinct prediction of a few rows."""
    w, p, y = rows.get("w", 1.0), rows["p"], rows["y"]
    terms = {"mass": w, "ones": w * y, "sp": w * p, "spp": w * p * p, "spy": w * p * y, "ww": w * w,
             "spread": w * w * p * (1 - p), "rows": 1}  # fmt: skip
    sums = rows.assign(**terms).groupby("p")[[*terms]].sum()
    return sums.assign(lo=sums.index, hi=sums.index)
