"""Finding the synthetic chapter's stored runs, and making small ones where there are none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .methods import METHODS
from .scenarios import SCENARIOS
from .validation import check_choice

__all__ = ["Run", "embedded_run", "find_runs"]

_NAME = re.compile(r"([a-z]+)-(drawn|utkface)-([a-z]+)-seed(\d+)(-\w+)?")
_PROFILES = ("paper", "cpu", "quick", "smoke")  # from the best evidence to the least


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


def find_runs(roots, scenarios=None):
    """Find the best stored run of each scenario.

    Parameters
    ----------
    roots : iterable of path-like
        Folders of runs, ``{scenario}-{data}-{profile}-seed{seed}`` each; need not exist.
    scenarios : iterable of str, optional
        Names of scenarios; by default all five.

    Returns
    -------
    dict of str to Run
        For each scenario that has a run, the one on photographs rather than drawn faces, with the
        largest profile, as the profile says, with the lowest seed, in the earliest root.

    Raises
    ------
    ValueError
        If a scenario is unknown.

    Examples
    --------
    >>> find_runs(["no such folder"])
    {}
    """
    names = [check_choice(s, SCENARIOS, "scenarios") for s in scenarios or SCENARIOS]
    found = [run for root in roots for run in _runs(Path(root))]
    found.sort(
        key=lambda run: (
            run.data != "utkface",
            _PROFILES.index(run.profile) if run.profile in _PROFILES else len(_PROFILES),
            run.altered,
            run.seed,
        )
    )
    best = {run.scenario: run for run in reversed(found)}
    return {name: best[name] for name in names if name in best}


def _runs(root):
    for path in sorted(root.glob("*/predictions.parquet")):
        match = _NAME.fullmatch(path.parent.name)
        if match and (path.parent / "epochs.parquet").exists():
            scenario, data, profile, seed, hash_ = match.groups()
            yield Run(scenario, data, profile, int(seed), bool(hash_), path.parent)


def embedded_run(scenario, directory, seed=0):
    """Train a few small networks on drawn faces and store them as the synthetic chapter would.

    Parameters
    ----------
    scenario : str
        Name of the scenario.
    directory : path-like
        Folder of runs.
    seed : int, default=0
        Seed of data and training.

    Returns
    -------
    Run
        The stored run: cross entropy, resampled labels and post-processing, about half a minute
        on two cores.
    """
    from . import experiment, rows  # torch, which stored results do not need
    from .data.faces import load_faces
    from .profiles import PROFILES, make_profile

    settings = make_profile("smoke", images=2400, width=8, epochs=10)
    names = [name for name, method in METHODS.items() if _quick(method)]
    splits = load_faces(scenario, None, size=settings.size, n=settings.images, seed=seed)
    plan = experiment.plan(names, settings, seed)
    jobs = [job for candidates in plan.values() for job in candidates]
    fits = experiment.run_jobs(jobs, splits, directory=Path(directory) / "fits", device="cpu")
    target = rows.run_directory(
        directory, scenario, "drawn", "smoke", settings, PROFILES["smoke"], seed
    )
    rows.write_rows(target, rows.collect(plan, fits, splits))
    return Run(scenario, "drawn", "smoke", seed, True, target)


def _quick(method):
    return method.loss == "ce" and not method.finetune and method.members == 1
