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
# # Theory: early learning and memorisation in a solvable model
#
# Why do networks trained on yes-or-no outcomes first learn the probabilities behind them and then,
# if nobody stops them, the outcomes by heart? It is no peculiarity of networks: it happens in
# logistic regression as soon as there are enough dimensions, and there it can be proved (Section 4
# and Appendices A and B of {cite}`liu2022deep`). In that model CaPE does not beat the best stopping
# time, and shrinking the estimate does; every error on this page is known to fifteen digits.

# %% tags=["remove-cell"]
# Parameters that few change
eta = 0.4  # step size
iterations = 2000
replicates = 8  # data sets, trained side by side
device = "cpu"  # or "cuda", for larger n and kappa
threads = 1  # on the CPU: small tensors gain nothing from more, n in the thousands does
# Simulated separability
phase_n = 200
phase_gammas = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]
phase_replicates = 16
# Appendix B: n = p = 500 in the paper
appendix_n = 500
appendix_iterations = 6000
# Comparison of methods over a grid
grid_n = 120
grid_kappas = [0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5]
grid_gammas = [0.5, 1.0, 2.0, 3.0, 4.0]
grid_replicates = 12

# %% tags=["parameters"]
n = 250  # training examples
kappa = 1.0  # p / n
gamma = 1.0  # norm of the truth
gamma_0 = 1.0  # norm of the starting point
seed = 0

# %% tags=["remove-cell"]
from probnb_book.notebook import check_parameters, smoke

check_parameters(
    globals(),
    """n kappa gamma gamma_0 eta iterations seed replicates device threads phase_n phase_gammas
    phase_replicates appendix_n appendix_iterations grid_n grid_kappas grid_gammas
    grid_replicates""",
)

# %% tags=["remove-cell"]
from dataclasses import replace
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch

from probnb.plots import COLOURS, CYCLE, grid, use_style
from probnb.validation import check_choice, check_integer, check_number
from probnb_book import theory
from probnb_book.theory import Model, draw
from probnb_book.theory.compare import against_baseline
from probnb_book.theory.descent import gradient_descent, record_at

as_written = not smoke() and (
    (n, kappa, gamma, gamma_0, eta, iterations, seed, replicates, phase_n, appendix_n, grid_n)
    == (250, 1.0, 1.0, 1.0, 0.4, 2000, 0, 8, 200, 500, 120)
)
if smoke():
    n = phase_n = appendix_n = grid_n = 60
    iterations = appendix_iterations = 300
    replicates, phase_replicates, grid_replicates = 2, 4, 3
    phase_gammas, grid_kappas, grid_gammas = [0.0, 2.0], [0.2, 1.0], [1.0, 3.0]
check_choice(device, ("cpu", "cuda"), "device")
check_number(eta, "eta", minimum=0, exclusive=True)
check_integer(grid_replicates, "grid_replicates", minimum=2)
for name in ("iterations", "threads", "phase_n", "phase_replicates", "appendix_iterations"):
    check_integer(globals()[name], name)
for gammas in (grid_gammas, phase_gammas):
    [Model(grid_n, kappa, gamma) for kappa, gamma in product(grid_kappas, gammas)]  # checks them
use_style()
torch.set_num_threads(threads)
model = Model(n, kappa, gamma, gamma_0, replicates, seed, device)
ERROR = r"MSE$_p$ $\times$ 100"

# %% tags=["hide-input"]
horizon = 20.0  # of training time, whatever the step


def descend(model, step=eta, bounded=True):
    """Gradient descent for the same training time; a bounded step obeys Theorem A.2."""
    sample = draw(model)
    if bounded:
        step = min(step, 0.9 * float(theory.stable_step(sample).min()))
    return gradient_descent(sample, step, max(1, round(horizon / step)))


sizes = [max(2, round(n * share)) for share in (0.2, 0.4, 1)]
ratios = [kappa * factor for factor in (0.25, 0.5, 1, 2)]
panels = {
    "step size": {
        rf"$\eta$ = {eta * f:.3g}": descend(model, eta * f, bounded=False) for f in (1, 0.5, 0.25)
    },
    "sample size": {f"n = {rows}": descend(replace(model, n=rows)) for rows in sizes},
    "aspect ratio": {rf"$\kappa$ = {k:.3g}": descend(replace(model, kappa=k)) for k in ratios},
}

