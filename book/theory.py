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
# Networks trained on yes-or-no outcomes first learn the probabilities behind them and then, if
# nobody stops them, learn the outcomes by heart. Section 4 of {cite}`liu2022deep` shows that this
# is no peculiarity of networks. It happens in logistic regression as soon as there are enough
# dimensions, and there it can be proved. This chapter makes the paper's Appendices A and B
# computable. Nothing here is estimated on test data: every error of every estimate is known to
# fifteen digits.
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

# %% tags=["hide-cell"]
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

# %% tags=["hide-input"]
from probnb.notebook import check_parameters, smoke

check_parameters(
    globals(),
    """n kappa gamma gamma_0 eta iterations seed replicates device threads phase_n phase_gammas
    phase_replicates appendix_n appendix_iterations grid_n grid_kappas grid_gammas
    grid_replicates""",
)
from probnb.chapters.theory.parameters import SMOKE, check_settings

globals().update(SMOKE if smoke() else {})
check_settings(globals())

# %% tags=["hide-input"]
import torch

from probnb.plots.style import use_style
from probnb.theory.model import Model

use_style()
torch.set_num_threads(threads)
model = Model(n, kappa, gamma, gamma_0, replicates, seed, device)

# %% [markdown]
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
# digits (`probnb.theory.logistic_normal`). The same trick yields the expected cross entropy and the whole
# reliability curve $q \mapsto P(y = 1 \mid \hat p = q)$.
#
# In this picture an estimate is a point: its component along the truth, and the length of the rest.
# Shades are its error. Gradient descent sets out towards the star and is carried off. The circle
# marks the best moment of each run, at several aspect ratios.

# %%
from probnb.chapters.theory.study import early_learning

panels = early_learning(model, eta, horizon=20.0)

# %% tags=["hide-input"]
from probnb.chapters.theory import figures

ax = figures.landscape(panels["aspect ratio"], gamma)

# %% [markdown]
# ## Early learning: Theorem A.1
#
# *For $n$ large enough, the error falls during the first $T^*/\eta$ iterations.* Lines are means
# over data sets and starting points, bands one standard deviation. Against training time
# $t = k\eta$ the step size hardly matters; more data narrow the bands; and the higher $\kappa$, the
# earlier and the shallower the best moment.

# %% tags=["hide-input"]
from IPython.display import Markdown

from probnb.chapters.theory import words as say

axes = figures.early_learning_figure(panels)
Markdown(say.say_early(next(iter(panels["step size"].values())), eta))

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
# $\gamma_0$ the variances where they are standard deviations (see {doc}`errata`). Dots are slopes on
# simulated data, with bars of two standard errors; dashed lines the limit.
#
# **Lemma A.4** bounds the distance of gradient descent from gradient flow by a multiple of $\eta$.
# On logarithmic axes that is a line of slope one.

# %%
from dataclasses import replace

from probnb.chapters.theory.study import gap_table, slope_table

slopes = slope_table(
    replace(model, replicates=max(40, replicates)),
    pairs=[(1.0, 0.5), (1.0, 2.0), (3.0, 1.0)],
    sizes=[50, 100, 200, 400],
)
gaps = gap_table(model, etas=[eta, eta / 2, eta / 4, eta / 8], horizon=10 * eta)

# %% tags=["hide-input"]
from probnb.plots.style import grid

_, axes = grid(2, columns=2, size=(4.5, 3.5))
figures.slope_figure(slopes, axes[0])
figures.gap_figure(gaps, axes[1])
Markdown(say.say_slopes(slopes) + " " + say.say_gap(gaps))

# %% [markdown]
# ## Memorisation: Theorem A.2
#
# *If $\kappa$ exceeds a threshold $\kappa^*(\gamma)$, then in the limit $k \to \infty$ every
# prediction is 0 or 1.* Above the threshold some hyperplane through the origin separates the
# outcomes, almost surely in the limit. On separable data the loss has no minimum: $\|\hat\theta\|$
# grows without end, and $\hat\theta/\|\hat\theta\|$ converges to the separator of largest margin
# {cite}`soudry2018implicit`.
#
# Watching this takes patience, as the norm grows like $\log t$. We follow the same curve in
# stretched time, by steps along $\nabla L / L$ {cite}`nacson2019`; its clock reads $\log t$. The
# separator of largest margin comes from a quadratic programme, and the share of collapsed
# predictions is $2\Phi(-6.9/\|\hat\theta\|)$, as logits are Gaussian.

# %%
from probnb.chapters.theory.study import memorise

run = memorise(model, eta / 4, iterations)

# %% tags=["hide-input"]
axes = figures.memorisation_figure(run)
Markdown(say.say_memorised(run, kappa, gamma))

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

# %%
from probnb.chapters.theory.study import critical_ratios

critical = critical_ratios(phase_n, phase_gammas, phase_replicates, seed)

