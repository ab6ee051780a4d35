"""The paper's tables in its own layout, its numbers beside ours, and the ranks in both."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ...experiment.profiles import PROFILES
from ...methods import METHODS
from ...metrics import METRICS
from ...published import published
from ...scenarios import SCENARIOS
from .sources import PAPER_ROWS

__all__ = [
    "calibration_epochs",
    "paired",
    "rank_correlations",
    "ranks",
    "scenario_table",
    "table_1",
    "training_details",
]

TABLE = ("mse_p", "kl_p", "ece", "mce", "ks", "brier")
MISSING = "not run yet"
GAP = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"


def _rows(evidence, scenario):
    """The paper's rows, and those of ours that it lacks, in table order."""
    ours = {m for r in evidence.best(scenario) for m in r.methods} if scenario else set()
    return [m for m in METHODS if m in PAPER_ROWS or m in ours]


def _ours(evidence, scenario, method, metric):
    """Mean over trainings, ± over rows, and the spread over seeds where there are several."""
    runs = [r for r in evidence.best(scenario) if method in r.methods]
    if not runs:
        return MISSING
    values = [100 * r.bootstrap.point.loc[method, metric] for r in runs]
    rows = np.sqrt(np.mean([(100 * r.std.loc[method, metric]) ** 2 for r in runs]))
    if not np.isfinite(values).all():
        return "∞"
    text = f"{np.mean(values):.2f}{GAP}{rows:.2f}"
    return text if len(runs) == 1 else f"{text} ({np.std(values, ddof=1):.2f})"


def _who(evidence, scenario):
    """Head of our column: drawn faces are other data than the paper's."""
    runs = evidence.best(scenario)
    return "ours" if not runs or runs[0].photographs else "ours (drawn)"


def _paper(printed, method, metric):
    key = (method, metric)
    if key not in printed.index:
        return "–"
    row = printed.loc[key]
    spread = "" if np.isnan(row["std"]) else f"{GAP}{row['std']:.2f}"
    return f"{row['value']:.2f}{spread}{'*' if row['mark'] else ''}"


def _printed(scenario, table=None):
    return published(scenario, table=table).set_index(["method", "metric"])


def table_1(evidence, metric="mse_p"):
    """Lay out one metric of Table 1: rows by columns of scenarios, the paper beside ours.

    Parameters
    ----------
    evidence : Evidence
        Stored runs; a scenario without one says so.
    metric : {"mse_p", "kl_p"}, default="mse_p"
        Half of the table.

    Returns
    -------
    DataFrame
        Times 100. Ours: mean over trainings ± one bootstrap standard deviation over test rows,
        and in brackets the standard deviation between trainings.
    """
    methods = [m for m in METHODS if any(m in _rows(evidence, s) for s in SCENARIOS)]
    columns = {}
    for scenario in SCENARIOS:
        name, printed = scenario.capitalize(), _printed(scenario)
        columns[name, "paper"] = [_paper(printed, m, metric) for m in methods]
        columns[name, _who(evidence, scenario)] = [
            _ours(evidence, scenario, m, metric) for m in methods
        ]
    labels = pd.Index([METHODS[m].label for m in methods], name=f"{METRICS[metric].label} ×100")
    return pd.DataFrame(columns, index=labels)


def scenario_table(evidence, scenario):
    """Lay out one of Tables 3 to 7: every metric of a scenario, the paper beside ours.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.
    scenario : str
        Name of the scenario.

    Returns
    -------
    DataFrame
        As `table_1`, with metrics as columns.
    """
    methods, printed, columns = _rows(evidence, scenario), _printed(scenario), {}
    for metric in TABLE:
        name = METRICS[metric].label
        columns[name, "paper"] = [_paper(printed, m, metric) for m in methods]
        columns[name, _who(evidence, scenario)] = [
            _ours(evidence, scenario, m, metric) for m in methods
        ]
    labels = pd.Index([METHODS[m].label for m in methods], name=scenario.capitalize())
    return pd.DataFrame(columns, index=labels)


def paired(evidence, method="cape_bin", rivals=("ce", "ce_finetuned", "platt", "ensemble")):
    """Compare a row with its rivals, paired over test rows and over trainings, by MSE_p.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.
    method : str, default="cape_bin"
        The row.
    rivals : sequence of str
        The rows to compare with; by default CaPE's baseline, its control, the cheapest repair and
        the most expensive.

    Returns
    -------
    DataFrame
        One line a scenario and kind of face: the row less each rival, times 100, with 95 %
        interval. From two trainings on the interval includes their spread.
    """
    lines = {}
    for scenario in SCENARIOS:
        for photographs in (True, False):
            runs = evidence.best(scenario, photographs)
            if not runs and not photographs:
                continue
            name = scenario.capitalize() + ("" if photographs else " (drawn)")
            gaps = [evidence.gap(runs, method, rival) for rival in rivals]
            lines[name] = [*(_gap(gap) for gap in gaps), len(runs)]
    columns = [*(f"less {METHODS[rival].label}" for rival in rivals), "trainings"]
    head = f"{METHODS[method].label}, MSE_p ×100"
    return pd.DataFrame.from_dict(lines, orient="index", columns=columns).rename_axis(head)


