"""A page is read by people: few numbers in its prose, and a finding has one paragraph of three."""

import re

import pytest

from .pages import ROOT

BOOK = ROOT / "book"
WORD, NUMBER = re.compile(r"[A-Za-z][A-Za-z'-]+"), re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?")
PAGES = sorted(path.stem for path in BOOK.glob("*.ipynb"))


def prose(page):
    """The markdown of a page in one line, without its head and its mathematics."""
    text = (BOOK / f"{page}.py").read_text(encoding="utf-8").partition("# ---\n\n")[2]
    lines = [line[2:] for line in text.splitlines() if re.match("# (?!%%)", line)]
    return re.sub(r"\$\$?[^$]+\$\$?", "", " ".join(lines))


def density(text):
    return 100 * len(NUMBER.findall(text)) / max(len(WORD.findall(text)), 1)


def test_what_counts_as_a_number():
    told = NUMBER.findall("MSE_p of -0.05 [-0.16, +0.06] at 32 × 32, ResNet-18 of `x2`, Figure 5")
    assert told == ["-0.05", "-0.16", "+0.06", "32", "32", "18", "5"]
    assert density("one two three four 5") == 25


@pytest.mark.parametrize("page", PAGES)
def test_at_most_five_numbers_in_a_hundred_words(page):
    assert len(prose(page)) > 1000 and density(prose(page)) <= 5


def test_a_finding_is_one_paragraph_of_three_numbers():
    source = (BOOK / "results.py").read_text(encoding="utf-8")
    parts = re.split(r"^# ## \d\. ", source, flags=re.M)[1:]
    assert len(parts) == 5
    for part in parts:
        part = part.split("\n# ## ")[0]  # the last ends where the paper's size is asked about
        paragraph = part.split("\n#\n")[1].split("\n\n")[0]
        assert len(NUMBER.findall(paragraph.replace("\n# ", " "))) <= 3, paragraph
        assert len(WORD.findall(paragraph)) < 220
        assert part.count("mystnb=") == 1  # one figure
    assert len(WORD.findall(prose("results"))) < 1600
