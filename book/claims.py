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
# # Claims: the paper, sentence by sentence
#
# {cite}`liu2022deep` makes 109 claims that can be told apart. Which of them stand? Each has a verdict here, and says
# what the verdict rests on: on **reading** (a definition, a proof or a simulation that the chapter {doc}`theory`
# repeats, most with a test), on **print** (the paper's own tables), or on **runs** (trainings that are stored with
# this book). Most that hold do so by reading; of the claims about trained networks most are not resolved: five seeds
# do not tell the difference from its bound in as many scenarios as the claim asks for.

# %% tags=["parameters"]
results_dir = None  # folder of stored runs; None is results and runs of the project

# %% tags=["remove-cell"]
from IPython.display import HTML

from probnb.notebook import check_parameters, find_path, results_path

check_parameters(globals(), "results_dir")
runs_dir = results_path()
folders = (
    [find_path(results_dir, "results_dir")]
    if results_dir
    else [runs_dir.parent / "results", runs_dir]
)

from probnb.chapters.claims import (
    as_page,
    comparisons,
    ledger,
    longer_runs,
    stored_runs,
    verdict_counts,
    write_json,
)

claims = ledger(stored_runs(folders) | longer_runs(folders))
static = runs_dir.parent / "book" / "_static"  # goes beside the pages
if results_dir is None and static.is_dir():
    write_json(claims, static / "claims.json")

# %% tags=["remove-input"]
verdict_counts(claims)

# %% [markdown]
# **How runs decide.** A claim is one question: a difference, say, and the scenarios in which it must hold. It is put
# to the seeds of each scenario. An interval of Student's distribution over seeds that lies on the claimed side speaks
# for the claim, one on the other side against it; fewer than three seeds decide nothing. A claim about every scenario
# holds if all five speak for it and is contradicted if one speaks against it. Claims about networks in general
# ("seen") must hold in every scenario that has several seeds, of which there must be two; what networks end at is
# asked of trainings of 60 epochs ("@60"), where a profile has 24. CaPE has two rows and the benefit of the doubt: one
# of them is enough. *CE* is the mean of all trainings of plain cross entropy. What the paper's tables answer to the
# same question is shown, but decides only claims about those tables. A verdict "contradicted" is about networks of
# this size.
#
# **How many by chance.** Verdicts are not corrected for one another. The table says how many differences over several
# seeds lie behind them, how many of their 95 % intervals leave out 0, how many would if nothing differed, and how
# many are left after Holm's correction:

# %% tags=["remove-input"]
import pandas as pd

pd.DataFrame([comparisons(claims)], index=["differences"]).rename(
    columns={"apart": "leave out 0", "chance": "expected by chance", "holm": "left by Holm"}
)

# %% [markdown]
# **The ledger.** Search it, choose a verdict, sort by a click on a head; a click on a reason opens the
# numbers as a drawing (the dashed line is the bound of the claim; a hollow mark is one training), the question,
# what the paper's tables say, and the command that makes the evidence. Claims are in our words and
# have an address each (`claims.html#claim-17`). The whole for machines: `_static/claims.json` beside this page,
# the link below, or `python -m probnb.chapters.claims --json claims.json`.

# %% tags=["remove-input"]
HTML(as_page(claims))
