"""The maps of all calibrators.

Temperature and Platt scaling, beta and Dirichlet calibration have a few numbers; isotonic
regression, histogram binning and Mix-n-Match follow the data.
"""

import warnings

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression

from ..metrics.sample import bin_starts
from ..validation import check_integer, check_number
from .base import (
    RIDGE,
    Calibrator,
    Numbers,
    cross_fit_folds,
    fit_logistic,
    fit_rising,
    log_loss,
    rms,
)

__all__ = ["BetaCalibration", "DirichletCalibration", "HistogramBinning", "IsotonicCalibration"]
__all__ += ["IsotonicMixNMatch", "MixNMatch", "PlattScaling", "TemperatureScaling"]

STEEPER = 1e-4
"""Log-loss that a steeper map would save Dirichlet calibration before it says so."""


class TemperatureScaling(Calibrator):
    r"""Divide the logits by one positive number, the temperature.

    :math:`f(z) = \mathrm{softmax}(z / T)`, with the T of least log-loss on the rows of `fit`.

    Attributes
    ----------
    temperature_ : float
        T; above 1 if the logits were over-confident.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Guo et al. (2017), "On calibration of modern neural networks"; paper, Appendix H. The
    log-loss is convex in 1/T; its slope's only root is found by Brent's method. 1/T is kept
    at :math:`\min(1, 10^{-3}/\max|s|)` or more (s is the log-odds), which leaves every
    probability within 0.00025 of 1/2: this is where logits that are worse than none end, with a
    `ConvergenceWarning`. One number cannot mend a wrong base rate: the prediction for even odds
    stays 1/2. A penalty of
    :math:`10^{-8}\min(1, \mathrm{rms}(s))^2 (1/T - 1)^2` keeps separable data finite; it is
    nought at T = 1, so that the log-loss never exceeds the uncalibrated one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-s))
    >>> round(TemperatureScaling().fit(3 * s, y).temperature_, 1)
    3.0
    """

    label = "temperature scaling"

    def _fit(self, X, log_odds, y, weights):
        slope = fit_slope(log_odds, y, weights)
        self.temperature_ = 1 / slope
        # The log-loss is convex, so that this is the most that any lower slope can gain.
        excess = slope * (weights @ (log_odds * (expit(slope * log_odds) - y)))
        if slope == lowest_slope(log_odds) and excess > 1e-9:
            _warn_short(
                self, excess, "the logits are worse than none, and no temperature is finite"
            )

    def formula(self, z, s, do):
        """The log-odds over the temperature."""
        return s / do.number(self.temperature_)


class PlattScaling(Calibrator):
    r"""Logistic regression on the logits.

    :math:`f(z) = \sigma(W^\top z + b)`, with W in :math:`\mathbb{R}^2` for two columns of logits,
    as in the paper, or one slope for log-odds, as in Platt (1999).

    Attributes
    ----------
    coef_ : ndarray of shape (1, 2) or (1, 1)
        W. Where one column of logits determines the other (as :math:`z_0 = -z_1` does), many W
        give the same map; of these it is the smallest.
    intercept_ : ndarray of shape (1,)
        The intercept b.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Platt (1999); paper, Appendix H. With two columns the map also uses the mean of both logits,
    which the softmax ignores, so that it may change the order of the predictions; pass the
    log-odds (n,) to keep it. Beside the log-loss there is only :math:`10^{-8}` times the squared
    distance from temperature scaling, in columns of unit size, which makes the solution finite and
    unique; the log-loss never exceeds temperature scaling's.

    Examples
    --------
    >>> import numpy as np
    >>> s = np.repeat([-1.0, 1.0], 10)
    >>> y = [0] * 9 + [1] + [0] * 2 + [1] * 8   # one of ten, eight of ten
    >>> PlattScaling().fit(s, y).predict_proba([-1.0, 1.0])[:, 1].round(6)
    array([0.1, 0.8])
    """

    label = "Platt scaling"

    def _fit(self, X, log_odds, y, weights):
        columns, slope = [log_odds], fit_slope(log_odds, y, weights)
        if X.shape[1] == 2:
            mean = X[:, 0] / 2 + X[:, 1] / 2
            # A mean that varies by rounding errors only must not be blown up to unit size.
            if rms(mean - weights @ mean, weights) > 1e-6 * rms(log_odds, weights):
                columns.append(mean)
        columns = np.column_stack(columns)
        centre = weights @ columns
        start = np.r_[slope, np.zeros(len(centre) - 1), slope * centre[0]]
        spread = columns - centre
        spread[:, np.abs(spread).max(axis=0) < 1e-12 * np.abs(columns).max(axis=0)] = 0  # rounding
        columns = np.column_stack([spread, np.ones(len(y))])
        *theta, intercept = fit_logistic(columns, y, weights, start, 0 * start)
        common = theta[1] if len(theta) > 1 else 0.0
        both = [common / 2 - theta[0], common / 2 + theta[0]]
        self.coef_ = np.array([both if X.shape[1] == 2 else theta])
        self.intercept_ = np.array([intercept - theta @ centre])

    def formula(self, z, s, do):
        """A line, or a plane."""
        return do.dot(z, self.coef_[0]) + do.number(self.intercept_[0])


