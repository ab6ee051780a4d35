"""Bootstrap of every metric for many methods at once, on the same resamples.

A resample is a vector of weights: how often each row was drawn. Scores that are means over rows
are then products of matrices; AUC, ECE, MCE and the KS error follow from two cumulative sums over
the sorted predictions, so that nothing is sorted, copied or looped over within a replicate.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ..validation import (
    check_choice,
    check_integer,
    check_number,
    check_outcomes,
    check_pair,
    check_probabilities,
)
from .binning import BINS
from .scores import METRICS, evaluate, kl_rows, nll_rows

__all__ = ["Bootstrap", "bootstrap"]

CELLS = 1 << 15
"""Weights held at a time: 256 kB, so that the work stays in the processor's cache."""

_ROWWISE = {
    "mse_p": lambda y, p_hat, p: (p_hat - p) ** 2,
    "kl_p": lambda y, p_hat, p: kl_rows(p, p_hat),
    "brier": lambda y, p_hat, p: (p_hat - y) ** 2,
    "nll": lambda y, p_hat, p: nll_rows(y, p_hat),
}


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Metrics of several methods with their resamples; made by `bootstrap`.

    Attributes
    ----------
    point : DataFrame of shape (methods, metrics)
        The metrics on the rows as they are.
    samples : ndarray of shape (replicates, methods, metrics)
        The metrics on each resample, the same resample for all methods. AUC is NaN in a resample
        of one class; such replicates are left out of its deviation and interval.
    """

    point: pd.DataFrame
    samples: np.ndarray = field(repr=False)

    def std(self):
        """Return the standard deviation over replicates: the ± of the paper's tables.

        Returns
        -------
        DataFrame of shape (methods, metrics)
            The deviations; NaN where a metric is infinite in some resample.
        """
        return self._frame(_std(self.samples))

    def interval(self, level=0.95):
        """Return percentile intervals.

        Parameters
        ----------
        level : float, default=0.95
            Coverage aimed at, in (0, 1).

        Returns
        -------
        low, high : DataFrame of shape (methods, metrics)
            The ends of the intervals. A metric near its bound of 0 (ECE, MCE, KS of a calibrated
            model) is biased upwards in resamples, and its interval may miss the point itself.
        """
        low, high = _percentiles(self.samples, level)
        return self._frame(low), self._frame(high)

    def difference(self, a, b, level=0.95):
        """Compare two methods on the same resamples.

        Parameters
        ----------
        a, b : str
            Names of two methods.
        level : float, default=0.95
            Coverage aimed at, in (0, 1).

        Returns
        -------
        DataFrame of shape (metrics, 4)
            Columns ``difference`` (a less b), ``std``, ``low`` and ``high``. An interval that
            leaves out 0 is a difference that the rows can tell from none.

        Raises
        ------
        ValueError
            If a name is unknown or `level` is not in (0, 1).
        """
        rows = [
            self.point.index.get_loc(check_choice(name, self.point.index, label))
            for name, label in ((a, "a"), (b, "b"))
        ]
        with np.errstate(invalid="ignore"):  # infinity less infinity
            gaps = self.samples[:, rows[0]] - self.samples[:, rows[1]]
            point = self.point.iloc[rows[0]] - self.point.iloc[rows[1]]
        low, high = _percentiles(gaps, level)
        return pd.DataFrame(
            {"difference": point, "std": _std(gaps), "low": low, "high": high},
            index=self.point.columns,
        )

    def _frame(self, values):
        return pd.DataFrame(values, self.point.index, self.point.columns)


def bootstrap(
    y, predictions, p=None, replicates=1000, seed=0, metrics=None, groups=None, progress=True
):
    """Resample rows, or whole groups of rows, and compute every metric of every method.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes, 0 or 1.
    predictions : mapping of str to array-like of shape (n,), or DataFrame
        Predicted probabilities of outcome 1, one entry or column per method.
    p : array-like of shape (n,), optional
        True probabilities, for ``mse_p`` and ``kl_p``.
    replicates : int, default=1000
        Number of resamples.
    seed : int, default=0
        Seed of the resamples.
    metrics : sequence of str, optional
        Names from `METRICS`; by default all that can be computed.
    groups : array-like of shape (n,), optional
        Group of each row, for example a day or a patient. Whole groups are then drawn with
        replacement, which keeps rows that depend on each other together.
    progress : bool, default=True
        Show a progress bar once the work has taken three seconds.

    Returns
    -------
    Bootstrap
        Point values and resamples.

    Raises
    ------
    ValueError
        If rows are invalid (see `evaluate`), there are no predictions, a metric is unknown or
        lacks its true probabilities, or `groups` has another length or a missing value.

    Notes
    -----
    Section 7 of the paper reports one bootstrap standard deviation of 1,000 replicates. Bins are
    made anew, by quantile, in every resample. Memory does not depend on `replicates` but for the
    metrics themselves; time is proportional to replicates x methods x n.

    Examples
    --------
    >>> y = [0, 0, 1, 1] * 25
    >>> result = bootstrap(y, {"good": [0.1, 0.4, 0.6, 0.9] * 25, "flat": [0.5] * 100})
    >>> result.point["brier"].round(3).to_dict()
    {'good': 0.085, 'flat': 0.25}
    >>> bool(result.difference("good", "flat").loc["brier", "high"] < 0)
    True
    """
    names, matrix, y, p = _check_methods(y, predictions, p)
    metrics = _check_metrics(metrics, p)
    replicates = check_integer(replicates, "replicates")
    codes = _check_groups(groups, len(y))
    point = [evaluate(y, p_hat, p) for p_hat in matrix]
    rankings = [_Ranking(y, p_hat) for p_hat in matrix]
    rowwise = {m: _by_row(m, y, matrix, p) for m in metrics if m in _ROWWISE}
    samples = np.empty((replicates, len(names), len(metrics)))
    rng = np.random.default_rng(seed)
    bar = tqdm(total=replicates, desc="bootstrap", delay=3, disable=not progress, leave=False)
    with bar:
        for start in range(0, replicates, block := max(1, CELLS // len(y))):
            part = slice(start, min(start + block, replicates))
            weights = _weights(rng, part.stop - part.start, len(y), codes)
            total = weights.sum(axis=1, keepdims=True)
            for metric, rows in rowwise.items():
                samples[part, :, metrics.index(metric)] = _weighted_sum(weights, rows) / total
            if set(metrics) & {"ece", "mce", "ks", "auc"}:
                for k, ranking in enumerate(rankings):
                    values = ranking.metrics(weights)
                    for j, metric in enumerate(metrics):
                        if metric in values:
                            samples[part, k, j] = values[metric]
            bar.update(part.stop - part.start)
    return Bootstrap(pd.DataFrame(point, index=names)[metrics], samples)


class _Ranking:
    """Sorted predictions of one method, ready for the metrics that depend on their order."""

    def __init__(self, y, p_hat):
        self.order = np.argsort(p_hat)
        ranked = p_hat[self.order]
        self.y = y[self.order]
        self.gap = self.y - ranked
        first = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
        size = np.diff(first, append=len(ranked))
        self.last = first + size - 1  # of each run of equal predictions
        self.ties = len(first) < len(ranked)
        self.run_first, self.run_last = np.repeat(first, size), np.repeat(self.last, size)

    def metrics(self, weights):
        """Return ece, mce, ks and auc for weights of shape (replicates, n)."""
        w = weights[:, self.order]
        ones, gap = w * self.y, w * self.gap
        up_to = np.cumsum(w, axis=1)
        np.cumsum(gap, axis=1, out=gap)
        before = up_to - w
        if self.ties:  # twice the middle rank of the run to which a row belongs
            twice_rank = up_to[:, self.run_last] + before[:, self.run_first]
        else:
            twice_rank = up_to + before
        total, hits = up_to[:, -1], ones.sum(axis=1)
        ece, mce = _bin_gaps(up_to, gap, twice_rank)
        ks = np.abs(gap[:, self.last] if self.ties else gap).max(axis=1) / total
        area = np.einsum("ij,ij->i", ones, twice_rank) - hits**2
        with np.errstate(invalid="ignore"):  # one class only: 0 / 0 is NaN
            auc = area / (2 * hits * (total - hits))
        return {"ece": ece, "mce": mce, "ks": ks, "auc": auc}


def _bin_gaps(up_to, gap, twice_rank):
    """Return ECE and MCE of each replicate; the bins are those of `reliability_bins`."""
    total = up_to[:, -1:].astype(np.int64)
    firsts = -(-2 * total * np.arange(1, BINS) // BINS)  # a run in bin b has twice_rank >= this
    cuts = np.array([np.searchsorted(ranks, cut) for ranks, cut in zip(twice_rank, firsts)])
    edges = np.pad(cuts, ((0, 0), (1, 1)), constant_values=((0, 0), (0, up_to.shape[1])))
    first, last = edges[:, :-1], edges[:, 1:]

    def sums(a):
        a = np.pad(a, ((0, 0), (1, 0)))
        return np.take_along_axis(a, last, 1) - np.take_along_axis(a, first, 1)

    count = sums(up_to)
    full = count > 0
    gaps = np.where(full, np.abs(sums(gap)) / np.where(full, count, 1), 0)
    return gaps.sum(axis=1) / full.sum(axis=1), gaps.max(axis=1)


def _weights(rng, replicates, n, codes):
    """Return how often each row is drawn, of shape (replicates, n)."""
    draws = n if codes is None else codes.max() + 1
    rows = [
        np.bincount(rng.integers(draws, size=draws), minlength=draws) for _ in range(replicates)
    ]
    weights = np.array(rows, dtype=np.float64)
    return weights if codes is None else weights[:, codes]


def _by_row(metric, y, matrix, p):
    """Return the metric's terms, of shape (n, methods)."""
    return np.stack([_ROWWISE[metric](y, p_hat, p) for p_hat in matrix], axis=1)


