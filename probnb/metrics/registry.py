"""The scores, and the metrics as data: what each is called, needs, and how to resample it.

Scores are of probabilities against the true ones or against outcomes, of which there may be more
than two (`evaluate_outcomes`: our extension of the paper's metrics). `METRICS` is the one list of
them. Evaluation, bootstrap, tables and figures read it; a metric that is added to it appears in all
of them.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import rel_entr

from ..validation import (
    as_float,
    check_choice,
    check_number,
    check_probabilities,
    check_same_length,
    plain_array,
    refuse_where,
)
from . import binning
from .sample import check_row_weights, check_sample, weighted_mean

__all__ = ["METRICS", "Metric", "auc", "brier", "evaluate", "evaluate_outcomes", "kl_p", "mse_p"]
__all__ += ["net_benefit", "nll"]

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
    ones, zeros = ranked.ones, ranked.mass - ranked.ones  # scaled: no product overflows
    below = np.cumsum(zeros, axis=1)
    below *= 2
    below -= zeros  # twice, ties counting half
    with np.errstate(invalid="ignore", divide="ignore"):  # one class only: 0 / 0
        return np.vecdot(ones, below) / (2 * ones.sum(axis=1) * zeros.sum(axis=1))


def net_benefit(y_true, y_prob, threshold, weights=None):
    r"""Net benefit of acting on every row whose probability is at least a threshold.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_prob : array-like of shape (n,)
        Predicted probabilities of outcome 1.
    threshold : float
        In (0, 1): who acts from t on takes one missed outcome for as bad as (1 - t) / t actions in
        vain.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.

    Returns
    -------
    float
        True positives a row less what false ones cost, in units of true positives; never above the
        share of outcomes 1. Acting on none has 0.

    Notes
    -----
    Vickers and Elkin (2006), "Decision curve analysis":
    :math:`\frac{TP}{n} - \frac{FP}{n} \frac{t}{1 - t}`.

    Examples
    --------
    >>> round(net_benefit([1, 1, 0, 0, 0], [0.9, 0.3, 0.4, 0.2, 0.1], 0.25), 4)
    0.3333
    """
    check_number(threshold, "threshold", 0, 1, exclusive=True)
    sample = check_sample(y_true, y_prob, weights)
    return sample.mean(benefit_rows(sample.y, sample.p_hat, threshold))


def benefit_rows(y, p_hat, threshold):
    """Return the net benefit of each row, unchecked."""
    return np.where(p_hat >= threshold, y - (1 - y) * threshold / (1 - threshold), 0.0)


def check_distance(p, p_hat, weights=None):
    """Return checked true and predicted probabilities, and weights; rows of weight 0 are gone."""
    p, p_hat = check_probabilities(p, "p"), check_probabilities(p_hat, "p_hat")
    check_same_length(p, p_hat, ("p", "p_hat"))
    kept, weights = check_row_weights(weights, len(p))
    return (p, p_hat, weights) if kept is None else (p[kept], p_hat[kept], weights)


@dataclass(frozen=True)
class Metric:
    """One way to judge predictions.

    Parameters
    ----------
    function : callable
        What users call: ``function(y_true, y_prob, weights=None)``, or ``function(p, p_hat,
        weights=None)`` if the metric needs the truth. In memory it alone suffices; the bootstrap
        calls it once a resample. An engine needs a formula of its own (see `probnb.scale`).
    label : str
        Name in tables and figures.
    rows : callable, optional
        If the metric is a mean over rows: its term of each row, shape (n,), from a checked
        `probnb.metrics.sample.Sample`. Its bootstrap is then a product of matrices.
    ranked : callable, optional
        If the metric depends on the order of the predictions: its value under each of k sets of
        weights, shape (k,), from a `probnb.metrics.sample.Ranked`.
    needs_truth : bool, default=False
        Whether it compares with the true probabilities instead of outcomes.
    lower_is_better : bool, default=True
        Which direction is better.
    bounds : (float, float), optional
        Least and largest value that it can have.
    """

    function: Callable
    label: str
    rows: Callable | None = None
    ranked: Callable | None = None
    needs_truth: bool = False
    lower_is_better: bool = True
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def of(self, sample, weights=None):
        """Return the value on a checked sample, with other weights if given."""
        if self.rows is not None and weights is None:
            return sample.mean(self.rows(sample))
        if self.ranked is not None and weights is None:
            return float(self.ranked(sample.ranked)[0])
        weights = sample.weights if weights is None else weights
        if self.needs_truth and sample.p is None:
            return math.nan  # votes are for metrics that say what to make of them, by `rows`
        truth = sample.p if self.needs_truth else sample.y
        return float(self.function(truth, sample.p_hat, weights=weights))


UNIT, POSITIVE = (0.0, 1.0), (0.0, math.inf)

METRICS = {
    "mse_p": Metric(mse_p, "MSE_p", mse_p_rows, needs_truth=True, bounds=UNIT),
    "kl_p": Metric(kl_p, "KL_p", kl_p_rows, needs_truth=True, bounds=POSITIVE),
    "ece": Metric(binning.ece, "ECE", ranked=binning.ece_ranked, bounds=UNIT),
    "mce": Metric(binning.mce, "MCE", ranked=binning.mce_ranked, bounds=UNIT),
    "ks": Metric(binning.ks_error, "KS", ranked=binning.ks_ranked, bounds=UNIT),
    "brier": Metric(brier, "Brier", lambda s: (s.p_hat - s.y) ** 2, bounds=UNIT),
    "auc": Metric(auc, "AUC", ranked=auc_ranked, lower_is_better=False, bounds=UNIT),
    "nll": Metric(nll, "NLL", lambda s: nll_rows(s.y, s.p_hat), bounds=POSITIVE),
}
"""The metrics by name, in the order of tables."""


def evaluate(y_true, y_prob, p=None, weights=None, votes=None):
    """Return every metric by name, in the order of the paper's tables.

    Parameters
    ----------
    y_true : array-like of shape (n,), or probnb.scale.DataSet
        Outcomes, 0 or 1. A data set holds all else, and `y_prob` names one of its columns.
    y_prob : array-like of shape (n,), or str
        Predicted probabilities of outcome 1.
    p : array-like of shape (n,), optional
        True probabilities; without them the metrics that need them are left out.
    weights : array-like of shape (n,), optional
        Weight of each row, at least 0; their scale does not matter.
    votes : (array-like of shape (n,), array-like of shape (n,)), optional
        Repeated outcomes in place of `p`: how many of how many votes, at least 2, were for outcome
        1. ``mse_p`` and ``kl_p`` are then estimates, as in `probnb.metrics.repeated_distance`. The
        predictions must not have seen these votes.

    Returns
    -------
    dict of str to float
        The metrics of `METRICS`, each at its default settings.

    Examples
    --------
    >>> {name: round(value, 3) for name, value in evaluate([0, 1], [0.2, 0.6]).items()}
    {'ece': 0.3, 'mce': 0.4, 'ks': 0.1, 'brier': 0.1, 'auc': 1.0, 'nll': 0.367}
    """
    if hasattr(y_true, "evaluate"):
        refuse_beside_data(p=p, weights=weights, votes=votes)
        return y_true.evaluate(y_prob)
    sample = check_sample(y_true, y_prob, weights, p, votes)
    return evaluate_sample(sample, computable(p is not None or votes is not None))


def refuse_beside_data(**given):
    """Refuse what a data set holds itself, or has no answer to."""
    if given := [name for name, value in given.items() if value is not None]:
        raise ValueError(f"{', '.join(given)} must be None beside a data set, which has its own.")


def evaluate_sample(sample, names):
    """Return metrics of a checked sample; say which are undefined."""
    with warnings.catch_warnings(action="ignore"):  # said below, once, where the caller sees it
        values = {name: METRICS[name].of(sample) for name in names}
    undefined = [name for name, value in values.items() if math.isnan(value)]
    if undefined:
        why = "all outcomes are the same" if np.ptp(sample.y) == 0 else "undefined on these rows"
        text = f"{', '.join(undefined)} is NaN: {why}."
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return values


def computable(with_truth):
    """Return the names of the metrics that can be computed, with or without the truth."""
    return [name for name, metric in METRICS.items() if with_truth or not metric.needs_truth]


OUTCOME_SCORES = ("mse_p", "kl_p", "ece", "brier", "nll")

TOLERANCE = 1e-4
"""How far from 1 a row may sum: float32 predictions of some hundred outcomes do."""


def evaluate_outcomes(y_true, y_prob, p=None, weights=None):
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
    >>> found = evaluate_outcomes([0, 2], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    >>> {name: round(value, 3) for name, value in found.items()}
    {'ece': 0.167, 'brier': 0.125, 'nll': 0.347}
    """
    p_hat, y = check_classes(y_prob, y_true)
    outcomes = np.arange(p_hat.shape[1])
    p = None if p is None else check_distributions(p, "p")
    if p is not None and p.shape != p_hat.shape:
        raise ValueError(f"p and y_prob must have one shape; got {p.shape} and {p_hat.shape}.")
    if len(outcomes) == 2:
        sample = check_sample(y, p_hat[:, 1], weights, None if p is None else p[:, 1])
        binary = {name: METRICS[name].of(sample) for name in OUTCOME_SCORES[2 * (p is None) :]}
        return binary | {"ece": float(binning.ece_ranked(sample.ranked)[0])}
    hit = y[:, None] == outcomes
    terms = {"brier": ((p_hat - hit) ** 2).sum(axis=1) / 2, "nll": nll_rows(1, p_hat[hit])}
    if p is not None:
        distance = ((p_hat - p) ** 2).sum(axis=1) / 2
        terms |= {"mse_p": distance, "kl_p": rel_entr(p, p_hat).sum(axis=1)}
    kept, weights = check_row_weights(weights, len(y))
    rows = slice(None) if kept is None else kept
    found = {name: weighted_mean(term[rows], weights) for name, term in terms.items()}
    each = [binning.ece(hit[rows, k], p_hat[rows, k], weights=weights) for k in outcomes]
    found["ece"] = float(np.mean(each))
    return {name: found[name] for name in OUTCOME_SCORES if name in found}


