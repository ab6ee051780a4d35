"""The sentences of the page Appendix, held against the stored runs they tell of."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from scipy.stats import spearmanr

from probnb.calibrators import CALIBRATORS
from probnb.metrics import difference, holm
from probnb.metrics.differences import proportion_interval
from probnb.report.gain_parts import PARTS
from probnb_book import costs, evidence, ladder, maps, pause, storage
from probnb_book import results as tables
from probnb_book.authors import derived
from probnb_book.claims.statistics import of_run, true_slope
from probnb_book.published import published

from . import pages
from .pages import RESULTS

said = partial(pages.said, page="appendix")
page = pages.defined("appendix")


def told(best, a, b, metric="mse_p"):
    """The scenarios whose interval leaves out 0, by the side on which it lies."""
    gaps = {s: evidence.compare(runs, a, b, metric) for s, runs in best.items()}
    return {s: int(np.sign(gap.value)) for s, gap in gaps.items() if gap.resolved}


def test_order_of_the_faces(best):
    assert told(best, "cape_bin", "ce", "auc") == {"sigmoid": 1, "discrete": 1}
    assert told(best, "cape_bin", "ce_finetuned", "auc") == {}
    moved = []
    for line in pd.concat(best.values()).itertuples():
        test, values = evidence.tables(line)[1], evidence.values(line, "auc")
        moved.append(100 * (values["platt"] - values["ce"]))
        for row in ("temperature", "beta", "dirichlet"):
            assert spearmanr(test[row], test["ce"])[0] > 0.998  # but for ties
    assert min(moved) < -0.5 and max(moved) > 0.5


def check_waits(waits):
    less = {by: pause.less_control(waits, by) for by in ("epoch", "outcomes")}
    less["outcomes"] = less["outcomes"].query("outcomes > 0")
    mean = {by: t.groupby(["scenario", "seed", "row"])["less"].mean() for by, t in less.items()}
    starts = mean["epoch"].unstack("row")
    assert len(starts) == 5 and starts.index.get_level_values("scenario").nunique() == 3
    said("From five early-stopped networks in three scenarios")
    assert (starts < 0).all(axis=None)
    for kind in ("cape_bin", "cape_kernel"):
        often = starts[[f"{kind}, m = {m}" for m in (2, 3, 4)]]
        assert (often.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    said("the more often it waits, the further")
    level = mean["outcomes"].unstack("row").drop(columns="smoothed, m = 3")
    assert level.abs().max(axis=None) < 10 and level.min(axis=None) < 0 < level.max(axis=None)
    said("within a tenth of that of outcomes alone, on either side")
    assert (starts["distilled, m = 3"] < starts["cape_bin, m = 3"] + 1).all()
    said("do as much as calibration epochs")
    pages.said("from which nothing can be learnt, wait [as well]", page="results")
    third = starts.filter(like="m = 3")
    assert (third.idxmax(axis=1) == "smoothed, m = 3").all()
    said("in the same places wait least")


def test_what_stands_in_a_pause():
    waits = pause.fine_tunings(None, [RESULTS])
    check_waits(waits)
    own = waits["row"] == "distilled, m = 3"
    with pytest.raises(AssertionError):
        check_waits(waits.assign(error=waits["error"].where(~own, 1.1 * waits["error"])))


def test_which_rule_gives_the_published_baseline():
    rules = page.rules(RESULTS)
    means = rules.groupby("size").mean()
    assert means.max().max() < 3 and (means.idxmax(axis=1) == "the last epoch").all()
    assert (means.idxmin(axis=1) == "validation cross entropy").all()
    said("On average none comes near")
    high = rules.stack().loc[lambda error: error > 4]
    assert sorted(high.index.get_level_values(-1)) == ["best AUC on validation", "the last epoch"]
    assert set(high.index.get_level_values("size")) == {48}
    said("two rules make one like it, once each, at 48 pixels")
    pages.said("Of other rules two gave one training like it", "results")


def check_by_size(shown):
    own = shown.groupby(["rate", "size"]).mean()
    assert set(own.index.get_level_values("size")) == {32, 48, 96}
    assert (own["less the control's last, %"] < 0.1).all()  # waits: Results says so too
    assert (own["less the control's second, %"] > 0).all()
    pages.said("below its control after equally many epochs, not after equally many", "results")


def test_claims_at_each_size():
    shown = page.by_size(ladder.epochs(RESULTS))
    check_by_size(shown)
    with pytest.raises(AssertionError):
        check_by_size(shown - 2)


def check_made(made):
    platt, cape = made["Platt scaling"], made["CaPE (bin)"]
    tuned = made["fine-tuned without calibration"]
    for less in (platt, tuned):
        assert difference(less).high < 0 and -4.5 < less.mean() < -3
    said("takes three or four per cent off the error")
    assert not difference(platt - tuned).resolved
    said("and three more epochs of training take as much")
    assert made["temperature scaling"].mean() / platt.mean() == pytest.approx(1 / 3, abs=0.1)
    said("Temperature scaling, which is one of the two numbers, takes a third of that")
    assert difference(cape - tuned).low > -0.25
    said("and CaPE no more than its control")


def test_what_is_made_of_a_network():
    made = page.less_start(RESULTS)
    assert len({place.partition(",")[0] for place, _ in made.index}) == 5
    check_made(made)
    for broken in (made + 5, made.assign(**{"CaPE (bin)": made["CaPE (bin)"] - 2})):
        with pytest.raises(AssertionError):
            check_made(broken)


def check_noise(noise):
    mean = noise.groupby(["task", "start"])["V"].mean().unstack()
    small = mean["random weights"].sort_values()
    assert list(small.index[-2:]) == ["Weather, radar", "Sigmoid"]
    said("On rain, where data are real, it is the largest after Sigmoid's")
    left = (mean["pretrained features"] / mean["random weights"]).dropna()
    assert len(left) == 5 and 0.05 < left.min() < 0.15 and 0.45 < left.max() < 0.55
    said("between a tenth and a half")
    assert (noise["V"] > 0).all() and noise.groupby(["task", "start"]).size().min() >= 3


def test_noise_of_training_needs_no_label(best, strong):
    runs = [*best.values(), *strong.values(), evidence.find([RESULTS], "real_world")]
    noise = page.noise_of_training(pd.concat(runs))
    judged = page.noise_of_judged(RESULTS)
    assert len(judged) == 9 and judged["V"].between(0.003, 0.007).all()
    noise = pd.concat([noise, judged])
    check_noise(noise)
    with pytest.raises(AssertionError):
        check_noise(noise.assign(V=1.0))


def test_known_calibration(best):
    for scenario, runs in best.items():
        slopes = {
            row: difference([of_run(line, "true_slope", row) for line in runs.itertuples()])
            for row in ("resampled", "cape_bin")
        }
        assert slopes["cape_bin"].high < 1
        near = abs(slopes["resampled"].value - 1) < 0.06
        assert near == (scenario != "sigmoid")


def test_a_slope_by_hand():
    """Predictions whose log-odds are twice the true ones, and the true ones."""
    z = np.linspace(-3, 3, 401)
    p = 1 / (1 + np.exp(-z))
    assert true_slope(p, 1 / (1 + np.exp(-2 * z))) == pytest.approx(0.5, abs=1e-3)
    assert true_slope(p, p) == pytest.approx(1, abs=1e-3)


def test_settings_lie_at_the_edge(best):
    kept = [
        evidence.tables(line)[0].chosen.query("method == 'cape_bin' and chosen")
        for runs in best.values()
        for line in runs.itertuples()
    ]
    kept = pd.concat(kept).query("best_epoch > 0")
    assert len(kept) == 18 and (kept["bins"] == 5).sum() == 17
    assert (kept["finetune_learning_rate"] == 0.001).sum() == 15


def test_losses_that_regularise(best):
    focal = {"linear": 1, "skewed": 1, "discrete": 1}
    for row, where in (("focal", focal), ("entropy", {"skewed": 1}), ("mmce", {})):
        assert told(best, row, "ce_mean") == where

    def left(row, scenario):
        """The share of the loss that Platt scaling leaves."""
        lost = []
        for line in best[scenario].itertuples():
            table = evidence.tables(line)[0].predictions.assign(z=lambda t: logit(t[row]))
            val, test = (table[table["split"] == part] for part in ("val", "test"))
            fitted = CALIBRATORS["platt"]().fit(val["z"], val["y"])
            error = np.mean((fitted.predict_proba(test["z"])[:, 1] - test["p"]) ** 2)
            values = evidence.values(line, "mse_p")
            lost.append((error - values["ce_mean"], values[row] - values["ce_mean"]))
        after, before = np.mean(lost, axis=0)
        return after / before

    for row, scenario in (("focal", "skewed"), ("focal", "discrete"), ("entropy", "skewed")):
        assert left(row, scenario) < 0.4


def test_from_the_beginning(best):
    for rows in (("beginning_bin", "cape_bin"), ("beginning_kernel", "cape_kernel")):
        gaps = {s: evidence.compare(runs, *rows) for s, runs in best.items()}
        assert (holm([gap.p for gap in gaps.values()]) > 0.05).all()
    assert told(best, "beginning_bin", "cape_bin") == {"sigmoid": 1, "discrete": -1}
    assert told(best, "beginning_bin", "ce_mean") == {"discrete": -1}
    assert 1 not in told(best, "beginning_kernel", "ce_mean").values()


def check_maps(gains):
    one = gains[gains["row"] == "ce"]
    source = one["data"].map({"utkface": "photographs"}).fillna(one["task"] + one["data"])
    means = one.groupby([source.rename("from"), "map", "seed"])["nll"].mean().reset_index()
    smooth = [*maps.SMOOTH]
    faces = means[means["from"] == "photographs"].groupby("map")["nll"].mean() * 1000
    assert faces[smooth].between(0.9, 2.1).all() and faces["venn_abers"] < faces[smooth].min()
    others = means[(means["from"] != "photographs") & means["map"].isin(smooth)]
    for _, own in others.groupby(["from", "map"]):
        assert len(own) == 1 or not difference(own["nll"]).low > 0
    by = means.groupby(["from", "map"])["nll"].mean().unstack()
    assert (by["isotonic"] < 0).all() and (
        by["venn_abers"] - by["isotonic"] > 0.5 * -by["isotonic"]
    ).all()
    pairs = means.pivot(index=["from", "seed"], columns="map", values="nll").loc["photographs"]
    for name in ("quadratic", "spline"):
        assert not difference(pairs[name] - pairs["platt"]).low > 0


@pytest.fixture(scope="module")
def gains():
    return derived([RESULTS], "maps")


def test_calibration_after_the_fact(gains):
    assert len(gains.drop_duplicates(["task", "data", "seed"])) == 45
    one = gains[(gains["data"] == "utkface") & (gains["row"] == "ce") & (gains["map"] == "platt")]
    each = one.groupby("seed")["nll"].mean()  # five scenarios of the same faces count once
    shown = page.post_hoc_table(gains, "ce")
    assert shown.loc["Platt scaling", "photographs"] == difference(each).text(1000)
    assert list(shown) == ["photographs", "drawn faces", "weather", "cancer", "collision"]
    check_maps(gains)
    better = gains.assign(nll=gains["nll"] + 0.005 * (gains["map"] == "venn_abers"))
    with pytest.raises(AssertionError):
        check_maps(better)


def test_what_maps_take_off_is_what_the_runs_give(gains, best):
    """The derived tables: all runs are there, and of two the numbers are computed anew."""
    runs = maps.with_validation([RESULTS])
    key = ["task", "data", "seed", "row", "map"]
    kept = gains.set_index(key)["nll"]
    wanted = (
        (r.task, r.data, r.seed, *of) for r in runs for of in product(("ce", "ensemble"), maps.MAPS)
    )
    assert {*kept.index} == {*wanted} and kept.index.is_unique
    again = maps.post_hoc([runs[0], runs[-1]]).set_index(key)["nll"]
    np.testing.assert_allclose(kept[again.index], again, atol=1e-9)
    key = ["scenario", "seed", "row", "part"]
    kept, every = derived([RESULTS], "gain-parts").set_index(key)["gain"], pd.concat(best.values())
    wanted = product(maps.ROWS, (*PARTS, "total"))
    wanted = {(r.task, r.seed, *of) for of in wanted for r in every.itertuples()}
    assert {*kept.index} == wanted and kept.index.is_unique
    again = maps.parts(every.iloc[[-1]], ["cape_bin", "ensemble"]).set_index(key)["gain"]
    np.testing.assert_allclose(kept[again.index], again, atol=1e-9)
    commands = {
        storage.records(RESULTS, "derived")[name]["command"] for name in ("maps", "gain-parts")
    }
    assert commands == {"python -m probnb_book maps"}


def test_a_larger_network(larger):
    assert {task: len(group) for task, group in larger.items()} == {"linear": 3, "discrete": 3}
    assert told(larger, "ensemble", "cape_bin") == {"linear": -1, "discrete": -1}
    assert told(larger, "ce_averaged", "ce_mean") == {"linear": -1}
    assert told(larger, "cape_bin", "ce_finetuned") == {}


def test_features(strong):
    averaged = {"linear": -1, "sigmoid": -1, "centered": 1, "skewed": 1}
    assert told(strong, "ce_averaged", "ce_mean") == averaged
    logistic = told(strong, "logistic", "ce_mean")
    assert sorted(logistic.values()) == [-1, -1, 1, 1, 1]
    for row in ("logistic_platt", "logistic_bin", "logistic_kernel"):
        assert told(strong, row, "logistic") == {}
    seconds = pd.DataFrame(
        costs.seconds(line) for runs in strong.values() for line in runs.itertuples()
    )
    assert 1.5 < seconds["logistic"].mean() < 2.5


def test_how_many_stand_out_by_chance(best):
    looks = tables.differences(best, page.FINDINGS)
    apart = (looks["p"] < 0.05).sum()
    said(f"Of these {len(looks)}, {apart} intervals leave out 0, where four would by chance")
    left = looks[holm(looks["p"]) < 0.05]
    assert left[["scenario", "a", "b"]].to_numpy().tolist() == [
        ["linear", "ensemble", "cape_bin"],
        ["discrete", "ensemble", "platt"],
    ]


def check_power(table):
    start, control, ensemble = (
        table.loc[pair]
        for pair in (("ce", "cape_bin"), ("ce_finetuned", "cape_bin"), ("ensemble", "cape_bin"))
    )
    assert page.seeds_needed(5, start["std"]) <= 5 < page.seeds_needed(4, start["std"])
    assert page.seeds_needed(2, control["std"]) <= 5
    said(f"a gain over the ensemble of {page.ENOUGH * ensemble['std']:.0f} %")
    paper = published("linear", metric="mse_p").set_index("method")["value"]
    lead = 100 * (paper["ensemble"] - paper["cape_bin"]) / paper["ensemble"]
    assert lead / (page.ENOUGH * ensemble["std"]) == pytest.approx(1 / 3, abs=0.1)
    assert (ensemble["rows"] / ensemble["std"]) ** 2 == pytest.approx(0.1, abs=0.02)


def test_how_many_trainings_it_would_take(best):
    apart = page.spread(best)
    check_power(apart)
    with pytest.raises(AssertionError):
        check_power(apart.assign(std=1.5 * apart["std"]))


def test_features_that_pay():
    rows = storage.read(RESULTS, "features", "logistic")
    assert (rows.groupby(["images", "backbone", "size", "mirror", "scenario"]).size() == 10).all()
    keys = ["images", "backbone", "size", "mirror"]
    wide = rows.pivot_table("mse_p", keys, ["scenario", "seed"]).sort_index()
    faces = wide.loc[9728].dropna(axis=1)
    change = 100 * (faces / faces.loc["lite0", 128, False] - 1).T.groupby("scenario").mean()
    larger = change["lite2", 128, True]
    whole = wide.loc[23317].dropna(axis=1)
    whole = 100 * (whole / whole.loc["lite0", 128, False] - 1).T.groupby("scenario").mean()
    said("lite0, on all faces as on fewer, for three times the work")
    for change_of in (larger, whole["lite2", 128, True]):
        assert -7.5 < change_of.mean() < -6.5 and (change_of < -3.5).all()
    each = rows.groupby(["backbone", "size", "mirror"])["cpu_seconds_each"].first()
    assert 2.5 < each["lite2", 128, True] / each["lite0", 128, False] < 3.5
    said("The mirror image alone takes two off")
    assert -3 < change["lite0", 128, True].mean() < -1.5
    said("lite0 gains a little, and nothing beyond")
    assert change["lite0", 192, True].mean() < change["lite0", 224, True].mean()
    assert change["lite0", 192, True].mean() < change["lite0", 128, True].mean() - 1
    said("More faces do as much as all of this")
    linear = 100 * wide["linear"].mean(axis=1)
    assert linear[23317, "lite0", 128, False] < linear[9728].min()
    said("the least error that a single head has here, 1.09 in Linear")
    assert linear.idxmin() == (23317, "lite2", 128, True) and f"{linear.min():.2f}" == "1.09"


def test_what_is_flagged():
    flags = storage.read(RESULTS, "features", "flags").set_index(["layers", "rule"])
    rate = flags.pivot(columns="pictures", values="flagged")
    kept, last = rate.loc["stages", "Mahalanobis"], rate.loc["last", "Mahalanobis"]
    said("and one in a hundred of held-out faces")
    low, high = proportion_interval(kept["held out"] * 956, 956)
    assert low < 0.01 < high
    no_faces = ["CIFAR-10", "uniform", "gaussian", "one grey", "shuffled"]
    assert (kept[no_faces] == 1).all()
    assert (kept[["covered", "inverted", "on its side", "eyes"]] > 0.8).all()
    said("does not see noise")
    assert last["gaussian"] < 0.1 and last["one grey"] == 0
    said("No rule sees faces upside down or from another collection")
    assert (rate[["upside down", "FER+"]] < 0.2).all(axis=None)


def check_budget(parts, taken, cells):
    seeds = parts.groupby(["start", "scenario"]).size()
    mean = parts.groupby(["start", "scenario"]).mean()
    scratch, features = mean.loc["random weights"], mean.loc["pretrained features"]
    said("eight seeds on features in every scenario, and three from random weights")
    assert seeds["pretrained features"].tolist() == [8] * 5
    assert seeds["random weights"].tolist() == [3] * 5
    said("From random weights a fifth to a quarter of the error is which training one got")
    assert scratch["noise of training"].between(19, 26).all()
    said("on pretrained features none is, and in most scenarios three quarters and more")
    assert (features["noise of training"] == 0).all() and (features["the rest"] > 75).sum() == 3
    said("most where probabilities hardly differ (Centered), and least where they")
    labels = features["noise of labels"]
    assert labels.idxmax() == "centered"
    assert labels.idxmin() == scratch["noise of labels"].idxmin() == "sigmoid"
    said("takes less than a tenth from either start")
    assert taken.groupby(["start", "scenario"]).mean().max() < 10
    rows = cells[cells["start"] == "pretrained features"]
    error = rows.pivot(index=["scenario", "seed"], columns=["labels", "faces"], values="mse_p")
    error = error.div(error[1, 4160], axis=0)
    four = error.mean()
    said("three more outcomes of each take a seventh off the error")
    assert 1 - four[4, 4160] == pytest.approx(1 / 7, abs=0.015)
    said("and the same number of outcomes of new faces a sixth, told apart")
    assert 1 - four[1, 16640] == pytest.approx(1 / 6, abs=0.015)
    seed = error.groupby("seed").mean()
    assert difference(seed[4, 4160] - seed[1, 16640]).low > 0
    pages.said("no calibration could take a tenth of it", page="results")


def test_where_the_error_comes_from(best, strong):
    runs = pd.concat([*best.values(), *strong.values()])
    cells, parts, taken = page.budget(RESULTS, runs)
    check_budget(parts, taken, cells)
    for broken in ((1.3 * parts, taken, cells), (parts, 3 * taken, cells)):
        with pytest.raises(AssertionError):
            check_budget(*broken)
    with pytest.raises(AssertionError):
        check_budget(parts, taken, cells.assign(mse_p=cells["mse_p"] ** 0.5))
