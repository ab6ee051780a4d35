"""The calibrators by name."""

from .dirichlet import BetaCalibration, DirichletCalibration
from .nonparametric import (
    HistogramBinning,
    IsotonicCalibration,
    IsotonicMixNMatch,
    MixNMatch,
)
from .scaling import PlattScaling, TemperatureScaling

__all__ = ["CALIBRATORS"]

CALIBRATORS = {
    "temperature": TemperatureScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "dirichlet": DirichletCalibration,
    "mixnmatch": MixNMatch,
    "mixnmatch_isotonic": IsotonicMixNMatch,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
}
"""The calibrators by name: those of the paper's tables, and the two classical ones. Each class has
a ``label`` for tables; to add a calibrator, add its class here."""
