"""Sentences and tables of the chapter on ablations, made from its numbers alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...published import published
from .stored import against, means, paired

__all__ = [
    "beginning_table",
    "cost_table",
    "mark_of",
    "say_beginning",
    "say_data",
    "say_ensembles",
    "say_losses",
    "say_mark",
    "say_scaling",
    "say_settings",
    "say_several",
    "say_spread",
    "say_stopping",
    "say_targets",
    "say_weighted",
]

NOTHING = "*This study is not stored, and this run did not train it.*"
COST = 6.0
"""The mark's price at most, in cross-entropy trainings."""


def say_data(table):
    """Say what a study's numbers rest on."""
    if not len(table):
        return NOTHING
    first, seeds = table.iloc[0], table["seed"].nunique()
    faces = "photographs of UTKFace" if first["data"] == "utkface" else "drawn faces"
    sizes = " to ".join(f"{n:,.0f}" for n in sorted({table["n"].min(), table["n"].max()}))
    scenarios = ", ".join(s.capitalize() for s in dict.fromkeys(table["scenario"]))
    return (
        f"*{scenarios}; {faces}, profile {first['profile']}, {sizes} to train on; "
        f"{seeds} {'seeds' if seeds > 1 else 'seed, which is an anecdote'}.*"
    )


def _spell(row):
    """A difference with its interval, times 100."""
    text = f"{100 * row['difference']:+.2f}"
    if np.isnan(row["low"]):
        return f"{text} (one seed)"
    return f"{text} [{100 * row['low']:+.2f}, {100 * row['high']:+.2f}]"


def _judged(row):
    """A difference with its interval, and what the interval says in words."""
    words = {"better": ", lower", "worse": ", higher", "not told apart": ", not told apart"}
    return _spell(row) + words.get(row["verdict"], "")


def _listed(found, names=None):
    return "; ".join(
        f"{row['label'] if names is None else names[row['row']]} {_spell(row)}"
        for _, row in found.iterrows()
    )


def beginning_table(table):
    """Put Table 12 beside ours.

    Parameters
    ----------
    table : DataFrame
        Of the study ``"beginning"``.

    Returns
    -------
    DataFrame
        Times 100: MSE_p and KL_p by scenario, the paper's, and ours with the standard deviation
        over seeds.
    """
    columns, rows = {}, ["beginning_bin", "beginning_kernel", "cape_bin", "cape_kernel", "ce"]
    labels = {row: label for row, label in zip(table["row"], table["label"])}
    for scenario in dict.fromkeys(table["scenario"]):
        own = table[table["scenario"] == scenario]
        for metric, name in (("mse_p", "MSE_p"), ("kl_p", "KL_p")):
            printed = published(scenario, table=12, metric=metric).set_index("method")["value"]
            usual = published(scenario, method="ce", metric=metric).set_index("method")["value"]
            printed = pd.concat([printed, usual])
            head = f"{scenario.capitalize()} {name}"
            columns[head, "paper"] = [f"{printed[row]:.2f}" for row in rows]
            groups = [100 * own.loc[own["row"] == row, metric] for row in rows]
            columns[head, "ours"] = [
                f"{g.mean():.2f}" + (f" ± {g.std():.2f}" if len(g) > 1 else "") if len(g) else "–"
                for g in groups
            ]
    return pd.DataFrame(columns, index=pd.Index([labels.get(r, r) for r in rows], name="×100"))


def say_beginning(table):
    """Say whether calibrating from the beginning is worse than CaPE, and than cross entropy."""
    if not len(table):
        return NOTHING
    lines = []
    for scenario in dict.fromkeys(table["scenario"]):
        parts = []
        for kind in ("bin", "kernel"):
            for base, name in ((f"cape_{kind}", "CaPE"), ("ce", "CE")):
                row = against(table, f"beginning_{kind}", base, scenario=scenario)
                if row is not None:
                    parts.append(f"{kind} less {name} {_judged(row)}")
        lines.append(f"- {scenario.capitalize()}: " + "; ".join(parts) + ".")
    return "**From the beginning**, MSE_p × 100 by seed:\n\n" + "\n".join(lines)


def say_spread(spread):
    """Say what the first targets hold: claim 106 of the ledger."""
    first, later = spread.loc["epoch 0"], spread.loc["early-stopped"]
    ratio = first["variance"] / first["noise"]
    return (
        f"At epoch 0 the variance of p_emp is {100 * first['variance']:.2f} (×100), "
        f"{ratio:.1f} times what bins of random rows would have by chance "
        f"({100 * first['noise']:.2f}) and {first['variance'] / first['truth']:.0%} of the "
        f"variance of p ({100 * first['truth']:.2f}); its mean squared distance from p is "
        f"{100 * first['distance']:.2f}. At the early-stopped epoch the variance is "
        f"{100 * later['variance']:.2f} and the distance {100 * later['distance']:.2f}. Telling "
        f"everybody the mean has the distance {100 * first['truth']:.2f}: the first targets are "
        f"{'no better than that' if first['distance'] >= 0.95 * first['truth'] else 'better'}."
    )


