import ast
import importlib
import json
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from probnb import store
from probnb.calibrators import CALIBRATORS, HistogramBinning, TemperatureScaling
from probnb.data import ProbabilityData, Splits
from probnb.data.base import Mirror, Shift
from probnb.experiment import plan as planner
from probnb.experiment import run as experiment
from probnb.experiment.profiles import PROFILES, make_profile
from probnb.experiment.results import collect, on_test, read_results, write_results
from probnb.methods import METHODS, PAPER, Method, check_methods
from probnb.metrics import METRICS, bootstrap
from probnb.metrics.registry import Metric
from probnb.store import fingerprint
from probnb.training.cape import Calibrated
from probnb.training.loop import Recipe
from probnb.training.losses import CrossEntropy
from probnb.training.models import network
from probnb.training.targets import Observed, Resampled
from probnb_book.data.faces import load_faces
from probnb_book.evidence import comparison_table

from ..made import write_files

IMAGES = [name for name in METHODS if METHODS[name].kind != "pretrained"]
SMALL = make_profile("smoke", images=120, size=16, width=4, epochs=2, patience=1)


def tiny(methods, profile=SMALL):
    """Trainings of a network that takes no time."""
    return planner.plan(methods, profile, network=network(Pooled))


@pytest.fixture(scope="module")
def splits():
    return load_faces("linear", size=16, n=120, seed=0)


@pytest.fixture(scope="module")
def finished(splits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    jobs = tiny(IMAGES)
    fits = experiment.run_jobs(jobs, splits, folder, device="cpu", workers=2, progress=False)
    return jobs, fits, folder


@pytest.fixture(scope="module")
def results(finished, splits):
    return collect(*finished[:2], splits)


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
    assert jobs["resampled"][0].targets == Resampled()
    endless = [name for name in ("resampled", "ce", "focal") if not jobs[name][0].recipe.patience]
    assert endless == ["resampled", "ce"]  # these train all epochs
    for name in ("loss", "targets"):
        with pytest.raises(ValueError, match=f"{name} must be one of"):
            Method("x", "extension", **{name: "nothing"})


CONVEX = {"recipe": {"solver": "convex"}}


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
        ({"loss": 3}, "loss must be one of"),
        ({**CONVEX, "loss": "focal", "grid": {"focal": (5.0,)}}, "no use for loss='focal'"),
        ({**CONVEX, "targets": "bin"}, "no use for targets='bin'"),
        ({**CONVEX, "targets": "running"}, "no use for targets='running'"),
        ({**CONVEX, "members": 5}, "no use for members=5"),
        ({**CONVEX, "start": "ce"}, "no use for start='ce'"),
        (
            {**CONVEX, "targets": "taught", "teachers": "ce", "grid": {"share": (-0.5,)}},
            "no use for grid={'share'",
        ),
        ({"recipe": {"solver": "convex", "averaging": 0.9}}, "averaging must be 0.0 with solver"),
        ({"recipe": {"solver": "convex", "patience": 3}}, "patience must be None with solver"),
        ({"recipe": {"solver": "Convex"}}, "solver must be one of"),
        ({"recipe": {"averaging": 2}}, "averaging must be a finite number"),
        ({"recipe": {"epochs": 0}}, "epochs must be an integer"),
        ({"targets": "taught", "teachers": "ce", "repeats": 3}, "repeats must be 1 without folds"),
        ({"repeats": 2}, "repeats must be 1 without folds"),
        ({"targets": "bin", "grid": {"mix": (1.0,), "every": (2,)}}, "mix beside every or phase"),
    ],
)
def test_what_cannot_be_combined_is_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Method(**{"label": "x", "kind": "extension", **fields})


def test_without_known_probabilities_no_labels_are_resampled():
    assert "resampled" not in check_methods(None, known=False)
    assert check_methods(None) == list(PAPER)
    with pytest.raises(ValueError, match="ground-truth probabilities"):
        check_methods("resampled", known=False)