# %% tags=["hide-input"] mystnb={"image": {"alt": "Error over the plane of the estimate, its component along the truth and the length of the rest: paths of gradient descent set out towards the truth and turn away, earlier for a higher aspect ratio."}}
paths = panels["aspect ratio"]
along = {name: run.along.mean(axis=0) for name, run in paths.items()}
rest = {name: np.sqrt(np.maximum(run.norm**2 - run.along**2, 0)) for name, run in paths.items()}
across = {name: lengths.mean(axis=0) for name, lengths in rest.items()}
right = 1.05 * max(1.3 * gamma, *map(max, along.values()))
left = min(-0.15 * gamma, *map(min, along.values()))
top = 1.05 * max(gamma, *map(max, across.values()))
x, y = np.meshgrid(np.linspace(left, right, 90), np.linspace(0, top, 80))
figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
error = 100 * theory.mse(np.hypot(x, y), x, gamma)
shades = ax.contourf(x, y, error, levels=14, cmap="Greys", alpha=0.75)
figure.colorbar(shades, ax=ax, label=ERROR, pad=0.02)
for name, colour in zip(paths, map(COLOURS.get, CYCLE)):
    best = paths[name].mse.mean(axis=0).argmin()
    look = {"color": colour, "lw": 2, "marker": "o", "markevery": [best], "mec": "white", "ms": 8}
    ax.plot(along[name], across[name], color="white", lw=3.6)
    ax.plot(along[name], across[name], label=name, **look)
ax.plot(gamma, 0, "k*", ms=13, clip_on=False, zorder=4, label="truth")
ax.set(xlabel="component along the truth", ylabel="length of the rest", ylim=(0, top))
ax.grid(False)
_ = ax.legend(loc="upper left", frameon=True, facecolor="white", framealpha=0.9)

# %% [markdown]
# An estimate is a point in this plane: its component along the truth (the star), and the length of
# the rest. Shades are its error. Gradient descent sets out towards the star and is carried off; the
# circle marks the best moment of each run, at several aspect ratios $\kappa$.
#
# Sentences with numbers are about the parameters that this page is built with; `papermill` takes
# others, which the figures and tables follow.
#
# ## The model
#
# Inputs are Gaussian, $x \sim N(0, I_p)$. An unknown vector $\theta^*$ of length $\gamma$ sets the
# probability of outcome 1,
#
# $$ p(x) = \sigma(\langle \theta^*, x\rangle), \qquad \sigma(a) = \frac{1}{1 + e^{-a}}, $$
#
# and we see $n$ inputs with one outcome each. Gradient descent on the cross entropy,
#
# $$ \hat\theta^{k+1} = \hat\theta^k - \eta \nabla L_n(\hat\theta^k), $$
#
# starts on the sphere of radius $\gamma_0$. Two numbers matter: the **signal strength** $\gamma$,
# which says how far probabilities stray from one half, and the **aspect ratio** $\kappa = p/n$.
#
# ## The error, exactly
#
# For a fresh input $z$ the two logits $a = \langle\hat\theta, z\rangle$ and
# $b = \langle\theta^*, z\rangle$ are jointly Gaussian. The mean squared error of the probabilities,
#
# $$ \mathrm{MSE}_p = E\,(\sigma(a) - \sigma(b))^2, $$
#
# therefore depends on the 2 × 2 Gram matrix of $\hat\theta$ and $\theta^*$ alone, whatever the
# dimension. One would compute the integral by a Gauss-Hermite rule, were it not that memorisation
# sends $\|\hat\theta\|$ to infinity and turns $\sigma(a)$ into a step, which such rules cannot
# follow. There is a way round. A logistic variable is a Gaussian one of random scale
# {cite}`andrews1974`, $L = 2KG$, with $K$ of Kolmogorov's law; and $\sigma(a) = P(L < a)$. Given two
# independent scales, Sheppard's formula for the orthant yields
#
# $$
# \begin{aligned}
# E\,\sigma(a)\sigma(b) &= \frac14 + E\, \frac{\arcsin \rho}{2\pi}, \\
# \rho &= \frac{\langle\hat\theta, \theta^*\rangle}
#    {\sqrt{(\|\hat\theta\|^2 + 4K_1^2)(\|\theta^*\|^2 + 4K_2^2)}}.
# \end{aligned}
# $$
#
# What is left to integrate is smooth in $K_1$ and $K_2$ at any norm: 34 points for each give fifteen
# digits (`probnb_book.theory`). The same trick yields the expected cross entropy and the whole
# reliability curve $q \mapsto P(y = 1 \mid \hat p = q)$.
#
# ## Early learning: Theorem A.1
#
# *For $n$ large enough, the error falls during the first $T^*/\eta$ iterations.* Lines are means
# over data sets and starting points, bands one standard deviation. Against training time
# $t = k\eta$ the step size hardly matters; more data narrow the bands; and the higher $\kappa$, the
# earlier and the shallower the best moment. With $\eta = 0.4$ the mean error falls at every step
# from 8.8 to 6.9 at $t = 1.6$, then rises to 13.0 at $t = 20$.

