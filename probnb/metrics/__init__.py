"""Everything that judges predictions, in one namespace.

`registry` holds the scores and lists all metrics as data, `binning` has what rests on bins and on
sorted predictions, `sample` the checked and sorted rows that they read, `votes` what outcomes say
that were observed more than once, `resampling` the bootstrap, `differences` the rule for "is a
different from b" and the intervals of means, of shares and of distances from votes.
"""

from .binning import (
    BrierDecomposition,
    NullBand,
    ReliabilityBins,
    brier_decomposition,
    calibration_null_band,
    ece,
    ece_debiased,
    ece_smooth,
    ks_curves,
    ks_error,
    mce,
    reliability_bins,
)
from .differences import Difference, Estimate, compare, difference, holm, repeated_distance
from .registry import (
    METRICS,
    Metric,
    auc,
    brier,
    evaluate,
    evaluate_outcomes,
    kl_p,
    mse_p,
    net_benefit,
    nll,
)
from .resampling import Bootstrap, bootstrap

__all__ = [
    "METRICS", "Bootstrap", "BrierDecomposition", "Difference", "Estimate", "Metric", "NullBand",
    "ReliabilityBins", "auc", "bootstrap", "brier", "brier_decomposition", "calibration_null_band",
    "compare", "difference", "ece", "ece_debiased", "ece_smooth", "evaluate", "evaluate_outcomes",
    "holm", "kl_p", "ks_curves", "ks_error", "mce", "mse_p", "net_benefit", "nll",
    "reliability_bins", "repeated_distance",
]  # fmt: skip
