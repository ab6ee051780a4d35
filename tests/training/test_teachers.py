from dataclasses import replace

import numpy as np
import pytest
import torch

from probnb.calibrators import CALIBRATORS
from probnb.data import ProbabilityData, Splits
from probnb.experiment import run as experiment
from probnb.experiment.plan import before, job_key, lineage, plan
from probnb.experiment.profiles import make_profile
from probnb.methods import METHODS, Method
from probnb.training.batches import make_fabric, predict_logits
from probnb.training.cape import HeldOut
from probnb.training.models import network
from probnb.training.targets import RunningMean, Surroundings, Taught, left_out, teach, without

PROFILE = make_profile("smoke", epochs=3, patience=2)


def table(n, seed, groups=None):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 4)).astype(np.float32)
    p = 1 / (1 + np.exp(-2 * x[:, 0]))
    return ProbabilityData(
        torch.tensor(x), (rng.random(n) < p).astype(float), probabilities=p, groups=groups
    )


@pytest.fixture(scope="module")
def splits():
    return Splits(table(90, 0), table(60, 1), table(40, 2), "a table")


NETWORK = network("mlp", hidden=(8,))


@pytest.mark.parametrize("folds", [2, 5, 90])
def test_folds_cover_every_row_once(splits, folds):
    parts = [left_out(splits, (k, folds, 7)) for k in range(folds)]
    assert sorted(np.concatenate(parts)) == list(range(90))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    other = left_out(splits, (0, folds, 8))
    assert not np.array_equal(parts[0], other)
    for k, part in enumerate(parts):
        kept = without(splits, (k, folds, 7)).train
        assert set(kept.ids) == set(range(90)) - set(part)


def test_folds_keep_groups_whole_where_the_data_do():
    own = np.repeat(np.arange(30), 3)
    apart = Splits(table(90, 0, own), table(60, 1, np.arange(100, 160)), table(40, 2), "s")
    parts = [own[left_out(apart, (k, 4, 0))] for k in range(4)]
    assert sum(len(set(part)) for part in parts) == 30  # no group in two parts
    mixed = Splits(table(90, 0, own), table(60, 1, np.arange(60) % 30), table(40, 2), "s")
    parts = [own[left_out(mixed, (k, 4, 0))] for k in range(4)]
    assert sum(len(set(part)) for part in parts) > 30


@pytest.mark.parametrize("fold", [(2, 2, 0), (0, 1, 0), (-1, 2, 0)])
def test_what_is_no_fold_is_refused(splits, fold):
    with pytest.raises(ValueError, match="fold must be"):
        left_out(splits, fold)
    with pytest.raises(ValueError, match="at most 90"):
        left_out(splits, (0, 91, 0))


def targets_of(splits, folder, methods=("crossfit", "crossfit_platt", "distilled")):
    """The targets of each row, as its training sees them."""
    jobs = plan(methods, PROFILE, network=NETWORK)
    every = {step: None for row in jobs.values() for job in row for step in lineage(job)}
    teachers = [job for job in every if not job.teachers]
    fits = experiment.run_jobs(teachers, splits, folder, "cpu", 1, progress=False)
    fabric, found = make_fabric("cpu"), {}
    for name, (job,) in jobs.items():
        speak = [(t.network, fits[t], t.fold) for t in job.teachers]
        found[name] = teach(speak, splits, fabric, job.targets.calibrator).numpy()
    return found, jobs, fits


def test_out_of_fold_targets_never_use_the_row_itself(splits, tmp_path):
    """Flip one outcome: its own target stays, bit for bit; others move."""
    row = 17
    y = splits.train.outcomes.clone()
    y[row] = 1 - y[row]
    flipped = replace(splits, train=replace(splits.train, outcomes=y), source="flipped")
    first, _, _ = targets_of(splits, tmp_path)
    second, _, _ = targets_of(flipped, tmp_path)
    for name in ("crossfit", "crossfit_platt"):
        assert first[name][row] == second[name][row]
        moved = first[name] != second[name]
        folds = [set(left_out(splits, (k, 5, 0))) for k in range(5)]
        own = next(fold for fold in folds if row in fold)
        assert not moved[sorted(own)].any() and moved[sorted(set(range(90)) - own)].all()
    assert first["distilled"][row] != second["distilled"][row]  # whose teachers saw it


