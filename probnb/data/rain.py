"""Precipitation nowcasting: whether it rains more over an area in an hour than it does now.

Three radar maps go in. The outcome is 1 where the area mean one hour after the last map is higher
than that of the last map: the weather task of Section 7.2 and Appendix K. Neighbouring windows are
near copies of each other, so whole days go to training, validation or test data, and ``groups``
are days.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch

from ..validation import check_integer, check_number
from .base import ProbabilityData, Splits
from .radar import MISSING

__all__ = ["Question", "Turn", "Windows", "encode", "find_windows", "split_days", "weather_splits"]

FRAMES = 3
RESOLUTION, HEAVIEST = 0.01, 100.0  # mm/h
IN_MEMORY = 2**28
"""Bytes of inputs up to which windows are cut once and kept."""


@dataclass(frozen=True)
class Question:
    """What is asked of a series of maps.

    Parameters
    ----------
    tile : int, default=95
        Height and width of an area in pixels (km); the maps are cut into as many as fit.
    spacing : int, default=10
        Minutes between the three maps; 10 in the paper, 15 in the authors' loader.
    lead : int, default=60
        Minutes from the last map to the one that decides; 60 in the paper, 65 in their loader.
    stride : int, default=10
        Minutes between windows of one area.
    wet : float, default=0.02
        Least area mean of the last map in mm/h. Where it does not rain there is nothing to ask;
        the rule looks at that map only, at none of the pixels of what comes after.
    coverage : float, default=0.9
        Least share of an area's pixels that must have data, in each of the maps.
    """

    tile: int = 95
    spacing: int = 10
    lead: int = 60
    stride: int = 10
    wet: float = 0.02
    coverage: float = 0.9

    def __post_init__(self):
        for name in ("tile", "spacing", "lead", "stride"):
            check_integer(getattr(self, name), name)
        check_number(self.wet, "wet", 0)
        check_number(self.coverage, "coverage", 0, 1)


@dataclass(frozen=True)
class Turn:
    """Turn and mirror a square image into one of its eight positions, all channels alike.

    For radar maps: the equations of motion have no preferred direction at this scale, and the area
    mean is the same in all eight. What is given up is the climate's own preference, westerly winds
    and mountains, which a few days cannot teach anyway.
    """

    draws = 3

    def __call__(self, x, u):
        """Return the batch `x` (n, c, h, h), turned as the numbers `u` (n, 3) say."""
        across, down, swap = ((u < 0.5).T)[:, :, None, None, None]
        x = torch.where(across, x.flip(-1), x)
        x = torch.where(down, x.flip(-2), x)
        return torch.where(swap, x.transpose(-1, -2), x)


class Windows:
    """Stacks of three maps, uint8 of shape (k, 3, size, size), read when rows are asked for.

    Neighbouring windows in time have maps in common; nothing of that is copied.

    Parameters
    ----------
    maps : array of int16 of shape (n, rows, columns)
        Counts; may be on disk.
    unit : float
        Rain rate of one count in mm/h.
    frames : ndarray of int of shape (windows, 3)
        Maps of each window.
    corners : ndarray of int of shape (windows, 2)
        First row and column of each window.
    tile : int
        Height and width in the maps.
    size : int, optional
        Height and width of what is returned: means over smaller areas, of pixels with data. By
        default as in the maps.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, maps, unit, frames, corners, tile, size=None):
        self.maps, self.unit, self.tile = maps, unit, tile
        self.frames, self.corners = np.asarray(frames), np.asarray(corners)
        self.size = min(size or tile, tile)
        codes = encode(np.arange(np.iinfo(np.int16).max + 1) * unit)
        # Counts below 0, and no data, which is the lowest: no rain to see.
        self._codes = np.concatenate([codes, np.zeros(len(codes), np.uint8)])

    def __len__(self):
        return len(self.frames)

    @property
    def base(self):
        """What is read, whose pages a batch lets go of; see `probnb.data.inputs.take_rows`."""
        return self.maps

    @property
    def shape(self):
        """Windows, maps, height and width."""
        return (len(self), FRAMES, self.size, self.size)

    def __getitem__(self, rows):
        frames, corners = self.frames[rows], self.corners[rows]
        out = np.empty((len(frames), *self.shape[1:]), np.uint8)
        for row, ((top, left), stack) in enumerate(zip(corners, frames)):
            area = slice(top, top + self.tile), slice(left, left + self.tile)
            for channel, frame in enumerate(stack):
                out[row, channel] = self._read(np.asarray(self.maps[frame][area]))
        return out

    def _read(self, counts):
        if self.size == self.tile:
            return self._codes[counts.view(np.uint16)]
        valid = torch.from_numpy(counts != MISSING).float()
        rate = torch.from_numpy(np.where(counts < 0, 0, counts) * np.float32(self.unit))
        pooled = torch.nn.functional.adaptive_avg_pool2d(
            torch.stack([rate, valid])[None], self.size
        )
        rate, share = pooled[0].numpy()
        return encode(rate / np.maximum(share, 1e-6))


