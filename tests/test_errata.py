"""Facts about the paper's own text that the chapter on errata states and no other test shows."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from probnb.metrics import auc, ece, kl_p, ks_error, mse_p, reliability_bins
from probnb.training.cape import p_emp_kernel
from probnb_book.published import published
from probnb_book.scenarios import SCENARIOS, probability


def test_printed_direction_of_kl_is_infinite_where_a_probability_is_0_or_1():
    # CIFAR-10's class 0 has p = 0, and in Linear p = 1 from an age of 100.
    assert probability([100, 116], "linear").tolist() == [1, 1]
    for certain, estimate in ((0.0, 0.1), (1.0, 0.9)):
        p, p_hat = [certain, 0.5], [estimate, 0.5]
        assert kl_p(p, p_hat, direction="p_hat||p") == np.inf
        assert np.isfinite(kl_p(p, p_hat, direction="p||p_hat"))


def test_saved_probabilities_end_at_1(data_dir):
    p = pd.read_csv(data_dir / "authors-predictions" / "linear.csv")["p"]
    assert p.max() == 1 and (p == 1).sum() == 10
    assert p.min() == 0.01  # the youngest are one year old


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


# The published baseline


def test_published_errors_of_cross_entropy_have_one_sign():
    # ECE is the mean of |gap| over bins and KS the largest sum of gaps: equal only for one sign.
    printed = published("linear", table=3).pivot(index="method", columns="metric", values="value")
    assert printed.loc["ce", ["ece", "ks"]].tolist() == [12.32, 12.16]
    share = printed["ks"] / printed["ece"]
    assert share["ce"] > 0.98
    assert share.drop("ce").max() < share["ce"]


def test_saved_baseline_is_shifted_and_platt_scaling_repairs_it(data_dir):
    saved = pd.read_csv(data_dir / "authors-predictions" / "linear.csv")
    y, p = saved["y"].to_numpy(), saved["p"].to_numpy()
    p_hat = saved["early_stop"].to_numpy()
    assert p_hat.mean() - y.mean() == pytest.approx(0.106, abs=5e-4)
    shifted, platt = np.empty((2, len(y)))
    level = logit(p_hat.clip(1e-9, 1 - 1e-9))
    for fit, apply in KFold(10, shuffle=True, random_state=0).split(y):

        def surplus(shift, fit=fit):
            return expit(level[fit] + shift).mean() - y[fit].mean()

        shifted[apply] = expit(level[apply] + brentq(surplus, -5, 5))
        model = LogisticRegression(C=1e6).fit(level[fit, None], y[fit])
        platt[apply] = model.predict_proba(level[apply, None])[:, 1]
    errors = [100 * mse_p(p, q) for q in (p_hat, shifted, platt, saved["cape_bin"])]
    assert errors == pytest.approx([3.68, 2.40, 2.15, 2.41], abs=0.01)


def test_demo_notebook_measures_cape_on_other_rows():
    def rows_with(share, rows):  # an error rate in per cent, printed with six decimals
        return np.flatnonzero(np.abs(100 * np.arange(rows + 1) / rows - share) < 1e-6).tolist()

    assert rows_with(32.932589, 2329) == [767] and rows_with(32.374410, 2329) == [754]
    assert rows_with(32.081047, 2329) == []  # the row of CaPE
    assert rows_with(32.081047, 4738) == [1520]


# What the text says of the tables


def scenario_tables():
    table = published(list(SCENARIOS))
    own = ~table["method"].str.startswith("beginning")  # of Table 12, another run
    return table[own].pivot(index="method", columns=["scenario", "metric"], values="value")


def test_share_of_cells_that_cape_wins():
    table = scenario_tables().drop(index="resampled")
    cape = table.index.str.startswith("cape")
    lead = table[~cape].min() - table[cape].min()
    calibration = lead.index.get_level_values("metric").isin(["ece", "mce", "ks"])
    assert len(lead) == 30 and (lead > 0).sum() == 14 and (lead == 0).sum() == 1
    assert calibration.sum() == 15 and (lead[calibration] > 0).sum() == 2


def test_cape_is_not_on_par_with_resampled_labels():
    rows = published(
        list(SCENARIOS), method=["resampled", "cape_bin", "cape_kernel"], metric="mse_p"
    )
    value, std = (
        rows.pivot(index="method", columns="scenario", values=c) for c in ("value", "std")
    )
    gap = value.drop("resampled").min() - value.loc["resampled"]
    error = np.hypot(std.drop("resampled").max(), std.loc["resampled"])
    assert (gap > 2 * error).sum() == 4
    assert gap["sigmoid"] < 0


def test_best_case_is_beaten_on_sigmoid():
    sigmoid = scenario_tables()["sigmoid"]
    assert sigmoid["mse_p"].idxmin() == "cape_kernel"
    assert sigmoid.loc[["resampled", "cape_kernel"], "mse_p"].tolist() == [5.34, 5.16]
    assert sigmoid["mce"].nlargest(2).index.tolist() == ["dirichlet", "resampled"]


def test_ranks_on_real_data():
    ece_of = published("cancer", metric="ece").set_index("method")["value"]
    assert len(ece_of) == 11 and ece_of.rank()["cape_bin"] == 10
    collision = published("collision", metric="brier")["value"]
    assert (collision.min(), collision.max()) == (8.13, 11.10)


def test_mmce_is_not_always_ahead():
    tasks = published(["cancer", "weather"], metric="brier")
    brier_of = tasks.pivot(index="method", columns="scenario", values="value")
    better = brier_of < brier_of.loc["mmce"]
    assert better.loc[["focal", "entropy"], "cancer"].all()
    assert better.loc["entropy", "weather"]


# Methods and data


def test_platt_scaling_of_predictions_cannot_repair_a_shift():
    p = np.linspace(0.01, 0.99, 99)
    for p_hat in (expit(logit(p) + 1), p):  # shifted; and calibrated already

        def loss(w, inputs):
            a = w[0] * inputs + w[1]
            return np.mean(np.logaddexp(0, a) - p * a)

        left = []
        for inputs in (p_hat, logit(p_hat)):
            w = minimize(loss, [1.0, 0.0], args=(inputs,)).x
            left.append(np.mean((expit(w[0] * inputs + w[1]) - p) ** 2))
        assert left[0] > 5e-4 and left[1] < 1e-9


def test_dirichlet_calibration_of_the_tables_does_not_rise():
    tasks = published(["cancer", "weather", "collision"], metric="auc")
    auc_of = tasks.pivot(index="method", columns="scenario", values="value")
    assert (auc_of.loc["temperature"] == auc_of.loc["ce"]).all()  # as rising maps must
    assert (auc_of.loc["ce"] - auc_of.loc["dirichlet"] > 0.1).all()
    # logits given to a map of probabilities: the clip ties rows, and the ranking suffers
    rng = np.random.default_rng(0)
    level = 2 * rng.normal(size=5000)
    y = (rng.random(5000) < expit(level)).astype(float)
    logits = 3 * np.column_stack([-level / 2, level / 2])  # an overconfident network
    p_hat = expit(3 * level)
    left = []
    for inputs in (logits, np.column_stack([1 - p_hat, p_hat])):
        columns = np.log(np.clip(inputs, 1e-16, 1))
        model = LogisticRegression().fit(columns, y)
        left.append(auc(y, model.predict_proba(columns)[:, 1]))
    assert left[0] < auc(y, p_hat) - 0.01
    assert left[1] == pytest.approx(auc(y, p_hat), abs=1e-3)


def test_scenes_of_collision_do_not_give_its_samples():
    # (negative, positive) samples of the three parts, as printed
    negative, positive = np.sum([(6453, 1023), (2348, 545), (2685, 528)], axis=0)
    assert (negative, positive) == (11_486, 2096)
    scenes, samples = {"accident": 122, "other": 2096}, 18
    assert positive <= scenes["accident"] * samples < 1.1 * positive
    assert scenes["other"] * samples > 3 * negative


def test_members_of_the_printed_ensembles():
    """An average of M errs by the members' mean less (1 - 1/M) V, V half their squared distance."""
    rng = np.random.default_rng(0)
    p, members = rng.random(1000), rng.random((5, 1000))
    pairs = [((members[i] - members[j]) ** 2).mean() / 2 for i in range(5) for j in range(i)]
    mean = ((members - p) ** 2).mean()
    assert ((members.mean(0) - p) ** 2).mean() == pytest.approx(mean - 0.8 * np.mean(pairs))
    printed = published(metric="mse_p", method=["ce", "ensemble"])
    value = printed.pivot_table(index="scenario", columns="method", values="value")
    needed = (value["ce"] - value["ensemble"]) / 0.8
    assert needed["linear"] == pytest.approx(2.9, abs=0.02)
    assert (2.20 - value.loc["linear", "ensemble"]) / 0.8 == pytest.approx(0.38, abs=0.01)
    assert needed["skewed"] < 0  # which no distance can be
    std = printed.pivot_table(index="scenario", columns="method", values="std").loc["skewed"]
    gap = value.loc["skewed", "ensemble"] - value.loc["skewed", "ce"]
    assert gap > 6 * np.hypot(*std)
    assert gap > 7 * std.max()
