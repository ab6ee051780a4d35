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
# # Results: what the stored runs show
#
# Is CaPE better than what anyone can have without it, on the photographs of {cite}`liu2022deep`? Not here: over five
# seeds it is told from stopping early in one of the five scenarios, Sigmoid, where the same fine-tuning without
# calibration gains as much, and nowhere is it better than that. Networks overfit in every one of the twenty-five
# trainings, as the paper says, and three networks averaged do more than stopping early, in all five. The networks are
# small (32 × 32 pixels, a ResNet-18 of width 8; [twice as wide at 48 × 48](results-larger) two scenarios say the
# same); nothing here says what happens at the paper's size.

# %% tags=["parameters"]
results_dir = None  # folder of stored runs; None is results and runs of the project

# %% tags=["remove-cell"]
import pandas as pd

from probnb.validation import find_path
from probnb_book.notebook import check_parameters, results_path

check_parameters(globals(), "results_dir")
runs_dir = results_path()
folders = (
    [find_path(results_dir, "results_dir")]
    if results_dir
    else [runs_dir.parent / "results", runs_dir]
)

from probnb.plots import forest, use_style
from probnb_book import authors, costs, evidence, interactive
from probnb_book import results as tables
from probnb_book.claims import stored_runs

use_style()
found = evidence.find(folders, "synthetic")
best = {name: runs for name, runs in stored_runs(folders).items() if name != "cifar10"}
if not best:
    raise ValueError(
        f"results_dir must hold runs on photographs (data utkface); got {results_dir!r}."
    )
saved = authors.derived(folders, "authors-predictions")


# %% tags=["remove-input"] mystnb={"image": {"alt": "MSE_p of six rows in five scenarios on a logarithmic axis: the last epoch far above, early stopping, Platt scaling and CaPE together, the ensemble below them, fresh labels lowest."}}
figure = tables.glance_figure(best)

# %% [markdown]
# Mean over seeds of the error of six rows; bars reach over all seeds, where there are several. *CE, mean of
# trainings* is stopping early: the mean of all trainings of plain cross entropy that are stored for a seed, each at
# the epoch that validation keeps. Taking one of them instead lets its luck count as every rival's gain or loss: in
# Discrete the first training is the worst of three in four of five seeds, and against it CaPE would look better by
# 0.10.
#
# Numbers are $\mathrm{MSE}_p \times 100$. Intervals are 95 % of Student's distribution over seeds (each has outcomes,
# weights, order and test faces of its own); see {doc}`metrics`. Two rows are *told apart* where this interval leaves
# out 0. **A difference of one training is not told as a finding**: it stands in the tables below and nowhere else.
#
# ## 1. Networks memorise outcomes, and stopping early avoids most of it
#
# At the last of 24 epochs the error is 4.7 [3.4, 5.9] times that of the kept epoch in Linear, 3.8 [2.6, 5.0] times in
# Discrete, 1.7 [1.5, 1.8] times in Sigmoid and 13.6 [8.6, 18.7] times in Centered; in Skewed 9.0 [3.9, 14.0] times.
# Training on outcomes that are drawn afresh in every epoch, which only a simulation can do, goes on improving and is
# the lowest row of every run but one (in Sigmoid, seed 2, an ensemble with Platt scaling has 0.09 less): less
# stopping early it is -0.84 [-0.95, -0.74] in Linear, -0.78 [-0.87, -0.70] in Discrete, -1.32 [-1.68, -0.96] in
# Sigmoid. So what Figures 4 and 5 say of cross entropy is borne out.
#
# **In the end outcomes are learnt by heart**, but not in 24 epochs, after which the training cross entropy is still
# 0.11 to 0.60 nats. After 60, on three seeds each, it is below 0.02 in Linear, Discrete and Sigmoid, 73 to 83 % of
# predictions are within 0.05 of 0 or 1, and the error is 6.5 [5.2, 7.8], 6.5 [6.1, 6.9] and 2.2 [1.8, 2.5] times that
# of the kept epoch; in Sigmoid, where that epoch's error is three times as large as in the other two, it is not told
# from twice, which the page {doc}`claims` asks of a disaster.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Test MSE_p by epoch of every stored training, a panel a scenario: on outcomes it falls and then rises, on fresh outcomes it goes on falling."}}
figure = tables.curves_figure(tables.histories(best))
interactive.scenarios(best)

