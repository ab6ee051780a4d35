"""Tables and sentences of the cancer task's studies, generated from their numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data.survival import RULES
from ...methods import METHODS
from ...published import published
from .cancer_study import LABELS, auc_standard_error, ranks

__all__ = [
    "auc_sentence",
    "best_sentence",
    "difference_text",
    "differences_table",
    "pair_label",
    "rules_sentence",
    "rules_table",
]

TEST_SLIDES = 158
"""Rows of the paper's test part."""

SURVIVORS = 1 - 352 / 1009
"""Share of survivors in the paper's data."""


def rules_table(study, metric="brier"):
    """Show one metric of every row under each rule.

    Parameters
    ----------
    study : dict
        From `probnb.chapters.real_world.cancer_page.read_study`.
    metric : str, default="brier"
        Name in `probnb.metrics.METRICS`.

    Returns
    -------
    DataFrame
        Times 100, one row a method or reference: the paper's number; trained and judged by each
        rule; trained by each of the others and judged by inverse-probability weights.
    """
    scores = study["scores"][study["scores"]["metric"] == metric]
    printed = published("cancer", metric=metric).set_index("method")["value"]
    own = scores[scores["judged"] == scores["trained"]]
    table = {("", "paper's table"): printed}
    for heading, rows in (("judged by its own rule", own), ("judged by ipcw", scores)):
        for rule in RULES:
            part = rows[rows["trained"] == rule]
            if heading == "judged by ipcw":
                part = part[part["judged"] == "ipcw"]
            part = part.set_index("method")
            if len(part) and (heading, rule) != ("judged by ipcw", "ipcw"):
                numbers = 100 * part[["value", "std"]]
                texts = [f"{v:.2f} ± {s:.2f}" for v, s in numbers.to_numpy()]
                table[heading, rule] = pd.Series(texts, part.index)
    every = list(dict.fromkeys(scores["method"]))
    order = [m for m in METHODS if m in every] + [m for m in every if m not in METHODS]
    shown = pd.DataFrame(table).reindex(order)
    shown[("", "paper's table")] = [
        "" if np.isnan(v) else f"{v:.2f}" for v in shown["", "paper's table"].astype(float)
    ]
    return shown.fillna("").rename(index=LABELS)


def rules_sentence(study):
    """Say how far the rule moves the numbers, and the ranks of the methods."""
    scores = study["scores"]
    own = scores[(scores["trained"] == scores["judged"]) & (scores["method"] == "ce")]
    brier = own[own["metric"] == "brier"].set_index("trained")["value"]
    moved = ranks(scores)
    first = {rule: LABELS[moved[rule].idxmin()] for rule in RULES if rule in moved}
    farthest = moved["moves"].idxmax()
    spread = scores[
        (scores["trained"] == scores["judged"])
        & (scores["metric"] == "brier")
        & scores["method"].isin(set(METHODS) - {"ce_overfit", "mixnmatch"})
    ].groupby("trained")["value"]
    widest = 100 * (spread.max() - spread.min()).max()
    return (
        f"The rule moves cross entropy's Brier score (×100) from {100 * brier.min():.1f} "
        f"(`{brier.idxmin()}`) to {100 * brier.max():.1f} (`{brier.idxmax()}`), a gap of "
        f"{100 * np.ptp(brier):.1f}; within a rule the rows (without the overfitted one and "
        f"Mix-n-match) differ by at most {widest:.1f}. First by Brier score: "
        + ", ".join(f"{name} under `{rule}`" for rule, name in first.items())
        + f". {LABELS[farthest]} moves the most, by {moved['moves'].max()} of {len(moved)} places."
    )


def differences_table(study, metric="brier"):
    """Show CaPE less its rivals, with intervals over patients and over sites.

    Parameters
    ----------
    study : dict
        From `probnb.chapters.real_world.cancer_page.read_study`.
    metric : {"brier", "auc"}, default="brier"
        Which metric, times 100.

    Returns
    -------
    DataFrame
        One row for each pair; an asterisk marks an interval that leaves out 0.
    """
    rows = study["differences"]
    rows = rows[rows["metric"] == metric]
    texts = [difference_text(row, 100, 2) for row in rows.itertuples()]
    rows = rows.assign(text=texts, pair=[pair_label(row) for row in rows.itertuples()])
    table = rows.pivot(index="pair", columns="unit", values="text").reindex(
        dict.fromkeys(rows["pair"])
    )
    return table.rename(columns=lambda unit: f"interval over {unit}s").rename_axis(None, axis=1)


def best_sentence(study):
    """Say whether anything beats the constant that the Kaplan-Meier estimate gives everybody."""
    rows = study["scores"]
    rows = rows[(rows["trained"] == "ipcw") & (rows["metric"] == "brier")].set_index("method")
    networks = rows[rows.index.isin(METHODS)]["value"]
    constant, best = rows.loc["Kaplan-Meier", "value"], networks.idxmin()
    text = (
        f"Of the networks, {LABELS[best]} has the lowest Brier score, {100 * networks.min():.2f}; "
        f"the same probability for everybody, the Kaplan-Meier estimate, has {100 * constant:.2f}"
    )
    verdict = ": no network learned anything that helps" if networks.min() >= constant else ""
    others = rows.loc[[m for m in rows.index if m.startswith(("Cox", "Random"))], "value"]
    listed = ", ".join(f"{name} {100 * value:.2f}" for name, value in others.items())
    return f"{text}{verdict}. Models of survival: {listed}."


def auc_sentence(study=None):
    """Say how exact an AUC of the paper's test part can be, and how far its rows lie apart."""
    printed = published("cancer", metric="auc").set_index("method")["value"]
    best, ce = printed.max() / 100, printed["ce"] / 100
    ones = SURVIVORS * TEST_SLIDES
    se = auc_standard_error(best, ones, TEST_SLIDES - ones)
    text = (
        f"An AUC of {best:.3f} on {TEST_SLIDES} test slides has a standard error of {se:.3f}, were "
        f"slides independent; the paper's best row is {best - ce:.3f} above cross entropy, "
        f"{(best - ce) / se:.1f} standard errors."
    )
    if study is None:
        return text
    rows = study["scores"]
    ours = rows[(rows["trained"] == "ipcw") & (rows["metric"] == "auc") & (rows["method"] == "ce")]
    return (
        f"{text} Here {len(set(study['predictions']['id'])):,} patients give a standard error of "
        f"{ours['std'].item():.3f}."
    )


def pair_label(row):
    """Return "method less rival" for a row of differences."""
    return f"{LABELS.get(row.method, row.method)} less {LABELS.get(row.rival, row.rival)}"


def difference_text(row, scale, digits):
    """Return a difference with its interval; an asterisk where the interval leaves out 0."""
    if row.low == row.high == row.difference == 0:
        return "the same predictions (the start was kept)"
    star = " *" if row.low > 0 or row.high < 0 else ""
    values = [f"{scale * v:+.{digits}f}" for v in (row.difference, row.low, row.high)]
    return f"{values[0]} [{values[1]}, {values[2]}]{star}"
