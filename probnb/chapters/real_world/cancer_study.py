"""What several runs of the cancer task say together: rules, stages, and the price of few patients.

Every function takes a table of predictions, one row a test patient: ``rule`` (by which the networks
were trained), ``seed`` (which fold), ``id`` (a row number), and one column a method.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data.survival import HORIZON, RULES, kaplan_meier, label
from ...data.tcga import STAGES
from ...methods import METHODS
from ...metrics import Bootstrap, bootstrap
from ...validation import check_number

__all__ = [
    "LABELS",
    "auc_standard_error",
    "compare_rules",
    "five_fold_bootstrap",
    "paired",
    "ranks",
    "shown_methods",
    "stage_contrasts",
    "stage_quantiles",
    "stage_spread",
    "survival_by_group",
    "survival_by_stage",
]

TABLES = (
    "predictions", "scores", "differences", "spread", "contrasts", "stages", "boxes", "groups",
    "curves",
)  # fmt: skip
"""Files of a study, each a table."""


LABELS = {name: method.label for name, method in METHODS.items()}
"""Labels of the methods; references are called what they are."""

BY_STAGE = ("ensemble", "ce", "cape_bin")
"""The methods of the paper's Figure 16."""

COMPARED = ("cape_bin", "cape_kernel", "ensemble")
"""Methods that are compared in pairs."""

RIVALS = ("ce", "ce_finetuned", "platt", "Cox regression", "Kaplan-Meier")
"""What they are held against."""


def shown_methods(predictions):
    """Return the columns that figures by stage and group show, those that there are."""
    return [name for name in (*BY_STAGE, "Cox, clinical") if name in predictions]


def five_fold_bootstrap(predictions, months, died, rule="ipcw", strata=None, **kwargs):
    """Score pooled test folds by a rule, and resample their patients.

    Parameters
    ----------
    predictions : DataFrame
        Columns ``seed``, ``id`` and methods; each patient tested once.
    months, died : ndarray of shape (n,)
        Follow-up of the cohort, by row number.
    rule : {"paper", "known", "ipcw"}, default="ipcw"
        By which outcomes the predictions are judged, whatever they were trained by.
    strata : ndarray of shape (n,), optional
        See `probnb.data.survival.label`.
    **kwargs
        Of `probnb.metrics.bootstrap`: ``replicates``, ``seed``, ``groups`` (by row number).

    Returns
    -------
    Bootstrap
        Of all folds as one sample; but AUC is the mean over folds, each with its own resamples,
        since folds are predicted by different networks, whose levels differ by chance.
    """
    labels = label(months, died, rule, strata=strata)
    kwargs = {"replicates": 1000, "seed": 0, "progress": False} | kwargs
    groups = kwargs.pop("groups", None)
    methods = [c for c in predictions if c not in ("rule", "seed", "id")]

    def score(rows, metrics=None):
        at = rows["id"].to_numpy()
        return bootstrap(
            labels.outcomes[at],
            rows[methods],
            weights=labels.weights[at],
            groups=None if groups is None else np.asarray(groups)[at],
            metrics=metrics,
            **kwargs,
        )

    whole = score(predictions)
    folds = [score(rows, ["auc"]) for _, rows in predictions.groupby("seed")]
    point, samples = whole.point.copy(), whole.samples.copy()
    auc = point.columns.get_loc("auc")
    point["auc"] = np.mean([fold.point["auc"] for fold in folds], axis=0)
    samples[..., auc] = np.mean([fold.samples[..., 0] for fold in folds], axis=0)
    return Bootstrap(point, samples)


