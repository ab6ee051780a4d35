"""The paper's tables in its own layout, its numbers beside ours; and what lies behind a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import HTML

from ...calibrators.gain_parts import PARTS, gain_parts
from ...experiment import evidence
from ...experiment.profiles import PROFILES
from ...methods import METHODS
from ...metrics import METRICS, difference
from ...published import published
from ...scenarios import SCENARIOS

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
    """Show which runs there are: one line a scenario and kind; scenarios without one say so."""
    lines = []
    for group in evidence.kinds(runs):
        first, seconds = group.iloc[0], [r.record.get("cpu_seconds") for r in group["run"]]
        known = bool(seconds) and None not in seconds
        lines.append({
            "scenario": first["task"],
            "faces": "drawn" if first["data"] == "drawn" else "photographs",
            "profile": first["profile"] + (" (altered)" if first["variant"] else ""),
            "size": f"{first['size']} px", "seeds": ", ".join(map(str, group["seed"])),
            "rows": len(evidence.methods_of(evidence.tables(first)[1])),
            "processor time": f"{sum(seconds) / 60:.0f} min" if known else "",
        })  # fmt: skip
    table = pd.DataFrame(lines, columns=list(lines[0]) if lines else ["scenario"])
    order = {"key": lambda names: names.map(list(SCENARIOS).index), "kind": "stable"}
    return table.sort_values("scenario", **order).set_index("scenario")


def _means(lines, metric):
    """Mean, deviation between seeds, and seeds of each row; early stopping is all its trainings."""
    if lines is None:
        return {}
    table = evidence.scores(lines, [metric]).pivot(index="seed", columns="method", values="value")
    if "ce_mean" in table:
        table["ce"] = table.pop("ce_mean")
    return {row: (v.mean(), v.std(), v.count()) for row, v in table.items()}


def _ours(found, row):
    if row not in found:
        return MISSING
    mean, std, seeds = found[row]
    if not np.isfinite(mean):
        return "∞"
    return f"{100 * mean:.2f}" + (f" ({100 * std:.2f})" if seeds > 1 else "")


def _paper(printed, key):
    if key not in printed.index:
        return "–"
    row = printed.loc[key]
    spread = "" if np.isnan(row["std"]) else f" ± {row['std']:.2f}"
    return f"{row['value']:.2f}{spread}{'*' if row['mark'] else ''}"


def paper_table(best, metric=None, scenario=None):
    """Lay out Table 1 (give a metric) or one of Tables 3 to 7 (a scenario), ours under the paper's.

    Parameters
    ----------
    best : dict of str to DataFrame
        Runs by scenario, from `probnb.chapters.claims.stored_runs`.
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
    found = [_means(best.get(s), m) for s, m in cells]
    printed = [published(s, metric=m).set_index("method") for s, m in cells]
    rows = [m for m in METHODS if m in PAPER_ROWS or any(m in f for f in found)]
    lines = {}
    for row in rows:
        lines[label(row), "paper"] = [_paper(p, row) for p in printed]
        lines[label(row), "ours"] = [_ours(f, row) for f in found]
    name = scenario.capitalize() if scenario else METRICS[metric].label
    table = pd.DataFrame.from_dict(lines, orient="index", columns=heads)
    return table.set_axis(pd.MultiIndex.from_tuples(table.index, names=[f"{name} ×100", ""]))


def rank_table(best, metric="mse_p"):
    """Rank the paper's rows in print and here, 1 being best, without resampled labels.

    Returns
    -------
    DataFrame
        A cell holds the paper's rank and ours; the last line how well all agree (Spearman).
    """
    columns, rows = {}, PAPER_ROWS[1:]
    for scenario in SCENARIOS:
        found = _means(best.get(scenario), metric)
        paper = published(scenario, metric=metric).set_index("method")["value"].reindex(rows)
        pair = pd.DataFrame({"paper": paper, "ours": pd.Series({r: found[r][0] for r in found})})
        pair = pair.reindex(rows)
        ranks = pair.rank(method="min").map(lambda v: "–" if np.isnan(v) else f"{v:.0f}")
        cells = (ranks["paper"] + " / " + ranks["ours"]).tolist()
        both = pair.dropna()
        agree = f"{both.corr('spearman').iat[0, 1]:.2f}" if len(both) > 2 else MISSING
        columns[scenario.capitalize()] = [*cells, f"{agree} ({len(both)} rows)"]
    return pd.DataFrame(columns, index=[*map(label, rows), "rank correlation"])


