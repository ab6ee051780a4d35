"""Rules that need more than final scores: histories, predictions and chosen settings of runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...metrics import brier_decomposition, calibration_null_band, ece
from ...scenarios import SCENARIOS
from .sources import Printed, label
from .verdicts import AGAINST, ENOUGH, HOLDS, OPEN, Verdict, rule

__all__ = ["every_run"]

OVERFIT_NATS = 0.1  # training cross entropy at which outcomes count as memorised
NEAR = 0.05  # of 0 or 1


def every_run(source, needs=()):
    """Return the best runs of each scenario, drawn faces where there are no photographs."""
    if isinstance(source, Printed):
        return []
    runs = [r for t in SCENARIOS for r in source.evidence.best(t)]
    return [r for r in runs if set(needs) <= set(r.methods)]


def _all(runs, good, bad, words):
    """Judge a claim about every run: holds if good in all.

    It is contradicted if bad in most runs of photographs, more than one: drawn faces, which are
    another task in small, may bear a claim out but not refute it.
    """
    if not runs:
        return None
    good, bad = np.array([good(r) for r in runs]), [bad(r) for r in runs if r.photographs]
    if len(runs) < ENOUGH:
        verdict = OPEN
    else:
        verdict = HOLDS if good.all() else OPEN
        if len(bad) >= ENOUGH and np.mean(bad) > 0.5:
            verdict = verdict if verdict == HOLDS else AGAINST
    said = "; ".join(f"{_name(r)} {words(r)}" for r in runs)
    return Verdict(verdict, said)


def _name(trained):
    return trained.run.record["task"] + ("" if trained.photographs else " (drawn)")


@rule
def overfits(source):
    """The error of the last epoch is clearly above that of the early-stopped network."""
    runs = every_run(source, ("ce", "ce_overfit"))

    def gap(r):
        return r.difference("ce_overfit", "ce").loc["mse_p"]

    def words(r):
        return f"{_point(r, 'ce_overfit'):.2f} against {_point(r, 'ce'):.2f}"

    verdict = _all(runs, lambda r: gap(r)["low"] > 0, lambda r: gap(r)["high"] < 0, words)
    return verdict and Verdict(verdict.verdict, f"MSE_p × 100 at the end: {verdict.reason}")


def _point(trained, method, metric="mse_p"):
    return 100 * trained.bootstrap.point.loc[method, metric]


@rule
def memorises(source):
    """Training cross entropy goes to 0."""
    runs = every_run(source, ("ce",))
    last = {id(r): r.history("ce")["train_ce"].iloc[-1] for r in runs}
    kept = {id(r): r.history("ce")["train_ce"].iloc[_kept(r)] for r in runs}
    verdict = _all(
        runs,
        lambda r: last[id(r)] < OVERFIT_NATS,
        lambda r: last[id(r)] > 0.9 * kept[id(r)],
        lambda r: f"{last[id(r)]:.3f} after {len(r.history('ce')) - 1} epochs",
    )
    return verdict and Verdict(verdict.verdict, f"training cross entropy (nats): {verdict.reason}")


def _kept(trained, method="ce"):
    """Position of the kept epoch in the history of a fit."""
    history, kept = trained.history(method), trained.kept_fit(method)["best_epoch"]
    return int(np.flatnonzero(history["epoch"] == kept)[0])


@rule
def collapses(source):
    """Most predictions of the overfitted network are near 0 or 1."""
    runs = every_run(source, ("ce_overfit", "ce"))

    def share(r, method):
        return float(np.mean(np.abs(r.test[method] - 0.5) > 0.5 - NEAR))

    verdict = _all(
        runs,
        lambda r: share(r, "ce_overfit") > 0.5,
        lambda r: share(r, "ce_overfit") <= share(r, "ce"),
        lambda r: f"{share(r, 'ce_overfit'):.0%} ({share(r, 'ce'):.0%} when stopped early)",
    )
    return verdict and Verdict(verdict.verdict, f"within {NEAR} of 0 or 1: {verdict.reason}")


@rule
def calibrated(source, method, needed="every"):
    """The calibration error is what chance alone would give predictions that are right."""
    if isinstance(source, Printed):
        return _printed_calibrated(source, method)
    runs = every_run(source, (method,))
    bands = {id(r): _band(r, method) for r in runs}
    values = {id(r): ece(r.test["y"], r.test[method]) for r in runs}
    verdict = _all(
        runs,
        lambda r: values[id(r)] <= bands[id(r)].high,
        lambda r: values[id(r)] > bands[id(r)].high,
        lambda r: f"{100 * values[id(r)]:.1f} (chance up to {100 * bands[id(r)].high:.1f})",
    )
    return verdict and Verdict(verdict.verdict, f"ECE of {label(method)}: {verdict.reason}")


def _band(trained, method):
    """What chance alone gives these predictions, computed once: several claims ask."""
    key = "band", method
    if key not in trained.cache:
        trained.cache[key] = calibration_null_band(trained.test[method], replicates=200)
    return trained.cache[key]


def _printed_calibrated(source, method, n=2329, bins=15):
    """Hold printed errors against the largest that chance gives: every p at 1/2."""
    most = chance_bound(n, bins)
    values = {t: source.value(t, method, "ece") for t in SCENARIOS}
    above = [f"{t} {v:.2f}" for t, v in values.items() if v > most]
    said = f"ECE of {label(method)} above {most:.1f}, more than chance can give: "
    return Verdict(AGAINST if above else HOLDS, said + ("; ".join(above) or "nowhere"))


def chance_bound(n, bins):
    """Return an ECE (times 100) that predictions which are right exceed once in a thousand times.

    A bin's mean outcome has at most the deviation of fair coins; the mean of their absolute
    values is that of half-normals, with three standard deviations added.
    """
    sigma = 0.5 / np.sqrt(n / bins)
    mean, std = np.sqrt(2 / np.pi), np.sqrt((1 - 2 / np.pi) / bins)
    return float(100 * sigma * (mean + 3 * std))


def _curve(trained, method, column):
    """Values of a fine-tuning's epochs, the start first."""
    history = trained.history(method)
    if history["epoch"].iloc[0] > 0:  # runs that did not record their start
        start = trained.history("ce")[column].iloc[_kept(trained)]
        return np.array([start, *history[column]])
    return history[column].to_numpy()


