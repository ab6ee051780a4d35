"""Files of any size, listed, and rewritten where an engine would read them by rules of its own.

Text becomes Parquet of text, by the reader that `probnb.tables` has; so does Parquet whose names of
columns an engine would change.
"""

import glob
import gzip
import hashlib
import itertools
import os
import re
import tempfile
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import ibis
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..paths import HIDDEN, composed, find_path
from ..settings import EngineSettings
from ..tables import is_parquet, look_at_text, naming, open_unpacked
from ..text import plain
from .engine import FILE, ROW, Engine, write_parquet

PARQUET, TEXT = (".parquet", ".pq", ".parq"), (".csv", ".tsv")
RESERVED = {"", "file_row_number", "file_index", "filename"}
CELLS = 1 << 21
"""Cells of a text that are held at a time."""
LEFT = "Left out as hidden, unfinished, of another kind or read already"

SHOWN = 8
"""Files that a note names."""


def find_files(path):
    """Return the files that a path means, in order, the folder above, and what is left out.

    Hidden and unfinished files and folders are left out, files that a link leads to again, what is
    none (a pipe) and, of a folder, what has no ending of a table and text beside Parquet.
    """
    path = os.path.expanduser(path)
    try:
        places = [str(find_path(path, "predictions"))]
        base = places[0] if os.path.isdir(places[0]) else os.path.dirname(places[0])
        if os.path.isfile(places[0]):
            return places, base, []
    except FileNotFoundError:
        patterns = [str(path), f"../{path}"] if Path.cwd().name == "book" else [str(path)]
        places = [f for p in patterns for f in sorted(glob.glob(p, recursive=True))]
        base = os.path.dirname(re.split(r"[*?\[]", patterns[-1])[0])
        if not places:
            raise
    seen, known = set(), {}
    found = (file for place in places for file in _walk(place, seen))
    found = [*dict.fromkeys(map(os.path.normpath, found))]
    for file in found:
        if os.path.isfile(file) and not _hidden(os.path.relpath(file, base)):
            known.setdefault(_own(file), file)
    known = [*known.values()]
    kinds = {file: Path(file.casefold().removesuffix(".gz")).suffix for file in known}
    kept = [f for f in known if kinds[f] in PARQUET] or [f for f in known if kinds[f] in TEXT]
    kept = kept or [file for file in known if file in places]
    if not kept:
        raise FileNotFoundError(f"predictions must hold .parquet or .csv files; {path} has none.")
    return kept, base, [file for file in found if file not in {*kept}]


def _walk(place, seen):
    """Yield a file, or the files of a folder, its own first; none of a folder that was seen."""
    if not os.path.isdir(place):
        yield place
    elif (own := _own(place)) not in seen:
        seen.add(own)
        for one in sorted(os.scandir(place), key=lambda one: (one.is_dir(), one.name)):
            yield from _walk(one.path, seen)


