"""TCGA's tables, made up in small and, where they are, as they are."""

import numpy as np
import pandas as pd
import pytest

from probnb.data.survival import label, survival_splits
from probnb.data.tcga import POOLS, coarse_stage, read_tcga, sign_log


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
    for gene in genes:
        columns[f"{gene}_rnaseq"] = rng.normal(0, 300, n)
    return pd.DataFrame({**columns, **changes})


@pytest.fixture
def folder(tmp_path):
    table("luad").to_csv(tmp_path / "tcga_luad.csv.zip")
    table("lusc", genes=("B", "C", "A")).to_csv(tmp_path / "tcga_lusc.csv.zip")
    table("blca", genes=("B", "C")).to_csv(tmp_path / "tcga_blca.csv.zip")
    stages = table("luad")[["case_id"]].assign(pathologic_stage="Stage IIA")
    stages.loc[3, "pathologic_stage"] = np.nan
    stages = stages.rename(columns={"case_id": "bcr_patient_barcode"})
    stages.to_csv(tmp_path / "clinical.csv")
    return tmp_path


def test_genes_in_common_on_a_logarithmic_scale_and_an_indicator_a_cohort(folder):
    cohort = read_tcga(folder)
    assert cohort.inputs.shape == (80, 4)  # A and B, luad and lusc
    luad = table("luad")
    row = np.flatnonzero(cohort.patients == luad["case_id"][5])[0]
    np.testing.assert_allclose(
        cohort.inputs[row], [*sign_log(luad.loc[5, ["A_rnaseq", "B_rnaseq"]]), 1, 0], rtol=1e-6
    )
    assert cohort.months[row] == pytest.approx(luad["survival_months"][5])
    assert cohort.died[row] == (luad["censorship"][5] == 0)
    assert cohort.sites[row] == luad["case_id"][5].split("-")[1]


def test_a_missing_stage_is_unknown_and_counted(folder):
    cohort = read_tcga(folder, "luad")
    stage = cohort.covariates["stage"]
    assert stage.value_counts().to_dict() == {"II": 39, "unknown": 1}
    assert cohort.report["without_stage"] == 1
    (folder / "clinical.csv").unlink()
    assert (read_tcga(folder, "luad").covariates["stage"] == "unknown").all()


def test_an_unknown_sex_is_neither_male_nor_female(folder):
    sex = np.tile([1.0, 0.0, np.nan, 1.0], 10)
    table("luad", is_female=sex).to_csv(folder / "tcga_luad.csv.zip")
    cohort = read_tcga(folder, "luad")
    assert cohort.covariates["sex"].value_counts().to_dict() == {
        "female": 20,
        "male": 10,
        "unknown": 10,
    }
    assert cohort.report["without_sex"] == 10


def test_a_patient_of_two_stages_is_refused(folder):
    twice = pd.read_csv(folder / "clinical.csv")
    twice = pd.concat([twice, twice.iloc[:1].assign(pathologic_stage="Stage IV")])
    twice.to_csv(folder / "clinical.csv")
    with pytest.raises(ValueError, match=r"clinical.csv must have one stage a patient; 'TCGA-00"):
        read_tcga(folder, "luad")


@pytest.mark.parametrize("cut", [0, 10, 300])
def test_a_file_that_cannot_be_read_is_named(folder, cut):
    path = folder / "tcga_luad.csv.zip"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"tcga_luad.csv.zip must be a table.*cannot be read"):
        read_tcga(folder, "luad")


def test_a_clinical_table_without_stages_is_named(folder):
    (folder / "clinical.csv").write_text("bcr_patient_barcode,x\nTCGA-00-lu00,1\n")
    with pytest.raises(ValueError, match=r"clinical.csv must have a column 'pathologic_stage'"):
        read_tcga(folder, "luad")


def test_cohorts_without_a_gene_in_common(folder):
    table("lusc", genes=("D",)).to_csv(folder / "tcga_lusc.csv.zip")
    with pytest.raises(ValueError, match="must have genes in common; luad, lusc have none"):
        read_tcga(folder)


def test_a_missing_value_of_a_gene_is_named(folder):
    broken = table("luad")
    broken.loc[[2, 4], "B_rnaseq"] = np.nan
    broken.to_csv(folder / "tcga_luad.csv.zip")
    with pytest.raises(ValueError, match=r"'B' is missing in 2"):
        read_tcga(folder)


