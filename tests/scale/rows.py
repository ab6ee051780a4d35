"""Rows that the tests of an engine share."""

import gzip

import numpy as np
import pandas as pd

from probnb.report import read_predictions


def draw(n=400, seed=0):
    """Outcomes and predictions of them."""
    rng = np.random.default_rng(seed)
    q = rng.beta(2, 3, n)
    return pd.DataFrame({"y": (rng.random(n) < q).astype(int), "m": np.clip(q**1.2, 0, 1)})


def put(frame, path):
    """Write rows as the file's name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name.casefold()
    if ".p" in name:
        frame.to_parquet(path)
    else:
        text = frame.to_csv(index=False, sep="\t" if ".tsv" in name else ",").encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def large(path, *args, **settings):
    """Read by an engine."""
    return read_predictions(path, *args, engine="duckdb", memory="300MB", **settings)
