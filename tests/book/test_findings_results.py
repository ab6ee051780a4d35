"""The sentences of the page Results, held against the stored runs they tell of."""

import re
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from probnb.calibrators import CALIBRATORS
from probnb.metrics import difference, holm
from probnb_book import authors, claims, costs, evidence, power
from probnb_book import results as tables
from probnb_book.published import published

ROOT = Path(__file__).resolve().parents[2]
SEVERAL = ("linear", "discrete")
LARGE = (*SEVERAL, "sigmoid")  # where errors are of points, not tenths
FIVE = (*LARGE, "skewed", "centered")
LOSSES = ("focal", "entropy", "mmce")
DEMO, LARGER = "88fea34c", "4363a7d0"  # the demo's fine-tuning; 48 px


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
    pairs = {
        ("resampled", "ce_mean"): LARGE,
        ("cape_bin", "ce_mean"): LARGE,
        ("cape_bin", "ce_finetuned"): LARGE,
        ("ensemble", "ce_mean"): FIVE,
        ("ensemble", "cape_bin"): FIVE,
        ("cape_bin", "beginning_bin"): SEVERAL,
        ("beginning_bin", "ce_mean"): LARGE,
        ("ce_averaged", "ce_mean"): LARGE,
        ("ce_averaged", "cape_bin"): LARGE,
    }
    for (a, b), scenarios in pairs.items():
        for scenario in scenarios:
            words = spell(ends(evidence.compare(best[scenario], a, b)))
            said(words.removeprefix("+") if a == "cape_bin" and "beg" in b else words, text)


def test_how_many_seeds_rows_have(best):
    for runs in best.values():
        seeds = evidence.scores(runs, ["mse_p"]).groupby("method")["seed"].nunique()
        assert seeds.eq(5).all() and len(seeds) == 21


def kept_trainings(runs):
    """Every training of plain cross entropy at the epoch that validation keeps."""
    columns, parts = ["fit", "epoch", "bias", "mse_p"], []
    for line in runs.itertuples():
        epochs = evidence.tables(line)[0].epochs
        epochs = epochs[(epochs["fit"] == "ce") | epochs["fit"].str.startswith("ensemble member=")]
        kept = epochs.loc[epochs.groupby("fit")["val_ce"].idxmin()].reindex(columns=columns)
        parts.append(kept.assign(scenario=line.task, seed=line.seed))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def best():
    return best_of(ROOT / "results")


def test_differences_on_the_page(best):
    check_gaps(best, prose("results"))


def test_a_number_changed_by_hand_is_noticed(tmp_path):
    for source in (ROOT / "results" / "synthetic").glob("*-utkface-cpu-seed?"):
        if source.name.startswith(FIVE):
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
        assert len(ratio) == 5 and ratio.min() > 1.5
        lowest = value.idxmin()
        other = lowest[lowest != "resampled"]
        assert other.to_dict() == ({2: "ensemble_platt"} if scenario == "sigmoid" else {})
        said(spell(ends(difference(ratio), 1), 1, ""), text)
    said(f"has {100 * value_gap(best['sigmoid']):.2f} less", text)


def value_gap(runs):
    """How much less the ensemble with Platt scaling has than fresh outcomes, in seed 2."""
    found = evidence.scores(runs[runs["seed"] == 2], ["mse_p"]).set_index("method")["value"]
    return found["resampled"] - found["ensemble_platt"]


def last_epochs(runs):
    for line in runs.itertuples():
        results, test = evidence.tables(line)
        epochs = results.epochs.query("fit == 'ce'").set_index("epoch")
        yield epochs, epochs.iloc[-1], (test["ce_overfit"] - 0.5).abs().gt(0.45).mean()


def test_outcomes_are_learnt_by_heart_in_the_end(best):
    usual = [last["train_ce"] for runs in best.values() for _, last, _ in last_epochs(runs)]
    assert f"{min(usual):.2f} to {max(usual):.2f} nats" in prose("results")
    longer = claims.longer_runs([ROOT / "results"])
    ratios, kepts, nears = {}, {}, []
    for scenario in LARGE:
        runs, ratios[scenario], kepts[scenario] = longer[f"{scenario}@60"], [], []
        assert len(runs) == 3 and runs["variant"].nunique() == 1
        for epochs, last, near in last_epochs(runs):
            assert last.name == 60 and last["train_ce"] < 0.02
            nears.append(100 * near)
            kept = epochs.loc[epochs["val_ce"].idxmin(), "mse_p"]
            ratios[scenario].append(last["mse_p"] / kept)
            kepts[scenario].append(kept)
        said(spell(ends(difference(ratios[scenario]), 1), 1, ""), prose("results"))
    assert round(np.mean(kepts["sigmoid"]) / np.mean(kepts["linear"] + kepts["discrete"])) == 3
    assert difference(ratios["sigmoid"]).low < 2 < difference(ratios["sigmoid"]).high
    assert f"{min(nears):.0f} to {max(nears):.0f} % of predictions" in prose("results")


