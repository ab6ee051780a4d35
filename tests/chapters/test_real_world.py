from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
import pytest

from probnb.chapters.real_world import figures, others, runs, words
from probnb.chapters.real_world.task import get_task
from probnb.chapters.real_world.weather import pooled, references
from probnb.data.radar import encode
from probnb.data.rain import simulated_splits
from probnb.experiment.results import Results, write_results
from probnb.scenarios import SCENARIOS

matplotlib.use("Agg")
TASK = get_task("weather")


@pytest.fixture(scope="module")
def splits():
    return simulated_splits(1500, 8, seed=1)


def table(n=400, days=10, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    logit = np.log(p / (1 - p))
    off = 1 / (1 + np.exp(-(2 * logit + 0.5)))
    return pd.DataFrame(
        {
            "split": "test",
            "id": np.arange(n).astype(str),
            "y": (rng.random(n) < p).astype(int),
            "group": np.char.add("day ", (np.arange(n) * days // n).astype(str)),
            "ce": off,
            "platt": p,
            "ce_finetuned": off,
            "cape_bin": p,
            "Climatology": 0.5,
            "Forest": p,
            "seed": 0,
        }
    )


def test_references_use_training_outcomes_only(splits):
    found = references(splits)
    y = splits.train.outcomes.numpy()
    assert np.all(found["Climatology"] == y.mean())
    flipped = replace(
        splits, test=replace(splits.test, outcomes=1 - splits.test.outcomes, probabilities=None)
    )
    for name, values in references(flipped).items():
        np.testing.assert_array_equal(values, found[name])


def test_references_beat_the_constant_where_there_is_something_to_know(splits):
    p = splits.test.probabilities.numpy()
    error = {k: np.mean((v - p) ** 2) for k, v in references(splits).items()}
    assert error["Logistic regression"] < 0.7 * error["Climatology"]
    assert error["Random forest"] < 0.7 * error["Climatology"]
    assert error["Persistence of trend"] < error["Climatology"]


def test_persistence_is_the_share_by_sign_of_the_trend(splits):
    x, z = (part.inputs.numpy().astype(np.float32) for part in (splits.train, splits.test))
    y = splits.train.outcomes.numpy()
    rose, rising = (a[:, 2].mean((1, 2)) > a[:, 0].mean((1, 2)) for a in (x, z))
    expected = np.where(rising, y[rose].mean(), y[~rose].mean())
    np.testing.assert_allclose(references(splits)["Persistence of trend"], expected)


def test_pooled_statistics_by_hand():
    maps = np.zeros((1, 3, 4, 4), np.uint8)
    maps[0, 2, 0, 3], maps[0, 0, 3, 0] = 255, 51
    found = pooled(maps).reshape(3, 8)
    last = [1 / 16, np.sqrt(1 / 16 - 1 / 256), 1 / 16, 1, 0, 1 / 4, 0, 0]
    first = [0.2 / 16, 0.2 * np.sqrt(1 / 16 - 1 / 256), 1 / 16, 0.2, 0, 0, 0.2 / 4, 0]
    np.testing.assert_allclose(found[0], last, rtol=1e-6)
    np.testing.assert_allclose(found[1], last, rtol=1e-6)
    np.testing.assert_allclose(found[2], np.subtract(last, first), rtol=1e-5, atol=1e-7)


def test_description_counts(splits):
    text = TASK.describe(splits)
    assert f"{len(splits.train):,} to train on" in text and "simulated" in text
    fallback = replace(splits, report={"fallback": "no network"})
    assert "no network" in TASK.describe(fallback)


def test_without_a_network_rain_is_simulated_with_a_warning(monkeypatch, tmp_path):
    def fail(path):
        raise ConnectionError("pip could not")

    monkeypatch.setattr("probnb.data.radar_example.read_example", fail)
    with pytest.warns(UserWarning, match="Simulated rain in place of radar: pip could not"):
        splits = TASK.load(None, TASK.profile("smoke"), 0)
    assert splits.known and splits.report["fallback"] == "pip could not"


def test_data_have_a_name_that_says_what_was_changed(splits):
    given = TASK.given({}, "smoke")
    assert runs.data_name(TASK, splits, given) == "simulated"
    unknown = replace(
        splits, **{k: replace(part, probabilities=None) for k, part in splits.parts().items()}
    )
    assert runs.data_name(TASK, unknown, TASK.given({})) == "real"
    assert runs.data_name(TASK, unknown, TASK.given({"lead": 65})) == "real-lead65"


def test_runs_of_several_seeds_are_put_together(tmp_path):
    chosen = pd.DataFrame({"method": ["ce"], "chosen": [True]})
    epochs = pd.DataFrame({"fit": ["ce"], "epoch": [1]})
    facts = dict(task="weather", data="real", settings=TASK.profile("quick"))
    for seed in (0, 1, 3):
        frame = table(60, seed=seed).drop(columns=["seed", "Climatology", "Forest"])
        frame = frame if seed else frame.drop(columns="platt")
        frame = pd.concat([frame.assign(split="val"), frame], ignore_index=True)
        results = runs.add_references(
            Results(frame, chosen, epochs), {"Climatology": np.full(60, 0.4)}
        )
        write_results(
            tmp_path / "real_world",
            results,
            seed=seed,
            profile="quick",
            base=facts["settings"],
            **facts,
        )
    other = dict(facts, settings=replace(facts["settings"], epochs=99))
    write_results(tmp_path / "real_world", results, seed=2, profile="quick", base=None, **other)
    found = runs.pool([tmp_path], TASK, settings=TASK.profile("quick").__dict__, profile="quick")
    assert sorted(set(found["seed"])) == [0, 1, 3] and len(found) == 180
    assert runs.methods_of(found) == ["ce", "ce_finetuned", "cape_bin"]  # that all seeds have
    assert runs.references_of(found) == ["Climatology"]
    assert (found["Climatology"] == 0.4).all()
    assert runs.pool([tmp_path], TASK, profile="paper").empty


def test_score_resamples_groups():
    rows = table()
    by_day = runs.score(rows, ["ce"], 200)
    copies = runs.score(rows.loc[rows.index.repeat(3)], ["ce"], 200)
    np.testing.assert_allclose(by_day.samples, copies.samples)  # copies add nothing
    alone = runs.score(rows.assign(group="one"), ["ce"], 200)
    assert alone.std().loc["ce", "brier"] > 0


def test_tables_say_what_the_numbers_say():
    rows = table()
    result = runs.score(rows, ["ce", "platt", "ce_finetuned", "cape_bin"], 300)
    gaps = words.differences(result)
    assert gaps.loc["CaPE (bin)", "less CE early-stop"].endswith("*")
    assert gaps.loc["CE fine-tuned", "less CE early-stop"] == "+0.00 [+0.00, +0.00]"
    both = runs.score(rows, ["ce", "platt", "Climatology", "Forest"], 300)
    skill = words.skill_table(both, ["Climatology", "Forest"])
    brier = ((rows["platt"] - rows["y"]) ** 2).mean()
    assert skill.loc["Platt scaling", "Brier skill score (%)"] == f"{100 * (1 - brier / 0.25):.1f}"
    assert skill.loc["Climatology", "Brier skill score (%)"] == "0.0"
    said = words.reference_sentence(both, ["Climatology", "Forest"])
    assert "CE early-stop **is better than** Climatology" in said
    assert "CE early-stop **is worse than** Forest" in said
    assert words.skill_table(both, []) is None and words.reference_sentence(both, []) == ""


def test_claims_name_the_best_and_the_rank():
    rows = table().assign(ensemble=lambda t: t["platt"] * 0.9 + 0.05)
    result = runs.score(rows, ["ce", "ensemble", "ce_finetuned", "cape_bin"], 100)
    found = words.claims(result, rows, TASK).set_index("claim")
    assert "18.37" in found.loc["CaPE has the lowest Brier score", "paper"]
    assert "3 of 11" in found.loc["The deep ensemble's rank by Brier score", "paper"]
    order = result.point["brier"].rank()["ensemble"]
    assert found.loc["The deep ensemble's rank by Brier score", "here"] == f"{int(order)} of 4"


def test_correspondence_finds_the_scenario_that_predictions_come_from():
    for name, p in words.scenario_probabilities().items():
        found = words.correspondence(p)
        assert found["distance"].idxmin() == name
        assert found.loc[name, "distance"] == pytest.approx(0, abs=1e-9)
    assert set(found.index) == set(SCENARIOS)
    p = words.scenario_probabilities()["linear"]
    weights = np.random.default_rng(0).integers(0, 4, len(p))
    repeated = words.correspondence(np.repeat(p, weights))
    pd.testing.assert_frame_equal(words.correspondence(p, weights), repeated, atol=1e-9)
    shifted = words.correspondence(p + 0.2)
    assert shifted.loc["linear", "shape"] == pytest.approx(0, abs=1e-9)
    assert shifted.loc["linear", "distance"] == pytest.approx(0.2)


def test_evidence_is_counted():
    assert "1 seed, 400 predictions of 10 days." in words.evidence_sentence(table(), TASK)
    assert "1 day" in words.evidence_sentence(table(days=1), TASK)
    assert "rows are resampled" in words.evidence_sentence(table(days=1), TASK)
    assert "3 days are few" in words.evidence_sentence(table(days=3), TASK)
    two = pd.concat([table(), table().assign(seed=1)])
    assert "may be tested by several seeds" in words.evidence_sentence(two, TASK)
    # Simulated patients of two seeds are other people, though both number their rows from 0.
    other = pd.concat(
        [table(), table().assign(seed=1, group=lambda rows: "other " + rows["group"])]
    )
    assert "20 days; every day is tested by one seed only" in words.evidence_sentence(other, TASK)


def test_a_page_shows_what_is_stored_of_the_other_tasks(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    chosen, epochs = pd.DataFrame({"fit": ["ce"]}), pd.DataFrame({"fit": ["ce"], "epoch": [1]})
    for data, seeds in (("simulated", 3), ("real", 2)):
        for seed in range(seeds):
            rows = table(seed=seed).assign(group=f"{data} {seed}").drop(columns="seed")
            facts = {"task": "weather", "data": data, "profile": "quick", "seed": seed}
            write_results(tmp_path / "real_world", Results(rows, chosen, epochs), **facts)
    best = others.best_table(tmp_path, TASK)
    assert len(best) == 800 and best["group"].str.startswith("real").all()
    others.show_others(get_task("collision"), tmp_path, replicates=20)
    text, scores = shown
    assert "2 seeds, 800 predictions of 2 days" in text.data and "-p task weather" in text.data
    assert scores.loc["CE early-stop", "Brier"] == f"{100 * ((best.ce - best.y) ** 2).mean():.2f}"
    assert scores.loc["CaPE (bin)", "less CE early-stop"].endswith("*")
    others.show_others(TASK, tmp_path)
    assert len(shown) == 2  # nothing else is stored


def test_figures_show_what_they_are_given(splits):
    rows = table().assign(weight=1.0)
    result = runs.score(rows, ["ce", "platt", "cape_bin"], 50)
    axes = figures.rain_figure(splits, examples=2)
    assert len(axes) == 6
    shown = axes[2].images[0].get_array()
    assert shown.shape == (8, 8) and shown.max() <= np.log10(101)
    assert len(figures.summary_figure(rows, ["ce", "cape_bin"])) == 2
    (ax,) = figures.gap_figure(result)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["CaPE (bin)", "Platt scaling"]
    (ax,) = figures.group_figure(rows, ["ce", "Climatology"], TASK)
    assert ax.lines[1].get_ydata() == pytest.approx(25)
    measured = words.correspondence(rows["ce"])
    axes = figures.correspondence_figure(rows["ce"], TASK, measured, rows["weight"])
    black = axes[1].lines[0]
    x = black.get_xdata()
    np.testing.assert_allclose(black.get_ydata(), [(rows["ce"] <= v).mean() for v in x], atol=1e-9)


def test_maps_are_drawn_in_their_own_unit():
    rate = np.array([0.0, 0.3, 5.0])
    back = (np.exp(encode(rate) / 255 * np.log1p(1e4)) - 1) / 100
    np.testing.assert_allclose(back, rate, rtol=0.05, atol=0.001)
