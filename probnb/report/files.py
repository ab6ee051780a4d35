"""Anybody's file as a table: text or Parquet, whatever its encoding, separator and compression."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import warnings
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
from charset_normalizer import from_bytes

__all__ = ["Source", "read_file"]

LARGEST = 1 << 32
"""Bytes to which a compressed file may expand: a small file must not fill the memory."""

_SPARE = 50  # fields that a line may have beyond those of the header, if they are empty
_COMPRESSED = {  # first bytes: name, usual ending, module
    b"\x1f\x8b": ("gzip", ".gz", gzip),
    b"BZh": ("bzip2", ".bz2", bz2),
    b"\xfd7zXZ\x00": ("xz", ".xz", lzma),
    b"PK\x03\x04": ("zip", ".zip", None),
    b"PK\x05\x06": ("zip", ".zip", None),  # an empty one
}
_OTHERS = {
    b"\x28\xb5\x2f\xfd": "compressed by zstd; unpack it first",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\x89HDF": "an HDF5 file; write the columns as CSV or Parquet",
    b"\x93NUMPY": "a NumPy array, which has no names of columns; write CSV or Parquet",
    b"SQLite format 3": "a database; write the columns as CSV or Parquet",
    b"\x80\x04": "a pickle, which may run code when read; write CSV or Parquet",
    b"\x80\x05": "a pickle, which may run code when read; write CSV or Parquet",
    b"%PDF": "a PDF; write the columns as CSV or Parquet",
    b"\x89PNG": "a picture",
}
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32",
         b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """Where rows come from, so that a message can say where to look.

    Attributes
    ----------
    name : str
        The file's name, empty for a table in memory.
    unit, first, how : str, int, str
        What a row is called, the number of the first, and how that is counted.
    rows : ndarray or None
        Which rows of the file the rows at hand are; None for all of them.
    notes : tuple of str
        How the file was understood.
    decimal : str or None
        The decimal mark that the separator suggests where a number leaves it open.
    """

    name: str = ""
    unit: str = "row"
    first: int = 0
    how: str = "counted from 0"
    rows: np.ndarray | None = None
    notes: tuple = ()
    decimal: str | None = None

    def number(self, row):
        """Number of a row, as its reader counts."""
        return int(row if self.rows is None else self.rows[row]) + self.first

    def cell(self, row):
        """Words for the place of a row."""
        return f"{self.unit} {self.number(row)} ({self.how})"


def read_file(path, choose=lambda names: names):
    """Read a file as a table, without yet understanding its columns.

    Parameters
    ----------
    path : Path
        An existing file or folder. What it is, its contents say, whatever its ending.
    choose : callable, optional
        Takes the names of all columns and returns those that matter: of a Parquet file, only
        these are read.

    Returns
    -------
    frame : DataFrame
        Columns of text where the file is text, and as typed where it is Parquet or Feather.
    source : Source
        How its rows are counted and what was found out about it.

    Raises
    ------
    ValueError
        If the file cannot be read as a table; the message names it, the place and the remedy.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _parquet_folder(path, choose)
        data, notes = _unpack(path.read_bytes(), path.name)
        if data.startswith(b"PAR1"):
            table = pa.parquet.ParquetFile(pa.BufferReader(data))
            frame = _typed(table.read(choose(table.schema_arrow.names)))
        elif data.startswith((b"ARROW1", b"FEA1")):
            frame = _typed(pa.feather.read_table(pa.BufferReader(data)))
        else:
            frame, source = _text(data)
            return frame, replace(source, name=path.name, notes=(*notes, *source.notes))
    except (pa.ArrowException, OSError, EOFError, zlib.error, lzma.LZMAError,
            zipfile.BadZipFile) as error:  # fmt: skip
        raise ValueError(f"{path.name} is damaged or cannot be read: {error}.") from None
    except (ValueError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    return frame, Source(path.name, "row", 1, "counted from 1", notes=tuple(notes))


def _unpack(data, name):
    """Undo compressions, found by content and not by the ending; refuse what is no table."""
    notes = []
    for _ in range(3):
        if not data.strip(b"\0 \r\n\t"):
            what = "empty (0 bytes)" if not data else "blank"
            raise ValueError(f"the file is {what}; write a header and a line per case.")
        for magic, what in _OTHERS.items():
            if data.startswith(magic):
                raise ValueError(f"the file is {what}.")
        if data[257:262] == b"ustar":
            raise ValueError("the file is a tar archive; unpack it and name one file.")
        magic = next((m for m in _COMPRESSED if data.startswith(m)), None)
        if magic is None:
            return data, notes
        how, ending, module = _COMPRESSED[magic]
        data = _unzip(data) if module is None else _expand(data, module)
        if not name.lower().endswith(ending):
            notes.append(f"The file is compressed ({how}), though its name does not say so.")
    raise ValueError("the file is compressed more than twice; unpack it first.")


def _expand(data, module):
    with module.open(io.BytesIO(data)) as stream:
        out = stream.read(LARGEST + 1)
    if len(out) > LARGEST:
        raise ValueError(f"the file expands to more than {LARGEST:,} bytes; unpack it first.")
    return out


def _unzip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = [f for f in archive.infolist()
                 if not f.is_dir() and not f.filename.startswith("__MACOSX/")]  # fmt: skip
        names = [f.filename for f in files]
        if "[Content_Types].xml" in names or "mimetype" in names:
            raise ValueError("the file is a workbook (Excel or similar); save the sheet as CSV.")
        if len(files) != 1:
            shown = ", ".join(names[:5]) or "none"
            raise ValueError(f"the archive must hold one file; it holds {len(files)}: {shown}.")
        if files[0].file_size > LARGEST:
            raise ValueError(f"the file expands to more than {LARGEST:,} bytes; unpack it first.")
        return archive.read(files[0])


def _parquet_folder(path, choose):
    files = sorted(f for f in path.rglob("*") if f.suffix.lower() in (".parquet", ".pq"))
    files = [f for f in files if f.is_file() and not f.name.startswith((".", "_"))]
    if not files:
        raise ValueError(f"{path.name} is a folder without Parquet files; name a file in it.")
    hive = pa.dataset.partitioning(flavor="hive")
    data = pa.dataset.dataset(
        [str(f) for f in files], format="parquet", partitioning=hive, partition_base_dir=str(path)
    )
    schemas = [data.schema, *(fragment.physical_schema for fragment in data.get_fragments())]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    frame = _typed(data.replace_schema(schema).to_table(columns=choose(schema.names)))
    how = "counted from 1 through the folder's files in the order of their names"
    note = f"The folder {path.name} holds {len(files):,} Parquet file{'s' * (len(files) > 1)}."
    return frame, Source(path.name, "row", 1, how, notes=(note,))


def _typed(table):
    """An Arrow table as pandas' columns, its index among them; decimals become floats."""
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind := kind.value_type)
        if pa.types.is_decimal(kind):
            column = column.cast(pa.float64())
        columns.append(column)
    places = pa.table(columns, names=[str(k) for k in range(len(columns))])
    frame = places.to_pandas(ignore_metadata=True)
    frame.columns = table.column_names  # set afterwards: a name may stand twice
    return frame


