"""Post-hoc calibration: maps from a model's logits to better probabilities.

Each calibrator is a scikit-learn classifier of one kind of input, the logits of another
classifier: ``fit(logits, y)`` on validation rows, then ``predict_proba(logits)``. Paper,
Appendix H ("Calibration Baselines").
"""

import numpy as np

from .base import logits_from_probabilities
from .curves import QuadraticCalibration, SplineCalibration, VennAbers, crossing
from .maps import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    IsotonicMixNMatch,
    MixNMatch,
    PlattScaling,
    TemperatureScaling,
)

__all__ = [
    "CALIBRATORS",
    "BetaCalibration",
    "DirichletCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "IsotonicMixNMatch",
    "MixNMatch",
    "PlattScaling",
    "QuadraticCalibration",
    "SplineCalibration",
    "TemperatureScaling",
    "VennAbers",
    "crossing",
    "from_dict",
    "logits_from_probabilities",
    "to_dict",
]

CALIBRATORS = {
    "temperature": TemperatureScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "dirichlet": DirichletCalibration,
    "mixnmatch": MixNMatch,
    "mixnmatch_isotonic": IsotonicMixNMatch,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
    "quadratic": QuadraticCalibration,
    "spline": SplineCalibration,
    "venn_abers": VennAbers,
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
