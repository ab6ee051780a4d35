"""Simulated traffic: its probabilities, and what is written of it."""

import math
import random

import numpy as np
import pytest

from probnb_book.data import traffic_model as model
from probnb_book.data.dashcam import CROP
from probnb_book.data.traffic import boxes_of, draw_frame, look_of, traffic

SCENES = (14, 6)


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return traffic(SCENES, (26, 71), continuations=40, cache_dir=tmp_path_factory.mktemp("cache"))


def continued(world, rng):
    """One future of one scene, a vehicle at a time: which ones are hit in the next 1.8 s.

    Written from the description of the traffic, without the simulator's code or arrays.
    """
    car, braking = float(world.car[0]), bool(world.braking[0])
    numbers = ("gap", "x", "speed", "drift", "way", "lane")
    vehicles = [
        {name: float(getattr(world, name)[0, k]) for name in numbers}
        | {"doing": ("cruise", "brake", "drift", "cut in")[world.doing[0, k]]}
        | {"present": bool(world.present[0, k])}
        for k in range(world.gap.shape[1])
    ]
    rates = {
        "cruise": {"brake": 0.5, "drift": 0.8, "cut in": 0.6},
        "brake": {"cruise": 0.6},
        "drift": {"cut in": 1.5, "cruise": 1.0},
        "cut in": {},
    }
    for _ in range(18):
        for v in vehicles:
            chance = rng.random()
            for then, rate in rates[v["doing"]].items():
                if chance < 0.1 * rate:
                    if abs(v["lane"]) >= 1 or then in ("cruise", "brake"):
                        v["doing"] = then
                    break
                chance -= 0.1 * rate
            if v["doing"] in ("drift", "cut in") and abs(v["x"]) < 0.5:
                v["doing"], v["lane"] = "cruise", 0.0
        called = 0.0
        for v in vehicles:
            closing = car - v["way"] * v["speed"]
            if v["present"] and abs(v["x"]) < 2.0 and v["gap"] > 0 and closing > 0:
                called = max(called, closing**2 / (2 * max(v["gap"], 0.5)))
        chance = rng.random()
        if braking:
            braking = not (called < 0.5 and chance < 0.2)
        else:
            braking = chance < (0.4 if called > 5 else 0.2 if called > 2 else 0.0)
        car = max(car - 0.7 * braking, 0.0)
        hit = set()
        for k, v in enumerate(vehicles):
            foot = -3 - 5 * rng.random() if v["doing"] == "brake" else 2 * rng.random() - 1
            v["speed"] = max(v["speed"] + 0.1 * foot, 0.0)
            inward = -math.copysign(1.0, v["x"])
            wanted = min(max(0.8 * (v["lane"] - v["x"]), -1.0), 1.0)
            wanted = {"drift": 0.7 * inward, "cut in": 3.5 * inward}.get(v["doing"], wanted)
            v["drift"] += (wanted - v["drift"]) / 3
            v["x"] += 0.1 * v["drift"]
            v["gap"] -= 0.1 * (car - v["way"] * v["speed"])
            if v["present"] and -4.5 < v["gap"] <= 0 and abs(v["x"]) < 1.8:
                hit.add(k)
            v["present"] = v["present"] and v["gap"] > -4.5
        if hit:
            return hit
    return set()


def test_probability_is_the_share_of_brute_force_continuations():
    """Binomial error bars: z-scores over some vehicles look like a standard normal's."""
    world = model.simulate(40, seed=5)[0][8]
    p = model.collision_probability(world, 4000, seed=1)
    error = np.sqrt(p * (1 - p) / 4000)
    uncertain = np.argwhere((p > 0.05) & (p < 0.95) & ~world.crashed[:, None])[:8]
    assert len(uncertain) == 8
    rng, n, z = random.Random(0), 300, []
    for i, k in uncertain:
        one, said = world.take([i]), p[i, k]
        share = sum(k in continued(one, rng) for _ in range(n)) / n
        z.append((share - said) / math.hypot(math.sqrt(said * (1 - said) / n), error[i, k]))
    assert np.abs(z).max() < 3.2
    assert np.mean(np.square(z)) < 2.4, "99 % of means of eight squares are below 2.5"


def test_outcomes_are_draws_from_their_probabilities():
    """Within bins of p the share of collisions is p, within binomial errors; one time a scene."""
    n = 1500
    worlds, outcomes = model.simulate(n, seed=2)
    p = model.collision_probability(worlds[5], 200, seed=3)
    first = p.argmax(axis=1)  # one vehicle a scene, chosen by p alone: outcomes are independent
    p, y = p[np.arange(n), first], outcomes[5][np.arange(n), first]
    at_risk = ~worlds[5].crashed
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 0.9)):
        rows = at_risk & (p >= low) & (p < high)
        m, mean = rows.sum(), p[rows].mean()
        assert m > 30
        # p itself has an error, smaller by the ratio of 200 continuations to one
        assert abs(y[rows].mean() - mean) < 3.5 * math.sqrt((mean * (1 - mean) + 1e-3) / m)


