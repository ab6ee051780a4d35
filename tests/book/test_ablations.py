from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from probnb.experiment.plan import job_key, lineage, plan
from probnb.experiment.run import run_jobs
from probnb.methods import METHODS
from probnb.training.targets import TARGETS, left_out
from probnb_book import storage, studies
from probnb_book.ablations import special, study
from probnb_book.ablations.rows import STUDIES, settings_of
from probnb_book.data.faces import load_faces

SEEDS = (0, 1, 2)
SMALL = replace(settings_of("smoke"), epochs=3, finetune_epochs=1, images=100)
HOW = {"device": "cpu", "workers": 1, "progress": False}


@pytest.fixture(scope="module")
def splits():
    return load_faces("linear", size=SMALL.size, n=SMALL.images)


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Where trainings of these images lie, so that each is done once."""
    return tmp_path_factory.mktemp("fits")


def made_up(scenarios=("linear",), seeds=SEEDS):
    """A study of weighted sums whose rows differ by known amounts, with noise that seeds share."""
    rng, lines = np.random.default_rng(8), []
    for seed, scenario in product(seeds, scenarios):
        luck = rng.normal(0, 0.01)
        for k, (row, known) in enumerate(STUDIES["weighted"].items()):
            lines.append(
                {
                    **{"scenario": scenario, "seed": seed, "row": row},
                    **{"label": known.method.label, "part": known.part, "x": known.x},
                    "mse_p": 0.05 + luck + 0.001 * k + rng.normal(0, 1e-4),
                    "cost": 1.0 + k / 4,
                }
            )
    facts = {"study": "weighted", "data": "drawn v3", "profile": "quick", "n": 100, "epoch": 3}
    return pd.DataFrame(lines).assign(**facts)


def test_intervals_are_students_over_the_differences_of_seeds():
    table = made_up()
    found = study.compare(table, base="cape_bin").set_index("row")
    wide = table.pivot(index="seed", columns="row", values="mse_p")
    difference = (wide["lambda=1"] - wide["cape_bin"]).to_numpy()
    expected = stats.ttest_1samp(difference, 0)
    row = found.loc["lambda=1"]
    assert row["value"] == pytest.approx(difference.mean())
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert row["p"] == pytest.approx(expected.pvalue) and row["holm"] >= row["p"]
    assert "cape_bin" not in found.index
    one = study.compare(made_up(seeds=(0,)))
    assert one["low"].isna().all() and (one["seeds"] == 1).all()


def test_tables_are_kept_and_new_lines_replace_old(tmp_path):
    table = made_up(seeds=(0, 1))
    study.write_study(table, tmp_path)
    study.write_study(made_up(seeds=(1, 2)).assign(mse_p=0.5), tmp_path)
    found = study.read_study(tmp_path, "weighted")
    assert found["seed"].value_counts().to_dict() == dict.fromkeys(SEEDS, len(STUDIES["weighted"]))
    assert (found.query("seed > 0")["mse_p"] == 0.5).all()
    kept = found.query("seed == 0")["mse_p"].to_numpy()
    np.testing.assert_allclose(kept, table.query("seed == 0")["mse_p"], rtol=1e-5)
    study.write_study(made_up(("discrete", "sigmoid")), tmp_path)
    order = ["linear", "sigmoid", "discrete"]
    assert list(study.read_study(tmp_path, "weighted")["scenario"].unique()) == order
    assert study.read_study(tmp_path, "weighted", scenario="sigmoid")["seed"].nunique() == 3
    assert study.read_study(tmp_path, "cape").empty


def test_a_later_seed_leaves_the_records_of_others_alone(tmp_path, monkeypatch):
    for commit, seeds in (("first", (0, 1)), ("second", (1, 2))):
        monkeypatch.setattr(study, "machine", lambda commit=commit: {"commit": commit})
        study.write_study(made_up(seeds=seeds), tmp_path)
    records = storage.records(tmp_path, "ablations")
    commits = {run: of["commit"] for run, of in records.items()}
    expected = zip(SEEDS, ("first", "second", "second"))
    assert commits == {f"weighted-linear-drawn-v3-quick-seed{k}": first for k, first in expected}
    assert all(of["settings"]["width"] == 8 for of in records.values())


@pytest.mark.parametrize("name", STUDIES)
def test_rows_of_every_study_can_be_planned(name):
    rows = {row: r.method for row, r in STUDIES[name].items()}
    assert all(plan(list(rows), settings_of("smoke"), rows=rows).values())


def test_settings_are_on_their_panels():
    rows = {row: r.method for row, r in STUDIES["cape"].items()}
    jobs = plan(list(rows), settings_of("smoke"), rows=rows)
    panels = (("m=2", "every", 2), ("B=50", "bins", 50), ("r=20", "neighbours", 20))
    for name, setting, value in panels:
        (job,) = jobs[name]
        assert getattr(job.targets, setting) == value and STUDIES["cape"][name].x == value
    assert jobs["length=12"][0].recipe.epochs == 12
    assert jobs["rate=0.001"][0].recipe.learning_rate == 1e-3
    starts = {job.start for row in jobs.values() for job in row if job.start}
    assert len(starts) == 1  # they differ in nothing else


def test_labels_drawn_afresh_are_never_those_of_the_data():
    splits = special.three_outcomes(load_faces("linear", size=16, n=200), 0)
    for epoch in range(1, 9):
        drawn = TARGETS["resampled"]()(epoch, splits.train, None, 0)
        assert (drawn == splits.train.outcomes).all(1).float().mean() < 0.8


def test_costs_are_counted_in_images_seen(splits, fits):
    rows = {name: STUDIES["targets"][name] for name in ("ce", "ensemble", "crossfit")}
    few = replace(rows["crossfit"].method, folds=2, repeats=1)
    rows["crossfit"] = rows["crossfit"]._replace(method=few)
    table = study.run_rows(rows, splits, SMALL, 0, fits, **HOW).set_index("row")
    assert table.loc["ce", "cost"] == 1
    jobs = plan(list(rows), SMALL, rows={name: row.method for name, row in rows.items()})
    every = list(dict.fromkeys(s for row in jobs.values() for j in row for s in lineage(j)))
    done = run_jobs(every, splits, fits, **HOW)
    ce = done[jobs["ce"][0]]
    unit = min(len(ce.history) - 1, ce.best_epoch + SMALL.patience)
    epochs = {job: len(fit.history) - 1 for job, fit in done.items()}
    others = sum(epochs[job] for job in jobs["ensemble"][1:])
    assert table.loc["ensemble", "cost"] == pytest.approx((unit + others) / unit)
    (student,) = jobs["crossfit"]
    n = len(splits.train)
    seen = sum(epochs[t] * (n - len(left_out(splits, t.fold))) for t in student.teachers)
    expected = (seen + n * epochs[student]) / (n * unit)
    assert table.loc["crossfit", "cost"] == pytest.approx(expected)


def test_augmented_rows_are_trained_on_changed_faces(splits):
    changed = study.with_augmentation(splits)
    (job,) = plan(["ce"], settings_of("smoke"))["ce"]
    assert job_key(job, splits) != job_key(job, changed)
    assert len(changed.train.augment) == 3 and not changed.val.augment


def test_three_outcomes_are_two_draws():
    splits = load_faces("discrete", size=8, n=4000)
    three = special.three_outcomes(splits, 0)
    p, y = three.train.probabilities.numpy(), three.train.outcomes.numpy()
    psi = splits.train.probabilities.numpy()
    np.testing.assert_allclose(p, np.stack([(1 - psi) ** 2, 2 * psi * (1 - psi), psi**2], 1), 1e-5)
    assert (y.sum(1) == 1).all() and np.abs((y - p).mean(0)).max() < 4 * 0.5 / np.sqrt(len(y))
    assert three.digest != special.three_outcomes(splits, 1).digest


def test_three_outcomes_are_kept_like_any_other_training(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "settings_of", lambda profile: SMALL)
    table = study.run_study("several", profile="smoke", fits_dir=tmp_path, **HOW)
    assert list(table["row"]) == list(special.SEVERAL) and table["mse_p"].notna().all()
    assert table["cost"].iloc[1] == 1
    assert len(list(tmp_path.glob("*.safetensors"))) == len(special.SEVERAL)
    assert (table["label"] == [row.method.label for row in special.SEVERAL.values()]).all()


def test_members_are_calibrated_before_they_are_averaged(splits, fits):
    rows = {name: STUDIES["ensembles"][name] for name in ("ensemble_platt", "ensemble_members")}
    table = study.run_rows(rows, splits, SMALL, 0, fits, **HOW).set_index("row")
    done = run_jobs(plan(["ensemble"], SMALL)["ensemble"], splits, fits, **HOW).values()
    z = [[f.logits[f"best_{k}"].double().numpy() for k in ("val", "test")] for f in done]
    p_hat = [special.platt(val, splits.val.outcomes.numpy(), test) for val, test in z]
    error = np.mean((np.mean(p_hat, axis=0) - splits.test.probabilities.numpy()) ** 2)
    assert table.loc["ensemble_members", "mse_p"] == pytest.approx(error)
    assert table.loc["ensemble_platt", "mse_p"] != pytest.approx(error)


def test_a_row_can_be_one_member_and_what_starts_from_it(splits, fits):
    names = [f"{row}, CE {k}" for k in (1, 2) for row in ("ce", "ce_finetuned")]
    rows = {name: STUDIES["starts"][name] for name in (*names, "ce, CE 3")}  # of two members
    table = study.run_rows(rows, splits, SMALL, 0, fits, **HOW).set_index("row")
    assert list(table.index) == names and SMALL.members == 2
    p = splits.test.probabilities.numpy()
    for k, job in enumerate(plan(["ensemble"], SMALL)["ensemble"], 1):
        fit = run_jobs([job], splits, fits, **HOW)[job]
        p_hat = fit.logits["best_test"].double().softmax(1)[:, 1].numpy()
        assert table.loc[f"ce, CE {k}", "mse_p"] == pytest.approx(np.mean((p_hat - p) ** 2))
        tuned = replace(rows[f"ce_finetuned, CE {k}"].method, members=k)
        starts = {one.start for one in plan(["x"], SMALL, rows={"x": tuned})["x"]}
        assert job in starts and table.loc[f"ce_finetuned, CE {k}", "cost"] > 1


def test_stopping_rules_by_hand():
    """Logits whose cross entropy is best at epoch 2, whose ranking is best at epoch 4."""
    y = np.array([0, 1] * 50)
    sign = np.where(y == 1, 1.0, -1.0)
    noise = np.random.default_rng(0).normal(0, 1, 100)

    def logits(scale, signal):
        s = scale * (signal * sign + noise)
        return np.stack([-s / 2, s / 2], axis=1)

    chosen = special.choose([logits(0.1, 0.2), logits(1, 0.5), logits(6, 0.3), logits(30, 1)], y)
    assert list(chosen)[3:] == ["patience 2", "patience 4", "last"]
    assert chosen["val CE"] == 2 and chosen["val CE after Platt"] == 4 and chosen["last"] == 4


def test_reversal_judges_every_epoch_of_the_same_trainings(splits):
    table = special.run_reversal(splits, SMALL, 0, "cpu", members=2)
    assert table["row"].is_unique and set(table["label"]) == set(special.KINDS)
    every = replace(METHODS["ce_averaged"], members=2)
    jobs = plan(["x"], replace(SMALL, members=2), 0, rows={"x": every})["x"]
    fabric, found = special.make_fabric("cpu"), []
    for job in jobs:
        special.torch.manual_seed(job.init_seed)
        model, recipe = job.network.build(splits.train.inputs), replace(job.recipe, patience=None)
        found.append(special.fit(model, splits, recipe, fabric=fabric, on_epoch=lambda row: None))
    rows = table.set_index("row")
    for kind in special.KINDS:
        assert rows.loc[[f"{kind} {t}" for t in (1, 2, 3)], "x"].tolist() == [1, 2, 3]
    for t in (1, 2, 3):
        for name in ("val_ce", "mse_p"):
            mean = np.mean([done.history[t][name] for done in found])
            assert rows.loc[f"Averaged weights {t}", name] == pytest.approx(mean, rel=1e-5)
    kept = rows.loc["Averaged weights, val CE"]
    assert kept["x"] == np.mean([done.best_epoch for done in found])
    assert kept["val_ce"] == pytest.approx(np.mean([done.val_ce for done in found]), rel=1e-5)
    logits = [done.logits["last_test"].double().softmax(1)[:, 1].numpy() for done in found]
    error = np.mean((np.mean(logits, axis=0) - splits.test.probabilities.numpy()) ** 2)
    assert rows.loc["Ensemble of averaged 3", "mse_p"] == pytest.approx(error, rel=1e-5)
    after = rows[rows["label"].eq("Ensemble") & rows["part"].eq("epoch, platt")]
    best = after.loc[after["val_ce"].idxmin()]
    platt = rows.loc["Ensemble, val CE after Platt, platt"]
    assert platt["x"] == best["x"] and platt["mse_p"] == best["mse_p"]


def test_weights_of_teachers_are_on_their_panels():
    rows = {row: r.method for row, r in STUDIES["weight"].items()}
    for name, (job,) in plan(list(rows), settings_of("smoke"), rows=rows).items():
        row = STUDIES["weight"][name]
        assert job.targets.share == 1 - row.x and (job.strength or 0) == max(0, row.x - 1)
        assert len(job.teachers) == (6 if row.part == "unseen" else 1)
        assert all((t.fold is None) == (row.part == "seen") for t in job.teachers)


def test_what_a_function_of_the_old_logit_says_of_a_change():
    z = np.random.default_rng(0).uniform(-3, 3, size=2000)
    noise = np.random.default_rng(1).normal(size=2000)
    assert special.within(z, np.sin(z)) < 0.003  # but for what varies within a bin
    assert special.within(z, noise) == pytest.approx(1, abs=0.07)
    assert special.within(z, z + 2 * noise) == pytest.approx(4, abs=0.3)


def test_steps_start_where_early_stopping_ended(splits, fits):
    table = special.run_steps(splits, SMALL, 0, fits, **HOW).set_index("row")
    assert list(table.index) == ["start", "averaged weights", *special.STEPS]
    assert np.isnan(table.loc["start", "share"]) and (table["grouping"] > 0).all()
    (ce,) = plan(["ce"], SMALL, 0)["ce"]
    kept = run_jobs([ce], splits, fits, **HOW)[ce]
    assert table.loc["start", "mse_p"] == pytest.approx(kept.history[kept.best_epoch]["mse_p"])


def test_first_targets_have_the_mean_of_the_outcomes(splits, fits):
    table = special.first_targets(splits, SMALL, 0, fits, "cpu")
    for _, part in table.groupby("network"):
        assert part["p_emp"].mean() == pytest.approx(splits.train.outcomes.numpy().mean())
        assert part["p_emp"].nunique() <= 15


def test_a_study_is_run_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study, "settings_of", lambda profile: SMALL)
    asked = ["ablations", "stopping", "--profile", "smoke", "--seeds", "0", "--workers", "1"]
    studies.main([*asked, "--runs", str(tmp_path / "runs")])
    table = study.read_study(tmp_path / "results", "stopping")
    assert set(table["part"]) == {"kept", "platt", "cape"} and list(table) == list(study.COLUMNS)
    shown = study.beside(table, table)
    assert (shown["MSE_p × 100"] == shown["stored"]).all()


def test_what_a_shell_asks_is_checked_before_anything_is_loaded(capsys):
    with pytest.raises(ValueError, match=r"chapter must be one of .* Did you mean 'ablations'"):
        studies.main(["ablatoins"])
    with pytest.raises(FileNotFoundError, match="data_dir must be an existing file or folder"):
        studies.main(["ablations", "stopping", "--data-dir", "nowhere"])
    with pytest.raises(SystemExit):
        studies.main(["ablations", "--help"])
    assert "train ablations" in capsys.readouterr().out
