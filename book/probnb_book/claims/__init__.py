"""The ledger: every claim with its verdict, as a table, as a page that searches, and as JSON.

``python -m probnb_book claims --json claims.json`` writes the file, and prints the counts.
"""

import argparse
import base64
import html
import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

import pandas as pd

from probnb.experiment.profiles import PROFILES
from probnb.store import replace_file

from .. import evidence
from ..scenarios import SCENARIOS
from .rules import VERDICTS, ask, ask_paper, describe, read_question, scale_of

KINDS = ("reading", "print", "runs")
"""What a verdict rests on: text and theory, the paper's printed numbers, or stored trainings."""

FIELDS = {
    "number": "from 1 to 109, in the order of the paper",
    "address": "of the claim in this book",
    "claim": "in our words",
    "where": "the claim stands in the paper",
    "evidence": "the paper's own",
    "verdict": " | ".join(VERDICTS),
    "kind": "what the verdict rests on: " + " | ".join(KINDS),
    "reason": "what decides, with its numbers",
    "question": "statistic, arguments, relation, bound, scenarios: see claims/rules.py",
    "printed": "what the paper's tables answer to the question",
    "numbers": "by scenario: rows compared, value, low, high (95 %), p of its bound (no choice "
    "paid for), seeds, in words (text)",
    "seeds": "of the scenario that has most",
    "hours": "of a processor, for the stored runs that it was asked of; other claims share them",
    "command": "that makes the evidence",
}
"""What the JSON says of each claim."""

TRAIN = "papermill book/{}.ipynb out.ipynb -p {} -p profile cpu -p seed {}"
PIXELS = "data cifar10 -p data_dir FOLDER -p inputs pixels"
FACES = "scenario {} -p data_dir UTKFace.tar.gz"


def claims():
    """Return the paper's 109 claims as they stand in ``claims.csv``.

    Returns
    -------
    DataFrame
        ``number``, ``where`` in the paper, ``claim`` in our words, the paper's own ``evidence``,
        the ``kind`` of ours (one of `KINDS`), the ``question`` that is put to numbers (see
        `probnb_book.claims.rules`), or else a ``verdict``, a ``reason`` and the test that is
        its ``check``.
    """
    text = (files(__package__) / "claims.csv").open(encoding="utf-8")
    return pd.read_csv(text, dtype={"number": int}).fillna("")


def stored_runs(folders, pretrained=False):
    """Find the stored runs that questions are put to, by scenario, and of CIFAR-10.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results.
    pretrained : bool, default=False
        Whether to find those that start from a pretrained network instead, which is more than the
        paper's rows are given.

    Returns
    -------
    dict of str to DataFrame
        Photographs at a profile as it is: the kind with most seeds, of those the largest images.
    """
    runs = pd.concat([evidence.find(folders, chapter) for chapter in ("synthetic", "cifar10")])
    runs = runs[runs["profile"].isin(["features", "finetune"]) == pretrained]
    faces = runs[(runs["data"] == "utkface") & (runs["variant"] == "")]
    rule = runs[(runs["task"] == "rule") & (runs["inputs"] == "pixels")].assign(task="cifar10")
    groups = evidence.kinds(pd.concat([faces, rule]))
    groups = sorted(groups, key=lambda group: (len(group), group["size"].iloc[0]))
    found = {group["task"].iloc[0]: group for group in groups}  # the last one stays
    return {task: found[task] for task in (*SCENARIOS, "cifar10") if task in found}


def longer_runs(folders, epochs=60):
    """Find the runs of a profile that differ from it by their epochs alone, as `stored_runs` does.

    Returns
    -------
    dict of str to DataFrame
        By scenario and epochs, ``"linear@60"``, as questions ask for them.
    """
    runs = evidence.find(folders, "synthetic", data="utkface")

    def is_longer(run):
        usual = asdict(PROFILES[run.record["profile"]])
        given = usual | (run.record.get("settings") or {})
        return given == usual | {"epochs": epochs} and not run.record.get("changed")

    runs = runs[[is_longer(run) for run in runs["run"]]]
    return {f"{task}@{epochs}": group for task, group in runs.groupby("task")}


def face_runs(folders):
    """Yield the stored runs on photographs: whether the start is pretrained, a line of `find`."""
    for pretrained in (False, True):
        for group in stored_runs(folders, pretrained).values():
            faces = group[group["chapter"] == "synthetic"]
            yield from ((pretrained, line) for line in faces.itertuples())


def ledger(runs):
    """Give every claim its verdict.

    Parameters
    ----------
    runs : dict of str to DataFrame
        From `stored_runs` and `longer_runs`; may be empty.

    Returns
    -------
    DataFrame
        `claims`, every line with ``verdict`` and ``reason``; ``printed``, what the paper's tables
        answer to a question about runs; ``numbers`` by scenario; ``seeds`` of the
        scenario that has most; the processor ``hours`` of those runs; ``command``, which makes
        the evidence.
    """
    lines = []
    for claim in claims().to_dict("records"):
        printed = ask_paper(claim["question"]) if claim["question"] else None
        asked = claim["kind"] == "runs" and claim["question"]
        answer = ask(claim["question"], runs) if asked else printed
        parts = answer.parts if answer else []
        if answer:
            claim["verdict"] = answer.verdict
            claim["reason"] = f"{describe(claim['question'])}: {answer.text}"
        claim["printed"] = f"{printed.verdict}: {printed.text}" if printed else ""
        seeds = max((part["seeds"] for part in parts), default=0)
        found = {"numbers": parts, "seeds": seeds, "hours": _hours(claim, parts, runs)}
        lines.append({**claim, **found, "command": _command(claim, parts)})
    return pd.DataFrame(lines)


