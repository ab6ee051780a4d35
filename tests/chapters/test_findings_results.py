"""The sentences of the page Results, held against the stored runs they tell of."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from probnb.chapters import authors, claims, power
from probnb.chapters import results as tables
from probnb.experiment import evidence
from probnb.metrics import difference, holm
from probnb.published import published

ROOT = Path(__file__).resolve().parents[2]
SEVERAL = ("linear", "discrete")  # the scenarios whose intervals the page gives


def prose(name):
    text = (ROOT / "book" / f"{name}.py").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", text.replace("\n# ", " "))


def spell(numbers, digits=2, sign="+"):
    return "{} [{}, {}]".format(*(f"{v:{sign}.{digits}f}" for v in numbers))


def ends(gap, scale=100):
    return [scale * v for v in (gap.value, gap.low, gap.high)]


def best_of(folder):
    return {s: r for s, r in claims.stored_runs([folder]).items() if s != "cifar10"}


def said(words, text):
    assert words in text, f"the page no longer says {words!r}, or its evidence has changed"


def check_gaps(best, text):
    """Every difference that the page gives with an interval."""
    pairs = [
        ("resampled", "ce_mean"),
        ("cape_bin", "ce_mean"),
        ("cape_bin", "ce_finetuned"),
        ("ensemble", "ce_mean"),
        ("ensemble", "cape_bin"),
        ("cape_bin", "beginning_bin"),
        ("beginning_bin", "ce_mean"),
    ]
    for a, b in pairs:
        for scenario in SEVERAL:
            gap = evidence.compare(best[scenario], a, b)
            words = spell(ends(gap))
            said(words.removeprefix("+") if a == "cape_bin" and "beg" in b else words, text)


@pytest.fixture(scope="module")
def best():
    return best_of(ROOT / "results")


def test_differences_on_the_page(best):
    check_gaps(best, prose("results"))


def test_a_number_changed_by_hand_is_noticed(tmp_path):
    for source in (ROOT / "results" / "synthetic").glob("*-utkface-cpu-seed?"):
        if source.name.startswith(SEVERAL):
            shutil.copytree(source, tmp_path / "synthetic" / source.name)
    check_gaps(best_of(tmp_path), prose("results"))
    path = tmp_path / "synthetic" / "linear-utkface-cpu-seed1" / "predictions.parquet"
    table = pd.read_parquet(path)
    table.assign(ensemble=table["ensemble"] * 0.95).to_parquet(path, index=False)
    evidence._read.cache_clear()
    evidence._values.cache_clear()
    with pytest.raises(AssertionError, match="no longer says"):
        check_gaps(best_of(tmp_path), prose("results"))


def test_overfitting(best):
    text = prose("results")
    for scenario, runs in best.items():
        value = evidence.scores(runs, ["mse_p"]).pivot(
            index="method", columns="seed", values="value"
        )
        ratio = value.loc["ce_overfit"] / value.loc["ce_mean"]
        assert ratio.between(1.5, 20).all()
        assert value.idxmin().eq("resampled").all()
        if scenario in SEVERAL:
            said(spell(ends(difference(ratio), 1), 1, ""), text)
            for line in runs.itertuples():
                epochs = evidence.tables(line)[0].epochs
                last = epochs[epochs["fit"] == "ce"].set_index("epoch")["train_ce"]
                assert last.index[-1] == 24 and 0.15 < last.iloc[-1] < 0.45


def test_calibration_epochs_add_nothing(best):
    text = prose("results")
    paper = published("linear", metric="mse_p").set_index("method")["value"]
    said(f"({paper['ce']:.2f} to {paper['cape_bin']:.2f})", text)
    gap = evidence.compare(best["linear"], "cape_bin", "ce_mean")
    assert 100 * gap.low > paper["cape_bin"] - paper["ce"]
    behind = tables.behind(best)[["CaPE (bin)", "CaPE (kernel)"]]
    behind = behind[behind.index.str.startswith(("Linear", "Discrete"))]
    counts = behind.stack().str.extract(r"(\d+) of calibration")[0].fillna("0").astype(int)
    assert len(behind) == 6 and counts.max() == 1
    whole = tables.behind(best).loc["Linear, seed 1"]
    assert whole[["CE fine-tuned", "CaPE (bin)", "CaPE (kernel)"]].eq("its start").all()
    first = evidence.scores(best["discrete"], ["mse_p"])
    first = first.pivot(index="seed", columns="method", values="value")
    assert 100 * (first["cape_bin"] - first["ce"]).mean() == pytest.approx(-0.12, abs=0.005)
    trained = tables.kept_trainings(best["discrete"])
    worst = trained.loc[trained.groupby("seed")["mse_p"].idxmax(), "fit"]
    assert worst.eq("ce").all() and trained.groupby("seed").size().eq(3).all()


def test_other_settings_of_cape(best):
    found = evidence.find([ROOT / "results"], "synthetic", task="linear", data="utkface")
    table = tables.candidates(found[found["size"] == 32]).reset_index()
    cape = table[table["row"] == "CaPE (bin)"]
    several = cape[cape["seeds"] == 3]
    assert set(several["rate"]) == {"0.1", "0.03", "0.01", "0.001"}
    assert set(several["bins"]) == {"5", "15"} and set(several["schedule"]) == {
        "released",
        "printed",
    }
    limits = several["kept less start"].str.extract(r"\[(.*), (.*)\]").astype(float)
    assert (limits[0] < 0).all() and (limits[1] > 0).all()
    slow = cape[cape["rate"] == "0.0001"]
    assert slow["seeds"].tolist() == [1] and slow["kept"].tolist() == ["8"]


def test_ensembles(best):
    paper = published("linear", metric="mse_p").set_index("method")["value"]
    said(f"({paper['cape_bin']:.2f} and {paper['ensemble']:.2f} in Linear)", prose("results"))
    for scenario in SEVERAL:
        value = evidence.scores(best[scenario], ["mse_p"]).groupby("method")["value"].mean() * 100
        gain = value["ce_mean"] - value["ensemble"]
        assert gain / value["ce_mean"] == pytest.approx(0.15, abs=0.02)
        assert 1.5 * gain == pytest.approx(0.5, abs=0.06)
        assert 2.2 < value["ce_mean"] < 2.35


def test_from_the_beginning(best):
    for scenario in SEVERAL:
        value = evidence.scores(best[scenario], ["mse_p"])
        value = value.pivot(index="seed", columns="method", values="value")
        assert len(value) == 3 and (value["beginning_bin"] < value["cape_bin"]).all()
    behind = tables.behind(best)["From the beginning (bin)"]
    behind = behind[behind.index.str.startswith(("Linear", "Discrete"))]
    counts = behind.str.extract(r"(\d+) of calibration")[0].astype(int)
    assert counts.min() == 2 and counts.max() == 4
    printed = published("linear", metric="mse_p", method=["beginning_bin", "cape_bin"])
    assert printed.set_index("method")["value"].to_dict() == {
        "beginning_bin": 2.59,
        "cape_bin": 1.78,
    }


def test_the_published_baseline(best):
    text = prose("results")
    scores = authors.derived([ROOT / "results"], "authors-predictions")
    scores = scores[scores["scenario"] == "linear"].set_index(["method", "repair"])
    error, slope = 100 * scores["mse_p"], scores["slope"]
    said(f"have {error['ce', 'none']:.2f}, and are too high by {scores['shift']['ce', 'none']:.3f}",
         text)  # fmt: skip
    said(
        f"takes them to {error['ce', 'intercept']:.2f}, Platt scaling to "
        f"{error['ce', 'platt']:.2f}, below their own CaPE's {error['cape_bin', 'none']:.2f}",
        text,
    )
    said(f"that CaPE has {error['cape_bin', 'platt']:.2f}", text)
    said(f"(Platt slopes {slope['ce', 'none']:.2f} and {slope['cape_bin', 'none']:.2f})", text)
    parts = authors.derived([ROOT / "results"], "authors-gains")
    parts = parts.query("scenario == 'linear' and metric == 'mse_p' and part == 'ranking'")
    gain, low, high = 100 * parts[["gain", "low", "high"]].iloc[0]
    said(f"worth {gain:.2f} [{low:.2f}, {high:.2f}]", text)
    kept = pd.concat(tables.kept_trainings(runs) for runs in best.values())
    linear = kept[kept["scenario"] == "linear"]["bias"].abs()
    assert len(linear) == 9 and len(kept) >= 27
    assert linear.max() < 0.0255 and kept["bias"].abs().max() < 0.06


def test_how_many_stand_out_by_chance(best):
    text = prose("results")
    pairs = [(a, b) for a in ("cape_bin", "cape_kernel") for b in ("ce_mean", "ce_finetuned")]
    pairs += [("ensemble", b) for b in ("ce_mean", "cape_bin", "platt")]
    pairs += [(a, "ce_mean") for a in ("beginning_bin", "beginning_kernel")]
    pairs += [("beginning_bin", "cape_bin"), ("beginning_kernel", "cape_kernel")]
    table = tables.differences({s: best[s] for s in SEVERAL}, pairs)
    apart = table[table["p"] < 0.05]
    said(f"Of these {len(table)}, {len(apart)} intervals leave out 0", text)
    assert 0.05 * len(table) == pytest.approx(1, abs=0.2)
    rest = apart[apart["a"] != "ensemble"]
    assert rest[["scenario", "a", "b"]].to_numpy().tolist() == [
        ["discrete", "beginning_bin", "cape_bin"]
    ]
    left = table.assign(holm=holm(table["p"])).query("holm < 0.05")
    assert left[["scenario", "a", "b"]].to_numpy().tolist() == [["discrete", "ensemble", "platt"]]
    said(f"($p$ = {left['holm'].iloc[0]:.3f})", text)


def check_power(spread, strong):
    """How many trainings it would take; on pretrained features as well."""
    one, ensemble = spread.loc[("ce", "cape_bin")], spread.loc[("ensemble", "cape_bin")]
    assert round(one["std"], 1) == 0.1
    seeds = [power.seeds_needed(gap, one["std"]) for gap in (0.5, 0.2, 0.1, 0.05)]
    assert seeds[:2] == [3, 5] and 9 <= seeds[2] <= 12 and 30 <= seeds[3] <= 40
    shares = [(pair["rows"] / pair["std"]) ** 2 for pair in (one, ensemble)]
    assert shares[0] < 1 / 3 and round(shares[1], 1) == 0.7
    assert round(power.ENOUGH * ensemble["std"], 2) == 0.24
    shared = spread.index.intersection(strong.index)
    ratio = (strong["std"][shared] / spread["std"][shared]).median()
    assert ratio == pytest.approx(1 / 4, abs=0.04)
    for pair in {*power.ASKED} & {*strong.index}:
        if "cape_bin" in pair:
            few = power.seeds_needed(0.05, strong.loc[pair, "std"]) <= 7
            assert few == (pair[1] != "beginning_bin")


def test_how_many_trainings_it_would_take(best):
    spread = power.spread(best)
    strong = power.spread(claims.stored_runs([ROOT / "results"], pretrained=True))
    check_power(spread, strong)
    with pytest.raises(AssertionError):
        check_power(spread.assign(std=1.5 * spread["std"]), strong)
    text = prose("results")
    for scenario in SEVERAL:
        paper = published(scenario, metric="mse_p").set_index("method")["value"]
        said(f"{paper['ensemble'] - paper['cape_bin']:.2f} in {scenario.capitalize()}", text)
    error = evidence.scores(best["linear"], ["mse_p"]).query("method == 'mmce'")["value"]
    assert error.max() > 1.7 * error.median()


def test_pretrained_start():
    start = claims.stored_runs([ROOT / "results"], pretrained=True)
    assert len(start) == 5 and all(len(runs) == 10 for runs in start.values())
    scratch = best_of(ROOT / "results")

    def means(runs):
        return 100 * evidence.scores(runs, ["mse_p"]).groupby("method")["value"].mean()

    ours = {scenario: means(runs) for scenario, runs in start.items()}
    for scenario, numbers in (("linear", (1.17, 2.22, 1.24)), ("discrete", (1.30, 2.31, 1.36))):
        here = ours[scenario]["ce_mean"], means(scratch[scenario])["ce_mean"]
        assert (*here, ours[scenario]["logistic"]) == pytest.approx(numbers, abs=0.005)
    assert all(ours[s]["ce_mean"] < means(scratch[s])["resampled"] for s in ours)

    def gap(scenario, a, b="ce_mean"):
        return ends(evidence.compare(start[scenario], a, b))

    gains = [gap(scenario, "ensemble") for scenario in start]
    assert all(high < 0 and -0.085 < value < -0.025 for value, _, high in gains)
    for cape in ("cape_bin", "cape_kernel"):
        for scenario in start:
            _, low, high = gap(scenario, cape, "ce_finetuned")
            assert low < 0 < high and max(-low, high) < 0.025
    assert spell(gap("linear", "cape_bin")) == "-0.03 [-0.04, -0.02]"
    convex = {scenario: gap(scenario, "logistic") for scenario in start}
    worse = ("linear", "sigmoid", "discrete")
    assert sorted(round(convex[s][0], 2) for s in worse) == [0.05, 0.07, 0.46]
    assert all(convex[s][1] > 0 for s in worse)
    for scenario in ("centered", "skewed"):
        assert round(convex[scenario][0], 2) == -0.04 and convex[scenario][2] < 0
        averaged = gap(scenario, "ce_averaged")
        assert spell(averaged) in ("+0.08 [+0.06, +0.10]", "+0.02 [+0.01, +0.03]")
        assert gap(scenario, "logistic", "ensemble")[0] < 0
    for scenario in start:
        for row in ("logistic_platt", "logistic_bin", "logistic_kernel"):
            _, low, high = gap(scenario, row, "logistic")
            assert low <= 0 <= high
        assert (gap(scenario, "ce_overfit")[1] > 0) == (scenario != "sigmoid")
        seconds = evidence.row_seconds(start[scenario])
        assert 1.7 < seconds["ensemble"] / seconds["ce"] < 3.3
        assert seconds["logistic"] < 4 and seconds.max() < 30
