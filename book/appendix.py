# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Appendix: what stands behind the five findings
#
# The page {doc}`results` tells five findings. Here is what they leave out: rows that do not help, how far the numbers
# can be trusted, a larger network, and the paper's own tables with ours beneath. Everything is on photographs, with
# five seeds a scenario, where nothing else is said; differences are in $\mathrm{MSE}_p \times 100$.

# %% tags=["parameters"]
results_dir = None  # folder of stored runs; None is results and runs of the project

# %% tags=["remove-cell"]
from probnb_book.notebook import check_parameters, results_path, stored_folders

check_parameters(globals(), "results_dir")
folders = stored_folders(results_dir)

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from probnb.methods import METHODS
from probnb.metrics import METRICS, holm
from probnb.plots import forest, plain_ticks, use_style
from probnb_book import authors, evidence, interactive, ladder, pause, storage
from probnb_book import results as tables
from probnb_book.cifar10.study import read_stored
from probnb_book.claims import stored_runs
from probnb_book.claims.statistics import of_run
from probnb_book.published import published
from probnb_book.scenarios import SCENARIOS

use_style()
found = evidence.find(folders, "synthetic")
best, larger = tables.photographs(folders)
LESS = "MSE$_p$ × 100, difference (left of 0: the first is better)"

# %% [markdown]
# ## The order of the faces
#
# *Does CaPE find a better order of the faces, which no map can?* Its area under the curve is above that of the
# network that it starts from, told apart in Sigmoid and Discrete. The same fine-tuning without calibration epochs has
# as much: between the two no interval leaves out 0. Temperature, beta and Dirichlet calibration leave the order alone.
# The paper's Platt scaling does not: it reads both logits of a network, whose mean the softmax ignores, and in a
# single training moves the area by half a point either way. Its row is called *Platt, two logits* in this book;
# *Platt scaling* is the map of one log-odds.

# %% tags=["hide-output"]
pairs = [("cape_bin", "ce"), ("ce_finetuned", "ce"), ("cape_bin", "ce_finetuned"), ("platt", "ce")]
order = tables.differences(best, pairs, metric="auc").assign(
    pair=lambda t: t["pair"].str.replace("CE early-stop", "its start")
)
order = order.pivot(index="pair", columns="scenario", values="text")
tables.show(order.rename(columns=str.capitalize).rename_axis(index=None, columns="AUC × 100"))

# %% [markdown]
# ## Calibrated, by the known probabilities
#
# Whether predictions are right on average can be seen here without the noise of outcomes. *Off* is the mean distance of
# a prediction from the true probability of its like, *slope* that of the true log-odds on the predicted ones; below 1
# predictions are too extreme. Kept CaPE networks are too extreme in all five scenarios. Fresh labels are nearly right
# but in Sigmoid, where they are further off than an early-stopped network.

# %% tags=["hide-output"]
ROWS = {"resampled": "fresh labels", "ce": "stopping early", "cape_bin": "CaPE (bin)"}
WORDS = {"exact_error": ("off × 100", 100), "true_slope": ("slope", 1)}
known = {
    (word, ROWS[row]): pd.Series(
        {
            scenario.capitalize(): tables.over_seeds(
                pd.Series([of_run(line, name, row) for line in runs.itertuples()]), scale
            )
            for scenario, runs in best.items()
        }
    )
    for name, (word, scale) in WORDS.items()
    for row in ROWS
}
tables.show(pd.DataFrame(known))

# %% [markdown]
# ## Losses that are meant to keep a network calibrated
#
# Of two strengths each, validation choosing, focal loss is worse than stopping early in three scenarios and entropy
# regularisation in Skewed; MMCE is told from it nowhere, and none is told better. Focal loss and entropy
# regularisation are not proper: the expectation is lowest elsewhere than at the true probability, for focal loss see
# {cite}`charoenphakdee2021focal`. That is also why a map gives most of the loss back in Skewed and Discrete.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of focal loss, entropy regularisation and MMCE less early stopping, by scenario: none is told below 0, focal loss is above it in three."}}
table = tables.differences(best, [(loss, "ce_mean") for loss in ("focal", "entropy", "mmce")])
ax = forest(table, hue="pair", xlabel=LESS)

# %% [markdown]
# ## Calibrating from the beginning
#
# The paper's Table 12 has it far behind CaPE, and explains that first predictions are random. Here nothing of the
# kind is seen: less CaPE one scenario lies on either side of 0, and once five scenarios are looked at, Holm's
# correction leaves neither. Less stopping early no scenario shows harm, and Discrete a gain.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of calibration from the beginning and of averaged weights less early stopping, CaPE or the ensemble, by scenario, with intervals over seeds."}}
pairs = [
    ("beginning_bin", "ce_mean"),
    ("beginning_bin", "cape_bin"),
    ("beginning_kernel", "cape_kernel"),
    ("ce_averaged", "ce_mean"),
    ("ce_averaged", "ensemble"),
]
ax = forest(tables.differences(best, pairs), hue="pair", xlabel=LESS)

# %% [markdown]
# ## Calibration after the fact
#
# Every map is fitted to stored validation predictions and judged on the test rows, against the same network without
# it. The tables have the gain in log-loss, in thousandths of a nat (positive is better), first of one network, then of
# the ensemble. They are by source of the data: the five scenarios share their faces, so that they count as one, and
# intervals are over seeds. Three maps are not the paper's: *quadratic* and *spline* bend Platt's line, and *Venn-Abers*
# {cite}`vovk2015` lies between two isotonic regressions.
#
# **Stopping early leaves little to mend**: on photographs the smooth maps gain one or two thousandths, and of the
# other sources none is told to gain anything. **Steps lose**: isotonic regression has a lower mean than no map at all
# in every source, since it promises 0 and 1 after a few hundred rows, and Venn-Abers takes most of that back. Bending
# does not pay. A public comparison {cite}`berta2026calarena` on images has Venn-Abers first, where ours has it behind
# every smooth map on photographs: it is never certain, which pays where networks are certain and wrong. Ours were
# stopped early.

# %% tags=["hide-output"]
from probnb_book.maps import MAPS


