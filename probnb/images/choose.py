"""From the rows of a finished comparison to models: to judge them, choose one, and keep it."""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from ..calibrators import CALIBRATORS
from ..calibrators.base import cross_fit, cross_fit_folds
from ..experiment.results import chosen_jobs
from ..methods import METHODS
from ..metrics.differences import clustered_mean
from ..training.models import network
from .model import KeptModel, base_rate, map_input

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Kept:
    """A row as a model, with what it says of the validation and test data.

    Attributes
    ----------
    model : probnb.images.model.KeptModel
        Ready to be saved.
    logits : ndarray of shape (members, n, 2)
        Of the validation rows, before calibration.
    test : ndarray of shape (n,)
        Probabilities of the test rows, in full precision: what the saved model will say.
    """

    model: KeptModel
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
        How an image becomes an input; see `probnb.images.folder.load_images`.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.
    record : dict, optional
        What the models shall remember, such as the record of the stored run.

    Returns
    -------
    dict of str to Kept
        Rows that read the last epoch are left out: its weights are not stored.
    """
    channels, scale, shared, kept = splits.train.inputs.shape[1], splits.scale, {}, {}
    for name in jobs:
        method, chosen = METHODS[name], tuple(chosen_jobs(name, jobs, results))
        if method.epoch == "last":
            continue
        if chosen not in shared:
            spec, weights = chosen[0].network, tuple(fits[job].weights for job in chosen)
            bare = KeptModel(spec, weights, channels, scale, size=size, aspect=aspect)
            shared[chosen] = bare, bare.logits(splits.val, device), bare.logits(splits.test, device)
        model, val, test = shared[chosen]
        known = {"method": name, "label": method.label, "rate": base_rate(splits.val)}
        model = replace(model, record={**(record or {}), **known})
        if method.calibrator is not None:
            model = model.calibrated(CALIBRATORS[method.calibrator](), splits.val, val)
        kept[name] = Kept(model, val, model.probabilities(test))
    return kept


def choice_folds(val, seed=0):
    """Plan the folds on which calibrators are judged; it is known before anything is trained.

    Parameters
    ----------
    val : probnb.data.ProbabilityData
        The validation rows.
    seed : int, default=0
        Of the folds.

    Returns
    -------
    list of (ndarray, ndarray)
        Rows to fit to and to judge, at most five times, whole groups, both outcomes in each fit;
        fewer where there are few groups, and none where no division does it.
    """
    y, weights = val.numbers("outcomes", int), val.numbers("weights")
    heard = y if weights is None else np.where(weights > 0, y, np.nan)
    for folds in range(FOLDS, 1, -1):
        with suppress(ValueError):
            plan = cross_fit_folds(y, val.groups, folds, seed)
            if all(len({*heard[fit]} & {0, 1}) == 2 for fit, _ in plan):
                return plan
    return []


def choose_model(kept, val, seed=0):
    """Say which model to use, from validation data alone.

    The lowest negative log-likelihood decides; of the models that these data cannot tell from the
    best (the difference is less than its standard error), the plainest is taken. A calibrator is
    judged on folds that it was not fitted to, where `choice_folds` finds any.

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
        One line a model, best first: ``nll``, ``gap`` to the best and its standard error ``se``
        (infinite where there are fewer than five rows or groups), the number of ``networks``, and
        ``chosen``.
    """
    y, weights = val.numbers("outcomes", int), val.numbers("weights", float)
    folds, loss = choice_folds(val, seed), {}
    for name, one in kept.items():
        if one.model.calibrator is None or not folds:
            p = one.model.probabilities(one.logits)
        else:  # by one that has not seen the row
            p = cross_fit(one.model.calibrator, map_input(one.logits), y, weights, folds)
        p = np.clip(p, 1e-15, 1 - 1e-15)
        loss[name] = -np.where(y == 1, np.log(p), np.log1p(-p))
    nll = {name: np.average(values, weights=weights) for name, values in loss.items()}
    best, rows = min(nll, key=nll.get), {}
    for name in nll:
        se = clustered_mean(loss[name] - loss[best], weights, val.groups)[1]
        rows[name] = nll[name], nll[name] - nll[best], se, len(kept[name].model.members)
    table = pd.DataFrame.from_dict(rows, "index", columns=["nll", "gap", "se", "networks"])
    table["se"] = table["se"].fillna(np.inf)
    near = table.index[table["gap"] <= table["se"]]
    table["chosen"] = table.index == min(near, key=lambda name: (_plain(name, kept), nll[name]))
    return table.sort_values("nll", kind="stable")


def _plain(name, kept):
    """The plainer a row, the smaller: fewer networks, no calibrator, one stage, cross entropy."""
    method, networks = METHODS[name], len(kept[name].model.members)
    return networks, method.calibrator is not None, method.start is not None, method.loss != "ce"


def on_images(model, backbone, name):
    """Put a backbone under a model of its features, so that it takes images.

    Parameters
    ----------
    model : probnb.images.model.KeptModel
        Its networks are heads.
    backbone : probnb.pretrained.backbone.Backbone
        What the features come from; its weights are kept with each head.
    name : str
        What it is called.

    Returns
    -------
    probnb.images.model.KeptModel
        Calibrated as before.
    """
    body = {f"backbone.{k}": v for k, v in backbone.state_dict().items()}
    mean, deviation = (part[0] for part in model.scale)
    body |= {"norm.running_mean": mean, "norm.num_batches_tracked": torch.tensor(0)}
    body["norm.running_var"] = (deviation**2 - 1e-8).clamp(min=0)  # the 1e-8 is added to it again
    members = tuple(
        body | {f"head.{k}": v for k, v in weights.items()} for weights in model.members
    )
    settings = dict(model.network.settings)
    settings |= {k: v for k in ("size", "mirror") if (v := getattr(backbone, k))}
    spec = network("pretrained", backbone=name, layers=backbone.layers, **settings)
    return replace(model, network=spec, members=members, channels=3, scale=backbone.scale)
