"""Anybody's table: read by pandas and pyarrow, its columns checked with errors that say where.

Text stays text until a column is asked for, so that a group called NA or 007 keeps its name. The
index of a table that was read says where its rows stand in the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from .validation import check_choice

__all__ = ["column", "find_column", "read_table"]

KINDS = {
    "number": ("a finite number", lambda v: v == v),
    "outcome": ("0 or 1", lambda v: (v == 0) | (v == 1)),
    "probability": ("a probability in [0, 1]", lambda v: (v >= 0) & (v <= 1)),
    "weight": ("a weight of at least 0", lambda v: v >= 0),
}


def read_table(path):
    """Read a table of text (CSV, TSV; commas, semicolons or tabs) or Parquet, gzipped or not.

    What a file is, its content says, whatever its ending. Text is UTF-8, UTF-16 with its mark, or
    else Windows' cp1252, which a note says. Decimal commas are understood where semicolons or tabs
    separate the columns and no number has a point.

    Parameters
    ----------
    path : path-like
        An existing file.

    Returns
    -------
    DataFrame
        Text as text, Parquet as typed. Its index is named ``line``, the lines of the file, or
        ``row``, counted from 0; ``attrs`` hold the file's ``name``, the ``decimal`` mark and
        ``notes``, how it was understood. Names are text, and may stand twice.

    Raises
    ------
    ValueError
        If it cannot be read as a table; the message names the file and what is wrong.
    """
    path, notes = Path(path), []
    if path.is_dir():
        raise ValueError(f"{path.name} is a folder; give one file of it.")
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        if data.startswith(b"PAR1"):
            table = pa.parquet.ParquetFile(pa.BufferReader(data)).read()
            frame = table.to_pandas(ignore_metadata=True).rename_axis(index="row")
            decimal = "."
        else:
            frame, decimal = _read_text(data, notes)
    except (ValueError, OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise ValueError(f"{path.name} cannot be read as a table: {error}.") from None
    if not len(frame):
        raise ValueError(f"{path.name} has a header ({', '.join(frame)}) but no rows.")
    frame.attrs = {"name": path.name, "decimal": decimal, "notes": notes}
    return frame


def _read_text(data, notes):
    """Decode and split; every cell stays text."""
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252")
        notes.append("The text is no UTF-8 and is read as cp1252; if names look wrong, convert it.")
    if "\0" in text or not text.strip():
        raise ValueError("it is no text" if "\0" in text else "it is empty; write a header first")
    first = text.splitlines()[0]
    separator = max(",;\t", key=lambda mark: len(next(csv.reader([first], delimiter=mark))))
    if separator not in first:
        raise ValueError(f"commas, semicolons or tabs must separate columns; got {first[:60]!r}")
    try:
        cells = pd.read_csv(
            io.StringIO(text), sep=separator, header=None, dtype=str, na_filter=False,
            skip_blank_lines=False, skipinitialspace=True,
        ).fillna("")  # fmt: skip
    except pd.errors.ParserError as error:
        raise ValueError(
            f"{str(error).strip()}; every line needs as many fields as the header ({first[:60]}), "
            "quotes in pairs, and no decimal commas where commas separate the columns"
        ) from None
    frame = cells.iloc[1:].set_axis([name.strip() for name in cells.iloc[0]], axis=1)
    frame.index = pd.Index(frame.index + 1, name="line")
    given = frame.apply(lambda column: column.str.strip() != "").to_numpy()
    frame = frame.loc[given.any(axis=1), (frame.columns != "") | given.any(axis=0)]
    commas = separator != "," and re.search(r"[;\t]-?\d*,\d", text.replace('"', ""))
    if not commas or re.search(r"\d\.\d", text):
        return frame, "."
    notes.append("Numbers have decimal commas.")
    return frame, ","


def find_column(name, present, role):
    """Return the column that a parameter names (digits arrive as a number), or raise."""
    text = str(name).strip()
    alike = [c for c in present if c.casefold() == text.casefold()]
    found = next((c for c in (str(name), text, *alike[: len(alike) == 1]) if c in present), None)
    return check_choice(text, present, f"{role}: the column") if found is None else found


def column(frame, name, kind="number"):
    """Return a column as numbers or labels, all of them given.

    Parameters
    ----------
    frame : DataFrame
        From `read_table`, or any other.
    name : str
        The column.
    kind : {"number", "outcome", "probability", "weight", "label"}, default="number"
        What it must hold. Outcomes may be booleans; labels are text without outer spaces, or
        numbers as they are.

    Returns
    -------
    ndarray of shape (n,)
        Float64, or labels.

    Raises
    ------
    ValueError
        If a cell is missing or not what it must be; the message names column, place, value and
        what is allowed.
    """
    values = frame[name]
    if values.ndim > 1:
        where = frame.attrs.get("name", "the table")
        raise ValueError(f"column {name!r} stands twice in {where}; rename or remove one.")
    numeric = pd.api.types.is_numeric_dtype(values)
    text = values.astype(object).map(str, na_action="ignore").astype("str").str.strip()
    if kind == "label":
        labels = values if numeric else text
        _refuse(frame, name, values.isna() | (text == ""), "a name")
        return labels.to_numpy()
    if numeric:
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
    else:
        text = text.str.replace("\u2212", "-", regex=False)  # a typeset minus
        if kind == "outcome":
            text = text.replace({"True": "1", "False": "0", "true": "1", "false": "0"})
        if frame.attrs.get("decimal") == ",":  # a point would mark thousands
            text = text.mask(text.str.contains(".", regex=False), "").str.replace(",", ".")
        numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    allowed, right = KINDS[kind]
    _refuse(frame, name, ~(np.isfinite(numbers) & right(numbers)), allowed)
    if kind == "weight" and not numbers.any():
        raise ValueError(f"column {name!r} must hold a weight above 0; all are 0.")
    return numbers


def _refuse(frame, name, wrong, allowed):
    """Raise at the first cell that is wrong, and say how many there are."""
    rows = np.flatnonzero(wrong)
    if len(rows):
        value, unit = frame[name].iloc[rows[0]], frame.index.name or "row"
        empty = pd.api.types.is_scalar(value) and (pd.isna(value) or not str(value).strip())
        count = " (counted from 0)" if unit == "row" else ""
        file = f" of {frame.attrs['name']}" if frame.attrs.get("name") else ""
        value = "nothing" if empty else repr(value)
        raise ValueError(
            f"column {name!r} must hold {allowed} in every row; {unit} {frame.index[rows[0]]}"
            f"{file}{count} holds {value} ({len(rows):,} {unit}s in all)."
        )
