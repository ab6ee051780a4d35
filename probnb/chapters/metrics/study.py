"""The metric of metrics: how well scores of outcomes stand in for distances from the truth.

Every trained model, be it a method's final one or an epoch on the way, is a point: its distance
from the true probabilities against what a metric of outcomes says about it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...experiment.results import on_test, read_results
from ...methods import METHODS, PAPER
from ...metrics.registry import METRICS, evaluate
from ...published import published
from ...scenarios import SCENARIOS
from ...validation import check_choice, check_integer, check_number

__all__ = [
    "TARGETS",
    "brier_resolution",
    "collect_models",
    "correlations",
    "oriented",
    "paper_models",
    "say_correlations",
]

TARGETS = tuple(name for name, metric in METRICS.items() if metric.needs_truth)
"""What only the true probabilities can tell."""

PROXIES = tuple(name for name in METRICS if name not in TARGETS)
"""What outcomes can tell."""


def oriented(metric):
    """Return the sign and the label with which less of a metric is better: -1 and 1 - AUC."""
    entry = METRICS[metric]
    return (1, entry.label) if entry.lower_is_better else (-1, f"1 - {entry.label}")


def collect_models(runs):
    """Gather every trained model of stored runs with its metrics on the test data.

    Parameters
    ----------
    runs : iterable of StoredRun
        At most one for each scenario.

    Returns
    -------
    DataFrame
        One line a model: ``scenario``, ``kind`` (``"method"`` for the rows of a table, ``"epoch"``
        for what training passed through), ``name``, ``unit`` (the method or fit, whose models
        depend on each other), and the metrics of `METRICS`. Two are left out: the network before
        its first epoch, and among the methods the overfitted network, which the paper's tables
        lack and whose distance would settle every correlation; it remains among the epochs.
    """
    tables = []
    for run in runs:
        table, names, epochs = _read(run)
        names = [name for name in names if name != "ce_overfit"]
        point = pd.DataFrame([evaluate(table["y"], table[m], table["p"]) for m in names])
        epochs = epochs.query("epoch > 0").rename(columns={"fit": "unit"})
        tables += [
            point.assign(scenario=run.record["task"], kind="method", name=names, unit=names),
            epochs.assign(scenario=run.record["task"], kind="epoch", name=epochs["method"]),
        ]
    return pd.concat(tables, ignore_index=True)[["scenario", "kind", "name", "unit", *METRICS]]


def _read(run):
    """Return the test rows of a run's predictions, the names of its methods, and its epochs."""
    stored = read_results(run)
    table = on_test(stored.predictions)
    return table, [name for name in METHODS if name in table], stored.epochs


def paper_models():
    """Return the models of the paper's own Tables 3 to 7 in the form of `collect_models`.

    Returns
    -------
    DataFrame
        ``kind`` is ``"paper"``; ``auc`` and ``nll`` are NaN, which those tables do not print.
        Corrected misprints are used; suspect values are left out.

    Examples
    --------
    >>> paper_models().groupby("scenario", sort=False).size().to_dict()
    {'linear': 12, 'sigmoid': 12, 'centered': 12, 'skewed': 12, 'discrete': 12}
    """
    table = published(list(SCENARIOS), percent=False)
    table = table[table["method"].isin(PAPER) & (table["mark"] != "suspect")]
    wide = table.pivot(index=["scenario", "method"], columns="metric", values="value")
    wide = wide.reindex(columns=list(METRICS)).reset_index().rename(columns={"method": "name"})
    wide = wide.assign(kind="paper", unit=wide["name"])
    wide = wide.sort_values("scenario", key=lambda s: s.map(list(SCENARIOS).index), kind="stable")
    return wide[["scenario", "kind", "name", "unit", *METRICS]].reset_index(drop=True)


def correlations(models, replicates=1000, level=0.95, seed=0):
    """Correlate every metric of outcomes with every distance from the truth.

    Parameters
    ----------
    models : DataFrame
        From `collect_models` or `paper_models`.
    replicates : int, default=1000
        Bootstrap resamples for the intervals. Whole units are drawn, so that the epochs of a fit,
        which resemble each other, count as one.
    level : float, default=0.95
        Coverage aimed at.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    DataFrame
        One line for each scenario, kind, target and metric: ``pearson`` with ``low`` and ``high``,
        ``spearman``, the number of ``models`` and of ``units``, and how many were ``left_out``
        because a value is infinite or missing. NaN where a column is constant or has fewer than
        three models.

    Raises
    ------
    ValueError
        If a setting is out of range.
    """
    check_integer(replicates, "replicates")
    tails = [(1 - check_number(level, "level", 0, 1, exclusive=True)) / 2, (1 + level) / 2]
    lines = []
    for (scenario, kind), group in models.groupby(["scenario", "kind"], sort=False):
        for target in TARGETS:
            for metric in PROXIES:
                pair = group[[target, metric, "unit"]].replace([np.inf, -np.inf], np.nan).dropna()
                if pair.empty:
                    continue
                units = pair["unit"].factorize()[0]
                samples = _resampled(pair[target], pair[metric], units, replicates, seed)
                low, high = np.quantile(samples, tails) if len(samples) else (np.nan, np.nan)
                enough = len(pair) > 2
                lines.append(
                    {
                        "scenario": scenario,
                        "kind": kind,
                        "target": target,
                        "metric": metric,
                        "pearson": pair[target].corr(pair[metric]) if enough else np.nan,
                        "low": low,
                        "high": high,
                        "spearman": pair[target].rank().corr(pair[metric].rank()),
                        "models": len(pair),
                        "units": units.max() + 1,
                        "left_out": len(group) - len(pair),
                    }
                )
    return pd.DataFrame(lines)


