"""Training losses on soft targets, each a function of logits with a column an outcome.

A loss is called as ``loss(logits, targets, weights=None)`` and returns the weighted mean over the
batch. ``targets`` are probabilities of outcome 1, or of each outcome in a column of its own:
observed outcomes, or the empirical probabilities of CaPE. All are written with logarithms of the
softmax, so they and their gradients stay finite for any logits. On a GPU none looks at its values,
for which a step would wait: `check_targets` does, once an epoch.
"""

from dataclasses import dataclass, field

import torch
from torch.nn import functional as F

from ..validation import check_number

__all__ = ["LOSSES", "MMCE", "CrossEntropy", "EntropyRegularised", "Focal", "check_targets"]


def check_targets(targets, loss=None):
    """Refuse targets that are not probabilities, but for what a loss allows beyond them.

    To be asked once of all rows: a look at each batch would make a device wait for the host.
    """
    beyond = getattr(loss, "beyond", 0.0)
    outside = (targets < -beyond) | (targets > 1 + beyond) | targets.isnan()
    if outside.any():
        known = "be probabilities" if not beyond else f"lie at most {beyond:g} beyond those"
        wrong = float(targets[outside][0])
        raise ValueError(f"targets must {known} in [0, 1]; got {wrong:g}.")


def _columns(targets, loss):
    """Targets of every outcome; looked at where that makes no device wait."""
    if targets.device.type == "cpu":
        check_targets(targets, loss)
    return targets if targets.ndim == 2 else torch.stack([1 - targets, targets], dim=1)


def _mean(terms, weights):
    """Mean over the rows, each counted as its weight says."""
    return terms.mean() if weights is None else weights @ terms / weights.sum()


@dataclass(frozen=True)
class CrossEntropy:
    r"""Cross entropy with soft targets, :math:`-\sum_c t_c \log \hat p_c`.

    The discrimination loss of the paper for outcomes, its calibration loss for empirical
    probabilities (Liu et al. 2022, Section 5). It is linear in the target, so a weighted sum of
    the two losses is the same loss on a weighted mean of the targets. It has a value for a target
    outside [0, 1], too, of which a row alone has no best prediction: its logit wants to grow
    without end, and only what rows share, or a penalty, holds it.

    Parameters
    ----------
    beyond : float, default=0
        How far outside [0, 1] a target may lie, at most 1: a teacher's weight above 1 puts it
        there, see `probnb.training.targets.Taught`.

    Examples
    --------
    >>> CrossEntropy()(torch.zeros(2, 2), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    beyond: float = field(default=0.0, metadata={"later": True})

    def __post_init__(self):
        check_number(self.beyond, "beyond", 0, 1)

    def __call__(self, logits, targets, weights=None):
        """Return the mean loss of `logits` (n, K) on `targets` (n,) or (n, K)."""
        if weights is None:
            return F.cross_entropy(logits, _columns(targets, self))
        terms = F.cross_entropy(logits, _columns(targets, self), reduction="none")
        return _mean(terms, weights)


@dataclass(frozen=True)
class Focal:
    r"""Focal loss, :math:`-\sum_c t_c (1 - \hat p_c)^\gamma \log \hat p_c`.

    Mukhoti et al. (2020); the paper's Appendix H. Zero gamma is cross entropy.

    Parameters
    ----------
    gamma : float, default=2
        Strength, at least 0.

    Examples
    --------
    >>> Focal(gamma=0.0)(torch.zeros(2, 2), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    gamma: float = 2.0

    def __post_init__(self):
        check_number(self.gamma, "gamma", 0)

    def __call__(self, logits, targets, weights=None):
        """Return the mean loss of `logits` (n, K) on `targets` (n,) or (n, K)."""
        log_p = F.log_softmax(logits, dim=1)
        if logits.shape[1] == 2:  # 1 - p is p of the other: exact where 1 - exp(log p) would round
            log_rest = log_p.flip(1)
        else:
            log_rest = torch.log1p(-log_p.exp().clamp(max=1 - 1e-6))
        focus = torch.exp(self.gamma * log_rest)
        return _mean(-(_columns(targets, self) * focus * log_p).sum(dim=1), weights)


@dataclass(frozen=True)
class EntropyRegularised:
    r"""Cross entropy less :math:`\beta` times the entropy of the prediction.

    The confidence penalty of Pereyra et al. (2017); the paper's Appendix H.

    Parameters
    ----------
    beta : float, default=1
        Strength, at least 0.

    Examples
    --------
    >>> EntropyRegularised(beta=1.0)(torch.zeros(2, 2), torch.tensor([0.0, 1.0]))
    tensor(0.)
    """

    beta: float = 1.0

    def __post_init__(self):
        check_number(self.beta, "beta", 0)

    def __call__(self, logits, targets, weights=None):
        """Return the mean loss of `logits` (n, K) on `targets` (n,) or (n, K)."""
        log_p = F.log_softmax(logits, dim=1)
        entropy = _mean(-(log_p.exp() * log_p).sum(dim=1), weights)
        return CrossEntropy()(logits, targets, weights) - self.beta * entropy


@dataclass(frozen=True)
class MMCE:
    r"""Cross entropy plus :math:`\beta` times the maximum mean calibration error of the batch.

    .. math::

        \text{MMCE}^2 = \frac{1}{m^2} \sum_{ij} (c_i - r_i)(c_j - r_j)\, k(r_i, r_j), \qquad
        k(r, r') = \exp(-|r - r'| / w)

    where :math:`r` is the confidence in the more probable outcome and :math:`c` whether that
    outcome occurred. Kumar et al. (2018); the paper's Appendix H.

    Parameters
    ----------
    beta : float, default=3
        Strength, at least 0.
    width : float, default=0.4
        Width w of the Laplacian kernel, in units of probability.

    Notes
    -----
    With soft targets c is the target of the more probable outcome, its expected correctness.
    The square root is taken of MMCE^2 + 1e-12, so that its gradient exists where MMCE is 0.

    Examples
    --------
    >>> MMCE(beta=1.0)(torch.zeros(2, 2), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    beta: float = 3.0
    width: float = 0.4

    def __post_init__(self):
        check_number(self.beta, "beta", 0)
        check_number(self.width, "width", 0, exclusive=True)

    def __call__(self, logits, targets, weights=None):
        """Return the mean loss of `logits` (n, K) on `targets` (n,) or (n, K)."""
        confidence, predicted = F.softmax(logits, dim=1).max(dim=1)
        gap = _columns(targets, self).gather(1, predicted[:, None])[:, 0] - confidence
        kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / self.width)
        total = len(gap)
        if weights is not None:
            gap, total = weights * gap, weights.sum()
        squared = (gap @ kernel @ gap / total**2).clamp(min=0)
        penalty = torch.sqrt(squared + 1e-12) - 1e-6
        return CrossEntropy()(logits, targets, weights) + self.beta * penalty


LOSSES = {"ce": CrossEntropy, "focal": Focal, "entropy": EntropyRegularised, "mmce": MMCE}
"""Losses by name; each one's first field is its single tuned hyperparameter."""
