"""What the chapter on theory says about its results: sentences made from the numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...theory import mse_parts
from ...theory.compare import against_baseline
from ...theory.descent import collapsed
from ...theory.separability import separability_threshold

__all__ = [
    "say_appendix_b",
    "say_early",
    "say_gap",
    "say_grid",
    "say_memorised",
    "say_parts",
    "say_phase",
    "say_slopes",
    "say_step",
    "say_variants",
    "say_verdict",
    "summary_table",
    "variant_table",
]


def say_early(path, eta):
    """Describe how the mean error of a run falls and rises."""
    mean = 100 * path.mse.mean(axis=0)
    best = int(mean.argmin())
    if best == 0:
        return f"Here the mean error only rises, from {mean[0]:.2f} to {mean[-1]:.2f}."
    monotone = "at every recorded step" if (np.diff(mean[: best + 1]) < 0).all() else "on the whole"
    text = (
        f"With $\\eta$ = {eta:.3g} the mean error falls {monotone} from {mean[0]:.2f} to "
        f"{mean[best]:.2f} at $t$ = {path.time[best]:.2f}"
    )
    if best == len(mean) - 1:
        return text + ", the end of the run."
    return text + f", then rises to {mean[-1]:.2f} at $t$ = {path.time[-1]:.3g}."


def say_slopes(table):
    """Describe how far measured slopes are from their limits."""
    sign = "All" if (table.slope < 0).all() else f"{(table.slope < 0).sum()} of"
    largest = table[table.n == table.n.max()]
    distance = ((largest.slope - largest.limit) / largest.error).abs().max()
    return (
        f"{sign} {len(table)} measured slopes are negative. At n = {largest.n.iloc[0]} the largest "
        f"distance from the limit is {distance:.1f} standard errors; without the factor 2 it would "
        f"be {((largest.slope - largest.limit / 2) / largest.error).abs().max():.0f}."
    )


def say_gap(table):
    """Describe by how much the gap to gradient flow shrinks per halving of the step size."""
    mean = table.groupby("eta")[["parameters", "errors"]].mean().sort_index(ascending=False)
    halvings = np.log2(mean.index[0] / mean.index[-1])
    factor = (mean.iloc[0] / mean.iloc[-1]) ** (1 / halvings)
    return (
        f"Each halving of the step divides the gap by {factor.parameters:.2f} for the estimates "
        f"and by {factor.errors:.2f} for the errors; 2 is proportional."
    )


def say_memorised(run, kappa, gamma):
    """Describe the end of training."""
    threshold = float(separability_threshold(gamma))
    text = (
        f"The threshold for $\\gamma$ = {gamma:g} is $\\kappa^*$ = {threshold:.3f}, and here "
        f"$\\kappa$ = {kappa:g}: {run.separable.sum()} of {len(run.separable)} data sets are "
        "separable. "
    )
    if not run.separable.any():
        return text + "Nothing is memorised: the norm stays finite."
    norm = run.path.norm[run.separable, -1].mean()
    decades = run.path.time[run.separable, -1].mean() / np.log(10)
    return text + (
        f"On those, by the time $10^{{{decades:.0f}}}$ the norm has grown to {norm:.0f}, "
        f"the angle to the max-margin direction has shrunk to "
        f"{run.angle[run.separable, -1].mean():.3f} radians, and "
        f"{100 * collapsed(norm):.1f} % of all predictions on fresh data are within 0.001 of 0 "
        "or 1."
    )


def say_phase(critical, gammas, n):
    """Describe how far simulated transitions lie from the formula."""
    gap = np.median(critical, axis=1) - separability_threshold(gammas)
    at = int(np.abs(gap).argmax())
    return (
        f"With n = {n} and {critical.shape[1]} data sets for each $\\gamma$ the simulated 50 % "
        f"point is within {np.abs(gap).max():.3f} of the formula (farthest at $\\gamma$ = "
        f"{gammas[at]:g}). The threshold falls from {separability_threshold(gammas[0]):.3f} to "
        f"{separability_threshold(gammas[-1]):.3f} across the plot: the more the inputs tell about "
        "the outcomes, the fewer dimensions suffice to memorise them."
    )


def say_appendix_b(run):
    """Describe the two runs of Appendix B."""
    finite, fresh = (100 * path.mse.mean(axis=0) for path in (run.observed, run.resampled))
    best = int(finite.argmin())
    return (
        f"On finite labels the mean error goes from {finite[0]:.2f} to {finite[best]:.2f} at "
        f"iteration {run.iterations[best]} and to {finite[-1]:.2f} at the end. On resampled "
        f"labels it ends at {fresh[-1]:.2f}."
    )


def say_parts(path):
    """Describe which part of the error memorisation adds to."""
    calibration, grouping = (
        100 * v.mean(axis=0) for v in mse_parts(path.norm, path.along, path.gamma)
    )
    total = calibration + grouping
    best = int(total.argmin())
    rise = total[-1] - total[best]
    if rise <= 0.05:
        return "In this setting the error does not rise again within the run."
    repaired = "less" if grouping[-1] < total[best] else "more"
    return (
        f"From the best moment to the end the error rises by {rise:.2f}: calibration adds "
        f"{_change(calibration[-1] - calibration[best])} and grouping "
        f"{_change(grouping[-1] - grouping[best])}. Perfectly recalibrated, the last estimate "
        f"would have an error of {grouping[-1]:.2f}, {repaired} than the best along the way "
        f"({total[best]:.2f})."
    )


def _change(value):
    """Two decimals with a sign, which is no minus where they are zeros."""
    return f"{round(float(value), 2) + 0.0:+.2f}"


def say_grid(table, method, baseline="early stop"):
    """Describe where on the grid a method beats the baseline, and by how much."""
    cells = against_baseline(table, method, baseline)
    better, worse = cells[cells.z < -2], cells[cells.z > 2]
    text = (
        f"**{method}** has a lower error than the {baseline} by more than two standard errors in "
        f"{len(better)} of {len(cells)} cells, a higher one in {len(worse)}; its mean change is "
        f"{cells.change.mean():+.1f} %"
    )
    if len(better):
        kappa, gamma = better.change.idxmin()
        text += (
            f", the largest clear gain {better.change.min():+.1f} % at $\\kappa$ = {kappa:g}, "
            f"$\\gamma$ = {gamma:g}"
        )
    return text + "."


def say_step(table):
    """Describe what a step towards CaPE's targets does, compared with one towards the outcomes."""
    share = 100 * table.div(table.loc["cross entropy"])
    bins, kernel = share.loc["CaPE (bin)"], share.loc["CaPE (kernel)"]
    effect = {True: "raises", False: "lowers"}
    return (
        f"CaPE (bin) {effect[bool(bins.confidence > 0)]} the confidence, CaPE (kernel) "
        f"{effect[bool(kernel.confidence > 0)]} it: the push is {bins.confidence:.0f} % and "
        f"{kernel.confidence:.0f} % of that of a step towards the outcomes. Of what such a step "
        f"turns the estimate to the truth, CaPE keeps {bins.direction:.0f} % and "
        f"{kernel.direction:.0f} %."
    )


