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
# # Your own images
#
# How probable is the outcome of an image, and can the number be believed? This page takes a folder of
# images with outcomes, trains the methods of {doc}`synthetic` that need no true probabilities, chooses one
# on validation images, judges all of them on test images, and keeps the chosen network with its
# calibrator. It says whether more images or a better method is the lever, and where there are too few
# images to say.
#
# Run it on yours from the project's folder:
#
# ```
# papermill book/images.ipynb report.ipynb -p images my_folder -p outcomes outcomes.csv
# ```
#
# | parameter | what it is |
# |---|---|
# | `images` | JPEG, PNG, TIFF, WebP, BMP or GIF in a folder, a tar or a zip; or an array (NumPy, HDF5, Zarr) |
# | `outcomes` | CSV or Parquet, one image a row: `path`, and `y`, which is 0 or 1. Left out, each outcome has a folder of its own: `-p images pets -p positive dogs` |
# | optional columns | `group`, what images share (a patient, a day, a scene); `split`, your own division into train, val and test; `weight`; `p`, the probability where it is known. Other names are parameters: `-p y died -p group patient` |
# | `mirror` | `True` if a mirrored image has the same outcome: it doubles the data |
# | `backbone` | `lite0`, a network that has seen ImageNet, from whose features seconds of training go further than minutes from random weights; `lite2`, whose features [are better](appendix-features) and take longer; any other of timm's, or a file of weights; `none`. The usual choice for images of 64 pixels and more is `lite0`. With `-p profile finetune` it is trained too, which wants a GPU |
# | `show_images` | `True` to see some of your images in the report, with what the model looks at; else only drawn ones are shown |
# | `size` | 96, say, if what matters is small: the usual profile is quick and looks at small images; `cpu` and `paper` take longer and see more |
#
# A name that looks like a number or a truth value is given with `-r`: `-r positive 02`. What cannot be read
# is named and left out. Copies of an image, and images of one group, never land in two parts. On the page
# that you are reading, drawn faces stand in for the images; their outcomes were drawn with a probability
# that rises with age.
#
# What a backbone brings is knowledge from elsewhere: `lite0` has learnt photographs of animals, things and people. It
# was tried on 2,000 photographs of faces, 1,200 of them to train on, whose outcomes were drawn from known
# probabilities $p$, over three divisions into parts. On its features cross entropy has $\mathrm{MSE}_p \times 100$ of
# 2.38, an ensemble 2.09 and logistic regression 1.98; from random weights, at 20 × 20 pixels for 128 × 128, it is
# 4.07 and 3.56, where one number for all has 3.92. That is 1.69 [0.57, 2.82] less for cross entropy and 1.47 [0.60,
# 2.35] less for the ensemble, in as many processor seconds (about 80, the whole page). Where images are no
# photographs look at the line *Does the backbone help?* first: on radar maps ({doc}`real_world`) its features are far
# behind a small network made for them.

# %% tags=["remove-cell"]
# Overrides of the profile: a value, or several to try; None leaves what the profile has.
size = width = stem = epochs = patience = plateau_patience = batch_size = None
learning_rate = finetune_epochs = finetune_schedule = members = adversarial = None
cape = candidates = None  # cape: released or printed
layers = tune = dropout = weight_decay = None
finetune_learning_rate = every = phase = mix = bins = neighbours = sigma = None
focal = entropy = mmce = smoothing = share = decay = None

