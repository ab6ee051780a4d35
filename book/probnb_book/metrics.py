"""The chapter on metrics: how well scores stand in for distances from the truth.

Models drawn from known probabilities have errors that are known too.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from scipy.special import expit, logit
from scipy.stats import norm

from probnb import metrics
from probnb.methods import PAPER
from probnb.metrics import METRICS
from probnb.plots import COLOURS, forest, grid
from probnb.validation import check_integer

from . import evidence
from .published import published
from .scenarios import SCENARIOS

TARGETS = tuple(name for name, metric in METRICS.items() if metric.needs_truth)
"""What only the true probabilities can tell."""

PROXIES = tuple(name for name in METRICS if name not in TARGETS)
"""What outcomes can tell."""

MODEL = ("scenario", "kind", "seed", "name", "unit")
"""What tells a trained model from others."""


def best_runs(folders, scenarios):
    """Find the best stored runs of each scenario, all seeds: photographs first, then size."""
    found = {name: evidence.find(folders, "synthetic", task=name) for name in scenarios}
    for name, runs in found.items():
        if runs.empty:
            raise FileNotFoundError(
                f"results_dir must hold a run of every scenario; {name!r} has none in "
                f"{', '.join(map(str, folders))}. To make one: papermill book/synthetic.ipynb "
                f"out.ipynb -p scenario {name}"
            )
        kind = runs[evidence.KIND]
        found[name] = runs[(kind == kind.iloc[0]).all(axis=1)]
    return found


def collect_models(runs):
    """Gather every trained model of stored runs, lines of `best_runs`, with its test metrics.

    ``kind`` is "method" for the rows of a table and "epoch" for what training passed through;
    ``unit`` is the method or fit, whose models depend on each other. Two are left out: the network
    before its first epoch, and among the methods the overfitted network, which the paper's tables
    lack and whose distance would settle every correlation; it remains among the epochs.
    """
    tables = []
    for line in runs.itertuples():
        results, test = evidence.tables(line)
        names = [name for name in evidence.methods_of(test) if name != "ce_overfit"]
        facts = {"scenario": line.task, "seed": line.seed}
        point = pd.DataFrame([metrics.evaluate(test["y"], test[m], test["p"]) for m in names])
        epochs = results.epochs.query("epoch > 0").rename(columns={"fit": "unit"})
        tables += [
            point.assign(**facts, kind="method", name=names, unit=names),
            epochs.assign(**facts, kind="epoch", name=epochs["method"]),
        ]
    return pd.concat(tables, ignore_index=True)[[*MODEL, *METRICS]]


def paper_models():
    """Return the models of the paper's own Tables 3 to 7 in the form of `collect_models`.

    They print neither AUC nor NLL. Corrected misprints are used; suspect values are left out.
    """
    table = published(list(SCENARIOS), percent=False)
    table = table[table["method"].isin(PAPER) & (table["mark"] != "suspect")]
    wide = table.pivot(index=["scenario", "method"], columns="metric", values="value")
    wide = wide.reindex(columns=list(METRICS)).reset_index().rename(columns={"method": "name"})
    wide = wide.assign(kind="paper", seed=0, unit=wide["name"])
    wide = wide.sort_values("scenario", key=lambda s: s.map(list(SCENARIOS).index), kind="stable")
    return wide[[*MODEL, *METRICS]].reset_index(drop=True)


def correlations(models):
    """Correlate every metric of outcomes with every distance from the truth.

    Returns a line for each scenario, kind, target and metric: ``pearson`` with ``low`` and
    ``high``, the number of ``models``, of ``units`` and of ``seeds``, and how many models were
    ``left_out`` because a value is infinite or missing; NaN where there are fewer than three
    models. Of AUC it is 1 - AUC, so that less is better throughout. It is taken among the models of
    a seed, which share their test rows; of several seeds it is the mean on the scale of arctanh,
    with Student's interval. The interval of one seed is Fisher's, for as many models as there are
    units: the epochs of a fit, which resemble each other, count as one.
    """
    lines = []
    for (scenario, kind), group in models.groupby(["scenario", "kind"], sort=False):
        for target, metric in product(TARGETS, PROXIES):
            pair = group[["seed", "unit", target, metric]].replace([np.inf, -np.inf], np.nan)
            pair = pair.dropna()
            if pair.empty:
                continue
            sign, counts = 1 if METRICS[metric].lower_is_better else -1, pair.nunique()
            each = [
                sign * one[target].corr(one[metric]) if len(one) > 2 else np.nan
                for _, one in pair.groupby("seed")
            ]
            z, ends = np.arctanh(each), (np.nan, np.nan)
            if len(z) > 1:
                gap = metrics.difference(z)
                ends = gap.low, gap.high
            elif counts["unit"] > 3:
                ends = z[0] + norm.ppf([0.025, 0.975]) / np.sqrt(counts["unit"] - 3)
            counts = len(pair), counts["unit"], counts["seed"], len(group) - len(pair)
            lines.append((scenario, kind, target, metric, *np.tanh([z.mean(), *ends]), *counts))
    columns = "scenario kind target metric pearson low high models units seeds left_out"
    return pd.DataFrame(lines, columns=columns.split())


def brier_resolution(runs):
    r"""Count the pairs of methods that Brier scores on one test set can tell apart, by scenario.

    ``clear`` is the share of pairs whose MSE_p differs by more than two standard deviations of the
    noise in the difference of their Brier scores, :math:`\frac4{N^2} \sum_i (\hat p_i - \hat
    p_i')^2 p_i (1 - p_i)`; ``clear_right`` and ``other_right`` the shares of clear and of other
    pairs that Brier orders as MSE_p does (NaN where there are none). Of several seeds the mean.
    """
    lines = []
    for line in runs.itertuples():
        test = evidence.tables(line)[1]
        p_hat = test[evidence.methods_of(test)].to_numpy().T
        y, p = test["y"].to_numpy(), test["p"].to_numpy()
        first, second = np.triu_indices(len(p_hat), k=1)
        errors, scores = ((p_hat - p) ** 2).mean(axis=1), ((p_hat - y) ** 2).mean(axis=1)
        gap = errors[first] - errors[second]
        noise = ((p_hat[first] - p_hat[second]) ** 2 * p * (1 - p)).sum(axis=1)
        clear = np.abs(gap) > 4 * np.sqrt(noise) / len(y)
        right = np.sign(scores[first] - scores[second]) == np.sign(gap)
        lines.append(
            {
                "scenario": line.task,
                "pairs": len(gap),
                "clear": clear.mean(),
                "clear_right": right[clear].mean() if clear.any() else np.nan,
                "other_right": right[~clear].mean() if not clear.all() else np.nan,
            }
        )
    return pd.DataFrame(lines).groupby("scenario", sort=False).mean().astype({"pairs": int})


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
            "y": (rng.random(n) < p).astype(int),
            "p": p,
            "truth": p,
            "coarse": np.where(p < 0.5, 0.26, 0.74),
            "constant": 0.5,
            "overconfident": expit(2.5 * logit(p)),
            "shifted": expit(logit(p) + 0.7),
        }
    )


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
    estimators = {f"ECE, {b} bins": partial(metrics.ece, bins=b) for b in bins}
    estimators |= {"debiased, 15 bins": metrics.ece_debiased, "smooth": metrics.ece_smooth}
    table = {}
    for k, n in enumerate(rows):
        model = example_models(n, seed + k)
        table[n] = {
            name: metrics.calibration_null_band(
                model["p"], metric, replicates=replicates, seed=seed
            ).mean
            for name, metric in estimators.items()
        }
        variance = np.mean(model["p"] * (1 - model["p"]))
        table[n]["normal theory, 15 bins"] = np.sqrt(2 * variance * 15 / (np.pi * n))
    return pd.DataFrame(table).T.rename_axis("rows")


def coverage(n=500, trials=100, replicates=200, seed=0):
    """How often a bootstrap interval holds the true value, for a perfectly calibrated model.

    Parameters
    ----------
    n : int, default=500
        Rows of each test set.
    trials : int, default=100
        Test sets drawn.
    replicates : int, default=200
        Bootstrap resamples of each.
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
        result = metrics.bootstrap(model["y"], model[["truth"]], **options)
        low, high = (end.loc["truth"] for end in result.interval())
        hits.append((low <= truth) & (truth <= high))
        points.append(result.point.loc["truth"])
    columns = {"true": truth, "estimate": np.mean(points, 0), "cover": np.mean(hits, 0)}
    return pd.DataFrame(columns, index=names)


