"""The report on a page: tables of cells, one table of verdicts of fixed wording, few sentences."""

import math
from dataclasses import dataclass

import pandas as pd

from ..calibrators import CALIBRATORS
from ..metrics import METRICS, Bootstrap
from ..metrics.sample import FEWEST
from ..settings import ReportSettings
from ..text import Html, Markdown, listed, plain, tabled
from ..validation import check_choice
from . import judge
from .gain_parts import PARTS
from .judge import DOUBT
from .read import PredictionTable

FEW = 20
"""With fewer clusters a resample of them is told to be rough."""

SMALL = 0.001
"""A gain below this share of the Brier score is called small, however sure it is."""

_ORDER = {
    "ordinary": "better than chance",
    "chance": "no better than chance",
    "few": "not told",
    "constant": "all predictions are the same",
    "separated": "separates these rows without an error",
    "inverted": "inverted: is a label swapped?",
}


NEXT = {
    ("yes",): "To keep a map: `python -m probnb calibrate FILE map.json --prediction COLUMN`; for "
    "new rows then `python -m probnb apply map.json NEW`.",
    ("too high", "too low"): "If new rows have another share of outcome 1 than these: "
    "`python -m probnb calibrate FILE map.json --rate RATE`.",
}
"""What to do where a verdict begins so."""


@dataclass(frozen=True, eq=False)
class Report:
    """What a table of predictions says; made by `make_report`.

    Attributes
    ----------
    table : PredictionTable
        The rows judged.
    boot : probnb.metrics.resampling.Bootstrap
        Metrics and their resamples.
    tables : dict of str to DataFrame
        "metrics", "pairs", "distances", "decomposition", "calibration", "groups", "gains" and
        "parts", from the functions of `probnb.report.judge`; empty where there is nothing to say.
    """

    table: PredictionTable
    boot: Bootstrap
    tables: dict

    def in_short(self):
        """Verdicts on each column, the best first, in one table (Markdown)."""
        brier, tables, rows = self.boot.point["brier"].sort_values(kind="stable"), self.tables, {}
        best, groups = brier.index[0], tables["groups"]
        gaps = {best: "best"}
        for (a, b, metric), row in tables["pairs"].iterrows():
            if metric == "brier" and best in (a, b):
                told = "told apart" if row["distinct"] else "not told apart"
                less = number(abs(row["difference"]), sign="+")
                gaps[a if b == best else b] = f"{less} ({told})"
        for name in brier.index:
            own = groups if groups.empty else groups.xs(name, level="column").dropna(subset="low")
            rows[name] = [
                number(brier[name]),
                gaps.get(name, "not compared"),
                *describe(name, tables["calibration"], self.boot),
                f"off in {own['off'].sum()} of {len(own)}" if len(own) else "not told",
                advise(name, tables["gains"], tables["calibration"].loc[name, "order"]),
            ]
        head = ["Brier", "less the best", "mean", "order", "spread", "bins", "groups", "calibrate?"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=head)
        none = ["less the best"] * (len(rows) == 1) + ["groups"] * groups.empty
        words = [word for row in rows.values() for word in row]
        then = [f"\n{to}" for say, to in NEXT.items() if any(w.startswith(say) for w in words)]
        return Markdown("\n".join([tabled(_narrow(table.drop(columns=none))), *then]))

    def what_was_read(self):
        """What was read, how it was understood, and what intervals and verdicts rest on."""
        table, units, kind = self.table, self.table.units, self.table.kind
        notes = [
            *table.notes,
            f"{table.size:,} rows, {table.share:.2%} with outcome 1.",
            "Intervals cover 95 %; those of metrics and differences rest on "
            f"{len(self.boot.samples):,} resamples of {units:,} {kind}.",
            f"A verdict that a column is off (mean, bins, inverted) has p < {DOUBT}.",
        ]
        if units < FEWEST:
            notes.append(f"Fewer than {FEWEST} {kind} ({units}): no interval can be had.")
        elif "clusters" in kind and units < FEW:
            notes.append(f"{units} clusters are few: intervals may be too short.")
        if table.size > judge.FIT_ROWS and table.sample is table:
            notes.append(f"Where differences come from is told of {judge.FIT_ROWS:,} rows.")
        if table.groups > judge.LARGEST:
            notes.append(f"Of {table.groups:,} groups, the {judge.LARGEST} largest are shown.")
        return listed(notes)

    def cells(self, part):
        """One of the tables as text, each number over its interval.

        Parameters
        ----------
        part : {"metrics", "pairs", "distances", "decomposition", "calibration", "groups", \
"gains", "parts"}
            Which one.

        Returns
        -------
        DataFrame
            Cells to show; empty where there is nothing to say.
        """
        held = self.tables[check_choice(part, FORMS, "part")]
        return held if held.empty else FORMS[part](held)

    def show(self, part):
        """One of the tables as a page shows it, or a sentence that says why there is none.

        Parameters
        ----------
        part : str
            As in `cells`.

        Returns
        -------
        str
            HTML, or Markdown, that a notebook shows as such.
        """
        cells = self.cells(part)
        none = f"Nothing to show: these rows and columns allow no table of {part}."
        return Markdown(none) if cells.empty else show_table(cells)


