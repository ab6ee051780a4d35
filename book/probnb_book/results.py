"""The paper's tables in its own layout, its numbers beside ours; and what lies behind a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML

from probnb.calibrators.gain_parts import PARTS, gain_parts
from probnb.experiment.profiles import PROFILES
from probnb.methods import METHODS
from probnb.metrics import METRICS, difference
from probnb.plots import plain_ticks

from . import evidence
from .published import published
from .scenarios import SCENARIOS

TABLE = ("mse_p", "kl_p", "ece", "mce", "ks", "brier")
PAPER_ROWS = [*dict.fromkeys(published(table=1)["method"])]
MISSING = "not run yet"


def label(row):
    """The name of a row in tables and figures."""
    return "CE, mean of trainings" if row == "ce_mean" else METHODS[row].label


def show(table, words=False):
    """Show a table whole: no cell shortened, no line left out; `words` wraps long cells."""
    with pd.option_context("display.max_colwidth", None):
        return HTML(table.to_html(max_rows=None, classes="fit sentences" if words else "fit"))


def run_table(runs):
    """Show which runs there are: one line a scenario and kind."""
    lines = []
    for group in evidence.kinds(runs):
        first, seconds = group.iloc[0], [r.record.get("cpu_seconds") for r in group["run"]]
        lines.append({
            "scenario": first["task"],
            "faces": "drawn" if first["data"] == "drawn" else "photographs",
            "profile": first["profile"] + (" (altered)" if first["variant"] else ""),
            "size": f"{first['size']} px", "seeds": ", ".join(map(str, group["seed"])),
            "rows": len(evidence.methods_of(evidence.tables(first)[1])),
            "precision": ", ".join(sorted({r.record.get("precision", "?") for r in group["run"]})),
            "processor time": "" if None in seconds else f"{sum(seconds) / 60:.0f} min",
        })  # fmt: skip
    order = {"key": lambda names: names.map(list(SCENARIOS).index), "kind": "stable"}
    return pd.DataFrame(lines).sort_values("scenario", **order).set_index("scenario")


def _means(best, scenario, metric):
    """Times 100, mean and deviation over seeds by row; early stopping is all its trainings."""
    if scenario not in best:
        return pd.DataFrame(columns=["value", "std"], dtype=float)
    scores = evidence.scores(best[scenario], [metric])
    table = 100 * scores.groupby("method")["value"].agg(value="mean", std="std")
    return table.drop("ce" if "ce_mean" in table.index else []).rename({"ce_mean": "ce"})


def _cell(table, row, missing, spread):
    """A number, its spread where it has one, and an asterisk where it is marked."""
    if row not in table.index:
        return missing
    value, std = table.loc[row, ["value", "std"]]
    text = f"{value:.2f}" + (spread.format(std) if np.isfinite(std) else "")
    return text + "*" * bool(table.loc[row].get("mark")) if np.isfinite(value) else "∞"


def paper_table(best, metric=None, scenario=None):
    """Lay out Table 1 (give a metric) or one of Tables 3 to 7 (a scenario), ours under the paper's.

    Parameters
    ----------
    best : dict of str to DataFrame
        Runs by scenario, from `probnb_book.claims.stored_runs`.
    metric, scenario : str, optional
        One of the two; the other is spread over the columns.

    Returns
    -------
    DataFrame
        Times 100. The paper's are value ± one bootstrap deviation over test rows; ours the mean
        over seeds and in brackets the standard deviation between them, where there are several.
    """
    cells = [(scenario, m) for m in TABLE] if scenario else [(s, metric) for s in SCENARIOS]
    heads = [METRICS[m].label if scenario else s.capitalize() for s, m in cells]
    found = [_means(best, *cell) for cell in cells]
    printed = [published(s, metric=m).set_index("method") for s, m in cells]
    lines = {}
    for row in METHODS:
        if row in PAPER_ROWS or any(row in table.index for table in found):
            lines[label(row), "paper"] = [_cell(p, row, "–", " ± {:.2f}") for p in printed]
            lines[label(row), "ours"] = [_cell(f, row, MISSING, " ({:.2f})") for f in found]
    name = scenario.capitalize() if scenario else METRICS[metric].label
    table = pd.DataFrame.from_dict(lines, orient="index", columns=heads)
    return table.set_axis(pd.MultiIndex.from_tuples(table.index, names=[f"{name} ×100", ""]))


def behind(best):
    """Say what lies behind each fine-tuned row: its kept epoch, and calibration epochs up to it."""
    rows = ["ce_finetuned", "cape_bin", "cape_kernel", "beginning_bin", "beginning_kernel"]
    lines = {}
    for scenario, runs in best.items():
        for line in runs.itertuples():
            kept = evidence.tables(line)[0].chosen.query("chosen and method in @rows")
            lines[f"{scenario.capitalize()}, seed {line.seed}"] = {
                row: f"epoch {epoch:.0f}, {n:.0f} of calibration" if epoch else "its start"
                for row, epoch, n in kept[["method", "best_epoch", "calibration_epochs"]].to_numpy()
            }
    return pd.DataFrame(lines, index=rows).T.fillna("–").rename(columns=label)


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


def candidates(runs):
    """Lay out every setting of CaPE and of its control that starts from the same networks.

    Parameters
    ----------
    runs : DataFrame
        From `probnb_book.evidence.find`, of one scenario, other grids of settings included.

    Returns
    -------
    DataFrame
        One line a setting: seeds, the epochs kept and the calibration epochs up to them, and
        MSE_p (times 100) of the kept and of the last epoch less that of the start.
    """
    parts = []
    for line in runs.itertuples():
        results, cape = evidence.tables(line)[0], line.run.record["settings"]["cape"]
        tuned = results.chosen.query("method in ('ce_finetuned', 'cape_bin', 'cape_kernel')")
        for setting in tuned.itertuples():
            history = results.epochs[results.epochs["fit"] == setting.fit]
            history = history.set_index("epoch").sort_index()
            if 0 not in history.index:  # does not say where it started
                continue
            kept, gain = history["val_ce"].idxmin(), 100 * (history["mse_p"] - history["mse_p"][0])
            parts.append({
                "row": label(setting.method),
                "schedule": "" if setting.method == "ce_finetuned" else cape,
                "epochs": str(history.index[-1]), "rate": f"{setting.finetune_learning_rate:g}",
                "bins": f"{setting.bins:.0f}" if setting.method == "cape_bin" else "",
                "seed": line.seed, "kept": str(kept),
                "calibration": str(int(history.loc[:kept, "calibration"].sum())),
                "kept less start": gain[kept], "last less start": gain.iloc[-1],
            })  # fmt: skip
    key = ["row", "schedule", "epochs", "rate", "bins"]
    found = pd.DataFrame(parts).drop_duplicates([*key, "seed"]).groupby(key, sort=False)
    lists = {name: found[name].agg(", ".join) for name in ("kept", "calibration")}
    gains = {f"{k} less start": found[f"{k} less start"].agg(over_seeds) for k in ("kept", "last")}
    return pd.DataFrame({"seeds": found.size(), **lists, **gains})


def over_seeds(values, scale=1, alone="", digits=2):
    """Student's interval over seeds; a single one says that it is alone."""
    if len(values) == 1:
        return f"{scale * values.iloc[0]:+.{digits}f}{alone}"
    return difference(values).text(scale, digits)


