"""Give every claim its verdict from stored runs: print the counts, or write ``claims.json``."""

from __future__ import annotations

import argparse
from pathlib import Path

from .ledger import as_json, ledger, stored_runs, verdict_counts


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m probnb.chapters.claims", description=__doc__)
    parser.add_argument("--results", nargs="+", default=["results", "runs"], help="folders of runs")
    parser.add_argument("--json", type=Path, help="file to write")
    given = parser.parse_args(arguments)
    table = ledger(stored_runs(given.results))
    if given.json:
        given.json.write_text(as_json(table), encoding="utf-8")
    print(verdict_counts(table).to_string())


if __name__ == "__main__":
    main()
