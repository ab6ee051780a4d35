"""Numbers that claims are about: of one run, or of one of the paper's tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from ...experiment import evidence
from ...metrics import METRICS, brier_decomposition, calibration_null_band, ece
from ...published import published

PERCENT = ("gap", "one_gap", "excess_ece")
NEAR = 0.05  # of 0 or 1
ROWS = [m for m in dict.fromkeys(published(table=1)["method"]) if m != "resampled"]
CAPE = ["cape_bin", "cape_kernel"]
OTHERS = [m for m in ROWS if m not in CAPE]


def _pair(table, a, b, metric):
    known = {a, b} <= set(table.index) and metric in table
    return table.loc[[a, b], metric] if known else (np.nan, np.nan)


def one_gap(table, a, b, metric):
    """Metric of a less that of b."""
    x, y = _pair(table, a, b, metric)
    return x - y


def ratio(table, a, b, metric):
    """Metric of a as a multiple of b's."""
    x, y = _pair(table, a, b, metric)
    return x / y


def _rows(table, *metrics):
    """The paper's rows that have all of some metrics."""
    rows = table[table.index.isin(["resampled", *ROWS])]
    if not set(metrics) <= set(table):
        return rows.iloc[:0]
    return rows.dropna(subset=list(metrics))


def correlation(table, x, y):
    """Pearson's correlation of two metrics over rows."""
    rows = _rows(table, x, y)
    return rows[x].corr(rows[y]) if len(rows) > 2 else np.nan


def rank(table, x, y):
    """Spearman's correlation of two metrics over rows."""
    rows = _rows(table, x, y)
    return rows[x].corr(rows[y], "spearman") if len(rows) > 2 and rows[x].nunique() > 1 else np.nan


def lead(table, target, rival):
    """How much closer Brier follows a target than another metric, by Pearson's correlation."""
    other = correlation(table, target, rival)
    return correlation(table, target, "brier") - (abs(other) if rival == "auc" else other)


def alike(table, x, y, apart="1.1"):
    """Share of pairs of rows, clearly apart by y, that x puts in the same order."""
    rows = _rows(table, x, y)
    pairs = [sorted((a, b)) for a, b in combinations(zip(rows[y], rows[x]), 2)]
    same = [a[1] < b[1] for a, b in pairs if b[0] > float(apart) * a[0]]
    return np.mean(same) if same else np.nan


def improved(table, b, metric, share):
    """Share of other rows that are below b's by more than a share of it."""
    if b not in table.index or metric not in table:
        return np.nan
    rest = table.loc[table.index.isin(set(OTHERS) - {"ce"}), metric].dropna()
    return np.mean(rest < (1 - float(share)) * table.loc[b, metric]) if len(rest) > 2 else np.nan


def first(table, *metrics):
    """Share of metrics by which the better of CaPE's rows is before all others (ties count not)."""
    return np.mean([table.loc[CAPE, m].min() < table.loc[OTHERS, m].min() for m in metrics])


def place(table, row, metric):
    """Place of a row among the paper's rows, 1 being the lowest."""
    rows = _rows(table, metric)[metric].drop("resampled", errors="ignore")
    return rows.rank(method="min").get(row, np.nan)


def spread(table, metric):
    """Highest value as a multiple of the lowest."""
    rows = _rows(table, metric)[metric]
    return rows.max() / rows.min()


def _history(line, row):
    """Epochs of the fit that a row reads; None where it kept its start: any candidate would do."""
    results, _ = evidence.tables(line)
    chosen = results.chosen.query("method == @row and chosen")
    if chosen.empty or (row != "ce" and chosen["best_epoch"].iloc[0] == 0):
        return None
    epochs = results.epochs[results.epochs["fit"] == chosen["fit"].iloc[0]]
    return epochs.sort_values("epoch").set_index("epoch")


def last(line, column, row):
    """Value of the last epoch."""
    history = _history(line, row)
    return None if history is None else history[column].iloc[-1]


def change(line, column, row):
    """Last epoch less the start of a fine-tuning."""
    history = _history(line, row)
    known = history is not None and history.index[0] == 0
    return history[column].iloc[-1] - history[column].iloc[0] if known else None


def growth(line, column, row):
    """Last epoch as a multiple of the start of a fine-tuning."""
    history = _history(line, row)
    known = history is not None and history.index[0] == 0
    return history[column].iloc[-1] / history[column].iloc[0] if known else None


def fell(line, column, row):
    """First epoch less the kept one."""
    history = _history(line, row)
    kept = None if history is None else history["val_ce"].idxmin()
    return None if history is None else history[column][1] - history[column][kept]


def near_edges(line, row):
    """Share of predictions near 0 or 1."""
    _, test = evidence.tables(line)
    return np.mean(np.abs(test[row] - 0.5) > 0.5 - NEAR) if row in test else None


def excess_ece(line, row):
    """Calibration error above what chance gives predictions that are right, at its 97.5 % point."""
    _, test = evidence.tables(line)
    if row not in test:
        return None
    return ece(test["y"], test[row]) - calibration_null_band(test[row], replicates=200).high


TABLE = (one_gap, ratio, correlation, rank, lead, alike, improved, first, place, spread)
RUN = (last, change, growth, fell, near_edges, excess_ece)


def of_table(table, name, *arguments):
    """Compute a statistic of a table (metrics as columns), None where a table cannot have it."""
    found = {f.__name__: f for f in TABLE}.get(name)
    return None if found is None else float(found(table, *arguments))


def of_run(line, name, *arguments):
    """Compute a statistic of a stored run, None where it lacks what is asked for."""
    found = {f.__name__: f for f in RUN}.get(name)
    return of_table(_table(line), name, *arguments) if found is None else found(line, *arguments)


_TABLES = {}


def _table(line):
    """Every metric of every row of a run, computed once."""
    key = line.run.directory
    if key not in _TABLES:
        _, test = evidence.tables(line)
        table = pd.DataFrame({metric: evidence.values(line, metric) for metric in METRICS})
        for row in table.index.intersection(test.columns):
            table.loc[row, "accuracy"] = np.mean((test[row] > 0.5) == test["y"])
            table.loc[row, "refinement"] = brier_decomposition(test["y"], test[row], 15).refinement
        _TABLES[key] = table
    return _TABLES[key]