def make_report(table, reference=None, bins=15, replicates=1000, seed=0):
    """Judge a table of predictions in every way that the report has.

    Parameters
    ----------
    table : PredictionTable or probnb.scale.DataSet
        From `read_predictions` or `check_table`. The slope, the gains and the parts of a data set
        are those of a sample, as its notes say; all else is of all rows.
    reference : str, optional
        Compare each other column with this one; by default all pairs.
    bins : int, default=15
        Quantile bins of the decomposition, at most as many as rows.
    replicates : int, default=1000
        Resamples, lowered for large tables.
    seed : int, default=0
        Seed of the resamples and of the folds.

    Returns
    -------
    Report
        All tables of the report.

    Raises
    ------
    ValueError
        If a setting is out of range or `reference` is not one of the columns.

    Examples
    --------
    >>> from probnb.report import check_table, draw_example
    >>> report = make_report(check_table(draw_example(300)), replicates=20)
    >>> report.in_short().splitlines()[0]
    '|  | careful | overconfident | noisy |'
    """
    if isinstance(table, pd.DataFrame):
        raise ValueError("table must be checked: give what check_table makes of the DataFrame.")
    settings = ReportSettings(reference, bins, replicates, seed)
    reference = settings.reference_of([*table.predictions], table.size)  # before anything is done
    boot = judge.resample(table, replicates, seed)
    tables = {
        "metrics": pd.concat([boot.point, *boot.interval()], keys=["value", "low", "high"]),
        "pairs": judge.paired_table(boot, reference),
        "decomposition": judge.decomposition_table(table, bins),
        "distances": judge.distance_table(table),
        "calibration": judge.calibration_table(table),
        "groups": judge.group_table(table),
        "gains": judge.calibration_gains(table, seed=seed),
        "parts": judge.gain_parts_table(table, reference, seed),
    }
    return Report(table, boot, tables)


def describe(name, off, boot):
    """Verdicts on one column: its mean, how it orders the outcomes, its spread, its bins.

    Parameters
    ----------
    name : str
        The prediction column.
    off : DataFrame
        From `probnb.report.judge.calibration_table`.
    boot : probnb.metrics.resampling.Bootstrap
        From `probnb.report.judge.resample`.

    Returns
    -------
    list of str
        Four verdicts.
    """
    row, low = off.loc[name], boot.interval()[0].loc[name, "auc"]
    order, ends = row["order"], (row["slope_low"], row["slope_high"])
    if boot.units < FEWEST:
        order = "few"
    elif order == "ordinary" and not low > 0.5:
        order = "chance"
    spread = "too extreme" if ends[1] < 1 else "too timid" if ends[0] > 1 else "right"
    if math.isnan(ends[0]) or (ends[0] < 0.5 and ends[1] > 2) or order in ("inverted", "separated"):
        spread = "not told"
    slope = f" (slope {number(row['slope'], 2)})" if math.isfinite(row["slope"]) else ""
    side = f"too {'high' if row['bias'] > 0 else 'low'} by {number(abs(row['bias']))}"

    def verdict(p, off, right):
        return "not told" if math.isnan(p) else off if p < DOUBT else right

    mean = verdict(row["bias_p"], side, "as observed")
    bins = verdict(row["bins_p"], "off", "as chance makes")
    return [mean, _ORDER[order], spread + slope, bins]


def advise(name, gains, order="ordinary"):
    """Whether to calibrate one column after the fact, and with what: a verdict.

    Parameters
    ----------
    name : str
        The prediction column.
    gains : DataFrame
        From `probnb.report.judge.calibration_gains`.
    order : str, default="ordinary"
        From `probnb.report.judge.calibration_table`.

    Returns
    -------
    str
        The verdict.
    """
    if order == "inverted":
        return "first find out which outcome it predicts"
    if gains.empty or gains.loc[name, "brier_low"].isna().all():
        return "too few rows to tell"
    return choose_map(gains.loc[name])[1]


def choose_map(rows):
    """Return the name of the calibrator that a column's gains speak for, or None, and a verdict."""
    sure = rows[rows["brier_low"] > 0]
    if sure.empty:
        harm = rows["brier_high"].max() < 0
        return None, "no: every one harms" if harm else "no gain beyond chance"
    best = (sure["brier_gain"] >= 0.95 * sure["brier_gain"].max()).idxmax()  # the simplest of these
    if sure.loc[best, "brier_gain"] < SMALL * sure.loc[best, "brier"]:
        return None, "no: the gain is below a thousandth"
    return best, f"yes: {CALIBRATORS[best].label}, gain {number(sure.loc[best, 'brier_gain'])}"


_STAR = {True: " *", False: ""}

LABELS = {name: metric.label for name, metric in METRICS.items()}

