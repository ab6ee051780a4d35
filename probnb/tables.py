"""Anybody's table: read by pandas and pyarrow, its columns checked with errors that say where.

A text is looked at once, then read, whole or piece by piece. Text stays text until a column is
asked for, so that a group called NA or 007 keeps its name. The index of a table that was read says
where its rows stand in the file.
"""

import contextlib
import csv
import gzip
import io
import re
import zlib
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .paths import composed
from .text import plain
from .validation import check_choice, plain_array, third_class

__all__ = ["ROLES", "column", "find_column", "positive_label", "read_outcomes", "read_table"]

LARGEST = 1 << 32
"""Bytes to which a compressed file may expand: a small file must not fill the memory."""

WHOLE = {"integer_object_nulls": True}
"""How Arrow becomes pandas: whole numbers stay such, and keep their digits, beside a null."""

MISSING = ("", "na", "n/a", "#n/a", "nan", "nat", "<na>", "none", "null")

NAMELESS = (bytes, list, tuple, dict, np.ndarray, timedelta)
"""What a cell may hold that is neither a name nor a number."""

KINDS = {
    "label": ("a name", lambda v: ~pd.isna(v) & (v != "")),
    "number": ("a finite number", lambda v: v == v),
    "outcome": ("0 or 1", lambda v: (v == 0) | (v == 1)),
    "probability": ("a probability in [0, 1]", lambda v: (v >= 0) & (v <= 1)),
    "weight": ("a weight of at least 0", lambda v: v >= 0),
}

ROUNDING = 1e-6
"""A probability so little outside [0, 1] is a rounding error of 32 bits."""

COUNTS = {
    "zeros": lambda v: v == 0,
    "binary": lambda v: (v == 0) | (v == 1),
    "broken": lambda v: v % 1 != 0,
    "outside": lambda v: (v < -ROUNDING) | (v > 1 + ROUNDING),
    "moved": lambda v: (v < 0) | (v > 1),
    "certain": lambda v: (v <= 0) | (v >= 1),
    "saturated": lambda v: (v < -745.2) | (v > 36.8),
}
"""What is counted of a column's numbers, an array or an engine's column."""

Facts = namedtuple("Facts", ["wrong", "low", "high", *COUNTS])
"""What decides how a column is understood: of all its rows how many hold no finite number, the
least and the largest, and how many are 0; 0 or 1; not whole; outside [0, 1] by more than rounding,
and at all; are, or as logits mean, a probability of 0 or 1."""

ROLES = {"y": "outcome", "weight": "weight", "p": "probability"}
"""What a column of a table of outcomes may be, and what it then holds."""
ROLES |= dict.fromkeys(("path", "group", "split"), "label")

USES = {
    "weight": "how much a row counts",
    "p": "the true probability",
    "group": "what rows share",
    "split": "the parts of the data",
}
"""What a column is taken for, by its name if need be, and what is said of it."""

_PLAIN = {"0", "1", "0.0", "1.0", "true", "false"}
NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
"""What text must be to be a number, as `pandas.to_numeric` has it, for engines."""

PIECE = 1 << 20
"""Characters that are looked at at a time."""

