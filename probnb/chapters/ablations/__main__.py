"""Run studies of the chapter on ablations and keep their tables.

``python -m probnb.chapters.ablations targets weighted --seeds 0 1 2`` trains what is not yet
trained and writes ``results/ablations/targets.csv`` and so on, and what made each seed beside it;
``--data-dir UTKFace.tar.gz --profile cpu`` takes photographs.
"""

from __future__ import annotations

import argparse

import pandas as pd

from ...notebook import find_path, results_path
from ...scenarios import SCENARIOS
from .studies import STUDIES
from .study import run_study, write_study


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probnb.chapters.ablations", description=__doc__)
    parser.add_argument("studies", nargs="+", choices=list(STUDIES))
    parser.add_argument("--scenarios", nargs="+", default=["linear"], choices=list(SCENARIOS))
    parser.add_argument("--data-dir", help="UTKFace; faces are drawn without it")
    parser.add_argument("--profile", default="quick", choices=["smoke", "quick", "cpu", "paper"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", help="only these rows of the studies")
    parser.add_argument("--sizes", type=int, nargs="+", help="images of the study on scale")
    parser.add_argument("--results", default="results", help="what is kept with the book")
    parser.add_argument("--runs", help="finished trainings; by default the folder runs")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int)
    given = parser.parse_args(arguments)
    data_dir = given.data_dir and find_path(given.data_dir, "data_dir")
    for seed in given.seeds:
        for name in given.studies:
            for scenario in given.scenarios:
                table = run_study(
                    name, scenario, given.profile, seed, data_dir,
                    results_path(given.runs) / "fits", given.device, given.workers,
                    rows=given.rows, sizes=given.sizes,
                )  # fmt: skip
                print(write_study(table, given.results, given.device), scenario, seed, flush=True)
                with pd.option_context("display.width", 200):
                    print(table[["row", "mse_p", "brier", "epoch", "cost"]].to_string(), flush=True)


if __name__ == "__main__":
    main()