def test_calibration_epochs_add_nothing(best):
    text = prose("results")
    paper = published("linear", metric="mse_p").set_index("method")["value"]
    share = 1 - paper["cape_bin"] / paper["ce"]
    error = evidence.scores(best["linear"], ["mse_p"]).query("method == 'ce_mean'")["value"].mean()
    words = f"({paper['ce']:.2f} to {paper['cape_bin']:.2f}, {100 * share:.0f} %) would be"
    said(f"{words} {100 * share * error:.2f} here", text)
    gap = evidence.compare(best["linear"], "cape_bin", "ce_mean")
    assert gap.low > -share * error
    behind = tables.behind(best)[["CE fine-tuned", "CaPE (bin)", "CaPE (kernel)"]]
    counts = behind["CaPE (bin)"].str.extract(r"(\d+) of calibration")[0].fillna("0").astype(int)
    assert len(behind) == 25 and counts.value_counts().to_dict() == {1: 16, 0: 7, 2: 2}
    kept = behind["CaPE (bin)"].eq("its start")
    assert kept.sum() == (counts == 0).sum()
    assert behind.loc[kept, "CE fine-tuned"].eq("its start").all()
    for scenario in ("centered", "skewed"):
        start, control = (
            100 * abs(evidence.compare(best[scenario], "cape_bin", other).value)
            for other in ("ce_mean", "ce_finetuned")
        )
        assert start < 0.04 and control < 0.005
    for scenario, row in product(best, ("cape_bin", "cape_kernel")):
        start, control = (
            evidence.compare(best[scenario], row, other) for other in ("ce_mean", "ce_finetuned")
        )
        assert start.resolved == (scenario == "sigmoid") and not control.resolved
    gap, tuned, luck = (
        evidence.compare(best["sigmoid"], row, "ce_mean")
        for row in ("cape_bin", "ce_finetuned", "ce")
    )
    said(f"gains**: {spell(ends(tuned))} without calibration epochs", text)
    said(f"better than the mean of all by {-100 * luck.value:.2f}", text)
    assert luck.value / gap.value == pytest.approx(0.4, abs=0.05)
    first = evidence.scores(best["discrete"], ["mse_p"])
    first = first.pivot(index="seed", columns="method", values="value")
    assert 100 * (first["cape_bin"] - first["ce"]).mean() == pytest.approx(-0.10, abs=0.005)
    trained = kept_trainings(best["discrete"])
    worst = trained.loc[trained.groupby("seed")["mse_p"].idxmax(), "fit"]
    assert worst.eq("ce").sum() == 4 and trained.groupby("seed").size().eq([3] * 5).all()


def test_losses_that_regularise(best):
    """None gains; what an improper one loses is mostly what Platt scaling gives back."""
    text, scale = prose("results"), CALIBRATORS["platt"]

    def left(row, scenario):
        errors = []
        for line in best[scenario].itertuples():
            table = evidence.tables(line)[0].predictions.assign(z=lambda t: logit(t[row]))
            val, test = (table[table["split"] == part] for part in ("val", "test"))
            p_hat = scale().fit(val["z"], val["y"]).predict_proba(test["z"])[:, 1]
            error = np.mean((p_hat - test["p"]) ** 2)
            errors.append(100 * (error - evidence.values(line, "mse_p")["ce_mean"]))
        return np.mean(errors)

    worse = {(*SEVERAL, "skewed"): "focal", ("skewed",): "entropy"}
    told = {(scenario, row) for where, row in worse.items() for scenario in where}
    for scenario, row in product(best, LOSSES):
        gap = evidence.compare(best[scenario], row, "ce_mean")
        assert gap.resolved == ((scenario, row) in told)
        if gap.resolved:
            said(f"{spell(ends(gap), sign='')} in {scenario.capitalize()}", text)
    linear, discrete, skewed = (left("focal", s) for s in (*SEVERAL, "skewed"))
    said(
        f"Platt scaling leaves {linear:.2f} of focal loss in Linear, {discrete:.2f} in Discrete "
        f"and {skewed:.2f} in Skewed, and {left('entropy', 'skewed'):.2f} of entropy",
        text,
    )


