"""Scenes from a dashboard camera, in the layout of YouTubeCrash and GTACrash (Kim et al., 2019).

``{train,test}/{accident,nonaccident}/<int>.jpg`` with ``<int>.json`` beside it, numbered through: a
frame of 710 x 400 pixels every 0.1 s, 20 files a scene. The JSON lists the vehicles in
``vehicleInfo``, each with a ``hashcode`` (its track), a box ``x, y, width, height`` and a
``label``: whether the car collides with it within the look-ahead, or null. A sample is one vehicle
in one frame. Whatever is set aside is counted and named.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
from PIL import Image

from ..store import key
from ..validation import check_choice, check_integer
from .base import ProbabilityData, Splits
from .files import cache_folder, checksum, list_files, new_folder

__all__ = ["DashcamInputs", "Frame", "decode", "follow", "load_scenes", "read_dashcam"]

FRAME = (710, 400)
"""Width and height of a frame; boxes are in its pixels."""
CROP = (100, 360)
"""Rows of the frame that a network sees."""
SIZE = (130, 355)
"""Height and width of what it sees in the paper."""
HISTORY = 3
"""Frames of a sample."""
SCENE = 20
"""Consecutive numbers that are one scene, from the lowest of a folder."""
VALIDATION = 0.28
"""Share of the training scenes that validate, where there is no folder for it."""
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


def read_dashcam(path, size=SIZE, label="label", seed=0, cache_dir=None):
    """Read scenes from a dashboard camera.

    Parameters
    ----------
    path : path-like
        The folder that holds ``train`` and ``test``, or one that holds it as ``YouTubeCrash``.
    size : tuple of int, default=(130, 355)
        Height and width to which rows 100 to 360 of a frame are resized, with antialiasing.
    label : {"label", "adaptedLabel", "syntheticLabel"}, default="label"
        Key of the labels: the last two are GTACrash's.
    seed : int, default=0
        Which training scenes, 28 % of accidents and of others alike, become the validation part
        where there is no folder ``val``; the paper has 28 % of its samples there.
    cache_dir : path-like, optional
        Where decoded frames are kept; see `probnb.data.files.cache_folder`.

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
        If a label is missing or neither true, false nor null, or a part has no sample.
    """
    size = tuple(check_integer(value, "size") for value in size)
    check_choice(label, LABELS, "label")
    root, left_out = _root(Path(path).expanduser()), []
    folders = [f"{part}/{kind}" for part in ("train", "val", "test") for kind in KINDS]
    files = [file for folder in folders for file in _numbered(root, folder, left_out)]
    if not files:
        raise ValueError(f"path must hold frames named <int>.jpg; {root} has none.")
    listing = list_files(root)
    content = checksum(root, listing, [*listing.files])
    name = f"dashcam-{key({'frames': [content, *size, label]})}"

    def build(frames):
        problems = joblib.Parallel(n_jobs=joblib.cpu_count(), prefer="threads")(
            joblib.delayed(decode)(file.read_bytes(), pixels)
            for (*_, file), pixels in zip(files, frames)
        )
        rows, scenes, counts = [], {}, {"unlabelled": 0, "lost": 0}
        for place, (folder, lowest, file) in enumerate(files):
            number, name = int(file.stem), f"{folder}/{int(file.stem)}"
            vehicles = _vehicles(file, name, label, problems[place], left_out)
            within = (number - lowest) % SCENE
            scene = scenes.setdefault((folder, number - within), {})
            scene[within] = Frame(name, place, vehicles)
        for (folder, start), shown in scenes.items():
            absent = sorted(set(range(SCENE)) - set(shown))
            left_out.extend(f"{folder}/{start + k}: no such file" for k in absent)
            rows += follow(f"{folder}/{start}", shown, counts, left_out)
        return rows, {"frames": len(files), **counts, "left out": left_out}

    shape = (len(files), 3, *size)
    return load_scenes(cache_folder(cache_dir) / name, shape, build, seed)


class Frame(NamedTuple):
    """A frame: its name, its place among all, and its vehicles by hashcode.

    A vehicle is (box, label, probability), None where its box cannot be used. ``vehicles`` is None
    altogether where the frame cannot be used.
    """

    name: str
    place: int
    vehicles: dict | None


def follow(scene, frames, counts, left_out):
    """Return the samples of one scene: its labelled vehicles, each followed back in time.

    Parameters
    ----------
    scene : str
        Its name.
    frames : dict of int to Frame
        By place in the scene.
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
        for code, vehicle in (frame.vehicles or {}).items() if place >= HISTORY - 1 else ():
            if vehicle is not None and vehicle[1] is None:
                counts["unlabelled"] += 1
                continue
            past = [frames.get(place - back) for back in range(HISTORY)]
            usable = all(f is not None and f.vehicles is not None for f in past)
            trail = [f.vehicles.get(code, ((0,) * 4,)) for f in past] if usable else [None]
            if None in trail:
                counts["lost"] += 1
                continue
            (x, y, width, height), label, probability = vehicle
            if not (x < FRAME[0] and x + width > 0 and y < CROP[1] and y + height > CROP[0]):
                counts["lost"] += 1
                left_out.append(f"{frame.name}/{code}: its box is outside of the frame")
                continue
            steps = [(f.place, *step[0]) for f, step in zip(past, trail)]
            rows.append((scene, f"{frame.name}/{code}", label, probability, *sum(steps, ())))
    return rows


