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
# # Synthetic data: when the probability is known
#
# What happens to predicted probabilities when a network is trained for too long, and what does
# better than stopping early? A face shows an age, the age sets a risk $p = \psi(\text{age})$, and
# chance decides the outcome $y \sim \text{Bernoulli}(p)$: a network sees faces and outcomes, never
# risks, and because we made the risks we can do what nobody can on real data and compare each
# prediction $\hat p$ with the probability $p$ that it is meant to estimate. Trained for too long the
# predictions move to 0 and 1 and leave the truth, as the figure shows. The table at the end has what each
# method does in this run beside what it does over stored seeds, which alone can say that it does better.

# %% tags=["remove-cell"]
# Overrides of the profile: a value, or several to try; None leaves what the profile has.
images = size = width = stem = epochs = patience = plateau_patience = batch_size = None
learning_rate = finetune_epochs = finetune_schedule = members = adversarial = None
cape = candidates = None  # cape: released or printed
backbone = layers = tune = dropout = weight_decay = None
finetune_learning_rate = every = phase = mix = bins = neighbours = sigma = None
focal = entropy = mmce = smoothing = share = decay = None

# %% tags=["parameters"]
scenario = "linear"  # linear, sigmoid, centered, skewed or discrete
data_dir = None  # UTKFace: its .tar.gz or folder; None draws faces
profile = None  # smoke, quick, cpu, features, finetune or paper; None is quick
seed = 0
methods = None  # None for the paper's rows, or names such as "ce, platt, cape_bin"
mirror = False  # mirror half of the training images; the released recipe does not
device = "auto"  # auto, cpu, cuda or mps
devices = 1  # GPUs to use; on a CPU, processes
results_dir = None  # finished work; None is the folder "runs" of the project
replicates = 1000  # bootstrap replicates
retrain = False  # train again what other code has trained

# %% tags=["remove-cell"]
from probnb.experiment import profiles
from probnb_book.notebook import check_parameters, check_run, profile_of, results_path

check_parameters(
    globals(),
    f"""scenario data_dir profile seed methods mirror device devices results_dir replicates retrain
    {" ".join(profiles.PROFILE_FIELDS)}""",
)
from probnb.methods import METHODS, check_methods
from probnb.validation import check_choice
from probnb_book.scenarios import SCENARIOS, probability

check_choice(scenario, SCENARIOS, "scenario")
check_run(globals())
settings = profile_of(profile, globals())
methods = check_methods(methods, features=settings.frozen)

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from probnb.plots import COLOURS, face_grid, plain_ticks, reliability_grid, use_style
from probnb.training.batches import device_type, precision_of
from probnb_book import evidence

use_style()

# %% [markdown]
# The experiment is this cell. Every row of the table is a schedule of soft targets, a loss and a
# start (`probnb.methods`); `compare` lists the trainings that the rows need, does each one once and
# keeps it, lets validation cross entropy choose, and predicts the test faces.

# %%
from probnb import compare
from probnb.pretrained.features import features_of
from probnb_book.data.faces import load_faces

faces = load_faces(
    scenario, data_dir, size=settings.size, n=settings.images, seed=seed, mirror=mirror
)
splits = features_of(faces, settings, results_dir, device_type(device), mirror)  # or the faces
how = {"device": device, "devices": devices, "retrain": retrain}
compared = compare(splits, methods, settings, seed, results_dir / "fits", **how)
outcome, table = compared.results, compared.predictions
y, p, predictions = table["y"], table["p"], table[methods]

# %% tags=["remove-cell"]
from probnb.experiment.results import write_results

run = write_results(
    results_dir / "synthetic",
    outcome,
    task=scenario,
    data="drawn" if data_dir is None else "utkface",
    profile=profile,
    seed=seed,
    settings=settings,
    mirror=mirror,
    source=splits.source,
    device=device_type(device),
    precision=precision_of(device_type(device)),
)

# %% tags=["hide-input"] mystnb={"image": {"alt": "True probability against prediction of test faces for four methods, with reliability diagrams: at the last epoch predictions are spread to 0 and 1, early-stopped ones lie about the diagonal."}}
shown = [m for m in ("resampled", "ce_overfit", "ce", "cape_bin") if m in methods]
labels = {name: METHODS[name].label for name in METHODS}
axes = reliability_grid(y, predictions[shown].rename(columns=labels), p=p)

# %% [markdown]
# Each blue point is a test face: its prediction across, its true probability up. Black marks are the
# reliability diagram, which needs no truth: the mean outcome of faces with similar predictions. A
# perfect model puts everything on the diagonal. (In *Discrete* $p$ has five values, and the points lie
# on five lines.)

