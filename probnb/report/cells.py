"""The report's tables as text: a number over its interval, and nothing read as markup."""

from __future__ import annotations

import math
import re

import pandas as pd

from ..calibrators import PARTS
from ..metrics import METRICS

__all__ = ["FORMS", "gain_cells", "number", "show_table"]


WIDTH = 90
"""Characters that a line of a table has on the page."""


def metric_cells(boot):
    """Metrics over their intervals; a row a metric where there are few columns."""
    low, high = boot.interval()
    cells = {_label(m): map(_cell, boot.point[m], low[m], high[m]) for m in boot.point}
    return narrow(pd.DataFrame({k: list(v) for k, v in cells.items()}, index=boot.point.index))


def pair_cells(pairs):
    """Paired differences; those whose interval leaves out 0 end in an asterisk."""
    text = pairs["text"].str.replace(" [", "\n[") + pairs["distinct"].map({True: " *", False: ""})
    wide = text.unstack("metric", sort=False).rename(columns=_label).rename_axis(columns=None)
    wide.index = [f"{a} − {b}" for a, b in wide.index]
    return narrow(wide)


def calibration_cells(off):
    """How each column is off, with intervals and p-values."""
    rows = [row for _, row in off.iterrows()]
    cells = {
        "bias": [f"{number(r['bias'], sign='+')}\n{_p(r['bias_p'])}" for r in rows],
        "slope": [f"none\n({r['order']})" if math.isnan(r["slope"]) else
                  _cell(r["slope"], r["slope_low"], r["slope_high"], digits=2) for r in rows],
        "bins": [_p(r["bins_p"]) for r in rows],
        "ECE": [number(r["ece"]) for r in rows],
        "ECE if calibrated": [number(r["ece_null"]) for r in rows],
    }  # fmt: skip
    return pd.DataFrame(cells, index=off.index)


def distance_cells(found):
    """Distances from the true probabilities; what of them may be bias."""
    cells = {}
    for m in ("mse_p", "kl_p"):
        cells[_label(m)] = list(map(_cell, found[m], found[f"{m}_low"], found[f"{m}_high"]))
    cells["of KL_p, at most bias"] = list(map(number, found["kl_p_bias"]))
    return pd.DataFrame(cells, index=found.index)


def group_cells(groups):
    """Predictions and outcomes of each group; predictions that are off end in an asterisk."""
    star = groups["off"].map({True: " *", False: ""})
    cells = {
        "rows": groups["rows"].map("{:,}".format),
        "predicted": groups["predicted"].map(number) + star,
        "observed": list(map(_cell, groups["observed"], groups["low"], groups["high"])),
    }
    return pd.DataFrame(cells, index=groups.index)


def gain_cells(gains):
    """Gains of post-hoc calibration with their intervals."""
    cells = {"Brier": gains["brier"].map(number)}
    for m in ("brier", "nll"):
        ends = (gains[f"{m}_{part}"] for part in ("gain", "low", "high"))
        cells[f"gain in {_label(m)}"] = [_cell(*row, sign="+") for row in zip(*ends)]
    return pd.DataFrame(cells, index=gains.index)


def part_cells(parts):
    """What a column scores worse than the reference, split into its parts."""
    text = [_cell(*row, sign="+") for row in parts[["gain", "low", "high"]].itertuples(index=False)]
    wide = pd.Series(text, parts.index).unstack("part", sort=False)
    return narrow(wide[[*PARTS, "total"]].rename_axis(columns=None))


FORMS = {
    "metrics": metric_cells,
    "pairs": pair_cells,
    "distances": distance_cells,
    "decomposition": lambda parts: parts.map(number),
    "calibration": calibration_cells,
    "groups": group_cells,
    "gains": gain_cells,
    "parts": part_cells,
}
"""How each part of a report becomes cells, in the order of its page."""


class Html(str):
    """A table that a notebook shows as such."""

    __slots__ = ()

    def _repr_html_(self):
        return str(self)


def show_table(cells):
    """Make HTML of cells: line breaks kept, nothing read as markup, none wider than a page."""
    look = {"selector": "td", "props": "white-space: pre; text-align: right; line-height: 1.3"}
    names = [" ".join(map(str, n if isinstance(n, tuple) else (n,))) for n in cells.index]
    room = WIDTH - min(_width(names), 25)
    parts, left = [[]], room
    for column in cells:
        wide = _width([column, *cells[column]])
        if wide > left and parts[-1]:
            parts, left = [*parts, []], room
        parts[-1].append(column)
        left -= wide
    out = []
    for part in parts:
        style = cells[part].style.format(escape="html").set_table_styles([look])
        for axis in ("index", "columns"):
            style = style.format_index(str, axis=axis, escape="html")
        # The class by which the book's theme knows a table to colour for a dark page.
        out.append(style.set_table_attributes('class="dataframe"').to_html())
    return Html("".join(out))


def _width(texts):
    return 3 + max(len(line) for text in texts for line in (str(text) or " ").split("\n"))


def number(x, digits=4, sign=""):
    """Write a number with so many decimals, or with two digits where it is very small or large."""
    if not math.isfinite(x):
        return "undefined" if math.isnan(x) else "∞" if x > 0 else "−∞"
    if abs(x) < 1e-12:  # what rounding leaves of 0
        return f"{0:{sign}.{digits}f}"
    fixed = 0.5 * 10.0**-digits <= abs(x) < 1e5
    return f"{x:{sign}.{digits}f}" if fixed else f"{x:{sign}.2g}"


def _cell(value, low, high, sign="", digits=4):
    """A number over its interval, where there is one."""
    text = number(value, digits, sign)
    if math.isnan(low + high):
        return text
    return f"{text}\n[{number(low, digits, sign)}, {number(high, digits, sign)}]"


def _p(p):
    return "not told" if math.isnan(p) else "p < 0.0001" if p < 0.0001 else f"p {p:.4f}"


def _label(metric):
    return METRICS[metric].label


def narrow(frame):
    return frame.T if len(frame) <= 4 else frame


def escape(name):
    """Keep Markdown from reading a column's name as markup."""
    return re.sub(r"([\\`*_{}\[\]<>|$~#])", r"\\\1", str(name))
