"""The drawing of faces, layer upon layer, for a block of faces at once.

Coordinates are those of the face: origin between the cheeks, one unit half the image, x to the
right, y down. Features come in pairs, so most are drawn once, on the distance `m` from the
face's axis. Every edge is one pixel wide and soft, so that faces are smooth at any size.
"""

from types import SimpleNamespace

import numpy as np

BLOCK = 128
"""Faces drawn at once: few enough for the processor's cache."""


def render(traits, size, rng):
    """Draw a block of faces.

    Parameters
    ----------
    traits : dict of str to ndarray
        Traits by name, each float32 of shape (n, 1, 1) or, for colours, (n, 3, 1, 1).
    size : int
        Height and width in pixels.
    rng : numpy.random.Generator
        Source of the sensor noise.

    Returns
    -------
    ndarray of shape (n, 3, size, size)
        uint8, RGB.
    """
    t = SimpleNamespace(**traits)
    grid = (np.arange(size, dtype=np.float32) + 0.5) * (2 / size) - 1
    f = _pose(t, grid[None, None, :], grid[None, :, None], 2 / size)
    canvas = _background(t, grid[None, None, :], grid[None, :, None])
    _behind(canvas, t, f)
    noise = rng.standard_normal((len(canvas), 4, size, size), dtype=np.float32)
    _head(canvas, t, f, noise[:, 3])
    _eyes(canvas, t, f)
    _mouth(canvas, t, f)
    _hair(canvas, t, f)
    if t.glasses.any():
        x, y = (f.m - t.eye_x) / 0.21, (f.y - t.eye_y - 0.02) / 0.17
        rim = _stroke((np.sqrt(x * x + y * y) - 1) * 0.19, 0.018, f.pixel)
        bridge = _stroke(f.y - t.eye_y, 0.015, f.pixel) * _inside(f.m - 0.08, f.pixel)
        _paint(canvas, t.glasses * np.maximum(rim, bridge), np.float32(0.08))
    return _camera(canvas, t, noise[:, :3])


def _inside(distance, pixel):
    """Coverage of a pixel whose signed distance to an edge is given: 1 inside, 0 outside."""
    return np.clip(0.5 - distance / pixel, 0, 1)


def _ellipse(x, y, a, b, pixel):
    radius = np.sqrt((x / a) ** 2 + (y / b) ** 2)
    return _inside((radius - 1) * np.minimum(a, b), pixel)


def _stroke(distance, width, pixel):
    """Coverage by a line; one thinner than a pixel is drawn a pixel wide and fainter."""
    reach = np.maximum(width, pixel)
    return np.clip(1 - np.abs(distance) / reach, 0, 1) * (width / reach)


def _paint(canvas, mask, colour):
    change = colour - canvas
    change *= mask[:, None]
    canvas += change


def _pose(t, x, y, pixel):
    """Return the coordinates of the pixels in the face, and the outline of the head."""
    dx, dy = x - t.shift_x, y - t.shift_y
    cos, sin = np.cos(t.angle), np.sin(t.angle)
    u, v = (cos * dx + sin * dy) / t.scale, (cos * dy - sin * dx) / t.scale
    x = u - t.yaw  # features turn with the head, the outline does not
    jaw = np.clip(v / t.height, 0, 1)
    width = t.width * (1 - t.taper * jaw * jaw)
    radius = np.sqrt((u / width) ** 2 + (v / t.height) ** 2)
    pixel = 1.2 * np.float32(pixel) / t.scale
    head = _inside((radius - 1) * t.width, pixel)
    return SimpleNamespace(
        u=u, x=x, m=np.abs(x), y=v, pixel=pixel, width=width, radius=radius, head=head
    )


def _background(t, x, y):
    ramp = np.clip(0.5 + 0.5 * (np.cos(t.back_angle) * x + np.sin(t.back_angle) * y), 0, 1)
    canvas = t.back_a + ramp[:, None] * (t.back_b - t.back_a)
    wave = np.sin(t.wave_x * x + t.wave_phase) * np.sin(t.wave_y * y + 2 * t.wave_phase)
    canvas += (t.wave * wave)[:, None]
    return canvas


