"""The report's example: predictions of three models whose faults are known, drawn by code."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from ..validation import check_integer

__all__ = ["draw_example"]


def draw_example(n=3000, seed=0):
    """Draw predictions of three models whose faults are known, with the truth beside them.

    Parameters
    ----------
    n : int, default=3000
        Number of rows.
    seed : int, default=0
        Seed; the same seed draws the same rows.

    Returns
    -------
    DataFrame of shape (n, 6)
        Outcomes ``y``, true probabilities ``p``, ``group`` (north or south), and three models:
        ``careful`` knows the truth but for a little noise, ``overconfident`` has the same logits
        twice as large, ``noisy`` has more noise, and is 0.7 too high (in log-odds) in the south.

    Raises
    ------
    ValueError
        If `n` is not a positive integer.

    Examples
    --------
    >>> list(draw_example(10))
    ['y', 'p', 'group', 'careful', 'overconfident', 'noisy']
    """
    rng = np.random.default_rng(seed)
    s = rng.normal(-0.6, 1.1, check_integer(n, "n"))
    south = rng.random(n) < 0.3
    careful = s + rng.normal(0, 0.15, n)
    noisy = s + rng.normal(0, 0.8, n) + 0.7 * south
    return pd.DataFrame(
        {
            "y": (rng.random(n) < expit(s)).astype(int),
            "p": expit(s),
            "group": np.where(south, "south", "north"),
            "careful": expit(careful),
            "overconfident": expit(2 * careful),
            "noisy": expit(noisy),
        }
    )
