"""The files of dashboard-camera scenes: names, scenes, boxes, tracks, and all that may be wrong.

Nothing here looks at a pixel. Whatever is set aside is counted and named in a report.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

__all__ = ["CROP", "FRAME", "HISTORY", "LABELS", "Frame", "Sample", "find_frames", "samples_of"]

FRAME = (710, 400)
"""Width and height of a frame; boxes are in its pixels."""
CROP = (100, 360)
"""Rows of the frame that a network sees."""
HISTORY = 3
"""Frames of a sample."""
LABELS = ("label", "adaptedLabel", "syntheticLabel")
"""Keys under which a label is found: YouTubeCrash's, then the two of GTACrash."""
KINDS = ("accident", "nonaccident")
GROWTH = 4.0  # by how much the area of a track's box may change from one frame to the next


@dataclass
class Frame:
    """One frame: where it lies and what its JSON says.

    Attributes
    ----------
    name : str
        ``part/kind/number``.
    file : Path
        The JPEG.
    number : int
        Its number, the file's name.
    vehicles : dict or None
        By hashcode (box, label, probability); a box that is given twice is None. None altogether
        if the JSON cannot be used.
    """

    name: str
    file: Path
    number: int
    vehicles: dict | None


@dataclass
class Sample:
    """One vehicle in one frame, followed back.

    Attributes
    ----------
    id, scene : str
        ``part/kind/number/hashcode`` and ``part/kind/number of the scene's first frame``.
    frames : list of str
        Names of the frame and of those before it, the latest first.
    boxes : list of tuple
        x, y, width and height in each; zeros where the vehicle has none.
    label : bool
        Whether the car collides with it.
    probability : float or None
        Known in simulations.
    """

    id: str
    scene: str
    frames: list
    boxes: list = field(default_factory=list)
    label: bool = False
    probability: float | None = None


def find_frames(root, part, label, report):
    """Return the frames of one part by kind, in numerical order, with what their JSON says."""
    found = {}
    for kind in KINDS:
        folder, files = root / part / kind, {}
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            if file.suffix == ".jpg" and file.stem.isascii() and file.stem.isdigit():
                other = files.setdefault(int(file.stem), file)
                if other is not file:
                    raise ValueError(f"{folder} must hold each number once; got {other.name} and "
                                     f"{file.name}.")  # fmt: skip
            elif file.suffix != ".json" or not file.with_suffix(".jpg").exists():
                report["other_files"].append(f"{part}/{kind}/{file.name}")
        found[kind] = [
            Frame(
                name := f"{part}/{kind}/{n}", files[n], n, _vehicles(files[n], name, label, report)
            )
            for n in sorted(files)
        ]
    return found


def _frame(name, file, number, label, report):
    return Frame(name, file, number, _vehicles(file, name, label, report))


def _vehicles(file, name, label, report):
    """Read the JSON beside a frame; None, counted and named, if there is none or it is broken."""
    try:
        entries = json.loads(file.with_suffix(".json").read_bytes())["vehicleInfo"]
        entries = [(str(entry["hashcode"]), entry) for entry in entries]
    except FileNotFoundError:
        report["missing_json"].append(name)
        return None
    except (ValueError, KeyError, TypeError):
        report["broken_json"].append(name)
        return None
    vehicles = {}
    for code, entry in entries:
        if code in vehicles:
            report["duplicate_hashcodes"].append(f"{name}/{code}")
            vehicles[code] = None
            continue
        try:
            box = tuple(float(entry[key]) for key in ("x", "y", "width", "height"))
        except (KeyError, TypeError, ValueError):
            box = (np.nan,) * 4
        if not (np.isfinite(box).all() and box[2] > 0 and box[3] > 0):
            report["broken_boxes"].append(f"{name}/{code}")
            vehicles[code] = None
            continue
        vehicles[code] = (box, _label(entry, label, name), entry.get("probability"))
    return vehicles


def _label(entry, key, name):
    if key not in entry:
        there = ", ".join(known for known in LABELS if known in entry) or "none"
        raise ValueError(f"label must be a key of every vehicle; got {key!r}, {name} has {there}.")
    if (value := entry[key]) is not None and value not in (True, False):
        raise ValueError(f"{key} must be true, false or null; got {value!r} in {name}.")
    return value


