"""Models whose errors are known, and what the metrics make of them: no training, exact truth."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ...metrics.binning import calibration_null_band, ece, ece_debiased, ece_smooth
from ...metrics.registry import METRICS
from ...metrics.resampling import bootstrap
from ...validation import check_integer


def two_classes():
    """Return eight rows of two classes with true probabilities 1/4 and 3/4, as in Figure 2.

    Returns
    -------
    DataFrame of shape (8, 4)
        Columns ``y``, ``p``, and two models: ``"truth"``, and ``"one answer"``, which gives 1/2 to
        everything and is calibrated none the less.

    Examples
    --------
    >>> two_classes().groupby("p")["y"].mean().to_dict()
    {0.25: 0.25, 0.75: 0.75}
    """
    p = np.repeat([0.25, 0.75], 4)
    y = np.array([0, 0, 1, 0, 1, 1, 0, 1])
    return pd.DataFrame({"y": y, "p": p, "truth": p, "one answer": 0.5})


def example_models(n=2329, seed=0):
    """Draw outcomes from known probabilities, and predictions of five models.

    Parameters
    ----------
    n : int, default=2329
        Number of rows; the default is the size of the paper's test set.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    DataFrame of shape (n, 7)
        Columns ``y``, ``p`` and the models: ``"truth"``; ``"coarse"``, which tells only high from
        low and gives each half its mean; ``"constant"``, the mean for all; ``"overconfident"``,
        the truth with its logit times 2.5; ``"shifted"``, the truth with its logit plus 0.7. The
        first three are calibrated; the last two order the rows as the truth does.

    Examples
    --------
    >>> table = example_models(1000)
    >>> table["coarse"].nunique(), table["constant"].nunique()
    (2, 1)
    """
    check_integer(n, "n")
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return pd.DataFrame(
        {
            "y": (rng.random(n) < p).astype(int), "p": p, "truth": p,
            "coarse": np.where(p < 0.5, 0.26, 0.74), "constant": 0.5,
            "overconfident": expit(2.5 * logit(p)), "shifted": expit(logit(p) + 0.7),
        }
    )  # fmt: skip


def ece_by_rows(rows=(100, 300, 1000, 3000, 10_000), bins=(5, 15, 50), replicates=100, seed=0):
    r"""Average calibration errors of a perfect model, whose true error is 0, by number of rows.

    Parameters
    ----------
    rows : sequence of int, default=(100, 300, 1000, 3000, 10000)
        Sizes of the test set.
    bins : sequence of int, default=(5, 15, 50)
        Numbers of bins of the plain ECE.
    replicates : int, default=100
        Test sets drawn of each size.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    DataFrame
        One line for each size: index ``rows``; a column for each estimator, ``"ECE, 15 bins"`` and
        so on, ``"debiased, 15 bins"`` and ``"smooth"``; and ``"normal theory, 15 bins"``.

    Notes
    -----
    With n / B rows in each bin and outcomes of variance v, gaps are nearly normal with variance
    v B / n, so that the expected ECE is :math:`\sqrt{2 v B / (\pi n)}` although the error is 0.

    Examples
    --------
    >>> table = ece_by_rows(rows=(100, 400), bins=(15,), replicates=20)
    >>> bool(table.loc[100, "ECE, 15 bins"] > 1.5 * table.loc[400, "ECE, 15 bins"])
    True
    """
    estimators = {f"ECE, {b} bins": partial(ece, bins=b) for b in bins}
    estimators |= {"debiased, 15 bins": ece_debiased, "smooth": ece_smooth}
    table = {}
    for k, n in enumerate(rows):
        model = example_models(n, seed + k)
        table[n] = {
            name: calibration_null_band(model["p"], metric, replicates=replicates, seed=seed).mean
            for name, metric in estimators.items()
        }
        variance = np.mean(model["p"] * (1 - model["p"]))
        table[n]["normal theory, 15 bins"] = np.sqrt(2 * variance * 15 / (np.pi * n))
    return pd.DataFrame(table).T.rename_axis("rows")


def ece_by_bins(models, bins=(2, 3, 5, 8, 15, 30, 60, 120), replicates=200, seed=0):
    """Calibration error of each model as the number of bins changes, and what chance would give.

    Parameters
    ----------
    models : DataFrame
        Columns ``y`` and one of predictions for each model, such as `example_models` returns.
    bins : sequence of int, default=(2, 3, 5, 8, 15, 30, 60, 120)
        Numbers of bins.
    replicates : int, default=200
        Outcomes redrawn for each band.
    seed : int, default=0
        Seed of the bands.

    Returns
    -------
    DataFrame
        Columns ``model``, ``bins``, ``ece``, and ``low`` and ``high`` of the 95 % null band.

    Examples
    --------
    >>> table = ece_by_bins(example_models(200)[["y", "truth"]], bins=(5, 50), replicates=50)
    >>> table["ece"].between(table["low"], table["high"]).tolist()
    [True, True]
    """
    lines = []
    for name, b in product(models.columns.drop(["y", "p"], errors="ignore"), bins):
        metric, p_hat = partial(ece, bins=b), models[name]
        band = calibration_null_band(p_hat, metric, replicates=replicates, seed=seed)
        lines.append((name, b, metric(models["y"], p_hat), band.low, band.high))
    return pd.DataFrame(lines, columns=["model", "bins", "ece", "low", "high"])


def coverage(n=500, trials=100, replicates=200, level=0.95, seed=0):
    """How often a bootstrap interval holds the true value, for a perfectly calibrated model.

    Parameters
    ----------
    n : int, default=500
        Rows of each test set.
    trials : int, default=100
        Test sets drawn.
    replicates : int, default=200
        Bootstrap resamples of each.
    level : float, default=0.95
        Coverage that the intervals aim at.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    DataFrame of shape (3, 3)
        Index: ``brier``, ``ece``, ``ks``. Columns: the ``true`` value, the mean ``estimate`` and
        the share of intervals that ``cover`` the true value.

    Examples
    --------
    >>> float(coverage(n=300, trials=10, replicates=50).loc["ece", "cover"])
    0.0
    """
    names = ["brier", "ece", "ks"]
    # p uniform on (.02, .98): the mean of p(1 - p) is known, and the model's errors are 0
    truth = pd.Series([1 / 4 - 0.96**2 / 12, 0, 0], names)
    hits, points = [], []
    for trial in range(trials):
        model = example_models(n, seed + trial)
        options = dict(replicates=replicates, metrics=names, seed=seed + trial, progress=False)
        result = bootstrap(model["y"], model[["truth"]], **options)
        low, high = (end.loc["truth"] for end in result.interval(level))
        hits.append((low <= truth) & (truth <= high))
        points.append(result.point.loc["truth"])
    columns = {"true": truth, "estimate": np.mean(points, 0), "cover": np.mean(hits, 0)}
    return pd.DataFrame(columns, index=names)


def orderings(point):
    """Order models by each metric, and count how many pairs it orders as MSE_p does.

    Parameters
    ----------
    point : DataFrame of shape (models, metrics)
        Metrics of each model, ``mse_p`` among them, such as a `Bootstrap` holds.

    Returns
    -------
    DataFrame
        One line a metric: the models from ``best to worst``, and the share of ``pairs`` that the
        metric orders as MSE_p does (a tie counts half).

    Examples
    --------
    >>> point = pd.DataFrame({"mse_p": [0.0, 0.1], "auc": [0.9, 0.9]}, index=["a", "b"])
    >>> orderings(point)["pairs"].to_dict()
    {'mse_p': 1.0, 'auc': 0.5}
    """
    lines = {}
    first, second = np.triu_indices(len(point), k=1)
    truth = point["mse_p"].to_numpy()
    for metric in point.columns:
        values = (1 if METRICS[metric].lower_is_better else -1) * point[metric].round(12)
        sign = np.sign(values.to_numpy()[first] - values.to_numpy()[second])
        agreement = sign * np.sign(truth[first] - truth[second])
        ranked = ", ".join(values.sort_values(kind="stable").index)
        lines[metric] = {"best to worst": ranked, "pairs": np.mean((1 + agreement) / 2)}
    return pd.DataFrame(lines).T.astype({"pairs": float}).rename_axis("metric")
