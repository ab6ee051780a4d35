from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from probnb.data import ProbabilityData, Splits
from probnb.training.batches import (
    clear_unread_taps,
    cut,
    device_type,
    make_fabric,
    precision_of,
    predict_logits,
    use_fast_layout,
)
from probnb.training.cape import Calibrated
from probnb.training.loop import Recipe, _check_model, fit
from probnb.training.losses import CrossEntropy
from probnb.training.models import ResNet18
from probnb.training.targets import Observed, Resampled


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def blobs(n, seed=0, size=8):
    """Small uint8 images whose brightness sets the probability."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    noise = rng.normal(0, 20, (n, 3, size, size))
    images = np.clip(60 + 130 * p[:, None, None, None] + noise, 0, 255).astype(np.uint8)
    y = (rng.random(n) < p).astype(np.float32)
    return ProbabilityData(
        torch.tensor(images), torch.tensor(y), torch.tensor(p, dtype=torch.float32)
    )


SPLITS = Splits(blobs(200), blobs(80, 1), blobs(60, 2), "blobs")


def network(seed=0):
    torch.manual_seed(seed)
    return ResNet18(4, "small")


def train(recipe=None, model=None, splits=SPLITS, precision=None, **options):
    options = {"on_epoch": lambda row: None, "fabric": make_fabric("cpu", precision)} | options
    recipe = recipe or Recipe(epochs=4, batch_size=32)
    return fit(model or network(), splits, recipe, **options)


def linear(columns=3):
    torch.manual_seed(0)
    return nn.Linear(columns, 2)


def thrice(part):
    return Splits(part, part, part, "x")


def same(a, b):
    return a.logits.keys() == b.logits.keys() and all(
        torch.equal(a.logits[k], b.logits[k]) for k in a.logits
    )


def without_time(history):
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in history[1:]]


def test_learns_and_keeps_the_epoch_with_the_lowest_validation_cross_entropy():
    result = train(Recipe(epochs=6, batch_size=32, learning_rate=0.02))
    losses = [row["val_ce"] for row in result.history]
    assert len(losses) == 7
    assert result.best_epoch == 1 + int(np.argmin(losses[1:]))
    assert result.val_ce == min(losses[1:]) < losses[0]
    ce = CrossEntropy()(result.logits["best_val"].double(), SPLITS.val.outcomes.double())
    assert float(ce) == pytest.approx(result.val_ce, rel=1e-12)
    # The kept weights are those that made the kept predictions.
    model = network()
    model.load_state_dict(result.weights)
    fabric = make_fabric("cpu")
    again = predict_logits(fabric, fabric.setup(use_fast_layout(model)), SPLITS.to("cpu").val)
    torch.testing.assert_close(again, result.logits["best_val"])


def test_history_has_truth_based_metrics_where_truth_is_known():
    result = train(Recipe(epochs=1, batch_size=32))
    row = result.history[-1]
    assert {"train_ce", "val_ce", "mse_p", "kl_p", "brier", "auc", "seconds"} <= set(row)
    p_hat = result.logits["last_test"].double().softmax(1)[:, 1]
    assert row["bias"] == pytest.approx(float(p_hat.mean() - SPLITS.test.outcomes.mean()))
    unknown = replace(SPLITS, test=replace(SPLITS.test, probabilities=None))
    row = train(Recipe(epochs=1, batch_size=32), splits=unknown).history[-1]
    assert "mse_p" not in row and "brier" in row


def test_averaged_weights_are_the_exponential_average_of_every_step():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    start = {k: v.clone() for k, v in model.state_dict().items()}
    seen = []
    update = torch.optim.swa_utils.AveragedModel.update_parameters

    def note(self, trained):
        seen.append({k: v.clone() for k, v in trained.state_dict().items()})
        update(self, trained)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.swa_utils.AveragedModel, "update_parameters", note)
        recipe = Recipe(epochs=1, batch_size=50, averaging=0.8, learning_rate=0.01)
        result = train(recipe, model, precision="32-true")
    assert len(seen) == 4
    for name in start:
        expected = seen[0][name]
        for step in seen[1:]:
            expected = 0.8 * expected + 0.2 * step[name]
        torch.testing.assert_close(result.weights[name], expected)


@pytest.mark.parametrize(
    ("schedule", "targets"),
    [
        ("plateau", Observed()),
        ("cosine", Resampled()),
        ("constant", Calibrated("kernel", neighbours=20)),
    ],
)
def test_interrupted_training_ends_with_the_same_numbers(tmp_path, schedule, targets):
    averaging = 0.5 if schedule == "constant" else 0.0
    recipe = Recipe(
        epochs=5, batch_size=32, schedule=schedule, plateau_patience=1, averaging=averaging
    )
    whole = train(recipe, targets=targets)
    for stop in (2, 4):

        def interrupt(row, stop=stop):
            if row["epoch"] == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(recipe, targets=targets, checkpoint=tmp_path / "run", on_epoch=interrupt)
    resumed = train(recipe, targets=targets, checkpoint=tmp_path / "run")
    assert same(whole, resumed)
    if schedule == "plateau":
        assert not same(whole, train(replace(recipe, seed=1), targets=targets))
    assert without_time(whole.history) == without_time(resumed.history)


def test_patience_stops_early_and_the_last_epoch_is_kept_apart():
    recipe = Recipe(epochs=40, batch_size=32, patience=2)
    result = train(recipe, targets=Calibrated("bin", every=2))
    assert len(result.history) - 1 == min(result.best_epoch + 2, 40) < 40
    assert not torch.equal(result.logits["best_test"], result.logits["last_test"])
    kept = [row["calibration"] for row in result.history[1 : result.best_epoch + 1]]
    assert result.calibration_epochs == sum(kept) == result.best_epoch // 2


def test_plateau_halves_the_rate_and_cosine_lowers_it_as_planned():
    rates = [
        r["learning_rate"]
        for r in train(Recipe(epochs=4, batch_size=32, schedule="cosine")).history[1:]
    ]
    np.testing.assert_allclose(rates, 0.05 * (1 + np.cos(np.pi * np.arange(4) / 4)))
    history = train(Recipe(epochs=24, batch_size=32, plateau_patience=1)).history[1:]
    rate, best, waited = 0.1, np.inf, 0
    for row in history:
        assert row["learning_rate"] == pytest.approx(rate)
        waited = 0 if row["val_ce"] < best * (1 - 1e-4) else waited + 1
        best = min(best, row["val_ce"]) if waited == 0 else best
        if waited > 1:
            rate, waited = rate / 2, 0
    assert history[-1]["learning_rate"] < 0.1  # it did halve: it overfits long before


def test_the_adversarial_step_goes_uphill():
    """One step by hand: the gradients of the loss, and of the loss where it has risen, add up."""
    x, y = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2
    part = ProbabilityData(x, y)
    model = linear()
    start = [p.detach().clone() for p in model.parameters()]
    recipe = Recipe(epochs=1, batch_size=64, momentum=0, weight_decay=0, adversarial=0.3)
    result = train(recipe, model, thrice(part), "32-true")
    loss = lambda x, w, b: CrossEntropy()(x @ w.T + b, y.float())  # noqa: E731
    w, b = (p.requires_grad_() for p in start)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x, w, b), x)
    worse = (x + 0.3 * gradient.sign()).detach()
    assert loss(worse, w, b) > loss(x, w, b)
    assert result.history[1]["train_ce"] == pytest.approx(
        float(loss(x, w, b))
    )  # of rows as they are
    steps = torch.autograd.grad(loss(x.detach(), w, b) + loss(worse, w, b), (w, b))
    for name, before, step in zip(("weight", "bias"), start, steps):
        torch.testing.assert_close(result.weights[name], before.detach() - 0.1 * step)


def test_a_last_batch_of_one_joins_the_batch_before_it():
    assert [len(rows) for rows in cut(torch.arange(65), 32)] == [32, 33]
    assert [len(rows) for rows in cut(torch.arange(66), 32)] == [32, 32, 2]
    assert [len(rows) for rows in cut(torch.arange(67), 32, processes=2)] == [32, 35]
    splits = replace(SPLITS, train=blobs(33))
    assert np.isfinite(train(Recipe(epochs=1, batch_size=32), splits=splits).val_ce)
    splits = replace(SPLITS, train=blobs(3))
    assert np.isfinite(train(Recipe(epochs=1, batch_size=2), splits=splits).val_ce)


def test_divergence_is_named():
    with pytest.raises(FloatingPointError, match="learning_rate=1e\\+20"):
        train(Recipe(epochs=3, batch_size=32, learning_rate=1e20))


def test_a_fine_tuning_may_keep_its_start():
    """One that only harms returns what it started from, weights and predictions."""
    start = train(Recipe(epochs=4, batch_size=32, learning_rate=0.02))
    for rate, kept in ((1.0, True), (1e-3, False)):
        model = network()
        model.load_state_dict(start.weights)
        recipe = Recipe(epochs=2, batch_size=32, learning_rate=rate)
        result = train(recipe, model, keep_start=True)
        lower = min(row["val_ce"] for row in result.history[1:])
        assert (result.best_epoch == 0) == (lower >= result.history[0]["val_ce"])
        if kept:
            assert result.best_epoch == 0 and result.calibration_epochs == 0
            assert all(torch.equal(result.weights[k], v) for k, v in start.weights.items())
            torch.testing.assert_close(result.logits["best_test"], start.logits["best_test"])


@pytest.mark.parametrize(
    ("has", "expected"),
    [
        (("avx2",), "32-true"),
        (("avx512_f", "avx512_bf16"), "32-true"),  # has the instructions and is slower with them
        (("avx512_bf16", "amx_bf16"), "bf16-mixed"),
        (("bf16",), "bf16-mixed"),
    ],
)
def test_half_precision_needs_a_matrix_unit(has, expected, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(has, True))
    assert precision_of("cpu") == expected and precision_of("mps") == "32-true"


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_weights_that_read_only_padding_stay_as_they_are_made(precision):
    """torch 2.14.1 fills their bf16 gradients with whatever lies in memory."""
    model = network()
    taps = model.layer4[0].conv1.weight  # its map is one pixel: only the middle tap reads
    start = taps.detach().clone()
    recipe = Recipe(epochs=6, batch_size=32, learning_rate=0.02, weight_decay=0, momentum=0)
    for _ in range(2):  # a second training of the same network finds the first one's hooks
        train(recipe, model, precision=precision)
    same = (taps == start).all(0).all(0)
    assert same.sum() == 8 and not same[1, 1]


@pytest.mark.parametrize("padding", [0, 1, (2, 1), "same", "valid"])
@pytest.mark.parametrize("shape", [(3, 3), (3, 9), (8, 8)])
def test_taps_that_read_images_are_not_touched(padding, shape):
    convolution = nn.Conv2d(1, 2, 3, padding=padding)
    x = torch.rand(4, 1, *shape)
    with clear_unread_taps(convolution):
        convolution(x)
    convolution(x).sum().backward()
    found = convolution.weight.grad.clone()
    plain = nn.Conv2d(1, 2, 3, padding=padding)
    plain.load_state_dict(convolution.state_dict())
    plain(x).sum().backward()
    torch.testing.assert_close(found, plain.weight.grad)


@pytest.mark.parametrize("shape", [(20, 1, 8, 8), (20, 7)])
def test_data_that_a_network_cannot_take_are_refused_in_their_own_words(shape):
    part = ProbabilityData(torch.rand(shape), torch.arange(20) % 2)
    with pytest.raises(ValueError, match="model must turn inputs"):
        train(splits=thrice(part))


@pytest.mark.parametrize("width", [1, 4, 8])
def test_narrow_networks_train_in_any_precision(width):
    """A strided 1x1 convolution of fewer than 8 channels, channels last, corrupts memory."""
    model = use_fast_layout(ResNet18(width, "small"))
    layout = model.layer2[0].downsample[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert width < 8 or layout
    if width < 8:
        strides = model.layer2[1].conv1.weight.stride()
        assert strides == torch.empty(model.layer2[1].conv1.weight.shape).stride()
    assert np.isfinite(train(Recipe(epochs=1, batch_size=32), model, precision="32-true").val_ce)


def test_weights_count_like_repeated_rows():
    """A full-batch step on rows of weight two is one on the rows twice."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(40, 3)), dtype=torch.float32)
    y = torch.arange(40) % 2
    weights = torch.where(torch.arange(40) < 10, 2.0, 1.0)
    twice = torch.cat([torch.arange(40), torch.arange(10)])
    parts = ProbabilityData(x, y, weights=weights), ProbabilityData(x[twice], y[twice])
    recipe = Recipe(epochs=3, batch_size=64)
    results = [train(recipe, linear(), thrice(part), "32-true") for part in parts]
    for a, b in zip(results[0].history, results[1].history):
        for name in ("val_ce", "brier", "ece", "auc", "bias"):
            assert a[name] == pytest.approx(b[name], rel=1e-5, abs=1e-7), name