GOLDEN = {
    "resampled": ["3ce0889f43cbd32d"],
    "ce": ["269f703b275a8fb5"],
    "focal": ["5810c7d2c8616225", "7d2ab604b2cbc448"],
    "entropy": ["81a35f2bb844c65a", "ce168dbca302b39d"],
    "mmce": ["333cf8791a27338f", "12008f9db959fa68"],
    "ensemble": ["269f703b275a8fb5", "e946e8552ad268eb", "f11a81f6ffd68e99"],
    "ce_finetuned": ["716dcd70c296476d", "f5182bf99d2c484e"],
    "cape_bin": ["c908849cb0030b5e", "0d9ea63f7db9fbe1", "4392dcf76411ffe6", "33b6602f8a0f8a08"],
    "cape_kernel": ["6c50383014da9054", "04a7f5db82fa72d9"],
    "crossfit": ["4bddf41744c09ff5"],
    "self_distilled": ["9e01f40c42a15db1", "bdfc1ed58499d8e7"],
}
"""Keys of some trainings: hours of work may lie under them."""


def golden_data():
    part = ProbabilityData(torch.zeros(4, 3, 8, 8), [0, 1, 0, 1])
    return Splits(part, part, part, "zeros")


def golden_keys(name):
    return [
        planner.job_key(job, golden_data()) for job in planner.plan([name], PROFILES["cpu"])[name]
    ]


@pytest.mark.parametrize("name", GOLDEN)
def test_keys_survive(name):
    assert golden_keys(name) == GOLDEN[name]


@dataclass(frozen=True)
class Grown(Recipe):
    """A recipe with a field that was not there when the first trainings were stored."""

    warmup: int = field(default=0, metadata={"later": True})


def test_a_new_field_at_its_default_changes_no_key():
    (job,) = planner.plan(["ce"], SMALL)["ce"]
    old = {f.name: getattr(job.recipe, f.name) for f in fields(job.recipe)}
    key = lambda recipe: planner.job_key(replace(job, recipe=recipe), golden_data())  # noqa: E731
    assert key(Grown(**old)) == key(job.recipe) != key(Grown(**old, warmup=2))


def test_what_has_settings_that_no_key_can_hold_is_refused():
    (job,) = planner.plan(["ce"], SMALL)["ce"]

    def scaled(by):
        return lambda logits, targets, weights=None: by * CrossEntropy()(logits, targets, weights)

    for loss in (scaled(2), partial(CrossEntropy(), weights=None), nn.MSELoss()):
        with pytest.raises(ValueError, match="must be a plain function or a frozen dataclass"):
            planner.job_key(replace(job, loss=loss), golden_data())


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
    key = planner.job_key(job, splits)
    moved = [(Mirror(),), (Shift(2),), (Mirror(), Shift(2)), (Mirror(), Shift(3))]
    moved = [replace(splits, train=replace(splits.train, augment=steps)) for steps in moved]
    assert key == planner.job_key(planner.plan(["ce"], SMALL)["ce"][0], splits)
    assert key == planner.job_key(job, replace(splits, source="other words for the same data"))
    other = {
        *(planner.job_key(job, data) for data in (golden_data(), *moved)),
        planner.job_key(job, splits, precision="32-true"),
        planner.job_key(planner.plan(["ce"], SMALL, seed=1)["ce"][0], splits),
        planner.job_key(planner.plan(["resampled"], SMALL)["resampled"][0], splits),
        *(planner.job_key(j, splits) for j in planner.plan(["cape_bin"], SMALL)["cape_bin"]),
        *(planner.job_key(j, splits) for j in planner.plan(["cape_kernel"], SMALL)["cape_kernel"]),
    }
    assert key not in other and len(other) == 10


def exchanged(splits):
    """The same words about other data."""
    test = splits.test
    return replace(splits, test=test.take(np.arange(len(test))[::-1]))


def test_stored_logits_are_those_of_their_rows(finished, splits):
    jobs, _, folder = finished
    for job in jobs["ce"]:
        path = experiment.stored_path(job, splits, folder)
        assert experiment.load_fit(path, splits).val_ce
        assert not experiment.stored_path(job, exchanged(splits), folder).exists()
        with pytest.raises(ValueError, match="logits of other rows"):
            experiment.load_fit(path, exchanged(splits))