def _scenes(frames, length):
    """Cut frames into scenes of `length` consecutive files: first number -> {place: frame}.

    Files are counted by position. Where that would put a gap in the numbers inside a scene, a file
    is missing: then all are counted by number from the first, so that no scene runs into the next.
    """
    blocks = [frames[i : i + length] for i in range(0, len(frames), length)]
    starts = {frame.number: block[0].number for block in blocks for frame in block}
    if any(block[-1].number - block[0].number >= len(block) for block in blocks):
        lowest = frames[0].number
        starts = {f.number: f.number - (f.number - lowest) % length for f in frames}
    scenes = {}
    for frame in frames:
        start = starts[frame.number]
        scenes.setdefault(start, {})[frame.number - start] = frame
    return scenes


def samples_of(frames, part, length, look_ahead, usable, report):
    """Return the samples of one part.

    Parameters
    ----------
    frames : dict of str to list of Frame
        By kind, as `find_frames` returns them.
    part : str
        Its name.
    length, look_ahead : int
        Frames of a scene; how many of its last frames may have samples.
    usable : set of str
        Names of the frames whose image can be read.
    report : dict
        Problem -> names; ``skipped`` counts the labelled vehicles that were lost to each.

    Returns
    -------
    list of Sample
    """
    samples = []
    for kind, all_frames in frames.items():
        for start, scene_frames in _scenes(all_frames, length).items():
            scene = f"{part}/{kind}/{start}"
            absent = [place for place in range(max(scene_frames)) if place not in scene_frames]
            report["missing_frames"] += [f"{part}/{kind}/{start + place}" for place in absent]
            if len(scene_frames) + len(absent) < length:
                report["short_scenes"].append(scene)
            first = max(HISTORY - 1, length - look_ahead)
            for place in (place for place in scene_frames if place >= first):
                past = [scene_frames.get(place - back) for back in range(HISTORY)]
                samples += _in_frame(past, scene, usable, report)
    return samples


def _in_frame(past, scene, usable, report):
    """Samples of one frame: its labelled vehicles, each followed back through the frames before."""
    kept = []
    for code, vehicle in (past[0].vehicles or {}).items():
        if vehicle is None:  # twice in this frame, or without a box: named already
            report["skipped"]["ambiguous or broken box"] += 1
            continue
        box, label, probability = vehicle
        name = f"{past[0].name}/{code}"
        if label is None:
            report["unlabelled"] += 1
            continue
        if label and "/nonaccident/" in name:
            report["accident_in_nonaccident"].append(name)
        trail, reason = [box], None
        if not _in_view(box):
            reason = "outside the frame"
            report["outside"].append(name)
        for frame in past[1:]:
            reason = reason or _lost(frame, code)
            earlier = None if reason else frame.vehicles.get(code)
            trail.append(earlier[0] if earlier else (0.0,) * 4)
        if reason is None and any(frame.name not in usable for frame in past):
            reason = "unreadable frame"
        if reason is None and any(_jumps(a, b) for a, b in pairwise(trail)):
            reason = "jump"
            report["jumps"].append(name)
        if reason is not None:
            report["skipped"][reason] += 1
            continue
        report["without_history"] += not all(any(b) for b in trail)
        names = [frame.name for frame in past]
        kept.append(Sample(name, scene, names, trail, bool(label), probability))
    return kept


def _lost(frame, code):
    """Why a vehicle cannot be followed into an earlier frame, or None."""
    if frame is None:
        return "missing frame"
    if frame.vehicles is None:
        return "missing or broken json"
    if code in frame.vehicles and frame.vehicles[code] is None:
        return "ambiguous or broken box"
    return None


def _in_view(box):
    x, y, width, height = box
    return x < FRAME[0] and x + width > 0 and y < CROP[1] and y + height > CROP[0]


def _jumps(a, b):
    """Whether boxes of one hashcode in consecutive frames cannot be of one vehicle.

    They cannot if the gap between them is wider (higher) than the larger of the two, or if their
    areas differ more than fourfold.
    """
    if not (any(a) and any(b)):
        return False
    apart = any(
        max(a[i], b[i]) - min(a[i] + a[i + 2], b[i] + b[i + 2]) > max(a[i + 2], b[i + 2])
        for i in (0, 1)
    )
    areas = sorted((a[2] * a[3], b[2] * b[3]))
    return apart or areas[1] > GROWTH * areas[0]
