"""CaPE: empirical probabilities of a network's own predictions, and the epochs that train on them.

Section 5 and Appendix G of the paper. Among examples that were given about this prediction, what
fraction had outcome 1? That fraction is the target of the calibration epochs. No torch here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..metrics.binning import reliability_bins
from ..metrics.registry import check_classes
from ..metrics.sample import check_row_weights
from ..validation import check_choice, check_integer, check_number, check_pair

__all__ = ["Calibrated", "HeldOut", "p_emp_bin", "p_emp_cells", "p_emp_kernel"]

CAPE = {
    "printed": {"bin": {"every": 2, "phase": 0}, "kernel": {"every": 2, "phase": 0, "sigma": 0.05}},
    "released": {
        "bin": {"every": 3, "phase": 2},
        "kernel": {"every": 4, "phase": 3, "sigma": 0.0707, "neighbours": 200},
    },
}
"""CaPE's schedule as Algorithm 1 prints it, with the outcomes first, and as the authors' released
code has it, with a calibration epoch first; a Gaussian's 0.05 is a width of 0.0707 here."""

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
        counted by rows; rows of weight 0 are nobody's neighbours, and get the average about their
        own prediction.

    Returns
    -------
    ndarray of shape (n,)
        Empirical probabilities, float64, in the order of the rows.

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
    far = np.append(repeated, repeated[-1])
    # The window [k, k + r) of the sorted points moves right while its left end is the farther.
    k = _bisect(lambda k: asked - repeated[k] > far[k + r] - asked, first, last)
    reach = np.maximum(asked - repeated[k], repeated[k + r - 1] - asked)
    place = np.searchsorted(values, asked)
    left = _bisect(lambda j: asked - values[j] > reach, np.zeros_like(place), place)
    padded, last = np.append(values, values[-1]), np.full_like(place, len(values))
    return left, _bisect(lambda j: padded[j] - asked <= reach, place, last)


def _bisect(true_before, low, high):
    """First index in [low, high] where a monotone predicate turns false, for all rows at once."""
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        go_right = open_ & true_before(middle)
        low = np.where(go_right, middle + 1, low)
        high = np.where(open_ & ~go_right, middle, high)
    return low


def _against_rest(estimate, p_hat, y):
    """Empirical probabilities of each outcome against the rest, scaled to sum to 1; ours."""
    p_hat, y = check_classes(p_hat, y, ("p_hat", "y"))
    if p_hat.shape[1] == 2:
        return _both(estimate(p_hat[:, 1], y == 1))
    each = np.stack([estimate(p_hat[:, k], y == k) for k in range(p_hat.shape[1])], axis=1)
    return _shares(each, p_hat)


