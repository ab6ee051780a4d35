"""What the chapter asks of its predictions: seeds, votes, and the ratio in the paper's table."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import entr, xlogy
from scipy.stats import spearmanr
from scipy.stats import t as student

from ...methods import METHODS
from ...metrics import brier, kl_p, mse_p, repeated_distance
from ...metrics.votes import check_votes
from ...published import published
from ...validation import check_choice, check_integer, check_number

__all__ = [
    "across_seeds",
    "brier_follows",
    "coverage",
    "implied_clip",
    "implied_clips",
    "kl_ratios",
    "needed_at_zero",
    "paper_ratios",
    "trained_models",
    "unbias_epochs",
]

CLIPS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-12, 1e-16)
"""Clippings that a program may put before a logarithm; 1e-7 and 2e-16 are the machine's own."""


def kl_ratios(p, predictions, clips=CLIPS):
    """Divide KL_p by MSE_p, for both directions and several clippings.

    Parameters
    ----------
    p : array-like of shape (n,)
        True probabilities.
    predictions : DataFrame
        A column of predictions for each method.
    clips : sequence of float
        Both arguments of the divergence are moved into [clip, 1 - clip].

    Returns
    -------
    DataFrame
        Columns ``method``, ``direction``, ``clip`` and ``ratio``.
    """
    rows = []
    for method, p_hat in predictions.items():
        error = mse_p(p, p_hat)
        for clip in clips:
            check_number(clip, "clips", 0, 0.5)
            a, b = (np.clip(np.asarray(v, float), clip, 1 - clip) for v in (p, p_hat))
            rows += [
                (method, direction, clip, kl_p(a, b, direction) / error)
                for direction in ("p||p_hat", "p_hat||p")
            ]
    return pd.DataFrame(rows, columns=["method", "direction", "clip", "ratio"])


def implied_clip(p, p_hat, ratio):
    """Find the clipping of p with which KL(p_hat || p) is so many times MSE_p.

    Parameters
    ----------
    p : array-like of shape (n,)
        True probabilities, some of them 0 or 1.
    p_hat : array-like of shape (n,)
        Predicted probabilities.
    ratio : float
        KL_p divided by MSE_p.

    Returns
    -------
    float
        The clipping, between 1e-300 and 0.1; NaN where none gives the ratio.
    """
    p, p_hat = np.asarray(p, float), np.asarray(p_hat, float)
    error = mse_p(p, p_hat)

    def excess(exponent):
        # 1 - clip is 1 for the smallest ones, so that the logarithms are taken by themselves
        log_p = np.log(np.maximum(p, 10**exponent))
        log_q = np.log(np.maximum(1 - p, 10**exponent))
        entropy = entr(p_hat) + entr(1 - p_hat)
        return (-p_hat * log_p - (1 - p_hat) * log_q - entropy).mean() / error - ratio

    if excess(-300) * excess(-1) > 0:
        return float("nan")
    return float(10 ** brentq(excess, -300, -1))


def implied_clips(p, predictions, ratios):
    """Find the `implied_clip` of several methods, each with its ratio."""
    return {m: implied_clip(p, predictions[m], ratios[m]) for m in predictions}


def needed_at_zero(paper, rest, clip):
    """Find the mean prediction on the class with p = 0 that the paper's table would need.

    Parameters
    ----------
    paper : DataFrame
        From `paper_ratios`.
    rest : float
        KL_p / MSE_p of what is not due to that class.
    clip : float
        Where p is clipped in KL(p_hat || p).

    Returns
    -------
    Series
        By method. A tenth of the images are of that class, and each adds its prediction times the
        logarithm of 1 / clip.

    Examples
    --------
    >>> needed_at_zero(paper_ratios(), 2.6, 1e-7).round(2).to_dict()
    {'ce': 0.2, 'cape_bin': 0.11, 'cape_kernel': 0.12}
    """
    check_number(clip, "clip", 0, 0.5, exclusive=True)
    return (paper["kl_p"] - rest * paper["mse_p"]) / (0.1 * np.log(1 / clip))


def paper_ratios():
    """Return the paper's Table 11 with its ratios KL_p / MSE_p.

    Returns
    -------
    DataFrame
        Index: methods; columns ``mse_p``, ``kl_p`` and ``ratio``.
    """
    table = published("cifar10", percent=False).pivot(
        index="method", columns="metric", values="value"
    )
    table = table.loc[[m for m in METHODS if m in table.index], ["mse_p", "kl_p"]]
    return table.assign(ratio=table["kl_p"] / table["mse_p"])


