"""What the chapter's page shows of cancer beyond one run: rules, and the stored studies of TCGA."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from ...methods import METHODS
from ...notebook import results_path, smoke
from . import cancer_words
from .cancer_claims import claims
from .cancer_figures import kept_groups, kept_stage_boxes, rule_bias_figure, rule_scores_figure
from .cancer_study import LABELS, TABLES, shown_methods
from .censoring import rule_bias, rule_bias_sentence
from .words import sentences

__all__ = ["find_studies", "read_study", "show_rules", "show_studies", "show_study"]

TITLES = {
    "lung": "TCGA, lung: genes of {patients:,} patients",
    "clinical": "TCGA, lung: age, sex, stage and cohort of {patients:,} patients",
    "all": "TCGA, thirteen cohorts: genes of {patients:,} patients",
}
"""Headings of studies."""

FAILED = ("ce_overfit", "mixnmatch", "mixnmatch_isotonic")
"""Rows so far off that a figure of all would show nothing else."""


def read_study(folder):
    """Read the tables of a study by name, with its record as ``"record"``."""
    folder = Path(folder)
    study = {name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES}
    return study | {"record": json.loads((folder / "study.json").read_text())}


def find_studies(folder=None):
    """Find the stored studies by name, in the order of `TITLES`.

    Parameters
    ----------
    folder : path-like, optional
        Where studies lie; by default the project's results.

    Returns
    -------
    dict of str to dict
        See `probnb.chapters.real_world.cancer_page.read_study`.
    """
    folder = Path(folder or results_path().parent / "results" / "real_world")
    there = {name: folder / f"cancer-{name}" for name in TITLES}
    return {k: read_study(path) for k, path in there.items() if (path / "study.json").is_file()}


def show_rules():
    """Show what each rule for the censored does where the truth is known."""
    from IPython.display import Markdown, display

    table = rule_bias(repeats=5 if smoke() else 60)
    display(Markdown(f"### What the rule does to the truth\n\n{rule_bias_sentence(table)}"))
    return _at_once(rule_bias_figure(table))


def show_studies(folder=None):
    """Show every stored study; each is the work of all five folds and all rules."""
    for name, study in find_studies(folder).items():
        show_study(name, study)


def show_study(name, study):
    """Show one study: what the rule moves, what beats what, and the paper's claims.

    Parameters
    ----------
    name : str
        Name in `TITLES`.
    study : dict
        From `probnb.chapters.real_world.cancer_page.read_study`.

    Returns
    -------
    list of matplotlib.axes.Axes
        The scores under each rule, predictions by stage (the paper's Figure 16), and the survival
        of patients grouped by prediction.
    """
    from IPython.display import Markdown, display

    record, scores = study["record"], study["scores"]
    rates = " or ".join(map(str, record.get("rates", ["one rate"])))
    text = [
        f"### {TITLES[name].format(**record)}",
        f"Five folds of whole sites, one training of every row for each fold and rule; profile "
        f"{record['profile']}, version {record['version']}, {record['date'][:10]}. "
        f"CaPE and its control were fine-tuned at {rates}. "
        "± and intervals resample patients, within folds for AUC.",
        cancer_words.best_sentence(study),
        cancer_words.rules_sentence(study),
        cancer_words.auc_sentence(study),
    ]
    display(Markdown("\n\n".join(text)))
    display(cancer_words.rules_table(study))
    display(Markdown("Differences in Brier score (×100), trained and judged by `ipcw`:"))
    display(cancer_words.differences_table(study))
    display(sentences(claims(study)))
    methods = [m for m in METHODS if m in set(scores["method"]) and m not in FAILED]
    others = [m for m in dict.fromkeys(scores["method"]) if m not in METHODS]
    axes = _at_once(rule_scores_figure(scores, methods + others, LABELS))
    shown = shown_methods(study["predictions"])
    boxes = kept_stage_boxes(
        study["boxes"].set_index("method").loc[shown].reset_index(),
        study["spread"].set_index("method"),
        study["stages"],
        labels=LABELS,
    )
    groups = kept_groups({LABELS.get(m, m): _with_curves(study, m) for m in shown})
    return axes + _at_once(boxes) + _at_once(groups)


def _at_once(axes):
    """Show a figure where the text about it stands, rather than below the whole cell."""
    from IPython.display import display
    from matplotlib.pyplot import close

    display(axes[0].figure)
    close(axes[0].figure)
    return list(axes)


def _with_curves(study, method):
    """Put a method's survival curves beside its groups, as `survival_by_group` has them."""
    groups, curves = study["groups"], study["curves"]
    groups, curves = groups[groups["method"] == method], curves[curves["method"] == method]
    parts = [rows for _, rows in curves.groupby("group")]
    return groups.assign(curve=pd.Series(parts, index=groups.index, dtype=object))
