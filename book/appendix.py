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
# # Appendix: what stands behind the five findings
#
# The page {doc}`results` tells five findings. Here is what they leave out: rows that do not help, how far the numbers
# can be trusted, a larger network, and the paper's own tables with ours beneath. Everything is on photographs, with
# five seeds a scenario, where nothing else is said; differences are in $\mathrm{MSE}_p \times 100$.

# %% tags=["parameters"]
results_dir = None  # folder of stored runs; None is results and runs of the project

# %% tags=["remove-cell"]
import pandas as pd

from probnb.validation import find_path
from probnb_book.notebook import check_parameters, results_path

check_parameters(globals(), "results_dir")
runs_dir = results_path()
folders = (
    [find_path(results_dir, "results_dir")]
    if results_dir
    else [runs_dir.parent / "results", runs_dir]
)

from probnb.metrics import holm
from probnb.plots import forest, use_style
from probnb_book import evidence, interactive, posthoc, power, storage
from probnb_book import results as tables
from probnb_book.claims import stored_runs
from probnb_book.claims.statistics import of_run

use_style()
found = evidence.find(folders, "synthetic")
best = {name: runs for name, runs in stored_runs(folders).items() if name != "cifar10"}
if not best:
    raise ValueError(
        f"results_dir must hold runs on photographs (data utkface); got {results_dir!r}."
    )
LESS = "MSE$_p$ × 100, difference (left of 0: the first is better)"

# %% [markdown]
# ## The order of the faces
#
# *Does CaPE find a better order of the faces, which no map can?* Its area under the curve is above that of the
# network that it starts from, told apart in Sigmoid and Discrete. The same fine-tuning without calibration epochs has
# as much: between the two no interval leaves out 0. Temperature, beta and Dirichlet calibration leave the order alone.
# The paper's Platt scaling does not: it reads both logits of a network, whose mean the softmax ignores, and in a
# single training moves the area by half a point either way. Its row is called *Platt, two logits* in this book;
# *Platt scaling* is the map of one log-odds.

# %% tags=["hide-input", "hide-output"]
pairs = [("cape_bin", "ce"), ("ce_finetuned", "ce"), ("cape_bin", "ce_finetuned"), ("platt", "ce")]
order = tables.differences(best, pairs, metric="auc").assign(
    pair=lambda t: t["pair"].str.replace("CE early-stop", "its start")
)
order = order.pivot(index="pair", columns="scenario", values="text")
tables.show(order.rename(columns=str.capitalize).rename_axis(index=None, columns="AUC × 100"))

# %% [markdown]
# ## Calibrated, by the known probabilities
#
# Whether predictions are right on average can be seen here without the noise of outcomes. *Off* is the mean distance of
# a prediction from the true probability of its like, *slope* that of the true log-odds on the predicted ones; below 1
# predictions are too extreme. Kept CaPE networks are too extreme in all five scenarios. Fresh labels are nearly right
# but in Sigmoid, where they are further off than an early-stopped network.

# %% tags=["hide-input", "hide-output"]
ROWS = {"resampled": "fresh labels", "ce": "stopping early", "cape_bin": "CaPE (bin)"}
WORDS = {"exact_error": ("off × 100", 100), "true_slope": ("slope", 1)}
known = {
    (word, ROWS[row]): pd.Series(
        {
            scenario.capitalize(): tables.over_seeds(
                pd.Series([of_run(line, name, row) for line in runs.itertuples()]), scale
            )
            for scenario, runs in best.items()
        }
    )
    for name, (word, scale) in WORDS.items()
    for row in ROWS
}
tables.show(pd.DataFrame(known))

# %% [markdown]
# ## Losses that are meant to keep a network calibrated
#
# Of two strengths each, validation choosing, focal loss is worse than stopping early in three scenarios and entropy
# regularisation in Skewed; MMCE is told from it nowhere, and none is told better. Focal loss and entropy
# regularisation are not proper: the expectation is lowest elsewhere than at the true probability, for focal loss see
# {cite}`charoenphakdee2021focal`. That is also why a map gives most of the loss back in Skewed and Discrete.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of focal loss, entropy regularisation and MMCE less early stopping, by scenario: none is told below 0, focal loss is above it in three."}}
table = tables.differences(best, [(loss, "ce_mean") for loss in ("focal", "entropy", "mmce")])
ax = forest(table, hue="pair", xlabel=LESS)

