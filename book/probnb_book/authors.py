"""The authors' saved predictions: scored, repaired, and what their CaPE gains, with a record.

``python -m probnb_book authors --data FOLDER --results results`` writes both tables.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from probnb.calibrators import PlattScaling, logits_from_probabilities
from probnb.metrics import evaluate
from probnb.report.gain_parts import gain_parts, ladder
from probnb.store import machine

from . import storage

SAVED = {
    "infinite": "resampled",
    "overfit": "ce_overfit",
    "early_stop": "ce",
    "cape_bin": "cape_bin",
}
"""Columns of the authors' saved predictions, and the rows that they are."""


def saved(folder):
    """Read the authors' files: scenario and table, one after the other."""
    return [(s, pd.read_csv(Path(folder) / f"{s}.csv")) for s in ("linear", "discrete")]


def log_odds(p_hat):
    """Log-odds of predictions, kept finite."""
    return np.diff(logits_from_probabilities(np.asarray(p_hat, float)))[:, 0]


def cross_fitted(y, p_hat):
    """Repair predictions by one intercept, and by Platt scaling, each fitted to the other folds."""
    s, out = log_odds(p_hat), np.empty((2, len(y)))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(s, y):
        _, *maps, _ = ladder(s[train], y[train], np.full(len(train), 1 / len(train)))
        out[:, test] = [repair(s[test]) for repair in maps]
    return dict(zip(("intercept", "platt"), out))


def authors_scores(folder):
    """Score the authors' saved predictions, as they are and repaired.

    Returns
    -------
    DataFrame
        One line a scenario, row and repair (``none``, ``intercept``, ``platt``): rows ``n``,
        ``shift`` (mean prediction less mean outcome), the ``slope`` that Platt scaling gives all
        rows, ``mse_p``, ``nll``, ``ece``, ``ks`` and ``auc``, rounded to six digits.
    """
    lines = []
    for scenario, table in saved(folder):
        y = table["y"].to_numpy(float)
        for column, method in SAVED.items():
            versions = {"none": table[column].to_numpy()}
            if method in ("ce", "cape_bin"):
                versions |= cross_fitted(y, versions["none"])
            for repair, p_hat in versions.items():
                facts = {"scenario": scenario, "method": method, "repair": repair, "n": len(y)}
                facts["shift"] = np.mean(p_hat) - np.mean(y)
                facts["slope"] = PlattScaling().fit(log_odds(p_hat), y).coef_[0, 0]
                lines.append(facts | evaluate(y, p_hat, table["p"]))
    scores = ["mse_p", "nll", "ece", "ks", "auc"]
    return pd.DataFrame(lines)[[*facts, *scores]].round(6)


def authors_gains(folder):
    """Split what the authors' saved CaPE gains on their saved early stopping by `gain_parts`."""
    columns = ["y", "early_stop", "cape_bin", "p"]
    parts = {s: gain_parts(*(rows[c] for c in columns)) for s, rows in saved(folder)}
    return pd.concat(parts, names=["scenario"]).drop(columns="std").reset_index().round(6)


def derived(folders, name):
    """Read a derived table of the first folder of results that has it, None without."""
    has = (f for f in folders if name in storage.records(f, "derived"))
    return next((storage.read(folder, "derived", name, name) for folder in has), None)


def keep(table, results, name, command, **facts):
    """Keep a derived table in a folder of results, with its record."""
    record = {"command": command, **facts, **machine()}
    storage.keep(results, "derived", {name: (record, {name: table})})


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book authors", description=__doc__)
    parser.add_argument("--data", required=True, help="holds linear.csv and discrete.csv")
    parser.add_argument("--results", default="results")
    given = parser.parse_args(arguments)
    files = [Path(given.data) / f"{scenario}.csv" for scenario, _ in saved(given.data)]
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    command = "python -m probnb_book authors --data FOLDER"
    for name, score in (("predictions", authors_scores), ("gains", authors_gains)):
        keep(score(given.data), given.results, f"authors-{name}", command, sha256=sums)
