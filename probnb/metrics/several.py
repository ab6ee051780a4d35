"""Scores of predictions of one of K outcomes: our extension of the paper's metrics for two.

Outcomes are numbers 0 to K - 1, predictions rows that sum to 1. With K = 2 every function *is* its
namesake for two outcomes, to the bit: squared errors are summed over the outcomes and halved, and a
calibration error is taken once (the mirrored bins of the other outcome would differ where a middle
rank lies on a cut).
"""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from ..validation import check_integer
from . import binning, scores
from .sample import check_row_weights, weighted_mean

__all__ = ["brier", "check_distributions", "classwise_ece", "evaluate", "kl_p", "mse_p", "nll"]

TOLERANCE = 1e-4
"""How far from 1 a row may sum: float32 predictions of some hundred outcomes do."""


def check_distributions(p, name="y_prob"):
    """Return distributions over K outcomes as float64 of shape (n, K), K at least 2, as they are.

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


def mse_p(p, p_hat, weights=None):
    r"""Half the mean squared distance between true and predicted distributions.

    That is :math:`\frac{1}{2N} \sum_i \sum_k (\hat p_{ik} - p_{ik})^2`, in [0, 1].

    Examples
    --------
    >>> round(mse_p([[0.2, 0.8], [0.8, 0.2]], [[0.3, 0.7], [0.8, 0.2]]), 6)
    0.005
    """
    p, p_hat = _check_both(p, p_hat)
    if p.shape[1] == 2:
        return scores.mse_p(p[:, 1], p_hat[:, 1], weights)
    return _mean(((p_hat - p) ** 2).sum(axis=1) / 2, weights)


def kl_p(p, p_hat, weights=None):
    """Mean divergence of the predicted from the true distributions, KL(p || p_hat), in nats.

    Infinite where a prediction rules out what can happen.

    Examples
    --------
    >>> round(kl_p([[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]]), 4)
    0.1733
    """
    p, p_hat = _check_both(p, p_hat)
    if p.shape[1] == 2:
        return scores.kl_p(p[:, 1], p_hat[:, 1], weights=weights)
    return _mean(rel_entr(p, p_hat).sum(axis=1), weights)


def brier(y_true, y_prob, weights=None):
    """Half the mean squared distance between predictions and outcomes; many books have no half.

    Examples
    --------
    >>> round(brier([0, 2], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]), 6)
    0.125
    """
    y, p_hat = _check(y_true, y_prob)
    if p_hat.shape[1] == 2:
        return scores.brier(y, p_hat[:, 1], weights)
    return _mean(((p_hat - np.eye(p_hat.shape[1])[y]) ** 2).sum(axis=1) / 2, weights)


def nll(y_true, y_prob, clip=scores.CLIP, weights=None):
    """Mean negative log-likelihood of the outcomes, in nats; `clip` as in `probnb.metrics.nll`.

    Examples
    --------
    >>> round(nll([2], [[0.25, 0.25, 0.5]]), 4)
    0.6931
    """
    y, p_hat = _check(y_true, y_prob)
    if p_hat.shape[1] == 2:
        return scores.nll(y, p_hat[:, 1], clip, weights)
    hit = p_hat[np.arange(len(y)), y]
    return _mean(scores.nll_rows(np.ones(len(y)), hit, clip), weights)


def classwise_ece(y_true, y_prob, bins=binning.BINS, weights=None):
    """Mean over outcomes of the calibration error of each against the rest, in quantile bins.

    Kull et al. (2019) have bins of equal width.

    Examples
    --------
    >>> classwise_ece([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    0.0
    """
    y, p_hat = _check(y_true, y_prob)
    check_integer(bins, "bins")
    outcomes = [1] if p_hat.shape[1] == 2 else range(p_hat.shape[1])
    each = [binning.ece(y == k, p_hat[:, k], bins, weights=weights) for k in outcomes]
    return float(np.mean(each))


def evaluate(y_true, y_prob, p=None, weights=None):
    """Return ``mse_p`` and ``kl_p`` (given `p`), ``ece`` (classwise), ``brier`` and ``nll``."""
    known = {}
    if p is not None:
        known = {"mse_p": mse_p(p, y_prob, weights), "kl_p": kl_p(p, y_prob, weights)}
    return known | {
        "ece": classwise_ece(y_true, y_prob, weights=weights),
        "brier": brier(y_true, y_prob, weights),
        "nll": nll(y_true, y_prob, weights=weights),
    }


def _check(y_true, y_prob):
    p_hat, y = check_distributions(y_prob), np.asarray(y_true)
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


def _mean(terms, weights):
    kept, weights = check_row_weights(weights, len(terms))
    return weighted_mean(terms if kept is None else terms[kept], weights)
