"""Scores of predictions of one of K outcomes: our extension of the paper's metrics for two.

Every function equals its namesake for two outcomes where K is 2: squared errors are summed over the
outcomes and halved. Outcomes are numbers 0 to K - 1, predictions rows that sum to 1.
"""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from ..validation import check_integer
from .binning import BINS
from .binning import ece as ece_two
from .scores import CLIP

__all__ = ["brier", "check_distributions", "classwise_ece", "evaluate", "kl_p", "mse_p", "nll"]

TOLERANCE = 1e-4
"""How far from 1 a row may sum: float32 predictions of some hundred outcomes do."""


def check_distributions(p, name="y_prob"):
    """Return distributions over K outcomes as float64 of shape (n, K).

    Parameters
    ----------
    p : array-like of shape (n, K)
        Probabilities, K at least 2 and n at least 1; each row sums to 1.
    name : str, default="y_prob"
        The argument's name, for the message.

    Returns
    -------
    ndarray of shape (n, K)
        The probabilities, as they are.

    Raises
    ------
    ValueError
        If the shape is wrong, a value is outside [0, 1] or a row does not sum to 1.
    """
    p = np.asarray(p, dtype=np.float64)
    if p.ndim != 2 or p.shape[0] < 1 or p.shape[1] < 2:
        raise ValueError(f"{name} must be of shape (n, K), K at least 2; got shape {p.shape}.")
    wrong = ~((p >= 0) & (p <= 1)).all(axis=1)
    wrong |= ~(np.abs(p.sum(axis=1) - 1) <= TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must hold probabilities that sum to 1 in each row; got {p[row].tolist()} in "
            f"row {row}."
        )
    return p


def _check(y_true, y_prob):
    p_hat = check_distributions(y_prob)
    y = np.asarray(y_true)
    if y.shape != (len(p_hat),):
        raise ValueError(f"y_true must be of shape ({len(p_hat)},); got {y.shape}.")
    wrong = ~np.isin(y, np.arange(p_hat.shape[1]))
    if wrong.any():
        raise ValueError(
            f"y_true must hold outcomes 0 to {p_hat.shape[1] - 1}; got {y[wrong][0].item()!r}."
        )
    return y.astype(int), p_hat


def _check_both(p, p_hat):
    p, p_hat = check_distributions(p, "p"), check_distributions(p_hat, "p_hat")
    if p.shape != p_hat.shape:
        raise ValueError(f"p and p_hat must have one shape; got {p.shape} and {p_hat.shape}.")
    return p, p_hat


def mse_p(p, p_hat):
    r"""Half the mean squared distance between true and predicted distributions.

    Parameters
    ----------
    p, p_hat : array-like of shape (n, K)
        True and predicted probabilities.

    Returns
    -------
    float
        :math:`\frac{1}{2N} \sum_i \sum_k (\hat p_{ik} - p_{ik})^2`, in [0, 1].

    Examples
    --------
    >>> round(mse_p([[0.2, 0.8], [0.8, 0.2]], [[0.3, 0.7], [0.8, 0.2]]), 6)
    0.005
    """
    p, p_hat = _check_both(p, p_hat)
    return float(((p_hat - p) ** 2).sum(axis=1).mean() / 2)


def kl_p(p, p_hat):
    r"""Mean divergence of the predicted from the true distributions, KL(p || p_hat), in nats.

    Parameters
    ----------
    p, p_hat : array-like of shape (n, K)
        True and predicted probabilities.

    Returns
    -------
    float
        At least 0; infinite where a prediction rules out what can happen.

    Examples
    --------
    >>> round(kl_p([[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]]), 4)
    0.1733
    """
    p, p_hat = _check_both(p, p_hat)
    return float(rel_entr(p, p_hat).sum(axis=1).mean())


def brier(y_true, y_prob):
    r"""Half the mean squared distance between predictions and outcomes.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    y_prob : array-like of shape (n, K)
        Predicted probabilities.

    Returns
    -------
    float
        In [0, 1]. Many books leave out the half.

    Examples
    --------
    >>> round(brier([0, 2], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]), 6)
    0.125
    """
    y, p_hat = _check(y_true, y_prob)
    return float(((p_hat - np.eye(p_hat.shape[1])[y]) ** 2).sum(axis=1).mean() / 2)


def nll(y_true, y_prob, clip=CLIP):
    """Mean negative log-likelihood of the outcomes, in nats.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    y_prob : array-like of shape (n, K)
        Predicted probabilities.
    clip : float, default=2.2e-16
        The least probability that is read, as `probnb.metrics.nll` has it.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> round(nll([2], [[0.25, 0.25, 0.5]]), 4)
    0.6931
    """
    y, p_hat = _check(y_true, y_prob)
    return float(-np.log(np.clip(p_hat[np.arange(len(y)), y], clip, 1 - clip)).mean())


def classwise_ece(y_true, y_prob, bins=BINS):
    """Mean over outcomes of the calibration error of each against the rest.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    y_prob : array-like of shape (n, K)
        Predicted probabilities.
    bins : int, default=15
        Quantile bins, by the rule of `probnb.metrics.reliability_bins`.

    Returns
    -------
    float
        In [0, 1]. Kull et al. (2019) have bins of equal width.

    Examples
    --------
    >>> classwise_ece([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    0.0
    """
    y, p_hat = _check(y_true, y_prob)
    check_integer(bins, "bins")
    each = [ece_two(y == k, np.clip(p_hat[:, k], 0, 1), bins) for k in range(p_hat.shape[1])]
    return float(np.mean(each))


def evaluate(y_true, y_prob, p=None):
    """Return every score of this module by name.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    y_prob : array-like of shape (n, K)
        Predicted probabilities.
    p : array-like of shape (n, K), optional
        True probabilities; without them the first two scores are left out.

    Returns
    -------
    dict of str to float
        ``mse_p``, ``kl_p``, ``ece`` (classwise), ``brier`` and ``nll``.
    """
    known = {} if p is None else {"mse_p": mse_p(p, y_prob), "kl_p": kl_p(p, y_prob)}
    return known | {
        "ece": classwise_ece(y_true, y_prob),
        "brier": brier(y_true, y_prob),
        "nll": nll(y_true, y_prob),
    }