def post_hoc_table(gains, row):
    """Gains by where the data come from: scenarios of one source have the same faces."""
    own = gains[gains["row"] == row]
    faces = {"utkface": "photographs", "drawn": "drawn faces"}
    source = own["data"].map(faces).fillna(own["task"]).rename("from")
    seeds = own.groupby([source, "map", "seed"], sort=False)["nll"].mean()
    text = seeds.groupby(["from", "map"], sort=False).agg(tables.over_seeds, 1000, " (one seed)")
    return text.unstack("from").reindex(MAPS).rename(MAPS).rename_axis(index=None, columns=None)


gains = authors.derived(folders, "maps")
tables.show(post_hoc_table(gains, "ce")) if gains is not None else None

# %% tags=["hide-output"]
tables.show(post_hoc_table(gains, "ensemble")) if gains is not None else None

# %% [markdown]
# (appendix-larger)=
# ## More pixels and a wider network
#
# Linear and Discrete were run again at 48 × 48 pixels and width 16, three seeds each, on the faces and outcomes of 32
# pixels. Stopping early ends where it did; on labels drawn afresh the larger network is better, so that more is lost.
# The ensemble helps as it did, and averaged weights in Linear; in Discrete three seeds do not show it. CaPE is not
# told from its control in either.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot at 48 pixels and width 16: the ensemble lies below early stopping in both scenarios, averaged weights in Linear, and CaPE less its control at 0 in both."}}
rows = ("ensemble", "ce_averaged", "beginning_bin", "resampled")
pairs = [*((row, "ce_mean") for row in rows), ("cape_bin", "ce"), ("cape_bin", "ce_finetuned")]
table = tables.differences(larger, pairs)
ax = forest(table, label="pair", hue="label", xlabel=LESS) if len(table) else None

# %% tags=["hide-output"]
parts = [best[task][best[task]["seed"].isin(group["seed"])] for task, group in larger.items()]
scores = evidence.scores(pd.concat([*parts, *larger.values(), found[:0]]), ["mse_p"])
scores = scores.assign(size=scores["size"].map("{} px".format), value=100 * scores["value"])
shown = scores.pivot_table(index="method", columns=["task", "size"], values="value").dropna()
shown = shown.rename(tables.label).rename(columns=str.capitalize, level=0)
tables.show(shown.round(2).rename_axis(index=None, columns=["", ""]))

# %% [markdown]
# (appendix-ladder)=
# ## The ladder of sizes, and which epoch to keep
#
# *Would another rule of stopping have given 4.21?* The trainings of the [ladder](results-size) keep what the network
# said after every epoch, so that any rule can be asked afterwards. **On average none comes near**: not the last epoch,
# which is the worst at every size, nor the first halt of an impatient rule, nor the epoch of the best order or
# calibration on validation data; the usual rule has the least error. But of single trainings two rules make one like
# it, once each, at 48 pixels: the last epoch and the best order. Error in Linear, MSE$_p$ × 100, the mean over
# trainings and the largest of any:

# %%
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from probnb.metrics import ece


def by_rule(record, table, name):
    """MSE_p times 100 of one training on test faces, at the epoch that each rule keeps."""
    history = pd.DataFrame(record["fits"][name]["history"][1:]).set_index("epoch")
    val = table[table["split"] == "val"]
    p_val = [expit(val[f"{name} | {epoch}"].to_numpy(float)) for epoch in history.index]
    so_far = history["val_ce"].expanding().apply(np.argmin).astype(int) + 1
    waited = history.index - so_far
    kept = {
        "validation cross entropy": so_far.iloc[-1],
        "the same, patience 1": so_far[(waited >= 1).idxmax()],
        "the same, patience 2": so_far[(waited >= 2).idxmax()],
        "best AUC on validation": 1 + np.argmax([roc_auc_score(val["y"], p) for p in p_val]),
        "best ECE on validation": 1 + np.argmin([ece(val["y"], p) for p in p_val]),
        "the tenth epoch": min(10, len(history)),
        "the last epoch": len(history),
    }
    return pd.Series({rule: 100 * history["mse_p"][epoch] for rule, epoch in kept.items()})


def rules(folder):
    """Errors in Linear under each rule, a line for every stored training from random weights."""
    parts = {}
    for run, record in storage.records(folder, "ladder").items():
        asked = record["task"] == "linear" and not record["mirror"]
        names = [n for n in ladder.STARTS if asked and n in record["fits"]]
        table = storage.read(folder, "ladder", "ladder", run)
        for name in names:
            parts[record["rung"]["size"], run, name] = by_rule(record, table, name)
    return pd.DataFrame(parts).T.rename_axis(["size", "run", "training"])


# %% tags=["hide-output"]
each = rules(folders[0])
tables.show(each.groupby("size").agg(["mean", "max"]).T.round(2).unstack()) if len(each) else None

# %% [markdown]
# Claims about CaPE of the paper's Figures 4, 5 and 10 (28, 35 to 37, 40, 41 and 87), asked at each size. From each
# start CaPE runs for three epochs, the first of them on calibration, so that its last epoch is its control's second
# on outcomes:


# %% tags=["hide-output"]
def by_size(every):
    """What CaPE's last of three epochs has less its start and its control in Linear."""
    key = ["rate", "size", "seed", "start"]
    every = every[(every["start"] != "") & (every["scenario"] == "linear")]
    every = every.set_index([*key, "row", "epoch"]).sort_index()
    cape, control = (every.xs(row, level="row") for row in ("cape_bin", pause.CONTROL))
    kept = cape.loc[cape.groupby(key)["val_ce"].idxmin()].droplevel("epoch")
    start, last = (cape.xs(epoch, level="epoch") for epoch in (0, 3))
    second, third = (control["mse_p"].xs(epoch, level="epoch") for epoch in (2, 3))
    asked = {
        "error, kept less start, %": 100 * (kept["mse_p"] / start["mse_p"] - 1),
        "error, last less start, %": 100 * (last["mse_p"] / start["mse_p"] - 1),
        "less the control's last, %": 100 * (last["mse_p"] / third - 1),
        "less the control's second, %": 100 * (last["mse_p"] / second - 1),
        "ECE × 100, last less start": 100 * (last["ece"] - start["ece"]),
        "log-loss on validation × 100": 100 * (last["val_ce"] - start["val_ce"]),
    }
    return pd.DataFrame(asked).dropna().groupby(key[:3]).mean()  # both starts of a seed