# %%
path = gradient_descent(draw(model), eta, steps=round(20 / eta))
100 * path.mse.mean(axis=0)[:6]  # exact errors of the first estimates, times 100


# %% tags=["hide-input"] mystnb={"image": {"alt": "Error against training time in three panels, varying step size, sample size and aspect ratio: it falls at first and rises later."}}
def bands(runs, ax=None, **look):
    """Means over data sets, by name from (time, errors), in a band of one standard deviation."""
    ax = ax or plt.subplots(figsize=(5.6, 3.2), layout="constrained")[1]
    for (name, (time, errors)), colour in zip(runs.items(), map(COLOURS.get, CYCLE)):
        mean, spread = 100 * errors.mean(axis=0), 100 * errors.std(axis=0, ddof=1)
        ax.plot(time, mean, color=colour, label=name)
        ax.fill_between(time, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)
    ax.legend()
    ax.set(ylabel=ERROR, **look)
    return ax


axes = plt.subplots(1, 3, figsize=(7.4, 3.2), layout="constrained", sharey=True)[1]
for ax, (title, runs) in zip(axes, panels.items()):
    runs = {name: (run.time, run.mse) for name, run in runs.items()}
    bands(runs, ax, title=f"Varying the {title}", xlabel=r"training time $t = k\eta$")

# %% [markdown]
# The proof has two steps, which can be checked one by one.
#
# **Lemma A.3** gives the slope at the start of gradient flow ($\eta \to 0$) in the limit of many
# data. With $\mu(s) = E\,\sigma'(N(0, s^2))$ and $Z_0 \sim N(0, \gamma_0^2)$,
#
# $$
# \begin{aligned}
# \lim_{n\to\infty} \mathrm{MSE}'(0) &= -2\mu(\gamma_0)\left\{\gamma^2\mu(\gamma)^2 + s(\gamma_0)\right\}
#    < 0, \\
# s(\gamma_0) &= E\left[(\sigma(Z_0) - \tfrac12)\,\sigma'(Z_0)\,Z_0\right].
# \end{aligned}
# $$
#
# The paper prints this without the factor 2, the derivative of a square, and calls $\gamma$ and
# $\gamma_0$ the variances where they are standard deviations (see {doc}`errata`). All twelve slopes
# measured on simulated data are negative; with 400 data they are within one standard error of the
# limit, from which the formula without the factor would be 30 to 50 standard errors away.

# %%
from probnb_book.theory.descent import initial_slope, measured_slope

cases = [
    (*pair, rows)
    for pair, rows in product([(1.0, 0.5), (1.0, 2.0), (3.0, 1.0)], [50, 100, 200, 400])
]
slopes = pd.DataFrame(cases, columns=["gamma", "gamma_0", "n"])
settings = [
    replace(model, replicates=max(40, replicates), **case) for case in slopes.to_dict("records")
]
measured = pd.DataFrame([measured_slope(draw(setting)) for setting in settings])
slopes["slope"], slopes["error"] = measured.mean(axis=1), measured.sem(axis=1)
slopes["limit"] = initial_slope(slopes["gamma"], slopes["gamma_0"])
shown = slopes.style.format("{:.4f}", subset=["slope", "error", "limit"]).hide()
shown.format("{:g}", ["gamma", "gamma_0"])

# %% [markdown]
# **Lemma A.4** bounds the distance of gradient descent from gradient flow by a multiple of $\eta$,
# in parameters and in error. Each halving of the step halves the gap.

# %%
from probnb_book.theory.descent import flow_gap

gaps = pd.DataFrame(
    {
        step: np.mean(flow_gap(draw(model), step, 10 * eta), axis=1)
        for step in eta / 2.0 ** np.arange(4)
    },
    index=["parameters", "errors"],
).T.rename_axis("eta")
gaps.style.format("{:.4f}")