def _text(data):
    """Decode and split a text file; every cell stays text."""
    text, notes = _decode(data)
    if text.lstrip().startswith(("{", "[", "<")):
        raise ValueError("the file is JSON, XML or HTML, not a table; write CSV or Parquet.")
    told = re.match(r'\s*"?sep=(.)"?\r?\n', text)  # Excel's first line
    separator = told[1] if told else _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        header = next(row for row in reader if any(row) and not (told and reader.line_num == 1))
    except (StopIteration, csv.Error) as error:
        raise ValueError(f"the first line must name the columns; {error or 'none does'}.") from None
    names = [name.strip() or f"Unnamed: {k}" for k, name in enumerate(header)]
    frame = _split(text, separator, reader.line_num, names)
    lines = text.count("\n", 0, len(text.rstrip())) + 1
    whole = lines - reader.line_num == len(frame)  # no blank line, no line break within a cell
    source = Source(
        unit="line" if whole else "data row",
        first=reader.line_num + 1 if whole else 1,
        how="of the file, whose first is 1" if whole else "counted from 1 below the header",
        notes=(*notes, *_say(separator)),
        decimal="," if separator == ";" else None,
    )
    return _trim(frame, names, source), source


def _say(separator):
    if separator == ",":
        return ()
    said = {"\t": "tabs", " ": "spaces", ";": "semicolons"}.get(separator, repr(separator))
    return (f"The columns are separated by {said}.",)


