"""Verdicts: a claim that numbers can decide is one question, put to stored runs or to the paper.

A question is a statistic, its arguments, a relation to a bound, and where it must hold. ``gap cape
ce_mean mse_p < 0 every`` asks whether CaPE's error is below that of cross entropy in every
scenario. Of ``a|b`` one is enough, of ``a&b`` all are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product

import numpy as np
import pandas as pd

from ..experiment import evidence
from ..methods import METHODS
from ..metrics import METRICS, Difference, difference
from ..metrics.binning import brier_decomposition, calibration_null_band, ece
from ..published import published
from ..scenarios import SCENARIOS

HOLDS, OPEN, AGAINST, UNTESTABLE = VERDICTS = (
    "holds", "not resolved", "contradicted", "cannot be tested here",
)  # fmt: skip
"""What may be said of a claim."""

ROWS = [m for m in dict.fromkeys(published(table=1)["method"]) if m != "resampled"]
CAPE = ["cape_bin", "cape_kernel"]
OTHERS = [m for m in ROWS if m not in CAPE]

NAMES = {
    "cape": ("|".join(CAPE), "CaPE"),  # the benefit of the doubt: one of the two is enough
    "rows": ("&".join(ROWS), "every row"),
    "others": ("&".join(OTHERS), "every other row"),
    "individual": ("&".join(m for m in OTHERS if m != "ensemble"), "every individual row"),
    "ce_mean": ("ce_mean", "CE"),
}
"""Words for rows of Table 1: what they stand for, and how they are read."""


def _rows(table, *metrics):
    """The paper's rows that have all of some metrics."""
    rows = table[table.index.isin(["resampled", *ROWS])].reindex(columns=list(metrics))
    return rows.dropna()


def _correlation(table, x, y, method="pearson"):
    rows = _rows(table, x, y)
    return rows[x].corr(rows[y], method) if len(rows) > 2 and rows[x].nunique() > 1 else np.nan


def _lead(table, target, rival):
    other = _correlation(table, target, rival)
    return _correlation(table, target, "brier") - (abs(other) if rival == "auc" else other)


def _alike(table, x, y):
    rows = _rows(table, x, y)
    pairs = [sorted(pair) for pair in combinations(zip(rows[y], rows[x]), 2)]
    same = [a[1] < b[1] for a, b in pairs if b[0] > 1.1 * a[0]]
    return np.mean(same) if same else np.nan


def _improved(table, b, metric, share):
    rest = table[metric].reindex(OTHERS).drop("ce").dropna()
    return np.mean(rest < (1 - float(share)) * table.loc[b, metric]) if len(rest) > 2 else np.nan


def _first(table, *metrics):
    return np.mean([table.loc[CAPE, m].min() < table.loc[OTHERS, m].min() for m in metrics])


def _place(table, row, metric):
    return _rows(table, metric)[metric].drop("resampled", errors="ignore").rank(method="min")[row]


TABLE = {
    "gap": ("Difference", lambda table, a, b, m: table.loc[a, m] - table.loc[b, m]),
    "ratio": ("Multiple", lambda table, a, b, m: table.loc[a, m] / table.loc[b, m]),
    "correlation": ("Pearson's correlation of two metrics over rows", _correlation),
    "rank": ("Spearman's correlation of two metrics over rows",
             lambda table, x, y: _correlation(table, x, y, "spearman")),
    "lead": ("How much closer Brier follows a target than another metric, by Pearson's correlation",
             _lead),
    "alike": ("Share of pairs of rows, clearly apart by y, that x puts in the same order", _alike),
    "improved": ("Share of other rows that are below b's by more than a share of it", _improved),
    "first": ("Share of metrics by which the better of CaPE's rows is before all others (ties "
              "count not)", _first),
    "place": ("Place of a row among the paper's rows, 1 being the lowest", _place),
    "spread": ("Highest value as a multiple of the lowest",
               lambda table, m: _rows(table, m)[m].max() / _rows(table, m)[m].min()),
}  # fmt: skip
"""Statistics of a table with a column a metric, one's own or in print: in words, and how."""

EPOCHS = {
    "last": ("Value of the last epoch", lambda v, kept: v.iloc[-1]),
    "change": ("Last epoch less the start of a fine-tuning", lambda v, kept: v.iloc[-1] - v[0]),
    "growth": ("Last epoch as a multiple of the start of a fine-tuning",
               lambda v, kept: v.iloc[-1] / v[0]),
    "fell": ("First epoch less the kept one", lambda v, kept: v[1] - v[kept]),
}  # fmt: skip
"""Statistics of the epochs of the training that a row reads."""

