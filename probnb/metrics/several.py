"""Scores of predictions of one of K outcomes: our extension of the paper's metrics for two."""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from ..validation import check_integer
from .binning import BINS, ece, ece_ranked
from .registry import METRICS
from .sample import check_row_weights, check_sample, weighted_mean
from .scores import nll_rows

__all__ = ["check_distributions", "evaluate"]

NAMES = ("mse_p", "kl_p", "ece", "brier", "nll")

TOLERANCE = 1e-4
"""How far from 1 a row may sum: float32 predictions of some hundred outcomes do."""


def evaluate(y_true, y_prob, p=None, weights=None, bins=BINS):
    r"""Return the scores of predictions of one of K outcomes by name.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 to K - 1.
    y_prob : array-like of shape (n, K)
        Predicted probabilities; each row sums to 1.
    p : array-like of shape (n, K), optional
        True probabilities; without them the first two scores are left out.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    bins : int, default=15
        Quantile bins of the calibration error.

    Returns
    -------
    dict of str to float
        ``mse_p`` and ``kl_p``, ``ece`` (classwise: the mean over outcomes of the calibration error
        of each against the rest), ``brier`` and ``nll``. Squared errors are summed over outcomes
        and halved, as :math:`\frac{1}{2N} \sum_i \sum_k (\hat p_{ik} - p_{ik})^2`, so that they are
        those of two outcomes where K is 2.

    Notes
    -----
    With K = 2 the scores *are* those of `probnb.metrics.evaluate`, to the bit: the calibration
    error is taken once, as the mirrored bins of the other outcome differ where a middle rank lies
    on a cut.

    Examples
    --------
    >>> found = evaluate([0, 2], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    >>> {name: round(value, 3) for name, value in found.items()}
    {'ece': 0.167, 'brier': 0.125, 'nll': 0.347}
    """
    p_hat, y = check_distributions(y_prob), np.asarray(y_true)
    if y.shape != (len(p_hat),):
        raise ValueError(f"y_true must be of shape ({len(p_hat)},); got {y.shape}.")
    outcomes = np.arange(p_hat.shape[1])
    wrong = ~np.isin(y, outcomes)
    if wrong.any():
        raise ValueError(
            f"y_true must hold outcomes 0 to {outcomes[-1]}; got {y[wrong][0].item()!r}."
        )
    check_integer(bins, "bins")
    p = None if p is None else check_distributions(p, "p")
    if p is not None and p.shape != p_hat.shape:
        raise ValueError(f"p and y_prob must have one shape; got {p.shape} and {p_hat.shape}.")
    if len(outcomes) == 2:
        sample = check_sample(y, p_hat[:, 1], weights, None if p is None else p[:, 1])
        binary = {name: METRICS[name].of(sample) for name in NAMES[2 * (p is None) :]}
        return binary | {"ece": float(ece_ranked(sample.ranked, bins)[0])}
    hit = y[:, None] == outcomes
    terms = {"brier": ((p_hat - hit) ** 2).sum(axis=1) / 2, "nll": nll_rows(1, p_hat[hit])}
    if p is not None:
        distance = ((p_hat - p) ** 2).sum(axis=1) / 2
        terms |= {"mse_p": distance, "kl_p": rel_entr(p, p_hat).sum(axis=1)}
    kept, weights = check_row_weights(weights, len(y))
    rows = slice(None) if kept is None else kept
    found = {name: weighted_mean(term[rows], weights) for name, term in terms.items()}
    each = [ece(hit[rows, k], p_hat[rows, k], bins, weights=weights) for k in outcomes]
    found["ece"] = float(np.mean(each))
    return {name: found[name] for name in NAMES if name in found}


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
