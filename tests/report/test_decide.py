"""Net benefit, decision curves and the log-odds of a threshold: by hand, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from probnb.calibrators import (
    CALIBRATORS,
    HistogramBinning,
    PlattScaling,
    TemperatureScaling,
    VennAbers,
)
from probnb.metrics import net_benefit
from probnb.plots import decision_figure
from probnb.report import check_table, draw_example
from probnb.report.decide import crossing, decision_curve, show_decisions
from probnb.settings import check_numbers


def test_net_benefit_by_hand():
    y, p = [1, 1, 0, 0, 0], [0.9, 0.3, 0.4, 0.2, 0.1]
    assert net_benefit(y, p, 0.25) == pytest.approx(2 / 5 - 1 / 5 / 3)
    assert net_benefit(y, p, 0.3) == pytest.approx(2 / 5 - 1 / 5 * 3 / 7)  # 0.3 is acted on
    assert net_benefit(y, p, 0.95) == 0
    assert net_benefit(y, p, 0.25, [2, 1, 1, 1, 5]) == pytest.approx(3 / 10 - 1 / 10 / 3)
    everybody = net_benefit(y, np.ones(5), 0.25)
    assert everybody == pytest.approx(2 / 5 - 3 / 5 / 3)
    with pytest.raises(ValueError, match=r"threshold must be a finite number in \(0, 1\); got 1"):
        net_benefit(y, p, 1)


@pytest.fixture(scope="module")
def frame():
    table = draw_example(600)
    return table.assign(w=np.random.default_rng(0).integers(1, 4, 600), c=np.arange(600) // 3)


def read(frame, **roles):
    return check_table(
        frame[["y", "careful", "noisy", *roles.values()]], ["careful", "noisy"], **roles
    )


def test_a_line_of_the_curve(frame):
    curve = decision_curve(read(frame), "0.2, 0.45")
    assert curve.index.get_level_values("threshold").max() < 0.9
    assert list(curve[curve["asked"]].index.unique("threshold")) == [0.2, 0.45]
    for t in (0.2, 0.45):
        here = curve.loc[t]
        benefit = {m: net_benefit(frame["y"], frame[m], t) for m in ("careful", "noisy")}
        benefit["treat all"] = net_benefit(frame["y"], np.ones(600), t)
        better = max(0, benefit["treat all"])
        for name, value in benefit.items():
            assert here.at[name, "benefit"] == pytest.approx(value)
            assert here.at[name, "gain"] == pytest.approx(value - better)
        acted = frame["careful"] >= t
        assert here.at["careful", "acted"] == acted.sum()
        assert here.at["careful", "true"] == frame["y"][acted].sum()
        assert here.at["treat all", "acted"] == 600 and here.at["treat none", "acted"] == 0
        assert (here.loc["treat none", ["benefit", "low", "high"]] == 0).all()


@pytest.mark.parametrize("roles", [{}, {"weight": "w"}, {"cluster": "c"}])
def test_intervals_are_those_of_a_bootstrap(frame, roles):
    curve, rng = decision_curve(read(frame, **roles), 0.3).loc[0.3], np.random.default_rng(1)
    units = frame["c"] if "cluster" in roles else np.arange(600)
    w = frame["w"] if "weight" in roles else np.ones(600)
    draws = []
    for _ in range(2000):
        count = np.bincount(rng.integers(units.max() + 1, size=units.max() + 1), None, 600)
        weights = count[units] * w
        pair = [net_benefit(frame["y"], p, 0.3, weights) for p in (frame["careful"], np.ones(600))]
        draws.append((pair[0], pair[0] - pair[1]))
    for std, ends in zip(np.std(draws, axis=0), (["low", "high"], ["gain_low", "gain_high"])):
        half = np.diff(curve.loc["careful", ends].to_numpy(float))[0] / 2
        assert half == pytest.approx(1.96 * std, rel=0.06)


def test_as_a_page_shows_it(frame):
    curve = decision_curve(read(frame), (0.2, 0.5))
    text = show_decisions(curve)
    assert "0.2: careful" in text and "rightly" in text and "treat none" in text
    row = curve.loc[(0.2, "careful")]
    assert (" *" in text.split("0.2: noisy")[0]) == bool(
        row["gain_low"] > 0 or row["gain_high"] < 0
    )
    ax = decision_figure(curve)
    assert [line.get_label() for line in ax.lines[:4]] == [
        "careful",
        "noisy",
        "treat all",
        "treat none",
    ]
    assert decision_curve(read(frame), None) is None
    assert "-p threshold 0.2" in show_decisions(None)


def test_a_column_with_a_reserved_name_is_refused_when_it_is_read(frame):
    named = pd.DataFrame({"y": frame["y"], "treat all": frame["careful"]})
    with pytest.raises(ValueError, match="columns must not be called 'treat all'"):
        check_table(named)


@pytest.mark.parametrize("given", [0.2, "0.2", [0.2], np.array([0.2]), (np.float32(0.25),)])
def test_one_number_or_several(given):
    assert check_numbers(given, "threshold", 0, 1) in ((0.2,), (0.25,))
    assert check_numbers("0.1, 0.2 0.3", "threshold", 0, 1) == (0.1, 0.2, 0.3)


@pytest.mark.parametrize("given", ["abc", "", None, [], True, 0, "0.2, 1.0", "nan", [[0.1, None]]])
def test_what_is_no_number_is_named(given):
    with pytest.raises(ValueError, match=r"threshold must be a finite number in \(0, 1\); got"):
        check_numbers(given, "threshold", 0, 1, exclusive=True)


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    s = 2 * rng.normal(size=n)
    return s, (rng.random(n) < expit(s)).astype(int)


RISING = [name for name in CALIBRATORS if not name.startswith("dirichlet")]


@pytest.mark.parametrize("name", RISING)
@pytest.mark.parametrize("threshold", [0.02, 0.2, 0.5, 0.77])
@pytest.mark.parametrize("columns", [1, 2])
def test_crossing_is_where_the_threshold_is_reached(name, threshold, columns):
    s, y = drawn(6, 400)
    s = s.round(1)
    X = s if columns == 1 else np.column_stack([-s / 2, s / 2])
    fit = CALIBRATORS[name]().fit(X, y)
    at = crossing(fit, threshold)

    def p(x):
        return fit.predict_proba([x] if columns == 1 else [[-x / 2, x / 2]])[0, 1]

    if np.isinf(at):
        assert (p(-1e9) >= threshold) if at < 0 else (p(1e9) < threshold)
    else:
        assert p(at + 1e-12) >= threshold > p(at - 1e-9)


def test_crossing_closed_forms():
    s, y = drawn(7, 1000)
    t = TemperatureScaling().fit(s, y)
    platt = PlattScaling().fit(s, y)
    for threshold in (1e-6, 0.3, 0.9):
        assert crossing(t, threshold) == pytest.approx(t.temperature_ * logit(threshold), rel=1e-9)
        line = (logit(threshold) - platt.intercept_[0]) / platt.coef_[0, 0]
        assert crossing(platt, threshold) == pytest.approx(line, rel=1e-9)
    assert crossing(None, 0.75) == pytest.approx(np.log(3))
    bins = HistogramBinning(bins=3).fit([0.0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 1, 1])  # 1/2, 1/2, 1
    assert (crossing(bins, 0.3), crossing(bins, 0.6)) == (-np.inf, 3.5)
    assert crossing(VennAbers().fit(s, y), 1 - 1e-9) == np.inf


def test_crossing_says_what_it_cannot_answer():
    s, y = drawn(8, 500)
    with pytest.raises(ValueError, match="calibrator must rise"):
        crossing(PlattScaling().fit(-s, y), 0.5)
    both = np.column_stack([0.2 * s**2 - s, 0.1 * s**2 + s])
    platt = PlattScaling().fit(both, y)
    with pytest.raises(ValueError, match="mean must be given"):
        crossing(platt, 0.5)
    at = crossing(platt, 0.5, mean=0.3)
    assert platt.predict_proba([[0.3 - at / 2, 0.3 + at / 2]])[0, 1] == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"threshold must be a finite number in \(0"):
        crossing(None, 1.0)


def test_a_mean_is_nothing_to_a_map_of_log_odds():
    fitted = PlattScaling().fit(np.linspace(-2, 3, 40), np.arange(40) % 3 > 0)
    assert crossing(fitted, 0.5, mean=2.0) == crossing(fitted, 0.5)
