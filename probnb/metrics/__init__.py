"""Everything that judges predictions, in one namespace.

`registry` lists the metrics as data, `scores` and `binning` hold them, `sample` the checked and
sorted rows that they read; `decomposition` the parts of the Brier score, `unbiased` calibration
errors without the bias of bins, `votes` what outcomes say that were observed more than once,
`resampling` the bootstrap, `differences` the rule for "is a different from b", `intervals` those
of means, shares and distances from votes; `several` scores predictions of one of K outcomes.
"""

from .binning import ReliabilityBins, ece, ks_curves, ks_error, mce, reliability_bins
from .decomposition import BrierDecomposition, brier_decomposition
from .differences import Difference, compare, difference, holm
from .intervals import Estimate, repeated_distance
from .registry import METRICS, Metric, evaluate
from .resampling import Bootstrap, bootstrap
from .scores import auc, brier, kl_p, mse_p, nll
from .unbiased import NullBand, calibration_null_band, ece_debiased, ece_smooth

__all__ = [
    "METRICS", "Bootstrap", "BrierDecomposition", "Difference", "Estimate", "Metric", "NullBand",
    "ReliabilityBins", "auc", "bootstrap", "brier", "brier_decomposition", "calibration_null_band",
    "compare", "difference", "ece", "ece_debiased", "ece_smooth", "evaluate", "holm", "kl_p",
    "ks_curves", "ks_error", "mce", "mse_p", "nll", "reliability_bins", "repeated_distance",
]  # fmt: skip
