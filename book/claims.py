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
# this book). Most that hold do so by reading; of the claims about trained networks most are not resolved: the seeds
# do not tell the difference from its bound in as many scenarios as the claim asks for.
#
# **The authors have not been asked.** A verdict "contradicted" means: contradicted here, by networks of this size, or
# by the paper's own print. It is not the end of an argument that has had one side only. Whoever objects, the authors
# first, opens an issue of this repository with the number of the claim, and says what the question should have been or
# which training would decide it; the question is one line of `claims.csv`, and a run that answers it is stored beside
# the others.

# %% tags=["parameters"]
results_dir = None  # folder of stored runs; None is results and runs of the project

# %% tags=["remove-cell"]
from probnb_book.notebook import check_parameters, results_path, stored_folders

check_parameters(globals(), "results_dir")
folders = stored_folders(results_dir)

import pandas as pd
from IPython.display import HTML

from probnb_book import evidence
from probnb_book.claims import as_page, ledger, longer_runs, stored_runs, verdict_counts, write_json

claims = ledger(stored_runs(folders) | longer_runs(folders))
static = results_path().parent / "book" / "_static"  # goes beside the pages
if results_dir is None and static.is_dir():
    write_json(claims, static / "claims.json")

# %%
verdict_counts(claims)

# %% [markdown]
# **How runs decide.** A claim is one question: a difference, say, and the scenarios in which it must hold. It is put
# to the seeds of each scenario, of which fewer than three decide nothing, by Student's test of the difference from its
# bound. A claim about every scenario holds if each of the five speaks for it, and is contradicted if one speaks
# against it at a fifth of the usual level, since that one was picked out of five afterwards. Every choice is paid for
# in this way {cite}`benjamini2008`: that of a scenario, of CaPE's better row (its two rows have the benefit of the doubt), of
# the strongest rival. Claims about networks in general ("seen") must hold wherever there are several seeds; what
# networks end at is asked of longer trainings ("@60"). What must hold while a fine-tuning goes on is asked of **all**
# its trainings, at each learning rate, whether validation kept them or not. A row that maps or fine-tunes a network is
# compared with that network, any other row with the mean of all trainings of plain cross entropy (*CE*). That an
# ensemble is below the mean of its own members is arithmetic and decides nothing.
#
# What the paper's tables answer to the same question is shown, but decides only claims about those tables. Verdicts
# are not corrected for one another: of forty-five, two could be wrong by chance.
#
# **Bounds set by hand.** Where the paper says "highly", "completely" or "disastrous", the bound is ours, and another
# one could turn the verdict:

# %% tags=["hide-output"]
from probnb_book.claims.rules import describe, read_question

asked = claims[claims["question"] != ""]
asked = asked.assign(bound=[read_question(q)[3] for q in asked["question"]])
own = asked["bound"].ne(0) & ~asked["question"].str.startswith("ratio")
own |= asked["question"].str.startswith("ratio") & asked["bound"].ne(1)
asked = asked[own].assign(asked=asked["question"].map(describe))
asked[["number", "claim", "asked", "bound", "verdict"]].style.hide(axis="index").format(precision=3)

# %% [markdown]
# **What was easy**: the scenarios, the metrics and every post-hoc map follow from the text; CaPE is forty lines once
# one knows when its first calibration epoch comes. **What was difficult**: learning rates, epochs, image size and the
# rule that keeps an epoch stand in no table; the released code contradicts the text in places ({doc}`errata`); the
# authors' patients, radar maps and scenes cannot be had; and one training of a row says next to nothing, so
# that seeds cost most of the time. **What it cost** stands in each claim: processor hours of the trainings that it was
# put to, which the claims share. **Left out of verdicts** are stored trainings whose settings differ from the main
# ones: other grids of CaPE's rates and schedules, the demonstration's long fine-tuning, larger pictures. Nothing was
# left out for what it gave.

# %% tags=["hide-output"]
runs = pd.concat([evidence.find(folders, chapter) for chapter in ("synthetic", "cifar10")])
used = pd.concat([*stored_runs(folders).values(), *longer_runs(folders).values()])["name"]
runs = runs.assign(decides=runs["name"].isin(used).map({True: "a verdict", False: "none"}))
runs["hours"] = [(run.record.get("cpu_seconds") or 0) / 3600 for run in runs["run"]]
runs = runs.groupby(["decides", "data", "task", "profile", "size", "variant"])
table = runs.agg(runs=("seed", "size"), hours=("hours", "sum")).round(1)
table.rename_axis(index={"variant": "settings (hash)"})

# %% [markdown]
# **The ledger.** Search it, choose a verdict, sort by a click on a head; a click on a reason opens the
# numbers as a drawing (the dashed line is the bound of the claim; a hollow mark is one training), the question,
# what the paper's tables say, and the command that makes the evidence. Claims are in our words and
# have an address each (`claims.html#claim-17`). The whole for machines: `_static/claims.json` beside this page,
# the link below, or `python -m probnb_book claims --json claims.json`.

# %% tags=["remove-input"]
HTML(as_page(claims))
