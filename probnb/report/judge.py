"""What a checked table of predictions shows: one table of numbers for each question."""

import contextlib
import itertools
import warnings

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning

from ..calibrators import CALIBRATORS, PlattScaling
from ..calibrators.base import cross_fit, cross_fit_folds
from ..metrics.binning import BINS, ece, reliability_bins
from ..metrics.differences import clustered_mean, compare, proportion_interval, repeated_distance
from ..metrics.registry import nll_rows
from ..metrics.resampling import bootstrap
from ..metrics.sample import FEWEST
from ..validation import check_choice, check_integer
from .gain_parts import gain_parts, log_odds

BUDGET = 2e8
"""Rows x methods x replicates that a report resamples: about ten seconds of one core."""

FIT_ROWS = 100_000
"""Rows to which a calibrator is fitted at most: its map has few degrees of freedom."""

USUAL = ("temperature", "platt", "beta", "isotonic", "venn_abers")
"""Calibrators that a report tries, the simplest first."""

LARGEST = 20
"""Groups that a report shows at most."""

FLAT = 1e-6
"""Predictions whose log-odds differ by less count as all the same."""

ENOUGH = 5
"""Variance of a bin's number of outcomes from which on its square is taken for chi-square."""

DOUBT = 0.01
"""A p-value below this is called a departure, and below it a column is called inverted."""


def resample(table, replicates=1000, seed=0):
    """Bootstrap every metric of every column on the same rows, or whole clusters.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    replicates : int, default=1000
        Number of resamples; lowered, to 100 at least, where rows x columns x replicates would
        exceed 2e8.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    probnb.metrics.resampling.Bootstrap
        Metrics and their resamples.
    """
    if table.sample is not table:
        return table.bootstrap(replicates=replicates, seed=seed)
    affordable = max(100, int(BUDGET / table.predictions.size))
    replicates = min(check_integer(replicates, "replicates", minimum=2), affordable)
    about = {"p": table.p, "groups": table.cluster, "weights": table.weight}
    how = {"replicates": replicates, "seed": seed, "progress": False}
    return bootstrap(table.y, table.predictions, **about, **how)


def paired_table(boot, reference=None):
    """Differences between prediction columns, by the rule of `probnb.metrics.differences`.

    Parameters
    ----------
    boot : probnb.metrics.resampling.Bootstrap
        From `resample`.
    reference : str, optional
        Compare each other column with this one; by default all pairs.

    Returns
    -------
    DataFrame
        One row per pair and metric (index levels ``a``, ``b``, ``metric``): ``difference`` (a
        less b), ``low``, ``high``, ``p``, ``distinct`` (whether the interval leaves out 0) and
        ``text``.
    """
    names = list(boot.point.index)
    pairs = itertools.combinations(names, 2)
    if reference is not None:
        check_choice(reference, names, "reference")
        pairs = [(name, reference) for name in names if name != reference]
    rows = {}
    for (a, b), metric in itertools.product(pairs, boot.point.columns):
        gap = compare([boot], a, b, metric)
        rows[a, b, metric] = gap.value, gap.low, gap.high, gap.p, gap.resolved, gap.text(1, 4)
    return table_of(rows, "a b metric", "difference low high p distinct text")


def table_of(rows, names, columns):
    """Make a table of rows by their names, an empty one where there are none."""
    if not rows:
        return pd.DataFrame()
    index = pd.MultiIndex.from_tuples(rows, names=names.split())
    return pd.DataFrame([*rows.values()], index, columns.split())


def distance_table(table):
    """Distance of every column from the true probabilities, by repeated outcomes.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions with repeated outcomes.

    Returns
    -------
    DataFrame
        One row per column: ``mse_p`` and ``kl_p`` by `probnb.metrics.repeated_distance`, each with
        ``_std``, ``_low``, ``_high`` and ``_bias``, at most how much of it is bias.
    """
    table = table.sample
    rows = {name: {} for name in table.predictions if table.ones is not None}
    about = {"weights": table.weight, "groups": table.cluster}
    for name, metric in itertools.product(rows, ("mse_p", "kl_p")):
        p_hat = table.predictions[name]
        found = repeated_distance(table.ones, table.counts, p_hat, metric, **about)
        parts = {f"{metric}_{part}": value for part, value in vars(found).items()}
        rows[name] |= {metric: parts.pop(f"{metric}_value")} | parts
    return pd.DataFrame.from_dict(rows, orient="index")