def _gap(gap):
    if gap is None:
        return MISSING
    value, low, high = (100 * x for x in (gap.value, gap.low, gap.high))
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"


def _values(evidence, scenario, metric):
    """Printed and measured values of the paper's rows but resampled labels; NaN where missing."""
    printed = _printed(scenario)["value"]
    runs = evidence.best(scenario)
    table = {}
    for method in (m for m in PAPER_ROWS if m != "resampled"):
        ours = [r.bootstrap.point.loc[method, metric] for r in runs if method in r.methods]
        theirs = printed.get((method, metric), np.nan)
        table[method] = theirs, 100 * np.mean(ours) if ours else np.nan
    return pd.DataFrame(table, index=["paper", "ours"]).T


def ranks(evidence, metric="mse_p"):
    """Rank the paper's rows in print and here; resampled labels, which nobody has, are left out.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.
    metric : str, default="mse_p"
        What to rank by; 1 is best.

    Returns
    -------
    DataFrame
        One line a row; for each scenario the ``paper``'s rank and ``ours``.
    """
    columns = {}
    for scenario in SCENARIOS:
        table = _values(evidence, scenario, metric).rank(method="min")
        for who in table:
            missing = MISSING if table[who].isna().all() else "–"
            head = who if who == "paper" else _who(evidence, scenario)
            columns[scenario.capitalize(), head] = [
                missing if np.isnan(v) else f"{v:g}" for v in table[who]
            ]
    methods = [m for m in PAPER_ROWS if m != "resampled"]
    return pd.DataFrame(columns, index=pd.Index([METHODS[m].label for m in methods], name="rank"))


def rank_correlations(evidence):
    """Correlate ranks in print and here (Spearman), by scenario and metric.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.

    Returns
    -------
    DataFrame
        Scenarios by metrics; of eleven rows, chance alone exceeds 0.60 in one of twenty.
    """
    rows = {}
    for scenario in SCENARIOS:
        row = {}
        for metric in TABLE:
            pair = _values(evidence, scenario, metric).dropna()
            known = len(pair) > 2
            row[METRICS[metric].label] = f"{spearmanr(*pair.T.values)[0]:.2f}" if known else MISSING
        rows[scenario.capitalize()] = row
    return pd.DataFrame(rows).T.rename_axis("rank correlation")


def calibration_epochs(evidence):
    """Say what lies behind every fine-tuned row: its kept epoch and its calibration epochs.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.

    Returns
    -------
    DataFrame
        One line a run of the best kind; a row without calibration epochs is its control by
        another name.
    """
    lines = []
    for scenario in SCENARIOS:
        for trained in evidence.best(scenario):
            line = {"": str(trained.run)}
            for method in ("ce_finetuned", "cape_bin", "cape_kernel"):
                kept = trained.kept_fit(method)
                line[METHODS[method].label] = "–" if kept is None else _behind(kept)
            lines.append(line)
    return pd.DataFrame(lines).set_index("") if lines else pd.DataFrame([{"": MISSING}])


def _behind(kept):
    if kept["best_epoch"] == 0 or kept.get("kept_start"):
        return "its start"
    count = int(kept["calibration_epochs"])
    return f"epoch {kept['best_epoch']:g}, {count} of calibration"


@cache
def _details():
    return pd.read_csv(Path(__file__).with_name("details.csv")).fillna("")


def training_details(profiles=("quick", "cpu", "paper")):
    """Set the training of the paper, of the authors' release and of the profiles side by side.

    Parameters
    ----------
    profiles : sequence of str, default=("quick", "cpu", "paper")
        Whose values are read from `probnb.experiment.profiles.PROFILES`.

    Returns
    -------
    DataFrame
        One line a detail. What a profile does not decide is the same in all of them.
    """
    table = _details().copy()
    for name in profiles:
        table[f"here: {name}"] = [_detail(row, PROFILES[name]) for row in table.to_dict("records")]
    return table.drop(columns=["fields", "here"]).set_index("detail")


def _detail(row, profile):
    values = {
        name: ", ".join(f"{v:g}" for v in _grid(name, profile))
        if name in METHODS["cape_bin"].grid
        else getattr(profile, name)
        for name in row["fields"].split()
    }
    return row["here"].format(**values)


def _grid(name, profile):
    """Values that a fine-tuning tries: the profile's own, or the first of the method's grid."""
    own = METHODS["cape_bin"].grid[name]
    return profile.grid.get(name, own[: profile.candidates])