if len(every := ladder.epochs(folders[0])):
    shown = by_size(every).groupby(["rate", "size"]).agg(tables.over_seeds, digits=1)
    display(tables.show(shown))

# %% [markdown]
# What was trained of each seed, on what, and how long; hours are of one core. A training that is not there can be made
# with `python -m probnb_book.ladder`, which goes on where it was cut off:

# %% tags=["hide-output"]
climbed = {
    run: {
        "scenario": record["task"] + (", mirrored" if record["mirror"] else ""),
        "pixels": record["rung"]["size"],
        "seed": record["seed"],
        "trainings": len(record["fits"]),
        "processor": f"{record['processor']}, {record['instructions']}",
        "precision": record["precision"],
        "hours": round(record["cpu_seconds"] / 3600, 2),
    }
    for run, record in storage.records(folders[0], "ladder").items()
}
climbed = pd.DataFrame.from_dict(climbed, orient="index")
tables.show(climbed.set_index(["scenario", "pixels", "seed"]).sort_index()) if len(
    climbed
) else None

# %% [markdown]
# (appendix-starts)=
# ## What is made of a network, less that network
#
# *Is what a map or a fine-tuning takes off a gain, or the luck of the network it was given?* Each network of the ladder
# is held against what was made of it: temperature and Platt scaling, fitted to its validation predictions, and CaPE
# and the same fine-tuning without calibration epochs, where validation stops. **Platt scaling, two numbers fitted in a
# moment, takes three or four per cent off the error, and three more epochs of training take as much.** Temperature
# scaling, which is one of the two numbers, takes a third of that, and CaPE no more than its control.
#
# Changes of the error in per cent, the mean of both networks of a seed; in the last line Student's interval over all
# seeds, as if each size and scenario had faces of its own.


# %% tags=["hide-input"]
from probnb.calibrators import PlattScaling, TemperatureScaling

TUNED = {"CaPE (bin)": "cape", "fine-tuned without calibration": "control"}


def made_of(record, table):
    """What maps and fine-tunings change of the error of each start of a seed, in per cent."""
    val, test = (table[table["split"] == part] for part in ("val", "test"))
    lines = []
    for start in ladder.STARTS:
        tuned = {label: f"{row} from {start} at 0.001" for label, row in TUNED.items()}
        if not {start, *tuned.values()} <= {*record["fits"]}:
            continue
        z, new = (
            part[f"{start} | {ladder.kept(record, start)}"].to_numpy() for part in (val, test)
        )
        fitted = [made.fit(z, val["y"]) for made in (TemperatureScaling(), PlattScaling())]
        p_hat = {made.label: made.predict_proba(new)[:, 1] for made in fitted}
        error = {label: np.mean((p - test["p"]) ** 2) for label, p in p_hat.items()}
        for label, name in tuned.items():
            error[label] = record["fits"][name]["history"][ladder.kept(record, name)]["mse_p"]
        lines.append(100 * (pd.Series(error) / np.mean((expit(new) - test["p"]) ** 2) - 1))
    return pd.DataFrame(lines).mean()


def less_start(folder):
    """Of every stored seed, the mean of `made_of` over its starts."""
    lines = {}
    for run, record in storage.records(folder, "ladder").items():
        if not record["mirror"]:
            table = storage.read(folder, "ladder", "ladder", run)
            key = f"{record['task'].capitalize()}, {record['rung']['size']} px"
            lines[key, record["seed"]] = made_of(record, table)
    return pd.DataFrame(lines).T.dropna().rename_axis(["", "seed"]).sort_index()


if len(made := less_start(folders[0])):
    shown = made.groupby("").mean().map("{:+.1f}".format)
    shown.loc["all"] = made.agg(tables.over_seeds, digits=1)
    display(tables.show(shown))

# %% [markdown]
# ## On pretrained features, seed by seed
#
# Five scenarios, ten seeds each. Where scripts run, choose which seeds count: with one alone, the picture is what a
# single training would have said. Averaged weights are better than stopping early in Linear and Sigmoid here, and
# worse in Skewed and Centered. Logistic regression, a convex fit of two seconds, is behind the small network in three
# scenarios and ahead of it in two; neither Platt scaling nor CaPE on top of it changes anything that ten seeds could
# show.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot on pretrained features, five scenarios, ten seeds: the ensemble below one network, CaPE less its control at 0, logistic regression on either side."}}
pretrained = stored_runs(folders, pretrained=True)
pairs = [
    ("ensemble", "ce_mean"),
    ("cape_bin", "ce_finetuned"),
    ("logistic", "ce_mean"),
    ("ce_averaged", "ce_mean"),
]
table = tables.differences(pretrained, pairs)
ax = forest(table, hue="pair", xlabel=LESS) if len(table) else None
interactive.seeds(pretrained, pairs)

# %% [markdown]
# (appendix-budget)=
# ## Where the error comes from
#
# *Is it labels, pictures, a better start or a better map that is worth buying?* Besides one outcome a face, networks
# and regressions were trained on the mean of four outcomes and on $p$ itself, on all faces and on fewer. What two
# trainings disagree about is noise of training; what training on $p$ takes off beyond that is noise of labels; the
# rest is what so many faces and such a network, or such features, do not say.
#
# **From random weights a fifth to a quarter of the error is which training one got, and averaging takes it away. Of a
# logistic regression on pretrained features none is, and in most scenarios three quarters and more are what the
# features do not say**: no label helps there, other features do. Noise of labels is most where probabilities hardly
# differ (Centered), and least where they differ most (Sigmoid). And the best of all maps, found with $p$ in hand, takes
# less than a tenth from either start: that is all that any calibration of the predictions could give. Are more labels
# worth more than more pictures? On features, with four thousand faces, three more outcomes of each take a seventh off
# the error, and the same number of outcomes of new faces a sixth, told apart: who pays for outcomes should ask about
# new pictures first. There are eight seeds on features in every scenario, and three from random weights.

# %%
START = {"cpu": "random weights", "features": "pretrained features"}
KEYS = ["start", "scenario", "seed"]