# %% [markdown]
# ## Calibrating from the beginning
#
# The paper's Table 12 has it far behind CaPE, and explains that first predictions are random. Here nothing of the
# kind is seen: less CaPE one scenario lies on either side of 0, and once five scenarios are looked at, Holm's
# correction leaves neither. Less stopping early no scenario shows harm, and Discrete a gain.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot of calibration from the beginning and of averaged weights less early stopping, CaPE or the ensemble, by scenario, with intervals over seeds."}}
pairs = [
    ("beginning_bin", "ce_mean"),
    ("beginning_bin", "cape_bin"),
    ("beginning_kernel", "cape_kernel"),
    ("ce_averaged", "ce_mean"),
    ("ce_averaged", "ensemble"),
]
ax = forest(tables.differences(best, pairs), hue="pair", xlabel=LESS)

# %% [markdown]
# ## Calibration after the fact
#
# Every map is fitted to stored validation predictions and judged on the test rows, against the same network without
# it. The tables have the gain in log-loss, in thousandths of a nat (positive is better), first of one network, then of
# the ensemble. They are by source of the data: the five scenarios share their faces, so that they count as one, and
# intervals are over seeds. Three maps are not the paper's: *quadratic* and *spline* bend Platt's line, and *Venn-Abers*
# {cite}`vovk2015` lies between two isotonic regressions.
#
# **Stopping early leaves little to mend**: on photographs the smooth maps gain one or two thousandths, and of the
# other sources none is told to gain anything. **Steps lose**: isotonic regression has a lower mean than no map at all
# in every source, since it promises 0 and 1 after a few hundred rows, and Venn-Abers takes most of that back. Bending
# does not pay. A public comparison {cite}`berta2026calarena` on images has Venn-Abers first, where ours has it behind
# every smooth map on photographs: it is never certain, which pays where networks are certain and wrong. Ours were
# stopped early.

# %% tags=["hide-input", "hide-output"]
gains = posthoc.post_hoc(folders[:1])
tables.show(posthoc.post_hoc_table(gains)) if len(gains) else None

# %% tags=["hide-input", "hide-output"]
tables.show(posthoc.post_hoc_table(gains, "ensemble")) if len(gains) else None

# %% [markdown]
# (appendix-larger)=
# ## More pixels and a wider network
#
# Linear and Discrete were run again at 48 × 48 pixels and width 16, three seeds each, on the faces and outcomes of 32
# pixels. Stopping early ends where it did; on labels drawn afresh the larger network is better, so that more is lost.
# The ensemble helps as it did, and averaged weights in Linear; in Discrete three seeds do not show it. CaPE is not
# told from its control in either.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot at 48 pixels and width 16: the ensemble lies below early stopping in both scenarios, averaged weights in Linear, and CaPE less its control at 0 in both."}}
photographs = found[(found["data"] == "utkface") & (found["profile"] == "cpu")]
sizes = evidence.kinds(photographs[photographs["size"] == 48])[::-1]  # most seeds last
larger = {group["task"].iloc[0]: group for group in sizes}
rows = ("ensemble", "ce_averaged", "beginning_bin", "resampled")
pairs = [*((row, "ce_mean") for row in rows), ("cape_bin", "ce"), ("cape_bin", "ce_finetuned")]
table = tables.differences(larger, pairs)
ax = forest(table, label="pair", hue="label", xlabel=LESS) if len(table) else None

# %% tags=["hide-input", "hide-output"]
parts = [best[task][best[task]["seed"].isin(group["seed"])] for task, group in larger.items()]
scores = evidence.scores(pd.concat([*parts, *larger.values(), found[:0]]), ["mse_p"])
scores = scores.assign(size=scores["size"].map("{} px".format), value=100 * scores["value"])
shown = scores.pivot_table(index="method", columns=["task", "size"], values="value").dropna()
shown = shown.rename(tables.label).rename(columns=str.capitalize, level=0)
tables.show(shown.round(2).rename_axis(index=None, columns=["", ""]))

