"""Scenes from a dashboard camera, in the layout of YouTubeCrash and GTACrash (Kim et al., 2019).

``{train,test}/{accident,nonaccident}/<int>.jpg`` with ``<int>.json`` beside it, a frame of
710 x 400 pixels every 0.1 s, 20 files a scene; the JSON lists the vehicles in ``vehicleInfo``, each
with a ``hashcode`` (its track), a box ``x, y, width, height`` and a ``label``: whether the car
collides with it within the look-ahead, or null. A sample is one vehicle in one frame.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from PIL import Image

from ..store import key, replace_file
from ..validation import check_choice, check_integer, check_number
from .base import ProbabilityData, Splits
from .dashcam_layout import CROP, FRAME, HISTORY, LABELS, find_frames, samples_of

__all__ = ["DashcamInputs", "cache_folder", "read_dashcam"]

log = logging.getLogger(__name__)

CACHE_FORMAT = 1  # raise it when decoding changes, so that older caches are left alone
SIZE = (130, 355)


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
        Consecutive files that are one scene.
    look_ahead : int, default=18
        Frames within which a collision counts, at 0.1 s. A scene of an accident ends with it, so
        only its last 18 frames have a label that is about the look-ahead.
    val_fraction : float, default=0.28
        Share of the training scenes that become the validation part, accidents and others alike,
        where there is no folder ``val``. The paper has 28 % of its samples there.
    seed : int, default=0
        Which scenes those are.
    cache_dir : path-like, optional
        Where decoded frames are kept: by default as for `probnb.data.utkface.read_utkface`.

    Returns
    -------
    Splits
        Inputs are `DashcamInputs`, 12 channels: RGB at t, t - 0.1 s and t - 0.2 s, then the mask of
        the vehicle's box in each (empty where it has none). ``groups`` are scenes, ``ids`` say
        part, kind, frame and hashcode. ``probabilities`` are known where every labelled vehicle
        has the key ``probability``, as simulated ones do. ``report`` counts and names what was set
        aside, see Notes.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist or has no folder ``train`` or ``test``.
    ValueError
        If a label is missing or neither true, false nor null, a number occurs twice, some
        vehicles have a probability and some do not, or a part has no sample.

    Notes
    -----
    Liu et al. (2022), Section 7.2 and Appendix K. Counted and named in the report, and skipped:
    frames whose image is ``unreadable`` or of ``wrong_size``, with a ``missing_json`` or a
    ``broken_json``; ``duplicate_hashcodes`` in a frame and ``broken_boxes``; vehicles
    ``outside`` of the rows that are kept; ``jumps`` of a track that no vehicle can make;
    ``missing_frames`` in the numbering of a scene. ``skipped`` has the number of labelled vehicles
    lost to each, ``unlabelled`` the number whose label is null. Counted and kept: images
    ``converted`` from CMYK or grey, ``short_scenes``, vehicles ``without_history``,
    ``accident_in_nonaccident``.
    """
    size = tuple(check_integer(value, "size") for value in size)
    check_choice(label, LABELS, "label")
    check_integer(scene_frames, "scene_frames", minimum=HISTORY)
    check_integer(look_ahead, "look_ahead")
    check_number(val_fraction, "val_fraction", 0, 1, exclusive=True)
    root = _root(Path(path).expanduser())
    parts = [part for part in ("train", "val", "test") if (root / part).is_dir()]
    report = {name: [] for name in _NAMED} | {"unlabelled": 0, "without_history": 0}
    report["skipped"] = Counter()
    frames = {part: find_frames(root, part, label, report) for part in parts}
    every = [frame for part in parts for kind in frames[part].values() for frame in kind]
    if not every:
        raise ValueError(f"path must hold frames named <int>.jpg; {root} has none.")
    pixels, checksum, problems = _decoded(every, size, cache_folder(cache_dir))
    for problem, names in problems.items():
        report[problem] += names
    lost = set(report["unreadable"]) | set(report["wrong_size"])
    place = {frame.name: i for i, frame in enumerate(every)}
    usable = set(place) - lost
    samples = {
        part: samples_of(frames[part], part, scene_frames, look_ahead, usable, report)
        for part in parts
    }
    if "val" not in samples:
        samples["train"], samples["val"] = _split(samples["train"], val_fraction, seed)
    report |= {"frames": len(every), "skipped": dict(report["skipped"])}
    named = {name: len(report[name]) for name in _NAMED if report[name]}
    if named:
        log.warning("Dashboard camera: %s", ", ".join(f"{k} {v}" for k, v in named.items()))
    settings = [*size, label, scene_frames, look_ahead, val_fraction, seed]
    return Splits(
        **{part: _data(samples[part], part, pixels, place) for part in ("train", "val", "test")},
        source=f"dashcam-{checksum[:16]}-{key({'settings': settings})}",
        report=report,
    )


