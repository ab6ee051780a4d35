"""How many trainings would have shown what the paper claims? Power, from the stored runs."""

from __future__ import annotations

from bisect import bisect_left
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import chi2, ncf, norm, t

from probnb.validation import check_number

from . import evidence
from .results import PAPER_ROWS, label

DIFFERENCES = (2, 5, 10, 20)
"""Of MSE_p, in per cent of the mean error of early stopping in the scenario."""

LEVEL, POWER = 0.05, 0.8
ENOUGH = float(norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER))
"""So many standard errors a difference must measure, where the standard error is known."""

ASKED = [
    *((row, "cape_bin") for row in PAPER_ROWS if row not in ("resampled", "cape_bin")),
    ("ce", "ensemble"),
    ("ce_finetuned", "cape_bin"),
    ("cape_bin", "beginning_bin"),
    ("ce", "ce_averaged"),
]
"""Pairs that the paper compares, and those behind the findings of the page."""


def power(seeds, ratio):
    """Return the probability that Student's paired test over seeds finds a difference.

    Parameters
    ----------
    seeds : int
        Number of pairs, at least 2.
    ratio : float
        The true difference, above 0, over the standard deviation of the pairs' differences.

    Examples
    --------
    >>> round(float(power(34, 0.5)), 2)
    0.81
    """
    limit = t.ppf(1 - LEVEL / 2, seeds - 1)
    return ncf.sf(limit**2, 1, seeds - 1, seeds * ratio**2)  # of both sides, in t squared


def seeds_needed(difference, std):
    """Return the fewest seeds, 2 or more, that show a difference with 80 % power at 5 %."""
    check_number(abs(difference), "difference", 0, exclusive=True)
    if check_number(std, "std", 0) < abs(difference) / 100:  # two are sure to show it
        return 2
    most = int((ENOUGH * std / difference) ** 2) + 10  # the test needs a few more than the normal's
    return 2 + bisect_left(range(2, most), True, key=lambda n: power(n, difference / std) >= POWER)


def spread(best):
    """Say for each pair of rows how its difference in MSE_p varies from seed to seed, and why.

    Parameters
    ----------
    best : dict of str to DataFrame
        Runs by scenario, from `probnb_book.claims.stored_runs`.

    Returns
    -------
    DataFrame
        Index ``a``, ``b``. In per cent of the scenario's mean error of the first early-stopped
        network, so that scenarios can be pooled: ``std`` of the differences between seeds, with
        the ``low`` and ``high`` ends of its 95 % interval (chi-square with ``df`` degrees);
        ``rows``, the part that is due to which test rows a seed has (the deviation that a bootstrap
        over rows gives); ``row``, the deviation of a single row.
    """
    lines = []
    for scenario, runs in best.items():
        tests = [evidence.tables(line)[1] for line in runs.itertuples(index=False)]
        usual = np.mean([np.mean((test["ce"] - test["p"]) ** 2) for test in tests])
        for test in tests:
            errors = {
                m: 100 * (test[m] - test["p"]) ** 2 / usual for m in evidence.methods_of(test)
            }
            for a, b in combinations(errors, 2):
                gap = errors[a] - errors[b]
                lines.append((a, b, scenario, gap.mean(), gap.var(), gap.var() / len(gap)))
    table = pd.DataFrame(lines, columns=["a", "b", "scenario", "gap", "row", "rows"])
    between = table.groupby(["a", "b", "scenario"], sort=False)["gap"].agg(["var", "count"])
    df = between.pop("count") - 1
    sums = between.mul(df, axis=0).assign(df=df).groupby(["a", "b"]).sum().query("df > 0")
    pairs = table.groupby(["a", "b"], sort=False)[["row", "rows"]].mean() ** 0.5
    pairs = pairs.join(sums, how="inner")
    squares, df = pairs.pop("var"), pairs["df"]
    ends = {"std": df, "low": chi2.isf(0.025, df), "high": chi2.isf(0.975, df)}
    return pairs.assign(**{name: np.sqrt(squares / by) for name, by in ends.items()})


def needed(table, pairs=ASKED):
    """Lay out, for pairs of rows, what it takes to see a difference in MSE_p, in per cent.

    Parameters
    ----------
    table : DataFrame
        From `spread`.
    pairs : sequence of (str, str)
        Those that it lacks are left out.

    Returns
    -------
    DataFrame
        The deviation between seeds and how much of its square is due to the test rows; the seeds
        that each of `DIFFERENCES` takes, with the numbers for both ends of the deviation's
        interval; what one training each would show if the deviation were known; and the test rows
        that tell two given networks apart which differ by 0.1.
    """
    lines = {}
    for a, b in [(a, b) for a, b in pairs if {(a, b), (b, a)} & {*table.index}]:
        one = table.loc[(a, b) if (a, b) in table.index else (b, a)]
        ends, shown = one[["std", "low", "high"]], "{} [{}, {}]".format
        lines[f"{label(a)} / {label(b)}"] = {
            "deviation (%)": shown(*ends.map("{:.1f}".format)),
            "due to rows": f"{min(1, (one['rows'] / one['std']) ** 2):.0%}",
            **{f"seeds for {d} %": shown(*(seeds_needed(d, s) for s in ends)) for d in DIFFERENCES},
            "one training shows": f"{ENOUGH * one['std']:.0f} %",
            "rows for 5 %": f"{(ENOUGH * one['row'] / 5) ** 2:,.0f}",
        }
    return pd.DataFrame(lines).T