def p_emp_cells(p_hat, y, parts=5, weights=None):
    """Mean outcome of the cell of the simplex that holds each prediction.

    Parameters
    ----------
    p_hat : array-like of shape (n, K)
        Predicted probabilities.
    y : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    parts : int, default=5
        Cells along each axis: the quantile bins of each outcome's predictions.
    weights : array-like of shape (n,), optional
        Weight of each row.

    Returns
    -------
    ndarray of shape (n, K)
        For two outcomes `p_emp_bin` and its complement. Many cells of few rows: the noise of small
        samples is what the bins of one outcome at a time avoid.

    Examples
    --------
    >>> p_emp_cells([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]], [0, 1, 1, 1], parts=2)
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0. , 1. ],
           [0. , 1. ]])
    """
    p_hat, y = check_classes(p_hat, y, ("p_hat", "y"))
    if p_hat.shape[1] == 2:
        return _both(p_emp_bin(p_hat[:, 1], y == 1, parts, weights))
    parts = check_integer(parts, "parts")
    bins = [reliability_bins(y == k, p, parts, weights).assign(p) for k, p in enumerate(p_hat.T)]
    cell = np.unique(np.stack(bins), axis=1, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((cell.max() + 1, p_hat.shape[1]))
    np.add.at(sums, (cell, y), 1 if weights is None else np.asarray(weights, float))
    return _shares(sums[cell], p_hat)


def _both(p):
    return np.stack([1 - p, p], axis=1)


def _shares(sums, p_hat):
    """Rows scaled to sum to 1; a row about which no weight says anything keeps its prediction."""
    total = sums.sum(axis=1, keepdims=True)
    return np.where(total > 0, sums / np.where(total > 0, total, 1), p_hat)


@dataclass(frozen=True)
class Calibrated:
    r"""CaPE: empirical probabilities of the model's own predictions in every m-th epoch.

    Parameters
    ----------
    estimator : {"bin", "kernel", "cells"}, default="bin"
        How to estimate the empirical probability. Of more than two outcomes ``"bin"`` and
        ``"kernel"`` look at one against the rest, ``"cells"`` at all together.
    every : int, default=2
        m: epoch t is a calibration epoch where (t + phase) mod m = 0, others use the outcomes.
    phase : int, default=0
        0 is the paper's Algorithm 1, whose first epoch is on the outcomes for m > 1; m - 1
        starts with a calibration epoch, as the authors' released code does.
    mix : float or None, default=None
        lambda: where given, every epoch uses (y + lambda p_emp) / (1 + lambda), the paper's
        weighted sum of the two losses, and `every` and `phase` do not matter.
    bins : int, default=15
        Bins (of each outcome, for ``"cells"``).
    neighbours : int, default=200
        Neighbours of the ``"kernel"`` estimator.
    sigma : float, default=0.05
        Width of the ``"kernel"`` estimator, in units of probability.

    Notes
    -----
    Liu et al. (2022), Section 5 and Algorithm 1. `CAPE` holds the two published settings.
    """

    estimator: str = "bin"
    every: int = 2
    phase: int = 0
    mix: float | None = None
    bins: int = 15
    neighbours: int = 200
    sigma: float = 0.05

    def __post_init__(self):
        check_choice(self.estimator, ("bin", "kernel", "cells"), "estimator")
        for name in ("every", "bins", "neighbours"):
            check_integer(getattr(self, name), name)
        check_integer(self.phase, "phase", minimum=0)
        check_number(self.sigma, "sigma", 0, exclusive=True)
        if self.mix is not None:
            check_number(self.mix, "mix", 0)

    def __call__(self, epoch, data, predict, seed):
        """Return the targets of `epoch`; `predict` gives predictions on the training inputs."""
        if not self.calibrates(epoch):
            return data.outcomes
        known = data.numbers("outcomes"), data.numbers("weights")
        p_emp = self.p_emp(predict().cpu().numpy(), *known)
        return self.mixed(p_emp, data.outcomes)

    def calibrates(self, epoch):
        """Whether an epoch's targets are empirical probabilities."""
        return self.mix is not None or (epoch + self.phase) % self.every == 0

    def p_emp(self, p_hat, y, weights):
        """Return the empirical probabilities, in the shape of `p_hat`: (n,), or (n, K)."""

        def one(p, y):
            if self.estimator == "kernel":
                return p_emp_kernel(p, y, self.neighbours, self.sigma, weights)
            return p_emp_bin(p, y, self.bins, weights)

        if p_hat.ndim == 1:
            return one(p_hat, y)
        if self.estimator == "cells":
            return p_emp_cells(p_hat, y.argmax(1), self.bins, weights)
        return _against_rest(one, p_hat, y.argmax(1))

    def mixed(self, p_emp, outcomes):
        """Return the targets as a tensor beside the outcomes."""
        if self.mix is not None:
            p_emp = (outcomes.cpu().numpy() + self.mix * p_emp) / (1 + self.mix)
        return outcomes.new_tensor(p_emp)


@dataclass(frozen=True)
class HeldOut(Calibrated):
    """CaPE with empirical probabilities of rows that the network does not train on.

    The bins, or the neighbours, are those of the validation data; a training row gets the mean
    outcome of the validation rows that were predicted alike. Settings are those of `Calibrated`.

    Validation outcomes are thus among the targets, and then choose the epoch: its validation cross
    entropy is too low, and no fair reason to prefer such a row to another. Test data tell.
    """

    def __call__(self, epoch, data, predict, seed):
        """Say that the schedule was not bound: the training rows would be asked, not others."""
        raise ValueError(
            "targets HeldOut must be bound to a training's surroundings; see run_jobs."
        )

    def bind(self, around):
        """Return the schedule."""
        val = around.splits.val

        def targets(epoch, data, predict, seed):
            if not self.calibrates(epoch):
                return data.outcomes
            heard = np.ones(len(val)) if val.weights is None else val.numbers("weights")
            pairs = (
                (predict().cpu().numpy(), around.predict(val).cpu().numpy()),
                (data.numbers("outcomes"), val.numbers("outcomes")),
                (np.zeros(len(data)), heard),  # training rows are asked, but not heard
            )
            p_emp = self.p_emp(*map(np.concatenate, pairs))
            return self.mixed(p_emp[: len(data)], data.outcomes)

        return targets
