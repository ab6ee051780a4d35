"""What the calibrators share: reading logits and labels, flags, and one convex solver."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit, logit
from scipy.stats import mannwhitneyu
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from ..metrics.scores import CLIP
from ..validation import check_probabilities

__all__ = ["CalibrationWarning", "logits_from_probabilities"]

RIDGE = 1e-8  # decides between equally good fits and keeps separable ones finite
_MESSAGES = {
    "separable": "the logits separate the outcomes perfectly, so that no finite map is best; the "
    "fit stops at a steep one, whose certainty the data cannot support",
    "inverted": "the outcomes fall as the logits rise; are the labels or the columns swapped?",
    "uninformative": "the logits do not order the outcomes better than chance would; the fit "
    "says little more than the base rate",
    "bounded": "the best temperature is infinite; the fit stops at a large one, which makes every "
    "probability 1/2",
}


class CalibrationWarning(UserWarning):
    """A calibrator was fitted to outcomes that make its map doubtful; see its ``flags_``."""


class Calibrator(ClassifierMixin, BaseEstimator):
    """The scikit-learn contract for a map of log-odds.

    A calibrator adds ``_fit(X, log_odds, y)``, which may return further flags, and
    ``_map(X, log_odds)``.
    """

    def fit(self, X, y):
        """Fit the map to the logits of held-out rows.

        Parameters
        ----------
        X : array-like of shape (n, 2), (n, 1) or (n,)
            Logits before the softmax, the second column that of the outcome 1; or the log-odds
            of outcome 1 alone, which carry the same probability.
        y : array-like of shape (n,)
            Outcomes of two classes (0 and 1, or any two labels, in sorted order).

        Returns
        -------
        self : estimator
            The fitted calibrator.

        Raises
        ------
        ValueError
            If `X` has another shape or a value that is not finite, or `y` is not of two classes.

        Warns
        -----
        CalibrationWarning
            If the outcomes are separable, inverted or unrelated to the logits (see ``flags_``).
        """
        X, y = _as_columns(X), np.asarray(y) if isinstance(y, (list, tuple)) else y
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            kind = type_of_target(y)
            raise ValueError(
                "Only binary classification is supported: y must hold two classes; "
                f"The type of the target is {kind}, with {len(self.classes_)} classes."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold two classes; got one class only, {self.classes_[0]!r}, from which "
                "no calibration can be learnt."
            )
        y = y.astype(np.float64)
        log_odds = self._log_odds(X)
        self.flags_ = _flags(log_odds, y) + (self._fit(X, log_odds, y) or ())
        for flag in self.flags_:
            message = f"{type(self).__name__}: {_MESSAGES[flag]}."
            warnings.warn(message, CalibrationWarning, stacklevel=2)
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
        check_is_fitted(self)
        X = validate_data(self, _as_columns(X), dtype=np.float64, reset=False)
        return self._map(X, self._log_odds(X))

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
        more_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[more_probable]

    def _log_odds(self, X):
        if X.shape[1] > 2:
            raise ValueError(
                f"X must hold two columns of logits, or one of log-odds; got {X.shape[1]} columns."
            )
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
        Probabilities of outcome 1. As in `probnb.metrics.scores.nll`, they are moved into
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


def two_columns(log_odds):
    """Probabilities of both outcomes, each with full relative precision."""
    return np.column_stack([expit(-log_odds), expit(log_odds)])


def rms(x):
    """Root mean square of a vector, 1 if that is 0 (so that it can divide)."""
    largest = np.abs(x).max()
    return largest * np.sqrt(np.mean((x / largest) ** 2)) if largest > 0 else 1.0


def solve_logistic(X, y, start, penalty=None):
    """Minimise the mean log-loss of ``expit(X @ theta)`` by a trust-region Newton method.

    Parameters
    ----------
    X : ndarray of shape (n, k)
        Columns of about unit size.
    y : ndarray of shape (n,)
        Outcomes, 0.0 and 1.0.
    start : ndarray of shape (k,)
        Where to start. ``RIDGE * |theta - start|**2`` is added, so that a best theta exists and
        is unique for any data, with a log-loss not above that of `start`.
    penalty : ndarray of shape (k,), optional
        Weights of a further penalty, ``penalty @ theta**2``.

    Returns
    -------
    ndarray of shape (k,)
        The minimiser.
    """
    penalty = np.zeros(len(start)) if penalty is None else penalty
    signed = np.where(y == 1, -1.0, 1.0)

    def value(theta):
        loss = np.logaddexp(0, signed * (X @ theta)).mean()
        return loss + RIDGE * np.sum((theta - start) ** 2) + penalty @ theta**2

    def gradient(theta):
        residual = expit(X @ theta) - y
        return residual @ X / len(y) + 2 * RIDGE * (theta - start) + 2 * penalty * theta

    def hessian(theta):
        q = expit(X @ theta)
        return (X.T * (q * (1 - q))) @ X / len(y) + np.diag(2 * RIDGE + 2 * penalty)

    options = {"gtol": 1e-10, "max_trust_radius": 1e6}
    return minimize(
        value, start, jac=gradient, hess=hessian, method="trust-exact", options=options
    ).x


def _as_columns(X):
    """Make a vector of log-odds a column; leave to scikit-learn what it checks itself."""
    if issparse(X) or hasattr(X, "columns"):
        return X
    X = np.asarray(X)
    return X.reshape(-1, 1) if X.ndim == 1 else X


def _flags(log_odds, y):
    """Name what is doubtful about the order of the outcomes along the log-odds."""
    ones, zeros = log_odds[y == 1], log_odds[y == 0]
    if zeros.max() < ones.min():
        return ("separable",)
    if zeros.min() == ones.max() == zeros.max() == ones.min():
        return ("uninformative",)
    test = {"alternative": "greater", "method": "asymptotic"}
    if mannwhitneyu(zeros, ones, **test).pvalue < 0.01:
        return ("inverted",)
    return () if mannwhitneyu(ones, zeros, **test).pvalue < 0.01 else ("uninformative",)