def brier_resolution(runs):
    r"""Count the pairs of methods that Brier scores on one test set can tell apart.

    Parameters
    ----------
    runs : iterable of StoredRun
        Stored runs.

    Returns
    -------
    DataFrame
        One line a scenario: the number of ``pairs`` of methods; the share of ``clear`` ones, whose
        MSE_p differs by more than two standard deviations of the noise in the difference of their
        Brier scores; and the share of clear and of other pairs that Brier orders as MSE_p does,
        ``clear_right`` and ``other_right`` (NaN where there are none).

    Notes
    -----
    On the same rows the difference of two Brier scores is the difference in MSE_p plus
    :math:`\frac2N \sum_i (\hat p_i - \hat p_i')(p_i - y_i)`, whose variance given the predictions
    is :math:`\frac4{N^2} \sum_i (\hat p_i - \hat p_i')^2 p_i (1 - p_i)`.
    """
    lines = {}
    for run in runs:
        table, names, _ = _read(run)
        p_hat = table[names].to_numpy().T
        y, p = table["y"].to_numpy(), table["p"].to_numpy()
        first, second = np.triu_indices(len(p_hat), k=1)
        errors, scores = ((p_hat - p) ** 2).mean(axis=1), ((p_hat - y) ** 2).mean(axis=1)
        gap = errors[first] - errors[second]
        noise = ((p_hat[first] - p_hat[second]) ** 2 * p * (1 - p)).sum(axis=1)
        clear = np.abs(gap) > 4 * np.sqrt(noise) / len(y)
        right = np.sign(scores[first] - scores[second]) == np.sign(gap)
        lines[run.record["task"]] = {
            "pairs": len(gap),
            "clear": clear.mean(),
            "clear_right": right[clear].mean() if clear.any() else np.nan,
            "other_right": right[~clear].mean() if not clear.all() else np.nan,
        }
    return pd.DataFrame(lines).T.astype({"pairs": int}).rename_axis("scenario")


def _resampled(x, y, units, replicates, seed):
    """Return Pearson correlations of resamples in which they are defined."""
    rng = np.random.default_rng(seed)
    count = units.max() + 1
    draws = rng.multinomial(count, np.full(count, 1 / count), replicates)
    weights = draws[:, units] / draws[:, units].sum(axis=1, keepdims=True)
    # weighted moments about the overall mean, against cancellation
    a, b = (np.asarray(v, float) - np.mean(v) for v in (x, y))
    mean_a, mean_b = weights @ a, weights @ b
    covariance = weights @ (a * b) - mean_a * mean_b
    scale = (weights @ a**2 - mean_a**2) * (weights @ b**2 - mean_b**2)
    tiny = 1e-12 * np.var(a) * np.var(b)
    ok = scale > tiny  # a single model drawn over and over has no correlation
    return np.clip(covariance[ok] / np.sqrt(scale[ok]), -1, 1)


def say_correlations(table, target="mse_p"):
    """Say in words which metric follows the truth best, from `correlations`' numbers alone.

    Parameters
    ----------
    table : DataFrame
        From `correlations`.
    target : {"mse_p", "kl_p"}, default="mse_p"
        The distance from the truth.

    Returns
    -------
    str
        Markdown: for each kind of model how often each metric has the largest correlation, and the
        range of the correlations of each; for AUC, of 1 - AUC.
    """
    label = METRICS[check_choice(target, TARGETS, "target")].label
    what = {
        "method": "Across methods",
        "epoch": "Across the epochs of all trainings",
        "paper": "In the paper's own tables",
    }
    lines = []
    for kind, rows in table[table["target"] == target].groupby("kind", sort=False):
        r = rows["pearson"] * [oriented(metric)[0] for metric in rows["metric"]]
        best = rows.loc[r.dropna().groupby(rows["scenario"]).idxmax(), "metric"]
        wins = best.value_counts()
        spans = r.groupby(rows["metric"]).agg(["min", "max"])
        spans = spans.sort_values("min", ascending=False)
        lines.append(
            f"- **{what[kind]}**, the correlation with {label} is largest for "
            + ", ".join(f"{oriented(m)[1]} ({n} of {len(best)} scenarios)" for m, n in wins.items())
            + ". From lowest to highest over the scenarios: "
            + "; ".join(
                f"{oriented(m)[1]} {lo:.2f} to {hi:.2f}" for m, lo, hi in spans.itertuples()
            )
            + "."
        )
    return "\n".join(lines)
