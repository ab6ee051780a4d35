"""Where the difference between two predictions comes from: what a calibrator could give, or order.

Each prediction climbs the same ladder of maps, every one of which contains the one before: none,
one intercept in log-odds, Platt scaling, any monotone map. What a step gains for one prediction and
not for the other is that part of their difference; what is left at the top is their ranking.
"""

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from ..calibrators.base import cross_fit_folds
from ..calibrators.maps import PlattScaling, fit_intercept
from ..metrics.differences import clustered_mean
from ..metrics.registry import CLIP, kl_rows, nll_rows
from ..metrics.sample import check_groups, check_row_weights, check_sample

PARTS = ("bias", "slope", "monotone", "ranking")
"""The parts of a gain, in the order of the ladder."""


def gain_parts(y_true, a, b, p=None, weights=None, groups=None, folds=5, seed=0):
    r"""Split what `b` scores better than `a` into bias, slope, monotone map and ranking.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    a : array-like of shape (n,)
        Predicted probabilities of the method to improve on.
    b : array-like of shape (n,)
        Predicted probabilities of the other method, for the same rows.
    p : array-like of shape (n,), optional
        True probabilities, to split MSE_p and KL_p as well. The maps learn from outcomes alone.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    groups : array-like of shape (n,), optional
        What rows share: neither a fold nor the standard error cuts through a group.
    folds : int, default=5
        A row's maps are fitted to the other folds (fewer where a class or the groups are few).
    seed : int, default=0
        Seed that shuffles rows, or groups, into folds.

    Returns
    -------
    DataFrame
        Index ``metric`` (``brier``, ``nll``, and with `p` ``mse_p`` and ``kl_p``) and ``part`` (the
        four of `PARTS`, then ``total``); columns ``gain`` (score of `a` less that of `b`: positive
        where `b` is better), ``std``, ``low`` and ``high``. The parts add up to the total. ``kl_p``
        is infinite, or NaN, where a prediction of 0 or 1 rules out what `p` allows.

    Raises
    ------
    ValueError
        If rows are invalid, or too few for both outcomes to be in every fold's fit.

    Notes
    -----
    Let :math:`a_0 = a`, and :math:`a_1, a_2, a_3` be `a` after the cross-fitted intercept, Platt
    scaling and monotone map (see `ladder`), and S the score. Then

    .. math:: S(a) - S(b) = \sum_{k=1}^{3} \bigl\{[S(a_{k-1}) - S(a_k)] - [S(b_{k-1}) - S(b_k)]
              \bigr\} + S(a_3) - S(b_3).

    A map that is learnt costs a little, so that a part may be negative. Intervals are Student's,
    paired, over rows or groups, and take the maps as given: with few rows that of the monotone map,
    which many rows share, is somewhat short (between equals on 400 rows, 0 was in 88 % of them).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-s))
    >>> parts = gain_parts(y, 1 / (1 + np.exp(-s - 1)), 1 / (1 + np.exp(-s)))
    >>> parts.loc["brier", "gain"][["bias", "total"]].round(3).to_dict()
    {'bias': 0.036, 'total': 0.036}
    """
    pair = [check_sample(y_true, x, weights, p, names=("y_true", n)) for n, x in zip("ab", (a, b))]
    groups = check_groups(groups, len(y_true), check_row_weights(weights, len(y_true))[0])
    y, p, weights = pair[0].y, pair[0].p, pair[0].weights
    share = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    splits = cross_fit_folds(y, groups, folds, seed)
    rungs = [_climb(y, sample.p_hat, share, splits) for sample in pair]
    scores = {"brier": lambda q: (q - y) ** 2, "nll": lambda q: nll_rows(y, q)}
    if p is not None:
        scores |= {"mse_p": lambda q: (q - p) ** 2, "kl_p": lambda q: kl_rows(p, q)}
    rows = {}
    for metric, score in scores.items():
        with np.errstate(invalid="ignore"):  # infinity less infinity, where p-hat is 0 or 1
            left = np.array([score(x) - score(z) for x, z in zip(*rungs)])  # after each rung
            terms = [*(left[:-1] - left[1:]), left[-1], left[0]]
        for part, term in zip((*PARTS, "total"), terms):
            rows[metric, part] = clustered_mean(term, share, groups)
    index = pd.MultiIndex.from_tuples(rows, names=["metric", "part"])
    return pd.DataFrame(list(rows.values()), index, ["gain", "std", "low", "high"])


def ladder(s, y, weights):
    """Fit the maps of the ladder: no map, an intercept, Platt scaling, a monotone map.

    Parameters
    ----------
    s : ndarray of shape (n,)
        Log-odds of the predictions.
    y : ndarray of shape (n,)
        Outcomes, both of them.
    weights : ndarray of shape (n,)
        Weights above 0.

    Returns
    -------
    list of callable
        Maps of log-odds to probabilities. The last is isotonic regression along Platt's order, each
        step of which counts one more row, with the mean outcome, so that none is 0 or 1; between
        two rows it is the mean of their steps. It depends on nothing but the order of the rows, so
        that a prediction and any rising function of it end equal.
    """
    intercept = fit_intercept(s, y, weights)
    platt = PlattScaling().fit(s, y, sample_weight=weights)
    sign = 1.0 if platt.coef_[0, 0] >= 0 else -1.0
    x, steps = _shrunk_steps(sign * s, y, weights / weights.mean())

    def monotone(s):
        left = np.searchsorted(x, sign * s, side="right") - 1
        right = np.searchsorted(x, sign * s, side="left")
        return (steps[np.maximum(left, 0)] + steps[np.minimum(right, len(x) - 1)]) / 2

    shifted, scaled = lambda s: expit(s + intercept), lambda s: platt.predict_proba(s)[:, 1]
    return [expit, shifted, scaled, monotone]


def log_odds(p):
    """Return the log-odds of probabilities, those of 0 and 1 finite."""
    return logit(np.clip(np.asarray(p), CLIP, 1 - CLIP))


def _shrunk_steps(x, y, weights):
    """Return distinct values and their isotonic steps, each with one row of the mean outcome."""
    values, place = np.unique(x, return_inverse=True)
    mass = np.bincount(place, weights)
    means, isotonic = np.bincount(place, weights * y) / mass, IsotonicRegression(y_min=0, y_max=1)
    steps = isotonic.fit_transform(values, means, sample_weight=mass)
    _, step = np.unique(steps, return_inverse=True)
    rows = np.bincount(step, mass)[step]
    steps = (rows * steps + np.average(y, weights=weights)) / (rows + 1)
    return values, isotonic.fit_transform(values, steps, sample_weight=mass)


def _climb(y, p_hat, weights, splits):
    """Return a prediction after each rung, fitted to the other folds; the first is untouched."""
    s = log_odds(p_hat)
    rungs = np.empty((len(PARTS), len(s)))
    for train, test in splits:
        for k, rung in enumerate(ladder(s[train], y[train], weights[train])):
            rungs[k, test] = rung(s[test])
    rungs[0] = p_hat  # to the bit
    return rungs
