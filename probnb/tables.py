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

__all__ = ["ROLES", "column", "find_column", "positive_label", "read_outcomes", "read_table"]

LARGEST = 1 << 32
"""Bytes to which a compressed file may expand: a small file must not fill the memory."""

MISSING = ("", "na", "n/a", "#n/a", "nan", "nat", "<na>", "none", "null")

KINDS = {
    "number": ("a finite number", lambda v: v == v),
    "outcome": ("0 or 1", lambda v: (v == 0) | (v == 1)),
    "probability": ("a probability in [0, 1]", lambda v: (v >= 0) & (v <= 1)),
    "weight": ("a weight of at least 0", lambda v: v >= 0),
}

ROLES = {"y": "outcome", "weight": "weight", "p": "probability", "path": "label", "group": "label",
         "split": "label"}  # fmt: skip
"""What a column of a table of outcomes may be, and what it then holds."""

_NO_TABLE = {  # first bytes of what people have instead
    b"PK": "a zip archive or a workbook: unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old workbook: save the sheet as CSV",
    b"BZh": "compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "compressed by xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it first",
    b"\x80": "a pickle, which may run code when read: write CSV or Parquet",
    b"{": "JSON: write CSV or Parquet",
    b"<": "HTML or XML: write CSV or Parquet",
}
_PLAIN = {"0", "1", "0.0", "1.0", "True", "False", "true", "false"}
# A cell that is a number with a decimal comma, and not one with thousands such as 1,234.
_COMMA = r"[-+]?(?:0*,\d+|\d+,(?:\d{1,2}|\d{4,}))(?:[eE][-+]?\d+)?"


def read_table(path):
    """Read a table of text (CSV, TSV; commas, semicolons or tabs) or Parquet, gzipped or not.

    What a file is, its content says, whatever its ending. Text is UTF-8, UTF-16 with its mark, or
    else Windows' cp1252, which a note says. Decimal commas are understood where most of the
    file's fractions have one.

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
        If it cannot be read as a table; the message names the file, the place and the remedy.
    """
    path, notes = Path(path), []
    try:
        if path.is_dir():
            raise ValueError("it is a folder; give one file of it")
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(data)) as stream:
                data = stream.read(LARGEST + 1)
            if len(data) > LARGEST:
                raise ValueError(f"it expands to more than {LARGEST:,} bytes; unpack it first")
        if data.startswith(b"PAR1"):
            table = pa.parquet.ParquetFile(pa.BufferReader(data)).read()
            names = [str(k) for k in range(table.num_columns)]  # a name may stand twice
            frame = table.rename_columns(names).to_pandas(ignore_metadata=True)
            frame.columns, frame.index.name, decimal = table.column_names, "row", "."
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
    what = next((what for start, what in _NO_TABLE.items() if data.startswith(start)), None)
    if what or data[257:262] == b"ustar":
        raise ValueError(f"it is {what or 'a tar archive: unpack it first'}")
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            raise ValueError("it is no text in UTF-8, UTF-16 or cp1252") from None
        notes.append("The text is no UTF-8 and is read as cp1252; if names look wrong, convert it.")
    if "\0" in text or not text.strip(" \r\n\t,;"):
        raise ValueError("it is no text" if "\0" in text else "it is empty; write a header first")
    first = text.splitlines()[0]
    if not first.strip(" \t,;"):
        raise ValueError("its first line must name the columns; it is blank")
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
            f"{str(error).strip().removeprefix('Error tokenizing data. C error: ')}; every line "
            f"needs as many fields as the header ({first[:60]}), quotes in pairs, and no decimal "
            "commas where commas separate the columns"
        ) from None
    broken = '"' in text and cells.apply(lambda c: c.str.contains("[\r\n]")).to_numpy().any()
    frame = cells.iloc[1:].set_axis([name.strip() for name in cells.iloc[0]], axis=1)
    frame.index = pd.RangeIndex(len(frame), name="row") if broken else frame.index + 1
    frame.index.name = "row" if broken else "line"
    given = frame.apply(lambda column: column.str.strip() != "").to_numpy()
    frame = frame.loc[given.any(axis=1), (frame.columns != "") | given.any(axis=0)]
    edges = rf'(?:^|["{separator}])', rf'(?=["{separator}]|\r?$)'
    commas, points = (
        len(re.findall(left + number + right, text[:1_000_000], re.MULTILINE))
        for number, (left, right) in (
            (_COMMA, ('"', '(?=")') if separator == "," else edges),
            (r"\d*\.\d+", edges),
        )
    )
    decimal = "," if commas and commas >= points else "."
    notes += ["Numbers have decimal commas."] if decimal == "," else []
    return frame, decimal


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
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = pd.Series(np.asarray(values), values.index)
    missing = values.isna().to_numpy(bool)
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_complex_dtype(values)
    if kind == "label":
        values = values if numeric else _text(values)
        _refuse(frame, name, missing | (values == "").to_numpy(bool), "a name")
        return values.to_numpy()
    if pd.api.types.is_bool_dtype(values) and kind != "outcome":
        numbers = np.full(len(values), np.nan)
    elif numeric:
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
    else:
        numbers = _as_numbers(values, frame.attrs.get("decimal", "."), kind == "outcome")
    allowed, right = KINDS[kind]
    _refuse(frame, name, ~(np.isfinite(numbers) & right(numbers)), allowed)
    if kind == "weight" and not numbers.any():
        raise ValueError(f"column {name!r} must hold a weight above 0; all are 0.")
    return numbers


