"""What to do instead: how far each row goes, from stopping early to fresh labels, and its cost.

``python -m probnb.chapters.instead`` draws the README's picture; ``--extract`` first measures what
the features of a pretrained network cost, into ``derived/extraction.csv``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch

from ..experiment import evidence
from ..experiment.features import extract
from ..methods import METHODS
from ..metrics import Difference, difference
from ..plots import COLOURS, use_style
from ..scenarios import SCENARIOS
from ..store import machine
from ..training.backbone import Backbone
from .ablations import read_study
from .authors import derived
from .claims import stored_runs
from .results import label, over_seeds

SCRATCH, FEATURES, DRAWN = "random weights", "pretrained features", "drawn faces, 16 pixels"
ROWS = {
    SCRATCH: ("platt", "ce_averaged", "beginning_bin", "ce_finetuned", "cape_bin", "ensemble",
              "ensemble_platt"),
    FEATURES: ("logistic", "ce_mean", "ce_averaged", "cape_bin", "ensemble"),
    DRAWN: ("augmented", "ce_averaged", "cape_bin", "ensemble", "distilled", "crossfit"),
}  # fmt: skip
"""What a practitioner may do, by start; the rows on drawn faces come from the ablations."""

NAMES = {
    "ce_mean": "CE, one network", "augmented": "CE, augmented", "ensemble": "Deep ensemble of 3",
    (FEATURES, "ensemble"): "Deep ensemble of 5",
}  # fmt: skip
"""Names of rows that `probnb.chapters.results.label` gives for another purpose, or lacks."""

FACES = 23_707
"""Photographs of UTKFace, all of which a network has to see once for its features."""


def seconds(line):
    """Return the processor seconds behind each row of a run, all candidates and starts counted.

    An epoch that a row's early stopping would not have run is not charged, as in
    `probnb.experiment.plan.cost_of`. ``ce_mean`` is the mean over trainings of cross entropy.
    """
    results, patience = evidence.tables(line)[0], line.run.record["settings"]["patience"]
    read = results.chosen[[METHODS[m].epoch == "best" for m in results.chosen["method"]]]
    last = results.epochs["fit"].map(read.groupby("fit")["best_epoch"].max() + patience)
    charged = results.epochs[results.epochs["epoch"] <= last.fillna(np.inf)]
    spent = charged.groupby("fit")["cpu_seconds"].sum()
    fits = results.chosen.groupby("method")["fit"].agg(set)
    start = {m: fits.get(METHODS[m].start, set()) for m in fits.index}
    found = {m: spent[sorted(fits[m] | start[m])].sum() for m in fits.index}
    members = spent.index.str.fullmatch(r"ce|ensemble member=\d+")
    return found | {"ce_mean": spent[members].mean()}


def measured(best, pretrained, extraction=0.0):
    """Lay out error and cost of `ROWS` beside stopping early on the same faces and outcomes.

    Parameters
    ----------
    best, pretrained : dict of str to DataFrame
        Runs by scenario, from `probnb.chapters.claims.stored_runs`.
    extraction : float, default=0
        Processor seconds of the features, which are charged to every row that reads them.

    Returns
    -------
    DataFrame
        One line a start, row, scenario and seed that both starts have: ``error`` (MSE_p),
        ``gain`` (the error of stopping early less it), ``whole`` (the same of resampled labels),
        ``seconds``, and ``trainings``, in units of one of cross entropy from random weights.
    """
    lines = []
    for scenario, runs in best.items():
        base = {r.seed: (evidence.values(r, "mse_p"), seconds(r)) for r in runs.itertuples()}
        for start, group in ((SCRATCH, runs), (FEATURES, pretrained.get(scenario, runs[:0]))):
            for line in (line for line in group.itertuples() if line.seed in base):
                known, cost = base[line.seed]
                own, spent = evidence.values(line, "mse_p"), seconds(line)
                for row in (row for row in ROWS[start] if row in own):
                    took = spent[row] + extraction * (start == FEATURES)
                    lines.append({
                        "start": start, "row": row, "scenario": scenario, "seed": line.seed,
                        "error": own[row], "gain": known["ce_mean"] - own[row],
                        "whole": known["ce_mean"] - known["resampled"], "seconds": took,
                        "trainings": took / cost["ce_mean"],
                    })  # fmt: skip
    return pd.DataFrame(lines)


def drawn(folder):
    """Lay out the rows of the ablations in the same way: Linear, small networks, drawn faces."""
    table = read_study(folder, "targets", data="drawn v3").set_index(["row", "seed"])
    ce, fresh = (table["mse_p"][name] for name in ("ce", "resampled"))
    parts = [
        pd.DataFrame({
            "start": DRAWN, "row": row, "scenario": "linear", "error": own["mse_p"],
            "gain": ce - own["mse_p"], "whole": ce - fresh, "trainings": own["cost"],
        }).dropna().rename_axis("seed").reset_index()
        for row, own in ((row, table.loc[row]) for row in ROWS[DRAWN])
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def stored(folders):
    """Return `measured` and `drawn` of all that is stored."""
    best = {s: runs for s, runs in stored_runs(folders).items() if s in SCENARIOS}
    took = derived(folders, "extraction")
    extraction = 0 if took is None else FACES * took["cpu_seconds_each"].iloc[0]
    faces = measured(best, stored_runs(folders, pretrained=True), extraction)
    studied = [drawn(f) for f in folders if (Path(f) / "ablations" / "targets.csv").exists()]
    return pd.concat([faces, *studied[:1]], ignore_index=True)


def shares(table):
    """Sum up `measured`: the share of the way from stopping early to fresh labels.

    Returns
    -------
    DataFrame
        One line a start and row: ``label``, ``trainings`` and ``seconds`` (means), the share of
        each scenario (mean gain over mean whole), the ``least`` of them, and their mean ``share``
        with the ends ``low`` and ``high`` of Student's interval over scenarios, or over the seeds
        of the only one; NaN where a scenario lacks the row.
    """
    lines, most = [], table.groupby("start")["scenario"].nunique()
    for (start, row), own in table.groupby(["start", "row"], sort=False):
        means = own.groupby("scenario", sort=False)[["gain", "whole"]].mean()
        each = means["gain"] / means["whole"]
        parts = each if len(each) > 1 else own["gain"] / own["whole"].mean()
        whole = len(each) == most[start] and len(parts) > 1
        gap = difference(parts) if whole else Difference(*[np.nan] * 5, 0)
        lines.append({
            "start": start, "row": row, "label": NAMES.get((start, row)) or NAMES.get(row) or label(row),
            **own[["trainings", "seconds"]].mean(), **each, "least": each.min(),
            "share": gap.value, "low": gap.low, "high": gap.high,
        })  # fmt: skip
    return pd.DataFrame(lines)


def cost_table(table):
    """Show `measured` to read: cost, share, and MSE_p less that of stopping early, times 100."""
    gaps = (-table["gain"]).groupby([table[c] for c in ("start", "row", "scenario")], sort=False)
    gaps = gaps.agg(over_seeds, 100, " (one)").unstack()
    sums = shares(table).set_index(["start", "row"])
    shown = pd.DataFrame({
        "trainings": sums["trainings"].map("{:.1f}".format),
        "seconds": sums["seconds"].map(lambda v: "" if np.isnan(v) else f"{v:.0f}"),
        "share": [_percent(line) for line in sums.itertuples()],
    })  # fmt: skip
    gaps = gaps[[s for s in SCENARIOS if s in gaps]].rename(columns=str.capitalize)
    shown = shown.join(gaps).fillna("")
    return shown.set_axis(
        pd.MultiIndex.from_arrays([sums.index.get_level_values(0), sums["label"]])
    )


def _percent(line):
    values = (100 * v for v in (line.share, line.low, line.high))
    return "" if np.isnan(line.share) else "{:.0f} % [{:.0f}, {:.0f}]".format(*values)


def instead_figure(table):
    """Draw `measured`: cost at the left, at the right the share of the way of every scenario."""
    sums = shares(table)
    seeds = table[table["start"] == SCRATCH].groupby("scenario")["seed"].nunique()
    names = {s: f"{s.capitalize()} ({seeds[s]})" for s in SCENARIOS if s in seeds}
    starts = list(dict.fromkeys(sums["start"]))
    heights = [(sums["start"] == start).sum() for start in starts]
    figure, axes = plt.subplots(
        len(starts), 2, figsize=(7.4, 1.6 + 0.27 * sum(heights)), layout="constrained",
        sharex="col", squeeze=False, width_ratios=[1, 2.2], height_ratios=heights,
    )  # fmt: skip
    looks = {"hue_order": list(names), "style_order": list(names), "s": 32, "alpha": 0.85}
    for start, (cost, way) in zip(starts, axes):
        own = sums[sums["start"] == start].sort_values("trainings", kind="stable")
        own = own.assign(place=range(len(own)))
        long = own.melt("place", list(names), "scenario", "each")
        long = long.assign(each=100 * long["each"])
        sns.scatterplot(
            long, x="each", y="place", hue="scenario", style="scenario", ax=way, **looks
        )
        mean, low, high = (100 * own[c].to_numpy() for c in ("share", "low", "high"))
        bars = [mean - low, high - mean]
        way.errorbar(mean, own["place"], xerr=bars, fmt="|", color="black", ms=11, lw=1.4)
        for at in (0, 50, 100):
            way.axvline(at, color=COLOURS["grey"], lw=0.8, ls="--" if at == 50 else "-", zorder=0)
        cost.barh(own["place"], own["trainings"], height=0.5, color=COLOURS["grey"])
        cost.set_yticks(own["place"], own["label"])
        cost.set_title(start[0].upper() + start[1:], loc="left", fontsize=10)
        for ax in (cost, way):
            ax.set(ylabel="", ylim=(len(own) - 0.4, -0.6))
        way.set_yticks([])
    cost.set_xlabel("Cost, in trainings of\ncross entropy")
    way.set_xlabel(
        "Share of the way from stopping early to labels\n"
        "drawn afresh (%); bars: mean of scenarios, 95 %"
    )
    handles, found = axes[0, 1].get_legend_handles_labels()
    for _, way in axes:
        way.get_legend().remove()
    found = [names[s] for s in found]
    figure.legend(handles, found, loc="outside upper center", ncols=5, handletextpad=0.2)
    return axes


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probnb.chapters.instead", description=__doc__)
    parser.add_argument("--extract", type=int, metavar="IMAGES", help="images to measure with")
    given, root = parser.parse_args(arguments), Path(__file__).resolve().parents[2]
    if given.extract:
        images = torch.randint(256, (given.extract, 3, 128, 128), dtype=torch.uint8)
        with tempfile.TemporaryDirectory() as folder:
            backbone, start = Backbone("lite0"), time.process_time()
            extract({"images": images}, backbone, folder, progress=False)
        each = (time.process_time() - start) / given.extract
        path = root / "results" / "derived" / "extraction.csv"
        line = {"images": given.extract, "cpu_seconds_each": each, **machine()}
        pd.DataFrame([line]).to_csv(path, index=False)
    matplotlib.use("Agg")
    use_style()
    axes = instead_figure(stored([root / "results"]))
    axes.flat[0].figure.savefig(root / "book" / "_static" / "instead.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
