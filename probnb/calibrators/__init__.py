"""Post-hoc calibration: maps from a model's logits to better probabilities.

Each calibrator is a scikit-learn classifier of one kind of input, the logits of another
classifier: ``fit(logits, y)`` on validation rows, then ``predict_proba(logits)``. Paper,
Appendix H ("Calibration Baselines").
"""

from .common import logits_from_probabilities
from .gain_parts import PARTS, gain_parts
from .nonparametric import HistogramBinning, IsotonicCalibration, IsotonicMixNMatch, MixNMatch
from .parametric import BetaCalibration, DirichletCalibration, PlattScaling, TemperatureScaling
from .storage import CALIBRATORS, load, save

__all__ = [
    "CALIBRATORS",
    "PARTS",
    "BetaCalibration",
    "DirichletCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "IsotonicMixNMatch",
    "MixNMatch",
    "PlattScaling",
    "TemperatureScaling",
    "gain_parts",
    "load",
    "logits_from_probabilities",
    "save",
]
