"""What the calibrators share: reading logits, labels and weights, and one convex solver."""

import numpy as np
from pandas import factorize
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit, log_expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from ..metrics.registry import CLIP
from ..metrics.sample import check_row_weights
from ..validation import check_integer, check_probabilities, plain_array, refuse_masked

RIDGE = 1e-8  # decides between equally good fits and keeps separable ones finite


class Numbers:
    """What formulas are made of, in NumPy; others have the same names.

    Besides the functions of those names: a `number` of the formula, `lines` through points, `dot`
    as the sum of columns times factors, a `curve` of `QuadraticCalibration` or `SplineCalibration`.
    """

    expit, log_expit, lines, dot = map(staticmethod, (expit, log_expit, np.interp, np.matmul))
    number = staticmethod(lambda x: x)
    curve = staticmethod(lambda calibrator, x: calibrator.curve(x))

    @staticmethod
    def steps(x, edges, values, side="right"):
        """The value of the step that x is on; on an edge the one that is at this side of it."""
        return values[np.searchsorted(edges, x, side)]


def probability(calibrator, z, s, do):
    """Return the calibrated probability of outcome 1, computed by other functions than NumPy's.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted one.
    z, s : array-like
        Logits as in `fit`, and their log-odds.
    do : object
        The functions of `Numbers` for the kind of `s`.
    """
    found = calibrator.formula(z, s, do)
    return do.expit(found) if calibrator.gives == "log-odds" else found


