"""The stored runs of the synthetic chapter that this one reads, and small ones in their place."""

from __future__ import annotations

import re
from pathlib import Path

from ...experiment.results import collect, find_runs, write_results
from ...methods import METHODS, PAPER
from ...scenarios import SCENARIOS
from ...validation import check_choice

__all__ = ["best_runs", "check_scenarios", "complete_runs", "embedded_run"]

EMBEDDED = {"images": 2400, "epochs": 10}
"""What an embedded run changes of the profile "smoke": a test set on which errors can be seen."""


def check_scenarios(scenarios=None):
    """Return names of scenarios in the paper's order; None for all, or a string of several."""
    if scenarios is None:
        return list(SCENARIOS)
    names = re.split(r"[,\s]+", scenarios.strip()) if isinstance(scenarios, str) else scenarios
    chosen = {check_choice(name, SCENARIOS, "scenarios") for name in names}
    return [name for name in SCENARIOS if name in chosen]


def best_runs(results, scenarios=None):
    """Find the best stored run of each scenario.

    Parameters
    ----------
    results : iterable of path-like
        Folders of results; need not exist.
    scenarios : str or iterable of str, optional
        Names of scenarios, or one string of names with commas between them; by default all five.

    Returns
    -------
    dict of str to StoredRun
        For each scenario that has a run, the first of `probnb.experiment.results.find_runs`.

    Examples
    --------
    >>> best_runs(["no such folder"], "linear, discrete")
    {}
    """
    found = {
        name: find_runs(results, "synthetic", task=name) for name in check_scenarios(scenarios)
    }
    return {name: runs[0] for name, runs in found.items() if runs}


def complete_runs(results, scenarios=None, seed=0):
    """Find the best stored run of each scenario, and make a small one where there is none.

    Parameters
    ----------
    results : sequence of path-like
        As in `best_runs`; what is made goes to the first folder.
    scenarios : str or iterable of str, optional
        As in `best_runs`.
    seed : int, default=0
        Seed of what is made.

    Returns
    -------
    dict of str to StoredRun
        A run for every scenario.
    """
    found = best_runs(results, scenarios)
    return {
        name: found[name] if name in found else embedded_run(name, results[0], seed)
        for name in check_scenarios(scenarios)
    }


def embedded_run(scenario, results, seed=0):
    """Train a few small networks on drawn faces and store them as the synthetic chapter would.

    Parameters
    ----------
    scenario : str
        Name of the scenario.
    results : path-like
        Folder of results.
    seed : int, default=0
        Seed of data and training.

    Returns
    -------
    StoredRun
        Cross entropy, resampled labels and post-processing, about half a minute on two cores.
    """
    from ...data.faces import load_faces  # torch, which stored results do not need
    from ...experiment.plan import plan
    from ...experiment.profiles import make_profile
    from ...experiment.run import run_jobs

    settings = make_profile("smoke", **EMBEDDED)
    splits = load_faces(scenario, None, size=settings.size, n=settings.images, seed=seed)
    jobs = plan([name for name in PAPER if _quick(METHODS[name])], settings, seed)
    fits = run_jobs(jobs, splits, directory=Path(results) / "fits", device="cpu")
    return write_results(
        Path(results) / "synthetic",
        collect(jobs, fits, splits),
        task=scenario,
        data="drawn",
        profile="smoke",
        settings=settings,
        seed=seed,
        source=splits.source,
    )


def _quick(method):
    return method.loss == "ce" and method.start is None and method.members == 1
