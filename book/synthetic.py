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
from probnb.validation import find_path
from probnb_book.notebook import check_parameters, default_profile, results_path

check_parameters(
    globals(),
    f"""scenario data_dir profile seed methods mirror device devices results_dir replicates retrain
    {" ".join(profiles.PROFILE_FIELDS)}""",
)
from probnb.methods import check_methods
from probnb.validation import check_choice, check_integer
from probnb_book.scenarios import SCENARIOS

check_choice(scenario, SCENARIOS, "scenario")
check_choice(device, ("auto", "cpu", "cuda", "mps"), "device")
check_choice(mirror, (True, False), "mirror")
check_choice(retrain, (True, False), "retrain")
check_integer(seed, "seed", minimum=0)
check_integer(devices, "devices")
check_integer(replicates, "replicates", minimum=2)
profile = default_profile(profile)
settings = profiles.profile_of(profile, globals())
methods = check_methods(methods, features=settings.frozen)
data_dir = None if data_dir is None else find_path(data_dir, "data_dir")
results_dir = results_path(results_dir)
from probnb.plots import face_grid, reliability_grid, use_style
from probnb.training.batches import device_type, precision_of
from probnb_book import synthetic as chapter

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

# %% tags=["remove-input"] mystnb={"image": {"alt": "True probability against prediction of test faces for four methods, with reliability diagrams: at the last epoch predictions are spread to 0 and 1, early-stopped ones lie about the diagonal."}}
columns = [m for m in ("resampled", "ce_overfit", "ce", "cape_bin") if m in methods]
axes = chapter.overfitting_figure(y, p, predictions[columns], discrete=scenario == "discrete")

# %% [markdown]
# Each blue point is a test face: its prediction across, its true probability up. Black marks are the
# reliability diagram, which needs no truth: the mean outcome of faces with similar predictions. A
# perfect model puts everything on the diagonal. (In *Discrete*, where $p$ has five values,
# histograms of the predictions show the same.)

# %% tags=["remove-input"]
from IPython.display import Markdown, display

kept = chapter.kept_start(outcome.chosen)
note = (
    "Kept its start: **{}**. No epoch of its fine-tuning had a lower validation cross entropy than "
    "the early-stopped network that it began from, so its predictions, and its panels and lines "
    "below, are those of *CE early-stop*. Where its fine-tuning went all the same is drawn under "
    "*Fine-tuning*."
)
display(*[Markdown(note.format(label)) for label in kept])

# %% [markdown]
# This chapter is Section 7.1 of {cite}`liu2022deep` for one scenario at a time. All five scenarios
# and several seeds stand side by side in {doc}`results`, and {doc}`method` shows CaPE itself. The
# faces are drawn by a program, and everything takes minutes on two cores; with one more parameter,
# `data_dir`, the same notebook runs on the photographs of UTKFace {cite}`zhang2017utkface`.

# %% tags=["remove-input"]
chapter.facts(faces, run, outcome).style.hide(axis=1).set_table_attributes('class="sentences"')

# %% [markdown]
# ## The task

# %% tags=["remove-input"] mystnb={"image": {"alt": "Drawn faces of the test set in the order of their ages, each with its age in years."}}
test = faces.test
if data_dir is None:  # drawn faces only: photographs of people stay out of the report
    some = chapter.spread_of_ages(test.groups, 24)
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

# %% tags=["remove-input"] mystnb={"image": {"alt": "Three panels: the probability as a function of age, a histogram of the probabilities of training faces, and a histogram of their ages by outcome."}}
train = splits.train
axes = chapter.scenario_figure(scenario, train.groups, train.probabilities, train.outcomes)

# %% [markdown]
# ## Learning curves
#
# The dotted line marks the early-stopped network, the one with the lowest cross entropy on
# validation data. Cross entropy on the training data goes on to fall while everything that matters
# gets worse. From forty epochs on the lines are means over five, as in the paper.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Four learning curves by epoch, training and validation cross entropy and test MSE_p and KL_p, with the fine-tunings that branch off at the early stop."}}
axes = chapter.learning_curves(outcome, window=5 if settings.epochs >= 40 else 1)

# %% [markdown]
# ## Fine-tuning
#
# CaPE starts from the early-stopped network, and so does its control, *CE fine-tuned*, which does
# the same without calibration epochs: only the difference between the two is due to calibration.
# Epoch 0 is the start, which is a candidate itself; a ring is the epoch that validation kept, and
# crosses are calibration epochs.

# %% tags=["remove-input"] mystnb={"image": {"alt": "Validation cross entropy and test MSE_p by epoch after the early stop for CaPE and its control, with calibration epochs as crosses and the kept epoch ringed."}}
facets = chapter.finetuning_figure(outcome)

# %% [markdown]
# The values that validation cross entropy chose, and how many calibration epochs lie behind each kept
# model:

# %% tags=["remove-input"]
from probnb_book import evidence

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

# %% tags=["remove-input"]
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

# %% tags=["remove-input"] mystnb={"image": {"alt": "Reliability diagrams of all methods of this run, a panel each, with the true probability of each test face."}}
axes = reliability_grid(y, chapter.labelled(predictions), p=p)

# %% [markdown]
# ## What this run shows, and what many show
#
# Differences in $\mathrm{MSE}_p$ (times 100) from *CE early-stop*, and for CaPE from its control. *This run* is one
# training of each row on this machine. Its 95 % interval is over the same resampled test faces and says nothing about
# another seed, and another processor moves a training as far as another seed does. The words are therefore about the
# runs that are stored with the book, of this scenario on photographs: *lower* and *higher* are where their interval
# over seeds leaves out 0.

# %% tags=["remove-input"]
usual = "features" if settings.frozen else "cpu"
stored = evidence.find(
    [results_path().parent / "results"], "synthetic", task=scenario, profile=usual
)
stored = evidence.kinds(stored)[0] if len(stored) else stored
answers = chapter.verdicts(result, outcome.chosen, stored)
answers.style.hide(axis=0).set_table_attributes('class="sentences"')

# %% [markdown]
# How far another seed moves a training can be seen from the members of this run's deep ensemble, which are
# early-stopped CE trainings that differ in their seed alone (MSE_p times 100; a row of its own where the ensemble was
# not asked for stays empty):

# %% tags=["remove-input"]
chapter.member_errors(outcome).describe()[
    ["count", "mean", "std", "min", "max"]
].to_frame().T.round(2)

# %% [markdown]
# Of two rows that were trained apart, a difference of less than about 2.8 of these standard deviations may be the
# luck of a seed (six, while the deviation itself comes from three trainings). Fine-tunings and calibrators share
# their start with CE early-stop, so that most of that luck cancels.
