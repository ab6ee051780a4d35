import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.calibration import calibration_curve
from torchmetrics.functional.classification import binary_calibration_error

from probnb.metrics import (
    METRICS,
    auc,
    brier,
    brier_decomposition,
    calibration_null_band,
    ece,
    ece_debiased,
    ece_smooth,
    evaluate,
    kl_p,
    ks_curves,
    ks_error,
    mce,
    mse_p,
    nll,
    reliability_bins,
)

FEW = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.75, 1.0])  # many ties
ANY = st.floats(0, 1)


@st.composite
def rows(draw, values=FEW | ANY):
    n = draw(st.integers(1, 40))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    p = draw(st.lists(values, min_size=n, max_size=n))
    return np.array(y), np.array(p)


def brute_bins(y, p, bins):
    """Mean prediction and outcome by bin, straight from the rule: where a value's middle falls."""
    table = {}
    for value in sorted(set(p)):
        below, same = sum(p < value), sum(p == value)
        b = (bins * int(2 * below + same)) // (2 * len(p))
        table.setdefault(b, []).append(value)
    members = [np.isin(p, values) for _, values in sorted(table.items())]
    return [(p[m].mean(), y[m].mean(), m.sum()) for m in members]


def brute_ks(y, p):
    return max(abs(np.sum((y - p)[p <= sigma])) / len(p) for sigma in p)


@settings(max_examples=30)
@given(rows(), st.integers(1, 20))
def test_calibration_errors_equal_brute_force(data, bins):
    y, p = data
    gaps, counts = zip(*[(abs(q - o), c) for q, o, c in brute_bins(y, p, bins)])
    assert ece(y, p, bins) == pytest.approx(np.average(gaps, weights=counts), abs=1e-12)
    assert ece(y, p, bins, "plain") == pytest.approx(np.mean(gaps), abs=1e-12)
    assert mce(y, p, bins) == pytest.approx(max(gaps), abs=1e-12)
    assert ks_error(y, p) == pytest.approx(brute_ks(y, p), abs=1e-12)
    sigma, observed, predicted = ks_curves(y, p)
    assert sigma.tolist() == sorted(set(p))
    assert (observed[-1], predicted[-1]) == pytest.approx((y.mean(), p.mean()))


@settings(max_examples=30)
@given(rows(), st.integers(1, 20))
def test_bins_hold_every_row_once_and_ties_together(data, bins):
    y, p = data
    table = reliability_bins(y, p, bins)
    index = table.assign(p)
    assert np.array_equal(np.bincount(index, minlength=len(table.count)), table.count)
    assert np.all(table.count > 0) and len(table.count) <= bins
    assert len(table.edges) == len(table.count) + 1 and np.all(np.diff(table.edges[1:-1]) > 0)
    assert table.mean_prediction == pytest.approx([q for q, _, _ in brute_bins(y, p, bins)])
    assert np.all(np.diff(table.mean_prediction) > 0)


@settings(max_examples=30)
@given(rows(), st.randoms(use_true_random=False))
def test_order_of_rows_never_matters(data, random):
    y, p = data
    shuffled = random.sample(range(len(p)), len(p))
    for metric in (ece, mce, ks_error, auc):
        with warnings.catch_warnings(action="ignore"):
            np.testing.assert_equal(metric(y[shuffled], p[shuffled]), metric(y, p))  # every bit
    assert brier(y[shuffled], p[shuffled]) == pytest.approx(brier(y, p), abs=1e-15)
    assert nll(y[shuffled], p[shuffled]) == pytest.approx(nll(y, p), abs=1e-12)
    assert ece_smooth(y[shuffled], p[shuffled]) == pytest.approx(ece_smooth(y, p), abs=1e-8)