# %% [markdown]
# ## 2. Calibration epochs add nothing that can be seen
#
# CaPE (bin) less stopping early is -0.05 [-0.16, +0.06] in Linear, -0.02 [-0.10, +0.06] in Discrete and -0.49 [-0.69,
# -0.28] in Sigmoid; less its control, the same fine-tuning on outcomes alone, it is +0.02 [-0.00, +0.05], -0.00
# [-0.04, +0.03] and -0.00 [-0.08, +0.08]. In Centered and Skewed it is within 0.04 of stopping early and within 0.005
# of the control, on average, and no interval leaves out 0. **What Sigmoid gains, fine-tuning gains**: -0.48 [-0.68,
# -0.29] without calibration epochs. Four tenths of it is the start: the first of three trainings, from which both are
# fine-tuned, happens to be better than the mean of all by 0.19. In proportion the published gain in Linear (4.21 to
# 1.78, 58 %) would be 1.26 here, which the interval excludes.
#
# Behind the kept CaPE (bin) of sixteen of these twenty-five trainings there is **one calibration epoch**, of two
# there are two, and of seven none: there validation keeps the start, and stopping early, control and CaPE are one
# network. Other rates (0.1 to 0.001), bins and the printed schedule, tried in Linear on three seeds, change nothing
# that the control does not: at 0.001 with five bins CaPE is below its start by 0.08 [0.00, 0.16], and fine-tuning
# without it by 0.09 [0.00, 0.18]. Nor does the rate of the published demo, 0.0001 for 100 epochs: CaPE (bin) less its
# start is -0.10 [-0.33, +0.14] there, its control -0.10 [-0.33, +0.13], CaPE less the control +0.00 [-0.02, +0.02];
# in one seed 31 calibration epochs lie behind it, in another validation keeps the start.
#
# **Nor in the order of the faces.** Fine-tuning improves it: in AUC (times 100) CaPE (bin) is above Platt scaling,
# which leaves the order as it is, by 0.77 [0.44, 1.09] in Sigmoid, 0.38 [0.21, 0.55] in Centered and 0.41 [0.04,
# 0.78] in Discrete, and its control is by 0.76, 0.43 and 0.39. CaPE less the control lies between -0.07 and +0.02 in
# the five scenarios, and no interval leaves out 0.
#
# **Nor do losses that are meant to keep a network calibrated.** Of two strengths each, validation choosing, focal
# loss is worse than stopping early by 0.43 [0.10, 0.75] in Linear, 0.25 [0.05, 0.45] in Discrete and 1.10 [0.71,
# 1.49] in Skewed, entropy regularisation by 0.23 [0.15, 0.32] in Skewed; MMCE is told from it nowhere. Focal loss and
# entropy regularisation are not proper: the expectation is lowest elsewhere than at the true probability, for focal
# loss see {cite}`charoenphakdee2021focal`. In Skewed and Discrete a map gives most of the loss back: Platt scaling
# leaves 0.21 of focal loss in Linear, 0.01 in Discrete and 0.07 in Skewed, and 0.07 of entropy regularisation there.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Forest plot of CaPE less early stopping and less its control in five scenarios: no interval over seeds is below 0 but in Sigmoid, less early stopping."}}
pairs = [
    ("cape_bin", "ce_mean"),
    ("cape_kernel", "ce_mean"),
    ("cape_bin", "ce_finetuned"),
    ("cape_kernel", "ce_finetuned"),
]
table = tables.differences(best, pairs, several=True)
ax = forest(table, hue="pair", xlabel="MSE$_p$ × 100, difference (left of 0: CaPE is better)")

# %% [markdown]
# ## 3. Averaging three networks does
#
# An ensemble of three early-stopped networks less one of them is -0.37 [-0.43, -0.30] in Linear, -0.33 [-0.39, -0.27]
# in Discrete, -0.90 [-1.03, -0.76] in Sigmoid, -0.07 [-0.08, -0.05] in Skewed and -0.06 [-0.09, -0.04] in Centered;
# less CaPE it is -0.32 [-0.38, -0.25], -0.31 [-0.43, -0.19], -0.41 [-0.59, -0.23], -0.06 [-0.09, -0.04] and -0.05
# [-0.10, +0.00]. That averaging does not hurt is arithmetic (a square is convex); how much it helps is the finding:
# about 15 % of the error in each scenario. Independent members would make that two thirds of the noise of training,
# so that in Linear and Discrete about 0.5 of an error of 2.2 to 2.3 is which weights and batches one happened to get.
# The paper has CaPE ahead of its ensemble of five (1.78 and 1.90 in Linear).

