"""The logistic model of Section 4 and Appendix A, in which every error is known exactly."""

from .errors import exact_mse, fresh_predictions, geometry, mse, mse_parts, reliability
from .model import separability_threshold

__all__ = [
    "exact_mse",
    "fresh_predictions",
    "geometry",
    "mse",
    "mse_parts",
    "reliability",
    "separability_threshold",
]
