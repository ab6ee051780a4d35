"""Scenes from a dashboard camera, in the layout of YouTubeCrash and GTACrash (Kim et al., 2019).

``{train,test}/{accident,nonaccident}/<int>.jpg`` with ``<int>.json`` beside it, numbered through: a
frame of 710 x 400 pixels every 0.1 s, 20 files a scene. The JSON lists the vehicles in
``vehicleInfo``, each with a ``hashcode`` (its track), a box ``x, y, width, height`` and a
``label``: whether the car collides with it within the look-ahead, or null. A sample is one vehicle
in one frame. Whatever is set aside is counted and named.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
from PIL import Image

from ..store import key
from ..validation import check_choice, check_integer, check_number
from .base import ProbabilityData, Splits
from .image_cache import cache_folder

__all__ = ["DashcamInputs", "Frame", "decode", "follow", "load_scenes", "read_dashcam"]

FRAME = (710, 400)
"""Width and height of a frame; boxes are in its pixels."""
CROP = (100, 360)
"""Rows of the frame that a network sees."""
SIZE = (130, 355)
"""Height and width of what it sees in the paper."""
HISTORY = 3
"""Frames of a sample."""
LABELS = ("label", "adaptedLabel", "syntheticLabel")
"""Keys under which a label is found: YouTubeCrash's, then the two of GTACrash."""
KINDS = ("accident", "nonaccident")
BOX = ("x", "y", "width", "height")


@dataclass(frozen=True, eq=False)
class DashcamInputs:
    """Inputs of n samples, put together when they are asked for.

    A frame belongs to many samples, so what is kept is each frame once, and the boxes. Indexing
    gives another `DashcamInputs`; `numpy.asarray` gives pixels.

    Parameters
    ----------
    frames : ndarray of shape (m, 3, height, width)
        Decoded frames, uint8, usually memory-mapped.
    index : ndarray of shape (n, 3)
        Which frames a sample has, the latest first.
    boxes : ndarray of shape (n, 3, 4)
        x, y, width, height of its vehicle in those, in pixels of the 710 x 400 frame; zeros where
        there is no box.
    """

    frames: np.ndarray
    index: np.ndarray
    boxes: np.ndarray

    dtype = np.dtype("uint8")

    def __len__(self):
        return len(self.index)

    def __getitem__(self, rows):
        """Return some samples; the frames are shared, not copied."""
        return DashcamInputs(self.frames, self.index[rows], self.boxes[rows])

    @property
    def shape(self):
        """Samples, 12 channels, height, width."""
        return (len(self), 4 * HISTORY, *self.frames.shape[2:])

    def __array__(self, dtype=None, copy=None):
        """Three frames of RGB, then three masks, the latest first; uint8."""
        n, _, height, width = self.shape
        out = np.empty(self.shape, np.uint8)
        out[:, : 3 * HISTORY] = self.frames[self.index].reshape(n, -1, height, width)
        out[:, 3 * HISTORY :] = self.masks()
        return out if dtype is None else out.astype(dtype)

    def masks(self):
        """Return what each box covers of each pixel, 0 to 255; uint8 of shape (n, 3, h, w)."""
        height, width = self.frames.shape[2:]
        x, y, w, h = np.moveaxis(self.boxes, 2, 0)
        rows = _covered(y - CROP[0], h, CROP[1] - CROP[0], height)
        columns = _covered(x, w, FRAME[0], width)
        masks = rows[..., :, None] * columns[..., None, :]
        return (255 * masks + 0.5).astype(np.uint8)


def _covered(start, length, extent, pixels):
    """Share of each of some pixels, which together span `extent`, that an interval covers."""
    scale, edges = pixels / extent, np.arange(pixels, dtype=np.float32)
    low, high = (start * scale)[..., None], ((start + length) * scale)[..., None]
    return np.clip(np.minimum(high, edges + 1) - np.maximum(low, edges), 0, 1).astype(np.float32)