class Calibrator(ClassifierMixin, BaseEstimator):
    """The scikit-learn contract for a map of log-odds.

    A calibrator adds a ``label`` for tables, ``_fit(X, log_odds, y, weights)``, whose weights are
    above 0 and add up to 1, and ``formula(z, s, do)``: the calibrated log-odds, or where ``gives``
    says so the probability, of logits and log-odds. It is written once, in the functions of `do`,
    and computed by NumPy, and by torch in an exported model.
    """

    label = ""
    gives = "log-odds"

    def fit(self, X, y, sample_weight=None):
        """Fit the map to the logits of held-out rows.

        Parameters
        ----------
        X : array-like of shape (n, 2), (n, 1) or (n,)
            Logits before the softmax, the second column that of the outcome 1; or the log-odds
            of outcome 1 alone, which carry the same probability.
        y : array-like of shape (n,)
            Outcomes of two classes (0 and 1, or any two labels, in sorted order).
        sample_weight : array-like of shape (n,), optional
            Weight of each row, at least 0; their scale does not matter. Rows of weight 0 are left
            out.

        Returns
        -------
        self : estimator
            The fitted calibrator.

        Raises
        ------
        ValueError
            If `X` has another shape or a value that is not finite, or `y` is not of two classes.
        """
        refuse_masked(y, "y")
        y = plain_array(y, "y") if isinstance(y, (list, tuple)) or hasattr(y, "detach") else y
        X, y = validate_data(self, _as_columns(X), y, dtype=np.float64)
        check_classification_targets(y)
        kept, weights = check_row_weights(sample_weight, len(y), "sample_weight")
        if kept is not None:
            X, y = X[kept], y[kept]
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            kind = "one class only" if len(self.classes_) < 2 else type_of_target(y)
            raise ValueError(
                "Only binary classification is supported: y must hold two classes. The type of the "
                f"target is {kind}; got {self.classes_[:5]}."
            )
        weights = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
        self._fit(X, self._log_odds(X), y.astype(np.float64), weights)
        return self

    def predict_proba(self, X):
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n, 2), (n, 1) or (n,)
            Logits or log-odds, with as many columns as in `fit`.

        Returns
        -------
        ndarray of shape (n, 2)
            Probabilities of ``classes_``, float64; the second column is that of outcome 1.
        """
        return self._both(*self._read(X))

    def _both(self, X, log_odds):
        found = self.formula(X, log_odds, Numbers)
        if self.gives == "log-odds":  # each column with full relative precision
            return np.column_stack([expit(-found), expit(found)])
        return np.column_stack([1 - found, found])

    def predict(self, X):
        """The more probable class of each row (the first if both have 1/2).

        Parameters
        ----------
        X : array-like of shape (n, 2), (n, 1) or (n,)
            Logits or log-odds, with as many columns as in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Labels from ``classes_``.
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _read(self, X):
        """The logits of new rows as columns, and their log-odds."""
        check_is_fitted(self)
        X = validate_data(self, _as_columns(X), dtype=np.float64, reset=False)
        return X, self._log_odds(X)

    def _log_odds(self, X):
        if X.shape[1] > 2:
            raise ValueError(
                f"X must hold two columns of logits, or one of log-odds; got {X.shape[1]}."
            )
        if (largest := np.abs(X).max()) > 1e150:  # whose squares are no numbers
            raise ValueError(f"X must hold logits of at most 1e150 in size; got {largest:g}.")
        return X[:, 0] if X.shape[1] == 1 else X[:, 1] - X[:, 0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def logits_from_probabilities(p):
    r"""Two columns of logits whose softmax gives the probabilities.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of outcome 1. As in `probnb.metrics.registry.nll`, they are moved into
        [2.2e-16, 1 - 2.2e-16] first, so that 0 and 1 get log-odds of -36.04 and 36.04 in place
        of infinite ones.

    Returns
    -------
    ndarray of shape (n, 2)
        :math:`(-s/2, s/2)` with the log-odds :math:`s = \log(p/(1-p))`.

    Raises
    ------
    ValueError
        If a probability is outside [0, 1] or not a number.

    Examples
    --------
    >>> logits_from_probabilities([0.5, 0.75, 1.0]).round(3)
    array([[ -0.   ,   0.   ],
           [ -0.549,   0.549],
           [-18.022,  18.022]])
    """
    p = np.clip(check_probabilities(p, "p"), CLIP, 1 - CLIP)
    return logit(p)[:, None] * [-0.5, 0.5]


def cross_fit_folds(y, groups=None, folds=5, seed=0):
    """Rows to fit and rows to judge, fold by fold: both outcomes in each fit, groups whole.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Outcomes, 0 and 1.
    groups : array-like of shape (n,), optional
        What rows share; no fold cuts through a group.
    folds : int, default=5
        At most; fewer where an outcome or the groups are few.
    seed : int, default=0
        Seed that shuffles rows or groups into folds.

    Returns
    -------
    list of (ndarray, ndarray)
        Places of the rows to fit and of those to judge.

    Raises
    ------
    ValueError
        If rows are too few for both outcomes to be in every fit.
    """
    codes, number = (None, len(y)) if groups is None else (factorize(groups)[0], len(set(groups)))
    folds = min(check_integer(folds, "folds", 2), int(min(y.sum(), (1 - y).sum())), number)
    if folds < 2:
        raise ValueError("outcomes must have two rows of 0 and of 1, and groups be two, to divide.")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    cut = kind(folds, shuffle=True, random_state=seed).split(y, y, codes)
    splits = [(train, test) for train, test in cut if len(test)]
    if not all(np.ptp(y[train]) > 0 for train, _ in splits):
        raise ValueError("groups must leave both outcomes in every fit; one fold takes all of one.")
    return splits


def cross_fit(calibrator, x, y, weights, splits):
    """Return the probability of each row by a calibrator that is fitted to the other folds."""
    p = np.empty(len(y))
    for fit, test in splits:
        own = None if weights is None else weights[fit]
        p[test] = (
            clone(calibrator).fit(x[fit], y[fit], sample_weight=own).predict_proba(x[test])[:, 1]
        )
    return p


def rms(x, weights):
    """Root mean square of a vector, 1 if that is 0 (so that it can divide)."""
    return float(np.sqrt(weights @ x**2)) or 1.0


def log_loss(log_odds, y, weights):
    """Mean log-loss; `y` may lie between 0 and 1."""
    return weights @ (y * np.logaddexp(0, -log_odds) + (1 - y) * np.logaddexp(0, log_odds))


def fit_rising(columns, y, weights, start):
    """Best logistic regression whose coefficients but the last are at least 0, as `start` is.

    Coefficients below 0 are held there; of those held, the one that would gain most is set free.
    """
    free, found, size = np.ones(len(start), bool), [start], [rms(c, weights) for c in columns.T]
    for _ in range(30):
        theta = np.zeros(len(start))
        theta[free] = fit_logistic(columns[:, free], y, weights, start[free], 0 * start[free])
        if (theta[:-1] < 0).any():
            free[:-1] &= theta[:-1] >= 0
            continue
        found.append(theta)
        slope = np.where(free, 0, (weights * (expit(columns @ theta) - y)) @ columns / size)
        if slope.min() > -1e-9:
            break
        free[slope.argmin()] = True
    return min(found, key=lambda t: log_loss(columns @ t, y, weights))


def fit_logistic(X, y, weights, start, penalty):
    """Minimise the mean log-loss of ``expit(X @ theta)`` plus ``penalty * theta**2``.

    By a trust region: the two log-probabilities are nearly dependent, which stops plain Newton
    steps short. A ridge about `start`, on columns of unit size, keeps separable rows finite.
    """
    size = np.array([rms(column, weights) for column in X.T])
    X, start, penalty = X / size, start * size, penalty / size**2

    def value(theta):
        ridge = RIDGE * np.sum((theta - start) ** 2)
        return log_loss(X @ theta, y, weights) + np.sum(penalty * theta**2) + ridge

    def gradient(theta):
        pull = penalty * theta + RIDGE * (theta - start)
        return (weights * (expit(X @ theta) - y)) @ X + 2 * pull

    def hessian(theta):
        q = expit(X @ theta)
        return (X.T * (weights * q * (1 - q))) @ X + 2 * np.diag(penalty + RIDGE)

    how = {"method": "trust-exact", "options": {"gtol": 1e-11, "maxiter": 1000}}
    return minimize(value, start, jac=gradient, hess=hessian, **how).x / size


def _as_columns(X):
    if issparse(X) or hasattr(X, "columns"):
        return X
    X = plain_array(X, "X")
    return X.reshape(-1, 1) if X.ndim == 1 else X