def _fine_tuned(source, column, method, good, bad, words):
    runs = every_run(source, ("ce", method))
    curves = {id(r): _curve(r, method, column) for r in runs}
    return _all(
        runs,
        lambda r: good(curves[id(r)]),
        lambda r: bad(curves[id(r)]),
        lambda r: words(curves[id(r)], r),
    )


@rule
def stays(source, column, method="cape_bin", factor="1.1"):
    """CaPE's last epoch is no worse than its start in a test metric."""
    return _stays(source, column, method, float(factor))


@rule
def prevents(source, column, method="cape_bin", factor="1.1"):
    """CaPE's last epoch is no worse than its start, where its control's is."""
    return _stays(source, column, method, float(factor), against="ce_finetuned")


def _stays(source, column, method, factor, against=None):
    runs = every_run(source, ("ce", method, "ce_finetuned"))
    ends = {}
    for r in runs:
        ours, control = (_curve(r, m, column) for m in (method, "ce_finetuned"))
        ends[id(r)] = ours[-1] / ours[0], control[-1] / control[0], ours, control

    def words(r):
        _, _, ours, control = ends[id(r)]
        last = f"{100 * ours[-1]:.1f} after {len(ours) - 1}"
        return f"{100 * ours[0]:.1f} to {last}, control {100 * control[-1]:.1f}"

    verdict = _all(
        runs,
        lambda r: ends[id(r)][0] <= factor and (against is None or ends[id(r)][1] > factor),
        lambda r: ends[id(r)][0] > factor,
        words,
    )
    return verdict and Verdict(
        verdict.verdict, f"{label(column)} × 100 over CaPE's epochs: {verdict.reason}"
    )


@rule
def goes_on_falling(source, method="cape_bin"):
    """Validation cross entropy is still below the start in CaPE's last epoch."""
    verdict = _fine_tuned(
        source,
        "val_ce",
        method,
        lambda c: c[-1] < c[0],
        lambda c: c[-1] > c[0],
        lambda c, r: f"{c[-1] - c[0]:+.4f} (lowest after {c.argmin()} of {len(c) - 1} epochs)",
    )
    return verdict and Verdict(
        verdict.verdict,
        f"validation cross entropy, last epoch less start (nats): {verdict.reason}",
    )


