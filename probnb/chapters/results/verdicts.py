"""Rules that turn numbers into verdicts: each asks one question of one source.

A rule gets a source (`Printed` or `Measured`) and words of its own, and answers with a `Verdict`,
or None where the source has nothing to say. `judge` puts two answers together.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...scenarios import SCENARIOS

__all__ = ["RULES", "VERDICTS", "Verdict", "judge", "rule"]

HOLDS, OPEN, AGAINST, UNTESTABLE = VERDICTS = (
    "holds",
    "not resolved",
    "contradicted",
    "cannot be tested here",
)
"""What may be said of a claim."""

REAL = ("cancer", "weather", "collision")
ENOUGH = 2  # trainings: one is an anecdote


@dataclass(frozen=True)
class Verdict:
    """An answer and what it rests on.

    Parameters
    ----------
    verdict : str
        One of `VERDICTS`.
    reason : str
        Numbers, in words.
    """

    verdict: str
    reason: str


RULES = {}
"""Rules by name; the ledger's file refers to them."""


def rule(function):
    """Add a rule to `RULES` under its own name."""
    RULES[function.__name__] = function
    return function


def judge(printed, measured, decides):
    """Put the answers of the tables and of the runs together.

    Parameters
    ----------
    printed, measured : Verdict or None
        What `Printed` and `Measured` say.
    decides : {"print", "runs"}
        Whether the claim reads the paper's own tables, which then decide, or is about the world:
        then runs decide where there are any. Tables that speak against a claim contradict it,
        unless runs bear it out, which leaves it open; tables that agree do not make it hold.

    Returns
    -------
    Verdict
        The verdict, and both reasons.
    """
    answers = {"In print": printed, "Measured": measured}
    reason = ". ".join(
        f"{who} ({answer.verdict}): {answer.reason}" for who, answer in answers.items() if answer
    )
    if decides == "print":
        return Verdict(printed.verdict, reason)
    if measured is None:
        if printed is None:
            return Verdict(OPEN, "Not run yet")
        verdict = AGAINST if printed.verdict == AGAINST else OPEN
        return Verdict(verdict, reason + ". Not run yet")
    if printed is not None and printed.verdict == AGAINST:
        verdict = {HOLDS: OPEN}.get(measured.verdict, AGAINST)
    else:
        verdict = measured.verdict
    return Verdict(verdict, reason)


def where_of(words):
    """Read "every", "most", "real" (all three tasks) or names of tasks: (tasks, how many)."""
    if words == "most":
        return tuple(SCENARIOS), len(SCENARIOS) // 2 + 1
    tasks = {"every": tuple(SCENARIOS), "real": REAL}.get(words) or tuple(words.split(","))
    return tasks, len(tasks)


def counted(signs, tasks, need, trainings):
    """Judge signs by task: enough for, or too many against, on more than one training."""
    better = sum(s < 0 for s in signs.values())
    worse = sum(s > 0 for s in signs.values())
    enough = sum(trainings[t] for t, s in signs.items() if s) >= ENOUGH
    if better >= need and enough:
        return HOLDS
    if len(tasks) - worse < need and enough:
        return AGAINST
    return OPEN


def missing_words(tasks, trainings=None):
    text = f" (not run yet: {', '.join(tasks)})" if tasks else ""
    single = trainings and set(trainings.values()) == {1}
    return text + (" (one training)" if single and len(trainings) == 1 else "")
