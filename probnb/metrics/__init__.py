"""Everything that judges predictions, in one namespace.

`registry` lists the metrics as data, `scores` and `binning` hold them, `sample` the checked and
sorted rows that they read; `decomposition` the parts of the Brier score, `unbiased` calibration
errors without the bias of bins, `repeated` distances from the truth where outcomes were observed
more than once, `resampling` the bootstrap, `intervals` those of a share of
outcomes.
"""

from .binning import ReliabilityBins, ece, ks_curves, ks_error, mce, reliability_bins
from .decomposition import BrierDecomposition, brier_decomposition
from .differences import Difference, compare, difference, holm
from .registry import METRICS, Metric, evaluate
from .repeated import (
    Ceiling,
    Estimate,
    noise_ceiling,
    repeated_difference,
    repeated_distance,
)
from .resampling import Bootstrap, bootstrap
from .scores import auc, brier, kl_p, mse_p, nll
from .unbiased import NullBand, calibration_null_band, ece_debiased, ece_smooth

__all__ = [
    "METRICS",
    "Bootstrap",
    "BrierDecomposition",
    "Ceiling",
    "Difference",
    "Estimate",
    "Metric",
    "NullBand",
    "ReliabilityBins",
    "auc",
    "bootstrap",
    "brier",
    "brier_decomposition",
    "calibration_null_band",
    "compare",
    "difference",
    "ece",
    "ece_debiased",
    "ece_smooth",
    "evaluate",
    "holm",
    "kl_p",
    "ks_curves",
    "ks_error",
    "mce",
    "mse_p",
    "nll",
    "noise_ceiling",
    "reliability_bins",
    "repeated_difference",
    "repeated_distance",
]
