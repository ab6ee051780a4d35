"""Scenes from a dashboard camera, in the layout of YouTubeCrash and GTACrash (Kim et al., 2019).

``{train,test}/{accident,nonaccident}/<int>.jpg`` with ``<int>.json`` beside it, numbered through: a
frame of 710 x 400 pixels every 0.1 s, 20 files a scene. The JSON lists the vehicles in
``vehicleInfo``, each with a ``hashcode`` (its track), a box ``x, y, width, height`` and a
``label``: whether the car collides with it within the look-ahead, or null. A sample is one vehicle
in one frame. What is set aside is counted; a file that cannot be used is an error that names it.
"""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from PIL import Image

from probnb.data.base import ProbabilityData, split
from probnb.images.files import cache_folder, checksum, list_files
from probnb.store import key, replace_file
from probnb.validation import check_choice, check_integer

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
        The folder that holds ``train`` and ``test``.
    size : tuple of int, default=(130, 355)
        Height and width to which rows 100 to 360 of a frame are resized, with antialiasing.
    label : {"label", "adaptedLabel", "syntheticLabel"}, default="label"
        Key of the labels: the last two are GTACrash's.
    seed : int, default=0
        Which training scenes, 28 % of accidents and of others alike, become the validation part
        where there is no folder ``val``; the paper has 28 % of its samples there.
    cache_dir : path-like, optional
        Where decoded frames are kept; see `probnb.images.files.cache_folder`.

    Returns
    -------
    Splits
        Inputs are `DashcamInputs`, 12 channels: RGB at t, t - 0.1 s and t - 0.2 s, then the mask of
        the vehicle's box in each (empty where it has none). ``groups`` are scenes, ``ids`` say
        part, kind, frame and hashcode. ``report`` counts ``frames``, what `follow` sets aside, and
        samples ``without_history``.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist or has no folder ``train`` or ``test``, or a frame has no JSON.
    ValueError
        If a frame or its JSON cannot be used, a label is missing or neither true, false nor null,
        or a part has no sample.
    """
    size = tuple(check_integer(value, "size") for value in size)
    check_choice(label, LABELS, "label")
    root = Path(path).expanduser()
    if not ((root / "train").is_dir() and (root / "test").is_dir()):
        raise FileNotFoundError(f"path must be a folder that holds train and test; got {path}.")
    files, rows, listing = [], [], list_files(root)
    for folder in (f"{part}/{kind}" for part in ("train", "val", "test") for kind in KINDS):
        found = {int(f.stem): f for f in (root / folder).glob("*.jpg") if f.stem.isdecimal()}
        for number in sorted(found):
            t = (number - min(found)) % SCENE
            rows.append((f"{folder}/{number - t}", t, f"{folder}/{number}", len(files)))
            files.append(found[number])
    if not files:
        raise ValueError(f"path must hold frames named <int>.jpg; {root} has none.")
    content = checksum(root, listing, [*listing.files])
    kept = cache_folder(cache_dir) / f"dashcam-{key({'frames': [content, *size, label]})}"

    def build(frames):
        read = joblib.Parallel(n_jobs=joblib.cpu_count(), prefer="threads")(
            joblib.delayed(_read)(*pair, label) for pair in zip(files, frames)
        )
        return follow(rows, [(frame, *one) for frame, own in enumerate(read) for one in own])

    return load_scenes(kept, (len(files), 3, *size), build, seed)


def follow(frames, vehicles):
    """Return the labelled vehicles of all frames, each followed back in time.

    Parameters
    ----------
    frames : list of tuple
        Scene, place in it, name, and row among all frames, in the order of the samples.
    vehicles : list of tuple
        Row of its frame, hashcode, x, y, width, height, label or None, and probability or NaN.

    Returns
    -------
    DataFrame
        Samples: ``scene``, ``id``, ``y``, ``p``, then for three frames, the latest first, its row
        and the box (zeros where the vehicle has none). ``attrs`` count vehicles from the third
        frame on that are ``unlabelled``, and labelled ones that are ``lost``: one of the three
        frames is not there, or its box is empty or out of sight.
    """
    frames = pd.DataFrame(frames, columns=["scene", "t", "name", "frame"])
    vehicles = pd.DataFrame(vehicles, columns=["frame", "code", *BOX, "label", "p"])
    seen = frames.merge(vehicles.astype(dict.fromkeys(BOX, float)), on="frame")
    if (twice := seen["name"][seen.duplicated(["frame", "code"])]).any():
        raise ValueError(
            f"hashcode must differ within a frame; two are the same in {twice.iloc[0]}"
        )
    boxed = seen[(seen["width"] > 0) & (seen["height"] > 0) & np.isfinite(seen[[*BOX]]).all(axis=1)]
    asked = seen[seen["t"] >= HISTORY - 1].drop(columns=["frame", *BOX])
    samples = labelled = asked[asked["label"].notna()]
    for k in range(HISTORY):
        frame, box = (table.assign(t=table["t"] + k) for table in (frames, boxed))
        frame = frame.set_index(["scene", "t"])[["frame"]].add_suffix(str(k))
        box = box.set_index(["scene", "t", "code"])[[*BOX]].add_suffix(str(k))
        samples = samples.join(frame, ["scene", "t"], "inner").join(box, ["scene", "t", "code"])
    x, y, width, height = (samples[f"{column}0"] for column in BOX)
    sight = (x < FRAME[0]) & (x + width > 0) & (y < CROP[1]) & (y + height > CROP[0])
    samples = samples[sight]
    report = {"unlabelled": len(asked) - len(labelled), "lost": len(labelled) - len(samples)}
    names = [f"{column}{k}" for k in range(HISTORY) for column in ("frame", *BOX)]
    samples = samples.assign(id=samples["name"] + "/" + samples["code"], y=samples["label"])
    samples = samples[["scene", "id", "y", "p", *names]].fillna(dict.fromkeys(names, 0))
    samples = samples.astype(dict.fromkeys(["y", "p", *names], float))
    samples.attrs = {"frames": len(frames), **report}
    return samples


def load_scenes(path, shape, build, seed=0, prefix=""):
    """Make the frames and samples of some scenes, or read them where they were made before.

    Parameters
    ----------
    path : Path
        Where they are kept, with ``.npy`` and ``.parquet`` added; whole or not at all.
    shape : tuple of int
        Frames, 3, height, width.
    build : callable
        ``build(frames)`` fills an array of that shape and returns what `follow` does.
    seed : int, default=0
        See `read_dashcam`.
    prefix : str
        Put before groups and ids.

    Returns
    -------
    Splits
        See `read_dashcam`.
    """
    pixels, samples = path.with_suffix(".npy"), path.with_suffix(".parquet")

    def write(temporary):
        frames = np.lib.format.open_memmap(temporary, "w+", np.uint8, shape)
        table = build(frames)
        frames.flush()
        replace_file(samples, table.to_parquet)

    if not (pixels.is_file() and samples.is_file()):
        replace_file(pixels, write)
    table, frames = pd.read_parquet(samples), np.load(pixels, mmap_mode="r")
    part = table["scene"].str.split("/").str[0]
    if not (part == "val").any():
        part = _give_away(table["scene"], part, seed)
    rows = {name: np.flatnonzero(part == name) for name in ("train", "val", "test")}
    if empty := [name for name in rows if not len(rows[name])]:
        raise ValueError(f"path must have labelled vehicles in every part; {empty[0]} has none.")
    trail = table.iloc[:, 4:].to_numpy().reshape(len(table), HISTORY, 1 + len(BOX))
    inputs = DashcamInputs(frames, trail[..., 0].astype(int), trail[..., 1:].astype("f4"))
    p = None if table["p"].isna().all() else table["p"].to_numpy()
    groups, ids = ((prefix + table[name]).to_numpy(str) for name in ("scene", "id"))
    data = ProbabilityData(inputs, table["y"].to_numpy(float), p, groups, ids=ids)
    report = {**table.attrs, "without_history": int((~inputs.boxes.any(2).all(1)).sum())}
    source = f"{path.name}, {VALIDATION:g} to choose with, seed {seed}"
    return split(data, rows, source, report=report)


def decode(content, out):
    """Write one JPEG, cropped and resized, to `out`."""
    image, (_, height, width) = Image.open(io.BytesIO(content), formats=["JPEG"]), out.shape
    if image.size != FRAME:
        raise ValueError("must be of {} x {} pixels, is of {} x {}".format(*FRAME, *image.size))
    # the decoder's own halving, never below twice the size that is wanted
    image.draft("RGB", (2 * width, 2 * height * FRAME[1] // (CROP[1] - CROP[0])))
    top, bottom = np.array(CROP) * image.height / FRAME[1]
    image = image.convert("RGB")
    image = image.resize((width, height), Image.Resampling.BILINEAR, (0, top, image.width, bottom))
    out[:] = np.asarray(image).transpose(2, 0, 1)


def _read(file, pixels, label):
    """Decode a frame; return the vehicles in the JSON beside it."""
    try:
        decode(file.read_bytes(), pixels)
        entries = json.loads(file.with_suffix(".json").read_bytes())["vehicleInfo"]
        vehicles = [
            (str(v["hashcode"]), *(float(v[key]) for key in BOX), v[label], np.nan) for v in entries
        ]
        if wrong := [v[-2] for v in vehicles if v[-2] not in (True, False, None)]:
            raise ValueError(f"{label} must be true, false or null, is {wrong[0]!r}")
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, SyntaxError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"path must hold frames and vehicles; {file}: {what}.") from None
    return vehicles


def _give_away(scenes, part, seed):
    """Give whole scenes to the validation part, the same share of accidents and of others."""
    rng, chosen = np.random.default_rng(seed), []
    for kind in KINDS:
        own = sorted(set(scenes[scenes.str.startswith(f"train/{kind}/")]))
        chosen += list(rng.permutation(own)[: round(VALIDATION * len(own))])
    return part.where(~scenes.isin(chosen), "val")