def say_variants(table):
    """Say whether a variant of CaPE beats early stopping, and the best moment."""
    wide = table.pivot(index=["variant", "replicate"], columns="method", values="mse")
    lines = []
    for rival, name in (("early stop", "the early stop"), ("oracle", "the best moment")):
        score = {}
        for method in ("CaPE (bin)", "CaPE (kernel)"):
            groups = (wide[method] - wide[rival]).groupby(level=0)
            for variant, z in (groups.mean() / groups.sem()).fillna(0).items():
                score[method, variant] = z
        won, lost = sum(z < -2 for z in score.values()), sum(z > 2 for z in score.values())
        lines.append(f"{name} in {won} of {len(score)} and is clearly worse in {lost}")
    return f"CaPE is clearly better than {lines[0]}; it is clearly better than {lines[1]}."


def say_verdict(table):
    """Answer whether CaPE beats early stopping, by validation and at the best moment."""
    names = ("CaPE (bin)", "CaPE (kernel)")
    early = [against_baseline(table, name, "early stop") for name in names]
    best = [against_baseline(table, name, "oracle") for name in names]
    total = sum(len(cells) for cells in early)
    won, lost = (sum(int((s * c.z < -2).sum()) for c in early) for s in (1, -1))
    beyond = sum(int((c.z < -2).sum()) for c in best)
    rest = {
        name: against_baseline(table, name, "early stop").change.mean()
        for name in ("ridge", "early stop from 0")
    }
    answer = "no" if beyond == 0 else f"in {beyond} of {total} comparisons"
    return (
        f"**Does CaPE beat the best stopping time? On this grid: {answer}.** Against the stopping "
        f"time chosen by validation it is clearly better in {won} of {total} comparisons and "
        f"clearly worse in {lost} (beyond two standard errors, of which chance alone gives about "
        f"{0.023 * total:.0f} on either side), with a mean change of "
        f"{np.mean([c.change.mean() for c in early]):+.1f} %. On the same grid ridge changes the "
        f"error by {rest['ridge']:+.0f} % on average, a start at zero by "
        f"{rest['early stop from 0']:+.0f} %."
    )


def summary_table(table, baseline="early stop"):
    """Mean errors per method, with the paired difference from a baseline.

    Parameters
    ----------
    table : DataFrame
        As `probnb.theory.compare.compare_methods` returns it.
    baseline : str, default="early stop"
        The method that differences are relative to.

    Returns
    -------
    DataFrame
        A row per method; columns MSE x 100, its two parts, difference from the baseline and its
        standard error, and in how many of the data sets validation kept the start.
    """
    means = 100 * table.groupby("method", sort=False)[["mse", "calibration", "grouping"]].mean()
    wide = 100 * table.pivot(index="replicate", columns="method", values="mse")
    difference = wide.sub(wide[baseline], axis=0)
    means["difference"], means["standard error"] = difference.mean(), difference.sem()
    start = table["chosen"] == 0
    means["kept its start (%)"] = 100 * start.groupby(table["method"]).mean()
    return means.rename(columns={"mse": "MSE x 100"}).rename_axis(None)


def variant_table(table, baseline="early stop"):
    """Change in error against early stopping, for each variant of CaPE.

    Parameters
    ----------
    table : DataFrame
        As `probnb.theory.compare.cape_variants` returns it.
    baseline : str, default="early stop"
        The method that changes are relative to.

    Returns
    -------
    DataFrame
        A row per variant; for each CaPE, the best moment and ridge "change in percent ±
        standard error".
    """
    wide = table.pivot(index=["variant", "replicate"], columns="method", values="mse")
    order = list(table["variant"].unique())
    base = wide[baseline].groupby(level=0).mean()
    cells = {}
    for method in ("CaPE (bin)", "CaPE (kernel)", "oracle", "ridge"):
        groups = (wide[method] - wide[baseline]).groupby(level=0)
        mean, error = 100 * groups.mean() / base, 100 * groups.sem() / base
        cells[method] = [f"{mean[v]:+.1f} ± {error[v]:.1f}" for v in order]
    return pd.DataFrame(cells, index=order)
