import numpy as np
import pytest

from probnb.experiment.summary import compare, comparison_table, conclusions
from probnb.metrics.resampling import bootstrap

RNG = np.random.default_rng(0)
P = RNG.random(600)
Y = (RNG.random(600) < P).astype(float)


def noisy(scale, seed):
    return np.clip(P + np.random.default_rng(seed).normal(0, scale, 600), 0.001, 0.999)


PREDICTIONS = {
    "resampled": noisy(0.02, 1),
    "ce_overfit": noisy(0.4, 2),
    "ce": noisy(0.15, 3),
    "platt": noisy(0.15, 4),
    "ce_finetuned": noisy(0.1, 5),
    "cape_bin": noisy(0.05, 6),
    "cape_kernel": noisy(0.1, 7),
}
RESULT = bootstrap(Y, PREDICTIONS, P, replicates=200, progress=False)


def test_verdicts_follow_the_intervals():
    table = compare(RESULT, "ce")
    assert "ce" not in table.index
    assert table["verdict"].to_dict() == {
        "resampled": "better",
        "ce_overfit": "worse",
        "platt": "no difference shown",
        "ce_finetuned": "better",
        "cape_bin": "better",
        "cape_kernel": "better",
    }
    assert ((table["low"] < table["difference"]) & (table["difference"] < table["high"])).all()
    expected = np.mean((PREDICTIONS["platt"] - P) ** 2) - np.mean((PREDICTIONS["ce"] - P) ** 2)
    assert table.loc["platt", "difference"] == pytest.approx(expected)


def test_conclusions_say_what_the_numbers_say():
    text = conclusions(RESULT, "linear")
    better, worse, unclear, cape, lowest = text.split("\n")[2:]
    assert better.startswith(
        "- **Lower than CE early-stop in this training:** CE + resampled labels"
    )
    assert "CaPE (bin)" in better and "Platt" not in better
    assert worse.startswith("- **Higher than CE early-stop in this training:** CE overfit")
    assert "Platt scaling" in unclear
    assert "CaPE (bin)" in cape and ": better;" in cape and "no difference shown" in cape
    assert "CaPE (bin)" in lowest and "resampled" not in lowest.split(".")[0].lower()


def test_conclusions_change_with_the_numbers():
    swapped = dict(PREDICTIONS, cape_bin=PREDICTIONS["ce_overfit"])
    text = conclusions(bootstrap(Y, swapped, P, replicates=200, progress=False), "linear")
    worse = next(line for line in text.split("\n") if line.startswith("- **Higher"))
    assert "CaPE (bin)" in worse


def test_table_puts_the_papers_numbers_beside_ours():
    table = comparison_table(RESULT, "linear").replace("\N{NO-BREAK SPACE}", " ", regex=True)
    assert table.loc["CE early-stop", ("MSE_p", "paper")] == "4.21 ± 0.15"
    assert table.loc["CE overfit", ("MSE_p", "paper")] == "–"
    ours = 100 * np.mean((PREDICTIONS["ce"] - P) ** 2)
    assert table.loc["CE early-stop", ("MSE_p", "ours")].startswith(f"{ours:.2f} ± ")
    assert ("AUC", "paper") not in table.columns  # the paper has none for this scenario
    skewed = comparison_table(bootstrap(Y, {"focal": P}, P, replicates=5, progress=False), "skewed")
    assert (
        skewed.loc["Focal loss", ("KL_p", "paper")]
        == "1.63\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.66*"
    )


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="b must be one of"):
        compare(RESULT, "cee")
