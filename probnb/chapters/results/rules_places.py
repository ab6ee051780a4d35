"""Rules about places in a table: who is first, in the better half, or close behind."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...scenarios import SCENARIOS
from .sources import CAPE, label
from .verdicts import AGAINST, ENOUGH, HOLDS, OPEN, Verdict, counted, missing_words, rule, where_of

__all__ = []


@rule
def rank_within(source, method, metric, where, share):
    """A row is within the given best share of the paper's rows: in each task named."""
    tasks, need = where_of(where)
    places = {}
    for task in tasks:
        names = source.rivals(task, metric, ("resampled",))
        if method in names and len(names) > 2:
            places[task] = _place(source, task, method, metric, names), len(names)
    if not places:
        return None
    signs = {t: -1 if place <= float(share) * n else 1 for t, (place, n) in places.items()}
    said = "; ".join(f"{t} {place:g} of {n}" for t, (place, n) in places.items())
    known = {t: source.trainings(t, method, "ce", metric) for t in places}
    return Verdict(
        counted(signs, tasks, need, known),
        f"place of {label(method)} by {label(metric)}: {said}"
        + missing_words([t for t in tasks if t not in places], known),
    )


def _place(source, task, method, metric, names):
    values = pd.Series({m: source.value(task, m, metric) for m in names})
    return values.rank(ascending=metric != "auc", method="min")[method]


@rule
def first_half(source, metrics, where):
    """Both of CaPE's rows are in the better half by each metric, in every task named."""
    answers = [rank_within(source, row, m, where, 0.5) for m in metrics.split(",") for row in CAPE]
    answers = [a for a in answers if a]
    if not answers:
        return None
    verdicts = {a.verdict for a in answers}
    verdict = AGAINST if AGAINST in verdicts else OPEN if OPEN in verdicts else HOLDS
    return Verdict(verdict, "; ".join(a.reason for a in answers))


@rule
def ranks_vary(source, metric):
    """Some row moves by half of the table or more between scenarios."""
    if len(source.tasks) < 2:
        return None
    places = {}
    for task in (t for t in SCENARIOS if t in source.tasks):
        names = source.rivals(task, metric, ("resampled",))
        places[task] = {m: _place(source, task, m, metric, names) for m in names}
    table = pd.DataFrame(places).dropna()
    if table.shape[1] < 2:
        return None
    spans = (table.max(axis=1) - table.min(axis=1)).sort_values()
    widest = spans.index[-1]
    verdict = HOLDS if spans.iloc[-1] >= len(table) / 2 else AGAINST
    low, high = table.loc[widest].min(), table.loc[widest].max()
    said = f"{label(widest)} is between place {low:g} and {high:g} of {len(table)}"
    return Verdict(verdict, f"{said} in {table.shape[1]} scenarios")


@rule
def little_gain(source, task, metric, most="0.05"):
    """At most half of the rows improve the baseline by more than the given share of it."""
    base = source.value(task, "ce", metric)
    names = source.rivals(task, metric, ("resampled", "ce", *CAPE))
    if np.isnan(base) or len(names) < 3:
        return None
    better = [m for m in names if source.value(task, m, metric) < base * (1 - float(most))]
    if source.name == "measured" and source.trainings(task, "platt", "ce", metric) < ENOUGH:
        verdict = OPEN
    else:
        verdict = HOLDS if len(better) <= len(names) / 2 else AGAINST
    said = ", ".join(label(m) for m in better) or "none"
    return Verdict(verdict, f"better than CE's {base:.2f} by over {float(most):.0%}: {said}")


@rule
def similar(source, metric, task, ratio="1.1"):
    """The worst row is not much above the best."""
    values = [source.value(task, m, metric) for m in source.rivals(task, metric, ())]
    if len(values) < 3:
        return None
    verdict = HOLDS if max(values) <= float(ratio) * min(values) else AGAINST
    return Verdict(verdict, f"{label(metric)} from {min(values):.2f} to {max(values):.2f}")


@rule
def best_case(source, metric="mse_p"):
    """No row is better than training on resampled labels."""
    seen, beaten = [], []
    for task in (t for t in SCENARIOS if t in source.tasks):
        names = source.rivals(task, metric, ("resampled",))
        signs = {m: source.sign(task, m, "resampled", metric) for m in names}
        if None not in signs.values() and signs:
            seen.append(task)
            ahead = [source.words(task, m, "resampled", metric) for m in names if signs[m] < 0]
            beaten += ahead[:1]
    if not seen:
        return None
    verdict = AGAINST if beaten else HOLDS if len(seen) == len(SCENARIOS) else OPEN
    said = f"rows below resampled labels: {'; '.join(beaten) or 'none'}"
    return Verdict(verdict, said + missing_words([t for t in SCENARIOS if t not in seen]))


@rule
def robust_rank(source, rows, metric="mse_p"):
    """One row is better than each of several, wherever both are printed or measured."""
    mine, *others = rows.split(",")
    against, asked = [], 0
    for task in source.tasks:
        for other in others:
            sign = (
                source.clear(task, mine, other, metric)
                if task in SCENARIOS
                else source.sign(task, mine, other, metric)
            )
            asked += sign is not None
            if sign == 1:
                against.append(source.words(task, mine, other, metric))
    if not asked:
        return None
    verdict = AGAINST if against else HOLDS if asked >= len(others) * len(SCENARIOS) else OPEN
    if source.name == "measured" and len(against) < ENOUGH and verdict == AGAINST:
        verdict = OPEN
    said = f"{label(mine)} clearly behind {', '.join(label(m) for m in others)}"
    return Verdict(verdict, f"{said}: {'; '.join(against) or 'nowhere'}")


@rule
def unbeaten_in(source, metric, where):
    """The lowest value of every task is one of CaPE's."""
    tasks, _ = where_of(where)
    seen = [t for t in tasks if t in source.tasks]
    if not seen:
        return None
    words, ahead = [], []
    for task in seen:
        names = source.rivals(task, metric)
        best = min(names, key=lambda m: source.value(task, m, metric))
        words.append(source.words(task, "cape", best, metric) + f" ({label(best)})")
        ahead += [task] if source.sign(task, "cape", best, metric) != -1 else []
    said = f"lowest of CaPE against the lowest of the others, {label(metric)}: {'; '.join(words)}"
    return Verdict(AGAINST if ahead else HOLDS, said)


@rule
def rate(source, part, whole, most):
    """A printed count is at most a given share of another."""
    share = float(part) / float(whole)
    verdict = HOLDS if share <= float(most) else AGAINST
    return Verdict(verdict, f"{int(part):,} of {int(whole):,} are {share:.0%}")
