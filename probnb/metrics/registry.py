"""The metrics as data: what each is called, what it needs, and how to compute and resample it.

`METRICS` is the one list of them. Evaluation, bootstrap, tables and figures read it; a metric that
is added to it appears in all of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import binning, scores
from .sample import check_sample

__all__ = ["METRICS", "Metric", "evaluate"]


@dataclass(frozen=True)
class Metric:
    """One way to judge predictions.

    Parameters
    ----------
    function : callable
        What users call: ``function(y_true, y_prob, weights=None)``, or ``function(p, p_hat,
        weights=None)`` if the metric needs the truth. It alone suffices; the bootstrap then calls
        it once a resample.
    label : str
        Name in tables and figures.
    rows : callable, optional
        If the metric is a mean over rows: its term of each row, shape (n,), from a checked
        `probnb.metrics.sample.Sample`. Its bootstrap is then a product of matrices.
    ranked : callable, optional
        If the metric depends on the order of the predictions: its value under each of k sets of
        weights, shape (k,), from a `probnb.metrics.sample.Ranked`.
    needs_truth : bool, default=False
        Whether it compares with the true probabilities instead of outcomes.
    lower_is_better : bool, default=True
        Which direction is better.
    bounds : (float, float), optional
        Least and largest value that it can have.
    """

    function: Callable
    label: str
    rows: Callable | None = None
    ranked: Callable | None = None
    needs_truth: bool = False
    lower_is_better: bool = True
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def of(self, sample, weights=None):
        """Return the value on a checked sample, with other weights if given."""
        if self.rows is not None and weights is None:
            return sample.mean(self.rows(sample))
        if self.ranked is not None and weights is None:
            return float(self.ranked(sample.ranked)[0])
        weights = sample.weights if weights is None else weights
        if self.needs_truth and sample.p is None:
            return math.nan  # votes are for metrics that say what to make of them, by `rows`
        truth = sample.p if self.needs_truth else sample.y
        return float(self.function(truth, sample.p_hat, weights=weights))


UNIT, POSITIVE = (0.0, 1.0), (0.0, math.inf)

METRICS = {
    "mse_p": Metric(scores.mse_p, "MSE_p", scores.mse_p_rows, needs_truth=True, bounds=UNIT),
    "kl_p": Metric(scores.kl_p, "KL_p", scores.kl_p_rows, needs_truth=True, bounds=POSITIVE),
    "ece": Metric(binning.ece, "ECE", ranked=binning.ece_ranked, bounds=UNIT),
    "mce": Metric(binning.mce, "MCE", ranked=binning.mce_ranked, bounds=UNIT),
    "ks": Metric(binning.ks_error, "KS", ranked=binning.ks_ranked, bounds=UNIT),
    "brier": Metric(scores.brier, "Brier", lambda s: (s.p_hat - s.y) ** 2, bounds=UNIT),
    "auc": Metric(scores.auc, "AUC", ranked=scores.auc_ranked, lower_is_better=False, bounds=UNIT),
    "nll": Metric(scores.nll, "NLL", lambda s: scores.nll_rows(s.y, s.p_hat), bounds=POSITIVE),
}
"""The metrics by name, in the order of tables."""


def evaluate(y_true, y_prob, p=None, weights=None, votes=None):
    """Return every metric by name, in the order of the paper's tables.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    p : array-like of shape (n,), optional
        True probabilities; without them the metrics that need them are left out.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    votes : (array-like of shape (n,), array-like of shape (n,)), optional
        Repeated outcomes in place of `p`: how many of how many votes, at least 2, were for outcome
        1. ``mse_p`` and ``kl_p`` are then estimates, as in `probnb.metrics.repeated_distance`. The
        predictions must not have seen these votes.

    Returns
    -------
    dict of str to float
        The metrics of `METRICS`, each at its default settings.

    Examples
    --------
    >>> {name: round(value, 3) for name, value in evaluate([0, 1], [0.2, 0.6]).items()}
    {'ece': 0.3, 'mce': 0.4, 'ks': 0.1, 'brier': 0.1, 'auc': 1.0, 'nll': 0.367}
    """
    sample = check_sample(y_true, y_prob, weights, p, votes)
    return evaluate_sample(sample, computable(p is not None or votes is not None))


def evaluate_sample(sample, names):
    """Return metrics of a checked sample; say which are undefined."""
    with warnings.catch_warnings(action="ignore"):  # said below, once, where the caller sees it
        values = {name: METRICS[name].of(sample) for name in names}
    undefined = [name for name, value in values.items() if math.isnan(value)]
    if undefined:
        why = "all outcomes are the same" if np.ptp(sample.y) == 0 else "undefined on these rows"
        text = f"{', '.join(undefined)} is NaN: {why}."
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return values


def computable(with_truth):
    """Return the names of the metrics that can be computed, with or without the truth."""
    return [name for name, metric in METRICS.items() if with_truth or not metric.needs_truth]
