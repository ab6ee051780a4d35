"""What the chapter asks of its predictions: methods over seeds, people, and the paper's ratio.

``python -m probnb_book train cifar10 ferplus neutral --data-dir DATA`` trains what is not yet
trained, and keeps each seed in the study ``cifar10`` of stored results, the comparison over seeds,
which needs the votes, in the study ``votes``.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from probnb import store
from probnb.experiment.results import TABLES, on_test
from probnb.methods import METHODS
from probnb.metrics import brier, difference, holm
from probnb.metrics.votes import check_votes
from probnb.validation import check_choice

from .. import storage
from .tasks import DATA, INPUTS, load_task, task_settings, train_task

PEOPLE = (1, 3, 9)
"""Sizes of the second group of people."""


def compare_seeds(tables, reference="ce", replicates=1000):
    """Compare MSE_p of every method with that of one of them, over trainings on the same task.

    Parameters
    ----------
    tables : sequence of DataFrame
        For each seed the test rows: ``id``, a column for each method, and ``p``, or ``k`` and
        ``n`` of the votes that no training saw.
    reference : str, default="ce"
        The method to compare with.
    replicates : int, default=1000
        Resamples of the test rows, for one seed and for seeds that share them.

    Returns
    -------
    DataFrame
        Index: methods. Columns ``mean`` and ``spread`` (standard deviation) over seeds of MSE_p,
        and the fields of `probnb.metrics.Difference`.

    Notes
    -----
    Where seeds share test rows the variance between seeds may be estimated as 0, which three seeds
    do not show. That hardly matters at 95 %, but far out, where Holm's rule looks, it does: ``p``
    is then the larger of the rule's own and Student's over the seeds alone.
    """
    methods = [m for m in METHODS if all(m in table for table in tables)]
    check_choice(reference, methods, "reference")
    tables = [table.sort_values("id", ignore_index=True) for table in tables]
    terms = [np.stack([_squared_errors(t, m) for m in methods], axis=1) for t in tables]
    shared = len(tables) > 1 and all(t["id"].equals(tables[0]["id"]) for t in tables)
    base, n = methods.index(reference), len(tables[0])
    values, samples = np.stack([part.mean(axis=0) for part in terms]), None
    gaps = values - values[:, [base]]
    if shared or len(tables) == 1:
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), replicates) / n
        samples = np.stack([drawn @ part for part in terms], axis=1)
        samples -= samples[:, :, [base]]
    lines = {}
    for k, method in enumerate(methods):
        boot = None if samples is None else samples[:, :, k]
        found = difference(gaps[:, k], boot, n, shared)
        if shared:
            found = replace(found, p=np.maximum(found.p, difference(gaps[:, k]).p))
        spread = values[:, k].std(ddof=1) if len(tables) > 1 else np.nan
        lines[method] = {"mean": values[:, k].mean(), "spread": spread, **found.__dict__}
    return pd.DataFrame.from_dict(lines, orient="index")


def _squared_errors(table, method):
    """Terms of MSE_p by row; from votes estimates without a bias."""
    if "k" in table:
        votes = check_votes(table["k"].to_numpy(), table["n"].to_numpy())
        return votes.squared_error(table[method].to_numpy(float))
    return ((table[method] - table["p"]) ** 2).to_numpy(float)


def compared(tests):
    """Return everything that a task's page shows, as a table that holds no vote.

    Parameters
    ----------
    tests : sequence of DataFrame
        Test rows of each seed, as `compare_seeds` takes them, with ``y``.

    Returns
    -------
    DataFrame
        With ``metric`` ``"mse_p"``, for each ``reference`` and ``method`` what `compare_seeds`
        says, and MSE_p of so many other people (``reference``) as method ``people``; with
        ``metric`` ``"models"`` MSE_p (``mean``) and Brier score (``spread``) of each seed's
        methods.
    """
    rows = []
    for reference in ("ce", "ce_finetuned"):
        if all(reference in table for table in tests):
            table = compare_seeds(tests, reference).rename_axis("method").reset_index()
            rows.append(table.assign(metric="mse_p", reference=reference))
    for seed, table in enumerate(tests):
        models = [m for m in METHODS if m in table]
        of_seed = {"method": models, "metric": "models", "reference": str(seed)}
        of_seed["mean"] = [_squared_errors(table, m).mean() for m in models]
        of_seed["spread"] = [brier(table["y"], table[m]) for m in models]
        rows.append(pd.DataFrame(of_seed))
    if "k" in tests[0]:
        pooled = pd.concat(tests)
        variance = check_votes(pooled["k"], pooled["n"]).variance().mean()  # of one other person
        people = {"method": "people", "metric": "mse_p", "reference": [str(m) for m in PEOPLE]}
        rows.append(pd.DataFrame({**people, "mean": [variance / m for m in PEOPLE]}))
    return pd.concat(rows, ignore_index=True)


def publish(runs, folder):
    """Write what may be published of several seeds of one task.

    The votes of people are data of others and are not kept. What can only be computed with them
    is kept as numbers (`compared`); of predictions, those of test rows by row number.

    Parameters
    ----------
    runs : list of (Results, StoredRun)
        From `probnb_book.cifar10.tasks.train_task`, of the same task.
    folder : path-like
        Folder of results.

    Returns
    -------
    pathlib.Path
        The study of comparisons.
    """
    kept = {}
    for results, run in runs:
        table = on_test(results.predictions)
        table = table if "p" in table else table.drop(columns=["y", "k", "n"])
        methods = [c for c in table if c in METHODS]
        table = table.astype(dict.fromkeys(methods, np.float32))
        tables = {name: getattr(results, name) for name in TABLES} | {"predictions": table}
        kept[run.directory.name] = run.record, tables
    storage.keep(folder, "cifar10", kept)
    facts = {name: runs[0][1].record[name] for name in ("task", "data", "inputs")}
    record = {**facts, "runs": list(kept), **store.machine()}
    table = compared([on_test(results.predictions) for results, _ in runs])
    name = "-".join(facts.values())
    return storage.keep(folder, "votes", {name: (record, {"compared": table})})


def read_stored(folder, data=None, question=None, inputs="gradients"):
    """Read what is kept of the tasks: the differences over seeds, and what else `compared` has.

    Parameters
    ----------
    folder : path-like
        Folder of results.
    data, question : str, optional
        Only tasks of these data, and with this question.
    inputs : {"gradients", "pixels", "features"}, default="gradients"
        What the network saw.

    Returns
    -------
    DataFrame
        Columns ``data``, ``question`` and those of `compared`; empty where there is nothing.
    """
    found = []
    for name, record in storage.records(folder, "votes").items():
        task = {"data": record.get("data"), "question": record.get("task")}
        wanted = {"data": data or task["data"], "question": question or task["question"]}
        if task == wanted and record.get("inputs") == inputs:
            found.append(storage.read(folder, "votes", "compared", name).assign(**task))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def differences(stored, methods, reference="ce"):
    """Pick differences in MSE_p from a method, with Holm's p-values over all that are picked."""
    rows = stored.query("metric == 'mse_p' and reference == @reference != method")
    rows = rows[rows["method"].isin(methods)]
    labels = [METHODS[m].label for m in rows["method"]]
    return rows.assign(label=labels, holm=holm(rows["p"])).reset_index(drop=True)


def arguments(parser):
    """Say what a shell may ask for."""
    parser.add_argument("data", choices=list(DATA))
    parser.add_argument("questions", nargs="+")
    parser.add_argument("--inputs", choices=list(INPUTS), default="gradients")
    parser.add_argument("--methods", help='names of rows, as in "ce, platt"; all by default')
    parser.set_defaults(profile="cpu", seeds=[0, 1, 2])


def train(given):
    """Train tasks with several seeds and keep what may be published of them."""
    settings = task_settings(given.data, given.profile, given.inputs)
    how = {"methods": given.methods, "device": "cpu", "workers": given.workers}
    sizes = settings.images, settings.size
    for question in given.questions:
        runs = []
        for seed in given.seeds:
            task = load_task(given.data, question, given.data_dir, *sizes, seed, given.inputs)
            runs.append(train_task(task, settings, given.runs, given.profile, seed, **how))
            print(runs[-1][1].directory, flush=True)
        print(publish(runs, given.results))
