"""Several processes at one folder of results, and processes that are killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

TRAIN = """
import json, sys
from probnb_book.data.faces import load_faces
from probnb.experiment import run
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile


def train(folder, begin=lambda: None):
    splits = load_faces("linear", size=16, n=120, seed=0)
    profile = make_profile("smoke", images=120, epochs=4, patience=4, width=4)
    jobs = plan(["ce", "focal", "cape_bin", "ce_finetuned"], profile)
    trained, train = [], run._train

    def note(job, *rest):
        trained.append(run.job_key(job, splits))
        train(job, *rest)

    run._train = note
    begin()
    fits = run.run_jobs(jobs, splits, folder, "cpu", workers=1, progress=False)
    run._train = train
    last = [fits[job].logits["last_test"] for row in jobs.values() for job in row]
    sums = [float(logits.double().abs().sum()) for logits in last]
    return {"trained": trained, "sums": sums}

def begin():
    print("ready", flush=True)
    sys.stdin.readline()

if __name__ == "__main__":
    print(json.dumps(train(sys.argv[1], begin)), flush=True)
"""


def here(folder):
    """What the script says, in this process."""
    names = {"__name__": "here"}
    exec(TRAIN, names)
    return names["train"](folder)


def start(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout.readline() == "ready\n"
    return process


def go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def result(process):
    line = process.stdout.readline()
    assert process.wait() == 0
    return json.loads(line)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return here(tmp_path_factory.mktemp("alone"))


def test_two_processes_that_want_the_same_trainings_do_each_once(tmp_path, alone):
    process = start(tmp_path)  # beside this one
    go(process)
    first, second = here(tmp_path), result(process)
    assert sorted(first["trained"] + second["trained"]) == sorted(alone["trained"])
    assert first["sums"] == second["sums"] == alone["sums"]


def test_killed_at_random_moments_it_ends_with_the_same_numbers(tmp_path, alone):
    kills = int(os.environ.get("PROBNB_KILLS", 1))
    rng = random.Random(0)
    for _ in range(kills):
        process = start(tmp_path)
        go(process)
        time.sleep(rng.uniform(0.05, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert here(tmp_path)["sums"] == alone["sums"]