def behind(best):
    """Say what lies behind each fine-tuned row: its kept epoch, and calibration epochs up to it."""
    lines = {}
    for scenario, lines_of in best.items():
        for line in lines_of.itertuples():
            chosen = evidence.tables(line)[0].chosen.query("chosen").set_index("method")
            rows = ("ce_finetuned", "cape_bin", "cape_kernel", "beginning_bin", "beginning_kernel")
            lines[f"{scenario.capitalize()}, seed {line.seed}"] = {
                label(row): _behind(chosen.loc[row]) if row in chosen.index else "–" for row in rows
            }
    return pd.DataFrame(lines).T


def _behind(kept):
    if kept["best_epoch"] == 0:
        return "its start"
    return f"epoch {kept['best_epoch']:.0f}, {kept['calibration_epochs']:.0f} of calibration"


def kept_trainings(runs):
    """List every training of plain cross entropy at the epoch that validation keeps.

    Returns
    -------
    DataFrame
        Scenario, ``seed``, ``fit``, ``epoch``, ``bias`` (mean prediction less mean outcome on test
        rows), ``mse_p``, and ``widest``, the largest bias of any of its epochs.
    """
    lines = []
    for line in runs.itertuples():
        epochs = evidence.tables(line)[0].epochs
        for fit, history in epochs.groupby("fit"):
            if "bias" in history and (fit == "ce" or fit.startswith("ensemble member=")):
                kept = history.loc[history["val_ce"].idxmin(), ["epoch", "bias", "mse_p"]]
                widest = history.loc[history["epoch"] > 0, "bias"].abs().max()
                facts = {"scenario": line.task, "seed": line.seed, "fit": fit}
                lines.append({**facts, **kept, "widest": widest})
    return pd.DataFrame(lines)


def differences(best, pairs, metric="mse_p", several=False):
    """Compare pairs of rows in every scenario, or where there are three seeds or more: for forests.

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
            if gap is not None and gap.seeds > 2 * several:
                seeds = f"{gap.seeds} seeds" if gap.seeds > 1 else "one training"
                line = {"label": f"{scenario.capitalize()} ({seeds})"}
                line |= {"pair": f"{label(a)} less {label(b)}", "scenario": scenario}
                lines.append({**line, "a": a, "b": b, **gap.__dict__, "text": gap.text()})
    return pd.DataFrame(lines)


def candidates(runs):
    """Lay out every setting of CaPE and of its control that starts from the same networks.

    Parameters
    ----------
    runs : DataFrame
        From `probnb.experiment.evidence.find`, of one scenario, other grids of settings included.

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
            history = results.epochs[results.epochs["fit"] == setting.fit].sort_values("epoch")
            if history["epoch"].iloc[0] > 0:  # does not say where it started
                continue
            history, kept = history.set_index("epoch"), history["val_ce"].to_numpy().argmin()
            gain = 100 * (history["mse_p"] - history["mse_p"][0]).to_numpy()
            bins = setting.bins if setting.method == "cape_bin" else np.nan
            parts.append({
                "row": label(setting.method),
                "schedule": "" if setting.method == "ce_finetuned" else cape,
                "rate": f"{setting.finetune_learning_rate:g}",
                "bins": "" if np.isnan(bins) else f"{bins:.0f}", "seed": line.seed, "kept": kept,
                "calibration": int(history["calibration"].iloc[: kept + 1].sum()),
                "kept less start": gain[kept], "last less start": gain[-1],
            })  # fmt: skip
    key = ["row", "schedule", "rate", "bins"]
    table = pd.DataFrame(parts).drop_duplicates([*key, "seed"])
    lines = {}
    for name, part in table.groupby(key, sort=False):
        line = {c: ", ".join(map(str, part[c])) for c in ("kept", "calibration")}
        line |= {c: _over_seeds(part[c]) for c in ("kept less start", "last less start")}
        lines[name] = {"seeds": len(part), **line}
    return pd.DataFrame(lines).T.rename_axis(key)


def _over_seeds(values, scale=1, alone=""):
    """Student's interval over seeds; a single one says that it is alone."""
    one = len(values) == 1
    return f"{scale * values.iloc[0]:+.2f}{alone}" if one else difference(values).text(scale)


def gains(best, rows, reference="ce"):
    """Split what rows take off the MSE_p of a reference into bias, slope, monotone and ranking.

    Returns
    -------
    DataFrame
        Times 100, positive is better; Student's intervals over seeds.
    """
    lines = {}
    for scenario, runs in best.items():
        for row in rows:
            parts = []
            for line in runs.itertuples():
                test = evidence.tables(line)[1]
                if {row, reference, "p"} <= set(test):
                    split = gain_parts(test["y"], test[reference], test[row], test["p"])
                    parts.append(split.loc["mse_p", "gain"])
            if parts:
                table = pd.concat(parts, axis=1).loc[[*PARTS, "total"]]
                text = {
                    part: _over_seeds(v, 100, " (one training)") for part, v in table.iterrows()
                }
                lines[scenario.capitalize(), label(row)] = text
    return pd.DataFrame(lines).T


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