# %% tags=["remove-input"] mystnb={"image": {"alt": "Forest plot of the deep ensemble less early stopping, CaPE and Platt scaling in five scenarios: below 0, but in Centered not everywhere told from 0."}}
pairs = [("ensemble", "ce_mean"), ("ensemble", "cape_bin"), ("ensemble", "platt")]
table = tables.differences(best, pairs, several=True)
ax = forest(
    table, hue="pair", xlabel="MSE$_p$ × 100, difference (left of 0: the ensemble is better)"
)

# %% [markdown]
# ## 4. Calibrating from the beginning does no harm, but in Sigmoid CaPE is ahead of it
#
#
# The paper's Table 12 has it far behind CaPE (2.59 and 1.78 in Linear, bins), and explains that first predictions are
# random. Here it is lower than CaPE (bin) in nine of ten trainings of Linear and Discrete, by 0.10 [-0.11, +0.31] and
# 0.12 [+0.05, +0.20], and higher in four of five in Sigmoid, by 0.31 [0.03, 0.59]; two to five calibration epochs lie
# behind it. Less stopping early it is -0.15 [-0.34, +0.05] in Linear, -0.14 [-0.20, -0.08] in Discrete and -0.18
# [-0.54, +0.19] in Sigmoid: no scenario shows harm against stopping early, and Discrete a gain. By kernel Sigmoid
# shows one, -0.23 [-0.42, -0.04], and is yet above CaPE (kernel) by 0.25 [0.07, 0.43].
#
# **Averaged weights are the lowest single network** in these three scenarios, for hardly more than the cost of the
# same training: the running mean of its weights less stopping early is -0.21 [-0.36, -0.07] in Linear, -0.23 [-0.34,
# -0.13] in Discrete and -0.86 [-1.14, -0.57] in Sigmoid; less CaPE -0.16 [-0.25, -0.07], -0.22 [-0.32, -0.11] and
# -0.37 [-0.71, -0.03]. The ensemble is ahead of it by 0.15 [0.06, 0.25] in Linear and 0.04 [0.02, 0.07] in Skewed; in
# the other scenarios the two are not told apart.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Forest plot of calibration from the beginning and of averaged weights less early stopping or CaPE, by scenario, with intervals over seeds."}}
pairs = [
    ("beginning_bin", "ce_mean"),
    ("beginning_bin", "cape_bin"),
    ("beginning_kernel", "cape_kernel"),
    ("ce_averaged", "ce_mean"),
]
table = tables.differences(best, pairs, several=True)
ax = forest(table, hue="pair", xlabel="MSE$_p$ × 100, difference (left of 0: the first is better)")

# %% [markdown]
# ## 5. The published baseline is displaced, and how it came to be is not known
#
# CaPE's largest published gain is on a baseline of 4.21 in Linear. The authors' demonstration notebook
# prints 2.20 for that row. Their saved early-stopped predictions have 3.68, and are too high by 0.106 on
# average: one intercept takes them to 2.40, Platt scaling to 2.15, below their own CaPE's 2.41. With Platt
# scaling on top that CaPE has 2.08, so that its better order of the faces is worth 0.08 [0.04, 0.13]. Both
# files are over-confident (Platt slopes 0.67 and 0.64): neither is at the minimum of the
# likelihood of these rows. None of the fifteen trainings of Linear that are stored here is off by more than
# 0.033 at its kept epoch, and none of any scenario by more than about 0.05: validation cross entropy, at
# this size, does not keep such an epoch. The table has the authors' saved predictions as they are and repaired;
# *shift* is the mean prediction less the mean outcome.

# %% tags=["remove-input"]
columns = ["scenario", "method", "repair", "shift", "slope", "mse_p"]
saved if saved is None else tables.show(saved.assign(mse_p=100 * saved["mse_p"])[columns].round(3))

