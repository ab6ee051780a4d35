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
    "claims",
    "differences_table",
    "rules_sentence",
    "rules_table",
]

TEST_SLIDES = 158
"""Rows of the paper's test part."""

SURVIVORS = 1 - 352 / 1009
"""Share of survivors in the paper's data."""

REGISTRY = {"patients": 1026, "died": 359, "alive": 137}
"""TCGA's lung patients: all, known to have died within five years, known to have lived longer.
Counted from the clinical table by the tests of `probnb.data.tcga`."""


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
                table[heading, rule] = [f"{v:.2f} ± {s:.2f}" for v, s in numbers.to_numpy()]
                table[heading, rule] = pd.Series(table[heading, rule], part.index)
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
    texts = [_interval(row, 100, 2) for row in rows.itertuples()]
    rows = rows.assign(text=texts, pair=[_pair(row) for row in rows.itertuples()])
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


def claims(study):
    """Judge the paper's sentences on cancer by a study.

    Parameters
    ----------
    study : dict
        From `probnb.chapters.real_world.cancer_page.read_study`.

    Returns
    -------
    DataFrame
        Columns ``claim``, ``the paper says``, ``here``, ``verdict``.
    """
    rows = [_deaths(), *_paired_claims(study), *_lower_than_most(study), *_stages(study)]
    rows += [_centre(study)]
    return pd.DataFrame(rows, columns=["claim", "the paper says", "here", "verdict"])


def _deaths():
    lost = REGISTRY["patients"] - REGISTRY["died"] - REGISTRY["alive"]
    return (
        "97",
        "1,009 patients, 352 of them died in 5 years",
        f"of TCGA's {REGISTRY['patients']:,} lung patients {REGISTRY['died']} are known to have "
        f"died within five years, {REGISTRY['alive']} to have lived longer; {lost} were lost "
        "before",
        "holds only where the lost count as survivors",
    )


PAIRED = (
    ("53, 63", "CaPE has the lowest Brier score", "brier", "cape_bin", ("ce", "ce_finetuned")),
    ("65", "CaPE is more discriminative", "auc", "cape_bin", ("ce", "ce_finetuned")),
    ("69", "deep ensemble has a higher Brier score than Platt", "brier", "ensemble", ("platt",)),
)
"""Claims about two rows: number, words, metric, the row, and what it is held against."""


def _paired_claims(study):
    table = study["differences"]
    table = table[table["unit"] == "patient"]
    for claim, words, metric, method, rivals in PAIRED:
        rows = table[(table["metric"] == metric) & (table["method"] == method)]
        rows = rows[rows["rival"].isin(rivals)]
        listed = "; ".join(f"{_pair(row)} {_interval(row, 100, 2)}" for row in rows.itertuples())
        larger = metric == "auc" or claim == "69"
        up, down = (rows["low"] > 0), (rows["high"] < 0)
        yes, no = (up, down) if larger else (down, up)
        verdict = "holds" if yes.all() else "contradicted" if no.any() else "not told apart"
        yield (claim, words, f"{metric.upper() if larger and metric == 'auc' else 'Brier'} ×100: "
               f"{listed}", verdict)  # fmt: skip


def _lower_than_most(study):
    scores = study["scores"][study["scores"]["trained"] == "ipcw"]
    for metric, words in (("ece", "lower ECE than most"), ("auc", "higher AUC than most")):
        rows = scores[scores["metric"] == metric].set_index("method")
        rows = rows.loc[[m for m in rows.index if m in METHODS and m != "ce_overfit"]]
        order = rows["value"].rank(ascending=metric != "auc")
        place, count = int(order["cape_bin"]), len(order)
        value, std = 100 * rows.loc["cape_bin", ["value", "std"]].astype(float)
        here = f"CaPE (bin) is {_ordinal(place)} of {count} by {metric.upper()}"
        yield (
            "64",
            f"{words} other methods",
            f"{here}, {value:.1f} ± {std:.1f}",
            "holds in rank" if place <= count / 2 else "contradicted",
        )


def _stages(study):
    stages, spread = study["stages"], study["spread"].set_index("method")
    known = stages[stages["stage"] != "unknown"]
    seen = ", ".join(f"{r.stage} {r.survival:.2f}" for r in known.itertuples())
    falls = (np.diff(known["survival"]) < 0).all()
    first, last = known.iloc[0], known.iloc[-1]
    verdict = "contradicted"
    if first["low"] > last["high"]:
        verdict = "holds for outcomes" if falls else "holds for the first and the last stage"
    ce = spread.loc["ce", "early_minus_late"]
    yield (
        "101",
        "patients in earlier stages should have higher probabilities of survival",
        f"observed at five years: {seen}; cross entropy's mean for stage I is {ce:+.3f} above that "
        "for III and IV",
        verdict,
    )
    says = {
        "102": "deep ensemble: similar estimates for all stages",
        "103": "CE is more discriminative, but very wide",
        "104": "CaPE is more discriminative than the ensemble, narrower than CE",
    }
    table = study["contrasts"]
    for claim, words in says.items():
        parts = table[table["claim"] == claim]
        wanted = [_wanted(row) for row in parts.itertuples()]
        listed = "; ".join(
            f"spread {r.spread} stages, {LABELS[r.first]} less {LABELS[r.second]}: "
            f"{_interval(r, 1, 3)}"
            for r in parts.itertuples()
        )
        told = [s * r.low > 0 and s * r.high > 0 for s, r in zip(wanted, parts.itertuples())]
        opposed = [s * r.low < 0 and s * r.high < 0 for s, r in zip(wanted, parts.itertuples())]
        verdict = "holds" if all(told) else "contradicted" if any(opposed) else "not told apart"
        if verdict == "not told apart" and any(told):
            verdict = "holds in part"
        small = spread.loc["ensemble", "between"] < 0.5 * spread.loc["ce", "between"]
        if claim == "102" and verdict == "holds" and not small:
            verdict = "less spread than CE, but far from similar"
        yield (claim, words, listed, verdict)


def _wanted(row):
    """Sign of the difference that the paper's sentence asks for."""
    return -1 if (row.claim, row.spread) in (("102", "between"), ("104", "within")) else 1


def _centre(study):
    p_hat = study["predictions"].query("rule == 'ipcw'")["ce"]
    low, high = np.quantile(p_hat, [0.1, 0.9])
    inside = float(((p_hat >= 0.4) & (p_hat <= 0.6)).mean())
    return (
        "107",
        "cancer: clustered in the center (0.4 to 0.6)",
        f"{inside:.0%} of cross entropy's predictions lie there; the middle 80 % from {low:.2f} to "
        f"{high:.2f}",
        "holds" if inside > 0.5 else "contradicted",
    )


def _pair(row):
    return f"{LABELS.get(row.method, row.method)} less {LABELS.get(row.rival, row.rival)}"


def _interval(row, scale, digits):
    star = " *" if row.low > 0 or row.high < 0 else ""
    values = [f"{scale * v:+.{digits}f}" for v in (row.difference, row.low, row.high)]
    return f"{values[0]} [{values[1]}, {values[2]}]{star}"


def _ordinal(number):
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number < 20 else ending}"