_NAMED = (
    "unreadable", "wrong_size", "converted", "missing_json", "broken_json", "missing_frames",
    "short_scenes", "duplicate_hashcodes", "broken_boxes", "outside", "jumps",
    "accident_in_nonaccident", "other_files",
)  # fmt: skip


def _root(path):
    for root in (path, path / "YouTubeCrash"):
        if (root / "train").is_dir() and (root / "test").is_dir():
            return root
    raise FileNotFoundError(
        f"path must be a folder that holds train and test, each with accident and nonaccident; "
        f"{str(path)!r} {'does not' if path.is_dir() else 'is no folder'}."
    )


def _split(samples, fraction, seed):
    """Give whole scenes to the validation part, the same share of accidents and of others."""
    rng, chosen = np.random.default_rng(seed), set()
    for kind in ("accident", "nonaccident"):
        scenes = sorted({s.scene for s in samples if f"/{kind}/" in s.scene})
        chosen |= set(rng.permutation(scenes)[: round(fraction * len(scenes))])
    return [s for s in samples if s.scene not in chosen], [s for s in samples if s.scene in chosen]


def _data(samples, part, pixels, place):
    known = [s.probability is not None for s in samples]
    if not samples:
        raise ValueError(f"path must have labelled vehicles in every part; {part} has none.")
    if any(known) != all(known):
        raise ValueError(
            f"probability must be given for every labelled vehicle or for none; {part} has "
            f"{sum(known)} of {len(known)}, not {samples[known.index(False)].id}."
        )
    index = np.array([[place[name] for name in s.frames] for s in samples])
    boxes = np.array([s.boxes for s in samples], np.float32)
    return ProbabilityData(
        DashcamInputs(pixels, index, boxes),
        [float(s.label) for s in samples],
        probabilities=[s.probability for s in samples] if known[0] else None,
        groups=[s.scene for s in samples],
        ids=[s.id for s in samples],
    )


def cache_folder(cache_dir=None):
    """Return `cache_dir`, or where decoded data are kept by default."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "probnb"
    return Path(cache_dir or os.environ.get("PROBNB_CACHE") or base).expanduser()


def _decoded(frames, size, folder):
    """Return the pixels of all frames, memory-mapped, their checksum, and what cannot be used."""
    workers = joblib.Parallel(n_jobs=joblib.cpu_count(), prefer="threads")
    sums = workers(joblib.delayed(_sums)(f.file) for f in frames)
    digest = hashlib.sha256()
    for frame, content in zip(frames, sums):
        digest.update(f"{frame.name}\0{content}\n".encode())
    checksum = digest.hexdigest()
    stem = f"dashcam-v{CACHE_FORMAT}-{size[0]}x{size[1]}-{checksum[:16]}"
    cache, notes = folder / f"{stem}.npy", folder / f"{stem}.json"
    shape = (len(frames), 3, *size)
    try:  # the notes are written last: where they are, the pixels are whole
        problems = json.loads(notes.read_text())
        pixels = np.load(cache, mmap_mode="r")
        if pixels.shape == shape and pixels.dtype == np.uint8:
            return pixels, checksum, problems
        log.warning("Cache %s holds other pixels: decoding again.", cache)
    except FileNotFoundError:
        pass
    except ValueError as error:
        log.warning("Cache %s cannot be read (%s): decoding again.", cache, error)
    problems = {}

    def write(temporary):
        out = np.lib.format.open_memmap(temporary, "w+", np.uint8, shape)
        found = workers(
            joblib.delayed(_decode)(frame.file, out[i], size) for i, frame in enumerate(frames)
        )
        for frame, problem in zip(frames, found):
            if problem:
                problems.setdefault(problem, []).append(frame.name)
        out.flush()

    replace_file(cache, write)
    replace_file(notes, lambda temporary: Path(temporary).write_text(json.dumps(problems)))
    return np.load(cache, mmap_mode="r"), checksum, problems


def _sums(file):
    """Checksum of a frame and of what is said about it."""
    note = file.with_suffix(".json")
    content = hashlib.sha256(file.read_bytes())
    content.update(note.read_bytes() if note.exists() else b"")
    return content.hexdigest()


def _decode(file, out, size):
    """Write one frame, cropped and resized, to `out`; return what is the matter, or None."""
    height, width = size
    try:
        image = Image.open(io.BytesIO(file.read_bytes()), formats=["JPEG"])
        mode, whole = image.mode, image.size == FRAME
        if not whole and image.size != SIZE[::-1]:  # the public code takes cut ones as well
            return "wrong_size"
        if whole:  # the decoder's own halving, never below twice the size that is wanted
            image.draft("RGB", (2 * width, 2 * height * FRAME[1] // (CROP[1] - CROP[0])))
        image = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return "unreadable"
    rows = np.array(CROP) * image.height / FRAME[1] if whole else (0, image.height)
    box = (0, rows[0], image.width, rows[1])
    image = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
    out[:] = np.asarray(image).transpose(2, 0, 1)
    return None if mode == "RGB" else "converted"
