"""Sentences and tables about what else may be trained on, made from the chapter's numbers alone."""

from __future__ import annotations

import pandas as pd

from .stored import against, paired
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
    found = paired(table).set_index("row")
    return float(found.loc["ce", "value"] + found.loc["resampled", "difference"] / 2)


def cost_table(table):
    """Lay out value, difference and cost of the rows, the best first.

    Parameters
    ----------
    table : DataFrame
        Of the study of targets, one scenario.

    Returns
    -------
    DataFrame
        The paired difference from CE with its interval (MSE_p × 100), share of the way to resampled
        labels, cost in CE trainings, and seeds. Rows may have fewer seeds than CE.
    """
    found = paired(table).sort_values("difference")
    way = found.loc[found["row"] == "resampled", "difference"].iloc[0]
    ce = found.loc[found["row"] == "ce", "value"].iloc[0]
    return pd.DataFrame(
        {
            "MSE_p × 100 less CE": [
                f"CE: {100 * ce:.2f}" if r["row"] == "ce" else spell(r) for _, r in found.iterrows()
            ],
            "share of the way": [f"{d / way + 0.0:.0%}" for d in found["difference"]],
            "cost": [f"{c:.1f}" for c in found["cost"]],
            "seeds": found["seeds"].to_numpy(),
        },
        index=pd.Index(found["label"], name=""),
    )


def say_targets(table):
    """Say which row comes nearest to the mark within its price: the recommendation."""
    if not len(table):
        return NOTHING
    found = paired(table).set_index("row")
    found = found[found["seeds"] == found.loc["ce", "seeds"]]  # the same luck for all
    ce, way = found.loc["ce", "value"], -found.loc["resampled", "difference"]
    one = found.drop(index=["ce", "resampled", "ensemble"], errors="ignore")
    cheap = one[one["cost"] <= COST]
    best = cheap.loc[cheap["difference"].idxmin()]
    reached = -best["difference"] >= way / 2
    text = (
        f"**Better targets.** CE early-stop has MSE_p × 100 = {100 * ce:.2f}, the mark is "
        f"{100 * mark_of(table):.2f}. Of {len(cheap)} rows of one network within {COST:g} CE "
        f"trainings the lowest, which flatters it, is *{best['label']}*: "
        f"{100 * (ce + best['difference']):.2f}, less CE {spell(best)}, at {best['cost']:.1f} "
        f"trainings; {-best['difference'] / way:.0%} of the way to resampled labels, which "
        f"{'reaches' if reached else 'does not reach'} the mark."
    )
    if "ensemble" in found.index:
        row = against(table, best.name, "ensemble")
        text += (
            f" Less the deep ensemble (cost {found.loc['ensemble', 'cost']:.1f}): {judged(row)}."
        )
    if found.loc["ce", "seeds"] < 2:
        return text
    clear = [r["label"] for _, r in one.iterrows() if r["verdict"] == "better"]
    return text + (
        f" Told apart from CE by its interval: {', '.join(clear)}."
        if clear
        else " No interval tells a single network from CE."
    )


def say_mark(table):
    """Say how far the new rows come in each scenario, and whether they are worse than CaPE."""
    if not len(table):
        return NOTHING
    lines = []
    for scenario in dict.fromkeys(table["scenario"]):
        own = table[table["scenario"] == scenario]
        mark = mark_of(own) if {"ce", "resampled"} <= set(own["row"]) else None
        values = own.groupby("row")[["mse_p", "cost"]].mean()
        for row in ("crossfit_hygiene", "augmented_hygiene"):
            found = against(own, row, "cape_bin")
            if found is None:
                continue
            text = f"{found['label']} less CaPE {judged(found)}"
            if mark is not None:
                value, ce = values.loc[row, "mse_p"], values.loc["ce", "mse_p"]
                way = (ce - value) / (ce - values.loc["resampled", "mse_p"])
                text += (
                    f", less CE {judged(against(own, row, 'ce'))}; {way:.0%} of the way from CE "
                    f"({100 * ce:.2f}) to resampled labels at {values.loc[row, 'cost']:.1f} "
                    f"trainings, which {'reaches' if value <= mark else 'does not reach'} the mark "
                    f"({100 * mark:.2f})"
                )
            lines.append(f"- {scenario.capitalize()}: {text}.")
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
