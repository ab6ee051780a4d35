"""Cohorts and their split by site and patient."""

import numpy as np
import pandas as pd
import pytest

from probnb.data import Bags
from probnb.data.cohort import Cohort, refuse_shared, survival_splits
from probnb.data.survival import kaplan_meier


def cohort(n=300, n_sites=30, **changes):
    rng = np.random.default_rng(5)
    x = rng.normal(3, 2, (n, 4)).astype(np.float32)
    survival, lost = rng.exponential(80, n), rng.exponential(80, n)
    given = {
        "inputs": x,
        "months": np.minimum(survival, lost),
        "died": (survival <= lost).astype(float),
        "patients": np.arange(n),
        "sites": rng.integers(n_sites, size=n),
        "source": "test",
        "covariates": pd.DataFrame({"cohort": np.where(np.arange(n) % 2, "a", "b")}),
    }
    return Cohort(**{**given, **changes})


def test_five_seeds_test_every_patient_once_and_no_site_is_cut():
    c = cohort()
    tested = []
    for seed in range(5):
        splits = survival_splits(c, seed=seed)
        parts = {name: part.ids for name, part in splits.parts().items()}
        sites = [set(c.sites[ids]) for ids in parts.values()]
        assert not (sites[0] & sites[1] or sites[0] & sites[2] or sites[1] & sites[2])
        tested.append(parts["test"])
    np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(300))


def test_the_rule_changes_outcomes_but_not_who_is_tested():
    c = cohort()
    by_rule = {rule: survival_splits(c, rule) for rule in ("paper", "known", "ipcw")}
    for rule in ("known", "ipcw"):
        np.testing.assert_array_equal(by_rule[rule].test.ids, by_rule["paper"].test.ids)
        for name in ("train", "val"):
            all_rows = set(by_rule["paper"].parts()[name].ids)
            assert set(by_rule[rule].parts()[name].ids) < all_rows
            assert by_rule[rule].parts()[name].weights.min() > 0
    report = by_rule["known"].report
    assert report["left_out"] + sum(report["rows"].values()) == 300
    assert report["censored_in_test"] == int((by_rule["known"].test.weights == 0).sum()) > 0
    assert by_rule["paper"].report["left_out"] == 0
    # Among those whose outcome is known, the rules only differ in weight.
    kept = by_rule["ipcw"].test
    assert (kept.outcomes == by_rule["known"].test.outcomes)[kept.weights > 0].all()


def test_the_test_parts_together_weigh_to_the_kaplan_meier_estimate():
    c = cohort()
    parts = [survival_splits(c, "ipcw", seed=seed).test for seed in range(5)]
    y = np.concatenate([part.outcomes for part in parts])
    w = np.concatenate([part.weights for part in parts])
    curve = kaplan_meier(c.months, c.died)
    expected = curve["survival"][curve["months"] <= 60].iloc[-1]
    assert np.average(y, weights=w) == pytest.approx(expected, abs=1e-6)


def test_inputs_are_standardised_by_the_training_part():
    splits = survival_splits(cohort())
    (x,) = splits.train.batch(np.arange(len(splits.train)))
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(0, correction=0), 1, atol=1e-5)
    (other,) = splits.test.batch(np.arange(len(splits.test)))
    assert abs(other.mean(0)).max() > 1e-3


def test_a_wide_table_has_the_variance_of_64_features():
    x = np.random.default_rng(0).normal(2, 3, (300, 256)).astype(np.float32)
    splits = survival_splits(cohort(inputs=x))
    (batch,) = splits.train.batch(np.arange(len(splits.train)))
    np.testing.assert_allclose(batch.std(0, correction=0), 0.5, atol=1e-5)


def test_a_constant_feature_is_only_centred():
    c = cohort()
    x = c.inputs.copy()
    x[:, 2] = 7
    splits = survival_splits(cohort(inputs=x))
    (batch,) = splits.train.batch(np.arange(len(splits.train)))
    assert (batch[:, 2] == 0).all()


def test_censoring_is_counted_once_a_patient():
    # Each patient twice: the same weights as each once.
    once = cohort()
    twice = {
        "inputs": np.repeat(once.inputs, 2, axis=0),
        "covariates": once.covariates.iloc[np.repeat(np.arange(300), 2)].reset_index(drop=True),
    }
    for name in ("months", "died", "patients", "sites"):
        twice[name] = np.repeat(getattr(once, name), 2)
    repeated = Cohort(source="twice", **twice)
    assert repeated.first.sum() == 300
    a = survival_splits(once, "ipcw").test
    b = survival_splits(repeated, "ipcw").test
    # The partition balances rows, so compare patients both test.
    weights = dict(zip(a.groups.tolist(), a.weights.tolist()))
    shared = [i for i, patient in enumerate(b.groups.tolist()) if patient in weights]
    assert shared
    for i in shared:
        assert float(b.weights[i]) == pytest.approx(weights[int(b.groups[i])], rel=1e-6)


def test_bags_split_like_anything_else():
    c = cohort()
    bags = Bags(np.ones((600, 3), np.float32), np.full(300, 2))
    splits = survival_splits(cohort(inputs=bags))
    np.testing.assert_array_equal(splits.test.ids, survival_splits(c).test.ids)
    x, mask = splits.train.batch(np.arange(2))
    assert x.shape == (2, 2, 3)
    assert mask.all()


def test_a_patient_in_two_parts_is_refused():
    with pytest.raises(ValueError, match=r"train and test must not share a patient; both have 'b'"):
        refuse_shared({"train": ["a", "b"], "val": ["c"], "test": ["b", "d"]})
    refuse_shared({"train": ["a", "a"], "val": ["b"]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"months": np.full(300, -0.5)}, "months must be finite and at least 0; got -0.5"),
        ({"died": np.zeros(299)}, "same length"),
        ({"patients": np.zeros(300)}, "must be the same in all rows of a patient"),
        ({"sites": np.arange(299)}, "sites must have the 300 rows"),
        ({"probabilities": np.full(300, 1.5)}, "probabilities must hold probabilities"),
    ],
)
def test_a_cohort_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        cohort(**changes)


def test_wrong_settings():
    with pytest.raises(ValueError, match="folds must be at most the 4 sites"):
        survival_splits(cohort(n_sites=4))
    with pytest.raises(ValueError, match="strata must be one of cohort; got 'stage'"):
        survival_splits(cohort(), strata="stage")
    with pytest.raises(ValueError, match="seed must be an integer"):
        survival_splits(cohort(), seed=-1)


def test_everybody_censored_is_an_error():
    with pytest.raises(ValueError, match="all 300 patients are censored"):
        survival_splits(cohort(months=np.full(300, 12.0), died=np.zeros(300)))
