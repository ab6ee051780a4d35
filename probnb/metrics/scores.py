"""Scores of predicted probabilities: against the true probabilities, and against outcomes."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import rel_entr

from ..validation import check_choice, check_number, check_probabilities, check_same_length
from .sample import check_row_weights, check_sample, weighted_mean

__all__ = ["auc", "brier", "kl_p", "mse_p", "nll"]

CLIP = float(np.finfo(np.float64).eps)
"""How near to 0 or 1 the negative log-likelihood lets a prediction come, as in scikit-learn."""


def mse_p(p, p_hat, weights=None):
    r"""Mean squared error between true and predicted probabilities.

    Parameters
    ----------
    p : array-like of shape (n,)
        True probabilities of outcome 1.
    p_hat : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The error, in [0, 1].

    Notes
    -----
    Section 3: :math:`\frac1N \sum_i (\hat p_i - p_i)^2`.

    Examples
    --------
    >>> round(mse_p([0.2, 0.8], [0.3, 0.8]), 6)
    0.005
    """
    p, p_hat, weights = check_distance(p, p_hat, weights)
    return weighted_mean((p_hat - p) ** 2, weights)


def kl_p(p, p_hat, direction="p||p_hat", weights=None):
    r"""Mean Kullback-Leibler divergence between true and predicted probabilities.

    Parameters
    ----------
    p : array-like of shape (n,)
        True probabilities of outcome 1.
    p_hat : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    direction : {"p||p_hat", "p_hat||p"}, default="p||p_hat"
        Which argument comes first. The paper prints the second in Section 3, but its tables hold
        the first, which is also the excess of the expected negative log-likelihood.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The divergence in nats, at least 0. Nothing is clipped: 0 log 0 is 0, and the divergence is
        infinite where the first argument allows an outcome that the second rules out.

    Raises
    ------
    ValueError
        If a probability is NaN or outside [0, 1], the lengths differ, or `direction` is unknown.

    Notes
    -----
    KL(p || p_hat) is :math:`\frac1N \sum_i p_i \log\frac{p_i}{\hat p_i} +
    (1 - p_i) \log\frac{1 - p_i}{1 - \hat p_i}`.

    Examples
    --------
    >>> round(kl_p([0.5], [0.25]), 4), round(kl_p([0.5], [0.25], "p_hat||p"), 4)
    (0.1438, 0.1308)
    >>> kl_p([0.0, 1.0], [0.0, 1.0]), kl_p([0.5], [1.0]), round(kl_p([1.0], [0.5]), 4)
    (0.0, inf, 0.6931)
    """
    check_choice(direction, ("p||p_hat", "p_hat||p"), "direction")
    p, p_hat, weights = check_distance(p, p_hat, weights)
    terms = kl_rows(p, p_hat) if direction == "p||p_hat" else kl_rows(p_hat, p)
    return weighted_mean(terms, weights)


def mse_p_rows(sample):
    """Return the squared error of each row of a sample, unbiased where votes stand for p."""
    if sample.votes is not None:
        return sample.votes.squared_error(sample.p_hat)
    return (sample.p_hat - sample.p) ** 2


def kl_p_rows(sample):
    """Return KL(p || p_hat) of each row of a sample, an estimate where votes stand for p."""
    if sample.votes is not None:
        return sample.votes.divergence(sample.p_hat)
    return kl_rows(sample.p, sample.p_hat)


def kl_rows(a, b):
    """Return KL(Bernoulli(a) || Bernoulli(b)) of each row, unchecked."""
    return rel_entr(a, b) + rel_entr(1 - a, 1 - b)


def brier(y_true, y_prob, weights=None):
    r"""Brier score: mean squared error between predicted probabilities and outcomes.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The score, in [0, 1]; lower is better.

    Raises
    ------
    ValueError
        If outcomes are not 0 or 1, probabilities are NaN or outside [0, 1], the lengths differ, or
        there are no rows.

    Notes
    -----
    Section 3: :math:`\frac1N \sum_i (\hat p_i - y_i)^2`. Its expectation is MSE_p plus the mean of
    p(1 - p), which no prediction can change: hence its agreement with MSE_p.

    Examples
    --------
    >>> round(brier([0, 1], [0.1, 0.8]), 6)
    0.025
    """
    sample = check_sample(y_true, y_prob, weights)
    return sample.mean((sample.p_hat - sample.y) ** 2)


def nll(y_true, y_prob, clip=CLIP, weights=None):
    r"""Negative log-likelihood (log loss) of the outcomes, in nats.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    clip : float, default=2.2e-16
        Predictions are moved into [clip, 1 - clip] first, so that one certain and wrong prediction
        costs 36.04 nats and not infinitely many. The default is that of
        `sklearn.metrics.log_loss` for float64; 0 gives the infinite value.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The mean over rows, at least 0.

    Raises
    ------
    ValueError
        As `brier`, or if `clip` is not in [0, 0.5).

    Notes
    -----
    Appendix tables 8 to 10 of the paper: :math:`-\frac1N \sum_i y_i \log \hat p_i + (1 - y_i)
    \log(1 - \hat p_i)`.

    Examples
    --------
    >>> round(nll([1, 0], [0.5, 0.5]), 4)
    0.6931
    >>> round(nll([1], [0.0]), 2), nll([1], [0.0], clip=0)
    (36.04, inf)
    """
    check_number(clip, "clip", 0, 0.5)
    sample = check_sample(y_true, y_prob, weights)
    return sample.mean(nll_rows(sample.y, sample.p_hat, clip))


def nll_rows(y, p, clip=CLIP):
    """Return the negative log-likelihood of each row, unchecked."""
    with np.errstate(divide="ignore"):
        return -np.log(np.clip(np.where(y == 1, p, 1 - p), clip, 1 - clip))


def auc(y_true, y_prob, weights=None):
    r"""Area under the ROC curve.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        The probability that a row with outcome 1 has the higher prediction than one with outcome
        0, ties counting half; NaN with a warning where all outcomes are the same.

    Notes
    -----
    Ones times the zeros below them and half of those tied with them, over all pairs.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    value = float(auc_ranked(check_sample(y_true, y_prob, weights).ranked)[0])
    if np.isnan(value):
        warnings.warn("auc is NaN: all outcomes are the same.", RuntimeWarning, stacklevel=2)
    return value


def auc_ranked(ranked):
    """Return the AUC under each set of weights; NaN where only one outcome has weight."""
    scale = np.ldexp(1.0, -np.frexp(ranked.total)[1])[:, None]  # a power of two: rounds nothing
    ones, zeros = scale * ranked.ones, scale * (ranked.mass - ranked.ones)
    below = 2 * np.cumsum(zeros, axis=1) - zeros  # twice, ties counting half
    with np.errstate(invalid="ignore", divide="ignore"):  # one class only: 0 / 0
        return (ones * below).sum(axis=1) / (2 * ones.sum(axis=1) * zeros.sum(axis=1))


def check_distance(p, p_hat, weights=None):
    """Return checked true and predicted probabilities, and weights; rows of weight 0 are gone."""
    p, p_hat = check_probabilities(p, "p"), check_probabilities(p_hat, "p_hat")
    check_same_length(p, p_hat, ("p", "p_hat"))
    kept, weights = check_row_weights(weights, len(p))
    return (p, p_hat, weights) if kept is None else (p[kept], p_hat[kept], weights)
