"""A metric is one entry of one dict, and appears wherever metrics do."""

import numpy as np
import pytest

from probnb.metrics import METRICS, Metric, bootstrap, evaluate
from probnb.validation import check_pair


def spherical(y_true, y_prob, weights=None):
    y, p = check_pair(y_true, y_prob)
    hit = np.where(y == 1, p, 1 - p) / np.hypot(p, 1 - p)
    return np.average(hit, weights=weights)


@pytest.fixture(params=["function only", "with its rows"])
def added(request, monkeypatch):
    def rows(sample):
        return np.where(sample.y == 1, sample.p_hat, 1 - sample.p_hat) / np.hypot(
            sample.p_hat, 1 - sample.p_hat
        )

    options = {} if request.param == "function only" else {"rows": rows}
    monkeypatch.setitem(
        METRICS, "spherical", Metric(spherical, "Spherical", lower_is_better=False, **options)
    )


def test_an_added_metric_is_evaluated_and_resampled(added):
    rng = np.random.default_rng(0)
    p = rng.random(50)
    y, p_hat, w = (rng.random(50) < p) * 1, rng.random(50), rng.random(50)
    assert list(evaluate(y, p_hat))[-1] == "spherical"
    assert evaluate(y, p_hat, p, w)["spherical"] == pytest.approx(spherical(y, p_hat, w))
    result = bootstrap(y, {"a": p_hat, "b": p}, replicates=10, seed=3)
    assert result.point.columns[-1] == "spherical"
    rng = np.random.default_rng(3)
    for k in range(10):
        drawn = np.bincount(rng.integers(50, size=50), minlength=50)
        assert result.samples[k, 0, -1] == pytest.approx(spherical(y, p_hat, drawn))
    assert result.difference("a", "b").loc["spherical", "std"] > 0


def test_entries_say_what_they_need():
    assert list(METRICS) == ["mse_p", "kl_p", "ece", "mce", "ks", "brier", "auc", "nll"]
    assert [name for name, m in METRICS.items() if m.needs_truth] == ["mse_p", "kl_p"]
    assert [name for name, m in METRICS.items() if not m.lower_is_better] == ["auc"]
    labels = " ".join(m.label for m in METRICS.values())
    assert labels == "MSE_p KL_p ECE MCE KS Brier AUC NLL"
    values = evaluate([0, 1, 1], [1.0, 0.0, 0.5], p=[0.5, 0.2, 0.5])
    for name, (low, high) in {k: m.bounds for k, m in METRICS.items()}.items():
        assert low <= values[name] <= high


def test_what_a_metric_says_of_itself_agrees_with_its_function():
    rng = np.random.default_rng(1)
    p, p_hat = rng.random(40), rng.random(40).round(1) * 0.9 + 0.05
    y = (rng.random(40) < p) * 1
    w = rng.random(40)
    for weights in (None, w):
        values = evaluate(y, p_hat, p, weights)
        for name, metric in METRICS.items():
            truth = p if metric.needs_truth else y
            assert values[name] == metric.function(truth, p_hat, weights=weights), name


def test_a_metric_that_is_undefined_is_announced_once():
    with pytest.warns(RuntimeWarning, match="auc is NaN: all outcomes are the same") as said:
        evaluate([1, 1], [0.2, 0.4])
    assert len(said) == 1 and said[0].filename == __file__
    with pytest.warns(RuntimeWarning, match="auc is NaN") as said:
        bootstrap([1, 1], {"a": [0.2, 0.4]}, replicates=2)
    assert len(said) == 1 and said[0].filename == __file__


def test_rows_are_checked_and_sorted_once(monkeypatch):
    from probnb import validation

    rng = np.random.default_rng(2)
    y, p, p_hat = rng.integers(0, 2, 30), rng.random(30), rng.random(30)
    calls = []
    for module, name in ((np, "argsort"), (validation, "_numbers")):
        original = getattr(module, name)

        def counted(*args, original=original, name=name, **options):
            calls.append(name)
            return original(*args, **options)

        monkeypatch.setattr(module, name, counted)
    evaluate(y, p_hat, p)
    assert sorted(calls) == ["_numbers"] * 3 + ["argsort"]  # y, p_hat, p
    calls.clear()
    bootstrap(y, {"a": p_hat, "b": p}, p, replicates=50)
    assert (calls.count("argsort"), calls.count("_numbers")) == (2, 6)  # y, p, p_hat by method