def test_other_settings_of_cape(best):
    found = evidence.find([ROOT / "results"], "synthetic", task="linear", data="utkface")
    table = tables.candidates(found[found["size"] == 32]).reset_index()
    cape = table[table["row"] == "CaPE (bin)"]
    several = cape[cape["seeds"] >= 3]
    assert set(several["rate"]) == {"0.1", "0.03", "0.01", "0.001", "0.0001"}
    assert set(several["bins"]) == {"5", "15"} and set(several["schedule"]) == {
        "released",
        "printed",
    }
    limits = several["kept less start"].str.extract(r"\[(.*), (.*)\]").astype(float)
    below = several[limits[1] <= 0]
    assert (limits[0] < 0).all() and below[["rate", "bins"]].to_numpy().tolist() == [["0.001", "5"]]
    control = table.query("row == 'CE fine-tuned' and rate == '0.001'")
    gaps = [gap.iloc[0] for gap in (below["kept less start"], control["kept less start"])]
    assert gaps == ["-0.08 [-0.16, -0.00]", "-0.09 [-0.18, -0.00]"]
    slow = several.set_index("rate").loc["0.0001"]
    assert slow["epochs"] == "100" and slow["calibration"].split(", ")[:2] == ["31", "0"]
    text = prose("results")
    demo = evidence.find([ROOT / "results"], "synthetic", data="utkface")
    demo = demo[demo["variant"] == DEMO]
    for a, b in (("cape_bin", "ce"), ("ce_finetuned", "ce"), ("cape_bin", "ce_finetuned")):
        said(spell(ends(evidence.compare(demo, a, b))), text)


def test_order_of_the_faces(best):
    """AUC: what CaPE has over Platt scaling its control has as well."""
    text, gaps = prose("results"), []
    for scenario in FIVE:
        gap = {
            (a, b): evidence.compare(best[scenario], a, b, "auc")
            for a, b in (
                ("cape_bin", "platt"),
                ("ce_finetuned", "platt"),
                ("cape_bin", "ce_finetuned"),
            )
        }
        gaps.append(gap["cape_bin", "ce_finetuned"])
        if scenario in ("sigmoid", "centered", "discrete"):
            said(spell(ends(gap["cape_bin", "platt"]), sign=""), text)
            said(f"{100 * gap['ce_finetuned', 'platt'].value:.2f}", text)
        else:
            assert gap["cape_bin", "platt"].low < 0
    assert all(gap.low < 0 < gap.high for gap in gaps)
    values = [100 * gap.value for gap in gaps]
    said(f"lies between {min(values):.2f} and {max(values):+.2f} in the five", text)


def test_ensembles(best):
    paper = published("linear", metric="mse_p").set_index("method")["value"]
    said(f"({paper['cape_bin']:.2f} and {paper['ensemble']:.2f} in Linear)", prose("results"))
    for scenario in FIVE:
        value = evidence.scores(best[scenario], ["mse_p"]).groupby("method")["value"].mean() * 100
        gain = value["ce_mean"] - value["ensemble"]
        assert gain / value["ce_mean"] == pytest.approx(0.15, abs=0.025)
        if scenario in SEVERAL:
            assert 1.5 * gain == pytest.approx(0.5, abs=0.06)
            assert 2.15 < value["ce_mean"] < 2.35


def test_from_the_beginning(best):
    lower = {}
    for scenario in LARGE:
        value = evidence.scores(best[scenario], ["mse_p"])
        value = value.pivot(index="seed", columns="method", values="value")
        assert len(value) == 5
        lower[scenario] = (value["beginning_bin"] < value["cape_bin"]).sum()
    sigmoid = evidence.compare(best["sigmoid"], "beginning_bin", "cape_bin")
    kernel = [evidence.compare(best["sigmoid"], "beginning_kernel", other)
              for other in ("ce_mean", "cape_kernel")]  # fmt: skip
    words = "By kernel Sigmoid shows one, {}, and is yet above CaPE (kernel) by {}."
    said(words.format(spell(ends(kernel[0])), spell(ends(kernel[1]), sign="")), prose("results"))
    said(f"higher in four of five in Sigmoid, by {spell(ends(sigmoid), sign='')}", prose("results"))
    assert lower["linear"] + lower["discrete"] == 9 and lower["sigmoid"] == 1
    for scenario, runs in best.items():
        gap = evidence.compare(runs, "beginning_bin", "ce_mean")
        assert gap.seeds == 5 and gap.low < 0 and (gap.high < 0) == (scenario == "discrete")
    behind = tables.behind(best)["From the beginning (bin)"]
    counts = behind.str.extract(r"(\d+) of calibration")[0].astype(int)
    assert len(counts) == 25 and counts.min() == 2 and counts.max() == 5
    printed = published("linear", metric="mse_p", method=["beginning_bin", "cape_bin"])
    assert printed.set_index("method")["value"].to_dict() == {
        "beginning_bin": 2.59,
        "cape_bin": 1.78,
    }


