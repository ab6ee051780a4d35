"""Where the error comes from: noise of training, of labels, too few faces, and the rest.

``python -m probnb_book train budget --data-dir UTKFace.tar.gz --seeds 0 1 2`` trains on outcomes,
on the mean of several labels a face and on p itself, on all faces and on fewer. What training on p
itself leaves, no label can repair, and what two such trainings disagree about, averaging can.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from probnb import store
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.run import run_jobs
from probnb.pretrained.features import features_of
from probnb.training.batches import device_type, precision_of, probabilities

from . import storage
from .data.faces import load_faces
from .scenarios import SCENARIOS

CELLS = [(labels, fewer) for fewer in (8, 4, 2, 1) for labels in (1, 4, 0)]
"""Labels a face, 0 for p itself, and one face of how many, for logistic regression on features.

From random weights only p itself, on all faces: with one label stopping early is stored elsewhere.
"""


@dataclass(frozen=True)
class Told:
    """The mean of some labels of each face, or with none p itself; the same in every epoch.

    A label belongs to a face, by its id, whatever other faces are there.
    """

    labels: int
    seed: int

    def __call__(self, epoch, data, predict, seed):
        """Return the targets of `data`."""
        if not self.labels:
            return data.probabilities
        ids = np.asarray(data.ids)
        u = np.random.default_rng([self.seed, 1]).random((ids.max() + 1, self.labels))
        p = data.probabilities.cpu().numpy()
        return data.outcomes.new_tensor((u[ids] < p[:, None]).mean(1))


def spend(scenario, seed, data_dir=None, profile="features", fits="runs/fits", **how):
    """Train the cells of one scenario and seed.

    Parameters
    ----------
    scenario, seed : str, int
        Of faces and outcomes.
    data_dir : path-like, optional
        UTKFace; faces are drawn without it.
    profile : str, default="features"
        Of `probnb.experiment.profiles.PROFILES`: logistic regression where it has a backbone, or
        two networks from random weights, to see what they disagree about.
    fits : path-like, default="runs/fits"
        Where finished trainings and features are kept.
    **how
        For `probnb.experiment.run.run_jobs`.

    Returns
    -------
    DataFrame
        A line a cell: ``scenario``, ``seed``, ``profile``, ``labels``, ``faces``, ``epochs``,
        ``best_epoch``, ``mse_p`` (the mean over trainings), ``noise`` (V, from two) and
        ``cpu_seconds``.
    """
    settings = make_profile(profile)
    row, cells = ("logistic", CELLS) if settings.frozen else ("ensemble", [(0, 1)])
    splits = load_faces(scenario, data_dir, settings.size, n=settings.images, seed=seed)
    splits = features_of(splits, settings, fits)
    planned, lines = plan([row], settings, seed)[row][:2], []
    for labels, fewer in cells:
        count = len(splits.train) // fewer
        few = replace(splits.train, scale=splits.scale).take(np.arange(count))
        jobs = [replace(job, targets=Told(labels, seed)) for job in planned]
        found = run_jobs(jobs, replace(splits, train=few), fits, **how)
        fitted, p = list(found.values()), splits.test.numbers("probabilities", float)
        seen = [probabilities(one.logits["best_test"].double()).numpy() for one in fitted]
        lines.append(
            {
                "scenario": scenario,
                "seed": seed,
                "profile": profile,
                "labels": labels,
                "faces": count,
                "epochs": len(fitted[0].history) - 1,
                "best_epoch": fitted[0].best_epoch,
                "mse_p": float(np.mean([(p_hat - p) ** 2 for p_hat in seen])),
                "noise": float(np.mean((seen[0] - seen[-1]) ** 2) / 2),
                "cpu_seconds": sum(e.get("cpu_seconds", 0) for f in fitted for e in f.history),
            }
        )
    return pd.DataFrame(lines)


def arguments(parser):
    """Add what this study takes beside the arguments of all."""
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS))


def train(given):
    """Train, and keep each scenario and seed in the study ``budget`` as soon as it is done."""
    profile, how = given.profile or "features", {"device": given.device, "workers": given.workers}
    facts = {**store.machine(), "precision": precision_of(device_type(given.device))}
    for seed, scenario in product(given.seeds or [0], given.scenarios):
        table = spend(scenario, seed, given.data_dir, profile, given.runs / "fits", **how)
        data = "utkface" if given.data_dir else "drawn"
        record = {**facts, "scenario": scenario, "data": data, "profile": profile, "seed": seed}
        name = f"{scenario}-{data}-{profile}-seed{seed}"
        storage.keep(given.results, "budget", {name: (record, {"budget": table})})
