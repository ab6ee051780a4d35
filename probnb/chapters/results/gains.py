"""Where gains come from: repairs that anyone can have, or a better order of the rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ...calibrators.gain_parts import gain_parts
from ...methods import METHODS
from ...published import published
from ...scenarios import SCENARIOS

__all__ = ["authors_gains", "cape_gains", "gains", "saved_gains"]


def cape_gains(evidence, saved=None):
    """List CaPE's gain on CE beside the weakness of that baseline, print and runs alike.

    Parameters
    ----------
    evidence : Evidence
        Stored runs, all of them.
    saved : DataFrame or None
        From `authors_scores`.

    Returns
    -------
    DataFrame
        Columns ``source``, ``scenario``, ``weakness`` (MSE_p of CE less that of resampled labels),
        ``platt`` and ``cape`` (what each takes off CE's MSE_p), times 100.
    """
    lines = []
    printed = published(metric="mse_p").set_index(["scenario", "method"])["value"]
    for scenario in SCENARIOS:
        lines.append(_gain("published", scenario, printed[scenario]))
    if saved is not None:
        for scenario, rows in saved.groupby("scenario"):
            value = rows.set_index(["method", "repair"])["mse_p"] * 100
            plain = value.xs("none", level="repair").to_dict()
            lines.append(
                _gain("saved by the authors", scenario, plain | {"platt": value["ce", "platt"]})
            )
    for trained in evidence.runs:
        point = (100 * trained.bootstrap.point["mse_p"]).to_dict()
        if {"ce", "resampled", "platt", "cape_bin"} <= set(point):
            source = "here, photographs" if trained.photographs else "here, drawn faces"
            lines.append(_gain(source, trained.run.record["task"], point))
    return pd.DataFrame(lines)


def _gain(source, scenario, value):
    return {
        "source": source,
        "scenario": scenario,
        "weakness": value["ce"] - value["resampled"],
        "platt": value["ce"] - value["platt"],
        "cape": value["ce"] - value["cape_bin"],
    }


def gains(evidence, reference="ce", methods=None, metric="mse_p"):
    """Split what each row gains on a reference into bias, slope, monotone map and ranking.

    Parameters
    ----------
    evidence : Evidence
        Stored runs; the first of the best kind of each scenario is used.
    reference : str, default="ce"
        The row to improve on, for example ``"ce_finetuned"``, CaPE's control.
    methods : sequence of str, optional
        Rows; by default all that the run has.
    metric : str, default="mse_p"
        Which score.

    Returns
    -------
    DataFrame
        Index scenario and row; for each part of `gain_parts` its gain times 100, with the
        interval for ``ranking`` and ``total``.
    """
    rows = {}
    for scenario in SCENARIOS:
        trained = next(iter(evidence.best(scenario)), None)
        if trained is None or reference not in trained.methods:
            continue
        test = trained.test
        for method in methods or trained.methods:
            if method in trained.methods and method != reference:
                parts = gain_parts(test["y"], test[reference], test[method], test["p"])
                name = scenario.capitalize() + ("" if trained.photographs else " (drawn)")
                rows[name, METHODS[method].label] = _parts(parts.loc[metric])
    index = pd.MultiIndex.from_tuples(rows, names=["", f"gain on {METHODS[reference].label}"])
    return pd.DataFrame(list(rows.values()), index) if rows else pd.DataFrame()


def _parts(parts):
    out = {}
    for part, row in (100 * parts).iterrows():
        out[part] = f"{row['gain']:+.2f}"
        if part in ("ranking", "total"):
            out[part] += f" [{row['low']:+.2f}, {row['high']:+.2f}]"
    return out


def authors_gains(folder):
    """Split what the authors' saved CaPE gains on their saved early-stopped predictions.

    Parameters
    ----------
    folder : path-like
        Holds ``linear.csv`` and ``discrete.csv``.

    Returns
    -------
    DataFrame
        Columns ``scenario``, ``metric``, ``part``, ``gain``, ``low`` and ``high``, rounded to six
        digits.
    """
    tables = []
    for scenario in ("linear", "discrete"):
        rows = pd.read_csv(Path(folder) / f"{scenario}.csv")
        parts = gain_parts(rows["y"], rows["early_stop"], rows["cape_bin"], rows["p"])
        tables.append(parts.reset_index().assign(scenario=scenario))
    columns = ["scenario", "metric", "part", "gain", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns].round(6)


def saved_gains(table, metric="mse_p"):
    """Lay out the parts of the gain in the authors' saved predictions.

    Parameters
    ----------
    table : DataFrame or None
        From `authors_gains`.
    metric : str, default="mse_p"
        Which score.

    Returns
    -------
    DataFrame
        Times 100, one line a scenario.
    """
    if table is None:
        return pd.DataFrame([{"": "not computed yet"}])
    rows = table[table["metric"] == metric].set_index(["scenario", "part"])
    lines = {
        scenario.capitalize(): _parts(rows.loc[scenario][["gain", "low", "high"]])
        for scenario in dict.fromkeys(table["scenario"])
    }
    return pd.DataFrame(lines).T.rename_axis("CaPE (bin) on CE early-stop")
