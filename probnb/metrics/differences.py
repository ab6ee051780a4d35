"""Is a different from b? One rule over rows, groups of rows and seeds, and its one formatter.

Beside it the intervals of a mean over rows or groups, of a share, of a distance from votes.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit  # Student's distribution
from scipy.stats import beta

from ..validation import (
    check_choice,
    check_number,
    check_probabilities,
    check_same_length,
    refuse_masked,
)
from .sample import FEWEST, check_groups, check_row_weights, weighted_mean
from .votes import check_votes

__all__ = ["Difference", "Estimate", "compare", "difference", "holm", "repeated_distance"]


@dataclass(frozen=True)
class Difference:
    """A difference of two methods, a less b, with what is not known of it; made by `difference`.

    Attributes
    ----------
    value : float
        Mean over seeds.
    low, high : float
        Interval; NaN where there are too few rows or groups for one.
    std : float
        Standard error of the value; NaN without an interval.
    p : float
        Two-sided p-value of no difference; NaN without an interval.
    seeds : int
        Trainings, each with weights, order and mostly outcomes of its own. An interval over one
        training is about its test rows and says nothing about the methods.
    units : int or None
        Test rows, or groups of them, that were resampled; None where seeds alone count.
    """

    value: float
    low: float
    high: float
    std: float
    p: float
    seeds: int
    units: int | None = None

    @property
    def resolved(self):
        """Whether the interval leaves out 0."""
        return bool(self.low > 0 or self.high < 0)

    def text(self, scale=100, digits=2):
        """Return such as ``+0.12 [-0.05, +0.30]``, times `scale`; small ones with more digits."""
        if np.isnan(self.value):
            return "not defined"  # AUC of one class, or infinity less infinity
        if 0 < abs(scale * self.value) < 0.5 * 10.0**-digits:
            digits += 2
        value, low, high = (f"{scale * v:+.{digits}f}" for v in (self.value, self.low, self.high))
        return value if np.isnan(self.low) else f"{value} [{low}, {high}]"


def difference(values, samples=None, units=None, shared=False, level=0.95):
    r"""Put an interval on a difference that was measured with one seed or several.

    Parameters
    ----------
    values : array-like of shape (seeds,)
        The difference of each seed, on its test rows as they are.
    samples : array-like of shape (replicates, seeds), optional
        The same on bootstrap resamples of the test rows, or of whole groups of them. Needed for
        one seed, and where seeds share their test rows: then each replicate must have drawn the
        same rows for all seeds.
    units : int, optional
        How many rows or groups were resampled; needed with `samples`.
    shared : bool, default=False
        Whether all seeds have the same test rows.
    level : float, default=0.95
        Coverage, in (0, 1).

    Returns
    -------
    Difference
        With one seed, :math:`\pm t_{G-1} s` where s is the bootstrap deviation (scaled by
        :math:`\sqrt{G / (G - 1)}`, which resampling G units leaves out). With test rows of each
        seed's own, Student's interval over the seeds' values: their spread holds the noise of rows
        already. With shared rows both at right angles, :math:`\sqrt{t_{G-1}^2 V_r + t_{S-1}^2
        V_s}`, where :math:`V_r` is the variance over resampled rows of the mean over seeds,
        and :math:`V_s` what seeds differ by beyond the noise that rows leave in each of them.

    Raises
    ------
    ValueError
        If `values` is empty, `samples` has another number of seeds, or `units` is missing.

    Examples
    --------
    >>> difference([-0.2, -0.1, -0.3]).text(scale=1)
    '-0.20 [-0.45, +0.05]'
    """
    check_number(level, "level", 0, 1, exclusive=True)
    refuse_masked(values, "values")
    values = np.atleast_1d(np.asarray(values, dtype=float))
    with np.errstate(invalid="ignore"):  # infinity less infinity
        seeds, mean = len(values), float(values.mean()) if len(values) else np.nan
    if values.ndim != 1 or not seeds:
        raise ValueError(f"values must hold one number for each seed; got shape {values.shape}.")
    if not np.isfinite(values).all():
        return Difference(mean, *[np.nan] * 4, seeds, units)
    parts, units = _variances(values, samples, units, shared)
    if parts is None:
        return Difference(mean, *[np.nan] * 4, seeds, units)

    def half(level):
        return np.sqrt(sum(stdtrit(df, (1 + level) / 2) ** 2 * v for v, df in parts))

    std, p = float(np.sqrt(sum(v for v, _ in parts))), _p_value(abs(mean), parts, half)
    return Difference(mean, mean - half(level), mean + half(level), std, p, seeds, units)


def _variances(values, samples, units, shared):
    """The variances of the mean and their degrees of freedom, or None where there can be none."""
    seeds = len(values)
    if seeds > 1 and not shared:
        return [(values.var(ddof=1) / seeds, seeds - 1)], None
    if samples is None or units is None:
        raise ValueError("samples and units must be given for one seed and for shared test rows.")
    refuse_masked(samples, "samples")
    samples = np.asarray(samples, dtype=float).reshape(len(samples), -1)
    if samples.shape[1] != seeds:
        raise ValueError(f"samples must have {seeds} columns, one a seed; got {samples.shape[1]}.")
    samples = samples[np.isfinite(samples).all(axis=1)]  # AUC of a resample of one class
    if units < FEWEST or len(samples) < 2:
        return None, units
    spread = units / (units - 1)
    rows = spread * samples.mean(axis=1).var(ddof=1)
    if seeds == 1:
        return [(rows, units - 1)], units
    each = spread * samples.var(axis=0, ddof=1).mean()  # of one seed's rows
    between = values.var(ddof=1) / seeds - (each - rows) / (seeds - 1)
    return [(rows, units - 1), (max(between, 0.0), seeds - 1)], units


def _p_value(distance, parts, half):
    """One less the level at which the interval ends at 0."""
    if len(parts) == 1 or not parts[1][0]:
        variance, df = parts[0]
        if not variance:
            return 0.0 if distance else 1.0
        return float(2 * stdtr(df, -distance / np.sqrt(variance)))
    if distance <= half(1e-12):
        return 1.0
    if distance >= half(1 - 1e-12):
        return 0.0
    return 1 - brentq(lambda level: half(level) - distance, 1e-12, 1 - 1e-12)


def compare(runs, a, b, metric, shared=False, level=0.95):
    """Compare two rows of the same table over one training or several.

    Parameters
    ----------
    runs : list of probnb.metrics.Bootstrap
        One a seed. For shared test rows all must come from the same rows in the same order with
        the same seed of the resamples.
    a, b : str
        Names of rows.
    metric : str
        Name of a metric.
    shared : bool, default=False
        Whether all seeds have the same test rows.
    level : float, default=0.95
        Coverage.

    Returns
    -------
    Difference
        Of a less b.
    """
    values, samples = [], []
    for run in runs:
        i, j = run.point.index.get_loc(a), run.point.index.get_loc(b)
        k = run.point.columns.get_loc(metric)
        with np.errstate(invalid="ignore"):  # infinity less infinity
            values.append(run.point.iat[i, k] - run.point.iat[j, k])
            samples.append(run.samples[:, i, k] - run.samples[:, j, k])
    alone = len(runs) > 1 and not shared
    if alone:
        return difference(values, level=level)
    units = min(run.units for run in runs)
    return difference(values, np.stack(samples, axis=1), units, shared, level)


def holm(p_values):
    """Correct p-values of differences that are looked at side by side, by Holm's (1979) rule.

    Parameters
    ----------
    p_values : array-like of shape (k,)
        Uncorrected; NaN stays NaN and does not count.

    Returns
    -------
    ndarray of shape (k,)
        Corrected: those at most alpha hold together with an error rate of alpha.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    refuse_masked(p_values, "p_values")
    p = pd.Series(np.asarray(p_values, dtype=float))
    if not p.dropna().between(0, 1).all():
        raise ValueError(f"p_values must be in [0, 1] or NaN; got {p.min():g} to {p.max():g}.")
    known = p.dropna().sort_values()
    steps = known * np.arange(len(known), 0, -1)
    return steps.cummax().clip(upper=1).reindex(p.index).to_numpy()


