import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probnb.methods import METHODS, PAPER
from probnb_book.published import published

SCENARIOS = ("linear", "sigmoid", "centered", "skewed", "discrete")
TASKS = ("cancer", "weather", "collision")


@pytest.fixture(scope="module")
def tables(data_dir):
    """Bodies of the paper's tables, from its source beside the data."""
    source = data_dir.parent / "paper" / "deep-probability-estimation.tex"
    if not source.exists():
        pytest.skip(f"the paper's source is not at {source.parent}")
    found = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", source.read_text(), re.S)
    return [re.search(r"\\midrule.*?\\bottomrule", table, re.S)[0] for table in found]


@pytest.mark.parametrize("number", range(1, 13))
def test_every_number_of_every_table_is_the_papers(tables, number):
    body = tables[number - 1]
    printed = [float(x) for x in re.findall(r"\d*\.\d+", body)]
    ours = published_as_printed(number)
    stored = [x for pair in zip(ours["value"], ours["std"]) for x in pair if np.isfinite(x)]
    assert stored == printed


def published_as_printed(number):
    rows = pd.read_csv(Path(published.__code__.co_filename).with_suffix(".csv"))
    return rows[rows["table"] == number]


@pytest.mark.parametrize("number", [*range(1, 11), 12])
def test_rows_stand_under_the_papers_names(tables, number):
    body = tables[number - 1]
    names = re.findall(r"(?:^|\\\\|\\midrule)\s*([A-Za-z][^&\\]*?)\s*&", body)
    ours = list(dict.fromkeys(published_as_printed(number)["method"]))
    assert len(names) == len(ours)
    for name, key in zip(names, ours):
        kind = key.split("_")[-1]
        if key.startswith(("cape", "beginning")):  # "Bin (start)", "CaPE (bin)", "Bin (CaPE)"
            assert kind in name.lower()
            assert ("start" in name.lower()) == key.startswith("beginning")
        else:
            first = METHODS[key].label.lower().split()[0].split("-")[0].strip(",")
            assert name.lower().startswith(first)


def test_shape_of_the_collection():
    rows = published()
    assert not rows.duplicated(["scenario", "method", "metric"]).any()
    counts = rows.groupby("scenario").size()
    assert (counts[list(SCENARIOS)] == 12 * 6 + 2 * 2).all()
    assert (counts[list(TASKS)] == 11 * 6).all()
    assert counts["cifar10"] == 6
    assert set(rows["method"]) - set(PAPER) == {"beginning_bin", "beginning_kernel"}
    assert set(rows["method"]) <= set(METHODS)
    ours = {"ce_overfit", "beta", "mixnmatch_isotonic", "ce_finetuned"}
    assert set(PAPER) - set(rows["method"]) == ours
    assert rows["value"].notna().all()


def test_known_values_and_units():
    row = published("linear", method="resampled", metric="kl_p")
    assert row[["value", "std", "mark", "table"]].values.tolist() == [[2.82, 0.11, "differs", 3]]
    assert published("linear", method="resampled", metric="kl_p", table=1)["value"].item() == 2.81
    fraction = published("linear", method="ce", metric="mse_p", percent=False)
    assert fraction[["value", "std"]].values.tolist() == [[0.0421, 0.0015]]
    cifar = published("cifar10", method="cape_bin", metric="kl_p")  # printed as 0.2468
    assert cifar["value"].item() == 24.68
    assert (
        published("cifar10", method="ce", metric="mse_p", percent=False)["value"].item() == 0.0297
    )


def test_copied_cells_of_table_1_carry_the_appendix_values():
    wrong = published(table=1, corrected=False).query("mark == 'misprint'")
    assert len(wrong) == 6
    assert (wrong["value"] == 4.21).all()
    right = published(table=1).query("mark == 'misprint'")
    appendix = published(method="resampled")
    for row in right.itertuples():
        same = appendix.query("scenario == @row.scenario and metric == @row.metric")
        assert (row.value, row.std) == (same["value"].item(), same["std"].item())


def test_two_tables_disagree_exactly_where_marked():
    keys = ["scenario", "method", "metric"]
    fullest = published(corrected=False).set_index(keys)
    for number in (1, 2, 12):
        other = published(table=number, corrected=False).set_index(keys)
        base = fullest if number != 12 else published(table=1, corrected=False).set_index(keys)
        both = other.join(base, suffixes=("", "_base"), how="inner")
        unequal = both["value"] != both["value_base"]
        if number != 12:
            unequal |= both["std"].fillna(0) != both["std_base"].fillna(0)
        marked = both["mark"].isin(["differs", "misprint"])
        assert unequal.sum() > 0
        assert (unequal == marked).all()


def test_suspect_values_are_outliers_among_their_neighbours():
    skewed = published("skewed").pivot(index="method", columns="metric", values="value")
    ratio = skewed["kl_p"] / skewed["mse_p"]
    assert ratio["focal"] < 2 < ratio.drop("focal").min()  # a divergence about 4 times the MSE
    weather = published("weather").pivot(index="method", columns="metric", values="value")
    assert weather["nll"]["cape_bin"] == weather["auc"]["cape_kernel"] == 79.00
    others = weather.drop("cape_bin")
    fit = np.polyfit(others["brier"], others["nll"], 1)
    residual = weather["nll"] - np.polyval(fit, weather["brier"])
    assert abs(residual["cape_bin"]) > 20 * residual.drop("cape_bin").abs().max()


def test_plus_minus_is_one_standard_deviation(data_dir):
    # The authors' saved predictions for discrete with resampled labels score what Table 7 says
    # (1.51 against 1.52, 20.40 against 20.38), so their spread at the test set's size tells
    # what the printed number is: one standard error, half of a 95 % interval's half-width.
    saved = pd.read_csv(data_dir / "authors-predictions" / "discrete.csv")
    squares = {
        "mse_p": (saved["infinite"] - saved["p"]) ** 2,
        "brier": (saved["infinite"] - saved["y"]) ** 2,
    }
    for metric, values in squares.items():
        row = published("discrete", method="resampled", metric=metric).iloc[0]
        assert 100 * values.mean() == pytest.approx(row["value"], rel=0.01)
        assert 100 * values.std() / np.sqrt(2329) == pytest.approx(row["std"], rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "liner"}, "Did you mean 'linear'"),
        ({"method": ["ce", "plat"]}, "Did you mean 'platt'"),
        ({"metric": "mse"}, "metric must be one of"),
        ({"table": 13}, "table must be one of"),
    ],
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        published(**arguments)


def test_the_cached_table_is_not_handed_out():
    rows = published()
    rows["value"] = 0.0
    assert published()["value"].max() > 1
