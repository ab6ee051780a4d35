"""What calibration after the fact gains on the stored predictions, map by map."""

from __future__ import annotations

import warnings
from itertools import product

import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from probnb.calibrators import CALIBRATORS, logits_from_probabilities
from probnb.metrics import METRICS, brier, difference, nll

from . import evidence
from .results import label

ROWS = ("ce", "ensemble")
MAPS = [name for name in CALIBRATORS if name != "mixnmatch_isotonic"]  # whose steps are isotonic's


def post_hoc(folders):
    """Fit every map to stored validation predictions and judge it on those of the test rows.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results; runs of altered profiles and those without validation rows are left
        out.

    Returns
    -------
    DataFrame
        One line a run, row and map: ``task``, ``data``, ``seed``, ``rows`` (of validation),
        ``row``, ``map``, and what the scores fell by, ``nll`` and ``brier``: positive is better.
    """
    runs, lines = evidence.find(folders), []
    for line in runs[runs["variant"] == ""].itertuples():
        table = evidence.tables(line)[0].predictions
        val, test = (table[table.get("split") == part] for part in ("val", "test"))
        for row, name in product(ROWS, MAPS if len(val) else ()):
            z, new = (logits_from_probabilities(part[row]) for part in (val, test))
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                fitted = CALIBRATORS[name]().fit(z, val["y"], sample_weight=val.get("weight"))
            after, facts = fitted.predict_proba(new)[:, 1], (line.task, line.data, line.seed)
            y, w = test["y"], {"weights": test.get("weight")}
            gained = [score(y, test[row], **w) - score(y, after, **w) for score in (nll, brier)]
            lines.append((*facts, len(val), row, name, *gained))
    columns = "task data seed rows row map nll brier"
    return pd.DataFrame(lines, columns=columns.split())


def by_task(gains, row="ce", score="nll"):
    """Means over seeds, a line a task and a column a map."""
    found = gains[gains["row"] == row]
    return found.pivot_table(score, ["task", "data"], "map", sort=False)[MAPS]


def post_hoc_table(gains):
    """Lay out the mean gains over tasks, times 1000, with Student's intervals, and tasks gained."""
    columns = {}
    for row in ROWS:
        for score in ("nll", "brier"):
            means, name = by_task(gains, row, score), f"{METRICS[score].label} × 1000"
            columns[label(row), name] = [difference(means[m]).text(1000, 1) for m in MAPS]
        better = (by_task(gains, row) > 0).sum()
        columns[label(row), "tasks"] = [f"{n} of {len(means)}" for n in better]
    return pd.DataFrame(columns, index=[CALIBRATORS[name].label for name in MAPS])