def read_dashcam(
    path,
    size=SIZE,
    label="label",
    scene_frames=20,
    look_ahead=18,
    val_fraction=0.28,
    seed=0,
    cache_dir=None,
):
    """Read scenes from a dashboard camera.

    Parameters
    ----------
    path : path-like
        The folder that holds ``train`` and ``test``, or one that holds it as ``YouTubeCrash``.
    size : tuple of int, default=(130, 355)
        Height and width to which rows 100 to 360 of a frame are resized, with antialiasing.
    label : {"label", "adaptedLabel", "syntheticLabel"}, default="label"
        Key of the labels: the last two are GTACrash's.
    scene_frames : int, default=20
        Consecutive numbers that are one scene, from the lowest of a folder.
    look_ahead : int, default=18
        Frames within which a collision counts, at 0.1 s. A scene of an accident ends with it, so
        only its last 18 frames have a label that is about the look-ahead.
    val_fraction : float, default=0.28
        Share of the training scenes that become the validation part, accidents and others alike,
        where there is no folder ``val``. The paper has 28 % of its samples there.
    seed : int, default=0
        Which scenes those are.
    cache_dir : path-like, optional
        Where decoded frames are kept; see `probnb.data.image_cache.cache_folder`.

    Returns
    -------
    Splits
        Inputs are `DashcamInputs`, 12 channels: RGB at t, t - 0.1 s and t - 0.2 s, then the mask of
        the vehicle's box in each (empty where it has none). ``groups`` are scenes, ``ids`` say
        part, kind, frame and hashcode. ``report`` counts ``frames``, vehicles that are
        ``unlabelled`` (null), labelled ones that are ``lost`` to a frame or a box that cannot be
        used, and those ``without_history``, and names under ``left out`` each file and box that
        was set aside with the reason.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist or has no folder ``train`` or ``test``.
    ValueError
        If a label is missing or neither true, false nor null, a number occurs twice, or a part has
        no sample.
    """
    size = tuple(check_integer(value, "size") for value in size)
    check_choice(label, LABELS, "label")
    check_integer(scene_frames, "scene_frames", minimum=HISTORY)
    check_integer(look_ahead, "look_ahead")
    check_number(val_fraction, "val_fraction", 0, 1, exclusive=True)
    root, left_out = _root(Path(path).expanduser()), []
    folders = [f"{part}/{kind}" for part in ("train", "val", "test") for kind in KINDS]
    found = {folder: _numbered(root, folder, left_out) for folder in folders}
    files = [file for numbers in found.values() for file in numbers.values()]
    if not files:
        raise ValueError(f"path must hold frames named <int>.jpg; {root} has none.")
    workers = joblib.Parallel(n_jobs=joblib.cpu_count(), prefer="threads")
    sums = workers(joblib.delayed(_checksum)(root, file) for file in files)
    settings = [*sums, *size, label, scene_frames, look_ahead]
    name = f"dashcam-{key({'frames': settings})}"

    def build(frames):
        problems = workers(
            joblib.delayed(decode)(file.read_bytes(), frames[i]) for i, file in enumerate(files)
        )
        rows, counts, place = [], {"unlabelled": 0, "lost": 0}, 0
        first = max(HISTORY - 1, scene_frames - look_ahead)
        for folder, numbers in found.items():
            scenes = {}
            for number, file in numbers.items():
                problem, vehicles = problems[place], None
                if problem is None:
                    problem, vehicles = _vehicles(file, f"{folder}/{number}", label, left_out)
                if problem:
                    left_out.append(f"{folder}/{number}: {problem}")
                start = min(numbers) + (number - min(numbers)) // scene_frames * scene_frames
                frame = Frame(f"{folder}/{number}", place, vehicles)
                scenes.setdefault(start, {})[number - start] = frame
                place += 1
            for start, frames_of in scenes.items():
                absent = sorted(set(range(scene_frames)) - set(frames_of))
                left_out.extend(f"{folder}/{start + k}: no such file" for k in absent)
                rows += follow(f"{folder}/{start}", frames_of, first, counts, left_out)
        return rows, {"frames": len(files), **counts, "left out": left_out}

    shape = (len(files), 3, *size)
    return load_scenes(cache_folder(cache_dir) / name, shape, build, val_fraction, seed)