def say_losses(table):
    """Say how much each regulariser's strength matters, and which is best throughout."""
    if not len(table):
        return NOTHING
    found = means(table)
    ranges, best = [], {}
    for part, name in (("focal", "focal loss"), ("entropy", "entropy"), ("mmce", "MMCE")):
        rows = found[found["part"] == part]
        if len(rows):
            least = rows.loc[rows["value"].idxmin()]
            best[name] = rows["value"].min(), rows["value"].max()
            ranges.append(
                f"{name} from {100 * rows['value'].min():.2f} (at {least['x']:g}) to "
                f"{100 * rows['value'].max():.2f}"
            )
    ce = 100 * found.loc[found["row"] == "ce", "value"].iloc[0]
    worst = best.get("MMCE", (np.nan, np.nan))[1]
    others = [low for name, (low, _) in best.items() if name != "MMCE"]
    holds = bool(others) and worst < min(others)
    return (
        f"**Strengths.** Mean MSE_p × 100 over seeds, CE {ce:.2f}: {'; '.join(ranges)}. That focal "
        "loss and entropy are inferior to MMCE at every strength (Appendix H) "
        f"{'holds here' if holds else 'does not hold here'}, by means over seeds."
    )


def say_settings(table):
    """Say which settings of CaPE move it further than chance does."""
    if not len(table):
        return NOTHING
    lines = []
    for part in [p for p in dict.fromkeys(table["part"]) if p and p != "held_out"]:
        rows = means(table[table["part"] == part]).sort_values("value")
        best, worst = rows.iloc[0], rows.iloc[-1]
        row = against(table, worst["row"], best["row"])
        lines.append(
            f"{part}: best at {best['x']:g} ({100 * best['value']:.2f}), worst at "
            f"{worst['x']:g} {_spell(row)}"
        )
    text = (
        "**CaPE's settings.** MSE_p × 100, and what the worst value adds to the best (chosen after "
        "the fact, so that its interval flatters): " + "; ".join(lines) + "."
    )
    held = against(table, "held_out=1", "m=3")
    if held is not None:
        text += (
            f" p_emp of validation rows in place of training rows, all else alike: {_judged(held)}."
        )
    return text


def say_weighted(table):
    """Say what the weighted sum does against alternating epochs."""
    if not len(table):
        return NOTHING
    found = paired(table, base="cape_bin")
    rows = found[found["part"] == "lambda"]
    control = against(table, "cape_bin", "ce_finetuned")
    text = f"**Weighted sum** less alternating CaPE, MSE_p × 100: {_listed(rows)}."
    if control is not None:
        text += (
            f" Alternating CaPE less the same fine-tuning without calibration: {_judged(control)}."
        )
    return text


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
            "less CE": ["–" if r["row"] == "ce" else _spell(r) for _, r in found.iterrows()],
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
        f"{100 * best['value']:.2f}, less CE {_spell(best)}, at {best['cost']:.1f} trainings; "
        f"{share:.0%} of the way to resampled labels, which "
        f"{'reaches' if reached else 'does not reach'} the mark."
    )
    if "ensemble" in found.index:
        row = against(table, best.name, "ensemble")
        text += f" Less the deep ensemble ({found.loc['ensemble', 'cost']:.1f}): {_spell(row)}."
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
                    f"- {scenario.capitalize()}: {found['label']} less CaPE {_judged(found)}."
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
            parts.append(f"{words} {_spell(found)}")
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
        sentences.append(f"{name}: {_listed(found)}")
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
            parts.append(f"{found['label']} less {other} {_judged(found)}")
    return "**Three outcomes** (our extension), MSE_p × 100: " + "; ".join(parts) + "."


def say_scaling(table):
    """Say from which size on each row is no longer told apart from cross entropy."""
    if not len(table):
        return NOTHING
    found = paired(table)
    lines = []
    for _row, part in found[found["row"] != "ce"].groupby("row", sort=False):
        gains = "; ".join(f"n = {r['n']:,}: {_spell(r)}" for _, r in part.iterrows())
        lines.append(f"- {part['label'].iloc[0]} less CE: {gains}.")
    return "**Scale**, MSE_p × 100:\n\n" + "\n".join(lines)
