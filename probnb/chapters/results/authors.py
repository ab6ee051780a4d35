"""The authors' saved predictions: scored, repaired, and what their CaPE gains, with a record.

``python -m probnb.chapters.results.authors --data FOLDER --results results`` writes both tables.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from ...calibrators import PlattScaling, logits_from_probabilities
from ...calibrators.gain_parts import gain_parts
from ...calibrators.parametric import fit_intercept
from ...experiment.provenance import machine
from ...metrics import auc, ece, ks_error, mse_p, nll

SAVED = {
    "infinite": "resampled", "overfit": "ce_overfit", "early_stop": "ce", "cape_bin": "cape_bin",
}  # fmt: skip
"""Columns of the authors' saved predictions, and the rows that they are."""

SCENARIOS = ("linear", "discrete")


def log_odds(p_hat):
    """Log-odds of predictions, kept finite."""
    logits = logits_from_probabilities(np.asarray(p_hat, float))
    return logits[:, 1] - logits[:, 0]


def cross_fitted(y, p_hat, folds=5, seed=0):
    """Repair predictions by one intercept, and by Platt scaling, each fitted to the other folds."""
    y, s = np.asarray(y, float), log_odds(p_hat)
    out = {"intercept": np.empty_like(s), "platt": np.empty_like(s)}
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(s, y):
        bias = fit_intercept(s[train], y[train], np.full(len(train), 1 / len(train)))
        out["intercept"][test] = expit(s[test] + bias)
        out["platt"][test] = PlattScaling().fit(s[train], y[train]).predict_proba(s[test])[:, 1]
    return out


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
    for scenario in SCENARIOS:
        table = pd.read_csv(Path(folder) / f"{scenario}.csv")
        y, p = table["y"].to_numpy(), table["p"].to_numpy()
        for column, method in SAVED.items():
            versions = {"none": table[column].to_numpy()}
            if method in ("ce", "cape_bin"):
                versions |= cross_fitted(y, versions["none"])
            for repair, p_hat in versions.items():
                at = PlattScaling().fit(log_odds(p_hat), y).predict_proba(np.array([0.0, 1.0]))
                values = {
                    "shift": np.mean(p_hat) - np.mean(y), "slope": np.diff(log_odds(at[:, 1]))[0],
                    "mse_p": mse_p(p, p_hat), "nll": nll(y, p_hat), "ece": ece(y, p_hat),
                    "ks": ks_error(y, p_hat), "auc": auc(y, p_hat),
                }  # fmt: skip
                line = {"scenario": scenario, "method": method, "repair": repair, "n": len(y)}
                lines.append(line | {k: round(float(v), 6) for k, v in values.items()})
    return pd.DataFrame(lines)


def authors_gains(folder):
    """Split what the authors' saved CaPE gains on their saved early stopping by `gain_parts`."""
    tables = []
    for scenario in SCENARIOS:
        rows = pd.read_csv(Path(folder) / f"{scenario}.csv")
        parts = gain_parts(rows["y"], rows["early_stop"], rows["cape_bin"], rows["p"])
        tables.append(parts.reset_index().assign(scenario=scenario))
    columns = ["scenario", "metric", "part", "gain", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns].round(6)


def derived(folders, name):
    """Read ``derived/{name}.csv`` of the first folder of results that has it, None without."""
    paths = [Path(folder) / "derived" / f"{name}.csv" for folder in folders]
    return next((pd.read_csv(path) for path in paths if path.exists()), None)


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probnb.chapters.results.authors", description=__doc__)
    parser.add_argument("--data", required=True, help="holds linear.csv and discrete.csv")
    parser.add_argument("--results", default="results")
    given = parser.parse_args(arguments)
    folder = Path(given.results) / "derived"
    folder.mkdir(parents=True, exist_ok=True)
    files = [Path(given.data) / f"{scenario}.csv" for scenario in SCENARIOS]
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    command = "python -m probnb.chapters.results.authors --data FOLDER"
    record = {"command": command, "sha256": sums, **machine()}
    tables = {"predictions": authors_scores(given.data), "gains": authors_gains(given.data)}
    for name, table in tables.items():
        name = f"authors-{name}"
        table.to_csv(folder / f"{name}.csv", index=False)
        (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