# %% tags=["parameters"]
images = None  # a folder, tar, zip or array; None: drawn faces
outcomes = None  # a table; None: a folder for each outcome
positive = None  # the folder or label of outcome 1, where it is not called 1
path = None  # columns of the table, where they are called otherwise
y = None
group = None
split = None
weight = None
p = None
key = None  # which array of a file that holds several
aspect = "crop"  # what happens to images that are not square: crop, pad or stretch
mirror = False  # True if a mirrored image has the same outcome
unreadable = 0.05  # share of images that may be unreadable
backbone = "auto"  # lite0, another of timm's, a file of weights, or none; auto: see above
profile = None  # smoke, quick, cpu, features, finetune or paper; None is quick, or features
seed = 0
methods = None  # None for the usual rows, or names such as "ce, platt, cape_bin"
device = "auto"  # auto, cpu, cuda or mps
devices = 1  # GPUs to use; on a CPU, processes
results_dir = None  # finished work; None is the folder "runs" of the project
model_dir = None  # where the model is kept; None is a folder in results_dir
replicates = 1000  # bootstrap replicates
threshold = None  # probability from which on you would act: 0.2, or several as "0.1, 0.2"
show_images = None  # True to show your images in the report; None shows drawn ones only
retrain = False  # train again what other code has trained

# %% tags=["remove-cell"]
from probnb.experiment import profiles
from probnb.paths import find_path
from probnb_book.notebook import check_parameters, default_profile, profile_of, results_path

asked = check_parameters(
    globals(),
    f"""outcomes positive path y group split weight p key aspect mirror unreadable
    profile seed methods device devices results_dir model_dir replicates show_images threshold
    retrain
    {" ".join(profiles.PROFILE_FIELDS)}""",
    text="images outcomes positive path y group split weight p key results_dir model_dir",
)
from probnb.images.files import plain_name
from probnb.images.model import check_model_folder
from probnb.methods import check_methods
from probnb.plots import use_style
from probnb.pretrained.backbone import check_backbone
from probnb.settings import ReportSettings
from probnb.training.batches import device_type, precision_of
from probnb.validation import check_choice, check_integer, check_number
from probnb_book.images import choose_backbone

check_choice(aspect, ("crop", "pad", "stretch"), "aspect")
check_choice(mirror, (True, False), "mirror")
device_type(device)  # there is one
check_choice(retrain, (True, False), "retrain")
check_number(unreadable, "unreadable", 0, 1)
check_integer(devices, "devices")
if images is None and threshold is None:
    threshold = 0.2  # of the example
ReportSettings(replicates=replicates, seed=seed, threshold=threshold)  # checks them
check_choice(show_images, (None, True, False), "show_images")
images = images and find_path(images, "images")
backbone, side, why = choose_backbone(backbone, images, key)
pretrained = backbone != "none"
profile = default_profile(profile, "features" if pretrained else "quick")
if pretrained and size is None:
    size = max(8, min(side, 128))
settings = profile_of(profile, {**globals(), "images": None})  # here, images are a folder
usual = "ce temperature platt beta ensemble ce_finetuned cape_bin cape_kernel"
usual += " logistic logistic_platt" * settings.frozen
methods = check_methods(methods or usual, known=False, features=settings.frozen)
if pretrained:
    check_backbone(backbone, (settings.size, settings.size))  # what is kept must be able to see
outcomes = outcomes and find_path(outcomes, "outcomes")
results_dir = results_path(results_dir)
example = images is None
show_images = example if show_images is None else show_images
task = "example" if example else plain_name(images)
given = model_dir is not None  # then no other name will do
model_dir = check_model_folder(model_dir if given else results_dir / "images" / f"{task}-model")
use_style()

# %% [markdown]
# ## What was read

# %%
from probnb.images.folder import load_images
from probnb_book.images import what_was_read, write_example

if example:
    faces = 300 if profile == "smoke" else 3000
    images, outcomes = write_example(results_dir / "images" / f"example-{faces}", faces)
columns = {"path": path, "y": y, "group": group, "split": split, "weight": weight, "p": p}
reading = {
    "outcomes": outcomes,
    "aspect": aspect,
    "mirror": mirror,
    "seed": seed,
    "unreadable": unreadable,
    "key": key,
    "positive": positive,
    **{role: name for role, name in columns.items() if name is not None},
}
splits = load_images(images, size=settings.size, **reading)
what_was_read(splits, why)

# %% mystnb={"image": {"alt": "Rows of drawn faces, those with outcome 0 above those with outcome 1."}} tags=["hide-input"]
# %matplotlib inline
import numpy as np

