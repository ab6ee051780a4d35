"""Files of text with a table: looked at once, then read, whole or piece by piece, as text."""

import contextlib
import csv
import gzip
import io
import re
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from .paths import composed
from .text import plain

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
    with contextlib.suppress(UnicodeDecodeError):
        return _look(opened, "utf-16" if marked else "utf-8-sig", [])
    with contextlib.suppress(UnicodeDecodeError):
        note = "The text is no UTF-8 and is read as cp1252; if names look wrong, convert it."
        return _look(opened, "cp1252", [note])
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
    commas, points = (
        len(re.findall(left + number + right, text, re.MULTILINE))
        for number, (left, right) in (
            (_COMMA, ('"', '(?=")') if separator == "," else edges),
            (r"\d*\.\d+", edges),
        )
    )
    return "," if commas and commas >= points else "." if points else ""
