"""The book on other machines: nothing that a page says may hang on the reader's processor.

``python -m probnb_book anywhere`` builds the whole book at its usual size once for each of some
machines, in a copy of the project that has no finished work, and fails on a page that fails or on
a verdict that differs. Another instruction set is another training: numbers of a run differ by as
much as another seed's do, words may not.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import product, zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from bs4 import BeautifulSoup

from probnb import store
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.experiment.results import collect, on_test
from probnb.experiment.run import run_jobs
from probnb.metrics import mse_p
from probnb.validation import check_choices

from . import storage
from .data.faces import load_faces
from .notebook import results_path

ROOT = Path(__file__).resolve().parents[2]
MACHINES = {
    "SSE4.1": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
    "this one, two threads": {"OMP_NUM_THREADS": "2"},
    "AMX": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_AMX", "ATEN_CPU_CAPABILITY": "avx512"},
    "AVX-512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "ATEN_CPU_CAPABILITY": "avx512"},
    "bf16": {"PROBNB_PRECISION": "bf16-mixed"},
    "this one": {},
}
"""What has to be in the environment for torch to compute as on another processor. What a processor
lacks it does not get: a name beyond its best stands for its best."""

USUAL = ("SSE4.1", "AVX2", "this one, two threads")
FINDINGS = "findings"


def record(page, usual, **values):
    """Keep the numbers that a page's prose rests on, where it ran with its usual parameters.

    Parameters
    ----------
    page : str
        Name of the page.
    usual : bool
        Whether parameters and sizes are those that the prose speaks of.
    **values
        Numbers, arrays and tables.
    """
    if usual:
        text = json.dumps(values, default=_listed, indent=1)
        path = results_path() / FINDINGS / f"{page}.json"
        store.replace_file(path, lambda temporary: temporary.write_text(text))


def _listed(value):
    if isinstance(value, pd.DataFrame):
        return value.reset_index().to_dict("list")
    return np.asarray(value).tolist()


def verdicts(page):
    """Return the words of a built page's tables: its cells that hold no digit, in their order.

    What a page reports of the networks that it has itself just trained, in a cell tagged
    ``this-run``, is a figure in words (which row this run chose), and as free to differ as one.
    """
    soup = BeautifulSoup(page, "html.parser")
    for cell in soup.select(".tag_this-run"):
        cell.decompose()
    words = (cell.get_text().strip() for cell in soup.find_all(["td", "th"]))
    return [word for word in words if re.search("[A-Za-z]", word) and not re.search(r"\d", word)]


def build(machine, folder):
    """Build a copy of the project as on a machine.

    Returns
    -------
    failed : str
        The last line of a build that failed, else empty.
    words : dict of str to list of str
        The `verdicts` of each page.
    findings : dict of str to dict
        What pages have put down by `record`.
    """
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    paths = os.pathsep.join([str(folder), str(folder / "book")])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | MACHINES[machine]
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    done = subprocess.run(
        [*command, "book/"], cwd=folder, env=environment, capture_output=True, text=True
    )
    failed = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]
    pages = sorted((folder / "book" / "_build" / "html").glob("*.html"))
    words = {page.stem: verdicts(page.read_text(encoding="utf-8")) for page in pages}
    kept = sorted((folder / "runs" / FINDINGS).glob("*.json"))
    return failed, words, {path.stem: json.loads(path.read_text()) for path in kept}


def differing(words):
    """List verdicts that are not the same on all machines: page, and each machine's own words."""
    lines = []
    for page in sorted(set().union(*words.values())):
        lists = {machine: pages.get(page, []) for machine, pages in words.items()}
        rows = zip_longest(*lists.values(), fillvalue="")
        lines += [f"{page}: {dict(zip(lists, row))}" for row in rows if len(set(row)) > 1]
    return lines


def instructions(seed):
    """Train a few rows of Linear on drawn faces, at the profile ``quick``.

    Returns
    -------
    DataFrame
        By ``row``, of the ensemble its members as well: ``mse_p`` on test faces and the ``epoch``
        that validation kept.
    """
    torch.set_num_threads(1)
    settings = make_profile("quick", epochs=14)  # kept are earlier ones
    splits = load_faces("linear", size=settings.size, n=settings.images, seed=seed)
    jobs = plan(["ce", "ensemble", "ce_finetuned", "cape_bin", "ce_averaged"], settings, seed)
    with tempfile.TemporaryDirectory() as folder:
        fits = run_jobs(jobs, splits, folder, progress=False, workers=1)
    results = collect(jobs, fits, splits)
    test, chosen = on_test(results.predictions), results.chosen.query("chosen")
    kept = chosen.drop_duplicates("method").set_index("method")["best_epoch"]
    lines = [(name, mse_p(test["p"], test[name]), kept[name]) for name in jobs]
    for k, job in enumerate(jobs["ensemble"]):
        best = fits[job].best_epoch
        lines.append((f"member {k}", fits[job].history[best]["mse_p"], best))
    return pd.DataFrame(lines, columns=["row", "mse_p", "epoch"])


STUDIES = {
    "method": "probnb_book.method import study",
    "instructions": "probnb_book.anywhere import instructions as study",
}
"""What trains the same on several machines: a function of the seed that returns a table."""


def run_study(name, machines, seeds):
    """Call a study's function for each machine and seed, each in a process of its own.

    Returns
    -------
    dict of str to (dict, dict of str to DataFrame)
        Runs, as `probnb_book.storage.keep` takes them.
    """
    runs = {}
    for machine, seed in product(machines, seeds):
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | MACHINES[machine]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "table.parquet")
            code = f"from {STUDIES[name]}; study({seed}).to_parquet({str(path)!r})"
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)
            table = pd.read_parquet(path).assign(machine=machine, seed=seed)
        record = {"study": name, **store.machine()}
        runs[f"{name} {machine} seed{seed}"] = record, {name: table}
    return runs


def main(arguments=None):
    """Build on some machines; end with 1 where a page failed or a verdict differs."""
    parser = argparse.ArgumentParser(prog="probnb_book anywhere", description=__doc__)
    parser.add_argument("machines", nargs="*", default=list(USUAL), help=", ".join(MACHINES))
    parser.add_argument("--keep", help="folder of results for what the pages recorded")
    parser.add_argument("--study", choices=list(STUDIES), help="train this instead, and keep it")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(7)))
    given = parser.parse_args(arguments)
    check_choices(given.machines, MACHINES, "machines")
    if given.study:
        runs = run_study(given.study, given.machines, given.seeds)
        storage.keep(given.keep or "results", "machines", runs)
        return 0
    words, wrong = {}, []
    for machine in given.machines:
        with tempfile.TemporaryDirectory() as folder:
            failed, words[machine], findings = build(machine, Path(folder))
        print(f"{machine}: {failed or f'{len(words[machine])} pages built'}", flush=True)
        wrong += [failed] if failed else []
        if given.keep:
            lines = [
                {"page": page, "name": name, "value": json.dumps(value)}
                for page, values in findings.items()
                for name, value in values.items()
            ]
            said = {"machine": machine, **store.machine()}
            run = said, {"findings": pd.DataFrame(lines)}
            storage.keep(given.keep, "machines", {f"findings {machine}": run})
    different = differing(words)
    print("\n".join(different) or "No verdict differs.")
    return int(bool(wrong or different))
