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
# Appendix J of {cite}`liu2022deep` leaves faces: class $c$ of CIFAR-10 gets the probability
# $p = c/10$, and the outcome of an image is drawn from it. That is still a probability that somebody
# made up. The second half of this chapter has none: many people were asked about the same real
# picture, *is this face neutral? is it a cat?*, and the share who say yes measures a probability that
# nobody chose. It asks
#
# 1. whether CaPE's gain in the paper's Table 11 can be found again;
# 2. how that table's $\mathrm{KL}_p$ can be 10 to 14 times its $\mathrm{MSE}_p$;
# 3. how far methods are from the probabilities that people's votes measure, and what other
#    people score;
# 4. whether the Brier score follows that distance on real pictures too.
#
# Without data at hand the pictures are scikit-learn's handwritten digits, and the people are
# simulated. With a folder of data (`-p data_dir ...`) the same notebook runs on CIFAR-10, CIFAR-10H
# {cite}`peterson2019` and FER+ {cite}`barsoum2016`; results of those, with three seeds, are stored with
# the book. Nothing of the pictures or of the votes is, and no face is shown.

# %% tags=["parameters"]
data = "digits"  # digits, cifar10, cifar10h or ferplus
question = None  # rule, judged, cat and so on, neutral, happiness, negative; None is the usual
data_dir = None  # folder with cifar10-jpeg.tar.gz or cifar-10-batches-py, cifar10h, ferplus.npz
inputs = "gradients"  # gradients (a small network) or pixels (a ResNet-18)
profile = None  # smoke, quick, cpu or paper; None is quick
seed = 0
methods = None  # None for the paper's rows, or names such as "ce, platt, cape_bin"
images = None  # training images; None is the profile's number
epochs = None  # of the trainings from random weights; None is the profile's number
device = "auto"  # auto, cpu, cuda or mps
devices = 1  # GPUs to use; on a CPU, processes
results_dir = None  # finished work; None is the folder "runs" of the project
retrain = False  # train again what other code has trained

# %% tags=["hide-input"]
from probnb.notebook import check_parameters, default_profile, find_path, results_path, smoke

check_parameters(
    globals(),
    """data question data_dir inputs profile seed methods images epochs device devices results_dir
    retrain""",
)
from probnb.experiment.profiles import PROFILES
from probnb.validation import check_choice, check_integer

profile = check_choice(default_profile(profile), PROFILES, "profile")
check_choice(device, ("auto", "cpu", "cuda", "mps"), "device")
check_choice(retrain, (True, False), "retrain")
check_integer(seed, "seed", minimum=0)
check_integer(devices, "devices")
data_dir = data_dir and find_path(data_dir, "data_dir")
kept = results_path().parent / "results"
results_dir = results_path(results_dir)

# %% tags=["hide-input"]
from IPython.display import Markdown

from probnb.chapters.cifar10 import figures, stored, tables, tasks, words
from probnb.plots.style import use_style

use_style()
question = question or tasks.USUAL.get(data)
settings = tasks.task_settings(data, profile, inputs, images=images, epochs=epochs)
task = tasks.load_task(data, question, data_dir, settings.images, settings.size, seed, inputs)
found = stored.read_stored(kept)
rule = stored.about(found, "rule")
people = stored.about(found, "people")

# %% [markdown]
# ## Pictures with a probability
#
# Each class has its probability, and two pictures of a class have the same. A network that tells the
# classes apart could know $p$ exactly; one that confuses two neighbours is off by a tenth only.

# %% tags=["hide-input"]
if data == "digits":  # drawn by hand, of no person
    axes = figures.digit_rows(tasks.load_task(data, question, seed=seed, inputs="pixels").splits)

# %% tags=["hide-input"]
Markdown(words.say_task(task))

# %% [markdown]
# ## Training
#
# All rows of the paper's tables, as in the {doc}`synthetic chapter <synthetic>`. So that fifteen rows
# with several seeds fit on two cores, the network is small by default and sees oriented gradients (how
# strong the edges are in each direction, in each part of the picture) in place of pixels; `-p inputs
# pixels` trains a ResNet-18. Results of both are stored, and "(pixels)" says which: all rows with
# gradients; on pixels those of Table 11, their control and the maps that cost no training.

# %%
results, run = tasks.train_task(
    task,
    settings,
    results_dir,
    profile,
    seed,
    methods,
    device=device,
    devices=devices,
    retrain=retrain,
)

# %% tags=["hide-input"]
from probnb.chapters.cifar10.study import across_seeds, trained_models
from probnb.experiment.results import on_test

test = on_test(results.predictions)
here = {metric: across_seeds([test], metric=metric) for metric in ("mse_p", "kl_p", "brier")}
tables.comparison_table({metric: here[metric] for metric in ("mse_p", "brier")})

# %% tags=["hide-input"]
Markdown(words.say_verdict(tasks.task_label(data, question), here["mse_p"]))

# %% [markdown]
# One training is an anecdote. Over seeds of weights, outcomes and training images:

# %% tags=["hide-input"]
Markdown(words.say_stored(rule))

# %% tags=["hide-input"]
Markdown(words.say_inputs(found))

# %% tags=["hide-input"]
tables.paper_table(stored.paper_metrics(rule) or {tasks.task_label(data, question): here})

# %% tags=["hide-input"]
if rule:
    axes = figures.difference_figure(stored.tables(rule))

