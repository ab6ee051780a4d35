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
# # Ablations: what makes CaPE work, and what works better
#
# CaPE {cite}`liu2022deep` is a schedule of targets. The paper varies it a little (Section 5, Appendices H
# and M). **What in it matters, and is there something better to train on?**
#
# *Its settings do not matter as far as we can see, and starting it from random weights, which the paper finds worse
# in every cell of its Table 12, is not worse here in Linear and Discrete. What helps on drawn faces is whatever
# averages the noise of training away: an ensemble, a network that learns from one, or simply the average of a
# network's own weights, which costs half a training more. The figure shows what we tried, less cross entropy, and in
# brackets what it cost in trainings of it; five seeds are too few to prove any of it once one counts that seventeen
# rows were tried.*

# %% tags=["parameters"]
studies = None  # what to train here, such as "targets, weighted"; None is a few quick ones
scenario = "linear"  # linear, sigmoid, centered, skewed or discrete
data_dir = None  # UTKFace: its .tar.gz or folder; None draws faces
profile = None  # smoke, quick, cpu or paper; None is quick
seed = 0
device = "auto"  # auto, cpu, cuda or mps
results_dir = None  # finished work; None is the folder "runs" of the project
retrain = False  # train again what other code has trained

# %% tags=["remove-cell"]
from probnb_book.notebook import check_parameters, check_run, results_path

check_parameters(globals(), "studies scenario data_dir profile seed device results_dir retrain")
from probnb.validation import check_choice, check_choices
from probnb_book.ablations.rows import PAGE, STUDIES, settings_of
from probnb_book.scenarios import SCENARIOS

names = check_choices(PAGE if studies is None else studies, STUDIES, "studies")
check_choice(scenario, SCENARIOS, "scenario")
check_run(globals())
settings = settings_of(profile)
kept = results_path().parent / "results"

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from probnb.plots import forest, plain_ticks, use_style
from probnb_book.ablations import study
from probnb_book.ablations.special import first_targets
from probnb_book.data.faces import load_faces
from probnb_book.results import student

use_style()
pd.set_option("display.max_colwidth", None)
MSE = "MSE$_p$ (× 100)"

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot: MSE_p of every training target less that of plain cross entropy, with 95 % intervals over seeds; sorted, with the cost of each in trainings. Rows that average are lowest."}}
targets = study.compare(study.read_study(kept, "targets"), base="ce")
shown = targets.sort_values("value").assign(
    label=targets["label"] + targets["cost"].map(" ({:.1f})".format)
)
ax = forest(shown, xlabel="MSE$_p$ less that of CE (× 100)")

# %% [markdown]
# **How we know.** Every seed draws its own faces, outcomes, weights and order, so that Student's interval over
# the differences of seeds holds all of these; with three seeds it is wide, as it should be. Where many
# differences stand side by side, one in twenty leaves 0 out by chance: Holm's correction says which stand out
# all the same. Drawn faces are 1,000 to train on, 16 pixels wide; photographs are UTKFace's 16,640, 32 pixels.
# All $\mathrm{MSE}_p$ are times 100. The tables lie in `results/ablations.parquet`, with a record of each seed;
# `python -m probnb_book train ablations NAME` makes any of them again, and `--data-dir` and `--profile cpu` take
# the photographs. What this very page has trained stands [at its end](ablations-trained).
#
# ## From the beginning
#
# *Is it counterproductive to calibrate from the beginning?* The paper says so: CaPE starts from an early-stopped
# network because $p_\text{emp}$ "requires a reasonable estimation", and in Table 12 calibration epochs from
# random weights are worse than CaPE in all 20 cells.
#
# **In Linear and Discrete it is not.** On photographs, with bins, it has a lower error than CaPE in all six trainings,
# and in Discrete is told from it. Against cross entropy one has to be careful: CaPE starts from one training of it, and
# in Discrete that one is the worst of the three that each seed has. Against the mean of the three CaPE gains nothing;
# training from the beginning gains, over the five seeds of the {doc}`appendix`, where in Sigmoid it is behind CaPE.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of rows calibrated from the beginning, and of CaPE, less cross entropy, by scenario, with intervals over seeds."}}
beginning = study.read_study(kept, "beginning", data="utkface")
found = study.compare(beginning, base="ce")
ax = forest(found, hue="scenario", xlabel="MSE$_p$ less that of CE early-stop (× 100)")

