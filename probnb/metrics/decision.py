"""Decisions by probability: what acting at a threshold is worth, beside acting always or never."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from ..validation import check_number, check_numbers
from .differences import compare
from .registry import Metric
from .resampling import bootstrap
from .sample import check_sample

ALL, NONE = "treat all", "treat none"


def net_benefit(y_true, y_prob, threshold, weights=None):
    r"""Net benefit of acting on every row whose probability is at least a threshold.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    threshold : float
        In (0, 1): who acts from t on takes one missed outcome for as bad as (1 - t) / t actions in
        vain.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        True positives a row less what false ones cost, in units of true positives; never above the
        share of outcomes 1. Acting never has 0.

    Notes
    -----
    Vickers and Elkin (2006), "Decision curve analysis":
    :math:`\frac{TP}{n} - \frac{FP}{n} \frac{t}{1 - t}`.

    Examples
    --------
    >>> round(net_benefit([1, 1, 0, 0, 0], [0.9, 0.3, 0.4, 0.2, 0.1], 0.25), 4)
    0.3333
    """
    check_number(threshold, "threshold", 0, 1, exclusive=True)
    sample = check_sample(y_true, y_prob, weights)
    return sample.mean(_rows(sample, threshold))


def _rows(sample, threshold):
    lost = (1 - sample.y) * threshold / (1 - threshold)
    return np.where(sample.p_hat >= threshold, sample.y - lost, 0.0)


def decision_curve(
    y_true, predictions, thresholds, weights=None, groups=None, replicates=1000, seed=0
):
    """Net benefit of several columns at several thresholds, beside acting always and never.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    predictions : mapping of str to array-like of shape (n,), or DataFrame
        Predicted probabilities of outcome 1, one entry or column per method.
    thresholds : float, or sequence of float
        Each in (0, 1).
    weights, groups : array-like of shape (n,), optional
        Weight of each row; what rows share, which is resampled as a whole.
    replicates : int, default=1000
        Number of resamples, the same for all methods and thresholds.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    DataFrame
        One row per threshold and method (index levels of these names), the last two "treat all"
        and "treat none": ``benefit`` with its 95 % interval ``low``, ``high``, and the ``gain``
        over the better of these two, with ``gain_low``, ``gain_high``.

    Raises
    ------
    ValueError
        If a threshold is out of range, a method has the name of one of these two, or rows are
        invalid (see `probnb.metrics.bootstrap`).

    Examples
    --------
    >>> y, p = [0, 0, 0, 1, 1] * 20, [0.1, 0.2, 0.4, 0.3, 0.9] * 20
    >>> curve = decision_curve(y, {"model": p}, 0.25, replicates=50)
    >>> curve["benefit"].droplevel("threshold").round(3).to_dict()
    {'model': 0.333, 'treat all': 0.2, 'treat none': 0.0}
    """
    plain = {ALL: np.ones(len(y_true)), NONE: np.zeros(len(y_true))}
    if clash := [name for name in plain if name in predictions]:
        raise ValueError(f"predictions must not be called {clash[0]!r}, which is what they face.")
    rows = {}
    for t in check_numbers(thresholds, "thresholds", 0, 1, exclusive=True):
        of, rows_of = (partial(f, threshold=t) for f in (net_benefit, _rows))
        boot = bootstrap(
            y_true, {**predictions, **plain}, replicates=replicates, seed=seed, groups=groups,
            metrics={"benefit": Metric(of, "net benefit", rows_of)}, weights=weights, progress=False,
        )  # fmt: skip
        ends = [end["benefit"] for end in boot.interval()]
        best = boot.point.loc[[*plain], "benefit"].idxmax()
        for name, benefit in boot.point["benefit"].items():
            gain = compare([boot], name, best, "benefit")
            interval = [end[name] for end in ends]
            rows[t, name] = benefit, *interval, gain.value, gain.low, gain.high
    columns = ["benefit", "low", "high", "gain", "gain_low", "gain_high"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.set_axis(pd.MultiIndex.from_tuples(rows, names=["threshold", "method"]))
