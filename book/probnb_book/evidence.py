"""Stored runs, read once: the one table of evidence that every chapter looks up.

Runs that differ in their seed alone are of one *kind*; what two methods differ by is asked of a
kind, and answered by the one rule of `probnb.metrics.differences`.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

from probnb.experiment.profiles import GRID_FIELDS
from probnb.experiment.results import on_test
from probnb.methods import METHODS
from probnb.metrics import METRICS, Difference, bootstrap, difference
from probnb.metrics.sample import check_sample

from .published import published
from .storage import find_runs, read_results

KIND = ["chapter", "task", "data", "inputs", "profile", "variant", "size"]
"""Columns that runs of one kind share; `variant` names what was altered of a profile."""

REPLICATES = 1000


def find(folders, chapter=None, **wanted):
    """List the stored runs of the chapters.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results; need not exist. Of two runs of one name the first folder's counts.
    chapter : str, optional
        One chapter alone, such as ``"synthetic"``.
    **wanted
        What a run's record must say, for example ``task="linear"``.

    Returns
    -------
    DataFrame
        One line a run: the columns of `KIND`, ``seed``, ``name`` and ``run`` (the `StoredRun`).
    """
    lines = []
    for one in [chapter] if chapter else ["synthetic", "cifar10", "real_world"]:
        for run in find_runs(folders, one, **wanted):
            record, name = run.record, run.directory.name
            usual = "{task}-{data}-{profile}-seed{seed}".format(**record)
            known = {
                "inputs": record.get("inputs", ""),
                "variant": name.removeprefix(usual).lstrip("-"),
                "size": (record.get("settings") or {}).get("size") or 0,
            }
            lines.append(record | known | {"chapter": one, "name": name, "run": run})
    found = pd.DataFrame(lines, columns=[*KIND, "seed", "name", "run"])
    return found.drop_duplicates(["chapter", "name"], ignore_index=True)


def kinds(runs):
    """Group the lines of `find` into kinds, those with most seeds first.

    Parameters
    ----------
    runs : DataFrame
        From `find`.

    Returns
    -------
    list of DataFrame
        Each sorted by seed.
    """
    groups = [group.sort_values("seed") for _, group in runs.groupby(KIND, sort=False)]
    return sorted(groups, key=lambda group: -len(group))


@lru_cache(maxsize=512)
def _read(directory):
    results = read_results(directory)
    test = on_test(results.predictions)
    return results, test.sort_values("id", kind="stable", ignore_index=True)


def tables(line):
    """Return a run's `Results` and its predictions on test rows, read once."""
    return _read(line.run.directory)


def values(line, metric):
    """Return a metric of every method of a run, by name.

    ``"ce_mean"`` is the mean over all trainings of plain cross entropy in this run (the first, and
    an ensemble's other members), each at its kept epoch: the baseline that no luck of one training
    moves.
    """
    return dict(_values(line.run.directory, metric))


def baseline_of(row):
    """Return the row that a row is compared with: of a map or a fine-tuning, its own network."""
    method = METHODS[row]
    alone = method.members == 1 and method.calibrator
    return method.start or ("ce" if alone else "ce_mean")


@lru_cache(maxsize=4096)
def _values(directory, metric):
    results, test = _read(directory)
    if METRICS[metric].needs_truth and "p" not in test:
        return {}
    found = {name: _metric(directory, name, metric) for name in methods_of(test)}
    epochs = results.epochs[results.epochs["fit"].str.match("ce$|ensemble member=")]
    epochs = epochs[epochs["epoch"] > 0]  # before training there is nothing to keep
    if metric in epochs and len(epochs):  # at the epoch that validation keeps
        kept = epochs.groupby("fit", sort=False)["val_ce"].idxmin()
        found["ce_mean"] = float(np.mean(epochs.loc[kept, metric].to_numpy()))
    return found


def methods_of(test):
    """Return the methods among the columns of a table of predictions, in the order of tables."""
    return [name for name in METHODS if name in test]


def scores(runs, names=("mse_p", "brier")):
    """Return metrics of every method of every run in long form.

    Parameters
    ----------
    runs : DataFrame
        From `find`.
    names : sequence of str
        Metrics, from `METRICS`.

    Returns
    -------
    DataFrame
        The columns of `KIND`, ``seed``, ``method``, ``metric``, ``value``.
    """
    parts = [
        {**line._asdict(), "method": method, "metric": metric, "value": value}
        for line in runs.itertuples(index=False)
        for metric in names
        for method, value in values(line, metric).items()
    ]
    return pd.DataFrame(parts, columns=[*KIND, "seed", "name", "method", "metric", "value"])


