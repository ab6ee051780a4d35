"""What the chapter on your own images computes: test tables, a learning curve, the model kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ...experiment.keep import keep_models
from ...experiment.plan import plan
from ...experiment.results import collect
from ...experiment.run import run_jobs
from ...methods import METHODS
from ...metrics import bootstrap
from ...model import load_model, save_model

__all__ = ["judged", "keep_chosen", "learning_curve", "shortened"]

SHARES = (0.25, 0.5)
"""Shares of the training data at which plain cross entropy is trained again."""


def judged(kept, test):
    """Put the test predictions of the kept models into a table as the report reads it.

    Parameters
    ----------
    kept : dict of str to probnb.experiment.keep.Kept
        The models.
    test : probnb.data.ProbabilityData
        The test rows.

    Returns
    -------
    DataFrame
        Columns ``id``, ``y``, ``p``, ``group``, ``weight`` as far as known, and one a model,
        called as in the paper's tables.
    """
    columns = {"id": test.ids, "y": test.outcomes.cpu().numpy().astype(int)}
    for name, values in (("p", test.probabilities), ("weight", test.weights)):
        if values is not None:
            columns[name] = values.double().cpu().numpy()
    if test.groups is not None:
        columns["group"] = test.groups
    return pd.DataFrame(columns | {METHODS[n].label: one.test for n, one in kept.items()})


def shortened(splits, share, seed=0):
    """Return the same data with a share of its training rows; smaller shares are parts of larger.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    share : float
        In (0, 1); whole groups are kept or left out.
    seed : int, default=0
        Which rows.
    """
    train = splits.train
    labels = np.arange(len(train)) if train.groups is None else pd.factorize(train.groups)[0]
    rank = np.random.default_rng(seed).permutation(labels.max() + 1)
    rows = np.flatnonzero(rank[labels] < max(2, round(share * (labels.max() + 1))))
    return replace(
        splits, train=train.take(rows), source=f"{splits.source} share={share:g} of={seed}"
    )


def learning_curve(splits, kept, profile, directory, seed=0, replicates=1000, **options):
    """Train plain cross entropy on parts of the training data, and compare on the test data.

    Parameters
    ----------
    splits : probnb.data.Splits
        The data.
    kept : dict of str to Kept
        The models trained on all of it; ``"ce"`` is among them.
    profile : Profile
        As for the comparison.
    directory : path-like
        Where finished trainings are kept.
    seed : int, default=0
        Of the trainings, of the parts and of the bootstrap.
    replicates : int, default=1000
        Of the bootstrap.
    **options
        ``device``, ``devices``, ``retrain``: as `probnb.experiment.run.run_jobs` takes them.

    Returns
    -------
    points : DataFrame
        One line a size: ``rows``, test ``nll`` with a 95 % interval ``low``, ``high``.
    differences : DataFrame
        What twice the training rows changed (index ``"half"``), and what each kept row changes
        against plain cross entropy: ``difference`` of the NLL with ``low`` and ``high``.
    """
    predictions, rows = {}, []
    for share in SHARES:
        part = shortened(splits, share, seed)
        jobs = plan(["ce"], profile, seed)
        fits = run_jobs(jobs, part, directory, **options)
        less = keep_models(
            jobs, fits, part, collect(jobs, fits, part), device=options.get("device", "auto")
        )
        predictions[f"{share:g}"] = less["ce"].test
        rows.append(len(part.train))
    predictions["1"] = kept["ce"].test
    rows.append(len(splits.train))
    others = {name: one.test for name, one in kept.items() if name != "ce"}
    test = splits.test
    boot = bootstrap(
        test.outcomes.cpu().numpy(),
        pd.DataFrame(predictions | others),
        metrics=["nll"],
        groups=test.groups,
        weights=None if test.weights is None else test.weights.cpu().numpy(),
        replicates=replicates,
        seed=seed,
    )
    low, high = boot.interval()
    sizes = list(predictions)
    points = pd.DataFrame(
        {
            "rows": rows,
            "nll": boot.point.loc[sizes, "nll"].to_numpy(),
            "low": low.loc[sizes, "nll"].to_numpy(),
            "high": high.loc[sizes, "nll"].to_numpy(),
        }
    )
    pairs = {"half": ("1", "0.5")} | {name: (name, "1") for name in others}
    differences = {name: boot.difference(*pair).loc["nll"] for name, pair in pairs.items()}
    return points, pd.DataFrame(differences).T


def keep_chosen(folder, kept, choice, test, device="auto"):
    """Save the chosen model, read it back, and compare what it says with the report.

    Parameters
    ----------
    folder : path-like
        Where to.
    kept : dict of str to Kept
        The models.
    choice : DataFrame
        From `probnb.experiment.keep.choose_model`.
    test : probnb.data.ProbabilityData
        The test rows.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.

    Returns
    -------
    folder : pathlib.Path
        Where it is.
    name : str
        The row.
    largest : float
        The largest difference between its probabilities and those of the report.
    """
    name = choice.index[choice["chosen"]][0]
    folder = save_model(folder, kept[name].model)
    again = load_model(folder).predict(test, device)
    return folder, name, float(np.max(np.abs(again - kept[name].test)))
