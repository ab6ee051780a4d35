"""Simulated dashboard-camera scenes on disk, in the layout that `probnb.data.dashcam` reads.

They stand in for real frames where none are at hand, and have what those cannot have: the
probability of each collision. See `probnb.data.traffic_model` for the traffic and
`probnb.data.traffic_drawing` for the pictures.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np

from ..store import key
from ..validation import check_integer
from .dashcam import SIZE, cache_folder, read_dashcam
from .dashcam_layout import HISTORY
from .traffic_drawing import boxes_of, draw_frame, look_of, metres
from .traffic_model import SCENE, collision_probability, simulate

__all__ = ["VERSION", "traffic", "write_traffic"]

VERSION = 1
"""Raised whenever the same seed would give other files: part of the key of finished work."""

QUALITY = 75


def traffic(scenes=(420, 200), size=SIZE, every=3, continuations=400, seed=0, cache_dir=None):
    """Read simulated scenes, drawing them first where they are not there yet.

    Parameters
    ----------
    scenes : tuple of int, default=(420, 200)
        Scenes of the training folder, 28 % of which become the validation part, and of the test
        folder.
    size : tuple of int, default=(130, 355)
        Height and width of the inputs.
    every, continuations, seed : int
        See `write_traffic`.
    cache_dir : path-like, optional
        Where files and decoded frames are kept: by default as for
        `probnb.data.utkface.read_utkface`.

    Returns
    -------
    Splits
        As `probnb.data.dashcam.read_dashcam`, with ``probabilities``, and with the seed in
        ``groups`` and ``ids``; ``report`` has the mean squared Monte Carlo error of those of the
        test part as ``simulation_error``.
    """
    settings = {"scenes": list(scenes), "every": every, "continuations": continuations}
    name = f"traffic-v{VERSION}-{key(settings | {'seed': seed})}"
    folder = cache_folder(cache_dir) / name
    if not folder.is_dir():
        write_traffic(folder, scenes, every, continuations, seed)
    splits = read_dashcam(folder, size, seed=seed, cache_dir=cache_dir)
    parts = {  # scenes of two seeds are not the same scene, though files have the same names
        part: replace(
            data,
            groups=[f"seed{seed}/{group}" for group in data.groups],
            ids=[f"seed{seed}/{row}" for row in data.ids],
        )
        for part, data in splits.parts().items()
    }
    splits = replace(splits, **parts)
    p = splits.test.probabilities.double()
    splits.report["simulation_error"] = float((p * (1 - p)).mean() / continuations)
    return splits


def write_traffic(path, scenes=(420, 200), every=3, continuations=400, seed=0):
    """Simulate, draw and write scenes as ``{train,test}/{accident,nonaccident}/<int>.jpg`` + json.

    Parameters
    ----------
    path : path-like
        A folder that does not exist yet; it appears whole or not at all.
    scenes : tuple of int, default=(420, 200)
        Scenes of the training and of the test folder, 20 frames each. A scene is filed under
        ``accident`` if the car collides in it or within 1.8 s of its end.
    every : int, default=3
        Every how many frames vehicles have a label, from the third on; null in the frames between,
        which then show no sample twice.
    continuations : int, default=400
        Futures drawn for each probability.
    seed : int, default=0
        The same seed writes the same scenes.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    FileExistsError
        If there is something at `path`.
    ValueError
        If a number is too small.

    Notes
    -----
    Beside what the public layout has, a vehicle with a label has its ``probability`` and the
    Monte Carlo ``standardError`` of that. After a collision the picture stands still and labels
    are null: nobody is at risk any more.
    """
    path = Path(path).expanduser()
    if path.exists():
        raise FileExistsError(f"path must not exist yet; {path} does.")
    counts = [check_integer(n, "scenes") for n in scenes]
    check_integer(every, "every"), check_integer(seed, "seed", minimum=0)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        parts = np.random.SeedSequence(seed).spawn(len(counts))
        for part, n, seeds in zip(("train", "test"), counts, parts, strict=True):
            _write_part(temporary / part, n, every, continuations, seeds)
        try:
            os.replace(temporary, path)
        except OSError:  # somebody else was quicker, with the same files
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return path


def _write_part(folder, n, every, continuations, seeds):
    history, future, looks = seeds.spawn(3)
    scenes = simulate(n, history)
    odds = {
        t: collision_probability(scenes.worlds[t], continuations, child)
        for t, child in zip(range(HISTORY - 1, SCENE, every), future.spawn(SCENE))
    }
    accident = scenes.outcomes.any(axis=(0, 2))
    place = np.where(accident, np.cumsum(accident), np.cumsum(~accident)) - 1
    kinds = np.where(accident, "accident", "nonaccident")
    for kind in ("accident", "nonaccident"):
        (folder / kind).mkdir(parents=True)
    joblib.Parallel(n_jobs=joblib.cpu_count(), prefer="threads")(
        joblib.delayed(_write_scene)(
            folder / kinds[i], int(place[i]) * SCENE, i, scenes, odds, child
        )
        for i, child in enumerate(looks.spawn(n))
    )


def _write_scene(folder, number, i, scenes, odds, seeds):
    """Write the frames of scene `i` as `number` and the numbers after it."""
    rng = np.random.default_rng(seeds)
    worlds = [world.take([i]) for world in scenes.worlds]
    end = next((t for t, world in enumerate(worlds) if world.crashed[0]), SCENE)
    look = look_of(worlds[0].gap.shape[1], rng)
    codes = rng.integers(1, 2**31, len(look.paint)).tolist()
    travelled = metres(worlds)
    for t in range(SCENE):
        shown = min(t, max(end - 1, 0))
        boxes, seen = boxes_of(worlds[shown], look)
        vehicles = []
        for k in np.flatnonzero(seen):
            vehicle = {"hashcode": codes[k]}
            vehicle |= dict(zip(("x", "y", "width", "height"), boxes[k].tolist()))
            if t in odds and t < end:
                p, error = (float(value[i, k]) for value in odds[t])
                vehicle |= {"label": bool(scenes.outcomes[t, i, k])}
                vehicle |= {"probability": p, "standardError": error}
            vehicles.append({"label": None, **vehicle})
        image = draw_frame(worlds[shown], look, travelled[shown], shown)
        image.save(folder / f"{number + t}.jpg", quality=QUALITY)
        (folder / f"{number + t}.json").write_text(json.dumps({"vehicleInfo": vehicles}))
