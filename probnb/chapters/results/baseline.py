"""Why the published baseline is so high, as far as stored numbers tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from ...calibrators import PlattScaling, logits_from_probabilities
from ...methods import METHODS
from ...metrics import auc, ece, ks_error, mse_p, nll
from ...published import published
from ...scenarios import SCENARIOS

__all__ = [
    "DEMO",
    "RULES",
    "authors_scores",
    "demo_table",
    "derived_table",
    "one_intercept",
    "saved_scores",
    "stopping_rules",
]

SAVED = {
    "infinite": "resampled",
    "overfit": "ce_overfit",
    "early_stop": "ce",
    "cape_bin": "cape_bin",
}
"""Columns of the authors' saved predictions, and the rows that they are."""

DEMO = pd.DataFrame(
    [("ce", 2.20, 767 / 2329), ("platt", 1.91, np.nan), ("cape_bin", 1.85, 1520 / 4738)],
    columns=["method", "mse_p", "error rate"],
)
"""What the authors' demonstration notebook prints for Linear (times 100), and the fraction that its
error rate is: CaPE's is one of 4,738 rows, not of 2,329."""


def cross_fitted(y, p_hat, folds=5, seed=0):
    """Repair predictions by one intercept, and by Platt scaling, each fitted to the other folds.

    Parameters
    ----------
    y, p_hat : array-like of shape (n,)
        Outcomes and predictions.
    folds, seed : int
        How rows are divided.

    Returns
    -------
    dict of str to ndarray
        Keys ``intercept`` and ``platt``.
    """
    y, logits = np.asarray(y, float), logits_from_probabilities(np.asarray(p_hat, float))
    s = logits[:, 1] - logits[:, 0]
    out = {"intercept": np.empty_like(s), "platt": np.empty_like(s)}
    split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(s, y)
    for train, test in split:
        out["intercept"][test] = expit(s[test] + one_intercept(s[train], y[train]))
        platt = PlattScaling().fit(logits[train], y[train])
        out["platt"][test] = platt.predict_proba(logits[test])[:, 1]
    return out


def one_intercept(log_odds, y):
    """The one number that makes the mean prediction the mean outcome."""
    return brentq(lambda c: np.mean(expit(log_odds + c) - y), -50, 50, maxiter=10_000)


def authors_scores(folder):
    """Score the authors' saved predictions, as they are and repaired.

    Parameters
    ----------
    folder : path-like
        Holds ``linear.csv`` and ``discrete.csv``.

    Returns
    -------
    DataFrame
        One line a scenario, row and repair (``none``, ``intercept``, ``platt``): ``shift`` (mean
        prediction less mean outcome), ``mse_p``, ``nll``, ``ece``, ``ks`` and ``auc``, rounded to
        six digits; ``n`` rows.
    """
    lines = []
    for scenario in ("linear", "discrete"):
        table = pd.read_csv(Path(folder) / f"{scenario}.csv")
        y, p = table["y"].to_numpy(), table["p"].to_numpy()
        for column, method in SAVED.items():
            versions = {"none": table[column].to_numpy()}
            if method in ("ce", "cape_bin"):
                versions |= cross_fitted(y, versions["none"])
            for repair, p_hat in versions.items():
                values = {
                    "shift": np.mean(p_hat) - np.mean(y),
                    "mse_p": mse_p(p, p_hat),
                    "nll": nll(y, p_hat),
                    "ece": ece(y, p_hat),
                    "ks": ks_error(y, p_hat),
                    "auc": auc(y, p_hat),
                }
                line = {"scenario": scenario, "method": method, "repair": repair, "n": len(y)}
                lines.append(line | {k: round(float(v), 6) for k, v in values.items()})
    return pd.DataFrame(lines)


def derived_table(folders, name):
    """Read a table that was derived from data which are not part of the project.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results.
    name : str
        Such as ``"authors-predictions"``: the file ``derived/{name}.csv``.

    Returns
    -------
    DataFrame or None
        None where no folder has it.
    """
    paths = [Path(folder) / "derived" / f"{name}.csv" for folder in folders]
    return next((pd.read_csv(path) for path in paths if path.exists()), None)


