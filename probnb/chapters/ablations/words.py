"""Sentences and tables about CaPE's own settings, made from the chapter's numbers alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...published import published
from .stored import against, means, paired

__all__ = [
    "NOTHING",
    "also",
    "beginning_table",
    "judged",
    "listed",
    "say_beginning",
    "say_data",
    "say_losses",
    "say_printed",
    "say_settings",
    "say_spread",
    "say_weighted",
    "spell",
]

NOTHING = "*This study is not stored, and this run did not train it.*"


def say_data(table):
    """Say what a study's numbers rest on."""
    if not len(table):
        return NOTHING
    first, seeds = table.iloc[0], table["seed"].nunique()
    faces = "photographs of UTKFace"
    if first["data"] != "utkface":
        faces = f"drawn faces, {first['data'].replace('drawn v', 'version ')}"
    sizes = " to ".join(f"{n:,.0f}" for n in sorted({table["n"].min(), table["n"].max()}))
    scenarios = ", ".join(s.capitalize() for s in dict.fromkeys(table["scenario"]))
    return (
        f"*{scenarios}; {faces}, profile {first['profile']}, {sizes} to train on; "
        f"{seeds} {'seeds' if seeds > 1 else 'seed, which is an anecdote'}.*"
    )


def also(table, say):
    """Say the same of another table, after what it rests on; nothing where there is none."""
    return f"{say_data(table)}\n\n{say(table)}" if len(table) else ""


def spell(row):
    """A difference with its interval, times 100."""
    text = f"{100 * row['difference']:+.2f}"
    if np.isnan(row["low"]):
        return f"{text} (one seed)"
    return f"{text} [{100 * row['low']:+.2f}, {100 * row['high']:+.2f}]"


def judged(row):
    """A difference with its interval, and what the interval says in words."""
    words = {"better": ", lower", "worse": ", higher", "not told apart": ", not told apart"}
    return spell(row) + words.get(row["verdict"], "")


def listed(found):
    """Return several differences, each after its label."""
    return "; ".join(f"{row['label']} {spell(row)}" for _, row in found.iterrows())


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


def say_printed():
    """Say what Table 12 itself holds, also against the cross entropy of Table 1."""
    rows = published(table=12).set_index(["scenario", "metric", "method"])["value"]
    usual = published(table=1, method="ce").set_index(["scenario", "metric"])["value"]
    worse, better, cells = 0, [], 0
    for (scenario, metric, method), value in rows.items():
        if method.startswith("beginning"):
            cells += 1
            worse += value > rows[scenario, metric, method.replace("beginning", "cape")]
            if value < usual[scenario, metric] and metric == "mse_p":
                better.append(f"{scenario.capitalize()} ({method.removeprefix('beginning_')})")
    return (
        f"As printed, calibrating from the beginning is worse than CaPE in {worse} of {cells} "
        f"cells of Table 12; its MSE_p is lower than that of CE early-stop in Table 1 in "
        f"{', '.join(better) or 'no scenario'}."
    )


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
                    parts.append(f"{kind} less {name} {judged(row)}")
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


LOSSES = {"focal": "focal loss", "entropy": "entropy", "mmce": "MMCE"}
"""Regularisers as the sentences name them."""


def say_losses(table):
    """Say how much each regulariser's strength matters, and which is best throughout."""
    if not len(table):
        return NOTHING
    lines = []
    for scenario in dict.fromkeys(table["scenario"]):
        own = table[table["scenario"] == scenario]
        found, printed = paired(own), published(scenario, table=1, metric="mse_p")
        printed = printed.set_index("method")["value"]
        ce, ranges, values = found.loc[found["row"] == "ce", "value"].iloc[0], [], {}
        for part, name in LOSSES.items():
            rows = found[found["part"] == part].sort_values("value")
            if not len(rows):
                continue
            values[part] = rows["value"]
            best, worst = rows.iloc[0], rows.iloc[-1]
            ranges.append(
                f"{name} {judged(best)} at {best['x']:g} to {judged(worst)} at {worst['x']:g} "
                f"(printed: {printed[part] - printed['ce']:+.2f})"
            )
        others = [rows.min() for part, rows in values.items() if part != "mmce"]
        verdict = ""
        if others and "mmce" in values:
            holds = values["mmce"].max() < min(others)
            verdict = (
                " By means over seeds, focal loss and entropy are "
                f"{'' if holds else 'not '}inferior to MMCE at every strength."
            )
        lines.append(
            f"- {scenario.capitalize()}, less CE ({100 * ce:.2f}): {'; '.join(ranges)}.{verdict}"
        )
    return (
        "**Strengths**, MSE_p × 100, from the best of each to its worst (picked after the fact; "
        "the printed number is Table 1's, at the strength chosen there). Appendix H has focal loss "
        "and entropy inferior to MMCE at every strength.\n\n" + "\n".join(lines)
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
            f"{worst['x']:g} {spell(row)}"
        )
    text = (
        "**CaPE's settings.** MSE_p × 100, and what the worst value adds to the best (chosen after "
        "the fact, so that its interval flatters): " + "; ".join(lines) + "."
    )
    held = against(table, "held_out=1", "m=3")
    if held is not None:
        text += (
            f" p_emp of validation rows in place of training rows, all else alike: {judged(held)}."
        )
    return text


def say_weighted(table):
    """Say what the weighted sum does against alternating epochs."""
    if not len(table):
        return NOTHING
    found = paired(table, base="cape_bin")
    rows = found[found["part"] == "lambda"]
    control = against(table, "cape_bin", "ce_finetuned")
    text = f"**Weighted sum** less alternating CaPE, MSE_p × 100: {listed(rows)}."
    if control is not None:
        text += (
            f" Alternating CaPE less the same fine-tuning without calibration: {judged(control)}."
        )
    return text