# %% [markdown]
# The reason given is that "the model predictions are essentially random" at first. So they are in the picture, of one
# training: each point is a face, and before the first step its $p_\text{emp}$ says hardly more than the mean of all
# outcomes, whatever its $p$. That may be a mild thing to learn from: it is close to what the network would say of a
# face that it knows nothing about, and a calibration epoch is one in three or four.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two scatter plots of the empirical probability of training faces against their true probability: before training, nearly the same for all faces; at the early stop, near the diagonal."}}
faces = load_faces(scenario, data_dir, size=settings.size, n=settings.images, seed=seed)
first = first_targets(faces, settings, seed, results_dir / "fits", device)
grid = sns.relplot(first, x="p", y="p_emp", col="network", s=12, lw=0, height=3.2)
grid.map_dataframe(lambda **_: plt.axline((0, 0), slope=1, color="0.5", lw=1, ls="--"))
grid.set(xlim=(0, 1), ylim=(0, 1), xticks=(0.2, 0.4, 0.6, 0.8)).set_titles("{col_name}")
_ = grid.set_axis_labels("True probability p", "Target p$_{emp}$")

# %% [markdown]
# ## Hyperparameters
#
# *How much do they matter, of CaPE and of its rivals?* Figure 13 shows the strengths of focal loss, entropy
# regularisation and MMCE, without numbers, and Appendix H has the first two "inferior" to the third at every
# strength.
#
# **A rival that is too strong does harm, and no strength is shown to help.** The published strengths all raise the
# error of cross entropy on photographs, and five of the six intervals leave 0 out. Weaker ones are not told from cross
# entropy. The order of Appendix H does not hold: in both scenarios the weaker entropy regularisation has a lower mean
# than the published MMCE, and in Linear than both strengths of MMCE.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Difference in MSE_p from cross entropy against the strength of focal loss, entropy regularisation and MMCE, with intervals over seeds: strong settings lie above 0."}}
losses = study.read_study(kept, "losses", data="utkface")


def settings_figure(table, base, axes):
    """Differences in MSE_p from one row against settings, a panel each, intervals over seeds."""
    same = ["scenario", "n", "seed"]
    start = table[table["row"] == base].set_index(same)["mse_p"].rename("start")
    shown = table[table["part"].isin(list(axes))].join(start, on=same)
    shown = shown.assign(gap=100 * (shown["mse_p"] - shown["start"]))
    several = shown["scenario"].nunique() > 1
    shown["scenario"] = shown["scenario"].str.capitalize()
    drawn = {"x": "x", "y": "gap", "col": "part", "hue": "scenario", "style": "scenario"}
    look = {"markers": True, "dashes": False, "errorbar": student, "err_style": "bars"}
    look |= {"height": 2.4, "aspect": 1 if len(axes) > 1 else 2, "legend": several}
    panels = {"col_order": axes, "col_wrap": min(3, len(axes))}
    panels["facet_kws"] = {"sharex": False, "legend_out": False}
    grid = sns.relplot(shown, kind="line", **drawn, **panels, **look)
    grid.set_titles("").set_ylabels("Difference (× 100)").refline(y=0)
    for part, ax in grid.axes_dict.items():
        x = np.sort(shown.loc[shown["part"] == part, "x"].unique())
        ax.set(xlabel=axes[part], xscale="log" if x[-1] > 6 * x[0] > 0 else "linear")
        plain_ticks(ax.xaxis, x)
    if several:
        sns.move_legend(grid, "lower center", bbox_to_anchor=(0.45, 1), ncols=2, title="")
    return grid


strengths = {
    "focal": "Focal loss: strength γ",
    "entropy": "Entropy: strength β",
    "mmce": "MMCE: strength β",
}
grid = settings_figure(losses, "ce", strengths)

# %% [markdown]
# **Of CaPE's own settings none is shown to matter.** All start from the same early-stopped network on drawn
# faces, and what is subtracted is the same fine-tuning without calibration epochs. Of 26 rows no interval leaves 0
# out, where chance alone would give about one.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Difference in MSE_p from the control against each setting of CaPE, a panel a setting, with intervals over seeds that all cross 0."}}
cape = study.read_study(kept, "cape")
settings_of_cape = {
    "m": "m (every m-th epoch)",
    "phase": "Phase (2: starts with it)",
    "B": "B: bins",
    "rate": "Learning rate",
    "r": "r: neighbours",
    "sigma": "σ of the kernel",
    "length": "Length (epochs)",
}
grid = settings_figure(cape, "ce_finetuned", settings_of_cape)

