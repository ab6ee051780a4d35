import json
import linecache
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from probnb import store
from probnb.calibrators import CALIBRATORS, HistogramBinning, TemperatureScaling
from probnb.data import ProbabilityData, Splits
from probnb.data.augment import Mirror, Shift
from probnb.data.faces import load_faces
from probnb.experiment import plan as planner
from probnb.experiment import run as experiment
from probnb.experiment.profiles import PROFILES, make_profile
from probnb.experiment.provenance import fingerprint
from probnb.experiment.results import collect, find_runs, on_test, read_results, write_results
from probnb.experiment.summary import comparison_table
from probnb.methods import METHODS, PAPER, Method, check_methods
from probnb.metrics import METRICS, bootstrap
from probnb.metrics.registry import Metric
from probnb.training.losses import CrossEntropy, Focal
from probnb.training.models import network
from probnb.training.targets import Calibrated, Observed, Resampled

SMALL = make_profile("smoke", images=120, epochs=2, patience=1)


@pytest.fixture(scope="module")
def splits():
    return load_faces("linear", size=32, n=120, seed=0)


@pytest.fixture(scope="module")
def finished(splits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    jobs = planner.plan(METHODS, SMALL)
    fits = experiment.run_jobs(jobs, splits, folder, device="cpu", workers=2, progress=False)
    return jobs, fits, folder


def test_rows_share_fits_and_grids_multiply_them():
    jobs = planner.plan(PAPER, make_profile("cpu", members=5, bins=(5, 10, 15), sigma=(0.05, 0.1)))
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
        assert {j.targets.bins for j in same} == {5, 15}
        assert all(isinstance(j.targets, Calibrated) and j.start == control.start for j in same)


def test_each_field_of_a_method_acts_on_its_own():
    """What the first version dropped in silence: targets without a start, losses with one."""
    jobs = planner.plan(METHODS, make_profile("cpu", members=5, candidates=1))
    (job,) = jobs["beginning_bin"]
    assert job.start is None and isinstance(job.targets, Calibrated) and job.recipe.patience == 5
    (job,) = jobs["weighted_sum"]
    assert job.start == jobs["ce"][0] and job.targets.mix == 1.0
    members = jobs["cape_ensemble"]
    assert len(members) == 5 and len({m.start for m in members}) == 5
    assert [m.start.init_seed for m in members] == [m.init_seed for m in jobs["ensemble"]]
    assert all(isinstance(m.targets, Calibrated) for m in members)
    assert jobs["focal_platt"] == jobs["focal"] and jobs["focal"][0].loss == "focal"
    for name in ("loss", "targets"):
        with pytest.raises(ValueError, match=f"{name} must be one of"):
            Method("x", "extension", **{name: "nothing"})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"grid": {"bins": (5,)}}, "grid may have nothing"),
        ({"grid": {"focal": (1.0,)}, "loss": "mmce"}, "grid may have mmce"),
        ({"grid": {"finetune_learning_rate": (0.1,)}}, "grid may have nothing"),
        ({"targets": "kernel", "grid": {"bins": (5,)}}, "got 'bins'"),
        ({"targets": "bin", "grid": {"bins": 5}}, "tuple of values"),
        ({"start": "ensemble"}, "one network's"),
        ({"start": "platt"}, "one network's"),
        ({"start": "ce", "targets": "resampled"}, "start must be None"),
        ({"start": "no row"}, "start must be one of"),
        ({"members": 0}, "members must be"),
        ({"kind": "good"}, "kind must be one of"),
        ({"loss": 3}, "loss must be a name or callable"),
    ],
)
def test_what_cannot_be_combined_is_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Method(**{"label": "x", "kind": "extension", **fields})


def test_resampled_labels_and_overfitting_train_all_epochs():
    jobs = planner.plan(["resampled", "ce", "focal"], PROFILES["cpu"])
    assert jobs["resampled"][0].recipe.patience is None
    assert jobs["resampled"][0].targets == Resampled()
    assert jobs["ce"][0].recipe.patience is None
    assert jobs["focal"][0].recipe.patience == PROFILES["cpu"].patience


