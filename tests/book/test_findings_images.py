"""The sentences of the page on one's own images, held against what was measured for them."""

from probnb_book.authors import derived

from .pages import RESULTS, prose

STUDY = derived([RESULTS], "pretrained").query("study == 'own images'")


def test_what_a_backbone_brings():
    text = prose("images")
    table = STUDY.query("metric == 'mse_p'").set_index(["row", "less"])
    one, several = ("ce", "ce from scratch"), ("ensemble", "ensemble from scratch")
    means = [table.loc[pair, "mean"] for pair in (one, several, ("logistic", "ce from scratch"))]
    words = (
        "of {:.2f}, an ensemble {:.2f} and logistic regression {:.2f}; from random weights, at 20 "
        "× 20 pixels for 128 × 128, it is"
    )
    assert words.format(*means) in text
    means = *table.loc[[one, several], "other"], table.loc[("ce from scratch", "constant"), "other"]
    assert "it is {:.2f} and {:.2f}, where one number for all has {:.2f}".format(*means) in text
    for pair, who in ((one, "for cross entropy"), (several, "for the ensemble")):
        value, low, high = table.loc[pair, ["value", "low", "high"]]
        assert f"{-value:.2f} [{-high:.2f}, {-low:.2f}] less {who}" in text
    assert (table["seeds"] == 3).all()