@settings(max_examples=30)
@given(rows())
def test_scores_equal_scikit_learn(data):
    y, p = data
    assert brier(y, p) == pytest.approx(sklearn.metrics.brier_score_loss(y, p), abs=1e-14)
    assert nll(y, p) == pytest.approx(
        sklearn.metrics.log_loss(y, np.stack([1 - p, p], 1), labels=[0, 1]), rel=1e-9, abs=1e-12
    )
    if 0 < y.sum() < len(y):
        assert auc(y, p) == pytest.approx(sklearn.metrics.roc_auc_score(y, p), abs=1e-12)


@settings(max_examples=30)
@given(rows(), st.none() | st.integers(1, 20))
def test_decomposition_adds_up(data, bins):
    y, p = data
    parts = brier_decomposition(y, p, bins)
    assert parts.total == pytest.approx(brier(y, p), abs=1e-12)
    assert parts.refinement == pytest.approx(parts.uncertainty - parts.resolution, abs=1e-12)
    assert min(parts.calibration, parts.refinement, parts.within_variance) >= 0
    if bins is None:
        assert parts.within_variance == parts.within_covariance == 0


def test_decomposition_by_hand():
    parts = brier_decomposition([0, 1, 1, 1], [0.2, 0.4, 0.6, 1.0], bins=2)
    assert parts.calibration == pytest.approx((0.2**2 + 0.2**2) / 2)
    assert parts.refinement == pytest.approx(0.125)
    assert parts.resolution == pytest.approx(0.0625)
    assert parts.uncertainty == pytest.approx(0.1875)
    assert parts.within_variance == pytest.approx((0.1**2 + 0.2**2) / 2)
    assert parts.within_covariance == pytest.approx(0.025)


@settings(max_examples=30)
@given(rows(), rows())
def test_truth_metrics(first, second):
    n = min(len(first[1]), len(second[1]))
    p, p_hat = first[1][:n], second[1][:n]
    assert mse_p(p, p_hat) == pytest.approx(sum((p - p_hat) ** 2) / n)
    assert mse_p(p, p) == kl_p(p, p) == 0
    assert kl_p(p, p_hat) == kl_p(p_hat, p, "p_hat||p")
    assert kl_p(p, p_hat) >= 2 * mse_p(p, p_hat) - 1e-12  # Pinsker


def test_expected_scores_are_distance_from_the_truth():
    # mean over all outcomes, weighted by their probability: exact, no sampling
    p, p_hat = np.array([0.2, 0.7]), np.array([0.4, 0.9])
    expected_brier = expected_nll = 0
    for y in np.ndindex(2, 2):
        y = np.array(y)
        weight = np.prod(np.where(y == 1, p, 1 - p))
        expected_brier += weight * brier(y, p_hat)
        expected_nll += weight * nll(y, p_hat)
    entropy = -np.mean(p * np.log(p) + (1 - p) * np.log(1 - p))
    assert expected_brier == pytest.approx(mse_p(p, p_hat) + np.mean(p * (1 - p)))
    assert expected_nll == pytest.approx(kl_p(p, p_hat) + entropy)


@pytest.mark.parametrize(
    ("p", "p_hat", "value"),
    [
        ([0.0, 1.0], [0.0, 1.0], 0),
        ([0.0], [0.5], np.log(2)),
        ([1.0], [0.5], np.log(2)),
        ([0.5], [0.0], np.inf),
        ([0.5], [1.0], np.inf),
        ([0.0], [1.0], np.inf),
        ([0.25], [0.5], 0.25 * np.log(0.5) + 0.75 * np.log(1.5)),
    ],
)
def test_kl_at_the_ends(p, p_hat, value):
    assert kl_p(p, p_hat) == pytest.approx(value)
    assert kl_p(p_hat, p, direction="p_hat||p") == pytest.approx(value)


def test_perfect_predictions_have_no_error():
    y = np.array([0, 1, 1, 0, 1] * 20)
    values = evaluate(y, y.astype(float), p=y)
    assert values.pop("auc") == 1
    assert values.pop("nll") == pytest.approx(0, abs=1e-15)  # clipped by one part in 2^52
    assert set(values.values()) == {0.0}
    assert nll(y, y, clip=0) == 0
    assert ece_smooth(y, y) == ece_debiased(y, y) == 0