# %% [markdown]
# ## Memorisation: Theorem A.2
#
# *If $\kappa$ exceeds a threshold $\kappa^*(\gamma)$, then in the limit $k \to \infty$ every
# prediction is 0 or 1.* Above the threshold some hyperplane through the origin separates the
# outcomes, with probability tending to 1. On separable data the loss has no minimum: $\|\hat\theta\|$
# grows without end, and $\hat\theta/\|\hat\theta\|$ converges to the separator of largest margin
# {cite}`soudry2018implicit`.
#
# Watching this takes patience, as the norm grows like $\log t$. We follow the same curve in stretched time, by steps
# along $\nabla L / L$ {cite}`nacson2019`; its clock reads $\log t$. The separator of largest margin comes from a
# quadratic programme, and the share of predictions within 0.001 of 0 or 1 is $2\Phi(-6.9/\|\hat\theta\|)$, as logits
# are Gaussian and $\mathrm{logit}\,0.999 = 6.9$.
#
# At $\gamma = 1$ the threshold is 0.44 and here $\kappa = 1$: all eight data sets are separable. By
# the time $10^{28}$ the norm has grown beyond 100, the direction is within 0.03 radians of the
# separator's, and 95 % of all predictions on fresh data are within 0.001 of 0 or 1.

# %%
from probnb_book.theory.descent import late_training

sample = draw(model)
found = [theory.max_margin(X, y) for X, y in zip(sample.inputs.cpu(), sample.outcomes.cpu())]
separable = np.array([separator is not None for separator in found])
nowhere = np.full(model.p, np.nan)  # is the direction of a separator that is not there
onto = np.stack([nowhere if w is None else w / np.linalg.norm(w) for w in found])
late = late_training(
    sample, eta / 4, iterations, record_at(iterations), torch.from_numpy(onto).to(device)
)
with np.errstate(invalid="ignore"):  # a start of length 0 has no direction
    angles = np.arccos(np.clip(late.onto / late.norm, -1, 1))

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels, a line a data set: the norm of the estimate against the logarithm of time, and the angle to the separator of largest margin against the norm, which falls."}}
axes = plt.subplots(1, 2, figsize=(7.4, 3.0), layout="constrained")[1]
look = {"color": COLOURS["blue"], "alpha": 0.6, "lw": 1.2}
axes[0].plot(late.time[:, 1:].T / np.log(10), late.norm[:, 1:].T, **look)
axes[1].loglog(late.norm.T, angles.T, **look)
axes[0].set(xlabel=r"$\log_{10}$ of training time", ylabel=r"$\|\hat\theta\|$")
_ = axes[1].set(xlabel=r"$\|\hat\theta\|$", ylabel="radians to the max-margin separator")

# %% [markdown]
# ### The threshold
#
# {cite:t}`candes2020phase` derive where separation becomes possible. With $V = \pm x_1$, the sign
# being the outcome's, and an independent $Z \sim N(0, 1)$,
#
# $$ \kappa^*(\gamma) = \min_t\, E\,(tV - Z)_+^2. $$
#
# Without signal it is $1/2$: each example is a coin, and $n$ coins can be memorised with $n/2$
# dimensions. Below, the formula is drawn over simulation. Whether a data set is separable is not
# judged by training but decided exactly, with a certificate either way: a separating vector, or
# weights that by Gordan's theorem exclude one. One coordinate after another is revealed until the
# data set separates, so each data set contributes a whole column of the picture.
# The simulated transition is within 0.03 of the formula for every $\gamma$. It falls from 0.50 to
# 0.22 across the plot: the more the inputs tell about the outcomes, the fewer dimensions suffice to
# memorise them.

# %%
from probnb_book.theory import critical_dimension, separability_threshold

cases = product(range(len(phase_gammas)), range(phase_replicates))
found = [critical_dimension(phase_n, phase_gammas[i], [seed, i, r]) for i, r in cases]
critical = np.sort(np.reshape(found, (len(phase_gammas), -1)) / phase_n, axis=1)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Share of separable data sets over signal strength and aspect ratio, with the theoretical threshold, which falls, running through the simulated transition."}}
kappas, fine = np.linspace(0, 0.7, 141), np.linspace(phase_gammas[0], phase_gammas[-1], 200)
share = 100 * (critical[:, None] <= kappas[:, None]).mean(axis=2)
figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
image = ax.pcolormesh(
    phase_gammas, kappas, share.T, cmap="Blues", shading="nearest", vmin=0, rasterized=True
)
figure.colorbar(image, ax=ax, label="separable data sets (%)", pad=0.02)
threshold = separability_threshold(fine)
ax.plot(fine, threshold, color=COLOURS["vermilion"], lw=2.2, label=r"theory, $\kappa^*(\gamma)$")
simulated = f"simulated 50 % point, n = {phase_n}"
ax.plot(
    phase_gammas,
    np.median(critical, axis=1),
    "o",
    color="black",
    ms=5,
    mec="white",
    label=simulated,
)
ax.text(0.97, 0.93, "memorised in the end", transform=ax.transAxes, ha="right", color="white")
ax.text(0.03, 0.05, "a finite optimum", transform=ax.transAxes)
ax.set(xlabel=r"signal strength $\gamma$", ylabel=r"aspect ratio $\kappa = p/n$")
ax.grid(False)
_ = ax.legend(loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))

