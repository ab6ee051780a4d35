"""Steps and curves beyond the paper's: Venn-Abers, a parabola, a natural cubic spline.

And the way back: `crossing` finds the log-odds at which a calibrated probability is reached.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logit
from sklearn.isotonic import isotonic_regression

from ..validation import check_integer, check_number
from .base import Calibrator, cross_fit_folds, log_loss, two_columns
from .maps import fit_logistic, fit_rising, fit_slope

CHOICE_ROWS = 100_000
"""Rows on which a number of knots is chosen at most."""


class VennAbers(Calibrator):
    r"""Two isotonic regressions for each prediction: with its row as a 0, and as a 1.

    They give the ends of an interval (`predict_interval`), of which one is calibrated, whatever
    the outcome; the probability between them is :math:`p_1 / (1 - p_0 + p_1)`.

    Attributes
    ----------
    thresholds_ : ndarray of shape (k,)
        Log-odds at which an end of the interval steps up: the lower one at the threshold, the
        upper one just above it.
    lower_, upper_ : ndarray of shape (k + 1,)
        The ends below, between and above the thresholds.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Vovk, Petej and Fedorova (2015), "Large-scale probabilistic predictors with and without
    guarantees of validity": the inductive predictor, whose ends are computed beforehand in
    O(n log n) and looked up in O(log n). Of m rows that say the same, none is ever certain: at
    most :math:`(m + 1) / (m + 2)` is predicted, Laplace's rule. The new row weighs as much as the
    average unit of weight lies on, :math:`\sum w^2 / \sum w` (as one row of Kish's effective
    number): 1 where all rows weigh 1.

    Examples
    --------
    >>> abers = VennAbers().fit([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0, 0, 0, 1, 1, 1])
    >>> abers.predict_interval([0.0, 1.0])
    array([[0.  , 0.25],
           [0.75, 1.  ]])
    >>> abers.predict_proba([0.0, 1.0])[:, 1]
    array([0.2, 0.8])
    """

    label = "Venn-Abers"

    def _fit(self, X, log_odds, y, weights):
        values, code = np.unique(log_odds, return_inverse=True)
        mass, ones = np.bincount(code, weights), np.bincount(code, weights * y)
        new = weights @ weights
        upper = np.append(_as_a_one(mass, ones, new), 1)
        lower = np.append(_as_a_one(mass[::-1], (mass - ones)[::-1], new), 1)[::-1]
        ends = np.stack([1 - lower, upper])
        steps = np.append((np.diff(ends) != 0).any(axis=0), True)
        self.thresholds_, (self.lower_, self.upper_) = values[steps[:-1]], ends[:, steps]

    def predict_interval(self, X):
        """The calibrated probabilities of outcome 1 if the row were a 0, and if it were a 1.

        Parameters
        ----------
        X : array-like of shape (n, 2), (n, 1) or (n,)
            Logits or log-odds, with as many columns as in `fit`.

        Returns
        -------
        ndarray of shape (n, 2)
            The lower and the upper end.
        """
        return self._interval(self._read(X)[1])

    def _interval(self, log_odds):
        low, high = (np.searchsorted(self.thresholds_, log_odds, s) for s in ("right", "left"))
        return np.column_stack([self.lower_[low], self.upper_[high]])

    def _map(self, X, log_odds):
        p0, p1 = self._interval(log_odds).T
        return np.column_stack([1 - p0, p1]) / (1 - p0 + p1)[:, None]


def _as_a_one(mass, ones, new):
    """Isotonic regression at each group of rows when a 1 of weight `new` has joined it.

    The slope, where the 1 was put in, of the greatest convex minorant of the cumulated ones over
    the cumulated weight. The 1 walks from left to right; `hull` holds the corners of the minorant
    from the start of its block on, the nearest last.
    """
    x, s = np.append(0, np.cumsum(mass)), np.append(0, np.cumsum(ones))
    blocks = isotonic_regression(ones / mass, sample_weight=mass)
    corners = np.append(np.flatnonzero(np.diff(blocks, prepend=-1)), len(mass))[::-1]
    hull, slopes = list(zip(x[corners].tolist(), s[corners].tolist())), []

    def below(point, a, b):
        return (point[1] - a[1]) * (b[0] - a[0]) < (b[1] - a[1]) * (point[0] - a[0])

    def start(point):
        while len(hull) > 1 and not below(hull[-1], point, hull[-2]):
            hull.pop()
        hull.append(point)

    start((-new, -new))
    for point in zip((x[1:] - new).tolist(), (s[1:] - new).tolist()):
        (a, b), (c, d) = hull[-1], hull[-2]
        slopes.append((d - b) / (c - a))
        if below(point, hull[-1], hull[-2]):  # a block begins behind the group that it has passed
            hull.pop()
            start(point)
    return np.clip(slopes, 0, 1)


class QuadraticCalibration(Calibrator):
    r"""Logistic regression on the log-odds and their square, never decreasing.

    :math:`\mathrm{logit} f = a s^2 + b s + c` from the lowest to the highest log-odds s of `fit`,
    and the tangents beyond.

    Attributes
    ----------
    range_ : ndarray of shape (2,)
        The lowest and the highest log-odds.
    slopes_ : ndarray of shape (2,)
        Rise of the map at both, at least 0, by the width of the range: half their difference is
        the curvature.
    intercept_ : float
        Its value at the lower one.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    A parabola turns, and would say that rows with higher log-odds have lower probabilities. Here it
    may turn at an end of the range at the earliest, where it goes on level; the best fit under
    this bound is found as that of `BetaCalibration`, and the log-loss never exceeds temperature
    scaling's. Where the free parabola rises over the whole range, the fit is the logistic
    regression on s and its square. A single row far out tightens the bound for all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(-2, 2, 20_000)
    >>> y = rng.random(20_000) < 1 / (1 + np.exp(-s - s**2 / 4))
    >>> QuadraticCalibration().fit(s, y).predict_proba([-2.0, 0.0, 2.0])[:, 1].round(1)
    array([0.3, 0.5, 1. ])
    """

    label = "quadratic"

    def _fit(self, X, log_odds, y, weights):
        low, high = _span(log_odds.min(), log_odds.max())
        slope = fit_slope(log_odds, y, weights)
        start = slope * np.array([high - low, high - low, low])
        self.range_ = np.array([low, high])
        *slopes, intercept = fit_rising(_parabola(log_odds, low, high), y, weights, start)
        self.slopes_, self.intercept_ = np.array(slopes), float(intercept)

    def _map(self, X, log_odds):
        return two_columns(_parabola(log_odds, *self.range_) @ [*self.slopes_, self.intercept_])


def _span(low, high):
    """The ends of a range that has a width, whatever rounding left of it."""
    least = max(1.0, abs(low), abs(high))
    return low, high if high - low > 1e-12 * least else low + least


def _parabola(log_odds, low, high):
    """Columns whose slopes fall from 1 to 0, and rise from 0 to 1, over the range; and ones."""
    z = (log_odds - low) / (high - low)
    inside = np.clip(z, 0, 1)
    first = inside - inside**2 / 2 + np.minimum(z, 0)
    return np.column_stack([first, inside**2 / 2 + np.maximum(z - 1, 0), np.ones(len(z))])


class SplineCalibration(Calibrator):
    """Logistic regression on a natural cubic spline of the log-odds.

    Parameters
    ----------
    knots : tuple of int, default=(2, 3, 4, 5, 6, 8)
        Numbers of knots, of which the lowest cross-fitted log-loss chooses. They lie at evenly
        spaced quantiles of the log-odds, the outermost at 5 % and 95 %; beyond these the map is
        straight. Two make Platt scaling of the log-odds.
    folds : int, default=5
        Number of folds (at most the size of the smaller class).
    random_state : int, default=0
        Seed that shuffles the rows into folds.

    Attributes
    ----------
    knots_, values_ : ndarray of shape (k,)
        The knots and the map's values there, both in log-odds. Equal knots are one.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Lucena (2018), "Spline-based probability calibration", without its penalty: the number of knots
    is what keeps the curve plain. Of more than 100,000 rows so many decide that number. A number
    whose map falls somewhere is passed over for the next best, so that the order of the predictions
    is kept; where all fall, it is turned, by two knots as by Platt scaling. With one row of a class
    the lowest number is taken. The log-loss never exceeds temperature scaling's.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(-4, 4, 20_000)
    >>> y = rng.random(20_000) < 0.1 + 0.8 / (1 + np.exp(-2 * s))
    >>> SplineCalibration().fit(s, y).predict_proba([-3.0, 0.0, 3.0])[:, 1].round(1)
    array([0.1, 0.5, 0.9])
    """

    label = "spline"

    def __init__(self, knots=(2, 3, 4, 5, 6, 8), folds=5, random_state=0):
        self.knots = knots
        self.folds = folds
        self.random_state = random_state

    def _fit(self, X, log_odds, y, weights):
        numbers = sorted({check_integer(k, "knots", minimum=2) for k in self.knots})
        rows = np.random.default_rng(self.random_state).permutation(len(y))[:CHOICE_ROWS]
        s, ones, w, losses = log_odds[rows], y[rows], weights[rows], np.zeros(len(numbers))
        if len(numbers) > 1 and min(ones.sum(), (1 - ones).sum()) > 1:
            for fit, test in cross_fit_folds(ones, None, self.folds, self.random_state):
                for i, number in enumerate(numbers):
                    knots, values = _fit_spline(s[fit], ones[fit], w[fit] / w[fit].sum(), number)
                    losses[i] += log_loss(_basis(s[test], knots) @ values, ones[test], w[test])
        for number in [*np.array(numbers)[np.argsort(losses, kind="stable")], 2]:
            self.knots_, self.values_ = _fit_spline(log_odds, y, weights, number)
            between = np.linspace(*self.knots_[[0, -1]], 1001)
            if np.diff(_basis(between, self.knots_) @ self.values_).min() > -1e-9:
                break

    def _map(self, X, log_odds):
        return two_columns(_basis(log_odds, self.knots_) @ self.values_)


def _fit_spline(log_odds, y, weights, number):
    """The knots and the values there of least log-loss."""
    shares = np.linspace(0.05, 0.95, number) - 1e-9  # against rounding
    knots = np.quantile(log_odds, shares, weights=weights, method="inverted_cdf")
    low, high = _span(knots[0], knots[-1])
    knots = np.append(knots[knots - low < 0.999 * (high - low)], high)
    knots = knots[np.diff(knots, prepend=-np.inf) > 1e-3 * (high - low)]
    start = fit_slope(log_odds, y, weights) * knots  # a line is such a spline
    return knots, fit_logistic(_basis(log_odds, knots), y, weights, start, 0 * start)


def _basis(log_odds, knots):
    """The natural splines that are 1 at one knot and 0 at the others, (n, k)."""
    low, width = knots[0], knots[-1] - knots[0]
    spline = CubicSpline((knots - low) / width, np.eye(len(knots)), bc_type="natural")
    z = (log_odds - low) / width
    inside = np.clip(z, 0, 1)
    return spline(inside) + spline(inside, 1) * (z - inside)[:, None]


def crossing(calibrator, threshold, mean=None):
    """Find the lowest log-odds at which the calibrated probability reaches a threshold.

    Parameters
    ----------
    calibrator : estimator
        A fitted one of `probnb.calibrators`, or None for no calibration.
    threshold : float
        A probability, in (0, 1).
    mean : float, optional
        Mean of both columns of logits, for Platt scaling of two columns, which may read it; others
        do not.

    Returns
    -------
    float
        The log-odds s: the probability is at least `threshold` from s on and lower below. Infinite
        where it is never reached, minus infinity where it is never missed.

    Raises
    ------
    ValueError
        If the map falls somewhere, or depends on a mean that is not given.

    Examples
    --------
    >>> from probnb.calibrators import TemperatureScaling
    >>> fitted = TemperatureScaling().fit([-1.0] * 4 + [1.0] * 4, [0, 0, 0, 1, 1, 1, 1, 0])
    >>> round(crossing(fitted, 0.75), 6), crossing(None, 0.5)
    (1.0, 0.0)
    """
    check_number(threshold, "threshold", 0, 1, exclusive=True)
    if calibrator is None:
        return float(logit(threshold))
    coef = np.ravel(getattr(calibrator, "coef_", 0.0))
    if mean is None and len(coef) == 2 and abs(coef.sum()) > 1e-9 * np.abs(coef).max():
        raise ValueError(
            "mean must be given: this Platt scaling reads both logits, so that no log-odds alone "
            "reach a threshold. Fit it to log-odds, or give the mean of both logits."
        )

    def p(s):
        columns = (mean or 0) + np.outer(s, [-0.5, 0.5] if calibrator.n_features_in_ == 2 else [1])
        return calibrator._map(columns, s)[:, 1]

    ends = np.geomspace(1e-12, 1e150, 3000)
    s = np.concatenate([-ends[::-1], [0.0], ends])
    if np.diff(p(s)).min() < -1e-9:
        raise ValueError("calibrator must never fall: this one's probabilities do.")
    while (above := p(s) >= threshold).any() and not above[0]:
        low, high = s[above.argmax() - 1 :][:2]
        if not low < (low / 2 + high / 2) < high:
            return float(high)
        s = np.linspace(low, high, 1001)
    return -np.inf if above[0] else np.inf
