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
# # Metrics: what each score sees
#
# Which score that can be computed from outcomes follows the distance from the probabilities behind
# them, which nobody sees? Those that are proper do: across trained networks the Brier score goes with
# the distance from the truth in four of five scenarios, and the negative log-likelihood nearly so. The
# calibration errors ECE, MCE and KS do not: they tell a memorised network from a good one, and say
# little about which of several good ones is nearest to the truth.

# %% tags=["parameters"]
scenarios = None  # None for all five, or names such as "linear, discrete"
bins = 15  # quantile bins of the reliability diagrams and the decomposition
seed = 0
replicates = 1000  # bootstrap replicates
draws = 100  # test sets drawn in each simulation
results_dir = None  # finished work; None is the folder "runs" of the project

# %% tags=["remove-cell"]
from probnb_book.notebook import check_parameters, results_path, smoke

check_parameters(globals(), "scenarios bins seed replicates draws results_dir")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from probnb.experiment.results import on_test
from probnb.methods import METHODS
from probnb.metrics import METRICS
from probnb.plots import COLOURS, forest, grid, reliability_grid, use_style
from probnb.validation import check_choices, check_integer
from probnb_book import estimators, storage
from probnb_book import metrics as chapter
from probnb_book import simulated_streams as chapter_watch
from probnb_book.authors import derived
from probnb_book.scenarios import SCENARIOS

globals().update({"scenarios": "linear", "replicates": 50, "draws": 10} if smoke() else {})
scenarios = check_choices(SCENARIOS if scenarios is None else scenarios, SCENARIOS, "scenarios")
check_integer(bins, "bins")
check_integer(seed, "seed", minimum=0)
check_integer(replicates, "replicates", minimum=2)
check_integer(draws, "draws", minimum=2)
results = [results_path(results_dir), results_path().parent / "results"]
use_style()
runs = chapter.best_runs(results, scenarios)
every = pd.concat(runs.values())
first = {name: lines["run"].iloc[0] for name, lines in runs.items()}
trained = chapter.collect_models(every)
printed = chapter.paper_models().query("scenario in @scenarios")
table = chapter.correlations(pd.concat([trained, printed]))


# %% tags=["hide-input"] mystnb={"image": {"alt": "Scores of outcomes against MSE_p of trained networks, a panel a score: for the Brier score and NLL the points rise along a line, for ECE, MCE and KS methods scatter."}}
def label_of(metric):
    """The label of a metric of which less is better, with its index set lower."""
    label = METRICS[metric].label.replace("_p", "$_p$")
    return label if METRICS[metric].lower_is_better else f"1 - {label}"


colours = {"epoch": "0.5", "method": COLOURS["blue"]}
shown = trained[trained["scenario"] == scenarios[0]]
shown = shown[shown["seed"] == shown["seed"].min()].assign(auc=1 - shown["auc"])
shown = shown.replace(np.inf, np.nan).sort_values("kind")
long = shown.melt(["kind", "mse_p"], list(table["metric"].unique()), "metric")
drawn = {"x": "mse_p", "y": "value", "col": "metric", "hue": "kind", "size": "kind"}
look = {"palette": colours, "sizes": {"epoch": 8, "method": 30}, "rasterized": True}
look |= {"col_wrap": 3, "height": 2.2, "aspect": 1.1, "legend": False}
facets = sns.relplot(long, **drawn, **look, facet_kws={"sharex": False, "sharey": False})
found = table[(table["scenario"] == scenarios[0]) & (table["target"] == "mse_p")]
found = found.set_index(["kind", "metric"])["pearson"].map("{:.2f}".format)
for metric, ax in facets.axes_dict.items():
    ax.set_title(found.get(("epoch", metric), ""), loc="left", color=colours["epoch"], fontsize=9)
    ax.set_title(
        found.get(("method", metric), ""), loc="right", color=colours["method"], fontsize=9
    )
    ax.set(title="", ylabel=label_of(metric))
_ = facets.set_xlabels(label_of("mse_p")).tight_layout()