def decomposition_table(table, bins=BINS):
    """Parts of the Brier score of every column.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    bins : int, default=15
        Number of quantile bins, at most as many as rows.

    Returns
    -------
    DataFrame
        One row per column: ``brier = calibration + refinement + within`` (the terms within bins)
        and ``refinement = uncertainty - resolution``.
    """
    if check_integer(bins, "bins") > table.size:
        raise ValueError(f"bins must be at most the number of rows, {table.size}; got {bins}.")
    rows = {}
    for name in table.predictions:
        parts = table.brier_decomposition(name, bins)
        within = parts.within_variance - 2 * parts.within_covariance
        rows[name] = vars(parts) | {"brier": parts.total, "within": within}
    columns = ["brier", "calibration", "refinement", "within", "uncertainty", "resolution"]
    return pd.DataFrame.from_dict(rows, orient="index")[columns]


def calibration_table(table):
    r"""How each column is off, and whether chance explains it.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.

    Returns
    -------
    DataFrame
        One row per column: its ``order``, how it orders the outcomes ("ordinary", "constant",
        "separated" or "inverted"); ``bias``, mean prediction less mean outcome, with its
        ``bias_p``; ``slope`` of a logistic regression on the predictions' log-odds (below 1: too
        extreme), with ``slope_low`` and ``slope_high``, NaN where the order leaves no finite slope;
        ``bins_p``, for calibration in all bins; and ``ece``, beside ``ece_null``, what calibrated
        predictions would have on average.

    Notes
    -----
    If the predictions are the probabilities, :math:`\sum (y_i - \hat p_i)` has the variance
    :math:`\sum \hat p_i (1 - \hat p_i)`, in a bin as in the whole: ``bias_p`` is two-sided
    normal, ``bins_p`` is chi-square for the sum of the squares so divided over 15 quantile bins
    (Hosmer and Lemeshow's statistic, for predictions not fitted to these rows), neighbours put
    together up to a variance of 5 each, and ``ece_null`` is the mean over the 15 bins of
    :math:`\sqrt{2/\pi}` standard deviations. The slope's interval is Wald's. "Inverted" is an AUC
    below one half with p < 0.01. With weights, sums are weighted and variances have the squares of
    the weights. With clusters, bias, slope and AUC have the errors of sums over clusters, the other
    two are NaN; so is all where there are fewer than 5.
    """
    rows, out = table.sample, {}
    for name, p_hat in rows.predictions.items():
        s, w = log_odds(p_hat), rows.mass
        order, perfect = _order(rows, s)
        slope, error = (np.nan, np.nan) if perfect or order == "constant" else _slope(rows, s, w)
        (bias, std), ece, *sums = _off(rows, p_hat.to_numpy()) if rows is table else table.off(name)
        out[name] = {"order": order, "bias": bias, "slope": slope, "ece": ece}
        out[name] |= {"slope_low": slope - 1.96 * error, "slope_high": slope + 1.96 * error}
        out[name] |= departures(*sums)
        if table.cluster is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                p = 2 * student.sf(np.abs(np.divide(bias, std)), table.units - 1)
            out[name] |= {"bias_p": p, "bins_p": np.nan, "ece_null": np.nan}
        if rows is not table and not _holds(table, name, order):
            out[name]["order"] = "ordinary"
    return pd.DataFrame.from_dict(out, orient="index")


def _off(table, p_hat):
    """Bias and its error, ECE, and sums by bin: misses, variances, all weight, that of a row."""
    y, w = table.y, table.mass
    index = reliability_bins(y, p_hat, weights=w).assign(p_hat)
    misses, spread = w * (y - p_hat), w**2 * p_hat * (1 - p_hat)
    sums = np.bincount(index, misses), np.bincount(index, spread), w.sum(), w @ w / w.sum()
    return mean_of(table, p_hat - y)[:2], ece(y, p_hat, weights=w), *sums


