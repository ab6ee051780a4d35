"""Predictions that no memory holds: the same numbers from an engine that reads them.

The arithmetic is written once, as Ibis expressions, which DuckDB (within the process) or Spark
runs. `files` lists and opens files, `engine` reads columns by the rules of `probnb.tables` and puts
an engine's errors in words, `ranks` goes through one column in order,
`dataset` has metrics and intervals, and writes calibrated predictions beside the rows. It needs
``pip install probnb[engine]``.
"""

from importlib.util import find_spec

if missing := [name for name in ("ibis", "duckdb") if find_spec(name) is None]:
    raise ImportError(f"engine needs {' and '.join(missing)}: pip install 'probnb[engine]'.")

from .dataset import DataSet, write_calibrated
from .engine import Engine
from .files import open_rows

__all__ = ["DataSet", "Engine", "open_rows", "write_calibrated"]
