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
# This chapter is Section 7.1 of {cite}`liu2022deep` for one scenario at a time: its column of Table 1, its
# table in the appendix, and the figures on overfitting, learning curves and reliability. All five
# scenarios stand side by side in {doc}`results`. It answers three questions.
#
# 1. What happens to predicted probabilities when a network is trained for too long?
# 2. Which methods do better than stopping early?
# 3. How much of CaPE's gain is due to its calibration epochs, and how much to the additional
#    training at a low learning rate that comes with them?
#
# Everything runs on faces that are drawn by a program, in minutes on two cores. With one more
# parameter, `data_dir`, the same notebook runs on the photographs of UTKFace.

# %% tags=["hide-cell"]
# Overrides of the profile: a value, or several to try; None leaves what the profile has.
images = size = width = stem = epochs = patience = plateau_patience = batch_size = None
learning_rate = finetune_epochs = finetune_schedule = members = adversarial = None
cape = candidates = None  # cape: released or printed
finetune_learning_rate = every = phase = mix = bins = neighbours = sigma = None
focal = entropy = mmce = smoothing = share = decay = None

# %% tags=["parameters"]
scenario = "linear"  # linear, sigmoid, centered, skewed or discrete
data_dir = None  # UTKFace: its .tar.gz or folder; None draws faces
profile = None  # smoke, quick, cpu or paper; None is quick
seed = 0
methods = None  # None for the paper's rows, or names such as "ce, platt, cape_bin"
mirror = False  # mirror half of the training images; the released recipe does not
device = "auto"  # auto, cpu, cuda or mps
devices = 1  # GPUs to use; on a CPU, processes
results_dir = None  # finished work; None is the folder "runs" of the project
replicates = 1000  # bootstrap replicates
retrain = False  # train again what other code has trained

# %% tags=["hide-input"]
from probnb.experiment import profiles
from probnb.notebook import check_parameters, default_profile, find_path, results_path

check_parameters(
    globals(),
    f"""scenario data_dir profile seed methods mirror device devices results_dir replicates retrain
    {" ".join(profiles.PROFILE_FIELDS)}""",
)
from probnb.methods import check_methods
from probnb.scenarios import SCENARIOS
from probnb.validation import check_choice, check_integer

check_choice(scenario, SCENARIOS, "scenario")
check_choice(device, ("auto", "cpu", "cuda", "mps"), "device")
check_choice(mirror, (True, False), "mirror")
check_choice(retrain, (True, False), "retrain")
check_integer(seed, "seed", minimum=0)
check_integer(devices, "devices")
check_integer(replicates, "replicates", minimum=2)
methods = check_methods(methods)
profile = default_profile(profile)
settings = profiles.profile_of(profile, globals())
data_dir = data_dir and find_path(data_dir, "data_dir")
results_dir = results_path(results_dir)

# %% [markdown]
# ## The task

# %% tags=["hide-input"]
from IPython.display import Markdown

from probnb.chapters.synthetic import words
from probnb.data.faces import load_faces
from probnb.plots.style import use_style

use_style()
splits = load_faces(
    scenario, data_dir, size=settings.size, n=settings.images, seed=seed, mirror=mirror
)
Markdown(words.task_sentence(splits))

# %% tags=["hide-input"]
from probnb.chapters.synthetic.figures import spread_of_ages
from probnb.plots.faces import face_grid

test = splits.test
if data_dir is None:  # drawn faces only: photographs of people stay out of the report
    some = spread_of_ages(test.groups, 24)
    axes = face_grid(test.inputs[some], ages=test.groups[some], columns=12)

# %% [markdown]
# Faces of the test set by age (years). The cues are noisy, as in life: hair greys and thins, faces
# lengthen and wrinkle, each at its own pace, while pose, light, skin tone and background say
# nothing about age.

# %% tags=["hide-input"]
from probnb.chapters.synthetic.figures import scenario_figure

