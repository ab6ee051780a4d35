"""The metric of metrics: how well scores of outcomes stand in for distances from the truth.

Every trained model, be it a method's final one or an epoch on the way, is a point: its distance
from the true probabilities against what a metric of outcomes says about it.
"""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pandas as pd

from ...experiment.results import find_runs, on_test, read_results
from ...methods import METHODS, PAPER
from ...metrics.registry import METRICS, evaluate
from ...published import published
from ...scenarios import SCENARIOS
from ...validation import check_choice, check_integer

TARGETS = tuple(name for name, metric in METRICS.items() if metric.needs_truth)
"""What only the true probabilities can tell."""

PROXIES = tuple(name for name in METRICS if name not in TARGETS)
"""What outcomes can tell."""


def check_scenarios(scenarios=None):
    """Return names of scenarios in the paper's order; None for all, or a string of several."""
    if scenarios is None:
        return list(SCENARIOS)
    names = re.split(r"[,\s]+", scenarios.strip()) if isinstance(scenarios, str) else scenarios
    chosen = {check_choice(name, SCENARIOS, "scenarios") for name in names}
    return [name for name in SCENARIOS if name in chosen]


def best_runs(folders, scenarios):
    """Return the best stored run of each scenario: photographs, then size, as profiles say."""
    found = {name: find_runs(folders, "synthetic", task=name) for name in scenarios}
    for name, runs in found.items():
        if not runs:
            raise FileNotFoundError(
                f"results_dir must hold a run of every scenario; {name!r} has none in "
                f"{', '.join(map(str, folders))}. To make one: papermill book/synthetic.ipynb "
                f"out.ipynb -p scenario {name}"
            )
    return {name: runs[0] for name, runs in found.items()}


def collect_models(runs):
    """Gather every trained model of stored runs (one a scenario) with its test metrics.

    ``kind`` is "method" for the rows of a table and "epoch" for what training passed through;
    ``unit`` is the method or fit, whose models depend on each other. Two are left out: the network
    before its first epoch, and among the methods the overfitted network, which the paper's tables
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

    They print neither AUC nor NLL. Corrected misprints are used; suspect values are left out.
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

    Returns a line for each scenario, kind, target and metric: ``pearson`` with ``low`` and
    ``high``, ``spearman``, the number of ``models`` and of ``units``, and how many were
    ``left_out`` because a value is infinite or missing; NaN where there are fewer than three
    models. Of AUC it is 1 - AUC, so that less is better throughout. Intervals resample whole
    units, so that the epochs of a fit, which resemble each other, count as one.
    """
    check_integer(replicates, "replicates")
    tails, lines = [(1 - level) / 2, (1 + level) / 2], []
    for (scenario, kind), group in models.groupby(["scenario", "kind"], sort=False):
        for target, metric in product(TARGETS, PROXIES):
            pair = group[[target, metric, "unit"]].replace([np.inf, -np.inf], np.nan).dropna()
            if pair.empty:
                continue
            x, z = pair[target], pair[metric] * (1 if METRICS[metric].lower_is_better else -1)
            units, r = pair["unit"].factorize()[0], x.corr(z) if len(pair) > 2 else np.nan
            samples = _resampled(x, z, units, replicates, seed)
            low, high = np.quantile(samples, tails) if len(samples) else (np.nan, np.nan)
            counts = len(pair), units.max() + 1, len(group) - len(pair)
            rank = x.rank().corr(z.rank())
            line = scenario, kind, target, metric, r, low, high, rank, *counts
            lines.append(line)
    columns = """scenario kind target metric pearson low high spearman models units left_out"""
    return pd.DataFrame(lines, columns=columns.split())


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


def brier_resolution(runs):
    r"""Count the pairs of methods that Brier scores on one test set can tell apart, by scenario.

    ``clear`` is the share of pairs whose MSE_p differs by more than two standard deviations of the
    noise in the difference of their Brier scores, :math:`\frac4{N^2} \sum_i (\hat p_i - \hat
    p_i')^2 p_i (1 - p_i)`; ``clear_right`` and ``other_right`` the shares of clear and of other
    pairs that Brier orders as MSE_p does (NaN where there are none).
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
