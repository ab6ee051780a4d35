"""The three tasks: data, simple models, what runs say together, and studies of patients."""

import ast
from dataclasses import replace
from types import SimpleNamespace

import h5py
import jupytext
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import logit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from probnb.data import ProbabilityData
from probnb.experiment.plan import plan
from probnb.experiment.profiles import PROFILES
from probnb.experiment.results import Results, collect, write_results
from probnb.experiment.run import run_jobs
from probnb.metrics import bootstrap, brier, compare
from probnb_book.data import traffic_model
from probnb_book.data.dashcam import DashcamInputs
from probnb_book.data.rain import simulated_splits
from probnb_book.data.slides import simulate_follow_up, survival_probability
from probnb_book.data.survival import Cohort, label, survival_splits
from probnb_book.data.traffic import boxes_of, look_of
from probnb_book.real_world import TASKS, data_name, get_task, study
from probnb_book.real_world import references as simple
from probnb_book.scenarios import SCENARIOS

from .pages import ROOT, defined

page = defined("real_world")
COLLISION, CANCER, WEATHER = (get_task(name) for name in ("collision", "cancer", "weather"))


@pytest.fixture(scope="module")
def rain():
    return simulated_splits(900, 8, seed=1)


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield COLLISION.load(None, COLLISION.profile("smoke", {"images": 18}), 0)


# Tasks.


def test_a_task_changes_a_profile_and_a_person_changes_the_task():
    own = replace(WEATHER, profiles={"quick": dict(size=16, images=None)})
    assert own.profile("quick") == replace(PROFILES["quick"], size=16, images=None)
    changed = own.profile("quick", dict(size="20", images=500, epochs=None, other=3))
    assert changed == replace(PROFILES["quick"], size=20, images=500)
    assert own.profile("cpu") == PROFILES["cpu"]


def test_parameters_have_defaults_and_smaller_ones_for_tests():
    assert WEATHER.given({}) == WEATHER.parameters
    assert WEATHER.given(dict(tile=64, rule=None))["tile"] == 64
    assert WEATHER.given({}, "smoke")["source"] == "simulated"
    assert WEATHER.given(dict(source="radar"), "smoke")["source"] == "radar"
    with pytest.raises(ValueError, match=r"rule must be left at None for task 'weather'.*tile"):
        WEATHER.given(dict(rule="ipcw"))
    with pytest.raises(ValueError, match="task must be one of weather, collision, cancer"):
        get_task("wether")


@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_whole(name):
    for profile in PROFILES:
        get_task(name).profile(profile)
    assert get_task(name).name == name
    assert set(get_task(name).smoke) <= set(get_task(name).parameters)


def test_the_notebook_has_every_task_s_parameters():
    cells = jupytext.read(ROOT / "book" / "real_world.py")["cells"]
    first = [c["source"] for c in cells if c["cell_type"] == "code"][:2]
    named = {
        node.id for node in ast.walk(ast.parse("\n".join(first))) if isinstance(node, ast.Name)
    }
    assert all(set(task.parameters) <= named for task in TASKS.values())


@pytest.mark.parametrize(
    ("task", "values", "data_dir", "profile", "name"),
    [
        ("weather", {}, None, "quick", "real"),
        ("weather", {}, None, "smoke", "simulated"),
        ("weather", {"source": "simulated"}, None, "quick", "simulated"),
        ("weather", {"lead": 65}, None, "quick", "real-lead65"),
        ("weather", {}, "my/radar", "quick", "own"),
        ("weather", {}, "pycomlink-0.6.0-py3-none-any.whl", "quick", "real"),
        ("collision", {}, None, "quick", "simulated"),
        ("collision", {}, "YouTubeCrash", "quick", "own"),
        ("cancer", {"rule": "known"}, "tcga", "quick", "own-ruleknown"),
    ],
)
def test_the_name_of_the_data_follows_from_the_parameters_alone(
    task, values, data_dir, profile, name
):
    task = get_task(task)
    assert data_name(task, task.given(values, profile), data_dir) == name


def test_without_a_network_rain_is_simulated_with_a_warning(monkeypatch):
    def fail(path):
        raise ConnectionError("pip could not")

    monkeypatch.setattr("probnb_book.data.radar.read_example", fail)
    with pytest.warns(UserWarning, match="Simulated rain in place of radar: pip could not"):
        splits = WEATHER.load(None, WEATHER.profile("smoke"), 0)
    assert splits.known and splits.report["fallback"] == "pip could not"
    with pytest.raises(ValueError, match="source must be 'radar' where data_dir is given"):
        WEATHER.load("folder", WEATHER.profile("smoke"), 0, source="simulated")


