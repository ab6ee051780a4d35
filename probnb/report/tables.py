"""The tables of the report on anybody's predictions: one function each.

Each starts from the `PredictionTable` that `probnb.report.read` has checked. What post-hoc
calibration would gain is in `gains`; `words` puts the numbers into words.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from scipy.stats import chi2, mannwhitneyu, norm

from ..calibrators import PlattScaling, logits_from_probabilities
from ..metrics.binning import BINS, ece, reliability_bins
from ..metrics.decomposition import brier_decomposition
from ..metrics.intervals import proportion_interval, repeated_distance
from ..metrics.resampling import bootstrap
from ..validation import check_choice, check_integer
from .read import LARGEST

__all__ = [
    "ORDERS",
    "calibration_table",
    "check_rows",
    "decomposition_table",
    "distance_table",
    "group_table",
    "paired_table",
    "replicates_within_budget",
    "resample",
]

BUDGET = 2e8
"""Rows x methods x replicates that a report resamples: about ten seconds of one core."""

ORDERS = {
    "ordinary": "the predictions order the outcomes more or less",
    "constant": "all predictions are the same, to six digits of log-odds",
    "separated": "no outcome 0 has a higher prediction than any outcome 1",
    "inverted": "outcomes 1 have the lower predictions, beyond what chance explains",
}
"""How a column may order the outcomes; but for the first, words and cells say so."""

FLAT = 1e-6
"""Predictions whose log-odds differ by less count as all the same."""

INVERTED = 0.01
"""Mann and Whitney's p-value below which a column is called inverted."""


def replicates_within_budget(rows, methods, replicates):
    """How many resamples a report can afford.

    Parameters
    ----------
    rows, methods : int
        Size of the table.
    replicates : int
        Number asked for.

    Returns
    -------
    int
        The number asked for, lowered so that rows x methods x replicates is at most 2e8, but
        not below 100.

    Examples
    --------
    >>> replicates_within_budget(5000, 4, 1000), replicates_within_budget(10**6, 1, 1000)
    (1000, 200)
    """
    affordable = int(BUDGET / (rows * methods))
    return min(check_integer(replicates, "replicates"), max(100, affordable))


def check_rows(table, bins):
    """Raise if there are fewer rows than bins.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    bins : int
        Number of bins.

    Raises
    ------
    ValueError
        If `bins` is not an integer from 1 to the number of rows.
    """
    if check_integer(bins, "bins") > len(table.y):
        raise ValueError(f"bins must be at most the number of rows, {len(table.y)}; got {bins}.")


def resample(table, replicates=1000, seed=0):
    """Bootstrap every metric of every prediction column, on the same rows for all.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    replicates : int, default=1000
        Number of resamples, lowered for large tables by `replicates_within_budget`.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    probnb.metrics.resampling.Bootstrap
        Metrics and their resamples; whole clusters are resampled where the table has them.
    """
    affordable = replicates_within_budget(len(table.y), table.predictions.shape[1], replicates)
    return bootstrap(
        table.y, table.predictions, table.p, affordable, seed, groups=table.cluster,
        weights=table.weight, progress=False,
    )  # fmt: skip


def paired_table(boot, reference=None, level=0.95):
    """Differences between prediction columns, on the same resamples.

    Parameters
    ----------
    boot : probnb.metrics.resampling.Bootstrap
        From `resample`.
    reference : str, optional
        Compare each other column with this one; by default all pairs.
    level : float, default=0.95
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    DataFrame
        One row per pair and metric (index levels ``a``, ``b``, ``metric``): ``difference`` (a
        less b), ``std``, ``low``, ``high``, and ``distinct``, whether the interval leaves out 0.

    Raises
    ------
    ValueError
        If `reference` is not one of the columns.
    """
    names = list(boot.point.index)
    if reference is None:
        pairs = list(itertools.combinations(names, 2))
    else:
        check_choice(reference, names, "reference")
        pairs = [(name, reference) for name in names if name != reference]
    parts = {pair: boot.difference(*pair, level=level) for pair in pairs}
    if not parts:
        return pd.DataFrame(columns=["difference", "std", "low", "high", "distinct"])
    out = pd.concat(parts, names=["a", "b", "metric"])
    return out.assign(distinct=(out["low"] > 0) | (out["high"] < 0))


def distance_table(table, level=0.95):
    """Distance of every prediction column from the true probabilities, by repeated outcomes.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions with repeated outcomes.
    level : float, default=0.95
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    DataFrame
        One row per column: ``mse_p`` and ``kl_p``, estimated by
        `probnb.metrics.repeated_distance`, each with ``_low`` and ``_high``.
    """
    rows = {}
    for name, p_hat in table.predictions.items():
        rows[name] = {}
        for metric in ("mse_p", "kl_p"):
            found = repeated_distance(
                table.ones, table.counts, p_hat, metric, weights=table.weight,
                groups=table.cluster, level=level,
            )  # fmt: skip
            rows[name] |= {metric: found.value, f"{metric}_low": found.low}
            rows[name][f"{metric}_high"] = found.high
    return pd.DataFrame.from_dict(rows, orient="index")


