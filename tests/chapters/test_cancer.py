"""The cancer task: its data, its words, its references, and what its runs say together."""

import json

import numpy as np
import pandas as pd
import pytest
from probnb.data.bags import write_bags
from probnb.data.cohort import Cohort, survival_splits
from probnb.data.simulated_slides import simulate_follow_up, survival_probability
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from probnb.chapters.real_world import (
    cancer_claims,
    cancer_figures,
    cancer_page,
    cancer_references,
    cancer_runs,
    cancer_study,
    cancer_words,
)
from probnb.chapters.real_world.cancer import TASK
from probnb.chapters.real_world.task import get_task
from probnb.experiment.plan import plan
from probnb.experiment.results import collect
from probnb.experiment.run import run_jobs
from probnb.metrics import auc, brier, evaluate


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
    return Cohort(
        x, months, died, np.arange(n), np.arange(n) % 40, "table", covariates,
        survival_probability(x[:, 0]),
        {"patients": n, "slides": n, "deaths": int(died.sum()), "without_stage": 9},
    )  # fmt: skip


@pytest.fixture(scope="module")
def splits(people):
    return survival_splits(people)


# The task.


def test_the_task_runs_from_simulated_slides_to_predictions(tmp_path):
    profile = TASK.profile("smoke")
    splits = TASK.load(None, profile, seed=0)
    assert get_task("cancer") is TASK
    assert splits.known
    jobs = plan(["resampled", "ce", "platt", "cape_bin"], profile, 0, TASK.network(profile, splits))
    fits = run_jobs(jobs, splits, tmp_path, device="cpu", workers=1, progress=False)
    results = collect(jobs, fits, splits)
    rows = results.predictions[results.predictions["split"] == "test"]
    assert rows["cape_bin"].between(0, 1).all()
    assert (rows["weight"] == 0).sum() == splits.report["censored_in_test"] > 0
    assert rows["id"].tolist() == splits.test.ids.tolist()
    assert "**Simulated** patients" in TASK.describe(splits)


def test_the_task_takes_slides_from_files(tmp_path):
    rng = np.random.default_rng(0)
    for k, name in enumerate(("train", "val", "test")):
        bags = [rng.normal(size=(n, 7)).astype(np.float32) for n in (1, 4, 2)]
        ids = [f"{name}{i}" for i in range(3)]
        write_bags(tmp_path / f"{name}.h5", bags, outcomes=[0, 1, k % 2], ids=ids)
    profile = TASK.profile("smoke")
    splits = TASK.load(tmp_path, profile, 0)
    assert TASK.network(profile, splits).kind == "attention_mil"
    assert "Slides with the outcomes that stand in their files: 3 train" in TASK.describe(splits)
    assert TASK.references(splits) == {}
    assert TASK.page(splits, pd.DataFrame({"ce": [0.5] * 3})) is None


def test_paper_profile_has_the_papers_network():
    profile = TASK.profile("paper")
    data = TASK.load(None, TASK.profile("smoke"), 0)
    assert dict(TASK.network(profile, data).settings) == {}  # 1,536 features, 512 units
    assert profile.batch_size == 16


def test_description_says_what_became_of_the_censored(people):
    for rule, words in (("paper", "count as survivors"), ("known", "have weight 0")):
        text = TASK.describe(survival_splits(people, rule))
        assert words in text
        assert f"Rule `{rule}`" in text
    report = survival_splits(people, "known").report
    assert f"{report['left_out']} rows whose outcome is not known" in text


# References.


def test_references_find_what_can_be_found(splits):
    predictions = cancer_references.survival_references(splits, trees=30)
    assert set(predictions) == {
        "Kaplan-Meier", "Cox regression", "Random survival forest", "Cox, clinical",
    }  # fmt: skip
    p = splits.test.probabilities.numpy()
    error = {name: np.mean((p_hat - p) ** 2) for name, p_hat in predictions.items()}
    assert error["Cox regression"] < 0.2 * error["Kaplan-Meier"]
    assert error["Random survival forest"] < 0.7 * error["Kaplan-Meier"]
    assert error["Cox, clinical"] < error["Kaplan-Meier"]


def test_references_learn_from_the_censored_whatever_the_rule(people):
    a, b = (
        cancer_references.survival_references(survival_splits(people, rule), trees=5)
        for rule in ("paper", "known")
    )
    for name in ("Kaplan-Meier", "Random survival forest", "Cox, clinical"):
        np.testing.assert_allclose(a[name], b[name])


