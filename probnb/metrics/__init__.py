"""Everything that judges predictions, in one namespace.

`scores` holds the scores, `decomposition` the parts of the Brier score, `binning` the bins and the
calibration errors, `unbiased` calibration errors without the bias of bins, `bootstrap` resamples,
`intervals` those of a share of outcomes.
"""

from .binning import ReliabilityBins, ece, ks_curves, ks_error, mce, reliability_bins
from .decomposition import BrierDecomposition, brier_decomposition
from .resampling import Bootstrap, bootstrap
from .scores import (
    METRICS,
    auc,
    brier,
    evaluate,
    kl_p,
    mse_p,
    nll,
)
from .unbiased import NullBand, calibration_null_band, ece_debiased, ece_smooth

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
