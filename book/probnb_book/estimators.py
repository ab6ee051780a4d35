"""Which estimate of the calibration error to trust: estimates beside the error that p tells.

``python -m probnb_book estimators`` makes the derived table ``estimators`` from stored runs.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from probnb.calibrators import CALIBRATORS, IsotonicCalibration, logits_from_probabilities
from probnb.metrics import difference, ece_debiased, ece_smooth, reliability_bins

from . import evidence
from .authors import keep
from .claims import face_runs
from .claims.statistics import exact_errors

ESTIMATORS = {
    "quantile": "ECE, 15 quantile bins",
    "uniform": "ECE, 15 equal bins",
    "debiased": "ECE, debiased",
    "smooth": "smooth ECE",
    "corp": "isotonic map, in sample",
    "isotonic": "isotonic map, out of fold",
    "beta": "beta map, out of fold",
    "quadratic": "quadratic map, out of fold",
}
"""The estimates and their names, those that read the same outcomes twice first."""

MAPS = ("isotonic", "beta", "quadratic")
"""Those of the calibrators that are fitted out of fold."""


def estimates(y, p_hat, seed=0):
    r"""Estimate the mean absolute and squared calibration error from outcomes.

    Parameters
    ----------
    y, p_hat : ndarray of shape (n,)
        Outcomes 0 and 1, predicted probabilities.
    seed : int, default=0
        Seed of the five folds.

    Returns
    -------
    dict of str to (float, float)
        By names of `ESTIMATORS`; a smooth ECE has no square (NaN).

    Notes
    -----
    A map g of the prediction that was fitted to other rows gives :math:`E\,\mathrm{sign}(g - \hat
    p)(y - \hat p)` and :math:`E[(y - \hat p)^2 - (y - g)^2]`, which never exceed the two errors,
    whatever g, and reach them where g is :math:`E(p \mid \hat p)` (Berta et al., 2026). In sample
    the same, or :math:`|g - \hat p|`, is the plug-in estimate: with bins the ECE.

    Examples
    --------
    >>> y, p_hat = np.tile([0, 1, 1, 1], 50), np.repeat([0.5], 200)
    >>> [round(v, 4) for v in estimates(y, p_hat)["quantile"]]
    [0.25, 0.0625]
    """
    logits = logits_from_probabilities(p_hat)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)

    def lower(g):
        gain = (y - p_hat) ** 2 - (y - g) ** 2
        return float(np.mean(np.sign(g - p_hat) * (y - p_hat))), float(np.mean(gain))

    equal = pd.Series(y - p_hat).groupby((p_hat * 15).astype(int).clip(max=14)).transform("mean")
    bins = reliability_bins(y, p_hat)
    noise = bins.mean_outcome * (1 - bins.mean_outcome) / np.maximum(bins.count - 1, 1)
    steps = IsotonicCalibration().fit(logits, y).predict_proba(logits)[:, 1]
    found = {
        "quantile": (bins.weight @ np.abs(bins.gap), bins.weight @ bins.gap**2),
        "uniform": (equal.abs().mean(), (equal**2).mean()),
        "debiased": (ece_debiased(y, p_hat), bins.weight @ (bins.gap**2 - noise)),
        "smooth": (ece_smooth(y, p_hat), np.nan),
        "corp": (np.mean(np.abs(steps - p_hat)), lower(steps)[1]),
    }
    for name in MAPS:
        g = cross_val_predict(CALIBRATORS[name](), logits, y, cv=folds, method="predict_proba")
        found[name] = lower(g[:, 1])
    return {name: tuple(map(float, pair)) for name, pair in found.items()}


def collect(folders):
    """Estimate the calibration error of every row of every stored run on photographs.

    Returns
    -------
    DataFrame
        One line a run and row: ``start`` (of the weights), ``scenario``, ``seed``, ``method``,
        ``exact`` and ``exact_squared``, and each of `ESTIMATORS` likewise; six digits.
    """
    lines = []
    for pretrained, line in face_runs(folders):
        test = evidence.tables(line)[1]
        facts = {"start": "features" if pretrained else "random weights"}
        facts |= {"scenario": line.task, "seed": line.seed}
        for method in evidence.methods_of(test):
            y, p, p_hat = (test[c].to_numpy(float) for c in ("y", "p", method))
            found = {"exact": exact_errors(p, p_hat), **estimates(y, p_hat)}
            absolute = {name: value for name, (value, _) in found.items()}
            squared = {f"{name}_squared": value for name, (_, value) in found.items()}
            lines.append({**facts, "method": method, **absolute, **squared})
    return pd.DataFrame(lines).round(6)


def misses(table):
    """Stack the estimates of `collect`, but for the overfitted network, whose error any can see.

    ``gap`` and ``square`` are estimates less exact errors, times 100; below 0 an estimate counts as
    0, but not in its ``value``.
    """
    rows = table[table["method"] != "ce_overfit"]
    return pd.concat(
        rows[["start", "scenario", "seed", "exact"]].assign(
            estimate=name,
            value=rows[name],
            gap=100 * (rows[name].clip(lower=0) - rows["exact"]),
            square=100 * (rows[f"{name}_squared"].clip(lower=0) - rows["exact_squared"]),
        )
        for name in ESTIMATORS
    )


def summary(table):
    """Judge every estimate: how far off, how often too high, and whether it ranks rows.

    Parameters
    ----------
    table : DataFrame
        From `collect`.

    Returns
    -------
    DataFrame
        By name of the estimate, times 100 but for the last: mean of the estimate ``less exact`` and
        of its absolute value, ``off``; ``squares off``, the latter for squared errors; ``too high,
        %`` of the rows; ``rank``, Spearman's correlation over the rows of a run. Each a
        `Difference` from 0 over draws of outcomes (a scenario and seed), from which all rows of
        both starts are averaged first.
    """
    long, draw = misses(table), ["estimate", "scenario", "seed"]
    gap, squares = long["gap"], {"squares off": long["square"].abs()}
    facts = {"less exact": gap, "off": gap.abs(), "too high, %": 100 * (gap > 0)} | squares
    runs = long.assign(**facts).groupby([*draw, "start"], sort=False)
    means = runs[list(facts)].mean()
    means["rank"] = runs[["value", "exact"]].corr("spearman").xs("value", level=-1)["exact"]
    return means.groupby(draw, sort=False).mean().groupby("estimate", sort=False).agg(difference)


def main(arguments=None):
    """Write the table and its record."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book estimators", description=__doc__)
    parser.add_argument("results", nargs="?", default="results", help="what is kept with the book")
    results = parser.parse_args(arguments).results
    keep(collect([results]), results, "estimators", "python -m probnb_book estimators")