def test_a_missing_age_and_a_missing_stage_have_their_own_columns():
    covariates = pd.DataFrame(
        {"age": [50, np.nan, 70, 60], "stage": ["I", "unknown", "II", "I"], "sex": ["f"] * 4}
    )
    table = cancer_references.clinical_table(covariates, np.arange(4))
    assert table.shape == (4, 5)  # three stages, age, whether age is missing; sex is constant
    assert 60 in table[1]
    assert np.isfinite(table).all()


def test_mean_tile_of_a_slide():
    data = TASK.load(None, TASK.profile("smoke"), 0)
    bags = data.report["cohort"].inputs
    pooled = cancer_references.pooled_inputs(bags)
    first = bags.values[: bags.lengths[0]].mean(0)
    np.testing.assert_allclose(pooled[0], first, rtol=1e-5, atol=1e-6)
    assert pooled.shape == bags.shape


def test_several_penalties_need_validation():
    with pytest.raises(ValueError, match="validation must be given to choose among"):
        cancer_references.cox(np.ones((4, 1)), [1, 2, 3, 4], [1, 1, 1, 0], np.ones((1, 1)), 2)


# Several runs together.


@pytest.fixture(scope="module")
def runs(people):
    """What networks of three rules would say: the truth with noise, moved as the rule moves it."""
    rows = []
    for rule, shift in (("paper", 0.7), ("known", -0.6), ("ipcw", 0.0)):
        for seed in range(5):
            at = survival_splits(people, rule, seed=seed).test.ids
            rng = np.random.default_rng(seed)
            z = norm.ppf(people.probabilities[at]) + shift
            frame = {
                "ce": norm.cdf(z + 0.6 * rng.normal(size=len(at))),
                "ce_finetuned": norm.cdf(z + 0.5 * rng.normal(size=len(at))),
                "cape_bin": norm.cdf(z + 0.1 * rng.normal(size=len(at))),
                "Kaplan-Meier": np.full(len(at), 0.5 + 0.001 * seed),
            }
            rows.append(pd.DataFrame({"rule": rule, "seed": seed, "id": at, **frame}))
    return pd.concat(rows, ignore_index=True)


def test_pooled_folds_score_as_one_sample_but_for_auc(people, runs):
    part = runs[runs["rule"] == "ipcw"]
    result = cancer_study.five_fold_bootstrap(part, people.months, people.died, replicates=40)
    labels = cancer_study.label(people.months, people.died, "ipcw")
    at = part["id"].to_numpy()
    y, w = labels.outcomes[at], labels.weights[at]
    assert result.point.loc["ce", "brier"] == pytest.approx(brier(y, part["ce"], weights=w))
    folds = []
    for _, rows in part.groupby("seed"):
        i = rows["id"].to_numpy()
        folds.append(roc_auc_score(labels.outcomes[i], rows["ce"], sample_weight=labels.weights[i]))
    assert result.point.loc["ce", "auc"] == pytest.approx(np.mean(folds))
    assert result.point.loc["Kaplan-Meier", "auc"] == 0.5
    assert auc(y, part["Kaplan-Meier"], weights=w) != 0.5  # levels of folds differ by chance
    table = cancer_study.paired(result)
    assert set(table["rival"]) == {"ce", "ce_finetuned", "Kaplan-Meier"}
    better = table[(table["metric"] == "brier") & (table["rival"] == "Kaplan-Meier")].iloc[0]
    assert better["high"] < 0


def test_each_rule_judges_its_own_best_and_weights_tell_them_apart(people, runs):
    scores = cancer_study.compare_rules(runs, people.months, people.died, replicates=20)
    of = scores[scores["metric"] == "brier"].set_index(["trained", "judged", "method"])["value"]
    judged_by_weights = {rule: of[rule, "ipcw", "cape_bin"] for rule in ("paper", "known", "ipcw")}
    assert min(judged_by_weights, key=judged_by_weights.get) == "ipcw"
    assert of["paper", "paper", "cape_bin"] < of["paper", "ipcw", "cape_bin"]
    assert set(scores["judged"][scores["trained"] == "ipcw"]) == {"ipcw"}
    moved = cancer_study.ranks(scores)
    assert list(moved.columns) == ["paper", "known", "ipcw", "moves"]
    assert moved.loc["cape_bin", ["paper", "known", "ipcw"]].tolist() == [1, 1, 1]
    assert "Kaplan-Meier" not in moved.index
    assert cancer_study.ranks(scores, "auc").loc["cape_bin", "ipcw"] == 1


def test_spread_between_and_within_stages_adds_up():
    stages = np.array(["I", "I", "II", "III", "IV", "unknown"])
    p_hat = np.array([0.8, 0.6, 0.5, 0.3, 0.1, 0.9])
    row = cancer_study.stage_spread(stages, {"m": p_hat}).loc["m"]
    assert row["between"] ** 2 + row["within"] ** 2 == pytest.approx(p_hat[:5].var())
    assert row["within"] == pytest.approx(np.sqrt((0.1**2 + 0.1**2) / 5))
    assert row["early_minus_late"] == pytest.approx(0.7 - 0.2)
    assert (row["patients"], row["unknown"]) == (5, 1)


