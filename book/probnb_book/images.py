"""The page on your own images: the example that it trains on where you bring none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from probnb import store
from probnb.training.targets import draw_outcomes

from . import scenarios
from .data.drawn_faces import drawn_faces


def write_example(folder, n=3000, size=48, seed=0):
    """Write drawn faces as JPEGs, and their outcomes as ``outcomes.csv`` beside them.

    What is there already is left alone. The table has columns ``path`` and ``y``; the
    probabilities stay untold, as in life.
    """
    images, outcomes = Path(folder) / "images", Path(folder) / "outcomes.csv"
    if outcomes.exists():  # written last
        return images, outcomes
    faces, ages = drawn_faces(n, size, seed)
    y = draw_outcomes(scenarios.probability(ages, "linear"), seed)
    names = [f"face-{i:05d}.jpg" for i in range(n)]
    images.mkdir(parents=True, exist_ok=True)
    for name, face in zip(names, faces.permute(0, 2, 3, 1).numpy()):
        Image.fromarray(face).save(images / name, quality=92)
    table = pd.DataFrame({"path": names, "y": np.asarray(y, int)})
    store.replace_file(outcomes, lambda path: table.to_csv(path, index=False))
    return images, outcomes
