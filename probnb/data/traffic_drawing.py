"""The drawing of simulated traffic: frames of a dashboard camera, and the boxes of the vehicles.

A pinhole camera looks along the road. The ground is computed at half the size, which is quick; the
vehicles are polygons at full size, the farthest first. Braking shows as lamps, a change of lane as
motion and, for most drivers, an indicator; the car's own braking as a dip of its nose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from .traffic_model import BRAKE, DRIFT, LANE, STEP

__all__ = ["HEIGHT", "WIDTH", "Look", "boxes_of", "draw_frame", "look_of", "metres"]

WIDTH, HEIGHT = 710, 400
"""Pixels of a frame."""

FOCAL, EYE, BONNET = 600.0, 1.3, 2.0  # pixels; metres above the ground, behind the bumper
HORIZON, DIP = 172.0, 6.0  # row of the horizon; rows by which it rises when the car brakes
SIDE = 4.2  # length of a vehicle's side
SMALLEST = 5  # pixels: a vehicle below it has no box
_ROWS = np.arange(0.5, HEIGHT // 2)[:, None] * 2
_COLUMNS = np.arange(0.5, WIDTH // 2)[None, :] * 2 - WIDTH / 2


@dataclass(frozen=True)
class Look:
    """How one scene looks: nothing in it depends on what will happen.

    Attributes
    ----------
    size : ndarray of shape (k, 2)
        Width and height of each vehicle, in metres.
    paint : ndarray of shape (k, 3)
        Colour of each vehicle.
    indicates : ndarray of shape (k,)
        Whether its driver uses the indicator.
    light : float
        Brightness, low at night.
    ground : dict of bool to tuple
        For the car braking or not: the picture without traffic, where the lines of the lanes are,
        distance along the road of every row.
    """

    size: np.ndarray
    paint: np.ndarray
    indicates: np.ndarray
    light: float
    ground: dict


def look_of(vehicles, rng):
    """Draw how a scene of some vehicles looks."""
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
    return Look(size, paint, rng.random(vehicles) < 0.6, light, ground)


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
    look : Look
        How it looks.

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
    look : Look
        How it looks.
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


def metres(worlds):
    """Distance that the car has driven up to each of some consecutive frames of one scene."""
    speeds = [float(world.car[0]) for world in worlds]
    return np.concatenate([[0], np.cumsum(speeds[:-1]) * STEP])