def sources_of(cells, error):
    """Cut the error of one training, on one outcome of each face, into its sources, in per cent."""
    cells = cells[cells["faces"] == cells["faces"].max()]
    cells = cells.set_index(["labels", *KEYS]).sort_index()[["mse_p", "noise"]]
    stored = error.loc[["random weights"]]
    noise = 1.5 * (stored["ce_mean"] - stored["ensemble"])  # an average of three keeps a third
    stored = pd.DataFrame({"mse_p": stored["ce_mean"], "noise": noise})
    told = cells.loc[0, "mse_p"] - cells.loc[0, "noise"]
    one = pd.concat([cells.loc[1], stored]).reindex(told.index)
    parts = {
        "noise of training": one["noise"],
        "noise of labels": one["mse_p"] - one["noise"] - told,
        "the rest": told,
    }
    return 100 * pd.DataFrame(parts).div(one["mse_p"], axis=0)


def best_map(exact, error):
    """What a map that knows p would take off the error of a single network, in per cent."""
    exact = exact.replace({"start": {"features": START["features"]}})
    exact = exact.pivot(index=KEYS, columns="method", values="exact_squared")
    taken = 100 * exact / error
    return taken["logistic"].fillna(taken["ce"]).dropna()  # from random weights none is logistic


def budget(folder, runs):
    """What was trained on several outcomes and on p, the parts of the error, and the best map's."""
    cells = storage.read(folder, "budget", "budget")
    cells = cells.assign(start=cells["profile"].map(START))
    error = evidence.scores(runs, ["mse_p"])
    error = error.assign(start=error["profile"].map(START), scenario=error["task"])
    error = error.pivot(index=KEYS, columns="method", values="value")
    exact = authors.derived([folder], "estimators")
    return cells, sources_of(cells, error), best_map(exact, error)


# %% tags=["hide-input"] mystnb={"image": {"alt": "Stacked bars by scenario. From random weights a fifth to a quarter is noise of training and a tenth to two fifths noise of labels; on pretrained features there is no noise of training and most is the rest. Marks near zero say what the best map would take. Right: on features the error falls with the number of faces, lower with four outcomes a face, lowest with p."}}
COUNTS = {1: "one outcome", 4: "mean of four", 0: "$p$ itself"}


def budget_figure(cells, parts, taken):
    """Draw the parts by scenario for both starts, and what fewer faces cost on features."""
    figure, axes = plt.subplots(
        1, 3, figsize=(7.4, 3.4), layout="constrained", width_ratios=[1, 1, 1.1]
    )
    for ax, start in zip(axes, START.values()):
        shown = parts.loc[start].groupby("scenario").mean()
        order = [name for name in SCENARIOS if name in shown.index][::-1]
        shown = shown.loc[order].rename(str.capitalize)
        shown.plot.barh(stacked=True, ax=ax, legend=False, width=0.6)
        marks = taken.loc[start].groupby("scenario").mean()[order]
        ax.plot(marks, range(len(order)), "d", color="0.15", mec="1", label="the best map")
        ax.set(xlabel="Part of the error (%)", ylabel="", title=start.capitalize(), xlim=(0, 100))
    fewer = cells[cells["start"] == START["features"]]
    whole = fewer[fewer["labels"] == 1].groupby(["scenario", "seed"])["mse_p"].min()
    fewer = fewer.join(whole.rename("whole"), on=["scenario", "seed"])
    fewer = fewer.assign(percent=100 * fewer["mse_p"] / fewer["whole"])
    fewer = fewer.assign(told=fewer["labels"].map(COUNTS), thousands=fewer["faces"] / 1000)
    fewer = fewer.groupby(["told", "thousands"])["percent"].mean().reset_index()
    look = {"hue_order": COUNTS.values(), "style_order": COUNTS.values(), "ax": axes[2]}
    look |= {"hue": "told", "style": "told", "markers": True, "dashes": False}
    sns.lineplot(fewer, x="thousands", y="percent", **look)
    axes[2].set(xscale="log", xlabel="Faces (thousands)", title="Fewer faces, features")
    axes[2].set(ylabel="Error, % of one outcome, all faces", ylim=(70, 160))
    plain_ticks(axes[2].xaxis, [2, 4, 8, 16])
    axes[2].legend(title=None)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=4)


if storage.records(folders[0], "budget"):
    budget_figure(*budget(folders[0], pd.concat([*best.values(), *pretrained.values()])))

# %% [markdown]
# (appendix-features)=
# ## Which features
#
# *Do more pixels, the mirror image or a larger network give better features?* Logistic regression on what each network
# makes of the same faces, fewer than half of all so that each could be seen in every way, and of FER+ faces, whose
# probabilities are what people said. **The larger network pays, with the mirror image**: lite2 at 128 pixels takes some
# seven per cent off the error of lite0, on all faces as on fewer, for three times the work. The mirror image alone
# takes two off. From 128 to 192 pixels lite0 gains a little, and nothing beyond: the photographs have no more. More
# faces do as much as all of this, and both together leave the least error that a single head has here, 1.09 in Linear.
# `-p backbone lite2 -p mirror True` has them on the page {doc}`images`; the usual start stays lite0 at 128 pixels.
#
# In brackets: what the error changes from that of lite0 at 128 pixels without the mirror image, in per cent, by
# Student's interval over ten seeds.

# %% tags=["hide-input"]
fits = storage.read(folders[0], "features", "logistic")
tables.show(tables.features_table(fits)) if len(fits) else None

# %% [markdown]
# (appendix-unlike)=
# ## What is flagged as unlike the training images
#
# A model kept by the page {doc}`images` flags what lies beyond 99 % of its validation images. How far that is can be
# said in many ways; here are some, on the features of lite0 at 128 pixels of faces, in per cent of pictures flagged.
# Mahalanobis' distance on the maps of every stage, which is kept, flags most of what is no face or a face in disarray,
# and one in a hundred of held-out faces. The pooled last layer, which the network's own classifier reads, does not see
# noise. No rule sees faces upside down or from another collection.

# %% tags=["hide-input"]
flags = storage.read(folders[0], "features", "flags")
if len(flags):
    shown = flags.pivot_table("flagged", "pictures", ["layers", "rule"], sort=False)
    tables.show((100 * shown).round().astype(int).rename_axis(index=None, columns=["", ""]))