def _decode(data):
    encoding = next((name for bom, name in _BOMS.items() if data.startswith(bom)), None)
    if encoding is None:
        head = np.frombuffer(data[:2000], np.uint8)
        even, odd = ((part == 0).mean() if len(part) else 0 for part in (head[::2], head[1::2]))
        wide = {"utf-16-le": odd > 0.3 > even, "utf-16-be": even > 0.3 > odd}
        encoding = next((name for name, found in wide.items() if found), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise ValueError(f"the file is not the {encoding} that it starts as: {error}") from None
        text, encoding = _guess(data)
    if "\0" in text:
        raise ValueError("the file holds NUL characters, so that it is not a text; write CSV.")
    if encoding.startswith("utf-8"):
        return text, ()
    sure = "" if encoding.startswith("utf") else "; if names look wrong, save it as UTF-8"
    return text, (f"The text is read as {encoding}{sure}.",)


def _guess(data):
    """Guess an encoding from the lines that are not ASCII; Western text unless that reads badly."""
    lines = b"\n".join(line for line in data.splitlines() if not line.isascii())[:50_000]
    matches = list(from_bytes(lines))
    names = [m.encoding for m in matches if m.chaos <= 0.1 + min(m.chaos for m in matches)]
    for encoding in ([] if "cp1252" in names else names[:1]) + ["cp1252", "latin-1"]:
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 decodes every byte")


def _separator(text):
    """The separator by which most of the first lines have as many fields as the header."""
    sample, best, most = text[:20_000], ",", (0.0, 0)
    for mark in ",;\t| ":
        try:
            rows = csv.reader(io.StringIO(sample, newline=""), delimiter=mark,
                              skipinitialspace=True)  # fmt: skip
            counts = [len(row) for row in rows if any(row)][:50]
        except csv.Error:
            continue
        if not counts or counts[0] < 2:
            continue
        alike = np.mean([count == counts[0] for count in counts])
        if (alike, counts[0] * (mark != " ")) > most:
            best, most = mark, (alike, counts[0] * (mark != " "))
    return best


def _split(text, separator, skip, names):
    """Every cell as text, in as many columns as the longest line has fields."""
    most = max(line.count(separator) for line in re.split("[\r\n]", text)) + 1
    width = max(len(names), min(most, len(names) + _SPARE))
    settings = {"sep": r"\s+"} if separator == " " else {"sep": separator, "skipinitialspace": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # it would lose fields
            return pd.read_csv(
                io.StringIO(text), header=None, skiprows=skip, names=range(width),
                index_col=False, dtype=str, keep_default_na=False, na_filter=False, **settings,
            )  # fmt: skip
    except pd.errors.EmptyDataError:
        return pd.DataFrame(columns=range(width), dtype=str)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise ValueError(
            f"{reason}. Every line needs as many fields as the header, which has {len(names)} "
            f"({_list(names)}), and quotes in pairs."
        ) from None


def _trim(frame, names, source):
    """Drop the empty fields after trailing separators; refuse any that are not empty."""
    for place in frame.columns[len(names) :]:
        extra = np.flatnonzero(frame[place].str.strip() != "")
        if len(extra):
            row = frame.iloc[extra[0]]
            fields = [value for value in row if value]
            raise ValueError(
                f"{source.cell(extra[0])} has {len(fields)} fields ({_list(fields)}), but the "
                f"header names {len(names)} columns ({_list(names)}). If these are decimal commas, "
                "separate the columns by semicolons or write decimal points; if the first field "
                "is a row's name, give it a column."
            )
    frame = frame.iloc[:, : len(names)].set_axis(names, axis=1)
    empty = [
        name.startswith("Unnamed: ") and bool((frame.iloc[:, k].str.strip() == "").all())
        for k, name in enumerate(names)
    ]
    return frame.loc[:, ~np.array(empty, bool)]


def _list(values):
    return ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