def load_scenes(folder, shape, build, seed=0, prefix=""):
    """Make the frames and samples of some scenes, or read them where they were made before.

    Parameters
    ----------
    folder : Path
        Where they are kept; it appears whole or not at all.
    shape : tuple of int
        Frames, 3, height, width.
    build : callable
        ``build(frames)`` fills an array of that shape and returns rows of `follow` and a report.
    seed : int, default=0
        See `read_dashcam`.
    prefix : str
        Put before groups and ids.

    Returns
    -------
    Splits
        See `read_dashcam`.
    """
    if not folder.is_dir():
        with new_folder(folder) as temporary:
            frames = np.lib.format.open_memmap(temporary / "frames.npy", "w+", np.uint8, shape)
            rows, report = build(frames)
            frames.flush()
            names = ["scene", "id", "y", "p"]
            names += [f"{column}{k}" for k in range(HISTORY) for column in ("frame", *BOX)]
            table = pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names[3:], float))
            table.to_parquet(temporary / "samples.parquet")
            (temporary / "report.json").write_text(json.dumps(report))
    table = pd.read_parquet(folder / "samples.parquet")
    report = json.loads((folder / "report.json").read_text())
    frames = np.load(folder / "frames.npy", mmap_mode="r")
    part = table["scene"].str.split("/").str[0]
    if not (part == "val").any():
        part = _give_away(table["scene"], part, seed)
    parts, report["without_history"] = {}, 0
    for name in ("train", "val", "test"):
        rows = table[part == name]
        if rows.empty:
            raise ValueError(f"path must have labelled vehicles in every part; {name} has none.")
        trail = rows.iloc[:, 4:].to_numpy().reshape(len(rows), HISTORY, 1 + len(BOX))
        inputs = DashcamInputs(frames, trail[..., 0].astype(int), trail[..., 1:].astype("f4"))
        report["without_history"] += int((~inputs.boxes.any(2).all(1)).sum())
        parts[name] = ProbabilityData(
            inputs,
            rows["y"].to_numpy(float),
            probabilities=None if rows["p"].isna().all() else rows["p"].to_numpy(),
            groups=(prefix + rows["scene"]).to_numpy(str),
            ids=(prefix + rows["id"]).to_numpy(str),
        )
    source = f"{folder.name}, {VALIDATION:g} to choose with, seed {seed}"
    return Splits(**parts, source=source, report=report)


def decode(content, out):
    """Write one JPEG, cropped and resized, to `out`; return what is the matter, or None."""
    _, height, width = out.shape
    try:
        image = Image.open(io.BytesIO(content), formats=["JPEG"])
        whole = image.size == FRAME
        if not whole and image.size != SIZE[::-1]:  # the public code takes cut ones as well
            return "must be of {} x {} pixels, is of {} x {}".format(*FRAME, *image.size)
        if whole:  # the decoder's own halving, never below twice the size that is wanted
            image.draft("RGB", (2 * width, 2 * height * FRAME[1] // (CROP[1] - CROP[0])))
        image = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return f"cannot be read ({error})"
    top, bottom = np.array(CROP) * image.height / FRAME[1] if whole else (0, image.height)
    box = (0, top, image.width, bottom)
    image = image.resize((width, height), Image.Resampling.BILINEAR, box)
    out[:] = np.asarray(image).transpose(2, 0, 1)
    return None


def _root(path):
    for root in (path, path / "YouTubeCrash"):
        if (root / "train").is_dir() and (root / "test").is_dir():
            return root
    state = "does not" if path.is_dir() else "is no folder"
    raise FileNotFoundError(f"path must be a folder that holds train and test; {path} {state}.")


def _numbered(root, folder, left_out):
    """Folder, lowest number and file of the frames of a folder, in the order of their numbers."""
    frames = {}
    for file in sorted((root / folder).glob("*")):
        if re.fullmatch(r"\d+\.jpg", file.name, re.ASCII):
            frames[int(file.stem)] = file
        elif file.suffix != ".json" or not file.with_suffix(".jpg").exists():
            left_out.append(f"{folder}/{file.name}: no frame")
    return [(folder, min(frames), frames[number]) for number in sorted(frames)]


def _vehicles(file, name, label, problem, left_out):
    """Read the vehicles in the JSON beside a frame; None where one of the two cannot be used."""
    try:
        if problem:
            raise ValueError(problem)
        entries = json.loads(file.with_suffix(".json").read_bytes())["vehicleInfo"]
        entries = [(str(entry["hashcode"]), entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = problem or f"its JSON cannot be used ({type(error).__name__}: {error})"
        left_out.append(f"{name}: {what}")
        return None
    vehicles = {}
    for code, entry in entries:
        try:
            box = tuple(float(entry[key]) for key in BOX)
        except (KeyError, TypeError, ValueError):
            box = (np.nan,) * 4
        if code in vehicles or not (np.isfinite(box).all() and min(box[2:]) > 0):
            left_out.append(f"{name}/{code}: {'given twice' if code in vehicles else 'no box'}")
            vehicles[code] = None
            continue
        value = entry.get(label, "not there")
        if value not in (True, False, None):
            raise ValueError(
                f"label must name what is true, false or null in each vehicle; got {label!r}, "
                f"which is {value!r} in {name} among {', '.join(entry)}."
            )
        vehicles[code] = box, value, np.nan
    return vehicles


def _give_away(scenes, part, seed):
    """Give whole scenes to the validation part, the same share of accidents and of others."""
    rng, chosen = np.random.default_rng(seed), []
    for kind in KINDS:
        own = sorted(set(scenes[scenes.str.startswith(f"train/{kind}/")]))
        chosen += list(rng.permutation(own)[: round(VALIDATION * len(own))])
    return part.where(~scenes.isin(chosen), "val")