def test_without_known_probabilities_no_labels_are_resampled():
    assert "resampled" not in check_methods(None, known=False)
    assert check_methods(None) == list(PAPER)
    with pytest.raises(ValueError, match="ground-truth probabilities"):
        check_methods("resampled", known=False)


GOLDEN = {
    "resampled": ["fcdc763a4103b306"],
    "ce": ["c745d0e55c21dd6f"],
    "focal": ["27a264b2c20262ca", "dbd8fea5456c66e6"],
    "entropy": ["6d1f39f82ce32216", "0a3350455c32d6e7"],
    "mmce": ["8536797f46e2f49b", "b390d6e65f6c196b"],
    "ensemble": [
        "c745d0e55c21dd6f",
        "e411f762e1511f64",
        "c746ee2691d1ab6b",
        "70274b25bb44f55a",
        "fe6a78b8dfb503d3",
    ],
    "ce_finetuned": ["6821a106b8c53cbd", "36a211e96817f592"],
    "cape_bin": ["33e0bf2b0f56cc51", "308365311e8cefe7", "06fc11a4c79d6083", "4ffc98d3e497be83"],
    "cape_kernel": ["8efe7d5508026844", "04950c10b9587e9a"],
}
"""Keys of version 0.1 for UTKFace, Linear, 48 pixels: hours of training lie under them."""


def test_keys_survive():
    part = ProbabilityData(torch.zeros(4, 3, 8, 8), [0, 1, 0, 1], augment=(Mirror(),))
    data = Splits(part, part, part, "utkface sha256=abc scenario=linear size=48 n=23708 seed=0")
    profile = make_profile(
        "cpu", width=16, epochs=60, patience=8, members=5, cape="printed",
        finetune_schedule="cosine",
        finetune_epochs=8, focal=(1.0, 2.0),
        entropy=(0.3, 1.0), mmce=(1.0, 3.0), bins=(5, 15), sigma=0.05,
        finetune_learning_rate=(1e-2, 1e-3),
    )  # fmt: skip
    jobs = planner.plan(GOLDEN, profile)
    for name, keys in GOLDEN.items():
        # Members and fine-tunings had other seeds: what lies under those keys is taken over.
        assert [planner.job_key(planner.legacy(job), data) for job in jobs[name]] == keys
        if name not in ("ensemble", "ce_finetuned", "cape_bin", "cape_kernel"):
            assert [planner.job_key(job, data) for job in jobs[name]] == keys
    plain = replace(data, train=replace(part, augment=()))
    shifted = replace(data, train=replace(part, augment=(Mirror(), Shift(2))))
    (job,) = jobs["ce"]
    assert len({planner.job_key(job, d) for d in (data, plain, shifted)}) == 3
    assert planner.job_key(job, plain) == planner.job_key(job, data.source)


def test_members_trained_by_the_first_version_are_taken_over(splits, tmp_path):
    job = planner.plan(["ensemble"], SMALL)["ensemble"][1]
    old = planner.legacy(job)
    before = experiment.run_jobs([old], splits, tmp_path, "cpu", workers=1, progress=False)[old]
    after = experiment.run_jobs([job], splits, tmp_path, "cpu", workers=1, progress=False)[job]
    assert old != job and torch.equal(before.logits["best_test"], after.logits["best_test"])


