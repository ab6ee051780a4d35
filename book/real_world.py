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
# # Real world: when nobody knows the probability
#
# Will it rain more in an hour, will a patient live for five more years, will that car collide? Here
# chance is nature's. There is no $p$ to compare with, only outcomes, and those come in clusters: the
# windows of one day, the slides of one patient, the frames of one scene share their fate.
#
# This chapter is Sections 7.2 and 8 of {cite}`liu2022deep` on real data: its Tables 2 and 8 to 10 and
# Figures 6, 9 and 17. One notebook runs all three tasks, `-p task weather`, `cancer` or `collision`,
# and every row of the synthetic chapter runs unchanged. It adds what the paper's tables lack:
#
# 1. intervals, which resample whole clusters;
# 2. the control, *CE fine-tuned*, which tells CaPE's calibration epochs from the training that comes
#    with them;
# 3. the simple models that a person of the trade would ask for first.

# %% tags=["hide-cell"]
# Overrides of the profile: a value, or several to try; None leaves what the profile has.
images = size = width = stem = epochs = patience = plateau_patience = batch_size = None
learning_rate = finetune_epochs = finetune_schedule = members = adversarial = None
cape = candidates = None  # cape: released or printed
finetune_learning_rate = every = phase = mix = bins = neighbours = sigma = None
focal = entropy = mmce = smoothing = share = decay = None
# Parameters of single tasks; None leaves what the task has.
source = None  # weather: radar or simulated
fold = None  # weather: which fifth of the days is tested; by default the seed's
tile = spacing = lead = stride = None  # weather: km, and minutes
wet = coverage = None  # weather: least area mean in mm/h, least share of pixels with data
cohorts = None  # cancer: lung, all, or names of tables
rule = horizon = inputs = None  # cancer: paper, known or ipcw; months; genes or clinical
label = None  # collision: which label of the boxes

# %% tags=["parameters"]
task = "weather"  # weather, cancer or collision
data_dir = None  # the task's data; None is what anybody can have
profile = None  # smoke, quick, cpu or paper; None is quick
seed = 0
methods = None  # None for the paper's rows, or names such as "ce, platt, cape_bin"
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
    f"""task data_dir profile seed methods device devices results_dir replicates retrain
    source fold tile spacing lead stride wet coverage cohorts rule horizon inputs
    label
    {" ".join(profiles.PROFILE_FIELDS)}""",
)
from probnb.chapters.real_world.task import get_task
from probnb.methods import check_methods
from probnb.validation import check_choice, check_integer

task = get_task(task)
check_choice(device, ("auto", "cpu", "cuda", "mps"), "device")
check_choice(retrain, (True, False), "retrain")
check_integer(seed, "seed", minimum=0)
check_integer(devices, "devices")
check_integer(replicates, "replicates", minimum=2)
check_methods(methods)
profile = default_profile(profile)
settings = task.profile(profile, globals())
radar = dict(source=source, fold=fold, tile=tile, spacing=spacing, lead=lead, stride=stride)
radar = dict(radar, wet=wet, coverage=coverage)
patients = dict(cohorts=cohorts, rule=rule, horizon=horizon, inputs=inputs)
given = task.given(radar | patients | dict(label=label), profile)
data_dir = data_dir and find_path(data_dir, "data_dir")
results_dir = results_path(results_dir)

# %% tags=["hide-input"]
from IPython.display import Markdown, display

display(Markdown(f"## {task.title}\n{task.question}"))

# %% tags=["hide-input"]
from probnb.plots.style import use_style

use_style()
splits = task.load(data_dir, settings, seed, **given)
Markdown(task.describe(splits) + ("" if splits.known else "\n" + task.attribution))

# %% tags=["hide-input"]
axes = task.picture and task.picture(splits)

# %% [markdown]
# ## Training
#
# The same loop, losses and schedules as in {doc}`synthetic`; validation cross entropy chooses, and the
# start of a fine-tuning is itself a candidate. Without a known $p$ outcomes cannot be drawn again, so
# the row of resampled labels is there for simulated data only.

# %%
from probnb.experiment.plan import plan
from probnb.experiment.run import run_jobs

methods = check_methods(methods, known=splits.known)
jobs = plan(methods, settings, seed, network=task.network(settings, splits))
fits = run_jobs(jobs, splits, results_dir / "fits", device=device, devices=devices, retrain=retrain)

