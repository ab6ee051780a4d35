"""The report on anybody's predictions: `read` reads, `judge` computes, `tell` shows."""

from .judge import calibration_gains, calibration_table, paired_table, resample
from .read import PredictionTable, check_table, draw_example, read_predictions
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
