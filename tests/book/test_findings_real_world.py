"""Sentences of the page on real data hold only as long as the stored numbers bear them out."""

from functools import cache, partial

import pytest
from scipy.stats import wasserstein_distance

from probnb.methods import METHODS
from probnb.metrics import holm
from probnb_book.authors import derived
from probnb_book.published import published
from probnb_book.real_world import study

from . import pages
from .pages import RESULTS

code = pages.defined("real_world")
says = partial(pages.said, page="real_world")
DATA = {"weather": "real", "collision": "simulated", "cancer": "simulated"}
TASKS = tuple(DATA)


@cache
def runs(task):
    return study.runs_like([RESULTS], task, data=DATA[task], profile="quick")


@cache
def scores(task):
    return study.score(runs(task))


@cache
def rows(task):
    return study.test_rows(runs(task))


@cache
def patients(name):
    return study.read_study(RESULTS, name)


@cache
def gaps_of(name):
    lines = patients(name)["differences"].itertuples()
    return {(g.rule, g.unit, g.metric, g.a, g.b): g for g in lines}


def of_patients(name, a, b, rule="ipcw", unit="patient", metric="brier"):
    return gaps_of(name)[rule, unit, metric, a, b]


def below(gap, digits=2, scale=100):
    """A difference that is less than 0, as how far below: all signs turned."""
    assert gap.value < 0
    turned = (-scale * v for v in (gap.value, gap.high, gap.low))
    return "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(*turned, d=digits).replace("-0.00", "0.00")


def test_cape_is_not_told_apart_and_the_printed_gains_would_be():
    pairs = [("cape_bin", "ce"), ("cape_kernel", "ce"), ("cape_bin", "ce_finetuned")]
    gaps = {(task, pair): scores(task).difference(*pair) for task in TASKS for pair in pairs}
    gaps |= {("lung", pair): of_patients("lung", *pair) for pair in pairs}
    assert len(gaps) == 12
    assert not any(gap.low > 0 or gap.high < 0 for gap in gaps.values())
    says("None of the twelve that compare CaPE leaves out 0")
    printed = {}
    for task in TASKS:
        values = published(task, metric="brier").set_index("method")["value"]
        printed[task] = values["ce"] - values["cape_bin"]
        assert gaps[task, ("cape_bin", "ce")].low > -printed[task] / 100
    assert gaps["lung", ("cape_bin", "ce")].low > -printed["cancer"] / 100
    says("each gain that the paper prints for CaPE (bin) over cross entropy lies outside")


def test_a_simple_model_does_as_well_as_any_network():
    best = {
        "weather": "Random forest",
        "collision": "Boxes, boosted trees",
        "cancer": "Cox, clinical",
    }
    for task, simple in best.items():
        for name in (m for m in scores(task).point.index if m in METHODS and m != "resampled"):
            assert not scores(task).difference(name, simple).high < 0, (task, name)
    for name in ("lung", "clinical", "all"):
        assert of_patients(name, "ce", "Cox, clinical").high > 0
    says("In no task is a network shown to beat a simple model")


def test_no_network_learns_from_the_genes_of_lung_patients():
    table = patients("lung")["scores"].query("rule == 'ipcw' and metric == 'brier'")
    value = table.set_index("method")["value"]
    assert all(value[m] >= value["Constant"] for m in value.index if m in METHODS)
    says("from the genes of lung patients no network beats the constant")


def test_five_seeds_of_each_task_and_nine_days():
    for task in TASKS:
        assert runs(task)["seed"].tolist() == [0, 1, 2, 3, 4]
    days = [set(table["group"]) for table in rows("weather")]
    assert sum(map(len, days)) == len(set.union(*days)) == 9  # each tested by one training
    assert len(scores("weather").boots) == 1 and scores("weather").boots[0].units == 9
    for task in ("collision", "cancer"):
        seen = [set(table["group"]) for table in rows(task)]
        assert sum(map(len, seen)) == len(set.union(*seen))  # scenes, patients of its own
        assert scores(task).difference("cape_bin", "ce").units is None


