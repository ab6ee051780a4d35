"""Power of a paired test over seeds, against printed sample sizes, simulation and the bootstrap."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t, ttest_1samp

from probnb_book import evidence

from .pages import defined

page = defined("appendix")


@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_sample_sizes_of_cohen(effect, pairs):
    """Small, medium and large effects of a paired t-test at 5 % and 80 %, as tables print them."""
    assert page.seeds_needed(effect, 1) == pairs
    assert page.seeds_needed(100 * effect, 100) == pairs  # the unit does not matter


@pytest.mark.parametrize(("seeds", "ratio"), [(2, 8), (3, 2.5), (5, 1.5), (12, 0.3)])
def test_power_is_the_share_of_tests_that_reject(seeds, ratio):
    drawn = np.random.default_rng(0).normal(ratio, 1, (seeds, 40_000))
    share = (ttest_1samp(drawn, 0).pvalue < 0.05).mean()
    assert page.power(seeds, ratio) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("ratio", [0.3, 0.7, 1, 2, 5, 12, 60])
def test_no_fewer_would_do(ratio):
    n = page.seeds_needed(ratio, 1)
    assert page.power(n, ratio) >= 0.8
    assert n == 2 or page.power(n - 1, ratio) < 0.8


@pytest.mark.parametrize("std", [0, 0.0, 1e-300, 1e-6, 1e-3])
def test_without_noise_two_are_enough(std):
    assert page.seeds_needed(0.1, std) == page.seeds_needed(-0.1, std) == 2


def test_deviations_are_those_of_the_stored_runs(best):
    """Between seeds as `evidence.compare` has it, and over rows as the bootstrap has it."""
    table = page.spread({"linear": best["linear"]})
    ce = [evidence.values(line, "mse_p")["ce"] for line in best["linear"].itertuples(index=False)]
    unit = 100 / np.mean(ce)  # per cent of the error of early stopping
    for a, b in (("ce", "cape_bin"), ("ensemble", "cape_bin")):
        one, gap = table.loc[(a, b)], evidence.compare(best["linear"], a, b)
        half = t.ppf(0.975, gap.seeds - 1) * one["std"] / gap.seeds**0.5
        assert unit * (gap.high - gap.low) / 2 == pytest.approx(half, rel=1e-9)
        variances = []
        for line in best["linear"].itertuples(index=False):
            boot = evidence._resampled(evidence.tables(line)[1], (a, b), "mse_p")
            variances.append((unit * (boot.samples[:, 0, 0] - boot.samples[:, 1, 0])).var())
        assert one["rows"] == pytest.approx(np.mean(variances) ** 0.5, rel=0.05)


def test_scenarios_are_pooled_by_their_degrees(best):
    several = {s: runs for s, runs in best.items() if len(runs) > 1}
    parts = [page.spread({s: runs}).loc[("ce", "cape_bin")] for s, runs in several.items()]
    whole = page.spread(best).loc[("ce", "cape_bin")]
    squares = sum(part["df"] * part["std"] ** 2 for part in parts)
    assert whole["df"] == sum(len(runs) - 1 for runs in several.values())
    assert whole["std"] == pytest.approx((squares / whole["df"]) ** 0.5)
    assert page.spread({"x": best["linear"].iloc[:1]}).empty  # one training shows no spread


def test_an_error_that_is_tenfold_in_one_scenario_does_not_rule(monkeypatch):
    """Ten times the error with ten times the deviation is the same in per cent."""
    rng = np.random.default_rng(1)
    small = [pd.DataFrame(rng.random((50, 2)), columns=["ce", "platt"]).assign(p=0) for _ in "abcd"]
    large = [np.sqrt(10) * test for test in small]
    tests = dict(enumerate(small + large))
    monkeypatch.setattr(evidence, "tables", lambda line: (None, tests[line.seed]))
    monkeypatch.setattr(evidence, "methods_of", lambda test: ["ce", "platt"])
    runs = {"a": pd.DataFrame({"seed": range(4)}), "b": pd.DataFrame({"seed": range(4, 8)})}
    both, one = page.spread(runs), page.spread({"a": runs["a"]})
    assert both["std"].iloc[0] == pytest.approx(one["std"].iloc[0])


def test_interval_of_a_deviation(monkeypatch):
    """Printed factors for five degrees of freedom: 0.624 and 2.453."""
    rng = np.random.default_rng(0)
    tests = [pd.DataFrame(rng.random((50, 3)), columns=["p", "ce", "platt"]) for _ in range(6)]
    monkeypatch.setattr(evidence, "tables", lambda line: (None, tests[line.seed]))
    one = page.spread({"x": pd.DataFrame({"seed": range(6)})}).loc[("ce", "platt")]
    assert one["df"] == 5
    assert one["low"] / one["std"] == pytest.approx(0.6242, abs=1e-4)
    assert one["high"] / one["std"] == pytest.approx(2.4526, abs=1e-4)
