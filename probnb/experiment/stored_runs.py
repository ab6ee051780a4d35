"""Finding the synthetic chapter's stored runs, and making small ones where there are none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..methods import METHODS
from ..scenarios import SCENARIOS
from ..validation import check_choice

__all__ = ["Run", "check_scenarios", "complete_runs", "embedded_run", "find_runs"]

_NAME = re.compile(r"([a-z]+)-(drawn|utkface)-([a-z]+)-seed(\d+)(-\w+)?")
_PROFILES = ("paper", "cpu", "quick", "smoke")  # from the best evidence to the least

EMBEDDED = {"images": 2400, "epochs": 10}
"""What an embedded run changes of the profile "smoke": a test set on which errors can be seen."""


@dataclass(frozen=True)
class Run:
    """A stored run of the synthetic chapter.

    Parameters
    ----------
    scenario : str
        Name of the scenario.
    data : {"utkface", "drawn"}
        The faces.
    profile : str
        Name of the profile.
    seed : int
        The run's seed.
    altered : bool
        Whether the profile was overridden.
    directory : pathlib.Path
        Where its tables are.
    """

    scenario: str
    data: str
    profile: str
    seed: int
    altered: bool
    directory: Path

    def __str__(self):
        faces = {"utkface": "UTKFace", "drawn": "drawn faces"}[self.data]
        return f"{self.scenario} ({faces}, profile {self.profile}, seed {self.seed})"


def find_runs(results, scenarios=None):
    """Find the best stored run of each scenario.

    Parameters
    ----------
    results : iterable of path-like
        Folders of results, in which ``synthetic/{scenario}-{data}-{profile}-seed{seed}`` holds a
        run; need not exist.
    scenarios : str or iterable of str, optional
        Names of scenarios, or one string of names with commas between them; by default all five.

    Returns
    -------
    dict of str to Run
        For each scenario that has a run: on photographs rather than on drawn faces, with the
        largest profile, not altered, with the lowest seed, from the first folder.

    Raises
    ------
    ValueError
        If a scenario is unknown.

    Examples
    --------
    >>> find_runs(["no such folder"], "linear, discrete")
    {}
    """
    found = [run for folder in results for run in _runs(Path(folder) / "synthetic")]
    found.sort(
        key=lambda run: (
            run.data != "utkface",
            _PROFILES.index(run.profile) if run.profile in _PROFILES else len(_PROFILES),
            run.altered,
            run.seed,
        )
    )
    best = {run.scenario: run for run in reversed(found)}
    return {name: best[name] for name in check_scenarios(scenarios) if name in best}


def check_scenarios(scenarios=None):
    """Return names of scenarios in the paper's order; None for all, or a string of several."""
    if scenarios is None:
        return list(SCENARIOS)
    names = re.split(r"[,\s]+", scenarios.strip()) if isinstance(scenarios, str) else scenarios
    chosen = {check_choice(name, SCENARIOS, "scenarios") for name in names}
    return [name for name in SCENARIOS if name in chosen]


def _runs(root):
    for path in sorted(root.glob("*/predictions.parquet")):
        match = _NAME.fullmatch(path.parent.name)
        if match and (path.parent / "epochs.parquet").exists():
            scenario, data, profile, seed, hash_ = match.groups()
            yield Run(scenario, data, profile, int(seed), bool(hash_), path.parent)


def complete_runs(results, scenarios=None, seed=0):
    """Find the best stored run of each scenario, and make a small one where there is none.

    Parameters
    ----------
    results : sequence of path-like
        As in `find_runs`; what is made goes to the first folder.
    scenarios : str or iterable of str, optional
        As in `find_runs`.
    seed : int, default=0
        Seed of what is made.

    Returns
    -------
    dict of str to Run
        A run for every scenario.
    """
    found = find_runs(results, scenarios)
    for scenario in check_scenarios(scenarios):
        if scenario not in found:
            found[scenario] = embedded_run(scenario, results[0], seed)
    return {scenario: found[scenario] for scenario in check_scenarios(scenarios)}


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
    Run
        The stored run: cross entropy, resampled labels and post-processing, about half a minute
        on two cores.
    """
    from ..data.faces import load_faces
    from . import plan as jobs
    from . import results as rows
    from . import run as experiment
    from .profiles import PROFILES, make_profile

    settings = make_profile("smoke", **EMBEDDED)
    names = [name for name, method in METHODS.items() if _quick(method)]
    splits = load_faces(scenario, None, size=settings.size, n=settings.images, seed=seed)
    plan = jobs.plan(names, settings, seed)
    everything = [job for candidates in plan.values() for job in candidates]
    fits = experiment.run_jobs(everything, splits, directory=Path(results) / "fits", device="cpu")
    base = PROFILES["smoke"]
    target = rows.run_directory(
        Path(results) / "synthetic", scenario, "drawn", "smoke", settings, base, seed
    )
    rows.write_rows(target, rows.collect(plan, fits, splits))
    return Run(scenario, "drawn", "smoke", seed, True, target)


def _quick(method):
    return method.loss == "ce" and not method.finetune and method.members == 1
