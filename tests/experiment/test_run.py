import numpy as np
import pandas as pd
import pytest
import torch

from probnb import store
from probnb.calibrators import TemperatureScaling
from probnb.data import ProbabilityData, Splits
from probnb.data.faces import load_faces
from probnb.experiment import plan as planner
from probnb.experiment import run as experiment
from probnb.experiment.profiles import PROFILES, make_profile
from probnb.experiment.results import collect, read_rows, run_directory, write_rows
from probnb.methods import METHODS, check_methods
from probnb.training.targets import Calibrated, Observed, Resampled

pytestmark = pytest.mark.filterwarnings("ignore::probnb.calibrators.CalibrationWarning")

SMALL = make_profile("smoke", images=120, epochs=2, patience=1)


@pytest.fixture(scope="module")
def splits():
    return load_faces("linear", size=32, n=120, seed=0)


@pytest.fixture(scope="module")
def finished(splits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    jobs = planner.plan(METHODS, SMALL)
    everything = [job for candidates in jobs.values() for job in candidates]
    fits = experiment.run_jobs(everything, splits, folder, device="cpu", workers=2, progress=False)
    return jobs, fits, folder


def test_rows_share_fits_and_grids_multiply_them():
    jobs = planner.plan(METHODS, make_profile("cpu", bins=(5, 10, 15), sigmas=(0.05, 0.1)))
    ce = jobs["ce"]
    for name in ("ce_overfit", "temperature", "platt", "dirichlet", "beta", "mixnmatch"):
        assert jobs[name] == ce
    assert [job.strength for job in jobs["focal"]] == [1.0, 2.0]
    assert len(jobs["cape_bin"]) == 2 * 3 and len(jobs["cape_kernel"]) == 2 * 2
    assert len(jobs["ensemble"]) == 5 and jobs["ensemble"][0] == ce[0]
    assert len({job.init_seed for job in jobs["ensemble"]}) == 5
    # CE, resampled, 4 members, 2 for each of three losses, 2 + 6 + 4 fine-tunings
    assert len({job for row in jobs.values() for job in row}) == 1 + 1 + 4 + 6 + 12


def test_cape_and_its_control_differ_in_their_targets_alone():
    jobs = planner.plan(["ce", "ce_finetuned", "cape_bin", "cape_kernel"], PROFILES["cpu"])
    for control in jobs["ce_finetuned"]:
        assert control.start == jobs["ce"][0] and control.targets == Observed()
        same = [j for j in jobs["cape_bin"] if j.recipe == control.recipe]
        assert {j.targets.bins for j in same} == set(PROFILES["cpu"].bins)
        assert all(isinstance(j.targets, Calibrated) and j.start == control.start for j in same)


def test_resampled_labels_and_overfitting_train_all_epochs():
    jobs = planner.plan(["resampled", "ce", "focal"], PROFILES["cpu"])
    assert jobs["resampled"][0].recipe.patience is None
    assert jobs["resampled"][0].targets == Resampled()
    assert jobs["ce"][0].recipe.patience is None
    assert jobs["focal"][0].recipe.patience == PROFILES["cpu"].patience


def test_an_adversarial_ensemble_trains_all_its_members():
    jobs = planner.plan(["ce", "ensemble"], make_profile("cpu", adversarial=0.01))
    assert all(job.recipe.adversarial == 0.01 for job in jobs["ensemble"])
    assert jobs["ce"][0] not in jobs["ensemble"]


def test_keys_follow_everything_that_a_result_depends_on(splits):
    job = planner.plan(["ce"], SMALL)["ce"][0]
    key = planner.job_key(job, "data")
    assert key == planner.job_key(planner.plan(["ce"], SMALL)["ce"][0], "data")
    other = {
        planner.job_key(job, "other data"),
        planner.job_key(job, "data", precision="32-true"),
        planner.job_key(planner.plan(["ce"], SMALL, seed=1)["ce"][0], "data"),
        planner.job_key(planner.plan(["resampled"], SMALL)["resampled"][0], "data"),
        *(planner.job_key(j, "data") for j in planner.plan(["cape_bin"], SMALL)["cape_bin"]),
        *(planner.job_key(j, "data") for j in planner.plan(["cape_kernel"], SMALL)["cape_kernel"]),
    }
    assert key not in other and len(other) == 6


def test_every_row_has_predictions(finished, splits):
    jobs, fits, _ = finished
    rows = collect(jobs, fits, splits)
    assert list(rows.predictions.columns) == ["y", "p", "group", *METHODS]
    values = rows.predictions[list(METHODS)].to_numpy()
    assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_allclose(
        rows.predictions["p"], np.minimum(rows.predictions["group"] / 100, 1), atol=1e-6
    )


def test_rows_are_what_their_names_say(finished, splits):
    jobs, fits, _ = finished
    predictions = collect(jobs, fits, splits).predictions
    ce = fits[jobs["ce"][0]]
    probability = lambda logits: logits.double().softmax(1)[:, 1].numpy()  # noqa: E731
    np.testing.assert_array_equal(predictions["ce"], probability(ce.logits["best_test"]))
    np.testing.assert_array_equal(predictions["ce_overfit"], probability(ce.logits["last_test"]))
    resampled = fits[jobs["resampled"][0]]
    np.testing.assert_array_equal(
        predictions["resampled"], probability(resampled.logits["last_test"])
    )
    members = [probability(fits[job].logits["best_test"]) for job in jobs["ensemble"]]
    np.testing.assert_allclose(predictions["ensemble"], np.mean(members, 0))
    scaled = TemperatureScaling().fit(ce.logits["best_val"].double().numpy(), splits.val.outcomes)
    expected = scaled.predict_proba(ce.logits["best_test"].double().numpy())[:, 1]
    np.testing.assert_allclose(predictions["temperature"], expected)


def test_validation_chooses_among_candidates(splits, tmp_path):
    profile = make_profile("smoke", images=120, epochs=2, gammas=(0.5, 4.0))
    jobs = planner.plan(["focal"], profile)
    fits = experiment.run_jobs(jobs["focal"], splits, tmp_path, "cpu", workers=1, progress=False)
    rows = collect(jobs, fits, splits)
    best = min(jobs["focal"], key=lambda job: fits[job].history[fits[job].best_epoch]["val_ce"])
    assert rows.chosen.query("chosen")["strength"].tolist() == [best.strength]
    assert len(rows.chosen) == 2


def test_finished_work_is_not_done_again(finished, splits, monkeypatch):
    jobs, fits, folder = finished

    def fail(*args):
        raise AssertionError("this training was finished")

    monkeypatch.setattr(experiment, "_run_job", fail)
    again = experiment.run_jobs(jobs["mmce"], splits, folder, "cpu", workers=1, progress=False)
    for job in jobs["mmce"]:
        assert torch.equal(again[job].logits["best_test"], fits[job].logits["best_test"])


def test_one_worker_or_two_the_same_numbers(finished, splits, tmp_path):
    jobs, fits, _ = finished
    job = jobs["cape_kernel"][0]
    alone = experiment.run_jobs([job], splits, tmp_path, "cpu", workers=1, progress=False)[job]
    assert torch.equal(alone.logits["best_test"], fits[job].logits["best_test"])
    assert not list(tmp_path.glob("*.partial")) and len(list(tmp_path.iterdir())) == 2


def test_tables_survive_a_round_trip(finished, splits, tmp_path):
    jobs, fits, _ = finished
    rows = collect(jobs, fits, splits)
    write_rows(tmp_path / "run", rows)
    back = read_rows(tmp_path / "run")
    for name in ("predictions", "chosen", "epochs"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(rows, name))
    assert {"fit", "epoch", "mse_p", "kl_p", "ece", "brier"} <= set(back.epochs.columns)
    with pytest.raises(FileNotFoundError, match=r"predictions\.parquet is missing"):
        read_rows(tmp_path / "nowhere")


def test_data_of_ones_own_without_probabilities(tmp_path):
    """What a researcher brings: images, outcomes, and nothing else."""

    def part(n, seed):
        rng = np.random.default_rng(seed)
        y = torch.tensor(rng.integers(0, 2, n), dtype=torch.float32)
        images = rng.integers(0, 200, (n, 1, 16, 20)) + 50 * y.numpy()[:, None, None, None]
        return ProbabilityData(torch.tensor(images, dtype=torch.uint8), y)

    own = Splits(part(60, 0), part(30, 1), part(30, 2), "grey images, three folders")
    jobs = planner.plan(["ce", "platt", "cape_bin"], SMALL)
    everything = [job for row in jobs.values() for job in row]
    fits = experiment.run_jobs(everything, own, tmp_path, "cpu", workers=1, progress=False)
    table = collect(jobs, fits, own).predictions
    assert list(table.columns) == ["y", "ce", "platt", "cape_bin"] and len(table) == 30
    with pytest.raises(ValueError, match="probabilities"):
        jobs = planner.plan(["resampled"], SMALL)["resampled"]
        experiment.run_jobs(jobs, own, tmp_path, "cpu", workers=1, progress=False)


def test_an_altered_recipe_gets_a_folder_of_its_own():
    base = PROFILES["quick"]
    name = run_directory("r", "linear", "drawn", "quick", base, base, 0).name
    assert name == "linear-drawn-quick-seed0"
    altered = run_directory(
        "r", "linear", "drawn", "quick", make_profile("quick", epochs=3), base, 0
    )
    assert altered.name.startswith(name + "-")


def test_profiles_and_methods_reject_what_they_do_not_know():
    with pytest.raises(ValueError, match="profile must be one of smoke, quick, cpu, paper"):
        make_profile("big")
    with pytest.raises(ValueError, match=r"override.*Did you mean 'epochs'"):
        make_profile("quick", epoch=3)
    with pytest.raises(ValueError, match="epochs must be an integer of at least 1; got 0"):
        make_profile("quick", epochs=0)
    with pytest.raises(ValueError, match="sigmas must be a finite number"):
        make_profile("quick", sigmas=0.0)
    with pytest.raises(ValueError, match=r"methods must be one of.*Did you mean 'platt'"):
        check_methods("plat")


def test_the_store_reads_only_what_it_wrote(tmp_path):
    store.save(tmp_path / "a", {"x": torch.arange(3)}, {"loss": float("inf")})
    tensors, meta = store.load(tmp_path / "a")
    assert tensors["x"].tolist() == [0, 1, 2] and meta == {"loss": float("inf")}
    with pytest.raises(FileNotFoundError, match="does not exist"):
        store.load(tmp_path / "b")
    (tmp_path / "b").write_bytes(b"not safetensors at all")
    with pytest.raises(ValueError, match="written by probnb"):
        store.load(tmp_path / "b")
    with pytest.raises(RuntimeError):
        store.replace_file(tmp_path / "c", half)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def half(path):
    path.write_text("half")
    raise RuntimeError("killed while writing")
