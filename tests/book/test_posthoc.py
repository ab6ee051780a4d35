"""Calibration after the fact on stored predictions: the table by source, and a gain by hand."""

from pathlib import Path

from probnb.metrics import difference
from probnb_book import posthoc

STORED = Path(__file__).resolve().parents[2] / "results"


def test_table_and_a_gain_by_hand():
    gains = posthoc.post_hoc([STORED])
    assert len(gains.drop_duplicates(["task", "data", "seed"])) == 45
    rows = gains.set_index(["task", "data", "row", "map", "seed"]).sort_index()
    assert set(rows.loc[("linear", "utkface", "ce", "platt"), "rows"]) == {4738}
    table = posthoc.post_hoc_table(gains)
    assert list(table) == ["photographs", "drawn faces", "weather", "cancer", "collision"]
    assert len(table) == len(posthoc.MAPS) and "Venn-Abers" in table.index
    faces = gains[(gains["data"] == "utkface") & (gains["row"] == "ce") & (gains["map"] == "platt")]
    each = faces.groupby("seed")["nll"].mean()  # five scenarios of the same faces count once
    assert faces.groupby("seed").size().eq(5).all() and len(each) == 5
    assert table.loc["Platt scaling", "photographs"] == difference(each).text(1000)
    assert table["drawn faces"].str.endswith("(one seed)").all()
    assert posthoc.post_hoc(["no such folder"]).empty
    brier = posthoc.post_hoc_table(gains, "ensemble", "brier")
    assert brier.shape == table.shape and not brier.equals(table)