WIDTH = 90
"""Characters that a line of a table has on the page."""


def metric_cells(metrics):
    """Metrics over their intervals; a row a metric where there are few columns."""
    point, *ends = (metrics.loc[part] for part in ("value", "low", "high"))
    cells = {LABELS[m]: _cells(point[m], *(end[m] for end in ends)) for m in metrics}
    return _narrow(pd.DataFrame(cells, index=point.index))


def pair_cells(pairs):
    """Paired differences; those whose interval leaves out 0 end in an asterisk."""
    text = pairs["text"].str.replace(" [", "\n[") + pairs["distinct"].map(_STAR)
    wide = text.unstack("metric", sort=False).rename(columns=LABELS).rename_axis(columns=None)
    wide.index = [f"{a} − {b}" for a, b in wide.index]
    return _narrow(wide)


def calibration_cells(off):
    """How each column is off, with intervals and p-values."""
    cells = {
        "bias": [f"{number(b, sign='+')}\n{_p(p)}" for b, p in zip(off["bias"], off["bias_p"])],
        "slope": _cells(off["slope"], off["slope_low"], off["slope_high"], digits=2),
        "bins": off["bins_p"].map(_p),
        "ECE": off["ece"].map(number),
        "ECE if calibrated": off["ece_null"].map(number),
    }
    return pd.DataFrame(cells, index=off.index)


def distance_cells(found):
    """Distances from the true probabilities; what of them may be bias."""
    ends = ("", "_low", "_high")
    cells = {LABELS[m]: _cells(*(found[m + end] for end in ends)) for m in ("mse_p", "kl_p")}
    cells["of KL_p, at most bias"] = found["kl_p_bias"].map(number)
    return pd.DataFrame(cells, index=found.index)


def group_cells(groups):
    """Predictions and outcomes of each group; predictions that are off end in an asterisk."""
    cells = {
        "rows": groups["rows"].map("{:,}".format),
        "predicted": groups["predicted"].map(number) + groups["off"].map(_STAR),
        "observed": _cells(groups["observed"], groups["low"], groups["high"]),
    }
    return pd.DataFrame(cells, index=groups.index)


def gain_cells(gains):
    """Gains of post-hoc calibration with their intervals."""
    cells = {"Brier": gains["brier"].map(number)}
    for m in ("brier", "nll"):
        held = (gains[f"{m}_{part}"] for part in ("gain", "low", "high"))
        cells[f"gain in {LABELS[m]}"] = _cells(*held, sign="+")
    return pd.DataFrame(cells, index=gains.index)


def part_cells(parts):
    """What a column scores worse than the reference, split into its parts."""
    text = _cells(parts["gain"], parts["low"], parts["high"], sign="+")
    wide = pd.Series(text, parts.index).unstack("part", sort=False)
    return _narrow(wide[[*PARTS, "total"]].rename_axis(columns=None))


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


def show_table(cells):
    """Make HTML of cells: line breaks kept, nothing read as markup, none wider than a page."""
    look = {"selector": "td", "props": "white-space: pre; text-align: right; line-height: 1.3"}
    texts = [map(str, [column, *cells[column]]) for column in cells]
    widths = [3 + max(map(len, "\n".join(text).split("\n"))) for text in texts]
    room = WIDTH - min(25, 3 + max(len(str(name)) for name in cells.index))
    each = -(-len(widths) // -(-sum(widths) // room))
    parts = [cells.iloc[:, k : k + each] for k in range(0, len(widths), each)]
    styles = [part.style.format(escape="html").set_table_styles([look]) for part in parts]
    for style in styles:
        style.format_index(plain, escape="html").format_index(plain, axis=1, escape="html")
        # The first class tells the book's theme to colour it for a dark page; no $ is mathematics.
        style.set_table_attributes('class="dataframe tex2jax_ignore"')
    return Html("".join(style.to_html() for style in styles))


def number(x, digits=4, sign=""):
    """Write a number with so many decimals, or with two digits where it is very small or large."""
    if not math.isfinite(x):
        return "undefined" if math.isnan(x) else "∞" if x > 0 else "−∞"
    if abs(x) < 1e-9:  # what rounding leaves of 0
        return f"{0:{sign}.{digits}f}"
    fixed = 0.5 * 10.0**-digits <= abs(x) < 1e5
    return f"{x:{sign}.{digits}f}" if fixed else f"{x:{sign}.2g}"


def _cells(value, low, high, **form):
    """Columns of numbers as text."""
    return [_cell(*row, **form) for row in zip(value, low, high)]


def _cell(value, low, high, sign="", digits=4):
    """A number over its interval, where there is one."""
    text = number(value, digits, sign)
    if math.isnan(low + high):
        return text
    return f"{text}\n[{number(low, digits, sign)}, {number(high, digits, sign)}]"


def _p(p):
    return "not told" if math.isnan(p) else "p < 0.0001" if p < 0.0001 else f"p {p:.4f}"


def _narrow(frame):
    return frame.T if len(frame) <= 4 else frame
