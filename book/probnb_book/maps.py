"""What maps fitted afterwards take off stored predictions, and what rows gain beyond any map.

``python -m probnb_book maps`` makes the derived tables ``maps`` and ``gain-parts``.
"""

import argparse
import warnings
from itertools import product

import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from probnb.calibrators import CALIBRATORS, logits_from_probabilities
from probnb.metrics import nll
from probnb.report.gain_parts import gain_parts

from . import evidence
from .authors import keep
from .results import photographs

SMOOTH = ("temperature", "platt", "beta", "dirichlet", "mixnmatch", "quadratic", "spline")
STEPPED = ("isotonic", "histogram", "venn_abers")
MAPS = {name: CALIBRATORS[name].label for name in (*SMOOTH, *STEPPED)}
"""The maps and their names."""

ROWS = ("platt", "ce_finetuned", "cape_bin", "ensemble", "beginning_bin", "ce_averaged")
"""Rows whose gain on the first early-stopped network is cut into parts."""


def gain_of(line, row, name):
    """What a map of a stored row's predictions takes off its log-loss on the test rows."""
    table = evidence.tables(line)[0].predictions
    val, test = (table[table["split"] == part] for part in ("val", "test"))
    z, new = (logits_from_probabilities(part[row]) for part in (val, test))
    fitted = CALIBRATORS[name]().fit(z, val["y"], sample_weight=val.get("weight"))
    pair = (test[row], fitted.predict_proba(new)[:, 1])
    before, after = (nll(test["y"], p_hat, weights=test.get("weight")) for p_hat in pair)
    return before - after


def with_validation(folders):
    """List the stored runs that have validation rows; those of altered profiles aside."""
    runs = evidence.find(folders)
    splits = ((r, evidence.tables(r)[0].predictions) for r in runs.itertuples() if not r.variant)
    return [r for r, table in splits if table.get("split", pd.Series()).eq("val").any()]


def post_hoc(runs, rows=("ce", "ensemble"), maps=MAPS):
    """Fit every map to validation predictions of `with_validation`: the gain in log-loss, ``nll``.

    Returns
    -------
    DataFrame
        One line a run, row and map: ``task``, ``data``, ``seed``, ``row``, ``map``, ``nll``.
    """
    every = product(runs, rows, maps)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        lines = [
            (r.task, r.data, r.seed, row, name, gain_of(r, row, name)) for r, row, name in every
        ]
    return pd.DataFrame(lines, columns=["task", "data", "seed", "row", "map", "nll"])


def parts(runs, rows=ROWS):
    """Cut what rows take off the error of the first early-stopped network by `gain_parts`.

    Returns
    -------
    DataFrame
        One line a run, row and part: ``scenario``, ``seed``, ``row``, ``part`` and ``gain``, of
        MSE_p.
    """
    lines = []
    for line in runs.itertuples():
        test = evidence.tables(line)[1]
        for row in filter(test.columns.__contains__, rows):
            found = gain_parts(test["y"], test["ce"], test[row], test["p"]).loc["mse_p", "gain"]
            lines += [(line.task, line.seed, row, *part) for part in found.items()]
    return pd.DataFrame(lines, columns=["scenario", "seed", "row", "part", "gain"])


def main(arguments=None):
    """Write both tables and their records."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book maps", description=__doc__)
    parser.add_argument("results", nargs="?", default="results", help="what is kept with the book")
    results, command = parser.parse_args(arguments).results, "python -m probnb_book maps"
    keep(post_hoc(with_validation([results])), results, "maps", command)
    best, _ = photographs([results])
    keep(parts(pd.concat(best.values())), results, "gain-parts", command)
