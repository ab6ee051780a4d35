"""Sentences of the chapter of results, made from its numbers."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from ...methods import METHODS
from ...metrics import METRICS
from ...scenarios import SCENARIOS
from .sources import Measured

__all__ = ["baseline_sentence", "runs_sentence", "sizes_sentence", "verdict_sentences"]

_WORDS = {-1: "better than", 0: "not told apart from", 1: "worse than"}


def runs_sentence(evidence):
    """Say which evidence there is, and what one training cannot show."""
    photographs = [s for s in SCENARIOS if evidence.best(s, photographs=True)]
    drawn = [s for s in SCENARIOS if evidence.best(s, photographs=False)]
    most = max((len(evidence.best(s)) for s in SCENARIOS), default=0)
    text = (
        f"{len(evidence.runs)} stored runs: photographs in {len(photographs)} of "
        f"{len(SCENARIOS)} scenarios ({', '.join(photographs) or 'none'}), drawn faces in "
        f"{len(drawn)}."
    )
    if most < 2:
        text += (
            " **No scenario has more than one training of a kind.** Intervals are over test rows "
            "alone; the verdicts below ask for more than one training."
        )
    return text


def sizes_sentence(evidence, metric="mse_p"):
    """Say whether runs on photographs of several sizes order the rows alike; empty without."""
    said = []
    for scenario in SCENARIOS:
        groups = {}
        for group in evidence.kinds(scenario):  # the best of each size
            if group[0].photographs and group[0].size:
                groups.setdefault(group[0].size, group)
        if len(groups) < 2:
            continue
        (small, a), (large, b) = sorted(groups.items())[:2]
        shared = [m for m in METHODS if m != "resampled" and all(m in r.methods for r in (*a, *b))]
        values = [
            [100 * np.mean([r.bootstrap.point.loc[m, metric] for r in runs]) for m in shared]
            for runs in (a, b)
        ]
        told = ", ".join(
            f"{METHODS[m].label} {x:.2f} and {y:.2f}"
            for m, x, y in zip(shared, *values)
            if m in ("ce_overfit", "ce", "platt", "ensemble", "cape_bin")
        )
        said.append(
            f"{scenario.capitalize()} at {small} and at {large} pixels (other width, epochs and "
            f"candidates, too; {len(a)} and {len(b)} trainings): {METRICS[metric].label} × 100 of "
            f"{told}; over {len(shared)} rows the rank correlation is "
            f"{spearmanr(*values).statistic:.2f}."
        )
    return " ".join(said)


def verdict_sentences(evidence, metric="mse_p"):
    """Say in three sentences what the runs show of CaPE, of its rivals and of the baseline.

    Parameters
    ----------
    evidence : Evidence
        Stored runs; photographs where there are any, else drawn faces.
    metric : str, default="mse_p"
        The metric to judge by.

    Returns
    -------
    str
        Markdown.
    """
    if not evidence.runs:
        return "Nothing has been run yet, so that there is no verdict."
    photographs = any(evidence.best(s, photographs=True) for s in SCENARIOS)
    source = Measured(evidence, photographs)
    name = METRICS[metric].label
    where = "photographs" if photographs else "drawn faces"
    single = all(len(source.runs[task]) < 2 for task in source.tasks)
    caution = ", one training of each row, so that nothing follows for the methods" * single
    first = (
        f"By {name} × 100, on {where} ({len(source.tasks)} of {len(SCENARIOS)} scenarios"
        f"{caution}), CaPE is "
        f"{_against(source, 'cape', 'ce', metric)}."
    )
    second = (
        "What its calibration epochs add is its difference to the same fine-tuning without them: "
        f"CaPE is {_against(source, 'cape', 'ce_finetuned', metric)}."
    )
    lowest = {t: _lowest(source, t, metric) for t in source.tasks}
    third = (
        "The lowest error among rows that anyone can have is, by scenario, "
        + "; ".join(f"{t}: {label}" for t, label in lowest.items())
        + f", and CaPE is {_against(source, 'cape', 'ensemble', metric)}."
    )
    return " ".join((first, second, third))


def _against(source, a, b, metric):
    """Say in how many scenarios one row is better, worse or neither."""
    signs = {t: source.sign(t, a, b, metric) for t in source.tasks}
    said = []
    for sign, words in _WORDS.items():
        tasks = [t for t, s in signs.items() if s == sign]
        if tasks:
            said.append(
                f"{words} {METHODS[b].label} in "
                + "; ".join(source.words(t, a, b, metric) for t in tasks)
            )
    return ", and ".join(said) or f"not compared with {METHODS[b].label}"


def _lowest(source, task, metric):
    names = {m for r in source.runs[task] for m in r.methods if m != "resampled"}
    values = {m: source.value(task, m, metric) for m in names}
    best = min(values, key=values.get)
    return f"{METHODS[best].label} ({values[best]:.2f})"


def baseline_sentence(evidence, saved, parts=None, epochs=None):
    """Say what stored numbers explain of the published baseline, and what they leave open.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.
    saved : DataFrame or None
        From `probnb.chapters.results.baseline.authors_scores`.
    parts : DataFrame or None
        From `probnb.chapters.results.gains.authors_gains`.
    epochs : DataFrame or None
        From `probnb.chapters.results.displaced.displaced_epochs`.

    Returns
    -------
    str
        Markdown.
    """
    said = []
    if saved is not None:
        rows = saved[saved["scenario"] == "linear"].set_index(["method", "repair"])
        ce, one = rows.loc[("ce", "none")], rows.loc[("ce", "intercept")]
        platt, cape = rows.loc[("ce", "platt")], rows.loc[("cape_bin", "none")]
        than = "below" if platt["mse_p"] < cape["mse_p"] else "not below"
        said.append(
            "The authors' saved early-stopped predictions for Linear are off by "
            f"{ce['shift']:+.3f} on average: one intercept takes MSE_p × 100 from "
            f"{100 * ce['mse_p']:.2f} to {100 * one['mse_p']:.2f} and Platt scaling to "
            f"{100 * platt['mse_p']:.2f}, {than} their CaPE's {100 * cape['mse_p']:.2f}. The AUC "
            f"of the two is {100 * ce['auc']:.1f} and {100 * cape['auc']:.1f}."
        )
    if parts is not None:
        rows = parts[(parts["scenario"] == "linear") & (parts["metric"] == "mse_p")]
        gain = 100 * rows.set_index("part")["gain"]
        said.append(
            f"Of the {gain['total']:.2f} that CaPE takes off in these files, "
            f"{gain['bias']:.2f} is what one intercept gives as well, and "
            f"{gain['ranking']:.2f} is a better order of the faces."
        )
    runs = evidence.best("linear", photographs=True)
    if runs:
        values = np.array([100 * r.bootstrap.point.loc["ce", "mse_p"] for r in runs])
        ks = np.array([100 * r.bootstrap.point.loc["ce", "ks"] for r in runs])
        said.append(
            f"Our early-stopped networks on the same photographs ({len(runs)} "
            f"training{'s' if len(runs) > 1 else ''}) are at "
            f"{', '.join(f'{v:.2f}' for v in values)}, with a KS error of "
            f"{', '.join(f'{v:.1f}' for v in ks)}."
        )
    if epochs is None:
        said.append(
            "What stored numbers cannot tell is why a displaced epoch was kept; that needs "
            "validation predictions of every epoch under the released recipe, which no stored run "
            "has."
        )
    return " ".join(said)
