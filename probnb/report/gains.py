"""What post-hoc calibration would gain on a table of predictions, by cross-fitting."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..calibrators import CALIBRATORS, logits_from_probabilities
from ..metrics.scores import nll_rows
from ..validation import check_choice, check_integer

__all__ = ["calibration_gains"]

FIT_ROWS = 100_000
"""Rows to which a calibrator is fitted at most: its map has few degrees of freedom."""

_CALIBRATORS = ("temperature", "platt", "beta", "isotonic")


def calibration_gains(table, calibrators=_CALIBRATORS, folds=5, seed=0, level=0.95):
    r"""What post-hoc calibration would gain, measured on rows that did not fit it.

    Parameters
    ----------
    table : PredictionTable
        Checked predictions.
    calibrators : sequence of str, default=("temperature", "platt", "beta", "isotonic")
        Names from `probnb.calibrators.CALIBRATORS`.
    folds : int, default=5
        Folds of the cross-fit, at most as many as rows of the rarer outcome; clusters are kept
        whole.
    seed : int, default=0
        Seed of the folds, and of the 100,000 rows that are fitted where there are more.
    level : float, default=0.95
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    DataFrame
        One row per column and calibrator (index levels ``column``, ``calibrator``): ``brier``
        and ``nll`` afterwards; ``brier_gain`` (before less after; positive is better) with
        ``brier_low`` and ``brier_high``, and the same for ``nll``. Empty where a fold would lack
        an outcome.

    Notes
    -----
    Gains are means over rows (or sums over clusters), whose intervals are normal:
    :math:`\bar d \pm z\, s_d / \sqrt n`; with weights, fits and means are weighted.
    """
    for name in calibrators:
        check_choice(name, CALIBRATORS, "calibrators")
    check_integer(folds, "folds", 2)
    splits = _splits(table, folds, seed)
    rows, weight = {}, table.weight
    for column, p_hat in table.predictions.items() if splits else ():
        p_hat = p_hat.to_numpy()
        s = np.diff(logits_from_probabilities(p_hat), axis=1)[:, 0]
        for name in calibrators:
            after = np.empty(len(s))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                for fit, test in splits:
                    weighted = {} if weight is None else {"sample_weight": weight[fit]}
                    fitted = CALIBRATORS[name]().fit(s[fit], table.y[fit], **weighted)
                    after[test] = fitted.predict_proba(s[test])[:, 1]
            rows[column, name] = _gain(table, p_hat, after, level)
    index = pd.MultiIndex.from_tuples(rows, names=["column", "calibrator"]) if rows else None
    return pd.DataFrame(list(rows.values()), index=index)


def _splits(table, folds, seed):
    """Rows to fit and rows to judge, fold by fold; none where an outcome is too rare."""
    folds = min(folds, int(min(table.y.sum(), (1 - table.y).sum())))
    if table.cluster is not None:
        folds = min(folds, table.cluster.nunique())
    if folds < 2:
        return []
    kind = StratifiedKFold if table.cluster is None else StratifiedGroupKFold
    split = kind(folds, shuffle=True, random_state=seed)
    rng = np.random.default_rng(seed)
    out = []
    for train, test in split.split(table.y, table.y, table.cluster):
        if len(train) > FIT_ROWS:
            train = rng.choice(train, FIT_ROWS, replace=False)
        out.append((train, test))
    return out if all(np.ptp(table.y[train]) > 0 for train, _ in out) else []


def _gain(table, before, after, level):
    y, z, out = table.y, norm.ppf((1 + level) / 2), {}
    w = np.ones(len(y)) if table.weight is None else table.weight
    for metric, rows in (("brier", lambda p: (p - y) ** 2), ("nll", lambda p: nll_rows(y, p))):
        gained = rows(before) - rows(after)
        mean = np.average(gained, weights=w)
        deviation = w * (gained - mean)
        if table.cluster is not None:
            deviation = pd.Series(deviation).groupby(table.cluster.to_numpy()).sum().to_numpy()
        half = z * np.sqrt((deviation**2).sum()) / w.sum()
        out |= {
            metric: np.average(rows(after), weights=w),
            f"{metric}_gain": mean,
            f"{metric}_low": mean - half,
            f"{metric}_high": mean + half,
        }
    return out
