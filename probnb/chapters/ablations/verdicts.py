"""Sentences and tables about what else may be trained on, made from the chapter's numbers alone."""

from __future__ import annotations

import pandas as pd

from .stored import against, means, paired
from .words import NOTHING, judged, listed, spell

__all__ = [
    "cost_table",
    "mark_of",
    "say_ensembles",
    "say_mark",
    "say_scaling",
    "say_several",
    "say_stopping",
    "say_targets",
]

COST = 6.0
"""The mark's price at most, in cross-entropy trainings."""


def mark_of(table):
    """Return the mark: half way from CE early-stop to resampled labels, by means over seeds."""
    found = means(table).set_index("row")["value"]
    return float((found["ce"] + found["resampled"]) / 2)


def cost_table(table):
    """Lay out value, difference and cost of the rows, the best first.

    Parameters
    ----------
    table : DataFrame
        Of the study of targets, one scenario.

    Returns
    -------
    DataFrame
        MSE_p × 100, the paired difference from CE with its interval, share of the way to resampled
        labels, and cost in CE trainings.
    """
    found = paired(table).sort_values("value")
    ce = found.loc[found["row"] == "ce", "value"].iloc[0]
    way = ce - found.loc[found["row"] == "resampled", "value"].iloc[0]
    return pd.DataFrame(
        {
            "MSE_p × 100": [f"{100 * v:.2f}" for v in found["value"]],
            "less CE": ["–" if r["row"] == "ce" else spell(r) for _, r in found.iterrows()],
            "share of the way": [f"{(ce - v) / way:.0%}" for v in found["value"]],
            "cost": [f"{c:.1f}" for c in found["cost"]],
        },
        index=pd.Index(found["label"], name=""),
    )


def say_targets(table):
    """Say which row comes nearest to the mark within its price: the recommendation."""
    if not len(table):
        return NOTHING
    found = paired(table).set_index("row")
    mark, ce = mark_of(table), found.loc["ce", "value"]
    way = 2 * (ce - mark)
    one = found.drop(index=["ce", "resampled", "ensemble"], errors="ignore")
    cheap = one[one["cost"] <= COST]
    best = cheap.loc[cheap["value"].idxmin()]
    share = (ce - best["value"]) / way
    reached = best["value"] <= mark
    text = (
        f"**Better targets.** CE early-stop has {100 * ce:.2f}, the mark is {100 * mark:.2f}. Of "
        f"single networks within {COST:g} CE trainings the lowest is *{best['label']}*: "
        f"{100 * best['value']:.2f}, less CE {spell(best)}, at {best['cost']:.1f} trainings; "
        f"{share:.0%} of the way to resampled labels, which "
        f"{'reaches' if reached else 'does not reach'} the mark."
    )
    if "ensemble" in found.index:
        row = against(table, best.name, "ensemble")
        text += f" Less the deep ensemble ({found.loc['ensemble', 'cost']:.1f}): {spell(row)}."
    clear = [r["label"] for _, r in cheap.iterrows() if r["verdict"] == "better"]
    text += (
        f" Told apart from CE by its interval: {', '.join(clear)}."
        if clear
        else " With so few seeds no interval tells any of them from CE."
    )
    return text


def say_mark(table):
    """Say whether the new rows are worse than CaPE in any scenario."""
    if not len(table):
        return NOTHING
    lines = []
    for scenario in dict.fromkeys(table["scenario"]):
        for row in ("crossfit_hygiene", "augmented_hygiene"):
            found = against(table, row, "cape_bin", scenario=scenario)
            if found is not None:
                lines.append(
                    f"- {scenario.capitalize()}: {found['label']} less CaPE {judged(found)}."
                )
    return "**In every scenario**, MSE_p × 100:\n\n" + "\n".join(lines)


def say_ensembles(table):
    """Say what order calibration and averaging should have."""
    if not len(table):
        return NOTHING
    parts = []
    for row, base, words in (
        ("cape_ensemble", "ensemble", "CaPE members averaged, less the deep ensemble"),
        ("ensemble_platt", "ensemble", "average then Platt, less the deep ensemble"),
        ("ensemble_members", "ensemble_platt", "Platt each then average, less average then Platt"),
        (
            "cape_ensemble_platt",
            "ensemble_platt",
            "CaPE members then Platt, less average then Platt",
        ),
        ("cape_platt", "cape_bin", "Platt after CaPE, less CaPE"),
        ("cape_temperature", "cape_bin", "temperature after CaPE, less CaPE"),
    ):
        found = against(table, row, base)
        if found is not None:
            parts.append(f"{words} {spell(found)}")
    return "**Ensembles**, MSE_p × 100: " + "; ".join(parts) + "."


def say_stopping(table):
    """Say what each rule does to what is kept and to CaPE from it."""
    if not len(table):
        return NOTHING
    parts = {"": "as kept", ", cape": "after CaPE"}
    sentences = []
    for ending, name in parts.items():
        rows = table[table["row"].str.endswith(ending) if ending else table["part"] == "kept"]
        found = paired(rows, base=f"val CE{ending}")
        found = found[found["row"] != f"val CE{ending}"]
        sentences.append(f"{name}: {listed(found)}")
    return (
        "**Stopping rules**, MSE_p × 100 less that of the lowest validation CE; "
        + "; ".join(sentences)
        + "."
    )


def say_several(table):
    """Say whether CaPE helps where there are three outcomes."""
    if not len(table):
        return NOTHING
    parts = []
    for row, base in (
        ("cape_rest", "ce_finetuned"),
        ("cape_cells", "ce_finetuned"),
        ("cape_rest", "ce"),
        ("resampled", "ce"),
    ):
        found = against(table, row, base)
        if found is not None:
            other = "CE" if base == "ce" else "the same fine-tuning without it"
            parts.append(f"{found['label']} less {other} {judged(found)}")
    return "**Three outcomes** (our extension), MSE_p × 100: " + "; ".join(parts) + "."


def say_scaling(table):
    """Say from which size on each row is no longer told apart from cross entropy."""
    if not len(table):
        return NOTHING
    found = paired(table)
    lines = []
    for _row, part in found[found["row"] != "ce"].groupby("row", sort=False):
        gains = "; ".join(f"n = {r['n']:,}: {spell(r)}" for _, r in part.iterrows())
        lines.append(f"- {part['label'].iloc[0]} less CE: {gains}.")
    return "**Scale**, MSE_p × 100:\n\n" + "\n".join(lines)
