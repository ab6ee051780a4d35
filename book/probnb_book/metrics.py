"""The chapter on metrics: how well scores stand in for distances from the truth.

Models drawn from known probabilities have errors that are known too.
"""

from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import norm

from probnb import metrics
from probnb.methods import PAPER
from probnb.metrics import METRICS

from . import evidence
from .published import published
from .scenarios import SCENARIOS

TARGETS = tuple(name for name, metric in METRICS.items() if metric.needs_truth)
"""What only the true probabilities can tell."""

PROXIES = ("ece", "mce", "ks", "brier", "auc", "nll")
"""What outcomes can tell, of which stored epochs have a value."""

MODEL = ("scenario", "kind", "seed", "name", "unit")
"""What tells a trained model from others."""


def best_runs(folders, scenarios):
    """Find the best stored runs of each scenario, all seeds: photographs first, then size."""
    found = {name: evidence.find(folders, "synthetic", task=name) for name in scenarios}
    for name, runs in found.items():
        if runs.empty:
            raise FileNotFoundError(
                f"results_dir must hold a run of every scenario; {name!r} has none in "
                f"{', '.join(map(str, folders))}. To make one: papermill book/synthetic.ipynb "
                f"out.ipynb -p scenario {name}"
            )
        kind = runs[evidence.KIND]
        found[name] = runs[(kind == kind.iloc[0]).all(axis=1)]
    return found


def collect_models(runs):
    """Gather every trained model of stored runs, lines of `best_runs`, with its test metrics.

    ``kind`` is "method" for the rows of a table and "epoch" for what training passed through;
    ``unit`` is the method or fit, whose models depend on each other. Two are left out: the network
    before its first epoch, and among the methods the overfitted network, which the paper's tables
    lack and whose distance would settle every correlation; it remains among the epochs.
    """
    tables = []
    for line in runs.itertuples():
        results, test = evidence.tables(line)
        names = [name for name in evidence.methods_of(test) if name != "ce_overfit"]
        facts = {"scenario": line.task, "seed": line.seed}
        point = pd.DataFrame([metrics.evaluate(test["y"], test[m], test["p"]) for m in names])
        epochs = results.epochs.query("epoch > 0").rename(columns={"fit": "unit"})
        tables += [
            point.assign(**facts, kind="method", name=names, unit=names),
            epochs.assign(**facts, kind="epoch", name=epochs["method"]),
        ]
    return pd.concat(tables, ignore_index=True)[[*MODEL, *METRICS]]


def paper_models():
    """Return the models of the paper's own Tables 3 to 7 in the form of `collect_models`.

    They print neither AUC nor NLL. Corrected misprints are used; suspect values are left out.
    """
    table = published(list(SCENARIOS), percent=False)
    table = table[table["method"].isin(PAPER) & (table["mark"] != "suspect")]
    wide = table.pivot(index=["scenario", "method"], columns="metric", values="value")
    wide = wide.reindex(columns=list(METRICS)).reset_index().rename(columns={"method": "name"})
    wide = wide.assign(kind="paper", seed=0, unit=wide["name"])
    wide = wide.sort_values("scenario", key=lambda s: s.map(list(SCENARIOS).index), kind="stable")
    return wide[[*MODEL, *METRICS]].reset_index(drop=True)


def correlations(models):
    """Correlate every metric of outcomes with every distance from the truth.

    Returns a line for each scenario, kind, target and metric: ``pearson`` with ``low`` and
    ``high``, the number of ``models``, of ``units`` and of ``seeds``, and how many models were
    ``left_out`` because a value is infinite or missing; NaN where there are fewer than three
    models. Of AUC it is 1 - AUC, so that less is better throughout. It is taken among the models of
    a seed, which share their test rows; of several seeds it is the mean on the scale of arctanh,
    with Student's interval. The interval of one seed is Fisher's, for as many models as there are
    units: the epochs of a fit, which resemble each other, count as one.
    """
    lines = []
    for (scenario, kind), group in models.groupby(["scenario", "kind"], sort=False):
        for target, metric in product(TARGETS, PROXIES):
            pair = group[["seed", "unit", target, metric]].replace([np.inf, -np.inf], np.nan)
            pair = pair.dropna()
            if pair.empty:
                continue
            sign, counts = 1 if METRICS[metric].lower_is_better else -1, pair.nunique()
            each = [
                sign * one[target].corr(one[metric]) if len(one) > 2 else np.nan
                for _, one in pair.groupby("seed")
            ]
            z, ends = np.arctanh(each), (np.nan, np.nan)
            if len(z) > 1:
                gap = metrics.difference(z)
                ends = gap.low, gap.high
            elif counts["unit"] > 3:
                ends = z[0] + norm.ppf([0.025, 0.975]) / np.sqrt(counts["unit"] - 3)
            counts = len(pair), counts["unit"], counts["seed"], len(group) - len(pair)
            lines.append((scenario, kind, target, metric, *np.tanh([z.mean(), *ends]), *counts))
    columns = "scenario kind target metric pearson low high models units seeds left_out"
    return pd.DataFrame(lines, columns=columns.split())
