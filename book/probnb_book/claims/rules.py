"""Verdicts: a claim that numbers can decide is one question, put to stored runs or to the paper.

A question is a statistic, its arguments, a relation to a bound, and where it must hold. ``gap cape
own mse_p < 0 every`` asks whether CaPE's error is below that of its own start in every scenario.
Of ``a|b`` one is enough, of ``a&b`` all are needed, of ``a/b`` the same one everywhere. Whatever is
chosen after the fact, a row or a scenario, multiplies the p-value of what decides.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from probnb.methods import METHODS
from probnb.metrics import METRICS, Difference, difference
from probnb.validation import check_choice

from .. import evidence
from ..published import published
from ..scenarios import SCENARIOS
from .statistics import CAPE, EPOCHS, OTHERS, ROWS, TABLE, TEST, of_run, of_table

VERDICTS = "holds", "not resolved", "contradicted", "cannot be tested here"
HOLDS, OPEN, AGAINST, UNTESTABLE = VERDICTS
"""What may be said of a claim."""

LEVEL = 0.05

NAMES = {
    "cape": ("|".join(CAPE), "CaPE"),  # the benefit of the doubt: one of the two is enough
    "rows": ("&".join(ROWS), "every row"),
    "others": ("&".join(OTHERS), "every other row"),
    "individual": ("&".join(m for m in OTHERS if m != "ensemble"), "every individual row"),
    "ce_mean": ("ce_mean", "CE"),
    "own": ("ce", "the network that it changes"),
}
"""Words for rows of Table 1: what they stand for, and how they are read."""


@dataclass(frozen=True)
class Answer:
    """What a question was answered with.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    parts : list of dict
        For each scenario that has an answer: ``scenario``, ``rows`` (the arguments that decided),
        and ``value``, ``low``, ``high``, ``seeds`` of the `Difference`, in the unit of ``text``;
        ``p`` of its bound.
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
    check_choice(relation, ("<", ">", "="), "relation")
    name, *arguments = [NAMES.get(word, (word,))[0] for word in words]
    return name, arguments, relation, float(bound), where


def scale_of(name):
    """What the numbers of a statistic are multiplied by where they are shown."""
    return 100 if name in ("gap", "exact_error") else 1


def describe(question):
    """Say in words which number a question is about."""
    name, *rest = question.split()[:-3]
    words = {name: method.label for name, method in METHODS.items()}
    words |= {name: metric.label for name, metric in METRICS.items()}
    words |= {name: read for name, (_, read) in NAMES.items()}
    rest = [re.sub("[^|&]+", lambda w: words.get(w[0], w[0]), word) for word in rest]
    rest = [word.replace("|", " or ").replace("&", " and ") for word in rest]
    if name == "gap":
        return f"{rest[2]} × 100 of {rest[0]} less {rest[1]}"
    if name == "ratio":
        return f"{rest[2]} of {rest[0]} as a multiple of {rest[1]}"
    return f"{(TABLE | EPOCHS | TEST)[name][0]} ({', '.join(rest)})"


def ask(question, runs):
    """Put a question to stored runs, from `probnb_book.claims.stored_runs`.

    Intervals are Student's over seeds; fewer than three never decide.
    """

    def numbers(task, bound, name, *arguments):
        lines = runs.get(task, pd.DataFrame(columns=["seed"]))
        if name == "gap" and lines["seed"].nunique() > 1:  # whose bound is 0
            return evidence.compare(lines, *arguments)
        found = [of_run(line, name, *arguments) for line in lines.itertuples()]
        found = np.array([value for value in found if np.isfinite(value)])
        if len(found) < 2:
            return Difference(found[0], *[np.nan] * 4, 1) if len(found) else None
        if name == "correlation":  # averaged as Fisher's z
            z, p = (
                difference(np.arctanh(found)),
                difference(np.arctanh(found) - np.arctanh(bound)).p,
            )
            return Difference(*np.tanh([z.value, z.low, z.high]), z.std, p, z.seeds)
        return replace(difference(found), p=difference(found - bound).p)

    return _answer(question, numbers)


