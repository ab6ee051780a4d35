"""Files of any size as a table of an engine, and what may be wrong with them in words."""

import contextlib
import itertools
import re
from dataclasses import dataclass, field, replace
from functools import cached_property

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from ..tables import COUNTS, KINDS, NUMBER, WHOLE, Facts, refusal
from ..validation import check_choice

FILE, ROW = "_file", "_row"
"""Which file a row is from, counted from 0, and its number, or line, in that file."""

HASHES = 0x2C1B3C6D, 0x297A2D39
"""Odd numbers that mix bits well, small enough for products of 64 bits."""

BLOCKS = 128
"""Blocks of rows, or of clusters, that intervals rest on."""

BATCH = 1 << 18
"""Rows that are fetched at a time."""

SPACES = r"^[\s\p{Z}\x0b\x1c-\x1f\x{85}]+|[\s\p{Z}\x0b\x1c-\x1f\x{85}]+$"

_REMEDIES = {
    "No space left|max_temp_directory_size": "the disk is full: free some, or let the environment "
    "variable TMPDIR name a folder elsewhere",
    "Out of Memory|OutOfMemory": "it needs more memory, such as -p memory 4GB",
}


@dataclass(frozen=True, eq=False)
class Engine:
    """A table that an engine reads; made by `open_rows`. It answers as `probnb.tables.Rows` does.

    Attributes
    ----------
    con : ibis.backends.BaseBackend
        The engine.
    name : str
        What was read, for messages.
    files : tuple of str
        What the files are called in messages.
    names : tuple of str
        Names of the columns.
    odd : dict of str to str
        Columns that not all files have, or not of one type, and why.
    lost : dict of str to pyarrow.DataType
        Types of columns that engines do not have: their own zone, or 16 bits, is lost on the way.
    text : bool
        Whether the files are text.
    decimal : str
        The decimal mark of text.
    notes : tuple of str
        What was read, how it was understood and what was left out.
    folder : tempfile.TemporaryDirectory
        Where rewritten files lie; removed with the last reference to it.
    table : ibis.Table
        The rows as they are: columns c0, c1, ..., but for odd ones, and `FILE` and `ROW`.
    """

    con: object
    name: str
    files: tuple = ()
    names: tuple = ()
    odd: dict = field(default_factory=dict)
    lost: dict = field(default_factory=dict)
    text: bool = False
    decimal: str = "."
    notes: tuple = ()
    folder: object = None
    table: object = None
    _known: dict = field(default_factory=dict, repr=False)

    unit = property(lambda self: "line" if self.text else "row", doc="What places are counted in.")

    def ask(self, expression):
        """Run an expression and return its rows as a DataFrame, or raise a ValueError in words."""
        with self.explained():
            return self.con.to_pyarrow(expression).to_pandas(**WHOLE)

    def batches(self, expression):
        """Run an expression and yield its rows in order as Arrow, so many at a time."""
        with self.explained():
            yield from self._reader(expression)

    def beside(self, x):
        """Yield all rows as they are, in the order of the files, each time with their part of x."""
        for batch, part in self.arrow_beside(x):
            yield batch.to_pandas(**WHOLE), part

    def arrow_beside(self, x):
        """Yield the same as Arrow, in the types that the files have."""
        names = {f"c{k}": c for k, c in enumerate(self.names) if c not in self.odd}
        table = self.table if self.con.name == "duckdb" else self.table.order_by(FILE, ROW)
        for batch in self.batches(table.select(*names, x=x)):
            rows = batch.drop_columns(["x"]).rename_columns([*names.values()])
            for k, name in enumerate(rows.schema.names):
                if name in self.lost:
                    rows = rows.set_column(k, name, rows[k].cast(self.lost[name]))
            yield rows, batch["x"].to_numpy(zero_copy_only=False)

    def write(self, rows, path):
        """Write rows as Parquet."""
        with self.explained():
            batches = self._reader(rows)
            write_parquet(path, batches, batches.schema)

    def _reader(self, expression):
        if self.con.name != "duckdb":
            return self.con.to_pyarrow_batches(expression, chunk_size=BATCH)
        return self.con.con.sql(self.con.compile(expression)).to_arrow_reader(BATCH)

    def _number(self, scalar):
        with self.explained():
            return self.con.to_pyarrow(scalar).as_py()

    @contextlib.contextmanager
    def explained(self):
        """Raise what an engine raises as a ValueError that names the file and the remedy."""
        try:
            yield
        except (ImportError, FileNotFoundError):
            raise
        except Exception as error:  # each engine has errors of its own
            text = str(error).strip()
            remedy = (words for what, words in _REMEDIES.items() if re.search(what, text, re.I))
            first = text.partition("\n")[0][:500] or type(error).__name__
            words = [*itertools.islice(remedy, 1), first]
            raise ValueError(f"{self.name}: {'; '.join(words)}.") from error

    @cached_property
    def size(self):
        """How many rows there are."""
        return self._number(self.table.count())

    def raw(self, name):
        """Return a column as it is."""
        check_choice(name, self.names, "column")
        if self.names.count(name) > 1:
            raise ValueError(f"column {name!r} stands twice in {self.name}; rename or remove one.")
        if name in self.odd:
            raise ValueError(
                f"column {name!r} must have one type in all files; it is {self.odd[name]}."
            )
        return self.table[f"c{self.names.index(name)}"]

    def read(self, name, kind="number"):
        """Return a column as labels or numbers, null where it holds none that is finite."""
        return _convert(self.raw(name), kind, self.decimal)

    def column(self, name, kind="number"):
        """Return a column that holds what it must, or raise."""
        allowed, right = KINDS[kind]
        if (name, kind) not in self._known:
            held = self._held(name, kind)
            wrong = held.x.isnull() if kind == "label" else ~right(held.x).fill_null(False)
            if count := self.look(name).wrong if kind == "number" else self._number(wrong.sum()):
                value, file, places = self._places(held.filter(wrong), 6)
                raise refusal(name, allowed, value, places, count, self.unit, file)
            if kind == "weight" and not self.look(name).high:
                raise ValueError(f"column {name!r} must hold a weight above 0; all are 0.")
        self._known[name, kind] = True
        return self.read(name, kind)

    def _held(self, name, kind="number"):
        """A column, ``x``, as it is, ``raw``, and where."""
        return self.table.select(FILE, ROW, raw=self.raw(name), x=self.read(name, kind))

    def _places(self, held, count):
        """The first of some rows: its value and file, and the places in that of so many."""
        found = self.ask(held.drop("x").order_by(FILE, ROW).limit(count))
        file = found[FILE][0]
        return found["raw"][0], self.files[file], [*found[ROW][found[FILE] == file]]

    def look(self, name):
        """Return the `Facts` of a column."""
        if name not in self._known:
            x = self._held(name).x
            counts = {what: test(x).fill_null(False).sum() for what, test in COUNTS.items()}
            asked = {"wrong": x.isnull().sum(), "low": x.min(), "high": x.max()} | counts
            (found,) = self.ask(self._held(name).aggregate(**asked)).to_dict("records")
            self._known[name] = Facts(**found)
        return self._known[name]

    def first(self, name, what=None):
        """Return the first value of a column, or the first of one of `COUNTS`, and its place."""
        held = self._held(name)
        held = held if what is None else held.filter(COUNTS[what](held.x))
        value, file, (place,) = self._places(held, 1)
        return value, f"{self.unit} {place} of {file}"

    def distinct(self, *names, kind="label"):
        """Return how many rows are left of some columns once none is there twice."""
        held = self.table.select(**{f"x{k}": self.read(c, kind) for k, c in enumerate(names)})
        return self._number(held.distinct().count())

    def labels(self, name):
        """Return the labels that a column holds, each once, as text."""
        held = self.table.select(label=self.column(name, "label").cast("string")).distinct()
        return [*self.ask(held.order_by("label"))["label"]]

    def part(self, name, labels):
        """Return the rows of which a column holds one of some labels."""
        kept = self.read(name, "label").cast("string").isin(labels)
        return replace(self, table=self.table.filter(kept), _known={})