def test_averaged_weights_are_the_best_single_network(best):
    text = prose("results")
    for scenario, runs in best.items():
        error = evidence.scores(runs, ["mse_p"]).groupby("method")["value"].mean()
        single = error.drop(["resampled", "ensemble", "ensemble_platt"])
        if scenario in LARGE:
            assert single.idxmin() == "ce_averaged"
        gap = evidence.compare(runs, "ce_averaged", "ensemble")
        if scenario in ("linear", "skewed"):
            words = f"{spell(ends(gap), sign='')} in {scenario.capitalize()}"
            said(words, text)
        else:
            assert gap.low < 0 < gap.high


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
    kept = pd.concat(kept_trainings(runs) for runs in best.values())
    linear = kept[kept["scenario"] == "linear"]["bias"].abs()
    assert len(linear) == 15 and len(kept) == 75
    assert linear.max() < 0.0335 and kept["bias"].abs().max() < 0.06


def test_how_many_stand_out_by_chance(best):
    text = prose("results")
    pairs = [(a, b) for a in ("cape_bin", "cape_kernel") for b in ("ce_mean", "ce_finetuned")]
    pairs += [("ensemble", b) for b in ("ce_mean", "cape_bin", "platt")]
    pairs += [(a, "ce_mean") for a in ("beginning_bin", "beginning_kernel")]
    pairs += [("beginning_bin", "cape_bin"), ("beginning_kernel", "cape_kernel")]
    pairs += [("ce_averaged", b) for b in ("ce_mean", "cape_bin", "ensemble")]
    pairs += [(a, "ce_mean") for a in LOSSES]
    table = tables.differences(best, pairs, several=True)
    apart = table[table["p"] < 0.05]
    said(f"Of these {len(table)}, {len(apart)} intervals leave out 0", text)
    assert 0.05 * len(table) == pytest.approx(4, abs=0.3)
    rest = apart[~apart["a"].isin(["ensemble", "ce_averaged"])]
    assert rest[["scenario", "a", "b"]].to_numpy().tolist() == [
        ["linear", "focal", "ce_mean"],
        ["sigmoid", "cape_bin", "ce_mean"],
        ["sigmoid", "cape_kernel", "ce_mean"],
        ["sigmoid", "beginning_kernel", "ce_mean"],
        ["sigmoid", "beginning_bin", "cape_bin"],
        ["sigmoid", "beginning_kernel", "cape_kernel"],
        ["skewed", "focal", "ce_mean"],
        ["skewed", "entropy", "ce_mean"],
        ["discrete", "beginning_bin", "ce_mean"],
        ["discrete", "beginning_bin", "cape_bin"],
        ["discrete", "focal", "ce_mean"],
    ]
    left = table.assign(holm=holm(table["p"])).query("holm < 0.05")
    assert set(left["a"]) == {"ensemble"}
    left = left.groupby("b")["scenario"].agg(set).to_dict()
    four = {"linear", "sigmoid", "skewed", "discrete"}
    assert left == {"ce_mean": four, "cape_bin": {"linear"}, "platt": {"discrete"}}


def check_power(spread, strong):
    """How many trainings it would take; on pretrained features as well."""
    one, ensemble = spread.loc[("ce", "cape_bin")], spread.loc[("ensemble", "cape_bin")]
    assert round(one["std"], 2) == 0.08
    seeds = [power.seeds_needed(gap, one["std"]) for gap in (0.5, 0.2, 0.1, 0.05)]
    assert seeds == [3, 4, 7, 21]
    assert power.seeds_needed(0.14, one["std"]) == 5 < power.seeds_needed(0.13, one["std"])
    shares = [(pair["rows"] / pair["std"]) ** 2 for pair in (one, ensemble)]
    assert 0.3 < shares[0] < 0.36 and 0.55 < shares[1] < 0.65
    assert round(power.ENOUGH * ensemble["std"], 2) == 0.23
    shared = spread.index.intersection(strong.index)
    ratio = (strong["std"][shared] / spread["std"][shared]).median()
    assert 1 / 4 < ratio < 1 / 3
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
    text, names = prose("results"), ("cape_bin", "ce_mean")
    gaps = {s: [evidence.values_of(line, names, "mse_p") for line in runs.itertuples()]
            for s, runs in best.items()}  # fmt: skip
    std = np.mean([np.diff(pairs).var(ddof=1) for pairs in gaps.values()]) ** 0.5
    assert power.seeds_needed(0.16, 100 * std) == 5 < power.seeds_needed(0.15, 100 * std)
    for scenario in SEVERAL:
        paper = published(scenario, metric="mse_p").set_index("method")["value"]
        said(f"{paper['ensemble'] - paper['cape_bin']:.2f} in {scenario.capitalize()}", text)
    error = evidence.scores(best["linear"], ["mse_p"]).query("method == 'mmce'")["value"]
    assert error.max() > 1.6 * error.median()