def _hours(claim, parts, runs):
    asked = {part["scenario"] for part in parts} if claim["kind"] == "runs" else ()
    records = [run.record for task in asked if task in runs for run in runs[task]["run"]]
    return round(sum(record.get("cpu_seconds") or 0 for record in records) / 3600, 1)


def _command(claim, parts):
    if claim["kind"] == "runs":
        made = {p["scenario"]: range(max(p["seeds"], 1)) for p in parts}
        face = {t: FACES.format(t).replace("@", " -p epochs ") for t in made}
        given = {t: ("synthetic", face[t]) for t in made} | {"cifar10": ("cifar10", PIXELS)}
        return "\n".join(TRAIN.format(*given[t], s) for t, seeds in made.items() for s in seeds)
    if claim["check"]:
        return f"pytest tests -k {claim['check'].split('::')[1]}"
    return "python -m probnb_book claims" if claim["question"] else ""


def verdict_counts(table):
    """Count verdicts (index) by kind of evidence (columns)."""
    counts = pd.crosstab(table["verdict"], table["kind"], margins=True, margins_name="all")
    counts = counts.reindex(index=[*VERDICTS, "all"], columns=[*KINDS, "all"], fill_value=0)
    return counts.rename_axis(index=None, columns=None)


def as_json(table):
    """Return the ledger as JSON: ``fields`` explains what each of ``claims`` says."""
    lines = table.assign(address="claims.html#claim-" + table["number"].astype(str))
    whole = {
        "format": 1,
        "paper": "Liu et al. (2022), Deep Probability Estimation, ICML",
        "fields": FIELDS,
        "claims": lines[[*FIELDS]].to_dict("records"),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False)


def write_json(table, path):
    """Write `as_json` to a file, whole or not at all."""
    replace_file(path, lambda file: Path(file).write_text(as_json(table), encoding="utf-8"))


def as_page(table):
    """Return the ledger as HTML: a table with an anchor a claim, a search field and sorting."""
    data = base64.b64encode(as_json(table).encode()).decode()
    options = "".join(f"<option>{verdict}</option>" for verdict in VERDICTS)
    page = (files(__package__) / "claims.html").read_text(encoding="utf-8")
    page = page.replace("{{options}}", options).replace("{{data}}", data)
    head, row, tail = page.split("<!-- row -->")
    cells = table.drop(columns="numbers").assign(shown=table["seeds"].replace(0, ""))
    cells["place"] = table["verdict"].map(VERDICTS.index)
    hours = cells["hours"].map("{:g} processor hours of trainings, shared with other claims".format)
    cells["cost"] = hours.where(cells["hours"] > 0, "")
    cells["printed"] = table["printed"].where(table["kind"] == "runs", "")
    cells = cells.astype(str).map(html.escape).assign(drawn=table.apply(_drawn, axis=1))
    return head + "".join(row.format_map(cell) for cell in cells.to_dict("records")) + tail


def _drawn(claim):
    """A small forest plot of a claim's numbers about the bound of its question, as SVG."""
    parts = [part for part in claim["numbers"] if part["value"] is not None]
    if not parts:
        return ""
    name, _, relation, bound, _ = read_question(claim["question"])
    bound *= scale_of(name)
    ends = [part[k] for part in parts for k in ("value", "low", "high") if part[k] is not None]
    left, width = min(bound, *ends), (max(bound, *ends) - min(bound, *ends)) or 1
    x, bottom = (lambda v: round(80 + 240 * (v - left) / width, 1)), 16 * len(parts) + 4
    drawn = [
        f'<path class="bound" d="M{x(bound)} 0V{bottom}"/><text x="{x(bound)}" '
        f'y="{bottom + 11}" text-anchor="middle">{bound:g}</text>'
    ]
    for k, part in enumerate(parts):
        name = " ".join([part["scenario"], *(r for r in part["rows"] if r[:2] == "0.")])  # a rate
        y, kind = 16 * k + 10, "alone" if part["seeds"] == 1 else "mark"
        if part["low"] is not None:
            drawn += [f'<path class="mark" d="M{x(part["low"])} {y}H{x(part["high"])}"/>']
        drawn += [
            f'<text x="0" y="{y + 4}">{name}</text>'
            f'<circle class="{kind}" cx="{x(part["value"])}" cy="{y}" r="4"/>'
        ]
    told = html.escape(f"Value and 95 % interval by scenario; claimed is {relation} {bound:g}")
    return (
        f'<svg viewBox="-2 0 344 {bottom + 14}" role="img" aria-label="{told}">'
        f"{''.join(drawn)}</svg>"
    )


def main(arguments=None):
    """Give every claim its verdict from stored runs: print the counts, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book claims", description=__doc__)
    parser.add_argument("--results", nargs="+", default=["results", "runs"], help="folders of runs")
    parser.add_argument("--json", type=Path, help="file to write")
    given = parser.parse_args(arguments)
    table = ledger(stored_runs(given.results) | longer_runs(given.results))
    if given.json:
        write_json(table, given.json)
    print(verdict_counts(table).to_string())