@ibis.udf.scalar.builtin
def nfc_normalize(text: str) -> str:
    """DuckDB's; Spark is given one."""


def _convert(x, kind, decimal):
    """A column as labels or numbers by the rules of `probnb.tables.column`."""
    x = x.cast("float64") if x.type().is_decimal() else x
    type_ = x.type()
    if kind == "label":
        if type_.is_floating():
            return ibis.ifelse(x - x == 0, x, ibis.null(type_))
        if type_.is_integer():
            return x
        if type_.is_boolean():
            return x.cast("string").capitalize()
        if type_.is_nested() or type_.is_binary():
            return ibis.null("string")
        x = nfc_normalize(x.cast("string").re_replace(SPACES, "")).nullif("")
        return x.re_replace(r"\+00$", "") if type_.is_timestamp() else x
    if type_.is_string():
        text = x.re_replace(SPACES, "").replace("\u2212", "-")
        if kind == "outcome":
            text = text.lower().substitute({"true": "1", "false": "0"})
        if decimal == ",":  # a point would mark thousands
            text = ibis.ifelse(text.contains("."), "", text).replace(",", ".")
        number = text.re_search(NUMBER).ifelse(text, ibis.null("string")).try_cast("float64")
    elif type_.is_boolean() and kind == "outcome":
        number = x.cast("int8").cast("float64")
    elif type_.is_numeric() and not type_.is_boolean():
        number = x.cast("float64")
    else:
        number = x.isnull().ifelse(1.0, 1.0).nullif(1.0)
    return ibis.ifelse(number - number == 0, number, ibis.null("float64"))  # NaN, infinity


def write_parquet(path, batches, schema, names=None):
    """Write batches of rows as Parquet, under other names if given, which need not be unique."""
    names = schema.names if names is None else names
    schema = pa.schema([kind.with_name(name) for kind, name in zip(schema, names)])
    with pq.ParquetWriter(path, schema) as writer:
        for batch in batches:
            writer.write(batch.rename_columns(names))


def hashed(table, seed=0):
    """Return a random number in [0, 2^32) for each row, the same by whatever engine.

    It depends on the file and on the row's number in it, and on no order of the rows' contents.
    """
    x = _mixed((table[ROW] + seed * HASHES[1]) % 2**32)
    return _mixed((x + table[FILE] * HASHES[0]) % 2**32)


def _mixed(x):
    for shift, factor in zip((16, 15), HASHES):
        x = ((x ^ (x >> shift)) * factor) % 2**32
    return x ^ (x >> 15)


def number(x):
    """Return a float as a literal that no engine takes for a decimal and rounds again."""
    return ibis.literal(repr(float(x))).cast("float64")
