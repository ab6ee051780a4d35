"""What to do instead: how far each row goes, from stopping early to fresh labels, and its cost.

``python -m probnb_book costs`` draws the README's picture. What features of a pretrained
network cost, the derived table ``extraction``, is measured by ``benchmarks/test_extraction.py``.
"""

import argparse
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from probnb.methods import METHODS
from probnb.metrics import difference
from probnb.plots import COLOURS, use_style

from . import evidence
from .ablations.study import read_study
from .authors import derived
from .claims import face_runs
from .results import label
from .scenarios import SCENARIOS

SCRATCH, FEATURES, DRAWN = "random weights", "pretrained features", "drawn faces, 16 pixels"
ROWS = {
    SCRATCH: (
        "platt",
        "ce_averaged",
        "beginning_bin",
        "ce_finetuned",
        "cape_bin",
        "ensemble",
        "ensemble_platt",
    ),
    FEATURES: ("logistic", "ce_mean", "ce_averaged", "cape_bin", "ensemble"),
    DRAWN: ("augmented", "ce_averaged", "cape_bin", "ensemble", "distilled", "crossfit"),
}
"""What a practitioner may do, by start; the rows on drawn faces come from the ablations."""

NAMES = {
    "ce_mean": "CE, one network",
    "augmented": "CE, augmented",
    "ensemble": "Deep ensemble of 3",
    (FEATURES, "ensemble"): "Deep ensemble of 5",
}
"""Names of rows that `probnb_book.results.label` gives for another purpose, or lacks."""

FACES = 23_707
"""Photographs of UTKFace, all of which a network has to see once for its features."""


def seconds(line):
    """Return the processor seconds behind each row of a run, all candidates and starts counted.

    An epoch that a row's early stopping would not have run is not charged, as in
    `probnb_book.ablations.cost.cost_of`. ``ce_mean`` is the mean over trainings of cross entropy.
    """
    results, patience = evidence.tables(line)[0], line.run.record["settings"].get("patience", 0)
    if "cpu_seconds" not in results.epochs:  # of a run that did not count them
        return {}
    read = results.chosen[[METHODS[m].epoch == "best" for m in results.chosen["method"]]]
    last = results.epochs["fit"].map(read.groupby("fit")["best_epoch"].max() + patience)
    charged = results.epochs[results.epochs["epoch"] <= last.fillna(np.inf)]
    spent = charged.groupby("fit")["cpu_seconds"].sum()
    of = results.chosen.groupby("method")["fit"].agg(set)
    found = {m: spent[sorted(own | of.get(METHODS[m].start, set()))].sum() for m, own in of.items()}
    members = spent.index.str.fullmatch(r"ce|ensemble member=\d+")
    return found | {"ce_mean": spent[members].mean()}


def stored(folders):
    """Lay out error and cost of every row beside stopping early on the same faces and outcomes.

    Returns
    -------
    DataFrame
        One line a start, row, scenario and seed that has a training from random weights:
        ``error`` (MSE_p), ``gain`` (the error of stopping early less it; of a row that maps or
        fine-tunes a network, that network's), ``percent`` (the same, of what it is compared
        with), ``whole`` (from stopping early to resampled labels), ``trainings`` (cost, in
        trainings of cross entropy from random weights), and on photographs ``seconds``, with the
        extraction of features in every row that has them.
    """
    took, parts = derived(folders, "extraction"), []
    extraction = 0 if took is None else FACES * took["cpu_seconds_each"].iloc[0]
    for pretrained, line in face_runs(folders):
        spent = pd.Series(seconds(line), dtype=float) + extraction * pretrained
        part = {"start": (SCRATCH, FEATURES)[pretrained], "scenario": line.task, "seed": line.seed}
        part |= {"seconds": spent, "error": evidence.values(line, "mse_p")}
        parts.append(pd.DataFrame(part).rename_axis("row").reset_index())
    drawn = read_study(folders[0], "targets", data="drawn v3").replace({"row": {"ce": "ce_mean"}})
    drawn = drawn.rename(columns={"mse_p": "error", "cost": "trainings"}).assign(start=DRAWN)
    table, key = pd.concat([*parts, drawn], ignore_index=True), ["start", "scenario", "seed"]
    same = pd.MultiIndex.from_frame(table[key].replace({"start": {FEATURES: SCRATCH}}))

    def of(row, value="error"):  # on the same faces and outcomes, from random weights
        return table[table["row"] == row].set_index(key)[value].reindex(same).to_numpy()

    own = [row in METHODS and evidence.baseline_of(row) == "ce" for row in table["row"]]
    own &= table["start"].eq(SCRATCH).to_numpy()
    table["gain"] = np.where(own, of("ce"), of("ce_mean")) - table["error"]
    table["whole"] = of("ce_mean") - of("resampled")
    table["trainings"] = table["trainings"].fillna(table["seconds"] / of("ce_mean", "seconds"))
    table["percent"] = 100 * table["gain"] / (table["gain"] + table["error"])
    columns = [*key, "row", "error", "gain", "percent", "whole", "trainings", "seconds"]
    return table[columns].dropna(subset="gain").reset_index(drop=True)