from probnb.plots import face_grid

truth = splits.test.outcomes.cpu().numpy()
first = np.concatenate([np.flatnonzero(truth == outcome)[:12] for outcome in (0, 1)])
axes = face_grid(splits.test.take(first).inputs, truth[first], 12) if show_images else None

# %% [markdown]
# ## Training
#
# All rows are trained on the training images and chosen and calibrated on the validation images. The
# test images are only predicted.

# %%
from dataclasses import replace

from probnb.experiment.plan import plan
from probnb.experiment.run import run_jobs
from probnb.pretrained.backbone import portable
from probnb.pretrained.features import features_of

pictures = splits
facts = {
    "task": task,
    "data": "drawn" if example else "images",
    "profile": profile,
    "seed": seed,
    "settings": replace(settings, backbone=portable(settings.backbone)) if pretrained else settings,
    "mirror": mirror,
    "device": device_type(device),
    "precision": precision_of(device_type(device)),
}
splits = features_of(pictures, settings, results_dir, device_type(device), mirror)  # or themselves
facts["source"] = splits.source
if given:
    check_model_folder(model_dir, facts | {"methods": methods})
jobs = plan(methods, settings, seed)
fits = run_jobs(jobs, splits, results_dir / "fits", device=device, devices=devices, retrain=retrain)

# %% tags=["hide-input"]
from probnb.experiment.results import collect, write_results
from probnb.images.choose import choose_model, keep_models

outcome = collect(jobs, fits, splits)
run = write_results(results_dir / "images", outcome, **facts)
if outcome.foreign:
    print("Trained by other code than today's (-p retrain True trains again):", *outcome.foreign)
print(f"{run.record['cpu_seconds']:.0f} processor seconds; the record is in {run.directory}.")

# %% [markdown]
# ## Which row to use
#
# The choice is made on validation data, the lowest negative log-likelihood (NLL) first; a calibrator is
# judged on images that it was not fitted to. Of the rows that the validation data do not tell from the
# best, whose *gap* is less than its standard error *se*, the plainest is taken. The learning curve is one
# training at each size: another seed would move its points a little.

# %% tags=["this-run"]
import probnb
from probnb_book.images import learning_curve, verdicts

kept = keep_models(jobs, fits, splits, outcome, settings.size, aspect, device, run.record)
choice = choose_model(kept, splits.val, seed)
options = {"device": device, "devices": devices, "retrain": retrain}
scratch = None
if pretrained and len(splits.train) <= 5000:  # more would take long from random weights
    small = load_images(images, size=32, **reading)
    found = probnb.compare(small, "ce", "quick", seed, results_dir / "fits", **options)
    scratch = found.models["ce"].test
points, differences = learning_curve(
    splits, kept, settings, results_dir / "fits", seed, replicates, scratch, **options
)
answers = verdicts(splits, choice, differences, seed)
answers.style.set_properties(**{"text-align": "left"})

# %% tags=["this-run", "hide-input"]
from probnb.methods import METHODS

choice.rename(lambda name: METHODS[name].label).round(4)

# %% mystnb={"image": {"alt": "Score on test images against the number of training images, and beside it what the best other row would change."}} tags=["hide-input"]
import matplotlib.pyplot as plt

from probnb.plots import COLOURS

_, ax = plt.subplots(figsize=(5.6, 3.6))
bars = np.nan_to_num([points["nll"] - points["low"], points["high"] - points["nll"]])
ax.errorbar(points["rows"], points["nll"], bars, marker="o", capsize=3, label=METHODS["ce"].label)
other = next((name for name in choice.index if name in differences), None)
if other is not None:
    value = points["nll"].iloc[-1] + differences[other].value
    told = f"{METHODS[other].label}, the best other row"
    beside = 1.05 * points["rows"].iloc[-1]  # not on the bar
    ax.plot(beside, value, "D", color=COLOURS["vermilion"], label=told)
