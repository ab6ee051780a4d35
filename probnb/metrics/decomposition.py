"""The Brier score as a sum of calibration and refinement, exact with bins and without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..validation import check_integer
from .binning import sample_bins
from .sample import check_sample

__all__ = ["BrierDecomposition", "brier_decomposition"]


@dataclass(frozen=True)
class BrierDecomposition:
    """The parts of the Brier score; see `brier_decomposition` for their formulas.

    Attributes
    ----------
    calibration : float
        Squared gaps between mean prediction and mean outcome of a bin (also: reliability).
    refinement : float
        Variance of the outcomes within the bins: ``uncertainty - resolution``.
    resolution : float
        Variance of the bins' mean outcomes.
    uncertainty : float
        Variance of all outcomes.
    within_variance : float
        Variance of the predictions within the bins; 0 without bins.
    within_covariance : float
        Covariance of predictions and outcomes within the bins; 0 without bins.
    """

    calibration: float
    refinement: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float

    @property
    def total(self):
        """The Brier score: calibration + refinement + variance - 2 covariance within bins."""
        within = self.within_variance - 2 * self.within_covariance
        return self.calibration + self.refinement + within


def brier_decomposition(y_true, y_prob, bins=None, weights=None):
    r"""Split the Brier score into calibration and refinement (uncertainty less resolution).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    bins : int, optional
        Number of quantile bins. By default each distinct prediction is its own group, which is the
        paper's decomposition.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    BrierDecomposition
        The parts, whose `total` is the score to rounding, with bins and without.

    Notes
    -----
    Appendix E of the paper, exact for groups of equal predictions. With groups k of mean
    prediction :math:`q_k`, mean outcome :math:`\bar y_k` and weight :math:`w_k = n_k / N`:
    calibration :math:`\sum w_k (q_k - \bar y_k)^2`, refinement
    :math:`\sum w_k \bar y_k (1 - \bar y_k)`, resolution :math:`\sum w_k (\bar y_k - \bar y)^2`.
    Bins of unequal predictions need two terms more [1]_: the variance
    :math:`\frac1N \sum_i (\hat p_i - q_{k(i)})^2` and the covariance
    :math:`\frac1N \sum_i (\hat p_i - q_{k(i)})(y_i - \bar y_{k(i)})`.

    References
    ----------
    .. [1] D. Stephenson, C. Coelho and I. Jolliffe, "Two extra components in the Brier score
       decomposition", Weather and Forecasting 23, 2008.

    Examples
    --------
    >>> parts = brier_decomposition([0, 1, 1, 1], [0.5, 0.5, 0.9, 0.9])
    >>> round(parts.calibration, 4), round(parts.refinement, 4), round(parts.total, 4)
    (0.005, 0.125, 0.13)
    """
    sample = check_sample(y_true, y_prob, weights)
    if bins is None:
        ranked = sample.ranked
        q, weight = ranked.values, ranked.mass[0] / ranked.total[0]
        outcome = ranked.ones[0] / ranked.mass[0]
        group = np.searchsorted(q, sample.p_hat)
    else:
        table = sample_bins(sample, check_integer(bins, "bins"))
        q, outcome, weight = table.mean_prediction, table.mean_outcome, table.weight
        group = table.assign(sample.p_hat)
    base = sample.mean(sample.y)
    spread = sample.p_hat - q[group]
    return BrierDecomposition(
        calibration=float(weight @ (q - outcome) ** 2),
        refinement=float(weight @ (outcome * (1 - outcome))),
        resolution=float(weight @ (outcome - base) ** 2),
        uncertainty=base * (1 - base),
        within_variance=sample.mean(spread**2),
        within_covariance=sample.mean(spread * (sample.y - outcome[group])),
    )