def test_one_certain_wrong_row():
    with pytest.warns(RuntimeWarning, match="auc is NaN"):
        values = evaluate([1], [0.0])
    assert values["brier"] == values["ece"] == values["mce"] == values["ks"] == 1
    assert reliability_bins([1], [0.0]).count.tolist() == [1]
    assert values["nll"] == pytest.approx(36.0437, abs=1e-3)


def test_evaluate_order_and_truth():
    y, p = [0, 1, 1], [0.2, 0.5, 0.6]
    assert tuple(evaluate(y, p, p=[0.1, 0.5, 0.9])) == tuple(METRICS)
    assert tuple(evaluate(y, p)) == tuple(METRICS)[2:]


def test_ks_curves_end_at_the_means():
    y, p = np.array([0, 1, 1, 0]), np.array([0.5, 0.5, 0.9, 0.1])
    sigma, observed, predicted = ks_curves(y, p)
    assert sigma.tolist() == [0.1, 0.5, 0.9]
    assert observed == pytest.approx([0, 0.25, 0.5])
    assert predicted == pytest.approx([0.025, 0.275, 0.5])


# Peers that answer otherwise, which is why these errors are our own --------------------


@pytest.mark.parametrize(
    ("ones", "zeros", "theirs", "ours"),
    [
        # 400 predictions of .1 (40 % ones) and 600 of .2 (none). The median is .2, and everything
        # up to it lies in scikit-learn's first bin: two wrong groups look perfect together.
        ([160, 0], [240, 600], 0, 0.4 * 0.3 + 0.6 * 0.2),
        # as many ones as were told, so that both say what is so
        ([40, 120], [360, 480], 0, 0),
    ],
)
def test_scikit_learn_pools_two_groups_that_offset_each_other(ones, zeros, theirs, ours):
    p = np.repeat([0.1, 0.2, 0.1, 0.2], [*ones, *zeros])
    y = np.repeat([1, 0], [sum(ones), sum(zeros)])
    observed, predicted = calibration_curve(y, p, n_bins=2, strategy="quantile")
    assert np.abs(observed - predicted).max() == pytest.approx(theirs)
    assert ece(y, p, bins=2) == pytest.approx(ours)


@pytest.mark.parametrize(
    ("y", "p", "bins", "theirs", "ours"),
    [
        # a certain prediction gets a bin of its own, though one was asked for
        ([0, 1], [1.0, 0.95], 1, (1 + 0.05) / 2, 0.975 - 0.5),
        # one bin of equal width hides what quantile bins show of rare outcomes
        (np.repeat([1, 0, 1, 0], [15, 485, 5, 495]), np.repeat([0.01, 0.03], 500), 15, 0, 0.02),
    ],
)
def test_torchmetrics_has_other_bins(y, p, bins, theirs, ours):
    found = binary_calibration_error(torch.tensor(p), torch.tensor(y), n_bins=bins)
    assert found.item() == pytest.approx(theirs, abs=1e-6)
    assert ece(y, p, bins) == pytest.approx(ours)


def test_torchmetrics_agrees_where_the_definitions_do():
    # Equal shares of predictions in bins of equal width: the two binnings coincide.
    rng = np.random.default_rng(0)
    p = (np.repeat(np.arange(15), 20) + rng.uniform(0.1, 0.9, 300)) / 15
    y = (rng.random(300) < p**2).astype(int)
    for norm, ours in (("l1", ece), ("max", mce)):
        theirs = binary_calibration_error(torch.tensor(p), torch.tensor(y), n_bins=15, norm=norm)
        assert ours(y, p) == pytest.approx(theirs.item(), abs=1e-9)


# Bias ------------------------------------------------------------------------------------------


