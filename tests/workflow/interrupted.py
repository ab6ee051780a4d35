"""Kill a run of the workflow at random moments, and compare what it makes with what is there.

python tests/workflow/interrupted.py RESULTS REFERENCE --kills 2 -- snakemake -c2 --config ...

starts that command with ``results_dir=RESULTS`` at its end, kills it with every process that it has
started, starts it anew, and lets it end after so many kills. Then it compares each run in RESULTS
with the one of the same name in REFERENCE, bit for bit; times are left out.
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

import pandas as pd
import psutil

TIMES = ["seconds", "cpu_seconds"]


def run_and_kill(command, log, kills, seed, within):
    """Run a command to its end, after so many kills; return after how many seconds each came."""
    rng, moments = random.Random(seed), []
    with open(log, "a") as file:
        for left in range(kills, -1, -1):
            process = subprocess.Popen(command, stdout=file, stderr=file)
            moment = rng.uniform(0.2, 1) * within if left else None
            try:
                process.wait(moment)
                break
            except subprocess.TimeoutExpired:
                family = [psutil.Process(process.pid)]
                family += family[0].children(recursive=True)
                for member in family:
                    if member.is_running():
                        member.kill()
                process.wait()
                psutil.wait_procs(family[1:])
                moments.append(moment)
    if process.returncode:
        sys.exit(f"exit status {process.returncode}: {log}")
    return moments


def compare(results, reference):
    """Return, for each run in `results`, what differs from `reference`; nothing where none does."""
    differences = {}
    for record in sorted(Path(results).glob("*/*/run.json")):
        name = record.parent.relative_to(results)
        differences[str(name)] = found = []
        for path in sorted(record.parent.glob("*.parquet")):
            there = Path(reference) / name / path.name
            if not there.exists():
                found.append(f"{there} is missing")
                continue
            tables = [
                pd.read_parquet(p).drop(columns=TIMES, errors="ignore") for p in (path, there)
            ]
            if not tables[0].equals(tables[1]):
                found.append(f"{path.name} differs")
    return differences


def main(arguments=None):
    """Run the command line; the exit status is 0 where nothing differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--within", type=float, default=60, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    given.results.mkdir(parents=True, exist_ok=True)
    command = [*given.command, f"results_dir={given.results.resolve()}"]
    log = given.results / "workflow.log"
    moments = run_and_kill(command, log, given.kills, given.seed, given.within)
    print(f"killed {len(moments)} times, after {[round(m, 1) for m in moments]} seconds")
    differences = compare(given.results, given.reference)
    for name, found in differences.items():
        print(f"{name}: {'; '.join(found) or 'the same, bit for bit'}")
    return int(not differences or any(differences.values()))


if __name__ == "__main__":
    sys.exit(main())
