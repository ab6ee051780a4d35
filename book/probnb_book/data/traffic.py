"""Simulated dashboard-camera scenes: frames, boxes, and the probability of each collision.

They stand in for real frames where none are at hand, and have what those cannot have. The traffic
is `probnb_book.data.traffic_model`'s. A pinhole camera looks along the road; the ground is computed
at half the size, which is quick, the vehicles are polygons at full size, the farthest first.
Braking shows as lamps, a change of lane as motion and, for most drivers, an indicator; the car's
own braking as a dip of its nose. Frames pass through JPEG, as a camera's do.
"""

import io
from collections import Counter
from types import SimpleNamespace

import joblib
import numpy as np
from PIL import Image, ImageDraw

from probnb.images.files import cache_folder
from probnb.store import key
from probnb.validation import check_integer

from .dashcam import FRAME, HISTORY, SIZE, decode, follow, load_scenes
from .traffic_model import BRAKE, DRIFT, LANE, SCENE, STEP, collision_probability, simulate

VERSION = 2
"""Raised whenever the same seed would give other scenes: part of the name under which they lie."""

EVERY = 3
"""Every how many frames vehicles have a label: those between would show the same samples again."""
WIDTH, HEIGHT = FRAME
QUALITY = 75  # of the JPEG
FOCAL, EYE, BONNET = 600.0, 1.3, 2.0  # pixels; metres above the ground, behind the bumper
HORIZON, DIP = 172.0, 6.0  # row of the horizon; rows by which it rises when the car brakes
SIDE = 4.2  # length of a vehicle's side
SMALLEST = 5  # pixels: a vehicle below it has no box
_ROWS = np.arange(0.5, HEIGHT // 2)[:, None] * 2
_COLUMNS = np.arange(0.5, WIDTH // 2)[None, :] * 2 - WIDTH / 2


def traffic(scenes=(420, 200), size=SIZE, continuations=400, seed=0, cache_dir=None):
    """Simulate and draw scenes, or read them where they were drawn before.

    Parameters
    ----------
    scenes : tuple of int, default=(420, 200)
        Scenes of the training part, 28 % of which become the validation part, and of the test
        part, 20 frames each. A scene is one of an ``accident`` if the car collides in it or within
        1.8 s of its end.
    size : tuple of int, default=(130, 355)
        Height and width of the inputs.
    continuations : int, default=400
        Futures drawn for each probability.
    seed : int, default=0
        The same seed gives the same scenes.
    cache_dir : path-like, optional
        Where scenes are kept; see `probnb.images.files.cache_folder`.

    Returns
    -------
    Splits
        As `probnb_book.data.dashcam.read_dashcam`, with ``probabilities``, and with the seed in
        ``groups`` and ``ids``.

    Notes
    -----
    After a collision the picture stands still and nothing is labelled: nobody is at risk any more.
    """
    counts = [check_integer(n, "scenes") for n in scenes]
    check_integer(seed, "seed", minimum=0)
    settings = dict(scenes=counts, size=list(size), every=EVERY, continuations=continuations)

    def build(pixels):
        frames, vehicles, first = [], [], 0
        seeds = np.random.SeedSequence(seed).spawn(2)
        for part, n, own in zip(("train", "test"), counts, seeds, strict=True):
            frames += _draw_part(pixels, part, first, n, continuations, own, vehicles)
            first += n
        return follow(frames, vehicles)

    name = f"traffic-v{VERSION}-{key(settings | {'seed': seed})}"
    shape = (SCENE * sum(counts), 3, *size)
    prefix = f"seed{seed}/"  # scenes of two seeds are not the same scene
    return load_scenes(cache_folder(cache_dir) / name, shape, build, seed=seed, prefix=prefix)


def _draw_part(pixels, part, first, n, continuations, seeds, vehicles):
    """Draw the scenes of a part; return its frames, accidents first, and add the vehicles."""
    history, future, looks = seeds.spawn(3)
    worlds, outcomes = simulate(n, history)
    odds = {
        t: collision_probability(worlds[t], continuations, child)
        for t, child in zip(range(HISTORY - 1, SCENE, EVERY), future.spawn(SCENE))
    }

    def scene(i, child):
        own, at = [w.take([i]) for w in worlds], {t: p[i] for t, p in odds.items()}
        return _draw_scene(pixels[SCENE * (first + i) :], own, outcomes[:, i], at, child)

    threads = joblib.Parallel(n_jobs=joblib.cpu_count(), prefer="threads")
    drawn = threads(joblib.delayed(scene)(*pair) for pair in enumerate(looks.spawn(n)))
    accident, frames, count = outcomes.any(axis=(0, 2)), [], Counter()
    for i in np.argsort(~accident, kind="stable"):
        folder = f"{part}/{'' if accident[i] else 'non'}accident"
        for t, own in enumerate(drawn[i]):
            row = SCENE * (first + int(i)) + t
            frames.append((f"{folder}/{count[folder]}", t, f"{folder}/{count[folder] + t}", row))
            vehicles += [(row, *vehicle) for vehicle in own]
        count[folder] += SCENE
    return frames


def _draw_scene(pixels, worlds, outcomes, odds, seeds):
    """Draw the frames of one scene; return the vehicles of each."""
    rng = np.random.default_rng(seeds)
    end = next((t for t, world in enumerate(worlds) if world.crashed[0]), SCENE)
    look = look_of(worlds[0].gap.shape[1], rng)
    codes = rng.integers(1, 2**31, len(look.paint)).astype(str)
    speeds = [float(world.car[0]) for world in worlds]
    travelled = np.concatenate([[0], np.cumsum(speeds[:-1]) * STEP])
    vehicles = []
    for t in range(SCENE):
        shown = min(t, max(end - 1, 0))
        boxes, seen = boxes_of(worlds[shown], look)
        vehicles.append([])
        for k in np.flatnonzero(seen):
            told = (outcomes[t, k], odds[t][k]) if t in odds and t < end else (None, np.nan)
            vehicles[t].append((codes[k], *boxes[k], *told))
        file = io.BytesIO()
        image = draw_frame(worlds[shown], look, travelled[shown], shown)
        image.save(file, "JPEG", quality=QUALITY)
        decode(file.getvalue(), pixels[t])
    return vehicles


def look_of(vehicles, rng):
    """Draw how a scene of some vehicles looks: nothing in it depends on what will happen.

    Parameters
    ----------
    vehicles : int
        How many, k.
    rng : numpy.random.Generator
        Where chance comes from.

    Returns
    -------
    SimpleNamespace
        ``size`` (k, 2), width and height of each vehicle in metres; ``paint`` (k, 3), its colour;
        ``indicates`` (k,), whether its driver uses the indicator; ``light``, the brightness, low at
        night; ``ground``, for the car braking (1) or not (0): the picture without traffic, where
        the lines of the lanes are, distance along the road of every row.
    """
    lorry = rng.random(vehicles) < 0.15
    size = np.stack([1.75 + 0.2 * rng.random(vehicles), 1.4 + 0.35 * rng.random(vehicles)], axis=1)
    size[lorry] = [2.3, 2.9]
    light = float(np.clip(1.15 - 0.95 * rng.random() ** 2, 0.25, 1))
    paint = 255 * np.clip(
        rng.random((vehicles, 1)) + 0.35 * (rng.random((vehicles, 3)) - 0.5), 0, 1
    )
    tones = rng.random((4, 3))
    skyline = np.repeat(18 + 50 * rng.random(24), 15)[: WIDTH // 2] * (rng.random() < 0.7)
    ground = {dip: _ground(HORIZON - DIP * dip, light, tones, skyline) for dip in (0, 1)}
    indicates = rng.random(vehicles) < 0.6
    return SimpleNamespace(size=size, paint=paint, indicates=indicates, light=light, ground=ground)


def _ground(horizon, light, tones, skyline):
    """Sky, buildings, verge and road; then where lines are painted, and each row's distance."""
    below = np.maximum(_ROWS - horizon, 0.5)
    distance = FOCAL * EYE / below
    across = _COLUMNS / FOCAL * distance
    sky = [150, 175, 205] + 40 * (tones[0] - 0.5) + 0.25 * (horizon - _ROWS[..., None])
    built = horizon - skyline < _ROWS
    ground = horizon + 2 < _ROWS
    picture = np.where(built[..., None], 90 + 70 * tones[1], sky)
    verge = np.where(tones[3, 0] < 0.5, [95, 110, 70], [135, 130, 122]) + 30 * (tones[2] - 0.5)
    road = np.where((np.abs(across) < 1.6 * LANE)[..., None], 85 + 45 * tones[3, 1], verge)
    picture = np.where(ground[..., None], road, picture)
    edge = np.maximum(0.09, distance / FOCAL)  # at least a pixel wide
    lines = np.abs(np.abs(across) - LANE / 2) < edge
    kerb = np.abs(np.abs(across) - 1.5 * LANE) < edge
    picture[kerb & ground] = 205
    return (picture * light).clip(0, 255).astype(np.uint8), lines & ground, distance[:, 0]


def _project(x, depth, up, horizon):
    """Column and row of a point: metres across, ahead of the camera and above the ground."""
    return WIDTH / 2 + FOCAL * x / depth, horizon + FOCAL * (EYE - up) / depth


def boxes_of(world, look):
    """Boxes of the vehicles of one scene in the frame.

    Parameters
    ----------
    world : World
        One scene: arrays of shape (1, k).
    look : SimpleNamespace
        From `look_of`.

    Returns
    -------
    boxes : ndarray of shape (k, 4)
        x, y, width and height in whole pixels, cut at the frame.
    seen : ndarray of shape (k,)
        Whether the vehicle is there, ahead, large enough, and not behind a single nearer one.
    """
    horizon = HORIZON - DIP * bool(world.braking[0])
    depth = world.gap[0] + BONNET
    near = np.maximum(depth, 0.5)
    half = look.size[:, 0] / 2
    edges = [
        _project(world.x[0] + side * half, z, 0, horizon)[0]
        for side in (-1, 1)
        for z in (near, near + SIDE)
    ]
    x0, x1 = np.min(edges, axis=0), np.max(edges, axis=0)
    y1 = _project(0, near, 0, horizon)[1]
    y0 = _project(0, near, look.size[:, 1], horizon)[1]
    corners = np.round([x0, y0, x1, y1]).clip(0, [[WIDTH], [HEIGHT], [WIDTH], [HEIGHT]])
    x0, y0, x1, y1 = corners.astype(int)
    seen = world.present[0] & (depth > BONNET) & (np.minimum(x1 - x0, y1 - y0) >= SMALLEST)
    order = np.argsort(depth)
    for i, near in enumerate(order):
        for far in order[i + 1 :] if seen[near] else ():
            inside = x0[near] <= x0[far] and x1[far] <= x1[near] and y0[near] <= y0[far]
            seen[far] &= not inside
    return np.stack([x0, y0, x1 - x0, y1 - y0], axis=1), seen


def draw_frame(world, look, travelled, number):
    """Draw one frame.

    Parameters
    ----------
    world : World
        One scene: arrays of shape (1, k).
    look : SimpleNamespace
        From `look_of`.
    travelled : float
        Metres that the car has driven, which move the lines of the road.
    number : int
        Number of the frame, which makes indicators blink.

    Returns
    -------
    PIL.Image.Image
        RGB, 710 x 400.
    """
    dip = int(world.braking[0])
    picture, lines, distance = look.ground[dip]
    picture = picture.copy()
    picture[lines & ((distance + travelled) % 9 < 4)[:, None]] = int(225 * look.light)
    image = Image.fromarray(picture).resize((WIDTH, HEIGHT), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(image)
    horizon = HORIZON - DIP * dip
    for post in np.arange(-travelled % 25 + 100, 3, -25.0):  # the farthest first
        for x in (-2.2 * LANE, 2.2 * LANE):
            foot, head = _project(x, post, 0, horizon), _project(x, post, 3.5, horizon)
            colour = (int(70 * look.light),) * 3
            draw.line([foot, head], fill=colour, width=max(int(90 / post), 1))
    for k in np.argsort(-world.gap[0]):
        if world.present[0, k] and world.gap[0, k] > -0.5:
            _vehicle(draw, world, look, k, horizon, number)
    return image


def _vehicle(draw, world, look, k, horizon, number):
    """Draw one vehicle: its side, its back (or front), windows, tyres and lamps."""
    x, depth = world.x[0, k], world.gap[0, k] + BONNET
    width, height = look.size[k]
    colour = look.paint[k] * look.light

    def shade(by):
        return tuple(int(v) for v in np.clip(colour * by, 0, 255))

    def at(across, up, ahead=0.0):
        return _project(x + across * width / 2, depth + ahead, up * height, horizon)

    def face(left, right, low, high, fill):
        draw.rectangle([*at(left, high), *at(right, low)], fill=fill)

    face(-1.05, 1.05, -0.03, 0.12, (12, 12, 14))  # the shadow under it
    if abs(x) > width / 2:
        inner = -np.sign(x)  # the side that the camera sees
        side = [at(inner, 0.1), at(inner, 0.95), at(inner, 0.95, SIDE), at(inner, 0.1, SIDE)]
        draw.polygon(side, fill=shade(0.7))
    face(-1, 1, 0.13, 0.97, shade(1.0))
    face(-0.82, 0.82, 0.60, 0.92, tuple(int(v * look.light) for v in (45, 55, 70)))
    for tyre in (-0.85, 0.6):
        face(tyre, tyre + 0.25, 0, 0.2, (15, 15, 15))
    if world.way[0, k] < 0:
        lamp = (255, 250, 215)
    else:
        lamp = (255, 45, 25) if world.doing[0, k] == BRAKE else (105, 12, 12)
    for left in (-0.97, 0.57):
        face(left, left + 0.4, 0.36, 0.54, lamp)
    if world.doing[0, k] >= DRIFT and look.indicates[k] and number % 6 < 4:
        inner = -np.sign(x) * np.sign(world.way[0, k] + 2)
        face(*sorted((inner * 0.62, inner * 1.0)), 0.36, 0.54, (255, 170, 0))
