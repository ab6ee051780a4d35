"""Anything at all into metrics, p_emp and calibrators: numbers, or a ValueError that names why.

PROBNB_FUZZ sets about how many inputs the tests share (100 in ordinary runs; 100,000 in a night).
"""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from probnb import metrics
from probnb.calibrators import CALIBRATORS
from probnb.report.gain_parts import gain_parts
from probnb.training.cape import p_emp_bin, p_emp_kernel

from .test_fuzz import INPUTS, fuzz

FUZZ = settings(fuzz(max(1 / 30, 33 / INPUTS)), phases=(Phase.generate,))


ODD = st.sampled_from(
    [None, np.nan, np.inf, -1, 2, 1e-320, 1e308, True, "0.5", "", 0.1j, pd.NA, pd.NaT, [0.5],
     Decimal("0.5"), 10**400, b"1", np.float32(0.1), np.datetime64("2020")]
)  # fmt: skip
FORMS = st.sampled_from(
    [
        list,
        tuple,
        np.array,
        lambda x: np.array(x, object),
        pd.Series,
        lambda x: np.array([x, x]),
        lambda x: pd.Series(x).astype("category"),
        lambda x: np.ma.array(x, mask=[0] * len(x)),
        lambda x: np.ma.array(x, mask=[1] + [0] * (len(x) - 1)),
        lambda x: pd.DataFrame({"a": x}),
        lambda x: np.array(x, np.float16),
        lambda x: pd.Series(x, dtype="Float64"),
    ]
)


@st.composite
def vectors(draw, values, n):
    """A vector that is right, three times in four; else with one odd entry, length or form."""
    x = draw(st.lists(values, min_size=n, max_size=n))
    if draw(st.integers(0, 3)):
        return x if draw(st.booleans()) else np.array(x)
    if x and draw(st.booleans()):
        x[draw(st.integers(0, len(x) - 1))] = draw(ODD)
    x = x[: draw(st.sampled_from([len(x), len(x), max(len(x) - 1, 0), 0]))]
    try:
        return draw(FORMS)(x)
    except (TypeError, ValueError, OverflowError):  # the form itself does not take them
        return x


@st.composite
def inputs(draw):
    n = draw(st.integers(0, 12))
    p = st.sampled_from([0.0, 1e-300, 0.1, 0.5, 1 - 2**-53, 1.0]) | st.floats(0, 1)
    y, k = st.integers(0, 1), st.integers(0, 4)
    return {
        "y": draw(vectors(y, n)),
        "p_hat": draw(vectors(p, n)),
        "p": draw(vectors(p, n)),
        "w": draw(st.none() | vectors(st.floats(0, 9) | st.sampled_from([5e-324, 1e308]), n)),
        "k": draw(vectors(k, n)),
        "counts": draw(vectors(st.integers(2, 6), n)),
        "groups": draw(st.none() | vectors(st.sampled_from("abc"), n)),
        "bins": draw(st.sampled_from([1, 2, 15, 40, 0, -1, 2.5, True, None, "3"])),
    }


def numbers(result):
    """Every number of a result."""
    if isinstance(result, dict):
        result = list(result.values())
    elif hasattr(result, "point"):
        result = result.point
    elif hasattr(result, "__dataclass_fields__"):
        return np.concatenate([numbers(getattr(result, f)) for f in result.__dataclass_fields__])
    elif isinstance(result, tuple):
        return np.concatenate([numbers(r) for r in result])
    return np.ravel(np.asarray(result, float))


def named_or_numbers(function, *args, may_be_nan=False, **options):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            values = numbers(function(*args, **options))
        except ValueError as error:
            assert str(error)
            return
    ours = ConvergenceWarning | DataConversionWarning | RuntimeWarning
    unsaid = [w for w in said if not issubclass(w.category, ours)]
    assert not unsaid
    announced = any("is NaN" in str(w.message) for w in said)
    assert may_be_nan or announced or not np.isnan(values).any()
    assert all("is NaN" in str(w.message) for w in said if w.category is RuntimeWarning)


@FUZZ
@given(inputs())
def test_metrics(x):
    y, p_hat, w, bins = x["y"], x["p_hat"], x["w"], x["bins"]
    named_or_numbers(metrics.evaluate, y, p_hat, x["p"], w)
    named_or_numbers(metrics.evaluate, y, p_hat, None, w, (x["k"], x["counts"]))
    for metric in metrics.METRICS.values():
        named_or_numbers(metric.function, x["p"] if metric.needs_truth else y, p_hat, weights=w)
    for function in (
        metrics.ece,
        metrics.ece_debiased,
        metrics.brier_decomposition,
        metrics.reliability_bins,
    ):
        named_or_numbers(function, y, p_hat, bins, weights=w)
    for function in (metrics.ece_smooth, metrics.ks_curves):
        named_or_numbers(function, y, p_hat, weights=w)
    for function in (p_emp_bin, p_emp_kernel):
        named_or_numbers(function, p_hat, y, bins, weights=w)
    options = {"replicates": 3, "groups": x["groups"], "weights": w, "progress": False}
    named_or_numbers(metrics.bootstrap, y, {"a": p_hat, "b": x["p"]}, x["p"], **options)


@FUZZ
@given(inputs())
def test_repeated_outcomes(x):
    k, counts, w, groups = x["k"], x["counts"], x["w"], x["groups"]
    for metric in ("mse_p", "kl_p"):
        options = {"metric": metric, "weights": w, "groups": groups, "may_be_nan": True}
        named_or_numbers(metrics.repeated_distance, k, counts, x["p_hat"], **options)


@FUZZ
@given(inputs(), st.sampled_from(list(CALIBRATORS)), st.sampled_from([1.0, 1e-9, 1e6, 1e300]))
def test_calibrators(x, name, scale):
    try:
        s = (np.asarray(x["p_hat"], float) - 0.5) * scale
    except (TypeError, ValueError, OverflowError):
        s = x["p_hat"]

    def fit_and_predict():
        try:
            fitted = CALIBRATORS[name]().fit(s, x["y"], sample_weight=x["w"])
        except TypeError as error:  # scikit-learn's own, for what is no number
            raise ValueError(str(error)) from None
        return fitted.predict_proba([-1e9, -1.0, 0.0, 1.0, 1e9] if np.ndim(s) == 1 else s)

    named_or_numbers(fit_and_predict)
    named_or_numbers(
        gain_parts, x["y"], x["p_hat"], x["p"], x["p"], x["w"], x["groups"], may_be_nan=True
    )
