"""The report on anybody's predictions: `read` reads, `judge` computes, `tell` shows."""

from .read import PredictionTable, check_table, draw_example, read_predictions
from .tell import Report, make_report

__all__ = ["PredictionTable", "Report", "check_table", "draw_example", "make_report"]
__all__ += ["read_predictions"]