# %% [markdown]
# ## The weighted sum
#
# *Is a weighted sum of the two losses as good as alternating epochs?* "A variant of CaPE can be implemented using
# a weighted sum" (Section 5). Cross entropy is linear in its target, so that the sum is cross entropy on
# $(y + \lambda p_\text{emp})/(1 + \lambda)$ in every epoch.
#
# **It can be done, and no weight is told from alternating**, which says little: the intervals reach half a point and
# more to either side.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Difference in MSE_p from alternating CaPE against the weight of the calibration loss, with intervals over seeds that cross 0."}}
weighted = study.read_study(kept, "weighted")
grid = settings_figure(weighted, "cape_bin", {"lambda": "λ: weight of p$_{emp}$"})

# %% [markdown]
# ## Better targets
#
# *Which targets are better than outcomes, at what cost?* What keeps a network from memorising outcomes is
# something else to fit. *Cross-fitted* targets are what networks that did not see a face say of it; a
# *distilled ensemble* teaches the mean of its members, which have seen it. Beside them stands plain hygiene: a
# rate that falls to 0 along a cosine, an exponential average of the weights, faces that are mirrored, moved and lit
# at random. Cost counts all that a row rests on, in images seen; 1 is a training of cross entropy.
#
# **Averaged weights are what we recommend: as good as anything one network reached, and the cheapest.** They take three
# tenths off the error of cross entropy at the cost of 1.5 trainings. A distilled ensemble takes off as much at 3.9, and
# the two are not told apart; nor are averaged weights told from the ensemble itself. Three caveats:
#
# - Of the seventeen rows in the figure above five leave 0 out, where chance would give about one, but none
#   passes Holm's correction, not even resampled labels, which are the best by construction.
# - Rows with three seeds, whose intervals are the long ones, are compared with the same three seeds of cross
#   entropy, two of which were poor.
# - Hygiene with augmentation does not hold up with more data: [below](ablations-scaling), at 8,000 faces, it is
#   *above* cross entropy, in both of two seeds.

# %% tags=["hide-output"]
table = targets.assign(low=100 * targets["low"], high=100 * targets["high"])
table = table.assign(difference=100 * table["value"], MSE_p=100 * table["mean"]).sort_values(
    "difference"
)
columns = ["MSE_p", "difference", "low", "high", "p", "holm", "cost", "seeds"]
table.set_index("label")[columns].round(2)

# %% [markdown]
# (ablations-weight)=
# ## A teacher's weight above one
#
# *Should a student be told the opposite of its own outcomes?* Its target is $\xi t + (1 - \xi) y$, where $t$ is what
# a teacher says of the face. Under label noise {cite}`das2023` find $\xi > 1$ best: the outcome is then subtracted
# from what a teacher has memorised of it. Cross entropy is linear in its target and has a value outside [0, 1], too.
#
# **Not here: half a teacher is better than two in all 16 trainings, and than one and a half in 15**, with teachers that
# saw the face and with teachers that did not: on photographs (heads on pretrained features, three seeds) and on drawn
# faces (networks from random weights, five). On photographs, with teachers that did not see the face, one and a half is
# told worse than one, and two worse than no teacher at all; whether half of one helps, three seeds do not show. All
# this is what one expects of a teacher that did not see the face: it errs independently of the outcome, so that the
# target is off by $\xi^2 \mathrm{MSE}_p(t) + (1 - \xi)^2\,\mathrm{mean}\,p(1 - p)$ in the mean square, which is least
# at a $\xi$ below 1, whatever the noise. A teacher that saw the face could leave more to subtract; those here were
# stopped early.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Difference in MSE_p on photographs against the weight given to seen and to unseen rows, with intervals over seeds, less the setting without them."}}
weight = study.read_study(kept, "weight", data="utkface")
teachers = {
    "unseen": "ξ: weight of teachers\nthat did not see the face",
    "seen": "ξ: of one that did",
}
grid = settings_figure(weight, "unseen=0", teachers)

