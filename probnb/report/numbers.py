"""Numbers as people write them: decimal commas, percent signs, thousands, types of any library."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd
from pandas.api.types import (
    is_bool_dtype,
    is_complex_dtype,
    is_numeric_dtype,
    is_object_dtype,
    is_string_dtype,
)

__all__ = ["Numbers", "decimal_mark", "plain_objects", "read_numbers"]

MISSING = ("", "na", "n/a", "#n/a", "nan", "<na>", "none", "null", "nil", "-", "?", ".")
"""What stands for a missing number, in small letters."""

_COMMA = r"[+-]?(\d{1,3}([. ']\d{3})+|\d*),\d+(e[+-]?\d+)?"
_THOUSANDS = r"[+-]?[1-9]\d{0,2}([, ']\d{3})+(\.\d*)?"


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column read as numbers, by `read_numbers`.

    Attributes
    ----------
    values : ndarray of shape (n,)
        The numbers; NaN where one is missing or the cell is no number.
    wrong : ndarray of bool, shape (n,)
        Cells that are no numbers.
    note : str
        How the numbers were written, where not plainly.
    problem : str
        Why the wrong cells cannot be read, where that is known.
    """

    values: np.ndarray
    wrong: np.ndarray
    note: str = ""
    problem: str = ""

    @property
    def meant(self):
        """Whether numbers were meant: most cells are, or the others are numbers in doubt."""
        right = np.count_nonzero(~np.isnan(self.values))
        return bool(self.problem) or right > np.count_nonzero(self.wrong)


def read_numbers(column, decimal=None, booleans=False):
    """Read a column as numbers, whatever its type and however they are written.

    Parameters
    ----------
    column : Series
        Numbers of any type (nullable, categorical, decimals), or text: plain numbers,
        percentages, decimal commas, thousands separators.
    decimal : {".", ","}, optional
        The file's decimal mark, if that is known: it settles cells such as 1,234.
    booleans : bool, default=False
        Whether true and false count as 1 and 0, which they do for outcomes.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = pd.Series(np.asarray(column))
    dtype = column.dtype
    if is_bool_dtype(dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return Numbers(values * (1 if booleans else np.nan), ~np.isnan(values) & (not booleans))
    if is_numeric_dtype(dtype) and not is_complex_dtype(dtype):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return Numbers(values, np.zeros(len(values), bool))
    if not (is_object_dtype(dtype) or is_string_dtype(dtype)):  # dates, durations, lists
        return Numbers(np.full(len(column), np.nan), column.notna().to_numpy(bool))
    if decimal != "," and not is_object_dtype(dtype):  # the usual case, at once
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        if not np.isnan(values).any():
            return Numbers(values, np.zeros(len(values), bool))
    text = _tidy(column)
    if booleans:
        text = text.replace({"true": "1", "false": "0"})
    return _parse(text, decimal)


def plain_objects(column):
    """A column without what pandas trips over: floats for decimals, text for bytes.

    Parameters
    ----------
    column : Series
        A column of any type.
    """
    if not is_object_dtype(column.dtype):
        return column
    return pd.Series([_plain(x) for x in column], column.index, dtype=object)


def _plain(x):
    if isinstance(x, Decimal):
        return _as_float(x)
    return x.decode("utf-8", "replace") if isinstance(x, bytes) else x


def _as_float(x):
    try:
        return float(x)
    except (ValueError, OverflowError):  # a signalling NaN, or an integer beyond floats
        return np.nan


def decimal_mark(columns):
    """The decimal mark that some column of text makes certain for the others, or None.

    Parameters
    ----------
    columns : iterable of Series
        Columns of text.
    """
    for column in columns:
        text = _tidy(column)
        comma = text.str.contains(",", regex=False)
        if not comma.any() or (text.str.contains(".", regex=False) & ~comma).any():
            continue
        text = text[comma].str.removesuffix("%").str.strip()
        if len(text) and text.str.fullmatch(_COMMA).all():
            if not text.str.fullmatch(_THOUSANDS).all():
                return ","
        elif len(text) and text.str.fullmatch(_THOUSANDS).all():
            return "."
    return None


def _tidy(column):
    """Cells as text in small letters without outer or unusual spaces; missing ones are empty."""
    if is_object_dtype(column.dtype):
        column = pd.Series([_as_text(value) for value in column], dtype="str")
    text = pd.Series(column.array, dtype="str").fillna("").str.strip().str.lower()
    if not text.map(str.isascii).all():
        for spaced in ("\u00a0", "\u202f", "\u2009"):
            text = text.str.replace(spaced, " ", regex=False)
        text = text.str.replace("\u2212", "-", regex=False).str.replace("’", "'", regex=False)
        text = text.str.strip()
    return text.where(~text.isin(MISSING), "")


def _as_text(value):
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, numbers.Real | Decimal):
        return repr(_as_float(value))
    return "" if value is None or value is pd.NA or value is pd.NaT else f"<{value}>"


def _parse(text, decimal):
    """Numbers of tidy cells."""
    given = (text != "").to_numpy(bool)
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    wrong = given & np.isnan(values)
    if not wrong.any() and not (decimal == "," and text.str.contains(".", regex=False).any()):
        return Numbers(values, wrong)
    notes = []
    percent = text.str.endswith("%").to_numpy(bool)
    if percent.any():
        text = text.str.removesuffix("%").str.strip()
        notes.append("percentages")
    text, how, problem = _marks(text, decimal)
    notes += [how] if how else []
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    values = np.where(percent, values / 100, values)
    wrong = given & np.isnan(values)
    if percent.any() and np.any(given & ~percent & ~wrong):
        problem = "some cells have a percent sign and some have none"
        wrong |= given & (~percent if percent.mean() > 0.5 else percent)
    return Numbers(np.where(wrong, np.nan, values), wrong, " and ".join(notes), problem)


def _marks(text, decimal):
    """Write decimal points and no thousands; cells that remain unclear become 'unclear'."""
    comma = text.str.contains(",", regex=False)
    grouped = text.str.contains(r"\d[ ']\d{3}", regex=True)
    if not (comma | grouped).any():
        unclear = text.str.contains(".", regex=False) & (decimal == ",")
        return (
            text.mask(unclear, "unclear"),
            "",
            "other columns have decimal commas" * bool(unclear.any()),
        )
    as_comma = bool(text[comma].str.fullmatch(_COMMA).all())
    as_thousands = bool(text[comma].str.fullmatch(_THOUSANDS).all())
    if comma.any() and as_comma and as_thousands and decimal is None:
        return (
            text.mask(comma, "unclear"),
            "",
            "the comma may mark decimals or thousands: write a decimal point",
        )
    if comma.any() and as_comma and not (as_thousands and decimal == "."):
        dotted = text.str.contains(".", regex=False) & ~comma
        unclear = dotted if dotted.sum() <= comma.sum() else comma  # name the exceptions
        tidy = text.str.replace(r"[. ']", "", regex=True).str.replace(",", ".", regex=False)
        if dotted.any():
            tidy = (tidy if unclear is dotted else text).mask(unclear, "unclear")
            return tidy, "", "decimal points and decimal commas are mixed"
        return tidy, "decimal commas", ""
    fits = text.str.fullmatch(_THOUSANDS)
    tidy = text.mask(fits, text.str.replace(r"[, ']", "", regex=True))
    return tidy, "thousands separators" * bool(fits.any()), ""
