"""The page on synthetic data, whatever its parameters: tables and figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from probnb.methods import METHODS
from probnb.metrics.differences import compare
from probnb.plots import COLOURS, plain_ticks, reliability_grid

from . import evidence
from .scenarios import probability

FINETUNED = ("ce_finetuned", "cape_bin", "cape_kernel")
"""Rows that start from early stopping and may keep it."""


def facts(splits, run, results):
    """What was run on what, as a table of two columns; what other code trained is named."""
    parts = {
        "train on": splits.train,
        "choose and calibrate with": splits.val,
        "test on": splits.test,
    }
    record, shape = run.record, "x".join(map(str, splits.train.inputs.shape[-2:]))
    rows = {
        "data": f"{splits.source.split()[0]}, {shape} pixels",
        "faces": ", ".join(f"{len(part):,} to {what}" for what, part in parts.items()),
        "augmentation": ", ".join(type(s).__name__.lower() for s in splits.train.augment) or "none",
        "trainings": f"{results.epochs['fit'].nunique()}, in all {record['epochs']} epochs",
        "processor seconds": f"{record['cpu_seconds']:.0f} ({record['processor']}, "
        f"{record['precision']})",
        "trained by other code": ", ".join(results.foreign) or "none",
    }
    return pd.Series(rows, name="").to_frame()


def kept_start(chosen):
    """Labels of the rows whose chosen weights are those of their start."""
    kept = chosen.query("chosen and kept_start")["method"].unique()
    return [METHODS[name].label for name in kept]


def member_errors(results):
    """MSE_p of the ensemble's members: early-stopped trainings that differ in their seed alone."""
    rows = results.chosen[results.chosen["method"] == "ensemble"].drop_duplicates("fit")
    epochs = results.epochs.set_index(["fit", "epoch"])["mse_p"]
    kept = [100 * epochs.loc[key] for key in zip(rows["fit"], rows["best_epoch"])]
    return pd.Series(kept, dtype=float)


def verdicts(result, chosen, stored=(), metric="mse_p", reference="ce"):
    """Difference of each row from early stopping, and of CaPE from its control.

    One training of a row decides nothing: another seed, or another processor, moves it further than
    its interval over test rows says. So the words, which are fixed, are about stored runs over
    seeds: "lower" and "higher" where their interval leaves out 0.

    Parameters
    ----------
    result : probnb.metrics.resampling.Bootstrap
        Metrics of this run.
    chosen : DataFrame
        As `probnb.experiment.results.Results.chosen`.
    stored : DataFrame, optional
        Runs that differ in their seed alone, from `probnb_book.evidence.find`.
    metric, reference : str
        What is compared, and with which row.

    Returns
    -------
    DataFrame
        One line a pair of rows.
    """
    names, kept, lines = list(result.point.index), kept_start(chosen), []
    pairs = [(name, reference) for name in names if name != reference]
    if "ce_finetuned" in names:
        pairs += [(name, "ce_finetuned") for name in names if name.startswith("cape")]
    for name, base in pairs:
        label = METHODS[name].label
        here = compare([result], name, base, metric).text()
        seeds = evidence.compare(stored, name, base, metric) if len(stored) else None
        line = {"row": label, "less": METHODS[base].label, "this run": here}
        if label in kept and base == reference:
            line["this run"] = "kept its start"
        lines.append(line | {"stored seeds": seeds.text() if seeds else "", "": _word(seeds)})
    return pd.DataFrame(lines)


def _word(found):
    if found is None or np.isnan(found.low):
        return ""
    return "not told apart" if not found.resolved else "lower" if found.value < 0 else "higher"


_CURVES = {
    "train_ce": "training cross entropy",
    "val_ce": "validation cross entropy",
    "mse_p": r"test MSE$_p$ $\times$ 100",
    "kl_p": r"test KL$_p$ $\times$ 100",
}
_STYLES = {"ce": "black", "ce_finetuned": "green", "cape_bin": "blue", "cape_kernel": "vermilion"}
_PALETTE = {METHODS[name].label: COLOURS[colour] for name, colour in _STYLES.items()}


def scenario_figure(scenario, ages, p, y):
    """Draw psi over age, where the probabilities lie, and how outcomes fall by age."""
    ages, p, y = np.asarray(ages), np.asarray(p), np.asarray(y).astype(int)
    _, axes = plt.subplots(1, 3, figsize=(7.4, 2.6), layout="constrained")
    z = np.arange(0, 117)
    axes[0].plot(z, probability(z, scenario), lw=2)
    axes[0].set(xlabel="age (years)", ylabel=r"probability $\psi$", ylim=(-0.02, 1.02))
    sns.histplot(x=p, bins=np.linspace(0, 1, 31), ax=axes[1])
    axes[1].set(xlabel="probability p", ylabel="faces")
    sns.histplot(
        x=ages, hue=y, multiple="stack", bins=np.arange(0, 121, 5), ax=axes[2], hue_order=[1, 0]
    )
    axes[2].set(xlabel="age (years)", ylabel="")
    axes[2].get_legend().set_title("outcome")
    return axes


def spread_of_ages(ages, count):
    """Return row numbers of `count` people whose ages are spread evenly over all ranks."""
    order = np.argsort(ages, kind="stable")
    return order[np.linspace(0, len(order) - 1, min(count, len(order))).astype(int)]