def _warn_short(calibrator, excess, why):
    """Say that a fit stops above its best log-loss, at the line that called ``fit``."""
    text = f"{type(calibrator).__name__} stops up to {excess:.1e} above its best log-loss: {why}."
    warnings.warn(text, ConvergenceWarning, stacklevel=4)


def fit_intercept(log_odds, y, weights):
    """The one number to add to log-odds that makes the mean prediction the mean outcome."""
    return brentq(lambda c: weights @ (expit(log_odds + c) - y), -100, 100, maxiter=10_000)


def fit_slope(log_odds, y, weights):
    """The factor 1/T of temperature scaling: positive, finite, best in log-loss."""
    largest = np.abs(log_odds).max()
    if largest < 1e-12:  # every probability is 1/2 to within rounding: nothing to scale
        return 1.0
    lowest = lowest_slope(log_odds)
    ridge = 2 * RIDGE * min(1.0, rms(log_odds, weights)) ** 2

    def derivative(slope):
        return weights @ (log_odds * (expit(slope * log_odds) - y)) + ridge * (slope - 1)

    if derivative(lowest) >= 0:
        return lowest
    highest = 1 / largest
    while derivative(highest) < 0:
        highest *= 4
    return brentq(derivative, lowest, highest, xtol=1e-300, rtol=1e-13)


def lowest_slope(log_odds):
    """Where 1/T stops: there no probability is further than 0.00025 from 1/2."""
    largest = np.abs(log_odds).max()
    return min(1.0, 1e-3 / largest) if largest >= 1e-12 else 0.0


class BetaCalibration(Calibrator):
    r"""The map between two beta distributions' likelihoods, never decreasing.

    :math:`\mathrm{logit} f = a \log \hat p - b \log(1 - \hat p) + c`, :math:`a, b \ge 0`.

    Attributes
    ----------
    a_, b_, c_ : float
        The three parameters; (1, 1, 0) is the identity.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Kull, Silva Filho and Flach (2017), "Beta calibration"; paper, Appendix H. The best fit under
    both bounds is found by solving the convex problem with sets of parameters held at 0;
    ties are decided as in `PlattScaling`. The log-loss never exceeds temperature scaling's,
    which is the case a = b = 1/T, c = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from probnb.calibrators import logits_from_probabilities
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 5, size=5000)
    >>> y = rng.random(5000) < p
    >>> beta = BetaCalibration().fit(logits_from_probabilities(p**2), y)
    >>> bool(abs(beta.predict_proba(logits_from_probabilities([0.25]))[0, 1] - 0.5) < 0.02)
    True
    """

    label = "beta calibration"

    def _fit(self, X, log_odds, y, weights):
        theta = _fit_beta(log_odds, y, weights, bounded=True)
        self.a_, self.b_, self.c_ = map(float, theta)

    def formula(self, z, s, do):
        """As in the class's first formula."""
        return _beta_log_odds(s, self.a_, self.b_, self.c_, do)