# %% [markdown]
# ## On pretrained features, seed by seed
#
# Five scenarios, ten seeds each. Where scripts run, choose which seeds count: with one alone, the picture is what a
# single training would have said. Averaged weights are better than stopping early in Linear and Sigmoid here, and
# worse in Skewed and Centered. Logistic regression, a convex fit of two seconds, is behind the small network in three
# scenarios and ahead of it in two; neither Platt scaling nor CaPE on top of it changes anything that ten seeds could
# show.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Forest plot on pretrained features, five scenarios, ten seeds: the ensemble below one network, CaPE less its control at 0, logistic regression on either side."}}
pretrained = stored_runs(folders, pretrained=True)
pairs = [
    ("ensemble", "ce_mean"),
    ("cape_bin", "ce_finetuned"),
    ("logistic", "ce_mean"),
    ("ce_averaged", "ce_mean"),
]
table = tables.differences(pretrained, pairs)
ax = forest(table, hue="pair", xlabel=LESS) if len(table) else None
interactive.seeds(pretrained, pairs)

# %% [markdown]
# ## How many differences stand out by chance?
#
# The pages look at sixteen differences in each scenario, those left out that cannot have another sign (an ensemble
# less the mean of its own members). Of these 80, 29 intervals leave out 0, where four would by chance. Holm's
# correction for all looks leaves two, both of the ensemble: less CaPE in Linear, and less Platt scaling of two logits
# in Discrete.

# %% tags=["hide-input", "hide-output"]
FINDINGS = (
    *((a, b) for a in ("cape_bin", "cape_kernel") for b in ("ce", "ce_finetuned")),
    *(("ensemble", b) for b in ("cape_bin", "platt")),
    *((a, "ce_mean") for a in ("beginning_bin", "beginning_kernel")),
    *(("beginning_bin", "cape_bin"), ("beginning_kernel", "cape_kernel")),
    *(("ce_averaged", b) for b in ("ce_mean", "cape_bin", "ensemble")),
    *((a, "ce_mean") for a in ("focal", "entropy", "mmce")),
)
looks = tables.differences(best, FINDINGS)
looks = looks.assign(Holm=holm(looks["p"])) if len(looks) else looks
if len(looks):
    shown = looks[["label", "pair", "text", "p", "Holm"]].round(4).set_index(["label", "pair"])
    shown = shown.rename(columns={"text": "MSE_p × 100"}).rename_axis(["", ""])
tables.show(shown) if len(looks) else None

# %% [markdown]
# ## How many trainings would it take?
#
# Two rows differ from seed to seed, because each seed has faces, outcomes and weights of its own. From that deviation
# follows how many seeds show a difference with 80 % power, by Student's paired test at the usual level. Scenarios have
# errors that differ twentyfold, so that all is in per cent of the error of stopping early. In brackets are the seeds
# for both ends of the deviation's interval. *Due to rows* is the part of the variance that more test faces would take
# away.
#
# **One training could never have shown most of what is at issue.** A single training of each shows a gain over the
# ensemble of 16 %; the paper's CaPE is ahead of its ensemble by a third of that in Linear. The intervals of its tables
# are over test faces, which make a tenth of the variance: what is missing is trainings. CaPE and its control go
# together, so that five seeds show 2 % between them, and 5 % of CaPE over its start.

# %% tags=["hide-input", "hide-output"]
shown = power.needed(power.spread(best))
tables.show(shown) if len(shown) else None

# %% [markdown]
# The same on pretrained features:

# %% tags=["hide-input", "hide-output"]
shown = power.needed(power.spread(pretrained)) if pretrained else []
tables.show(shown) if len(shown) else None

# %% [markdown]
# ## Another processor
#
# A processor computes with the instructions it has, and sums in another order give other roundings, which training
# enlarges. How much of a difference is it? Five rows of Linear, on drawn faces, five seeds, as three processors compute
# them. *Between processors* is the standard deviation of the error of one row with the same data, weights and order;
# *between trainings*, where a row has several on the same data, that of networks with other weights and in another
# order, as one processor computes them; *between seeds* everything is drawn anew (times 100):

# %% tags=["hide-input"]
from probnb.methods import METHODS

study = storage.read(runs_dir.parent / "results", "machines", "instructions")
study["error"] = 100 * study["mse_p"]
rows = (
    study[~study["row"].str.startswith("member")]
    .groupby(["row", "seed", "machine"])["error"]
    .first()
)
members = study[study["row"].str.startswith("member")].groupby(["seed", "machine"])["error"]
spread = pd.DataFrame(
    {
        "error": rows.groupby("row").mean(),
        "between processors": rows.groupby(["row", "seed"]).var().groupby("row").mean() ** 0.5,
        "between trainings": pd.Series({"ce": members.var().mean() ** 0.5}),
        "between seeds": rows.groupby(["row", "seed"]).mean().groupby("row").std(),
    }
)
spread = spread.reindex([name for name in METHODS if name in spread.index])
tables.show(spread.rename(tables.label).round(2).astype(object).fillna(""))