def _own(path):
    """What is the same for all names, and links, of a file or folder."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _hidden(path):
    """Whether systems, or programs that write tables, call what is no part of one so."""
    parts = Path(path).parts
    return HIDDEN.search(path) or any(p[0] == "_" and "=" not in p for p in parts)


class _Source:
    """A file and the types of its columns, by name and how often the name was there before."""

    def __init__(self, file, name):
        self.file, self.name, self.text, self.lost = file, name, None, {}
        with naming(name), open(file, "rb") as packed, open_unpacked(file) as stream:
            start = hashlib.sha256(packed.read(1 << 20)).digest()
            self.known_by = os.path.getsize(file), start  # copies have the same
            self.odd = isinstance(stream, gzip.GzipFile)
            if is_parquet(stream.read(512)):
                schema = pq.read_schema(stream)
                names, kinds = [*map(composed, schema.names)], map(_plain, schema.types)
                for column, kind in zip(names, schema.types):
                    if pa.types.is_float16(kind) or getattr(kind, "tz", None):
                        self.lost[column] = kind
                self.odd |= names != schema.names or plain(file) != file
            else:
                self.text = look_at_text(partial(open_unpacked, file))
                names = [*next(self.text.frames(2))]
                kinds = ["text"] * len(names)
        self.types = dict(zip(zip(names, pd.Series(names).groupby(names).cumcount()), kinds))
        apart = {column.casefold() for column in names} - RESERVED
        self.odd |= self.text is not None or len(apart) < len(names)

    def write(self, path, inner):
        """Write the rows as Parquet, under other names of the columns."""
        names = [inner[key] for key in self.types]
        with naming(self.name), open_unpacked(self.file) as stream:
            if self.text:
                schema = pa.schema([*((n, pa.large_string()) for n in names), ("line", pa.int64())])
                tables = (
                    pa.Table.from_pandas(frame.set_axis(names, axis=1).reset_index(), schema)
                    for frame in self.text.frames(max(1, CELLS // len(names)))
                )
                write_parquet(path, tables, schema)
            else:
                file = pq.ParquetFile(stream)
                write_parquet(path, file.iter_batches(), file.schema_arrow, names)


def _plain(kind):
    """Return a type's name, the same for all ways of writing text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)


def open_rows(path, engine="duckdb", memory="2GB", check=None):
    """Open Parquet or CSV of any size.

    Text is read by the rules of `probnb.tables.read_table` and stays text until a column is asked
    for; folders whose names say something (``day=3``) are no columns.

    Parameters
    ----------
    path : path-like
        A file, a folder, a glob, or an address of Parquet that the engine reads (``hdfs://...``).
        Of a folder its ``.parquet`` files, or else its ``.csv`` and ``.tsv``, gzipped or not, but
        for those in files and folders whose names begin with a dot or a low line. Relative ones
        follow `probnb.paths.find_path`.
    engine : str, default="duckdb"
        ``duckdb``, or the master of a Spark: ``local[2]``, ``spark://host:7077``.
    memory : str, default="2GB"
        What all of it may take, such as 500MB. DuckDB puts what is larger in a temporary folder
        (where the environment variable TMPDIR says), which is removed.
    check : callable, optional
        Is given the names of the columns before any text is gone through, and may raise.

    Returns
    -------
    Engine
        The open table.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If `engine` or `memory` is none, or the files cannot be read or have no rows.
    """
    settings = EngineSettings(engine, memory)
    if settings.name != "duckdb" and find_spec("pyspark") is None:
        raise ImportError(f"engine {engine} needs pyspark and Java: pip install 'probnb[spark]'.")
    folder = tempfile.TemporaryDirectory(prefix="probnb-")
    path = str(path).removeprefix("file://")
    opened, files, inner = Engine(None, path, (path,), folder=folder), [path], None
    if not re.match(r"\w+://", path):
        opened, files, inner = _look(path, folder, check or (lambda names: None))
    read = _read_duckdb if settings.name == "duckdb" else _read_spark
    with opened.explained():
        con, table, names = read(opened, files, inner, settings.name, settings.size)
    opened = replace(opened, con=con, table=table, names=opened.names or tuple(names))
    if not opened.size:
        raise ValueError(f"{opened.name} has columns ({', '.join(opened.names)}) but no rows.")
    several = "" if len(opened.files) == 1 else f"{len(opened.files):,} files of "
    read = f"Read {opened.size:,} rows of {several}{opened.name} with {engine}."
    return replace(opened, notes=(read, *opened.notes))