# %% [markdown]
# The same from random weights, on drawn faces, five seeds: noisier, and of the same shape.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Difference in MSE_p on drawn faces against the weight given to seen and to unseen rows, with intervals over seeds, less the setting without them."}}
drawn = study.read_study(kept, "weight", profile="quick")
grid = settings_figure(drawn, "unseen=0", teachers)

# %% [markdown]
# ## CaPE with ensembles
#
# *In which order should one calibrate, average and fine-tune?* "How to combine them effectively is an interesting
# future research direction" (Section 6).
#
# **The order is not what matters; averaging is.** Every row that averages three networks is below every row of one.
# Fine-tuning the members with CaPE lowers the ensemble, the one interval of six that leaves 0 out, and none after
# Holm's correction; a logistic map of each member or of their average, before or after CaPE, changes nothing that three
# seeds could show.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of ways to combine averaging, CaPE and Platt scaling, less the deep ensemble: rows of three networks near 0, rows of one network above."}}
ensembles = study.compare(study.read_study(kept, "ensembles"), base="ensemble")
ax = forest(ensembles.sort_values("value"), xlabel="MSE$_p$ less that of the deep ensemble (× 100)")

# %% [markdown]
# ## When to stop
#
# *When should cross entropy be stopped?* The paper keeps the epoch with the lowest validation cross entropy.
# Refinement {cite}`berta2025` looks at the cross entropy after a calibrator, and calibrates afterwards. Every rule
# chooses among the epochs of the same training.
#
# **It matters that one stops, not by which rule, and less so if one calibrates.** No rule is told from the paper's.
# Without stopping the error is three times as large. A map on validation data takes the memorised network from there to
# as low as it takes an early-stopped one; CaPE from the same weights hardly moves it (the network of {doc}`method` that
# forgets has a higher rate and calibration epochs alone).

# %% tags=["hide-input"] mystnb={"image": {"alt": "MSE_p of the network that each stopping rule keeps, as it is, after Platt scaling and after CaPE, a mark a seed."}}
names_of = {"kept": "as kept", "platt": "then Platt, two logits", "cape": "then CaPE (bin)"}
stopping = study.read_study(kept, "stopping").replace({"part": names_of})
ax = sns.stripplot(
    stopping, x=100 * stopping["mse_p"], y="label", hue="part", dodge=True, jitter=False, size=6
)
ax.set(xscale="log", xlabel=f"{MSE}, a mark a seed", ylabel="Epoch that is kept")
plain_ticks(ax.xaxis, (2, 3, 4, 6, 8, 12))
sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=3, title=None)

# %% [markdown]
# (ablations-reversal)=
# ## Which epoch to keep for what comes after
#
# *Should one look at validation data before or after post-processing?* What is averaged or calibrated afterwards may
# want another epoch than the bare network: {cite}`ranjan2024` find that it wants a later one, most of all where
# labels are noisy, and call it post-hoc reversal. Here five networks are trained to the last epoch, and judged after
# each: one network, the average of its weights, the ensemble of either. "One network" here is the bare weights of the
# averaged row's training, whose learning rate follows the average's validation cross entropy; it is not the row of
# early stopping.
#
# **For averaged weights it does matter, but not because of the calibrator.** At the epoch that suits the bare network
# their average is too young: in every training that is stored it has a higher error there than at its own best epoch,
# which is later, before the map and after. So one judges what one will use. Whether its cross entropy is taken before
# or after the map is another matter: once all is calibrated, the two rules hardly differ on photographs, and on drawn
# faces either may win.


# %% tags=["hide-input"] mystnb={"image": {"alt": "Errors of averages and of single networks by epoch in the study of reversal, by data and number of networks."}}
def where(table):
    """The kind of faces and the scenario of each line."""
    faces = table["data"].eq("utkface").map({True: "photographs, ", False: "drawn faces, "})
    return faces + table["scenario"].str.capitalize()