def across_seeds(tables, reference="ce", metric="mse_p", level=0.95):
    """Compare every method with one of them over several trainings on the same task.

    Parameters
    ----------
    tables : sequence of DataFrame
        For each seed the test rows: ``id``, a column for each method, and ``p``, or ``k`` and
        ``n`` of the votes that no training saw, or (for ``"brier"``) ``y``.
    reference : str, default="ce"
        The method to compare with.
    metric : {"mse_p", "kl_p", "brier"}, default="mse_p"
        What to compare; from votes without bias.
    level : float, default=0.95
        Coverage of the intervals.

    Returns
    -------
    DataFrame
        Index: methods. Columns ``value`` (mean over seeds), ``spread`` (standard deviation over
        seeds), ``difference``, ``low``, ``high`` and ``verdict``: ``"better"``, ``"worse"``,
        ``"no difference shown"``, ``"not finite"``, or empty for the reference itself.

    Notes
    -----
    The variance of a mean difference is that over test rows, whose deviations are summed over seeds
    where seeds share a row, plus that over seeds; Student's t has Satterthwaite's degrees
    of freedom. Where test rows differ between seeds their noise is counted twice, on the safe
    side. With one seed the interval is over rows alone and says nothing about another training.
    """
    check_choice(metric, ("mse_p", "kl_p", "brier"), "metric")
    methods = [m for m in METHODS if all(m in table for table in tables)]
    check_choice(reference, methods, "reference")
    values = {m: [_mean(_terms(t, m, metric)) for t in tables] for m in methods}
    rows = {}
    for m in methods:
        with np.errstate(invalid="ignore"):  # infinity less infinity
            gaps = [_terms(t, m, metric) - _terms(t, reference, metric) for t in tables]
        mean, low, high = _interval(gaps, [t["id"] for t in tables], level)
        known = len(tables) > 1 and np.isfinite(values[m]).all()
        spread = np.std(values[m], ddof=1) if known else np.nan
        rows[m] = (np.mean(values[m]), spread, mean, low, high)
    table = pd.DataFrame(rows, index=["value", "spread", "difference", "low", "high"]).T
    table["verdict"] = np.select(
        [table.index == reference, table["high"] < 0, table["low"] > 0, table["low"].isna()],
        ["", "better", "worse", "not finite"],
        "no difference shown",
    )
    return table


def trained_models(results):
    """Gather every model of a run as a point: what Brier says of it, and how far it is from p.

    Parameters
    ----------
    results : probnb.experiment.results.Results
        Of `probnb.chapters.cifar10.tasks.train_task`.

    Returns
    -------
    DataFrame
        ``kind`` (``"method"`` or ``"epoch"``), ``name``, ``unit`` (the training), ``brier``,
        ``mse_p`` and ``seed`` (0: one run is one seed); of the votes that no training saw where
        there are some. The network before its first epoch is left out.
    """
    test = results.predictions.query("split == 'test'")
    names = [m for m in METHODS if m in test]
    methods = pd.DataFrame(
        {
            "kind": "method",
            "name": names,
            "unit": names,
            "brier": [brier(test["y"], test[m]) for m in names],
            "mse_p": [_mean(_terms(test, m, "mse_p")) for m in names],
        }
    )
    epochs = results.epochs.query("epoch > 0").rename(columns={"fit": "unit", "method": "name"})
    epochs = epochs.assign(kind="epoch")[["kind", "name", "unit", "brier", "mse_p"]]
    return pd.concat([methods, epochs], ignore_index=True).assign(seed=0)


def brier_follows(points, kind):
    """Correlate the Brier score with MSE_p over models that were judged by the same votes.

    Parameters
    ----------
    points : DataFrame
        From `trained_models`, of one seed or of several put together with a column ``seed``. The
        overfitted network, whose distance would decide all alone, is left out of the methods.
    kind : {"method", "epoch"}
        Which models.

    Returns
    -------
    DataFrame
        One row a seed: ``r``, Pearson's, and ``rank``, Spearman's correlation, and how many
        ``models``. Seeds are kept apart, as the luck of a seed's votes shifts all of its Brier
        scores alike.
    """
    rows = points[(points["kind"] == kind) & (points["name"] != "ce_overfit")]
    out = {}
    for seed, own in rows.groupby("seed"):
        r = np.corrcoef(own["mse_p"], own["brier"])[0, 1]
        out[seed] = (r, spearmanr(own["mse_p"], own["brier"]).statistic, len(own))
    return pd.DataFrame.from_dict(out, orient="index", columns=["r", "rank", "models"])


