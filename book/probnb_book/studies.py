"""One runner of studies: train the rows of a table on some data, and keep what came out.

``python -m probnb_book train CHAPTER ...`` makes stored results again, ``--help`` says of what.
"""

import argparse
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from probnb import compare
from probnb.experiment.results import write_results
from probnb.paths import find_path
from probnb.training.batches import device_type, precision_of
from probnb.validation import check_choice

from .notebook import results_path

TRAINED = {
    "ablations": ".ablations.study",
    "budget": ".budget",
    "cifar10": ".cifar10.study",
    "interleaved": ".interleaved",
    "real_world": ".real_world.study",
}
"""Chapters whose results are made from a shell, by a module with ``arguments`` and ``train``."""

SHARED = {
    "--data-dir": {"help": "the folder of the data; what can be drawn is, without it"},
    "--profile": {},
    "--seeds": {"type": int, "nargs": "+"},
    "--results": {"default": "results", "help": "what is kept with the book"},
    "--runs": {"help": "finished trainings; by default the folder runs"},
    "--device": {"default": "auto"},
    "--workers": {"type": int, "help": "trainings at a time"},
}
"""What all of them take."""


def train_rows(chapter, splits, methods, settings, results_dir, facts, amend, device="auto", **how):
    """Train the rows of a table, and store what came out.

    Parameters
    ----------
    chapter : str
        The folder of the run within `results_dir`; trainings are kept in ``fits`` there.
    splits : probnb.data.Splits
        The data.
    methods : iterable of str
        Rows of the table.
    settings : Profile
        Sizes and grids.
    results_dir : path-like
        A folder of results.
    facts : dict
        What the record says: ``task``, ``data``, ``profile``, ``seed`` and more, see
        `probnb.experiment.results.write_results`, which takes ``changed`` as well.
    amend : callable
        Adds to the `Results` what the chapter knows besides.
    device, **how
        As `probnb.compare` takes them.

    Returns
    -------
    compared : probnb.comparison.Comparison
        Predictions, choices, epochs and models.
    run : StoredRun
        Where they are kept.
    """
    results_dir, device = Path(results_dir), device_type(device)
    how |= {"seed": facts["seed"], "directory": results_dir / "fits", "device": device}
    compared = compare(splits, methods, settings, **how)
    compared = replace(compared, results=amend(compared.results))
    facts = {**facts, "settings": settings, "source": splits.source, "device": device}
    facts["precision"] = precision_of(device)
    return compared, write_results(results_dir / chapter, compared.results, **facts)


def main(arguments):
    """Make stored results again."""
    chapter = check_choice(next(iter(arguments), ""), TRAINED, "chapter")
    module = import_module(TRAINED[chapter], __package__)
    prog = f"python -m probnb_book train {chapter}"
    parser = argparse.ArgumentParser(prog=prog, description=module.__doc__)
    module.arguments(parser)
    for name, about in SHARED.items():
        parser.add_argument(name, **about)
    given = parser.parse_args(arguments[1:])
    given.runs = results_path(given.runs)
    given.data_dir = given.data_dir and find_path(given.data_dir, "data_dir")
    module.train(given)