def saved_scores(table):
    """Lay out the scores of the authors' saved predictions for reading.

    Parameters
    ----------
    table : DataFrame or None
        From `authors_scores`.

    Returns
    -------
    DataFrame
        Times 100, one line a scenario, row and repair.
    """
    if table is None:
        return pd.DataFrame([{"": "not computed yet"}])
    words = {"none": "", "intercept": ", one intercept", "platt": ", Platt scaling"}
    names = [
        f"{row.scenario.capitalize()}: {METHODS[row.method].label}{words[row.repair]}"
        for row in table.itertuples()
    ]
    columns = {
        "mean shift": "shift",
        "MSE_p": "mse_p",
        "ECE": "ece",
        "KS": "ks",
        "AUC": "auc",
        "NLL": "nll",
    }
    out = {label: (100 * table[key]).map("{:.2f}".format) for label, key in columns.items()}
    out["mean shift"] = (100 * table["shift"]).map("{:+.2f}".format)
    return pd.DataFrame(out).set_axis(pd.Index(names, name="×100"))


def demo_table(evidence, saved):
    """Put five sources of Linear's MSE_p side by side: tables, demo, saved files, and runs.

    Parameters
    ----------
    evidence : Evidence
        Stored runs.
    saved : DataFrame or None
        From `authors_scores`.

    Returns
    -------
    DataFrame
        Times 100; CE early-stop, Platt scaling and CaPE (bin).
    """
    methods = ["ce", "platt", "cape_bin"]
    paper = published("linear", metric="mse_p").set_index("method")["value"]
    demo = DEMO.set_index("method")["mse_p"]
    columns = {"published table": paper, "authors' demo notebook": demo}
    if saved is not None:
        rows = saved[saved["scenario"] == "linear"].set_index(["method", "repair"])["mse_p"] * 100
        columns["authors' saved predictions"] = pd.Series(
            {
                "ce": rows["ce", "none"],
                "platt": rows["ce", "platt"],
                "cape_bin": rows["cape_bin", "none"],
            }
        )
    for photographs, name in ((True, "here, photographs"), (False, "here, drawn faces")):
        runs = evidence.best("linear", photographs)
        columns[name] = pd.Series(
            {
                m: np.mean([100 * r.bootstrap.point.loc[m, "mse_p"] for r in runs])
                for m in methods
                if runs and all(m in r.methods for r in runs)
            },
            dtype=float,
        )
    table = pd.DataFrame({k: v.reindex(methods) for k, v in columns.items()})
    text = table.map(lambda v: "not run yet" if np.isnan(v) else f"{v:.2f}")
    text.loc["cape_bin", "authors' demo notebook"] += " (other rows)"
    return text.set_axis(pd.Index([METHODS[m].label for m in methods], name="Linear, MSE_p ×100"))


def _patience(losses, patience):
    """Position kept if training stops after so many epochs without a lower loss."""
    best = 1
    for k in range(2, len(losses)):
        if losses[k] < losses[best]:
            best = k
        elif k - best >= patience:
            break
    return best


RULES = {
    "lowest validation CE": lambda v: 1 + int(np.argmin(v[1:])),
    "patience 1": lambda v: _patience(v, 1),
    "patience 2": lambda v: _patience(v, 2),
    "patience 3": lambda v: _patience(v, 3),
    "patience 5": lambda v: _patience(v, 5),
    "best of every fifth": lambda v: 5 * (1 + int(np.argmin(v[5::5]))) if len(v) > 5 else None,
    "epoch 1": lambda v: 1,
    "epoch 25": lambda v: 25 if len(v) > 25 else None,
    "last": lambda v: len(v) - 1,
}
"""Which epoch is kept, from the validation cross entropies of epochs 0, 1, ...; None if too few."""


def stopping_rules(evidence, photographs=None):
    """Apply other rules of stopping to the stored epochs of plain cross entropy.

    Parameters
    ----------
    evidence : Evidence
        Stored runs; the best kind of each scenario is used.
    photographs : bool, optional
        Photographs or drawn faces alone.

    Returns
    -------
    DataFrame
        One line a rule; for each run the epoch and its test MSE_p and KS, times 100.
    """
    columns = {}
    for scenario in SCENARIOS:
        for trained in evidence.best(scenario, photographs):
            if "ce" in trained.methods:
                history = trained.history("ce")
                cells = []
                for keep in RULES.values():
                    at = keep(history["val_ce"].to_numpy())
                    cells.append("–" if at is None else _epoch(history.iloc[at]))
                columns[_short(trained)] = cells
    return pd.DataFrame(columns, index=pd.Index(RULES, name="rule: epoch, MSE_p, KS ×100"))


def _epoch(row):
    return f"{row['epoch']:g}: {100 * row['mse_p']:.2f}, {100 * row['ks']:.1f}"


def _short(trained):
    faces = "" if trained.photographs else " (drawn)"
    return f"{trained.run.record['task'].capitalize()}{faces}, seed {trained.run.record['seed']}"