def test_survival_by_group_is_kaplan_meier_in_each(people):
    p = people.probabilities
    table = cancer_study.survival_by_group(p, people.months, people.died)
    assert table["patients"].sum() == len(p)
    assert (np.diff(table["observed"]) > 0).all()
    np.testing.assert_allclose(table["predicted"], table["observed"], atol=0.12)  # calibrated
    worst = p <= np.quantile(p, 1 / 3)
    curve = cancer_study.kaplan_meier(people.months[worst], people.died[worst])
    expected = curve["survival"][curve["months"] <= 60].iloc[-1]
    assert table["observed"][0] == pytest.approx(expected, abs=0.02)
    assert len(cancer_study.survival_by_group(np.full(40, 0.5), *follow_up(40))) == 1


def follow_up(n):
    return np.arange(1, n + 1), np.arange(n) % 2


def test_standard_error_of_an_auc_by_simulation():
    rng = np.random.default_rng(0)
    ones, zeros = 103, 55  # the paper's 158 test slides
    shift = np.sqrt(2) * norm.ppf(0.6144)
    y = np.repeat([1, 0], [ones, zeros])
    areas = [
        roc_auc_score(y, np.r_[rng.normal(shift, 1, ones), rng.normal(0, 1, zeros)])
        for _ in range(400)
    ]
    se = cancer_study.auc_standard_error(0.6144, ones, zeros)
    assert se == pytest.approx(np.std(areas), rel=0.1)
    assert 0.04 < se < 0.05


# Figures.


def test_figures_show_everybody(people, runs):
    part = runs[(runs["rule"] == "ipcw") & (runs["seed"] == 0)]
    at = part["id"].to_numpy()
    stage = people.covariates["stage"].to_numpy()[at]
    shown = {"CE": part["ce"], "CaPE": part["cape_bin"]}
    axes = cancer_figures.stage_boxes(stage, shown, people.months[at], people.died[at])
    assert [ax.get_title() for ax in axes] == ["CE", "CaPE"]
    labels = [t.get_text() for t in axes[0].get_xticklabels()]
    assert sum(int(text.split("\n")[1]) for text in labels) == len(at)
    assert "spread between" in axes[1].get_xlabel()
    axes = cancer_figures.predicted_groups(shown, people.months[at], people.died[at])
    texts = [t.get_text() for t in axes[0].get_legend().get_texts()]
    assert sum(int(text.split(", ")[1]) for text in texts) == len(at)


def test_figure_of_rules(people, runs):
    scores = cancer_study.compare_rules(runs, people.months, people.died, replicates=20)
    axes = cancer_figures.rule_scores_figure(scores, ["ce", "cape_bin"], {"ce": "CE"})
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["CE", "cape_bin"]
    assert len(axes) == 3


def test_real_lung_patients_end_to_end(data_dir, tmp_path):
    profile = TASK.profile("smoke")
    splits = TASK.load(data_dir, profile, 0, rule="ipcw")
    assert not splits.known
    jobs = plan(["ce"], profile, 0, TASK.network(profile, splits))
    fits = run_jobs(jobs, splits, tmp_path, device="cpu", workers=1, progress=False)
    rows = collect(jobs, fits, splits).predictions
    rows = rows[rows["split"] == "test"]
    scores = evaluate(rows["y"], rows["ce"], weights=rows["weight"])
    assert 0.2 < scores["brier"] < 0.35
    assert not set(rows.columns) & {"months", "died", "stage", "age"}


# Studies: what is kept of all folds and rules, and what is said of it.


@pytest.fixture(scope="module")
def study(people, runs):
    extra = runs.assign(ensemble=runs["ce_finetuned"], platt=runs["ce"], cape_kernel=runs["ce"])
    extra["Cox regression"] = extra["ce"]
    order = ["rule", "seed", "id", *sorted(set(extra) - {"rule", "seed", "id"})]
    tables = cancer_runs.summarise(extra[order], people, replicates=30)
    record = {"patients": len(people), "profile": "quick", "version": "0", "date": "2026-01-01"}
    return {**tables, "record": record}


def test_a_study_holds_no_outcome_and_no_follow_up(study, people):
    columns = set(study["predictions"].columns)
    assert not columns & {"y", "weight", "months", "died", "group", "stage", "age"}
    assert columns - {"rule", "seed", "id"} == set(study["scores"]["method"])
    assert set(study["differences"]["unit"]) == {"patient", "site"}
    assert (study["stages"]["patients"] >= 20).all()


