"""Verdicts: a claim that numbers can decide is one question, put to stored runs or to the paper.

A question is a statistic, its arguments, a relation to a bound, and where it must hold. ``gap cape
ce_mean mse_p < 0 every`` asks whether CaPE's error is below that of cross entropy in every
scenario. Of ``a|b`` one is enough, of ``a&b`` all are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from ...experiment import evidence
from ...methods import METHODS
from ...metrics import Difference, difference
from ...published import published
from ...scenarios import SCENARIOS
from . import statistics
from .statistics import CAPE, OTHERS, ROWS

HOLDS, OPEN, AGAINST, UNTESTABLE = VERDICTS = (
    "holds", "not resolved", "contradicted", "cannot be tested here",
)  # fmt: skip
"""What may be said of a claim."""

NAMES = {
    "cape": "|".join(CAPE),  # the benefit of the doubt: one of the two is enough
    "rows": "&".join(ROWS),
    "others": "&".join(OTHERS),
    "individual": "&".join(m for m in OTHERS if m != "ensemble"),
}
"""Words for several rows of Table 1."""


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
    words = question.split()
    at = next(k for k, word in enumerate(words) if word[0] in "<>=")
    name, *arguments = [NAMES.get(word, word) for word in words[:at]]
    return name, arguments, words[at], float(words[at + 1]), words[at + 2]


def describe(question):
    """Say in words which number a question is about."""
    words = question.split()
    at = next(k for k, word in enumerate(words) if word[0] in "<>=")
    name, *rest = [_WORDS.get(w) or METHODS[w].label if w in _WORDS or w in METHODS else w
                   for w in words[:at]]  # fmt: skip
    rest = [word.replace("|", " or ").replace("&", " and ") for word in rest]
    if name == "gap":
        return f"{rest[2]} × 100 of {rest[0]} less {rest[1]}"
    if name == "ratio":
        return f"{rest[2]} of {rest[0]} as a multiple of {rest[1]}"
    found = {f.__name__: f for f in (*statistics.TABLE, *statistics.RUN)}[name]
    return f"{found.__doc__.split(';')[0].splitlines()[0].rstrip('.')} ({', '.join(rest)})"


_WORDS = {
    "ce_mean": "CE", "cape": "CaPE", "rows": "every row", "others": "every other row",
    "individual": "every individual row",
}  # fmt: skip


def best_runs(runs):
    """Pick the kind of run that speaks for each scenario, and for CIFAR-10.

    Parameters
    ----------
    runs : DataFrame
        From `probnb.experiment.evidence.find`, of any chapter.

    Returns
    -------
    dict of str to DataFrame
        Photographs at a profile as it is: the kind with most seeds, of those the largest images.
    """
    faces = runs[(runs["data"] == "utkface") & (runs["variant"] == "")]
    rule = runs[(runs["task"] == "rule") & (runs["inputs"] == "pixels")].assign(task="cifar10")
    found = {}
    for group in sorted(
        evidence.kinds(pd.concat([faces, rule])), key=lambda g: (-len(g), -g["size"].iloc[0])
    ):
        found.setdefault(group["task"].iloc[0], group)
    return {task: found[task] for task in (*SCENARIOS, "cifar10") if task in found}


def ask(question, runs):
    """Put a question to stored runs.

    Parameters
    ----------
    question : str
        See the module's words.
    runs : dict of str to DataFrame
        From `best_runs`.

    Returns
    -------
    Answer
        Intervals are Student's over seeds; fewer than three never decide.
    """

    def numbers(task, name, *arguments):
        lines = runs.get(task)
        if lines is None:
            return None
        if name == "gap":
            if lines["seed"].nunique() > 1:
                return evidence.compare(lines, *arguments)
            name = "one_gap"
        found = [statistics.of_run(line, name, *arguments) for line in lines.itertuples()]
        found = [value for value in found if value is not None and np.isfinite(value)]
        if len(found) > 1:
            return difference(found)
        return Difference(found[0], *[np.nan] * 4, 1) if found else None

    return _answer(question, numbers)


def ask_paper(question):
    """Put a question to the paper's tables, taken at their word; None where they cannot say."""

    def numbers(task, name, *arguments):
        value = statistics.of_table(_printed(task), name.replace("gap", "one_gap"), *arguments)
        known = value is not None and np.isfinite(value)
        return Difference(value, value, value, 0.0, np.nan, 0) if known else None

    answer = _answer(question, numbers)
    return answer if answer.parts else None