def test_debiased_error_takes_off_the_folded_normal_bias():
    rng = np.random.default_rng(0)
    y, p = np.repeat([0, 1, 0, 1], [60, 40, 30, 70]), np.repeat([0.35, 0.6], 100)
    gap, s = np.array([0.05, 0.1]), np.sqrt([0.4 * 0.6 / 100, 0.7 * 0.3 / 100])
    folded = np.abs(rng.normal(gap, s, (400_000, 2))).mean(axis=0)
    assert ece_debiased(y, p, bins=2) == pytest.approx(np.mean(2 * gap - folded), abs=3e-4)


def test_debiased_error_of_a_calibrated_model():
    # Gaps N(0, s^2) with s known: the mean of 2|g| - |N(g, s^2)| is (2 - sqrt 2) that of |g|.
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 600)
    plain, debiased = np.transpose(
        [(ece(y, p), ece_debiased(y, p)) for y in rng.random((300, 600)) < p]
    )
    assert debiased.mean() / plain.mean() == pytest.approx(2 - np.sqrt(2), abs=0.03)


def direct_smooth_error(y, p):
    t = (np.arange(4000) + 0.5) / 4000
    images = np.concatenate([2 * k + sign * p for k in range(-4, 5) for sign in (1, -1)])
    residual = np.tile(y - p, len(images) // len(p)) / len(p)

    def excess(sigma):
        kernel = np.exp(-((t[:, None] - images) ** 2) / (2 * sigma**2))
        return np.abs(kernel @ residual / (sigma * np.sqrt(2 * np.pi))).mean() - sigma

    return brentq(excess, 1e-3, 1)


@pytest.mark.parametrize("seed", range(4))
def test_smooth_error_equals_direct_convolution(seed):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(50), 1 if seed % 2 else 16)
    y = (rng.random(50) < p**2).astype(int)
    assert ece_smooth(y, p) == pytest.approx(direct_smooth_error(y, p), abs=1e-5)


@settings(max_examples=30)
@given(rows())
@example((np.ones(49, int), np.zeros(49)))
@example((np.zeros(1, int), np.ones(1)))
@example((np.repeat([0, 1], 500), np.full(1000, 0.5)))
def test_smooth_error_is_bounded_by_the_residuals(data):
    y, p = data
    bias, size = abs(np.mean(y - p)), np.mean(np.abs(y - p))
    assert bias - 2e-3 * (size == 1) - 1e-9 <= ece_smooth(y, p) <= size + 1e-9


def test_null_band_of_a_coin():
    band = calibration_null_band(np.full(400, 0.5), replicates=3000, seed=3)
    # one bin: |mean of 400 coins - 1/2|, folded normal with deviation 1/40
    assert band.mean == pytest.approx(np.sqrt(2 / np.pi) / 40, rel=0.05)
    assert band.high == pytest.approx(2.2414 / 40, rel=0.08)
    again = calibration_null_band(np.full(400, 0.5), replicates=20, seed=3)
    assert np.array_equal(band.draws[:20], again.draws) and band.draws.shape == (3000,)


def test_null_band_does_not_meet_the_numbers_that_made_the_predictions():
    p = np.random.default_rng(0).random(300)
    draws = calibration_null_band(p, replicates=50, seed=0).draws
    assert draws[0] < draws.max()  # from the same stream y would be 1 everywhere or nowhere
    assert np.all(draws < 0.2)


# Errors ----------------------------------------------------------------------------------------