def ask_paper(question):
    """Put a question to the paper's tables, taken at their word; None where they cannot say."""

    def numbers(task, bound, name, *arguments):
        value = of_table(_printed(task.partition("@")[0]), name, *arguments)
        return Difference(value, value, value, 0.0, 0.0, 0) if np.isfinite(value) else None

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
    settings = re.search(r"\S+/\S+", question)
    if settings:
        asked = [question.replace(settings[0], one) for one in settings[0].split("/")]
        answers = [_answer(one, numbers) for one in asked]
        best = min(answers, key=lambda answer: (HOLDS, OPEN, AGAINST).index(answer.verdict))
        return Answer(best.verdict, [part for answer in answers for part in answer.parts])
    name, arguments, relation, bound, where = read_question(question)
    where, longer, epochs = where.partition("@")  # "seen@60": of trainings of 60 epochs
    everywhere = where in ("every", "most", "some", "seen")
    tasks = [task + longer + epochs for task in (SCENARIOS if everywhere else where.split(","))]
    answers = [_in_task(task, name, arguments, relation, bound, numbers) for task in tasks]
    parts = [part for *_, part in answers if part]
    # "seen": claims about networks in general, wherever several seeds are, two or more
    known = [answer for answer in answers if answer[0] is not None]
    answers = known if where == "seen" else answers
    asked = max(len(answers), 2 if where == "seen" else 1)
    need = {"most": asked // 2 + 1, "some": 1}.get(where, asked)
    speak, against = (
        sorted([1.0 if a[k] is None else a[k] for a in answers] + [1.0] * asked) for k in (0, 1)
    )
    # Of a scenarios n must speak: Benjamini and Heller (2008), "Screening for partial conjunction".
    if (asked - need + 1) * speak[need - 1] < LEVEL:
        return Answer(HOLDS, parts)
    if need * against[asked - need] < LEVEL:
        return Answer(AGAINST, parts)
    return Answer(OPEN, parts)


def _in_task(task, name, arguments, relation, bound, numbers):
    """A scenario's p-values for and against, None where it has none, and the part that decides."""
    every, best = [*product(*(word.split("&") for word in arguments))], []
    for words in every:
        rows = [*product(*(word.split("|") for word in words))]
        found = [(row, d) for row in rows if (d := numbers(task, bound, name, *row))]
        tried = [(_leaning(d, relation, bound), row, d) for row, d in found]
        if tried:
            best.append(max(tried, key=lambda t: -2 if t[0] is None else t[0]))
    if not best:
        return None, None, None
    known = [answer for answer in best if answer[0] is not None]
    leaning, row, d = min(known or best, key=lambda answer: answer[0] or 0)
    part = _part(task, name, arguments, row, d)
    if leaning is None:
        return None, None, part
    # Where a row is missing that might not be so, the others do not speak for a claim.
    speaks = leaning > 0 and len(known) == len(every)
    speak = len(rows) * (1 - leaning) if speaks else 1.0
    return speak, len(every) * (1 + leaning) if leaning < 0 else 1.0, part


def _leaning(d, relation, bound):
    """From -1, against, to 1, for: 1 less the p-value on its side; None where seeds are few."""
    if d.seeds in (1, 2) or np.isnan(d.p):  # of print there are none
        return None
    if relation == "=":
        return 1.0 if d.p >= LEVEL or d.value == bound else d.p - 1
    return float(np.sign(bound - d.value)) * (1 if relation == "<" else -1) * (1 - d.p)


def _part(task, name, arguments, rows, d):
    scale = scale_of(name)
    chosen = [r for r, word in zip(rows, arguments) if "|" in word or "&" in word]
    asked = [METHODS[r].label for r in chosen if r in METHODS]
    asked += [f"rate {rate}" for rate in rows[2:] if name in EPOCHS]
    seeds = {0: "", 1: ", one training"}.get(d.seeds, f", {d.seeds} seeds")
    number = f"{scale * d.value:+.2f}" if scale == 100 else f"{d.value:.3g}"
    if d.seeds > 1:
        number = d.text(scale) if scale == 100 else f"{number} [{d.low:.3g}, {d.high:.3g}]"
    named = f" ({', '.join(asked)})" if asked else ""
    values = {"value": scale * d.value, "low": scale * d.low, "high": scale * d.high, "p": d.p}
    values = {k: float(v) if np.isfinite(v) else None for k, v in values.items()}
    facts = {"scenario": task, "rows": list(rows), **values, "seeds": d.seeds}
    shown = "{} ({} epochs)".format(*task.split("@")) if "@" in task else task
    return facts | {"text": f"{shown} {number}{seeds}{named}"}