@lru_cache
def _printed(task):
    """The paper's table of a scenario or task, without values that are marked as suspect."""
    rows = published(task)
    rows = rows[rows["mark"] != "suspect"]
    table = rows.pivot(index="method", columns="metric", values="value") / 100
    table.loc["ce_mean"] = table.loc["ce"]  # where a question is put to runs: all trainings
    return table


def _answer(question, numbers):
    name, arguments, relation, bound, where = read_question(question)
    everywhere = where in ("every", "most", "some", "seen")
    tasks = list(SCENARIOS) if everywhere else where.split(",")
    signs, parts = {}, []
    for task in tasks:
        sign, found = _in_task(task, name, arguments, relation, bound, numbers)
        if found is not None:
            signs[task] = sign
            parts.append(_part(task, name, arguments, *found))
    if where == "seen":  # claims about networks in general: wherever several seeds are, two or more
        tasks = [t for t, s in signs.items() if s is not None]
    need = {"most": len(tasks) // 2 + 1, "some": 1, "seen": max(2, len(tasks))}
    need = need.get(where, len(tasks))
    known = [s for s in signs.values() if s is not None]
    if known.count(1) >= need:
        return Answer(HOLDS, parts)
    against = len(tasks) >= min(need, 2) and len(tasks) - known.count(-1) < need
    return Answer(AGAINST if against and known.count(-1) else OPEN, parts)


def _in_task(task, name, arguments, relation, bound, numbers):
    """For (1), against (-1), neither (0), unknown (None); and the rows and number that decide."""
    answers = []
    for words in product(*(word.split("&") for word in arguments)):
        rows = list(product(*(word.split("|") for word in words)))
        found = {row: d for row in rows if (d := numbers(task, name, *row))}
        tried = [(_sign(d, relation, bound), -_away(d, relation), (r, d)) for r, d in found.items()]
        nothing = (None, np.inf, None)
        answers.append(
            max(tried, key=lambda t: (-2 if t[0] is None else t[0], t[1]), default=nothing)
        )
    present = [a for a in answers if a[2] is not None]
    if not present:
        return None, None
    known = [a for a in present if a[0] is not None]
    sign, _, found = min(known or present, key=lambda a: (a[0] or 0, a[1]))
    if known and len(present) < len(answers) and sign > 0:  # a row that is missing might not be
        sign = 0
    return (sign if known else None), found


def _sign(d, relation, bound):
    if d.seeds in (1, 2) or np.isnan(d.low):  # of print there are none
        return None
    below, above = d.high < bound, d.low > bound
    if relation[0] == "=":
        return -1 if below or above else 1
    sign = int(below) - int(above) if relation[0] == "<" else int(above) - int(below)
    return max(sign, 0) if relation.endswith("~") else sign  # "~": may bear out, not refute


def _away(d, relation):
    """How far a number lies on the wrong side."""
    return abs(d.value) if relation[0] == "=" else d.value if relation[0] == "<" else -d.value


def _part(task, name, arguments, rows, d):
    scale = 100 if name in statistics.PERCENT else 1
    chosen = [r for r, word in zip(rows, arguments) if "|" in word or "&" in word]
    asked = [METHODS[r].label for r in chosen if r in METHODS]
    seeds = {0: "", 1: ", one training"}.get(d.seeds, f", {d.seeds} seeds")
    value, low, high = (scale * float(v) for v in (d.value, d.low, d.high))
    number = f"{value:+.2f}" if scale == 100 else f"{value:.3g}"
    if d.seeds > 1:
        number = d.text(scale) if scale == 100 else f"{number} [{low:.3g}, {high:.3g}]"
    named = f" ({', '.join(asked)})" if asked else ""
    return {
        "scenario": task, "rows": list(rows), "value": value, "low": low, "high": high,
        "p": float(d.p), "seeds": d.seeds, "text": f"{task} {number}{seeds}{named}",
    }  # fmt: skip