# %% [markdown]
# ## 6. A pretrained start does more than all of these
#
# With a few thousand images one usually starts from a pretrained network. Here the same faces, at 128 × 128 pixels,
# are seen through a frozen EfficientNet-lite0 that has learnt ImageNet (means and deviations of its maps), and small
# heads are trained on these 1,568 features: five scenarios, ten seeds each, about a minute of one core and 3.7 GB of
# memory for all rows of a scenario once four minutes have extracted the features. **It takes 31 to 46 % off the
# error**: cross entropy has 1.17 in Linear where the network from random weights has 2.17, 1.30 and 2.29 in Discrete,
# and in every scenario but Skewed, where they are alike, it is below what that network reaches with fresh labels in
# each epoch. That is knowledge (ImageNet holds people), and sixteen times the pixels, which the rows from random
# weights are not given; the two were not separated on these faces (on FER+, where both see the same 48 pixels,
# features gain too, see {doc}`cifar10`). So no verdict on the paper's claims rests on it.
#
# On the strong start the rows differ by hundredths, and ten seeds tell them apart:
#
# - An **ensemble of five** is lower than one network in all five scenarios, by 0.03 to 0.08, for five times the
#   seconds.
# - **CaPE less its control is 0 to within 0.025 in all ten comparisons.** What it gains on one network in Linear, 0.03
#   [0.02, 0.04], the same fine-tuning without calibration epochs gains as well.
# - **Logistic regression** on the features, a convex fit of two seconds, has 1.24 in Linear and 1.36 in Discrete; the
#   small network is better by 0.05 to 0.46 in three scenarios and worse by 0.04 in Centered and Skewed, where not
#   even the ensemble has a lower mean than it. Neither Platt scaling nor CaPE on top of it changes anything that ten
#   seeds could show.
# - Averaged weights, cheap and good from random weights, are worse than stopping early in Skewed and Centered, by
#   0.08 [0.06, 0.10] and 0.02 [0.01, 0.03]. Overfitting remains: the last of thirty epochs is worse than the kept
#   one in all but Sigmoid.
#
# Where scripts run, choose which seeds count: with one alone, the picture is what a single training would
# have said.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Forest plot on pretrained features, five scenarios, ten seeds: the ensemble below one network, CaPE less its control at 0, logistic regression on either side."}}
pretrained = stored_runs(folders, pretrained=True)
pairs = [
    ("ensemble", "ce_mean"),
    ("cape_bin", "ce_finetuned"),
    ("logistic", "ce_mean"),
    ("ce_averaged", "ce_mean"),
]
table = tables.differences(pretrained, pairs, several=True)
label = "MSE$_p$ × 100, difference (left of 0: the first is better)"
ax = forest(table, hue="pair", xlabel=label) if len(table) else None
interactive.seeds(pretrained, pairs)

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(pretrained, "mse_p")) if pretrained else None

# %% [markdown]
# ## 7. Calibration after the fact gains little, and steps lose more
#
# Forty-five stored runs keep their validation predictions: thirteen tasks (the five scenarios on photographs and on
# drawn faces, the three of {doc}`real_world`), one to five seeds. Each map is fitted to these and judged on the test
# rows against the same network without it. The table has the mean gain over tasks, times 1000 (positive is better),
# with Student's interval over tasks, and in how many of them NLL gains. Three maps are not the paper's: *quadratic*
# and *spline* bend Platt's line, and *Venn-Abers* {cite}`vovk2015` lies between two isotonic regressions, at $p_1/(1
# - p_0 + p_1)$: one has the new row as a 0 ($p_0$), one as a 1 ($p_1$).
#
# - **Stopping early leaves little to mend.** The seven smooth maps gain 0.002 to 0.004 nats on one network, and only
#   the interval of Mix-n-Match leaves out 0; on the ensemble none is told to gain. One task decides: without rain,
#   whose validation and test rows are each of a fifth of nine days, they gain 0.004 to 0.005, and only the spline's
#   interval holds 0.
# - **Steps lose.** Isotonic regression and histogram binning promise 0 and 1 after a few hundred rows; isotonic
#   regression loses NLL in all thirteen tasks, by 0.099 [0.026, 0.172].
# - **Venn-Abers takes most of that loss back**: 0.099 [0.031, 0.167] better than isotonic regression, in each of the
#   thirteen tasks. It is still behind beta calibration, by 0.0025 [0.0009, 0.0041], and on the ensemble it harms.
# - **Bending does not pay**: neither the quadratic nor the spline is told apart from Platt scaling.
#
# A public comparison {cite}`berta2026calarena` has another order. Its thirteen binary experiments on images (networks
# on three data sets), by the mean of the log-losses that it publishes: Venn-Abers 0.238, beta 0.274, temperature
# 0.364, Platt 0.366, quadratic 0.418, spline 0.648, isotonic 1.623. Isotonic regression is far behind in both.
# Venn-Abers is first there, and here, on one network, behind every smooth map: it is never certain, which pays where
# networks are certain and wrong, with 78 or 524 rows to calibrate eight of those thirteen. Ours were stopped early.