class DirichletCalibration(Calibrator):
    r"""Softmax regression on the log-probabilities, with ODIR regularisation.

    :math:`f = \mathrm{softmax}(W \log \hat p + b)`, where the penalty
    :math:`\lambda \sum_{i \ne j} W_{ij}^2 / 2 + \mu \sum_j b_j^2 / 2` falls on the off-diagonal
    weights and the intercepts.

    Parameters
    ----------
    mu : float or None, default=None
        Weight of the intercepts' penalty. None chooses it among `grid` by cross-validation.
    grid : tuple of float, default=(1e-4, 1e-3, 1e-2, 1e-1, 1, 10)
        The values of `mu` that are tried.
    folds : int, default=5
        Number of folds (at most the size of the smaller class; with one row of a class the
        middle of the grid is taken).
    random_state : int, default=0
        Seed that shuffles the rows into folds.

    Attributes
    ----------
    weights_ : ndarray of shape (2, 2)
        W; (1, 0; 0, 1) is the identity.
    intercepts_ : ndarray of shape (2,)
        The intercepts b, whose sum is 0.
    mu_ : float
        The penalty that was used.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Kull et al. (2019), "Beyond temperature scaling"; paper, Appendix H. With two outcomes the
    softmax depends on W only through :math:`a = W_{11} - W_{01}` and
    :math:`d = W_{00} - W_{10}`, which the diagonal alone can reach. The best off-diagonal
    weights are therefore 0 for every :math:`\lambda > 0`, and the method is beta calibration
    without bounds and with the penalty :math:`\mu c^2 / 4` on its intercept; so it is solved.
    The identity is not penalised: the log-loss never exceeds the uncalibrated one. Separable rows
    want a map that is ever steeper: where one would save more than 0.0001 of the log-loss, a
    `ConvergenceWarning` says so.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-s / 2 - 1))
    >>> dirichlet = DirichletCalibration(mu=1e-4).fit(s, y)
    >>> bool(abs(dirichlet.predict_proba([0.0])[0, 1] - 0.731) < 0.03)
    True
    """

    label = "Dirichlet calibration"

    def __init__(self, mu=None, grid=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0), folds=5, random_state=0):
        self.mu = mu
        self.grid = grid
        self.folds = folds
        self.random_state = random_state

    def _fit(self, X, log_odds, y, weights):
        if self.mu is None:
            grid = sorted(check_number(mu, "grid", minimum=0) for mu in self.grid)
            self.mu_ = self._choose(log_odds, y, weights, grid)
        else:
            self.mu_ = check_number(self.mu, "mu", minimum=0)
        a, d, c = _fit_beta(log_odds, y, weights, mu=self.mu_)
        self.weights_, self.intercepts_ = np.diag([d, a]), np.array([-c / 2, c / 2])
        odds, penalty = _beta_log_odds(log_odds, a, d, c), self.mu_ / 4 * c**2
        here, *steeper = (
            log_loss(k * odds, y, weights) + k**2 * penalty for k in (1, 10, 1e3, 1e6, 1e9)
        )
        if here - min(steeper) > STEEPER:
            _warn_short(
                self, here - min(steeper), "the rows are separable, and no map is steep enough"
            )

    def _choose(self, log_odds, y, weights, grid):
        """The penalty of least cross-validated log-loss; the larger one if two are equal."""
        if min(y.sum(), (1 - y).sum()) < 2:
            return grid[len(grid) // 2]
        losses = np.zeros(len(grid))
        for train, test in cross_fit_folds(y, None, self.folds, self.random_state):
            share = weights[train] / weights[train].sum()
            for i, mu in enumerate(grid):
                fit = _fit_beta(log_odds[train], y[train], share, mu=mu)
                losses[i] += log_loss(_beta_log_odds(log_odds[test], *fit), y[test], weights[test])
        return grid[len(grid) - 1 - int(np.argmin(losses[::-1]))]

    def formula(self, z, s, do):
        """That of beta calibration."""
        (d, a), c = np.diag(self.weights_), self.intercepts_[1] - self.intercepts_[0]
        return _beta_log_odds(s, a, d, c, do)


def _beta_log_odds(s, a, b, c, do=Numbers):
    a, b, c = map(do.number, (a, b, c))
    return a * do.log_expit(s) - b * do.log_expit(-s) + c


def _fit_beta(log_odds, y, weights, mu=0.0, bounded=False):
    """Best (a, b, c) with the penalty mu c^2 / 4; a and b are at least 0 if `bounded`."""
    columns = np.column_stack([log_expit(log_odds), -log_expit(-log_odds), np.ones(len(y))])
    start = fit_slope(log_odds, y, weights) * np.array([1.0, 1.0, 0.0])
    if bounded:
        return fit_rising(columns, y, weights, start)
    found = start, fit_logistic(columns, y, weights, start, np.array([0.0, 0.0, mu / 4]))
    return min(found, key=lambda t: log_loss(columns @ t, y, weights) + mu / 4 * t[2] ** 2)


class IsotonicCalibration(Calibrator):
    """The non-decreasing map of least squared error (and of least log-loss).

    Attributes
    ----------
    thresholds_, values_ : ndarray of shape (k,)
        Ends of the steps, in log-odds, and their probabilities; joined by lines where no row was
        seen.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Zadrozny and Elkan (2002). The lowest and highest steps may be 0 and 1 exactly, so that the
    log-loss of new rows may be infinite. Log-odds beyond those seen get the outermost steps.

    Examples
    --------
    >>> import numpy as np
    >>> s, y = np.repeat([-1, 0, 2], 20), np.repeat([0, 1, 0, 1, 0, 1], [12, 8, 16, 4, 2, 18])
    >>> IsotonicCalibration().fit(s, y).predict_proba([-1.0, 0.0, 1.0, 2.0])[:, 1]
    array([0.3, 0.3, 0.6, 0.9])
    """

    label = "isotonic regression"
    gives = "probability"

    def _fit(self, X, log_odds, y, weights):
        self.thresholds_, self.values_ = _steps(log_odds, y, weights)

    def formula(self, z, s, do):
        """Steps joined by lines."""
        return do.lines(s, self.thresholds_, self.values_)


class HistogramBinning(Calibrator):
    """The mean outcome of each quantile bin of the predictions.

    Parameters
    ----------
    bins : int, default=15
        Number of bins of equal weight. Equal predictions share a bin, so that there may be fewer.

    Attributes
    ----------
    edges_ : ndarray of shape (k - 1,)
        Half-way between the log-odds of neighbouring bins, which are those of
        `probnb.metrics.reliability_bins`.
    probabilities_ : ndarray of shape (k,)
        Mean outcome of each bin.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Zadrozny and Elkan (2001). A bin without a 1 predicts 0, so that the log-loss of new rows
    may be infinite. The only calibrator here that may be worse than the uncalibrated
    predictions on the rows of `fit` themselves: it forgets the order within a bin.

    Examples
    --------
    >>> import numpy as np
    >>> s, y = np.repeat([-1, 2], 20), np.repeat([0, 1, 0, 1], [15, 5, 6, 14])
    >>> HistogramBinning(bins=2).fit(s, y).probabilities_
    array([0.25, 0.7 ])
    """

    label = "histogram binning"
    gives = "probability"

    def __init__(self, bins=15):
        self.bins = bins

    def _fit(self, X, log_odds, y, weights):
        bins = check_integer(self.bins, "bins")
        order = np.argsort(log_odds)
        s, w = log_odds[order], weights[order]
        starts = bin_starts(s, None if np.ptp(w) == 0 else w, bins)
        below, above = s[starts[1:] - 1], s[starts[1:]]
        middle = below / 2 + above / 2
        self.edges_ = np.where(middle > below, middle, above)  # two neighbours have no middle
        self.probabilities_ = np.add.reduceat(w * y[order], starts) / np.add.reduceat(w, starts)

    def formula(self, z, s, do):
        """The mean of the bin."""
        return do.steps(s, self.edges_, self.probabilities_)


class MixNMatch(Calibrator):
    r"""A mixture of three temperatures, then, if asked for, isotonic regression.

    :math:`w_1\,\mathrm{softmax}(z/T) + w_2\,\mathrm{softmax}(z) + w_3/2`: the temperatures are T,
    1 and infinity.

    Parameters
    ----------
    isotonic : bool, default=False
        Whether isotonic regression follows, as the paper's text has it. Its table's values were
        obtained without: there the AUC equals temperature scaling's, which isotonic regression
        would change.

    Attributes
    ----------
    temperature_ : float
        T, that of `TemperatureScaling`.
    weights_ : ndarray of shape (3,)
        w, not negative, sum 1: the mixture of least log-loss, which is convex in w.
    thresholds_, values_ : ndarray of shape (k,), or None
        The last step, a map of the mixture; None without it.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Zhang, Kailkhura and Han (2020), "Mix-n-Match"; paper, Appendix H, which prints the
    temperature 0 where the method has 1. The mixture rises with the log-odds, so isotonic
    regression gives each row of `fit` what it would give without the mixture, which then only
    shapes the lines between the steps.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=2000)
    >>> y = rng.random(2000) < 0.8 / (1 + np.exp(-4 * s)) + 0.1
    >>> MixNMatch().fit(4 * s, y).weights_.sum().round(12)
    np.float64(1.0)
    """

    label = "Mix-n-Match"
    gives = "probability"

    def __init__(self, isotonic=False):
        self.isotonic = isotonic

    def _fit(self, X, log_odds, y, weights):
        self.temperature_ = 1 / fit_slope(log_odds, y, weights)
        signed = np.where(y == 1, log_odds, -log_odds)
        log_likelihood = np.column_stack(
            [log_expit(signed / self.temperature_), log_expit(signed), np.full(len(y), -np.log(2))]
        )
        self.weights_ = mixture_weights(log_likelihood, weights)
        self.thresholds_ = self.values_ = None
        if self.isotonic:
            mixed = self.formula(X, log_odds, Numbers)
            self.thresholds_, self.values_ = _steps(mixed, y, weights)

    def formula(self, z, s, do):
        """The mixture, and the steps."""
        first, second, third = map(do.number, self.weights_)
        scaled = s / do.number(self.temperature_)
        p = first * do.expit(scaled) + second * do.expit(s) + third / 2
        return p if self.thresholds_ is None else do.lines(p, self.thresholds_, self.values_)

    def _both(self, X, log_odds):
        if self.thresholds_ is not None:
            return super()._both(X, log_odds)
        # The other column by symmetry: 1 - p would lose the digits of a p near 1.
        return np.column_stack([self.formula(-X, s, Numbers) for s in (-log_odds, log_odds)])


class IsotonicMixNMatch(MixNMatch):
    """`MixNMatch` with the isotonic regression that the paper's text has: a row of its own.

    Isotonic regression can give a prediction of 0 or 1, whose log-loss and KL_p may be infinite.

    Parameters
    ----------
    isotonic : bool, default=True
        As in `MixNMatch`.

    Examples
    --------
    >>> import numpy as np
    >>> IsotonicMixNMatch().fit(np.array([-2.0, -1, 1, 2]), [0, 1, 0, 1]).values_
    array([0. , 0.5, 0.5, 1. ])
    """

    label = "Mix-n-Match, isotonic"

    def __init__(self, isotonic=True):
        super().__init__(isotonic)


def _steps(x, y, weights):
    """Isotonic regression as the ends of its steps and their heights."""
    fit = IsotonicRegression(y_min=0, y_max=1).fit(x, y, sample_weight=weights)
    return fit.X_thresholds_, fit.y_thresholds_


def mixture_weights(log_likelihood, weights):
    """Find the mixture of given components of least mean -log(sum_j v_j L_ij)."""
    L = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    k = L.shape[1]

    def loss(v):  # least on the simplex, where the sum of v is 1
        mixed = L @ v + np.finfo(float).tiny
        return v.sum() - weights @ np.log(mixed), 1 - (weights / mixed) @ L

    how = {"bounds": [(0, None)] * k, "options": {"ftol": 0, "gtol": 1e-13, "maxiter": 1000}}
    v = minimize(loss, np.full(k, 1 / k), jac=True, method="L-BFGS-B", **how).x
    for _ in range(20):  # the old rule never rises, and gives the last digits
        v = v * (weights @ (L / (L @ v)[:, None]))
    return v / v.sum()
