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
# Will this person fall ill? Their face shows their age, the age sets a risk $p = \psi(\text{age})$,
# and chance decides the outcome $y \sim \text{Bernoulli}(p)$. A network sees faces and outcomes,
# never risks. Because we made the risks, we can do what nobody can on real data: compare each
# prediction $\hat p$ with the probability $p$ that it is meant to estimate.
#
# This chapter is Section 7.1 of {cite}`liu2022deep`: its Table 1, the appendix tables, and the figures on
# overfitting, learning curves and reliability. It answers three questions.
#
# 1. What happens to predicted probabilities when a network is trained for too long?
# 2. Which methods do better than stopping early?
# 3. How much of CaPE's gain is due to its calibration epochs, and how much to the additional
#    training at a low learning rate that comes with them?
#
# Everything runs on faces that are drawn by a program, in minutes on two cores. With one more
# parameter, `data_dir`, the same notebook runs on the photographs of UTKFace.

# %% tags=["parameters"]
scenario = "linear"  # linear, sigmoid, centered, skewed or discrete
data_dir = None  # UTKFace: its .tar.gz or folder; None draws faces
profile = "quick"  # smoke, quick, cpu or paper
seed = 0
methods = None  # None for all rows, or names such as "ce, platt, cape_bin"
device = "auto"  # auto, cpu, cuda or mps
results_dir = None  # finished work; None is the folder "runs" of the project
replicates = 1000  # bootstrap replicates
# Overrides of the profile; None leaves its value.
images = None
size = None
width = None
epochs = None
patience = None
batch_size = None
learning_rate = None
finetune_epochs = None
finetune_learning_rates = None
every = None
phase = None
bins = None
neighbours = None
sigmas = None
gammas = None
entropy_betas = None
mmce_betas = None
adversarial = None

# %% tags=["hide-input"]
from probnb.notebook import check_parameters, check_path, results_path

check_parameters(
    globals(),
    """scenario data_dir profile seed methods device results_dir replicates images size width
    epochs patience batch_size learning_rate finetune_epochs finetune_learning_rates every phase bins
    neighbours sigmas gammas entropy_betas mmce_betas adversarial""",
)
from probnb.experiment.profiles import PROFILE_FIELDS, PROFILES, make_profile
from probnb.methods import check_methods
from probnb.scenarios import SCENARIOS
from probnb.validation import check_choice, check_integer

check_choice(scenario, SCENARIOS, "scenario")
check_choice(device, ("auto", "cpu", "cuda", "mps"), "device")
check_integer(seed, "seed", minimum=0)
check_integer(replicates, "replicates", minimum=2)
methods = check_methods(methods)
settings = make_profile(profile, **{k: v for k, v in globals().items() if k in PROFILE_FIELDS})
data_dir = check_path(data_dir, "data_dir")
results = results_path(results_dir)

# %% tags=["hide-input"]
import numpy as np
from IPython.display import Markdown

from probnb.chapters.synthetic.figures import (
    labelled,
    learning_curves,
    overfitting_figure,
    scenario_figure,
)
from probnb.data.faces import load_faces
from probnb.experiment import plan as jobs
from probnb.experiment import results as rows
from probnb.experiment import run as experiment
from probnb.experiment import summary
from probnb.metrics.resampling import bootstrap
from probnb.plots.faces import face_grid
from probnb.plots.reliability import reliability_grid
from probnb.plots.style import use_style

use_style()

# %% [markdown]
# ## The task

# %%
splits = load_faces(scenario, data_dir, size=settings.size, n=settings.images, seed=seed)
train, val, test = splits.train, splits.val, splits.test
Markdown(
    f"The data, {splits.source.split()[0]}: {len(train):,} faces of {settings.size} × {settings.size} "
    f"pixels to train on, {len(val):,} to choose and calibrate with, {len(test):,} to test on."
)