def test_collision_loads_simulated_scenes_and_has_the_papers_network(traffic):
    assert traffic.train.inputs.shape[1:] == (12, 13, 36) and traffic.known
    groups = [set(part.groups) for part in traffic.parts().values()]
    assert not groups[0] & groups[1]
    assert all(group.startswith("seed0/") for group in groups[2])
    net = COLLISION.network(COLLISION.profile("smoke"), traffic).build(traffic.train.inputs)
    assert net(*traffic.to("cpu").train.batch(torch.arange(3))).shape == (3, 2)
    assert COLLISION.network(COLLISION.profile("paper"), traffic).name == "vgg16_bn"
    with pytest.raises(FileNotFoundError, match="train and test"):
        COLLISION.load(ROOT / "book", COLLISION.profile("smoke"), 0)


def test_cancer_runs_from_simulated_slides_to_predictions(tmp_path):
    profile = CANCER.profile("smoke")
    splits = CANCER.load(None, profile, seed=0)
    jobs = plan(["ce", "cape_bin"], profile, 0, CANCER.network(profile, splits))
    fits = run_jobs(jobs, splits, tmp_path, device="cpu", workers=1, progress=False)
    results = simple.add_references(collect(jobs, fits, splits), simple.references(splits))
    table = results.predictions
    rows = table[table["split"] == "test"]
    assert rows["cape_bin"].between(0, 1).all() and rows["Cox regression"].between(0, 1).all()
    assert table.loc[table["split"] == "val", "Kaplan-Meier"].isna().all()
    assert (rows["weight"] == 0).sum() == splits.report["censored_in_test"] > 0
    assert rows["id"].tolist() == splits.test.ids.tolist()


def test_cancer_takes_slides_from_files(tmp_path):
    rng = np.random.default_rng(0)
    for k, name in enumerate(("train", "val", "test")):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["values"], file["lengths"] = rng.normal(size=(7, 7)), [1, 4, 2]
            file["outcomes"], file["ids"] = [0, 1, k % 2], [f"{name}{i}" for i in range(3)]
    splits = CANCER.load(tmp_path, CANCER.profile("smoke"), 0)
    assert CANCER.network(CANCER.profile("smoke"), splits).name == "attention_mil"
    assert simple.references(splits)["Constant"] == pytest.approx([1 / 3] * 3)


def test_real_lung_patients_load(data_dir):
    splits = CANCER.load(data_dir, CANCER.profile("smoke"), 0, inputs="clinical")
    assert not splits.known and splits.train.inputs.shape[1] < 20
    assert CANCER.network(CANCER.profile("smoke"), splits).kind == "mlp"


# Simple models.


def test_rain_references(rain):
    found, y = simple.references(rain), rain.train.outcomes.numpy()
    assert np.all(found["Climatology"] == y.mean())
    turned = replace(rain.test, outcomes=1 - rain.test.outcomes, probabilities=None)
    for name, values in simple.references(replace(rain, test=turned)).items():
        np.testing.assert_array_equal(values, found[name])  # test outcomes have no say
    p = rain.test.probabilities.numpy()
    error = {k: np.mean((v - p) ** 2) for k, v in found.items()}
    assert error["Logistic regression"] < 0.7 * error["Climatology"]
    assert error["Random forest"] < 0.7 * error["Climatology"]
    x, z = (part.inputs.numpy().astype(np.float32) for part in (rain.train, rain.test))
    rose, rising = (a[:, 2].mean((1, 2)) > a[:, 0].mean((1, 2)) for a in (x, z))
    expected = np.where(rising, y[rose].mean(), y[~rose].mean())
    np.testing.assert_allclose(found["Persistence of trend"], expected)


def test_pooled_statistics_by_hand():
    maps = np.zeros((1, 3, 4, 4), np.uint8)
    maps[0, 2, 0, 3], maps[0, 0, 3, 0] = 255, 51
    found = simple.pooled_maps(maps).reshape(3, 8)
    last = [1 / 16, np.sqrt(1 / 16 - 1 / 256), 1 / 16, 1, 0, 1 / 4, 0, 0]
    first = [0.2 / 16, 0.2 * np.sqrt(1 / 16 - 1 / 256), 1 / 16, 0.2, 0, 0, 0.2 / 4, 0]
    np.testing.assert_allclose(found[0], last, rtol=1e-6)
    np.testing.assert_allclose(found[1], last, rtol=1e-6)
    np.testing.assert_allclose(found[2], np.subtract(last, first), rtol=1e-5, atol=1e-7)


