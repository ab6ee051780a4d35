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
# # CIFAR-10, and images that people judged
#
# Appendix J of {cite}`liu2022deep` leaves faces: class $c$ of CIFAR-10 gets the probability $p = c/10$. That is
# still a probability that somebody made up. Other pictures come with one that nobody chose: many people were asked
# about each, *is this face neutral? is it a cat?*, and the share who say yes measures it. **Does CaPE help there,
# and how far is a network from what people would say?**
#
# *On none of fourteen questions is CaPE shown to differ from the same fine-tuning without its calibration epochs, while
# a deep ensemble is told below cross entropy on eight. On two of three questions about faces the best of the small
# networks is worth the answers of one and a half other people; everywhere else it is worth less than one. The figure
# has each question with its interval over test pictures and three seeds.*

# %% tags=["parameters"]
data = "digits"  # digits, cifar10, cifar10h or ferplus
question = None  # rule, judged, cat and so on, neutral, happiness, negative; None is the usual
data_dir = None  # folder with cifar10-jpeg.tar.gz or cifar-10-batches-py, cifar10h, ferplus.npz
inputs = "gradients"  # gradients (a small network), pixels (a ResNet-18) or features (of lite0)
profile = None  # smoke, quick, cpu or paper; None is quick
seed = 0
methods = None  # None for the paper's rows, or names such as "ce, platt, cape_bin"
images = None  # training images; None is the profile's number
epochs = None  # of the trainings from random weights; None is the profile's number
device = "auto"  # auto, cpu, cuda or mps
devices = 1  # GPUs to use; on a CPU, processes
results_dir = None  # finished work; None is the folder "runs" of the project
retrain = False  # train again what other code has trained

# %% tags=["remove-cell"]
from probnb_book.notebook import check_parameters, check_run, results_path

check_parameters(
    globals(),
    """data question data_dir inputs profile seed methods images epochs device devices results_dir
    retrain""",
)
from probnb.methods import METHODS, check_methods

check_methods(methods)
check_run(globals())
kept = results_path().parent / "results"

from itertools import product

import numpy as np
import pandas as pd
import seaborn as sns
from scipy.stats import spearmanr

from probnb.experiment.results import on_test
from probnb.metrics import kl_p, mse_p
from probnb.plots import forest, use_style
from probnb_book import storage
from probnb_book.cifar10 import study, tasks

use_style()
pd.set_option("display.max_colwidth", None, "display.max_rows", None)
settings = tasks.task_settings(data, profile, inputs, images=images, epochs=epochs)
question = question or tasks.DATA[data].usual
task = tasks.load_task(data, question, data_dir, settings.images, settings.size, seed, inputs)
stored = study.read_stored(kept)
PEOPLE = [
    ("ferplus", "neutral"),
    ("ferplus", "happiness"),
    ("ferplus", "negative"),
    ("cifar10h", "cat"),
]
people = pd.concat([study.read_stored(kept, *which) for which in PEOPLE])

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot over fourteen questions: CaPE less its control, around 0, and a deep ensemble less cross entropy, mostly below 0, with intervals over test pictures and seeds."}}
label = "CaPE (bin) less CE fine-tuned", "Deep ensemble less CE early-stop"
pairs = [
    study.differences(stored, ["cape_bin"], reference="ce_finetuned").assign(which=label[0]),
    study.differences(stored, ["ensemble"]).assign(which=label[1]),
]
shown = pd.concat(pairs)
shown["task"] = [tasks.task_label(*which) for which in zip(shown["data"], shown["question"])]
ax = forest(
    shown.sort_values(["data", "question"]), "task", "which", xlabel="Difference in MSE$_p$ (× 100)"
)

