"""Files of any size as a table of an engine, and what may be wrong with them in words."""

from __future__ import annotations

import glob
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet

from ..validation import find_path

BLOCKS = 128
"""Blocks of rows, or of clusters, that intervals rest on."""

ROW = "_probnb_row"
HASHES = 2654435761, 1597334677
"""Odd numbers whose products with a row's number spread over 32 bits."""

_REMEDIES = {
    "magic bytes|too small to be a Parquet": "a file is cut short or no Parquet: write it again",
    "No space left|max_temp_directory_size": "the disk is full: free some, or let the environment "
    "variable TMPDIR name a folder elsewhere",
    "Out of Memory|OutOfMemory": "it needs more memory, such as -p memory 4GB",
    "Conversion|cast|mismatch": "a column has another type in one of the files, or no numbers",
}


@dataclass(frozen=True, eq=False)
class Engine:
    """A table that an engine reads; made by `open_rows`.

    Attributes
    ----------
    con : ibis.backends.BaseBackend
        The engine.
    table : ibis.Table
        The rows as they are, and their number within their file.
    name : str
        What was read, for messages.
    files : tuple of str
        Local Parquet files; empty where there are none.
    chunk : int
        Distinct predictions that may be held at a time.
    """

    con: object
    table: ibis.Table
    name: str
    files: tuple
    chunk: int
    folder: object = field(default=None, repr=False)  # removed with the last reference to it

    def ask(self, expression):
        """Run an expression and return its rows as a DataFrame, or raise a ValueError in words."""
        try:
            return self.con.to_pyarrow(expression).to_pandas()
        except Exception as error:  # each engine has errors of its own
            raise self.explain(error) from error

    def explain(self, error):
        """Return an engine's error as a ValueError that names the file and the remedy."""
        text = str(error)
        found = [
            words for pattern, words in _REMEDIES.items() if re.search(pattern, text, re.IGNORECASE)
        ]
        first = next(filter(None, map(str.strip, text.splitlines())), type(error).__name__)
        return ValueError(f"{self.name}: {'; '.join([*found[:1], first[:500]])}.")

    def sample(self, count):
        """Return about so many rows, evenly spread over each file, as a DataFrame; all if fewer."""
        n = int(self.ask(self.table.aggregate(n=self.table.count())).iat[0, 0])
        chosen = self.table
        if n > count:
            chosen = chosen.filter(spread(chosen[ROW], 1) < int(2**32 * count / n))
        frame = self.ask(chosen).sort_values(ROW, ignore_index=True, kind="stable")  # for the folds
        frame = frame.drop(columns=ROW)
        frame.attrs = {"name": self.name, "decimal": ".", "notes": [], "rows": n}
        return frame

    def check_types(self, columns):
        """Refuse files that are cut, or in which a column that is used has another type."""
        first = None
        for file in self.files:
            try:
                schema = pa.parquet.read_schema(file)
            except (pa.ArrowException, OSError) as error:
                raise self.explain(f"{file}: {error}") from None
            types = {
                c: str(schema.field(c).type) if c in schema.names else "absent" for c in columns
            }
            first = first or (file, types)
            for name in [c for c in columns if types[c] != first[1][c]]:
                raise ValueError(
                    f"column {name!r} must have one type in all files; it is {types[name]} in "
                    f"{file} and {first[1][name]} in {first[0]}."
                )


def spread(row, which=0):
    """Return a number in [0, 2^32) for each row's number, as an expression."""
    return ((row % 2**31) * HASHES[which]) % 2**32


def number(x):
    """Return a float as a literal that no engine takes for a decimal and rounds again."""
    return ibis.literal(repr(float(x))).cast("float64")


def tree(x, edges, leaves):
    """Return ``leaves[k]`` where ``edges[k - 1] <= x < edges[k]``, by binary search in CASEs.

    No engine is quick at a join on inequality; this one needs none.
    """
    if len(leaves) == 1:
        return ibis.literal(leaves[0]) if isinstance(leaves[0], int) else leaves[0]
    k = len(leaves) // 2
    below, above = tree(x, edges[: k - 1], leaves[:k]), tree(x, edges[k:], leaves[k:])
    return ibis.ifelse(x < number(edges[k - 1]), below, above)


