"""Metrics and intervals of predictions of any size, as `probnb.metrics` has them in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import logit

from ..metrics.binning import BINS, ReliabilityBins, decomposed
from ..metrics.differences import clustered_mean
from ..metrics.registry import CLIP, METRICS, computable
from ..metrics.resampling import Bootstrap, draw_weights, weighted_sum
from ..metrics.sample import Ranked
from ..tables import one_outcome
from ..validation import check_choice, check_integer
from .engine import BLOCKS, FILE, ROW, Engine, hashed, number, write_parquet
from .ranks import count_ranks

KINDS = {"y": "outcome", "truth": "probability", "w": "weight", "group": "label"}
"""What the columns of roles must hold."""


@dataclass(eq=False)
class DataSet:
    """Columns of a table that an engine reads, checked when made.

    `probnb.metrics.evaluate` and `bootstrap` take it in place of rows, and so does
    `probnb.report.make_report`. Rows of weight 0 are left out.

    Parameters
    ----------
    engine : Engine
        From `open_rows`.
    names : list of str
        Columns of predictions.
    y : str, default="y"
        Column of outcomes, 0 or 1.
    p, group, cluster, weight : str, optional
        Columns of true probabilities, groups, clusters and weights.
    logits : tuple of str, default=()
        Which of `names` hold log-odds.
    exact_auc : bool, default=True
        Whether all distinct predictions are told apart, which is most of the work; if not, what
        depends on their order (AUC, KS, bins) is that of 65,536 cells of equal width, and
        ``column(name).auc_error`` says how far the AUC may be off.
    notes : tuple of str
        What was read and how.

    Raises
    ------
    ValueError
        If a column is missing, has several types, or a value is not what it must be.

    Notes
    -----
    Intervals resample 128 blocks of rows, drawn at random by a hash of the file and of the row's
    number in it, or of the cluster, with predictions in 200 strips; the values are exact.
    """

    engine: Engine
    names: list
    y: str = "y"
    p: str | None = None
    group: str | None = None
    cluster: str | None = None
    weight: str | None = None
    logits: tuple = ()
    exact_auc: bool = True
    notes: tuple = ()
    bins: tuple = (BINS,)
    _found: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        engine, table = self.engine, self.engine.table
        roles = {"y": self.y, "truth": self.p, "w": self.weight, "group": self.group}
        held = {r: engine.column(c, KINDS[r]) for r, c in roles.items() if c is not None}
        block = hashed(table) % BLOCKS
        if self.cluster is not None:
            held["cluster"] = engine.column(self.cluster, "label")
            block = (held["cluster"].cast("string").hash().cast("int64") % BLOCKS).abs()
        for k, name in enumerate(self.names):
            x, logit = engine.column(name), name in self.logits
            if not logit and engine.look(name).outside:
                value, place = engine.first(name, "outside")
                allowed = "a probability in [0, 1], or logits"
                raise ValueError(f"column {name!r} must hold {allowed}; {place} holds {value}.")
            held[f"p{k}"] = 1 / (1 + (-x).exp()) if logit else x.clip(0.0, 1.0)
        if self.weight is not None:
            power = -np.frexp(engine.look(self.weight).high)[1]  # a power of two changes no digit
            for part in (power // 2, power - power // 2):
                held["w"] = held["w"] * number(np.ldexp(1.0, part))
        rows = table.select(FILE, ROW, block=block, **held)
        if self.weight is not None:
            rows = rows.filter(rows.w > 0)
        if engine.text:  # converted once
            path = Path(engine.folder.name, f"{id(self)}.parquet")
            engine.write(rows, path)
            rows = engine.con.read_parquet(path)
        self.rows = rows
        self._count()

    def _count(self):
        """One look at all rows that are judged: how many, of what weight, between what ends."""
        rows, w = self.rows, self.rows.w if self.weight else 1.0
        asked = {"rows": rows.count(), "mass": (w + 0 * rows.y).sum(), "ones": (w * rows.y).sum()}
        asked |= {"groups": rows.group.nunique()} if self.group else {}
        for k in range(len(self.names)):
            p = rows[f"p{k}"]
            asked |= {f"low{k}": p.min(), f"high{k}": p.max(), f"n{k}": p.approx_nunique()}
        found = self.engine.ask(rows.aggregate(**asked)).iloc[0]
        self.size, self.total, self.ones = int(found["rows"]), found["mass"], found["ones"]
        self.share, self.groups = self.ones / self.total, int(found.get("groups", 0))
        if self.share in (0, 1):
            raise one_outcome(self.y, self.size, self.share)
        self.ends = {c: (found[f"low{k}"], found[f"high{k}"]) for k, c in enumerate(self.names)}
        self.ties = {c: found[f"n{k}"] * BLOCKS < self.size for k, c in enumerate(self.names)}

    def draw(self, count):
        """Return so many rows at random as a DataFrame, the same each time; all if they are fewer.

        Its columns are ``y``, ``p0``, ``p1``, ... and, where there are some, ``truth``, ``w``,
        ``group`` and ``cluster``; rows are in the order of the files.
        """
        rows, count = self.rows, check_integer(count, "count")
        if self.size > count:
            rows = rows.mutate(chance=hashed(rows, seed=1))
            likely = (count + 10 * np.sqrt(count) + 10) / self.size  # a few too many, not all
            rows = rows.filter(rows.chance < int(2**32 * min(1, likely)))
            rows = rows.order_by("chance", FILE, ROW).limit(count).drop("chance")
        rows = rows.order_by(FILE, ROW).drop(FILE, ROW, "block")
        return self.engine.ask(rows)

    predictions = property(lambda self: self.names, doc="Names of the columns of predictions.")

    @property
    def kind(self):
        """What intervals resample."""
        return f"blocks of {'rows' if self.cluster is None else 'clusters'}"

    def _once(self, key, ask):
        if key not in self._found:
            self._found[key] = ask()
        return self._found[key]

    def rows_of(self, name):
        """Return the rows of one column, which is then called p."""
        k = self.names.index(check_choice(name, self.names, "column"))
        own = {r: r for r in ("block", "y", "w", "truth") if r in self.rows.columns}
        return self.rows.select(p=f"p{k}", **own)

    @property
    def units(self):
        """How many blocks have rows."""
        return len(self.sums(self.names[0]))

    def sums(self, name):
        """Return sums of one column's terms by block."""
        rows = self.rows_of(name)
        asked = rows.group_by("block").agg(**_terms(rows)).order_by("block")
        return self._once(name, lambda: self.engine.ask(asked).set_index("block"))

    def column(self, name, bins=BINS):
        """Return what depends on one column's order, a `probnb.scale.ranks.Ranks`."""
        if check_integer(bins, "bins") not in self.bins:
            self.bins = (*self.bins, bins)
        return self._once((name, self.bins), lambda: count_ranks(self, name))

    def binned(self, name, bins=BINS):
        """Return the sums of each bin of one column by name, as `Ranks.bins` has them."""
        return self.column(name, bins).bins[bins]

    def reliability_bins(self, name, bins=BINS):
        """Return the bins of one column as `probnb.metrics.reliability_bins` does."""
        b = self.binned(name, bins)
        means, share = (b[c] / b["mass"] for c in ("sp", "ones")), b["mass"] / self.total
        rows = b["rows"].astype(int), share, b["mass"] ** 2 / b["ww"]
        return ReliabilityBins(np.concatenate([[0.0], b["low"][1:], [1.0]]), *means, *rows)

    def brier_decomposition(self, name, bins=BINS):
        """Return the parts of one column's Brier score, as `probnb.metrics.brier_decomposition`."""
        b = self.binned(name, bins)
        weight, q, outcome = b["mass"] / self.total, b["sp"] / b["mass"], b["ones"] / b["mass"]
        within = b["spp"] - b["sp"] * q, b["spy"] - b["ones"] * q
        within = (float(terms.sum() / self.total) for terms in within)
        return decomposed(weight, q, outcome, self.share, *within)

    def off(self, name):
        """Return bias and its error, ECE, and sums by bin, as `probnb.report.judge` asks."""
        blocks, b, n = self.sums(name), self.binned(name), self.total
        terms, mass = (blocks["sp"] - blocks["ones"]) / blocks["mass"], blocks["mass"]
        bias = clustered_mean(terms.to_numpy(), mass.to_numpy())[:2]
        ece = self.evaluate(name)["ece"]
        return bias, ece, b["ones"] - b["sp"], b["spread"], n, b["ww"].sum() / n

    def by_group(self, largest):
        """Return the weighted sums of the largest groups, by group and block."""
        kept = self.rows.group_by("group").agg(rows=ibis._.count())
        kept = kept.order_by([kept.rows.desc(), "group"]).limit(largest)
        kept = [*self.engine.ask(kept)["group"]]
        rows = self.rows.filter(self.rows.group.isin(kept))
        w = rows.w if self.weight else 1.0
        terms = {f"p{k}": rows[f"p{k}"] for k in range(len(self.names))}
        terms |= {"mass": 1.0 + 0 * rows.y, "ww": w + 0 * rows.y, "ones": rows.y}
        sums = {name: (w * term).sum() for name, term in terms.items()} | {"rows": rows.count()}
        found = self.engine.ask(rows.group_by(["group", "block"]).agg(**sums))
        found = found.set_index(["group", "block"])
        return {group: found.loc[group] for group in kept}

    def drawn(self, bins=BINS):
        """Return the arguments of `probnb.plots.reliability_grid`: cells in place of rows."""
        out = {}
        for name in self.names:
            a, table = self.column(name, bins).atoms, self.reliability_bins(name, bins)
            p, weights = np.clip(a["sp"] / a["mass"], 0, 1), [a["mass"] - a["ones"], a["ones"]]
            out[name] = {"y_true": np.repeat([0, 1], len(a)), "y_prob": np.append(p, p),
                         "weights": np.concatenate(weights), "table": table}  # fmt: skip
        return {"y_true": None, "predictions": out, "bins": bins, "corp": True}

    def evaluate(self, name):
        """Return the metrics of one column by name, as `probnb.metrics.evaluate` does.

        Those that an engine has a formula for: a metric added to `METRICS` needs one here or in
        `_terms`, and is left out until it has.
        """
        ranks, b, sums = self.column(name), self.binned(name), self.sums(name).sum()
        gaps = np.abs(b["ones"] - b["sp"])
        values = {"ece": gaps.sum() / self.total, "mce": (gaps / b["mass"]).max()}
        values |= {"ks": ranks.ks, "auc": ranks.auc}
        values |= {m: sums[m] / self.total for m in sums.index}
        return {m: float(values[m]) for m in computable(self.p is not None) if m in values}

    def bootstrap(self, names=None, replicates=1000, seed=0, metrics=None):
        """Return metrics and resamples of whole blocks, as `probnb.metrics.bootstrap` does.

        Parameters
        ----------
        names : sequence of str or str, optional
            Columns; by default all.
        replicates : int, default=1000
            Number of resamples.
        seed : int, default=0
            Seed of the resamples.
        metrics : sequence of str, optional
            Names of those that `evaluate` has; by default all.

        Returns
        -------
        probnb.metrics.Bootstrap
            Exact values, and resamples that are the same for all columns.
        """
        if isinstance(names, Mapping | pd.DataFrame):
            raise ValueError(f"predictions must be names of columns; got a {type(names).__name__}.")
        names = [names] if isinstance(names, str) else list(self.names if names is None else names)
        point = pd.DataFrame([self.evaluate(name) for name in names], names)
        for m in metrics or ():
            check_choice(m, point.columns, "metrics")
        point = point if metrics is None else point[[*metrics]]
        replicates = check_integer(replicates, "replicates", 2)
        check_integer(seed, "seed", minimum=0)
        drawn = draw_weights(np.random.default_rng(seed), replicates, self.units, None)
        values = np.empty((replicates, *point.shape))
        for i, name in enumerate(names):
            blocks, held = self.sums(name), self.column(name).strips
            tables = (held[c].unstack(fill_value=0) for c in ("mass", "ones", "sp"))
            mass, ones, sp = (drawn @ table.to_numpy() for table in tables)
            ranked = Ranked(np.arange(mass.shape[1]), mass, ones)
            vars(ranked)["gap_up_to"] = np.cumsum(ones - sp, axis=1)  # predictions as they are
            for j, m in enumerate(point):
                if METRICS[m].ranked:
                    values[:, i, j] = METRICS[m].ranked(ranked)
                else:
                    values[:, i, j] = weighted_sum(drawn, blocks[m].to_numpy()) / mass.sum(axis=1)
        return Bootstrap(point, values, self.units)