def boxes_of_traffic(n, seed=0):
    """Boxes and outcomes as the default data have them, without drawing or writing them."""
    (worlds, hits), rng = traffic_model.simulate(n, seed), np.random.default_rng(0)
    kept, outcomes = [], []
    look, t = look_of(4, rng), 8
    for i in np.flatnonzero(~worlds[t].crashed):
        past = [boxes_of(worlds[t - back].take([i]), look) for back in range(3)]
        for k in np.flatnonzero(past[0][1]):
            kept.append([boxes[k] * seen[k] for boxes, seen in past])
            outcomes.append(hits[t, i, k])
    return np.array(kept, float), np.array(outcomes, float)


@pytest.mark.parametrize("distance", [10.0, 40.0])
@pytest.mark.parametrize("closing", [-5.0, 0.0, 4.0, 12.0])
def test_growth_is_one_over_the_time_to_collision(distance, closing):
    depth = distance + closing * np.array([0.0, 0.1, 0.2])  # the latest first
    height = 600 * 1.5 / depth
    boxes = np.stack([0 * height, 0 * height, height, height], axis=1)[None]
    # exact for the middle of the three frames, up to the cube of 0.1 s over the time to collision
    assert simple.box_features(boxes)[0, 0] == pytest.approx(
        closing / depth[1], rel=0.01, abs=1e-12
    )


def test_growth_with_missing_boxes():
    box = [0, 0, 10, 10]
    before = [0, 0, 10, 10 * np.exp(-0.1)]
    boxes = np.array([[box, [0] * 4, before], [box, [0] * 4, [0] * 4]], float)
    np.testing.assert_allclose(simple.box_features(boxes)[:, 0], [0.5, 0], atol=1e-12)


def test_references_are_fitted_to_the_training_part(traffic):
    found = simple.references(traffic)
    assert {len(p) for p in found.values()} == {len(traffic.test)}
    assert np.unique(found["Constant"]) == pytest.approx(traffic.train.outcomes.mean().item())
    boxes, y = boxes_of_traffic(300)
    inputs = DashcamInputs(np.zeros((1, 3, 2, 2), np.uint8), np.zeros((len(y), 3), int), boxes)
    data, rows = ProbabilityData(inputs, y), np.arange(len(y))
    train, test = data.take(rows[::2]), data.take(rows[1::2])
    found = simple.box_references(SimpleNamespace(train=train, test=test))
    brier = {name: np.mean((p - y[1::2]) ** 2) for name, p in found.items()}
    assert brier["Time to collision"] < brier["Constant"]
    assert brier["Boxes, boosted trees"] < brier["Time to collision"]


@pytest.fixture(scope="module")
def people():
    """A table in which survival can be predicted: severity is the first of five features."""
    rng = np.random.default_rng(0)
    n = 400
    x = rng.normal(size=(n, 5)).astype(np.float32)
    months, died, _ = simulate_follow_up(x[:, 0], 0.4, seed=1)
    stage = np.array(["I", "II", "III", "IV"], "U7")[np.digitize(x[:, 0], (-0.5, 0.3, 1))]
    stage[:9] = "unknown"
    age = np.where(np.arange(n) % 50 == 0, np.nan, 60 + 5 * x[:, 0])
    covariates = pd.DataFrame({"stage": stage, "age": age, "sex": "female", "cohort": "a"})
    sites, p = np.arange(n) % 40, survival_probability(x[:, 0])
    return Cohort(x, months, died, np.arange(n), sites, "table", covariates, p, {"patients": n})


def test_survival_references_find_what_can_be_found(people):
    splits = survival_splits(people)
    found = simple.survival_references(splits, trees=30)
    p = splits.test.probabilities.numpy()
    error = {name: np.mean((p_hat - p) ** 2) for name, p_hat in found.items()}
    assert error["Cox regression"] < 0.2 * error["Kaplan-Meier"]
    assert error["Random survival forest"] < 0.7 * error["Kaplan-Meier"]
    assert error["Cox, clinical"] < error["Kaplan-Meier"]
    other = simple.survival_references(survival_splits(people, "known"), trees=30)
    for name in ("Kaplan-Meier", "Random survival forest", "Cox, clinical"):
        np.testing.assert_allclose(other[name], found[name])  # the censored teach under any rule