TEST = {
    "near_edges": ("Share of predictions near 0 or 1",
                   lambda y, p_hat: np.mean(np.abs(p_hat - 0.5) > 0.45)),
    "excess_ece": (
        "Calibration error above what chance gives predictions that are right, at its 97.5 % point",
        lambda y, p_hat: ece(y, p_hat) - calibration_null_band(p_hat, replicates=200).high,
    ),
}  # fmt: skip
"""Statistics of predictions on test rows."""


def _of_table(table, name, *arguments):
    """A statistic of a table; NaN where that has no such row or metric."""
    try:
        return float(TABLE[name][1](table, *arguments))
    except KeyError:
        return np.nan


def of_run(line, name, *arguments):
    """Compute a statistic of a stored run; NaN where it lacks what is asked for."""
    if name in TABLE:
        return _of_table(_table(line), name, *arguments)
    results, test = evidence.tables(line)
    *column, row = arguments
    if name in TEST:
        return TEST[name][1](test["y"], test[row]) if row in test else np.nan
    chosen = results.chosen.query("method == @row and chosen")
    if chosen.empty or (row != "ce" and chosen["best_epoch"].iloc[0] == 0):
        return np.nan  # kept its start: any candidate would do
    epochs = results.epochs[results.epochs["fit"] == chosen["fit"].iloc[0]].set_index("epoch")
    values = epochs[column[0]].sort_index()
    started = name == "fell" or values.index[0] == 0
    return EPOCHS[name][1](values, epochs["val_ce"].idxmin()) if started else np.nan


@lru_cache(maxsize=64)
def _table(line):
    """Every metric of every row of a run."""
    _, test = evidence.tables(line)
    table = pd.DataFrame({metric: evidence.values(line, metric) for metric in METRICS})
    for row in table.index.intersection(test.columns):
        table.loc[row, "accuracy"] = np.mean((test[row] > 0.5) == test["y"])
        table.loc[row, "refinement"] = brier_decomposition(test["y"], test[row], 15).refinement
    return table


@dataclass(frozen=True)
class Answer:
    """What a question was answered with.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    parts : list of dict
        For each scenario that has an answer: ``scenario``, ``rows`` (the arguments that decided),
        and ``value``, ``low``, ``high``, ``p``, ``seeds`` of the `Difference`, in the unit of
        ``text``.
    """

    verdict: str
    parts: list

    @property
    def text(self):
        """The numbers in words, scenario by scenario."""
        return "; ".join(part["text"] for part in self.parts) or "not run yet"


def read_question(question):
    """Split a question into statistic, lists of arguments, relation, bound and scenarios.

    Examples
    --------
    >>> read_question("gap ce_overfit ce mse_p > 0 linear,discrete")
    ('gap', ['ce_overfit', 'ce', 'mse_p'], '>', 0.0, 'linear,discrete')
    """
    *words, relation, bound, where = question.split()
    name, *arguments = [NAMES.get(word, (word,))[0] for word in words]
    return name, arguments, relation, float(bound), where


def scale_of(name):
    """What the numbers of a statistic are multiplied by where they are shown."""
    return 100 if name in ("gap", "excess_ece") else 1


def describe(question):
    """Say in words which number a question is about."""
    name, *rest = question.split()[:-3]
    words = {name: method.label for name, method in METHODS.items()}
    words |= {name: read for name, (_, read) in NAMES.items()}
    rest = [words.get(w, w).replace("|", " or ").replace("&", " and ") for w in rest]
    if name == "gap":
        return f"{rest[2]} × 100 of {rest[0]} less {rest[1]}"
    if name == "ratio":
        return f"{rest[2]} of {rest[0]} as a multiple of {rest[1]}"
    return f"{(TABLE | EPOCHS | TEST)[name][0]} ({', '.join(rest)})"


def ask(question, runs):
    """Put a question to stored runs, from `probnb.chapters.claims.stored_runs`.

    Intervals are Student's over seeds; fewer than three never decide.
    """

    def numbers(task, name, *arguments):
        lines = runs.get(task, pd.DataFrame(columns=["seed"]))
        if name == "gap" and lines["seed"].nunique() > 1:
            return evidence.compare(lines, *arguments)
        found = [of_run(line, name, *arguments) for line in lines.itertuples()]
        found = [value for value in found if np.isfinite(value)]
        if len(found) > 1 and name == "correlation":  # averaged as Fisher's z
            z = difference(np.arctanh(found))
            return replace(z, value=np.tanh(z.value), low=np.tanh(z.low), high=np.tanh(z.high))
        if len(found) > 1:
            return difference(found)
        return Difference(found[0], *[np.nan] * 4, 1) if found else None

    return _answer(question, numbers)