train = splits.train
axes = scenario_figure(scenario, train.groups, train.probabilities, train.outcomes)

# %% [markdown]
# ## Training
#
# Every method is *a schedule of soft targets* and *a loss*, from *a start*, and goes through the same
# loop (`probnb.training.fit`). The early-stopped network is the one with the lowest cross entropy on
# validation data; the strength of each regulariser, and the learning rate and bins of CaPE, are
# chosen by the same criterion from small grids. The best case has outcomes drawn afresh in each epoch,
# as if there were no end of data. CaPE starts from the early-stopped network, and so does its control,
# *CE fine-tuned*, which does the same without calibration epochs; the start itself is a candidate.

# %%
from probnb.experiment.plan import plan
from probnb.experiment.run import run_jobs

jobs = plan(methods, settings, seed)
fits = run_jobs(jobs, splits, results_dir / "fits", device=device, devices=devices, retrain=retrain)

# %% tags=["hide-input"]
from probnb.experiment.results import collect, on_test, write_results
from probnb.training.batches import device_type, precision_of

outcome = collect(jobs, fits, splits)
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
Markdown(words.record_sentence(run, outcome))

# %% [markdown]
# ## Overfitting, and what mitigates it
#
# Each point is a test face: its prediction $\hat p$ across, its true probability $p$ up. Black
# marks are the reliability diagram, which needs no truth: the mean outcome of faces with similar
# predictions. A perfect model puts everything on the diagonal. In *Discrete*, where $p$ has five
# values, histograms of the predictions show the same.

# %% tags=["hide-input"]
from probnb.chapters.synthetic.figures import overfitting_figure

table = on_test(outcome.predictions)
y, p, predictions = table["y"], table["p"], table[methods]
columns = [m for m in ("resampled", "ce_overfit", "ce", "cape_bin") if m in methods]
axes = overfitting_figure(y, p, predictions[columns], discrete=scenario == "discrete")

# %% [markdown]
# ## Learning curves
#
# From forty epochs on, means over five, as in the paper. The dotted line marks the early-stopped network. Cross
# entropy goes on to fall on the training data while everything that matters gets worse. The
# fine-tunings start at the line.

# %% tags=["hide-input"]
from probnb.chapters.synthetic.figures import learning_curves

axes = learning_curves(outcome, window=5 if settings.epochs >= 40 else 1)

# %% [markdown]
# ## The table
#
# Times 100; ± is one standard deviation over bootstrap resamples of the test rows, which is also
# what the paper's ± is. The paper's numbers are those of its appendix, for UTKFace (it does not state
# the size of its images) with a full ResNet-18; an asterisk marks a misprint or a suspect value (see
# {doc}`errata`).

# %% tags=["hide-input"]
from probnb.experiment import summary
from probnb.metrics import bootstrap

result = bootstrap(y, predictions, p, replicates=replicates, seed=seed)
table = summary.comparison_table(result, scenario)
table[["MSE_p", "KL_p"]]

# %% tags=["hide-input"]
table[["Brier", "ECE"]]

# %% tags=["hide-input"]
table[["MCE", "KS"]]

# %% tags=["hide-input"]
table[["AUC", "NLL"]]

# %% [markdown]
# The values that validation cross entropy chose, and how many calibration epochs lie behind each kept
# model. A kept epoch of 0 is the start:

# %% tags=["hide-input"]
summary.chosen_table(outcome.chosen)

# %% [markdown]
# ## Reliability of every method

# %% tags=["hide-input"]
from probnb.chapters.synthetic.figures import labelled
from probnb.plots.reliability import reliability_grid

axes = reliability_grid(y, labelled(predictions), p=p)

# %% [markdown]
# ## What these numbers say

# %% tags=["hide-input"]
Markdown(words.seed_sentence(outcome))

# %% tags=["hide-input"]
Markdown(summary.conclusions(result, scenario))
