r"""Simulated rain whose probabilities are known: cells that drift, grow and decay.

The rain of a scene is a sum of round cells. Each cell has its peak, its width and its own growth
rate, and all drift with one wind. In the hour after the last map everything is multiplied by one
more factor that nobody can see coming, :math:`e^{\sigma Z}` with Z standard normal. If
:math:`M_0` is the area mean of the last map and :math:`M` what the cells alone make of it in an
hour, then

.. math:: p = P(M e^{\sigma Z} > M_0) = \Phi\!\left(\frac{\log M - \log M_0}{\sigma}\right),

and both means are sums over cells of a product of two sums over pixels: exact, without drawing
anything.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
import torch
from scipy.special import ndtr

from ..validation import check_integer, check_number
from .base import ProbabilityData, Splits
from .rain import Turn, encode

__all__ = ["Climate", "Scenes", "draw_scenes", "simulated_splits"]


@dataclass(frozen=True)
class Climate:
    """What the rain of the simulator is like; times in hours, lengths in km.

    Parameters
    ----------
    side : float, default=95
        Height and width of the area.
    cells : float, default=8
        Mean number of cells, Poisson, in the area and a margin around it, from where more drift
        in; at least one.
    margin : float, default=20
        Width of the margin.
    width : tuple of float, default=(6, 18)
        Standard deviations of the cells, log-uniform.
    wind : float, default=20
        Standard deviation of each component of the wind in km/h, one wind a day.
    growth : float, default=0.7
        Standard deviation of the cells' growth rates per hour.
    shared : float, default=0.4
        Standard deviation of the part of the growth that the cells of a day have in common.
    sigma : float, default=0.9
        Standard deviation of the logarithm of the unforeseeable factor.
    spacing : float, default=10
        Minutes between the three maps.
    lead : float, default=60
        Minutes from the last map to the one that decides.
    """

    side: float = 95.0
    cells: float = 8.0
    margin: float = 20.0
    width: tuple = (6.0, 18.0)
    wind: float = 20.0
    growth: float = 0.7
    shared: float = 0.4
    sigma: float = 0.9
    spacing: float = 10.0
    lead: float = 60.0

    def __post_init__(self):
        for name in ("side", "cells", "sigma", "spacing", "lead"):
            check_number(getattr(self, name), name, 0, exclusive=True)
        for name in ("margin", "wind", "growth", "shared"):
            check_number(getattr(self, name), name, 0)


@dataclass(frozen=True, eq=False)
class Scenes:
    """The hidden state of simulated scenes at the time of their last map.

    Parameters
    ----------
    centres : ndarray of shape (n, cells, 2)
        Down and across from the corner of the area, km.
    widths, peaks, growth : ndarray of shape (n, cells)
        Standard deviation (km), rain rate at the centre (mm/h, 0 for no cell), growth rate (1/h).
    wind : ndarray of shape (n, 2)
        Km/h, down and across.
    climate : Climate
        What they were drawn from.
    """

    centres: np.ndarray
    widths: np.ndarray
    peaks: np.ndarray
    growth: np.ndarray
    wind: np.ndarray
    climate: Climate

    def _state(self, minutes, size):
        """Peaks, and each cell's profile along both axes, some minutes after the last map."""
        hours = minutes / 60
        centres = self.centres + hours * self.wind[:, None]
        pixel = (np.arange(size) + 0.5) * self.climate.side / size
        distance = (pixel - centres[..., None]) / self.widths[..., None, None]
        return self.peaks * np.exp(hours * self.growth), np.exp(-(distance**2) / 2)

    def maps(self, minutes, size=32):
        """Rain rates in mm/h without the unforeseeable factor.

        Parameters
        ----------
        minutes : float
            After the last map; negative for before.
        size : int, default=32
            Pixels along the side of the area.

        Returns
        -------
        ndarray of shape (n, size, size)
            The maps.
        """
        peaks, profile = self._state(minutes, size)
        return np.einsum("nk,nki,nkj->nij", peaks, profile[:, :, 0], profile[:, :, 1])

    def means(self, minutes, size=32):
        """Area means of `maps`, of shape (n,), without drawing them."""
        peaks, profile = self._state(minutes, size)
        return (peaks * profile.mean(-1).prod(-1)).sum(-1)

    def probabilities(self, size=32):
        """Probability, of shape (n,), that the area mean is higher a lead time later."""
        change = np.log(self.means(self.climate.lead, size)) - np.log(self.means(0, size))
        return ndtr(change / self.climate.sigma)