def encode(rate):
    """Rain rates in mm/h as uint8 on a logarithmic scale: 0 for none, 255 from 100 mm/h on.

    The code is 255 log(1 + 100 rate) / log(1 + 10,000), rounded: steps of 4 % in heavy rain.
    """
    scaled = np.log1p(np.asarray(rate) / RESOLUTION) / np.log1p(HEAVIEST / RESOLUTION)
    return np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8)


def find_windows(series, question):
    """Find every window of a series that can be asked, and its outcome.

    Parameters
    ----------
    series : probnb.data.radar.Series
        Maps in order of time.
    question : Question
        What is asked.

    Returns
    -------
    dict of str to ndarray
        ``frames`` (k, 3), ``corners`` (k, 2), ``outcomes``, ``times`` of the last maps, and
        ``means`` (k, 2), area means now and later in mm/h, over pixels with data in both.
    dict of str to int
        What was left out, in this order: for a gap, for crossing midnight, as windows that share
        maps with two days; then of the areas: for too little data, as dry, and because too little
        of the later map was measured to know what happened.

    Raises
    ------
    ValueError
        If a tile is larger than the maps, or nothing is left.
    """
    rows, columns = series.maps.shape[1:]
    if question.tile > min(rows, columns):
        raise ValueError(f"tile must be at most {min(rows, columns)}; got {question.tile}.")
    frames, report = _frames(series.times, question)
    found = []
    for corner in _corners(rows, columns, question.tile):
        kept, means, left_out = _area(series, question, frames, corner)
        report = {k: report.get(k, 0) + left_out.get(k, 0) for k in {**report, **left_out}}
        found.append((frames[kept, :FRAMES], np.tile(corner, (kept.sum(), 1)), means[kept]))
    stacks, corners, means = (np.concatenate(part) for part in zip(*found))
    if not len(stacks):
        raise ValueError(f"the maps must have a window for {question}; left out: {report}.")
    order = np.argsort(stacks[:, -1], kind="stable")  # by time, then by area
    stacks, corners, means = stacks[order], corners[order], means[order]
    outcomes = (means[:, 1] > means[:, 0]).astype(np.float32)
    times = series.times[stacks[:, -1]]
    return dict(frames=stacks, corners=corners, outcomes=outcomes, times=times, means=means), report


def _corners(rows, columns, tile):
    down, across = rows // tile, columns // tile
    top, left = (rows - down * tile) // 2, (columns - across * tile) // 2
    return [(top + i * tile, left + j * tile) for i in range(down) for j in range(across)]


def _frames(times, question):
    """Positions of three maps and the one that decides, for every window without a gap."""
    step = np.array([-2, -1, 0]) * question.spacing
    minutes = times.astype("datetime64[m]").astype(int)
    last = minutes[minutes % question.stride == 0]
    wanted = last[:, None] + np.append(step, question.lead)
    at = np.searchsorted(minutes, wanted).clip(max=len(minutes) - 1)
    whole = (minutes[at] == wanted).all(1)
    one_day = wanted[:, 0] // 1440 == wanted[:, -1] // 1440
    report = {"gap": int((~whole).sum()), "midnight": int((whole & ~one_day).sum())}
    return at[whole & one_day], report