ax.set_xscale("log")
ax.set_xticks(points["rows"], [f"{rows:,}" for rows in points["rows"]])
ax.minorticks_off()
ax.set(xlabel="training images (logarithmic)", ylabel="test NLL (nats); bars: 95 %")
legend = ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)

# %% [markdown]
# ### What we recommend, written out
#
# Logistic regression on what a network says that has learnt other pictures: of the rows above the one called *Logistic
# regression*, and the most that can be had for the least ({doc}`results`). It needs no more than this, and gives the
# same probabilities:

# %%
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from probnb.pretrained.backbone import Backbone


def features(images):
    """Spatial means and deviations of the inner maps of the network, a row an image."""
    network = Backbone(backbone, settings.layers, mirror=mirror).eval()
    mean, deviation = network.scale  # of the pictures that it was trained on
    with torch.no_grad():
        return network((torch.as_tensor(images).float() - mean) / deviation)


def regression(train, val, test):
    """Probabilities by logistic regression; validation cross entropy chooses the penalty."""
    x, x_val, x_test = (np.asarray(part.inputs, np.float32) for part in (train, val, test))
    center, spread = x.mean(axis=0), x.std(axis=0, ddof=1).clip(1e-4)
    x, x_val, x_test = ((part - center) / spread for part in (x, x_val, x_test))
    losses, found = [], []
    for penalty in 10.0 ** np.arange(1, -4.1, -0.5):
        fitted = LogisticRegression(C=1 / (penalty * len(x)), max_iter=5000).fit(x, train.outcomes)
        losses.append(log_loss(val.outcomes, fitted.predict_proba(x_val)))
        found.append(fitted.predict_proba(x_test)[:, 1])
        if len(losses) - np.argmin(losses) > 3:  # three weaker penalties were no better
            break
    return found[np.argmin(losses)]


if example and "logistic" in methods:
    rows = np.arange(32)
    seen = features(pictures.test.take(rows).inputs)
    np.testing.assert_allclose(seen, splits.test.inputs[rows], rtol=2e-3, atol=1e-3)  # kept in half
    gap = np.abs(regression(splits.train, splits.val, splits.test) - kept["logistic"].test).max()
    assert gap < 1e-3
    print(f"No test image's probability differs by more than {gap:.0e} from the library's.")

# %% [markdown]
# ## The report on the test images
#
# The same report as that of {doc}`evaluate`, which explains every table, on the test images' predictions
# by the models as they can be kept, which are written to `test.csv` beside the run's record.

# %% tags=["this-run"]
from probnb import store
from probnb.experiment.results import on_test
from probnb.report import check_table, make_report

frame = on_test(outcome.predictions).drop(columns=["split", *jobs])
if "group" in frame:
    frame["cluster"] = frame["group"]  # what rows of one patient say is not said twice
frame = frame.assign(**{METHODS[name].label: one.test for name, one in kept.items()})
store.replace_file(run.directory / "test.csv", lambda file: frame.to_csv(file, index=False))
table = check_table(frame)
report = make_report(table, "CE early-stop", min(15, len(table.y)), replicates, seed)
report.in_short()

# %% tags=["this-run", "hide-input"]
report.show("metrics")

# %% tags=["this-run", "hide-input"]
report.show("pairs")

# %% mystnb={"image": {"alt": "Reliability diagram of each row on the test images: observed frequency against predicted probability by bin, over a histogram of the predictions."}} tags=["hide-input"]
from probnb.plots import reliability_grid

axes = reliability_grid(table.y, table.predictions, p=table.p, weights=table.weight)

# %% tags=["this-run", "hide-input"]
report.show("calibration")

# %% tags=["this-run", "hide-input"]
report.show("groups")

# %% tags=["this-run", "hide-input"]
report.show("gains")

# %% [markdown]
# ### Decisions
#
# What the models are worth to somebody who acts from some probability on, with `-p threshold 0.2` (see
# {doc}`evaluate`); the kept model's `crossing` says to which logit that corresponds.

# %% tags=["this-run", "hide-input"]
from probnb.report.decide import decision_curve, show_decisions

