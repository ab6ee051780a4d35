"""The page Results on calibration after the fact, held against the stored predictions."""

import re
from pathlib import Path

import pytest

from probnb.metrics import difference
from probnb_book import posthoc

ROOT = Path(__file__).resolve().parents[2]
STEPS = ["isotonic", "histogram", "venn_abers"]


@pytest.fixture(scope="module")
def gains():
    return posthoc.post_hoc([ROOT / "results"])


def check(gains):
    text = re.sub(r"\s+", " ", (ROOT / "book" / "results.py").read_text().replace("\n# ", " "))
    text = text[text.index("## 7.") :]
    one, team = posthoc.by_task(gains), posthoc.by_task(gains, "ensemble")
    assert len(one) == 13 and len(gains.drop_duplicates(["task", "data", "seed"])) == 45
    smooth = one.drop(columns=STEPS)
    assert smooth.shape[1] == 7 and smooth.mean().between(0.0015, 0.0042).all()
    told = [name for name in smooth if difference(smooth[name]).resolved]
    assert told == ["mixnmatch"]
    assert not any(difference(team[name]).low > 0 for name in team)
    dry = smooth.drop("weather")
    assert dry.mean().between(0.0035, 0.0055).all()
    assert [name for name in dry if not difference(dry[name]).resolved] == ["spline"]
    assert (one["isotonic"] < 0).all()
    for a, b, digits in (
        (0, "isotonic", 3),
        ("venn_abers", "isotonic", 3),
        ("beta", "venn_abers", 4),
    ):
        gap = difference((one[a] if a else 0) - one[b])
        words = "{} [{}, {}]".format(*(f"{v:.{digits}f}" for v in (gap.value, gap.low, gap.high)))
        assert words in text, words
    assert (one["venn_abers"] > one["isotonic"]).sum() == 13
    assert difference(team["venn_abers"]).high < 0
    for name in ("quadratic", "spline"):
        assert not difference(one[name] - one["platt"]).resolved
    means = one.mean()
    assert means[["venn_abers", *smooth]].idxmin() == "venn_abers"
    assert means.idxmin() in ("isotonic", "histogram") and means["isotonic"] < -0.05


def test_sentences(gains):
    check(gains)


def test_a_changed_number_is_noticed(gains):
    better = gains.copy()
    better.loc[better["map"] == "venn_abers", "nll"] += 0.005
    with pytest.raises(AssertionError):
        check(better)


def test_table_and_a_gain_by_hand(gains):
    table = posthoc.post_hoc_table(gains)
    assert table.shape == (len(posthoc.MAPS), 6) and "Venn-Abers" in table.index
    assert table.loc["isotonic regression", ("CE early-stop", "tasks")] == "0 of 13"
    rows = gains.set_index(["task", "data", "row", "map", "seed"]).sort_index()
    assert set(rows.loc[("linear", "utkface", "ce", "platt"), "rows"]) == {4738}
    mean = rows.loc[("linear", "utkface", "ce", "platt"), "nll"].mean()
    assert posthoc.by_task(gains).loc[("linear", "utkface"), "platt"] == pytest.approx(mean)
    assert posthoc.post_hoc(["no such folder"]).empty