# %% [markdown]
# The theorem asks for steps shorter than $2n/\|X\|^2$, and this notebook warns of longer ones. That
# is on the safe side: the logistic loss bends by at most $\|X\|^2/4n$, so that descent is sure up to
# $8n/\|X\|^2$.
#
# ## Appendix B: stochastic gradient descent
#
# The paper's numerical example: $p = n$, $\theta^* = e_1$, mini-batches, once on the $n$ outcomes
# observed and once on outcomes drawn afresh from the true probabilities in each iteration. It gives
# neither batch nor step size; here they are 100 and 0.05. Dots are fresh examples, the prediction
# across and the true probability up. The black curve is the reliability curve, exact rather than
# binned.
#
# On finite labels the mean error goes from 9.1 to 7.3 at iteration 30 and to 19 at the end. On
# resampled labels, where there is nothing to memorise, it ends at 1.2.

# %%
from probnb_book.theory.descent import sgd

sample = draw(Model(appendix_n, 1.0, 1.0, gamma_0, replicates=3, seed=seed, device=device))
recorded = record_at(appendix_iterations)
observed, resampled = (
    sgd(sample, 0.05, appendix_iterations, labels, batch=100, record=recorded, seed=seed)
    for labels in ("observed", "resampled")
)

# %% tags=["hide-input"] mystnb={"image": {"alt": "True probability against prediction at the start, at early learning, and at the end on finite and on resampled labels, with the exact reliability curve."}}
moments = {
    "Start": (observed, 0),
    "Early learning": (observed, observed.mse[0].argmin()),
    "Finite labels, end": (observed, -1),
    "Resampled labels, end": (resampled, -1),
}
axes = plt.subplots(1, 4, figsize=(7.4, 2.7), layout="constrained", sharey=True)[1]
q = np.linspace(0.001, 0.999, 300)
for ax, (title, (run, k)) in zip(axes, moments.items()):
    norm, along = float(run.norm[0, k]), float(run.along[0, k])
    p_hat, p = theory.fresh_predictions(norm, along, run.gamma, 1000, seed)
    ax.plot([0, 1], [0, 1], "--", color=COLOURS["grey"], lw=1)
    ax.plot(p_hat, p, "o", ms=2.2, color=COLOURS["sky"], alpha=0.45, mew=0, rasterized=True)
    if norm > 0:  # a start at 0 has one prediction
        ax.plot(q, theory.reliability(q, norm, along, run.gamma), color="black", lw=1.8)
    ax.set(xlabel="prediction", xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.5, 1])
    ax.set_title(f"{title}\nMSE {100 * float(run.mse[0, k]):.2f}", fontsize=9, loc="left")
_ = axes[0].set_ylabel("probability")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Error by iteration on finite labels, which falls and then rises, and on resampled labels, which goes on falling."}}
runs = {"finite labels": observed.mse, "resampled labels": resampled.mse}
runs = {name: (1 + recorded, errors) for name, errors in runs.items()}
ax = bands(runs, xscale="log", xlabel="iterations + 1")

# %% [markdown]
# ## Beyond the paper: what goes wrong when a model memorises
#
# Let $r = P(y = 1 \mid \hat p)$ be the reliability curve. By Pythagoras the error has two parts,
#
# $$ E(\hat p - p)^2 = \underbrace{E(\hat p - r)^2}_{\text{calibration}} +
#    \underbrace{E(p - r)^2}_{\text{grouping}}. $$
#
# The first is wrong confidence, and a recalibration removes it. The second is wrong direction:
# inputs with different $p$ are given the same prediction, which no recalibration can tell apart. In
# this model it depends on the angle between $\hat\theta$ and $\theta^*$ alone.
#
# From the best moment to the end the error rises by 13, and calibration accounts for all of it:
# grouping even falls a little. Perfectly recalibrated, the last estimate would have an error of 4.0,
# less than the best along the way (6.9). Memorisation here is a loss of honesty, not of knowledge.

# %%
from probnb_book.theory import mse_parts

path = gradient_descent(draw(model), eta, iterations, record_at(iterations))
calibration, grouping = mse_parts(path.norm, path.along, path.gamma)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Error against training time and its two parts: calibration, which rises in the end, and grouping, which falls."}}
parts = {"error": path.mse, "calibration": calibration, "grouping": grouping}
runs = {name: (path.time, errors) for name, errors in parts.items()}
ax = bands(runs, xscale="log", xlabel="training time t")