def test_slides_of_a_patient_become_one_row(folder):
    twice = pd.concat([table("luad"), table("luad").iloc[:7]])
    twice.to_csv(folder / "tcga_luad.csv.zip")
    cohort = read_tcga(folder, "luad")
    assert (len(cohort), cohort.report["slides"]) == (40, 47)
    twice.iloc[-1, twice.columns.get_loc("survival_months")] += 1
    twice.to_csv(folder / "tcga_luad.csv.zip")
    with pytest.raises(ValueError, match="must be the same in all rows of a patient"):
        read_tcga(folder, "luad")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"survival_months": -3.0}, r"survival_months must be a number of at least 0 .*got -3.0"),
        ({"survival_months": np.nan}, r"survival_months must be .*tcga_luad.csv.zip; got nan"),
        ({"censorship": 0.5}, r"censorship must be 0 \(died\) or 1 .*; got 0.5 in row 0"),
        ({"censorship": np.nan}, "censorship must be .*got nan"),
        ({"case_id": None}, "case_id must be a barcode .*in row 0"),
        ({"case_id": "TCGA"}, "case_id must be a barcode .*got 'TCGA'"),
        ({"is_female": "x"}, "is_female must be 0, 1 or empty .*got 'x'"),
    ],
)
def test_impossible_follow_up(folder, changes, message):
    table("luad", **changes).to_csv(folder / "tcga_luad.csv.zip")
    with pytest.raises(ValueError, match=message):
        read_tcga(folder, "luad")


def test_what_is_not_there_is_named(folder):
    with pytest.raises(ValueError, match=r"Did you mean 'luad'"):
        read_tcga(folder, "luda")
    with pytest.raises(ValueError, match=r"folder must hold tcga_brca.csv.zip"):
        read_tcga(folder, "brca")
    table("luad").drop(columns="age").to_csv(folder / "tcga_luad.csv.zip")
    with pytest.raises(ValueError, match="must have a column 'age'"):
        read_tcga(folder)
    with pytest.raises(ValueError, match="must name at least one cohort"):
        read_tcga(folder, [])


def test_the_source_follows_the_files(folder):
    before = read_tcga(folder).source
    table("luad", n=41).to_csv(folder / "tcga_luad.csv.zip")
    assert read_tcga(folder).source != before


def test_sign_log_is_odd_and_inverts():
    x = np.array([-7378.0, -1, 0, 1e-9, 11574])
    y = sign_log(x)
    np.testing.assert_allclose(np.sign(y) * np.expm1(np.abs(y)), x)
    np.testing.assert_array_equal(sign_log(-x), -y)


@pytest.mark.parametrize(
    ("stage", "coarse"),
    [("Stage I", "I"), ("Stage IA", "I"), ("Stage IIB", "II"), ("Stage IIIC", "III"),
     ("Stage IV", "IV"), ("Stage IVA", "IV"), (float("nan"), "unknown"), ("Stage X", "unknown"),
     ("stage iv", "IV"), ("STAGE IIIA ", "III"),
     ("I/II NOS", "unknown"), ("Stage Tis", "unknown")],
)  # fmt: skip
def test_stages(stage, coarse):
    assert coarse_stage(stage) == coarse


@pytest.fixture(scope="module")
def lung(data_dir):
    return read_tcga(data_dir / "tcga")


def test_real_lung_cohort(lung):
    cohort = lung
    assert cohort.inputs.shape == (903, 1554 + 2)
    assert np.isfinite(cohort.inputs).all()
    assert cohort.report["without_stage"] == 3
    known = label(cohort.months, cohort.died, "known")
    assert int(known.known.sum()) == 436  # 314 died within five years, 122 lived longer
    assert int((1 - known.outcomes).sum()) == 314
    parts = survival_splits(cohort).parts().values()
    assert sum(len(set(part.groups)) for part in parts) + 374 == 903


@pytest.mark.parametrize("rule", ["paper", "known", "ipcw"])
def test_the_rule_decides_the_share_of_survivors(lung, rule):
    labels = label(lung.months, lung.died, rule)
    share = np.average(labels.outcomes, weights=labels.weights)
    assert share == pytest.approx({"paper": 0.652, "known": 0.280, "ipcw": 0.452}[rule], abs=5e-4)


def test_the_published_deaths_are_only_reached_by_the_papers_rule(data_dir):
    """352 of 1,009 is 359 of TCGA's 1,026 lung patients, with the censored as survivors."""
    clinical = pd.read_csv(data_dir / "tcga" / "clinical.csv", low_memory=False)
    lung = clinical[clinical["acronym"].isin(["LUAD", "LUSC"])]
    died = lung["vital_status"] == "Dead"
    days = lung["days_to_death"].where(died, lung["days_to_last_followup"])
    within = int((died & (days <= 5 * 365.25)).sum())
    alive = int((days > 5 * 365.25).sum())
    assert (len(lung), within, alive) == (1026, 359, 137)
    assert within / len(lung) == pytest.approx(352 / 1009, abs=0.002)
    assert within / (within + alive) == pytest.approx(0.72, abs=0.005)


def test_pooled_cohorts(data_dir):
    cohort = read_tcga(data_dir / "tcga", "all")
    assert cohort.inputs.shape == (5240, 1526 + len(POOLS["all"]))
    splits = survival_splits(cohort, strata="cohort")
    assert splits.report["largest_weight"] < 10
