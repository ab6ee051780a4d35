"""README tells nothing that a guarded page of the book does not say too."""

import re
from pathlib import Path

from probnb_book import claims, evidence

ROOT = Path(__file__).resolve().parents[1]
DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")


def flat(path):
    return re.sub(r"\s+", " ", re.sub(r"\n#? ", " ", path.read_text(encoding="utf-8")))


def findings():
    text = flat(ROOT / "README.md")
    return text[text.index("## What it finds") : text.index("## Set up")]


def guarded():
    """The text of the pages whose sentences tests hold against the stored runs."""
    names = [p.stem.removeprefix("test_findings_") for p in ROOT.glob("tests/*/test_findings_*")]
    return [flat(ROOT / "book" / f"{name}.py") for name in names]


def test_it_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = text[text.index("## What it finds") : text.index("## Set up")]
    assert len(text.strip().splitlines()) <= 28 and text.count("![") == 1


def test_every_number_stands_on_a_page_that_has_a_guard():
    known = set().union(*(DECIMAL.findall(text) for text in guarded()))
    told = set(DECIMAL.findall(findings()))
    assert told and told <= known


def test_it_tells_findings_and_few_numbers():
    """The pages have the rest: at most five numbers in a hundred words."""
    text = findings()
    words = re.findall(r"[A-Za-z][A-Za-z'-]+", text)
    numbers = re.findall(r"(?<![\w.])[-+]?\d+(?:\.\d+)?", re.sub(r" \d\. \*\*", "", text))
    assert len(numbers) <= 0.05 * len(words)
    assert re.findall(r" (\d)\. \*\*", text) == ["1", "2", "3", "4", "5"]


def test_the_count_of_verdicts():
    """Here and on the page Claims, whose ledger takes a while."""
    folders = [ROOT / "results"]
    runs = claims.stored_runs(folders) | claims.longer_runs(folders)
    counts = claims.verdict_counts(claims.ledger(runs))
    verdicts = counts["all"]
    assert (
        f"Of the paper's {verdicts['all']} claims {verdicts['holds']} hold "
        f"({counts.loc['holds', 'reading']} of them by reading), {verdicts['contradicted']} are "
        f"contradicted, {verdicts['not resolved']} are not resolved"
    ) in findings()
    assert f"makes {verdicts['all']} claims" in flat(ROOT / "book" / "claims.py")
    assert counts.loc["holds", "reading"] > verdicts["holds"] / 2
    assert counts.loc["not resolved", "runs"] > counts.loc["all", "runs"] / 2


def test_what_it_says_of_every_training_on_photographs():
    runs = evidence.find([ROOT / "results"], "synthetic", data="utkface", profile="cpu")
    runs = runs[runs["variant"] == ""]
    behind = []
    for line in runs.itertuples(index=False):
        results, _ = evidence.tables(line)
        kept = results.chosen[results.chosen["chosen"].astype(bool)]
        behind += kept.loc[kept["method"] == "cape_bin", "calibration_epochs"].tolist()
        epochs = results.epochs[results.epochs["fit"].str.match(r"ce$|ensemble member")]
        at = epochs.loc[epochs.groupby("fit")["val_ce"].idxmin()]
        assert (at["bias"].abs() < 0.106 / 2).all(), line.name
    assert sorted(behind) == [0] * 7 + [1] * 16 + [2] * 2
