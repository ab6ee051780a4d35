r"""Precipitation nowcasting: whether it rains more over an area in an hour than it does now.

Three radar maps go in. The outcome is 1 where the area mean one hour after the last map is higher
than that of the last map: the weather task of Section 7.2 and Appendix K. Neighbouring windows are
near copies of each other, so whole days go to training, validation or test data, and ``groups``
are days.

Simulated rain has known probabilities. It is a sum of round cells, each with its peak, its width
and its own growth rate, that drift with one wind. In the hour after the last map everything is
multiplied by one more factor that nobody can see coming, :math:`e^{\sigma Z}` with Z standard
normal. If :math:`M_0` is the area mean of the last map and :math:`M` what the cells alone make of
it in an hour, then

.. math:: p = P(M e^{\sigma Z} > M_0) = \Phi\!\left(\frac{\log M - \log M_0}{\sigma}\right)
"""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from scipy.special import ndtr
from torch.nn.functional import adaptive_avg_pool2d

from probnb.data.base import ProbabilityData, split
from probnb.validation import check_integer, check_number

from .radar import MISSING

FRAMES = 3
RESOLUTION, HEAVIEST = 0.01, 100.0  # mm/h
FOLDS, LONG = 5, 60
"""Parts that few days are dealt into; and days from which on parts follow each other in time."""


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


def cut_windows(series, frames, corners, tile, size=None):
    """Cut stacks of three maps, as a uint8 tensor of shape (k, 3, size, size).

    Parameters
    ----------
    series : probnb_book.data.radar.Series
        The maps.
    frames : ndarray of int of shape (k, 3)
        Maps of each window.
    corners : ndarray of int of shape (k, 2)
        First row and column of each window.
    tile : int
        Height and width in the maps.
    size : int, optional
        Height and width of what is returned: means over smaller areas, of pixels with data. By
        default as in the maps.
    """
    size = min(size or tile, tile)
    out = np.empty((len(frames), FRAMES, size, size), np.uint8)
    for row, ((top, left), stack) in enumerate(zip(corners, frames)):
        counts = series.maps[stack, top : top + tile, left : left + tile]
        valid = (counts != MISSING).astype(np.float32)
        rate = np.where(counts < 0, 0, counts) * np.float32(series.unit)
        pooled = adaptive_avg_pool2d(torch.from_numpy(np.stack([rate, valid])), size)
        rate, share = pooled.numpy()
        out[row] = encode(rate / np.maximum(share, 1e-6))
    return torch.from_numpy(out)


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
    series : probnb_book.data.radar.Series
        Maps in order of time.
    question : Question
        What is asked.

    Returns
    -------
    dict of str to ndarray
        By time, then by area: ``frames`` (k, 3), ``corners`` (k, 2), ``times`` of the last maps,
        and ``means`` (k, 2), area means now and later in mm/h, over pixels with data in both.
    dict of str to int
        What was left out, in this order: for a gap, for crossing midnight, as windows that share
        maps with two days; then of the areas: for too little data, as dry, and because too little
        of the later map was measured to know what happened.

    Raises
    ------
    ValueError
        If a tile is larger than the maps, or nothing is left.
    """
    sides, tile = series.maps.shape[1:], question.tile
    if tile > min(sides):
        raise ValueError(f"tile must be at most {min(sides)}; got {tile}.")
    frames, report = _frames(series.times, question)
    rows, columns = (np.arange(side % tile // 2, side - tile + 1, tile) for side in sides)
    corners = np.array([(top, left) for top in rows for left in columns])

    def areas(frame):
        """Pixels of each area of a map, (areas, pixels)."""
        cut = series.maps[frame][rows[0] : rows[-1] + tile, columns[0] : columns[-1] + tile]
        cut = cut.reshape(len(rows), tile, len(columns), tile)
        return cut.swapaxes(1, 2).reshape(len(corners), -1)

    share, rain = np.zeros((2, len(series.times), len(corners)))
    means = np.full((len(frames), len(corners), 2), np.nan)
    with np.errstate(invalid="ignore"):  # of no pixel: NaN
        for frame in np.unique(frames):
            counts = areas(frame)
            share[frame] = (counts != MISSING).mean(1)
            rain[frame] = _mean(counts, counts != MISSING) * series.unit
        # Whether a window is asked depends on what is known when it is asked: its own three maps.
        bad = share[frames[:, :FRAMES]].min(1) < question.coverage
        dry = ~bad & ~(rain[frames[:, FRAMES - 1]] >= max(question.wet, 1e-9))
        unseen = ~bad & ~dry & (share[frames[:, FRAMES]] < question.coverage)
        for row in np.flatnonzero(~(bad | dry | unseen).all(1)):
            pair = np.stack([areas(frame) for frame in frames[row, FRAMES - 1 :]])
            means[row] = _mean(pair, (pair != MISSING).all(0)).T * series.unit
    unseen |= ~bad & ~dry & np.isnan(means[..., 0])
    report |= {"no data": int(bad.sum()), "dry": int(dry.sum()), "unseen": int(unseen.sum())}
    window, area = np.nonzero(~(bad | dry | unseen))
    if not len(window):
        raise ValueError(f"the maps must have a window for {question}; left out: {report}.")
    found = {"frames": frames[window, :FRAMES], "corners": corners[area]}
    found |= {"times": series.times[found["frames"][:, -1]], "means": means[window, area]}
    return found, report


def _mean(counts, rows):
    """Mean of the counts of some pixels, exact before it is divided."""
    return (counts * rows).sum(-1) / rows.sum(-1)


def _frames(times, question):
    """Positions of three maps and the one that decides, for every window without a gap."""
    minutes = times.astype("datetime64[m]").astype(int)
    last = minutes[minutes % question.stride == 0]
    step = np.array([-2 * question.spacing, -question.spacing, 0, question.lead])
    wanted = last[:, None] + step
    at = np.searchsorted(minutes, wanted).clip(max=len(minutes) - 1)
    whole = (minutes[at] == wanted).all(1)
    one_day = wanted[:, 0] // 1440 == wanted[:, -1] // 1440
    report = {"gap": int((~whole).sum()), "midnight": int((whole & ~one_day).sum())}
    return at[whole & one_day], report


def split_days(times, fold=0):
    """Say of every window which part its day goes to.

    Parameters
    ----------
    times : ndarray of datetime64 of shape (k,)
        Times of the windows.
    fold : int, default=0
        Which days are tested, where they are fewer than `LONG`: they are dealt into `FOLDS` hands,
        from the day with most windows to that with fewest and back again, so that each hand has wet
        days; hand `fold` is the test part and the next one the validation part. In five runs every
        day is tested once. More days are cut in time, in the paper's proportions 20 : 6 : 3.

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
    days, day, count = np.unique(
        np.asarray(times).astype("datetime64[D]"), return_inverse=True, return_counts=True
    )
    if len(days) < FOLDS:
        raise ValueError(f"the maps must have windows of {FOLDS} days at least; got {len(days)}.")
    if len(days) >= LONG:
        before = np.cumsum(count) - count
        return np.searchsorted([20 / 29, 26 / 29], before / len(day), side="right")[day]
    hand = np.empty(len(days), dtype=int)
    there_and_back = np.r_[:FOLDS, FOLDS - 1 : -1 : -1]
    hand[np.argsort(-count, kind="stable")] = np.resize(there_and_back, len(days))
    return np.select([hand == fold % FOLDS, hand == (fold + 1) % FOLDS], [2, 1])[day]


