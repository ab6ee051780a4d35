"""From the rows of a finished comparison to models: to judge them, choose one, and keep it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict

from ..calibrators import CALIBRATORS
from ..data.base import channel_scale
from ..methods import METHODS
from ..model import Model, map_input
from .results import chosen_jobs

__all__ = ["Kept", "choose_model", "keep_models"]

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Kept:
    """A row as a model, with what it says of the validation and test data.

    Attributes
    ----------
    model : probnb.model.Model
        Ready to be saved.
    logits : ndarray of shape (members, n, 2)
        Of the validation rows, before calibration.
    test : ndarray of shape (n,)
        Probabilities of the test rows, in full precision: what the saved model will say.
    """

    model: Model
    logits: np.ndarray
    test: np.ndarray


def keep_models(jobs, fits, splits, results, size=None, aspect="crop", device="auto", record=None):
    """Make a model of each row whose weights are kept.

    Parameters
    ----------
    jobs : dict of str to list of Job
        From `probnb.experiment.plan.plan`.
    fits : dict of Job to Fit
        From `probnb.experiment.run.run_jobs`.
    splits : probnb.data.Splits
        The data that the fits saw.
    results : Results
        From `probnb.experiment.results.collect`.
    size, aspect : int, str
        How an image becomes an input; see `probnb.data.images.load_images`.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.
    record : dict, optional
        What the models shall remember, such as the record of the stored run.

    Returns
    -------
    dict of str to Kept
        Rows that read the last epoch are left out: its weights are not stored.
    """
    scale = splits.train.scale or channel_scale(splits.train.inputs)
    shared, kept = {}, {}
    for name in jobs:
        method, chosen = METHODS[name], tuple(chosen_jobs(name, jobs, results))
        if method.epoch == "last":
            continue
        if chosen not in shared:
            weights = tuple(fits[job].weights for job in chosen)
            bare = Model(
                chosen[0].network, weights, splits.train.inputs.shape[1], scale,
                size=size, aspect=aspect,
            )  # fmt: skip
            shared[chosen] = bare, bare.logits(splits.val, device), bare.logits(splits.test, device)
        model, val, test = shared[chosen]
        model = replace(model, record={**(record or {}), "method": name, "label": method.label})
        if method.calibrator is not None:
            model = model.calibrated(CALIBRATORS[method.calibrator](), splits.val, val)
        kept[name] = Kept(model, val, model.probabilities(test))
    return kept


def choose_model(kept, val, seed=0):
    """Say which model to use, from validation data alone.

    The lowest negative log-likelihood decides; of the models that these data cannot tell from the
    best (the difference is less than its standard error), the plainest is taken. A calibrator is
    judged on folds that it was not fitted to.

    Parameters
    ----------
    kept : dict of str to Kept
        From `keep_models`.
    val : probnb.data.ProbabilityData
        The validation rows.
    seed : int, default=0
        Of the folds.

    Returns
    -------
    DataFrame
        One line a model, best first: ``nll``, ``gap`` to the best and its standard error ``se``,
        the number of ``networks``, and ``chosen``.
    """
    y = val.outcomes.cpu().numpy().astype(int)
    weights = np.ones(len(y)) if val.weights is None else val.weights.double().cpu().numpy()
    loss = {}
    for name, one in kept.items():
        p = np.clip(_held_out(one, val, y, seed), 1e-15, 1 - 1e-15)
        loss[name] = -np.where(y == 1, np.log(p), np.log1p(-p))
    means = {name: np.average(values, weights=weights) for name, values in loss.items()}
    best = min(means, key=means.get)
    rows = []
    for name, values in loss.items():
        method, differs = METHODS[name], values - loss[best]
        rows.append(
            {
                "method": name,
                "nll": means[name],
                "gap": np.average(differs, weights=weights),
                "se": _standard_error(differs, weights, val.groups),
                "networks": len(kept[name].model.members),
                "plain": (
                    len(kept[name].model.members),
                    method.calibrator is not None,
                    method.start is not None,
                    method.loss != "ce",
                ),
            }
        )
    table = pd.DataFrame(rows).set_index("method")
    near = table[table["gap"] <= table["se"]]
    table["chosen"] = table.index == min(
        near.index, key=lambda m: (near["plain"][m], near["gap"][m])
    )
    return table.drop(columns="plain").sort_values("nll", kind="stable")


def _held_out(one, val, y, seed):
    """Validation predictions by a calibrator that has not seen the row."""
    if one.model.calibrator is None:
        return one.model.probabilities(one.logits)
    folds = min(FOLDS, *np.bincount(y, minlength=2))
    kind = StratifiedKFold if val.groups is None else StratifiedGroupKFold
    given = None if val.weights is None else {"sample_weight": val.weights.cpu().numpy()}
    return cross_val_predict(
        clone(one.model.calibrator),
        map_input(one.logits),
        y,
        groups=val.groups,
        cv=kind(max(folds, 2), shuffle=True, random_state=seed),
        method="predict_proba",
        params=given,
    )[:, 1]


def _standard_error(values, weights, groups):
    """Standard error of a weighted mean, of rows or of whole groups."""
    share = weights / weights.sum()
    terms = share * (values - share @ values)
    if groups is not None:
        codes = pd.factorize(groups)[0]
        terms = np.bincount(codes, terms)
    n = len(terms)
    return float(np.sqrt(n / max(n - 1, 1) * np.sum(terms**2)))
