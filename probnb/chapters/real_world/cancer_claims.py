"""The paper's sentences on cancer, judged by a study."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from ...methods import METHODS
from .cancer_study import LABELS
from .cancer_words import difference_text, pair_label

__all__ = ["claims"]

REGISTRY = {"patients": 1026, "died": 359, "alive": 137}
"""TCGA's lung patients: all, known to have died within five years, known to have lived longer.
Counted from the clinical table by the tests of `probnb.data.tcga`."""


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
        listed = "; ".join(
            f"{pair_label(row)} {difference_text(row, 100, 2)}" for row in rows.itertuples()
        )
        larger = metric == "auc" or claim == "69"
        up, down = (rows["low"] > 0), (rows["high"] < 0)
        yes, no = (up, down) if larger else (down, up)
        verdict = "holds" if yes.all() else "contradicted" if no.any() else "not told apart"
        name = "AUC" if metric == "auc" else "Brier"
        yield (claim, words, f"{name} ×100: {listed}", verdict)


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
    seen = ", ".join(
        f"{r.stage} {r.survival:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in known.itertuples()
    )
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
            f"{difference_text(r, 1, 3)}"
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
    there = int(((p_hat >= 0.4) & (p_hat <= 0.6)).sum())
    ends = binomtest(there, len(p_hat)).proportion_ci(method="wilson")
    verdict = "holds" if ends.low > 0.5 else "contradicted" if ends.high < 0.5 else "not told apart"
    return (
        "107",
        "cancer: clustered in the center (0.4 to 0.6)",
        f"{there / len(p_hat):.0%} [{ends.low:.0%}, {ends.high:.0%}] of cross entropy's "
        f"predictions lie there; the middle 80 % from {low:.2f} to {high:.2f}",
        verdict,
    )


def _ordinal(number):
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number < 20 else ending}"