def test_seeds_of_members_and_stages_are_all_different():
    seeds = [planner.sub_seed(s, m, t) for s in (0, 1, 1000) for m in range(5) for t in range(3)]
    assert len(set(seeds)) == len(seeds)
    assert planner.sub_seed(7) == planner.sub_seed(7, 0, 0) == 7


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
    table = collect(jobs, fits, splits).predictions
    assert list(table.columns) == ["split", "id", "y", "p", "group", *METHODS]
    values = table[list(METHODS)].to_numpy()
    assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_allclose(table["p"], np.minimum(table["group"] / 100, 1), atol=1e-6)
    assert table["split"].value_counts().to_dict() == {
        "val": len(splits.val),
        "test": len(splits.test),
    }
    np.testing.assert_array_equal(on_test(table)["id"], splits.test.ids)
    np.testing.assert_array_equal(on_test(table)["y"], splits.test.outcomes)


def test_rows_are_what_their_names_say(finished, splits):
    jobs, fits, _ = finished
    predictions = on_test(collect(jobs, fits, splits).predictions)
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
    profile = make_profile("smoke", images=120, epochs=2, focal=(0.5, 4.0))
    jobs = planner.plan(["focal"], profile)
    fits = experiment.run_jobs(jobs["focal"], splits, tmp_path, "cpu", workers=1, progress=False)
    rows = collect(jobs, fits, splits)
    best = min(jobs["focal"], key=lambda job: fits[job].history[fits[job].best_epoch]["val_ce"])
    assert rows.chosen.query("chosen")["focal"].tolist() == [best.strength]
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
    assert not list(tmp_path.glob("*.partial")) and len(list(tmp_path.glob("*.safetensors"))) == 2


def store_run(folder, finished, splits, **facts):
    jobs, fits, _ = finished
    results = collect(jobs, fits, splits)
    known = {"task": "linear", "data": "drawn", "profile": "smoke", "seed": 0, "settings": SMALL}
    return results, write_results(folder / "synthetic", results, **{**known, **facts})


def test_a_run_survives_a_round_trip_with_its_record(finished, splits, tmp_path):
    results, run = store_run(tmp_path, finished, splits, source=splits.source)
    back = read_results(run)
    for name in ("predictions", "chosen", "epochs"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(results, name))
    assert {"fit", "epoch", "mse_p", "kl_p", "ece", "brier", "bias"} <= set(back.epochs.columns)
    record = json.loads((run.directory / "run.json").read_text())
    assert record == json.loads(json.dumps(run.record))
    assert record["source"] == splits.source and record["settings"]["epochs"] == SMALL.epochs
    assert record["trained_by_other_code"] == [] and record["cpu_seconds"] > 0
    assert {"version", "commit", "date", "processor"} <= set(record)
    with pytest.raises(FileNotFoundError, match=r"predictions\.parquet is missing"):
        read_results(tmp_path / "nowhere")


def test_runs_are_found_by_what_they_record_best_first(finished, splits, tmp_path):
    for facts in (
        {"seed": 1},
        {"profile": "cpu", "settings": PROFILES["cpu"]},
        {"profile": "cpu", "settings": PROFILES["cpu"], "data": "utkface", "seed": 3},
        {"task": "skewed"},
        {},
    ):
        store_run(tmp_path, finished, splits, **facts)
    found = find_runs([tmp_path, "nowhere"], "synthetic", task="linear")
    names = [run.directory.name.rsplit("-", 1)[0] for run in found]
    assert [run.record["data"] for run in found] == ["utkface", "drawn", "drawn", "drawn"]
    assert [run.record["seed"] for run in found] == [3, 0, 0, 1], names
    altered = [run.directory.name.count("-") == 4 for run in found]
    assert altered == [run.record["altered"] for run in found] == [False, False, True, True]
    assert str(found[0]) == "linear (UTKFace, profile cpu, seed 3)"