# %% tags=["remove-input"]
from probnb_book import posthoc

gains = posthoc.post_hoc(folders[:1])
tables.show(posthoc.post_hoc_table(gains)) if len(gains) else None

# %% [markdown]
# ## 8. What to do instead
#
# Scenarios differ in how much there is to gain, from 0.14 in Centered to 1.3 in Sigmoid. So that they can be
# pooled, the figure has the share of the way: from stopping early (0) to the same network on labels that are
# drawn afresh in every epoch (100 %), which no one has outside a simulation. Cost counts every candidate and
# every start that a row needs, in trainings of cross entropy; for features it includes their extraction.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Ways to do better than one early-stopped network: what each costs in trainings at the left, and at the right the share of the way that it goes in every scenario."}}
ways = costs.stored(folders)
axes = costs.instead_figure(ways)

# %% [markdown]
# - **Three networks averaged go half of the way**: 48 % [34, 62] on average over the five scenarios, between 42 and
#   68 %, for three trainings; 50 % [32, 68] with Platt scaling on top.
# - **Averaged weights are the furthest that one network from random weights goes** on average, 34 % [10, 57] for 1.1
#   trainings. Only in Sigmoid do they go half of the way, which no other row of one network does anywhere. From the
#   beginning it is 15 % [10, 20] for 1.3 trainings; Platt scaling goes 11 % [-0, 22], which costs nothing; CaPE 12 %
#   [-7, 30] for 3.0; its control, the same fine-tuning without calibration epochs, 12 % [-6, 30] for 1.9.
# - **From pretrained features one network goes beyond the whole way in all five**: logistic regression 125 % [109,
#   141], at least 111 %. It costs 3.9 trainings, about 330 processor seconds, nearly all of which is one look at each
#   of the 23,707 photographs that serves all rows, scenarios and seeds; what is trained on top takes 2 seconds, and
#   11 for an ensemble of five.
# - On drawn faces, where more was tried, averaged weights go 63 % [38, 88] for 1.5 trainings, augmentation 57 % [40,
#   74] for as much, a distilled ensemble 66 % [36, 96] for 3.9 and cross-fitted targets 43 % [1, 85] for 4.3. Five
#   seeds of 1,000 small faces do not rank them.
#
# The rule in one sentence: *take the features of a network that has seen pictures like yours; if there is none, average
# three networks, or the weights of one; and spend nothing on calibration epochs.*
#
# Bars are Student's over the five scenarios, each the mean of the seeds in brackets; on drawn faces over seeds, of a
# ratio whose two parts go together. Of the 35 intervals over seeds that the table below has for rows from random
# weights 16 leave out 0, where about two would by chance: ten are of the ensemble, three of averaged weights, one is
# of the beginning in Discrete, and two are of CaPE and its control in Sigmoid. Holm's correction leaves nine, eight
# of the ensemble (in all but Centered) and averaged weights in Sigmoid.

# %% tags=["remove-input", "hide-output"]
tables.show(costs.cost_table(ways))

