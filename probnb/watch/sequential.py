"""Are probabilities still true? A test that may be looked at after every outcome.

It bets against the forecaster. Each alternative says that the outcomes follow another curve of the
logit, sigma(a + b logit p), and stakes its money accordingly; what a unit of money has become is e.
If every outcome comes true with its probability, whatever happened before, no betting can expect to
gain, and e reaches 1 / alpha with probability alpha at most, however long one looks (Ville's
inequality): Shafer (2021), "Testing by betting"; Waudby-Smith and Ramdas (2024), "Estimating means
of bounded random variables by betting". For probabilities that are forecast: Henzi and Ziegel
(2022), Arnold, Henzi and Ziegel (2023), and, with an isotonic curve in place of this grid, Henzi,
Puke, Dimitriadis and Ziegel (2023). A share of the money goes back to all alternatives after every
row, a smaller one each time, so that a model that was right for long is caught soon after it goes
wrong (Herbster and Warmuth, 1998).
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ..validation import check_number, check_pair

__all__ = ["ALTERNATIVES", "Watch", "odds", "stake", "watch"]

ALTERNATIVES = np.array(
    [*product((-0.8, -0.4, -0.2, -0.1, 0, 0.1, 0.2, 0.4, 0.8), 2.0 ** (np.arange(-3, 4) / 3))]
)
"""Intercepts a and slopes b of the logit; the forecaster's own, (0, 1), is one of them."""

SHARE = 0.25
"""After row t this share of the money, over t, is dealt out again."""


@dataclass(frozen=True)
class Watch:
    """What a watch has come to.

    Attributes
    ----------
    alpha : float
        Probability of a false alarm at any time, in (0, 1).
    rows : int
        Outcomes seen.
    log_e : float
        Natural logarithm of e; infinite once something came true that was called impossible.
    alarm : int or None
        The first row, counted from 1, after which e was 1 / alpha or more. It stays.
    """

    alpha: float
    rows: int
    log_e: float
    alarm: int | None


def odds(y, p):
    """What a unit staked on each alternative becomes, of shape (n, alternatives).

    Its expectation under p is 1: q / p for outcome 1 and (1 - q) / (1 - p) for outcome 0.
    """
    sign = 2 * y[:, None] - 1
    said = np.where(y == 1, p, 1 - p)[:, None]
    return expit(sign * (ALTERNATIVES[:, 0] + ALTERNATIVES[:, 1] * logit(p)[:, None])) / said


def stake(weights, odds, row):
    """Return by how much e grows in a row, and the weights of the next; any number of streams."""
    won = weights * odds
    growth = won.sum(axis=-1)
    share = SHARE / row
    return growth, won * ((1 - share) / growth)[..., None] + share / len(ALTERNATIVES)


def watch(y_true, y_prob, alpha=0.05):
    """Test as outcomes arrive whether the probabilities can be believed.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,)
        Outcomes, and the probabilities that were given before each was known, in order of arrival.
        An outcome may depend on those before it, as long as its probability takes that into
        account: rows that one event decides are one row. There are no weights: a row is a bet.
    alpha : float, default=0.05
        Probability of a false alarm, whenever one looks.

    Returns
    -------
    now : Watch
        After the last row; ``alarm`` is None as long as calibration is believable.
    table : DataFrame
        A line for each row: index ``row``, from 1; ``log_e``; ``intercept`` and
        ``slope`` of the logit, the mean of the alternatives by the money that is on them.

    Raises
    ------
    ValueError
        If outcomes, probabilities or `alpha` are no such.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 2000)
    >>> now, table = watch(rng.random(2000) < p, p)
    >>> now.alarm is None, len(table)
    (True, 2000)
    >>> watch(rng.random(2000) < p**2, p)[0].alarm < 200
    True
    >>> watch([0, 1], [0.0, 0.0])[0].log_e  # the second was called impossible
    inf
    """
    y, p = check_pair(y_true, y_prob)
    alpha = check_number(alpha, "alpha", 0, 1, exclusive=True)
    bets = np.append(np.flatnonzero(p == 1 - y), len(y))[0]  # then nobody is left to bet with
    growth, means = np.full(len(y), np.inf), np.full((len(y), 2), np.nan)
    weights, chart = np.full(len(ALTERNATIVES), 1 / len(ALTERNATIVES)), ALTERNATIVES.copy()
    chart[:, 1] = np.log(chart[:, 1])  # on this scale the slopes are even
    for part in np.array_split(np.arange(bets), bets // 4096 + 1):
        for k, line in zip(part, odds(y[part], p[part])):
            growth[k], weights = stake(weights, line, k + 1)
            means[k] = weights @ chart
    log_e, row = np.cumsum(np.log(growth)), np.arange(len(y)) + 1
    alarm = next(iter(row[log_e >= -np.log(alpha)].tolist()), None)
    columns = {"log_e": log_e, "intercept": means[:, 0], "slope": np.exp(means[:, 1])}
    table = pd.DataFrame(columns, index=pd.Index(row, name="row"))
    return Watch(alpha, len(y), float(log_e[-1]), alarm), table
