"""Empirical probabilities of the outcome given the prediction: the targets of CaPE.

Section 5 and Appendix G of the paper. Both estimates answer the same question: among examples
that were given about this prediction, what fraction had outcome 1?
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .metrics.binning import reliability_bins
from .metrics.sample import check_row_weights
from .validation import check_integer, check_number, check_pair

__all__ = ["p_emp_bin", "p_emp_kernel"]

_BLOCK = 2**17  # entries of a block of kernel weights: 1 MiB, to stay in the cache


def p_emp_bin(p_hat, y, bins=15, weights=None):
    r"""Mean outcome of the quantile bin that holds each prediction.

    .. math:: p_\text{emp}^i = \frac{1}{|I_b|} \sum_{j \in I_b} y_j, \qquad \hat p_i \in I_b

    Parameters
    ----------
    p_hat : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    y : array-like of shape (n,)
        Outcomes, 0 or 1.
    bins : int, default=15
        Number of quantile bins B. Equal predictions share a bin, so there may be fewer.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter. The bins share
        the weight equally.

    Returns
    -------
    ndarray of shape (n,)
        Empirical probabilities, float64, in the order of the rows.

    Raises
    ------
    ValueError
        If an input is empty, not a probability or not an outcome, or if lengths differ.

    Notes
    -----
    Liu et al. (2022), Algorithm 1, function BIN.

    Examples
    --------
    >>> p_emp_bin([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1], bins=2)
    array([0.5, 0.5, 1. , 1. ])
    """
    y, p_hat = check_pair(y, p_hat, names=("y", "p_hat"))
    table = reliability_bins(y, p_hat, bins, weights)
    return table.mean_outcome[table.assign(p_hat)]


def p_emp_kernel(p_hat, y, neighbours=200, sigma=0.05, weights=None):
    r"""Kernel average of the outcomes of the nearest predictions.

    .. math::

        p_\text{emp}^i = \frac{\sum_{j \in \text{NN}(i, r)} K_{ij}\, y_j}
        {\sum_{j \in \text{NN}(i, r)} K_{ij}}, \qquad
        K_{ij} = \exp\left(-\frac{(\hat p_i - \hat p_j)^2}{\sigma^2}\right)

    Parameters
    ----------
    p_hat : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    y : array-like of shape (n,)
        Outcomes, 0 or 1.
    neighbours : int, default=200
        r, the nearest predictions to average over, the point itself among them. Predictions as
        far away as the r-th are all taken, so that the result does not depend on the order of
        the rows; r beyond n means all n.
    sigma : float, default=0.05
        Width of the kernel, in units of probability. A Gaussian with this standard deviation
        (as in the authors' released code) is ``sigma * sqrt(2)`` here.
    weights : array-like of shape (n,), optional
        Weight of each row in the average, at least 0; their scale does not matter. Neighbours are
        counted by rows; rows of weight 0 are
        nobody's neighbours, and get the average about their own prediction.

    Returns
    -------
    ndarray of shape (n,)
        Empirical probabilities, float64, in the order of the rows.

    Raises
    ------
    ValueError
        If an input is empty, not a probability or not an outcome, if lengths differ, or if
        `neighbours` or `sigma` is not positive.

    Notes
    -----
    Liu et al. (2022), Algorithm 1, function KERNEL, and Appendix G. Equal predictions are
    merged, so every window holds at most r + 1 distinct values: O(n log n + n r) time, and
    memory bounded by a block.

    Examples
    --------
    >>> p_emp_kernel([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1], neighbours=2, sigma=0.1)
    array([0.5, 0.5, 1. , 1. ])
    """
    y, p_hat = check_pair(y, p_hat, names=("y", "p_hat"))
    r = check_integer(neighbours, "neighbours")
    sigma = check_number(sigma, "sigma", 0, exclusive=True)
    kept, weights = check_row_weights(weights, len(y))
    asked, inverse = np.unique(p_hat, return_inverse=True)  # where an average is wanted
    kept = slice(None) if kept is None else kept
    values, own, counts = np.unique(p_hat[kept], return_inverse=True, return_counts=True)
    mass = counts.astype(float) if weights is None else np.bincount(own, weights)
    ones = np.bincount(own, y[kept] if weights is None else y[kept] * weights)
    left, right = _windows(asked, values, counts, min(r, counts.sum()))

    result = np.empty(len(asked))
    width = int((right - left).max())
    start = np.minimum(left, len(values) - width)  # windows of one width; the surplus is masked
    views = [sliding_window_view(a, width) for a in (values, mass, ones)]
    step = max(1, _BLOCK // width)
    for begin in range(0, len(asked), step):
        rows = slice(begin, begin + step)
        near, weight, one = (view[start[rows]] for view in views)  # copies, one block at a time
        near -= asked[rows, None]
        near /= sigma
        np.multiply(near, near, out=near)
        if (right[rows] - left[rows] < width).any():
            position = start[rows, None] + np.arange(width)
            near[(position < left[rows, None]) | (position >= right[rows, None])] = np.inf
        if len(asked) > len(values):  # a row of weight 0 may be far from all: its nearest gets 1
            near -= near.min(axis=1, keepdims=True)
        np.exp(np.negative(near, out=near), out=near)
        result[rows] = np.einsum("ij,ij->i", near, one) / np.einsum("ij,ij->i", near, weight)
    return result[inverse]


def _windows(asked, values, counts, r):
    """Range of distinct values that the r nearest points of each asked one span, ties included."""
    repeated = np.repeat(values, counts)
    first, last = np.zeros(len(asked), int), np.full(len(asked), len(repeated) - r)
    # The window [k, k + r) of the sorted points moves right while its left end is the farther.
    k = _bisect(
        lambda k: asked - repeated[k] > repeated[np.minimum(k + r, len(repeated) - 1)] - asked,
        first,
        last,
    )
    reach = np.maximum(asked - repeated[k], repeated[k + r - 1] - asked)
    place = np.searchsorted(values, asked)
    left = _bisect(lambda j: asked - values[j] > reach, np.zeros_like(place), place)
    right = _bisect(
        lambda j: values[np.minimum(j, len(values) - 1)] - asked <= reach,
        place,
        np.full_like(place, len(values)),
    )
    return left, right


def _bisect(true_before, low, high):
    """First index in [low, high] where a monotone predicate turns false, for all rows at once."""
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        go_right = open_ & true_before(middle)
        low = np.where(go_right, middle + 1, low)
        high = np.where(open_ & ~go_right, middle, high)
    return low