def test_a_batch_without_weight_takes_no_step():
    """It once was 0 / 0, and "lower learning_rate"."""
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    weights = torch.zeros(64)
    weights[5] = 1.0  # of two batches one has no weight, whichever the order
    part = ProbabilityData(x, torch.arange(64) % 2, weights=weights)
    model, recipe = linear(), Recipe(epochs=3, batch_size=32, momentum=0, weight_decay=0)
    start = {k: v.clone() for k, v in model.state_dict().items()}
    result = train(recipe, model, thrice(part), "32-true")
    assert all(np.isfinite(row["train_ce"]) for row in result.history[1:])
    model.load_state_dict(start)
    for _ in range(3):
        loss = CrossEntropy()(model(x[5:6]), torch.ones(1))
        gradients = torch.autograd.grad(loss, model.parameters())
        with torch.no_grad():
            for p, g in zip(model.parameters(), gradients):
                p -= 0.1 * g
    for name, value in model.state_dict().items():
        torch.testing.assert_close(result.weights[name], value)


def test_bad_device():
    with pytest.raises(ValueError, match="device must be one of auto, cuda, mps, cpu"):
        device_type("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device must be available"):
            device_type("cuda")


def test_apples_gpu_is_not_trained_on(monkeypatch):
    """It has no float64, in which validation losses are computed."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_type() == "cpu" and device_type("mps") == "mps"
    on_mps = SimpleNamespace(batch=lambda rows: [SimpleNamespace(device=torch.device("mps"))])
    with pytest.raises(ValueError, match="device must be cpu or cuda"):
        _check_model(network(), on_mps)


def test_weights_count_in_the_metrics_of_several_outcomes():
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(60, 3)), dtype=torch.float32)
    y, weights = np.eye(3, dtype=np.float32)[np.arange(60) % 3], np.where(np.arange(60) < 9, 50, 1)
    rows = np.repeat(np.arange(60), weights)
    briers = []
    for part in (ProbabilityData(x, y, weights=weights), ProbabilityData(x[rows], y[rows])):
        torch.manual_seed(0)
        splits = Splits(ProbabilityData(x, y), ProbabilityData(x, y), part, "weighted")
        result = fit(nn.Linear(3, 3), splits, Recipe(epochs=1), on_epoch=lambda row: None)
        briers.append(result.history[-1]["brier"])
    assert briers[0] == pytest.approx(briers[1], rel=1e-5)


WRONG = {"batch_size": 1, "learning_rate": float("nan"), "momentum": -1, "schedule": "linear"}


@pytest.mark.parametrize("name", WRONG)
def test_bad_recipe(name):
    with pytest.raises(ValueError, match=name):
        Recipe(**{name: WRONG[name]})
    with pytest.raises(ValueError, match="patience"):
        Recipe(patience=0)
