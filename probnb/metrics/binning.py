"""Quantile bins of predictions, and the calibration errors read off the sorted predictions.

One rule decides every bin of the project, `probnb.metrics.sample.bin_cuts`: reliability diagrams,
ECE, MCE and their bootstrap, the decomposition of the Brier score, histogram binning and the
empirical probabilities of CaPE.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..validation import check_choice, check_integer
from .sample import bin_starts, check_sample, effective_rows

__all__ = ["ReliabilityBins", "ece", "ks_curves", "ks_error", "mce", "reliability_bins"]

BINS = 15
"""Number of bins in the paper."""

WEIGHTINGS = ("rows", "plain")


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
    weight : ndarray of shape (K,)
        Share of the rows' weight in each bin; the shares add up to 1.
    effective : ndarray of shape (K,)
        Kish's effective number of rows, squared sum of weights over sum of squares: how many rows
        of equal weight would leave a mean outcome as uncertain. `count` where all weigh the same.
    """

    edges: np.ndarray
    mean_prediction: np.ndarray
    mean_outcome: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    effective: np.ndarray

    @property
    def gap(self):
        """Mean outcome less mean prediction of each bin, of shape (K,)."""
        return self.mean_outcome - self.mean_prediction

    def assign(self, p_hat):
        """Return the bin, 0 to K - 1, in which each prediction falls."""
        return np.searchsorted(self.edges[1:-1], p_hat, side="right")


def reliability_bins(y_true, y_prob, bins=BINS, weights=None):
    r"""Group predictions into bins of equal size by quantile; ties stay together.

    Sorted, row i of N (from 0) belongs to bin :math:`\lfloor B(i + 1/2)/N \rfloor`. Equal
    predictions share the bin of their middle rank, so the order of the rows never matters. Ranks
    cumulate the weights where rows have some. Bins left without rows, because of ties or of fewer
    rows than bins, drop out.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    ReliabilityBins
        Edges, mean prediction, mean outcome and count of each bin that has rows.

    Raises
    ------
    ValueError
        If outcomes are not 0 or 1, probabilities are NaN or outside [0, 1], weights are negative,
        infinite or all 0, the lengths differ, there are no rows, or `bins` is not a positive
        integer.

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
    return sample_bins(check_sample(y_true, y_prob, weights), check_integer(bins, "bins"))


def sample_bins(sample, bins):
    """Return the `ReliabilityBins` of a checked sample."""
    p, y = sample.p_hat[sample.order], sample.y[sample.order]
    w = np.ones(len(p)) if sample.weights is None else sample.weights[sample.order]
    starts = bin_starts(p, w, bins)
    ends = np.append(starts[1:], len(p))
    mass = np.add.reduceat(w, starts)
    mean_prediction = np.add.reduceat(w * p, starts) / mass
    return ReliabilityBins(
        edges=np.concatenate([[0.0], p[starts[1:]], [1.0]]),
        # exactly the common value where all of a bin are equal
        mean_prediction=np.where(p[starts] == p[ends - 1], p[starts], mean_prediction),
        mean_outcome=np.add.reduceat(w * y, starts) / mass,
        count=ends - starts,
        weight=mass / mass.sum(),
        effective=effective_rows(w, starts),
    )


def ece(y_true, y_prob, bins=BINS, weighting="rows", weights=None):
    r"""Expected calibration error over quantile bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weighting : {"rows", "plain"}, default="rows"
        Mean over the bins in proportion to the weight of their rows, or the paper's plain mean
        over the bins that have rows. The two agree where the bins are equal; where ties make them
        unequal the plain mean lets a few rows count as much as most.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

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
    check_choice(weighting, WEIGHTINGS, "weighting")
    sample = check_sample(y_true, y_prob, weights)
    return float(ece_ranked(sample.ranked, check_integer(bins, "bins"), weighting)[0])


def ece_ranked(ranked, bins=BINS, weighting="rows"):
    """Return the ECE under each set of weights."""
    mass, gaps = ranked.bin_gaps(bins)
    share = mass if weighting == "rows" else mass > 0
    return (share * gaps).sum(axis=1) / share.sum(axis=1)


def mce(y_true, y_prob, bins=BINS, weights=None):
    r"""Maximum calibration error over quantile bins: :math:`\max_b |p_\text{emp}^{(b)} - q^{(b)}|`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, default=15
        Number of bins, B.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The largest gap, in [0, 1], whatever the rows of its bin (Section 3).

    Examples
    --------
    >>> round(mce([0, 0, 1, 1], [0.1, 0.1, 0.6, 0.6], bins=2), 3)
    0.4
    """
    sample = check_sample(y_true, y_prob, weights)
    return float(mce_ranked(sample.ranked, check_integer(bins, "bins"))[0])


def mce_ranked(ranked, bins=BINS):
    """Return the MCE under each set of weights."""
    return ranked.bin_gaps(bins)[1].max(axis=1)


def ks_curves(y_true, y_prob, weights=None):
    r"""Cumulative observed and predicted outcomes, at each distinct prediction.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    sigma : ndarray of shape (k,)
        The distinct predictions, increasing.
    observed : ndarray of shape (k,)
        :math:`\phi_1(\sigma) = \frac1n \sum_i y_i 1(\hat p_i \le \sigma)` (Appendix D).
    predicted : ndarray of shape (k,)
        :math:`\phi_2(\sigma) = \frac1n \sum_i \hat p_i 1(\hat p_i \le \sigma)`.

    Examples
    --------
    >>> sigma, observed, predicted = ks_curves([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    >>> observed, predicted
    (array([0.25, 0.75]), array([0.125, 0.5  ]))
    """
    ranked = check_sample(y_true, y_prob, weights).ranked
    observed = np.cumsum(ranked.ones[0]) / ranked.total[0]
    return ranked.values, observed, np.cumsum(ranked.mass[0] * ranked.values) / ranked.total[0]


def ks_error(y_true, y_prob, weights=None):
    r"""Kolmogorov-Smirnov calibration error, which needs no bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The largest gap between the two curves of `ks_curves`, in [0, 1].

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
    return float(ks_ranked(check_sample(y_true, y_prob, weights).ranked)[0])


def ks_ranked(ranked):
    """Return the KS error under each set of weights."""
    return np.abs(ranked.gap_up_to).max(axis=1) / ranked.total
