"""The rules for the censored, where the truth is known: two are biased, one is not."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from probnb.chapters.real_world import censoring


@pytest.fixture(scope="module")
def table():
    return censoring.rule_bias((0.2, 0.5), patients=500, repeats=60, seed=3)


def bias(table, censored, rule, quantity="all"):
    row = table[
        (table["censored"] == censored) & (table["rule"] == rule) & (table["quantity"] == quantity)
    ]
    return row["bias"].item(), row["se"].item()


@pytest.mark.parametrize("quantity", ["all", "worst third", "best third"])
@pytest.mark.parametrize("censored", [0.2, 0.5])
def test_two_rules_are_biased_in_opposite_directions_and_weights_are_not(table, censored, quantity):
    paper, paper_se = bias(table, censored, "paper", quantity)
    known, known_se = bias(table, censored, "known", quantity)
    ipcw, ipcw_se = bias(table, censored, "ipcw", quantity)
    assert paper > 10 * paper_se
    assert known < -5 * known_se
    assert abs(ipcw) < 3.5 * ipcw_se
    assert abs(ipcw) < 0.02


def test_more_censoring_more_bias(table):
    for rule in ("paper", "known"):
        assert abs(bias(table, 0.5, rule)[0]) > 2 * abs(bias(table, 0.2, rule)[0])


def test_the_papers_rule_makes_the_truth_look_overconfident(table):
    assert bias(table, 0.5, "paper", "slope")[0] < -0.15
    slope, se = bias(table, 0.5, "ipcw", "slope")
    assert abs(slope) < 3.5 * se


def test_slope_is_that_of_logistic_regression():
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=200), rng.uniform(0, 3, 200)
    y = (rng.random(200) < 1 / (1 + np.exp(-z))).astype(float)
    model = LogisticRegression(C=1e12, tol=1e-12, max_iter=1000).fit(z[:, None], y, w)
    assert censoring._slope(y, w, z) == pytest.approx(model.coef_[0, 0], rel=1e-5)


def test_the_sentence_follows_the_table(table):
    text = censoring.rule_bias_sentence(table)
    row = table[(table["censored"] == 0.5) & (table["rule"] == "paper")].iloc[0]
    assert f"{row['estimate']:.1%}" in text
    assert "not told apart from the truth" in text
    changed = table.assign(bias=np.where(table["rule"] == "ipcw", 0.3, table["bias"]))
    assert "which differs from the truth" in censoring.rule_bias_sentence(changed)
