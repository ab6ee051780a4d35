"""Empirical probabilities of the outcome given the prediction: the targets of CaPE.

Section 5 and Appendix G of the paper. Both estimates answer the same question: among examples
that were given about this prediction, what fraction had outcome 1?
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .metrics.binning import reliability_bins
from .validation import check_integer, check_number, check_pair

__all__ = ["p_emp_bin", "p_emp_kernel"]

_BLOCK = 2**17  # entries of a block of kernel weights: 1 MiB, to stay in the cache


def p_emp_bin(p_hat, y, bins=15):
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
    table = reliability_bins(y, p_hat, bins)
    return table.mean_outcome[table.assign(p_hat)]


def p_emp_kernel(p_hat, y, neighbours=200, sigma=0.05):
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
    r = min(check_integer(neighbours, "neighbours"), len(y))
    sigma = check_number(sigma, "sigma", 0, exclusive=True)
    values, inverse, counts = np.unique(p_hat, return_inverse=True, return_counts=True)
    ones = np.bincount(inverse, y)
    left, right = _windows(values, counts, r)

    result = np.empty(len(values))
    width = int((right - left).max())
    start = np.minimum(left, len(values) - width)  # windows of one width; the surplus is masked
    views = [sliding_window_view(a, width) for a in (values, counts.astype(float), ones)]
    step = max(1, _BLOCK // width)
    for begin in range(0, len(values), step):
        rows = slice(begin, begin + step)
        near, count, one = (view[start[rows]] for view in views)  # copies, one block at a time
        near -= values[rows, None]
        near /= sigma
        np.multiply(near, near, out=near)
        np.exp(np.negative(near, out=near), out=near)
        if (right[rows] - left[rows] < width).any():
            position = start[rows, None] + np.arange(width)
            near[(position < left[rows, None]) | (position >= right[rows, None])] = 0
        result[rows] = np.einsum("ij,ij->i", near, one) / np.einsum("ij,ij->i", near, count)
    return result[inverse]


def _windows(values, counts, r):
    """Range of distinct values that the r nearest points of each value span, ties included."""
    repeated = np.repeat(values, counts)
    first, last = np.zeros(len(values), int), np.full(len(values), len(repeated) - r)
    # The window [k, k + r) of the sorted points moves right while its left end is the farther.
    k = _bisect(
        lambda k: values - repeated[k] > repeated[np.minimum(k + r, len(repeated) - 1)] - values,
        first,
        last,
    )
    reach = np.maximum(values - repeated[k], repeated[k + r - 1] - values)
    own = np.arange(len(values))
    left = _bisect(lambda j: values - values[j] > reach, np.zeros_like(own), own)
    right = _bisect(
        lambda j: values[np.minimum(j, len(values) - 1)] - values <= reach,
        own,
        np.full_like(own, len(values)),
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