def weather_splits(series, question, size=None, fold=0, limit=None):
    """Cut a series of maps into training, validation and test windows, by whole days.

    Parameters
    ----------
    series : probnb_book.data.radar.Series
        Maps in order of time.
    question : Question
        What is asked.
    size : int, optional
        Height and width of the inputs; the tile is averaged down to it.
    fold : int, default=0
        See `split_days`.
    limit : int, optional
        How many windows to keep, evenly spaced in time; all by default.

    Returns
    -------
    probnb.data.base.Splits
        Inputs uint8 of shape (n, 3, size, size). ``report`` counts what was left out and holds the
        question.
    """
    found, report = find_windows(series, question)
    if limit is not None:
        keep = np.unique(np.linspace(0, len(found["times"]) - 1, limit).round().astype(int))
        found = {name: values[keep] for name, values in found.items()}
    part = split_days(found["times"], fold)
    times = found["times"].astype("datetime64[m]")
    inputs = cut_windows(series, found["frames"], found["corners"], question.tile, size)
    now, then = found["means"].T
    ids = [f"{t} {top} {left}" for t, (top, left) in zip(times, found["corners"])]
    days = times.astype("datetime64[D]").astype(str)
    data = ProbabilityData(inputs, then > now, None, days, ids=ids)
    rows = {name: np.flatnonzero(part == k) for k, name in enumerate(("train", "val", "test"))}
    source = f"{series.source} {asdict(question)} size {size or question.tile} "
    source += f"fold {fold % FOLDS} of {FOLDS} limit {limit}"
    report = {**series.report, **report, "windows": len(part), "question": asdict(question)}
    return split(data, rows, source, (Turn(),), report)