# %% tags=["remove-input"]
from IPython.display import Markdown

kept_start = outcome.chosen.query("chosen and kept_start")["method"].unique()
note = (
    "Kept its start: **{}**. No epoch of its fine-tuning had a lower validation cross entropy than "
    "the early-stopped network that it began from, so its predictions, and its panels and lines "
    "below, are those of *CE early-stop*. Where its fine-tuning went all the same is drawn under "
    "*Fine-tuning*."
)
display(*[Markdown(note.format(labels[name])) for name in kept_start])

# %% [markdown]
# This chapter is Section 7.1 of {cite}`liu2022deep` for one scenario at a time. All five scenarios
# and several seeds stand side by side in {doc}`results`, and {doc}`method` shows CaPE itself. The
# faces are drawn by a program, and everything takes minutes on two cores; with one more parameter,
# `data_dir`, the same notebook runs on the photographs of UTKFace {cite}`zhang2017utkface`.

# %% tags=["remove-input"]
ran = pd.Series(
    {
        "data": f"{faces.source.split()[0]}, {settings.size}x{settings.size} pixels",
        "faces": "{:,} to train on, {:,} to choose and calibrate with, {:,} to test on".format(
            *map(len, (faces.train, faces.val, faces.test))
        ),
        "augmentation": "mirror" if mirror else "none",
        "trainings": f"{outcome.epochs['fit'].nunique()}, in all {run.record['epochs']} epochs",
        "processor seconds": "{cpu_seconds:.0f} ({processor}, {precision})".format(**run.record),
        "trained by other code": ", ".join(outcome.foreign) or "none",
    }
)
ran.to_frame().style.hide(axis=1).set_table_attributes('class="sentences"')

# %% [markdown]
# ## The task

# %% tags=["hide-input"] mystnb={"image": {"alt": "Drawn faces of the test set in the order of their ages, each with its age in years."}}
test = faces.test
if data_dir is None:  # drawn faces only: photographs of people stay out of the report
    order = np.argsort(test.groups, kind="stable")  # ages spread evenly over all ranks
    some = order[np.linspace(0, len(order) - 1, min(24, len(order))).astype(int)]
    axes = face_grid(test.inputs[some], ages=test.groups[some], columns=12)

# %% [markdown]
# Faces of the test set by age (years). The cues are noisy, as in life: hair greys and thins, faces lengthen and
# wrinkle, each at its own pace, while pose, light, skin tone and background say nothing about age. Below, $\psi$, the
# probabilities it gives to the training faces, and their outcomes. The five scenarios for an age of $z$ years:
#
# | scenario | $\psi(z)$ |
# |---|---|
# | Linear | $z/100$, at most 1 |
# | Sigmoid | $\sigma(25 (z/100 - 0.29))$ |
# | Centered | $z/300 + 0.35$ |
# | Skewed | $z/250$ |
# | Discrete | 0.1, and 0.2 more beyond each of 20, 40, 60 and 80 |

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three panels: the probability as a function of age, a histogram of the probabilities of training faces, and a histogram of their ages by outcome."}}
train = splits.train
z = np.arange(117)
figure, axes = plt.subplots(1, 3, figsize=(7.4, 2.6), layout="constrained")
axes[0].plot(z, probability(z, scenario), lw=2)
axes[0].set(xlabel="age (years)", ylabel=r"probability $\psi$", ylim=(-0.02, 1.02))
sns.histplot(x=train.probabilities.numpy(), bins=np.linspace(0, 1, 31), ax=axes[1])
axes[1].set(xlabel="probability p", ylabel="faces")
drawn = pd.DataFrame({"age": train.groups, "outcome": train.outcomes.int().numpy()})
stacked = {"multiple": "stack", "bins": np.arange(0, 121, 5), "hue_order": [1, 0]}
sns.histplot(drawn, x="age", hue="outcome", ax=axes[2], **stacked)
_ = axes[2].set(xlabel="age (years)", ylabel="")

# %% [markdown]
# ## Learning curves
#
# The dotted line marks the early-stopped network, the one with the lowest cross entropy on
# validation data. Cross entropy on the training data goes on to fall while everything that matters
# gets worse. From forty epochs on the lines are means over five, as in the paper.

