"""Tables of studies that are kept with the book: a few kilobytes of numbers each."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import filelock
import numpy as np
import pandas as pd
from scipy import stats

from ... import store
from ...experiment.provenance import machine
from ...scenarios import SCENARIOS
from .studies import settings_of

__all__ = ["against", "means", "paired", "read_study", "select", "write_study"]

ACROSS = ("beginning", "losses", "mark")
"""Studies that are about several scenarios."""

ENOUGH = 3
"""Seeds with which photographs come before any number of drawn faces."""

RUN = ["scenario", "data", "profile", "seed", "n", "row"]
"""What tells one line of a study from all others."""


def write_study(table, directory, **facts):
    """Add a study's lines to its table and record how they came about.

    Parameters
    ----------
    table : DataFrame
        From `probnb.chapters.ablations.study.run_study`, of any number of seeds.
    directory : path-like
        A folder of results; ``ablations/{study}.csv`` and ``ablations/{study}.json`` are written.
    **facts
        What the record says besides version, commit, date and processor.

    Returns
    -------
    pathlib.Path
        The table, in which these lines stand for older ones of the same run.
    """
    (name,) = table["study"].unique()
    path = Path(directory) / "ablations" / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(path.with_suffix(".lock")):  # the workflow runs several at a time
        old = read_study(directory, name)
        both = pd.concat([t for t in (old, table) if len(t)], ignore_index=True)
        both = both.drop_duplicates(RUN, keep="last").reset_index(drop=True)
        store.replace_file(path, lambda to: both.to_csv(to, index=False, float_format="%.6g"))
        record_path = path.with_suffix(".json")
        record = json.loads(record_path.read_text()) if record_path.exists() else {}
        for scenario, data, profile in table.groupby(["scenario", "data", "profile"]).groups:
            settings = {k: v for k, v in asdict(settings_of(profile)).items() if k != "grid"}
            record[f"{scenario}-{data.replace(' ', '-')}-{profile}"] = {
                "seeds": sorted(set(_of(both, scenario, data, profile)["seed"])),
                "settings": settings,
                **facts,
                **machine(),
            }
        text = json.dumps(record, indent=1, default=store.plain) + "\n"
        store.replace_file(record_path, lambda to: to.write_text(text))
    return path


def _of(table, scenario, data, profile):
    """The lines of one run."""
    run = (table["scenario"] == scenario) & (table["data"] == data)
    return table[run & (table["profile"] == profile)]


def read_study(folders, name):
    """Read a stored study.

    Parameters
    ----------
    folders : path-like, or list of them
        Folders of results; of two lines of the same run the first folder's counts.
    name : str
        Of the study.

    Returns
    -------
    DataFrame
        Empty where nothing is stored.
    """
    folders = folders if isinstance(folders, list | tuple) else [folders]
    paths = [Path(folder) / "ablations" / f"{name}.csv" for folder in folders]
    tables = [
        pd.read_csv(path, keep_default_na=False, na_values=[""]).fillna({"part": ""})
        for path in paths
        if path.exists()
    ]
    tables = [table for table in tables if len(table)]
    if not tables:
        return pd.DataFrame()
    both = pd.concat(tables, ignore_index=True).drop_duplicates(RUN)
    order = both["scenario"].map(list(SCENARIOS).index)  # the paper's
    return both.loc[order.sort_values(kind="stable").index].reset_index(drop=True)


def select(stored, live, name, drawn=False):
    """Return what there is of a study: what is kept with the book, else what this run trained.

    Parameters
    ----------
    stored, live : dict of str to DataFrame
        Tables by study.
    name : str
        Of the study.
    drawn : bool, default=False
        Whether photographs of faces do not count.

    Returns
    -------
    DataFrame
        What this run trained where nothing is stored of such faces, else the stored table; of
        several data and profiles (and scenarios, where a section is about one) photographs with
        three seeds or more, else those with the most seeds. Empty where there is nothing.
    """
    old, new = (tables.get(name) for tables in (stored, live))
    if old is None or not len(old) or (new is not None and not _is_stored(new, old)):
        old = new
    if drawn and old is not None and len(old):
        old = old[old["data"] != "utkface"]
    if old is None or not len(old):
        return pd.DataFrame()
    run = ["data", "profile"] if name in ACROSS else ["data", "profile", "scenario"]
    runs = old.groupby(run, sort=False)["seed"].nunique().reset_index()
    runs["photographs"] = (runs["data"] == "utkface") & (runs["seed"] >= ENOUGH)
    best = runs.sort_values(["photographs", "seed", "data"], kind="stable").iloc[-1]
    return old[(old[run] == best[run]).all(axis=1)].reset_index(drop=True)


def _is_stored(new, old):
    """Whether the stored table is about the same faces, profile and scenarios."""
    run = ["data", "profile", "scenario"]
    return set(map(tuple, new[run].values)) <= set(map(tuple, old[run].values))


def paired(table, metric="mse_p", base="ce", level=0.95):
    """Compare every row with one of them, seed by seed.

    Each seed has faces, outcomes, test rows and weights of its own, so that the spread of its
    differences holds all of these.

    Parameters
    ----------
    table : DataFrame
        Of one study; scenarios and sizes stay apart.
    metric : str, default="mse_p"
        Of which less is better.
    base : str, default="ce"
        The row to compare with.
    level : float, default=0.95
        Coverage of Student's interval for the mean difference.

    Returns
    -------
    DataFrame
        One line a scenario, size and row: ``label``, ``part``, ``x``, ``seeds``, ``value`` (mean
        over seeds), ``cost``, ``difference``, ``low``, ``high`` (NaN with one seed) and
        ``verdict``.
    """
    lines = []
    for (scenario, n, row), part in table.groupby(["scenario", "n", "row"], sort=False):
        own = table[(table["scenario"] == scenario) & (table["n"] == n) & (table["row"] == base)]
        both = part.set_index("seed")[metric] - own.set_index("seed")[metric]
        both = both.dropna()
        low, high = _interval(both.to_numpy(), level)
        first = part.iloc[0]
        lines.append(
            {
                "scenario": scenario,
                "n": n,
                "row": row,
                "label": first["label"],
                "part": first["part"],
                "x": first["x"],
                "seeds": part["seed"].nunique(),
                "value": part[metric].mean(),
                "cost": part["cost"].mean(),
                "difference": both.mean() if len(both) else np.nan,
                "low": low,
                "high": high,
                "verdict": _verdict(low, high) if row != base else "",
            }
        )
    return pd.DataFrame(lines)


def means(table, metric="mse_p", level=0.95):
    """Return mean and interval over seeds of each row itself, as `paired` names them."""
    result = paired(table, metric, "no row")
    ends = [
        _interval(part[metric].to_numpy(), level)
        for _, part in table.groupby(["scenario", "n", "row"], sort=False)
    ]
    return result.assign(low=[a for a, _ in ends], high=[b for _, b in ends])


def against(table, row, base, metric="mse_p", scenario=None):
    """Return one comparison of two rows as a Series, or None where one of them is missing."""
    if scenario is not None:
        table = table[table["scenario"] == scenario]
    if not {row, base} <= set(table["row"]):
        return None
    found = paired(table[table["row"].isin([row, base])], metric, base)
    return found[found["row"] == row].iloc[0]


def _interval(values, level):
    """Student's interval of a mean; NaN where one value says nothing of the spread."""
    k = len(values)
    if k < 2:
        return np.nan, np.nan
    reach = stats.t.ppf((1 + level) / 2, k - 1) * values.std(ddof=1) / np.sqrt(k)
    return values.mean() - reach, values.mean() + reach


def _verdict(low, high):
    if np.isnan(low):
        return "one seed"
    return "better" if high < 0 else "worse" if low > 0 else "not told apart"
