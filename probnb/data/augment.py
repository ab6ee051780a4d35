"""Random changes of training images that leave their outcome as it is.

An augmentation is a frozen dataclass that says how many uniform random numbers it takes for a row
(``draws``) and is called with a batch and those numbers. It belongs to the data: a mirrored face
has the same age; a mirrored rain field moves the mirrored way, which is right where all its maps
are mirrored alike and where wind from the east is as good as wind from the west.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..validation import check_integer, check_number

__all__ = ["Brightness", "Mirror", "Shift"]


@dataclass(frozen=True)
class Mirror:
    """Mirror an image left to right with probability one half."""

    draws = 1

    def __call__(self, x, u):
        """Return the batch `x` (n, c, h, w), changed where the numbers `u` (n, 1) say so."""
        return torch.where((u[:, 0] < 0.5)[:, None, None, None], x.flip(-1), x)


@dataclass(frozen=True)
class Shift:
    """Move an image by up to some pixels in each direction; the edge is repeated.

    Parameters
    ----------
    pixels : int, default=3
        Largest shift.
    """

    pixels: int = 3
    draws = 2

    def __post_init__(self):
        check_integer(self.pixels, "pixels")

    def __call__(self, x, u):
        """Return the batch `x` (n, c, h, w), moved as the numbers `u` (n, 2) say."""
        height, width = x.shape[-2:]
        by = (u * (2 * self.pixels + 1)).long() - self.pixels
        rows = (torch.arange(height, device=x.device) + by[:, :1]).clamp(0, height - 1)
        columns = (torch.arange(width, device=x.device) + by[:, 1:]).clamp(0, width - 1)
        n = torch.arange(len(x), device=x.device)[:, None, None]
        return x.permute(0, 2, 3, 1)[n, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Brightness:
    """Scale brightness and contrast of a uint8 image by random factors near 1.

    Parameters
    ----------
    by : float, default=0.2
        Factors are uniform in [1 - by, 1 + by].
    """

    by: float = 0.2
    draws = 2

    def __post_init__(self):
        check_number(self.by, "by", 0, 1)

    def __call__(self, x, u):
        """Return the batch `x` (n, c, h, w), scaled as the numbers `u` (n, 2) say."""
        bright, contrast = (1 + self.by * (2 * u - 1)).T[:, :, None, None, None]
        y = x.float() * bright
        mean = y.mean(dim=(1, 2, 3), keepdim=True)
        y = mean + contrast * (y - mean)
        return y.round().clamp(0, 255).to(x.dtype) if x.dtype == torch.uint8 else y
