"""Steps and curves beyond the paper's: Venn-Abers, a parabola, a natural cubic spline."""

import numpy as np
from scipy.interpolate import BSpline
from sklearn.isotonic import isotonic_regression

from ..validation import check_integer
from .base import Calibrator, Numbers, cross_fit_folds, fit_rising, log_loss
from .maps import fit_slope

__all__ = ["QuadraticCalibration", "SplineCalibration", "VennAbers"]

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
    gives = "probability"

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
        return np.column_stack(self._ends(self._read(X)[1], Numbers))

    def _ends(self, s, do):
        low = do.steps(s, self.thresholds_, self.lower_)
        return low, do.steps(s, self.thresholds_, self.upper_, "left")

    def formula(self, z, s, do):
        """What both ends say together."""
        low, high = self._ends(s, do)
        return high / (1 - low + high)


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
    knots_ : ndarray of shape (2,)
        The lowest and the highest log-odds.
    slopes_ : ndarray of shape (2,)
        Rise of the map at both, at least 0, times the width between them.
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
    _degree = 1  # of the slope

    def _fit(self, X, log_odds, y, weights, knots=None):
        self.knots_ = np.array(_span(log_odds.min(), log_odds.max())) if knots is None else knots
        *slopes, intercept = _fit_curve(self.knots_, self._degree, log_odds, y, weights)
        self.slopes_, self.intercept_ = np.array(slopes), float(intercept)

    def formula(self, z, s, do):
        """The curve."""
        return do.curve(self, s)

    def curve(self, log_odds):
        """The map's log-odds."""
        columns = _columns(log_odds, self.knots_, self._degree)
        return columns @ [*self.slopes_, self.intercept_]

    def cubics(self):
        """The map's log-odds before, between and after the knots, for who computes them elsewhere.

        Returns
        -------
        ndarray of shape (k + 1, 4)
            Coefficients, the highest power first, of the distance from the knot at the left; of the
            distance from the first knot before it.
        """
        at, width = np.linspace(0, 1, 4), np.diff(self.knots_)[:, None]
        heights = self.curve((self.knots_[:-1, None] + width * at).ravel()).reshape(-1, 4)
        inner = np.linalg.solve(np.vander(at), heights.T).T / width ** np.arange(3, -1, -1)
        rise = np.polyval(np.polyder(inner[-1]), width[-1, 0])
        return np.vstack([[0, 0, *inner[0, 2:]], inner, [0, 0, rise, heights[-1, -1]]])


class SplineCalibration(QuadraticCalibration):
    """Logistic regression on a natural cubic spline of the log-odds, never decreasing.

    Parameters
    ----------
    knots : tuple of int, default=(2, 3, 4, 5, 6, 8)
        Numbers of knots, of which the lowest cross-fitted log-loss chooses. They lie at evenly
        spaced quantiles of the log-odds, the outermost at 5 % and 95 %; beyond these the map is
        straight. Two make a line: Platt scaling of the log-odds, but for its rise.
    folds : int, default=5
        Number of folds (at most the size of the smaller class).
    random_state : int, default=0
        Seed that shuffles the rows into folds.

    Attributes
    ----------
    knots_ : ndarray of shape (k,)
        The knots, in log-odds. Equal ones are one.
    slopes_ : ndarray of shape (k - 1,)
        The slope's coefficients in quadratic B-splines that are level at the outermost knots, at
        least 0, times the width between these.
    intercept_ : float
        The map's value at the first knot.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Lucena (2018), "Spline-based probability calibration", without its penalty: the number of knots
    is what keeps the curve plain. Of more than 100,000 rows so many decide that number; with one
    row of a class the lowest is taken. A cubic spline would swing where the curve bends sharply:
    its slope has no coefficient below 0, so that it keeps the order of the predictions. The
    log-loss never exceeds temperature scaling's.

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
    _degree = 2

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
                    knots = _quantiles(s[fit], w[fit], number)
                    theta = _fit_curve(knots, 2, s[fit], ones[fit], w[fit] / w[fit].sum())
                    losses[i] += log_loss(_columns(s[test], knots, 2) @ theta, ones[test], w[test])
        knots = _quantiles(log_odds, weights, numbers[losses.argmin()])
        super()._fit(X, log_odds, y, weights, knots)


def _span(low, high):
    """The ends of a range that has a width, whatever rounding left of it."""
    least = max(1.0, abs(low), abs(high))
    return low, high if high - low > 1e-12 * least else low + least


def _quantiles(log_odds, weights, number):
    """Knots at quantiles, apart from each other."""
    shares = np.linspace(0.05, 0.95, number) - 1e-9  # against rounding
    knots = np.quantile(log_odds, shares, weights=weights, method="inverted_cdf")
    low, high = _span(knots[0], knots[-1])
    knots = np.append(knots[knots - low < 0.999 * (high - low)], high)
    return knots[np.diff(knots, prepend=-np.inf) > 1e-3 * (high - low)]


def _fit_curve(knots, degree, log_odds, y, weights):
    """Slopes and intercept of least log-loss."""
    columns = _columns(log_odds, knots, degree)
    line = np.append(np.full(columns.shape[1] - 1, knots[-1] - knots[0]), knots[0])
    return fit_rising(columns, y, weights, fit_slope(log_odds, y, weights) * line)


def _columns(log_odds, knots, degree):
    """Curves whose slopes are B-splines, straight beyond the knots, and ones.

    B-splines of degree 2 are joined at the outermost knots so that they are level there.
    """
    z = (log_odds - knots[0]) / (knots[-1] - knots[0])
    inside, k = np.clip(z, 0, 1), len(knots) - 1
    places = np.pad((knots - knots[0]) / (knots[-1] - knots[0]), degree, mode="edge")
    joined = np.ones(k, int) + (np.arange(k) == 0) + (np.arange(k) == k - 1)
    slope = BSpline(places, np.repeat(np.eye(k), joined, 0) if degree == 2 else np.eye(2), degree)
    curves = slope.antiderivative()(inside) + slope(inside) * (z - inside)[:, None]
    return np.column_stack([curves, np.ones(len(z))])