def _behind(canvas, t, f):
    """Long hair, shoulders, neck and ears."""
    u, y, pixel = np.abs(f.u), f.y, f.pixel
    if t.long.any():
        spread = t.width + 0.10 + 0.10 * np.clip(y, -0.5, 1)
        fall = _inside(u - spread, pixel) * _inside(-0.35 - y, pixel)
        fall *= _inside(y - 0.1 - t.long + 0.6 * u * u, 3 * pixel)
        _paint(canvas, fall * (t.long > 0) * t.hair_alpha, 0.75 * t.hair)
    _paint(canvas, _inside(0.95 + 0.35 * u * u - y, pixel), t.cloth)
    neck = _inside(u - 0.62 * t.width, pixel) * _inside(0.3 - y, pixel)
    _paint(canvas, neck * _inside(y - 1.02 + 0.3 * u, pixel), 0.72 * t.skin)
    ears = _ellipse(u - t.width - 0.01, y - t.eye_y - 0.12, np.float32(0.08), 0.15, pixel)
    _paint(canvas, ears, 0.82 * t.skin)


def _head(canvas, t, f, grain):
    """The head: one tone (light, folds, wrinkles, texture) on one colour, with rosy cheeks."""
    depth = np.sqrt(np.clip(1 - f.radius * f.radius, 0, 1))
    light = t.light_x * f.u / f.width + t.light_y * f.y / t.height + 0.9 * depth
    tone = t.ambient + (1.05 - t.ambient) * np.clip(light, -0.3, 1.2)
    tone *= 1 - np.clip(_creases(t, f) + _nose(t, f), 0, 0.7)
    spots = np.sin(23 * f.x + t.phase) * np.sin(19 * f.y + 2 * t.phase)
    tone *= 1 - t.spots * np.clip(3 * spots - 1.6, 0, 1)
    tone += t.texture * grain
    face = tone[:, None] * t.skin
    cheeks = np.clip(1 - ((f.m - 0.33) / 0.22) ** 2 - ((f.y - 0.32) / 0.2) ** 2, 0, 1)
    blush = t.blush * cheeks
    face[:, 0] += 0.6 * blush
    face[:, 1:] -= 0.5 * blush[:, None]
    _paint(canvas, f.head, face)
    jaw = np.clip((f.y - t.eye_y - t.nose - 0.02) / 0.15, 0, 1) * np.clip(3 * f.radius - 1.2, 0, 1)
    _paint(canvas, f.head * t.beard * jaw, t.hair)


def _creases(t, f):
    """Darkening by wrinkles, bags and folds: what age writes into a face."""
    m, x, y, pixel = f.m, f.x, f.y, f.pixel
    eye = (m - t.eye_x) / t.eye_w
    socket = np.clip(1 - (eye / 1.7) ** 2 - ((y - t.eye_y) / 0.17) ** 2, 0, 1)
    dark = t.socket * socket
    under = y - t.eye_y - t.eye_h - 0.055 + 0.03 * eye * eye
    dark += t.bags * _stroke(under, 0.03, pixel) * np.clip(1.5 - np.abs(eye), 0, 1)
    out = m - t.eye_x - t.eye_w - 0.02
    fan = np.minimum(np.abs(y - t.eye_y - 0.4 * out), np.abs(y - t.eye_y + 0.4 * out))
    dark += t.crow * _stroke(fan, 0.02, pixel) * _inside(np.abs(out - 0.05) - 0.06, pixel)
    line = (y - t.eye_y + t.brow_y + 0.08 + 0.02 * np.cos(6 * x + t.phase)) / 0.085
    line = np.abs(line - np.clip(np.rint(line), -2, 0)) * 0.085
    dark += t.forehead * _stroke(line, 0.022, pixel) * _inside(m - 0.33, 5 * pixel)
    nose_y, mouth_y = t.eye_y + t.nose, t.eye_y + t.nose + t.mouth
    along = (y - nose_y + 0.03) / t.mouth
    fold = _stroke(m - 0.11 - 0.13 * np.clip(along, 0, 1.3) - 0.03 * t.smile, 0.028, pixel)
    dark += t.folds * fold * np.clip(4 * along, 0, 1) * np.clip(4 * (1.25 - along), 0, 1)
    droop = _stroke(m - 0.27 - 0.25 * (y - mouth_y), 0.03, pixel)
    return dark + t.jowl * droop * _inside(np.abs(y - mouth_y - 0.12) - 0.1, 2 * pixel)


def _nose(t, f):
    """Darkening by the nose: the side away from the light, the base and the nostrils."""
    x, y = f.x - 0.35 * t.yaw, f.y - t.eye_y - t.nose
    bridge = np.clip(-y / t.nose, 0, 1)
    side = x * np.where(t.light_x > 0, -1, 1) - t.nose_w * (1.1 - 0.6 * bridge)
    dark = 0.20 * _stroke(side, 0.05, f.pixel) * (bridge > 0) * (1 - bridge)
    base = y - 0.01 + 0.4 * (np.abs(x) - t.nose_w) ** 2 / t.nose_w
    dark += 0.22 * _stroke(base, 0.03, f.pixel) * _inside(np.abs(x) - 1.5 * t.nose_w, f.pixel)
    nostril = _ellipse(np.abs(x) - 0.75 * t.nose_w, y, 0.4 * t.nose_w, 0.022, f.pixel)
    return dark + 0.45 * nostril