# %% [markdown]
# **How we know.** The networks are small, so that fifteen rows with three seeds fit on two cores: two layers that
# see oriented gradients (how strong the edges are in each direction, in each part of the picture), with 4,000
# pictures to train on, 12,000 for FER+. All networks are judged by people whose answers they never saw. FER+
# {cite}`barsoum2016` has ten judges a face, CIFAR-10H {cite}`peterson2019` fifty a picture. The tables lie in
# `results/votes.parquet`; `python -m probnb_book train cifar10 ferplus neutral --data-dir ...` makes one of
# them again. Nothing of the pictures or votes is kept, and no face is shown. All $\mathrm{MSE}_p$ are times 100.
#
# Of the fourteen intervals of CaPE none leaves 0 out. Of the ensemble's eight do, where chance would give one; after
# Holm's correction one of them is left (deer). That it is nearly always below its first member is no news, since an
# average cannot be worse than its members are on average; the size is.
#
# ## Training
#
# Without data at hand the pictures are scikit-learn's handwritten digits: a network that tells the classes apart
# could know $p = c/10$ exactly, one that confuses two neighbours is off by a tenth only.
# All rows of the paper's tables, as in the {doc}`synthetic chapter <synthetic>`; `-p inputs pixels` trains a
# ResNet-18 in place of the small network, and `-p data ferplus -p data_dir ...` takes real pictures. By default the
# judges of the digits are simulated. One training is an anecdote: its table says what this run did, with intervals
# over its test pictures alone, and nothing about methods.

# %%
how = dict(device=device, devices=devices, retrain=retrain)
results, run = tasks.train_task(task, settings, results_dir, profile, seed, methods, **how)
here = study.compare_seeds([on_test(results.predictions)])

# %% tags=["hide-output"]
shown = here.rename(index=lambda row: METHODS[row].label, columns={"value": "less CE"})
(100 * shown[["mean", "less CE", "low", "high"]]).round(2)

# %% [markdown]
# ## Table 11
#
# *Can CaPE's gain on CIFAR-10 be found again?* The paper has 2.97 for cross entropy and 2.52 for CaPE (bin), without
# intervals.
#
# **Not at our size.** In all three seeds validation data kept the start of CaPE's fine-tuning: its row is cross
# entropy's, and their difference of 0 is an identity, not a measurement. The small network's error is more than twice
# the paper's, and so is that of a ResNet-18 on the pixels of 20,000 images, where CaPE is not told from the network
# that it starts from. What does help is the ensemble and fresh outcomes in every epoch; MMCE and focal loss are higher.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of all rows on CIFAR-10: MSE_p less that of early stopping, with intervals."}}
rule = study.read_stored(kept, "cifar10", "rule")
shown = [m for m in rule["method"].unique() if m not in ("ce", "ce_overfit", "mixnmatch_isotonic")]
ax = forest(study.differences(rule, shown), xlabel="MSE$_p$ less that of CE early-stop (× 100)")

# %% [markdown]
# ## The ratio in Table 11
#
# *How can that table's $\mathrm{KL}_p$ be 10 to 14 times its $\mathrm{MSE}_p$, when in all other tables it is about 2.5
# times?* One class has $p = 0$, which makes the *printed* direction $\mathrm{KL}(\hat p\,\|\,p)$ infinite unless a
# program clips $p$.
#
# **By the printed direction and a clipping.** $\mathrm{KL}(p\,\|\,\hat p)$, which fits the other tables, is 2.4 times
# $\mathrm{MSE}_p$ whatever the clipping. The printed direction grows by the same amount with every decade of it and
# crosses the paper's range. No one constant gives the paper's three ratios unless its rows differ on the class with $p
# = 0$, which that direction weighs above all else. Ours do not, since all three are one network; they would need
# clippings three decades apart.


# %%
def kl_ratios(p, p_hat, clips=(1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-12, 1e-16)):
    """KL_p over MSE_p where a program clips both arguments; 1e-7 and 2e-16 are the machine's."""
    rows = []
    for clip, direction in product(clips, ("p||p_hat", "p_hat||p")):
        divergence = kl_p(np.clip(p, clip, 1 - clip), np.clip(p_hat, clip, 1 - clip), direction)
        rows.append((direction, clip, divergence / mse_p(p, p_hat)))
    return pd.DataFrame(rows, columns=["direction", "clip", "ratio"])


first = storage.find_runs([kept], "cifar10", task="rule", data="cifar10", inputs="gradients")[0]
seen = storage.read_results(first).predictions
ratios = kl_ratios(seen["p"], seen["ce"]).pivot(index="clip", columns="direction", values="ratio")
ratios.sort_index(ascending=False).style.format("{:.1f}").format_index("{:g}")

# %% [markdown]
# ## People as the measure
#
# *How can one measure the distance from a probability that nobody knows?* Of $n$ people who judged a picture, $k$ say
# yes. The prediction $\hat p$ was trained on the vote of somebody else. With $q = k/n$,
#
# $$\mathrm{E}(\hat p - q)^2 = (\hat p - p)^2 + \frac{p(1 - p)}{n},$$
#
# $$\mathrm{E}\,\frac{q(1 - q)}{n - 1} = \frac{p(1 - p)}{n},$$
#
# **so that the mean of $(\hat p - q)^2 - q(1 - q)/(n - 1)$ is an unbiased estimate of $\mathrm{MSE}_p$** in which two
# votes a picture suffice:

# %%
q = task.votes["k"] / task.votes["n"] if task.votes is not None else None
if (
    q is not None
):  # the other people's share of yes, and what their noise adds to a distance from it
    test = on_test(results.predictions).set_index("id")
    q, n = q[test.index], task.votes.loc[test.index, "n"]
    print("from votes:", ((test["ce"] - q) ** 2 - q * (1 - q) / (n - 1)).mean().round(4))
    print("plain distance from the shares:", ((test["ce"] - q) ** 2).mean().round(4))

# %% [markdown]
# $\mathrm{KL}_p$ needs the entropy of $p$, of which no finite number of votes has an unbiased estimate; the least
# biased one is taken, which is the same for every prediction, so that *differences* in $\mathrm{KL}_p$ have no bias.
#
# ## What was measured on real pictures
#
# *How far are methods from people, and what would other people score?* The share of so many *other people*, taken for
# a prediction, has the error of their marks.
#
# **Where people disagree a network is worth one and a half of them, where they agree not one.** The best row, the
# ensemble, has two thirds of the error of one other person who is asked whether a face is *neutral*, and twice that of
# three. But for *happiness*, on which people agree more, it has nearly twice the error of one. On the ten questions of
# CIFAR-10H nearly everybody agrees, and there the best network is worth less than a fifth of one other person.

# %% tags=["hide-input"] mystnb={"image": {"alt": "MSE_p of four methods beside that of the share of one or more other people, for each question."}}
METHODS_SHOWN = ("ce_overfit", "ce", "cape_bin", "ensemble")
told = people[(people["metric"] == "mse_p") & people["reference"].isin(["ce", "1", "3", "9"])]
others = {"1": "1 other person", "3": "3 other people", "9": "9 other people"}
names = told["method"].map({name: METHODS[name].label for name in METHODS_SHOWN})
told = told.assign(
    who=names.mask(told["method"] == "people", told["reference"].map(others)),
    task=list(map(tasks.task_label, told["data"], told["question"])),
).dropna(subset="who")
order = [METHODS[name].label for name in METHODS_SHOWN] + list(others.values())
look = {"hue": "who", "style": "who", "hue_order": order, "style_order": order}
ax = sns.scatterplot(told, x=100 * told["mean"], y="task", **look, palette="colorblind", s=55)
ax.figure.set_size_inches(7.2, 1.2 + 0.42 * told["task"].nunique())
ax.set(xlabel="MSE$_p$ (× 100)", ylabel="", xlim=(0, None))
ax.margins(y=0.12)
sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=4, title=None)

# %% [markdown]
# **What helps is small.** The ensemble is told lower on the three questions about faces, and maps fitted on validation
# data gain a little on *neutral*. Focal loss and MMCE, as published, are told higher in five of fourteen questions
# each, and lower in none; the network that memorised is above the early-stopped one on *neutral*.
#
# **Features of a pretrained network help more.** EfficientNet-lite0 sees *neutral* faces enlarged from 48 to 96 pixels
# (`-p inputs features`); with 4,000 to train on, cross entropy on its features and their ensemble are each two points
# below the same on the gradients of the same faces. There, too, CaPE is not told from its control. ImageNet holds
# people, so that this is knowledge from elsewhere.
#
# **CaPE less its control, CE fine-tuned, is not told from 0**, with one exception that should not be leant on. A
# ResNet-18 on the pixels of *neutral* faces, fine-tuned for two epochs, is lower with calibration epochs by an interval
# that leaves 0 out. It is the smallest p-value of sixteen such comparisons (with pixels, FER+ and CIFAR-10 have one
# more each), and Holm's correction leaves nothing of it. The largest difference to the other side is *truck*.

# %% tags=["hide-output"]
rows = ["ce_overfit", "platt", "focal", "mmce", "ensemble", "ce_finetuned", "cape_bin"]
table = study.differences(stored, rows)
ends = 100 * table[["value", "low", "high"]].to_numpy()
table["less CE"] = ["{:+.2f} [{:+.2f}, {:+.2f}]".format(*line) for line in ends]
table.set_index(["data", "question", "label"])[["less CE", "p", "holm"]].round(3)