def test_targets_are_what_the_teachers_say(splits, tmp_path):
    targets, jobs, fits = targets_of(splits, tmp_path)
    fabric = make_fabric("cpu")

    def said(job, rows):
        model = NETWORK.build(splits.train.inputs)
        model.load_state_dict(fits[job].weights)
        return predict_logits(fabric, model, splits.train.take(rows)).double()

    (job,) = jobs["crossfit_platt"]
    assert [t.fold for t in job.teachers] == [(k, 5, 0) for k in range(5)]
    for t in job.teachers:
        rows, z = left_out(splits, t.fold), fits[t].logits["best_val"].double().numpy()
        platt = CALIBRATORS["platt"]().fit(z, splits.val.outcomes.numpy())
        expected = platt.predict_proba(said(t, rows).numpy())[:, 1]
        np.testing.assert_allclose(targets["crossfit_platt"][rows], expected, atol=1e-6)
    everything = np.arange(90)
    (job,) = jobs["distilled"]
    mean = np.mean([said(t, everything).softmax(1)[:, 1].numpy() for t in job.teachers], 0)
    np.testing.assert_allclose(targets["distilled"], mean, atol=1e-6)


def test_repeats_average_over_cuts():
    rows = {"twice": replace(METHODS["crossfit"], folds=3, repeats=2)}
    (job,) = plan(rows, PROFILE, network=NETWORK, rows=rows)["twice"]
    assert [t.fold for t in job.teachers] == [(k, 3, s) for s in (0, 1) for k in range(3)]
    assert len({t.init_seed for t in job.teachers}) == 6
    assert all(t.recipe.patience == PROFILE.patience for t in job.teachers)
    assert before(job) == list(job.teachers) and lineage(job)[-1] == job


def test_teachers_and_folds_are_part_of_the_key_only_where_they_are(splits):
    (ce,) = plan(["ce"], PROFILE, network=NETWORK)["ce"]
    (student,) = plan(["crossfit"], PROFILE, network=NETWORK)["crossfit"]
    teacher = student.teachers[0]
    jobs = [ce, student, *student.teachers[:2], replace(student, teachers=student.teachers[:4])]
    jobs += [replace(teacher, fold=fold) for fold in ((0, 5, 1), None)]
    assert len({job_key(job, splits) for job in jobs}) == len(jobs) == 7


def test_rows_with_teachers_train_and_resume_to_the_same(splits, tmp_path, monkeypatch):
    names = ["crossfit_mixed", "self_distilled", "cape_held_out", "distilled"]
    jobs = plan(names, PROFILE, network=NETWORK)
    fits = experiment.run_jobs(jobs, splits, tmp_path / "a", "cpu", 1, progress=False)
    assert not list((tmp_path / "a").glob("*.memory"))

    epochs, fit = [], experiment.TRAINERS["sgd"]

    def killed(*args, on_epoch=None, **settings):
        def once(record):
            epochs.append(record)
            if len(epochs) % 4 == 1:
                raise KeyboardInterrupt
            on_epoch(record)

        return fit(*args, on_epoch=once, **settings)

    monkeypatch.setitem(experiment.TRAINERS, "sgd", killed)
    for _ in range(60):
        try:
            again = experiment.run_jobs(jobs, splits, tmp_path / "b", "cpu", 1, progress=False)
            break
        except KeyboardInterrupt:
            continue
    for job in fits:
        for name, value in fits[job].logits.items():
            assert torch.equal(value, again[job].logits[name])
    assert len(epochs) > 8  # it was killed, and went on
    (mixed,) = jobs["crossfit_mixed"]
    assert mixed.targets == Taught(share=0.5)
    assert all(row["calibration"] for row in fits[mixed].history[1:])


def around(splits, predict, memory=None):
    return Surroundings(splits, predict, memory)


