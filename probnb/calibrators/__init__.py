"""Post-hoc calibration: maps from a model's logits to better probabilities.

Each calibrator is a scikit-learn classifier of one kind of input, the logits of another
classifier: ``fit(logits, y)`` on validation rows, then ``predict_proba(logits)``. Paper,
Appendix G ("Calibration Baselines").
"""

from .common import CalibrationWarning, logits_from_probabilities
from .dirichlet import BetaCalibration, DirichletCalibration
from .nonparametric import HistogramBinning, IsotonicCalibration, MixNMatch
from .scaling import PlattScaling, TemperatureScaling

__all__ = [
    "CALIBRATORS",
    "BetaCalibration",
    "CalibrationWarning",
    "DirichletCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "MixNMatch",
    "PlattScaling",
    "TemperatureScaling",
    "logits_from_probabilities",
]

CALIBRATORS = {
    "temperature": TemperatureScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "dirichlet": DirichletCalibration,
    "mixnmatch": MixNMatch,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
}
"""The calibrators by name: those of the paper's tables, and the two classical ones."""