# %% [markdown]
# ## Beyond the paper: does CaPE beat the best stopping time?
#
# CaPE starts from the early-stopped estimate and replaces, in every other epoch, the outcomes by the
# empirical probabilities of its own predictions. Here we can ask whether that brings it closer to
# the truth, with no doubt about the measurement. All methods see the same $n$ examples and choose
# their moment, or their strength, by cross entropy on the same $n$ validation examples:
#
# - *oracle*: gradient descent, stopped at the moment of least exact error, which nobody could know;
# - *early stop*: gradient descent, stopped by validation;
# - *CaPE (bin)* and *CaPE (kernel)*: 15 bins; 100 neighbours and $\sigma = 0.05$; alternating as
#   Algorithm 1 prints it, the outcomes first ($m = 2$); an epoch is one step of gradient descent;
#   like every method that goes on from an estimate, it may keep its start;
# - *ridge*: the statistician's answer, $L_n(\theta) + \frac\lambda2\|\theta\|^2$, fitted to
#   convergence;
# - *early stop from 0*: as the second, but starting at $\theta = 0$, as ridge implicitly does.
#
# The table shows the model of this page's parameters; differences are paired over data sets. **CaPE
# keeps its start in every one of them**: no step towards its targets improves the validation loss.
# Ridge, and the same gradient descent from a start at zero, nearly halve the error of the early stop,
# and beat even its best moment.

# %%
from probnb_book.theory.compare import compare_methods

table = compare_methods(model)
methods = 100 * table.groupby("method", sort=False)[["mse", "calibration", "grouping"]].mean()
wide = 100 * table.pivot(index="replicate", columns="method", values="mse")
gap = wide.sub(wide["early stop"], axis=0)
methods["difference"], methods["standard error"] = gap.mean(), gap.sem()
methods["kept its start (%)"] = 100 * (table["chosen"] == 0).groupby(table["method"]).mean()
methods = methods.rename(columns={"mse": "MSE x 100"}).rename_axis(None)
methods.style.format("{:.2f}").format("{:.0f}", subset="kept its start (%)")

# %% [markdown]
# When CaPE is not stopped by validation, this is where it goes. It memorises too, only more slowly
# than training on does.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Error against training time since the early stop for training on and for CaPE: all rise, CaPE more slowly."}}
from probnb_book.theory.compare import cape_curves

time, curves = cape_curves(model)
runs = {name: (time, errors) for name, errors in curves.items()}
ax = bands(runs, xlabel="training time since the early stop")

# %% [markdown]
# Now over a grid of aspect ratios and signal strengths. The first two maps show the best stopping
# time and its error. The others show changes in mean error against *early stop*, in per cent, bold
# where the difference exceeds two standard errors; blue is better.

# %%
from probnb_book.theory.compare import sweep

cells = sweep(replace(model, n=grid_n, replicates=grid_replicates), grid_kappas, grid_gammas)
rivals = ["CaPE (bin)", "CaPE (kernel)", "ridge", "early stop from 0"]

# %% tags=["hide-input"] mystnb={"image": {"alt": "Six heat maps over signal and aspect ratio: the best stopping time, the error there, and the change in error of CaPE, ridge and a start at zero in per cent."}}
axes = grid(6, columns=2, size=(3.7, 3.0))[1]
best = cells[cells["method"] == "oracle"].groupby(["kappa", "gamma"])[["chosen", "mse"]].mean()
look = {"cbar": False, "annot": True}
sns.heatmap(best["chosen"].unstack(), fmt=".3g", cmap="viridis", ax=axes[0], **look)
sns.heatmap(100 * best["mse"].unstack(), fmt=".1f", cmap="viridis", ax=axes[1], **look)
axes[0].set_title("Best stopping time")
axes[1].set_title("MSE there $\\times$ 100")
look |= {"cmap": "RdBu_r", "vmin": -60, "vmax": 60, "fmt": "+.0f"}
for ax, method in zip(axes[2:], rivals):
    change = against_baseline(cells, method)
    sns.heatmap(change["change"].unstack(), ax=ax, **look)
    for text, z in zip(ax.texts, change["z"].unstack().to_numpy().ravel()):
        text.set_weight("bold" if abs(z) > 2 else "normal")
    ax.set_title(f"{method}, change (%)")
for ax in axes:
    ax.invert_yaxis()
    ax.set(xlabel=r"signal $\gamma$", ylabel=r"$\kappa = p/n$")

# %% [markdown]
# **On this grid CaPE does not beat the stopping time that validation chooses**: in none of the 70
# comparisons is it better by two standard errors, where chance alone would give two. Ridge is better
# in 27 of 35 cells and worse in none, by a quarter on average, and so is a start at zero. The table
# counts cells beyond two standard errors.

