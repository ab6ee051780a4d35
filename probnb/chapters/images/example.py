"""The chapter's example: drawn faces as a folder of JPEGs, with a table of outcomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from ... import scenarios, store
from ...data.drawn import drawn_faces

__all__ = ["example_for", "write_example"]


def write_example(folder, n=3000, size=48, seed=0, scenario="linear"):
    """Write drawn faces as JPEGs and their outcomes as ``outcomes.csv`` beside them.

    Parameters
    ----------
    folder : path-like
        Where to; images go to ``images`` in it. What is there already is left alone.
    n : int, default=3000
        How many faces.
    size : int, default=48
        Height and width in pixels.
    seed : int, default=0
        Seed of faces and outcomes.
    scenario : str, default="linear"
        How the age sets the probability; see `probnb.scenarios.probability`.

    Returns
    -------
    images, outcomes : pathlib.Path
        The folder and the table: columns ``path`` and ``y``; the probabilities stay untold, as
        in life.
    """
    images, outcomes = Path(folder) / "images", Path(folder) / "outcomes.csv"
    if outcomes.exists():  # written last
        return images, outcomes
    faces, ages = drawn_faces(n, size, seed)
    y = scenarios.draw_outcomes(scenarios.probability(ages, scenario), seed)
    names = [f"face-{i:05d}.jpg" for i in range(n)]
    images.mkdir(parents=True, exist_ok=True)
    for name, face in zip(names, faces.permute(0, 2, 3, 1).numpy()):
        Image.fromarray(face).save(images / name, quality=92)
    table = pd.DataFrame({"path": names, "y": np.asarray(y, int)})
    store.replace_file(outcomes, lambda path: table.to_csv(path, index=False))
    return images, outcomes


def example_for(profile, folder):
    """Write the example as large as a profile needs it: 3,000 faces, 300 for ``"smoke"``.

    Parameters
    ----------
    profile : str
        The profile's name.
    folder : path-like
        Where to; the number of faces is added to its name.
    """
    n = 300 if profile == "smoke" else 3000
    return write_example(f"{folder}-{n}", n)
