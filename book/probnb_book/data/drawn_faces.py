"""Drawn faces: small images whose age cues are noisy and mixed with nuisance.

They stand in for photographs where none are at hand. Every face has a true age; it shows through
head shape, features, hair, skin and wrinkles, each of which follows an *apparent* age of its own,
scattered around the true one. Pose, light, skin tone, hair style, expression, background and
sensor noise carry no information. `probnb_book.data.face_rendering` turns the traits into pixels.
"""

from types import SimpleNamespace

import numpy as np
import torch
from scipy.special import expit, ndtri

from probnb.validation import check_integer

from .face_rendering import BLOCK, render

VERSION = 3
"""Raised whenever the same seed would draw other images: part of the key of finished work."""

# weight, then quantile function: infants, children, twenty-six (the mode), young, the long tail
AGES = (
    (0.105, lambda q: 1 - 1.7 * np.log1p(-q)),
    (0.105, lambda q: 5 + 15 * q),
    (0.055, lambda q: np.full_like(q, 26.0)),
    (0.325, lambda q: 28 + 5 * ndtri(q)),
    (0.410, lambda q: np.interp(q, [0, 0.39, 0.76, 0.88, 0.976, 0.998, 1], TAIL)),
)
TAIL = (26, 45, 61, 72, 87, 100, 116)