def gains(best, rows):
    """Split what rows take off cross entropy's MSE_p into bias, slope, monotone and ranking.

    Returns
    -------
    DataFrame
        Times 100, positive is better; Student's intervals over seeds.
    """
    lines = {}
    for scenario, runs in best.items():
        tests = [evidence.tables(line)[1] for line in runs.itertuples()]
        for row in rows:
            parts = [gain_parts(t["y"], t["ce"], t[row], t["p"]) for t in tests if row in t]
            if parts:
                table = pd.concat([part.loc["mse_p", "gain"] for part in parts], axis=1)
                text = table.apply(over_seeds, axis=1, args=(100, " (one training)"))
                lines[scenario.capitalize(), label(row)] = text[[*PARTS, "total"]]
    return pd.DataFrame(lines).T.rename_axis(columns=None)


def training_details(profiles=("quick", "cpu", "paper")):
    """Set the training of the paper, of the authors' release and of the profiles side by side."""
    table = pd.read_csv(Path(__file__).with_name("details.csv")).fillna("")
    for name in profiles:
        table[f"here: {name}"] = [_detail(row, PROFILES[name]) for row in table.to_dict("records")]
    return table.drop(columns=["fields", "here"]).set_index("detail")


def _detail(row, profile):
    grid = METHODS["cape_bin"].grid
    values = {name: getattr(profile, name, None) for name in row["fields"].split()}
    for name in values.keys() & grid.keys():
        tried = profile.grid.get(name, grid[name][: profile.candidates])
        values[name] = ", ".join(f"{v:g}" for v in tried)
    return row["here"].format(**values)


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


def curves_figure(table):
    """Draw test MSE_p over epochs of every stored training, a panel a scenario."""
    grid = sns.relplot(
        table.assign(error=100 * table["mse_p"]), kind="line", x="epoch", y="error", col="scenario",
        col_wrap=3, hue="row", style="row", units="training", estimator=None, linewidth=1,
        height=2.1, aspect=1.15, facet_kws={"sharey": False, "sharex": False},
    )  # fmt: skip
    grid.set_titles("{col_name}").set_axis_labels("Epoch", "MSE$_p$ × 100").set(yscale="log")
    for ax in grid.axes.flat:
        plain_ticks(ax.yaxis)
    sns.move_legend(grid, "center", bbox_to_anchor=(0.8, 0.25), title="Trained on")
    return grid