def test_a_study_is_read_as_it_was_written(study, tmp_path):
    for name in cancer_study.TABLES:
        cancer_runs.write_table(tmp_path / "cancer-lung" / f"{name}.parquet", study[name])
    (tmp_path / "cancer-lung" / "study.json").write_text(json.dumps(study["record"]))
    found = cancer_page.find_studies(tmp_path)
    assert list(found) == ["lung"]
    pd.testing.assert_frame_equal(found["lung"]["scores"], study["scores"])
    titles = [ax.get_title() for ax in cancer_page.show_study("lung", found["lung"])]
    assert titles == ["", "", "", *2 * ["Deep ensemble", "CE early-stop", "CaPE (bin)"]]


def test_kept_boxes_are_quantiles_of_stages_large_enough_to_hide_in(study, people, runs):
    at = runs["rule"] == "ipcw"
    stage = people.covariates["stage"].to_numpy()[runs.loc[at, "id"]]
    boxes = study["boxes"].set_index(["method", "stage"])
    assert sorted(set(boxes.loc["ce"].index)) == ["I", "II", "III", "IV"]  # nine are unknown
    values = runs.loc[at, "ce"][stage == "III"]
    row = boxes.loc[("ce", "III")]
    assert row["patients"] == len(values)
    expected = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    np.testing.assert_allclose(row[["whislo", "q1", "med", "q3", "whishi"]].astype(float), expected)
    assert "unknown" in set(
        cancer_study.stage_quantiles(stage, {"ce": runs.loc[at, "ce"]})["stage"]
    )


def test_kept_curves_have_no_steps_of_single_patients(study, people, runs):
    curves = study["curves"].query("method == 'ce'")
    assert set(curves["months"] % 6) == {0}
    for k, group in enumerate(study["groups"].query("method == 'ce'").itertuples()):
        own = curves[curves["group"] == k]
        assert (np.diff(own["survival"]) <= 0).all() and own["survival"].iloc[0] == 1
        assert own.set_index("months").loc[60, "survival"] == pytest.approx(group.observed)


def test_contrasts_are_differences_of_spreads(study, people, runs):
    rows = study["contrasts"]
    assert rows["claim"].tolist() == ["102", "103", "103", "104", "104"]
    spread = study["spread"].set_index("method")
    for row in rows.itertuples():
        expected = spread.loc[row.first, row.spread] - spread.loc[row.second, row.spread]
        assert row.difference == pytest.approx(expected, abs=1e-6)
        assert row.low <= row.high


@pytest.mark.parametrize(
    ("low", "high", "lowest", "discriminative", "within"),
    [
        (-0.03, -0.01, "holds", "contradicted", "contradicted"),
        (0.01, 0.03, "contradicted", "holds", "contradicted"),
        (-0.01, 0.02, "not told apart", "not told apart", "not told apart"),
    ],
)
def test_claims_follow_the_numbers(study, low, high, lowest, discriminative, within):
    interval = {"difference": (low + high) / 2, "low": low, "high": high}
    changed = {name: study[name].assign(**interval) for name in ("differences", "contrasts")}
    table = cancer_claims.claims({**study, **changed}).set_index("claim")
    assert table.loc["53, 63", "verdict"] == lowest
    assert table.loc["65", "verdict"] == discriminative
    assert table.loc["104", "verdict"] == within  # more between stages, less within: not both
    assert table.loc["101", "verdict"].startswith("holds for")


def test_sentences_name_what_they_measured(study):
    brier = study["scores"]
    brier = brier[(brier["metric"] == "brier") & (brier["trained"] == "ipcw")].set_index("method")
    assert f"{100 * brier.loc['Kaplan-Meier', 'value']:.2f}" in cancer_words.best_sentence(study)
    assert "no network learned anything" not in cancer_words.best_sentence(study)
    assert "standard error of 0.046" in cancer_words.auc_sentence()
    assert "under `ipcw`" in cancer_words.rules_sentence(study)
    table = cancer_words.rules_table(study)
    assert table.loc["CaPE (bin)", ("", "paper's table")] == "23.20"
    assert "±" in table.loc["Kaplan-Meier", ("judged by its own rule", "known")]
    pairs = cancer_words.differences_table(study)
    rows = study["differences"].set_index(["method", "rival", "metric", "unit"])
    row = rows.loc[("cape_bin", "ce", "brier", "site")]
    text = pairs.loc["CaPE (bin) less CE early-stop", "interval over sites"]
    assert text.startswith(f"{100 * row['difference']:+.2f} [{100 * row['low']:+.2f}, ")
    assert text.endswith("*") == (row["high"] < 0 or row["low"] > 0)