KINDS = {"epoch": "epochs of trainings", "method": "methods", "paper": "the paper's tables"}
_PALETTE = {"epoch": "0.5", "method": COLOURS["blue"]}


def _label(metric):
    """The label of a metric, with its index set lower, of which less is better."""
    label = METRICS[metric].label.replace("_p", "$_p$")
    return label if METRICS[metric].lower_is_better else f"1 - {label}"


def ks_figure(y_true, predictions):
    """Draw the two cumulative curves of the KS error, and the gap at which it is read off."""
    _, axes = grid(len(predictions.keys()), columns=3, size=(2.5, 2.8), sharex=True, sharey=True)
    for ax, name in zip(axes, predictions.keys()):
        sigma, observed, predicted = metrics.ks_curves(y_true, predictions[name])
        ax.step(sigma, observed, where="post", color="black", label=r"$\phi_1$: observed")
        ax.step(sigma, predicted, where="post", color=COLOURS["blue"], label=r"$\phi_2$: predicted")
        k = np.argmax(np.abs(observed - predicted))
        ax.plot(
            [sigma[k]] * 2,
            [observed[k], predicted[k]],
            color=COLOURS["vermilion"],
            lw=3,
            label="largest gap",
        )
        ax.set_title(f"{name}: KS {abs(observed[k] - predicted[k]):.3f}", loc="left", fontsize=10)
        ax.set(xlabel=r"prediction up to $\sigma$", xlim=(0, 1))
    axes[0].set_ylabel("cumulative share of rows")
    axes[0].legend(loc="upper left", fontsize=9)
    return axes