def test_data_of_ones_own_without_probabilities(tmp_path):
    """What a researcher brings: images, outcomes, and nothing else."""

    def part(n, seed):
        rng = np.random.default_rng(seed)
        y = torch.tensor(rng.integers(0, 2, n), dtype=torch.float32)
        images = rng.integers(0, 200, (n, 1, 16, 20)) + 50 * y.numpy()[:, None, None, None]
        return ProbabilityData(torch.tensor(images, dtype=torch.uint8), y)

    own = Splits(part(60, 0), part(30, 1), part(30, 2), "grey images, three folders")
    jobs = planner.plan(["ce", "platt", "cape_bin"], SMALL)
    fits = experiment.run_jobs(jobs, own, tmp_path, "cpu", workers=1, progress=False)
    table = on_test(collect(jobs, fits, own).predictions)
    assert list(table.columns) == ["split", "id", "y", "ce", "platt", "cape_bin"]
    assert len(table) == 30
    with pytest.raises(ValueError, match="probabilities"):
        jobs = planner.plan(["resampled"], SMALL)["resampled"]
        experiment.run_jobs(jobs, own, tmp_path, "cpu", workers=1, progress=False)


def test_profiles_and_methods_reject_what_they_do_not_know():
    with pytest.raises(ValueError, match="profile must be one of smoke, quick, cpu, paper"):
        make_profile("big")
    with pytest.raises(ValueError, match=r"override.*Did you mean 'epochs'"):
        make_profile("quick", epoch=3)
    with pytest.raises(ValueError, match="epochs must be an integer of at least 1; got 0"):
        make_profile("quick", epochs=0)
    with pytest.raises(ValueError, match="sigma must be a finite number"):
        make_profile("quick", sigma=0.0)
    with pytest.raises(ValueError, match="images must be a number, or three"):
        make_profile("quick", images=(3, 4))
    assert make_profile("cpu", bins=[5, 15], focal=2).grid == {"bins": (5, 15), "focal": (2,)}
    with pytest.raises(ValueError, match=r"methods must be one of.*Did you mean 'platt'"):
        check_methods("plat")


def test_a_damaged_file_is_set_aside_and_its_work_done_again(splits, tmp_path):
    job = planner.plan(["ce"], SMALL)["ce"][0]
    run = lambda: experiment.run_jobs([job], splits, tmp_path, "cpu", 1, progress=False)[job]  # noqa: E731
    first = run()
    path = experiment.stored_path(job, splits, tmp_path)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-9] + b"12345" + whole[-4:]):
        path.write_bytes(damaged)
        with pytest.warns(UserWarning, match="damaged and was set aside"):
            again = run()
        assert torch.equal(first.logits["last_test"], again.logits["last_test"])
    path.with_suffix(".partial").write_bytes(whole[:100])
    path.unlink()
    with pytest.warns(UserWarning, match="damaged and was set aside"):
        assert torch.equal(first.logits["last_test"], run().logits["last_test"])


def test_what_other_code_has_trained_is_not_read_in_silence(splits, tmp_path, monkeypatch):
    jobs = planner.plan(["focal"], SMALL)
    run = lambda **kw: experiment.run_jobs(jobs, splits, tmp_path, "cpu", 1, progress=False, **kw)  # noqa: E731
    first = run()
    monkeypatch.setattr(Focal, "__call__", lambda self, z, t, w=None: z.pow(2).mean())
    with pytest.warns(UserWarning, match="trained by other code"):
        stale = run()
    assert collect(jobs, stale, splits).foreign == ("focal focal=1",)
    (job,) = jobs["focal"]
    assert torch.equal(first[job].logits["last_test"], stale[job].logits["last_test"])
    anew = run(retrain=True)
    assert not torch.equal(first[job].logits["last_test"], anew[job].logits["last_test"])
    assert collect(jobs, run(), splits).foreign == ()


def test_the_fingerprint_sees_code_and_not_comments(tmp_path, monkeypatch):
    (job,) = planner.plan(["cape_bin"], SMALL)["cape_bin"]
    before = fingerprint(job)
    source = tmp_path / "changed.py"
    results = []
    for text in (
        "def __call__(self, logits, targets, weights=None):\n    return logits.sum()\n",
        "def __call__(self, logits, targets, weights=None):\n    'Says.'\n    # why\n"
        "    return logits.sum()\n",
    ):
        source.write_text(text)
        linecache.clearcache()
        space = {}
        exec(compile(text, str(source), "exec"), space)
        monkeypatch.setattr(CrossEntropy, "__call__", space["__call__"])
        results.append(fingerprint(job))
    assert before != results[0] == results[1]


