"""The ladder: every epoch is kept, the shadow changes nothing, a kill changes no number."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from probnb.training.batches import make_fabric
from probnb.training.loop import fit
from probnb_book import ladder
from probnb_book.data.faces import load_faces

RUNG = ladder.Rung(16, 8, "small", 32, "32-true")


@pytest.fixture(scope="module")
def splits():
    return load_faces("linear", size=16, n=150)


def jobs(epochs=3, **more):
    found = ladder.trainings(RUNG, seed=0, **more)
    return {k: replace(j, recipe=replace(j.recipe, epochs=epochs)) for k, j in found.items()}


def run(job, splits, folder, name="ce", start=None):
    return ladder.train(job, splits, start, make_fabric("cpu", "32-true"), folder, name)


def test_what_is_trained():
    found = ladder.trainings(RUNG, 3, fresh=True)
    assert list(found)[:2] == ["ce", "ce 2"] and list(found)[-1] == "fresh" and len(found) == 9
    assert found["ce"].init_seed != found["ce 2"].init_seed
    assert {job.recipe.patience for name, job in found.items() if name.startswith("ce")} == {5}
    tuned = {name: job for name, job in found.items() if " from " in name}
    for name, job in tuned.items():
        assert job.start == found["ce 2" if "ce 2" in name else "ce"]
        assert job.recipe.learning_rate == float(name.rsplit(" ", 1)[1])
        assert job.recipe.epochs == 3
        assert [getattr(job.targets, "calibrates", lambda _: False)(t) for t in (1, 2, 3)] == (
            [True, False, False] if name.startswith("cape") else [False] * 3
        )  # the released order: a calibration epoch first
    pairs = zip(*[iter(tuned.values())] * 2)
    assert all(a.recipe == b.recipe and a.start == b.start for a, b in pairs)  # but for targets


def test_logits_of_every_epoch_and_the_shadow_that_changes_nothing(splits, tmp_path):
    job = jobs()["ce"]
    weights, logits, history = run(job, splits, tmp_path)
    torch.manual_seed(job.init_seed)
    plain = fit(
        job.network.build(splits.train.inputs),
        splits,
        job.recipe,
        fabric=make_fabric("cpu", "32-true"),
        on_epoch=lambda row: None,
    )
    for name, value in plain.weights.items():
        assert torch.equal(weights[name], value)
    assert len(history) == 4 and logits["own"].shape == (3, len(splits.val) + len(splits.test))
    test = logits["own"][:, len(splits.val) :].double().sigmoid()
    errors = ((test - splits.test.probabilities) ** 2).mean(dim=1)
    np.testing.assert_allclose(errors, [row["mse_p"] for row in history[1:]], rtol=1e-6)

    torch.manual_seed(job.init_seed)
    averaged = replace(job.recipe, averaging=ladder.DECAY)
    row = fit(
        job.network.build(splits.train.inputs),
        splits,
        averaged,
        fabric=make_fabric("cpu", "32-true"),
        on_epoch=lambda row: None,
    )
    last = torch.cat([row.logits["last_val"], row.logits["last_test"]]).diff(dim=1)[:, 0]
    torch.testing.assert_close(logits["averaged"][-1], last, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("after", [1, 2])
def test_a_killed_training_goes_on_to_the_same_numbers(splits, tmp_path, monkeypatch, after):
    job = jobs()["ce"]
    whole = run(job, splits, tmp_path / "whole")
    seen, predict = [], ladder.predict_logits

    def killed(*args):
        seen.append(1)
        if len(seen) > 2 * after:  # between the loop's file and ours
            raise KeyboardInterrupt
        return predict(*args)

    with monkeypatch.context() as patch:
        patch.setattr(ladder, "predict_logits", killed)
        with pytest.raises(KeyboardInterrupt):
            run(job, splits, tmp_path / "cut")
    again = run(job, splits, tmp_path / "cut")
    for kind in ("own", "averaged"):
        assert torch.equal(whole[1][kind], again[1][kind])
    assert len(list((tmp_path / "cut").iterdir())) == 1  # what is finished
    third = run(job, splits, tmp_path / "cut")  # which is read
    assert torch.equal(third[1]["own"], whole[1]["own"])


def test_a_seed_is_written_after_each_training(tmp_path, monkeypatch, splits):
    monkeypatch.setattr(ladder, "load_faces", lambda *args, **how: splits)
    monkeypatch.setitem(ladder.RUNGS, "16", RUNG)
    short = jobs(2)
    monkeypatch.setattr(ladder, "trainings", lambda rung, seed, fresh: short)
    ladder.climb("16", "linear", 0, None, tmp_path / "runs", tmp_path / "results")
    record, table = ladder.read("16-linear-seed0", tmp_path / "results")
    assert list(record["fits"]) == list(short) and set(table["split"]) == {"val", "test"}
    test = table[table["split"] == "test"]
    for name in ("ce", "ce 2"):
        epoch = ladder.kept(record, name)
        p_hat = 1 / (1 + np.exp(-test[f"{name} | {epoch}"].astype(float)))
        error = record["fits"][name]["history"][epoch]["mse_p"]
        assert np.mean((p_hat - test["p"]) ** 2) == pytest.approx(error, rel=1e-5)


def made_up(seed, size):
    """A seed whose V is 0.02 and whose CaPE, kept at its second epoch, has a tenth less error."""
    error, fits = 0.02 + 0.001 * seed, {}
    table = {"split": ["val", "test", "test"], "y": [0, 0, 1], "p": [0.5, 0.5, 0.5]}
    for name, job in ladder.trainings(RUNG, seed).items():
        own = error * (0.9 if name.startswith("cape") else 1)
        loss = [0.6, 0.6, 0.5] if " from " in name else [0.1, 0.6, 0.5]  # 0 is no candidate there
        rows = zip(loss, (0.9, 0.8, own))
        history = [{"epoch": t, "val_ce": v, "mse_p": e} for t, (v, e) in enumerate(rows)]
        fits[name] = {"recipe": {"learning_rate": job.recipe.learning_rate}, "history": history}
    for name, p_hat in zip(ladder.STARTS, (0.5, 0.7)):
        table |= {f"{name} | 1": 9.0, f"{name} | 2": np.log(p_hat / (1 - p_hat))}
    record = {"rung": {"size": size}, "task": "linear", "seed": seed, "mirror": False}
    return record | {"fits": fits}, {"ladder": pd.DataFrame(table)}


def test_what_the_ladder_asks_of_a_seed(tmp_path):
    runs = {f"{size}-seed{seed}": made_up(seed, size) for size in (32, 48) for seed in (0, 1)}
    half = made_up(2, 32)
    del half[0]["fits"]["ce 2"]  # not trained yet
    mirrored = made_up(0, 32)
    mirrored[0]["mirror"] = True
    ladder.storage.keep(tmp_path, "ladder", runs | {"half": half, "mirrored": mirrored})
    np.testing.assert_allclose(ladder.noise(tmp_path).query("size == 48")["V"], 0.02)
    sizes = ladder.sizes(tmp_path)
    assert list(sizes.index) == [(32, 0), (32, 1), (48, 0), (48, 1)]
    np.testing.assert_allclose(sizes["error"], [2.0, 2.1, 2.0, 2.1])
    np.testing.assert_allclose(sizes["noise"], 2 / np.array([0.02, 0.021, 0.02, 0.021]))
    np.testing.assert_allclose(sizes["cape"], -10)
    assert sizes["fresh"].isna().all() and ladder.sizes(tmp_path / "nothing").empty


def test_the_line_through_the_sizes():
    work = {
        size: np.log10(ladder.arithmetic(ladder.RUNGS[f"{size}"])) for size in (32, 48, 96, 200)
    }
    assert 2 < 10 ** work[32] < 3 and 700 < 10 ** (work[200] - work[32]) < 705  # the paper's size
    index = pd.MultiIndex.from_product([(32, 48, 96), (0, 1)], names=["size", "seed"])
    values = pd.Series([2 - work[size] + (-1) ** seed * 1e-9 for size, seed in index], index)
    np.testing.assert_allclose(ladder.forecast(values), 2 - work[200], atol=1e-7)
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([(32, 48, 96), range(4)], names=["size", "seed"])
    inside = []
    for _ in range(1500):
        values = pd.Series(rng.normal(size=len(index)), index)
        _, low, high = ladder.forecast(values)
        inside.append(low < rng.normal() < high)
    assert 0.93 < np.mean(inside) < 0.97
    assert np.isnan(ladder.forecast(values.loc[[32]])).all()
