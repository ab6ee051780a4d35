"""The report's tables against closed forms and simulation, and its verdicts against its tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import kstest
from scipy.stats import t as student

from probnb.calibrators import PlattScaling
from probnb.metrics import brier, ece, nll
from probnb.report import check_table, draw_example, judge, make_report, read_predictions
from probnb.report.judge import (
    calibration_gains,
    calibration_table,
    decomposition_table,
    gain_parts_table,
    group_table,
    paired_table,
    resample,
)
from probnb.report.tell import FORMS, advise, describe, gain_cells, show_table


@pytest.fixture(scope="module")
def table():
    return check_table(draw_example(3000))


@pytest.fixture(scope="module")
def boot(table):
    return resample(table, replicates=200)


@pytest.fixture(scope="module")
def gains(table):
    return calibration_gains(table)


def drawn(n=2000, seed=0, distort=lambda s: s, **columns):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    y = (rng.random(n) < expit(s)).astype(int)
    return check_table(pd.DataFrame({"y": y, "a": expit(distort(s)), **columns}))


def test_replicates_are_lowered_only_where_the_table_is_large(monkeypatch):
    assert len(resample(drawn(300), replicates=20).samples) == 20
    monkeypatch.setattr("probnb.report.judge.BUDGET", 1000)
    assert len(resample(drawn(300), replicates=20).samples) == 20
    assert len(resample(drawn(300), replicates=200).samples) == 100


def test_pairs_are_all_or_with_a_reference(boot):
    pairs = paired_table(boot)
    assert pairs.index.droplevel("metric").unique().tolist() == [
        ("careful", "overconfident"),
        ("careful", "noisy"),
        ("overconfident", "noisy"),
    ]
    row = pairs.loc["careful", "noisy", "brier"]
    point = boot.point["brier"]
    assert row["difference"] == pytest.approx(point["careful"] - point["noisy"])
    assert row["distinct"] and row["high"] < 0
    assert not pairs.loc["careful", "overconfident", "auc"]["distinct"]  # the same order
    only = paired_table(boot, "noisy")
    assert set(only.index.get_level_values("b")) == {"noisy"}
    with pytest.raises(ValueError, match="Did you mean 'noisy'"):
        paired_table(boot, "nosy")
    assert paired_table(resample(drawn(100), 20)).empty


@pytest.mark.parametrize("bins", [5, 15])
def test_decomposition_adds_up(table, bins):
    parts = decomposition_table(table, bins)
    for name, row in parts.iterrows():
        assert row["brier"] == pytest.approx(brier(table.y, table.predictions[name]))
        assert row["calibration"] + row["refinement"] + row["within"] == pytest.approx(row["brier"])
        assert row["uncertainty"] - row["resolution"] == pytest.approx(row["refinement"])


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_of_calibrated_predictions_are_uniform_and_ece_null_is_their_mean(weighted):
    rows = []
    for seed in range(80):
        drawn_on = np.random.default_rng([seed, 1]).exponential(size=500)
        table = drawn(500, seed, **({"weight": drawn_on} if weighted else {}))
        rows.append(calibration_table(table).loc["a"])
    rows = pd.DataFrame(rows)
    assert kstest(rows["bias_p"].astype(float), "uniform").pvalue > 0.001
    if not weighted:
        assert kstest(rows["bins_p"], "uniform").pvalue > 0.001
    assert rows["ece"].mean() == pytest.approx(rows["ece_null"].mean(), rel=0.1)
    covered = (rows["slope_low"] < 1) & (rows["slope_high"] > 1)
    assert 0.88 <= covered.mean() <= 1


def test_departures_are_found_and_measured():
    too_extreme = calibration_table(drawn(distort=lambda s: 2 * s)).loc["a"]
    assert (
        too_extreme["slope_high"] < 1 and too_extreme["slope_low"] < 0.5 < too_extreme["slope_high"]
    )
    assert too_extreme["bins_p"] < 1e-6
    too_high = drawn(distort=lambda s: s + 0.5)
    row = calibration_table(too_high).loc["a"]
    assert row["bias"] == pytest.approx(too_high.predictions["a"].mean() - too_high.y.mean())
    assert row["bias_p"] < 1e-6 and row["slope_low"] < 1 < row["slope_high"]
    assert row["ece"] == pytest.approx(ece(too_high.y, too_high.predictions["a"]), abs=1e-15)


def test_slope_error_is_that_of_the_information_matrix():
    data = drawn(distort=lambda s: 1.5 * s)
    s = logit(data.predictions["a"].to_numpy())
    q = PlattScaling().fit(s, data.y).predict_proba(s)[:, 1]
    X = np.column_stack([s, np.ones(len(s))])
    error = np.sqrt(np.linalg.inv((X.T * (q * (1 - q))) @ X)[0, 0])
    row = calibration_table(data).loc["a"]
    assert row["slope_high"] - row["slope_low"] == pytest.approx(2 * 1.96 * error, rel=1e-6)


def test_certain_predictions_do_not_break_the_tests():
    y = np.repeat([0, 1], 20)
    right = check_table(pd.DataFrame({"y": y, "a": y.astype(float), "b": np.full(40, 0.5)}), "a")
    with np.errstate(all="raise"):
        rows = calibration_table(right)
    assert rows.loc["a", ["bias_p", "bins_p"]].tolist() == [1, 1]
    wrong = check_table(pd.DataFrame({"y": y, "a": np.where(np.arange(40) == 0, 1.0, y)}))
    assert calibration_table(wrong).loc["a", "bins_p"] == 0


def test_groups_show_what_was_predicted_and_what_came_true(table):
    groups = group_table(table)
    assert groups.index.get_level_values("group").unique().tolist() == ["north", "south"]
    south = table.group == "south"
    row = groups.loc["south", "noisy"]
    assert row["rows"] == south.sum()
    assert row["observed"] == pytest.approx(table.y[south].mean())
    assert row["predicted"] == pytest.approx(table.predictions["noisy"][south].mean())
    assert row["off"] and not groups.loc["south", "careful"]["off"]
    named = draw_example(300)
    named["group"] = pd.Categorical(named["group"], ["north", "west", "south"])  # none is west
    assert len(group_table(check_table(named))) == 2 * 3
    many = draw_example(2000).assign(group=np.arange(2000) // 10)
    assert len(group_table(check_table(many))) == 20 * 3


def test_gains_are_cross_fitted(table, gains):
    # By hand, one column and calibrator: every row is predicted by a fit that has not seen it.
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    s = logit(table.predictions["noisy"].to_numpy())
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    after = cross_val_predict(PlattScaling(), s, table.y, cv=folds, method="predict_proba")[:, 1]
    row = gains.loc["noisy", "platt"]
    assert row["brier"] == pytest.approx(brier(table.y, after))
    gained = (table.predictions["noisy"] - table.y) ** 2 - (after - table.y) ** 2
    assert row["brier_gain"] == pytest.approx(gained.mean())
    half = student.ppf(0.975, len(gained) - 1) * gained.std(ddof=1) / np.sqrt(len(gained))
    assert row["brier_high"] - row["brier_gain"] == pytest.approx(half, rel=1e-6)
    before = nll(table.y, table.predictions["noisy"])
    assert row["nll_gain"] == pytest.approx(before - nll(table.y, after))


def test_calibrating_calibrated_predictions_costs_on_average():
    # On the rows of the fit itself every calibrator would gain, isotonic regression most.
    parts = [calibration_gains(drawn(300, seed), ["platt", "isotonic"]) for seed in range(12)]
    means = pd.concat(parts).groupby("calibrator")["brier_gain"].mean()
    assert means["isotonic"] < means["platt"] < 0


def test_clusters_are_kept_whole_and_widen_the_intervals():
    frame = draw_example(300)
    copies = pd.concat([frame] * 8, ignore_index=True).assign(case=np.tile(np.arange(300), 8))
    apart = calibration_gains(check_table(copies, "careful"), ["platt"])
    together = calibration_gains(check_table(copies, "careful", cluster="case"), ["platt"])
    width = [g["brier_high"] - g["brier_low"] for g in (apart, together)]
    np.testing.assert_allclose(width[1] / width[0], np.sqrt(8), rtol=0.1)
    narrow, wide = (
        resample(check_table(copies, cluster=c, columns="careful"), 200).std()
        for c in (None, "case")
    )
    assert wide.loc["careful", "brier"] > 2 * narrow.loc["careful", "brier"]


def test_too_few_rows_for_a_gain_are_said():
    frame = pd.DataFrame({"y": [0] * 9 + [1], "a": np.linspace(0.1, 0.9, 10)})
    gains = calibration_gains(check_table(frame))
    assert gains.empty
    assert advise("a", gains) == "too few rows to tell"
    with pytest.raises(ValueError, match="bins must be at most the number of rows, 10; got 15"):
        decomposition_table(check_table(frame), 15)


def verdicts(frame, name="m", **settings):
    table = check_table(frame, **settings)
    return dict(
        zip(
            ("mean", "order", "spread", "bins"),
            describe(name, calibration_table(table), resample(table, 100)),
        )
    )


def test_verdicts_follow_from_the_tables(table, boot, gains):
    off = calibration_table(table)
    assert describe("careful", off, boot) == [
        "as observed",
        "better than chance",
        f"right (slope {off.loc['careful', 'slope']:.2f})",
        "as chance makes",
    ]
    assert describe("overconfident", off, boot)[2].startswith("too extreme (slope 0.")
    assert describe("noisy", off, boot)[0].startswith("too high by 0.0")
    assert describe("noisy", off, boot)[3] == "off"
    assert advise("overconfident", gains).startswith("yes: temperature scaling, gain 0.01")
    assert advise("noisy", gains).startswith("yes: Platt scaling, gain 0.0")
    assert advise("careful", gains) == "no gain beyond chance"
    text = make_report(table, replicates=50).in_short()
    assert text.startswith("|  | careful | ") and text.count("(told apart)") == 2
    assert "\n| less the best | best | +0.0" in text and "\n| Brier | 0.1" in text
    assert "probnb calibrate FILE map.json" in text and "--rate" in text
    assert "| groups | off in 0 of 2 | off in 2 of 2 | off in 2 of 2 |" in text


def test_verdicts_on_equals_and_on_chance():
    rng = np.random.default_rng(3)
    s = rng.normal(size=500)
    y = (rng.random(500) < expit(s)).astype(int)
    a = expit(s)
    frame = pd.DataFrame({"y": y, "a": a, "a_$1": np.clip(a + 1e-4 * s, 0, 1)})
    text = make_report(check_table(frame), replicates=50).in_short()
    assert r"a\_\$1" in text
    assert "(not told apart)" in text and "probnb calibrate" not in text and "--rate" not in text
    frame = pd.DataFrame({"y": y, "m": expit(rng.normal(size=500))})
    assert verdicts(frame)["order"] == "no better than chance"
    alone = make_report(check_table(frame), replicates=20).in_short()
    assert alone.startswith("|  | m |\n") and "less the best" not in alone


def test_a_sure_but_tiny_gain_is_not_worth_it():
    rows = {"brier": 0.2, "brier_gain": 1e-5, "brier_low": 5e-6, "brier_high": 1.5e-5}
    index = pd.MultiIndex.from_tuples([("a", "platt")], names=["column", "calibrator"])
    assert advise("a", pd.DataFrame([rows], index=index)) == "no: the gain is below a thousandth"


def test_cells_hold_numbers_over_intervals_and_are_safe_to_show(table, gains):
    report = make_report(table, replicates=100)
    low, high = report.boot.interval()
    value, interval = report.cells("metrics").loc["Brier", "noisy"].split("\n")
    assert float(value) == pytest.approx(report.boot.point.loc["noisy", "brier"], abs=5e-5)
    assert interval == f"[{low.loc['noisy', 'brier']:.4f}, {high.loc['noisy', 'brier']:.4f}]"
    pairs = report.cells("pairs")
    assert pairs.loc["Brier", "careful − noisy"].endswith("*")
    assert not pairs.loc["AUC", "careful − overconfident"].endswith("*")
    assert report.cells("calibration").loc["noisy", "bins"] == "p < 0.0001"
    assert report.cells("groups").loc[("south", "noisy"), "predicted"].endswith("*")
    assert gain_cells(gains).loc[("noisy", "platt"), "gain in Brier"].startswith("+0.0118")
    html = show_table(pd.DataFrame({"<b>": ["a\nb"]}, index=["<script>"]))
    assert "<script>" not in html and "<b>" not in html and "a\nb" in html
    wide = pd.DataFrame([["+0.0123\n[-0.0140, -0.0131] *"] * 8], ["careful - noisy"]).map(str)
    assert show_table(wide).count("<table") == 3  # of three columns and two: none cut by the page
    assert show_table(wide.iloc[:, :3]).count("<table") == 1


def test_parts_of_a_gain_add_up_to_the_difference_of_the_scores(table):
    parts = gain_parts_table(table)
    assert parts.index.unique("column").tolist() == ["overconfident", "noisy"]
    gain = parts["gain"].unstack("part")
    assert gain.loc["overconfident", "slope"] > 0.8 * gain.loc["overconfident", "total"]
    score = {name: brier(table.y, q) for name, q in table.predictions.items()}
    for name, row in gain.iterrows():
        assert row.drop("total").sum() == pytest.approx(row["total"])
        assert row["total"] == pytest.approx(score[name] - score["careful"])
    assert gain_parts_table(drawn(100)).empty


@pytest.mark.parametrize("most", [1999, 2000, 1000])
def test_parts_of_a_large_table_are_those_of_a_sample(monkeypatch, most):
    """2,000 rows: one more than are looked at is no reason to say nothing."""
    table = check_table(draw_example(2000))
    whole = gain_parts_table(table)
    monkeypatch.setattr(judge, "FIT_ROWS", most)
    parts = gain_parts_table(table)
    assert parts.index.equals(whole.index) and parts.equals(gain_parts_table(table))
    assert parts.equals(whole) == (most == 2000)


@pytest.mark.parametrize(
    "scenario, low, high", [("linear", 0.0096, 0.0158), ("discrete", 0.0008, 0.0041)]
)
def test_authors_early_stop_and_cape_differ_on_their_own_rows(data_dir, scenario, low, high):
    table = read_predictions(data_dir / "authors-predictions" / f"{scenario}.csv")
    row = paired_table(resample(table, 1000)).loc["early_stop", "cape_bin", "brier"]
    assert row["distinct"]
    assert [row["low"], row["high"]] == pytest.approx([low, high], abs=4e-4)


def test_forecasts_of_games(data_dir):
    path = data_dir / "forecasts" / "nba_games.csv"
    table = read_predictions(path, columns="prob1", y="prob1_outcome")
    assert len(table.y) == 8886
    assert calibration_table(table).loc["prob1", "slope"] == pytest.approx(1, abs=0.2)
    with pytest.raises(ValueError, match=r"'prob1_outcome' must hold 0 or 1 .*'0.5'"):
        read_predictions(path.with_name("nfl_games.csv"), columns="prob1", y="prob1_outcome")


HALF = np.array([0, 1] * 60)


@pytest.mark.parametrize("exceptions", [0, 1, 5])
@pytest.mark.parametrize("sure", [1.0, 0.55])
def test_an_inverted_column_is_said_to_be_inverted(exceptions, sure):
    p_hat = np.where(HALF == 1, 1 - sure, sure)
    p_hat[:exceptions] = 1 - p_hat[:exceptions]
    table = check_table(pd.DataFrame({"y": HALF, "m": p_hat}))
    off = calibration_table(table)
    words = describe("m", off, resample(table, 100))
    assert off.loc["m", "order"] == "inverted"
    assert words[1] == "inverted: is a label swapped?" and words[2].startswith("not told")
    advice = advise("m", calibration_gains(table), "inverted")
    assert advice == "first find out which outcome it predicts"
    assert np.isnan(off.loc["m", "slope"]) == (exceptions < 2)  # one exception is still a tie


@pytest.mark.parametrize("value", [0.3, 0.0, 1.0, 0.5])
def test_a_constant_column_is_said_to_be_constant(value):
    y = np.array([0, 1, 1] * 40)
    for p_hat in (np.full(120, value), np.clip(value + 1e-9 * np.arange(120) * (value < 1), 0, 1)):
        if value in (0.0, 1.0) and np.ptp(p_hat) > 0:
            continue  # in log-odds these differ
        frame = pd.DataFrame({"y": y, "m": p_hat})
        assert verdicts(frame)["order"] == "all predictions are the same"
        off = calibration_table(check_table(frame))
        assert off.loc["m", ["slope", "slope_low", "slope_high"]].isna().all()


LIGHT = np.arange(120) < 90  # many rows of little weight, ordered the wrong way round
TURNED = np.where(LIGHT, 0.8 - 0.6 * HALF, 0.2 + 0.6 * HALF) + np.linspace(0, 0.1, 120)


@pytest.mark.parametrize(
    ("columns", "order"),
    [
        ({"m": 0.2 + 0.6 * HALF}, "separated"),
        ({"m": np.r_[0.2 + 0.6 * HALF[:118], 0.8 - 0.6 * HALF[118:]]}, "ordinary"),
        ({"m": TURNED, "weight": np.where(LIGHT, 0.01, 1.0)}, "ordinary"),
        ({"m": TURNED}, "inverted"),
        ({"m": np.r_[0.6, np.full(119, 0.5)], "y": np.repeat([0, 1], 60)}, "ties"),
        ({"m": np.r_[np.full(119, 0.5), 0.6], "y": np.repeat([0, 1], 60)}, "ties"),
    ],
)
def test_orders(columns, order):
    """Ties at the border are no perfect order, and leave no finite slope."""
    frame = pd.DataFrame({"y": HALF, **columns})
    off = calibration_table(check_table(frame)).loc["m"]
    assert off["order"] == order.replace("ties", "ordinary")
    assert order != "ties" or np.isnan(off["slope"])
    told = verdicts(frame)["order"] == "separates these rows without an error"
    assert told == (order == "separated")


def test_a_slope_that_the_rows_do_not_fix_is_not_called_right():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": [0, 1, 1, 0, 1, 0], "m": 0.5 + 0.01 * rng.normal(size=6)})
    row = calibration_table(check_table(frame)).loc["m"]
    assert row["slope_low"] < 0.5 and row["slope_high"] > 2
    assert verdicts(frame)["spread"].startswith("not told (slope")


@pytest.mark.parametrize("clusters", [1, 4])
def test_few_clusters_leave_no_interval_and_no_verdict(clusters):
    frame = draw_example(400).assign(cluster=np.arange(400) % clusters)
    report = make_report(check_table(frame), replicates=30)
    assert f"Fewer than 5 clusters ({clusters}): no interval can be had." in report.what_was_read()
    assert not report.tables["pairs"]["distinct"].any() and not report.tables["groups"]["off"].any()
    for part in ("metrics", "pairs", "groups", "gains", "parts"):
        assert "[" not in "".join(map(str, report.cells(part).to_numpy().ravel())), part
    assert describe("noisy", report.tables["calibration"], report.boot)[:2] == ["not told"] * 2
    assert report.in_short().count("(not told apart)") == 2


def test_verdicts_of_dependent_rows_keep_their_level():
    # Eight rows of one case: as independent ones they would reject in every second table.
    off = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        s = rng.normal(size=60)
        frame = pd.DataFrame({"y": rng.random(60) < expit(s), "m": expit(s), "id": range(60)})
        table = check_table(pd.concat([frame] * 8))
        assert table.units == 60 and len(table.y) == 480
        off.append(calibration_table(table).loc["m"])
    off = pd.DataFrame(off)
    assert (off["bias_p"] < 0.05).mean() <= 0.14
    assert ((off["slope_low"] > 1) | (off["slope_high"] < 1)).mean() <= 0.18
    assert off["bins_p"].isna().all()


def test_no_cell_has_more_digits_than_its_number():
    y = np.array([0.0, 1.0] * 60)
    for m in (y, np.where(y == 1, 1 - 1e-13, 1e-13), np.where(y == 1, 0.3, 0.3 + 1e-9)):
        frame = pd.DataFrame({"y": y, "m": m, "k": 1 - y})
        report = make_report(check_table(frame, ["m", "k"]), replicates=20)
        for part in FORMS:
            for cell in report.cells(part).astype(str).to_numpy().ravel():
                assert max(map(len, cell.split())) < 20, cell
                assert "nan" not in cell.replace("(", " ").split(), cell
        assert all(len(word) < 30 for word in report.in_short().split())


def test_constant_weights_change_nothing():
    frame = draw_example(150)
    reports = [
        make_report(check_table(t), replicates=30) for t in (frame, frame.assign(weight=7.5))
    ]
    assert reports[0].in_short() == reports[1].in_short()
    for part in FORMS:
        pd.testing.assert_frame_equal(reports[0].cells(part), reports[1].cells(part))


def test_weights_count_rows_as_often():
    rng = np.random.default_rng(1)
    frame, times = draw_example(300), rng.integers(0, 4, 300)
    table = check_table(frame.assign(weight=times))
    often = check_table(frame.loc[frame.index.repeat(times)])
    assert len(table.y) == np.count_nonzero(times)
    for function in (
        decomposition_table,
        lambda t: calibration_table(t)[["bias", "ece", "slope"]],
        lambda t: group_table(t)[["predicted", "observed"]],
    ):
        pd.testing.assert_frame_equal(
            function(table).sort_index(), function(often).sort_index(), rtol=1e-5
        )
    pd.testing.assert_frame_equal(resample(table, 2).point, resample(often, 2).point)
    total = pd.Series(times).groupby(frame["group"]).sum()
    squares = pd.Series(times**2).groupby(frame["group"]).sum()
    rows = group_table(table).xs("careful", level="column")
    wide, narrow = rows, group_table(often).xs("careful", level="column")
    assert ((wide["high"] - wide["low"]) > (narrow["high"] - narrow["low"])).all()
    assert (total**2 / squares < rows["rows"]).all()


def test_the_report_holds_every_part_and_says_what_is_missing():
    report = make_report(check_table(draw_example(300)), reference="noisy", replicates=20)
    assert set(report.tables["pairs"].index.get_level_values("b")) == {"noisy"}
    assert "20 resamples of 300 rows." in report.what_was_read()
    assert report.in_short()._repr_markdown_().startswith("|")
    for part in set(FORMS) - {"distances"}:
        assert "<table" in report.show(part)
    assert report.show("distances").startswith("Nothing to show")
    one = check_table(pd.DataFrame({"y": [0] * 15 + [1], "m": np.linspace(0.1, 0.9, 16)}))
    report = make_report(one, replicates=20)
    for part in ("pairs", "groups", "gains"):
        assert report.show(part) == (
            f"Nothing to show: these rows and columns allow no table of {part}."
        )
    with pytest.raises(ValueError, match="part must be one of metrics, pairs"):
        report.show("all")
    with pytest.raises(ValueError, match="reference must be one of m; got 'n'"):
        make_report(one, reference="n")
    with pytest.raises(ValueError, match="replicates must be an integer of at least 2"):
        make_report(one, replicates=1)


def test_repeated_outcomes_stand_in_for_the_truth():
    rng = np.random.default_rng(0)
    frame = draw_example(3000)
    frame["votes"] = rng.integers(2, 12, 3000)
    frame["yes"] = rng.binomial(frame["votes"], frame["p"])
    report = make_report(check_table(frame, k="yes", n="votes"), replicates=20)
    assert list(report.table.predictions) == ["careful", "overconfident", "noisy"]
    for name, row in report.tables["distances"].iterrows():
        half = (row["mse_p_high"] - row["mse_p_low"]) / 2  # about two standard errors
        assert abs(row["mse_p"] - report.boot.point.loc[name, "mse_p"]) < 2 * half < 0.01
    assert "<table" in report.show("distances")
    cell = report.cells("distances").loc["careful", "of KL_p, at most bias"]
    assert float(cell) == pytest.approx(
        report.tables["distances"].loc["careful", "kl_p_bias"], abs=1e-4
    )
    for change in ({"yes": frame["votes"] + 1}, {"votes": 1}, {"yes": 0.5}):
        with pytest.raises(ValueError, match=r"column '(yes|votes)' must"):
            check_table(frame.assign(**change), k="yes", n="votes")
    with pytest.raises(ValueError, match="k and n must be columns, or both None"):
        check_table(frame, k="yes")


def test_no_order_of_noise_is_called_inverted_more_often_than_one_in_a_hundred():
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(100):  # both the same within a cluster: rows alone would say so in half
        p, y = (np.repeat(x, 50) for x in (rng.random(12), rng.permutation([0, 1] * 6)))
        table = check_table(pd.DataFrame({"y": y, "m": p, "cluster": np.repeat(range(12), 50)}))
        wrong += calibration_table(table).loc["m", "order"] == "inverted"
    assert wrong <= 3


@pytest.mark.parametrize(
    "draw", [lambda rng: rng.uniform(0, 0.01, 2000), lambda rng: expit(rng.normal(0, 6, 1000))]
)
def test_calibrated_predictions_near_0_and_1_are_not_called_off(draw):
    rng, off = np.random.default_rng(0), []
    for _ in range(200):
        p_hat = draw(rng)
        table = check_table(pd.DataFrame({"y": rng.random(len(p_hat)) < p_hat, "m": p_hat}))
        off.append(calibration_table(table).loc["m", "bins_p"] < 0.01)
    assert np.mean(off) <= 0.03  # 6 % in bins of hardly any expected outcome
    certain = check_table(pd.DataFrame({"y": [0] * 50 + [1] * 50, "m": [1e-300] * 51 + [1.0] * 49}))
    assert calibration_table(certain).loc["m", "bins_p"] == 0


def test_a_missing_interval_is_no_finding():
    rng = np.random.default_rng(0)
    y = rng.random(240) < 0.5
    frame = pd.DataFrame({"y": y, "m": 0.3 + 0.4 * y + 0.2 * rng.random(240)})
    frame["cluster"], frame["group"] = np.arange(240) % 4, np.where(np.arange(240) < 90, "a", "b")
    report = make_report(check_table(frame), replicates=20)
    assert advise("m", report.tables["gains"]) == "too few rows to tell"
    assert "off in" not in report.in_short()
