"""Follow-up to outcomes: the three rules, their weights, and what cannot be."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sksurv.nonparametric import CensoringDistributionEstimator, kaplan_meier_estimator
from sksurv.util import Surv

from probnb.data import Bags
from probnb_book.data.survival import POOLS, Cohort, coarse_stage, label, read_tcga, survival_splits

# Five patients: died at 10 and 60, seen alive to 20, 60 and 90.
MONTHS, DIED = [10, 60, 20, 60, 90], [1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("rule", "weights"),
    [
        ("paper", [1, 1, 1, 1, 1]),  # the censored count as survivors
        ("known", [1, 1, 0, 1, 1]),
        # only the loss at 20, among four still followed, censors: G = 3/4 after 20 months
        ("ipcw", [1, 4 / 3, 0, 4 / 3, 4 / 3]),
    ],
)
def test_five_patients_by_hand(rule, weights):
    labels = label(MONTHS, DIED, rule)
    np.testing.assert_array_equal(labels.outcomes, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(labels.weights, weights)
    np.testing.assert_array_equal(labels.known, [True, True, False, True, True])
    with pytest.raises(ValueError, match="all are lost"):
        label([1, 2, 3], [0, 0, 0], rule)


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
        ([10, -1], [1, 0], {}, r"months must be finite and at least 0; got -1 in row 1"),
        ([10, np.nan], [1, 0], {}, "months .* got nan in row 1"),
        ([10, 20], [1, 2], {}, "died must hold only 0 and 1; got 2"),
        ([10, 20, 30], [1, 0], {}, "same length; got 3 and 2"),
        ([10, 20], [0, 0], {}, "all are lost"),
        ([70, 20], [0, 1], {"rule": "ipwc"}, "Did you mean 'ipcw'"),
        ([70, 20], [0, 1], {"horizon": 0}, "horizon must be a finite number"),
        ([70, 20], [0, 1], {"strata": ["a"]}, "strata and months must have the same .* 1 and 2"),
        ([70, 20], [0, 1], {"reference": np.zeros(2, bool)}, "no row that may tell"),
        # The reference is lost by 20 months, the other patient lives to 70: an infinite weight.
        (
            [10, 20, 70],
            [1, 0, 0],
            {"reference": np.arange(3) < 2},
            "horizon must be within each stratum",
        ),
    ],
)
def test_what_cannot_be_is_named(months, died, kwargs, message):
    with pytest.raises(ValueError, match=message):
        label(months, died, **kwargs)


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
        ids = [part.ids for part in survival_splits(c, seed=seed).parts().values()]
        sites = [set(c.sites[rows]) for rows in ids]
        assert len(set.union(*sites)) == sum(map(len, sites))
        tested.append(ids[2])
    np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(300))


def test_the_rule_changes_outcomes_but_not_who_is_tested():
    c = cohort()
    paper, known, ipcw = (survival_splits(c, rule) for rule in ("paper", "known", "ipcw"))
    for one in (known, ipcw):
        np.testing.assert_array_equal(one.test.ids, paper.test.ids)
        for name in ("train", "val"):
            part = one.parts()[name]
            assert set(part.ids) < set(paper.parts()[name].ids) and part.weights.min() > 0
    report = known.report
    assert report["left_out"] + sum(map(len, known.parts().values())) == 300
    assert report["censored_in_test"] == int((known.test.weights == 0).sum()) > 0
    assert paper.report["left_out"] == 0
    # Among those whose outcome is known, the rules only differ in weight.
    assert (ipcw.test.outcomes == known.test.outcomes)[ipcw.test.weights > 0].all()


def test_the_test_parts_together_weigh_to_the_kaplan_meier_estimate():
    c = cohort()
    parts = [survival_splits(c, "ipcw", seed=seed).test for seed in range(5)]
    y = np.concatenate([part.outcomes for part in parts])
    w = np.concatenate([part.weights for part in parts])
    times, survival = kaplan_meier_estimator(c.died.astype(bool), c.months)
    expected = survival[times <= 60][-1]
    assert np.average(y, weights=w) == pytest.approx(expected, abs=1e-6)


def test_inputs_are_standardised_by_the_training_part():
    """A constant feature is only centred; a wide table has the variance of 64 features."""
    wide = np.random.default_rng(0).normal(2, 3, (300, 256)).astype(np.float32)
    one_constant = cohort().inputs * np.float32([1, 1, 0, 1])
    for inputs, deviation in ((one_constant, [1, 1, 0, 1]), (wide, 0.5)):
        splits = survival_splits(cohort(inputs=inputs))
        (x,) = splits.train.batch(np.arange(len(splits.train)))
        np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(x.std(0, correction=0), deviation, atol=1e-5)
        (other,) = splits.test.batch(np.arange(len(splits.test)))
        assert abs(other.mean(0)).max() > 1e-3


def test_censoring_is_counted_once_a_patient():
    # Each patient twice: the same weights as each once.
    once, rows = cohort(), np.repeat(np.arange(300), 2)
    twice = {
        name: getattr(once, name)[rows]
        for name in ("inputs", "months", "died", "patients", "sites")
    }
    repeated = cohort(**twice, covariates=once.covariates.iloc[rows].reset_index(drop=True))
    assert repeated.first.sum() == 300
    a, b = (survival_splits(c, "ipcw").test for c in (once, repeated))
    # The partition balances rows, so compare patients both test.
    a, b = (pd.Series(part.weights, part.groups) for part in (a, b))
    shared = b.index.intersection(a.index)
    assert len(shared)
    for patient in shared:
        np.testing.assert_allclose(b[patient], a[patient], rtol=1e-6)


@pytest.mark.parametrize(
    ("sites", "seed", "words"), [(4, 0, "5 sites at least; got 4"), (30, -1, "seed must be an int")]
)
def test_wrong_settings(sites, seed, words):
    with pytest.raises(ValueError, match=words):
        survival_splits(cohort(n_sites=sites), seed=seed)


def test_bags_split_like_anything_else():
    c = cohort()
    bags = Bags(np.ones((600, 3), np.float32), np.full(300, 2))
    splits = survival_splits(cohort(inputs=bags))
    np.testing.assert_array_equal(splits.test.ids, survival_splits(c).test.ids)
    x, mask = splits.train.batch(np.arange(2))
    assert x.shape == (2, 2, 3) and mask.all()


# The tables of TCGA, made up in small and, where they are, as they are.


def table(cohort, n=40, genes=("A", "B"), **changes):
    rng = np.random.default_rng(len(cohort) + n)
    patients = [f"TCGA-{i % 8:02d}-{cohort[2:]}{i:02d}" for i in range(n)]
    columns = {
        "case_id": patients,
        "age": rng.integers(40, 80, n).astype(float),
        "survival_months": rng.uniform(0, 120, n),
        "censorship": rng.integers(0, 2, n).astype(float),
        "is_female": rng.integers(0, 2, n).astype(float),
    }
    rates = {f"{gene}_rnaseq": rng.normal(0, 300, n) for gene in genes}
    return pd.DataFrame({**columns, **rates, **changes})


@pytest.fixture
def folder(tmp_path):
    for cohort, genes in {"luad": "AB", "lusc": "BCA", "blca": "BC"}.items():
        table(cohort, genes=genes).to_csv(tmp_path / f"tcga_{cohort}.csv.zip")
    stages = pd.DataFrame(
        {"bcr_patient_barcode": table("luad")["case_id"], "pathologic_stage": "Stage IIA"}
    )
    stages.loc[3, "pathologic_stage"] = np.nan
    stages.to_csv(tmp_path / "clinical.csv")
    return tmp_path


def test_genes_in_common_on_a_logarithmic_scale_and_an_indicator_a_cohort(folder):
    cohort = read_tcga(folder)
    assert cohort.inputs.shape == (80, 4)  # A and B, luad and lusc
    luad = table("luad")
    row = np.flatnonzero(cohort.patients == luad["case_id"][5])[0]
    x = luad.loc[5, ["A_rnaseq", "B_rnaseq"]].to_numpy(float)
    expected = [*(np.sign(x) * np.log1p(np.abs(x))), 1, 0]
    np.testing.assert_allclose(cohort.inputs[row], expected, rtol=1e-6)
    assert cohort.months[row] == pytest.approx(luad["survival_months"][5])
    assert cohort.died[row] == (luad["censorship"][5] == 0)
    assert cohort.sites[row] == luad["case_id"][5].split("-")[1]


def test_a_missing_stage_is_unknown(folder):
    stage = read_tcga(folder, "luad").covariates["stage"]
    assert stage.value_counts().to_dict() == {"II": 39, "unknown": 1}
    (folder / "clinical.csv").unlink()
    assert (read_tcga(folder, "luad").covariates["stage"] == "unknown").all()


def test_an_unknown_sex_is_neither_male_nor_female(folder):
    sex = np.tile([1.0, 0.0, np.nan, 1.0], 10)
    table("luad", is_female=sex).to_csv(folder / "tcga_luad.csv.zip")
    counts = read_tcga(folder, "luad").covariates["sex"].value_counts()
    assert counts.to_dict() == {"female": 20, "male": 10, "unknown": 10}


def test_slides_of_a_patient_become_one_row(folder):
    twice = pd.concat([table("luad"), table("luad").iloc[:7]])
    twice.to_csv(folder / "tcga_luad.csv.zip")
    cohort = read_tcga(folder, "luad")
    assert (len(cohort), cohort.report["slides"]) == (40, 47)
    twice.iloc[-1, twice.columns.get_loc("survival_months")] += 1
    twice.to_csv(folder / "tcga_luad.csv.zip")
    with pytest.raises(ValueError, match="must be the same in all rows"):
        read_tcga(folder, "luad")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"survival_months": -3.0}, "months must be finite and at least 0; got -3.0 in row 0"),
        ({"survival_months": np.nan}, "months must be finite .*got nan"),
        ({"censorship": 0.5}, "died must hold only 0 and 1; got 0.5"),
        ({"censorship": np.nan}, "died must hold only 0 and 1; got nan"),
        ({"case_id": [f"TCGA{i}" for i in range(40)]}, "sites must not be missing"),
        ({"A_rnaseq": np.nan}, "inputs must be finite"),
    ],
)
def test_impossible_tables(folder, changes, message):
    table("luad", **changes).to_csv(folder / "tcga_luad.csv.zip")
    with pytest.raises(ValueError, match=message):
        survival_splits(read_tcga(folder, "luad"))


def test_what_is_not_there_is_named(folder):
    with pytest.raises(ValueError, match="Did you mean 'luad'"):
        read_tcga(folder, "luda")
    with pytest.raises(FileNotFoundError, match=r"tcga_brca.csv.zip"):
        read_tcga(folder, "brca")


def test_the_source_follows_the_files_and_an_age_may_be_missing(folder):
    before = read_tcga(folder).source
    table("luad", n=41, age=None).to_csv(folder / "tcga_luad.csv.zip")
    assert read_tcga(folder).source != before
    assert read_tcga(folder, "luad").covariates["age"].isna().all()


@pytest.mark.parametrize(
    ("coarse", "stages"),
    [
        ("I", ["Stage I", "Stage IA"]),
        ("II", ["Stage IIB"]),
        ("III", ["Stage IIIC", "STAGE IIIA "]),
        ("IV", ["Stage IV", "Stage IVA", "stage iv"]),
        ("unknown", [float("nan"), "Stage X", "I/II NOS", "Stage Tis"]),
    ],
)
def test_stages(coarse, stages):
    assert {coarse_stage(stage) for stage in stages} == {coarse}


@pytest.fixture(scope="module")
def lung(data_dir):
    return read_tcga(data_dir / "tcga")


def test_real_lung_cohort(lung):
    assert lung.inputs.shape == (903, 1554 + 2) and np.isfinite(lung.inputs).all()
    assert (lung.covariates["stage"] == "unknown").sum() == 3
    known = label(lung.months, lung.died, "known")
    assert int(known.known.sum()) == 436  # 314 died within five years, 122 lived longer
    assert int((1 - known.outcomes).sum()) == 314
    parts = survival_splits(lung).parts().values()
    assert sum(len(set(part.groups)) for part in parts) + 374 == 903


@pytest.mark.parametrize("rule", ["paper", "known", "ipcw"])
def test_the_rule_decides_the_share_of_survivors(lung, rule):
    labels = label(lung.months, lung.died, rule)
    share = np.average(labels.outcomes, weights=labels.weights)
    assert share == pytest.approx({"paper": 0.652, "known": 0.280, "ipcw": 0.452}[rule], abs=5e-4)


def test_pooled_cohorts(data_dir):
    cohort = read_tcga(data_dir / "tcga", ("lihc", "paad"))
    assert cohort.inputs.shape[1] > 1526 and set(POOLS["all"]) > {"lihc", "paad"}
    splits = survival_splits(cohort, strata="cohort")
    assert splits.report["largest_weight"] < 10
