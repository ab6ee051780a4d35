"""The collision task: its data, its references, and why no class is weighted."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from probnb.data.traffic_drawing import boxes_of, look_of
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from probnb.chapters.real_world import collision, collision_boxes
from probnb.chapters.real_world.collision_words import skewed_claims
from probnb.chapters.real_world.task import get_task
from probnb.data import traffic_model
from probnb.data.dashcam import DashcamInputs
from probnb.training import losses
from probnb.training.models import DashNet, _coverage

TASK = get_task("collision")


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield TASK.load(None, TASK.profile("smoke", {"images": 18}), 0, **TASK.parameters)


def boxes_of_traffic(n=700, seed=0):
    """Boxes and outcomes as the default data have them, without drawing or writing them."""
    scenes, rng, kept, outcomes, p = (
        traffic_model.simulate(n, seed),
        np.random.default_rng(0),
        [],
        [],
        [],
    )
    look, t = look_of(4, rng), 8
    odds, _ = traffic_model.collision_probability(scenes.worlds[t], 50, seed)
    for i in np.flatnonzero(~scenes.worlds[t].crashed):
        past = [boxes_of(scenes.worlds[t - back].take([i]), look) for back in range(3)]
        for k in np.flatnonzero(past[0][1]):
            kept.append([boxes[k] * seen[k] for boxes, seen in past])
            outcomes.append(scenes.outcomes[t, i, k])
            p.append(odds[i, k])
    return np.array(kept, float), np.array(outcomes, float), np.array(p)


def test_the_task_loads_trains_on_and_describes_simulated_scenes(splits):
    height, width = splits.train.inputs.shape[2:]
    assert (height, width) == (13, 36)
    assert splits.known
    groups = [set(part.groups) for part in splits.parts().values()]
    assert not groups[0] & groups[1]
    assert all(group.startswith("seed0/") for group in groups[2])
    text = TASK.describe(splits)
    assert f"({len(groups[2])} scenes" in text
    assert "nothing amiss; 0 labelled vehicles lost" in text
    assert "simulated" in text
    net = TASK.network(TASK.profile("smoke"), splits).build(splits.train.inputs)
    assert net(*splits.train.batch(torch.arange(3))).shape == (3, 2)


def test_the_paper_profile_has_the_paper_sizes_and_network(splits):
    profile = TASK.profile("paper")
    assert collision.sizes(profile.size) == (130, 355)
    assert TASK.network(profile, splits).kind == "vgg16_bn"


def test_real_frames_are_read_where_there_are_some(tmp_path):
    with pytest.raises(FileNotFoundError, match="train and test"):
        TASK.load(tmp_path, TASK.profile("smoke"), 0, **TASK.parameters)


def test_page_says_that_the_real_frames_were_not_measured():
    assert "nothing printed for this task was measured again on the real frames" in TASK.question


def test_network_knows_where_in_the_picture_something_is():
    """What a global average would lose: the same mask at the left and in the middle."""
    torch.manual_seed(0)
    net = DashNet(width=4).eval()
    x = torch.zeros(2, 12, 26, 71)
    x[0, 9, 8:18, 8:16] = 50
    x[1, 9, 8:18, 40:48] = 50  # two strides of 16 to the right
    assert (net(x)[0] - net(x)[1]).abs().max() > 1e-3
    assert net(torch.zeros(1, 12, 130, 355)).shape == (1, 2)
    with pytest.raises(ValueError, match="dropout"):
        DashNet(dropout=2.0)


def test_network_reads_place_and_size_of_the_boxes_off_their_masks():
    """Whatever the scale of the inputs; a part of a pixel counts as one."""
    boxes = np.array([[[355, 204, 71, 52], [340, 204, 60, 40], [0, 0, 0, 0]]], float)
    inputs = DashcamInputs(np.zeros((1, 3, 26, 71), np.uint8), np.zeros((1, 3), int), boxes)
    x = torch.from_numpy(np.asarray(inputs)).float()
    net = DashNet()
    for scaled in (x, (x - 30) / 90):
        places = net._places(_coverage(scaled[:, 9:]))[0]
        across, _, wide, high, there, off = places[:6].tolist()
        assert across == off == pytest.approx((355 + 35.5 - 355) / 355 * 71 / 70, abs=0.01)
        assert (wide, high, there) == pytest.approx((np.log(7.2), np.log(5.3), 1), abs=0.01)
        growth = places[6:].reshape(5, 2)[3]  # of the logarithm of the height, per second
        assert growth[0] == pytest.approx(10 * np.log(5.3 / 4.1), rel=0.02)
        assert not growth[1], "there was no box two frames before"


@pytest.mark.parametrize("distance", [10.0, 40.0])
@pytest.mark.parametrize("closing", [-5.0, 0.0, 4.0, 12.0])
def test_growth_is_one_over_the_time_to_collision(distance, closing):
    depth = distance + closing * np.array([0.0, 0.1, 0.2])  # the latest first
    height = 600 * 1.5 / depth
    boxes = np.stack([0 * height, 0 * height, height, height], axis=1)[None]
    # exact for the middle of the three frames, up to the cube of 0.1 s over the time to collision
    assert collision_boxes.growth(boxes)[0] == pytest.approx(
        closing / depth[1], rel=0.01, abs=1e-12
    )


def test_growth_with_missing_boxes():
    box = [0, 0, 10, 10]
    boxes = np.array(
        [[box, [0] * 4, [0, 0, 10, 10 * np.exp(-0.1)]], [box, [0] * 4, [0] * 4]], float
    )
    np.testing.assert_allclose(collision_boxes.growth(boxes), [0.5, 0], atol=1e-12)


def test_references_are_fitted_to_the_training_part(splits):
    found = TASK.references(splits)
    assert {len(p) for p in found.values()} == {len(splits.test)}
    assert np.unique(found["Constant"]) == pytest.approx(splits.train.outcomes.mean().item())
    boxes, y, _ = boxes_of_traffic(300)

    class Part:
        def __init__(self, rows):
            self.inputs = DashcamInputs(np.zeros((1, 3, 2, 2), np.uint8), rows, boxes[rows])
            self.outcomes = torch.tensor(y[rows])

    class Both:
        train, test = Part(np.arange(0, len(y), 2)), Part(np.arange(1, len(y), 2))

    found = collision_boxes.references(Both)
    brier = {name: np.mean((p - y[1::2]) ** 2) for name, p in found.items()}
    assert brier["Time to collision"] < brier["Constant"]
    assert brier["Boxes, boosted trees"] < brier["Time to collision"]


def test_class_weights_bias_probabilities():
    """The reference code of the data weights the rarer class; a probability must not be.

    Weighted w to 1, the fit estimates odds times w: balanced classes have a mean near one half,
    whatever the base rate, and dividing the odds by w again gives back the unweighted estimate.
    """
    boxes, y, p = boxes_of_traffic()
    x = collision_boxes.box_features(boxes)
    plain = LogisticRegression(C=1, max_iter=2000).fit(x, y).predict_proba(x)[:, 1]
    model = LogisticRegression(C=1, max_iter=2000, class_weight="balanced").fit(x, y)
    balanced = model.predict_proba(x)[:, 1]
    assert plain.mean() == pytest.approx(y.mean(), abs=1e-3)
    assert balanced.mean() > y.mean() + 0.1
    assert np.mean((balanced - p) ** 2) > 1.5 * np.mean((plain - p) ** 2)
    weight = (1 - y.mean()) / y.mean()
    back = 1 / (1 + weight * np.exp(-logit(balanced)))
    assert np.mean((back - p) ** 2) < 1.2 * np.mean((plain - p) ** 2)


@pytest.mark.parametrize("weight", [1.0, 6.0])
def test_weighted_cross_entropy_is_lowest_at_weighted_odds(weight):
    """Closed form: with base rate r the constant that minimises it is w r / (w r + 1 - r)."""
    y = torch.tensor([1.0] * 3 + [0.0] * 18)
    weights = torch.where(y == 1, weight, 1.0)
    rate = 3 / 21
    best = weight * rate / (weight * rate + 1 - rate)
    z = torch.tensor(logit(best), dtype=torch.float64, requires_grad=True)
    rows = torch.stack([torch.zeros(21, dtype=torch.float64), z.expand(21)], dim=1)
    losses.LOSSES["ce"]()(rows, y.double(), weights.double()).backward()
    assert abs(z.grad.item()) < 1e-9


def test_printed_counts_and_what_the_paper_says_of_them(splits):
    """Appendix K: 15 % collide, 13,582 samples; Table 10: Brier from 8.13 to 11.10."""
    y, p = splits.test.outcomes.numpy(), splits.test.probabilities.numpy()
    table = pd.DataFrame(
        {"y": y, "p": p, "ce": np.full(len(y), 0.1), "platt": y, "ce_overfit": 1 - y}
    )
    rows = skewed_claims(splits, table).set_index("claim")
    assert rows["paper"].iloc[0] == "2,096 of 13,582 samples: 15.4%"
    assert rows["paper"].iloc[1].startswith("Brier 8.13 to 11.10")
    assert rows["here"].iloc[1].startswith("Brier 0.00 to ")  # the overfitted row is not in print
    assert rows["here"].iloc[1].split()[3] != "100.00,"
    assert rows["here"].iloc[2] == f"known p {(p < 0.2).mean():.0%}, CE early-stop 100%"
    assert rows["skewed"].iloc[0] == "mean p 13.3%"


def test_figures(splits):
    axes = TASK.picture(splits)
    assert [ax.get_title()[:4] for ax in axes] == ["p = "] * 4
    p = splits.test.probabilities.numpy()
    y = splits.test.outcomes.numpy()
    table = pd.DataFrame({"y": y, "p": p, "ce": p, "Time to collision": np.full(len(p), 0.2)})
    left, right = TASK.page(splits, table)
    x, y = left.get_lines()[0].get_data()
    np.testing.assert_allclose(x, y, atol=1e-6)  # what predicts p lies on the diagonal
    assert {t.get_text() for t in right.get_legend().get_texts()} == {"known p"}
    assert TASK.page(splits, table.drop(columns="p")) is None
    plt.close("all")
