"""Everything that judges predictions, in one namespace.

`probnb.scores` holds the scores, `probnb.decomposition` the parts of the Brier score,
`probnb.binning` the bins and the calibration errors,
`probnb.smooth` calibration errors without the bias of bins, `probnb.bootstrap` the intervals.
"""

from .binning import ReliabilityBins, ece, ks_curves, ks_error, mce, reliability_bins
from .bootstrap import Bootstrap, bootstrap
from .decomposition import BrierDecomposition, brier_decomposition
from .scores import (
    METRICS,
    auc,
    brier,
    evaluate,
    kl_p,
    mse_p,
    nll,
)
from .smooth import NullBand, calibration_null_band, ece_debiased, ece_smooth

__all__ = [
    "METRICS",
    "Bootstrap",
    "BrierDecomposition",
    "NullBand",
    "ReliabilityBins",
    "auc",
    "bootstrap",
    "brier",
    "brier_decomposition",
    "calibration_null_band",
    "ece",
    "ece_debiased",
    "ece_smooth",
    "evaluate",
    "kl_p",
    "ks_curves",
    "ks_error",
    "mce",
    "mse_p",
    "nll",
    "reliability_bins",
]