def test_nobody_collides_who_is_far_away_or_was_hit_before():
    world = model.simulate(20, seed=1)[0][0]
    world.gap[:] = 300
    assert not model.collision_probability(world, 20).any()
    world.gap[:] = 1
    world.x[:], world.speed[:], world.car[:] = 0, 0, 20
    assert (model.collision_probability(world, 20)[world.present] == 1).all()
    world.crashed[:] = True
    assert not model.collision_probability(world, 20).any()


def test_about_one_in_seven_collides():
    """Of the vehicles that are seen and labelled, in the default number of scenes."""
    worlds, outcomes = model.simulate(300, seed=0)
    rng, seen, hit = np.random.default_rng(0), 0, 0
    look = look_of(4, rng)
    for t in (2, 8, 14):
        for i in np.flatnonzero(~worlds[t].crashed):
            _, visible = boxes_of(worlds[t].take([i]), look)
            seen, hit = seen + visible.sum(), hit + outcomes[t, i][visible].sum()
    assert hit / seen == pytest.approx(1 / 7, abs=0.025)


def test_labelled_vehicles_are_samples_with_their_probability(splits):
    report = splits.report
    assert report["frames"] == 20 * sum(SCENES) and splits.known
    assert report["lost"] == 0 and report["unlabelled"] > 0
    asked = {str(20 * s + t) for s in range(6) for t in range(2, 20, 3)}
    assert {i.split("/")[3] for i in splits.test.ids} <= asked
    p = splits.test.probabilities.numpy()
    np.testing.assert_allclose(40 * p, np.rint(40 * p), atol=1e-5)
    assert ((p == 0) <= (splits.test.outcomes.numpy() == 0)).mean() > 0.9
    boxes = np.concatenate([part.inputs.boxes[:, 0] for part in splits.parts().values()])
    assert (boxes[:, 2:] > 0).all() and (boxes[:, 0] + boxes[:, 2] <= 710).all()
    assert (boxes[:, 1] < CROP[1]).all()


def test_a_known_seed_gives_the_known_pixels(splits):
    """Stored results rest on these scenes; a change of them needs another version."""
    test = splits.test
    assert (len(test), float(test.outcomes.sum())) == (83, 12)
    assert float(test.probabilities.double().sum()) == pytest.approx(8.275)
    assert np.asarray(test.inputs).mean() == pytest.approx(62.71, abs=0.05)  # JPEGs may differ


def test_accidents_are_filed_as_such(splits):
    for part in splits.parts().values():
        kinds = np.array([group.split("/")[2] for group in part.groups])
        assert not part.outcomes.numpy()[kinds == "nonaccident"].any()


def test_boxes_lie_on_their_vehicles():
    """The lit lamps of a vehicle alone on the road are in its box, and nearly as far apart."""
    world, rng = model.simulate(8, seed=9)[0][0], np.random.default_rng(0)
    world.present[:] = [True, False, False, False]
    world.doing[:] = model.BRAKE
    for i in range(8):
        one, look = world.take([i]), look_of(4, rng)
        boxes, seen = boxes_of(one, look)
        assert seen.tolist() == [True, False, False, False]
        pixels = np.asarray(draw_frame(one, look, 0.0, 0))
        lit = np.argwhere((pixels == (255, 45, 25)).all(axis=2))
        x, y, w, h = boxes[0]
        assert (lit.min(0) >= (y, x)).all()
        assert (lit.max(0) <= (y + h, x + w)).all()
        if 0 < x < x + w < 710 and abs(one.x[0, 0]) < 0.8:  # straight ahead, no side in view
            assert np.ptp(lit[:, 1]) > 0.9 * w


def test_traffic_is_drawn_once_and_whole(tmp_path, monkeypatch):
    arguments = {"scenes": (8, 3), "size": (13, 35), "continuations": 9, "cache_dir": tmp_path}
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="the disk is gone"):
        patch.setattr("probnb_book.data.traffic._draw_part", gone)
        traffic(**arguments)
    assert not list(tmp_path.iterdir())
    first = traffic(**arguments)
    monkeypatch.setattr("probnb_book.data.traffic._draw_part", gone)
    second = traffic(**arguments)
    assert first.source == second.source and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ValueError, match="scenes must be an integer of at least 1"):
        traffic((0, 3), cache_dir=tmp_path)


def gone(*arguments):
    raise RuntimeError("the disk is gone")
