"""Stored runs: those of the repository, and some that tests make up."""

import json

import numpy as np
import pandas as pd
import pytest

from probnb_book.claims import stored_runs
from probnb_book.results import photographs

from .pages import RESULTS

METHODS = ("resampled", "ce_overfit", "ce", "platt", "ensemble", "ce_finetuned", "cape_bin")


def store_run(folder, task="linear", data="utkface", seed=0, shifts=None, n=300, altered=False):
    """Write a run whose rows are the truth, shifted in log-odds by given amounts."""
    rng = np.random.default_rng([seed, len(task)])
    p = rng.uniform(0.1, 0.9, n)
    s = np.log(p / (1 - p))
    shifts = {"ce": 0.5, "ce_overfit": 3.0, "resampled": 0.0} | (shifts or {})
    rows = {m: 1 / (1 + np.exp(-s - shifts.get(m, 0.1))) for m in METHODS}
    table = pd.DataFrame(
        {"split": "test", "id": range(n), "y": (rng.random(n) < p).astype(int), "p": p, **rows}
    )
    fits = {m: "ce" if m in ("ce_overfit", "platt") else m for m in METHODS}
    cape, tuned = (np.isin(METHODS, of) for of in (["cape_bin"], ["ce_finetuned", "cape_bin"]))
    facts = {"val_ce": 0.6, "best_epoch": 2, "kept_start": False, "chosen": True}
    facts |= {"finetune_learning_rate": np.where(tuned, 0.01, np.nan)}
    facts |= {"bins": np.where(cape, 15.0, np.nan), "calibration_epochs": cape.astype(int)}
    chosen = pd.DataFrame({"method": METHODS, "fit": fits.values(), **facts})
    falls = [0.3, 0.1, 0.01, 0.02, 0.05]
    curve = {"epoch": range(5), "calibration": 0, "train_ce": [0.7, 0.65, 0.5, 0.2, 0.01]}
    curve |= {"val_ce": [0.7, 0.65, 0.6, 0.7, 0.9], "mse_p": [0.2, 0.04, 0.02, 0.05, 0.1]}
    curve |= {"kl_p": [0.4, 0.1, 0.05, 0.1, 0.2], "ks": falls, "ece": falls}
    each = [pd.DataFrame({"fit": f, "method": f, **curve}) for f in dict.fromkeys(fits.values())]
    epochs = pd.concat(each)
    run = folder / "synthetic" / f"{task}-{data}-cpu-seed{seed}{'-x' if altered else ''}"
    run.mkdir(parents=True)
    for name, value in (("predictions", table), ("chosen", chosen), ("epochs", epochs)):
        value.to_parquet(run / f"{name}.parquet", index=False)
    record = {"task": task, "data": data, "profile": "cpu", "seed": seed, "altered": altered}
    (run / "run.json").write_text(json.dumps(record | {"settings": {"size": 32}}))


@pytest.fixture
def store():
    return store_run


@pytest.fixture(scope="session")
def best():
    """The stored runs of the five scenarios."""
    return {name: runs for name, runs in stored_runs([RESULTS]).items() if name != "cifar10"}


@pytest.fixture(scope="session")
def strong():
    """Those that start from a pretrained network."""
    return stored_runs([RESULTS], pretrained=True)


@pytest.fixture(scope="session")
def larger():
    """Those at 48 pixels and twice the width, of two scenarios."""
    return photographs([RESULTS])[1]