# %%
capes = rivals[:2]
pairs = [
    *product(rivals, ["early stop"]),
    *product(capes, ["oracle"]),
    ("ridge", "early stop from 0"),
]
found = pd.concat({f"{a}, against {b}": against_baseline(cells, a, b) for a, b in pairs})
counts = found.groupby(level=0, sort=False).agg(
    better=("z", lambda z: (z < -2).sum()),
    worse=("z", lambda z: (z > 2).sum()),
    cells=("z", "size"),
    **{"mean change (%)": ("change", "mean")},
)
counts.style.format("{:+.1f}", subset="mean change (%)")

# %% [markdown]
# Is it the settings? A few others, at the grid's lowest aspect ratio, where there are most data for
# each dimension and CaPE has its best chance. Changes are against *early stop* in per cent, bold
# beyond two standard errors; the best moment (*oracle*) and ridge are on the same data. The last row
# has an early stop of its own, with a look at the validation data every ten steps. Here, with twice
# the data sets, half of the fourteen settings are better than the early stop, by one to ten per
# cent. None is better than its best moment by two standard errors, and none comes near ridge.

# %%
from probnb_book.theory.compare import cape_variants

variants = cape_variants(
    replace(model, n=grid_n, kappa=min(grid_kappas), replicates=2 * grid_replicates),
    {
        "as above": {},
        "calibration first, m = 3, sigma = 0.0707": {"every": 3, "phase": 2, "sigma": 0.0707},
        "m = 1": {"every": 1},
        "5 bins, sigma = 0.2": {"bins": 5, "sigma": 0.2},
        "m = 1, 5 bins, sigma = 0.2": {"every": 1, "bins": 5, "sigma": 0.2},
        "m = 1, 2 bins, sigma = 1": {"every": 1, "bins": 2, "sigma": 1.0},
        "ten steps an epoch": {"epoch": 10},
    },
)


def change_of(baseline, methods=(*capes, "oracle", "ridge")):
    """Change of the mean error against a baseline in per cent, with z, by variant and method."""
    table = variants.assign(kappa=variants["variant"], gamma=0)
    changes = {m: against_baseline(table, m, baseline).droplevel("gamma") for m in methods}
    return pd.concat(changes, axis=1).loc[variants["variant"].unique()].rename_axis(None)


changes = change_of("early stop")
bold = changes.xs("z", axis=1, level=1).abs().gt(2).replace({True: "font-weight: bold", False: ""})
shown = changes.xs("change", axis=1, level=1)
shown.style.format("{:+.1f}").apply(lambda _: bold, axis=None)

# %% [markdown]
# ### Why
#
# Take the first step after the early stop apart. Towards targets $q_i$ it moves the estimate by
# $\frac1n\sum_i (q_i - \hat p_i)\,x_i$. Its component along $\hat\theta$ changes the *confidence*; at
# right angles to it, the component towards $\theta^*$ improves the *direction*; the rest is noise.

# %%
from probnb_book.theory.compare import step_table

steps = step_table(replace(model, gamma=max(gamma, 0.1), replicates=max(16, replicates)))
steps.style.format("{:.3f}")

# %% [markdown]
# CaPE raises the confidence as much as a step towards the outcomes does (96 to 98 %), and keeps a
# third of what such a step turns the estimate to the truth.
#
# Within a narrow bin, empirical probabilities and outcomes have the same mean, so both push the
# confidence alike. And they push it up although the estimate may be too sure already: they compare it
# with the training outcomes, to which it has been fitted and which it therefore predicts better than
# fresh ones. What averaging takes out of the outcomes is their differences within a bin. Those are
# mostly noise, which is why memorisation slows down. But they are also the only part of the outcomes
# that tells more about the truth than the predictions already do.
#
# It could not be otherwise. **Theorem.** *Let $x \sim N(0, I)$, let $y$ have any probability given
# $x$, and let $r(\hat p) = P(y = 1 \mid \hat p)$ be the empirical probabilities of an infinite sample.
# Then a step towards them, $E[(r - \hat p)\,x]$, is parallel to $\hat\theta$, and along $\hat\theta$ it is
# the step towards the outcomes, $E[(y - \hat p)\,x]$.*
#
# *Proof.* Write $x = u\,e + v$ with $e = \hat\theta / \|\hat\theta\|$ and $v$ at right angles to it.
# Prediction and $r$ depend on $u$ alone, and a Gaussian's $v$ is independent of $u$ with mean 0 (it is
# enough that $E[v \mid u] = 0$, as for every elliptical distribution). So $E[(r - \hat p)\,v] =
# E[(r - \hat p)\,E[v \mid u]] = 0$: no turn. And $E[(r - \hat p)\,u] = E[(E[y \mid u] - \hat p)\,u] =
# E[(y - \hat p)\,u]$: the same push. $\square$
#
# A calibration epoch of infinite data can therefore rescale an estimate, which Platt scaling does as well, but never
# turn it; of the two parts of the error above it reaches the first alone. In a finite sample the push differs by the
# covariance of outcomes and logits within bins, and some turn towards the truth is left where dimensions are many:
# the third of the table above at $\kappa = 1$, a fifth at 0.3 and a tenth at 0.1, for as many data. Both statements
# hold to rounding in the library's own $p_\text{emp}$, on a sample that is exactly Gaussian to the order of the rule
# (Gauss-Hermite):

