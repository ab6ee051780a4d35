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
# # Your own predictions
#
# *Two outcomes: how good are the probabilities in a file, which column of them is best, and is any worth
# calibrating?* (For more than two there is `probnb.metrics.evaluate_outcomes`.)
# The picture and the table *In short* answer for your file; the rest of the page is how we know. Run it from the
# project's folder:
#
# ```
# papermill book/evaluate.ipynb report.ipynb -p predictions my.csv
# ```
#
# The file is text with columns separated by commas, semicolons or tabs (UTF-8, UTF-16 or Windows'
# cp1252, gzipped or not), or Parquet; one case a row. It needs a column `y`, the outcome, 0 or 1, and one
# or more numeric columns of predictions, which are probabilities of outcome 1 or logits (log-odds). Six
# more columns are understood where they are present: by `group` calibration is reported; rows of one
# `cluster` depend on each other and are resampled together, as are those of one `id`; `weight` says how
# much a row counts; `split` to which part of the data it belongs (those of part `test` are judged); and
# `p` is taken for the true probability, which only simulated data have. Other names are set by parameters
# of the same names: `-p y died -p columns "old, new"`; `-p weight None` takes the role away. What cannot be
# read for certain is refused, with the place in the file and what to do. Files that memory does not hold
# are left to an engine: with `-p engine duckdb -p memory 2GB` (or a Spark's master for `engine`)
# `predictions` may also be a folder or a glob of CSV or Parquet. Its values are those of all rows; its
# intervals resample 128 blocks of rows, and what is told of a sample only, the page says. On the page that you are
# reading, three models drawn by a program stand in for the file.

# %% tags=["parameters"]
predictions = None  # a file or folder; None: the drawn example
columns = None  # such as "old, new"; None: all numeric ones left
y = "y"  # outcomes
p = "p"  # true probabilities, if present; None if it is not that
group = "group"  # groups, if present
cluster = "cluster"  # what is resampled as a whole, if present: patients, days
weight = "weight"  # how much a row counts, if present
id = "id"  # names of rows, if present
split = "split"  # parts of the data, if present; None: judge all rows
part = "test"  # the part to judge
k = None  # ones among repeated outcomes that the predictions have not seen, with
n = None  # the number of all of these
scale = "auto"  # auto, probability, logit, each (columns differ)
reference = None  # compare with this column; None: all pairs
threshold = None  # probability from which on you would act: 0.2, or several as "0.1, 0.2"
bins = 15  # of the diagrams and the decomposition
replicates = 1000  # of the bootstrap; fewer for large files
seed = 0
engine = None  # for files beyond memory: duckdb, or a Spark's master such as local[2]
memory = "2GB"  # what an engine may take
exact_auc = True  # with an engine, most of the work; False: to about 0.00001

# %% tags=["remove-cell"]
from probnb.paths import find_path
from probnb_book.notebook import check_parameters

check_parameters(
    globals(),
    "predictions columns y p group cluster weight id split part k n scale reference threshold "
    "bins replicates seed engine memory exact_auc",
)
if predictions is not None and engine is None:
    find_path(predictions, "predictions")

from probnb.settings import ReportSettings, check_engine

if predictions is None and threshold is None:
    threshold = 0.2  # of the example
ReportSettings(reference, bins, replicates, seed, scale, threshold)  # checks them
check_engine(engine, memory, exact_auc)

# %% tags=["remove-cell"]
# %matplotlib inline
from probnb.plots import use_style

use_style()

# %%
from probnb.report import make_report, read_predictions

table = read_predictions(
    predictions, columns, y=y, p=p, group=group, cluster=cluster, weight=weight, id=id,
    split=split, part=part, scale=scale, k=k, n=n, engine=engine, memory=memory,
    exact_auc=exact_auc,
)  # fmt: skip
report = make_report(table, reference, bins, replicates, seed)

# %% [markdown]
# ## In short

# %%
report.in_short()

# %% mystnb={"image": {"alt": "Reliability diagram of each column of predictions: observed frequency against predicted probability by quantile bin with its interval, over a histogram of the predictions."}}
from probnb.plots import reliability_grid

axes = reliability_grid(**table.drawn(bins))

# %% [markdown]
# The picture: among the cases with about the same prediction, how often was the outcome 1? Points on the
# diagonal mean: as often as predicted. Each point is a bin of equally many cases (equal predictions stay
# together), its bar the Clopper-Pearson interval {cite}`clopper1934`; the strip below says how often each
# prediction occurs. The orange steps are the isotonic regression, which needs no bins
# {cite}`dimitriadis2021corp`; where the true probabilities are known, blue points show them instead.
#
# *Mean* compares the mean prediction with the share of outcomes 1, *spread* is the slope of a logistic
# regression on the log-odds (below 1: too extreme), *bins* looks at 15 bins. A column is called off where
# calibrated predictions would be off by as much with a probability below 0.01, and two columns are told
# apart where the 95 % interval of their difference leaves out 0. Where there are fewer than 5 independent
# rows or clusters, nothing is told. A group is off where its interval leaves out its mean prediction, which
# chance does to one in twenty.
#
# ## What was read

# %%
report.what_was_read()