def _look(path, folder, check):
    """Return what is known of files, and Parquet that any engine reads with its own names."""
    files, base, left = find_files(path)
    sources = [_Source(file, plain(os.path.relpath(file, base))) for file in files]
    text = [source for source in sources if source.text]
    if text and len(text) < len(sources):
        parquet = next(source.name for source in sources if not source.text)
        raise ValueError(f"{text[0].name} is text and {parquet} is Parquet: give one kind.")
    marks = {source.text.decimal: source.name for source in text if source.text.decimal}
    if len(marks) > 1:
        raise ValueError(f"{marks[',']} has decimal commas and {marks['.']} points: give one kind.")
    keys, odd = [*dict.fromkeys(key for source in sources for key in source.types)], {}
    for key, source in itertools.product(keys, sources):
        first, kind = (held.types.get(key, "absent") for held in (sources[0], source))
        if kind.startswith("duration"):
            odd.setdefault(key[0], f"a {kind}, a type that engines lack")
        if kind != first:
            odd.setdefault(key[0], f"{kind} in {source.name} and {first} in {sources[0].name}")
    names = inner = tuple(name for name, _ in keys)
    check(names)
    copies = pd.Series([source.known_by for source in sources]).duplicated()
    copies = [source.name for source, again in zip(sources, copies) if again]
    if any(source.odd for source in sources):
        inner = [f"c{k}" for k in range(len(keys))]
        files = [os.path.join(folder.name, f"{k}.parquet") for k in range(len(files))]
        for file, source in zip(files, sources):
            source.write(file, dict(zip(keys, inner)))
    folders = {part for source in sources for part in Path(source.name).parts[:-1] if "=" in part}
    notes = [
        f"{what}: {', '.join(which[:SHOWN])}{', ...' * (len(which) > SHOWN)}."
        for what, which in (
            (LEFT, [plain(os.path.relpath(file, base)) for file in left]),
            ("Copies, it seems, of files before them, whose rows count twice", copies),
            ("Not alike in all files, and left out", [f"{c} ({why})" for c, why in odd.items()]),
            ("Names of folders are not read as columns", sorted(folders)),
        )
        if which
    ]
    notes += dict.fromkeys(note for source in text for note in source.text.notes)
    about = {"odd": odd, "lost": sources[0].lost, "text": bool(text), "notes": tuple(notes)}
    about |= {"decimal": (*marks, ".")[0], "folder": folder}
    called = tuple(source.name for source in sources)
    return Engine(None, plain(path), called, names, **about), files, inner


def _read_duckdb(opened, files, inner, engine, size):
    folder = opened.folder.name
    con = ibis.duckdb.connect(memory_limit=f"{size / 2e6:.0f}MB", temp_directory=folder)
    files = [glob.escape(file) if os.path.exists(file) else file for file in files]
    inner = inner or con.read_parquet(files).columns
    listed = ", ".join(_quoted(file, "'") for file in files)
    con.raw_sql("SET TimeZone = 'UTC'")
    con.raw_sql(
        f"CREATE VIEW rows AS {_select(opened, inner, 'file_index', 'file_row_number')} FROM "
        f"read_parquet([{listed}], hive_partitioning=false)"
    )
    return con, con.table("rows"), inner


def _read_spark(opened, files, inner, engine, size):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(engine).appName("probnb")
    builder = builder.config("spark.driver.memory", f"{size / 1e6:.0f}m")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.udf.register("nfc_normalize", lambda text: text and composed(text))
    con, parts = ibis.pyspark.connect(session), []
    for k, file in enumerate(files):
        frame = session.read.parquet(file)
        inner = inner or frame.columns
        view = f"probnb_{id(opened):x}_{k}"
        frame.createOrReplaceTempView(view)
        parts.append(f"{_select(opened, inner, k, '_metadata.row_index', '`')} FROM {view}")
    return con, con.sql(" UNION ALL ".join(parts)), inner


def _select(opened, inner, file, row, mark='"'):
    """Return SQL for the columns that all files have alike, called c0, c1, ..., and the places."""
    names, row = opened.names or inner, "line" if opened.text else row
    columns = [
        f"{_quoted(c, mark)} AS c{k}" for k, c in enumerate(inner) if names[k] not in opened.odd
    ]
    places = f"CAST({file} AS BIGINT) AS {FILE}", f"CAST({row} AS BIGINT) AS {ROW}"
    return f"SELECT {', '.join([*columns, *places])}"


def _quoted(name, mark):
    return f"{mark}{name.replace(mark, 2 * mark)}{mark}"
