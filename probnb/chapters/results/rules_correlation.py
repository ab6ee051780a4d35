"""Rules about metrics: which of them follow the error that only the truth shows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from ...scenarios import SCENARIOS
from .sources import label
from .verdicts import AGAINST, ENOUGH, HOLDS, OPEN, Verdict, missing_words, rule

__all__ = []


@rule
def follows(source, target="mse_p", least="0.9"):
    """Over the rows of each scenario, the Brier score correlates with the target."""
    values = _correlations(source, target)
    if not values:
        return None
    said = "; ".join(f"{t} {r['brier']:.2f}" for t, r in values.items())
    signs = {t: -1 if r["brier"] >= float(least) else 1 for t, r in values.items()}
    return Verdict(_spread(source, signs), f"r(Brier, {label(target)}): {said}" + _unseen(values))


@rule
def leads_correlation(source, target="mse_p", metrics="brier,ece,mce,ks"):
    """In every scenario the Brier score correlates best with the target."""
    values = _correlations(source, target, metrics.split(","))
    if not values or any(len(r) < 2 for r in values.values()):
        return None
    best = {t: max(r, key=r.get) for t, r in values.items()}
    signs = {t: -1 if m == "brier" else 1 for t, m in best.items()}
    said = "; ".join(f"{t} {label(m)} {values[t][m]:.2f}" for t, m in best.items())
    return Verdict(_spread(source, signs), f"closest to {label(target)}: {said}" + _unseen(values))


@rule
def steadiest(source, target="mse_p"):
    """The Brier score's lowest correlation over scenarios is the highest of any metric's."""
    values = _correlations(source, target)
    if len(values) < 2:
        return None
    lowest = pd.DataFrame(values).min(axis=1).sort_values()
    said = ", ".join(f"{label(m)} {r:.2f}" for m, r in lowest[::-1].items())
    verdict = HOLDS if lowest.index[-1] == "brier" else AGAINST
    if len(values) < len(SCENARIOS):
        verdict = OPEN
    return Verdict(verdict, f"lowest r over scenarios: {said}" + _unseen(values))


@rule
def orders_alike(source, target="mse_p", least="0.9"):
    """Of pairs of rows that the target clearly tells apart, Brier orders enough the same way."""
    shares, pairs = {}, {}
    for task in (t for t in SCENARIOS if t in source.tasks):
        agree = []
        for a, b in combinations(source.rivals(task, "brier", ()), 2):
            sign = source.clear(task, a, b, target)
            if sign:
                gap = source.value(task, a, "brier") - source.value(task, b, "brier")
                agree.append(np.sign(gap) == sign)
        if agree:
            shares[task], pairs[task] = float(np.mean(agree)), len(agree)
    if not shares:
        return None
    signs = {t: -1 if s >= float(least) else 1 for t, s in shares.items()}
    said = "; ".join(f"{t} {share:.0%} of {pairs[t]}" for t, share in shares.items())
    return Verdict(_spread(source, signs), f"clear pairs ordered alike: {said}" + _unseen(shares))


def _correlations(source, target, metrics=("brier", "ece", "mce", "ks")):
    """Pearson correlation of each metric with the target over rows, by scenario."""
    out = {}
    for task in (t for t in SCENARIOS if t in source.tasks):
        names = source.rivals(task, target, ())
        table = pd.DataFrame(
            {m: [source.value(task, n, m) for n in names] for m in (*metrics, target)}
        )
        table = table.dropna(axis=1, how="all").dropna()
        if len(table) > 2 and target in table:
            r = table.corr()[target].drop(target)
            out[task] = {m: abs(r[m]) if m == "auc" else r[m] for m in r.index}
    return out


def _spread(source, signs):
    """Judge a claim about every scenario."""
    if 1 in signs.values():
        return AGAINST if source.name == "printed" or len(signs) >= ENOUGH else OPEN
    return HOLDS if len(signs) == len(SCENARIOS) else OPEN


def _unseen(values):
    return missing_words([t for t in SCENARIOS if t not in values])
