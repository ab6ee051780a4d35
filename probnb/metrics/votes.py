"""Repeated outcomes: k of n votes a row, and what they say about the row's probability.

The share k/n estimates p without bias, and a table of n + 1 values so estimates every polynomial in
p of degree at most n. The squared error is one. The entropy, which KL_p needs, is none: the least
biased estimate that n votes allow is found by linear programming, with the bound on its bias.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import linprog
from scipy.special import entr, xlogy
from scipy.stats import binom, hypergeom

from ..validation import check_same_length, check_whole

GRID = 801
"""Probabilities between 0 and 1 at which the bias of an entropy is held down."""

LARGEST = 1.0
"""Largest absolute value, in nats, that the estimate of one row's entropy may have."""

MOST = 50
"""Votes of which an entropy is estimated at most; its bias is down to 0.0003 nats then."""


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

    def entropy(self):
        """Return an estimate of each row's entropy in nats, off by at most `bias` on average.

        A single one says little, and may be negative.
        """
        terms = np.empty(len(self.ones))
        for n in np.unique(self.counts):
            rows, few = self.counts == n, _used(n)
            k, place = np.unique(self.ones[rows], return_inverse=True)
            # the mean over all choices of the votes that are used
            chance = hypergeom.pmf(np.arange(few + 1), n, k[:, None], few)
            terms[rows] = (chance @ _entropy_table(few)[0])[place]
        return terms

    def bias(self):
        """Return the largest bias of each row's `entropy`, and so of its `divergence`."""
        counts, place = np.unique(self.counts, return_inverse=True)
        return np.array([_entropy_table(_used(n))[1] for n in counts])[place]

    def divergence(self, p_hat):
        r"""Return an estimate of KL(p || p_hat) of each row, off by at most `bias` on average.

        It is the cross entropy :math:`-p \ln \hat p - (1 - p) \ln(1 - \hat p)`, which is linear in
        p, less the entropy, which is the same for every prediction: *differences* between
        predictions have no bias. Infinite where a prediction rules out what was voted for.
        """
        with np.errstate(divide="ignore"):
            cross = -xlogy(self.share, p_hat) - xlogy(1 - self.share, 1 - p_hat)
        return cross - self.entropy()


def _used(n):
    """How many of n votes an entropy is estimated from: half, beyond 18.

    All 50 of 50 would halve the bound on the bias and make the deviation 2.5 times as large.
    """
    return int(min(n, max(9, n // 2), MOST))


@cache
def _entropy_table(n):
    """Return the n + 1 estimates whose expectation is nearest to the entropy, and how near it is.

    The expectation of a table g is the polynomial sum_k g_k C(n, k) p^k (1 - p)^(n - k).
    """
    p = (1 - np.cos(np.linspace(0, np.pi, GRID))) / 2
    expectation = binom.pmf(np.arange(n + 1), n, p[:, None])
    entropy = entr(p) + entr(1 - p)
    ones = np.ones((GRID, 1))
    result = linprog(
        np.append(np.zeros(n + 1), 1),
        A_ub=np.block([[expectation, -ones], [-expectation, -ones]]),
        b_ub=np.append(entropy, -entropy),
        bounds=[(-LARGEST, LARGEST)] * (n + 1) + [(0, None)],
    )
    if not result.success:
        raise RuntimeError(f"no table of entropy estimates for n = {n}: {result.message}")
    table = result.x[:-1]
    return (table + table[::-1]) / 2, float(result.x[-1])  # the two outcomes are alike


def check_votes(ones, counts, names=("ones", "counts"), least=2):
    """Return checked `Votes`: whole numbers, 0 <= ones <= counts, at least `least` votes a row."""
    ones, counts = (check_whole(x, name) for x, name in zip((ones, counts), names))
    check_same_length(ones, counts, names)
    for wrong, rule in (
        ((ones < 0) | (ones > counts), f"{names[0]} must be in [0, {names[1]}]"),
        (counts < least, f"{names[1]} must be at least {least}"),
    ):
        if wrong.any():
            i = int(np.argmax(wrong))
            found = f"{ones[i]:g} of {counts[i]:g} in row {i}"
            raise ValueError(f"{rule}; got {found}, and so in {wrong.sum()} of {len(ones)} rows.")
    return Votes(ones, counts)