decided = decision_curve(table, threshold)
show_decisions(decided)

# %% mystnb={"image": {"alt": "Net benefit of acting on each column of predictions against the threshold of probability, beside acting on everybody and on nobody."}} tags=["hide-input"]
from probnb.plots import decision_figure

ax = None if decided is None else decision_figure(decided)

# %% [markdown]
# ## A model to keep

# %%
import os
import shlex

from probnb.images.card import model_card
from probnb.images.choose import on_images
from probnb.images.model import load_model, save_model
from probnb_book.images import how_to_repeat

chosen = choice.index[choice["chosen"]][0]
model = kept[chosen].model.summarized(splits, device)  # so that it knows what is unlike them
if settings.frozen:  # the backbone goes with it
    model = on_images(model, Backbone(backbone, settings.layers, mirror=mirror), backbone)
asked |= {"profile": profile, "backbone": backbone, "size": settings.size}
named = choice.rename(lambda name: METHODS[name].label)
card = model_card(model, what_was_read(pictures, names=False), named, report, how_to_repeat(asked))
model_dir = save_model(model_dir, model, card, beside=True)
again = load_model(model_dir).predict(pictures.test, device)  # as somebody else will have it
place, gap = os.path.relpath(model_dir), abs(again - kept[chosen].test).max()
print(f"The model of the row {METHODS[chosen].label} is kept in {place}; read back, its test")
print(f"probabilities differ by at most {gap:.0e} from those of this page. For new images:")
print(shlex.join(["python", "-m", "probnb", "predict", place, "new_images/"]))

# %% [markdown]
# The folder holds the weights, the calibrator, what is needed to prepare an image, where the model comes
# from, and a checksum of each file; nothing in it is code. `MODEL_CARD.md` beside them says what of this page
# a user has to know: the data, the scores, the groups, where not to use it, and the command that makes it
# again. From Python:
#
# ```python
# from probnb.images.model import load_model, predict_images
#
# model = load_model("model")
# for name, probability, reason in predict_images(model, "new_images"):
#     print(name, probability, reason)
# ```
#
# A probability is as good as the likeness of the new images to these: another camera, hospital or season
# may need a new calibrator at least (`model.calibrated(PlattScaling(), new_data)`).
#
# `predict` flags what is unlike the training images, in the column `unlike_training`: their features lie further
# from the mean of the training images, by Mahalanobis' distance with a shrunk covariance {cite}`ledoit2004`, than
# those of 99 % of validation images. Of held-out images like these one in a hundred is flagged. Of what a model of
# photographed faces was shown, it flags all noise, all animals and vehicles and faces whose parts are shuffled, most
# that are covered, inverted or lie on their side, and hardly any that hang upside down or come from another collection
# ([the table](appendix-unlike)): no flag does not mean that the model may be believed. Of an ensemble, `lowest_member`
# and `highest_member` say how far its networks are apart.

# %% [markdown]
# ## What it looks at
#
# The test images about which the model is most sure, and below those about which it is least sure, by the
# distance of the probability p from one half, each with its outcome. Beside each is what its log-odds lose
# where a square is covered with the image's mean colour {cite}`zeiler2014`: red where what is seen speaks for
# outcome 1, blue where it speaks against. This is what this model uses, which need not be what the outcome
# depends on: a map that lights up beside the subject is a reason to look at how the images were taken. Your
# own images are shown, and stored in the report, with `-p show_images True` only.

# %% mystnb={"image": {"alt": "Test images of which the model is most sure, each beside a map of what its log-odds lose where a square is covered"}} tags=["hide-input"]
from probnb_book.occlusion import look_inside, surest

sure, unsure = surest(again)
axes = look_inside(model, pictures.test, again, sure, device) if show_images else None

# %% mystnb={"image": {"alt": "Test images of which the model is least sure, each beside a map of what its log-odds lose where a square is covered"}} tags=["hide-input"]
axes = look_inside(model, pictures.test, again, unsure, device) if show_images else None