class Frame(NamedTuple):
    """A frame: its name, its place among all, and its vehicles by hashcode.

    A vehicle is (box, label, probability), None where its box cannot be used. ``vehicles`` is None
    altogether where the frame cannot be used.
    """

    name: str
    place: int
    vehicles: dict | None


def follow(scene, frames, first, counts, left_out):
    """Return the samples of one scene: its labelled vehicles, each followed back in time.

    Parameters
    ----------
    scene : str
        Its name.
    frames : dict of int to Frame
        By place in the scene.
    first : int
        Place of the first frame that may have samples.
    counts : dict
        ``unlabelled`` and ``lost`` are counted on.
    left_out : list of str
        Takes the names of vehicles whose box is outside of what is seen.

    Returns
    -------
    list of tuple
        Scene, id, outcome, probability or NaN, then for three frames, the latest first, its place
        and the box (zeros where the vehicle has none).
    """
    rows = []
    for place, frame in sorted(frames.items()):
        for code, vehicle in (frame.vehicles or {}).items() if place >= first else ():
            if vehicle is not None and vehicle[1] is None:
                counts["unlabelled"] += 1
                continue
            past = [frames.get(place - back) for back in range(HISTORY)]
            usable = all(f is not None and f.vehicles is not None for f in past)
            trail = [f.vehicles.get(code, ((0,) * 4,)) for f in past] if usable else [None]
            if any(step is None for step in trail):
                counts["lost"] += 1
                continue
            box, label, probability = vehicle
            x, y, width, height = box
            if not (x < FRAME[0] and x + width > 0 and y < CROP[1] and y + height > CROP[0]):
                counts["lost"] += 1
                left_out.append(f"{frame.name}/{code}: its box is outside of the frame")
                continue
            steps = [(f.place, *step[0]) for f, step in zip(past, trail)]
            rows.append((scene, f"{frame.name}/{code}", label, probability, *sum(steps, ())))
    return rows


def load_scenes(folder, shape, build, val_fraction=0.28, seed=0, prefix=""):
    """Make the frames and samples of some scenes, or read them where they were made before.

    Parameters
    ----------
    folder : Path
        Where they are kept; it appears whole or not at all.
    shape : tuple of int
        Frames, 3, height, width.
    build : callable
        ``build(frames)`` fills an array of that shape and returns rows of `follow` and a report.
    val_fraction, seed
        See `read_dashcam`.
    prefix : str
        Put before groups and ids.

    Returns
    -------
    Splits
        See `read_dashcam`.
    """
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            frames = np.lib.format.open_memmap(temporary / "frames.npy", "w+", np.uint8, shape)
            rows, report = build(frames)
            frames.flush()
            names = ["scene", "id", "y", "p"]
            names += [f"{column}{k}" for k in range(HISTORY) for column in ("frame", *BOX)]
            table = pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names[3:], float))
            table.to_parquet(temporary / "samples.parquet")
            (temporary / "report.json").write_text(json.dumps(report))
            os.replace(temporary, folder)
        except OSError:
            if not folder.is_dir():  # somebody else was quicker, with the same files
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    table = pd.read_parquet(folder / "samples.parquet")
    report = json.loads((folder / "report.json").read_text())
    frames = np.load(folder / "frames.npy", mmap_mode="r")
    part = table["scene"].str.split("/").str[0]
    if not (part == "val").any():
        part = _give_away(table["scene"], part, val_fraction, seed)
    parts = {}
    for name in ("train", "val", "test"):
        rows = table[part == name]
        if rows.empty:
            raise ValueError(f"path must have labelled vehicles in every part; {name} has none.")
        trail = rows.iloc[:, 4:].to_numpy().reshape(len(rows), HISTORY, 1 + len(BOX))
        inputs = DashcamInputs(frames, trail[..., 0].astype(int), trail[..., 1:].astype("f4"))
        parts[name] = ProbabilityData(
            inputs,
            rows["y"].to_numpy(float),
            probabilities=None if rows["p"].isna().all() else rows["p"].to_numpy(),
            groups=(prefix + rows["scene"]).to_numpy(str),
            ids=(prefix + rows["id"]).to_numpy(str),
        )
        box = inputs.boxes.any(2).all(1)
        report["without_history"] = report.get("without_history", 0) + int((~box).sum())
    source = f"{folder.name}, {val_fraction:g} to choose with, seed {seed}"
    return Splits(**parts, source=source, report=report)