def check_classes(p_hat, y, names=("y_prob", "y_true")):
    """Return distributions over K outcomes, and outcomes 0 to K - 1 as integers."""
    p_hat, y = check_distributions(p_hat, names[0]), plain_array(y, names[1])
    if y.shape != (len(p_hat),):
        raise ValueError(f"{names[1]} must be of shape ({len(p_hat)},); got {y.shape}.")
    outcomes = np.arange(p_hat.shape[1])
    refuse_where(~np.isin(y, outcomes), y, f"{names[1]} must hold outcomes 0 to {outcomes[-1]}")
    return p_hat, y.astype(np.int64)


def check_distributions(p, name="y_prob", least=1):
    """Return distributions over K outcomes as float64 of shape (n, K), K at least 2, as they are.

    Raises
    ------
    ValueError
        If the shape is wrong, a value is outside [0, 1] or a row does not sum to 1.
    """
    p = plain_array(p, name)
    if p.ndim != 2 or p.shape[0] < least or p.shape[1] < 2:
        raise ValueError(f"{name} must be of shape (n, K), K at least 2; got shape {p.shape}.")
    p = as_float(p, name)
    wrong = ~((p >= 0) & (p <= 1)).all(axis=1)
    wrong |= ~(np.abs(p.sum(axis=1) - 1) <= TOLERANCE)
    refuse_where(wrong, p, f"{name} must hold probabilities that sum to 1")
    return p