# %% [markdown]
# (results-larger)=
# ## 9. More pixels and a wider network
#
# The networks above are small. Linear and Discrete were run again at 48 × 48 pixels and width 16 (in bf16; seeds,
# faces and outcomes are those of 32 pixels), in 46 to 59 processor minutes a seed. **Stopping early ends where it
# did**: three seeds have 2.23 in Linear, which is 0.01 [-0.14, 0.15] more than they have at 32 pixels, and 2.28 in
# Discrete, -0.03 [-0.34, 0.28] more. On labels drawn afresh the larger network is better, by 0.26 [0.14, 0.37] and
# 0.24 [0.13, 0.35], so that more is lost: they are -1.12 [-1.17, -1.06] and -0.99 [-1.20, -0.78] less stopping early.
#
# What helps is what helped. Less stopping early, the ensemble of three is -0.35 [-0.61, -0.10] in Linear and -0.30
# [-0.38, -0.22] in Discrete, averaged weights are -0.46 [-0.67, -0.25] and -0.16 [-0.40, +0.08]; neither scenario
# tells the two rows apart. **CaPE less its control is +0.02 [-0.03, +0.07] and +0.01 [-0.04, +0.06]**: what CaPE
# gains in Linear, -0.12 [-0.22, -0.03] less stopping early, the control gains as well, -0.14 [-0.26, -0.03], and in
# Discrete neither shows any, +0.00 [-0.23, +0.23] and -0.01 [-0.28, +0.26]. Averaged weights are below CaPE in each
# of the six runs, by 0.34 [0.05, 0.62] in Linear and 0.16 [-0.13, 0.45] in Discrete.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Forest plot at 48 pixels and width 16: in Linear the ensemble, averaged weights and CaPE lie below stopping early, in Discrete the ensemble alone, and CaPE less its control at 0 in both."}}
photographs = found[(found["data"] == "utkface") & (found["profile"] == "cpu")]
runs = evidence.kinds(photographs[photographs["size"] == 48])[::-1]  # most seeds last
larger = {group["task"].iloc[0]: group for group in runs}
pairs = [(a, "ce_mean") for a in ("ensemble", "ce_averaged", "beginning_bin", "cape_bin")]
table = tables.differences(larger, [*pairs, ("cape_bin", "ce_finetuned")], several=True)
ax = forest(table, label="pair", hue="label", xlabel=label) if len(table) else None

# %% [markdown]
# Errors at both sizes on the same faces and outcomes, means over the seeds that both have:

# %% tags=["remove-input", "hide-output"]
parts = [best[task][best[task]["seed"].isin(group["seed"])] for task, group in larger.items()]
scores = evidence.scores(pd.concat([*parts, *larger.values(), found[:0]]), ["mse_p"])
scores = scores.assign(size=scores["size"].map("{} px".format), value=100 * scores["value"])
shown = scores.pivot_table(index="method", columns=["task", "size"], values="value").dropna()
tables.show(shown.rename(tables.label).round(2))

# %% [markdown]
# ## How many differences stand out by chance?
#
# Findings 2 to 4 look at 17 differences in each scenario. Of these 85, 32 intervals leave out 0, where about four
# would by chance. All but eleven concern the ensemble or averaged weights: in Sigmoid CaPE, by bins and by kernel,
# less stopping early, and the beginning less CaPE by both, above it, and by kernel less stopping early; in Discrete
# the beginning by bins less either; focal loss, worse in three, and entropy regularisation in Skewed. Holm's
# correction for all looks leaves six, all of the ensemble: less stopping early in every scenario but Centered, less
# CaPE in Linear and less Platt scaling in Discrete.

# %% tags=["remove-input", "hide-output"]
from probnb.metrics import holm

COLUMNS = ["label", "pair", "text", "p", "Holm"]
FINDINGS = (
    *((a, b) for a in ("cape_bin", "cape_kernel") for b in ("ce_mean", "ce_finetuned")),
    *(("ensemble", b) for b in ("ce_mean", "cape_bin", "platt")),
    *((a, "ce_mean") for a in ("beginning_bin", "beginning_kernel")),
    *(("beginning_bin", "cape_bin"), ("beginning_kernel", "cape_kernel")),
    *(("ce_averaged", b) for b in ("ce_mean", "cape_bin", "ensemble")),
    *((a, "ce_mean") for a in ("focal", "entropy", "mmce")),
)
table = tables.differences(best, FINDINGS, several=True)
table = table.assign(Holm=holm(table["p"])) if len(table) else pd.DataFrame(columns=COLUMNS)
shown = table[COLUMNS].round(4).set_index(["label", "pair"])
tables.show(shown.rename(columns={"text": "MSE_p ×100"}))