def ece_bias(table):
    """Draw how far from 0 each estimator puts the error of a perfect model, by rows."""
    ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")[1]
    sns.lineplot(table, markers=True, ax=ax)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="rows in the test set",
        ylabel="mean estimate (true error: 0)",
    )
    sns.move_legend(ax, "center left", bbox_to_anchor=(1, 0.5))
    return ax


def metric_scatter(models, table, scenario, target="mse_p"):
    """Draw the models of a scenario's first seed, a panel a metric; over each the correlations.

    Epochs are grey (correlation at the left), methods blue (at the right).
    """
    rows = models.query("scenario == @scenario and kind in @_PALETTE")
    rows = rows[rows["seed"] == rows["seed"].min()]
    rows = rows.assign(auc=1 - rows["auc"]).replace(np.inf, np.nan).sort_values("kind")
    long = rows.melt(["kind", target], list(table["metric"].unique()), "metric")
    facets = sns.relplot(
        long,
        x=target,
        y="value",
        col="metric",
        col_wrap=3,
        hue="kind",
        palette=_PALETTE,
        size="kind",
        sizes={"epoch": 8, "method": 30},
        legend=False,
        height=2.2,
        aspect=1.1,
        facet_kws={"sharex": False, "sharey": False},
        rasterized=True,
    )
    found = table.query("scenario == @scenario and target == @target")
    found = found.set_index(["kind", "metric"])["pearson"]
    for metric, ax in facets.axes_dict.items():
        for kind, x, side in (("epoch", 0.04, "left"), ("method", 0.96, "right")):
            ax.text(
                x,
                1.01,
                f"{found.get((kind, metric), np.nan):.2f}",
                transform=ax.transAxes,
                ha=side,
                va="bottom",
                fontsize=9,
                color=_PALETTE[kind],
            )
        ax.set(title="", ylabel=_label(metric))
    return facets.set_xlabels(_label(target)).tight_layout()


def correlation_summary(table, target="mse_p"):
    """Draw the correlation of each metric with the truth, with its interval, by kind of model."""
    rows = table[table["target"] == target].set_index(["kind", "metric", "scenario"])
    kinds = [kind for kind in KINDS if kind in rows.index]
    places = [table["metric"].unique(), table["scenario"].unique()]  # the same in every panel
    _, axes = grid(len(kinds), columns=3, size=(2.5, 4.2), sharex=True, sharey=True)
    for ax, kind in zip(axes, kinds):
        part = rows.loc[kind].reindex(pd.MultiIndex.from_product(places))
        part = part.reset_index(names=["m", "scenario"])
        part = part.assign(seeds=2, value=part["pearson"], label=part["m"].map(_label))
        forest(part, hue="scenario", scale=1, ax=ax, xlabel="correlation")
        handles, names = ax.get_legend_handles_labels()
        ax.get_legend().remove()
        ax.set(title=f"across {KINDS[kind]}", xlim=(-1.05, 1.05), xticks=[-1, 0, 1])
    axes[0].figure.legend(handles, names, loc="outside upper center", ncols=5)
    return axes