def clustered_mean(terms, weights=None, groups=None):
    """Return a mean over rows, its standard error over rows or groups, and Student's interval.

    Parameters
    ----------
    terms : ndarray of shape (n,)
        What is averaged.
    weights : ndarray of shape (n,), optional
        Weights above 0.
    groups : ndarray of shape (n,), optional
        What rows share.

    Returns
    -------
    value, std, low, high : float
        NaN but for the value where there are fewer than five rows or groups, or infinite terms.
    """
    share = np.full(len(terms), 1 / len(terms)) if weights is None else weights / weights.sum()
    with np.errstate(invalid="ignore"):  # infinity less infinity: no standard error
        value = float(share @ terms)
        deviation = share * (terms - value)
        if groups is not None:
            deviation = np.bincount(np.unique(groups, return_inverse=True)[1], deviation)
        units = len(deviation)
        if units < FEWEST:
            return value, np.nan, np.nan, np.nan
        std = float(np.sqrt(deviation @ deviation * units / (units - 1)))
    half = float(stdtrit(units - 1, 0.975)) * std
    return value, std, value - half, value + half


def proportion_interval(ones, count):
    """Clopper and Pearson's interval for a probability of which `ones` in `count` rows came true.

    Parameters
    ----------
    ones : array-like of shape (k,)
        Number of outcomes 1, each in [0, count].
    count : array-like of shape (k,)
        Number of rows, each at least 1; fractions (effective rows) are allowed.

    Returns
    -------
    low, high : ndarray of shape (k,)
        Ends of the intervals, in [0, 1], which cover in at least 95 % of cases: quantiles
        of Beta(ones, zeros + 1) and Beta(ones + 1, zeros).

    Examples
    --------
    >>> low, high = proportion_interval([0, 5], [5, 5])
    >>> low.round(3), high.round(3)
    (array([0.   , 0.478]), array([0.522, 1.   ]))
    """
    ones, count = np.atleast_1d(ones).astype(float), np.atleast_1d(count).astype(float)
    with np.errstate(invalid="ignore"):  # Beta(0, .) at the ends, which are known
        low = np.where(ones == 0, 0, beta.ppf(0.025, ones, count - ones + 1))
        high = np.where(ones == count, 1, beta.ppf(0.975, ones + 1, count - ones))
    return low, high