def labelled(predictions):
    """Return predictions under the labels of their methods, as figures show them."""
    return {METHODS[name].label: p_hat for name, p_hat in dict(predictions).items()}


def overfitting_figure(y, p, predictions, discrete=False):
    """Draw the paper's figure of overfitting: predictions against probabilities, by method.

    Where the probability has few values (`discrete`), histograms of the predictions for each.
    """
    shown = labelled(predictions)
    if not discrete:
        return reliability_grid(y, shown, p=p)
    table = pd.DataFrame(shown).assign(p=np.asarray(p).round(6)).melt("p", var_name="method")
    facets = sns.FacetGrid(
        table,
        col="method",
        row="p",
        height=0.75,
        aspect=7.4 / 3 / len(shown),
        row_order=sorted(table["p"].unique(), reverse=True),
        margin_titles=True,
        despine=False,
        sharey=False,
    )
    facets.figure.set_size_inches(7.4, 0.6 + 0.75 * table["p"].nunique())
    facets.map(sns.histplot, "value", bins=np.linspace(0, 1, 26), element="step")
    for (row, _, _), _ in facets.facet_data():
        for ax in facets.axes[row]:
            ax.axvline(facets.row_names[row], color=COLOURS["vermilion"], lw=2)
    facets.set(yticks=[], xticks=[0, 0.5, 1], xlim=(0, 1)).set_axis_labels("", "")
    facets.set_titles(col_template="{col_name}", row_template="p = {row_name:.2g}")
    facets.figure.supxlabel(r"prediction $\hat p$ (red: the true probability)", fontsize=10)
    return list(facets.axes.flat)


def learning_curves(results, window=1):
    """Draw cross entropy and what matters by epoch, with the fine-tunings that branch off.

    `window` epochs are averaged for the lines; the paper uses 5.
    """
    chosen, epochs = _chosen(results), results.epochs
    start = chosen.loc["ce", "best_epoch"]
    curves = {"ce": epochs[epochs["fit"] == "ce"]}
    for name in [m for m in FINETUNED if m in chosen.index]:
        rows = epochs[epochs["fit"] == chosen.loc[name, "fit"]]
        curves[name] = rows.assign(epoch=rows["epoch"] + start)
    _, axes = plt.subplots(2, 2, figsize=(7.4, 5.2), layout="constrained")
    for ax, (column, label) in zip(axes.flat, _CURVES.items()):
        scale = 100 if column in ("mse_p", "kl_p") else 1
        for name, rows in curves.items():
            values = scale * rows[column].rolling(window, min_periods=1, center=True).mean()
            ax.plot(
                rows["epoch"],
                values,
                "--" if name == "cape_kernel" else "-",
                color=COLOURS[_STYLES[name]],
                lw=1.6,
                label=METHODS[name].label,
            )
        ax.axvline(start, color=COLOURS["grey"], ls=":", lw=1.2)
        ax.set(xlabel="epoch", ylabel=label)
        ce = curves["ce"][column].iloc[1:]
        if column != "train_ce" and ce.max() > 3 * ce.min():
            ax.set_yscale("log")  # the overfitted end would flatten what matters
            plain_ticks(ax.yaxis)
    axes.flat[0].legend(loc="lower left")
    return list(axes.flat)


def finetuning_figure(results):
    """Draw every fine-tuning from its start: what validation saw, and what it could not see.

    Filled marks are calibration epochs; a ring is the epoch that was kept.
    """
    chosen, epochs = _chosen(results), results.epochs
    names = [m for m in FINETUNED if m in chosen.index]
    if not names:
        return None
    best = chosen.loc[names].set_index("fit")["best_epoch"]
    table = epochs[epochs["fit"].isin(best.index)].assign(mse_p=lambda t: 100 * t["mse_p"])
    table = table.assign(method=[METHODS[m].label for m in table["method"]])
    long = table.melt(["method", "epoch", "calibration"], ["val_ce", "mse_p"], "score")
    facets = sns.relplot(
        long,
        x="epoch",
        y="value",
        hue="method",
        style="calibration",
        markers={0: "o", 1: "X"},
        dashes=False,
        col="score",
        kind="scatter",
        palette=_PALETTE,
        s=60,
        height=2.9,
        aspect=1.25,
        facet_kws={"sharey": False},
        legend=False,
    )
    for score, ax in facets.axes_dict.items():
        sns.lineplot(
            long[long["score"] == score],
            x="epoch",
            y="value",
            hue="method",
            ax=ax,
            palette=_PALETTE,
            legend=score == "val_ce",
            lw=1.4,
        )
        kept = table[table["epoch"] == table["fit"].map(best)]
        ax.plot(kept["epoch"], kept[score], "o", ms=13, mfc="none", mec="black", mew=1.2)
        ax.set(xlabel="epoch after the early stop", ylabel=_CURVES[score], title="")
        ax.set_xticks(range(int(long["epoch"].max()) + 1))
    facets.axes_dict["val_ce"].get_legend().set_title(None)
    facets.tight_layout(w_pad=2)
    return facets


def _chosen(results):
    """The chosen fit of each row."""
    chosen = results.chosen[results.chosen["chosen"]]
    return chosen.drop_duplicates("method").set_index("method")
