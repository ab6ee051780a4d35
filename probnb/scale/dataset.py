"""Metrics and intervals of predictions of any size, as `probnb.metrics` has them in memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import ibis
import numpy as np
import pandas as pd

from ..metrics.binning import BINS, BrierDecomposition, ReliabilityBins
from ..metrics.registry import CLIP, METRICS, computable
from ..metrics.resampling import Bootstrap, draw_weights, weighted_sum
from ..metrics.sample import Ranked
from ..validation import check_choice, check_integer
from .cells import count_column
from .engine import BLOCKS, ROW, Engine, number, spread, tree

PIECES = 10
"""Resamples are of strips of predictions: so many in each of so many pieces of equal weight."""

PROBABILITY = -1e-6, 1 + 1e-6, "a probability in [0, 1], or logits"  # but for rounding
ALLOWED = {"y": (0, 1, "0 or 1"), "truth": (0, 1, "a probability in [0, 1]"),
           "w": (0, 1e300, "a finite weight of at least 0"), "group": (0, 0, "a name"),
           "block": (0, 0, "a name")}  # fmt: skip
NAMED = "group", "block"  # the block of a row without a cluster is null


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
        Whether the AUC compares all rows, which is most of the work; if not, it is that of 65,536
        cells, and ``column(name).auc_error`` says how far it may be off.
    notes : tuple of str
        What was read and how.

    Raises
    ------
    ValueError
        If a column is missing, has several types, or a value is not what it must be.

    Notes
    -----
    Intervals resample 128 blocks of rows (of hashed numbers of rows within their file, or of hashed
    clusters), not rows, with predictions in 100 strips; the values themselves are exact.
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
        table, names = self.engine.table, {f"p{k}": name for k, name in enumerate(self.names)}
        roles = {"y": self.y, "truth": self.p, "w": self.weight, "group": self.group} | names
        roles = {role: name for role, name in roles.items() if name is not None}
        used = [*roles.values(), *([] if self.cluster is None else [self.cluster])]
        for name in used:
            check_choice(name, [c for c in table.columns if c != ROW], "column")
        self.engine.check_types(used)
        block = (spread(table[ROW]) / (2**32 // BLOCKS)).floor().cast("int64")
        if self.cluster is not None:
            known = table[self.cluster].notnull()
            block = (table[self.cluster].cast("string").hash().cast("int64") % BLOCKS).abs()
            block = ibis.ifelse(known, block, ibis.null("int64"))
        held = {r: table[c] if r == "group" else table[c].cast("float64") for r, c in roles.items()}
        rows = table.select(block=block, **held)
        if self.weight is not None:
            rows = rows.filter((rows.w != 0).fill_null(True))
        self._check(rows, roles | ({"block": self.cluster} if self.cluster else {}))
        for role, name in names.items():
            x, (low, high) = rows[role], self._ranges[name]
            if name in self.logits:
                self._ranges[name], rows = (0.0, 1.0), rows.mutate(**{role: 1 / (1 + (-x).exp())})
            elif low < 0 or high > 1:
                self._ranges[name], rows = (0.0, 1.0), rows.mutate(**{role: x.clip(0.0, 1.0)})
        self.rows = rows

    def _check(self, rows, roles):
        """One look at all rows: counts, ranges, and what is missing or out of range."""
        allowed, wrong = dict(ALLOWED), {}
        for role, name in roles.items():
            finite = (-1e150, 1e150, "a finite number") if name in self.logits else PROBABILITY
            low, high, _ = allowed.setdefault(role, finite)
            if role in NAMED:
                wrong[role] = rows[role].isnull()
            else:  # some engines have NaN above all numbers
                wrong[role] = ~rows[role].between(low, high).fill_null(False) | rows[role].isnan()
        wrong["y"] |= (rows.y > 0) & (rows.y < 1)
        w = rows.w if self.weight else 1.0
        found = {"rows": rows.count(), "ones": rows.y.sum(),
                 "mass": (w + 0 * rows.y).sum(), "hits": (w * rows.y).sum()}  # fmt: skip
        if self.group:
            found["groups"] = rows.group.nunique()
        for role, test in wrong.items():
            ends = {} if role in NAMED else {f"low_{role}": rows[role].min(),
                                             f"high_{role}": rows[role].max()}  # fmt: skip
            found |= ends | {f"wrong_{role}": test.cast("int64").sum()}
        seen = self.engine.ask(rows.aggregate(**found)).iloc[0]
        self.size = int(seen["rows"])
        if not self.size:
            raise ValueError(f"{self.engine.name} must have rows of weight; it has none.")
        for role in [r for r in wrong if seen[f"wrong_{r}"]]:
            value = self.engine.ask(rows.filter(wrong[role]).select(role).limit(1)).iat[0, 0]
            raise ValueError(
                f"column {roles[role]!r} must hold {allowed[role][2]} in every row; "
                f"{int(seen[f'wrong_{role}']):,} of {self.size:,} rows of {self.engine.name} do "
                f"not, such as {'nothing' if pd.isna(value) else value}."
            )
        if seen["ones"] in (0, self.size):
            only = f"all {self.size:,} rows are {seen['ones'] / self.size:g}"
            raise ValueError(f"column {self.y!r} must hold both outcomes; {only}.")
        self.total, self.share = seen["mass"], seen["hits"] / seen["mass"]
        self.groups = int(seen.get("groups", 0))
        ends = {r: (seen[f"low_{r}"], seen[f"high_{r}"]) for r in roles if r not in NAMED}
        self._ranges = {name: ends[role] for role, name in roles.items() if role in ends}

    @property
    def predictions(self):
        """Names of the columns of predictions, in place of the columns."""
        return self.names

    @property
    def kind(self):
        """What intervals resample."""
        return f"blocks of {'rows' if self.cluster is None else 'clusters'}"

    @property
    def units(self):
        """How many blocks have rows."""
        return len(self.sums(self.names[0]))

    def column(self, name):
        """Return the counts of one column, a `probnb.scale.cells.Column`; each is made once."""
        return self._parts(name)[0]

    def _parts(self, name):
        """The counts of one column, and sums by block and strip."""
        key = name, self.bins
        if key not in self._found:
            k = self.names.index(check_choice(name, self.names, "column"))
            own = {r: r for r in ("block", "y", "w", "truth") if r in self.rows.columns}
            rows = self.rows.select(p=f"p{k}", **own)
            ends = self._ranges[name]
            counts = count_column(self.engine, rows, *ends, self.bins, self.exact_auc, name)
            sums = rows.group_by(block=rows.block, strip=_strip(rows.p, counts.atoms))
            self._found[key] = counts, self.engine.ask(sums.agg(**_terms(rows)))
        return self._found[key]

    def sums(self, name):
        """Return sums of one column's terms by block."""
        return self._parts(name)[1].groupby("block").sum().drop(columns="strip")

    def binned(self, name, bins=BINS):
        """Return the inner edges of one column's bins, and sums of each bin's terms by name."""
        if check_integer(bins, "bins") not in self.bins:
            self.bins = (*self.bins, bins)
        return self.column(name).binned(bins)

    def reliability_bins(self, name, bins=BINS):
        """Return the bins of one column as `probnb.metrics.reliability_bins` does."""
        edges, b = self.binned(name, bins)
        means, share = (b[c] / b["mass"] for c in ("sp", "ones")), b["mass"] / self.total
        rows = b["rows"].astype(int), share, b["mass"] ** 2 / b["ww"]
        return ReliabilityBins(np.concatenate([[0.0], edges, [1.0]]), *means, *rows)

    def brier_decomposition(self, name, bins=BINS):
        """Return the parts of one column's Brier score, as `probnb.metrics.brier_decomposition`."""
        b = self.binned(name, bins)[1]
        weight, q, outcome = b["mass"] / self.total, b["sp"] / b["mass"], b["ones"] / b["mass"]
        return BrierDecomposition(
            calibration=float(weight @ (q - outcome) ** 2),
            refinement=float(weight @ (outcome * (1 - outcome))),
            resolution=float(weight @ (outcome - self.share) ** 2),
            uncertainty=self.share * (1 - self.share),
            within_variance=float((b["spp"] - b["sp"] * q).sum() / self.total),
            within_covariance=float((b["spy"] - b["ones"] * q).sum() / self.total),
        )

    def drawn(self, bins=BINS):
        """Return the arguments of `probnb.plots.reliability_grid`: cells in place of rows."""
        out = {}
        for name in self.names:
            a, table = self.column(name).atoms, self.reliability_bins(name, bins)
            p, weights = np.clip(a["sp"] / a["mass"], 0, 1), [a["mass"] - a["ones"], a["ones"]]
            out[name] = {"y_true": np.repeat([0, 1], len(a)), "y_prob": np.append(p, p),
                         "weights": np.concatenate(weights), "table": table}  # fmt: skip
        return {"y_true": None, "predictions": out, "bins": bins, "corp": True}

    def evaluate(self, name):
        """Return every metric of one column by name, as `probnb.metrics.evaluate` does."""
        counts, b, sums = self.column(name), self.binned(name)[1], self.sums(name).sum()
        gaps = np.abs(b["ones"] - b["sp"])
        values = {"ece": gaps.sum() / self.total, "mce": (gaps / b["mass"]).max(), "ks": counts.ks,
                  "auc": counts.auc}  # fmt: skip
        metrics = computable(self.p is not None)
        return {m: float(values[m] if m in values else sums[m] / self.total) for m in metrics}

    def bootstrap(self, names=None, replicates=1000, seed=0):
        """Return metrics and resamples of whole blocks, as `probnb.metrics.bootstrap` does.

        Parameters
        ----------
        names : sequence of str, optional
            Columns; by default all.
        replicates : int, default=1000
            Number of resamples.
        seed : int, default=0
            Seed of the resamples.

        Returns
        -------
        probnb.metrics.Bootstrap
            Exact values, and resamples that are the same for all columns.
        """
        names, metrics = list(self.names if names is None else names), computable(bool(self.p))
        replicates = check_integer(replicates, "replicates", 2)
        drawn = draw_weights(np.random.default_rng(seed), replicates, self.units, None)
        point = pd.DataFrame([self.evaluate(name) for name in names], names, metrics)
        values = np.empty((replicates, *point.shape))
        for i, name in enumerate(names):
            blocks, held = self.sums(name), self._parts(name)[1].set_index(["block", "strip"])
            tables = (held[c].unstack(fill_value=0) for c in ("mass", "ones", "sp"))
            mass, ones, sp = (drawn @ table.to_numpy() for table in tables)
            ranked = Ranked(np.arange(mass.shape[1]), mass, ones)
            vars(ranked)["gap_up_to"] = np.cumsum(ones - sp, axis=1)  # predictions as they are
            for j, m in enumerate(metrics):
                if METRICS[m].ranked:
                    values[:, i, j] = METRICS[m].ranked(ranked)
                else:
                    values[:, i, j] = weighted_sum(drawn, blocks[m].to_numpy()) / mass.sum(axis=1)
        return Bootstrap(point, values, self.units)


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
    return ibis.ifelse(a == 0, 0.0, ibis.ifelse(b == 0, infinite, a * (a / b).ln()))


def _strip(p, atoms):
    """Number 100 strips of about equally many rows: ten equal cells in each tenth of the rows."""
    up_to = atoms["mass"].cumsum()
    places = np.searchsorted(up_to, up_to.iat[-1] * np.arange(1, PIECES) / PIECES)
    knots = np.unique([0.0, *atoms["lo"].to_numpy()[places], 1.0])
    cells = [
        ((p - number(low)) * number(PIECES / (high - low))).floor().cast("int64") + PIECES * k
        for k, (low, high) in enumerate(itertools.pairwise(knots))
    ]
    return tree(p, knots[1:-1], cells)
