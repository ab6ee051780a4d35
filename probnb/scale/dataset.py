"""Metrics and intervals of predictions of any size, as `probnb.metrics` has them in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import ibis
import numpy as np
import pandas as pd

from ..metrics.binning import BINS, BrierDecomposition, ReliabilityBins
from ..metrics.registry import CLIP, METRICS, computable
from ..metrics.resampling import Bootstrap, _weighted_sum, _weights
from ..metrics.sample import Ranked
from ..validation import check_choice, check_integer
from .cells import count_column
from .engine import BLOCKS, ROW, Engine, number, spread, tree

PIECES = 16
"""Resamples are of strips of predictions: so many in each of so many pieces of equal weight."""

ROUNDING = 1e-6
"""As in `probnb.report.read`: a probability so little outside [0, 1] is a rounding error."""


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
    part : (str, str), optional
        A column and its value, in lower case, in the rows to judge.
    exact_auc : bool, default=True
        Whether the AUC counts all distinct predictions, which is most of the work; if not, it is
        that of 65,536 cells, and `auc_error` says how far it may be off.
    notes : tuple of str
        What was read and how.

    Raises
    ------
    ValueError
        If a column is missing, has several types, or a value is not what it must be.

    Notes
    -----
    Intervals resample 128 blocks of rows (of hashed numbers of rows within their file, or of hashed
    clusters), not rows, with predictions in 256 strips; the values themselves are exact.
    """

    engine: Engine
    names: list
    y: str = "y"
    p: str | None = None
    group: str | None = None
    cluster: str | None = None
    weight: str | None = None
    logits: tuple = ()
    part: tuple | None = None
    exact_auc: bool = True
    notes: tuple = ()
    bins: tuple = (BINS,)
    _found: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        roles = {"y": self.y, "truth": self.p, "w": self.weight, "group": self.group}
        roles = {role: name for role, name in roles.items() if name is not None}
        used = [*self.names, *roles.values(), *filter(None, [self.cluster, (self.part or [None])[0]])]
        for name in used:
            check_choice(name, [c for c in self.engine.table.columns if c != ROW], "column")
        self.engine.check_types(used)
        table = self.judged(self.engine.table)
        if self.cluster is None:
            block = (spread(table[ROW]) / (2**32 // BLOCKS)).floor().cast("int64")
        else:
            block = (table[self.cluster].cast("string").hash().cast("int64") % BLOCKS).abs()
        held = {r: table[c] if r == "group" else table[c].cast("float64") for r, c in roles.items()}
        held |= {f"p{k}": table[name].cast("float64") for k, name in enumerate(self.names)}
        rows = table.select(block=block, **held)
        if self.weight is not None:
            rows = rows.filter((rows.w > 0) | rows.w.isnull() | rows.w.isnan())
        self._check(rows, roles)
        for k, name in enumerate(self.names):
            x = rows[f"p{k}"]
            p = 1 / (1 + (-x).exp()) if name in self.logits else x.clip(0.0, 1.0)
            rows = rows.mutate(**{f"p{k}": p}) if name in self.logits or self._clipped[k] else rows
        self.rows = rows

    def judged(self, table):
        """Return the rows of the part that is judged."""
        if self.part is None:
            return table
        column, value = self.part
        return table.filter(table[column].cast("string").strip().lower() == value)

    def _check(self, rows, roles):
        """One look at all rows: counts, ranges, and what is missing or out of range."""
        found = {"rows": rows.count(), "ones": rows.y.sum(), "blocks": rows.block.nunique()}
        found["mass"] = rows.w.sum() if self.weight else rows.count()
        found["hits"] = (rows.w * rows.y).sum() if self.weight else rows.y.sum()
        tests = {"y": (rows.y == 0) | (rows.y == 1)}
        tests |= {r: rows[r].between(0, hi) for r, hi in (("truth", 1), ("w", 1e300)) if r in roles}
        if self.group:
            tests["group"], found["groups"] = rows.group.notnull(), rows.group.nunique()
        kinds = {"y": "0 or 1", "truth": "a probability in [0, 1]", "group": "a name",
                 "w": "a finite weight of at least 0"}  # fmt: skip
        for k, name in enumerate(self.names):
            x, logit = rows[f"p{k}"], name in self.logits
            roles, low, high = roles | {f"p{k}": name}, *((-1e150, 1e150), (-ROUNDING, 1 + ROUNDING))[not logit]
            tests[f"p{k}"] = x.between(low, high)
            kinds[f"p{k}"] = "a finite number" if logit else "a probability in [0, 1] (or tell scale)"
            found |= {f"low{k}": x.min(), f"high{k}": x.max()}
        for role, test in tests.items():
            tests[role] = ~test.fill_null(False)
            if role != "group":  # some engines have NaN above all numbers
                tests[role] |= rows[role].isnan().fill_null(True)
            found[f"wrong_{role}"] = tests[role].cast("int64").sum()
        seen = self.engine.ask(rows.aggregate(**found)).iloc[0]
        if not seen["rows"]:
            raise ValueError(f"{self.engine.name} must have rows of weight; it has none.")
        for role in tests:
            if seen[f"wrong_{role}"]:
                value = self.engine.ask(rows.filter(tests[role]).select(role).limit(1)).iat[0, 0]
                raise ValueError(
                    f"column {roles[role]!r} must hold {kinds[role]} in every row; "
                    f"{int(seen[f'wrong_{role}']):,} of {int(seen['rows']):,} rows of "
                    f"{self.engine.name} do not, such as {'nothing' if pd.isna(value) else value}."
                )
        if seen["ones"] in (0, seen["rows"]):
            only = f"all {int(seen['rows']):,} rows are {seen['ones'] / seen['rows']:g}"
            raise ValueError(f"column {self.y!r} must hold both outcomes; {only}.")
        self.size, self.total, self.share = int(seen["rows"]), seen["mass"], seen["hits"] / seen["mass"]
        self.units, self.groups = int(seen["blocks"]), int(seen.get("groups", 0))
        ranges = [(seen[f"low{k}"], seen[f"high{k}"]) for k in range(len(self.names))]
        self._clipped = [low < 0 or high > 1 for low, high in ranges]
        sigmoid = lambda x: 1 / (1 + np.exp(-np.clip(x, -700, 700)))  # noqa: E731
        self._ranges = [
            tuple(sigmoid(np.array(r))) if n in self.logits else tuple(np.clip(r, 0, 1))
            for n, r in zip(self.names, ranges)
        ]

    @property
    def kind(self):
        """What intervals resample."""
        return f"blocks of {'rows' if self.cluster is None else 'clusters'}"

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
            low, high = (0.0, 1.0) if name in self.logits else self._ranges[k]
            counts = count_column(self.engine, rows, low, high, self.bins, self.exact_auc, name)
            sums = rows.group_by(block=rows.block, strip=_strip(rows.p, counts.atoms))
            sums = sums.agg(**_terms(rows))
            self._found[key] = counts, self.engine.ask(sums)
        return self._found[key]

    def sums(self, name):
        """Return sums of one column's terms by block."""
        return self._parts(name)[1].groupby("block").sum().drop(columns="strip")

    def reliability_bins(self, name, bins=BINS):
        """Return the bins of one column as `probnb.metrics.reliability_bins` does."""
        edges, held = self.binned(name, bins)
        return ReliabilityBins(
            np.concatenate([[0.0], edges, [1.0]]),
            *(held[c] / held["mass"] for c in ("sp", "ones")),
            held["rows"].astype(int), held["mass"] / held["mass"].sum(), held["mass"] ** 2 / held["ww"],
        )  # fmt: skip

    def binned(self, name, bins=BINS):
        """Return the inner edges of one column's bins, and sums of each bin's terms by name."""
        if bins not in self.bins:
            self.bins = (*self.bins, bins)
        return self.column(name).binned(bins)

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
            a = self.column(name).atoms
            p = np.clip(a["sp"] / a["mass"], 0, 1)
            weights = np.append(a["mass"] - a["ones"], a["ones"])
            out[name] = {"y_true": np.repeat([0, 1], len(a)), "y_prob": np.append(p, p),
                         "weights": weights, "table": self.reliability_bins(name, bins)}  # fmt: skip
        return {"y_true": None, "predictions": out, "bins": bins, "corp": True}

    def evaluate(self, name):
        """Return every metric of one column by name, as `probnb.metrics.evaluate` does."""
        counts, held, terms = self.column(name), self.binned(name)[1], self.sums(name)
        gaps = np.abs(held["ones"] - held["sp"])
        values = {m: terms[m].sum() / self.total for m in self._rowwise()}
        values |= {"ece": gaps.sum() / self.total, "mce": (gaps / held["mass"]).max()}
        values |= {"ks": counts.ks, "auc": counts.auc}
        return {m: float(values[m]) for m in computable(self.p is not None)}

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
        names = self.names if names is None else list(names)
        metrics = computable(self.p is not None)
        rng = np.random.default_rng(seed)
        drawn = _weights(rng, check_integer(replicates, "replicates", 2), self.units, None)
        values = np.empty((len(drawn), len(names), len(metrics)))
        point = [self.evaluate(name) for name in names]
        for i, name in enumerate(names):
            held = self._parts(name)[1]
            place = tuple(np.unique(held[c], return_inverse=True)[1] for c in ("block", "strip"))
            shape = tuple(held[["block", "strip"]].nunique())
            by = {c: np.zeros(shape) for c in ("mass", "ones", "sp")}
            for c, table in by.items():
                table[place] = held[c]
            by = {c: drawn @ table for c, table in by.items()}
            ranked = Ranked(np.arange(shape[1]), by["mass"], by["ones"])
            vars(ranked)["gap_up_to"] = np.cumsum(by["ones"] - by["sp"], axis=1)  # within strips too
            blocks, total = self.sums(name), by["mass"].sum(axis=1)
            for j, m in enumerate(metrics):
                values[:, i, j] = (
                    _weighted_sum(drawn, blocks[[m]].to_numpy())[:, 0] / total
                    if m in self._rowwise() else METRICS[m].ranked(ranked)
                )  # fmt: skip
        return Bootstrap(pd.DataFrame(point, names, metrics), values, self.units)

    def _rowwise(self):
        return ["brier", "nll", *(["mse_p", "kl_p"] if self.p is not None else [])]


def _terms(rows):
    """What is summed over rows, by name."""
    p, y = rows.p, rows.y
    hit = ibis.ifelse(y == 1, p, 1 - p)
    hit = ibis.ifelse(hit < number(CLIP), number(CLIP), ibis.ifelse(hit > 1 - CLIP, 1 - CLIP, hit))
    terms = {"mass": 1.0 + 0 * y, "ones": y, "sp": p}
    terms |= {"brier": (p - y) * (p - y), "nll": -hit.ln()}
    if "truth" in rows.columns:
        q = rows.truth
        terms |= {"mse_p": (p - q) * (p - q), "kl_p": _entropy(q, p) + _entropy(1 - q, 1 - p)}
    weighted = "w" in rows.columns
    return {name: (rows.w * t if weighted else t).sum() for name, t in terms.items()}


def _strip(p, atoms):
    """Number 256 strips of about equally many rows: sixteen equal cells between 17 quantiles."""
    up_to = atoms["mass"].cumsum()
    places = np.searchsorted(up_to, up_to.iat[-1] * np.arange(1, PIECES) / PIECES)
    knots = np.unique([0.0, *atoms["lo"].to_numpy()[places], 1.0])
    cells = [
        ((p - number(low)) * number(PIECES / (high - low))).floor().cast("int64") + PIECES * k
        for k, (low, high) in enumerate(zip(knots[:-1], knots[1:]))
    ]
    return tree(p, knots[1:-1], cells)


def _entropy(a, b):
    inf = ibis.literal("inf").cast("float64")
    return ibis.ifelse(a == 0, 0.0, ibis.ifelse(b == 0, inf, a * (a / b).ln()))