def drawn_faces(n, size=32, seed=0):
    """Draw small images of faces, with their ages.

    Parameters
    ----------
    n : int
        How many.
    size : int, default=32
        Height and width in pixels, at least 8. The same face is drawn at any size; only the
        sensor noise differs.
    seed : int, default=0
        The same seed draws the same faces, bit for bit, and a larger `n` draws the same faces
        and more.

    Returns
    -------
    images : torch.Tensor of shape (n, 3, size, size)
        uint8, RGB.
    ages : ndarray of shape (n,)
        int64, in years, 0 to 116, distributed much like UTKFace's: infants, a mode at 26, a
        median near 29, a long tail.

    Raises
    ------
    ValueError
        If `n` or `size` is too small, or `seed` negative.

    Notes
    -----
    The inputs of Section 7.1 of Liu et al. (2022) are photographs; these drawings take their
    place where there are none. Apparent age scatters around the true age by about one year in
    infants and two at fifty: an age can be estimated but not read.

    Examples
    --------
    >>> images, ages = drawn_faces(3, size=16)
    >>> images.shape, images.dtype, ages.shape
    (torch.Size([3, 3, 16, 16]), torch.uint8, (3,))
    """
    n, size = check_integer(n, "n"), check_integer(size, "size", minimum=8)
    seed = check_integer(seed, "seed", minimum=0)
    # one row of random numbers per face, so that the first faces do not depend on n
    uniform = np.random.default_rng([seed, 0]).random((n, 40))
    normal = np.random.default_rng([seed, 1]).standard_normal((n, 80))
    ages = _ages(uniform[:, 0], uniform[:, 1])
    traits = _traits(ages, iter(uniform[:, 2:].T), iter(normal.T))
    images = np.empty((n, 3, size, size), np.uint8)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        block = {name: value[rows] for name, value in traits.items()}
        rng = np.random.default_rng([seed, 2, start // BLOCK])
        images[rows] = render(block, size, rng)
    return torch.from_numpy(images), ages


def _ages(which, quantile):
    weights = np.array([weight for weight, _ in AGES])
    component = np.searchsorted(np.cumsum(weights / weights.sum()), which)
    ages = np.choose(component, [draw(quantile) for _, draw in AGES])
    return np.clip(np.rint(ages), 0, 116).astype(np.int64)


def _traits(ages, uniform, normal):
    """Return what each face looks like: name -> float32 of shape (n, 1, 1) or (n, 3, 1, 1)."""
    u, z = lambda: next(uniform), lambda: next(normal)
    bias = z()  # of the person: looks older or younger all over

    def looks(own=1.0):
        """An apparent age for one cue: true age, the person's bias, the cue's own scatter."""
        scatter = 0.5 + 0.015 * ages
        return np.maximum(ages + scatter * (1.2 * bias + 0.9 * own * z()), 0.0)

    def late(start, width):
        """A trait that comes with age: 0 before, 1 long after `start`."""
        return expit((looks() - start) / width)

    grown = {k: 1 - np.exp(-looks(0.6) / 9) for k in ("shape", "eyes", "nose", "place")}
    male = (u() < 0.52).astype(float)
    adult = ages > 16 + 2 * z()
    t = SimpleNamespace()
    _shape(t, grown, late, male, z)
    _nuisance(t, u, z)
    _hair(t, looks, late, male, adult, u, z)
    _skin(t, looks, late, u, z)
    t.beard = male * adult * (u() < 0.3) * (0.15 + 0.55 * u())
    t.glasses = (u() < 0.05 + 0.2 * late(50, 12)) * (0.4 + 0.5 * u())
    return {k: np.asarray(v.reshape(*v.shape, 1, 1), np.float32) for k, v in vars(t).items()}


def _shape(t, grown, late, male, z):
    """Head and features, in units of half the image: infants are round, with large low eyes."""
    shape, eyes, nose, place = (grown[k] for k in ("shape", "eyes", "nose", "place"))
    lid = late(52, 14)
    t.width = 0.68 - 0.14 * shape + 0.06 * late(29, 5) + 0.03 * late(52, 14) + 0.015 * z()
    t.height = 0.68 + 0.13 * shape + 0.015 * z()
    full = late(29, 6)
    t.taper = 0.08 + 0.30 * shape - 0.12 * full - 0.14 * late(55, 14) - 0.04 * male + 0.03 * z()
    t.eye_x = 0.27 - 0.015 * shape + 0.01 * z()
    t.eye_y = 0.14 - 0.21 * place + 0.015 * z()
    t.eye_w = 0.150 - 0.025 * eyes - 0.022 * lid + 0.006 * z()
    t.eye_h = np.maximum(0.112 - 0.040 * eyes - 0.038 * lid + 0.006 * z(), 0.022)
    t.iris = 0.072 - 0.014 * eyes - 0.008 * lid + 0.002 * z()
    t.brow_y = 0.16 - 0.03 * lid + 0.012 * z()
    t.brow_thick = np.maximum(0.008 + 0.022 * eyes + 0.008 * male + 0.006 * z(), 0.004)
    t.brow_arch = 0.03 + 0.015 * z()
    t.nose = 0.22 + 0.12 * nose + 0.05 * late(55, 15) + 0.015 * z()
    t.nose_w = 0.055 + 0.03 * nose + 0.02 * late(55, 15) + 0.006 * z()
    t.mouth = 0.17 + 0.02 * z()
    t.mouth_w = 0.17 + 0.05 * shape + 0.015 * z()
    t.lip = np.maximum(0.056 - 0.036 * late(46, 13) - 0.008 * male + 0.006 * z(), 0.012)


def _nuisance(t, u, z):
    """Pose, light, background, expression and camera: nothing that depends on age."""
    corner = np.stack([u(), u(), u()], axis=1)
    other = np.clip(corner + 0.18 * np.stack([z(), z(), z()], axis=1), 0, 1)
    t.shift_x = 0.03 * z()
    t.shift_y = 0.05 + 0.03 * z()
    t.angle = 0.07 * z()
    t.scale = np.clip(1 + 0.05 * z(), 0.8, 1.25)
    t.yaw = np.clip(0.07 * z(), -0.18, 0.18)
    t.light_x = 0.35 * z()
    t.light_y = -0.15 + 0.2 * z()
    t.ambient = 0.6 + 0.2 * u()
    t.back_a = _muted(corner)
    t.back_b = _muted(other)
    t.back_angle = 2 * np.pi * u()
    t.wave_x = 4 * z()
    t.wave_y = 4 * z()
    t.wave_phase = 2 * np.pi * u()
    t.wave = 0.12 * u()
    t.cloth = _muted(np.stack([u(), u(), u()], axis=1))
    t.smile = np.clip(0.5 + 0.6 * z(), -0.6, 1.6)
    t.open = np.clip(0.6 * z(), 0, 1)
    t.gaze = 0.02 * z()
    t.brightness = np.clip(1 + 0.12 * z(), 0.65, 1.3)
    t.contrast = np.clip(1 + 0.12 * z(), 0.7, 1.3)
    t.cast = 0.03 * np.stack([z(), z(), z()], axis=1)
    t.grey_image = (u() < 0.07) * 1.0
    t.noise = 0.008 + 0.02 * u()


def _muted(colour):
    mean = colour.mean(axis=1, keepdims=True)
    return 0.1 + 0.8 * np.clip(mean + 1.2 * (mean - 0.5) + 0.45 * (colour - mean), 0, 1)


def _hair(t, looks, late, male, adult, u, z):
    """Amount, line, length and colour of the hair."""
    grey = late(48, 7) * (u() > 0.15 * (1 - male))  # some dye it
    dark, red = u(), u() ** 2
    colour = np.stack([0.62 - 0.5 * dark, 0.47 - 0.4 * dark - 0.1 * red, 0.28 - 0.22 * dark], 1)
    silver = np.stack([0.80 + 0.08 * u()] * 3, axis=1) * [1.0, 0.99, 0.97]
    t.hair = np.clip(colour + (silver - colour) * grey[:, None], 0.04, 1)
    bald = t.bald = np.clip(late(52, 9) + 0.25 * z() - 0.15, 0, 1) * male * (u() < 0.7)
    young = np.clip(looks(0.5) / 3.5, 0, 1)
    t.hair_alpha = np.clip(0.25 + 0.75 * young, 0, 1) * (1 - 0.25 * late(75, 8))
    thick = 0.04 + (0.12 + 0.05 * (1 - male)) * young
    t.hair_thick = thick * (1 - 0.4 * late(68, 10)) + 0.03 * z()
    t.hairline = 0.52 - 0.02 * young + 0.03 * z() + 0.05 * late(40, 10) + 0.24 * bald
    t.fringe = np.where(u() < 0.35 * (1 - bald), 0.16 * u(), 0.0) * young
    t.temples = 0.06 * z() - 0.35 * bald - 0.06 * male * adult
    t.parting = 0.08 * z()
    t.long = (u() < 0.08 + 0.62 * (1 - male)) * young * (0.4 + 0.6 * u())
    t.side = 0.05 + 0.15 * z()
    t.streak = 30 + 6 * z()
    t.brow_alpha = np.clip(0.3 + 0.6 * young - 0.2 * late(72, 8) + 0.1 * z(), 0.1, 1)


def _skin(t, looks, late, u, z):
    """Skin tone (nuisance) and what age does to the skin."""
    tone = u() ** 1.3
    stops = np.array([[0.95, 0.78, 0.68], [0.80, 0.59, 0.46], [0.40, 0.26, 0.20]])
    skin = np.stack([np.interp(tone, [0, 0.5, 1], channel) for channel in stops.T], axis=1)
    sallow = np.clip((looks() - 16) / 40, 0, 1)[:, None] * [-0.10, -0.085, -0.095]

    def creased(start):
        return np.clip((looks() - start) / 35, 0, 1)

    t.skin = skin + sallow + 0.02 * z()[:, None]
    t.lips = skin * [0.88, 0.62, 0.62] + 0.02 * z()[:, None]
    t.blush = np.clip(0.2 - 0.18 * late(26, 5) + 0.02 * z(), 0, 0.24)
    t.iris_colour = np.where(
        (u() < 0.3 * (1 - tone))[:, None], [0.35, 0.48, 0.60], [0.22, 0.13, 0.08]
    )
    t.forehead = 0.8 * creased(24)
    t.crow = 0.7 * creased(26)
    t.bags = 0.05 + 0.65 * creased(20)
    t.folds = 0.04 + 0.75 * creased(17)
    t.jowl = 0.6 * creased(40)
    t.socket = 0.03 + 0.30 * creased(28)
    t.spots = 0.20 * creased(55)
    t.texture = 0.004 + 0.035 * creased(30)
    t.phase = 2 * np.pi * u()