@dataclass(frozen=True)
class Squared:
    """A loss of one's own."""

    power: float = 2.0

    def __call__(self, logits, targets, weights=None):
        return ((logits.softmax(1)[:, 1] - targets).abs() ** self.power).mean()


class Pooled(nn.Module):
    """A network of one's own, for single-channel maps."""

    def __init__(self, in_channels, units=4):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(in_channels, units, 3, stride=2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(units, 2),
        )

    def forward(self, x):
        return self.layers(x)


def test_a_method_is_added_in_one_place(splits, tmp_path, monkeypatch):
    mine = Method("Squared error", "extension", loss=Squared(), targets="bin", grid={"bins": (5,)})
    monkeypatch.setitem(METHODS, "mine", mine)
    jobs = planner.plan(check_methods("mine"), SMALL)
    fits = experiment.run_jobs(jobs, splits, tmp_path, "cpu", workers=2, progress=False)
    table = on_test(collect(jobs, fits, splits).predictions)
    result = bootstrap(table["y"], table[["ce", "mine"]], table["p"], 20, progress=False)
    page = comparison_table(result, "linear")
    assert list(page.index) == ["CE early-stop", "Squared error"]
    other = replace(jobs["mine"][0], loss=Squared(3.0))
    keys = {planner.job_key(job, splits) for job in (*jobs["mine"], other, *jobs["ce"])}
    assert len(keys) == 3


def absolute_error(y_true, y_prob, weights=None):
    return np.average(abs(y_prob - y_true), weights=weights)


def test_a_metric_and_a_calibrator_are_added_in_one_place(finished, splits, monkeypatch):
    jobs, fits, _ = finished
    monkeypatch.setitem(METRICS, "mae", Metric(absolute_error, "Absolute error"))
    monkeypatch.setitem(CALIBRATORS, "wide", lambda: HistogramBinning(bins=2))
    monkeypatch.setitem(METHODS, "wide", Method("Two bins", "post-processing", calibrator="wide"))
    table = on_test(collect({**jobs, "wide": jobs["ce"]}, fits, splits).predictions)
    result = bootstrap(table["y"], table[["ce", "wide"]], table["p"], 20, progress=False)
    page = comparison_table(result, "linear")
    assert ("Absolute error", "ours") in page.columns and "Two bins" in page.index
    expected = 100 * abs(table["ce"] - table["y"]).mean()
    assert page.loc["CE early-stop", ("Absolute error", "ours")].startswith(f"{expected:.2f}")
    assert table["wide"].nunique() <= 2


def test_maps_with_groups_weights_and_a_network_of_their_own(tmp_path):
    rng = np.random.default_rng(0)

    def part(n):
        y = rng.integers(0, 2, n)
        maps = (rng.random((n, 1, 9, 12)) + y[:, None, None, None]).astype(np.float32)
        days = [f"2018-05-{10 + i % 4}" for i in range(n)]
        return ProbabilityData(maps, y, groups=days, weights=rng.random(n) + 0.5, ids=range(n))

    maps = Splits(part(60), part(30), part(20), "maps of one channel")
    jobs = planner.plan(
        check_methods("cape_bin platt", known=False), SMALL, network=network(Pooled)
    )
    fits = experiment.run_jobs(jobs, maps, tmp_path, "cpu", workers=2, progress=False)
    table = on_test(collect(jobs, fits, maps).predictions)
    assert list(table.columns) == ["split", "id", "y", "weight", "group", "ce", "platt", "cape_bin"]
    assert set(table["group"]) == {"2018-05-10", "2018-05-11", "2018-05-12", "2018-05-13"}


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