def unbias_epochs(epochs, k, n):
    """Turn distances from the shares of votes into distances from the probabilities.

    Parameters
    ----------
    epochs : DataFrame
        Records of trainings whose test data had the shares k / n in place of probabilities.
    k, n : array-like of shape (rows,)
        The votes of the test rows.

    Returns
    -------
    DataFrame
        The same with ``mse_p`` less the noise of the shares, and ``kl_p`` less what the entropy
        of shares lacks; both shifts are the same in every record.
    """
    votes = check_votes(k, n)
    share = votes.share
    noise = (votes.variance() / votes.counts).mean()
    lost = (votes.entropy() - entr(share) - entr(1 - share)).mean()
    return epochs.assign(mse_p=epochs["mse_p"] - noise, kl_p=epochs["kl_p"] - lost)


def coverage(votes=(2, 9, 50), rows=(200, 2000), replicates=400, level=0.95, seed=0):
    """Simulate people to see how often the interval of MSE_p from votes holds MSE_p.

    Parameters
    ----------
    votes : sequence of int, default=(2, 9, 50)
        People who judge each row.
    rows : sequence of int, default=(200, 2000)
        Rows of a test set.
    replicates : int, default=400
        Test sets drawn for each setting.
    level : float, default=0.95
        Coverage that the intervals aim at.
    seed : int, default=0
        Seed of the simulation.

    Returns
    -------
    DataFrame
        ``votes``, ``rows``, ``truth``, ``mean`` of the estimates, ``plain`` (the mean distance
        from the shares, as if they were p) and ``covered``.
    """
    replicates = check_integer(replicates, "replicates", minimum=2)
    rng = np.random.default_rng(seed)
    out = []
    # The distance in a world of endless rows, which the rows of a test set are a sample of.
    truth = _mean(np.subtract(*_world(rng, 1_000_000)) ** 2)
    for n in votes:
        for size in rows:
            found, plain = [], []
            for _ in range(replicates):
                p, p_hat = _world(rng, size)
                k = rng.binomial(n, p)
                found.append(repeated_distance(k, np.full(size, n), p_hat, level=level))
                plain.append(_mean((p_hat - k / n) ** 2))
            held = np.mean([e.low <= truth <= e.high for e in found])
            mean = np.mean([e.value for e in found])
            out.append((n, size, truth, mean, np.mean(plain), held))
    return pd.DataFrame(out, columns=["votes", "rows", "truth", "mean", "plain", "covered"])


def _world(rng, size):
    """Probabilities like those of neutral faces, and predictions that are somewhat off."""
    p = rng.beta(0.7, 1.5, size)
    return p, np.clip(0.25 + 0.5 * p + 0.15 * rng.standard_normal(size), 0.01, 0.99)


def _terms(table, method, metric):
    """Terms whose mean is the metric, by row."""
    p_hat = table[method].to_numpy(float)
    if metric == "brier":
        return (p_hat - table["y"].to_numpy(float)) ** 2
    if "k" in table:
        k, n = table["k"].to_numpy(), table["n"].to_numpy()
        if metric == "kl_p":
            return check_votes(k, n, least=1).divergence(p_hat)
        return check_votes(k, n).squared_error(p_hat)
    p = table["p"].to_numpy(float)
    if metric == "mse_p":
        return (p_hat - p) ** 2
    with np.errstate(divide="ignore"):
        return -xlogy(p, p_hat) - xlogy(1 - p, 1 - p_hat) - entr(p) - entr(1 - p)


def _interval(gaps, ids, level):
    """Mean over seeds of a mean over rows, and its interval."""
    check_number(level, "level", 0, 1, exclusive=True)
    means = np.array([gap.mean() for gap in gaps])
    if not np.isfinite(means).all():  # a divergence that is infinite in some row
        return np.nan, np.nan, np.nan
    seeds = len(gaps)
    parts = [
        pd.Series((gap - m) / (seeds * len(gap)), index=i) for gap, m, i in zip(gaps, means, ids)
    ]
    by_row = pd.concat(parts).groupby(level=0).sum()
    over_rows, rows = float((by_row**2).sum()), len(by_row) - 1
    over_seeds = means.var(ddof=1) / seeds if seeds > 1 else 0.0
    total = over_rows + over_seeds
    if total == 0:
        return means.mean(), 0.0, 0.0
    freedom = total**2 / (over_rows**2 / rows + (over_seeds**2 / (seeds - 1) if seeds > 1 else 0))
    half = student.ppf((1 + level) / 2, freedom) * np.sqrt(total)
    return means.mean(), means.mean() - half, means.mean() + half


def _mean(terms):
    return float(np.mean(terms))
