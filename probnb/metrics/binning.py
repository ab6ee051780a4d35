"""Quantile bins of predictions, and the calibration errors read off the sorted predictions.

One rule decides every bin of the project: reliability diagrams, ECE, MCE, the decomposition of the
Brier score and the empirical probabilities of CaPE all call `reliability_bins`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..validation import check_choice, check_integer, check_pair

__all__ = ["ReliabilityBins", "ece", "ks_curves", "ks_error", "mce", "reliability_bins"]

BINS = 15
"""Number of bins in the paper."""


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """Predictions and outcomes by quantile bin, K bins in increasing order of prediction.

    Attributes
    ----------
    edges : ndarray of shape (K + 1,)
        Bin k holds the predictions with ``edges[k] <= p_hat < edges[k + 1]`` (the last bin 1 as
        well). An inner edge is the smallest prediction of the bin above it; the outer ones are 0
        and 1.
    mean_prediction : ndarray of shape (K,)
        Mean prediction of each bin, the paper's q.
    mean_outcome : ndarray of shape (K,)
        Mean outcome of each bin, the paper's p_emp.
    count : ndarray of shape (K,)
        Rows in each bin, at least 1.
    """

    edges: np.ndarray
    mean_prediction: np.ndarray
    mean_outcome: np.ndarray
    count: np.ndarray

    @property
    def gap(self):
        """Mean outcome less mean prediction of each bin, of shape (K,)."""
        return self.mean_outcome - self.mean_prediction

    def assign(self, p_hat):
        """Return the bin, 0 to K - 1, in which each prediction falls."""
        return np.searchsorted(self.edges[1:-1], p_hat, side="right")


def reliability_bins(y_true, y_prob, bins=BINS):
    r"""Group predictions into bins of equal size by quantile; ties stay together.

    Sorted, row i of N (from 0) belongs to bin :math:`\lfloor B(i + 1/2)/N \rfloor`. Equal
    predictions share the bin of their middle rank, so the order of the rows never matters. Bins
    left without rows, because of ties or of fewer rows than bins, drop out.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.

    Returns
    -------
    ReliabilityBins
        Edges, mean prediction, mean outcome and count of each bin that has rows.

    Raises
    ------
    ValueError
        If outcomes are not 0 or 1, probabilities are NaN or outside [0, 1], the lengths differ,
        there are no rows, or `bins` is not a positive integer.

    Notes
    -----
    Section 3 of the paper, the equations for p_emp and q.

    Examples
    --------
    >>> table = reliability_bins([0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.4, 0.4, 0.8, 0.9], bins=3)
    >>> table.mean_outcome
    array([0.5, 0.5, 1. ])
    >>> table.count
    array([2, 2, 2])
    """
    y, p = check_pair(y_true, y_prob)
    bins = check_integer(bins, "bins")
    order = np.argsort(p)
    p, y = p[order], y[order]
    starts = _bin_starts(p, bins)
    count = np.diff(starts, append=len(p))
    return ReliabilityBins(
        edges=np.concatenate([[0.0], p[starts[1:]], [1.0]]),
        mean_prediction=_means(p, starts, count),
        mean_outcome=np.add.reduceat(y, starts) / count,
        count=count,
    )


def _bin_starts(p, bins):
    """Return the first rank of every bin that has rows, for sorted predictions."""
    n = len(p)
    b = np.arange(1, bins)
    at_cut = p[n * b // bins]  # the ties through which a nominal cut runs
    first, last = np.searchsorted(p, at_cut, "left"), np.searchsorted(p, at_cut, "right")
    cuts = np.where(bins * (first + last) >= 2 * n * b, first, last)  # integers: exact
    cuts = np.unique(cuts)
    return np.concatenate([[0], cuts[(cuts > 0) & (cuts < n)]])


def _means(p, starts, count):
    """Return the mean of each bin; exactly the common value where all of a bin are equal."""
    ends = starts + count - 1
    return np.where(p[starts] == p[ends], p[starts], np.add.reduceat(p, starts) / count)


def ece(y_true, y_prob, bins=BINS, weighting="bins"):
    r"""Expected calibration error over quantile bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weighting : {"bins", "mass"}, default="bins"
        Plain mean over the bins that have rows, as in the paper, or a mean in proportion to their
        rows. The two agree where no ties disturb the equal bins.

    Returns
    -------
    float
        The error, in [0, 1].

    Raises
    ------
    ValueError
        As `reliability_bins`, or if `weighting` is unknown.

    Notes
    -----
    Section 3: :math:`\frac1B \sum_b |p_\text{emp}^{(b)} - q^{(b)}|`. Estimated from n rows it is
    biased upwards: a perfectly calibrated model has a positive expected ECE, of order
    :math:`\sqrt{B/n}` (see `ece_debiased` and `calibration_null_band`).

    Examples
    --------
    >>> round(ece([1, 1, 1, 0, 0], [0.9] * 5), 3)
    0.3
    """
    check_choice(weighting, ("bins", "mass"), "weighting")
    table = reliability_bins(y_true, y_prob, bins)
    weights = table.count if weighting == "mass" else None
    return float(np.average(np.abs(table.gap), weights=weights))


def mce(y_true, y_prob, bins=BINS):
    r"""Maximum calibration error over quantile bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.

    Returns
    -------
    float
        The largest gap, in [0, 1].

    Raises
    ------
    ValueError
        As `reliability_bins`.

    Notes
    -----
    Section 3: :math:`\max_b |p_\text{emp}^{(b)} - q^{(b)}|`.

    Examples
    --------
    >>> round(mce([0, 0, 1, 1], [0.1, 0.1, 0.6, 0.6], bins=2), 3)
    0.4
    """
    return float(np.max(np.abs(reliability_bins(y_true, y_prob, bins).gap)))


def ks_curves(y_true, y_prob):
    r"""Cumulative observed and predicted outcomes, at each distinct prediction.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.

    Returns
    -------
    sigma : ndarray of shape (k,)
        The distinct predictions, increasing.
    observed : ndarray of shape (k,)
        :math:`\phi_1(\sigma) = \frac1n \sum_i y_i 1(\hat p_i \le \sigma)`.
    predicted : ndarray of shape (k,)
        :math:`\phi_2(\sigma) = \frac1n \sum_i \hat p_i 1(\hat p_i \le \sigma)`.

    Raises
    ------
    ValueError
        As `reliability_bins`.

    Notes
    -----
    Appendix D of the paper.

    Examples
    --------
    >>> sigma, observed, predicted = ks_curves([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    >>> observed, predicted
    (array([0.25, 0.75]), array([0.125, 0.5  ]))
    """
    y, p = check_pair(y_true, y_prob)
    order = np.argsort(p)
    p, y = p[order], y[order]
    last = np.flatnonzero(np.append(p[1:] != p[:-1], True))  # of each run of equal predictions
    return p[last], np.cumsum(y)[last] / len(p), np.cumsum(p)[last] / len(p)


def ks_error(y_true, y_prob):
    r"""Kolmogorov-Smirnov calibration error, which needs no bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.

    Returns
    -------
    float
        The largest gap between the two cumulative curves, in [0, 1].

    Raises
    ------
    ValueError
        As `reliability_bins`.

    Notes
    -----
    Appendix D: :math:`\max_{0 \le \sigma \le 1} |\phi_1(\sigma) - \phi_2(\sigma)|`, reached at one
    of the distinct predictions since both curves are constant in between. A value within a run of
    equal predictions would depend on the order of the rows, and is never used.

    Examples
    --------
    >>> ks_error([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    _, observed, predicted = ks_curves(y_true, y_prob)
    return float(np.max(np.abs(observed - predicted)))
