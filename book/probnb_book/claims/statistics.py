"""Statistics that questions about claims ask for: of a table, of a training, of predictions."""

from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import logit
from scipy.stats import rankdata
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from probnb.calibrators import PlattScaling
from probnb.metrics import METRICS, brier_decomposition

from .. import evidence
from ..published import published

ROWS = [m for m in dict.fromkeys(published(table=1)["method"]) if m != "resampled"]
CAPE = ["cape_bin", "cape_kernel"]
OTHERS = [m for m in ROWS if m not in CAPE]


def _rows(table, *metrics):
    """The paper's rows that have all of some metrics."""
    rows = table[table.index.isin(["resampled", *ROWS])].reindex(columns=list(metrics))
    return rows.dropna()


def _correlation(table, x, y, method="pearson"):
    rows = _rows(table, x, y)
    if len(rows) > 2 and rows[x].nunique() == 1:
        return 0.0  # what is the same for all rows follows nothing
    return rows[x].corr(rows[y], method) if len(rows) > 2 else np.nan


def _lead(table, target, rival):
    other = _correlation(table, target, rival)
    return _correlation(table, target, "brier") - (abs(other) if rival == "auc" else other)


def _alike(table, x, y):
    rows = _rows(table, x, y)
    pairs = [sorted(pair) for pair in combinations(zip(rows[y], rows[x]), 2)]
    same = [a[1] < b[1] for a, b in pairs if b[0] > 1.1 * a[0]]
    return np.mean(same) if same else np.nan


def _improved(table, b, metric, share):
    rest = table[metric].reindex(OTHERS).drop("ce").dropna()
    return np.mean(rest < (1 - float(share)) * table.loc[b, metric]) if len(rest) > 2 else np.nan


def _place(table, row, metric):
    return _rows(table, metric)[metric].drop("resampled", errors="ignore").rank(method="min")[row]


TABLE = {
    "gap": ("Difference", lambda table, a, b, m: table.loc[a, m] - table.loc[b, m]),
    "ratio": ("Multiple", lambda table, a, b, m: table.loc[a, m] / table.loc[b, m]),
    "correlation": ("Pearson's correlation of two metrics over rows", _correlation),
    "rank": (
        "Spearman's correlation of two metrics over rows",
        lambda table, x, y: _correlation(table, x, y, "spearman"),
    ),
    "lead": (
        "How much closer Brier follows a target than another metric, by Pearson's correlation",
        _lead,
    ),
    "alike": ("Share of pairs of rows, clearly apart by y, that x puts in the same order", _alike),
    "improved": ("Share of other rows that are below b's by more than a share of it", _improved),
    "place": ("Place of a row among the paper's rows, 1 being the lowest", _place),
    "spread": (
        "Highest value as a multiple of the lowest",
        lambda table, m: _rows(table, m)[m].max() / _rows(table, m)[m].min(),
    ),
}
"""Statistics of a table with a column a metric, one's own or in print: in words, and how."""

EPOCHS = {
    "last": ("Value of the last epoch", lambda v, kept: v.iloc[-1]),
    "change": ("Last epoch less the start of a fine-tuning", lambda v, kept: v.iloc[-1] - v[0]),
    "growth": (
        "Last epoch as a multiple of the start of a fine-tuning",
        lambda v, kept: v.iloc[-1] / v[0],
    ),
    "fell": ("Kept epoch as a multiple of the first", lambda v, kept: v[kept] / v[1]),
}
"""Statistics of the epochs of the training that a row reads; of all trainings of a fine-tuning at a
rate that is named, whether validation kept them or not."""


def exact_errors(p, p_hat):
    r"""Return the mean absolute and squared calibration error, from true probabilities.

    Parameters
    ----------
    p, p_hat : ndarray of shape (n,)
        True and predicted probabilities.

    Returns
    -------
    (float, float)
        Means over the rows of :math:`|d|` and :math:`d^2`, with :math:`d = E(p \mid \hat p) - \hat
        p`.

    Notes
    -----
    Outcomes add no noise, but rows of one prediction differ in p, so that d has to be smoothed: a
    ridge regression on ten cubic splines of the rank of the prediction, its penalty chosen by
    leaving out one row. At 2,329 rows whose p is spread by 0.14 about its expectation, the first
    error is on average within 0.003 of closed forms; smoothing gives a calibrated model 0.002.

    Examples
    --------
    >>> p_hat = np.linspace(0.1, 0.8, 500)
    >>> [round(float(v), 4) for v in exact_errors(p_hat + 0.1, p_hat)]
    [0.1, 0.01]
    """
    rank = rankdata(p_hat)[:, None] / len(p_hat)
    fit = make_pipeline(SplineTransformer(8), RidgeCV(np.logspace(-3, 4, 8)))
    d = fit.fit(rank, p - p_hat).predict(rank)
    return float(np.mean(np.abs(d))), float(np.mean(d**2))


def true_slope(p, p_hat):
    """Return the slope of the true log-odds on the predicted: below 1, these are too extreme."""
    logits, both = np.tile(logit(p_hat), 2), np.r_[np.ones(len(p)), np.zeros(len(p))]
    fitted = PlattScaling().fit(logits, both, sample_weight=np.r_[p, 1 - p] + 1e-12)
    return fitted.coef_[0, 0]


TEST = {
    "near_edges": (
        "Share of predictions near 0 or 1",
        lambda test, row: np.mean(np.abs(test[row] - 0.5) > 0.45),
    ),
    "exact_error": (
        "Mean distance of predictions from the true probability of their like",
        lambda test, row: exact_errors(test["p"], test[row])[0],
    ),
    "true_slope": (
        "Slope of the true log-odds on the predicted ones",
        lambda test, row: true_slope(test["p"].to_numpy(), test[row].to_numpy()),
    ),
}
"""Statistics of predictions on test rows."""


def of_table(table, name, *arguments):
    """A statistic of a table; NaN where that has no such row or metric."""
    try:
        return float(TABLE[name][1](table, *arguments))
    except KeyError:
        return np.nan


def of_run(line, name, *arguments):
    """Compute a statistic of a stored run; NaN where it lacks what is asked for."""
    if name in TABLE:
        return of_table(_table(line), name, *arguments)
    results, test = evidence.tables(line)
    if name in TEST:
        return TEST[name][1](test, arguments[0]) if arguments[0] in test else np.nan
    column, row, *rate = arguments
    fits = results.chosen[results.chosen["method"] == row]
    fits = fits[fits["finetune_learning_rate"] == float(rate[0]) if rate else fits["chosen"]]
    epochs = results.epochs.set_index("epoch").groupby("fit")
    found = [_of_epochs(epochs.get_group(fit), name, column) for fit in fits["fit"]]
    return np.mean(found) if found else np.nan


def _of_epochs(epochs, name, column):
    values = epochs[column].sort_index()
    started = name not in ("change", "growth") or values.index[0] == 0
    return EPOCHS[name][1](values, epochs["val_ce"].idxmin()) if started else np.nan


@lru_cache(maxsize=64)
def _table(line):
    """Every metric of every row of a run."""
    _, test = evidence.tables(line)
    table = pd.DataFrame({metric: evidence.values(line, metric) for metric in METRICS})
    for row in table.index.intersection(test.columns):
        table.loc[row, "accuracy"] = np.mean((test[row] > 0.5) == test["y"])
        table.loc[row, "refinement"] = brier_decomposition(test["y"], test[row], 15).refinement
    return table