# %%
from probnb_book.theory.compare import population_steps

towards_outcomes, calibration = population_steps(theta=[2.0, 0.5], truth=[0.3, -1.5])
assert abs(calibration[1]) < 1e-12 and abs(calibration[0] - towards_outcomes[0]) < 1e-12
pd.DataFrame(
    [towards_outcomes, calibration],
    ["step towards the outcomes", "calibration step"],
    ["along the estimate", "at right angles"],
)

# %% [markdown]
# Networks learn features besides, so that a step of theirs can turn more than a direction; what share of
# it does is measured in {doc}`ablations`. What the theorem leaves for training is a wait: after equally many epochs
# on outcomes a network with calibration epochs is nowhere [ahead of one without](results-pause).
#
# Targets coarser than the predictions are another matter. They draw all predictions of a bin to one
# value, which shrinks the estimate, as a penalty would:

# %%
from probnb_book.theory.compare import Protocol

coarse = step_table(
    replace(model, kappa=min(grid_kappas), gamma=max(gamma, 0.1), replicates=max(16, replicates)),
    Protocol(bins=2, sigma=1.0),
)
coarse.style.format("{:.3f}")

# %% [markdown]
# With two bins and $\sigma = 1$ both forms of CaPE lower the confidence, and of the turn to the truth
# nothing is left.
#
# Early stopping leaves wrong confidence behind because it has to stop before the random start is
# forgotten. A penalty that shrinks towards zero, or simply a start at zero, deals with it directly.
#
# The model of Section 4 explains early learning and memorisation, and it motivates stopping early.
# What CaPE does for networks has to be judged on networks, which learn features and not only their
# weights: see {doc}`synthetic`, where CaPE is compared with as much additional training without it.

# %% tags=["remove-cell"]
# What the prose tells is kept, so that runs on several machines can be stored and held against it.
from probnb_book.anywhere import record
from probnb_book.theory.descent import collapsed

mean = 100 * panels["step size"][r"$\eta$ = 0.4"].mse.mean(axis=0) if as_written else [0.0]
finite, fresh = (100 * run.mse.mean(axis=0) for run in (observed, resampled))
after = {name: values.mean(axis=0) for name, values in curves.items()}
end = {"norm": late.norm[:, -1].mean(), "angle": angles[:, -1].mean()}
end["log10 time"] = late.time[:, -1].mean() / 2.302585
end["near 0 or 1 (%)"] = 100 * collapsed(end["norm"])
share = 100 * steps.loc[capes] / steps.loc["cross entropy"]
clear = changes[capes].xs("z", axis=1, level=1) < -2
gain = changes[capes].xs("change", axis=1, level=1)
beyond = change_of("oracle", capes).xs("z", axis=1, level=1)
record(
    "theory",
    as_written,
    mean_error=mean,
    slopes=slopes,
    gaps=gaps.sort_index(),
    threshold=separability_threshold(phase_gammas),
    simulated=np.median(critical, axis=1),
    separable=int(separable.sum()),
    late=end,
    appendix={"recorded": recorded, "finite": finite, "fresh": fresh},
    parts={name: 100 * parts[name].mean(axis=0) for name in ("calibration", "grouping")},
    methods=methods,
    after={name: [v[0], v[-1]] for name, v in after.items()},
    slower=[bool((after[n] < after["cross entropy"])[time > 5].all()) for n in capes],
    counts=counts,
    settings={"clear": int(clear.sum().sum()), "gains": gain[clear].stack().dropna().tolist()},
    beyond_oracle=float(beyond.min(axis=None)),
    behind_ridge=float((gain.sub(changes["ridge", "change"], axis=0)).min(axis=None)),
    share=share,
    coarse=coarse,
)