# %% [markdown]
# ## The metrics
#
# Less is better but for AUC. The {doc}`metrics` chapter says what each of them sees; the Brier score and the
# NLL are the two that reward the true probability and nothing else. ECE, MCE and KS are never negative, and
# positive by chance alone: an interval above 0 says nothing (see *Calibration* below for a fair
# comparison). ECE and MCE use 15 bins, as in the paper. Where rows have weights, every score of this page is weighted.

# %%
report.show("metrics")

# %% [markdown]
# ## Which column is better?
#
# All columns predict the same cases, so that chance favours or hurts them together. The difference between
# two columns is therefore surer than their separate intervals suggest: each is computed on the same
# resamples. An asterisk marks an interval that leaves out 0; one in twenty does so by chance where there is
# no difference, so mind how many you look at.

# %%
report.show("pairs")

# %% [markdown]
# ## Where the difference comes from
#
# What each column scores worse than the best one (or the `reference`), in the Brier score, split by what
# would mend it: one number added to all log-odds (*bias*), a factor besides (*slope*), any rising map
# (*monotone*); what is left is *ranking*, which no map can give. The maps are fitted to other rows than they
# are judged on, so that a part may be negative.

# %%
report.show("parts")

# %% [markdown]
# ## How far from the true probabilities?
#
# Where each case's outcome was observed several times (`k` of `n`), the squared distance from the true
# probability can be estimated without bias though nobody knows that probability: the noise of the share k/n
# is known and taken off. The estimate may therefore be negative near 0. The divergence KL_p has a bias; the
# table says how large it is at most, and its interval is wider by that.

# %%
report.show("distances")

# %% [markdown]
# ## What the Brier score is made of
#
# The Brier score is *calibration* (what a better labelling of the predictions would save) plus *refinement*
# (what it would cost still, because the predictions do not tell the cases apart), plus what happens *within*
# the bins {cite}`murphy1973,stephenson2008`. Refinement is *uncertainty*, the score of always predicting the
# base rate, less *resolution*.

# %%
report.show("decomposition")

# %% [markdown]
# ## Calibration
#
# *Bias* is the mean prediction less the share of outcomes 1. The *slope* is that of a logistic regression of
# the outcomes on the predictions' log-odds: below 1 the predictions are too extreme, above 1 too timid. Each
# p is the probability that calibrated predictions would be off by as much, on average and over the *bins*.
# Compare the ECE with what it would be *if calibrated*, not with 0. A column whose predictions are all the
# same has no slope, and one that separates the outcomes of these rows without an error has no finite one.
# The bins take rows as independent: with clusters they tell nothing.

# %%
report.show("calibration")

# %% [markdown]
# ## Groups
#
# Predictions that are right on average may be too high for one group and too low for another. Here *observed*
# is the share of outcomes 1 in the group, with its Clopper-Pearson interval (Student's over clusters, where
# there are any); an asterisk marks a mean prediction outside it.

# %%
report.show("groups")

# %% [markdown]
# ## What calibration after the fact would gain
#
# A calibrator is fitted to four fifths of the rows and judged on the last fifth, five times, so that no row judges a
# map that has seen it. Gains are before less after: positive is better. Temperature scaling
# {cite}`guo2017calibration` has one number to fit, Platt scaling {cite}`platt1999` two, beta calibration
# {cite}`kull2017beta` three, isotonic regression {cite}`zadrozny2002` as many as the data support; its probabilities
# of exactly 0 or 1 are what hurts its NLL, and Venn-Abers {cite}`vovk2015` has none of these. Gains are of a column
# over itself: none of these maps lets a model tell cases apart that it confused before.
#
# `python -m probnb calibrate validation.csv map.json` fits the map that gains, if one is told to, to rows that the
# model has not seen, and keeps it; `python -m probnb apply map.json new.csv > calibrated.csv` has new rows
# calibrated. Of fewer than 500 rows none is chosen: what looks best of five maps is then mostly luck. Where
# outcome 1 will be rarer or more frequent than in the file (after under-sampling or class weights, in another
# place or season), `--rate 0.03` says how frequent, and `--rate new.csv` estimates it from predictions without
# outcomes {cite}`saerens2002`. Both are right if only the rate changes, not what an outcome looks like.

# %%
report.show("gains")

# %% [markdown]
# ## Decisions
#
# Would you act on every case whose probability is at least 0.2, say? Then a missed outcome is as bad to you as
# four actions in vain, and `-p threshold 0.2` says what each column is worth: its *net benefit* is the share of
# cases acted on rightly, less a quarter of those acted on in vain {cite}`vickers2006`. A column is of use if that is
# more than acting on all cases has, and more than acting on none, which is 0; an asterisk marks where its interval
# says so. The figure shows the same at other thresholds: who weighs the two errors otherwise reads it there. Counts
# are of rows, whatever they weigh.

# %%
from probnb.report.decide import decision_curve, show_decisions

decided = decision_curve(table.sample, threshold)
show_decisions(decided)

# %% mystnb={"image": {"alt": "Net benefit of acting on each column of predictions against the threshold of probability, beside acting on everybody and on nobody."}}
from probnb.plots import decision_figure

ax = None if decided is None else decision_figure(decided)