# %% tags=["hide-input"]
if data_dir is None:  # drawn faces only: photographs of people stay out of the report
    order = np.argsort(test.groups.numpy())[:: max(1, len(test) // 24)][:24]
    axes = face_grid(test.inputs.numpy()[order], ages=test.groups.numpy()[order], columns=12)

# %% [markdown]
# Faces of the test set by age (years). The cues are noisy, as in life: hair greys and thins, faces
# lengthen and wrinkle, each at its own pace, while pose, light, skin tone and background say
# nothing about age.

# %% tags=["hide-input"]
axes = scenario_figure(scenario, train.groups, train.probabilities, train.outcomes)

# %% [markdown]
# ## Training
#
# Every method is *a schedule of soft targets* and *a loss*, and goes through the same loop
# (`probnb.training.loop.fit`). The early-stopped network is the one with the lowest cross entropy on
# validation data; the strength of each regulariser, and the learning rate and bins of CaPE, are
# chosen by the same criterion from small grids. First, cross entropy on the observed outcomes, and
# the best case: outcomes drawn afresh in each epoch, as if there were no end of data.

# %%
plan = jobs.plan(methods, settings, seed)
everything = [job for candidates in plan.values() for job in candidates]
scratch = [job for job in everything if job.start is None]
long = [job for job in scratch if job.recipe.patience is None]
options = dict(directory=results / "fits", device=device)
fits = experiment.run_jobs(long, splits, **options)

# %% [markdown]
# Then the other networks that start from random weights: regularised losses and the members of
# the ensemble.

# %%
fits |= experiment.run_jobs(scratch, splits, **options)

# %% [markdown]
# Last, what starts from the early-stopped network: CaPE, and its control, *CE fine-tuned*, which
# does the same without calibration epochs.

# %%
fits |= experiment.run_jobs(everything, splits, **options)
outcome = rows.collect(plan, fits, splits)
data_name = "drawn" if data_dir is None else "utkface"
directory = rows.run_directory(
    results / "synthetic", scenario, data_name, profile, settings, PROFILES[profile], seed
)
rows.write_rows(directory, outcome)

y, p = outcome.predictions["y"], outcome.predictions["p"]
predictions = outcome.predictions[methods]

# %% [markdown]
# ## Overfitting, and what mitigates it
#
# Each point is a test face: its prediction $\hat p$ across, its true probability $p$ up. Black
# marks are the reliability diagram, which needs no truth: the mean outcome of faces with similar
# predictions. A perfect model puts everything on the diagonal. In *Discrete*, where $p$ has five
# values, histograms of the predictions show the same.

# %% tags=["hide-input"]
columns = [m for m in ("resampled", "ce_overfit", "ce", "cape_bin") if m in methods]
axes = overfitting_figure(y, p, predictions[columns], discrete=scenario == "discrete")

# %% [markdown]
# ## Learning curves
#
# The dotted line marks the early-stopped network. Cross entropy goes on to fall on the training
# data while everything that matters gets worse. The fine-tunings start at the line.

# %% tags=["hide-input"]
chosen = outcome.chosen[outcome.chosen["chosen"]].drop_duplicates("method").set_index("method")
branches = [m for m in ("ce_finetuned", "cape_bin", "cape_kernel") if m in methods]
start = chosen.loc["ce", "best_epoch"]
axes = learning_curves(outcome.epochs, start, chosen.loc[branches, "fit"].to_dict())

# %% [markdown]
# ## The table
#
# Times 100; ± is one standard deviation over bootstrap resamples of the test rows, which is also
# what the paper's ± is. The paper's numbers are those of its appendix, for UTKFace at 200 × 200
# pixels with a full ResNet-18; an asterisk marks a misprint or a suspect value (see
# {doc}`errata`).

# %% tags=["hide-input"]
result = bootstrap(y, predictions, p, replicates=replicates, seed=seed)
table = summary.comparison_table(result, scenario)
table[["MSE_p", "KL_p", "Brier"]]

# %% tags=["hide-input"]
table[["ECE", "MCE", "KS"]]

# %% tags=["hide-input"]
table[["AUC", "NLL"]]

# %% [markdown]
# The values that validation cross entropy chose:

# %% tags=["hide-input"]
outcome.chosen.query(
    "method not in ('ce_overfit', 'temperature', 'platt', 'dirichlet', 'beta', 'mixnmatch')"
)

# %% [markdown]
# ## Reliability of every method

# %% tags=["hide-input"]
axes = reliability_grid(y, labelled(predictions), p=p)

# %% [markdown]
# ## What these numbers say

# %% tags=["hide-input"]
Markdown(summary.conclusions(result, scenario))
