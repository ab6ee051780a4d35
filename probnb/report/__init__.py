"""The report on anybody's predictions: what a user imports for their own file.

`read` reads and checks a file, `build` makes the whole report; `tables`, `gains`, `words` and
`cells` are its parts, `files`, `numbers`, `columns` and `roles` those of the reading.
"""

from .build import Report, make_report
from .cells import gain_cells
from .example import draw_example
from .gains import calibration_gains
from .read import PredictionTable, check_table, read_predictions
from .tables import calibration_table, paired_table, resample
from .words import advise, describe

__all__ = [
    "PredictionTable",
    "Report",
    "advise",
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
