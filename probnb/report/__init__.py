"""The report on anybody's predictions: `read` reads and checks, `judge` computes, `tell` shows."""

from .example import draw_example
from .judge import calibration_gains, calibration_table, paired_table, resample
from .read import PredictionTable, check_table, read_predictions
from .tell import Report, describe, gain_cells, make_report

__all__ = [
    "PredictionTable",
    "Report",
    "calibration_gains",
    "calibration_table",
    "check_table",
    "describe",
    "draw_example",
    "gain_cells",
    "make_report",
    "paired_table",
    "read_predictions",
    "resample",
]