# %% [markdown]
# Every point is a trained network of the {doc}`synthetic chapter <synthetic>`: its distance from the
# truth across, a score of outcomes up. In blue the methods of one table, in grey every epoch that
# their trainings passed through; above each panel Pearson's correlation for both, the mean over
# seeds, of which the first is drawn.
#
# This chapter is Section 3 of {cite}`liu2022deep` with its Appendices D, E and F. All scores are in
# `probnb.metrics`, and `evaluate(y, p_hat, p=None)` returns them together.
#
# ## The scores
#
# **With the truth.** The mean squared error, and the Kullback-Leibler divergence in nats:
#
# $$
# \begin{aligned}
# \mathrm{MSE}_p &= \frac1N \sum_{i=1}^N (\hat p_i - p_i)^2, \\
# \mathrm{KL}_p &= \frac1N \sum_{i=1}^N \Bigl[ p_i \log\frac{p_i}{\hat p_i}
#   + (1 - p_i) \log\frac{1 - p_i}{1 - \hat p_i} \Bigr].
# \end{aligned}
# $$
#
# This is $\mathrm{KL}(p \,\|\, \hat p)$, which the paper's tables hold; its Section 3 prints the
# other direction (see {doc}`errata`). `kl_p` offers both, and is infinite where it is infinite: a
# prediction of exactly 0 for something that can happen is infinitely far from the truth.
#
# **With outcomes.** The Brier score {cite}`brier1950` and the negative log-likelihood put $y_i$ in
# the place of $p_i$:
#
# $$
# \begin{aligned}
# \mathrm{Brier} &= \frac1N \sum_i (\hat p_i - y_i)^2, \\
# \mathrm{NLL} &= -\frac1N \sum_i \bigl[ y_i \log \hat p_i + (1 - y_i) \log(1 - \hat p_i) \bigr].
# \end{aligned}
# $$
#
# They are proper {cite}`gneiting2007`: given $p$, their expectations are
#
# $$
# \begin{aligned}
# \mathbb E\,\mathrm{Brier} &= \mathrm{MSE}_p + \frac1N\sum_i p_i (1 - p_i), \\
# \mathbb E\,\mathrm{NLL} &= \mathrm{KL}_p + \frac1N\sum_i H(p_i),
# \end{aligned}
# $$
#
# where the second terms belong to the data and are the same for every model. The entire agreement
# between Brier and $\mathrm{MSE}_p$ below comes from this line.
#
# **Calibration.** Sort the rows by prediction and cut them into $B = 15$ bins with equally many rows.
# With $q^{(b)}$ the mean prediction and $p_\mathrm{emp}^{(b)}$ the mean outcome of a bin,
#
# $$
# \begin{aligned}
# \mathrm{ECE} &= \frac1B \sum_b \left| p_\mathrm{emp}^{(b)} - q^{(b)} \right|, \\
# \mathrm{MCE} &= \max_b \left| p_\mathrm{emp}^{(b)} - q^{(b)} \right|,
# \end{aligned}
# $$
#
# and the KS error {cite}`gupta2021spline` is the largest gap between two cumulative curves, without
# bins. **Discrimination.** AUC is the probability that a row with outcome 1 is predicted higher than
# one with outcome 0.
#
# ## Calibration is not enough
#
# Eight rows, four with $p = 1/4$ and four with $p = 3/4$ (Figure 2 of the paper). The first model
# gives the true probabilities, the second the same answer to everything. Both are calibrated: among
# rows with the same prediction, the share of ones *is* the prediction.

# %%
small = pd.DataFrame({"y": [0, 0, 1, 0, 1, 1, 0, 1], "p": np.repeat([0.25, 0.75], 4)})
small = small.assign(truth=small["p"], **{"one answer": 0.5})
small.T.style.format("{:g}")

# %%
from probnb.metrics import evaluate

scores = {m: evaluate(small["y"], small[m], small["p"]) for m in ("truth", "one answer")}
pd.DataFrame.from_dict(scores, orient="index").style.format("{:.4f}")

