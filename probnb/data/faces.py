"""Faces whose age sets the probability of an outcome: the inputs of the synthetic experiments.

Section 7.1 of the paper: a face carries its age z, the age sets p = psi(z), and the outcome is
one draw from Bernoulli(p). Without data at hand the faces are drawn; with UTKFace they are
photographs.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch

from .. import scenarios
from ..validation import check_choice, check_integer
from .base import ProbabilityData, Splits
from .drawn import VERSION, drawn_faces
from .utkface import read_utkface

__all__ = ["PAPER_SIZES", "load_faces"]

PAPER_SIZES = (16_641, 4_738, 2_329)
"""Training, validation and test images in the paper; any other total is cut in proportion."""

DRAWN = 4_500
"""How many faces are drawn by default: minutes of training on two cores."""


def load_faces(scenario, data_dir=None, size=32, n=None, seed=0, cache_dir=None):
    """Load faces with outcomes of one scenario, split into training, validation and test.

    Parameters
    ----------
    scenario : {"linear", "sigmoid", "centered", "skewed", "discrete"}
        How the age sets the probability; see `probnb.scenarios.probability`.
    data_dir : path-like, optional
        UTKFace: a folder of JPEGs or the ``.tar.gz`` as distributed. By default faces are drawn.
    size : int, default=32
        Height and width of the images in pixels, at least 8.
    n : int, optional
        How many images, at least 6: drawn faces by default 4,500, of UTKFace all. Fewer than all
        are a random sample.
    seed : int, default=0
        Seed of the drawn faces, of the outcomes and of the split.
    cache_dir : path-like, optional
        Where decoded photographs are kept; by default the environment variable
        ``PROBNB_CACHE``, else the user's cache folder.

    Returns
    -------
    Splits
        Inputs are uint8 of shape (n, 3, size, size), groups the ages in years (int64), outcomes
        and probabilities float32. ``source`` names the data down to checksum and seed;
        ``report`` counts images, and for UTKFace malformed names and files skipped.

    Raises
    ------
    ValueError
        If an argument is out of range, or `data_dir` has no readable image.
    FileNotFoundError
        If `data_dir` does not exist.

    Notes
    -----
    Liu et al. (2022), Section 7.1. The outcomes of an image depend on its place among the sorted
    file names, the scenario and the seed, and not on `n` or `size`.

    Examples
    --------
    >>> faces = load_faces("linear", n=50)
    >>> len(faces.train), len(faces.val), len(faces.test)
    (35, 10, 5)
    >>> faces.train.inputs.shape, faces.train.inputs.dtype
    (torch.Size([35, 3, 32, 32]), torch.uint8)
    """
    check_choice(scenario, scenarios.SCENARIOS, "scenario")
    size = check_integer(size, "size", minimum=8)
    seed = check_integer(seed, "seed", minimum=0)
    n = n if n is None else check_integer(n, "n", minimum=6)
    if data_dir is None:
        images, ages = drawn_faces(DRAWN if n is None else n, size=size, seed=seed)
        source, report = f"drawn-faces v{VERSION}", {}
    else:
        images, ages, checksum, report = read_utkface(data_dir, size, cache_dir)
        source = f"utkface sha256={checksum}"
    n = len(images) if n is None else n
    if not 6 <= n <= len(images):
        raise ValueError(f"n must be from 6 to the {len(images)} images of data_dir; got {n}.")
    p = scenarios.probability(ages, scenario)
    y = scenarios.draw_outcomes(p, np.random.SeedSequence([seed, zlib.crc32(scenario.encode())]))
    order = np.random.default_rng(seed).permutation(len(images))[:n]
    rows = np.split(order, split_points(n))
    train, val, test = (_take(images, ages, p, y, torch.from_numpy(r)) for r in rows)
    source = f"{source} scenario={scenario} size={size} n={n} seed={seed}"
    return Splits(train, val, test, source, report={"images": len(images), "used": n, **report})


def split_points(n):
    """Where to cut n images: the ends of training and validation, in the paper's proportions."""
    total, train, val = sum(PAPER_SIZES), PAPER_SIZES[0], PAPER_SIZES[1]
    return [round(n * train / total), round(n * (train + val) / total)]


def _take(images, ages, p, y, rows):
    def floats(values):
        return torch.as_tensor(values, dtype=torch.float32)[rows]

    return ProbabilityData(
        images[rows], floats(y), probabilities=floats(p), groups=torch.as_tensor(ages)[rows]
    )