@rule
def falls_early(source):
    """Training and validation cross entropy both fall up to the kept epoch."""
    runs = every_run(source, ("ce",))

    def fell(r, column):
        history = r.history("ce")
        first = history[history["epoch"] == 1][column].iloc[0]
        return first - history[column].iloc[_kept(r)]

    verdict = _all(
        runs,
        lambda r: min(fell(r, "train_ce"), fell(r, "val_ce")) > 0,
        lambda r: max(fell(r, "train_ce"), fell(r, "val_ce")) <= 0,
        lambda r: f"{-fell(r, 'train_ce'):+.3f} and {-fell(r, 'val_ce'):+.3f}",
    )
    return verdict and Verdict(
        verdict.verdict, f"training and validation, epoch 1 to the kept one: {verdict.reason}"
    )


@rule
def ends_badly(source, column="mse_p", factor="2"):
    """The error of the last epoch of cross entropy is a multiple of the kept one's."""
    runs = every_run(source, ("ce",))

    def ratio(r):
        curve = r.history("ce")[column]
        return curve.iloc[-1] / curve.iloc[_kept(r)]

    verdict = _all(
        runs,
        lambda r: ratio(r) >= float(factor),
        lambda r: ratio(r) <= 1,
        lambda r: f"{ratio(r):.1f}",
    )
    return verdict and Verdict(
        verdict.verdict, f"{label(column)} at the end as a multiple of the kept: {verdict.reason}"
    )


@rule
def insensitive(source, name="mmce", most="0.01"):
    """Validation cross entropy hardly depends on a regulariser's strength."""
    runs, spans = [], {}
    for r in every_run(source, (name,)):
        values = r.results.chosen.query("method == @name")["val_ce"]
        if len(values) > 1:
            runs.append(r)
            spans[id(r)] = float(values.max() - values.min())
    verdict = _all(
        runs,
        lambda r: spans[id(r)] <= float(most),
        lambda r: spans[id(r)] > 2 * float(most),
        lambda r: f"{spans[id(r)]:.3f}",
    )
    return verdict and Verdict(
        verdict.verdict, f"range of validation cross entropy (nats): {verdict.reason}"
    )


@rule
def refinement_follows_auc(source, least="0.9"):
    """Over the rows of a run, refinement (15 bins) falls as the AUC rises."""
    runs, values = [], {}
    for r in every_run(source):
        if len(r.methods) > 4:
            parts = [brier_decomposition(r.test["y"], r.test[m], bins=15) for m in r.methods]
            refinement = np.array([part.refinement for part in parts])
            auc = r.bootstrap.point.loc[r.methods, "auc"].to_numpy()
            values[id(r)] = float(np.corrcoef(refinement, auc)[0, 1])
            runs.append(r)
    verdict = _all(
        runs,
        lambda r: values[id(r)] <= -float(least),
        lambda r: values[id(r)] >= 0,
        lambda r: f"{values[id(r)]:.2f}",
    )
    return verdict and Verdict(verdict.verdict, f"correlation over rows: {verdict.reason}")


@rule
def accuracy_misleads(source):
    """The row of the highest accuracy is not that of the lowest error."""
    runs = every_run(source, ("ce", "resampled"))
    best = {}
    for r in runs:
        hits = {m: np.mean((r.test[m] > 0.5) == r.test["y"]) for m in r.methods}
        by_error = r.bootstrap.point["mse_p"].loc[r.methods]
        wrong = -pd.Series(hits)[by_error.index]
        spread = by_error.corr(wrong, "spearman")
        best[id(r)] = (max(hits, key=hits.get), by_error.idxmin(), spread)
    verdict = _all(
        runs,
        lambda r: best[id(r)][2] < 0.9,
        lambda r: best[id(r)][2] >= 0.9,
        lambda r: f"{best[id(r)][2]:.2f}",
    )
    return verdict and Verdict(
        verdict.verdict, f"rank correlation of accuracy and MSE_p over rows: {verdict.reason}"
    )