def test_what_is_missing_of_a_patient_has_its_own_columns():
    ages, stages, sexes = [50, np.nan, 70, 60], ["I", "unknown", "II", "I"], "f f unknown f"
    covariates = pd.DataFrame({"age": ages, "stage": stages, "sex": sexes.split()})
    table = simple.clinical_table(covariates, np.arange(4))
    assert table.shape == (4, 7)  # three stages, two sexes, age, whether age is missing
    assert 60 in table[1] and np.isfinite(table).all()
    assert simple.clinical_table(covariates.assign(sex="f"), np.arange(4)).shape == (4, 5)


# Runs together.


def table(n=400, days=10, seed=0, **more):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    off = 1 / (1 + np.exp(-(2 * logit(p) + 0.5)))
    group = np.char.add(f"{seed} day ", (np.arange(n) * days // n).astype(str))
    y = (rng.random(n) < p).astype(int)
    facts = {"split": "test", "id": np.arange(n).astype(str), "y": y, "group": group}
    given = {"ce": off, "platt": p, "ce_finetuned": off, "cape_bin": p}
    return pd.DataFrame({**facts, **given, "Climatology": 0.5, "Forest": p, **more})


def stored(folder, tables, data="real", **facts):
    chosen, epochs = pd.DataFrame({"fit": ["ce"]}), pd.DataFrame({"fit": ["ce"], "epoch": [1]})
    for seed, rows in enumerate(tables):
        given = {"task": "weather", "data": data, "profile": "quick", "seed": seed, **facts}
        write_results(folder / "real_world", Results(rows, chosen, epochs), **given)
    return study.runs_like([folder], "weather", data=data)


def test_folds_are_one_sample_whose_days_are_resampled(tmp_path):
    tables = [table(seed=seed) for seed in range(3)]
    scores = study.score(stored(tmp_path, tables), 100)
    whole = pd.concat(tables)
    assert len(scores.boots) == 1 and scores.boots[0].units == 30
    assert scores.point.loc["ce", "brier"] == pytest.approx(brier(whole["y"], whole["ce"]))
    gap = scores.difference("platt", "ce")
    how = {"groups": whole["group"], "replicates": 100, "progress": False}
    boot = bootstrap(whole["y"], whole[["platt", "ce"]], **how)
    other = compare([boot], "platt", "ce", "brier")
    assert (gap.value, gap.units, gap.seeds) == (pytest.approx(other.value), 30, 3)
    assert gap.high - gap.low == pytest.approx(other.high - other.low, rel=0.4)


def test_simulated_data_count_by_seed(tmp_path):
    tables = [table(seed=seed) for seed in range(3)]
    gap = study.score(stored(tmp_path, tables, "simulated"), 20).difference("platt", "ce")
    each = [brier(t["y"], t["platt"]) - brier(t["y"], t["ce"]) for t in tables]
    half = 4.302652729911275 * np.std(each, ddof=1) / np.sqrt(3)  # Student of two degrees
    assert gap.value == pytest.approx(np.mean(each)) and gap.units is None
    assert gap.high - gap.value == pytest.approx(half)


def test_seeds_that_share_their_test_rows_are_not_pooled(tmp_path):
    same = [table().assign(ce=lambda t, k=k: t["ce"] * (1 - 0.01 * k)) for k in range(3)]
    scores = study.score(stored(tmp_path, same), 50)
    assert scores.shared and len(scores.boots) == 3
    gap = scores.difference("ce", "platt")
    assert (gap.seeds, gap.units) == (3, 10)


def test_a_run_is_scored_with_its_kind_alone(tmp_path):
    settings = WEATHER.profile("quick")
    facts = {"settings": settings, "base": settings}
    stored(tmp_path, [table(seed=0), table(seed=1)], **facts)
    altered = {"settings": replace(settings, epochs=99), "base": settings}
    stored(tmp_path, [table(seed=0)], **altered)
    assert len(study.runs_like([tmp_path], "weather", "weather-real-quick-seed1")) == 2
    assert study.runs_like([tmp_path / "nothing"], "weather").empty


def test_scenarios_with_the_ages_of_the_drawn_faces():
    known = page.scenario_probabilities()
    assert list(known) == list(SCENARIOS) and {len(p) for p in known.values()} == {20_000}
    assert known["centered"].min() >= 0.35 and known["skewed"].max() < 0.47


# Studies of patients.


@pytest.fixture(scope="module")
def folds(people):
    """What networks of three rules would say: the truth with noise, moved as the rule moves it."""
    rows = []
    for rule, shift in (("paper", 0.7), ("known", -0.6), ("ipcw", 0.0)):
        for seed in range(5):
            at = survival_splits(people, rule, seed=seed).test.ids
            rng = np.random.default_rng(seed)
            z = norm.ppf(people.probabilities[at]) + shift
            noisy, close = (z + a * rng.normal(size=len(at)) for a in (0.6, 0.1))
            said = {"ce": noisy, "cape_bin": close, "ensemble": z / 2, "Cox, clinical": z}
            said = {row: norm.cdf(values) for row, values in said.items()}
            rows.append(pd.DataFrame({"rule": rule, "seed": seed, "id": at, **said}))
    return pd.concat(rows, ignore_index=True)


@pytest.fixture(scope="module")
def summary(people, folds):
    return study.summarise(folds, people, replicates=40)


def test_folds_of_patients_score_as_one_sample_but_for_auc(people, folds, summary):
    scores = summary["scores"].set_index(["rule", "method", "metric"])["value"]
    part = folds[folds["rule"] == "ipcw"]
    labels = label(people.months, people.died, "ipcw")
    at = part["id"].to_numpy()
    y, w = labels.outcomes[at], labels.weights[at]
    assert scores["ipcw", "ce", "brier"] == pytest.approx(brier(y, part["ce"], weights=w))
    areas = [
        roc_auc_score(labels.outcomes[r["id"]], r["ce"], sample_weight=labels.weights[r["id"]])
        for _, r in part.groupby("seed")
    ]
    assert scores["ipcw", "ce", "auc"] == pytest.approx(np.mean(areas))
    assert scores["ipcw", "Constant", "auc"] == 0.5
    gaps = summary["differences"].set_index(["rule", "unit", "metric", "a", "b"])
    gap = gaps.loc["ipcw", "patient", "brier", "cape_bin", "ce"]
    expected = scores["ipcw", "cape_bin", "brier"] - scores["ipcw", "ce", "brier"]
    assert gap["value"] == pytest.approx(expected) and gap["high"] < 0
    assert gap["units"] == (w > 0).sum()  # the others have no say
    gap = gaps.loc["ipcw", "site", "auc", "cape_bin", "ce"]
    assert gap["low"] < gap["value"] < gap["high"] and gap["units"] == 40


def test_the_constant_of_a_rule_is_the_share_of_its_training_parts(people, summary):
    table = summary["predictions"]
    for rule in ("paper", "known", "ipcw"):
        train = survival_splits(people, rule, seed=2).train
        expected = np.average(train.outcomes, weights=train.weights)
        rows = table[(table["rule"] == rule) & (table["seed"] == 2)]
        np.testing.assert_allclose(rows["Constant"], expected)
    survivors = summary["scores"].groupby("rule")["survivors"].first()
    assert survivors["known"] < survivors["ipcw"] < survivors["paper"]


def test_a_study_holds_no_outcome_no_follow_up_and_no_small_stage(summary):
    columns = set(summary["predictions"])
    assert not columns & {"y", "weight", "months", "died", "group", "stage", "age"}
    stages = summary["stages"]
    assert (stages["patients"] >= 20).all() and "unknown" not in set(stages["stage"])
    seen = stages[stages["method"] == "observed"]
    assert (seen["low"] < seen["value"]).all() and (seen["value"] < seen["high"]).all()
    assert seen["value"].iloc[0] > seen["value"].iloc[-1]


def test_spread_between_stages_by_hand():
    stages = np.array([0, 0, 1, 2, 3])
    p_hat = np.array([0.8, 0.6, 0.5, 0.3, 0.1])
    (between,) = study._between(p_hat, np.eye(5)[stages], np.ones((1, 5)))
    assert between == pytest.approx(np.std([0.7, 0.7, 0.5, 0.3, 0.1]))


def test_a_backbone_sees_maps_and_nothing_else():
    features = PROFILES["features"]
    assert get_task("weather").network(features, None) is None
    own = get_task("collision").network(features, None)
    with pytest.raises(ValueError, match="backbone must be none for a network of"):
        plan(["ce"], features, network=own)