# %% tags=["hide-input"]
ax = figures.phase_figure(critical, phase_gammas, phase_n)
Markdown(say.say_phase(critical, phase_gammas, phase_n))

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

# %%
from probnb.chapters.theory.study import appendix_b

appendix = appendix_b(
    Model(appendix_n, 1.0, 1.0, gamma_0, replicates=3, seed=seed, device=device),
    iterations=appendix_iterations,
)

# %% tags=["hide-input"]
axes = figures.appendix_b_panels(appendix, seed)

# %% tags=["hide-input"]
ax = figures.appendix_b_curves(appendix)
Markdown(say.say_appendix_b(appendix))

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

# %%
from probnb.theory.descent import gradient_descent, record_at
from probnb.theory.model import draw

path = gradient_descent(draw(model), eta, iterations, record_at(iterations))

# %% tags=["hide-input"]
ax = figures.parts_figure(path)
Markdown(say.say_parts(path))

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
# The table shows the model of this page's parameters; differences are paired over data sets.

# %%
from probnb.theory.compare import compare_methods

table = compare_methods(model)
say.summary_table(table).style.format("{:.2f}").format("{:.0f}", subset="kept its start (%)")

# %% [markdown]
# When CaPE is not stopped by validation, this is where it goes:

# %% tags=["hide-input"]
from probnb.theory.compare import cape_curves

time, curves = cape_curves(model)
ax = figures.cape_figure(time, curves)

# %% [markdown]
# Now over a grid of aspect ratios and signal strengths. The first two maps show the best stopping
# time and its error. The others show changes in mean error against *early stop*, in per cent, bold
# where the difference exceeds two standard errors; blue is better.

# %%
from probnb.theory.compare import sweep

cells = sweep(replace(model, n=grid_n, replicates=grid_replicates), grid_kappas, grid_gammas)

# %% tags=["hide-input"]
rivals = ["CaPE (bin)", "CaPE (kernel)", "ridge", "early stop from 0"]
axes = figures.grid_maps(cells, rivals)
Markdown(
    "\n".join(f"- {say.say_grid(cells, rival)}" for rival in rivals)
    + "\n- Against the other start: "
    + say.say_grid(cells, "ridge", "early stop from 0")
)

# %% [markdown]
# Is it the settings? A few others, at the grid's lowest aspect ratio, where there are most data for
# each dimension and CaPE has its best chance. Changes are against *early stop* in per cent, ± one
# standard error; the best moment and ridge are on the same data. The last row has an early stop of
# its own, with a look at the validation data every ten steps.

# %%
from probnb.theory.compare import cape_variants

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
say.variant_table(variants)

# %% tags=["hide-input"]
Markdown(say.say_variants(variants))

# %% [markdown]
# ### Why
#
# Take the first step after the early stop apart. Towards targets $q_i$ it moves the estimate by
# $\frac1n\sum_i (q_i - \hat p_i)\,x_i$. Its component along $\hat\theta$ changes the *confidence*; at
# right angles to it, the component towards $\theta^*$ improves the *direction*; the rest is noise.

# %%
from probnb.theory.compare import step_table

steps = step_table(replace(model, gamma=max(gamma, 0.1), replicates=max(16, replicates)))
steps.style.format("{:.3f}")

# %% tags=["hide-input"]
Markdown(say.say_step(steps))

# %% [markdown]
# Within a narrow bin, empirical probabilities and outcomes have the same mean, so both push the
# confidence alike. And they push it up although the estimate may be too sure already: they compare it
# with the training outcomes, to which it has been fitted and which it therefore predicts better than
# fresh ones. What averaging takes out of the outcomes is their differences within a bin. Those are
# mostly noise, which is why memorisation slows down. But they are also the only part of the outcomes
# that tells more about the truth than the predictions already do.
#
# Targets coarser than the predictions are another matter. They draw all predictions of a bin to one
# value, which shrinks the estimate, as a penalty would:

# %%
from probnb.theory.compare import Protocol

coarse = step_table(
    replace(model, kappa=min(grid_kappas), gamma=max(gamma, 0.1), replicates=max(16, replicates)),
    Protocol(bins=2, sigma=1.0),
)
coarse.style.format("{:.3f}")

# %% tags=["hide-input"]
Markdown("With 2 bins and $\\sigma$ = 1: " + say.say_step(coarse))

# %% [markdown]
# Early stopping leaves wrong confidence behind because it has to stop before the random start is
# forgotten. A penalty that shrinks towards zero, or simply a start at zero, deals with it directly.

# %% tags=["hide-input"]
Markdown(say.say_verdict(cells))

# %% [markdown]
# The model of Section 4 explains early learning and memorisation, and it motivates stopping early.
# What CaPE does for networks has to be judged on networks, which learn features and not only their
# weights: see {doc}`synthetic`, where CaPE is compared with as much additional training without it.