def test_pretrained_start():
    start = claims.stored_runs([ROOT / "results"], pretrained=True)
    assert len(start) == 5 and all(len(runs) == 10 for runs in start.values())
    scratch = best_of(ROOT / "results")

    def means(runs):
        return 100 * evidence.scores(runs, ["mse_p"]).groupby("method")["value"].mean()

    ours = {scenario: means(runs) for scenario, runs in start.items()}
    for scenario, numbers in (("linear", (1.17, 2.17, 1.24)), ("discrete", (1.30, 2.29, 1.36))):
        here = ours[scenario]["ce_mean"], means(scratch[scenario])["ce_mean"]
        assert (*here, ours[scenario]["logistic"]) == pytest.approx(numbers, abs=0.005)
    gaps = {s: ours[s]["ce_mean"] - means(scratch[s])["resampled"] for s in ours}
    assert abs(gaps.pop("skewed")) < 0.002 and max(gaps.values()) < -0.02

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
        seconds = pd.DataFrame(map(costs.seconds, start[scenario].itertuples())).mean()
        assert seconds["ensemble"] / seconds["ce_mean"] == pytest.approx(5)
        assert seconds["logistic"] < 2.3 and seconds.max() < 30
    errors = [evidence.scores(pd.concat(runs.values()), ["mse_p"]) for runs in (start, scratch)]
    errors = [e.query("method == 'ce_mean'").groupby("task")["value"].mean() for e in errors]
    off = 1 - errors[0] / errors[1]
    said(f"{100 * off.min():.0f} to {100 * off.max():.0f} % off", prose("results"))


def test_more_pixels_and_a_wider_network(best):
    """Two scenarios at 48 pixels and width 16, on the faces and outcomes of 32 pixels."""
    text, minutes = prose("results"), []
    for task in SEVERAL:
        found = evidence.find([ROOT / "results"], "synthetic", task=task, data="utkface")
        runs = found[found["variant"] == LARGER].sort_values("seed")
        records = [run.record for run in runs["run"]]
        assert runs["seed"].tolist() == [0, 1, 2]
        assert {r["precision"] for r in records} == {"bf16-mixed"}
        assert {(r["settings"]["size"], r["settings"]["width"]) for r in records} == {(48, 16)}
        minutes += [r["cpu_seconds"] / 60 for r in records]
        small = best[task][best[task]["seed"] < 3]
        for a, b in zip(small.itertuples(), runs.itertuples()):
            a, b = (evidence.tables(line)[1].set_index("id")[["y", "p"]] for line in (a, b))
            pd.testing.assert_frame_equal(a, b)
        rows = ("resampled", "ce_averaged", "ensemble", "cape_bin", "ce_finetuned")
        for a, b in [*((row, "ce_mean") for row in rows), ("cape_bin", "ce_finetuned")]:
            said(spell(ends(evidence.compare(runs, a, b))), text)
        gap = evidence.compare(runs, "ce_averaged", "ensemble")
        assert gap.low < 0 < gap.high
        sizes = [evidence.scores(r, ["mse_p"]).pivot(index="seed", columns="method", values="value")
                 for r in (small, runs)]  # fmt: skip
        assert (sizes[1]["ce_averaged"] < sizes[1]["cape_bin"]).all()
        gap = evidence.compare(runs, "cape_bin", "ce_averaged")
        said(f"{spell(ends(gap), sign='')} in {task.capitalize()}", text)
        more = spell(ends(difference(sizes[1]["ce_mean"] - sizes[0]["ce_mean"])), sign="")
        said(f"{100 * sizes[1]['ce_mean'].mean():.2f} in {task.capitalize()}", text)
        said(f"{more} more", text)
        gain = difference(sizes[0]["resampled"] - sizes[1]["resampled"])
        said(spell(ends(gain), sign=""), text)
    said(f"in {min(minutes):.0f} to {max(minutes):.0f} processor minutes", text)
