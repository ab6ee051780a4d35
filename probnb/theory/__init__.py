"""The logistic model of Section 4 and Appendix A, in which every error is known exactly."""

from .model import (
    exact_mse,
    fresh_predictions,
    geometry,
    mse,
    mse_parts,
    reliability,
    separability_threshold,
)

__all__ = [
    "exact_mse",
    "fresh_predictions",
    "geometry",
    "mse",
    "mse_parts",
    "reliability",
    "separability_threshold",
]
