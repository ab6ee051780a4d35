"""Follow-up to outcomes: the three rules, their weights, and what cannot be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sksurv.nonparametric import CensoringDistributionEstimator, kaplan_meier_estimator
from sksurv.util import Surv

from probnb.data.survival import effective_size, kaplan_meier, label

# Five patients: died at 10 and 60, seen alive to 20, 60 and 90.
MONTHS, DIED = [10, 60, 20, 60, 90], [1, 1, 0, 0, 0]


def test_the_papers_rule_counts_the_censored_as_survivors():
    labels = label(MONTHS, DIED, "paper")
    np.testing.assert_array_equal(labels.outcomes, [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(labels.weights, np.ones(5))
    np.testing.assert_array_equal(labels.known, [True, True, False, True, True])


def test_known_leaves_out_who_was_lost_before_the_horizon():
    labels = label(MONTHS, DIED, "known")
    np.testing.assert_array_equal(labels.weights, [1, 1, 0, 1, 1])


def test_ipcw_by_hand():
    # Only the loss at 20, among four still followed, censors: G = 3/4 after 20 months.
    labels = label(MONTHS, DIED, "ipcw")
    np.testing.assert_allclose(labels.weights, [1, 4 / 3, 0, 4 / 3, 4 / 3])


def test_a_death_at_the_time_of_a_loss_comes_first():
    # At 20 months one dies and one is lost: the death is seen for certain, G(20-) = 1.
    labels = label([20, 20, 70, 80], [1, 0, 0, 0], "ipcw")
    np.testing.assert_allclose(labels.weights, [1, 0, 1.5, 1.5])


@given(
    st.lists(st.tuples(st.integers(0, 90), st.booleans()), min_size=3, max_size=40).filter(
        lambda rows: any(t >= 60 for t, _ in rows)
    )
)
def test_weighted_share_of_survivors_is_the_kaplan_meier_estimate(rows):
    months = np.array([t for t, _ in rows], float)
    died = np.array([d for _, d in rows])
    labels = label(months, died, "ipcw")
    assert labels.weights.sum() == pytest.approx(len(months))
    if died.any():
        times, survival = kaplan_meier_estimator(died, months)
        expected = np.append(1, survival)[np.searchsorted(times, 60, side="right")]
    else:
        expected = 1
    mean = np.average(labels.outcomes, weights=labels.weights)
    assert mean == pytest.approx(expected, abs=1e-12)


def test_weights_of_deaths_are_those_of_scikit_survival():
    rng = np.random.default_rng(0)
    survival, lost = rng.exponential(50, 200), rng.exponential(50, 200)  # no ties
    months, died = np.minimum(survival, lost), survival <= lost
    ours = label(months, died, "ipcw", horizon=40).weights
    theirs = CensoringDistributionEstimator().fit(Surv.from_arrays(died, months))
    theirs = theirs.predict_ipcw(Surv.from_arrays(died, months))
    dead = died & (months <= 40)
    np.testing.assert_allclose(ours[dead], theirs[dead])
    assert ours[months < 40].sum() == pytest.approx(ours[dead].sum())


def test_each_stratum_has_its_own_censoring():
    strata = np.repeat(["early", "late"], 5)
    both = label(MONTHS * 2, DIED * 2, "ipcw", strata=strata).weights
    np.testing.assert_allclose(both, np.tile(label(MONTHS, DIED, "ipcw").weights, 2))
    second = label([*MONTHS, 70, 70, 70, 70, 70], [*DIED, 0, 0, 0, 0, 0], "ipcw", strata=strata)
    np.testing.assert_allclose(second.weights[5:], 1)


def test_censoring_may_come_from_other_rows():
    reference = np.array([True] * 5 + [False])
    weights = label([*MONTHS, 15], [*DIED, 0], "ipcw", reference=reference).weights
    np.testing.assert_allclose(weights[:5], label(MONTHS, DIED, "ipcw").weights)


def test_without_censoring_all_rules_agree():
    months = [10, 30, 70, 61]
    for rule in ("paper", "known", "ipcw"):
        labels = label(months, [1, 1, 1, 1], rule)
        np.testing.assert_array_equal(labels.outcomes, [0, 0, 1, 1])
        np.testing.assert_array_equal(labels.weights, 1)


@pytest.mark.parametrize(
    ("months", "died", "kwargs", "message"),
    [
        ([10, -1], [1, 0], {}, r"months must be finite and at least 0; got -1.0 in row 1"),
        ([10, np.nan], [1, 0], {}, "months .* got nan in row 1"),
        ([10, 20], [1, 2], {}, "died must hold only 0 and 1; got 2"),
        ([10, 20, 30], [1, 0], {}, "same length; got 3 and 2"),
        ([10, 20], [0, 0], {}, "all 2 patients are censored"),
        ([70, 20], [0, 1], {"rule": "ipwc"}, "Did you mean 'ipcw'"),
        ([70, 20], [0, 1], {"horizon": 0}, "horizon must be a finite number"),
        ([70, 20], [0, 1], {"strata": ["a"]}, "strata must have 2 rows"),
        ([70, 20], [0, 1], {"reference": [False, False]}, "reference must have patients"),
    ],
)
def test_what_cannot_be_is_named(months, died, kwargs, message):
    with pytest.raises(ValueError, match=message):
        label(months, died, **kwargs)


@pytest.mark.parametrize("rule", ["paper", "known", "ipcw"])
def test_all_censored_is_an_error_under_every_rule(rule):
    with pytest.raises(ValueError, match="all 3 patients are censored"):
        label([1, 2, 3], [0, 0, 0], rule)


def test_a_horizon_beyond_the_follow_up_of_the_reference_is_an_error():
    # The reference is lost by 20 months; the other patient lives to 70: their weight is infinite.
    with pytest.raises(ValueError, match="nobody is followed for 60 months"):
        label([10, 20, 70], [1, 0, 0], "ipcw", reference=[True, True, False])


def test_kaplan_meier_starts_at_one_and_brackets_itself():
    curve = kaplan_meier(MONTHS, DIED)
    assert curve.iloc[0].tolist() == [0, 1, 1, 1]
    np.testing.assert_allclose(curve["survival"], [1, 0.8, 0.8, 0.8 * 2 / 3, 0.8 * 2 / 3])
    inside = curve.iloc[1:]
    assert (inside["low"] <= inside["survival"]).all()
    assert (inside["survival"] <= inside["high"]).all()


def test_effective_size():
    assert effective_size([2, 2, 2]) == 3
    assert effective_size([1, 0, 0]) == 1
    assert effective_size([1, 3]) == pytest.approx(1.6)
