"""Draw the README's picture from the stored runs: ``python -m probnb.chapters.results``."""

from pathlib import Path

import matplotlib

from ...methods import METHODS
from ...plots.forest import forest
from ...plots.style import use_style
from ..claims import stored_runs
from .tables import differences

ROOT = Path(__file__).resolve().parents[3]
ROWS = "cape_bin ce_finetuned platt beginning_bin ce_averaged ensemble resampled"


def main():
    """Write ``book/_static/findings.svg``: rows less early stopping, where there are seeds."""
    matplotlib.use("Agg")
    use_style()
    best = {s: r for s, r in stored_runs([ROOT / "results"]).items() if s != "cifar10"}
    table = differences(best, [(row, "ce_mean") for row in ROWS.split()], several=True)
    table = table.assign(scenario=table["label"], label=[METHODS[a].label for a in table["a"]])
    ax = forest(table, hue="scenario", xlabel="MSE_p × 100 less that of early stopping (95 %)")
    ax.figure.savefig(ROOT / "book" / "_static" / "findings.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
