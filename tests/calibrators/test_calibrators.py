"""Calibrators: the scikit-learn contract, closed forms, peers, and inputs that could break them."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import (
    check_all_zero_sample_weights_error,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weights_list,
    check_sample_weights_not_overwritten,
    estimator_checks_generator,
)

from probnb.calibrators import (
    CALIBRATORS,
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MixNMatch,
    PlattScaling,
    TemperatureScaling,
    VennAbers,
    logits_from_probabilities,
)
from probnb.metrics import reliability_bins

ALL = [pytest.param(C, id=name) for name, C in CALIBRATORS.items()]
FITTED_BY_LOSS = [p for p in ALL if p.id not in ("histogram", "venn_abers")]
DISTINCT = [p for p in ALL if p.id != "mixnmatch_isotonic"]  # the code of Mix-n-Match

# Where logits are worse than none no temperature is best, which has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.* stops up to")
N = 400


def columns(s):
    return np.column_stack([-s / 2, s / 2])


def draw(seed=0, n=N, scale=1.5):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n) * scale
    return s, (rng.random(n) < expit(s)).astype(int)


def nll(s, y):
    return np.logaddexp(0, np.where(y == 1, -s, s)).mean()


def nll_of(estimator, X, y):
    with np.errstate(divide="ignore"):
        return -np.log(estimator.predict_proba(X)[np.arange(len(y)), y]).mean()


# --- the contract ---------------------------------------------------------------------------

OF_OTHERS = {  # checks of the pipeline itself, or of its first step
    "check_classifiers_one_label",
    "check_dont_overwrite_parameters",
    "check_estimators_overwrite_params",
}


@pytest.mark.parametrize("Calibrator", [PlattScaling, IsotonicCalibration, HistogramBinning])
def test_scikit_learn_contract_behind_a_projection(Calibrator):
    # The checks make three columns or more; a first step makes one column of log-odds of them.
    model = make_pipeline(LinearDiscriminantAnalysis(), Calibrator())
    done = 0
    for estimator, check in estimator_checks_generator(model, legacy=True):
        name = getattr(check, "func", check).__name__
        if name not in OF_OTHERS:
            check(clone(estimator))
            done += 1
    assert done > 30


@pytest.mark.parametrize(
    "Calibrator", [p for p in DISTINCT if p.id in ("temperature", "beta", "histogram")]
)  # Platt scaling reads the columns itself; Dirichlet calibration's folds are random
def test_scikit_learn_contract_of_weights(Calibrator):
    wide = type(Calibrator.__name__, (Calibrator,), {"_log_odds": lambda self, X: X.mean(axis=1)})
    for check in (
        check_sample_weights_list,
        check_sample_weights_not_overwritten,
        check_all_zero_sample_weights_error,
        check_sample_weight_equivalence_on_dense_data,
    ):
        check(Calibrator.__name__, wide())


@pytest.mark.parametrize("Calibrator", ALL)
def test_clone_cross_fit_and_labels(Calibrator):
    s, y = draw()
    estimator = clone(Calibrator())
    out = cross_val_predict(estimator, s, y, method="predict_proba", cv=StratifiedKFold(5))
    assert out.shape == (N, 2)
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-12)
    by_hand = np.empty(N)
    for train, test in StratifiedKFold(5).split(s, y):
        by_hand[test] = Calibrator().fit(s[train], y[train]).predict_proba(s[test])[:, 1]
    np.testing.assert_array_equal(out[:, 1], by_hand)
    words = np.array(["no", "yes"])[y]
    fitted = Calibrator().fit(s, words)
    assert list(fitted.classes_) == ["no", "yes"]
    assert set(fitted.predict(s)) <= {"no", "yes"}
    np.testing.assert_array_equal(fitted.predict_proba(s), Calibrator().fit(s, y).predict_proba(s))


@pytest.mark.parametrize("Calibrator", ALL)
def test_vector_one_column_and_two_columns_agree(Calibrator):
    s, y = draw()
    as_vector = Calibrator().fit(s, y).predict_proba(s)
    np.testing.assert_array_equal(
        as_vector, Calibrator().fit(s[:, None], y).predict_proba(s[:, None])
    )
    np.testing.assert_allclose(
        as_vector, Calibrator().fit(columns(s), y).predict_proba(columns(s)), atol=1e-8
    )


@pytest.mark.parametrize("Calibrator", ALL)
@pytest.mark.parametrize(
    "X, y, match",
    [
        (np.zeros((4, 3)), [0, 1, 0, 1], "one of log-odds; got 3"),
        ([0, 1, np.nan, 2], [0, 1, 0, 1], "NaN"),
        ([0, 1, np.inf, 2], [0, 1, 0, 1], "infinity"),
        ([0, 1, 2, 3], [0, 1, 2, 1], "Only binary classification"),
        ([0, 1, 2, 3], [1, 1, 1, 1], "one class only; got .*1"),
        ([0, 1, 2], [0, 1], "inconsistent numbers of samples"),
        ([], [], "minimum of 1 is required"),
    ],
)
def test_bad_input_is_named(Calibrator, X, y, match):
    with pytest.raises(ValueError, match=match):
        Calibrator().fit(X, y)


# --- closed forms and peers -----------------------------------------------------------------


def test_temperature_of_scaled_logits_and_its_first_order_condition():
    s, y = draw(n=3000)
    one, three = (TemperatureScaling().fit(k * s, y).temperature_ for k in (1, 3))
    assert one == pytest.approx(1, abs=0.1)
    assert three == pytest.approx(3 * one, rel=1e-6)
    assert abs(np.mean(s * (expit(s / one) - y))) < 1e-7


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8), reason="new in scikit-learn 1.8"
)
def test_temperature_against_scikit_learn():
    X, y = make_classification(4000, random_state=0)
    model = LogisticRegression().fit(X[:2000], y[:2000])
    from sklearn.frozen import FrozenEstimator

    peer = CalibratedClassifierCV(FrozenEstimator(model), method="temperature")
    peer.fit(X[2000:], y[2000:])
    s = model.decision_function(X[2000:])
    ours = TemperatureScaling().fit(s, y[2000:]).predict_proba(s)
    np.testing.assert_allclose(ours, peer.predict_proba(X[2000:]), atol=1e-5)


def test_platt_equals_logistic_regression_on_both_logits():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(N, 2)) @ [[1.0, 0.3], [0.2, 2.0]] + [3.0, -1.0]
    y = (rng.random(N) < expit(z @ [-0.4, 0.9] + 0.5)).astype(int)
    peer = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(z, y)
    ours = PlattScaling().fit(z, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-6)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=2e-6)
    np.testing.assert_allclose(ours.predict_proba(z), peer.predict_proba(z), atol=1e-6)


def test_platt_on_dependent_logits_stays_near_temperature_scaling():
    # z0 = c - z1 but for rounding: W is not unique, and must not chase the rounding errors.
    s, y = draw()
    z = columns(s).astype(np.float32) + np.float32(0.7)
    fit = PlattScaling().fit(z, y)
    assert abs(fit.coef_.sum()) < 1e-2
    peer = LogisticRegression(C=1e12, tol=1e-10).fit(s[:, None], y)
    np.testing.assert_allclose(
        fit.predict_proba(z)[:, 1], peer.predict_proba(s[:, None])[:, 1], atol=1e-5
    )


def test_beta_equals_constrained_minimiser():
    s, y = draw(2)
    for signs in (1, -1):  # the second is inverted: both slopes end at their bound
        fit = BetaCalibration().fit(signs * s, y)
        A = np.column_stack([log_expit(signs * s), -log_expit(-signs * s), np.ones(N)])
        bounds = [(0, None), (0, None), (None, None)]
        peer = minimize(
            lambda t, A=A: nll(A @ t, y),
            [1, 1, 0],
            bounds=bounds,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000},
        )
        ours = nll(A @ [fit.a_, fit.b_, fit.c_], y)
        assert min(fit.a_, fit.b_) >= 0
        assert ours <= peer.fun + 1e-9
        assert ours == pytest.approx(peer.fun, abs=1e-6)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_dirichlet_equals_the_full_problem_with_its_off_diagonal_penalty(lam):
    s, y = draw(3, 800)
    y = np.where(np.random.default_rng(0).random(800) < 0.3, 1, y)  # an intercept worth having
    mu, logp = 0.05, log_softmax(columns(s), axis=1)

    def objective(v):
        W, b = v[:4].reshape(2, 2), v[4:]
        out = log_softmax(logp @ W.T + b, axis=1)
        penalty = lam * (W[0, 1] ** 2 + W[1, 0] ** 2) / 2 + mu * (b**2).sum() / 2
        return -out[np.arange(800), y].mean() + penalty

    full = minimize(objective, [1, 0, 0, 1, 0, 0], method="BFGS", options={"gtol": 1e-9})
    W, b = full.x[:4].reshape(2, 2), full.x[4:]
    fit = DirichletCalibration(mu=mu).fit(columns(s), y)
    expected = np.exp(log_softmax(logp @ W.T + b, axis=1))
    np.testing.assert_allclose(fit.predict_proba(columns(s)), expected, atol=1e-5)
    assert abs(W[0, 1]) < 1e-5 and abs(W[1, 0]) < 1e-5
    np.testing.assert_allclose(fit.intercepts_, b, atol=1e-5)


def test_dirichlet_penalty_is_chosen_by_cross_validation():
    s, y = draw(4)
    far = (np.random.default_rng(0).random(N) < 0.1 + 0.1 * expit(s)).astype(int)
    chosen = DirichletCalibration().fit(s, far)
    assert chosen.mu_ <= 1e-3  # the base rate is far off: an intercept pays
    assert chosen.intercepts_.sum() == 0
    heavy = DirichletCalibration(mu=1e6).fit(s, far)
    assert np.abs(heavy.intercepts_).max() < 1e-5
    with pytest.raises(ValueError, match=r"mu must be a finite number in \[0"):
        DirichletCalibration(mu=-1).fit(s, y)


def test_isotonic_and_mix_n_match_against_isotonic_regression():
    s, y = draw(5)
    expected = IsotonicRegression(y_min=0, y_max=1).fit(s, y).predict(s)
    np.testing.assert_allclose(IsotonicCalibration().fit(s, y).predict_proba(s)[:, 1], expected)
    stepped = MixNMatch(isotonic=True).fit(s, y).predict_proba(s)[:, 1]
    np.testing.assert_allclose(stepped, expected, atol=1e-12)


def test_histogram_binning_by_hand_and_ties():
    s = np.array([0.0, 0, 0, 0, 1, 2, 3, 4])
    y = np.array([0, 1, 0, 0, 1, 0, 1, 1])
    fit = HistogramBinning(bins=4).fit(s, y)
    np.testing.assert_array_equal(fit.edges_, [0.5, 2.5])  # the four zeros fill two bins' worth
    np.testing.assert_allclose(fit.probabilities_, [0.25, 0.5, 1])
    order = np.random.default_rng(0).permutation(8)
    np.testing.assert_array_equal(
        HistogramBinning(bins=4).fit(s[order], y[order]).probabilities_, fit.probabilities_
    )
    assert len(HistogramBinning(bins=50).fit(s, y).probabilities_) == 5
    with pytest.raises(ValueError, match="bins must be an integer of at least 1; got 0"):
        HistogramBinning(bins=0).fit(s, y)
    near = [1.0, np.nextafter(1, 2)]  # two neighbouring numbers have none between them
    fit = HistogramBinning(bins=2).fit(near, [0, 1])
    np.testing.assert_array_equal(fit.predict_proba(near)[:, 1], [0, 1])


@given(
    st.lists(st.sampled_from([-3.0, -1.0, 0.0, 0.5, 2.0]) | st.floats(-8, 8), min_size=2),
    st.integers(1, 20),
)
@settings(max_examples=20, deadline=None)
def test_histogram_binning_has_the_bins_of_every_other_place(values, bins):
    s = np.array(values)
    y = np.arange(len(s)) % 2
    table = reliability_bins(y, expit(s), bins)
    fit = HistogramBinning(bins=bins).fit(s, y)
    if len(np.unique(expit(s))) == len(np.unique(s)):  # rounding may make ties
        np.testing.assert_allclose(fit.probabilities_, table.mean_outcome)
        np.testing.assert_allclose(
            fit.predict_proba(s)[:, 1], table.mean_outcome[table.assign(expit(s))]
        )


def test_calibrators_are_named_once():
    from probnb.methods import METHODS

    labels = [C.label for C in CALIBRATORS.values()]
    assert all(labels) and len(set(labels)) == len(labels)
    assert {m.calibrator for m in METHODS.values()} - {None} <= set(CALIBRATORS)


# --- what could break them ------------------------------------------------------------------

SCALES = [1.0, 1e5, 1e-5]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("Calibrator", FITTED_BY_LOSS)
def test_log_loss_is_never_above_the_uncalibrated_one(Calibrator, scale):
    s, y = draw(7)
    rng = np.random.default_rng(8)
    kinds = {
        "as drawn": y,
        "random": rng.integers(0, 2, N),
        "inverted": 1 - y,
        "separable": (s > 0).astype(int),
        "rare": (rng.random(N) < 0.01).astype(int),
    }
    for kind, labels in kinds.items():
        X = columns(scale * s)
        fit = Calibrator().fit(X, labels)
        assert nll_of(fit, X, labels) <= nll(scale * s, labels) + 1e-9, kind
        assert np.isfinite(fit.predict_proba(X)).all()


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.integers(0, 1)), min_size=2, max_size=40).filter(
        lambda rows: len({y for _, y in rows}) == 2
    )
)
@settings(max_examples=20, deadline=None)
@example(rows=[(0.0, 0), (1e-200, 1), (5e-324, 1)])
@example(rows=[(-1e-11, 0), (1e-11, 1), (-50.0, 1)])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_any_rows_give_finite_bounded_fits_no_worse_than_before(rows):
    s, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    for Calibrator in (TemperatureScaling, PlattScaling, BetaCalibration):
        fit = Calibrator().fit(s, y)
        P = fit.predict_proba(s)
        assert np.isfinite(P).all() and (P >= 0).all() and (P <= 1).all()
        assert nll_of(fit, s, y) <= nll(s, y) + 1e-7
    fit = DirichletCalibration(mu=0.1).fit(s, y)
    assert nll_of(fit, s, y) <= nll(s, y) + 1e-7


@pytest.mark.parametrize("scale", [1.0, 1e5])
@pytest.mark.parametrize("Calibrator", ALL)
def test_only_a_temperature_that_is_infinite_is_not_reached(Calibrator, scale):
    s, y = draw(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an overflow, or an optimum out of reach
        for labels in (y, (s > 0).astype(int))[: 1 if Calibrator is DirichletCalibration else 2]:
            Calibrator().fit(scale * s, labels)
        if Calibrator is not TemperatureScaling:
            Calibrator().fit(scale * s, 1 - y)
            Calibrator().fit(scale * s, np.random.default_rng(1).integers(0, 2, N))


def test_temperature_stops_at_a_finite_bound_and_says_so():
    s, y = draw(10)
    with pytest.warns(ConvergenceWarning, match=r"TemperatureScaling stops .* worse than none"):
        fit = TemperatureScaling().fit(1e5 * s, 1 - y)
    assert np.isfinite(fit.temperature_)
    assert np.abs(fit.predict_proba(1e5 * s) - 0.5).max() <= 0.00025001


@pytest.mark.parametrize("value", [0.3, -4.0, 2000.0])
@pytest.mark.parametrize("Calibrator", ALL)
def test_constant_predictions_give_the_base_rate(Calibrator, value):
    X, y = columns(np.full(100, value)), np.repeat([0, 1], [30, 70])
    P = Calibrator().fit(X, y).predict_proba(X)[:, 1]
    if Calibrator in (TemperatureScaling, MixNMatch) and value < 0:
        np.testing.assert_allclose(P, 0.5, atol=0.00025001)  # on the wrong side of 1/2
    elif Calibrator is DirichletCalibration:
        np.testing.assert_allclose(P, 0.7, atol=1e-4)
    elif Calibrator is VennAbers:
        np.testing.assert_allclose(P, 71 / 102)  # Laplace's rule
    else:
        np.testing.assert_allclose(P, 0.7, atol=1e-6)


@pytest.mark.parametrize("scale", [*SCALES, 300.0])
@pytest.mark.parametrize("Calibrator", ALL)
def test_float32_and_float64_agree(Calibrator, scale):
    s, y = draw(11)
    s = s.astype(np.float32)
    X = columns(s) * np.float32(scale)
    assert X.dtype == np.float32
    single = Calibrator().fit(X, y).predict_proba(X)
    double = columns(s.astype(np.float64)) * scale
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, Calibrator().fit(double, y).predict_proba(double), atol=1e-6)


@pytest.mark.parametrize("Calibrator", ALL)
def test_logits_differing_by_2000_stay_finite(Calibrator):
    s = np.repeat([-2000.0, 2000.0], 50)
    y = np.repeat([0, 1, 0, 1], [45, 5, 10, 40])
    fit = Calibrator().fit(columns(s), y)
    P = fit.predict_proba(columns(s))
    assert np.isfinite(P).all()
    even = Calibrator in (TemperatureScaling, MixNMatch)  # no base rate of their own
    expected = [0.15, 0.85] if even else [0.1, 0.8]
    expected = [6 / 52, 41 / 52] if Calibrator is VennAbers else expected
    np.testing.assert_allclose(P[[0, -1], 1], expected, atol=2e-6)


def test_logits_from_probabilities_round_trip_and_ends():
    p = np.array([0, 1e-10, 0.2, 0.5, 1 - 1e-10, 1])
    z = logits_from_probabilities(p)
    assert z.shape == (6, 2) and np.isfinite(z).all()
    np.testing.assert_allclose(expit(z[:, 1] - z[:, 0]), p, rtol=1e-9, atol=3e-16)
    np.testing.assert_allclose(z.sum(axis=1), 0)
    assert (np.diff(z[:, 1]) > 0).all()
    with pytest.raises(ValueError, match=r"p must hold probabilities in \[0, 1\]; got .*1.5"):
        logits_from_probabilities([0.1, 1.5])


def test_complex_numbers_are_refused():
    columns = pd.DataFrame({"a": pd.Series([0.0, 1 + 2j, 1.0], dtype=object)})
    with pytest.raises(TypeError, match="not 'complex'"):
        PlattScaling().fit(columns, [0, 1, 1])
