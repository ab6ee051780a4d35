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
# CaPE {cite}`liu2022deep` is a schedule of targets. Section 5, Appendix H and Appendix M vary it a little;
# this chapter varies it more, and asks what else one could train on. Each section has one question, one
# figure or table, and one sentence that is made from the numbers.
#
# 1. Is it counterproductive to calibrate from the beginning?
# 2. How much do hyperparameters matter, of CaPE and of its rivals?
# 3. Is a weighted sum of the two losses as good as alternating epochs?
# 4. Which targets are better than outcomes, at what cost?
# 5. In which order should one calibrate, average and fine-tune an ensemble?
# 6. When should cross entropy be stopped?
# 7. What if there are more than two outcomes?
# 8. At which amount of data does each method stop to matter?
#
# A comparison is worth what its seeds are worth. Every seed here draws its own faces, outcomes, weights
# and order, and every interval is Student's, over the differences that seeds have: with three of them it
# is wide, as it should be. In the figures blue is lower by its interval, red higher, grey not told apart (an
# interval that reaches the edge of its panel goes on), black one seed. The tables are stored in `results/ablations`; a few studies, named in
# `studies`, are trained when the page is made. `python -m probnb.chapters.ablations NAME` makes any of them
# again, and with `--data-dir` and `--profile cpu` on the photographs of UTKFace.

# %% tags=["parameters"]
studies = None  # what to train here, such as "targets, weighted"; None is a few quick ones
scenario = "linear"  # linear, sigmoid, centered, skewed or discrete
data_dir = None  # UTKFace: its .tar.gz or folder; None draws faces
profile = None  # smoke, quick, cpu or paper; None is quick
seed = 0
device = "auto"  # auto, cpu, cuda or mps
results_dir = None  # finished work; None is the folder "runs" of the project
retrain = False  # train again what other code has trained

# %% tags=["hide-input"]
from probnb.notebook import check_parameters, default_profile, find_path, results_path

check_parameters(globals(), "studies scenario data_dir profile seed device results_dir retrain")
from probnb.chapters.ablations import studies as questions
from probnb.experiment.profiles import PROFILES
from probnb.scenarios import SCENARIOS
from probnb.validation import check_choice, check_integer

names = questions.check_studies(questions.PAGE if studies is None else studies)
check_choice(scenario, SCENARIOS, "scenario")
profile = check_choice(default_profile(profile), PROFILES, "profile")
check_choice(device, ("auto", "cpu", "cuda", "mps"), "device")
check_choice(retrain, (True, False), "retrain")
check_integer(seed, "seed", minimum=0)
data_dir = data_dir and find_path(data_dir, "data_dir")
kept = results_path().parent / "results"
results_dir = results_path(results_dir)

# %%
from probnb.chapters.ablations.page import run_page

page = run_page(
    names,
    [kept, results_dir],
    scenario=scenario,
    profile=profile,
    seed=seed,
    data_dir=data_dir,
    fits_dir=results_dir / "fits",
    device=device,
    retrain=retrain,
)

# %% tags=["hide-input"]
from IPython.display import Markdown

from probnb.chapters.ablations import figures, verdicts, words
from probnb.plots.style import use_style

use_style()
Markdown(page.about())

# %% [markdown]
# ## From the beginning
#
# CaPE starts from an early-stopped network because p_emp "requires a reasonable estimation" of the
# probabilities; Appendix M trains with calibration epochs from random weights instead, and Table 12 finds that
# worse in all five scenarios. Beside it ours (± is the standard deviation over seeds; the paper gives none, and
# its row for CE is that of Table 1):

# %% tags=["hide-input"]
table = page.study("beginning")
display(Markdown(words.say_data(table)))
words.beginning_table(table)

# %% tags=["hide-input"]
axes = figures.difference_figure(
    table, "ce", ("beginning_bin", "beginning_kernel", "cape_bin", "cape_kernel")
)

# %% tags=["hide-input"]
Markdown(words.say_beginning(table))

# %% tags=["hide-input"]
said = words.also(page.on_drawn("beginning"), words.say_beginning)
Markdown(said) if said else None

# %% tags=["hide-input"]
Markdown(words.say_printed())

# %% [markdown]
# The reason given is that "the model predictions are essentially random" at first. Each panel shows p_emp of
# the training faces (15 bins) against their true probability, for one network before its first step and for the
# same one early-stopped:

# %% tags=["hide-input"]
first = page.first_targets()
axes = figures.first_targets_figure(first)

# %% tags=["hide-input"]
from probnb.chapters.ablations.start import spread_of_targets

Markdown(words.say_spread(spread_of_targets(first)))

# %% [markdown]
# ## Hyperparameters
#
# Figure 13 shows the strengths of focal loss, entropy regularisation and MMCE; its axes have no numbers that
# could be read off, so that what stands beside ours is Table 1, where each has the strength chosen for it.
# Differences from cross entropy, seed by seed; the number beside its name is its own MSE_p × 100.

