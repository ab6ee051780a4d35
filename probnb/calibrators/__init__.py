"""Post-hoc calibration: maps from a model's logits to better probabilities.

Each calibrator is a scikit-learn classifier of one kind of input, the logits of another
classifier: ``fit(logits, y)`` on validation rows, then ``predict_proba(logits)``. Paper,
Appendix H ("Calibration Baselines").
"""

import numpy as np

from . import curves, maps
from .base import logits_from_probabilities
from .curves import *
from .maps import *

__all__ = ["CALIBRATORS", "from_dict", "logits_from_probabilities", "to_dict"]
__all__ += [*curves.__all__, *maps.__all__]

CALIBRATORS = {
    "temperature": maps.TemperatureScaling,
    "platt": maps.PlattScaling,
    "beta": maps.BetaCalibration,
    "dirichlet": maps.DirichletCalibration,
    "mixnmatch": maps.MixNMatch,
    "mixnmatch_isotonic": maps.IsotonicMixNMatch,
    "isotonic": maps.IsotonicCalibration,
    "histogram": maps.HistogramBinning,
    "quadratic": curves.QuadraticCalibration,
    "spline": curves.SplineCalibration,
    "venn_abers": curves.VennAbers,
}
"""The calibrators by name: those of the paper's tables, two classical ones, and three of others.
Each class has a ``label`` for tables; to add a calibrator, add its class here."""


def to_dict(calibrator):
    """Return a fitted calibrator of `CALIBRATORS` as JSON can hold it.

    Examples
    --------
    >>> platt = PlattScaling().fit([-1.0, -1, 1, 1], [0, 1, 0, 1])
    >>> again = from_dict(to_dict(platt))
    >>> bool((again.predict_proba([0.5]) == platt.predict_proba([0.5])).all())
    True
    """
    names = {kind: name for name, kind in CALIBRATORS.items()}
    held = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(calibrator).items()}
    return {"name": names[type(calibrator)], **held}


def from_dict(content):
    """Return the calibrator that `to_dict` wrote, whose predictions are equal bit for bit."""
    calibrator = CALIBRATORS[content["name"]]()
    for name, value in content.items():
        if name != "name":
            setattr(calibrator, name, np.array(value) if isinstance(value, list) else value)
    return calibrator
