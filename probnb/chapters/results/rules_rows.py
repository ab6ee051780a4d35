"""Rules about rows of a table: which is better, where, and how often."""

from __future__ import annotations

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
