"""Facts about the paper's own text that the chapter on errata states and no other test shows."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from probnb.empirical import p_emp_kernel
from probnb.metrics import auc, ece, kl_p, ks_error, reliability_bins
from probnb.published import published
from probnb.scenarios import probability


def test_printed_direction_of_kl_is_infinite_where_a_probability_is_0_or_1():
    # CIFAR-10's class 0 has p = 0, and so have the babies of the linear scenario.
    assert probability([0], "linear").item() == 0
    assert kl_p([0.0, 0.5], [0.1, 0.5], direction="p_hat||p") == np.inf
    assert np.isfinite(kl_p([0.0, 0.5], [0.1, 0.5], direction="p||p_hat"))


def test_ks_over_the_printed_range_sees_only_the_means():
    # "max over 1 <= sigma <= 1" would compare the two curves at their common end only.
    y, p_hat = np.array([0, 1] * 50), np.array([0.9, 0.1] * 50)
    assert y.mean() == pytest.approx(p_hat.mean())
    assert ks_error(y, p_hat) == pytest.approx(0.45)


def test_closed_bins_would_count_a_prediction_on_a_quantile_twice():
    # [Q_(b-1), Q_b] holds both its ends. Here the median is a prediction that five rows share.
    p_hat = np.array([0.1, 0.1, 0.4, 0.4, 0.4, 0.4, 0.4, 0.8, 0.8, 0.9])
    y = np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 1])
    edge = np.quantile(p_hat, 0.5)
    assert ((p_hat <= edge).sum() + (p_hat >= edge).sum()) == len(p_hat) + 5
    assert reliability_bins(y, p_hat, bins=2).count.sum() == len(p_hat)
    assert ece(y, p_hat, bins=2) == ece(y[::-1], p_hat[::-1], bins=2)


def test_mix_n_match_of_the_tables_was_not_isotonic():
    # Isotonic regression merges rows, which changes the AUC; the three tables have equal ones.
    auc_of = published(method=["temperature", "mixnmatch"], metric="auc", table=2)
    pairs = auc_of.pivot(index="scenario", columns="method", values="value")
    assert len(pairs) == 3
    assert (pairs["temperature"] == pairs["mixnmatch"]).all()


def test_temperature_zero_is_one_hot():
    logits = np.array([-2.0, -0.1, 0.3, 4.0])
    assert np.array_equal(expit(logits / 1e-12), [0, 0, 1, 1])


def test_the_two_kernels_differ_by_one_constant():
    rng = np.random.default_rng(0)
    p_hat, sigma = rng.random(60), 0.05
    y = (rng.random(60) < p_hat).astype(float)
    weight = np.exp(-((p_hat[:, None] - p_hat) ** 2) / (2 * sigma**2))  # as released
    released = weight @ y / weight.sum(1)
    assert p_emp_kernel(p_hat, y, 60, sigma * np.sqrt(2)) == pytest.approx(released, abs=1e-12)
    assert np.abs(p_emp_kernel(p_hat, y, 60, sigma) - released).max() > 0.01


def test_norm_of_the_residuals_grows_with_n_not_p():
    # At the start of Lemma A.4 the residuals y' - sigma(0) are n numbers, each +-1/2.
    n, p = 1000, 10
    y = np.random.default_rng(0).integers(0, 2, n)
    assert np.linalg.norm(y - expit(0)) == pytest.approx(np.sqrt(n) / 2)
    assert np.sqrt(n) / 2 > 2 * np.sqrt(p)  # beyond the printed bound


def test_standard_error_of_an_auc_on_158_slides():
    # 352 of 1,009 patients died, so about 103 of 158 slides have outcome 1.
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0], [55, 103])
    gap = 0.3134  # two unit normals that far apart have the AUC of CE early-stop, .5888
    draws = [auc(y, expit(rng.normal(gap * y))) for _ in range(1000)]
    assert np.mean(draws) == pytest.approx(0.5888, abs=0.005)
    assert np.std(draws) == pytest.approx(0.05, abs=0.005)
    printed = published("cancer", metric="auc", percent=False).set_index("method")["value"]
    assert printed["ce"] - printed["ensemble"] < 2 * np.std(draws)


def test_share_of_deaths_counts_the_censored_as_survivors(data_dir):
    patients = pd.read_csv(data_dir / "tcga" / "clinical.csv")
    lung = patients[patients["acronym"].isin(["LUAD", "LUSC"])]
    horizon = 5 * 365
    died = lung["days_to_death"] <= horizon
    lived = ~died & (lung[["days_to_death", "days_to_last_followup"]].max(axis=1) > horizon)
    assert len(lung) == 1026
    assert died.sum() == 359
    assert lived.sum() == 137
    assert died.mean() == pytest.approx(352 / 1009, abs=0.0015)  # the paper's share
    assert died.sum() / (died | lived).sum() > 0.7  # among those whose outcome is known


def test_class_weights_bias_probabilities():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 1))
    p = expit(x[:, 0] - 2)
    y = (rng.random(len(p)) < p).astype(float)
    plain = LogisticRegression().fit(x, y).predict_proba(x)[:, 1]
    weighted = LogisticRegression(class_weight="balanced").fit(x, y).predict_proba(x)[:, 1]
    assert plain.mean() == pytest.approx(p.mean(), abs=0.01)
    assert weighted.mean() > 2 * p.mean()
    assert auc(y, weighted) == pytest.approx(auc(y, plain))  # and no ranking score sees it