# %% [markdown]
# (cifar10-votes)=
# ## Calibrating on votes
#
# *What should a calibrator be fitted to where several people judged each picture?* One vote of each is what it gets
# above. Many data sets keep the majority alone; and it could be all votes, a row for each. Cross entropy's
# predictions for the test pictures are calibrated on some of one half and judged, by all votes, on the other half,
# three times both ways for each question and seed; the numbers are means over the questions of a data set.
#
# **All votes, never the majority where people disagree.** On FER+ the majority has a higher error than all votes for
# each of four maps and each number of pictures, and no interval holds 0. It is one-sided: votes ask for a temperature
# above 1, the majority's is hardly that, which takes no notice of what was to be mended, and with all pictures none of
# its four maps is shown to beat no map at all. {cite}`tao2026` find the same bias elsewhere. One vote of each picture
# is right on average, only noisy; maps in this book are fitted to one drawn vote, never to the majority.
#
# **More votes stand for more pictures.** Against one vote, ten gain several times as much with 100 pictures as with
# 1,598. Temperature, Platt scaling and beta need 1,000 pictures with one vote before they are shown to gain anything;
# with all votes Platt and beta need 300. On CIFAR-10H, where nearly everybody agrees, the three targets lie close
# together, and no map gains anything from any of them.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot on FER+ by number of pictures: training on more votes a picture less training on one, with intervals over seeds."}}
votes = storage.read(kept, "votes", "calibrators", "calibrators")
shown = votes.query("data == 'ferplus' and less == 'nothing'").sort_values("images")
shown = shown.assign(
    where=[f"{n} pictures, {m}" for m, n in zip(shown["calibrator"], shown["images"])]
)
ax = forest(shown, "where", "target", xlabel="MSE$_p$ less that of CE uncalibrated (× 100), FER+")

# %% tags=["hide-output"]
table = votes.query("less == 'nothing'").assign(gain=100 * votes["value"])
table.pivot_table("gain", ["data", "calibrator", "images"], "target").round(2)

# %% [markdown]
# *Does a network first learn what people see, and then the single vote that it was given?* On *neutral* and *negative*
# the last epoch of cross entropy (*CE overfit* in the table) is further from $p$ than the one that validation data
# kept in all three seeds; on *happiness* it is not told from it.
#
# ## Does the Brier score follow?
#
# *The {doc}`chapter on metrics <metrics>` finds the Brier score to be the metric of outcomes that follows
# $\mathrm{MSE}_p$ where probabilities were made. And on real pictures?* Here Brier sees one vote a picture, and
# $\mathrm{MSE}_p$ is measured by the others.
#
# **It does.** Over the epochs of all trainings the rank correlation is at least 0.94 in every seed of five tasks;
# over the rows of a table, which lie closer together, at least 0.67.


# %%
def brier_follows(stored, folder):
    """Spearman's correlation of the Brier score with MSE_p, over methods and over epochs, by seed.

    Seeds are kept apart: the luck of a seed's votes shifts all of its Brier scores alike.
    """
    points = stored.query("metric == 'models' and method != 'ce_overfit'")
    points = points.rename(columns={"mean": "mse_p", "spread": "brier"})
    found = [(int(seed), "methods", part) for seed, part in points.groupby("reference")]
    asked = {"data": stored["data"].iloc[0], "task": stored["question"].iloc[0]}
    for run in storage.find_runs([folder], "cifar10", **asked, inputs="gradients"):
        epochs = storage.read_results(run).epochs.query("epoch > 0")
        found.append((run.record["seed"], "epochs", epochs))
    ranks = [(*key, spearmanr(t["mse_p"], t["brier"]).statistic, len(t)) for *key, t in found]
    return pd.DataFrame(ranks, columns=["seed", "kind", "rank", "models"])


follows = {
    tasks.task_label(*which): brier_follows(study.read_stored(kept, *which), kept)
    for which in [*PEOPLE, ("cifar10", "rule")]
}
follows = pd.concat(follows, names=["task"]).reset_index("task")
follows.pivot(index="task", columns=["kind", "seed"], values="rank").round(2)

# %% [markdown]
# ## Your own judged pictures
#
# `probnb_book.data.voted_images.judge` makes data to train on of any pictures with counts of votes, and
# {doc}`evaluate <evaluate>` takes a file of predictions with counts in place of probabilities.
