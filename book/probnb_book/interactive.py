"""Figures that answer: what a still picture shows, as data for the script of the built book.

Each function returns HTML to stand last in the cell that draws the still picture. On a page of the
book ``_static/moving.js`` draws the data in its place; anywhere else, and on paper, the still
picture is what is seen.
"""

import json

import numpy as np
from IPython.display import HTML
from scipy.special import logit, stdtrit

from probnb.experiment.results import on_test
from probnb.methods import METHODS

from . import evidence
from .results import histories, label
from .storage import read_results

ROWS = ("ce", "ce_overfit", "platt", "cape_bin", "ensemble", "resampled")
"""Rows whose stored predictions can be turned."""

GLANCE = ("ce_overfit", "ce_mean", "platt", "cape_bin", "ensemble", "resampled")
"""Rows whose errors stand beside the histories of a scenario."""


def figure(kind, alt, height, **data):
    """Return the data of a figure as HTML.

    Parameters
    ----------
    kind : {"reliability", "epochs", "scenarios", "seeds"}
        Who draws it in ``moving.js``.
    alt : str
        What it shows, for who does not see it.
    height : int
        Of the drawing, whose width is 730.
    **data
        What JSON can hold.
    """
    text = json.dumps({"kind": kind, "alt": alt, "height": height, **data}, separators=(",", ":"))
    text = text.replace("<", "\\u003c")  # nothing in it ends the element
    return HTML(f'<div class="moving"><script type="application/json">{text}</script></div>')


def _whole(values, scale):
    return np.round(scale * np.asarray(values, float)).astype(int).tolist()


def reliability(runs, bins=15):
    """Stored predictions on test rows: temperature, intercept and bins are the reader's.

    Parameters
    ----------
    runs : dict of str to probnb.experiment.results.StoredRun
        By scenario.
    bins : int, default=15
        Quantile bins at first.
    """
    scenarios = {}
    for name, run in runs.items():
        test = on_test(read_results(run).predictions)
        clipped = test[[r for r in ROWS if r in test]].clip(1e-9, 1 - 1e-9)
        scenarios[name.capitalize()] = {
            "y": "".join(map(str, test["y"])),
            "p": _whole(test["p"], 1e4),
            "logits": {row: _whole(logit(clipped[row]), 1e3) for row in clipped},
        }
    alt = (
        "Reliability diagram of stored predictions, turned by a temperature and an "
        "intercept, with the true probability of each test face; beside it ECE, Brier and MSE_p"
    )
    labels = {row: METHODS[row].label for row in ROWS}
    return figure("reliability", alt, 415, labels=labels, scenarios=scenarios, bins=bins)


def epochs(moves, scores, faces=500):
    """Predictions of training faces from epoch to epoch: `movements` and `scores` of the method.

    At most `faces` of them, evenly spaced over the rows.
    """
    groups = moves.groupby(["start", "targets", "epoch"], sort=False)
    first = next(iter(groups))[1]
    rows = np.linspace(0, len(first) - 1, min(faces, len(first))).astype(int)
    seen, errors = {}, {}
    for (start, targets, _), group in groups:
        at = seen.setdefault(start, {}).setdefault(targets, [])
        at.append(_whole(group["p_hat"].to_numpy()[rows], 1e3))
    for (start, targets), group in scores.groupby(["start", "targets"], sort=False):
        errors.setdefault(start, {})[targets] = group["MSE_p"].round(4).tolist()
    alt = (
        "True probability against prediction of training faces in three fine-tunings, "
        "epoch by epoch: on outcomes only, with calibration in every second epoch, in every epoch"
    )
    faces = {"y": "".join(map(str, first["y"].iloc[rows])), "p": _whole(first["p"].iloc[rows], 1e3)}
    return figure("epochs", alt, 290, moves=seen, errors=errors, **faces)


def scenarios(best):
    """Learning curves and the errors of rows: one scenario at a time."""
    parts = {name.capitalize(): {"curves": [], "rows": {}} for name in best}
    for (name, _, row), t in histories(best).groupby(["scenario", "training", "row"], sort=False):
        curve = {"fresh": row != "outcomes", "epoch": t["epoch"].tolist()}
        parts[name]["curves"].append(curve | {"error": (100 * t["mse_p"]).round(4).tolist()})
    for name, runs in best.items():
        errors = evidence.scores(runs, ["mse_p"]).groupby("method")["value"].agg(list)
        shown = {label(row): _whole(errors[row], 1e6) for row in GLANCE if row in errors}
        parts[name.capitalize()]["rows"] = {row: [v / 1e4 for v in e] for row, e in shown.items()}
    alt = (
        "Test error by epoch of every stored training of a scenario, on outcomes and "
        "on fresh outcomes, and beside it the error of each row of the table, a mark a seed"
    )
    return figure("scenarios", alt, 340, scenarios=parts)


def seeds(best, pairs):
    """Differences in MSE_p of pairs of rows, seed by seed: the reader says which seeds count."""
    found = {}
    for a, b in pairs:
        of = found.setdefault(f"{label(a)} less {label(b)}", {})
        for name, runs in best.items():
            values = [evidence.values_of(line, (a, b), "mse_p") for line in runs.itertuples()]
            values = [100 * (pair[0] - pair[1]) for pair in values if None not in pair]
            if len(values) > 2:
                of[name.capitalize()] = np.round(values, 5).tolist()
    found = {pair: of for pair, of in found.items() if of}
    longest = max((len(v) for of in found.values() for v in of.values()), default=1)
    t = [None, None, *stdtrit(np.arange(1, longest), 0.975).round(6)]
    alt = (
        "Difference of two rows in each scenario: every seed's own as a dot, and the mean of "
        "the seeds that count with its 95 % interval, or a hollow mark where one counts alone"
    )
    return figure("seeds", alt, 80 + 44 * len(best), pairs=found, t=t) if found else None