# %% tags=["hide-input"]
from probnb.chapters.real_world import runs, words
from probnb.experiment.results import collect, write_results
from probnb.training.batches import device_type, precision_of

outcome = collect(jobs, fits, splits)
outcome = runs.add_references(outcome, task.references(splits) if task.references else {})
run = write_results(
    results_dir / "real_world",
    outcome,
    task=task.name,
    data=runs.data_name(task, splits, given),
    profile=profile,
    seed=seed,
    settings=settings,
    base=task.profile(profile),
    parameters=given,
    source=splits.source,
    device=device_type(device),
    precision=precision_of(device_type(device)),
)
Markdown(words.record_sentence(run, outcome))

# %% tags=["hide-input"]
from probnb.experiment import summary

summary.chosen_table(outcome.chosen)

# %% [markdown]
# ## What the numbers rest on
#
# One training on one choice of test data is an anecdote. Whatever runs of this task and profile with
# other seeds are stored, here or with the project, are put together with this one.

# %% tags=["hide-input"]
folders = [results_dir, results_path().parent / "results"]
table = runs.pool(
    folders,
    task,
    data=run.record["data"],
    profile=profile,
    settings=run.record["settings"],
)
columns, references = runs.methods_of(table), runs.references_of(table)
Markdown(words.evidence_sentence(table, task))

# %% [markdown]
# ## The table
#
# Times 100; ± is one standard deviation over resamples of whole clusters. The paper prints no ± for
# real data. Its numbers are for its own data, which were larger and cannot all be had: compare the
# order of the rows, not the values.

# %% tags=["hide-input"]
result = runs.score(table, columns, replicates, seed)
numbers = summary.comparison_table(result, task.name)
numbers[["Brier", "AUC"]]

# %% tags=["hide-input"]
numbers[["ECE", "MCE"]]

# %% tags=["hide-input"]
numbers[["NLL", "KS"]]

# %% tags=["hide-input"]
words.known_truth(numbers)  # for simulated data only

# %% [markdown]
# ## Is there any skill?
#
# A forecast is worth something if it beats a constant. The Brier skill score is the share of the
# constant's Brier score that is saved; the other rows are models without a network.

# %% tags=["hide-input"]
everything = runs.score(table, [*columns, *references], replicates, seed)
words.skill_table(everything, references)

# %% tags=["hide-input"]
Markdown(words.reference_sentence(everything, references))

# %% [markdown]
# ## Differences on the same rows
#
# Brier score times 100 of every method less that of cross entropy, of the control and of Platt
# scaling, with 95 % intervals over whole clusters; an asterisk marks those that leave out 0.

# %% tags=["hide-input"]
words.differences(result)

# %% tags=["hide-input"]
from probnb.chapters.real_world import figures

axes = figures.gap_figure(result)

# %% [markdown]
# ## Reliability
#
# Cross entropy, CaPE, and the best of the other methods, as in the paper's Figure 6. Bars resample
# whole clusters.

# %% tags=["hide-input"]
axes = figures.summary_figure(table, words.three_of_interest(result))

# %% tags=["hide-input"]
from probnb.plots.reliability import reliability_grid

shown = figures.labelled(table[[*columns, *references]])
axes = reliability_grid(table["y"], shown, weights=table.get("weight"))

# %% [markdown]
# ## Which synthetic scenario is this like?
#
# The paper matches each real task with a synthetic scenario by eye (its Figure 17). Here the distance
# between the predictions of cross entropy and the probabilities of each scenario is measured.

# %% tags=["hide-input"]
weights = table.get("weight")
measured = words.correspondence(table["ce"], weights)
axes = figures.correspondence_figure(table["ce"], task, measured, weights)

# %% tags=["hide-input"]
Markdown(words.correspondence_sentence(measured, table["ce"], task, weights))

# %% tags=["hide-input"]
axes = task.across and task.across(table)

# %% tags=["hide-input"]
from probnb.experiment.results import on_test

axes = task.page and task.page(splits, on_test(outcome.predictions))

# %% [markdown]
# ## The paper's claims

# %% tags=["hide-input"]
words.sentences(words.claims(result, table, task))

# %% [markdown]
# ## The other tasks
#
# What is stored of them, with every seed.

# %% tags=["hide-input"]
from probnb.chapters.real_world.others import show_others

show_others(task, replicates=replicates, seed=seed)