# %% [markdown]
# (appendix-pause)=
# ## What stands in a pause
#
# *Is it the calibration, or that outcomes are seen less often?* From five early-stopped networks in three scenarios, at
# the rate at which outcomes are memorised: calibration epochs in every second, third or fourth place, by bins and by
# kernel; epochs on the network's own predictions, from which nothing can be learnt; on smoothed outcomes; and outcomes
# alone. From each of the five, whatever waits is ahead at equal epochs, and the more often it waits, the further; at
# equal epochs on outcomes its error is within a tenth of that of outcomes alone, on either side. **Epochs on the
# network's own predictions do as much as calibration epochs**: what helps is to wait, and not what is waited with.
# Smoothed outcomes are outcomes, and in the same places wait least. Five networks are few; this is told because they
# agree.

# %%
KINDS = {
    pause.CONTROL: "outcomes alone",
    "cape_bin": "averages of bins",
    "cape_kernel": "averages by kernel",
    "distilled": "own predictions",
    "smoothed": "smoothed outcomes",
}
waits = pause.fine_tunings(None, folders[:1])
start = waits[waits["epoch"] == 0].groupby(pause.START)["error"].first().rename("start")
waits = waits.join(start, pause.START)
waits = waits.assign(growth=waits["error"] / waits["start"])
waits[["kind", "m"]] = waits["row"].str.extract(r"(\w+)(?:, m = (\d))?")
waits = waits.assign(kind=waits["kind"].map(KINDS), m=waits["m"].fillna("none"))
grown = waits.groupby(["kind", "m", "epoch", "outcomes"])["growth"].mean().reset_index()

# %% tags=["hide-input"] mystnb={"image": {"alt": "Error as a multiple of the start's. Left, by epoch: it grows fastest on outcomes alone, and slower the more often an epoch on something else stands in between. Right, by epochs on outcomes: the lines lie on each other, but those with smoothed outcomes above."}}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), layout="constrained", sharey=True)
look = {"y": "growth", "hue": "kind", "hue_order": KINDS.values(), "style": "m", "markers": True}
look |= {"style_order": ["none", "2", "3", "4"], "estimator": None, "sort": False}
for ax, x, name in zip(axes, ("epoch", "outcomes"), ("Epoch", "Epoch on outcomes")):
    sns.lineplot(grown, x=x, ax=ax, legend=ax is axes[0], **look)
    ax.set(xlabel=name, ylabel="Error / error of the start", xticks=range(0, 13, 2))
handles, labels = axes[0].get_legend_handles_labels()
axes[0].get_legend().remove()
named = {"kind": "between outcomes:", "m": "every how many epochs:"}
_ = figure.legend(handles, [named.get(one, one) for one in labels], loc="outside right upper")

# %% [markdown]
# (appendix-noise)=
# ## What an average would gain, without a label
#
# An average of $M$ networks has the Brier score of its members less $(1 - 1/M) V$, where $V$ is half the mean squared
# distance between the predictions of two of them {cite}`krogh1995`. No outcome stands in that, so that two trainings
# and pictures without labels tell in advance what an ensemble of any size gains, and what difference between two single
# networks is luck. **On rain, where data are real, it is the largest after Sigmoid's**; a start from pretrained
# features leaves between a tenth and a half of it. $V \times 100$, over seeds, of which an ensemble of three leaves a
# third:

# %% tags=["hide-input"]
FROM = {"cpu": "random weights", "quick": "random weights", "features": "pretrained features"}
SOURCES = {"simulated": ", simulated", "real": ", radar", "utkface": ""}


def noise_of_training(runs):
    """V by task, start and seed: an ensemble of three has rid itself of two thirds of it."""
    brier = evidence.scores(runs, ["brier"])
    brier = brier.pivot(index=["task", "data", "profile", "seed"], columns="method", values="value")
    noise = (1.5 * (brier["ce_mean"] - brier["ensemble"])).rename("V").reset_index()
    task = noise["task"].str.capitalize() + noise["data"].map(SOURCES)
    return noise.assign(task=task, start=noise["profile"].map(FROM))


def noise_of_judged(folder):
    """V where outcomes are people's votes, which are not kept: Brier scores of five networks are."""
    stored, lines = read_stored(folder, "ferplus"), []
    for run in evidence.find([folder], "cifar10", data="ferplus", inputs="gradients").itertuples():
        epochs = evidence.tables(run)[0].epochs
        epochs = epochs[epochs["fit"].str.match("ce$|ensemble member=") & (epochs["epoch"] > 0)]
        brier = epochs.loc[epochs.groupby("fit")["val_ce"].idxmin(), "brier"]
        own = {"metric": "models", "method": "ensemble", "question": run.task}
        own |= {"reference": str(run.seed)}
        ensemble = stored.loc[(stored[list(own)] == own).all(axis=1), "spread"].item()
        V = (brier.mean() - ensemble) / (1 - 1 / len(brier))
        lines.append((f"FER+, {run.task}", run.seed, V))
    noise = pd.DataFrame(lines, columns=["task", "seed", "V"])
    return noise.assign(start="random weights")


runs = [*best.values(), *stored_runs(folders, pretrained=True).values()]
noise = noise_of_training(pd.concat([*runs, evidence.find(folders[:1], "real_world")]))
noise = pd.concat([noise, noise_of_judged(folders[0])])
noise = noise.groupby(["task", "start"], sort=False)["V"].agg(tables.over_seeds, 100)
tables.show(noise.unstack("start").fillna("").rename_axis(index=None, columns=None))

# %% [markdown]
# ## How many differences stand out by chance?
#
# The pages look at sixteen differences in each scenario, those left out that cannot have another sign (an ensemble
# less the mean of its own members). Of these 80, 29 intervals leave out 0, where four would by chance. Holm's
# correction for all looks leaves two, both of the ensemble: less CaPE in Linear, and less Platt scaling of two logits
# in Discrete.