def departures(misses, spread, total, unit=1.0):
    """What chance says of outcomes less predictions, from their sums and variances by bin.

    Parameters
    ----------
    misses, spread : ndarray of shape (K,)
        Weighted sums of ``y - p_hat`` by bin, and their variances if the predictions are right.
    total : float
        Weight of all rows.
    unit : float, default=1
        Weight of a row, in the mean over their weight.

    Returns
    -------
    dict of str to float
        ``bias_p``, ``bins_p`` and ``ece_null`` of `calibration_table`.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.nan_to_num(misses.sum() / np.sqrt(spread.sum()))
        impossible = (misses != 0) & (spread == 0)
        gaps, spreads = _merge(misses, spread, ENOUGH * unit**2)
        parts = np.where(gaps == 0, 0, gaps**2 / spreads)  # certain, and right
    return {
        "bias_p": 2 * norm.sf(abs(z)),
        "bins_p": 0.0 if impossible.any() else chi2.sf(parts.sum(), len(parts)),
        "ece_null": np.sqrt(2 / np.pi * spread).sum() / total,
    }


def _merge(misses, spread, enough):
    """Put neighbouring bins together until the variance of each is enough for a chi-square."""
    starts, held = [0], 0.0
    for k, variance in enumerate(spread):
        if held >= enough:
            starts.append(k)
            held = 0.0
        held += variance
    starts = starts[:-1] if held < enough and len(starts) > 1 else starts
    return np.add.reduceat(misses, starts), np.add.reduceat(spread, starts)


def mean_of(table, terms):
    """Mean of one term a row, its error and interval, over rows or clusters."""
    return clustered_mean(np.asarray(terms), table.weight, table.cluster)


def _order(table, s):
    """How a column orders the outcomes, and whether so well that no finite slope is best."""
    ones, zeros = s[table.y == 1], s[table.y == 0]
    if not len(ones) or not len(zeros):  # of a sample of rows with few of one outcome
        return "ordinary", True
    if np.ptp(s) < FLAT:
        return "constant", False
    if zeros.max() < ones.min():
        return "separated", True
    perfect = zeros.max() == ones.min() or ones.max() <= zeros.min()
    return ("inverted" if _below_half(table, s) < DOUBT else "ordinary"), perfect


def _holds(data, name, order):
    """Whether all rows of a data set have the order that its sample has."""
    if order == "constant":
        return np.ptp(log_odds(np.array(data.ends[name]))) < FLAT
    return order != "separated" or data.column(name).auc == 1


def _below_half(table, s):
    """One-sided p-value of an AUC below one half.

    Its error is that of the mean of DeLong's terms, over rows or clusters, and at least that of an
    AUC of one half of so many.
    """
    y, w = table.y, table.mass
    place, share = np.unique(s, return_inverse=True)[1], np.average(y, weights=w)
    held = np.stack([np.bincount(place, w * (1 - y)), np.bincount(place, w * y)])
    lower = (held.cumsum(axis=1) - held / 2) / held.sum(axis=1, keepdims=True)
    right = np.where(y == 1, lower[0, place], 1 - lower[1, place])  # of pairs with the row
    auc = np.average(right, weights=w * y)
    _, error, _, _ = mean_of(table, (right - auc) / np.where(y == 1, share, 1 - share))
    least = np.sqrt((table.units + 1) / (12 * share * (1 - share))) / table.units
    return student.cdf((auc - 0.5) / np.maximum(error, least), table.units - 1)


def _slope(table, s, w):
    """Slope of the outcomes' log-odds on the predictions', and its standard error."""
    fit = PlattScaling().fit(s, table.y, sample_weight=w)
    q = fit.predict_proba(s)[:, 1]
    variance = w * q * (1 - q)
    centred = s - np.average(s, weights=variance + np.finfo(float).tiny)
    information = variance @ centred**2
    if table.cluster is None:
        error = np.sqrt((w * variance) @ centred**2)
    else:
        scores = np.bincount(pd.factorize(table.cluster)[0], w * (table.y - q) * centred)
        error = np.sqrt(scores @ scores) if len(scores) >= FEWEST else np.nan
    return fit.coef_[0, 0], error / information if information > 0 else np.inf


def group_table(table):
    """Calibration of each group: what was predicted, what came true.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions with groups.

    Returns
    -------
    DataFrame
        One row per group and column (index levels ``group``, ``column``), the 20 largest groups:
        ``rows``, ``predicted`` and ``observed`` means, an interval ``low``, ``high`` of the latter,
        and ``off``, whether that leaves out the mean prediction. The interval is Clopper and
        Pearson's, with weights that of Kish's effective number of rows; with clusters Student's.
    """
    out = {}
    for group, sums in table.by_group(LARGEST).items() if table.groups else ():
        total, mass = sums.sum(), sums["mass"].to_numpy()
        observed, _, low, high = clustered_mean(sums["ones"].to_numpy() / mass, mass)
        if table.cluster is None:
            effective = max(total["mass"] ** 2 / total["ww"], 1)
            ones = np.clip(observed, 0, 1) * effective
            low, high = np.ravel(proportion_interval(ones, effective))
        for k, name in enumerate(table.sample.predictions):
            predicted = total[f"p{k}"] / total["mass"]
            off = bool(predicted < low or predicted > high)
            out[group, name] = int(total["rows"]), predicted, observed, low, high, off
    return table_of(out, "group column", "rows predicted observed low high off")


def calibration_gains(table, calibrators=USUAL, folds=5, seed=0):
    """What post-hoc calibration would gain, measured on rows that did not fit it.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    calibrators : sequence of str, default=USUAL
        Names from `probnb.calibrators.CALIBRATORS`.
    folds : int, default=5
        Folds of the cross-fit, at most as many as rows of the rarer outcome; clusters stay whole.
    seed : int, default=0
        Seed of the folds, and of the 100,000 rows that are fitted where there are more.

    Returns
    -------
    DataFrame
        One row per column and calibrator (index levels ``column``, ``calibrator``): ``brier``
        and ``nll`` afterwards; ``brier_gain`` (before less after; positive is better) with
        ``brier_low`` and ``brier_high``, and the same for ``nll``. Empty where a fold would lack
        an outcome.
    """
    for name in calibrators:
        check_choice(name, CALIBRATORS, "calibrators")
    check_integer(seed, "seed", minimum=0)
    table = table.sample
    try:
        splits = cross_fit_folds(table.y, table.cluster, folds, seed)
    except ValueError:
        return pd.DataFrame()
    rng, rows, y = np.random.default_rng(seed), {}, table.y
    splits = [(rng.permutation(train)[:FIT_ROWS], test) for train, test in splits]
    for (column, p_hat), name in itertools.product(table.predictions.items(), calibrators):
        before = p_hat.to_numpy()
        s = log_odds(before)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            after = cross_fit(CALIBRATORS[name](), s, y, table.weight, splits)
        rows[column, name] = []
        for of in (lambda p: (p - y) ** 2, lambda p: nll_rows(y, p)):
            gain, _, *ends = mean_of(table, of(before) - of(after))
            rows[column, name] += mean_of(table, of(after))[0], gain, *ends
    columns = " ".join(f"{m} {m}_gain {m}_low {m}_high" for m in ("brier", "nll"))
    return table_of(rows, "column calibrator", columns)


def gain_parts_table(table, reference=None, seed=0):
    """Where the difference of each column from one of them comes from, in the Brier score.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    reference : str, optional
        The column to compare with; by default that of the lowest Brier score.
    seed : int, default=0
        Seed of the folds, and of the 100,000 rows that are looked at where there are more.

    Returns
    -------
    DataFrame
        From `probnb.report.gain_parts`, index levels ``column`` and ``part``: what `reference`
        has the lower score by. Empty where a fold would lack an outcome or there is one column.
    """
    table = table.sample
    scores = {name: mean_of(table, (q - table.y) ** 2)[0] for name, q in table.predictions.items()}
    best = min(scores, key=scores.get) if reference is None else reference
    check_integer(seed, "seed", minimum=0)
    rows = np.random.default_rng(seed).permutation(table.size)[:FIT_ROWS]
    rows = np.sort(rows)  # with as many rows or fewer, all as they are
    weight, cluster = (None if v is None else v[rows] for v in (table.weight, table.cluster))
    about, parts = {"weights": weight, "groups": cluster, "seed": seed}, {}
    y, drawn = table.y[rows], table.predictions.iloc[rows]
    with contextlib.suppress(ValueError):  # a fold without an outcome, or nothing to join
        for name in [n for n in scores if n != best]:
            parts[name] = gain_parts(y, drawn[name], drawn[best], **about).loc["brier"]
        return pd.concat(parts, names=["column"])
    return pd.DataFrame()