def write_calibrated(data, name, path, fitted):
    """Write all rows with one column's calibrated probabilities beside the others, as Parquet.

    Rows are as they are, in the order of the files and of the rows in them; what is text stays it.

    Parameters
    ----------
    data : DataSet
        The rows.
    name : str
        The column of predictions.
    path : path-like
        The file to write, whole or not at all.
    fitted : estimator
        One of `probnb.calibrators.CALIBRATORS`, fitted to log-odds of shape (n,), such as those of
        ``data.sample``.

    Returns
    -------
    str
        The new column's name, ``NAME_calibrated``.

    Raises
    ------
    ValueError
        If the column is unknown or ``NAME_calibrated`` there already, the calibrator was fitted to
        both columns of logits, or the file cannot be written (a full disk).
    """
    from ..store import replace_file  # here, since it takes torch

    engine, new = data.engine, f"{check_choice(name, data.names, 'column')}_calibrated"
    if new in engine.names:
        raise ValueError(f"{engine.name} must not have a column {new!r}; it has one already.")
    if fitted.n_features_in_ != 1:
        raise ValueError("fitted must be a map of log-odds; this one reads two logits.")

    def calibrated():
        for rows, x in engine.arrow_beside(engine.column(name)):
            s = x if name in data.logits else logit(np.clip(x, CLIP, 1 - CLIP))
            yield rows.append_column(new, pa.array(fitted.predict_proba(s)[:, 1]))

    def write(temporary):
        first = next(batches := calibrated())
        write_parquet(temporary, chain([first], batches), first.schema)

    with engine.explained():
        replace_file(path, write)
    return new


def _terms(rows):
    """What is summed over rows, by name."""
    p, y = rows.p, rows.y
    hit = ibis.ifelse(y == 1, p, 1 - p)
    hit = ibis.ifelse(hit < CLIP, number(CLIP), ibis.ifelse(hit > 1 - CLIP, number(1 - CLIP), hit))
    terms = {"mass": 1.0 + 0 * y, "ones": y, "sp": p, "brier": (p - y) * (p - y), "nll": -hit.ln()}
    if "truth" in rows.columns:
        q = rows.truth
        terms |= {"mse_p": (p - q) * (p - q), "kl_p": _entropy(q, p) + _entropy(1 - q, 1 - p)}
    w = rows.w if "w" in rows.columns else 1
    return {name: (w * term).sum() for name, term in terms.items()}


def _entropy(a, b):
    infinite = ibis.literal("inf").cast("float64")
    ratio = ibis.ifelse(b < 1e-290, a.ln() - b.ln(), (a / b).ln())  # a / b may overflow
    return ibis.ifelse(a == 0, 0.0, ibis.ifelse(b == 0, infinite, a * ratio))
