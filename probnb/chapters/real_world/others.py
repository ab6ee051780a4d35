"""What is stored of the tasks that a page does not run, so that the book shows all three."""

from __future__ import annotations

from ...experiment.results import find_runs
from ...notebook import results_path, smoke
from . import runs, words
from .cancer_page import TITLES, find_studies
from .task import TASKS, get_task

__all__ = ["best_table", "show_others"]

SHOWN = ("ce", "ce_finetuned", "platt", "ensemble", "cape_bin", "cape_kernel")
"""Rows of the tables, those that a task has."""


def best_table(folder, task):
    """Put the test rows of a task's stored seeds together: measured data before simulated.

    Parameters
    ----------
    folder : path-like
        Folder of results, with ``real_world`` in it.
    task : Task
        Which task.

    Returns
    -------
    pandas.DataFrame
        From `probnb.chapters.real_world.runs.pool`; empty where nothing is stored.
    """
    records = [run.record for run in find_runs([folder], "real_world", task=task.name)]
    if not records:
        return runs.pool([], task)
    kinds = [{k: r[k] for k in ("data", "profile", "settings")} for r in records]
    best = max(kinds, key=lambda kind: (kind["data"].startswith("real"), kinds.count(kind)))
    return runs.pool([folder], task, **best)


def show_others(task, folder=None, replicates=1000, seed=0):
    """Show the Brier score of the other tasks' stored runs, and the claims on real patients.

    Parameters
    ----------
    task : Task
        The task that has the page to itself.
    folder : path-like, optional
        Folder of results; by default the project's.
    replicates : int, default=1000
        Bootstrap replicates.
    seed : int, default=0
        Seed of the resamples.
    """
    from IPython.display import Markdown, display

    folder = folder or results_path().parent / "results"
    for other in (get_task(name) for name in TASKS if name != task.name):
        table = best_table(folder, other)
        if table.empty:
            continue
        columns = [name for name in SHOWN if name in table]
        result = runs.score(table, columns, 20 if smoke() else replicates, seed)
        data = "simulated" if "p" in table else "measured"
        display(
            Markdown(
                f"### {other.title}\n\n{words.evidence_sentence(table, other)} The data are "
                f"{data}; `-p task {other.name}` has the whole page. Brier score × 100, and "
                "differences with 95 % intervals:"
            )
        )
        scores = [f"{100 * value:.2f}" for value in result.point["brier"]]
        differences = words.differences(result, ("ce", "ce_finetuned"))
        differences.insert(0, "Brier", scores)
        display(differences)
        if other.name == "cancer":
            _show_patients(folder)


def _show_patients(folder):
    from IPython.display import Markdown, display

    from .cancer_claims import claims
    from .cancer_words import best_sentence

    for name, study in find_studies(folder / "real_world").items():
        title = TITLES[name].format(**study["record"])
        display(Markdown(f"**{title}.** {best_sentence(study)}"))
        display(words.sentences(claims(study)))
