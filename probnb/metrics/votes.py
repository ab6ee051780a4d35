"""Repeated outcomes: k of n votes a row, and what they say about the row's probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, xlogy

from ..validation import check_same_length, check_vector


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes for outcome 1 and votes in all, by row; make one with `check_votes`."""

    ones: np.ndarray
    counts: np.ndarray

    def __getitem__(self, rows):
        """Return the votes of some rows."""
        return Votes(self.ones[rows], self.counts[rows])

    @property
    def share(self):
        """Share of the votes for outcome 1, the paper's mean outcome of a row."""
        return self.ones / self.counts

    def variance(self):
        """Return the unbiased estimate of p(1 - p) of each row, from two votes or more."""
        return self.share * (self.ones - self.counts) / (1 - self.counts)

    def squared_error(self, p_hat):
        """Return the unbiased estimate of (p_hat - p)^2 of each row."""
        return (p_hat - self.share) ** 2 - self.variance() / self.counts

    def log_loss(self, p_hat):
        """Return the mean negative log-likelihood of each row's votes, unclipped."""
        with np.errstate(divide="ignore"):
            return -xlogy(self.share, p_hat) - xlogy(1 - self.share, 1 - p_hat)

    def entropy(self):
        r"""Return Zhang's estimate of each row's entropy, whose bias is in `entropy_bias`.

        The entropy is :math:`\sum_{j \ge 1} [p (1-p)^j + (1-p) p^j] / j`. Votes can estimate a
        polynomial in p without bias if its degree is at most n, hence the terms with j < n, and
        no estimate of all of them is unbiased. The sum has the closed form used here.
        """
        k, n = self.ones, self.counts
        known = digamma(n)
        parts = [m * (known - digamma(np.maximum(m, 1))) for m in (k, n - k)]
        return (parts[0] + parts[1]) / n

    def entropy_bias(self):
        """Return the most by which `entropy` can be too low on average, by row."""
        counts, place = np.unique(self.counts, return_inverse=True)
        return np.array([_worst_bias(int(n)) for n in counts])[place]

    def divergence(self, p_hat):
        """Return an estimate of KL(p || p_hat) of each row, too high by the bias of `entropy`."""
        return self.log_loss(p_hat) - self.entropy()


def _worst_bias(n):
    """Return the largest entropy less its first n - 1 terms over all p: that of some p <= 1/2."""
    p = np.geomspace(1e-3 / n, 0.5, 400)
    j = np.arange(1, n)[:, None]
    first = ((p * (1 - p) ** j + (1 - p) * p**j) / j).sum(axis=0)
    return float((-xlogy(p, p) - xlogy(1 - p, 1 - p) - first).max())


def check_votes(ones, counts, names=("ones", "counts"), least=2):
    """Return checked `Votes`: whole numbers, 0 <= ones <= counts, at least `least` votes a row."""
    ones, counts = (_whole(x, name) for x, name in zip((ones, counts), names))
    check_same_length(ones, counts, names)
    wrong = (ones < 0) | (ones > counts)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"{names[0]} must be in [0, {names[1]}]; got {ones[i]:g} of {counts[i]:g} in row {i}."
        )
    few = counts < least
    if few.any():
        i = int(np.argmax(few))
        why = " (one vote says nothing about its own noise)" if least == 2 else ""
        raise ValueError(
            f"{names[1]} must be at least {least}{why}; got {counts[i]:g} in row {i}, and fewer "
            f"than {least} in {np.count_nonzero(few)} of {len(counts)} rows."
        )
    return Votes(ones, counts)


def _whole(x, name):
    x = check_vector(x, name)
    if not len(x):
        raise ValueError(f"{name} must have at least one row; got none.")
    try:
        numbers = x.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be whole numbers; {error}.") from None
    wrong = ~(np.isfinite(numbers) & (numbers == np.round(numbers)))
    if wrong.any() or x.dtype.kind not in "biufO":
        i = int(np.argmax(wrong))
        raise ValueError(f"{name} must be whole numbers; got {x[i]!s} in row {i}.")
    return numbers