_NO_TABLE = {  # first bytes of what people have instead
    b"PK": "a zip archive or a workbook: unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old workbook: save the sheet as CSV",
    b"BZh": "compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "compressed by xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it first",
    b"\x80": "a pickle, which may run code when read: write CSV or Parquet",
    **dict.fromkeys((b"{", b"[{"), "JSON: write CSV or Parquet"),
    b"<": "HTML or XML: write CSV or Parquet",
}
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
        ``notes``, what was read and how. Names are text with composed accents, and may stand twice.

    Raises
    ------
    ValueError
        If it cannot be read as a table; the message names the file, the place and the remedy.
    """
    path = Path(path)
    with naming(path.name):
        with open_unpacked(path) as stream:
            packed = isinstance(stream, gzip.GzipFile)
            data = stream.read(LARGEST + 1 if packed else -1)
        if packed and len(data) > LARGEST:
            raise ValueError(f"it expands to more than {LARGEST:,} bytes; unpack it first")
        if is_parquet(data):
            table = pq.ParquetFile(pa.BufferReader(data)).read()
            names = [str(k) for k in range(table.num_columns)]  # a name may stand twice
            frame = table.rename_columns(names).to_pandas(ignore_metadata=True, **WHOLE)
            frame.columns, frame.index.name = map(composed, table.column_names), "row"
            decimal, notes = ".", []
        else:
            text = look_at_text(partial(io.BytesIO, data))
            (frame,), decimal, notes = text.frames(), text.decimal or ".", text.notes
    if not len(frame):
        raise ValueError(f"{plain(path.name)} has a header ({', '.join(frame)}) but no rows.")
    name = plain(path.name)
    notes = [f"Read {len(frame):,} rows of {name}.", *notes]
    frame.attrs = {"name": name, "decimal": decimal, "notes": notes}
    return frame


@contextlib.contextmanager
def naming(name):
    """Raise what goes wrong when a file is read as a ValueError that names it."""
    try:
        yield
    except (ValueError, OSError, EOFError, zlib.error, csv.Error, pa.ArrowException) as error:
        short = "it is cut short, or no Parquet: " * isinstance(error, pa.ArrowException)
        raise ValueError(f"{plain(name)} cannot be read as a table: {short}{error}.") from None


def open_unpacked(path):
    """Open a file for reading bytes, those within if it is gzipped."""
    if Path(path).is_dir():
        raise ValueError("it is a folder; give one file of it")
    stream = io.BufferedReader(io.FileIO(path))  # once, since a pipe gives its bytes once
    if stream.peek(2)[:2] != b"\x1f\x8b":
        return stream
    unpacked = gzip.GzipFile(fileobj=stream)
    unpacked.myfileobj = stream  # closed with it
    return unpacked


def is_parquet(start):
    """Whether a file that starts so is Parquet, or else text; what is neither is refused."""
    what = next((what for first, what in _NO_TABLE.items() if start.startswith(first)), None)
    if what or start[257:262] == b"ustar":
        raise ValueError(f"it is {what or 'a tar archive: unpack it first'}")
    return start.startswith(b"PAR1")


@dataclass(frozen=True)
class Text:
    """A text with a table, and how it is to be read; made by `look_at_text`."""

    opened: object
    """Opens its bytes."""
    encoding: str
    header: str
    separator: str
    decimal: str
    """The decimal mark; empty where no number has a fraction."""
    quoted: bool
    notes: list

    def frames(self, rows=None):
        """Yield tables of so many lines, by default of all, without the blank ones; cells are text.

        The index, ``line``, is where a row ends in the file.
        """
        names, breaks = None, 0
        try:
            stream = io.TextIOWrapper(self.opened(), self.encoding, newline="")
            how = {"header": None, "dtype": str, "na_filter": False, "skipinitialspace": True}
            how |= {"sep": self.separator, "skip_blank_lines": False, "chunksize": rows}
            read = pd.read_csv(stream, **how)
            for cells in [read] if rows is None else read:
                cells = cells.fillna("")
                lines = pd.Index(cells.index + 1 + breaks, name="line")
                if self.quoted:
                    within = cells.apply(lambda c: c.str.count("\r\n|\r|\n")).sum(axis=1).cumsum()
                    lines, breaks = lines + within.to_numpy(), breaks + within.iloc[-1]
                names = names or [composed(name.strip()) for name in cells.iloc[0]]
                given = cells.apply(lambda c: c.str.strip() != "").to_numpy().any(axis=1)
                given &= cells.index > 0
                frame = cells.set_axis(names, axis=1).set_axis(lines)
                yield frame.loc[given, frame.columns != ""]
        except pd.errors.ParserError as error:
            raise ValueError(
                f"{str(error).strip().removeprefix('Error tokenizing data. C error: ')}; every "
                f"line needs as many fields as the header ({self.header[:60]}), quotes in pairs, "
                "and no decimal commas where commas separate the columns"
            ) from None


def look_at_text(opened):
    """Look at all of a text for how it is to be read, and return a `Text`."""
    with opened() as stream:
        marked = stream.read(2) in (b"\xff\xfe", b"\xfe\xff")
    note = "The text is no UTF-8 and is read as cp1252; if names look wrong, convert it."
    for encoding, notes in (("utf-16" if marked else "utf-8-sig", []), ("cp1252", [note])):
        with contextlib.suppress(UnicodeDecodeError):
            return _look(opened, encoding, notes)
    raise ValueError("it is no text in UTF-8, UTF-16 or cp1252")


def _look(opened, encoding, notes):
    header, decimal, blank, quoted = None, "", True, False
    with io.TextIOWrapper(opened(), encoding, newline="") as text:
        while piece := text.read(PIECE):
            if "\0" in piece:
                raise ValueError("it is no text")
            if header is None:
                header, below, *_ = [*piece.splitlines()[:2], ""]
                separator = max(",;\t", key=partial(_fields, header, below))
            decimal = decimal or _decimal(piece, separator)
            blank = blank and not piece.strip(" \r\n\t,;")
            quoted = quoted or '"' in piece
    if blank:
        raise ValueError("it is empty; write a header first")
    if not header.removeprefix("sep=").strip(" \t,;"):
        raise ValueError(f"its first line must name the columns; it is {header.strip() or 'blank'}")
    if separator not in header and not re.fullmatch(r"[\w.-]+", header.strip(' "')):
        raise ValueError(f"commas, semicolons or tabs must separate columns; got {header[:60]!r}")
    unnamed = "" in next(csv.reader([header], delimiter=separator))
    notes += ["A column without a name is left out."] * unnamed
    notes += ["Numbers have decimal commas."] * (decimal == ",")
    return Text(opened, encoding, header, separator, decimal, quoted, notes)


def _fields(header, below, mark):
    """How many fields a mark makes of the header, those first that the line below has as well."""
    fields, held = (len(next(csv.reader([line], delimiter=mark), "")) for line in (header, below))
    return fields == held > 1, fields


def _decimal(text, separator):
    """Return the mark that most fractions of a text have; empty if there are none."""
    edges = rf'(?:^|["{separator}])', rf'(?=["{separator}]|\r?$)'
    quoted = ('"', '(?=")') if separator == "," else edges
    commas = re.findall(_COMMA.join(quoted), text, re.MULTILINE)
    points = re.findall(r"\d*\.\d+".join(edges), text, re.MULTILINE)
    return "," if commas and len(commas) >= len(points) else "." if points else ""


def find_column(name, present, role):
    """Return the column that a parameter names (digits arrive as a number), or raise."""
    name = composed(name)
    text = name.strip()
    alike = [c for c in present if c.casefold() == text.casefold()]
    found = next((c for c in (name, text, *alike[: len(alike) == 1]) if c in present), None)
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
        What it must hold. Outcomes may be booleans; labels are text without outer spaces (times
        those of UTC), or numbers as they are.

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
    allowed, right = KINDS[kind]
    values = _convert(frame, name, kind)
    wrong, unit = np.flatnonzero(~right(values)), frame.index.name or "row"
    if len(wrong):
        value, places = frame[name].iloc[wrong[0]], [*frame.index[wrong[:6]]]
        raise refusal(name, allowed, value, places, len(wrong), unit, frame.attrs.get("name"))
    if kind == "weight" and not values.any():
        raise ValueError(f"column {name!r} must hold a weight above 0; all are 0.")
    return values


def _convert(frame, name, kind):
    """A column as labels or numbers, NaN where it holds none that is finite."""
    values = frame[name]
    if values.ndim > 1:
        where = frame.attrs.get("name", "the table")
        raise ValueError(f"column {name!r} stands twice in {where}; rename or remove one.")
    if isinstance(values.dtype, pd.ArrowDtype):
        values = pa.array(values).to_pandas(**WHOLE)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = pd.Series(np.asarray(values))
    if pd.api.types.infer_dtype(values) == "decimal":
        values = values.astype(float)
    boolean = pd.api.types.is_bool_dtype(values)
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_complex_dtype(values)
    if kind == "label" and (boolean or not numeric):
        return _text(values).to_numpy()
    if boolean and kind != "outcome":
        return np.full(len(values), np.nan)
    if not numeric:
        values = _as_numbers(values, frame.attrs.get("decimal", "."), kind == "outcome")
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    if kind == "label":
        return plain_array(values.where(np.isfinite(numbers)), name)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _text(values):
    """Text without outer spaces, of times in UTC without zeros at the end; NaN for other things."""
    times = pd.api.types.is_datetime64_any_dtype(values)
    if times and values.dt.tz is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    values = values.map(lambda v: np.nan if isinstance(v, NAMELESS) else str(v), na_action="ignore")
    text = values.astype("str").str.strip().str.normalize("NFC")
    return text.str.replace(r"(\.\d*?)0+$", r"\1", regex=True) if times else text


def _as_numbers(values, decimal, booleans):
    """Text as numbers; NaN where it is none."""
    text = _text(values).str.replace("\u2212", "-", regex=False)  # a typeset minus
    if booleans:
        text = text.str.lower().replace({"true": "1", "false": "0"})
    if decimal == ",":  # a point would mark thousands
        text = text.mask(text.str.contains(".", regex=False), "").str.replace(",", ".", regex=False)
    return pd.to_numeric(text, errors="coerce")


@dataclass(frozen=True, eq=False)
class Rows:
    """A table in memory; `probnb.scale.Engine` answers the same questions about its rows."""

    frame: pd.DataFrame
    odd: dict = field(default_factory=dict)
    """Columns that not all files have alike, and why."""
    _numbers: dict = field(default_factory=dict)

    names = property(lambda self: [*self.frame.columns], doc="Names of the columns.")
    size = property(lambda self: len(self.frame), doc="How many rows there are.")
    notes = property(lambda self: self.frame.attrs.get("notes", ()), doc="What was read and how.")
    decimal = property(lambda self: self.frame.attrs.get("decimal", "."), doc="The decimal mark.")

    def read(self, name, kind="number"):
        """Return a column as labels or numbers, NaN where it holds none that is finite."""
        return _convert(self.frame, name, kind)

    def column(self, name, kind="number"):
        """Return a column that holds what it must, or raise."""
        return column(self.frame, name, kind)

    def beside(self, x):
        """Yield the rows as they are, all at once, with what stands beside them."""
        yield self.frame, x

    def look(self, name):
        """Return the `Facts` of a column."""
        if name not in self._numbers:
            self._numbers[name] = self.read(name)
        known = self._numbers[name][~np.isnan(self._numbers[name])]
        ends = (known.min(), known.max()) if len(known) else (np.nan, np.nan)
        counts = {what: int(test(known).sum()) for what, test in COUNTS.items()}
        return Facts(self.size - len(known), *ends, **counts)

    def first(self, name, what=None):
        """Return the first value of a column, or the first of one of `COUNTS`, and its place."""
        row = 0 if what is None else int(np.argmax(COUNTS[what](self._numbers[name])))
        place = f"{self.frame.index.name or 'row'} {self.frame.index[row]}"
        return self.frame[name].iloc[row], place

    def distinct(self, *names, kind="label"):
        """Return how many rows are left of some columns once none is there twice."""
        held = {name: self.read(name, kind) for name in names}
        return len(pd.DataFrame(held).replace("", np.nan).drop_duplicates())

    def labels(self, name):
        """Return the labels that a column holds, each once, as text."""
        return sorted(pd.Series(self.column(name, "label")).astype(str).unique())

    def part(self, name, labels):
        """Return the rows of which a column holds one of some labels."""
        held = pd.Series(self.column(name, "label")).astype(str)
        return Rows(self.frame[held.isin(labels).to_numpy()])


def refusal(name, allowed, value, places, count, unit, file=None):
    """Return the error of a column with so many wrong values, of which the first is told."""
    empty = pd.api.types.is_scalar(value) and str(value).strip().lower() in MISSING
    counted = " (counted from 0)" if unit == "row" else ""
    others = ", ".join(map(str, places[1:]))
    more = f", as in {others} ({count:,} {unit}s in all)" if others else ""
    where = f"{unit} {places[0]}{f' of {file}' if file else ''}{counted}"
    held = "nothing" if empty else repr(getattr(value, "item", lambda: value)())
    hint = third_class(value) if allowed == KINDS["outcome"][0] else ""
    rule = f"column {name!r} must hold {allowed} in every row"
    return ValueError(f"{rule}; {where} holds {held}{more}.{hint}")


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
        notes = [*frame.attrs["notes"]]
    frame = frame.set_axis(frame.columns.map(composed), axis=1)
    roles = {role: find_column(name, [*frame], role) for role, name in columns.items()}
    free = [name for name in frame if name not in roles.values()]
    roles |= {role: role for role in ROLES if role in free and role not in roles}
    roles |= {role: find_column(role, free, role) for role in needed if role not in roles}
    labels, table = pd.Series(column(frame, roles["y"], "label")).astype("str"), {}
    names = sorted({*labels})
    if positive is not None or (len(names) == 2 and not {name.lower() for name in names} <= _PLAIN):
        table["y"] = (labels == positive_label(positive, names)).to_numpy(float)
    for role, kind in ROLES.items():
        if role in roles and role not in table:
            table[role] = column(frame, roles[role], kind)
    notes += [f"Column {roles[r]} is taken for {use}." for r, use in USES.items() if r in table]
    return pd.DataFrame(table), notes


def one_outcome(name, rows, mean):
    """Return the error of outcomes that are all the same."""
    only = f"all {rows:,} rows, or all their weight, are {mean:g}"
    return ValueError(f"column {name!r} must hold both outcomes; {only}.")


def positive_label(positive, labels):
    """Return the label of outcome 1 of two labels."""
    if len(labels) != 2:
        shown = ", ".join(labels[:8]) or "none"
        hint = third_class(len(labels) - 1)
        raise ValueError(f"there must be two outcomes; found {len(labels)}: {shown}.{hint}")
    if positive is None and labels == ["0", "1"]:
        return "1"
    one = composed(positive)
    if positive is None or one not in labels:
        raise ValueError(
            f"the outcomes are called {labels[0]!r} and {labels[1]!r}: say which of them is "
            f"outcome 1, such as positive={labels[1]!r}; got {positive!r}."
        )
    return one