def compare(runs, a, b, metric="mse_p", level=0.95):
    """Compare two methods over the runs of one kind.

    Parameters
    ----------
    runs : DataFrame
        Lines of `find` that differ in their seed alone. Those without one of the rows are left
        out.
    a, b : str
        Names of methods, columns of reference models, or ``"ce_mean"`` (see `values`).
    metric : str, default="mse_p"
        Name of a metric.
    level : float, default=0.95
        Coverage.

    Returns
    -------
    Difference or None
        Of a less b; None where no run has both.
    """
    found = [(line, values_of(line, (a, b), metric)) for line in runs.itertuples(index=False)]
    found = [(line, pair) for line, pair in found if None not in pair]
    if not found:
        return None
    gaps = [x - y for _, (x, y) in found]
    tests = [tables(line)[1] for line, _ in found]
    read = ["id", "p"] if METRICS[metric].needs_truth else ["id", "y"]  # MSE_p reads no outcome
    shared = len(found) > 1 and all(tests[0][read].equals(test[read]) for test in tests[1:])
    if len(found) > 1 and not shared:
        return difference(gaps, level=level)
    if "ce_mean" in (a, b):  # members' own predictions are not stored: no rows to resample
        return Difference(float(np.mean(gaps)), *[np.nan] * 4, len(gaps))
    boots = [_resampled(test, (a, b), metric) for test in tests]
    samples = np.stack([boot.samples[:, 0, 0] - boot.samples[:, 1, 0] for boot in boots], axis=1)
    return difference(gaps, samples, min(boot.units for boot in boots), shared, level)


def values_of(line, names, metric):
    """Return a metric of some rows or reference columns of a run, None for those it lacks."""
    known, test = values(line, metric), tables(line)[1]
    others = [name for name in names if name not in known and name in test]
    known |= {name: _metric(line.run.directory, name, metric) for name in others}
    return tuple(map(known.get, names))


def _metric(directory, name, metric):
    return METRICS[metric].of(_sample(directory, name))


@lru_cache(maxsize=2048)
def _sample(directory, name):
    """Test rows of a method, checked and sorted once for all metrics."""
    test = _read(directory)[1]
    return check_sample(test["y"], test[name], p=test.get("p"), weights=test.get("weight"))


def _given(test, metric):
    """What is known of the rows that a metric asks for."""
    truth = {"p": test["p"]} if METRICS[metric].needs_truth else {}
    return truth | ({"weights": test["weight"]} if "weight" in test else {})


def _resampled(test, pair, metric):
    columns = {str(k): test[name] for k, name in enumerate(pair)}
    given = _given(test, metric) | {"replicates": REPLICATES, "progress": False}
    return bootstrap(test["y"], columns, metrics=[metric], **given)


def comparison_table(result, scenario):
    """Put the measured table beside the paper's, both times 100.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Metrics of every method on the test data.
    scenario : str
        Scenario or task of the paper, for its numbers.

    Returns
    -------
    pandas.DataFrame
        One line a method; for each metric a column ``ours`` with one bootstrap standard deviation
        and, where the paper has numbers, a column ``paper``. Marked values are misprints or
        suspect; see `probnb_book.published.published`.
    """
    std, paper, columns = result.std(), published(scenario), {}
    for metric in result.point.columns:
        pairs = zip(100 * result.point[metric], 100 * std[metric])
        columns[METRICS[metric].label, "ours"] = [_spread(value, error) for value, error in pairs]
        printed = paper[paper["metric"] == metric].set_index("method")
        if len(printed):
            rows = printed.reindex(result.point.index).itertuples()
            columns[METRICS[metric].label, "paper"] = [
                "–" if np.isnan(row.value) else _spread(row.value, row.std) + "*" * bool(row.mark)
                for row in rows
            ]
    labels = [METHODS[name].label for name in result.point.index]
    return pd.DataFrame(columns, index=pd.Index(labels, name="×100"))


def _spread(value, error):
    gap = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
    return f"{value:.2f}" + ("" if np.isnan(error) else f"{gap}{error:.2f}")


def chosen_table(chosen):
    """Show what validation data chose in each row, without the rows that only post-process CE.

    Parameters
    ----------
    chosen : pandas.DataFrame
        As `probnb.experiment.results.Results.chosen`.

    Returns
    -------
    pandas.DataFrame
        One line a candidate that was trained for its row.
    """
    own = [m for m in chosen["method"].unique() if METHODS[m].calibrator is None]
    rows = chosen[chosen["method"].isin(own) & (chosen["method"] != "ce_overfit")]
    tuned = [c for c in GRID_FIELDS if c in rows and rows[c].notna().any()]
    return pd.DataFrame(
        {
            "tried": [_settings(row) for row in rows[tuned].to_dict("records")],
            "validation CE": [f"{value:.4f}" for value in rows["val_ce"]],
            "kept epoch": rows["best_epoch"].to_numpy(),
            "calibration epochs": rows["calibration_epochs"].to_numpy(),
            "chosen": np.where(rows["chosen"], "✓", ""),
        },
        index=pd.Index([METHODS[m].label for m in rows["method"]], name=""),
    )


def _settings(row):
    """Values that a candidate has, by name."""
    given = {name.removeprefix("finetune_"): value for name, value in row.items() if value == value}
    return ", ".join(f"{name} {value:g}" for name, value in given.items())
