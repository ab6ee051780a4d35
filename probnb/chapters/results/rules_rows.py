"""Rules about rows of a table: which is better, where, and how often."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...scenarios import SCENARIOS
from .sources import CAPE, label
from .verdicts import AGAINST, ENOUGH, HOLDS, OPEN, Verdict, counted, missing_words, rule, where_of

__all__ = []


@rule
def below(source, a, b, metric, where="every", clear="clear"):
    """One row is better than another, in every scenario, most of them, or those named."""
    tasks, need = where_of(where)
    signs = {t: source.sign(t, a, b, metric) for t in tasks}
    signs = {t: s for t, s in signs.items() if s is not None}
    if not signs:
        return None
    if source.name == "printed" and len(signs) == len(tasks):  # equal numbers are not better
        signs = {t: s or 1 for t, s in signs.items()}
    known = {t: source.trainings(t, a, b, metric) for t in signs}
    numbers = "; ".join(source.words(t, a, b, metric) for t in signs)
    missing = [t for t in tasks if t not in signs]
    return Verdict(
        counted(signs, tasks, need, known),
        f"{label(a)} against {label(b)}, {label(metric)}: {numbers}"
        + missing_words(missing, known),
    )


@rule
def on_par(source, a, b, metric, where="every"):
    """One row is not clearly worse than another."""
    tasks, need = where_of(where)
    signs = {t: source.clear(t, a, b, metric) for t in tasks}
    signs = {t: s for t, s in signs.items() if s is not None}
    if not signs:
        return None
    known = {t: source.trainings(t, a, b, metric) for t in signs}
    numbers = "; ".join(source.words(t, a, b, metric) for t in signs)
    signs = {t: 1 if s > 0 else -1 for t, s in signs.items()}
    return Verdict(
        counted(signs, tasks, need, known),
        f"{label(a)} against {label(b)}, {label(metric)}: {numbers}"
        + missing_words([t for t in tasks if t not in signs], known),
    )


@rule
def cells(source, metrics="mse_p,kl_p,ece,mce,ks,brier", where="every"):
    """CaPE is the best row in more than half of the cells of scenario and metric."""
    tasks, _ = where_of(where)
    metrics = metrics.split(",")
    won = lost = known = 0
    by_metric = dict.fromkeys(metrics, 0)
    seen = [t for t in tasks if t in source.tasks]
    for task in seen:
        for metric in metrics:
            signs = [source.sign(task, "cape", m, metric) for m in source.rivals(task, metric)]
            if not signs or None in signs:
                continue
            known += 1
            first = all(
                _lower(source, task, metric, rival) for rival in source.rivals(task, metric)
            )
            won += first
            by_metric[metric] += first
            lost += max(signs) > 0
    if not known:
        return None
    total = len(tasks) * len(metrics)
    if source.name == "printed":
        verdict = HOLDS if won > total / 2 else AGAINST
    else:
        verdict = HOLDS if won > total / 2 else AGAINST if lost >= total / 2 else OPEN
    parts = ", ".join(f"{label(m)} {count}" for m, count in by_metric.items())
    against = "" if source.name == "printed" else f"; clearly beaten in {lost}"
    return Verdict(
        verdict,
        f"best in {won} of {known} cells ({parts}, of {len(seen)}){against}"
        + missing_words([t for t in tasks if t not in seen]),
    )


def _lower(source, task, metric, rival):
    a = source.best(task, "cape", metric)
    pair = [source.value(task, m, metric) for m in (a, rival)]
    return pair[0] < pair[1] if metric != "auc" else pair[0] > pair[1]


@rule
def unbeaten(source, metric, where="every", how="clear"):
    """No baseline is clearly better than CaPE in any scenario."""
    tasks, _ = where_of(where)
    beaten, seen = [], [t for t in tasks if t in source.tasks]
    for task in seen:
        signs = {m: source.clear(task, "cape", m, metric) for m in source.rivals(task, metric)}
        ahead = [label(m) for m, s in signs.items() if s == 1]
        beaten += [f"{', '.join(ahead)} in {task}"] if ahead else []
    if not seen:
        return None
    missing = [t for t in tasks if t not in seen]
    verdict = AGAINST if beaten else OPEN if missing else HOLDS
    if source.name == "measured" and _trainings(source, seen) < ENOUGH:
        verdict = OPEN
    said = f"clearly better than CaPE, {label(metric)}: {'; '.join(beaten) or 'none'}"
    return Verdict(verdict, said + missing_words(missing))


def _trainings(source, tasks):
    return sum(source.trainings(t, "cape", "ce", "mse_p") or 0 for t in tasks)


@rule
def leads(source, metrics, where="most"):
    """CaPE is better than every individual row (no ensemble), in both metrics."""
    tasks, need = where_of(where)
    signs, seen = {}, [t for t in tasks if t in source.tasks]
    for task in seen:
        gaps = [
            source.sign(task, "cape", m, metric)
            for metric in metrics.split(",")
            for m in source.rivals(task, metric, ("resampled", "ensemble", *CAPE))
        ]
        if gaps and None not in gaps:
            signs[task] = -1 if max(gaps) < 0 else 1 if max(gaps) > 0 else 0
    if not signs:
        return None
    if source.name == "printed":
        signs = {t: s or 1 for t, s in signs.items()}
    first = [t for t, s in signs.items() if s < 0]
    known = {t: source.trainings(t, "cape", "ce", "mse_p") for t in signs}
    return Verdict(
        counted(signs, tasks, need, known),
        f"better than all individual rows in {', '.join(first) or 'none'} of {len(signs)}"
        + missing_words([t for t in tasks if t not in signs]),
    )


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
def first_half(source, metric, where):
    """Both of CaPE's rows are in the better half of the rows, in every task named."""
    answers = [rank_within(source, row, metric, where, 0.5) for row in CAPE]
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
def any_below(source, methods, b, metric, where="most"):
    """At least one of several rows is better than another row."""
    tasks, need = where_of(where)
    names, signs = methods.split(","), {}
    for task in tasks:
        found = [source.sign(task, m, b, metric) for m in names]
        if any(s is not None for s in found):
            signs[task] = min(s for s in found if s is not None)
    if not signs:
        return None
    known = {t: source.trainings(t, names[0], b, metric) for t in signs}
    good = [t for t, s in signs.items() if s < 0]
    said = f"one of {', '.join(label(m) for m in names)} is better than {label(b)}: "
    return Verdict(
        counted(signs, tasks, need, known),
        f"{said}{', '.join(good) or 'nowhere'}"
        + missing_words([t for t in tasks if t not in signs]),
    )


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
def same(source, a, b, metric, where):
    """Two rows cannot be told apart: their difference is within the uncertainty of both."""
    tasks, _ = where_of(where)
    signs = {t: source.clear(t, a, b, metric) for t in tasks}
    signs = {t: s for t, s in signs.items() if s is not None}
    if not signs:
        return None
    known = {t: source.trainings(t, a, b, metric) for t in signs}
    numbers = "; ".join(source.words(t, a, b, metric) for t in signs)
    signs = {t: 1 if s else -1 for t, s in signs.items()}
    return Verdict(
        counted(signs, tasks, len(tasks), known),
        f"{label(a)} against {label(b)}, {label(metric)}: {numbers}" + missing_words((), known),
    )


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