def test_every_row_has_predictions(results, splits):
    table = results.predictions
    assert list(table.columns) == ["split", "id", "y", "p", "group", *IMAGES]
    values = table[IMAGES].to_numpy()
    assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_allclose(table["p"], np.minimum(table["group"] / 100, 1), atol=1e-6)
    assert table["split"].value_counts().to_dict() == {
        "val": len(splits.val),
        "test": len(splits.test),
    }
    np.testing.assert_array_equal(on_test(table)["id"], splits.test.ids)
    np.testing.assert_array_equal(on_test(table)["y"], splits.test.outcomes)


def test_rows_are_what_their_names_say(finished, results, splits):
    jobs, fits, _ = finished
    predictions = on_test(results.predictions)
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
    jobs = tiny(["focal"], replace(SMALL, grid={"focal": (0.5, 4.0)}))
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
    with pytest.warns(UserWarning, match="other code"):  # the function put in place above
        again = experiment.run_jobs(jobs["mmce"], splits, folder, "cpu", workers=1, progress=False)
    for job in jobs["mmce"]:
        assert torch.equal(again[job].logits["best_test"], fits[job].logits["best_test"])


def test_one_worker_or_two_the_same_numbers(finished, splits, tmp_path):
    jobs, fits, _ = finished
    job = jobs["cape_kernel"][0]
    alone = experiment.run_jobs([job], splits, tmp_path, "cpu", workers=1, progress=False)[job]
    assert torch.equal(alone.logits["best_test"], fits[job].logits["best_test"])
    assert not list(tmp_path.glob("*.partial")) and len(list(tmp_path.glob("*.safetensors"))) == 2


def store_run(folder, results, **facts):
    known = {"task": "linear", "data": "drawn", "profile": "smoke", "seed": 0, "settings": SMALL}
    return write_results(folder / "synthetic", results, **{**known, **facts})


def test_a_run_survives_a_round_trip_with_its_record(results, splits, tmp_path):
    run = store_run(tmp_path, results, source=splits.source)
    back = read_results(run)
    for name in ("predictions", "chosen", "epochs"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(results, name))
    assert {"fit", "epoch", "mse_p", "kl_p", "ece", "brier", "bias"} <= set(back.epochs.columns)
    record = json.loads((run.directory / "run.json").read_text())
    assert record == json.loads(json.dumps(run.record))
    assert record["source"] == splits.source and record["settings"]["epochs"] == SMALL.epochs
    assert record["trained_by_other_code"] == [] and record["cpu_seconds"] > 0
    assert {"version", "commit", "date", "processor"} <= set(record)
    with pytest.raises(FileNotFoundError, match=r"predictions\.parquet"):
        read_results(tmp_path / "nowhere")


def test_whatever_changes_a_run_changes_its_name(results, tmp_path):
    plain = store_run(tmp_path, results, settings=PROFILES["smoke"])
    assert plain.directory.name == "linear-drawn-smoke-seed0" and not plain.record["altered"]
    names = {plain.directory.name}
    own = {"rows": {"ce": {"recipe": {"schedule": "cosine"}}}}
    for made, facts in (
        (results.made, {"settings": SMALL}),
        (results.made, {"settings": replace(SMALL, grid={"bins": (7,)})}),
        (results.made, {"mirror": True}),
        (results.made | {"augment": [["Mirror", {}]]}, {}),
        (results.made | {"augment": [["Shift", {"pixels": 2}]]}, {}),
        (results.made | own, {}),
        (results.made, {"changed": {"tile": 63}}),
        (results.made, {"changed": {"tile": 63}, "mirror": True}),
    ):
        facts = {"settings": PROFILES["smoke"]} | facts
        run = store_run(tmp_path, replace(results, made=made), **facts)
        assert run.record["altered"] and run.directory.name not in names and "altered" in str(run)
        names.add(run.directory.name)
    assert len({path.parent for path in tmp_path.glob("synthetic/*/run.json")}) == 9


def test_rows_and_augmentation_of_ones_own_are_known(finished, splits):
    jobs, fits, _ = finished
    made = collect({"ce": jobs["ce"]}, fits, splits).made
    assert set(made) == {"digest"}
    turned = replace(splits, train=replace(splits.train, augment=(Mirror(),)))
    mine = {"ce": replace(METHODS["ce"], recipe={"averaging": 0.9})}
    made = collect({"ce": jobs["ce"]}, fits, turned, mine).made
    assert made["augment"] == [["Mirror", {}]] and made["rows"]["ce"]["recipe"] == {
        "averaging": 0.9
    }


