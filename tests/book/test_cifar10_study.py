import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp, ttest_rel

from probnb.metrics import kl_p, mse_p
from probnb.metrics.votes import check_votes
from probnb_book.cifar10.study import compare_seeds

from .pages import defined

page = defined("cifar10")
N = 400


def table(seed=0, n=9, size=N, shift=0.0):
    """Test rows with votes, p, and three methods of which each is nearer to p than the last."""
    rng = np.random.default_rng([1, seed])
    p = rng.beta(0.7, 1.5, size)
    noise = rng.standard_normal(size)
    table = pd.DataFrame({"split": "test", "id": range(size), "y": rng.binomial(1, p), "p": p})
    off = {"ce": 0.2 * noise, "platt": 0.15 * noise + shift, "cape_bin": 0.05 * noise}
    said = {name: np.clip(p + by, 0.01, 0.99) for name, by in off.items()}
    return table.assign(**said, k=rng.binomial(n, p), n=n)


def test_ratio_of_the_first_direction_hardly_moves_and_of_the_printed_one_grows_without_end():
    p = np.repeat(np.arange(10) / 10, 20)
    p_hat = np.clip(p + 0.1 * np.tile([-1, 1], 100), 0.02, 0.98)
    ratios = page.kl_ratios(p, p_hat, clips=(1e-4, 1e-8, 1e-12))
    first, printed = (
        ratios[ratios["direction"] == d]["ratio"].to_numpy() for d in ("p||p_hat", "p_hat||p")
    )
    assert np.ptp(first) < 0.01
    assert first[0] == pytest.approx(kl_p(p, p_hat) / mse_p(p, p_hat), rel=5e-3)
    mean = p_hat[p == 0].mean() / 10  # of the rows with p = 0, a tenth
    step = mean * np.log(1e4) / mse_p(p, p_hat)
    assert np.diff(printed) == pytest.approx([step, step], rel=0.01)


def test_one_seed_is_the_paired_t_test_over_rows():
    data = table().drop(columns=["k", "n"])
    result = compare_seeds([data], replicates=5_000)
    a, b = ((data[m] - data["p"]) ** 2 for m in ("platt", "ce"))
    test = ttest_rel(a, b).confidence_interval(0.95)
    assert result.loc["platt", ["low", "high"]].tolist() == pytest.approx(list(test), rel=0.06)
    assert result.loc["cape_bin", "high"] < 0 and result.loc["ce", "value"] == 0
    assert (result["seeds"] == 1).all() and result["spread"].isna().all()


def test_seeds_with_test_rows_of_their_own_are_students_over_seeds():
    """Row noise, which the spread of seeds holds already, is not added to it once more."""
    tables = [table(s).assign(id=lambda d, s=s: d["id"] + N * s) for s in range(4)]
    found = compare_seeds(tables).loc["platt"]
    gaps = [mse(t, "platt") - mse(t, "ce") for t in tables]
    expected = ttest_1samp(gaps, 0)
    assert found["value"] == pytest.approx(np.mean(gaps))
    ends = tuple(expected.confidence_interval(0.95))
    assert (found["low"], found["high"]) == pytest.approx(ends)
    assert found["p"] == pytest.approx(expected.pvalue)


def mse(data, method):
    votes = check_votes(data["k"], data["n"])
    return votes.squared_error(data[method].to_numpy()).mean()


def test_values_from_votes_are_those_of_the_probabilities_within_their_noise():
    data = table(size=20_000)
    votes, truth = compare_seeds([data]), compare_seeds([data.drop(columns=["k", "n"])])
    assert np.allclose(votes["mean"], truth["mean"], atol=0.002)
    assert np.allclose(votes["value"], truth["value"], atol=0.002)


def test_seeds_that_disagree_widen_the_interval_and_seeds_that_agree_do_not_shrink_it_away():
    same = [table(), table(), table()]
    apart = [table(shift=s) for s in (-0.2, 0.0, 0.2)]
    one, agree, disagree = (compare_seeds(t).loc["platt"] for t in ([table()], same, apart))
    width = [r["high"] - r["low"] for r in (one, agree, disagree)]
    assert width[1] == pytest.approx(width[0], rel=0.01)  # the rows are the same three times
    assert width[2] > 3 * width[1]


def test_far_out_three_seeds_are_not_taken_for_more():
    """Holm's rule looks at small p-values; those over shared rows are no smaller than Student's."""
    tables = [table().assign(platt=lambda d, s=s: d["ce"] + s) for s in (0.010, 0.011, 0.013)]
    found = compare_seeds(tables).loc["platt"]
    gaps = [mse(t, "platt") - mse(t, "ce") for t in tables]
    assert found["p"] >= ttest_1samp(gaps, 0).pvalue


def test_luck_of_a_seeds_votes_is_no_correlation(tmp_path):
    rng = np.random.default_rng(0)
    mse = rng.uniform(0.05, 0.1, 40)
    seeds = np.repeat([0, 1], 20)
    points = {"metric": "models", "method": "ce", "mean": mse, "reference": seeds.astype(str)}
    points = pd.DataFrame(points).assign(data="ferplus", question="neutral")
    points["spread"] = 0.2 + (seeds == 0) * 0.3 + mse**3
    found = page.brier_follows(points, tmp_path)
    assert found["rank"].tolist() == [1, 1] and found["models"].tolist() == [20, 20]
    assert np.corrcoef(mse, points["spread"])[0, 1] < 0
    points.loc[[0, 20], "method"] = "ce_overfit"
    assert page.brier_follows(points, tmp_path)["models"].tolist() == [19, 19]