def draw_scenes(n, day, climate, rng):
    """Draw scenes, those of one day with one wind and one part of growth in common.

    Parameters
    ----------
    n : int
        How many.
    day : ndarray of int of shape (n,)
        Day of each scene, from 0.
    climate : Climate
        What the rain is like.
    rng : numpy.random.Generator
        Where chance comes from.

    Returns
    -------
    Scenes
        Their hidden state.
    """
    days = int(day.max()) + 1
    wind = climate.wind * rng.standard_normal((days, 2))
    shared = climate.shared * rng.standard_normal(days)
    number = np.maximum(rng.poisson(climate.cells, n), 1)
    k = int(number.max())
    low, high = np.log(climate.width)
    peaks = np.exp(rng.normal(0.5, 1.0, (n, k))) * (np.arange(k) < number[:, None])
    centres = rng.uniform(-climate.margin, climate.side + climate.margin, (n, k, 2))
    centres[:, 0] = rng.uniform(0, climate.side, (n, 2))  # rain within the area at the last map
    return Scenes(
        centres=centres,
        widths=np.exp(rng.uniform(low, high, (n, k))),
        peaks=peaks,
        growth=shared[day][:, None] + climate.growth * rng.standard_normal((n, k)),
        wind=wind[day],
        climate=climate,
    )


def simulated_splits(n=3000, size=32, seed=0, climate=None, per_day=20):
    """Simulated weather task with ground-truth probabilities, split by days.

    Parameters
    ----------
    n : int, default=3000
        Windows in all; training, validation and test have the paper's proportions 20 : 6 : 3.
    size : int, default=32
        Height and width of the maps in pixels.
    seed : int, default=0
        Seed of scenes and outcomes.
    climate : Climate, optional
        What the rain is like.
    per_day : int, default=20
        Windows of one day.

    Returns
    -------
    probnb.data.base.Splits
        Inputs uint8 of shape (n, 3, size, size), as `probnb.data.rain.encode` makes them; given p
        outcomes are independent.

    Raises
    ------
    ValueError
        If there are too few windows for three days.
    """
    climate = climate or Climate()
    for name, value, least in (("size", size, 2), ("per_day", per_day, 1), ("seed", seed, 0)):
        check_integer(value, name, minimum=least)
    check_integer(n, "n", minimum=3 * per_day)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0x5241494E]))
    day = np.arange(n) // per_day
    scenes = draw_scenes(n, day, climate, rng)
    p = scenes.probabilities(size)
    y = (rng.random(n) < p).astype(np.float32)
    inputs = np.stack(
        [encode(scenes.maps(step * climate.spacing, size)) for step in (-2, -1, 0)], axis=1
    )
    last = day.max()
    first = {"test": last - max(1, round(last * 3 / 29)) + 1}
    first["val"] = first["test"] - max(1, round(last * 6 / 29))
    part = np.where(day < first["val"], 0, np.where(day < first["test"], 1, 2))
    names = np.char.add("day ", day.astype(str))
    parts = [
        ProbabilityData(
            torch.from_numpy(inputs[part == k]),
            y[part == k],
            p[part == k],
            groups=names[part == k],
            ids=np.arange(n)[part == k],
            augment=(Turn(),),
        )
        for k in range(3)
    ]
    source = f"simulated rain {astuple(climate)} n={n} size={size} per_day={per_day} seed={seed}"
    return Splits(*parts, source=source, report={"windows": n, "days": int(last) + 1})