# %% tags=["hide-output"]
FINDINGS = (
    *((a, b) for a in ("cape_bin", "cape_kernel") for b in ("ce", "ce_finetuned")),
    *(("ensemble", b) for b in ("cape_bin", "platt")),
    *((a, "ce_mean") for a in ("beginning_bin", "beginning_kernel")),
    *(("beginning_bin", "cape_bin"), ("beginning_kernel", "cape_kernel")),
    *(("ce_averaged", b) for b in ("ce_mean", "cape_bin", "ensemble")),
    *((a, "ce_mean") for a in ("focal", "entropy", "mmce")),
)
looks = tables.differences(best, FINDINGS)
looks = looks.assign(Holm=holm(looks["p"])) if len(looks) else looks
if len(looks):
    shown = looks[["label", "pair", "text", "p", "Holm"]].round(4).set_index(["label", "pair"])
    shown = shown.rename(columns={"text": "MSE_p × 100"}).rename_axis(["", ""])
tables.show(shown) if len(looks) else None

# %% [markdown]
# ## How many trainings would it take?
#
# Two rows differ from seed to seed, because each seed has faces, outcomes and weights of its own. From that deviation
# follows how many seeds show a difference with 80 % power, by Student's paired test at the usual level. Scenarios have
# errors that differ twentyfold, so that all is in per cent of the error of stopping early. In brackets are the seeds
# for both ends of the deviation's interval. *Due to rows* is the part of the variance that more test faces would take
# away.
#
# **One training could never have shown most of what is at issue.** A single training of each shows a gain over the
# ensemble of 16 %; the paper's CaPE is ahead of its ensemble by a third of that in Linear. The intervals of its tables
# are over test faces, which make a tenth of the variance: what is missing is trainings. CaPE and its control go
# together, so that five seeds show 2 % between them, and 5 % of CaPE over its start.

# %% tags=["hide-output"]
from bisect import bisect_left
from itertools import combinations

from scipy.stats import chi2, ncf, norm, t

LEVEL, POWER = 0.05, 0.8
ENOUGH = float(norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER))  # so many standard errors are told


def power(seeds, ratio):
    """Power of Student's paired test for a difference of `ratio` standard deviations."""
    limit = t.ppf(1 - LEVEL / 2, seeds - 1)
    return ncf.sf(limit**2, 1, seeds - 1, seeds * ratio**2)  # of both sides, in t squared


def seeds_needed(difference, std):
    """The fewest seeds, 2 or more, that show a difference."""
    if std < abs(difference) / 100:  # two are sure to show it
        return 2
    most = int((ENOUGH * std / difference) ** 2) + 10  # a few more than where std were known
    return 2 + bisect_left(range(2, most), True, key=lambda n: power(n, difference / std) >= POWER)


def spread(best):
    """How differences in MSE_p vary, in per cent of early stopping's: between seeds, over rows."""
    lines = []
    for scenario, runs in best.items():
        tests = [evidence.tables(line)[1] for line in runs.itertuples(index=False)]
        usual = np.mean([np.mean((test["ce"] - test["p"]) ** 2) for test in tests])
        for test in tests:
            errors = test[evidence.methods_of(test)].sub(test["p"], axis=0) ** 2 * (100 / usual)
            for a, b in combinations(errors, 2):
                gap = errors[a] - errors[b]
                lines.append((a, b, scenario, gap.mean(), gap.var(), gap.var() / len(gap)))
    table = pd.DataFrame(lines, columns=["a", "b", "scenario", "gap", "row", "rows"])
    between = table.groupby(["a", "b", "scenario"], sort=False)["gap"].agg(["var", "count"])
    df = between["count"] - 1
    sums = pd.DataFrame({"squares": between["var"] * df, "df": df}).groupby(["a", "b"]).sum()
    pairs = table.groupby(["a", "b"], sort=False)[["row", "rows"]].mean() ** 0.5
    pairs = pairs.join(sums[sums["df"] > 0], how="inner")
    by = {"std": pairs["df"]}
    by |= {"low": chi2.isf(0.025, pairs["df"]), "high": chi2.isf(0.975, pairs["df"])}
    return pairs.assign(**{name: np.sqrt(pairs["squares"] / value) for name, value in by.items()})


PAPER = [*dict.fromkeys(published(table=1)["method"])]  # the rows of Table 1
ASKED = [
    *((row, "cape_bin") for row in PAPER if row not in ("resampled", "cape_bin")),
    ("ce", "ensemble"),
    ("ce_finetuned", "cape_bin"),
    ("cape_bin", "beginning_bin"),
    ("ce", "ce_averaged"),
]


def needed(best, pairs=ASKED):
    """What it takes to see a difference between two rows: seeds, and for two networks test rows."""
    table, lines, ends = spread(best), {}, "{} [{}, {}]".format
    for a, b in pairs:
        for one in table[table.index.isin([(a, b), (b, a)])].to_dict("records"):
            std = [one[end] for end in ("std", "low", "high")]
            lines[f"{tables.label(a)} / {tables.label(b)}"] = {
                "deviation (%)": ends(*map("{:.1f}".format, std)),
                "due to rows": f"{min(1, (one['rows'] / one['std']) ** 2):.0%}",
                **{
                    f"seeds for {percent} %": ends(*(seeds_needed(percent, s) for s in std))
                    for percent in (2, 5, 10, 20)
                },
                "one training shows": f"{ENOUGH * one['std']:.0f} %",
                "rows for 5 %": f"{(ENOUGH * one['row'] / 5) ** 2:,.0f}",
            }
    return pd.DataFrame(lines).T


shown = needed(best)
tables.show(shown) if len(shown) else None

# %% [markdown]
# The same on pretrained features:

# %% tags=["hide-output"]
shown = needed(pretrained) if pretrained else []
tables.show(shown) if len(shown) else None

# %% [markdown]
# ## Another processor
#
# A processor computes with the instructions it has, and sums in another order give other roundings, which training
# enlarges. How much of a difference is it? Five rows of Linear, on drawn faces, five seeds, as three processors compute
# them. *Between processors* is the standard deviation of the error of one row with the same data, weights and order;
# *between trainings*, where a row has several on the same data, that of networks with other weights and in another
# order, as one processor computes them; *between seeds* everything is drawn anew (times 100):