def _text(values):
    return values.map(str, na_action="ignore").astype("str").str.strip()


def _as_numbers(values, decimal, booleans):
    """Text as numbers; NaN where it is none."""
    text = _text(values).str.replace("\u2212", "-", regex=False)  # a typeset minus
    if booleans:
        text = text.replace({"True": "1", "False": "0", "true": "1", "false": "0"})
    if decimal == ",":  # a point would mark thousands
        text = text.mask(text.str.contains(".", regex=False), "").str.replace(",", ".", regex=False)
    return pd.to_numeric(text, errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def _refuse(frame, name, wrong, allowed):
    """Raise at the first cell that is wrong, and say how many more there are and where."""
    rows = np.flatnonzero(wrong)
    if not len(rows):
        return
    value, unit = frame[name].iloc[rows[0]], frame.index.name or "row"
    empty = pd.api.types.is_scalar(value) and str(value).strip().lower() in MISSING
    count = " (counted from 0)" if unit == "row" else ""
    others = ", ".join(str(frame.index[row]) for row in rows[1:6])
    more = f", as in {others} ({len(rows):,} {unit}s in all)" if others else ""
    file = f" of {frame.attrs['name']}" if frame.attrs.get("name") else ""
    raise ValueError(
        f"column {name!r} must hold {allowed} in every row; {unit} {frame.index[rows[0]]}{file}"
        f"{count} holds {'nothing' if empty else repr(value)}{more}."
    )


def read_outcomes(outcomes, columns, positive=None, needed=("y", "path")):
    """Read a table of outcomes, a row for each image.

    Parameters
    ----------
    outcomes : path-like or DataFrame
        As `read_table` takes it, or a table.
    columns : dict of str to str
        Columns by role, where they have other names than the role.
    positive : str, optional
        The label of outcome 1.
    needed : tuple of str
        Roles that there must be a column for.

    Returns
    -------
    table : DataFrame
        Columns named as `ROLES`, those that there are; checked.
    notes : list of str
        How the file was understood.
    """
    frame, notes = outcomes, []
    if not isinstance(outcomes, pd.DataFrame):
        frame = read_table(Path(outcomes).expanduser())
        notes = [f"Read {len(frame):,} rows of {frame.attrs['name']}.", *frame.attrs["notes"]]
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    roles = {role: find_column(name, [*frame], role) for role, name in columns.items()}
    free = [name for name in frame if name not in roles.values()]
    roles |= {role: role for role in ROLES if role in free and role not in roles}
    roles |= {role: find_column(role, free, role) for role in needed if role not in roles}
    labels, table = pd.Series(column(frame, roles["y"], "label")).astype("str"), {}
    names = sorted({*labels})
    if positive is not None or (len(names) == 2 and not {*names} <= _PLAIN):
        table["y"] = (labels == positive_label(positive, names)).to_numpy(float)
    for role, kind in ROLES.items():
        if role in roles and role not in table:
            table[role] = column(frame, roles[role], kind)
    return pd.DataFrame(table), notes


def positive_label(positive, labels):
    """Return the label of outcome 1 of two labels."""
    if len(labels) != 2:
        shown = ", ".join(labels[:8]) or "none"
        raise ValueError(f"there must be two outcomes; found {len(labels)}: {shown}.")
    if positive is None and labels == ["0", "1"]:
        return "1"
    if positive is None or str(positive) not in labels:
        raise ValueError(
            f"the outcomes are called {labels[0]!r} and {labels[1]!r}: say which of them is "
            f"outcome 1, such as positive={labels[1]!r}; got {positive!r}."
        )
    return str(positive)