# %%
CURVES = {
    "train_ce": "training cross entropy",
    "val_ce": "validation cross entropy",
    "mse_p": r"test MSE$_p$ $\times$ 100",
    "kl_p": r"test KL$_p$ $\times$ 100",
}
LINES = {"ce": "black", "ce_finetuned": "green", "cape_bin": "blue", "cape_kernel": "vermilion"}
colours = {labels[name]: COLOURS[colour] for name, colour in LINES.items()}
chosen = outcome.chosen[outcome.chosen["chosen"]].drop_duplicates("method").set_index("method")
start = chosen.loc["ce", "best_epoch"]
fits = chosen["fit"].reindex(LINES).dropna()
curves = outcome.epochs.set_index("fit").loc[fits].reset_index()
curves["method"] = curves["fit"].map({fit: labels[name] for name, fit in fits.items()})
curves[["mse_p", "kl_p"]] *= 100
branches = curves.assign(epoch=curves["epoch"] + start * (curves["fit"] != "ce"))
means = branches.groupby("method")[[*CURVES]].rolling(
    5 if settings.epochs >= 40 else 1, min_periods=1, center=True
)
branches[[*CURVES]] = means.mean().droplevel(0)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four learning curves by epoch, training and validation cross entropy and test MSE_p and KL_p, with the fine-tunings that branch off at the early stop."}}
look = {"x": "epoch", "y": "value", "hue": "method", "palette": colours, "col": "score"}
panels = {"col_wrap": 2, "height": 2.6, "aspect": 1.4, "facet_kws": {"sharey": False}}
long = branches.melt(["method", "epoch"], [*CURVES], "score")
facets = sns.relplot(long, kind="line", **look, **panels)
for score, ax in facets.axes_dict.items():
    ce = branches.loc[branches["fit"] == "ce", score].iloc[1:]
    ax.axvline(start, color=COLOURS["grey"], ls=":", lw=1.2)
    ax.set(ylabel=CURVES[score], title="")
    if score != "train_ce" and ce.max() > 3 * ce.min():
        ax.set_yscale("log")  # the overfitted end would flatten what matters
        plain_ticks(ax.yaxis)
sns.move_legend(facets, "lower center", bbox_to_anchor=(0.45, 1), ncols=4, title=None)

# %% [markdown]
# ## Fine-tuning
#
# CaPE starts from the early-stopped network, and so does its control, *CE fine-tuned*, which does
# the same without calibration epochs: only the difference between the two is due to calibration.
# Epoch 0 is the start, which is a candidate itself; a ring is the epoch that validation kept, and
# crosses are calibration epochs.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Validation cross entropy and test MSE_p by epoch after the early stop for CaPE and its control, with calibration epochs as crosses and the kept epoch ringed."}}
tuned = curves[curves["fit"] != "ce"]
best = chosen.loc[fits.index].set_index("fit")["best_epoch"]
tuned = tuned.assign(kept=tuned["epoch"] == tuned["fit"].map(best))
long = tuned.melt(["method", "epoch", "calibration", "kept"], ["val_ce", "mse_p"], "score")
look = {"x": "epoch", "y": "value", "hue": "method", "palette": colours}
if len(tuned):
    facets = sns.relplot(
        long, **look, col="score", kind="line", height=2.9, aspect=1.25, facet_kws={"sharey": False}
    )
    for score, ax in facets.axes_dict.items():
        own = long[long["score"] == score]
        shapes = {"style": "calibration", "markers": {0: "o", 1: "X"}, "s": 60, "legend": False}
        sns.scatterplot(own, **look, **shapes, ax=ax)
        kept = own[own["kept"]]
        ax.plot(kept["epoch"], kept["value"], "o", ms=13, mfc="none", mec="black", mew=1.2)
        ax.set(xlabel="epoch after the early stop", ylabel=CURVES[score], title="")
        ax.set_xticks(range(int(own["epoch"].max()) + 1))
    sns.move_legend(facets, "lower center", bbox_to_anchor=(0.45, 1), ncols=4, title=None)

# %% [markdown]
# The values that validation cross entropy chose, and how many calibration epochs lie behind each kept
# model:

# %%
evidence.chosen_table(outcome.chosen)

