"""Predictions that no memory holds: the same numbers from an engine that reads them.

The arithmetic is written once, as Ibis expressions, which DuckDB (within the process) or Spark
runs. `engine` opens files and puts an engine's errors in words, `cells` counts the predictions of
one column and finds what depends on their order, `dataset` has metrics and intervals, `maps` writes
calibrated predictions. It needs ``pip install probnb[engine]``.
"""

from .dataset import DataSet
from .engine import Engine, open_rows
from .maps import write_calibrated

__all__ = ["DataSet", "Engine", "open_rows", "write_calibrated"]
