"""Calibrators as expressions: fitted to a sample in memory, applied to all rows by the engine."""

from __future__ import annotations

import ibis
import numpy as np

from ..calibrators.base import probability
from ..metrics.registry import CLIP
from ..validation import check_choice
from .engine import FILE, ROW, number


def write_calibrated(data, name, path, fitted):
    """Write all rows with one column's calibrated probabilities beside the others, as Parquet.

    Rows are in the order of the files, and of the rows in them.

    Parameters
    ----------
    data : DataSet
        The rows; those that it judges are written, with the columns that all of their files have.
        Those of text are text, but for outcomes, predictions and weights.
    name : str
        The column of predictions.
    path : path-like
        The file to write, whole or not at all.
    fitted : estimator
        One of `probnb.calibrators.CALIBRATORS`, fitted to log-odds of shape (n,), such as those of
        ``data.sample``.

    Returns
    -------
    str
        The new column's name, ``NAME_calibrated``.

    Raises
    ------
    ValueError
        If the column is unknown or ``NAME_calibrated`` there already, the calibrator was fitted to
        both columns of logits, or the file cannot be written (a full disk).
    """
    from ..store import replace_file  # here, since it takes torch

    check_choice(name, data.names, "column")
    engine = data.engine
    numbers = {*data.names, data.y, data.p, data.weight} if engine.text else ()
    q = expression(fitted, engine.read(name), name in data.logits)
    written, names = beside(engine, q, name, numbers, data.weight)
    replace_file(path, lambda temporary: engine.write(written, temporary, names))
    return names[-1]


def beside(engine, q, name, numbers=(), weight=None):
    """Put calibrated probabilities beside the columns of all files, in the order of their rows.

    Parameters
    ----------
    engine : Engine
        The rows.
    q : ibis.expr.types.FloatingValue
        The calibrated probabilities.
    name : str
        The column of predictions.
    numbers : set of str
        Columns to write as numbers though they are text.
    weight : str, optional
        Column of weights; rows of weight 0 are left out.

    Returns
    -------
    ibis.Table
        The rows.
    list of str
        Names of its columns, the last one ``NAME_calibrated``.
    """
    if (new := f"{name}_calibrated") in engine.names:
        raise ValueError(f"{engine.name} must not have a column {new!r}; it has one already.")
    table = engine.table
    if engine.con.name != "duckdb":  # which keeps the order of the files
        table = table.order_by(FILE, ROW)
    if weight:
        table = table.filter(engine.read(weight, "weight") > 0)
    kept = [c for c in engine.names if c not in engine.odd and engine.names.count(c) == 1]
    columns = [engine.read(c, "outcome") if c in numbers else engine.raw(c) for c in kept]
    return table.select(**{f"c{k}": x for k, x in enumerate([*columns, q])}), [*kept, new]


def expression(fitted, x, logit=False):
    """Return a fitted calibrator's probability of outcome 1 as an expression.

    Parameters
    ----------
    fitted : estimator
        One of `probnb.calibrators.CALIBRATORS`, fitted to log-odds.
    x : ibis.expr.types.FloatingValue
        Predicted probabilities, or log-odds.
    logit : bool, default=False
        Whether `x` holds log-odds.

    Returns
    -------
    ibis.expr.types.FloatingValue
        The calibrated probability.
    """
    if fitted.n_features_in_ != 1:
        raise ValueError("fitted must be a map of log-odds; this one reads two logits.")
    if not logit:  # as `logits_from_probabilities`
        x = x.clip(number(CLIP), number(1 - CLIP))
        x = (x / (1 - x)).ln()
    return probability(fitted, x, x, Columns)


class Columns:
    """The functions of `probnb.calibrators.base.Numbers` as expressions, of log-odds alone."""

    number = staticmethod(number)

    @staticmethod
    def expit(x):
        """The probability of log-odds."""
        return 1 / (1 + (-x).exp())

    @staticmethod
    def log_expit(x):
        """Its logarithm; neither part overflows."""
        return ibis.ifelse(x < 0, x, 0.0) - (1 + (-x.abs()).exp()).ln()

    @staticmethod
    def dot(x, factors):
        """The only column times its factor."""
        return x * number(factors[0])

    @staticmethod
    def steps(x, edges, values, side="right"):
        """The value of the step; an edge gives way, since an engine rounds in its own way."""
        near = 1e-14 * (1 + np.abs(edges)) * (1 if side == "left" else -1)
        return _tree(x, edges + near, list(map(number, values)))

    @staticmethod
    def lines(x, places, values):
        """Steps joined by lines, level beyond, as `numpy.interp`."""
        slopes = np.diff(values) / np.diff(places)
        return _pieces(x, places, [values[:1], *zip(slopes, values), values[-1:]])

    @staticmethod
    def curve(calibrator, x):
        """Cubics between the knots, straight beyond."""
        return _pieces(x, calibrator.knots_, calibrator.cubics())


def _tree(x, edges, leaves):
    """Return ``leaves[k]`` where ``edges[k - 1] <= x < edges[k]``, by binary search in CASEs.

    No engine is quick at a join on inequality; this one needs none.
    """
    if len(leaves) == 1:
        return leaves[0]
    k = len(leaves) // 2
    below, above = _tree(x, edges[: k - 1], leaves[:k]), _tree(x, edges[k:], leaves[k:])
    return ibis.ifelse(x < number(edges[k - 1]), below, above)


def _pieces(x, ends, polynomials):
    """Polynomials in the distance from the end before each, the first from the first end."""
    leaves = []
    for end, (*rising, height) in zip([ends[0], *ends], polynomials):
        total = 0
        for c in np.trim_zeros(rising, "f"):
            total = (total + number(c)) * (x - number(end))
        leaves.append(total + number(height))
    return _tree(x, ends, leaves)
