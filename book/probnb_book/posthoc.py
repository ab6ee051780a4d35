"""What calibration after the fact gains on the stored predictions, map by map."""

from __future__ import annotations

import warnings
from itertools import product

import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from probnb.calibrators import CALIBRATORS, logits_from_probabilities
from probnb.metrics import brier, nll

from . import evidence
from .results import over_seeds

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


def post_hoc_table(gains, row="ce", score="nll"):
    """Lay out what maps gain, times 1000, by where the data come from; intervals are over seeds.

    Scenarios of one source have the same faces, so that a seed counts once, by their mean.
    """
    own = gains[gains["row"] == row]
    faces = {"utkface": "photographs", "drawn": "drawn faces"}
    source = own["data"].map(faces).fillna(own["task"])
    seeds = own.groupby([source.rename("from"), "map", "seed"], sort=False)[score].mean()
    text = seeds.groupby(["from", "map"], sort=False).agg(over_seeds, 1000, " (one seed)")
    names = {name: CALIBRATORS[name].label for name in MAPS}
    return text.unstack("from").reindex(MAPS).rename(names).rename_axis(index=None, columns=None)