def _weighted_sum(weights, rows):
    """Return weights @ rows where infinite rows count only when drawn."""
    infinite = np.isinf(rows)
    if not infinite.any():
        return weights @ rows
    drawn = weights @ infinite.astype(np.float64) > 0
    return np.where(drawn, np.inf, weights @ np.where(infinite, 0, rows))


def _std(samples):
    with warnings.catch_warnings(action="ignore"):  # no defined replicate: NaN
        return np.nanstd(samples, axis=0)


def _percentiles(samples, level):
    check_number(level, "level", 0, 1, exclusive=True)
    with warnings.catch_warnings(action="ignore"):
        return np.nanquantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0)


def _check_methods(y, predictions, p):
    if not isinstance(predictions, Mapping | pd.DataFrame) or not len(predictions.keys()):
        raise ValueError(
            "predictions must map names of methods to vectors of probabilities, or be a DataFrame "
            f"of such columns; got {type(predictions).__name__}"
            f"{' without any' if hasattr(predictions, 'keys') else ''}."
        )
    y = check_outcomes(y, "y")
    names = list(predictions.keys())
    matrix = [check_pair(y, predictions[k], ("y", f"predictions[{k!r}]"))[1] for k in names]
    if p is not None:
        p = check_probabilities(p, "p")
        if len(p) != len(y):
            raise ValueError(f"p and y must have the same length; got {len(p)} and {len(y)}.")
    return names, matrix, y, p


def _check_metrics(metrics, p):
    known = METRICS if p is not None else METRICS[2:]
    return list(known) if metrics is None else [check_choice(m, known, "metrics") for m in metrics]


def _check_groups(groups, n):
    if groups is None:
        return None
    codes, _ = pd.factorize(np.asarray(groups))
    if len(codes) != n or codes.min() < 0:
        raise ValueError(
            f"groups must name a group for each of the {n} rows; got {len(codes)} values, "
            f"{np.count_nonzero(codes < 0)} of them missing."
        )
    return codes