# %% tags=["hide-input"]
study = storage.read(results_path().parent / "results", "machines", "instructions")
study["error"] = 100 * study["mse_p"]
rows = (
    study[~study["row"].str.startswith("member")]
    .groupby(["row", "seed", "machine"])["error"]
    .first()
)
members = study[study["row"].str.startswith("member")].groupby(["seed", "machine"])["error"]
apart = pd.DataFrame(
    {
        "error": rows.groupby("row").mean(),
        "between processors": rows.groupby(["row", "seed"]).var().groupby("row").mean() ** 0.5,
        "between trainings": pd.Series({"ce": members.var().mean() ** 0.5}),
        "between seeds": rows.groupby(["row", "seed"]).mean().groupby("row").std(),
    }
)
apart = apart.reindex([name for name in METHODS if name in apart.index])
tables.show(apart.rename(tables.label).round(2).astype(object).fillna(""))

# %% [markdown]
# **What is promised.** On one instruction set and precision the same seed gives the same numbers, bit for bit, which
# tests hold. On another a training is another training of the same data, as far off as new weights and a new order
# would have put it. So no sentence of this book rests on one training, and what the pages say is checked on several
# processors (`make anywhere`). A run's record has processor and precision, new ones the instruction set as well. One
# study that is stored mixes two precisions: {doc}`ablations`, the starts on photographs of Linear, of which one seed of
# three was computed in bfloat16. In bfloat16 a stored run is found again on another make of processor nearly to the
# last digit: the first seed of simulated lung cancer, which in float32 nobody gets back, has the stored cross entropy
# to four digits in every row but one, which is MMCE.

# %% [markdown]
# ## The paper's tables
#
# The paper's numbers ± one bootstrap standard deviation over test rows; ours under them, the mean over seeds and in
# brackets the standard deviation between seeds, where there are several. Seeds are five. *CE early-stop* is the mean
# of all trainings of a seed; post-hoc rows repair the first. An asterisk marks a misprint or a suspect value, see
# {doc}`errata`. *Mix-n-match* is without the isotonic step that the paper's text has and its tables, by their own
# AUC, do not; with it a prediction can be 0 or 1, and $\mathrm{KL}_p$ infinite. The paper does not state the size of
# its images.
#
# ### Table 1, $\mathrm{MSE}_p$

# %% tags=["hide-output"]
TABLE = ["mse_p", "kl_p", "ece", "mce", "ks", "brier"]


def number(value, spread, mark=""):
    spread = spread.where(np.isfinite(value))
    return value.map("{:.2f}".format).replace("inf", "∞") + spread.fillna("") + mark


def beside_the_paper(best):
    """The paper's numbers and ours, times 100: a line a row, columns source, scenario, metric."""
    key = ["method", "scenario", "metric"]
    scores = pd.concat([evidence.scores(runs, TABLE) for runs in best.values()])
    scores = scores.rename(columns={"task": "scenario"}).groupby(key)["value"]
    ours = 100 * pd.DataFrame({"mean": scores.mean(), "std": scores.std()})
    of_all = ours[ours.index.get_level_values("method") == "ce_mean"].rename({"ce_mean": "ce"})
    ours = of_all.combine_first(
        ours.drop("ce_mean", errors="ignore")
    )  # early stopping is all its trainings
    paper = published(list(SCENARIOS), metric=TABLE).set_index(key)
    found = {
        "paper": number(
            paper["value"],
            paper["std"].map(" ± {:.2f}".format, na_action="ignore"),
            paper["mark"].ne("").map({True: "*", False: ""}),
        ),
        "ours": number(ours["mean"], ours["std"].map(" ({:.2f})".format, na_action="ignore")),
    }
    return pd.DataFrame(found).unstack(["scenario", "metric"])


def paper_table(table, scenario=None, metric=None):
    """Table 1 (of a metric) or one of Tables 3 to 7 (of a scenario), ours under the paper's."""
    shown = table.xs(scenario or metric, axis=1, level="scenario" if scenario else "metric")
    columns = TABLE if scenario else list(SCENARIOS)
    heads = [METRICS[m].label if scenario else m.capitalize() for m in columns]
    here = set(shown["ours"].dropna(how="all").index)
    shown = shown.reindex([m for m in METHODS if m in PAPER or m in here])
    sources = {"paper": "–", "ours": "not run yet"}
    parts = {k: shown[k].reindex(columns=columns).fillna(gap) for k, gap in sources.items()}
    parts = pd.concat(parts).swaplevel().loc[[*product(shown.index, sources)]]
    name = scenario.capitalize() if scenario else METRICS[metric].label
    parts = parts.set_axis(heads, axis=1).rename(tables.label, level=0)
    return tables.show(parts.rename_axis([f"{name} ×100", ""]))


both = beside_the_paper(best)
paper_table(both, metric="mse_p")

# %% [markdown]
# ### Table 1, $\mathrm{KL}_p$

# %% tags=["hide-output"]
paper_table(both, metric="kl_p")

# %% [markdown]
# ### Table 1 on pretrained features, $\mathrm{MSE}_p$

# %% tags=["hide-output"]
paper_table(beside_the_paper(pretrained), metric="mse_p") if pretrained else None

# %% [markdown]
# ### Table 3: Linear

# %% tags=["hide-output"]
paper_table(both, scenario="linear")

# %% [markdown]
# ### Table 4: Sigmoid

# %% tags=["hide-output"]
paper_table(both, scenario="sigmoid")

# %% [markdown]
# ### Table 5: Centered

# %% tags=["hide-output"]
paper_table(both, scenario="centered")

# %% [markdown]
# ### Table 6: Skewed

# %% tags=["hide-output"]
paper_table(both, scenario="skewed")

# %% [markdown]
# ### Table 7: Discrete

# %% tags=["hide-output"]
paper_table(both, scenario="discrete")

# %% [markdown]
# ## What lies behind the rows
#
# ### Calibration epochs behind every kept network
#
# A row of CaPE without one is its control by another name.