reversal = study.read_study(kept, "reversal")
by_epoch = reversal[reversal["part"].str.startswith("epoch")].rename(
    columns={"label": "Predictions", "part": "Judged"}
)
by_epoch = by_epoch.replace(
    {"Judged": {"epoch": "as they are", "epoch, platt": "after Platt scaling"}}
)
by_epoch = by_epoch.assign(mse=100 * by_epoch["mse_p"], on=where(by_epoch))
drawn = {"x": "x", "y": "mse", "hue": "Predictions", "style": "Judged", "col": "on"}
look = {"errorbar": None, "palette": "colorblind", "col_wrap": 2, "height": 2.6, "aspect": 1.3}
apart = {"sharex": False, "sharey": False}
grid = sns.relplot(by_epoch, kind="line", **drawn, **look, facet_kws=apart)
grid.set_titles("{col_name}").set_axis_labels("Epoch", MSE)
sns.move_legend(grid, "lower center", bbox_to_anchor=(0.45, 1), ncols=4, title="")

# %% [markdown]
# What each rule gains over the plain one, after Platt scaling: to keep the epoch with the lowest validation cross
# entropy of one bare network, whatever is made of it afterwards. Hollow marks are single seeds.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot: MSE_p of averages whose epoch is kept by other rules, less the epoch that one network keeps, with intervals over seeds."}}
kept_epochs = reversal[reversal["part"] == "kept, platt"]
gains = [
    study.compare(of, base=f"{kind}, val CE of one, platt").assign(kind=kind, data=data)
    for (kind, data), of in kept_epochs.groupby(["label", "data"], sort=False)
]
gains = pd.concat(gains)
gains["rule"] = gains["row"].str.removesuffix(", platt").str.split(", ").str[1]
gains["where"] = gains["kind"] + ": " + where(gains)
ax = forest(gains, "where", "rule", xlabel="MSE$_p$ less that by one network's val CE (× 100)")

# %% [markdown]
# (ablations-starts)=
# ## From which network it starts
#
# *Would calibration epochs help another network than the one that the tables start from?* Three trainings of cross
# entropy and one of averaged weights are each fine-tuned at two rates, with calibration epochs and without: drawn
# faces, five seeds, and photographs, three.
#
# **What fine-tuning does for cross entropy it does with or without calibration epochs; averaged weights need neither.**
# On drawn faces, over the three trainings of a seed, CaPE and its control each take about a tenth off the error, and
# the two are not told apart. Of averaged weights validation keeps the start in nine of ten seeds; in Linear they are
# below what CaPE makes of cross entropy.
#
# On photographs there is hardly anything to take: neither CaPE nor its control is told to take anything off, and CaPE
# less the control is within 0.02. In twelve of the eighteen fine-tunings of cross entropy with calibration epochs
# validation keeps the start, and of averaged weights in all six, which in Discrete are told below what CaPE makes of
# cross entropy.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of CaPE less its control from each of three networks of cross entropy and from averaged weights, in two scenarios, on drawn faces and on photographs: every interval holds 0, those on photographs are narrow, and from averaged weights they are points at 0."}}
starts = study.read_study(kept, "starts")
gaps = [
    study.compare(own, f"ce_finetuned, {part}").assign(data=data)
    for (data, part), own in starts.groupby(["data", "part"], sort=False)
]
gaps = pd.concat(gaps).query("label == 'CaPE (bin)'")
label = "MSE$_p$ of CaPE (bin) less that of its control (× 100)"
ax = forest(gaps.assign(on=where(gaps)), "part", "on", xlabel=label)

