"""Draw the README's picture from the stored runs: ``python -m probnb.chapters.results``."""

from pathlib import Path

import matplotlib

from ...experiment import evidence
from ...methods import METHODS
from ...plots.forest import forest
from ...plots.style import use_style

ROOT = Path(__file__).resolve().parents[3]
ROWS = ("cape_bin", "ce_finetuned", "platt", "beginning_bin", "ce_averaged", "ensemble")


def main():
    """Write ``book/_static/findings.svg``: rows less early stopping, where there are seeds."""
    matplotlib.use("Agg")
    use_style()
    runs = evidence.find([ROOT / "results"], "synthetic", data="utkface", profile="cpu")
    table = evidence.compare_table(
        runs[runs["variant"] == ""], [(row, "ce_mean") for row in (*ROWS, "resampled")]
    )
    table = table[table["seeds"] > 1].assign(
        label=lambda t: [METHODS[a].label for a in t["a"]],
        scenario=lambda t: t["task"].str.capitalize(),
    )
    ax = forest(table, hue="scenario", xlabel="MSE_p × 100 less that of early stopping (95 %)")
    ax.figure.savefig(ROOT / "book" / "_static" / "findings.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