def test_a_run_never_replaces_another_one(finished, results, splits, tmp_path):
    facts = {"settings": PROFILES["smoke"], "source": "a text"}
    first = store_run(tmp_path, results, **facts)
    again = store_run(tmp_path, results, **facts)
    assert again.directory == first.directory  # the same one, made again
    jobs, fits, _ = finished
    fewer = collect({k: jobs[k] for k in ("ce", "platt")}, fits, splits)
    data = replace(results, made={"digest": "0" * 64})
    for other, change, words in (
        (fewer, {}, "more rows"),
        (data, {}, "other digest"),
        (results, {"source": "another"}, "other source"),
    ):
        with pytest.warns(UserWarning, match=words):
            run = store_run(tmp_path, other, **facts | change)
        assert run.directory != first.directory and run.record["altered"]
    assert list(read_results(first).predictions) == list(results.predictions)
    store_run(tmp_path / "c", fewer, **facts)
    more = store_run(tmp_path / "c", results, **facts)  # more rows may replace fewer
    assert more.directory.name == first.directory.name
    assert set(more.record["methods"]) > {"ce", "platt"}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("big", {}, "profile must be one of smoke, quick, features, finetune, cpu, paper"),
        ("quick", {"epoch": 3}, r"override.*Did you mean 'epochs'"),
        ("quick", {"epochs": 0}, "epochs must be an integer of at least 1; got 0"),
        ("quick", {"sigma": 0.0}, "sigma must be a finite number"),
        ("quick", {"images": (3, 4)}, "images must be a number, or three"),
        ("quick", {"layers": "last"}, "layers is of use with a backbone alone; got 'last'"),
        ("quick", {"dropout": 0.3}, "dropout is of use with a backbone alone; got 0.3"),
        ("features", {"stem": "large"}, "stem is of use with random weights alone; got 'large'"),
    ],
)
def test_profiles_reject_what_they_do_not_know(name, changes, message):
    with pytest.raises(ValueError, match=message):
        make_profile(name, **changes)


def test_profiles_take_what_they_know():
    assert make_profile("features", layers="last", dropout=0.3).dropout == 0.3
    assert make_profile("features", stem="large", backbone="none").stem == "large"
    assert make_profile("cpu", bins=[5, 15], focal=2).grid == {"bins": (5, 15), "focal": (2,)}
    with pytest.raises(ValueError, match=r"methods must be one of.*Did you mean 'platt'"):
        check_methods("plat")


def test_a_damaged_file_is_set_aside_and_its_work_done_again(splits, tmp_path):
    (job,) = tiny(["ce"])["ce"]
    run = lambda: experiment.run_jobs([job], splits, tmp_path, "cpu", 1, progress=False)[job]  # noqa: E731
    first = run()
    path = experiment.stored_path(job, splits, tmp_path)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-9] + b"12345" + whole[-4:]):
        path.write_bytes(damaged)
        with pytest.warns(UserWarning, match="damaged and was set aside"):
            again = run()
        assert torch.equal(first.logits["last_test"], again.logits["last_test"])
    work = {job: experiment.Work(path, fingerprint(job))}
    experiment._unfinished(job, work).write_bytes(whole[:100])
    path.unlink()
    with pytest.warns(UserWarning, match="damaged and was set aside"):
        assert torch.equal(first.logits["last_test"], run().logits["last_test"])


FILES = sorted(
    str(path.relative_to(store.ROOT))
    for pattern in store.TRAINS
    for path in store.ROOT.glob(pattern)
)
assert {"training/loop.py", "data/inputs.py", "pretrained/logistic.py"} <= set(FILES)


def replaced(text, number, body):
    """The source with a statement put before those of one of its functions, or the docstring."""
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    if functions:
        functions[number % len(functions)].body.insert(0, ast.parse(body).body[0])
    else:
        tree.body.append(ast.parse(f"x = 1 if {body!r} != 'pass' else 2").body[0])
    return ast.unparse(tree)