# %% [markdown]
# ## The table
#
# Times 100; ± is one standard deviation over bootstrap resamples of the test rows, which is also what the paper's ±
# is. The paper's numbers are those of its appendix, for UTKFace (the paper does not state the size of its images)
# with a full ResNet-18 {cite}`he2016resnet`; an asterisk marks a misprint or a suspect value (see {doc}`errata`). The
# best case, *CE + resampled labels*, has outcomes drawn afresh in each epoch, as if there were no end of data. The
# other rows, of which {doc}`results` has more:
#
# | row | what it is |
# |---|---|
# | CE early-stop, CE overfit | cross entropy, at the epoch of lowest validation cross entropy and at the last |
# | temperature; Platt, two logits | log-odds times one factor {cite}`guo2017calibration`; logistic regression on both logits, as the paper has Platt scaling {cite}`platt1999`, which may change the order of rows; both fitted to validation data |
# | Dirichlet calibration | logistic regression on $\log \hat p$ and $\log(1 - \hat p)$ {cite}`kull2019dirichlet` |
# | Mix-n-match | a weighted mean of the predictions at three temperatures, $T$, 1 and infinite {cite}`zhang2020mixnmatch` |
# | focal loss | $-(1 - \hat p_y)^\beta \log \hat p_y$, where $\hat p_y$ is the probability of what happened {cite}`mukhoti2020focal` |
# | entropy regularisation | cross entropy less $\beta$ times the entropy of the prediction {cite}`pereyra2017entropy` |
# | MMCE | cross entropy plus $\beta$ times a calibration error by kernels {cite}`kumar2018mmce` |
# | deep ensemble | the mean of networks that start from different random weights {cite}`lakshminarayanan2017ensembles` |
# | CE fine-tuned, CaPE | see *Fine-tuning* above, and {doc}`method` |

# %%
from probnb.metrics import bootstrap

result = bootstrap(y, predictions, p, replicates=replicates, seed=seed)

# %%
comparison = evidence.comparison_table(result, scenario)
comparison[["MSE_p", "KL_p"]]

# %% tags=["remove-input"]
comparison[["Brier", "ECE"]]

# %% tags=["remove-input"]
comparison[["MCE", "KS"]]

# %% tags=["remove-input"]
comparison[["AUC", "NLL"]]

# %% [markdown]
# ## Reliability of every method

# %% tags=["hide-input"] mystnb={"image": {"alt": "Reliability diagrams of all methods of this run, a panel each, with the true probability of each test face."}}
axes = reliability_grid(y, predictions.rename(columns=labels), p=p)

# %% [markdown]
# ## What this run shows, and what many show
#
# Differences in $\mathrm{MSE}_p$ (times 100) from *CE early-stop*, and for CaPE from its control. *This run* is one
# training of each row on this machine. Its 95 % interval is over the same resampled test faces and says nothing about
# another seed, and another processor moves a training as far as another seed does. The words are therefore about the
# runs that are stored with the book, of this scenario on photographs: *lower* and *higher* are where their interval
# over seeds leaves out 0.

# %%
from probnb.metrics.differences import compare


def verdicts(result, stored):
    """Differences in MSE_p from early stopping, and of CaPE from its control.

    One training of a row decides nothing, so that the words are about seeds that are stored.
    """
    names, lines = list(result.point.index), []
    pairs = [(name, "ce") for name in names if name != "ce"]
    if "ce_finetuned" in names:
        pairs += [(name, "ce_finetuned") for name in names if name.startswith("cape")]
    for name, base in pairs:
        here = compare([result], name, base, "mse_p").text()
        seeds = evidence.compare(stored, name, base, "mse_p") if len(stored) else None
        word = ""
        if seeds is not None and not np.isnan(seeds.low):
            word = "lower" if seeds.value < 0 else "higher"
            word = word if seeds.resolved else "not told apart"
        told = seeds.text() if seeds else ""
        line = {"row": METHODS[name].label, "less": METHODS[base].label, "this run": here}
        lines.append(line | {"stored seeds": told, "": word})
    return pd.DataFrame(lines)


usual = "features" if settings.frozen else "cpu"
stored = evidence.find(
    [results_path().parent / "results"], "synthetic", task=scenario, profile=usual
)
stored = evidence.kinds(stored)[0] if len(stored) else stored
answers = verdicts(result, stored)
answers.style.hide(axis=0).set_table_attributes('class="sentences"')

# %% [markdown]
# How far another seed moves a training can be seen from the members of this run's deep ensemble, which are
# early-stopped CE trainings that differ in their seed alone (MSE_p times 100; a row of its own where the ensemble was
# not asked for stays empty):

# %%
members = outcome.chosen[outcome.chosen["method"] == "ensemble"].drop_duplicates("fit")
members = members.merge(outcome.epochs, left_on=["fit", "best_epoch"], right_on=["fit", "epoch"])
errors = (100 * members["mse_p"]).describe()
errors[["count", "mean", "std", "min", "max"]].to_frame(0).T.round(2)

# %% [markdown]
# Of two rows that were trained apart, a difference of less than about 2.8 of these standard deviations may be the
# luck of a seed (six, while the deviation itself comes from three trainings). Fine-tunings and calibrators share
# their start with CE early-stop, so that most of that luck cancels.