def decode(content, out):
    """Write one JPEG, cropped and resized, to `out`; return what is the matter, or None."""
    _, height, width = out.shape
    try:
        image = Image.open(io.BytesIO(content), formats=["JPEG"])
        whole = image.size == FRAME
        if not whole and image.size != SIZE[::-1]:  # the public code takes cut ones as well
            return (
                f"must be of {FRAME[0]} x {FRAME[1]} pixels, is of {image.width} x {image.height}"
            )
        if whole:  # the decoder's own halving, never below twice the size that is wanted
            image.draft("RGB", (2 * width, 2 * height * FRAME[1] // (CROP[1] - CROP[0])))
        image = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return f"cannot be read ({error})"
    rows = np.array(CROP) * image.height / FRAME[1] if whole else (0, image.height)
    box = (0, rows[0], image.width, rows[1])
    image = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
    out[:] = np.asarray(image).transpose(2, 0, 1)
    return None


def _root(path):
    for root in (path, path / "YouTubeCrash"):
        if (root / "train").is_dir() and (root / "test").is_dir():
            return root
    raise FileNotFoundError(
        f"path must be a folder that holds train and test, each with accident and nonaccident; "
        f"{str(path)!r} {'does not' if path.is_dir() else 'is no folder'}."
    )


def _numbered(root, folder, left_out):
    """The frames of a folder by number, in numerical order; other files are named."""
    found = {}
    for file in sorted((root / folder).iterdir()) if (root / folder).is_dir() else ():
        if file.suffix == ".jpg" and file.stem.isascii() and file.stem.isdigit():
            other = found.setdefault(int(file.stem), file)
            if other is not file:
                raise ValueError(
                    f"{root / folder} must hold each number once; got {other.name} and {file.name}."
                )
        elif file.suffix != ".json" or not file.with_suffix(".jpg").exists():
            left_out.append(f"{folder}/{file.name}: no frame")
    return dict(sorted(found.items()))


def _checksum(root, file):
    """Name and checksum of a frame and of what is said about it."""
    note = file.with_suffix(".json")
    content = hashlib.sha256(file.read_bytes() + (note.read_bytes() if note.exists() else b""))
    return f"{file.relative_to(root)} {content.hexdigest()}"


def _vehicles(file, name, label, left_out):
    """Read the JSON beside a frame: what is the matter with it or None, and its vehicles."""
    try:
        entries = json.loads(file.with_suffix(".json").read_bytes())["vehicleInfo"]
        entries = [(str(entry["hashcode"]), entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its JSON cannot be used ({type(error).__name__}: {error})", None
    vehicles = {}
    for code, entry in entries:
        try:
            box = tuple(float(entry[key]) for key in BOX)
        except (KeyError, TypeError, ValueError):
            box = (np.nan,) * 4
        usable = np.isfinite(box).all() and box[2] > 0 and box[3] > 0
        if not usable or code in vehicles:
            left_out.append(f"{name}/{code}: {'hashcode given twice' if usable else 'no box'}")
            vehicles[code] = None
            continue
        if label not in entry:
            there = ", ".join(known for known in LABELS if known in entry) or "none"
            raise ValueError(
                f"label must be a key of every vehicle; got {label!r}, {name} has {there}."
            )
        if (value := entry[label]) is not None and value not in (True, False):
            raise ValueError(f"{label} must be true, false or null; got {value!r} in {name}.")
        vehicles[code] = box, value, np.nan
    return None, vehicles


def _give_away(scenes, part, fraction, seed):
    """Give whole scenes to the validation part, the same share of accidents and of others."""
    rng, chosen = np.random.default_rng(seed), []
    for kind in KINDS:
        own = sorted(set(scenes[scenes.str.startswith(f"train/{kind}/")]))
        chosen += list(rng.permutation(own)[: round(fraction * len(own))])
    return part.where(~scenes.isin(chosen), "val")