def test_running_mean_by_hand(splits, tmp_path):
    said = [torch.full((90,), value) for value in (0.2, 0.6, 1.0)]
    file = tmp_path / "m"
    schedule = RunningMean(decay=0.5, share=0.25).bind(around(splits, None, file))
    y = splits.train.outcomes
    for epoch, mean in ((1, 0.2), (2, 0.4), (3, 0.7)):
        found = schedule(epoch, splits.train, lambda e=epoch: said[e - 1], 0)
        torch.testing.assert_close(found, 0.25 * y + 0.75 * mean)
        # Taken up again after the file was written and before the epoch was: the same targets.
        later = RunningMean(decay=0.5, share=0.25).bind(around(splits, None, file))
        torch.testing.assert_close(later(epoch, splits.train, lambda: said[0], 0), found)
    anew = RunningMean(decay=0.5).bind(around(splits, None, file))  # its checkpoint was damaged
    torch.testing.assert_close(anew(1, splits.train, lambda: said[0], 0), said[0])


def test_held_out_probabilities_are_those_of_the_validation_rows(splits):
    p_train = torch.tensor(np.random.default_rng(3).random(90), dtype=torch.float32)
    p_val = torch.tensor(np.random.default_rng(4).random(60), dtype=torch.float32)
    schedule = HeldOut(every=2, bins=3).bind(around(splits, lambda data: p_val))
    assert schedule(1, splits.train, lambda: p_train, 0) is splits.train.outcomes
    found = schedule(2, splits.train, lambda: p_train, 0).numpy()
    edges = np.sort(p_val.numpy())[[20, 40]]
    y = splits.val.outcomes.numpy()
    part = np.searchsorted(edges, p_val.numpy(), side="right")
    means = np.array([y[part == k].mean() for k in range(3)])
    expected = means[np.searchsorted(edges, p_train.numpy(), side="right")]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_has_to_be_bound_says_so(splits):
    with pytest.raises(ValueError, match="must be bound"):
        HeldOut()(1, splits.train, None, 0)
    with pytest.raises(ValueError, match="need a job with teachers"):
        Taught().bind(around(splits, None))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"targets": "taught"}, "teachers must be"),
        ({"teachers": "ce"}, "teachers must be"),
        ({"folds": 3}, "folds must be 0"),
        ({"targets": "taught", "teachers": "ensemble", "folds": 3}, "one network's"),
        ({"targets": "taught", "teachers": "platt"}, "kept weights"),
        ({"targets": "taught", "teachers": "ce", "folds": 1}, "at least 2"),
        ({"targets": "taught", "teachers": "no row"}, "teachers must be one of"),
        ({"recipe": {"momentum": 0.5}}, "recipe must be one of"),
        ({"targets": "held_out", "recipe": {"averaging": 0.9}}, "must not average"),
    ],
)
def test_teachers_that_cannot_be_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Method(**{"label": "x", "kind": "extension", **fields})
    with pytest.raises(ValueError, match="one candidate"):
        several = Method("x", "extension", targets="taught", teachers="focal")
        plan(["x"], make_profile("smoke", focal=(1.0, 2.0)), rows={"x": several})


def test_teachers_may_weigh_up_to_twice(splits, tmp_path):
    """The outcome is subtracted, and only cross entropy is told how far that goes."""
    taught = torch.linspace(0.1, 0.9, 90)
    around = Surroundings(splits, None, None, lambda calibrator: taught)
    y = splits.train.outcomes
    found = Taught(share=-0.5).bind(around)(1, splits.train, None, 0)
    torch.testing.assert_close(found, 1.5 * taught.to(y) - 0.5 * y)
    with pytest.raises(ValueError, match="share must be"):
        Taught(share=-1.1)
    assert make_profile("smoke", share=-0.5).grid["share"] == (-0.5,)
    rows = {
        str(s): replace(METHODS["crossfit"], folds=2, grid={"share": (s,)}) for s in (0.5, -1.0)
    }
    jobs = {k: job for k, (job,) in plan(rows, PROFILE, network=NETWORK, rows=rows).items()}
    assert jobs["0.5"].strength is None and jobs["-1.0"].strength == 1.0
    fits = experiment.run_jobs(jobs.values(), splits, tmp_path, "cpu", 1, progress=False)
    assert all(np.isfinite(fits[job].val_ce) for job in jobs.values())
    focal = {"x": replace(rows["-1.0"], loss="focal")}
    (job,) = plan(focal, PROFILE, network=NETWORK, rows=focal)["x"]
    with pytest.raises(ValueError, match="targets must be probabilities"):
        experiment.run_jobs([job], splits, tmp_path, "cpu", 1, progress=False)
