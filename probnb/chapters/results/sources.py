"""Two witnesses that the same question can be put to: the paper's tables, and stored runs."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from ...methods import METHODS
from ...metrics import METRICS
from ...published import published
from ...scenarios import SCENARIOS

__all__ = ["CAPE", "PAPER_ROWS", "Measured", "Printed", "label"]

CAPE = ("cape_bin", "cape_kernel")
PAPER_ROWS = tuple(dict.fromkeys(published(table=1)["method"]))
"""The rows of Table 1."""

NAMES = {"cape": "CaPE", "mse_p": "MSE_p", "kl_p": "KL_p"}


def label(name):
    """Return the name of a row or metric for sentences; ``"cape"`` is both of CaPE's rows."""
    if name in NAMES:
        return NAMES[name]
    return METHODS[name].label if name in METHODS else METRICS[name].label


def _signed(metric, value):
    """Turn a difference so that below 0 is better."""
    return value if METRICS[metric].lower_is_better else -value


class _Source:
    """What both witnesses answer.

    A difference's *sign* is -1 where a is better than b, 1 where it is worse, 0 where the source
    cannot tell, None where it lacks either. ``"cape"`` stands for both of its rows and gets the
    benefit of the doubt: better if one of them is, worse only if both are.
    """

    def sign(self, task, a, b, metric):
        """Return -1, 0, 1 or None."""
        if "cape" in (a, b):
            signs = [
                self.sign(task, *(row if x == "cape" else x for x in (a, b)), metric)
                for row in CAPE
            ]
            signs = [s for s in signs if s is not None]
            if not signs:
                return None
            return min(signs) if a == "cape" else max(signs)
        return self._sign(task, a, b, metric)

    def rivals(self, task, metric, without=("resampled", *CAPE)):
        """Return the paper's other rows that have a value."""
        return [
            m for m in PAPER_ROWS if m not in without and np.isfinite(self.value(task, m, metric))
        ]

    def best(self, task, a, metric):
        """Return the name of `a`, or of the better of CaPE's two rows."""
        if a != "cape":
            return a
        values = {m: _signed(metric, self.value(task, m, metric)) for m in CAPE}
        return min(values, key=lambda m: (np.isnan(values[m]), values[m]))


class Printed(_Source):
    """The paper's tables, taken at their word: of two printed numbers the lower is lower.

    Values that are marked as suspect are left out.
    """

    name = "printed"

    def __init__(self):
        rows = published()
        rows = rows[rows["mark"] != "suspect"]
        self._rows = rows.set_index(["scenario", "method", "metric"])
        self.tasks = tuple(dict.fromkeys(rows["scenario"]))

    def value(self, task, method, metric):
        """Return the printed number, times 100, or NaN."""
        key = (task, method, metric)
        return float(self._rows.loc[key, "value"]) if key in self._rows.index else np.nan

    def _sign(self, task, a, b, metric):
        gap = _signed(metric, self.value(task, a, metric) - self.value(task, b, metric))
        return None if np.isnan(gap) else int(np.sign(round(gap, 6)))

    def clear(self, task, a, b, metric):
        """Return the sign where the two numbers differ by more than their printed ± allow."""
        sign = self.sign(task, a, b, metric)
        if not sign:
            return sign
        a, b = self.best(task, a, metric), self.best(task, b, metric)
        gap = abs(self.value(task, a, metric) - self.value(task, b, metric))
        spread = np.hypot(*(self._rows.loc[(task, m, metric), "std"] for m in (a, b)))
        return sign if gap > norm.ppf(0.975) * spread else 0

    def words(self, task, a, b, metric):
        """Say both numbers."""
        a, b = self.best(task, a, metric), self.best(task, b, metric)
        pair = (f"{self.value(task, m, metric):.2f}" for m in (a, b))
        return f"{task} {' / '.join(pair)}"

    def trainings(self, task, a, b, metric):
        """Return how many trainings an answer rests on; a table counts as it stands."""
        return np.inf


class Measured(_Source):
    """The best stored runs of photographs; drawn faces are another task and only remarked on.

    Parameters
    ----------
    evidence : Evidence
        All stored runs.
    photographs : bool, default=True
        False for the runs on drawn faces instead.
    """

    name = "measured"

    def __init__(self, evidence, photographs=True):
        self.evidence = evidence
        self.photographs = photographs
        self.runs = {t: evidence.best(t, photographs) for t in (*SCENARIOS, "cifar10")}
        self.tasks = tuple(t for t in SCENARIOS if self.runs[t])

    def value(self, task, method, metric):
        """Return the mean over trainings, times 100, or NaN."""
        values = [
            100 * r.bootstrap.point.loc[method, metric]
            for r in self.runs.get(task, ())
            if method in r.methods and metric in r.bootstrap.point
        ]
        return float(np.mean(values)) if values else np.nan

    def gap(self, task, a, b, metric):
        """Return the `Gap` of two rows, or None."""
        a, b = self.best(task, a, metric), self.best(task, b, metric)
        return self.evidence.gap(self.runs.get(task, ()), a, b, metric)

    def _sign(self, task, a, b, metric):
        gap = self.evidence.gap(self.runs.get(task, ()), a, b, metric)
        if gap is None:
            return None
        clear = np.sign(gap.value) if gap.low > 0 or gap.high < 0 else 0
        return int(_signed(metric, clear))

    clear = _Source.sign

    def words(self, task, a, b, metric):
        """Say the difference and its interval."""
        gap = self.gap(task, a, b, metric)
        value, low, high = 100 * gap.value, 100 * gap.low, 100 * gap.high
        digits = 2 if max(abs(low), abs(high)) >= 0.05 else 3
        runs = "one training" if gap.trainings == 1 else f"{gap.trainings} trainings"
        return f"{task} {value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}], {runs}"

    def trainings(self, task, a, b, metric):
        """Return how many trainings an answer rests on."""
        gap = self.gap(task, a, b, metric)
        return 0 if gap is None else gap.trainings