# %% [markdown]
# By hand: the true probabilities leave $6 \cdot (1/4)^2 + 2 \cdot (3/4)^2 = 3/2$ over eight rows,
# and the single answer $8 \cdot (1/2)^2 = 2$. The calibration errors are 0 for both; Brier, NLL and
# AUC tell them apart.
#
# ## Five models of one world
#
# Now as many rows as the paper's test set has, probabilities spread evenly, and five models. *Coarse*
# tells only high from low, *constant* does not even do that; both are calibrated. *Overconfident*
# and *shifted* know the order of the rows perfectly, but exaggerate, or are too high throughout.

# %%
from scipy.special import expit, logit

from probnb.metrics import bootstrap


def example_models(n=2329, seed=0):
    """Outcomes drawn from known probabilities, and predictions of five models."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    answers = {
        "truth": p,
        "coarse": np.where(p < 0.5, 0.26, 0.74),
        "constant": 0.5,
        "overconfident": expit(2.5 * logit(p)),
        "shifted": expit(logit(p) + 0.7),
    }
    return pd.DataFrame({"y": (rng.random(n) < p).astype(int), "p": p, **answers})


models = example_models(seed=seed)
predictions = models.drop(columns=["y", "p"])
result = bootstrap(models["y"], predictions, models["p"], replicates=replicates, seed=seed)
result.point.style.format("{:.4f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Reliability diagrams of five simulated models with their true probabilities: the truth on the diagonal, two calibrated but coarse ones, one overconfident and one shifted."}}
axes = reliability_grid(models["y"], predictions, p=models["p"], bins=bins)

# %% [markdown]
# ## The parts of the Brier score
#
# Group the rows by prediction: group $k$ has $n_k$ rows, prediction $\hat q_k$ and mean outcome
# $\bar q_k$. Then (Appendix E; {cite}`murphy1973,degroot1983`)
#
# $$
# \mathrm{Brier} = \underbrace{\frac1N \sum_k n_k (\hat q_k - \bar q_k)^2}_{\text{calibration}}
#   + \underbrace{\frac1N \sum_k n_k \bar q_k (1 - \bar q_k)}_{\text{refinement}} .
# $$
#
# This is exact, and useless when every prediction is distinct: each row is its own group, and the calibration term is
# the whole score. With bins of *unequal* predictions two terms more are needed {cite}`stephenson2008`, the variance
# of the predictions within bins and twice their covariance with the outcomes, where $b(i)$ is the bin of row $i$,
# $q_b$ and $\bar y_b$ its mean prediction and outcome:
#
# $$
# \begin{aligned}
# \mathrm{Brier} = {} & \text{calibration} + \text{refinement} \\
#   & + \frac1N \sum_i (\hat p_i - q_{b(i)})^2 \\
#   & - \frac2N \sum_i (\hat p_i - q_{b(i)})(y_i - \bar y_{b(i)}) .
# \end{aligned}
# $$
#
# `brier_decomposition` reports all of them, so that the parts add up to the score with any binning.
# Four rows by hand, in two bins:

# %%
from dataclasses import asdict

from probnb.metrics import brier_decomposition

parts = brier_decomposition([0, 1, 1, 1], [0.2, 0.4, 0.6, 1.0], bins=2)
pd.Series(asdict(parts)).to_frame("value").style.format("{:.4g}")

# %% [markdown]
# The bins predict 0.3 and 0.8 on average and see 0.5 and 1, so calibration is 0.04 and refinement
# 1/8; variance within bins 0.025, covariance 0.025: together 0.04 + 0.125 + 0.025 - 0.05 = 0.14,
# which is the score.

# %%
from probnb.metrics import brier

brier([0, 1, 1, 1], [0.2, 0.4, 0.6, 1.0])

# %% [markdown]
# And the five models. What a model knows is refinement, and how honestly it says so, calibration.

# %%
parts = {m: asdict(brier_decomposition(models["y"], models[m], bins)) for m in predictions}
pd.DataFrame(parts).T.style.format("{:.4f}").set_table_attributes('class="fit"')

# %% [markdown]
# ## KS: calibration without bins
#
# Calibration, $\mathbb P(y = 1 \mid \hat p = q) = q$, multiplied by the density of the predictions and
# integrated up to $\sigma$, says that two curves are one (Appendix D):
#
# $$
# \begin{aligned}
# \phi_1(\sigma) &= \frac1N \sum_i y_i \, 1(\hat p_i \le \sigma), \\
# \phi_2(\sigma) &= \frac1N \sum_i \hat p_i \, 1(\hat p_i \le \sigma), \\
# \mathrm{KS} &= \max_{0 \le \sigma \le 1} |\phi_1(\sigma) - \phi_2(\sigma)| .
# \end{aligned}
# $$
#
# Both are constant between distinct predictions, so the maximum is taken at those. At
# $\sigma = 1$ the gap is the difference of the means: a model that is too high throughout shows
# most there; one that exaggerates in both directions shows in the middle, and its errors cancel at
# the end.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two cumulative curves of outcomes and of predictions for three models, and the largest gap between them, which is the KS error."}}
from probnb.metrics import ks_curves

axes = grid(3, columns=3, size=(2.5, 2.8), sharex=True, sharey=True)[1]
for ax, name in zip(axes, ["truth", "overconfident", "shifted"]):
    sigma, observed, predicted = ks_curves(models["y"], models[name])
    k = np.abs(observed - predicted).argmax()
    ax.step(sigma, observed, where="post", color="black", label=r"$\phi_1$: observed")
    ax.step(sigma, predicted, where="post", color=COLOURS["blue"], label=r"$\phi_2$: predicted")
    ax.vlines(
        sigma[k],
        *sorted([observed[k], predicted[k]]),
        COLOURS["vermilion"],
        lw=3,
        label="largest gap",
    )
    ax.set_title(f"{name}: KS {abs(observed[k] - predicted[k]):.3f}", loc="left", fontsize=10)
    ax.set(xlabel=r"prediction up to $\sigma$", xlim=(0, 1))
axes[0].set_ylabel("cumulative share of rows")
_ = axes[0].legend(loc="upper left", fontsize=9)

# %% [markdown]
# ## A calibration error is never zero
#
# The absolute values in the ECE turn noise into error. With $N / B$ rows in a bin and outcomes of
# variance $v$, the gap of a *perfect* model is nearly normal with variance $v B / N$, so that its
# ECE is expected to be
#
# $$
# \mathbb E\, \mathrm{ECE} \approx \sqrt{\frac{2 v B}{\pi N}} > 0 .
# $$
#
# More bins, more error {cite}`roelofs2022bias`. The figure shows the mean of several estimates for a
# model whose true error is 0: the plain ECE; the debiased ECE of {cite}`kumar2019verified`, which
# subtracts the bias it estimates from the data, and gets rid of only $\sqrt 2 - 1$ or 41 % of it here
# (of far more where there is error to be found); and the smooth ECE of
# {cite}`blasiok2024smooth`, which replaces bins by a kernel whose width is the error itself.

# %%
from functools import partial

from probnb.metrics import calibration_null_band, ece, ece_debiased, ece_smooth

estimates = {f"ECE, {b} bins": partial(ece, bins=b) for b in sorted({5, bins, 50})}
estimates |= {"debiased, 15 bins": ece_debiased, "smooth": ece_smooth}
by_rows = {}
for k, n in enumerate([100, 300, 1000, 3000, 10_000]):
    p = example_models(n, seed + k)["p"]
    by_rows[n] = {
        name: calibration_null_band(p, metric, replicates=draws, seed=seed).mean
        for name, metric in estimates.items()
    }
    by_rows[n]["normal theory, 15 bins"] = np.sqrt(2 * np.mean(p * (1 - p)) * 15 / (np.pi * n))
by_rows = pd.DataFrame(by_rows).T.rename_axis("rows")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Mean of several calibration errors of a perfect model against the number of rows: all are above 0 and fall with more rows; more bins lie higher."}}
ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")[1]
sns.lineplot(by_rows, markers=True, ax=ax)
ax.set(xscale="log", yscale="log", xlabel="rows in the test set")
ax.set_ylabel("mean estimate (true error: 0)")
sns.move_legend(ax, "center left", bbox_to_anchor=(1, 0.5))

# %% [markdown]
# What to compare a measured error with, then, is not 0 but what chance gives: draw new outcomes
# from the predictions many times, as if they were the truth, and look at the errors
# {cite}`brocker2007`. An ECE within the band, from `low` to `high`, is no evidence against the model.

# %%
bands = {m: calibration_null_band(models[m], replicates=2 * draws, seed=seed) for m in predictions}
errors = {m: ece(models["y"], models[m]) for m in predictions}
bands = {m: {"ECE": errors[m], "low": band.low, "high": band.high} for m, band in bands.items()}
pd.DataFrame(bands).T.style.format("{:.4f}")

# %% [markdown]
# The bootstrap does not help. Its intervals lie about the *estimate*, so that those of errors near 0 tend to lie
# above the truth. Here is how often 95 % intervals hold the true value for a perfect model with 500 rows:

# %%
names = ["brier", "ece", "ks"]
true = pd.Series([1 / 4 - 0.96**2 / 12, 0, 0], names)  # of p uniform on (.02, .98), mean p (1 - p)
how = {"replicates": 200, "metrics": names, "progress": False}
covered, points = [], []
for trial in range(seed, seed + draws):
    perfect = example_models(500, trial)
    resampled = bootstrap(perfect["y"], perfect[["truth"]], seed=trial, **how)
    low, high = (end.loc["truth"] for end in resampled.interval())
    covered.append((low <= true) & (true <= high))
    points.append(resampled.point.loc["truth"])
held = pd.DataFrame(
    {"true": true, "estimate": np.mean(points, axis=0), "cover": np.mean(covered, axis=0)}
)
held.style.format({"true": "{:.4f}", "estimate": "{:.4f}", "cover": "{:.0%}"})

# %% [markdown]
# Nineteen of twenty intervals hold the Brier score, none the ECE, and half the KS error, where they are cut off at 0.
# Read an interval of ECE, MCE or KS as the noise of the estimate, never as a range for the true error. *Differences*
# between models on the same rows are another matter when the models' errors are well above the band of chance.

# %% [markdown]
# ## Which estimate of the calibration error to trust
#
# Estimates are usually judged on predictions that are calibrated by design. The faces allow more: the true probability
# of each is known, and so the calibration error of any network, $\mathbb E|\mathbb E(p \mid \hat p) - \hat p|$, can be
# had without the noise of outcomes. Faces of one prediction still differ in $p$, which takes some smoothing
# (`probnb_book.claims.statistics.exact_errors`: where the answer is known in closed form it is within 0.3 of it, times
# 100 as all numbers here). The 1,425 predictions are those of all rows on photographs but the overfitted network; their
# errors are 1.36 on average.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Estimates of the calibration error beside its exact value, for stored predictions: the ECE lies above the exact error, maps fitted out of fold near or below it."}}
judged = derived(results, "estimators")
if judged is not None:
    misses = estimators.misses(judged).replace({"estimate": estimators.ESTIMATORS})
    means = {"marker": "D", "mfc": "white", "mec": "black", "ms": 4}
    look = {"whis": (5, 95), "showfliers": False, "showmeans": True, "meanprops": means}
    ax = sns.boxplot(misses, x="gap", y="estimate", hue="start", linewidth=1, **look)
    ax.axvline(0, color=COLOURS["black"], linewidth=0.8)
    ax.set(ylabel="", xlabel="Estimate less exact calibration error × 100 (whiskers: 5 to 95 %)")
    sns.move_legend(ax, "lower center", bbox_to_anchor=(0.4, 1), ncols=2, title=None)

# %% [markdown]
# Beside the ECE (with bins of equal size and of equal width), the debiased and the smooth one stand maps of the
# prediction that are fitted to outcomes. *In sample* is the isotonic regression of a reliability diagram without
# bins {cite}`dimitriadis2021corp`. *Out of fold* a row is judged by a map that was fitted to others, which in
# expectation finds no more error than there is, whatever the map {cite}`berta2026`. What is below 0 counts as 0.
#
# - **The ECE says twice the error**: it is 1.58 too high, and too high in nearly all of the predictions. Bins of equal
#   width, of which few are full, exaggerate less, and the debiased ECE least of the three.
# - **Maps of two or three parameters, out of fold, are off least**: beta calibration and a quadratic in the log-odds by
#   less than half of what the ECE is off. They err on the other side, too low in about two thirds of the predictions.
#   The flexible isotonic map out of fold pays for its noise.
# - **None of them says how large an error of this size is.** Whoever looks at no outcome and always says the median is
#   off by less than any estimate. Two thousand outcomes tell a memorised network from a good one, and hardly more.
# - **To rank the rows of a table** the smooth ECE, the isotonic map in sample, the beta map and the quadratic are
#   better than the ECE; the first two are also better than bins of equal width, and none is good: the best rank
#   correlation with the exact error is a half. The debiased ECE orders as the ECE does.
#
# So compare by the smooth ECE, show that there is an error by the lower bound of a beta map, and take neither for its
# size. That bounds out of fold do not overestimate, which Berta et al. find, holds here on average.

# %% tags=["hide-output"]
if judged is not None:
    told = estimators.summary(judged).rename(estimators.ESTIMATORS)
    told = told.apply(lambda gaps: [gap.text(1, 0 if "%" in gaps.name else 2) for gap in gaps])
    display(told.replace({r"\+": "", "not defined": ""}, regex=True))

# %% [markdown]
# ## Turn them yourself
#
# A temperature and an intercept on the log-odds are Platt scaling by hand: they move calibration and
# leave the order of the rows alone. How near to 0 can you bring the ECE of each row, and what does
# $\mathrm{MSE}_p$ do meanwhile? The picture has stored predictions on test faces of one scenario; where
# scripts run it takes any scenario, row and number of bins.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Reliability diagrams of stored predictions of one scenario, a panel a row, with the true probability of each test face."}}
from probnb_book import interactive

test = on_test(storage.read_results(first[scenarios[0]]).predictions)
rows = [row for row in interactive.ROWS if row in test]
shown = test[rows].rename(columns=lambda row: METHODS[row].label)
axes = reliability_grid(test["y"], shown, p=test["p"], bins=bins, columns=3)
interactive.reliability(first, bins)

# %% [markdown]
# ## The metric of metrics
#
# Does the score that we can have follow the one that we want? Figure 3 of the paper and its
# Appendix F answer with trained networks on data with known $p$. The figure at the top shows one
# scenario (`-p scenarios discrete` draws another); here are the correlations in all of them. The runs
# that these networks come from:

# %%
counted = trained.groupby(["scenario", "kind"], sort=False).size().unstack()
counted.assign(
    seeds=[len(runs[name]) for name in counted.index],
    first=[str(first[name]) for name in counted.index],
)

# %% [markdown]
# How sure are these correlations? Each is taken within a seed, over all of its rows, which share their test faces
# ({doc}`claims` asks the paper's twelve), and averaged over seeds as Fisher's z, with Student's interval. The third
# panel is made of the rows of the paper's own Tables 3 to 7, one for each method, with Fisher's interval.


# %% tags=["hide-input"] mystnb={"image": {"alt": "Correlation of each score with MSE_p by scenario, with intervals, across methods, across epochs and in the tables of the paper: Brier highest, calibration errors low across methods but in Skewed."}}
def correlation_figure(target):
    """The correlation of each metric with the truth, with its interval, by kind of model."""
    kinds = {"epoch": "epochs of trainings", "method": "methods", "paper": "the paper's tables"}
    rows = table[table["target"] == target].set_index(["kind", "metric", "scenario"])
    places = [table["metric"].unique(), table["scenario"].unique()]  # the same in every panel
    axes = grid(3, columns=3, size=(2.5, 4.2), sharex=True, sharey=True)[1]
    for ax, kind in zip(axes, kinds):
        part = rows.loc[kind].reindex(pd.MultiIndex.from_product(places))
        part = part.reset_index(names=["m", "scenario"])
        part = part.assign(seeds=2, value=part["pearson"], label=part["m"].map(label_of))
        forest(part, hue="scenario", scale=1, ax=ax, xlabel="correlation")
        handles, names = ax.get_legend_handles_labels()
        ax.get_legend().remove()
        ax.set(title=f"across {kinds[kind]}", xlim=(-1.05, 1.05), xticks=[-1, 0, 1])
    axes[0].figure.legend(handles, names, loc="outside upper center", ncols=5)
    return axes


axes = correlation_figure("mse_p")

# %% [markdown]
# **Across methods**, which have been tuned and lie close together, the Brier score correlates with $\mathrm{MSE}_p$ by
# 0.95 or more in four scenarios, and NLL nearly as well. In Centered, where the lowest and the highest error are 0.002
# apart, Brier has less. Calibration errors go with it far less, and ECE in Sigmoid not at all, but in Skewed ECE and KS
# seem to: two losses that are not proper put two rows far off, mostly in calibration, and without them nothing of it is
# left. **Across epochs** nearly everything goes together, as memorisation spoils all scores at once. This is where the
# impression may come from that a low calibration error means good probabilities. **In the paper's own tables** Brier
# has the largest correlation in four scenarios of five, and KS in *Discrete*.
#
# Against $\mathrm{KL}_p$ the two proper scores change places, each following its own distance best
# across epochs:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Correlation of each score with KL_p by scenario, with intervals, across methods, across epochs and in the tables of the paper."}}
axes = correlation_figure("kl_p")

# %% [markdown]
# Numbers behind the figures; `left_out` counts models with an infinite value.

# %% tags=["hide-cell"]
table.style.format(precision=2).hide().set_table_attributes('class="wide"')

# %% [markdown]
# Even Brier cannot tell models apart that are nearly equally good. On the same rows, the difference
# of two Brier scores is the difference in $\mathrm{MSE}_p$ plus noise of variance
# $\frac{4}{N^2} \sum_i (\hat p_i - \hat p_i')^2 \, p_i (1 - p_i)$. Call a pair of methods *clear*
# where their $\mathrm{MSE}_p$ differs by more than two standard deviations of that noise. How many
# pairs are, and how many does Brier order as $\mathrm{MSE}_p$ does?
# At least 99 % of clear pairs are ordered rightly, in every scenario. But between four and nine tenths of
# the pairs are not clear, and of those Brier orders one in five to one in three wrongly.

# %%
from probnb_book import evidence


def brier_resolution(test):
    """Which pairs of methods are clear on some test rows, and which Brier orders rightly."""
    p_hat = test[evidence.methods_of(test)].to_numpy().T
    y, p = test["y"].to_numpy(), test["p"].to_numpy()
    first, second = np.triu_indices(len(p_hat), k=1)
    errors, briers = ((p_hat - p) ** 2).mean(axis=1), ((p_hat - y) ** 2).mean(axis=1)
    gap = errors[first] - errors[second]
    noise = ((p_hat[first] - p_hat[second]) ** 2 * p * (1 - p)).sum(axis=1)
    clear = np.abs(gap) > 4 * np.sqrt(noise) / len(y)
    right = pd.Series(np.sign(briers[first] - briers[second]) == np.sign(gap))
    shares = {"clear_right": right[clear].mean(), "other_right": right[~clear].mean()}
    return {"pairs": len(gap), "clear": clear.mean(), **shares}


resolution = [brier_resolution(evidence.tables(line)[1]) for line in every.itertuples()]
resolution = pd.DataFrame(resolution).groupby(every["task"].to_numpy(), sort=False).mean()
resolution = resolution.rename_axis("scenario").astype({"pairs": int})
resolution.style.format(
    dict.fromkeys(["clear", "clear_right", "other_right"], "{:.0%}"), na_rep="–"
)

# %% [markdown]
# ## Is it still calibrated?
#
# A model in use is judged again and again, as outcomes arrive. A test that was made for one look then
# breaks its promise: whoever looks after every outcome, and stops at the first "significant" one, finds
# one sooner or later. What may be looked at whenever one likes is a bet {cite}`shafer2021`. Begin with
# one unit of money and stake it, before each outcome, on alternatives: that outcomes follow
# $q = \sigma(a + b \operatorname{logit} \hat p)$, for a grid of intercepts and slopes. What was staked on
# one of them is multiplied by
#
# $$
# \frac{q}{\hat p} \ \text{ if } y = 1, \qquad \frac{1 - q}{1 - \hat p} \ \text{ if } y = 0,
# $$
#
# which is 1 on average where $\hat p$ is true, whatever happened before. The money $e$ is then a
# martingale, and the probability that it ever reaches $1 / \alpha$ is at most $\alpha$; where $\hat p$ is
# wrong it grows exponentially. For forecasts such tests are those of
# {cite}`henzi2022,arnold2023,henzi2023safe`; how to stake is the subject of {cite}`waudby2024`. After row
# $t$ a share $1 / (4 t)$ of the money is spread evenly over all alternatives again, of which the
# forecaster is one {cite}`herbster1998`: otherwise those that lost while a model was right have nothing
# left to bet when it goes wrong.
#
# Here is a stream that is calibrated for 2,000 outcomes, after which every prediction is 0.05 too low:

# %% mystnb={"image": {"alt": "Two panels over the rows of a stream: the evidence against the predictions on a logarithmic scale, which crosses the alarm, and the intercept and slope on which the bets are placed."}}
from probnb.plots import watch_over_time
from probnb.watch.sequential import watch

y, p_hat = chapter_watch.draw_stream(seed=seed)
now, over_time = watch(y, p_hat)
axes = watch_over_time(over_time)

# %% [markdown]
# Streams of many kinds, with a look after every row: the share in which there is an alarm, and the row of the first
# one (the median over all streams). Beside the watch, two z-tests at the level 5 % that are looked at as often: of
# the mean outcome, and Spiegelhalter's {cite}`spiegelhalter1986`, which sees predictions that are too extreme or not
# enough. The streams of a kind end after 10,000 rows, or once every watch has raised its alarm.

# %%
told = chapter_watch.alarm_table(streams=10 * draws, rows=100 * draws, seed=seed)
shown = {c: "{:.1%}" if c[1] == "alarms" else "{:,.0f}" for c in told}
told.style.format(shown, na_rep="–").set_table_attributes('class="fit"')

# %% [markdown]
# **Where nothing is wrong**, one watch in twenty raises an alarm in 10,000 rows, as it may; of either
# z-test more than half do. **Where something is wrong** the watch always tells, whatever it is: after 800
# to 1,000 rows, or some 1,600 rows after a change. Each z-test is far sooner where it is the right one,
# but its alarm means nothing, and where it is the wrong one it raises about as many as where nothing is
# wrong. Patience costs little: to see a shift of 0.05 with 80 % power, a test of the mean that is planned
# for one look needs 570 rows.
#
# `python -m probnb watch outcomes.csv` does this for a file to which outcomes are added; it says from
# which row on the probabilities are no longer to be believed, and what looks wrong with them. It takes for
# granted that each outcome is news: of rows that one event decides (photographs of one patient, hours of
# one storm) it wants one.

# %% [markdown]
# ## Conventions, and where other libraries answer differently
#
# - Equal predictions never straddle a bin: they go where the middle of their run falls. So the order
#   of the rows never matters. Bins emptied by ties or by a lack of rows drop out.
# - `nll` moves predictions into $[\epsilon, 1 - \epsilon]$ with the machine's $\epsilon$ first, as
#   scikit-learn does: a certain and wrong prediction costs 36 nats. `clip=0` gives the infinite value.
# - With outcomes of one class only, AUC is not a number and a warning says so; all else is defined.
#
# | input | other library | here, and why |
# |---|---|---|
# | 400 predictions of 0.1 (40 % ones), 600 of 0.2 (no ones), two quantile bins | scikit-learn, `calibration_curve(strategy="quantile")`: gap 0. The median is 0.2, and all rows up to it share the first bin | ECE 0.25: two wrong groups must not offset each other while there is a bin for each |
# | 600 predictions of 0.1, 400 of 0.2, two bins | netcal, `ACE`: 0 when the gaps offset each other; its bins include their lower edge, so the first is empty | each group has its bin |
# | a prediction of exactly 1 | torchmetrics, `binary_calibration_error`: a bin of its own, outside the number asked for | the last bin includes 1 |
# | all predictions between 0 and 0.05 | torchmetrics: one bin of equal width, where errors cancel | bins by quantile |
# | outcomes of one class | torchmetrics, `binary_auroc`: 0, the value of a model that is always wrong | not a number, with a warning |
# | a prediction of 1.5 | torchmetrics takes all predictions for logits | an error that names the value |
#
# Each line is a test in `tests/metrics`, where netcal's bins (1.4.0) are made by hand.
