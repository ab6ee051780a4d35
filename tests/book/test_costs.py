"""The costs and shares of section 8 of the page Results, and the sentences that tell of them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probnb.metrics import difference, holm
from probnb_book import costs, evidence
from probnb_book.claims import stored_runs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def table():
    return costs.stored([ROOT / "results"])


@pytest.fixture(scope="module")
def sums(table):
    return costs.shares(table).set_index(["start", "row"])


def prose():
    text = (ROOT / "book" / "results.py").read_text(encoding="utf-8").replace("\n# ", " ")
    text = re.sub(r"\s+", " ", text)
    return text[text.index("## 8. What to do") : text.index("## How many differences")]


def said(words):
    assert words in prose(), f"the page no longer says {words!r}, or its evidence has changed"


def test_seconds_are_those_of_the_epochs_that_a_row_needs():
    (line, *_) = stored_runs([ROOT / "results"])["linear"].itertuples()
    results, _ = evidence.tables(line)
    epochs = results.epochs.dropna(subset="cpu_seconds").set_index(["fit", "epoch"])["cpu_seconds"]
    patience = line.run.record["settings"]["patience"]
    best = results.chosen[results.chosen["method"] == "ce"]["best_epoch"].item()
    ce = sum(epochs["ce", k] for k in range(1, best + patience + 1))
    found = costs.seconds(line)
    assert found["ce"] == found["platt"] == pytest.approx(ce)
    assert found["ce_overfit"] == pytest.approx(found["ce"])  # the network is the same
    members = [epochs[f"ensemble member={k}"].sum() for k in (2, 3)]  # stopped by themselves
    assert found["ensemble"] == pytest.approx(ce + sum(members))
    assert found["ce_mean"] == pytest.approx(found["ensemble"] / 3)
    assert found["resampled"] == pytest.approx(epochs["resampled"].sum())
    tuned = results.chosen[results.chosen["method"] == "cape_bin"].set_index("fit")["best_epoch"]
    tuned = sum(epochs[fit].loc[: k + patience].sum() for fit, k in tuned.items())
    assert len(results.chosen.query("method == 'cape_bin'")) == 4
    assert found["cape_bin"] == pytest.approx(ce + tuned)


def test_shares_of_a_table_by_hand():
    rows = [
        ("linear", 0, 1.0, 2.0), ("linear", 1, 2.0, 4.0), ("skewed", 0, 0.1, 0.4),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["scenario", "seed", "gain", "whole"])
    table = table.assign(start="a", row="ensemble", trainings=[3, 4, 5], seconds=[1, 2, 3])
    alone = table[:2].assign(row="platt")
    found = costs.shares(pd.concat([table, alone])).set_index("row")
    line, other = found.loc["ensemble"], found.loc["platt"]
    assert (line["linear"], line["skewed"], line["least"]) == pytest.approx((0.5, 0.25, 0.25))
    assert (line["share"], line["trainings"], line["seconds"]) == pytest.approx((0.375, 4, 2))
    half = 12.7062 * 0.125  # Student's, one degree of freedom; two values .125 from their mean
    assert line["high"] - line["share"] == pytest.approx(half, rel=1e-4)
    assert (
        other["linear"] == pytest.approx(0.5) and np.isnan([other["share"], other["skewed"]]).all()
    )


def test_both_starts_have_the_same_faces_and_outcomes():
    both = [stored_runs([ROOT / "results"], pretrained) for pretrained in (False, True)]
    pairs = 0
    for scenario in ("linear", "sigmoid", "centered", "skewed", "discrete"):
        first, second = ({r.seed: r for r in runs[scenario].itertuples()} for runs in both)
        for seed in first.keys() & second.keys():
            a, b = (evidence.tables(runs[seed])[1][["id", "y", "p"]] for runs in (first, second))
            pd.testing.assert_frame_equal(a, b, check_dtype=False)
            pairs += 1
    assert pairs >= 10


def test_what_the_page_says_of_shares(sums):
    told = {
        (costs.SCRATCH, "ensemble"): "48 % [34, 62]",
        (costs.SCRATCH, "ensemble_platt"): "50 % [32, 68]",
        (costs.SCRATCH, "ce_averaged"): "34 % [10, 57] for 1.1 trainings",
        (costs.SCRATCH, "beginning_bin"): "15 % [10, 20] for 1.3 trainings",
        (costs.SCRATCH, "platt"): "11 % [-0, 22]",
        (costs.SCRATCH, "cape_bin"): "12 % [-7, 30] for 3.0",
        (costs.SCRATCH, "ce_finetuned"): "12 % [-6, 30] for 1.9",
        (costs.FEATURES, "logistic"): "125 % [109, 141], at least 111 %. It costs 3.9 trainings",
        (costs.DRAWN, "ce_averaged"): "63 % [38, 88] for 1.5 trainings",
        (costs.DRAWN, "augmented"): "57 % [40, 74] for as much",
        (costs.DRAWN, "distilled"): "66 % [36, 96] for 3.9",
        (costs.DRAWN, "crossfit"): "43 % [1, 85] for 4.3",
    }
    for place, words in told.items():
        said(words)
        line = sums.loc[place]
        share = "{:.0f} % [{:.0f}, {:.0f}]".format(*(100 * line[["share", "low", "high"]]))
        assert words.startswith(share), (place, share)
        for cost in re.findall(r"(?:for|costs) (\d\.\d)", words):
            assert f"{line['trainings']:.1f}" == cost, place
    assert f"{sums.loc[(costs.DRAWN, 'augmented'), 'trainings']:.1f}" == "1.5"


def test_half_way_in_all_five(table, sums):
    five = ["linear", "sigmoid", "centered", "skewed", "discrete"]
    ensemble = 100 * sums.loc[(costs.SCRATCH, "ensemble"), five].astype(float)
    said(f"between {ensemble.min():.0f} and {ensemble.max():.0f} %, for three trainings")
    single = sums.loc[costs.SCRATCH].drop(index=["ensemble", "ensemble_platt"])
    half = single[five].stack() > 0.5
    assert half[half].index.tolist() == [("ce_averaged", "sigmoid")]
    assert single["share"].astype(float).idxmax() == "ce_averaged"
    logistic = sums.loc[(costs.FEATURES, "logistic")]
    said(f"at least {100 * logistic['least']:.0f} %")
    assert logistic["least"] > 1 and logistic["seconds"] == pytest.approx(330, abs=5)
    took = pd.read_csv(ROOT / "results" / "derived" / "extraction.csv")["cpu_seconds_each"].item()
    heads = sums.loc[costs.FEATURES]["seconds"] - costs.FACES * took
    assert heads[["logistic", "ce_mean"]].round().tolist() == [2, 2]
    assert round(heads["ensemble"]) == 11
    whole = 100 * table[table["start"] == costs.SCRATCH].groupby("scenario")["whole"].mean()
    assert whole.idxmin() == "centered" and f"{whole.min():.2f}" == "0.14"
    assert whole.idxmax() == "sigmoid" and f"{whole.max():.1f}" == "1.3"


def test_how_many_stand_out_by_chance(table):
    own = table[table["start"] == costs.SCRATCH].groupby(["row", "scenario"])["gain"]
    gaps = {place: difference(gain) for place, gain in own if len(gain) > 1}
    apart = [place for place, gap in gaps.items() if gap.resolved]
    said(f"Of the {len(gaps)} intervals over seeds")
    said(f"from random weights {len(apart)} leave out 0")
    assert 0.05 * len(gaps) == pytest.approx(2, abs=0.3)
    rows = [row.removesuffix("_platt") for row, _ in apart]
    assert rows.count("ensemble") == 10 and rows.count("ce_averaged") == 3
    others = [("beginning_bin", "discrete"), ("cape_bin", "sigmoid"), ("ce_finetuned", "sigmoid")]
    told = ("ensemble", "ensemble_platt", "ce_averaged")
    assert [place for place in apart if place[0] not in told] == others
    left = [p for p, v in zip(gaps, holm([g.p for g in gaps.values()])) if v < 0.05]
    four = ["discrete", "linear", "sigmoid", "skewed"]
    kept = [(f"ensemble{end}", scenario) for end in ("", "_platt") for scenario in four]
    assert left == [("ce_averaged", "sigmoid"), *kept]
    trainings = table[table["start"] == costs.SCRATCH].groupby("scenario")["seed"].nunique()
    assert (trainings == 5).all()


def test_the_interval_of_a_ratio_knows_that_both_vary():
    """Where gain and whole go together seed by seed, their ratio is sharper than the gain alone."""
    rng = np.random.default_rng(0)
    whole = rng.normal(1, 0.3, 5)
    table = pd.DataFrame({"gain": 0.6 * whole, "whole": whole, "trainings": 3, "seconds": 1})
    found = costs.shares(table.assign(start=costs.DRAWN, row="ensemble", scenario="linear"))
    found = found.iloc[0]
    assert [found["share"], found["low"], found["high"]] == pytest.approx([0.6] * 3)