@dataclass(frozen=True)
class Estimate:
    """A mean over rows with what it does not know; made by `repeated_distance`.

    Attributes
    ----------
    value : float
        The estimate.
    std : float
        Its standard error, from the spread of rows (of groups, where rows share one).
    low, high : float
        Ends of the interval: Student's, widened by the bias on either side so that it covers.
    bias : float
        At most this much of the value is bias, in either direction; 0 where it is unbiased.
    """

    value: float
    std: float
    low: float
    high: float
    bias: float = 0.0


def repeated_distance(ones, counts, y_prob, metric="mse_p", weights=None, groups=None):
    r"""Estimate MSE_p or KL_p from repeated outcomes.

    Parameters
    ----------
    ones : array-like of shape (n,)
        Votes for outcome 1, k.
    counts : array-like of shape (n,)
        All votes of the row, at least 2.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1, made without these votes.
    metric : {"mse_p", "kl_p"}, default="mse_p"
        The distance; the second is KL(p || p_hat), in nats.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    groups : array-like of shape (n,), optional
        What rows share, for example a patient; the standard error then is that of whole groups.

    Returns
    -------
    Estimate
        The distance. It may be negative where it is near 0: an estimate that never were would
        not be unbiased. With fewer than five rows or groups it has no interval (NaN).

    Notes
    -----
    With :math:`q = k / n`, :math:`E(\hat p - q)^2 = (\hat p - p)^2 + p(1-p)/n` and
    :math:`E\,q(1-q) = p(1-p)(n-1)/n`, so that the mean of :math:`(\hat p - q)^2 - q(1-q)/(n-1)` is
    unbiased for MSE_p whatever n is in each row. KL_p is off by at most 0.13 nats from 2 votes a
    row, 0.012 from 5, 0.004 from 9 and 0.0008 from 50; differences of it between predictions, by
    `probnb.metrics.bootstrap`, are unbiased.

    Examples
    --------
    >>> estimate = repeated_distance([1, 5, 9, 6], [10, 10, 10, 10], [0.1, 0.5, 0.9, 0.9])
    >>> round(estimate.value, 4), estimate.bias
    (0.0039, 0.0)
    """
    check_choice(metric, ("mse_p", "kl_p"), "metric")
    votes, p_hat = check_votes(ones, counts), check_probabilities(y_prob)
    check_same_length(votes.ones, p_hat, ("ones", "y_prob"))
    kept, weights = check_row_weights(weights, len(p_hat))
    groups = check_groups(groups, len(p_hat), kept)
    if kept is not None:
        votes, p_hat = votes[kept], p_hat[kept]
    terms = votes.squared_error(p_hat) if metric == "mse_p" else votes.divergence(p_hat)
    value, std, low, high = clustered_mean(terms, weights, groups)
    bias = 0.0 if metric == "mse_p" else weighted_mean(votes.bias(), weights)
    return Estimate(value, std, low - bias, high + bias, bias)