def _eyes(canvas, t, f):
    x, y = f.m - t.eye_x, f.y - t.eye_y
    radius = np.sqrt((x / t.eye_w) ** 2 + (y / t.eye_h) ** 2)
    eye = _inside((radius - 1) * t.eye_h, f.pixel)
    _paint(canvas, 0.9 * eye, np.float32(0.92))
    side = np.where(f.x > 0, t.gaze, -t.gaze)
    apart = np.sqrt((x - side) ** 2 + y * y)
    _paint(canvas, eye * _inside(apart - t.iris, f.pixel), t.iris_colour)
    _paint(canvas, eye * _inside(apart - 0.45 * t.iris, f.pixel), np.float32(0.03))
    glint = np.sqrt((f.m - t.eye_x - side - 0.018) ** 2 + (y + 0.02) ** 2)
    _paint(canvas, eye * _inside(glint - 0.013, f.pixel), np.float32(1.0))
    lid = _stroke((radius - 1) * t.eye_h, 0.022, f.pixel) * np.clip(0.4 - y / t.eye_h, 0.15, 1)
    _paint(canvas, 0.8 * lid, 0.25 * t.skin)
    brow = y + t.brow_y + t.brow_arch * (1 - (x / 0.17) ** 2) - 0.1 * x
    mask = _stroke(brow, 1.6 * t.brow_thick, f.pixel) * _inside(np.abs(x) - 0.16, 2 * f.pixel)
    _paint(canvas, t.brow_alpha * mask, 0.8 * t.hair)


def _mouth(canvas, t, f):
    y = f.y - t.eye_y - t.nose - t.mouth
    across = (f.x - 0.1 * t.yaw) / (t.mouth_w * (1 + 0.12 * t.smile))
    bow = np.clip(1 - across * across, 0, 1)
    y = y - 0.07 * t.smile * (bow - 0.5)
    gap = 0.05 * t.open * (0.4 + np.clip(t.smile, 0, 1)) * bow
    lips = _inside(np.abs(y) - gap - t.lip * np.sqrt(bow), f.pixel) * (bow > 0)
    _paint(canvas, lips, t.lips)
    _paint(canvas, 0.9 * _inside(np.abs(y) - gap, f.pixel) * (gap > 0.004), np.float32(0.88))
    line = _stroke(np.abs(y) - gap, 0.014, f.pixel) * (bow > 0)
    _paint(canvas, 0.8 * line, 0.30 * t.skin)


def _hair(canvas, t, f):
    """Hair on the head: above the hairline, and beside the face down to its length."""
    u, y, pixel = f.u, f.y, f.pixel
    thick = np.maximum(t.hair_thick, 0.01)
    top = t.height + thick * (1 - t.bald)
    wide = t.width + 0.5 * thick
    cap = _inside((np.sqrt((u / wide) ** 2 + (y / top) ** 2) - 1) * wide, pixel)
    across = u / t.width
    square = across * across  # the line falls at the sides; recession lifts it at the temples
    ragged = 0.025 * np.sin(2 * t.streak * u + t.phase)
    line = y + t.hairline - t.fringe - t.temples * square - 0.45 * square * square
    line += ragged + t.parting * across
    above = _inside(line, 1.5 * pixel)
    beside = _inside((0.93 - f.radius) * t.width, pixel) * _inside(y - t.side, 2 * pixel)
    mask = cap * np.maximum(above, beside)
    strand = u / np.maximum(y + t.height + 0.5, 0.2)  # strands run down from the crown
    shine = 1 + 0.10 * np.sin(t.streak * strand + t.phase) + 0.3 * (f.radius - 0.85)
    light = 1 + 0.25 * t.light_x * across - 0.12 * y / t.height
    _paint(canvas, mask * t.hair_alpha, (shine * light)[:, None] * t.hair)


def _camera(canvas, t, noise):
    """Contrast, brightness, cast, black and white for some, sensor noise, eight bits."""
    canvas = (canvas - 0.5) * t.contrast[:, None] + 0.5
    canvas = canvas * t.brightness[:, None] + t.cast
    mean = canvas.mean(axis=1, keepdims=True)
    canvas += t.grey_image[:, None] * (mean - canvas)
    canvas += t.noise[:, None] * noise
    return np.rint(np.clip(canvas, 0, 1) * 255).astype(np.uint8)