def _area(series, question, frames, corner):
    """Which windows of one area can be asked; its means over pixels with data in both maps."""
    area = tuple(slice(c, c + question.tile) for c in corner)
    share, rain = np.zeros(len(series.times)), np.zeros(len(series.times))
    for frame in np.unique(frames):
        counts = series.maps[frame][area]
        share[frame] = (counts != MISSING).mean()
        rain[frame] = counts[counts != MISSING].mean() * series.unit if share[frame] else np.nan
    # Whether a window is asked depends on what is known when it is asked: its own three maps.
    bad = share[frames[:, :FRAMES]].min(1) < question.coverage
    dry = ~(rain[frames[:, FRAMES - 1]] >= max(question.wet, 1e-9))
    unseen = share[frames[:, FRAMES]] < question.coverage
    means = np.full((len(frames), 2), np.nan)
    for row in np.flatnonzero(~bad & ~dry & ~unseen):
        pair = np.stack([series.maps[frame][area] for frame in frames[row, FRAMES - 1 :]])
        both = (pair != MISSING).all(0)
        unseen[row] = not both.any()
        means[row] = pair[:, both].mean(1) * series.unit if both.any() else np.nan
    left_out = {
        "no data": int(bad.sum()),
        "dry": int((~bad & dry).sum()),
        "unseen": int((~bad & ~dry & unseen).sum()),
    }
    return ~bad & ~dry & ~unseen, means, left_out


def split_days(times, fold=0, folds=5, long=60):
    """Say of every window which part its day goes to.

    Parameters
    ----------
    times : ndarray of datetime64 of shape (k,)
        Times of the windows.
    fold : int, default=0
        Which days are tested, where days are few: they are dealt into `folds` hands, from the day
        with most windows to that with fewest and back again, so that each hand has wet days; hand
        `fold` is the test part and the next one the validation part. In `folds` runs every day is
        tested once.
    folds : int, default=5
        Hands.
    long : int, default=60
        Days from which on the parts follow each other in time instead, in the paper's proportions
        20 : 6 : 3.

    Returns
    -------
    ndarray of int of shape (k,)
        0 training, 1 validation, 2 test.

    Raises
    ------
    ValueError
        If there are fewer days than hands.
    """
    check_integer(fold, "fold", minimum=0)
    check_integer(folds, "folds", minimum=3)
    days, day, count = np.unique(
        np.asarray(times).astype("datetime64[D]"), return_inverse=True, return_counts=True
    )
    if len(days) < folds:
        raise ValueError(f"folds must be at most the number of days, {len(days)}; got {folds}.")
    part = np.zeros(len(days), dtype=int)
    if len(days) >= long:
        before = np.cumsum(count) - count
        part = np.searchsorted([20 / 29, 26 / 29], before / len(day), side="right")
    else:
        there_and_back = np.concatenate([np.arange(folds), np.arange(folds)[::-1]])
        hand = np.empty(len(days), dtype=int)
        hand[np.argsort(-count, kind="stable")] = np.resize(there_and_back, len(days))
        part[hand == fold % folds] = 2
        part[hand == (fold + 1) % folds] = 1
    return part[day]


def weather_splits(series, question=None, *, size=None, fold=0, folds=5, limit=None):
    """Cut a series of maps into training, validation and test windows, by whole days.

    Parameters
    ----------
    series : probnb.data.radar.Series
        Maps in order of time.
    question : Question, optional
        What is asked; the paper's by default.
    size : int, optional
        Height and width of the inputs; the tile is averaged down to it.
    fold, folds : int
        See `split_days`.
    limit : int, optional
        How many windows to keep, evenly spaced in time; all by default.

    Returns
    -------
    probnb.data.base.Splits
        Inputs uint8 of shape (n, 3, size, size), in memory where they are few, else read from the
        maps batch by batch. ``report`` counts what was left out and holds the question.
    """
    question = question or Question()
    found, report = find_windows(series, question)
    if limit is not None:
        keep = np.unique(np.linspace(0, len(found["outcomes"]) - 1, limit).round().astype(int))
        found = {name: values[keep] for name, values in found.items()}
    part = split_days(found["times"], fold, folds)
    parts = [_part(series, question, found, part == k, size) for k in range(3)]
    source = f"{series.source} {asdict(question)} size {size or question.tile} "
    source += f"fold {fold % folds} of {folds} limit {limit}"
    report = {**series.report, **report, "windows": len(part), "question": asdict(question)}
    return Splits(*parts, source=source, report=report)


def _part(series, question, found, rows, size):
    windows = Windows(
        series.maps, series.unit, found["frames"][rows], found["corners"][rows], question.tile, size
    )
    small = np.prod(windows.shape) <= IN_MEMORY
    times, corners = found["times"][rows].astype("datetime64[m]"), found["corners"][rows]
    return ProbabilityData(
        inputs=torch.from_numpy(windows[:]) if small else windows,
        outcomes=found["outcomes"][rows],
        groups=times.astype("datetime64[D]").astype(str),
        ids=np.array([f"{t} {top} {left}" for t, (top, left) in zip(times, corners)], dtype=str),
        augment=(Turn(),),
    )