def test_rain():
    s = scores("weather")
    says(f"far below climatology, by {below(s.difference('ce', 'Climatology'))}")
    told_apart = [
        ("Random forest", "ce"),
        ("Logistic regression", "ce"),
        ("ensemble", "ce"),
    ]
    assert not any(s.difference(*pair).resolved for pair in told_apart)
    assert abs(s.difference("Random forest", "ce").value) < 0.002


def test_days_differ_more_than_methods():
    days = rows("weather")
    means = {
        name: [100 * ((t[name] - t["y"]) ** 2).groupby(t["group"]).mean() for t in days]
        for name in ("ce", "cape_bin")
    }
    means = {name: [v for part in parts for v in part] for name, parts in means.items()}
    spread = max(means["ce"]) - min(means["ce"])
    assert spread > 2 * max(abs(a - b) for a, b in zip(*means.values()))
    says("Days differ more than methods do")


def test_collision():
    s = scores("collision")
    for simple in ("Constant", "Time to collision"):
        assert s.difference("ce", simple).high < 0
    trees = s.difference("ce", "Boxes, boosted trees")
    assert trees.value > 0 and not trees.resolved
    assert 0.0009 < s.difference("cape_bin", "ce").high < 0.0013
    says("where it would be by a tenth of a point")
    for loss in ("focal", "entropy"):
        assert s.difference(loss, "ce").low > 0


def test_the_known_probability_is_of_400_continuations():
    for table in rows("collision"):
        assert (400 * table["p"]).sub((400 * table["p"]).round()).abs().max() < 1e-4
    says("each probability is known from 400 continuations")


def test_patients_by_rule():
    study_of, auc = patients("lung"), patients("lung")["scores"].query("metric == 'auc'")
    assert study_of["record"]["patients"] == 903
    assert of_patients("lung", "ce", "Constant").units == 436
    says("the 436 lung patients whose outcome is known")
    auc = auc[auc["rule"] == "ipcw"].set_index("method")["value"] * 100
    brier = of_patients("lung", "ce", "Constant")
    assert auc["ce"] < 50 and brier.value > 0
    for rule in ("paper", "known"):
        gap = of_patients("lung", "ce", "Constant", rule)
        assert gap.low < 0 < gap.high
    assert of_patients("lung", "ce", "Constant", unit="site").low < 0 < brier.low
    says("on the genes of lung patients there is none to be seen")
    cox = of_patients("lung", "ce", "Cox, clinical")
    assert auc["Cox, clinical"] > 60 and cox.low > 0


def test_what_the_clinical_table_and_all_cohorts_tell():
    assert of_patients("clinical", "ce", "Constant").high < 0
    assert of_patients("all", "ce", "Constant").high < 0
    assert of_patients("all", "ce", "Cox, clinical").low > 0
    says(f"{patients('all')['record']['patients']:,} patients, genes do tell")


def test_cape_on_patients():
    for name in ("lung", "clinical"):
        gap = of_patients(name, "cape_bin", "ce")
        assert gap.low < 0 < gap.high
    table = patients("all")["predictions"].query("rule == 'ipcw'")
    assert (table["cape_bin"] == table["ce"]).all()
    says("by `ipcw`, validation kept the start of CaPE in every fold")
    wider = [
        (line.high - line.low) < (site.high - site.low)
        for data in ("lung", "clinical", "all")
        for line in patients(data)["differences"].query("unit == 'patient'").itertuples()
        for site in [of_patients(data, line.a, line.b, line.rule, "site", line.metric)]
        if line.value
    ]
    assert sum(wider) > 0.6 * len(wider)
    says("are mostly wider")