# %% [markdown]
# ## What gives the ratio in Table 11?
#
# In all its other tables the paper's $\mathrm{KL}_p$ is about 2.5 times its $\mathrm{MSE}_p$; here it is
# 10 to 14 times. One class has $p = 0$, which makes the *printed* direction
# $\mathrm{KL}(\hat p\,\|\,p)$ infinite unless a program clips $p$; the other direction, which the other
# tables hold, stays finite. For every direction and clipping, the ratio of our own predictions:

# %% tags=["hide-input"]
from probnb.chapters.cifar10.study import implied_clips, kl_ratios, paper_ratios

paper = paper_ratios()
source = stored.first_predictions(rule) if rule else test
rows = [m for m in paper.index if m in source]
ratios = kl_ratios(source["p"], source[rows]) if "p" in source else None
if ratios is not None:
    axes = figures.ratio_figure(ratios, paper, rows)

# %% tags=["hide-input"]
if ratios is not None:
    clips = implied_clips(source["p"], source[rows], paper["ratio"])
    zero = source.loc[source["p"] == 0, rows].mean()
    display(Markdown(words.say_ratio(paper, ratios, clips, zero)))

# %% [markdown]
# ## People as the measure
#
# Of $n$ people who judged a picture, $k$ say yes. The prediction $\hat p$ was trained on the vote of
# somebody else. With $q = k/n$,
#
# $$\mathrm{E}(\hat p - q)^2 = (\hat p - p)^2 + \frac{p(1 - p)}{n},$$
#
# $$\mathrm{E}\,\frac{q(1 - q)}{n - 1} = \frac{p(1 - p)}{n},$$
#
# so that the mean of $(\hat p - q)^2 - q(1 - q)/(n - 1)$ is an unbiased estimate of $\mathrm{MSE}_p$:
# the distance from probabilities that nobody knows, measured on real pictures
# (`probnb.metrics.repeated_distance`). Does its interval hold what it should? In simulation, with 2, 9 and
# 50 people and with 200 and 2,000 pictures:

# %% tags=["hide-input"]
from probnb.chapters.cifar10.study import coverage

covered = coverage(replicates=20 if smoke() else 2000, rows=(200, 2000), seed=seed + 1)
covered.round(4)

# %% tags=["hide-input"]
Markdown(words.say_coverage(covered))

# %% [markdown]
# $\mathrm{KL}_p$ needs the entropy of $p$, of which no finite number of votes has an unbiased estimate.
# The least biased one is taken (`probnb.metrics.votes`); it is the same for every prediction, so that
# *differences* in $\mathrm{KL}_p$ have no bias. How often people agree:

# %% tags=["hide-input"]
if task.votes is not None:
    axes = figures.share_figure({tasks.task_label(data, question): task.votes.k / task.votes.n})

# %% [markdown]
# ## What was measured on real pictures
#
# Stored results come from `python -m probnb.chapters.cifar10 ferplus neutral --data-dir ... --seeds 0 1 2`
# (and likewise `ferplus happiness`, `ferplus negative`, `cifar10h cat`, `cifar10 rule`; `--inputs
# pixels` for the other network). Mean over seeds, with one standard deviation over seeds. Green lines are the ceiling: what the share
# of so many *other people* scores when it is taken for a prediction.

# %% tags=["hide-input"]
if people:
    axes = figures.value_figure(stored.tables(people), stored.ceilings(people))

# %% [markdown]
# Paired differences from CE early-stop, with 95 % intervals over test pictures and seeds:

# %% tags=["hide-input"]
if people:
    axes = figures.difference_figure(stored.tables(people))

# %% tags=["hide-input"]
Markdown(words.say_stored(people))

# %% tags=["hide-input"]
tables.stored_table(people)

# %% [markdown]
# The same in $\mathrm{KL}_p$, times 100, where the estimate of the entropy shifts all rows of a task alike:

# %% tags=["hide-input"]
tables.stored_table(people, "kl_p")

# %% tags=["hide-input"]
Markdown(words.say_kl(people))

# %% [markdown]
# Is it an airplane? A truck? Each class of CIFAR-10H is a question of its own about the same pictures,
# most of which everybody answers alike:

# %% tags=["hide-input"]
classes = stored.about(found, "classes")
tables.classes_table(classes)

# %% tags=["hide-input"]
Markdown(tables.say_classes(classes))

# %% [markdown]
# The network first learns what people see and then the single vote that it was given. $\mathrm{MSE}_p$
# of cross entropy by epoch; a dot is the epoch that validation data kept:

# %% tags=["hide-input"]
if people:
    axes = figures.epoch_figure(stored.runs(people))

# %% [markdown]
# ## Does the Brier score follow?
#
# The {doc}`chapter on metrics <metrics>` finds the Brier score to be the metric of outcomes that follows
# $\mathrm{MSE}_p$. There the probabilities were made. Here Brier sees one vote for each picture, and
# $\mathrm{MSE}_p$ is measured by the others:

# %% tags=["hide-input"]
points = stored.models(people) or {tasks.task_label(data, question): trained_models(results)}
axes = figures.models_figure(points)

# %% tags=["hide-input"]
Markdown(words.say_brier(points))

# %% [markdown]
# ## Your own judged pictures
#
# `probnb.data.judged.judge` makes data to train on of any pictures with counts of votes, and
# {doc}`evaluate <evaluate>` takes a file of predictions with counts in place of probabilities.
