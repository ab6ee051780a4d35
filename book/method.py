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
# # The method: CaPE in forty lines
#
# A network that sees only outcomes can be trained towards probabilities: look at how it has answered so far, ask what
# came true among examples that were answered alike, and train towards that. This is CaPE {cite}`liu2022deep`. In the
# example of this page calibration epochs alone keep a network from memorising, and make one that has memorised forget
# much of it; next to one that was stopped in time there is little to mend.

# %% tags=["parameters"]
seed = 0

# %% tags=["remove-cell"]
from probnb_book.notebook import check_parameters, check_run, smoke

check_parameters(globals(), "seed")
check_run(globals())

# %% tags=["remove-cell"]
import numpy as np
import pandas as pd
import seaborn as sns
import torch

from probnb.plots import COLOURS, use_style
from probnb_book import interactive
from probnb_book import method as chapter
from probnb_book.data.faces import load_faces

use_style()
torch.set_num_threads(1)
setting = chapter.Demonstration.smoke(seed) if smoke() else chapter.Demonstration(seed=seed)
splits = load_faces("linear", size=setting.size, n=setting.sizes, seed=seed)
networks = chapter.starts(splits, setting)
fits, moves = chapter.movements(networks, splits, setting)
shown = sorted({0, 1, setting.finetune_epochs // 3, setting.finetune_epochs - 1})


# %% tags=["hide-input"] mystnb={"image": {"alt": "Training faces from the early stop on, prediction across and true probability up, at a few epochs: on outcomes the two colours of outcomes move apart to 0 and 1, on calibration only they stay together."}}
def movement_figure(start):
    """Training faces, prediction across and true probability up, at a few epochs."""
    rows = moves[(moves["start"] == start) & moves["epoch"].isin(shown)]
    rows = rows[rows["targets"] != "every second epoch"].rename(columns={"y": "outcome"})
    drawn = {"x": "p_hat", "y": "p", "hue": "outcome", "style": "outcome", "row": "targets"}
    look = {"palette": [COLOURS["blue"], COLOURS["vermilion"]], "s": 9, "alpha": 0.6}
    look |= {"linewidth": 0, "rasterized": True, "height": 1.95, "aspect": 0.9}
    panels = {"margin_titles": True, "legend_out": False}
    facets = sns.relplot(rows, **drawn, col="epoch", **look, facet_kws=panels)
    for ax in facets.axes.flat:
        ax.axline((0, 0), slope=1, ls="--", color=COLOURS["grey"], lw=1, zorder=0)
    ends = {"lim": (0, 1), "ticks": [0, 0.5, 1], "ticklabels": ["0", "½", "1"]}
    facets.set(**{axis + name: value for axis in "xy" for name, value in ends.items()})
    facets.set_axis_labels(r"prediction $\hat p$", "true probability $p$")
    facets.set_titles(col_template="epoch {col_name}", row_template="{row_name}")
    sns.move_legend(facets, "lower center", bbox_to_anchor=(0.5, 1), ncols=4)
    return facets


facets = movement_figure("early stop")
interactive.epochs(moves, chapter.scores(fits))

# %% [markdown]
# Each point is a face that the network trains on: its prediction across, its true probability up,
# and in colour what happened. At epoch 0 the network has been stopped early. Where it goes on with
# the outcomes only, faces with outcome 1 go right and faces with outcome 0 go left, whatever their
# probability. That is memorisation. Where it goes on with empirical probabilities, calibration only,
# the colours stay together.
#
# The faces are drawn by a program, and a figure shows one training of each kind, made when the page was built. What
# the text says holds in each of twenty-one such trainings, seven seeds as each of three processors computes them, and
# where they disagree it says so. This page shows how the method works; whether it pays is judged in {doc}`results`.
#
# ## The formula
#
# The predictions $\hat p_i$ on the *training* data are cut into bins $I_1, \dots, I_B$ with equally
# many examples, and the empirical probability of an example is the mean outcome of its bin,
#
# $$ p_\mathrm{emp}^i = \frac{1}{|I_b|} \sum_{j \in I_b} y_j, \qquad \hat p_i \in I_b. $$
#
# CaPE has two losses of one form: cross entropy towards the outcomes, for *discrimination*, and
# cross entropy towards the empirical probabilities, for *calibration*,
#
# $$
# \begin{aligned}
# \mathcal L_\mathrm{D} &= -\frac1N \sum_i \bigl[ y_i \log \hat p_i + (1 - y_i) \log (1 - \hat p_i) \bigr], \\
# \mathcal L_\mathrm{C} &= -\frac1N \sum_i \bigl[ p_\mathrm{emp}^i \log \hat p_i
#   + (1 - p_\mathrm{emp}^i) \log (1 - \hat p_i) \bigr].
# \end{aligned}
# $$
#
# Algorithm 1 starts from a network that was stopped early and takes them in turn: every $m$-th
# epoch is a calibration epoch, for which $p_\mathrm{emp}$ is computed anew from the predictions
# of that moment.
#
# ## The empirical probability


# %%
def p_emp(p_hat, y, bins=15):
    """Mean outcome of the quantile bin of each prediction; equal predictions share a bin."""
    _, run, count = np.unique(p_hat, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2  # the middle rank of each distinct prediction
    bin_of = np.floor(bins * middle / len(y)).astype(int)[run]
    ones, rows = np.bincount(bin_of, y), np.bincount(bin_of)
    return ones[bin_of] / rows[bin_of]


# %% [markdown]
# Appendix G of the paper replaces bins by a kernel over the nearest predictions:
# $p_\mathrm{emp}^i = \sum_j K_{ij}\, y_j / \sum_j K_{ij}$, with
# $K_{ij} = \exp(-(\hat p_i - \hat p_j)^2 / \sigma^2)$ for the $r$ nearest $j$. With all the others
# as neighbours it is shorter still:


# %%
def p_emp_smooth(p_hat, y, sigma=0.05):
    """Kernel average of the outcomes over all predictions."""
    K = np.exp(-(((p_hat[:, None] - p_hat[None, :]) / sigma) ** 2))
    return K @ y / K.sum(axis=1)


# %% [markdown]
# The library's versions also take weights, and need no matrix of all pairs. On the predictions of
# the two networks of this page they give the same numbers:

# %%
from probnb.training.cape import p_emp_bin, p_emp_kernel

y, p = splits.train.outcomes.numpy().astype(float), splits.train.probabilities.numpy()
estimates = {}
for start in networks:
    rows = moves.query("start == @start and targets == 'outcomes only' and epoch == 0")
    p_hat = rows["p_hat"].to_numpy(float)
    bins, smooth = p_emp(p_hat, y), p_emp_smooth(p_hat, y)
    np.testing.assert_allclose(bins, p_emp_bin(p_hat, y, bins=15), atol=1e-12)
    np.testing.assert_allclose(smooth, p_emp_kernel(p_hat, y, len(y), sigma=0.05), atol=1e-12)
    estimates[start] = {
        "prediction": p_hat,
        "p_emp, bins": bins,
        "p_emp, kernel": smooth,
        "true, mean of a bin": p_emp(p_hat, p),
    }

# %% tags=["hide-input"] mystnb={"image": {"alt": "Training faces in the order of their predictions, with empirical and true probabilities: after the early stop the empirical follow the true, after the last epoch they follow the predictions."}}
ranked = {
    start: pd.DataFrame(columns).sort_values("prediction", kind="stable", ignore_index=True)
    for start, columns in estimates.items()
}
ranked = pd.concat(ranked, names=["start", "rank"]).reset_index()
ranked = ranked.melt(["start", "rank"], var_name="estimate")
drawn = {"x": "rank", "y": "value", "hue": "estimate", "col": "start"}
look = {"height": 2.9, "aspect": 1.25, "facet_kws": {"legend_out": False}}
look["palette"] = [COLOURS[c] for c in ("black", "blue", "sky", "vermilion")]
facets = sns.relplot(ranked, kind="line", **drawn, **look)
facets.set_axis_labels("training faces, by prediction", "probability")
facets.set_titles("after the {col_name}").set(ylim=(-0.02, 1.02), xticks=[])
sns.move_legend(facets, "lower center", bbox_to_anchor=(0.5, 1), ncols=4, title=None)

# %% [markdown]
# Left, the network that was stopped early: the empirical probabilities follow the true ones of their bins. Right,
# the same training at its last epoch, when the outcomes are known by heart. There the empirical probabilities believe
# the predictions, since they are made of the outcomes that have been memorised, and both are far from the truth. What
# a calibration epoch can do all the same is to withhold the differences between outcomes *within* a bin, from which
# memorising lives.
#
# ## The training loop
#
# All of CaPE. The network, the data and the early stop are given. Without the two lines under
# `if` this is ordinary fine-tuning.

# %%
from torch.nn import functional as F


def predict(network, data):
    """Logits of all faces, in evaluation mode."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(*data.batch(r)) for r in torch.arange(len(data)).split(512)])


def cape(network, splits, epochs, every, batch_size, learning_rate, seed, bins=15):
    """Fine-tune from where the network is; return all validation losses, and the best weights."""
    train, val = splits.train, splits.val
    network = network.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        network.parameters(), learning_rate, momentum=0.9, weight_decay=5e-4, fused=True
    )
    losses, best = [], None
    for t in range(epochs + 1):
        if t > 0:
            targets = train.outcomes
            if t % every == 0:  # a calibration epoch
                p_hat = predict(network, train).softmax(dim=1)[:, 1]
                targets = torch.tensor(p_emp(p_hat.numpy(), train.outcomes.numpy(), bins)).float()
            network.train()
            number = np.random.SeedSequence([seed, t, 1]).generate_state(1)[0]  # of this epoch
            order = torch.randperm(len(train), generator=torch.Generator().manual_seed(int(number)))
            for rows in order.split(batch_size):
                logits = network(*train.batch(rows))
                q = targets[rows]
                loss = F.cross_entropy(logits, torch.stack([1 - q, q], dim=1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        logits = predict(network, val).double()
        losses.append(float(F.cross_entropy(logits, val.outcomes.long())))
        if losses[t] == min(losses):  # the start is a candidate too
            best = {name: value.clone() for name, value in network.state_dict().items()}
    return losses, best


# %% [markdown]
# This is what the library does, number for number: `probnb.training.loop.fit` with the schedule
# `Calibrated("bin", every=2)`, from the same start with the same seed.

# %%
from copy import deepcopy

scaled = splits.to("cpu")  # `batch` then divides by the training data's standard deviation
for start, network in networks.items():
    losses, best = cape(
        deepcopy(network), scaled, setting.finetune_epochs, every=2, seed=seed,
        batch_size=setting.batch_size, learning_rate=setting.finetune_learning_rate,
    )  # fmt: skip
    fit = fits[start, "every second epoch"]
    np.testing.assert_allclose(losses, [row["val_ce"] for row in fit.history], atol=1e-6)
    for name, value in fit.weights.items():
        torch.testing.assert_close(best[name], value, atol=1e-6, rtol=0)
    print(f"from the {start}: validation cross entropy {losses[0]:.3f}, best {min(losses):.3f} "
          f"after epoch {np.argmin(losses)}")  # fmt: skip

# %% [markdown]
# ## With and without calibration epochs
#
# The error on test faces, epoch by epoch; a ring marks the epoch that validation cross entropy
# keeps.

# %% tags=["hide-input"] mystnb={"image": {"alt": "MSE_p on test faces by epoch of fine-tuning, from the early stop and from the last epoch: lowest on calibration only."}}
scores = chapter.scores(fits)
drawn = {"x": "epoch", "y": "MSE_p", "hue": "targets", "style": "targets", "col": "start"}
look |= {"palette": [COLOURS[c] for c in ("vermilion", "green", "blue")]}
look |= {"markers": True, "dashes": False, "mec": "white", "ms": 6}
facets = sns.relplot(scores, kind="line", **drawn, **look)
for name, ax in facets.axes_dict.items():
    kept = scores[(scores["start"] == name) & scores["kept"]]
    ax.plot(kept["epoch"], kept["MSE_p"], "o", ms=13, mfc="none", mec="black", mew=1.2)
facets.set_axis_labels("epoch of fine-tuning", r"test MSE$_p$ $\times$ 100")
facets.set_titles("from the {col_name}").set(ylim=(0, None))
facets.set(xticks=range(0, scores["epoch"].max() + 1, 3))
sns.move_legend(facets, "lower center", bbox_to_anchor=(0.5, 1), ncols=4, title=None)

# %% [markdown]
# **From the early stop** (left), going on with the outcomes raises the error, on average to two and a half times
# what it was. With calibration epochs alone it ends on average where it began, in single trainings a third lower or
# higher, and always well below where the outcomes lead. Calibration keeps what early stopping had found, and adds
# nothing to it here: where validation finds no better epoch than the start, CaPE returns its start.
#
# **From the last epoch** (right) the network has overfitted, and here calibration epochs show what they do. With
# calibration epochs alone the error falls in every training, and ends on average at half of what the outcomes leave.
# In two of the trainings it comes back to that of the early stop. One calibration epoch in two always ends above
# calibration alone; whether it ends below the outcomes depends on the training.
#
# The same network, seen as above:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Training faces from the last epoch on, prediction across and true probability up, at a few epochs: on outcomes the colours stay apart at 0 and 1, on calibration only they come together."}}
facets = movement_figure("last epoch")

# %% [markdown]
# The faces forget part of what happened to them and go back towards their probabilities. Why averaging outcomes
# within a bin slows memorisation, and why it also gives up something that the outcomes knew, is worked out exactly in
# {doc}`theory`. That this page shows so clear an effect and other chapters so small a gain is no contradiction: it
# calibrates in *every* epoch, at a learning rate that overfits quickly, and compares with training on, while what has
# to be beaten in practice is stopping early.

# %% [markdown]
# ## What helps instead: averaged weights
#
# A running average of the network's own weights, taken in after every step, is what {doc}`ablations` recommends where
# there is no pretrained network. It is four lines, which any loop can be given:

# %%
from dataclasses import replace

from torch.optim.optimizer import register_optimizer_step_post_hook

network, average = deepcopy(networks["early stop"]), {}


def take_in(*_):
    for name, now in network.state_dict().items():
        before = average.get(name, now)
        average[name] = before + 0.01 * (now - before)


# %% [markdown]
# Here it follows the fine-tuning above, on outcomes alone, and in the library, number for number, the recipe with
# `averaging=0.99`:

# %%
with register_optimizer_step_post_hook(take_in):
    cape(
        network, scaled, setting.finetune_epochs, every=setting.finetune_epochs + 1, seed=seed,
        batch_size=setting.batch_size, learning_rate=setting.finetune_learning_rate,
    )  # fmt: skip
network.load_state_dict(average)
loss = float(F.cross_entropy(predict(network, scaled.val).double(), scaled.val.outcomes.long()))
recipe = replace(setting.finetuning, averaging=0.99)
fit = setting.train(deepcopy(networks["early stop"]), splits, recipe, keep_start=True)
np.testing.assert_allclose(loss, fit.history[-1]["val_ce"], atol=1e-5)
print(f"validation cross entropy of the average: {loss:.3f}")