# %% [markdown]
# **What is promised.** On one instruction set and precision the same seed gives the same numbers, bit for bit, which
# tests hold. On another a training is another training of the same data, as far off as new weights and a new order
# would have put it. So no sentence of this book rests on one training, and what the pages say is checked on several
# processors (`make anywhere`). A run's record has processor and precision, new ones the instruction set as well. One
# study that is stored mixes two precisions: {doc}`ablations`, the starts on photographs of Linear, of which one seed of
# three was computed in bfloat16. In bfloat16 a stored run is found again on another make of processor nearly to the
# last digit: the first seed of simulated lung cancer, which in float32 nobody gets back, has the stored cross entropy
# to four digits in every row but one, which is MMCE.

# %% [markdown]
# ## The paper's tables
#
# The paper's numbers ± one bootstrap standard deviation over test rows; ours under them, the mean over seeds and in
# brackets the standard deviation between seeds, where there are several. Seeds are five. *CE early-stop* is the mean
# of all trainings of a seed; post-hoc rows repair the first. An asterisk marks a misprint or a suspect value, see
# {doc}`errata`. *Mix-n-match* is without the isotonic step that the paper's text has and its tables, by their own
# AUC, do not; with it a prediction can be 0 or 1, and $\mathrm{KL}_p$ infinite. The paper does not state the size of
# its images.
#
# ### Table 1, $\mathrm{MSE}_p$

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(best, "mse_p"))

# %% [markdown]
# ### Table 1, $\mathrm{KL}_p$

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(best, "kl_p"))

# %% [markdown]
# ### Table 1 on pretrained features, $\mathrm{MSE}_p$

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(pretrained, "mse_p")) if pretrained else None

# %% [markdown]
# ### Table 3: Linear

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="linear"))

# %% [markdown]
# ### Table 4: Sigmoid

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="sigmoid"))

# %% [markdown]
# ### Table 5: Centered

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="centered"))

# %% [markdown]
# ### Table 6: Skewed

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="skewed"))

# %% [markdown]
# ### Table 7: Discrete

# %% tags=["hide-input", "hide-output"]
tables.show(tables.paper_table(best, scenario="discrete"))

# %% [markdown]
# ## What lies behind the rows
#
# ### Calibration epochs behind every kept network
#
# A row of CaPE without one is its control by another name.

# %% tags=["hide-input", "hide-output"]
tables.show(tables.behind(best))

# %% [markdown]
# ### Every setting of CaPE that was tried on Linear
#
# From the same early-stopped networks, with the control beside it: epochs kept and calibration epochs
# up to them, seed by seed; $\mathrm{MSE}_p \times 100$ less that of the start, in the kept and in the last epoch. The best
# lie at the edge of what was tried: of the eighteen fine-tunings with CaPE that validation kept in all scenarios,
# seventeen have the fewest bins and fifteen the lower rate.

# %% tags=["hide-input", "hide-output"]
linear = found[(found["task"] == "linear") & (found["data"] == "utkface") & (found["size"] == 32)]
tables.show(tables.candidates(linear)) if len(linear) else None

# %% [markdown]
# ### Where gains come from
#
# What rows take off the error of the first early-stopped network (positive is better), split into what one
# intercept, Platt scaling and any monotone map would have given as well, and what is left: a better
# order of the faces. Maps are cross-fitted, see `probnb.calibrators.gain_parts`.

# %% tags=["hide-input", "hide-output"]
rows = ("platt", "ce_finetuned", "cape_bin", "ensemble", "beginning_bin", "ce_averaged")
tables.show(tables.gains(best, rows))

# %% [markdown]
# ### Which runs there are
#
# Drawn faces are a smaller task of our own and enter nothing above. The paper's pictures of a scenario and
# of overfitting in one training (its Figures 4, 14 and 15) are on the page {doc}`synthetic`.

# %% tags=["hide-input", "hide-output"]
tables.show(tables.run_table(found))

# %% [markdown]
# ### How everything was trained
#
# The paper states few of its settings. What it states, what the released code does, and what is done
# here, where that can matter:

# %% tags=["hide-input", "hide-output"]
tables.show(tables.training_details(), words=True)

# %% [markdown]
# What each claim of the paper comes to stands in {doc}`claims`.
