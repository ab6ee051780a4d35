"""What the pages Results and Appendix share: their runs, words for rows, intervals over seeds."""

import numpy as np
import pandas as pd
from IPython.display import HTML

from probnb.methods import METHODS
from probnb.metrics import difference
from probnb.metrics.differences import clustered_mean

from . import evidence
from .claims import stored_runs


def photographs(folders):
    """Find the stored runs on photographs that findings rest on.

    Parameters
    ----------
    folders : sequence of path-like
        Folders of results.

    Returns
    -------
    best, larger : dict of str to DataFrame
        Runs by scenario, at 32 pixels and at 48 pixels and twice the width.
    """
    best = {name: runs for name, runs in stored_runs(folders).items() if name != "cifar10"}
    if not best:
        raise ValueError(
            "results_dir must hold runs on photographs (data utkface); there are none in "
            f"{', '.join(map(str, folders))}."
        )
    found = evidence.find(folders, "synthetic", data="utkface", profile="cpu")
    sizes = evidence.kinds(found[found["size"] == 48])[::-1]  # most seeds last
    return best, {group["task"].iloc[0]: group for group in sizes}


def label(row):
    """The name of a row in tables and figures."""
    return "CE, mean of trainings" if row == "ce_mean" else METHODS[row].label


def show(table, words=False):
    """Show a table whole: no cell shortened, no line left out; `words` wraps long cells."""
    with pd.option_context("display.max_colwidth", None):
        return HTML(table.to_html(max_rows=None, classes="fit sentences" if words else "fit"))


def differences(best, pairs, metric="mse_p", fewest=3):
    """Compare pairs of rows in every scenario that has so many seeds, for forests and tables.

    Returns
    -------
    DataFrame
        One line a scenario and pair: ``label``, ``pair``, and the fields of
        `probnb.metrics.Difference`, unscaled; ``text`` as tables show it.
    """
    lines = []
    for scenario, runs in best.items():
        for a, b in pairs:
            gap = evidence.compare(runs, a, b, metric)
            if gap is not None and gap.seeds >= fewest:
                seeds = f"{gap.seeds} seeds" if gap.seeds > 1 else "one training"
                facts = {"scenario": scenario, "a": a, "b": b, **gap.__dict__, "text": gap.text()}
                facts["label"] = f"{scenario.capitalize()} ({seeds})"
                lines.append({**facts, "pair": f"{label(a)} less {label(b)}"})
    return pd.DataFrame(lines)


def over_seeds(values, scale=1, alone="", digits=2):
    """Student's interval over seeds; a single one says that it is alone."""
    if len(values) == 1:
        return f"{scale * values.iloc[0]:+.{digits}f}{alone}"
    return difference(values).text(scale, digits)


def student(values):
    """Return the ends of Student's interval, as seaborn asks for its error bars."""
    gap = difference(values)
    return gap.low, gap.high


def histories(best):
    """Gather the epochs of trainings from random weights: their metrics, ``training``, ``row``."""
    parts = []
    for scenario, runs in best.items():
        for line in runs.itertuples():
            epochs = evidence.tables(line)[0].epochs.query("epoch > 0")
            epochs = epochs[epochs["fit"].str.fullmatch(r"ce|resampled|ensemble member=\d+")]
            facts = {"scenario": scenario.capitalize(), "training": f"{line.seed} " + epochs["fit"]}
            parts.append(epochs.assign(**facts).sort_values("fit", kind="stable"))
    table = pd.concat(parts, ignore_index=True)
    fresh = table["fit"] == "resampled"
    return table.assign(row=np.where(fresh, "fresh outcomes in every epoch", "outcomes"))


def features_table(fits):
    """The error of logistic regression on the features of each network, size and view.

    In brackets: what it changes from ``lite0`` at 128 pixels, not mirrored, in per cent, by
    Student's interval over seeds.
    """
    same, keys = ["images", "scenario", "seed"], ["images", "backbone", "size", "mirror"]
    first = fits.query("backbone == 'lite0' and size == 128 and not mirror")[[*same, "mse_p"]]
    fits = fits.merge(first, on=same, suffixes=("", "_first"))
    fits["change"] = 100 * (fits["mse_p"] / fits["mse_p_first"] - 1)
    cells = {}
    for place, rows in fits.groupby([*keys, "scenario"]):
        _, _, low, high = clustered_mean(rows["change"].to_numpy())
        cells[place] = f"{100 * rows['mse_p'].mean():.2f} [{low:+.0f}, {high:+.0f}]"
    shown = pd.Series(cells).rename_axis([*keys, "scenario"]).unstack().fillna("")
    seconds = fits.groupby(keys)["cpu_seconds_each"].first()
    shown.insert(0, "ms an image", (1000 * seconds).round(1))
    return shown.rename_axis(columns=None)
