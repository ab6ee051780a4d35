"""What the paper says of collisions and of the scenario Skewed, beside what is measured here."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...methods import METHODS
from ...published import published
from .words import scenario_probabilities

__all__ = ["PRINTED", "skewed_claims"]

PRINTED = {"train": (1023, 6453), "val": (545, 2348), "test": (528, 2685)}
"""Positive and negative samples of each part, as Appendix K prints them."""

LOW = 0.2
"""Below it a probability counts as low here; the paper does not say what it calls low."""


def skewed_claims(splits, table):
    """Put what the paper says of the distribution of outcomes beside this run's.

    Parameters
    ----------
    splits : probnb.data.base.Splits
        The data.
    table : pandas.DataFrame
        Test rows: ``y``, ``p`` where known, a column for each method.

    Returns
    -------
    pandas.DataFrame
        Columns ``claim``, ``paper`` (what its own numbers say), ``skewed`` (the scenario with the
        ages of the drawn faces) and ``here``.
    """
    positive = sum(yes for yes, _ in PRINTED.values())
    printed = positive / sum(map(sum, PRINTED.values()))
    y = np.concatenate([part.outcomes.cpu().numpy() for part in splits.parts().values()])
    skewed = scenario_probabilities()["skewed"]
    methods = [name for name in METHODS if name in table]
    brier = pd.Series({m: 100 * np.mean((table[m] - table["y"]) ** 2) for m in methods})
    theirs = published("collision", metric="brier")["value"]
    sources = {"known p": "p", METHODS["ce"].label: "ce"}
    low = [f"{name} {(table[c] < LOW).mean():.0%}" for name, c in sources.items() if c in table]
    rows = [
        (
            "The number of collisions is very low (Section 7.2); severely imbalanced (Appendix K)",
            f"{positive:,} of {positive / printed:,.0f} samples: {printed:.1%}",
            f"mean p {skewed.mean():.1%}",
            f"{y.sum():,.0f} of {len(y):,} samples: {y.mean():.1%}",
        ),
        (
            "All methods had similar performance (Section 8)",
            _range(theirs),
            "",
            _range(brier.drop(["resampled", "ce_overfit"], errors="ignore")),
        ),
        (
            f"The majority of the probabilities is low (Appendix N; here: below {LOW})",
            "",
            f"p {(skewed < LOW).mean():.0%}",
            ", ".join(low),
        ),
        (
            "The largest probabilities (ninth decile)",
            "",
            f"p {np.quantile(skewed, 0.9):.2f}",
            ", ".join(
                f"{n} {table[c].quantile(0.9):.2f}" for n, c in sources.items() if c in table
            ),
        ),
    ]
    return pd.DataFrame(rows, columns=["claim", "paper", "skewed", "here"])


def _range(brier):
    if brier.empty:
        return ""
    return f"Brier {brier.min():.2f} to {brier.max():.2f}, median {brier.median():.2f}"