# %% [markdown]
# (ablations-steps)=
# ## What a calibration epoch changes
#
# *Does it turn the network, or only rescale what it says?* In the logistic model a calibration step cannot turn
# the estimate at all, which is proved in {doc}`theory`; a network could. Each step here is two epochs at a rate of
# 0.01 from the same early-stopped network, all of them towards outcomes or all towards $p_\text{emp}$, and we ask how
# much of what it does to the logits of test faces is a function of the logit before: all that Platt scaling or
# isotonic regression could have done without a network.
#
# **Most of it.** On drawn faces three quarters of the mean squared change are a function of the old logit after epochs
# towards 15 bins, and well under half after epochs towards outcomes: more in each of five seeds. With 200 bins, five
# faces in each, the targets are nearly outcomes, and so is the step in Discrete. What no function of the logit can
# lower, the grouping error, is in Linear lowered by averaged weights, by epochs towards outcomes and by the finest
# bins; 15 bins and the kernel leave it where it was. In Discrete the finer bins lower it as well, and averaged weights
# do not show it.
#
# **On photographs, of which there are sixteen times as many, still more.** Of what calibration epochs change at least
# two thirds are a function of the old logit, whatever the seed and kind, and finer bins turn no more than coarse ones:
# in 200 there are 83 faces each. Epochs towards outcomes have less than half, and averaged weights hardly any: their
# change is another one. No calibration epoch moves the grouping error; averaged weights lower it, told in Discrete.
# What they gain is of the kind that no calibration, before or after, can reach.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Share of what a step changes in the logits that is a function of the old logit, for epochs towards outcomes and towards empirical probabilities, a mark a seed and a bar for their mean."}}
steps = study.read_study(kept, "steps").dropna(subset="share")
steps = steps.assign(on=where(steps)).sort_values("data", kind="stable")
order = sorted(steps["label"].unique(), key=lambda label: label.startswith("averaged"))
look = {"x": "share", "y": "label", "hue": "on", "order": order}
ax = sns.stripplot(steps, **look, dodge=True, jitter=False, size=5, alpha=0.6)
bars = {"linestyle": "none", "marker": "|", "markersize": 12, "errorbar": None}
sns.pointplot(steps, **look, dodge=0.6, **bars, legend=False, ax=ax)
ax.set(xlim=(0, 1), xlabel="Share of the step that is a function of the old logit")
ax.set_ylabel("Two epochs towards (last: another training)")
sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=2, title=None)

# %% [markdown]
# ## More than two outcomes
#
# *What if there are more than two?* This is our extension; the paper names it as future work. A face of
# probability $\psi$ gets two independent draws, and the outcome is how many of them succeed: three outcomes of
# probabilities $(1 - \psi)^2$, $2\psi(1 - \psi)$ and $\psi^2$. $p_\text{emp}$ can be taken bin by bin, one
# outcome against the rest and scaled to sum to 1, or in cells of the simplex; with two outcomes both are the
# paper's. Metrics are summed over the outcomes.
#
# **CaPE carries over, but three seeds do not show that it gains anything**: both ways have a lower mean than the
# same fine-tuning without calibration epochs, and neither interval leaves 0 out.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot with three outcomes: MSE_p of each row less that of early stopping, with intervals over seeds."}}
several = study.compare(study.read_study(kept, "several"), base="ce")
ax = forest(several, xlabel="MSE$_p$ less that of CE early-stop (× 100), three outcomes")

# %% [markdown]
# (ablations-scaling)=
# ## How it scales
#
# *From how much data on does the choice of method no longer matter?*
#
# **Two seeds draw a picture, not a finding**: what there is to gain shrinks as faces are added. At 500 faces resampled
# labels and the ensemble take several points off the error of cross entropy, at 8,000 half a point. There CaPE, Platt
# scaling and cross entropy lie together, and augmentation with averaging has moved above them.

# %% tags=["hide-input"] mystnb={"image": {"alt": "MSE_p against the number of training faces, a line a method: all fall, and draw together as faces are added."}}
scaling = study.read_study(kept, "scaling")
look = {"hue": "label", "style": "label", "markers": True, "dashes": False}
bars = {"errorbar": ("pi", 100), "err_style": "bars"}
ax = sns.lineplot(scaling, x="n", y=100 * scaling["mse_p"], **look, **bars)
ax.set(xscale="log", yscale="log", xlabel="Training images", ylabel=MSE)
plain_ticks(ax.xaxis, sorted(scaling["n"].unique()))
plain_ticks(ax.yaxis, (0.5, 1, 2, 4, 8))
sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1), title=None)

# %% [markdown]
# (ablations-trained)=
# ## Trained for this page
#
# The cell trains the studies that the parameter `studies` names, by default the quick ones, and adds their rows to
# the folder `results_dir`; `stored` is the same row of the same seed in the tables above, where it has one. Another
# processor rounds otherwise, and a small network's luck hangs on the last digit.

# %%
how = dict(profile=profile, seed=seed, data_dir=data_dir, device=device, retrain=retrain)
trained = {
    name: study.run_study(name, scenario, fits_dir=results_dir / "fits", **how) for name in names
}

# %% tags=["remove-cell"]
written = [study.write_study(table, results_dir, device) for table in trained.values()]
beside = [study.beside(table, study.read_study(kept, name)) for name, table in trained.items()]

# %% tags=["hide-output"]
pd.concat(beside) if beside else None
