"""A run of the workflow is killed at random moments, and what it makes compared with another's."""

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