def open_rows(path, engine="duckdb", memory="2GB"):
    """Open Parquet or CSV of any size.

    Parameters
    ----------
    path : path-like
        A file, a folder (its ``.parquet`` files, or else its ``.csv``), a glob, or an address that
        the engine reads (``hdfs://...``). Relative ones follow `probnb.validation.find_path`.
    engine : str, default="duckdb"
        ``duckdb``, or the master of a Spark: ``local[2]``, ``spark://host:7077``.
    memory : str, default="2GB"
        What all of it may take, such as 500MB. DuckDB puts what is larger in a temporary folder
        (where the environment variable TMPDIR says), which is removed.

    Returns
    -------
    Engine
        The open table.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If `memory` is no size, or the engine cannot read the files.
    """
    held = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", str(memory).strip(), re.IGNORECASE)
    if held is None or not float(held[1]):
        raise ValueError(f"memory must be a size such as 500MB or 2GB; got {memory!r}.")
    size = float(held[1]) * 1000 ** (1 + "KMGT".index(held[2].upper()))
    files = _files(path)
    text = not all(file.endswith((".parquet", ".pq")) for file in files)
    names = [glob.escape(file) if Path(file).exists() else file for file in files]
    folder = tempfile.TemporaryDirectory(prefix="probnb-")
    opened = Engine(None, None, str(path), () if text else tuple(filter(_local, files)),
                    max(1000, int(size / 200)), folder)  # fmt: skip
    try:
        read = _read_duckdb if engine == "duckdb" else _read_spark
        con, table = read(names, text, engine, size, folder.name)
    except (ImportError, FileNotFoundError):
        raise
    except Exception as error:
        raise opened.explain(error) from error
    return Engine(con, table, opened.name, opened.files, opened.chunk, folder)


def _read_duckdb(names, text, engine, size, folder):
    con = ibis.duckdb.connect(memory_limit=f"{size / 2e6:.0f}MB", temp_directory=folder)
    if text:  # read once, in order, since each question would read it again
        read, names = con.read_csv(names), [str(Path(folder, "rows.parquet"))]
        con.to_parquet(read, names[0])
    con.raw_sql("SET preserve_insertion_order = false")
    return con, con.read_parquet(names, file_row_number=True).rename({ROW: "file_row_number"})


def _read_spark(names, text, engine, size, folder):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(engine).appName("probnb")
    builder = builder.config("spark.driver.memory", f"{size / 1e6:.0f}m")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    reader = session.read.option("header", True).option("inferSchema", True)
    frame = reader.csv(names) if text else reader.parquet(*names)
    row = "monotonically_increasing_id()" if text else "_metadata.row_index"
    view = f"probnb_{id(frame):x}"
    frame.selectExpr("*", f"{row} AS {ROW}").createOrReplaceTempView(view)
    con = ibis.pyspark.connect(session)
    return con, con.table(view)


def _local(file):
    return not re.match(r"\w+://", file)


def _files(path):
    """Return the files that a path means, in order."""
    if not _local(str(path)):
        return [str(path)]
    try:
        place = find_path(path, "predictions")
    except FileNotFoundError:
        patterns = [str(path), f"../{path}"] if Path.cwd().name == "book" else [str(path)]
        found = [f for p in patterns for f in sorted(glob.glob(p, recursive=True))]
        if not found:
            raise
        return found
    if place.is_file():
        return [str(place)]
    for ending in (".parquet", ".pq", ".csv", ".tsv", ".csv.gz"):
        if found := [str(f) for f in sorted(place.rglob(f"*{ending}")) if f.name[0] not in "._"]:
            return found
    raise FileNotFoundError(f"predictions must hold .parquet or .csv files; {place} has none.")