def paired(result, methods=COMPARED, rivals=RIVALS, metrics=("brier", "auc")):
    """Compare methods with rivals on the same resamples.

    Parameters
    ----------
    result : Bootstrap
        From `five_fold_bootstrap`.
    methods, rivals : sequence of str
        Those that `result` has are compared.
    metrics : sequence of str, default=("brier", "auc")
        Which metrics.

    Returns
    -------
    DataFrame
        Columns ``method``, ``rival``, ``metric``, ``difference``, ``low``, ``high``.
    """
    rows = []
    for method in (m for m in methods if m in result.point.index):
        for rival in (r for r in rivals if r in result.point.index):
            table = result.difference(method, rival).loc[
                list(metrics), ["difference", "low", "high"]
            ]
            rows += [(method, rival, name, *values) for name, *values in table.itertuples()]
    columns = ["method", "rival", "metric", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def compare_rules(predictions, months, died, strata=None, **kwargs):
    """Score networks trained by each rule, by the same rule and by ``"ipcw"``.

    Parameters
    ----------
    predictions : DataFrame
        As in the head of the module.
    months, died : ndarray of shape (n,)
        Follow-up of the cohort, by row number.
    strata : ndarray of shape (n,), optional
        See `probnb.data.survival.label`.
    **kwargs
        See `five_fold_bootstrap`.

    Returns
    -------
    DataFrame
        Columns ``trained``, ``judged``, ``method``, ``metric``, ``value``, ``std``, ``low``,
        ``high``.
    """
    rows = []
    for trained, part in predictions.groupby("rule", sort=False):
        for judged in dict.fromkeys((trained, "ipcw")):
            result = five_fold_bootstrap(part, months, died, judged, strata, **kwargs)
            frames = dict(zip(("low", "high"), result.interval()))
            frames |= {"value": result.point, "std": result.std()}
            long = pd.DataFrame({name: frame.stack() for name, frame in frames.items()})
            long = long.rename_axis(["method", "metric"]).reset_index()
            rows.append(long.assign(trained=trained, judged=judged))
    columns = ["trained", "judged", "method", "metric", "value", "std", "low", "high"]
    return pd.concat(rows, ignore_index=True)[columns]


def ranks(scores, metric="brier", methods=None):
    """Rank methods under each rule, judged by itself, with how far the rule moves them.

    Parameters
    ----------
    scores : DataFrame
        From `compare_rules`.
    metric : str, default="brier"
        By which to rank; 1 is best.
    methods : sequence of str, optional
        Which ones; by default rows of `probnb.methods.METHODS`.

    Returns
    -------
    DataFrame
        One row a method, a column of ranks for each rule, and ``moves``, the largest change.
    """
    own = scores[(scores["trained"] == scores["judged"]) & (scores["metric"] == metric)]
    own = own[own["method"].isin(METHODS if methods is None else methods)]
    table = own.pivot(index="method", columns="trained", values="value")
    table = table[[rule for rule in RULES if rule in table]]
    table = table.rank(ascending=metric != "auc").astype(int)
    return table.assign(moves=table.max(axis=1) - table.min(axis=1))


def stage_spread(stages, predictions):
    """Measure how far predictions differ between stages, and how far within.

    Parameters
    ----------
    stages : array-like of str of shape (n,)
        Stage of each patient; those of unknown stage are left out and counted.
    predictions : mapping of str to array-like of shape (n,)
        Predictions by method.

    Returns
    -------
    DataFrame
        One row a method: ``between`` and ``within``, the standard deviations of the stage's mean
        and about it (their squares add up to the variance), ``ratio`` of the first to the second,
        ``early_minus_late`` (mean prediction of stage I less that of III and IV), ``patients`` and
        ``unknown``.
    """
    stages = np.asarray(stages)
    known = stages != "unknown"
    late = np.isin(stages, ("III", "IV"))
    rows = {}
    for name, values in dict(predictions).items():
        p_hat = pd.Series(np.asarray(values, float)[known])
        means = p_hat.groupby(stages[known]).transform("mean")
        between, within = means.std(ddof=0), (p_hat - means).std(ddof=0)
        early = np.asarray(values)[stages == "I"]
        rows[name] = {
            "between": between,
            "within": within,
            "ratio": between / within if within else np.nan,
            "early_minus_late": early.mean() - np.asarray(values)[late].mean(),
            "patients": int(known.sum()),
            "unknown": int((~known).sum()),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Ends of whiskers and boxes, and the median."""

CONTRASTS = (
    ("102", "between", "ensemble", "ce"),
    ("103", "between", "ce", "ensemble"),
    ("103", "within", "ce", "ensemble"),
    ("104", "between", "cape_bin", "ensemble"),
    ("104", "within", "cape_bin", "ce"),
)
"""What the paper says of its Figure 16: claim, spread, and two methods whose spreads it compares;
the first has the smaller one in claim 102 and, within stages, in 104, elsewhere the larger."""


def stage_contrasts(stages, predictions, replicates=1000, seed=0):
    """Compare the spreads of two methods, between and within stages, on the same patients.

    Parameters
    ----------
    stages : array-like of str of shape (n,)
        Stage of each patient; unknown ones are left out.
    predictions : mapping of str to array-like of shape (n,)
        Predictions by method.
    replicates : int, default=1000
        Bootstrap replicates over patients.
    seed : int, default=0
        Seed of the replicates.

    Returns
    -------
    DataFrame
        One row for each of `CONTRASTS` whose methods are there: ``claim``, ``spread``, ``first``,
        ``second``, ``difference``, ``low``, ``high``.
    """
    known = np.asarray(stages) != "unknown"
    codes, names = pd.factorize(np.asarray(stages)[known])
    values = {k: np.asarray(v, float)[known] for k, v in dict(predictions).items()}
    member = np.eye(len(names))[codes]
    rng = np.random.default_rng(seed)
    n = len(codes)
    drawn = [np.ones(n)] + [
        np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(replicates)
    ]
    weights = np.array(drawn, float)
    sizes = weights @ member
    spreads = {}
    for name, p_hat in values.items():
        sums = weights @ (member * p_hat[:, None])
        means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
        total = (weights @ p_hat) / n
        between = ((sizes * means**2).sum(1) / n - total**2).clip(0)
        within = ((weights @ p_hat**2) / n - (sizes * means**2).sum(1) / n).clip(0)
        spreads[name] = {"between": np.sqrt(between), "within": np.sqrt(within)}
    rows = []
    for claim, spread, first, second in CONTRASTS:
        if first in spreads and second in spreads:
            gaps = spreads[first][spread] - spreads[second][spread]
            low, high = np.quantile(gaps[1:], [0.025, 0.975])
            rows.append((claim, spread, first, second, gaps[0], low, high))
    columns = ["claim", "spread", "first", "second", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def stage_quantiles(stages, predictions, least=1):
    """Describe predictions by stage by their quantiles.

    Parameters
    ----------
    stages : array-like of str of shape (n,)
        Stage of each patient.
    predictions : mapping of str to array-like of shape (n,)
        Predictions by method.
    least : int, default=1
        Stages of fewer patients are left out.

    Returns
    -------
    DataFrame
        One row for each method and stage, early to late: ``method``, ``stage``, ``patients``, the
        quartiles ``q1``, ``med`` and ``q3``, and ``whislo`` and ``whishi``, the 5th and the 95th
        percentile.
    """
    stages = np.asarray(stages)
    rows = []
    for name, values in dict(predictions).items():
        for stage in stage_names(stages):
            own = np.asarray(values, float)[stages == stage]
            if len(own) >= least:
                rows.append(
                    (name, stage, len(own), *np.quantile(own, [0.05, 0.25, 0.5, 0.75, 0.95]))
                )
    columns = ["method", "stage", "patients", "whislo", "q1", "med", "q3", "whishi"]
    return pd.DataFrame(rows, columns=columns)


def survival_by_stage(stages, months, died, horizon=HORIZON, least=20):
    """Estimate the survival of each stage at the horizon by Kaplan and Meier.

    Parameters
    ----------
    stages : array-like of str of shape (n,)
        Stage of each patient.
    months, died : array-like of shape (n,)
        Follow-up, the censored included.
    horizon : float, default=60
        Months.
    least : int, default=20
        Stages of fewer patients are left out: too few to say, and to hide in.

    Returns
    -------
    DataFrame
        ``stage``, ``patients``, ``survival``, ``low`` and ``high``.
    """
    stages, months, died = np.asarray(stages), np.asarray(months), np.asarray(died)
    rows = []
    for stage in stage_names(stages):
        inside = stages == stage
        if inside.sum() >= least:
            curve = kaplan_meier(months[inside], died[inside])
            at = curve[curve["months"] <= horizon].iloc[-1]
            rows.append((stage, int(inside.sum()), *at[["survival", "low", "high"]]))
    return pd.DataFrame(rows, columns=["stage", "patients", "survival", "low", "high"])


def survival_by_group(p_hat, months, died, groups=3, horizon=HORIZON):
    """Cut patients into equally many by prediction, and estimate the survival of each part.

    Parameters
    ----------
    p_hat : array-like of shape (n,)
        Predicted probability of being alive at the horizon.
    months, died : array-like of shape (n,)
        Follow-up, the censored included.
    groups : int, default=3
        Parts; equal predictions stay together.
    horizon : float, default=60
        Months.

    Returns
    -------
    DataFrame
        One row a group, from the lowest predictions: ``predicted`` (mean), ``observed`` (Kaplan
        and Meier's estimate at the horizon), ``low``, ``high``, ``patients`` and ``curve``, the
        whole estimate.
    """
    p_hat, months, died = (np.asarray(v, float) for v in (p_hat, months, died))
    part = np.searchsorted(np.quantile(p_hat, np.arange(1, groups) / groups), p_hat)
    rows = []
    for k in np.unique(part):
        inside = part == k
        curve = kaplan_meier(months[inside], died[inside])
        at = curve[curve["months"] <= horizon].iloc[-1]
        rows.append(
            {
                "predicted": p_hat[inside].mean(),
                "observed": at["survival"],
                "low": at["low"],
                "high": at["high"],
                "patients": int(inside.sum()),
                "curve": curve,
            }
        )
    return pd.DataFrame(rows)


def auc_standard_error(auc, ones, zeros):
    """Standard error of an AUC from its size and the counts of both outcomes.

    Parameters
    ----------
    auc : float
        The area, in [0, 1].
    ones, zeros : float
        Rows of each outcome.

    Returns
    -------
    float
        Hanley and McNeil (1982).

    Examples
    --------
    The paper's best AUC on its 158 test slides, 65 % of them survivors:

    >>> round(auc_standard_error(0.6144, 103, 55), 3)
    0.046
    """
    a = check_number(auc, "auc", 0, 1)
    q1, q2 = a / (2 - a), 2 * a**2 / (1 + a)
    variance = a * (1 - a) + (ones - 1) * (q1 - a**2) + (zeros - 1) * (q2 - a**2)
    return float(np.sqrt(variance / (ones * zeros)))


def stage_names(stages):
    """Return the stages that occur, early to late."""
    return [stage for stage in STAGES if np.isin(stage, stages)]