# %% tags=["hide-input"]
table = page.study("losses")
axes = figures.strengths_figures(table)
Markdown(words.say_data(table))

# %% tags=["hide-input"]
Markdown(words.say_losses(table))

# %% tags=["hide-input"]
said = words.also(page.on_drawn("losses"), words.say_losses)
Markdown(said) if said else None

# %% [markdown]
# The same for CaPE, of which the paper shows none. All fine-tunings start from the same early-stopped network; the
# dashed line is the same fine-tuning without calibration epochs, the square the value that other chapters use.

# %% tags=["hide-input"]
table = page.study("cape")
if len(table):
    axes = figures.settings_figure(
        table, ("m", "phase", "B", "rate", "r", "sigma", "length"), "ce_finetuned"
    )
Markdown(words.say_data(table))

# %% tags=["hide-input"]
Markdown(words.say_settings(table))

# %% [markdown]
# ## The weighted sum
#
# "A variant of CaPE can be implemented using a weighted sum" (Section 5). Cross entropy is linear in its
# target, so that the sum is cross entropy on $(y + \lambda p_\text{emp})/(1 + \lambda)$ in every epoch.

# %% tags=["hide-input"]
table = page.study("weighted")
if len(table):
    axes = figures.settings_figure(table, ("lambda",), "cape_bin")
Markdown(words.say_data(table))

# %% tags=["hide-input"]
Markdown(words.say_weighted(table))

# %% [markdown]
# ## Better targets
#
# What keeps a network from memorising outcomes is to give it something else to fit. *Cross-fitted* targets are
# what networks that did not see a face say of it: the training faces are cut in three, twice, and each face is
# taught by the two networks that had it left out; their predictions as they are, after Platt scaling on
# validation data, or half and half with the outcome. A *distilled ensemble* teaches what the mean of its
# members says; they have seen the face, so that what they memorised of its outcome is taught as well. *Mean of
# own predictions* is self-distillation, from the early-stopped network.
#
# Beside them stands plain hygiene: a rate that falls to 0 along a cosine, an exponential average of the
# weights, and training faces that are mirrored, moved and lit at random.
#
# Cost counts everything that a row rests on (teachers, members, candidates of its grid) in images seen,
# and a training of cross entropy up to its kept epoch and the patience after it is 1. The mark to reach is half the way from
# CE early-stop to resampled labels with one network, no truth, and at most six trainings.

# %% tags=["hide-input"]
table = page.study("targets")
if len(table):
    axes = figures.targets_figure(table)
Markdown(words.say_data(table))

# %% tags=["hide-input"]
verdicts.cost_table(table) if len(table) else None

# %% tags=["hide-input"]
Markdown(verdicts.say_targets(table))

# %% [markdown]
# And it should be no worse than CaPE anywhere:

# %% tags=["hide-input"]
table = page.study("mark")
Markdown(words.also(table, verdicts.say_mark) or words.NOTHING)

# %% tags=["hide-input"]
said = words.also(page.on_drawn("mark"), verdicts.say_mark)
Markdown(said) if said else None

# %% [markdown]
# ## CaPE with ensembles
#
# "How to combine them effectively is an interesting future research direction" (Section 6). Members may be
# fine-tuned by CaPE and averaged; calibrated and averaged; or averaged and calibrated.

# %% tags=["hide-input"]
table = page.study("ensembles")
if len(table):
    axes = figures.difference_figure(table, "ensemble")
Markdown(words.say_data(table))

# %% tags=["hide-input"]
Markdown(verdicts.say_ensembles(table))

# %% [markdown]
# ## When to stop
#
# The paper keeps the epoch with the lowest validation cross entropy. Refinement {cite}`berta2025` looks at the
# cross entropy after a calibrator instead, and calibrates afterwards. Every rule chooses among the epochs of
# the same training.

# %% tags=["hide-input"]
table = page.study("stopping")
if len(table):
    ax = figures.stopping_figure(table)
Markdown(words.say_data(table))

# %% tags=["hide-input"]
Markdown(verdicts.say_stopping(table))

# %% [markdown]
# ## More than two outcomes
#
# *This section is our extension; the paper names it as future work.* A face of probability $\psi$ gets two
# independent draws, and the outcome is how many of them succeed: three outcomes of probabilities
# $(1 - \psi)^2$, $2\psi(1 - \psi)$ and $\psi^2$. CaPE's empirical probability can be taken bin by bin, one
# outcome against the rest and scaled to sum to 1, or in cells of the simplex. The metrics are those of two
# outcomes, summed over the outcomes (`probnb.metrics.several`).

# %% tags=["hide-input"]
table = page.study("several")
axes = figures.difference_figure(table, "ce")
Markdown(words.say_data(table))

# %% tags=["hide-input"]
Markdown(verdicts.say_several(table))

# %% [markdown]
# ## How it scales

# %% tags=["hide-input"]
table = page.study("scaling")
if len(table):
    ax = figures.size_figure(table)
Markdown(words.say_data(table))

# %% tags=["hide-input"]
Markdown(verdicts.say_scaling(table))