# %% tags=["hide-output"]
tuned = ["ce_finetuned", "cape_bin", "cape_kernel", "beginning_bin", "beginning_kernel"]
kept = pd.concat(
    {
        f"{scenario.capitalize()}, seed {line.seed}": evidence.tables(line)[0].chosen
        for scenario, runs in best.items()
        for line in runs.itertuples()
    }
)
kept = kept[kept["chosen"] & kept["method"].isin(tuned)]
words = "epoch " + kept["best_epoch"].map("{:.0f}".format) + ", "
words += kept["calibration_epochs"].map("{:.0f} of calibration".format)
kept["words"] = words.where(kept["best_epoch"] > 0, "its start")
kept = kept.droplevel(1).set_index("method", append=True)["words"].unstack(sort=False)
kept = kept.reindex(columns=tuned).fillna("–").rename(columns=tables.label)
tables.show(kept.rename_axis(index=None, columns=None))

# %% [markdown]
# ### Every setting of CaPE that was tried on Linear
#
# From the same early-stopped networks, with the control beside it: epochs kept and calibration epochs
# up to them, seed by seed; $\mathrm{MSE}_p \times 100$ less that of the start, in the kept and in the last epoch. The best
# lie at the edge of what was tried: of the eighteen fine-tunings with CaPE that validation kept in all scenarios,
# seventeen have the fewest bins and fifteen the lower rate.


# %% tags=["hide-output"]
def settings_of(line):
    """Each fine-tuning of a run: its setting, the epoch kept, and what it takes off its start."""
    results, cape = evidence.tables(line)[0], line.run.record["settings"]["cape"]
    tuned = results.chosen[
        results.chosen["method"].isin(["ce_finetuned", "cape_bin", "cape_kernel"])
    ]
    for setting in tuned.itertuples():
        history = results.epochs[results.epochs["fit"] == setting.fit]
        history = history.set_index("epoch").sort_index()
        if 0 in history.index:  # says where it started
            kept, gain = history["val_ce"].idxmin(), history["mse_p"] - history["mse_p"][0]
            yield {
                "row": tables.label(setting.method),
                "schedule": "" if setting.method == "ce_finetuned" else cape,
                "epochs": str(history.index[-1]),
                "rate": f"{setting.finetune_learning_rate:g}",
                "bins": f"{setting.bins:.0f}" if setting.method == "cape_bin" else "",
                "seed": line.seed,
                "kept": str(kept),
                "calibration": str(int(history.loc[:kept, "calibration"].sum())),
                "kept less start": 100 * gain[kept],
                "last less start": 100 * gain.iloc[-1],
            }


linear = found[(found["task"] == "linear") & (found["data"] == "utkface") & (found["size"] == 32)]
tried = pd.DataFrame([setting for line in linear.itertuples() for setting in settings_of(line)])
if len(tried):
    key = ["row", "schedule", "epochs", "rate", "bins"]
    tried = tried.drop_duplicates([*key, "seed"]).groupby(key, sort=False)
    told = tried.agg({"seed": "size", "kept": ", ".join, "calibration": ", ".join})
    gains = tried[["kept less start", "last less start"]].agg(tables.over_seeds)
    display(tables.show(told.rename(columns={"seed": "seeds"}).join(gains)))

# %% [markdown]
# ### Where gains come from
#
# What rows take off the error of the first early-stopped network (positive is better), split into what one
# intercept, Platt scaling and any monotone map would have given as well, and what is left: a better
# order of the faces. Maps are cross-fitted, see `probnb.report.gain_parts`.

# %% tags=["hide-output"]
from probnb.report.gain_parts import PARTS


def parts_table(gains):
    """The parts of each gain in every scenario, intervals over seeds."""
    gains = gains.assign(scenario=gains["scenario"].str.capitalize())
    gains = gains.assign(row=gains["row"].map(tables.label), gain=100 * gains["gain"])
    text = gains.groupby(["scenario", "row", "part"], sort=False)["gain"]
    text = text.agg(tables.over_seeds, alone=" (one training)").unstack(sort=False)
    return text[[*PARTS, "total"]].rename_axis(index=(None, None), columns=None)


gains = authors.derived(folders, "gain-parts")
tables.show(parts_table(gains)) if gains is not None else None

# %% [markdown]
# ### Which runs there are
#
# Drawn faces are a smaller task of our own and enter nothing above. The paper's pictures of a scenario and
# of overfitting in one training (its Figures 4, 14 and 15) are on the page {doc}`synthetic`.


# %% tags=["hide-output"]
listed = found.sort_values("seed")
listed = listed.assign(
    faces=listed["data"].replace("utkface", "photographs"),
    profile=listed["profile"] + np.where(listed["variant"] == "", "", " (altered)"),
    size=listed["size"].map("{} px".format),
    rows=[len(evidence.methods_of(evidence.tables(line)[1])) for line in listed.itertuples()],
    precision=[run.record.get("precision", "?") for run in listed["run"]],
    minutes=[(run.record.get("cpu_seconds") or np.nan) / 60 for run in listed["run"]],
)
listed = listed.groupby(["task", "faces", "profile", "variant", "size"], sort=False)
listed = listed.agg(
    seeds=("seed", lambda of: ", ".join(map(str, of))),
    rows=("rows", "first"),
    precision=("precision", lambda of: ", ".join(sorted({*of}))),
    minutes=("minutes", lambda of: of.sum(skipna=False)),
)
listed = listed.droplevel("variant").rename_axis(index={"task": "scenario"}).round()
tables.show(listed.loc[[scenario for scenario in SCENARIOS if scenario in listed.index]])

# %% [markdown]
# ### How everything was trained
#
# The paper states few of its settings. What it states, what the released code does, and what is done
# here, where that can matter:

# %% tags=["hide-output"]
from importlib.resources import files

from probnb.experiment.profiles import PROFILES


def detail(row, profile):
    """A cell of the table: the profile's values in the words of ``details.csv``."""
    grid, values = METHODS["cape_bin"].grid, {}
    for name in row["fields"].split():
        values[name] = getattr(profile, name, None)
        if name in grid:
            tried = profile.grid.get(name, grid[name][: profile.candidates])
            values[name] = ", ".join(f"{v:g}" for v in tried)
    return row["here"].format(**values)


details = pd.read_csv(files("probnb_book") / "details.csv").fillna("")
for name in ("quick", "cpu", "paper"):
    details[f"here: {name}"] = [detail(row, PROFILES[name]) for row in details.to_dict("records")]
tables.show(details.drop(columns=["fields", "here"]).set_index("detail"), words=True)

# %% [markdown]
# What each claim of the paper comes to stands in {doc}`claims`.