def of_rows(table):
    """The lines of `ROWS`."""
    return table[[row in ROWS[start] for start, row in table[["start", "row"]].to_numpy()]]


def shares(table):
    """Sum up `ROWS` of `stored`: the share of the way from stopping early to fresh labels.

    Returns
    -------
    DataFrame
        One line a start and row: ``label``, ``trainings`` and ``seconds`` (means), the share of
        each scenario (mean gain over mean whole), the ``least`` of them, and their mean ``share``
        with the ends ``low`` and ``high`` of an interval over seeds, by the jackknife: the
        scenarios are these five. NaN where a scenario lacks the row.
    """
    table, lines = of_rows(table), []
    most = table.groupby("start")["scenario"].nunique()

    def parts(own):
        means = own.groupby("scenario", sort=False)[["gain", "whole"]].mean()
        return means["gain"] / means["whole"]

    for (start, row), own in table.groupby(["start", "row"], sort=False):
        each, seeds = parts(own), own["seed"].unique()
        without = [parts(own[own["seed"] != seed]).mean() for seed in seeds]
        pseudo = each.mean() + (len(seeds) - 1) * (np.mean(without) - without)
        gap = difference(pseudo if len(each) == most[start] and len(seeds) > 1 else np.nan)
        name = NAMES.get((start, row)) or NAMES.get(row) or label(row)
        facts = {"start": start, "row": row, "label": name, **own[["trainings", "seconds"]].mean()}
        way = {"least": each.min(), "share": gap.value, "low": gap.low, "high": gap.high}
        lines.append(facts | dict(each) | way)
    return pd.DataFrame(lines)


def instead_figure(table):
    """Draw `stored`: cost at the left, at the right the share of the way of every scenario."""
    seeds = table[table["start"] == SCRATCH].groupby("scenario")["seed"].nunique()
    names = {s: f"{s.capitalize()} ({seeds[s]})" for s in SCENARIOS if s in seeds}
    sums = shares(table).sort_values("trainings", kind="stable").rename(columns=names)
    sums[["share", "low", "high", *names.values()]] *= 100
    rows = {start: own for start in ROWS if len(own := sums[sums["start"] == start])}
    sizes = {"width_ratios": [1, 2.2], "height_ratios": [*map(len, rows.values())]}
    sizes |= {"figsize": (7.4, 1.6 + 0.27 * len(sums)), "layout": "constrained"}
    figure, axes = plt.subplots(len(rows), 2, sharex="col", squeeze=False, **sizes)
    for (start, own), (cost, way) in zip(rows.items(), axes):
        own = own.assign(place=range(len(own)))
        long = own.melt("place", [*names.values()], "scenario", "each")
        looks = {"hue": "scenario", "style": "scenario", "legend": cost is axes[0, 0], "s": 32}
        sns.scatterplot(long, x="each", y="place", ax=way, **looks)
        ends = np.abs(own[["low", "high"]].to_numpy().T - own["share"].to_numpy())
        way.errorbar(own["share"], own["place"], xerr=ends, fmt="|", color="black", ms=11)
        for at, line in ((0, "-"), (50, "--"), (100, "-")):
            way.axvline(at, color=COLOURS["grey"], lw=0.8, ls=line, zorder=0)
        cost.barh(own["place"], own["trainings"], height=0.5, color=COLOURS["grey"])
        cost.set_yticks(own["place"], own["label"])
        cost.set_title(start[0].upper() + start[1:], loc="left", fontsize=10)
        cost.set_ylim(len(own) - 0.4, -0.6)
        way.set(ylabel="", yticks=[], ylim=cost.get_ylim())
    cost.set_xlabel("Cost, in trainings of\ncross entropy")
    way.set_xlabel(
        "Share of the way from stopping early to labels drawn\n"
        "afresh (%); bars: mean of scenarios, 95 % over seeds"
    )
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside upper center", ncols=5)
    axes[0, 1].get_legend().remove()
    return axes


def main(arguments=None):
    """Draw the README's picture."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book costs", description=__doc__)
    parser.parse_args(arguments)
    root = Path(__file__).resolve().parents[2]
    matplotlib.use("Agg")
    use_style()
    axes = instead_figure(stored([root / "results"]))
    axes.flat[0].figure.savefig(root / "book" / "_static" / "instead.svg", metadata={"Date": None})
