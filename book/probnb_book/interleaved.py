"""Epochs between those on outcomes: what stands in them, and how many they are.

``python -m probnb_book train interleaved --data-dir UTKFace.tar.gz --seeds 0 1 2`` fine-tunes from
the same early-stopped network with calibration epochs in every second, third and fourth place, by
bins and by kernel, with two relatives whose targets look clean as well, and with outcomes alone;
`probnb_book.pause` compares them epoch by epoch.
"""

from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from probnb import store
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.run import run_jobs
from probnb.training.batches import device_type, precision_of
from probnb.training.cape import CAPE, Calibrated
from probnb.training.targets import Observed, Smoothed

from . import storage
from .data.faces import load_faces
from .pause import COLUMNS, CONTROL
from .scenarios import SCENARIOS

EPOCHS = 12
"""Divisible by every schedule: each ends with as many whole rounds."""

RATE = 0.01
"""At which outcomes are memorised, so that there is something to wait for; it stays as it is."""


@dataclass(frozen=True)
class Distilled:
    """The network's own predictions, as they are when the epoch begins: nothing is averaged."""

    def __call__(self, epoch, data, predict, seed):
        """Return the targets of `epoch`."""
        return predict().to(data.outcomes)


@dataclass(frozen=True)
class Interleaved:
    """Other targets in every m-th epoch, the first among them; outcomes in all others."""

    others: object
    every: int = 3

    def __call__(self, epoch, data, predict, seed):
        """Return the targets of `epoch`."""
        if (epoch - 1) % self.every:
            return data.outcomes
        return self.others(epoch, data, predict, seed)


def _cape(estimator, every):
    settings = CAPE["released"][estimator] | {"every": every, "phase": every - 1}
    return Calibrated(estimator, **settings, bins=5)


ROWS = {
    CONTROL: Observed(),
    **{f"cape_bin, m = {m}": _cape("bin", m) for m in (2, 3, 4)},
    **{f"cape_kernel, m = {m}": _cape("kernel", m) for m in (2, 3, 4)},
    "distilled, m = 3": Interleaved(Distilled()),
    "smoothed, m = 3": Interleaved(Smoothed(0.2)),
}
"""Targets of the fine-tunings by row; every schedule begins with its epoch beside the outcomes."""


def fine_tune(scenario, seed, data_dir=None, profile="cpu", fits="runs/fits", changes=None, **how):
    """Fine-tune every row from one early-stopped network.

    Parameters
    ----------
    scenario : str
        Of `probnb_book.scenarios.SCENARIOS`.
    seed : int
        Of data, weights and order.
    data_dir : path-like, optional
        UTKFace; faces are drawn without it.
    profile : str, default="cpu"
        Of `probnb.experiment.profiles.PROFILES`.
    fits : path-like, default="runs/fits"
        Where finished trainings are kept.
    changes : dict, optional
        Fields of the profile that are not its own, such as ``size`` and ``width``.
    **how
        For `probnb.experiment.run.run_jobs`.

    Returns
    -------
    DataFrame
        `probnb_book.pause.COLUMNS`, a line an epoch, 0 being the start.
    """
    settings = make_profile(profile, **(changes or {}))
    splits = load_faces(scenario, data_dir, settings.size, n=settings.images, seed=seed)
    planned = plan(["ce", "ce_finetuned"], settings, seed)
    start = planned["ce"][0]
    start = replace(start, recipe=replace(start.recipe, patience=settings.patience))
    tuned = planned["ce_finetuned"][0]
    recipe = replace(tuned.recipe, epochs=EPOCHS, learning_rate=RATE, schedule="constant")
    tuned = replace(tuned, start=start, recipe=recipe)
    jobs = {row: replace(tuned, targets=targets) for row, targets in ROWS.items()}
    found = run_jobs(jobs.values(), splits, fits, **how)
    facts = {"scenario": scenario, "size": settings.size, "seed": seed, "rate": RATE}
    tables = [
        pd.DataFrame(found[job].history).assign(
            **facts, row=row, bins=getattr(job.targets, "bins", None)
        )
        for row, job in jobs.items()
    ]
    table = pd.concat(tables, ignore_index=True)
    table["calibration"] = table["calibration"].fillna(0).astype(int)
    return table[COLUMNS]


def arguments(parser):
    """Add what this study takes beside the arguments of all."""
    parser.add_argument("--scenarios", nargs="+", default=["linear"], choices=list(SCENARIOS))
    parser.add_argument("--size", type=int, default=32, help="pixels; the profile's width at 32")
    parser.add_argument("--width", type=int, default=8)


def train(given):
    """Train, and keep each start's lines in the study ``pause`` as soon as there are all."""
    changes = {"size": given.size, "width": given.width}
    how = {"device": given.device, "workers": given.workers}
    facts = {**store.machine(), "precision": precision_of(device_type(given.device))}
    for seed, scenario in product(given.seeds or [0], given.scenarios):
        profile = given.profile or "cpu"
        table = fine_tune(
            scenario, seed, given.data_dir, profile, given.runs / "fits", changes, **how
        )
        data = "utkface" if given.data_dir else "drawn"
        record = {**facts, "scenario": scenario, "data": data, "profile": profile, "seed": seed}
        name = f"{scenario}-{data}-{given.size}-seed{seed}"
        storage.keep(given.results, "pause", {name: (record | changes, {"pause": table})})