PAIR_FUNCTIONS = [auc, brier, brier_decomposition, ece, ece_debiased, ece_smooth, evaluate]
PAIR_FUNCTIONS += [ks_curves, ks_error, mce, nll, reliability_bins]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ece([0, 1], [0.2, 0.7], bins=0), "bins must be an integer of at least 1"),
        (lambda: ece([0, 1], [0.2, 0.7], bins=2.5), "bins must be an integer of at least 1"),
        (lambda: ece([0, 1], [0.2, 0.7], bins=True), "bins must be an integer of at least 1"),
        (lambda: ece([0, 1], [0.2, 0.7], weighting="plan"), "Did you mean 'plain'"),
        (lambda: kl_p([0.2], [0.7], direction="forward"), "direction must be one of"),
        (lambda: nll([0, 1], [0.2, 0.7], clip=0.6), "clip must be"),
        (lambda: mse_p([0.5], [0.2, 0.7]), "p and p_hat must have the same length; got 1 and 2"),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("function", PAIR_FUNCTIONS)
@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1], [0.5, np.nan], r"y_prob .*nan.* in row 1"),
        ([0, 2], [0.5, 0.5], r"y_true must hold only 0 and 1; got .*2.* in row 1"),
        ([], [], r"at least one row"),
        ([0, 1], [0.5], r"same length; got 2 and 1"),
        ([0, 1], [[0.5, 0.5], [0.1, 0.9]], r"one-dimensional; got shape \(2, 2\)"),
    ],
)
def test_bad_rows(function, y, p, message):
    with pytest.raises(ValueError, match=message):
        function(y, p)


# Published predictions -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "method", "values"),
    [
        ("linear", "infinite", {"mse_p": 0.0122, "brier": 0.1938, "ece": 0.031, "ks": 0.0270}),
        ("linear", "overfit", {"mse_p": 0.1038, "brier": 0.2911, "ece": 0.248, "ks": 0.146}),
        ("linear", "early_stop", {"mse_p": 0.0368, "brier": 0.2193, "ece": 0.106, "ks": 0.1056}),
        ("linear", "cape_bin", {"mse_p": 0.0241, "brier": 0.2067, "ece": 0.062, "ks": 0.0294}),
        ("discrete", "infinite", {"mse_p": 0.0151, "brier": 0.2040, "ece": 0.029, "ks": 0.0188}),
        ("discrete", "early_stop", {"mse_p": 0.0261, "brier": 0.2139, "ece": 0.050, "ks": 0.0239}),
        ("discrete", "cape_bin", {"mse_p": 0.0248, "brier": 0.2115, "ece": 0.045, "ks": 0.0200}),
    ],
)
def test_authors_predictions(data_dir, scenario, method, values):
    table = pd.read_csv(data_dir / "authors-predictions" / f"{scenario}.csv")
    measured = evaluate(table.y, table[method], table.p)
    for name, value in values.items():
        digits = 3 if value in (0.146, 0.031, 0.248, 0.106, 0.062, 0.029, 0.050, 0.045) else 4
        assert round(measured[name], digits) == value, name


def test_the_papers_tables_hold_the_other_direction_of_kl(data_dir):
    # Table 1: KL_p / MSE_p is 2.82 / 1.14 = 2.47 (linear) and 3.63 / 1.52 = 2.39 (discrete).
    for scenario, ratio, tolerance in (("linear", 2.47, 0.05), ("discrete", 2.39, 0.02)):
        table = pd.read_csv(data_dir / "authors-predictions" / f"{scenario}.csv")
        error = mse_p(table.p, table.infinite)
        assert kl_p(table.p, table.infinite) / error == pytest.approx(ratio, abs=tolerance)
        inside = (table.p > 0) & (table.p < 1)
        printed = kl_p(table.p[inside], table.infinite[inside], "p_hat||p")
        assert printed / mse_p(table.p[inside], table.infinite[inside]) > ratio + 0.2


def test_a_gap_beyond_all_noise_keeps_its_size():
    """The square of a gap in units of a vanishing deviation would overflow."""
    weights = [2e-311, 8.0, 5e-324, 7.3]
    p_hat = [1e-72, 1.0, 2e-308, 1.0]
    assert ece_debiased([1, 0, 0, 0], p_hat, 1, weights=weights) == pytest.approx(1)