SIDE, MARGIN = 95.0, 20.0
"""Height and width of the simulated area in km, and of a margin from where more rain drifts in."""
CELLS, WIDTH = 8.0, (6.0, 18.0)
"""Mean number of cells, Poisson, and their standard deviations in km, log-uniform."""
WIND, GROWTH, SHARED = 20.0, 0.7, 0.4
"""Standard deviations: of each component of the wind in km/h, one wind a day; of the cells' growth
rates per hour; and of the part of the growth that the cells of a day have in common."""
SIGMA = 0.9
"""Standard deviation of the logarithm of the unforeseeable factor."""


def draw_scenes(day, rng):
    """Draw the hidden state of simulated scenes at the time of their last map.

    Parameters
    ----------
    day : ndarray of int of shape (n,)
        Number of each scene's day, whose wind and growth it has.
    rng : numpy.random.Generator
        Where chance comes from.

    Returns
    -------
    centres : ndarray of shape (n, cells, 2)
        Down and across from the corner of the area, km.
    widths, peaks, growth : ndarray of shape (n, cells)
        Standard deviation (km), rain rate at the centre (mm/h, 0 for no cell), growth rate (1/h).
    wind : ndarray of shape (n, 2)
        Km/h, down and across.
    """
    n, days = len(day), int(day.max()) + 1
    wind = WIND * rng.standard_normal((days, 2))
    shared = SHARED * rng.standard_normal(days)
    number = np.maximum(rng.poisson(CELLS, n), 1)
    k = int(number.max())
    peaks = np.exp(rng.normal(0.5, 1.0, (n, k))) * (np.arange(k) < number[:, None])
    centres = rng.uniform(-MARGIN, SIDE + MARGIN, (n, k, 2))
    centres[:, 0] = rng.uniform(0, SIDE, (n, 2))  # rain within the area at the last map
    widths = np.exp(rng.uniform(*np.log(WIDTH), (n, k)))
    growth = shared[day][:, None] + GROWTH * rng.standard_normal((n, k))
    return centres, widths, peaks, growth, wind[day]


def draw_maps(scenes, minutes, size=32):
    """Rain rates in mm/h, (n, size, size), some minutes after the last map, but for chance."""
    centres, widths, peaks, growth, wind = scenes
    hours, pixel = minutes / 60, (np.arange(size) + 0.5) * SIDE / size
    distance = (pixel - (centres + hours * wind[:, None])[..., None]) / widths[..., None, None]
    profile = np.exp(-(distance**2) / 2)
    peaks = peaks * np.exp(hours * growth)
    return np.einsum("nk,nki,nkj->nij", peaks, profile[:, :, 0], profile[:, :, 1])


def simulated_splits(n=3000, size=32, seed=0, spacing=10, lead=60, per_day=20):
    """Simulated weather task with ground-truth probabilities, split by days.

    Parameters
    ----------
    n : int, default=3000
        Windows in all; training, validation and test have the paper's proportions 20 : 6 : 3.
    size : int, default=32
        Height and width of the maps in pixels.
    seed : int, default=0
        Seed of scenes and outcomes.
    spacing, lead : int, default=10, 60
        Minutes between the three maps, and from the last one to the one that decides.
    per_day : int, default=20
        Windows of one day.

    Returns
    -------
    probnb.data.base.Splits
        Inputs uint8 of shape (n, 3, size, size), as `encode` makes them; given p outcomes are
        independent.
    """
    check_integer(n, "n", minimum=3 * per_day)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0x5241494E]))
    day = np.arange(n) // per_day
    scenes = draw_scenes(day, rng)
    now, then = (draw_maps(scenes, minutes, size).mean((1, 2)) for minutes in (0, lead))
    p = ndtr(np.log(then / now) / SIGMA)
    y = (rng.random(n) < p).astype(np.float32)
    inputs = np.stack([encode(draw_maps(scenes, k * spacing, size)) for k in (-2, -1, 0)], axis=1)
    last = day.max()
    test = last - max(1, round(last * 3 / 29)) + 1
    val = test - max(1, round(last * 6 / 29))
    data = ProbabilityData(torch.from_numpy(inputs), y, p, np.char.add("day ", day.astype(str)))
    names = np.select([day < val, day < test], ["train", "val"], "test")
    rows = {name: np.flatnonzero(names == name) for name in ("train", "val", "test")}
    source = f"simulated rain, {spacing} and {lead} minutes, n={n} size={size} per_day={per_day}"
    report = {"windows": n, "days": int(last) + 1}
    return split(data, rows, f"{source} seed={seed}", (Turn(),), report)
