"""Tables and sentences of the chapter on real data, made from its results alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import wasserstein_distance

from ...methods import METHODS
from ...metrics import calibration_null_band
from ...published import published
from ...scenarios import SCENARIOS, probability

__all__ = [
    "claims",
    "correspondence",
    "correspondence_sentence",
    "differences",
    "evidence_sentence",
    "known_truth",
    "record_sentence",
    "reference_sentence",
    "scenario_probabilities",
    "sentences",
    "skill_table",
    "three_of_interest",
]


def _label(name):
    return METHODS[name].label if name in METHODS else name


def record_sentence(run, results):
    """Say what the run cost and where it ran."""
    record = run.record
    return (
        f"{record['epochs']} epochs of {results.epochs['fit'].nunique()} trainings took "
        f"{record['cpu_seconds']:.0f} processor seconds ({record['processor']}, "
        f"{record['precision']})."
    )


def evidence_sentence(table, task):
    """Say how many seeds, rows and groups the numbers rest on."""
    seeds, groups = table["seed"].nunique(), table["group"].nunique()
    overlap = table.groupby("group")["seed"].nunique().max() > 1
    again = (
        f"; every {task.cluster} may be tested by several seeds, and is resampled as one"
        if overlap
        else f"; every {task.cluster} is tested by one seed only"
        if seeds > 1
        else ""
    )
    text = (
        f"{_plural(seeds, 'seed')}, {len(table):,} predictions of "
        f"{_plural(groups, task.cluster)}{again}. Intervals resample whole {task.cluster}s."
    )
    if groups == 1:
        text += f" **With one {task.cluster} they cannot: rows are resampled, too narrowly.**"
    elif groups < 8:
        text += f" **{groups} {task.cluster}s are few, and intervals over so few are too narrow.**"
    return text


def _plural(count, word):
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def known_truth(numbers):
    """Return the columns of a table that need true probabilities; None where there are none."""
    return numbers[["MSE_p", "KL_p"]] if "MSE_p" in numbers else None


def skill_table(result, references):
    """Compare rows with a constant prediction: Brier skill score and AUC.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Methods and references together.
    references : list of str
        Names of the references, the constant first.

    Returns
    -------
    pandas.DataFrame or None
        Brier score times 100, its difference to the constant with a 95 % interval, Brier skill
        score in per cent, and AUC; None without references.
    """
    if not references:
        return None
    climatology = references[0]
    brier = result.point["brier"]
    rows = {}
    for name in result.point.index:
        gap = result.difference(name, climatology).loc["brier"]
        skill = 100 * (1 - brier[name] / brier[climatology])
        rows[_label(name)] = {
            "Brier ×100": f"{100 * brier[name]:.2f}",
            f"less {climatology} ×100": "" if name == climatology else _interval(gap),
            "Brier skill score (%)": f"{skill:.1f}",
            "AUC ×100": f"{100 * result.point.loc[name, 'auc']:.1f}",
        }
    return pd.DataFrame(rows).T


def _interval(row, digits=2):
    value, low, high = (f"{100 * row[k]:+.{digits}f}" for k in ("difference", "low", "high"))
    return f"{value} [{low}, {high}]"


def differences(result, names=("ce", "ce_finetuned", "platt"), metric="brier"):
    """Paired differences of every method to those that it should beat.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Methods on the same rows.
    names : tuple of str
        What is subtracted: cross entropy, the control of CaPE and Platt scaling.
    metric : str, default="brier"
        Of which less is better.

    Returns
    -------
    pandas.DataFrame
        Differences times 100 with 95 % intervals; ``*`` marks those that leave out 0.
    """
    columns = {}
    for name in (n for n in names if n in result.point.index):
        cells = []
        for other in result.point.index:
            row = result.difference(other, name).loc[metric]
            sure = row["low"] > 0 or row["high"] < 0
            cells.append("" if other == name else _interval(row) + (" *" if sure else ""))
        columns[f"less {_label(name)}"] = cells
    return pd.DataFrame(columns, index=[_label(name) for name in result.point.index])


def three_of_interest(result):
    """Return cross entropy, CaPE, and the method with the lowest Brier score of the others."""
    brier = result.point["brier"]
    names = [name for name in ("ce", "cape_bin") if name in brier.index]
    others = brier.drop([*names, "resampled", "cape_kernel"], errors="ignore")
    return [*names, *([others.idxmin()] if len(others) else [])]


def reference_sentence(result, references, method="ce"):
    """Say whether a network beats each of the references, and by how much."""
    return "\n".join(f"- {_beats(result, method, other)}" for other in references)


def _beats(result, a, b):
    row = result.difference(a, b).loc["brier"]
    verdict = (
        "is better than"
        if row["high"] < 0
        else "is worse than"
        if row["low"] > 0
        else "is not told apart from"
    )
    return f"{_label(a)} **{verdict}** {_label(b)}: Brier × 100 {_interval(row)}."


def scenario_probabilities(n=20_000):
    """Probabilities of the five synthetic scenarios, with the ages of the drawn faces."""
    from ...data.drawn import AGES

    weights = np.array([weight for weight, _ in AGES])
    counts = np.rint(n * weights / weights.sum()).astype(int)
    ages = np.concatenate([draw((np.arange(c) + 0.5) / c) for c, (_, draw) in zip(counts, AGES)])
    ages = np.clip(np.rint(ages), 0, 116)
    return {name: probability(ages, name) for name in SCENARIOS}


def correspondence(predictions, weights=None):
    """Measure which synthetic scenario the predictions of a task resemble.

    Parameters
    ----------
    predictions : array-like of shape (n,)
        Predicted probabilities of one method on the test rows.
    weights : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    pandas.DataFrame
        For each scenario ``distance``, the mean distance between the two distributions
        (Wasserstein's, in units of probability), and ``shape``, the same once both have mean 0.
    """
    predictions = np.asarray(predictions, dtype=float)
    mean = np.average(predictions, weights=weights)
    rows = {
        name: {
            "distance": wasserstein_distance(predictions, p, weights),
            "shape": wasserstein_distance(predictions - mean, p - p.mean(), weights),
        }
        for name, p in scenario_probabilities().items()
    }
    return pd.DataFrame(rows).T.sort_values("distance")


def correspondence_sentence(table, predictions, task, weights=None):
    """Say which scenario is nearest, whether it is the paper's, and where predictions lie."""
    predictions = np.asarray(predictions)
    nearest, by_shape = table["distance"].idxmin(), table["shape"].idxmin()
    counted = predictions if weights is None else predictions[np.asarray(weights) > 0]
    low, middle, high = np.quantile(counted, [0.05, 0.5, 0.95])
    inside = np.average((predictions >= 0.1) & (predictions <= 0.8), weights=weights)
    verdict = "holds" if nearest == task.scenario else "does not hold"
    return (
        f"Nearest to the predictions is *{nearest.capitalize()}* (mean distance "
        f"{table.loc[nearest, 'distance']:.3f}; *{task.scenario.capitalize()}*, which the paper "
        f"names, {table.loc[task.scenario, 'distance']:.3f}); by shape alone, means put aside, "
        f"*{by_shape.capitalize()}*. The paper's correspondence **{verdict}** here. Nine "
        f"predictions in ten lie between {low:.2f} and {high:.2f}, median {middle:.2f}; "
        f"{inside:.0%} between 0.1 and 0.8."
    )


def claims(result, table, task):
    """Put the paper's claims on real data beside what was measured.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Methods on the test rows.
    table : pandas.DataFrame
        The test rows.
    task : Task
        The task.

    Returns
    -------
    pandas.DataFrame
        Columns ``claim``, ``paper`` and ``here``.
    """
    printed = published(task.name, metric="brier").set_index("method")["value"]
    point = result.point["brier"]
    rows = [
        (
            "CaPE has the lowest Brier score",
            f"{_label(printed.idxmin())}, {printed.min():.2f}",
            f"lowest is {_label(point.idxmin())}, {100 * point.min():.2f}; CaPE (bin) less CE "
            f"{_interval(result.difference('cape_bin', 'ce').loc['brier'])}",
        )
        if {"cape_bin", "ce"} <= set(point.index)
        else None,
        _ranked("ensemble", "The deep ensemble's rank by Brier score", point, printed),
        (
            "What CaPE's calibration epochs add to the same fine-tuning without them",
            "not measured",
            f"CaPE (bin) less CE fine-tuned "
            f"{_interval(result.difference('cape_bin', 'ce_finetuned').loc['brier'])}",
        )
        if {"cape_bin", "ce_finetuned"} <= set(point.index)
        else None,
        _calibrated(result, table),
    ]
    return pd.DataFrame([row for row in rows if row], columns=["claim", "paper", "here"])


def sentences(table):
    """Lay out a table whose cells are sentences: they wrap, and nothing is numbered."""
    return table.style.hide(axis="index").set_table_attributes('class="sentences"')


def _ranked(name, claim, point, printed):
    if name not in point.index:
        return None
    rank, there = int(point.rank()[name]), int(printed.rank()[name])
    return claim, f"{there} of {len(printed)}", f"{rank} of {len(point)}"


def _calibrated(result, table):
    """ECE against what a calibrated model with these predictions would have by chance."""
    names = [name for name in ("ce", "cape_bin") if name in result.point.index]
    if not names:
        return None
    said = []
    for name in names:
        band = calibration_null_band(table[name], weights=table.get("weight"))
        said.append(
            f"{_label(name)} {100 * result.point.loc[name, 'ece']:.1f} "
            f"({100 * band.low:.1f} to {100 * band.high:.1f} by chance, were rows independent)"
        )
    return "CaPE is better calibrated (ECE)", "yes", "; ".join(said)