def test_stages():
    stages = patients("lung")["stages"]
    seen = stages.query("method == 'observed'")["value"]
    assert (seen.diff().dropna() < 0).all()
    for name in ("ce", "cape_bin", "ensemble"):
        own = stages[stages["method"] == name]
        assert own["low"].max() < own["high"].min()  # the middle halves overlap
    says("the middle halves of the predictions are the same in all stages")
    for name in ("lung", "clinical"):
        spread = patients(name)["spread"].query("spread == 'between'").set_index("a")
        if name == "lung":
            assert (spread["low"] < 0).all() and (spread["high"] > 0).all()
            continue
        assert spread.loc["cape_bin", "low"] > 0 > spread.loc["ensemble", "high"]


def test_simulated_slides():
    s = scores("cancer")
    constant, best = s.difference("ce", "Kaplan-Meier"), s.difference("resampled", "ce")
    assert max(constant.high, best.high) < 0
    assert best.value == pytest.approx(constant.value, abs=0.001)  # "as far again"


@pytest.mark.parametrize(
    ("task", "scenario"), [("weather", "linear"), ("collision", "skewed"), ("cancer", "centered")]
)
def test_the_nearest_scenario_is_the_one_that_the_paper_names(task, scenario):
    tables = rows(task)
    predictions = [v for t in tables for v in t["ce"]]
    weights = [v for t in tables for v in t["weight"]] if "weight" in tables[0] else None
    known = code.scenario_probabilities()
    distance = {s: wasserstein_distance(predictions, p, weights) for s, p in known.items()}
    assert min(distance, key=distance.get) == scenario


def test_claims():
    for task in ("collision", "cancer"):
        assert not scores(task).difference("ensemble", "platt").resolved
    for name in ("lung", "clinical", "all"):
        gap = of_patients(name, "ensemble", "platt")
        assert gap.low < 0 < gap.high
    for name in ("lung", "clinical"):
        gap = of_patients(name, "cape_bin", "ce", metric="auc")
        assert gap.low < 0 < gap.high


def test_a_stored_number_that_changes_is_noticed(monkeypatch):
    changed = study.Scores([b for b in scores("collision").boots], False, "collision", 5)
    point = changed.boots[0].point.copy()
    point.loc["ce"] += 0.2
    changed.boots[0] = type(changed.boots[0])(
        point, changed.boots[0].samples, changed.boots[0].units
    )
    monkeypatch.setattr(f"{__name__}.scores", lambda task: changed)
    with pytest.raises(AssertionError):
        test_collision()


def test_features_of_photographs_are_no_help_on_radar():
    table = derived([RESULTS], "pretrained").query("study == 'radar'")
    gaps = table.set_index(["row", "less"])[["value", "low", "high"]]
    small, constant = gaps.loc[("ce", "ce from scratch")], gaps.loc[("ce", "Climatology")]
    assert small["low"] > 0 and constant["low"] < 0 < constant["high"]
    assert gaps.loc[("logistic", "ce from scratch"), "low"] > 0
    assert gaps.loc[("logistic", "Climatology"), "high"] > 0 and (table["seeds"] == 5).all()


def test_how_many_stand_out_by_chance():
    apart, left, numbers = {}, set(), set()
    for task in TASKS:
        known = scores(task)
        gaps = {row: known.difference(row, "ce") for row in known.point.index if row != "ce"}
        apart[task] = sum(gap.resolved for gap in gaps.values())
        numbers.add(len(gaps))
        p = holm([gap.p for gap in gaps.values()])
        left |= {(task, row) for row, value in zip(gaps, p) if value < 0.05}
        shown = code.gap_table(known)["Holm, CE early-stop"]
        assert [float(v) for v in shown if v] == pytest.approx(p, abs=6e-4)
    assert numbers == {17, 18}
    assert (min(apart.values()), max(apart.values())) == (2, 4)
    says("two to four do")
    assert left == {("weather", "Climatology"), ("collision", "Constant"), ("collision", "entropy")}