# %% [markdown]
# ## How many trainings would it take?
#
# Two rows differ from seed to seed, because each seed has faces, outcomes and weights of its own. From that
# deviation (pooled over the scenarios that have several seeds, with its own interval, as seeds are few) follows
# how many seeds show a difference with 80 % power, by Student's paired test at 5 %. In brackets the seeds for
# both ends of the deviation's interval. *Due to rows* is the part of the variance that more test faces would
# take away; *rows for 0.1* says how many faces tell apart two given networks, which is another question;
# *one training shows* is the difference that a single training of each row would reveal, were the deviation
# known from elsewhere.
#
# **One training could never have shown most of what is at issue.** CaPE less the training that it starts from has a
# deviation of 0.08: to see 0.5 takes three seeds, 0.2 four, 0.1 seven, 0.05 some twenty. The paper's CaPE is ahead of
# its ensemble of five by 0.12 in Linear and 0.16 in Discrete; one training of each would show about 0.23 here. The
# intervals of its tables are over test faces alone, which are a third of that variance (though six tenths of that of
# CaPE less the ensemble): what is missing is trainings. Deviations go with the error, so that the small errors of
# Centered and Skewed lower them. Five seeds show 0.14 of CaPE over its start, and 0.16 over the mean of trainings
# that finding 2 asks for: that nothing is seen of it in four scenarios means no more.
#
# On pretrained features deviations are smaller, in the median pair to less than a third, and seven seeds show 0.05 in
# every comparison with CaPE but that from the beginning.

# %% tags=["remove-input"]
from probnb_book import power

spread = power.spread(best)
shown = power.needed(spread)
tables.show(shown) if len(shown) else None

# %% [markdown]
# The same on pretrained features:

# %% tags=["remove-input", "hide-output"]
shown = power.needed(power.spread(pretrained)) if pretrained else []
tables.show(shown) if len(shown) else None

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

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(best, "mse_p"))

# %% [markdown]
# ### Table 1, $\mathrm{KL}_p$

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(best, "kl_p"))

# %% [markdown]
# ### Table 3: Linear

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="linear"))

# %% [markdown]
# ### Table 4: Sigmoid

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="sigmoid"))

# %% [markdown]
# ### Table 5: Centered

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="centered"))

# %% [markdown]
# ### Table 6: Skewed

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="skewed"))

# %% [markdown]
# ### Table 7: Discrete

# %% tags=["remove-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="discrete"))

# %% [markdown]
# ## What lies behind the rows
#
# ### Calibration epochs behind every kept network
#
# A row of CaPE without one is its control by another name.

# %% tags=["remove-input", "hide-output"]
tables.show(tables.behind(best))

# %% [markdown]
# ### Every setting of CaPE that was tried on Linear
#
# From the same early-stopped networks, with the control beside it: epochs kept and calibration epochs
# up to them, seed by seed; $\mathrm{MSE}_p \times 100$ less that of the start, in the kept and in the last epoch.

# %% tags=["remove-input", "hide-output"]
linear = found[(found["task"] == "linear") & (found["data"] == "utkface") & (found["size"] == 32)]
tables.show(tables.candidates(linear)) if len(linear) else None

# %% [markdown]
# ### Where gains come from
#
# What rows take off the error of the first early-stopped network (positive is better), split into what one
# intercept, Platt scaling and any monotone map would have given as well, and what is left: a better
# order of the faces. Maps are cross-fitted, see `probnb.calibrators.gain_parts`.

# %% tags=["remove-input", "hide-output"]
rows = ("platt", "ce_finetuned", "cape_bin", "ensemble", "beginning_bin", "ce_averaged")
tables.show(tables.gains(best, rows))

# %% [markdown]
# ### Which runs there are
#
# Drawn faces are a smaller task of our own and enter nothing above. The paper's pictures of a scenario and
# of overfitting in one training (its Figures 4, 14 and 15) are on the page {doc}`synthetic`.

# %% tags=["remove-input", "hide-output"]
tables.show(tables.run_table(found))

# %% [markdown]
# ### How everything was trained
#
# The paper states few of its settings. What it states, what the released code does, and what is done
# here, where that can matter:

# %% tags=["remove-input", "hide-output"]
tables.show(tables.training_details(), words=True)

# %% [markdown]
# What each claim of the paper comes to stands in {doc}`claims`.
