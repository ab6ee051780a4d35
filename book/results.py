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
# # Results: every table and every claim
#
# What {cite}`liu2022deep` published, what was measured here, how sure we are, and whether each claim
# stands. This page trains nothing: it reads the stored runs in the folder `results` (and in `runs`,
# where you have made some) and says *not run yet* where there is none. Photographs are UTKFace's;
# drawn faces are a smaller task of our own, shown apart; they may bear a claim about every network out,
# but never refute one.

# %% tags=["parameters"]
results_dir = None  # folder of stored runs; None is results and runs of the project
replicates = 1000  # bootstrap replicates
seed = 0  # of the resamples

# %% tags=["hide-input"]
from probnb.notebook import check_parameters, find_path, results_path, smoke

check_parameters(globals(), "results_dir replicates seed")
from probnb.validation import check_integer

check_integer(replicates, "replicates", minimum=2)
check_integer(seed, "seed", minimum=0)
replicates = min(replicates, 50) if smoke() else replicates
runs = results_path()
folders = (
    [find_path(results_dir, "results_dir")] if results_dir else [runs.parent / "results", runs]
)

# %% [markdown]
# ## The verdict

# %% tags=["hide-input"]
from IPython.display import HTML, Markdown

from probnb.chapters.results import (
    baseline,
    displaced,
    evidence,
    figures,
    finetunings,
    gains,
    ledger,
    tables,
    words,
)
from probnb.plots.style import use_style

use_style()
stored = evidence.gather(folders, replicates, seed)
Markdown(words.verdict_sentences(stored))

# %% tags=["hide-input"]
claims = ledger.ledger(stored)
Markdown(ledger.count_sentence(claims))

# %% tags=["hide-input"]
Markdown(words.runs_sentence(stored))

# %% tags=["hide-input"]
evidence.run_table(stored)

# %% tags=["hide-input"]
said = words.sizes_sentence(stored)
Markdown(said) if said else None

# %% [markdown]
# ## At a glance
#
# Error of every row, logarithmic scale; bars are 95 % over test rows. A paper's number and ours on
# drawn faces are of different data.

# %% tags=["hide-input"]
axes = figures.glance_figure(stored)

# %% [markdown]
# ## Table 1
#
# In the paper's layout. Ours: the mean over trainings ± one bootstrap standard deviation over test
# rows (the paper's ± is the same), then in brackets the standard deviation between trainings, where
# there are several. The evidence is the best kind of run that a scenario has: photographs before
# drawn faces. An asterisk marks a misprint or a suspect value, see {doc}`errata`. The paper does not
# state the size of its images.

# %% tags=["hide-input"]
tables.table_1(stored, "mse_p")

# %% tags=["hide-input"]
tables.table_1(stored, "kl_p")

# %% [markdown]
# *Mix-n-match* is without the isotonic step that the paper's text has and its tables, by their own
# AUC, do not; the row below it has that step, which can give a prediction of 0 or 1, for which
# $\mathrm{KL}_p$ is infinite. (Runs of version 0.1 have the step in the first row and lack the
# second.)
#
# What lies behind each fine-tuned row. A row of CaPE without a calibration epoch is its control by
# another name:

# %% tags=["hide-input"]
tables.calibration_epochs(stored)

# %% [markdown]
# CaPE may need another learning rate, another schedule or other bins than those. Every candidate on Linear,
# from the same early-stopped networks, and its control with as many epochs. The paper's claim is that calibration
# epochs hold memorisation back while the network goes on learning:

# %% tags=["hide-input"]
tuned = finetunings.finetunings(stored, "linear")
axes = finetunings.finetuning_figure(tuned)

# %% tags=["hide-input"]
finetunings.candidates(tuned)

# %% tags=["hide-input"]
Markdown(finetunings.due_sentence(tuned) or "*not run yet*")

# %% [markdown]
# CaPE (bin) less its baseline, its control, the cheapest repair and the most expensive, paired on the
# same resampled test rows; below 0 CaPE is better. From two trainings on, the interval includes the
# spread between them.

# %% tags=["hide-input"]
tables.paired(stored)

# %% [markdown]
# ## Tables 3 to 7

# %% tags=["hide-input"]
tables.scenario_table(stored, "linear")

# %% tags=["hide-input"]
tables.scenario_table(stored, "sigmoid")

# %% tags=["hide-input"]
tables.scenario_table(stored, "centered")

# %% tags=["hide-input"]
tables.scenario_table(stored, "skewed")

# %% tags=["hide-input"]
tables.scenario_table(stored, "discrete")

# %% [markdown]
# ### Ranks
#
# By $\mathrm{MSE}_p$, without resampled labels, and how well all ranks agree.

