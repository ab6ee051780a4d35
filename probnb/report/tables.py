"""The tables of the report on anybody's predictions: one function each.

Each starts from the `PredictionTable` that `probnb.report.read` has checked. What post-hoc
calibration would gain is in `gains`; `words` puts the numbers into words.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from ..calibrators import PlattScaling, logits_from_probabilities
from ..metrics.binning import BINS, reliability_bins
from ..metrics.decomposition import brier_decomposition
from ..metrics.intervals import proportion_interval
from ..metrics.resampling import bootstrap
from ..validation import check_choice, check_integer
from .read import LARGEST

__all__ = [
    "calibration_table",
    "check_rows",
    "decomposition_table",
    "group_table",
    "paired_table",
    "replicates_within_budget",
    "resample",
]

BUDGET = 2e8
"""Rows x methods x replicates that a report resamples: about ten seconds of one core."""


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
        table.y, table.predictions, table.p, affordable, seed, groups=table.cluster, progress=False
    )


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
        parts = brier_decomposition(table.y, p_hat, bins)
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
        One row per column: ``bias``, mean prediction less mean outcome, with its ``bias_p``;
        ``slope`` of a logistic regression on the predictions' log-odds (below 1: too extreme),
        with ``slope_low`` and ``slope_high``; ``bins_p``, for calibration in all bins; and
        ``ece``, beside ``ece_null``, what calibrated predictions would have on average.

    Notes
    -----
    If the predictions are the probabilities, :math:`\sum (y_i - \hat p_i)` has the variance
    :math:`\sum \hat p_i (1 - \hat p_i)`, in a bin as in the whole: ``bias_p`` is two-sided
    normal, ``bins_p`` is chi-square for the sum of the squares so divided over 15 quantile bins
    (Hosmer and Lemeshow's statistic, for predictions not fitted to these rows), and ``ece_null``
    is the mean over bins of :math:`\sqrt{2/\pi}` standard deviations. The slope's interval is
    Wald's. All of them take rows as independent.
    """
    return pd.DataFrame.from_dict(
        {name: _how_off(table.y, p_hat, level) for name, p_hat in table.predictions.items()},
        orient="index",
    )


def _how_off(y, p_hat, level):
    p_hat = np.asarray(p_hat, dtype=float)
    variance = p_hat * (1 - p_hat)
    bins = reliability_bins(y, p_hat)
    index = bins.assign(p_hat)
    misses, spread = np.bincount(index, y - p_hat), np.bincount(index, variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (y - p_hat).sum() / np.sqrt(variance.sum())
        parts = np.where(misses == 0, 0, misses**2 / spread)  # certain, and right or wrong
    slope, error = _slope(y, p_hat)
    half = norm.ppf((1 + level) / 2) * error
    return {
        "bias": np.mean(p_hat - y),
        "bias_p": 2 * norm.sf(abs(np.nan_to_num(z))),
        "slope": slope,
        "slope_low": slope - half,
        "slope_high": slope + half,
        "bins_p": chi2.sf(parts.sum(), len(parts)),
        "ece": bins.weight @ np.abs(bins.gap),
        "ece_null": np.sqrt(2 / np.pi * spread).sum() / len(y),
    }


def _slope(y, p_hat):
    """Slope of the outcomes' log-odds on the predictions', and its standard error."""
    s = np.diff(logits_from_probabilities(p_hat), axis=1)[:, 0]
    fit = PlattScaling().fit(s, y)
    weight = np.prod(fit.predict_proba(s), axis=1)
    centred = s - np.average(s, weights=weight)
    information = weight @ centred**2
    return fit.coef_[0, 0], 1 / np.sqrt(information) if information > 0 else np.inf


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
        ``high`` of the latter, and ``off``, whether that leaves out the mean prediction.
    """
    group = table.group.reset_index(drop=True)
    counts = group.value_counts().head(LARGEST)
    ones = pd.Series(table.y).groupby(group.to_numpy()).sum().reindex(counts.index)
    low, high = proportion_interval(ones, counts, level)
    means = table.predictions.groupby(group.to_numpy()).mean().reindex(counts.index)
    parts = {
        name: pd.DataFrame(
            {
                "rows": counts,
                "predicted": means[name],
                "observed": ones / counts,
                "low": low,
                "high": high,
                "off": (means[name] < low) | (means[name] > high),
            }
        )
        for name in means
    }
    out = pd.concat(parts, names=["column", "group"]).swaplevel()
    order = [(g, name) for g in counts.index for name in means]
    return out.loc[order]