@pytest.mark.parametrize("name", FILES)
def test_whatever_trains_is_part_of_the_fingerprint(tmp_path, name):
    """The first and the last function of every file replaced in a copy: noticed each time."""
    (job,) = planner.plan(["cape_bin"], SMALL)["cape_bin"]
    write_files(tmp_path, {name: (store.ROOT / name).read_bytes() for name in FILES})
    before = fingerprint(job, root=tmp_path)
    assert before == fingerprint(job)
    text = (tmp_path / name).read_text()
    count = sum(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(text)))
    for number in {0, max(count - 1, 0)}:
        store._files.cache_clear()
        (tmp_path / name).write_text(replaced(text, number, "return None"))
        assert fingerprint(job, root=tmp_path) != before, number
    for harmless in (f"# why\n{text}", f"{text}\n'Says.'\n"):
        store._files.cache_clear()
        (tmp_path / name).write_text(harmless)
        assert fingerprint(job, root=tmp_path) == before
    store._files.cache_clear()


@pytest.fixture
def other_code(monkeypatch):
    """Makes the code that trains look like another version's."""

    def change(version):
        monkeypatch.setattr(store, "_files", lambda patterns, root: version)

    return change


def test_what_other_code_has_trained_is_not_read_in_silence(splits, tmp_path, other_code):
    jobs = tiny(["ce", "cape_bin"])
    run = lambda **kw: experiment.run_jobs(jobs, splits, tmp_path, "cpu", 1, progress=False, **kw)  # noqa: E731
    first = run()
    assert collect(jobs, first, splits).foreign == ()
    made = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    other_code("two bins")
    with pytest.warns(UserWarning, match=r"2 of 2 trainings .*trained by other code"):
        stale = run()
    assert collect(jobs, stale, splits).foreign == (
        "ce",
        "cape_bin finetune_learning_rate=0.01 bins=5",
    )
    assert made == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    run(retrain=True)
    again = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    assert all(again[path] > made[path] for path in made) and len(again) == 2
    assert collect(jobs, run(), splits).foreign == ()


def test_what_rests_on_a_start_of_other_numbers_is_made_anew(splits, tmp_path):
    """A start that is trained again and comes out otherwise takes its fine-tuning with it."""
    jobs = tiny(["ce", "cape_bin"])
    run = lambda **kw: experiment.run_jobs(jobs, splits, tmp_path, "cpu", 1, progress=False, **kw)  # noqa: E731
    fits, (start,), (tuned,) = run(), jobs["ce"], jobs["cape_bin"]
    path = experiment.stored_path(start, splits, tmp_path)
    whole = path.read_bytes()
    path.unlink()
    before = experiment.stored_path(tuned, splits, tmp_path).stat().st_mtime_ns
    run()  # to the same numbers, so that what rests on it stands
    assert experiment.stored_path(tuned, splits, tmp_path).stat().st_mtime_ns == before
    tensors, meta = store.load(path)
    other = {k: v * 0.9 if v.is_floating_point() else v for k, v in tensors.items()}
    store.save(path, other, {k: v for k, v in meta.items() if k != "sha256"})
    with pytest.warns(UserWarning, match=r"1 of 2 trainings \(CaPE \(bin\)\)"):
        stale = run()
    assert stale[tuned].stale and not stale[start].stale
    fresh = run(retrain=True)
    assert not fresh[tuned].stale
    assert not torch.equal(fresh[tuned].logits["last_test"], fits[tuned].logits["last_test"])
    path.write_bytes(whole)