def ask_paper(question):
    """Put a question to the paper's tables, taken at their word; None where they cannot say."""

    def numbers(task, name, *arguments):
        value = _of_table(_printed(task.partition("@")[0]), name, *arguments)
        return Difference(value, value, value, 0.0, np.nan, 0) if np.isfinite(value) else None

    answer = _answer(question, numbers)
    return answer if answer.parts else None


@lru_cache
def _printed(task):
    """The paper's table of a scenario or task, without values that are marked as suspect."""
    rows = published(task).query("mark != 'suspect'")
    table = rows.pivot(index="method", columns="metric", values="value") / 100
    table.loc["ce_mean"] = table.loc["ce"]  # where a question is put to runs: all trainings
    return table


def _answer(question, numbers):
    name, arguments, relation, bound, where = read_question(question)
    where, longer, epochs = where.partition("@")  # "seen@60": of trainings of 60 epochs
    everywhere = where in ("every", "most", "some", "seen")
    tasks = [task + longer + epochs for task in (SCENARIOS if everywhere else where.split(","))]
    known, parts = [], []
    for task in tasks:
        sign, found = _in_task(task, name, arguments, relation, bound, numbers)
        known += [] if sign is None else [sign]
        parts += [_part(task, name, arguments, *found)] if found else []
    # "seen": claims about networks in general, wherever several seeds are, two or more
    asked = len(known) if where == "seen" else len(tasks)
    need = {"most": asked // 2 + 1, "some": 1, "seen": max(2, asked)}.get(where, asked)
    if known.count(1) >= need:
        return Answer(HOLDS, parts)
    against = asked >= min(need, 2) and asked - known.count(-1) < need
    return Answer(AGAINST if against and known.count(-1) else OPEN, parts)


def _in_task(task, name, arguments, relation, bound, numbers):
    """What `_sign` says of a scenario, and the rows and the number that decide."""
    every, best = [*product(*(word.split("&") for word in arguments))], []
    for words in every:
        rows = product(*(word.split("|") for word in words))
        found = [(row, d) for row in rows if (d := numbers(task, name, *row))]
        tried = [(*_sign(d, relation, bound), (row, d)) for row, d in found]
        if tried:
            best.append(max(tried, key=lambda t: (-2 if t[0] is None else t[0], t[1])))
    if not best:
        return None, None
    known = [answer for answer in best if answer[0] is not None]
    sign, _, found = min(known or best, key=lambda answer: (answer[0] or 0, answer[1]))
    # Where a row is missing that might not be so, the others do not speak for a claim.
    return (min(sign, 0) if known and len(best) < len(every) else sign), found


def _sign(d, relation, bound):
    """For (1), against (-1), neither (0), unknown (None); and how far on the claimed side."""
    turn = -1 if relation[0] == ">" else 1
    away = abs(d.value) if relation[0] == "=" else turn * d.value
    if d.seeds in (1, 2) or np.isnan(d.low):  # of print there are none
        return None, -away
    below, above = int(d.high < bound), int(d.low > bound)
    sign = 1 - 2 * (below + above) if relation[0] == "=" else turn * (below - above)
    return max(sign, 0) if relation.endswith("~") else sign, -away  # "~" bears out or not


def _part(task, name, arguments, rows, d):
    scale = scale_of(name)
    chosen = [r for r, word in zip(rows, arguments) if "|" in word or "&" in word]
    asked = [METHODS[r].label for r in chosen if r in METHODS]
    seeds = {0: "", 1: ", one training"}.get(d.seeds, f", {d.seeds} seeds")
    number = d.text(scale) if scale == 100 else f"{d.value:.3g}"
    if d.seeds < 2:
        number = f"{scale * d.value:+.2f}" if scale == 100 else number
    elif scale == 1:
        number += f" [{d.low:.3g}, {d.high:.3g}]"
    named = f" ({', '.join(asked)})" if asked else ""
    values = {"value": scale * d.value, "low": scale * d.low, "high": scale * d.high, "p": d.p}
    values = {k: float(v) if np.isfinite(v) else None for k, v in values.items()}
    facts = {"scenario": task, "rows": list(rows), **values, "seeds": d.seeds}
    shown = "{} ({} epochs)".format(*task.split("@")) if "@" in task else task
    return facts | {"text": f"{shown} {number}{seeds}{named}"}