def decomposition_table(table, bins=BINS):
    """Parts of the Brier score of every prediction column.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    bins : int, default=15
        Number of quantile bins.

    Returns
    -------
    DataFrame
        One row per column: ``brier = calibration + refinement + within`` (the terms within bins)
        and ``refinement = uncertainty - resolution``.
    """
    rows = {}
    for name, p_hat in table.predictions.items():
        parts = brier_decomposition(table.y, p_hat, bins, table.weight)
        rows[name] = {
            "brier": parts.total,
            "calibration": parts.calibration,
            "refinement": parts.refinement,
            "within": parts.within_variance - 2 * parts.within_covariance,
            "uncertainty": parts.uncertainty,
            "resolution": parts.resolution,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def calibration_table(table, level=0.95):
    r"""How each column is off, and whether chance explains it.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    level : float, default=0.95
        Coverage of the slope's interval, in (0, 1).

    Returns
    -------
    DataFrame
        One row per column: its ``order``, a name from `ORDERS`; ``bias``, mean prediction less
        mean outcome, with its ``bias_p``; ``slope`` of a logistic regression on the predictions'
        log-odds (below 1: too extreme), with ``slope_low`` and ``slope_high``, all NaN where the
        order leaves no finite slope; ``bins_p``, for calibration in all bins; and ``ece``, beside
        ``ece_null``, what calibrated predictions would have on average.

    Notes
    -----
    If the predictions are the probabilities, :math:`\sum (y_i - \hat p_i)` has the variance
    :math:`\sum \hat p_i (1 - \hat p_i)`, in a bin as in the whole: ``bias_p`` is two-sided
    normal, ``bins_p`` is chi-square for the sum of the squares so divided over 15 quantile bins
    (Hosmer and Lemeshow's statistic, for predictions not fitted to these rows), and ``ece_null``
    is the mean over bins of :math:`\sqrt{2/\pi}` standard deviations. The slope's interval is
    Wald's. With weights, sums are weighted and variances have the squares of the weights. All of
    them take rows as independent.
    """
    weight = np.ones(len(table.y)) if table.weight is None else table.weight
    return pd.DataFrame.from_dict(
        {
            name: _how_off(table.y, np.asarray(p_hat, dtype=float), weight, level)
            for name, p_hat in table.predictions.items()
        },
        orient="index",
    )


def _how_off(y, p_hat, w, level):
    variance = w**2 * p_hat * (1 - p_hat)
    index = reliability_bins(y, p_hat, weights=w).assign(p_hat)
    misses, spread = np.bincount(index, w * (y - p_hat)), np.bincount(index, variance)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = misses.sum() / np.sqrt(variance.sum())
        parts = np.where(misses == 0, 0, misses**2 / spread)  # certain, and right or wrong
    s = np.diff(logits_from_probabilities(p_hat), axis=1)[:, 0]
    order, perfect = _order(y, s)
    slope, error = (np.nan, np.nan) if perfect or order == "constant" else _slope(y, s, w)
    half = norm.ppf((1 + level) / 2) * error
    return {
        "order": order,
        "bias": np.average(p_hat - y, weights=w),
        "bias_p": 2 * norm.sf(abs(np.nan_to_num(z))),
        "slope": slope,
        "slope_low": slope - half,
        "slope_high": slope + half,
        "bins_p": chi2.sf(parts.sum(), len(parts)),
        "ece": ece(y, p_hat, weights=w),
        "ece_null": np.sqrt(2 / np.pi * spread).sum() / w.sum(),
    }


def _order(y, s):
    """How a column orders the outcomes, and whether without an exception."""
    ones, zeros = s[y == 1], s[y == 0]
    if np.ptp(s) < FLAT:
        return "constant", False
    if zeros.max() <= ones.min():
        return "separated", True
    if ones.max() <= zeros.min():
        return "inverted", True
    p = mannwhitneyu(zeros, ones, alternative="greater", method="asymptotic").pvalue
    return ("inverted" if p < INVERTED else "ordinary"), False


def _slope(y, s, w):
    """Slope of the outcomes' log-odds on the predictions', and its standard error."""
    fit = PlattScaling().fit(s, y, sample_weight=w)
    variance = np.prod(fit.predict_proba(s), axis=1)
    centred = s - np.average(s, weights=w * variance + np.finfo(float).tiny)
    information = (w * variance) @ centred**2
    error = np.sqrt((w**2 * variance) @ centred**2) / information if information > 0 else np.inf
    return fit.coef_[0, 0], error


def group_table(table, level=0.95):
    """Calibration of each group: what was predicted, what came true.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions with groups.
    level : float, default=0.95
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    DataFrame
        One row per group and column (index levels ``group``, ``column``), the 20 largest groups:
        ``rows``, ``predicted`` and ``observed`` means, Clopper and Pearson's interval ``low``,
        ``high`` of the latter, and ``off``, whether that leaves out the mean prediction. With
        weights, means are weighted and the interval is that of Kish's effective number of rows.
    """
    codes, labels = pd.factorize(np.asarray(table.group))
    weight = np.ones(len(codes)) if table.weight is None else table.weight
    rows, mass = np.bincount(codes), np.bincount(codes, weight)
    effective = mass**2 / np.bincount(codes, weight**2)
    observed = np.clip(np.bincount(codes, weight * table.y) / mass, 0, 1)
    low, high = proportion_interval(observed * effective, np.maximum(effective, 1), level)
    largest = np.argsort(-rows, kind="stable")[:LARGEST]
    parts = {}
    for name, p_hat in table.predictions.items():
        predicted = np.bincount(codes, weight * p_hat) / mass
        parts |= {
            (labels[k], name): {
                "rows": rows[k],
                "predicted": predicted[k],
                "observed": observed[k],
                "low": low[k],
                "high": high[k],
                "off": not low[k] <= predicted[k] <= high[k],
            }
            for k in largest
        }
    order = [(labels[k], name) for k in largest for name in table.predictions]
    index = pd.MultiIndex.from_tuples(order, names=["group", "column"])
    return pd.DataFrame([parts[key] for key in order], index=index)