# %% tags=["hide-input"]
tables.ranks(stored)

# %% tags=["hide-input"]
tables.rank_correlations(stored)

# %% [markdown]
# ## The scenarios (Figures 14 and 15)

# %% tags=["hide-input"]
axes = figures.psi_figure()

# %% tags=["hide-input"]
axes = figures.outcomes_figure(stored)

# %% [markdown]
# ## Overfitting (Figure 4)
#
# Linear: predictions against true probabilities, with the reliability diagram in black. Discrete:
# histograms of the predictions for each of its five probabilities.

# %% tags=["hide-input"]
axes = figures.overfitting(stored, "linear")

# %% tags=["hide-input"]
axes = figures.overfitting(stored, "discrete")

# %% [markdown]
# ## Learning curves (Figure 5)
#
# For every scenario that has runs; means over five epochs, as in the paper, where there are 40 or more.
# Fine-tunings start at the dotted line, where CE is stopped.

# %% tags=["hide-input"]
axes = figures.curves_figure(stored)

# %% [markdown]
# ## Reliability (Figure 10)

# %% tags=["hide-input"]
axes = figures.reliability_figure(stored)

# %% [markdown]
# ## Why 4.21?
#
# The published error of plain early stopping on Linear is the number against which CaPE's largest
# gain is claimed. Five sources have a number for it:

# %% tags=["hide-input"]
saved = baseline.derived_table(folders, "authors-predictions")
baseline.demo_table(stored, saved)

# %% [markdown]
# In the demonstration notebook CaPE's row was measured on other rows than the rest: its error rate
# is a fraction of 4,738 rows, the others' of 2,329.

# %% tags=["hide-input"]
parts = baseline.derived_table(folders, "authors-gains")
epochs = baseline.derived_table(folders, "displaced-linear")
Markdown(words.baseline_sentence(stored, saved, parts, epochs))

# %% [markdown]
# The authors' saved predictions (validation rows), as they are and with repairs fitted to the other
# four fifths of the rows:

# %% tags=["hide-input"]
baseline.saved_scores(saved)

# %% [markdown]
# What CaPE gains in those files ($\mathrm{MSE}_p \times 100$, positive is better), split into what one
# intercept (bias), Platt scaling (slope) and any monotone map would have given as well, and what is
# left, a better order of the rows (ranking):

# %% tags=["hide-input"]
gains.saved_gains(parts)

# %% [markdown]
# Would another rule of stopping have kept such an epoch? Each applied to the stored epochs of plain
# cross entropy:

# %% tags=["hide-input"]
baseline.stopping_rules(stored)

# %% [markdown]
# And a training as the release has it (batches of 256, no augmentation, rate 0.1): each epoch as it is
# and after five repairs. If a displaced epoch has good features, one number should repair it as well as a
# calibration epoch does: does it?

# %% tags=["hide-input"]
Markdown(displaced.displaced_sentence(epochs) or "*not run yet*")

# %% tags=["hide-input"]
displaced.repair_table(epochs)

# %% tags=["hide-input"]
axes = displaced.displaced_figure(epochs)

# %% [markdown]
# CaPE's gain against the weakness of its baseline, in print, in the saved files, and in every run of
# ours. On the dashed line CaPE gains what Platt scaling gains.

# %% tags=["hide-input"]
axes = figures.gain_figure(gains.cape_gains(stored, saved))

# %% [markdown]
# ## Where a gain comes from
#
# What each row takes off the error of CE early-stop ($\mathrm{MSE}_p \times 100$, positive is better),
# split in the same way by `probnb.calibrators.gain_parts`. The maps are cross-fitted; intervals are of
# test rows of one training.

# %% tags=["hide-input"]
gains.gains(stored)

# %% [markdown]
# And what is left against CaPE's control, the same fine-tuning without calibration epochs:

# %% tags=["hide-input"]
gains.gains(stored, "ce_finetuned", ("cape_bin", "cape_kernel", "ensemble"))

# %% [markdown]
# ## The ledger
#
# Each claim of the paper in our words, with a verdict. Claims that read the paper's own tables are
# judged by those. For the others runs on photographs decide where there are any, on more than one
# training; tables that speak against a claim contradict it, tables that agree do not make it hold.
# CaPE has two rows and the benefit of the doubt: it is better if one of them is, and worse only if
# both are.

# %% tags=["hide-input"]
HTML(ledger.ledger_html(claims))

# %% [markdown]
# ## How everything was trained
#
# The paper states few of its settings. What it states, what the released code does, and what is done
# here, where that can matter:

# %% tags=["hide-input"]
tables.training_details()