def test_a_state_that_other_code_has_left_is_not_taken_up(
    splits, tmp_path, other_code, monkeypatch
):
    (job,) = tiny(["ce"])["ce"]

    epochs, fit = [], experiment.TRAINERS["sgd"]

    def interrupted(*args, on_epoch=None, **settings):
        def once(record):
            epochs.append(record["epoch"])
            if len(epochs) == 1:
                raise KeyboardInterrupt

        return fit(*args, on_epoch=once, **settings)

    monkeypatch.setitem(experiment.TRAINERS, "sgd", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiment.run_jobs([job], splits, tmp_path, "cpu", 1, progress=False)
    assert len(list(tmp_path.glob("*.partial"))) == 1
    other_code("another optimiser")
    experiment.run_jobs([job], splits, tmp_path, "cpu", 1, progress=False)
    assert epochs == [1, 1, 2]
    assert not list(tmp_path.glob("*.partial"))


HELPED = """
from dataclasses import dataclass

def helper(x):
    return x.pow({power})

@dataclass(frozen=True)
class Helped:
    weight: float = 1.0

    def __call__(self, logits, targets, weights=None):
        return helper(logits[:, 1] - targets).mean()
"""


@pytest.mark.parametrize(
    "place",
    [
        "probnb.training.losses.Focal.__call__",
        "probnb.training.losses._columns",
        "probnb.training.loop.train_one_epoch",
        "probnb.training.loop._check_model",  # decorated
        "probnb.training.cape.p_emp_bin",
        "probnb.training.batches.cut",
        "probnb.data.base.ProbabilityData.batch",
    ],
)
def test_what_is_replaced_in_memory_is_part_of_the_fingerprint(place, monkeypatch):
    (job,) = planner.plan(["ce"], make_profile("smoke"))["ce"]
    before = fingerprint(job)
    with monkeypatch.context() as patch:
        patch.setattr(place, lambda *args, **settings: None)
        assert fingerprint(job) != before
    assert fingerprint(job) == before


@pytest.mark.parametrize("what", ["loss", "targets", "network", "augment"])
def test_code_of_ones_own_is_part_of_the_fingerprint(tmp_path, monkeypatch, what):
    """With all of the file that it is in: what it calls there trains too."""
    (job,) = planner.plan(["ce"], SMALL)["ce"]
    monkeypatch.syspath_prepend(tmp_path)
    seen = {}
    for name, power in (("one", 2), ("two", 4), ("three", 2)):
        (tmp_path / f"mine_{name}.py").write_text(HELPED.replace("{power}", str(power)))
        kind = importlib.import_module(f"mine_{name}").Helped
        value = network(kind, weight=2.0) if what == "network" else kind()
        mine = job if what == "augment" else replace(job, **{what: value})
        seen[name] = fingerprint(mine, (value,) if what == "augment" else ())
    assert seen["one"] == seen["three"] != seen["two"]
    assert fingerprint(job) not in seen.values()


def test_settings_of_ones_own_loss_are_in_the_key_and_not_in_the_fingerprint():
    (job,) = planner.plan(["ce"], SMALL)["ce"]
    assert fingerprint(replace(job, loss=Squared())) == fingerprint(replace(job, loss=Squared(3.0)))


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
    jobs = tiny(check_methods("mine"))
    fits = experiment.run_jobs(jobs, splits, tmp_path, "cpu", workers=1, progress=False)
    table = on_test(collect(jobs, fits, splits).predictions)
    result = bootstrap(table["y"], table[["ce", "mine"]], table["p"], 20, progress=False)
    page = comparison_table(result, "linear")
    assert list(page.index) == ["CE early-stop", "Squared error"]
    assert page.loc["CE early-stop", ("MSE_p", "paper")].split() == ["4.21", "±", "0.15"]
    assert ("AUC", "paper") not in page.columns  # the paper has none for this scenario
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
    fits = experiment.run_jobs(jobs, maps, tmp_path, "cpu", workers=1, progress=False)
    table = on_test(collect(jobs, fits, maps).predictions)
    assert list(table.columns) == ["split", "id", "y", "weight", "group", "ce", "platt", "cape_bin"]
    assert set(table["group"]) == {"2018-05-10", "2018-05-11", "2018-05-12", "2018-05-13"}


class Tied(torch.nn.Module):
    """Two layers of the same weights, as a network of one's own may have."""

    def __init__(self, in_channels=3):
        super().__init__()
        self.first, self.second = torch.nn.Linear(48, 48), torch.nn.Linear(48, 48)
        self.second.weight = self.first.weight
        self.head = torch.nn.Linear(48, 2)

    def forward(self, x):
        x = torch.nn.functional.adaptive_avg_pool2d(x, 4).flatten(1)
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))


def test_tied_weights_are_trained_and_kept(splits, tmp_path):
    """They ended every training after its first epoch, when the checkpoint was written."""
    jobs = planner.plan(["ce", "ce_finetuned"], SMALL, network=network(Tied))
    fits = experiment.run_jobs(jobs, splits, tmp_path, device="cpu", workers=1, progress=False)
    for fit in fits.values():
        assert torch.equal(fit.weights["first.weight"], fit.weights["second.weight"])
        net = Tied()
        net.load_state_dict(fit.weights)
        assert net.second.weight is net.first.weight
