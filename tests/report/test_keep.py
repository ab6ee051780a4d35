"""A map to take away: what is chosen, what is kept, new rows in order, and what is refused."""

import io
import json
import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit, logit

from probnb.__main__ import main
from probnb.calibrators import CALIBRATORS, PlattScaling
from probnb.report import check_table, keep, read_predictions
from probnb.report.keep import apply_map, fit_map, load_map, save_map
from probnb.tables import Rows


def drawn(n=3000, seed=0, slope=1.8, shift=0.4, rate=0.5):
    """Outcomes at a rate, and a model that is right at one half but for slope and shift."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    s = rng.normal(1.5 * y, 1) * 1.5 - 1.125
    return pd.DataFrame({"y": y, "m": expit(slope * s + shift), "right": expit(s)})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    frame = drawn()
    frame[["y", "m"]].to_csv(folder / "val.csv", index=False)
    frame[["y", "right"]].to_csv(folder / "right.csv", index=False)
    logits = frame.assign(m=logit(frame["m"]))
    logits[["y", "m"]].to_csv(folder / "logit.csv", index=False)
    new = drawn(1000, 1, rate=0.1)
    new = new.assign(id=[f"{i:04}" for i in range(len(new))], text='a "b", c')
    new[["id", "m", "text"]].to_csv(folder / "new.csv", index=False)
    new.assign(m=logit(new["m"]))[["id", "m"]].to_csv(folder / "newlogit.csv", index=False)
    for name in ("val", "logit"):
        assert main(["calibrate", f"{folder}/{name}.csv", f"{folder}/{name}.json"]) == 0
    return folder


def run(capsys, *arguments):
    capsys.readouterr()
    status = main([*map(str, arguments)])
    out, error = capsys.readouterr()
    return status, out, error


def test_new_rows_are_calibrated_as_they_stand(files, capsys):
    status, out, _ = run(capsys, "apply", files / "val.json", files / "new.csv")
    written = pd.read_csv(io.StringIO(out), dtype={"id": str})
    val, new = pd.read_csv(files / "val.csv"), pd.read_csv(files / "new.csv", dtype={"id": str})
    assert status == 0 and [*written] == ["id", "m", "text", "m_calibrated"]
    pd.testing.assert_frame_equal(written[["id", "m", "text"]], new)
    fitted = PlattScaling().fit(logit(val["m"]), val["y"])
    expected = fitted.predict_proba(logit(new["m"]))[:, 1]
    np.testing.assert_allclose(written["m_calibrated"], expected, atol=1e-12)
    status, out, _ = run(capsys, "apply", files / "logit.json", files / "newlogit.csv")
    again = pd.read_csv(io.StringIO(out))["m_calibrated"]
    np.testing.assert_allclose(again, expected, atol=1e-9)


def test_an_engine_streams_the_same_in_order(files, capsys, tmp_path):
    for ending, name, fitted in (("csv", "new", "val"), ("parquet", "newlogit", "logit")):
        frame = pd.read_csv(files / f"{name}.csv", dtype={"id": str})
        path = tmp_path / f"{name}.{ending}"
        writing = frame.to_parquet if ending == "parquet" else frame.to_csv
        writing(path, index=False)
        outs = [tmp_path / "1.csv", tmp_path / "2.csv"]
        for out, more in zip(outs, ([], ["--engine", "duckdb"])):
            asked = ("apply", files / f"{fitted}.json", path, "-o", out, *more)
            assert run(capsys, *asked)[:2] == (0, "")
        ours, theirs = (pd.read_csv(out, dtype={"id": str}) for out in outs)
        assert ours["id"].tolist() == frame["id"].tolist()
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-12)


def test_a_reader_that_has_enough_is_no_error(files, capsys, monkeypatch):
    """As ``apply ... | head`` leaves a pipe: closed while rows are written, or before the end."""
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert main(["apply", f"{files}/val.json", f"{files}/new.csv"]) == 1
    assert capsys.readouterr().err == "Read 1,000 rows of new.csv.\n"


def test_the_choice_is_that_of_the_report_and_none_where_none_gains(files, capsys, tmp_path):
    status, out, _ = run(capsys, "calibrate", files / "val.csv", tmp_path / "a.json")
    held = json.loads((tmp_path / "a.json").read_text())
    assert status == 0 and held["calibrator"]["name"] == "platt" and "Platt scaling" in out
    gain = held["fitted"]["gain"]
    assert 0 < gain["brier_low"] < gain["brier_gain"] and f"+{gain['brier_gain']:.4f}" in out
    assert held["fitted"]["notes"][0] == "Read 3,000 rows of val.csv."
    status, out, _ = run(capsys, "calibrate", files / "right.csv", tmp_path / "b.json")
    assert status == 3 and "No map is written (no gain beyond chance)" in out
    assert not (tmp_path / "b.json").exists()
    asked = ("calibrate", files / "right.csv", tmp_path / "b.json", "--map", "beta")
    assert run(capsys, *asked)[0] == 0 and load_map(tmp_path / "b.json").calibrator.label


@pytest.mark.parametrize("name", CALIBRATORS)
def test_every_map_survives_its_file_and_an_engine_gives_what_memory_gives(files, tmp_path, name):
    kept = fit_map(check_table(drawn(400)[["y", "m"]]), name, 0.03)[0]
    save_map(tmp_path / "map.json", kept)
    again, x = load_map(tmp_path / "map.json"), np.linspace(0, 1, 101)
    np.testing.assert_array_equal(again.predict(x), kept.predict(x))
    assert again.rates[1] == 0.03
    ours, theirs = (
        pd.concat(apply_map(kept, files / "new.csv", engine))["m_calibrated"]
        for engine in (None, "duckdb")
    )
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["temperature", "platt", "beta", "spline"])
def test_log_odds_and_their_probabilities_are_mapped_alike(name):
    """Beyond 36 a map was fitted to probabilities of 1 and went on in log-odds of any size."""
    frame = drawn(2000)
    x = 25 * logit(frame["right"])
    ours, theirs = (
        fit_map(check_table(frame[["y"]].assign(m=m)), name)[0].predict(m.to_numpy())
        for m in (x, expit(x))
    )
    assert x.max() > 100
    np.testing.assert_allclose(ours, theirs, atol=0.01)  # 1 - p has few digits


def test_a_rate_alone_is_applied_by_the_engine_too(files, tmp_path):
    kept = fit_map(read_predictions(files / "right.csv"), rate=0.03)[0]
    assert kept.calibrator is None
    frame = pd.DataFrame({"right": [0, 1e-9, 0.2, 0.9, 1]})
    frame.to_parquet(tmp_path / "new.parquet")
    (block,) = apply_map(kept, tmp_path / "new.parquet", "duckdb")
    (other,) = apply_map(kept, tmp_path / "new.parquet")
    np.testing.assert_allclose(block["right_calibrated"], other["right_calibrated"], rtol=1e-12)
    assert other["right_calibrated"].iloc[[0, 4]].tolist() == [0, 1]


def test_a_known_rate_gives_predictions_of_that_rate(files):
    kept, _, _ = fit_map(read_predictions(files / "val.csv"), rate=0.1)
    new = drawn(40_000, 5, rate=0.1)
    right = expit(logit(new["right"]) + logit(0.1))  # by Bayes' rule
    found = kept.predict(new["m"].to_numpy())
    assert kept.rates[0] == pytest.approx(drawn()["y"].mean(), abs=1e-6)
    assert found.mean() == pytest.approx(0.1, abs=0.004)
    assert np.mean((found - right) ** 2) < 0.02 * np.mean((new["m"] - right) ** 2)


@pytest.fixture(autouse=True)
def fewer(monkeypatch):
    monkeypatch.setattr(keep, "REPLICATES", 60)


def test_an_estimated_rate_is_covered_map_and_all():
    """Of 40 intervals of 95 %, fewer than 33 would cover in one case of a thousand."""
    covered = 0
    for k in range(40):
        rate = (0.2, 0.4, 0.8)[k % 3]
        table = check_table(drawn(600, k)[["y", "m"]])
        new = Rows(drawn(600, 1000 + k, rate=rate)[["m"]])
        kept, _, _ = fit_map(table, "platt", new=new, seed=k)
        ends = kept.fitted["estimate"]
        assert ends["low"] < kept.rates[1] < ends["high"]
        covered += ends["low"] <= rate <= ends["high"]
    assert 33 <= covered <= 40


def test_it_is_told_where_more_than_the_rate_has_changed(files, capsys, tmp_path):
    asked = ("calibrate", files / "val.csv", tmp_path / "map.json", "--rate")
    status, out, _ = run(capsys, *asked, files / "new.csv")
    assert status == 0 and "Base rate: 0." in out and "More has changed" not in out
    new = pd.read_csv(files / "new.csv")
    new.assign(m=np.tile([0.1, 0.9], len(new) // 2)).to_csv(tmp_path / "other.csv", index=False)
    assert "More has changed than the rate" in run(capsys, *asked, tmp_path / "other.csv")[1]


def test_clusters_weights_and_parts_are_those_of_the_report(tmp_path, capsys):
    frame = drawn(1200).assign(split=np.repeat(["train", "val", "test"], [300, 600, 300]))
    frame[["y", "m", "split"]].to_csv(tmp_path / "a.csv", index=False)
    status, out, _ = run(capsys, "calibrate", tmp_path / "a.csv", tmp_path / "a.json")
    assert status == 0 and "Only the 600 rows of part val" in out
    frame, weight = frame[["y", "m"]], np.arange(1200) % 3
    kept = fit_map(check_table(frame.assign(weight=weight)), "platt")[0]
    again = fit_map(check_table(frame.iloc[np.repeat(np.arange(1200), weight)]), "platt")[0]
    x = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(kept.predict(x), again.predict(x), atol=1e-6)


def few(n=3000, ones=None, **more):
    frame = drawn(n)[["y", "m"]].assign(**more)
    return frame if ones is None else frame.assign(y=(np.arange(n) < ones).astype(int))


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (few(10), [], "validation must have at least 500 independent rows"),
        (few(499), [], "at least 500 independent rows, 50 of either outcome, .* it has 499"),
        (few(3000, 49), [], "it has 3,000, 49 of the rarer outcome"),
        (few(3000, cluster=np.arange(3000) % 9), [], "500 independent clusters.* it has 9"),
        (few(3000, weight=np.where(np.arange(3000) < 99, 1e6, 1)), [], "independent rows.* 99"),
        (few(10), ["--map", "platt"], "at least 50 independent rows, 5 of either"),
        (few(3000, 4), ["--map", "platt"], "it has 3,000, 4 of the rarer"),
        (few(3000, 0), [], "column 'y' must hold both outcomes"),
        (few(3000, 3000), ["--map", "platt"], "column 'y' must hold both outcomes"),
        (few().assign(y=np.arange(3000) % 3), [], "'y' must hold 0 or 1 .*evaluate_outcomes"),
        (few().assign(y=0.5), [], "'y' must hold 0 or 1"),
        (few().assign(m=100 * few()["m"]), [], "'m' must hold probabilities in .* percentages"),
        (few().assign(m=1 - few()["m"]), [], "'m' must not be inverted"),
        (few().assign(n=few()["m"] / 2), [], "prediction must name one column; .* m, n"),
        (few(), ["--prediction", "M2"], "the column must be one of .*; got 'M2'"),
        (few(), ["--outcome", "died"], "the column must be one of .*; got 'died'"),
        (few(), ["--map", "plat"], "map must be one of .*; got 'plat'. Did you mean 'platt'"),
        (few(split="train"), [], "part must be one of .* No row is of part val"),
        (few(), ["--scale", "logits"], "scale must be one of"),
        *(
            (few(), ["--rate", text], rf"rate \(or a file .*\) must be a finite .*got {got}")
            for text, got in {
                **{text: str(float(text)) for text in ("0", "1", "3", "-0.5", "nan", "inf")},
                **{text: f"'{text}'" for text in ("", "none.csv", "3%", "0,03", "estimate", ".")},
                "half": "'half'",
            }.items()
        ),
    ],
)
def test_what_cannot_be_fitted_is_named_and_nothing_is_written(
    frame, options, words, tmp_path, capsys
):
    frame.to_csv(tmp_path / "val.csv", index=False)
    status, out, error = run(
        capsys, "calibrate", tmp_path / "val.csv", tmp_path / "map.json", *options
    )
    assert (status, out) == (1, "") and re.search(words, error), error
    assert [*tmp_path.iterdir()] == [tmp_path / "val.csv"]


def test_rates_from_new_rows_that_tell_none_are_named(files, tmp_path, capsys):
    asked = ("calibrate", files / "val.csv", tmp_path / "map.json", "--rate", tmp_path / "new.csv")
    new = pd.read_csv(files / "new.csv")
    for frame, words in (
        (new[:10], "from 50 rows at least; got 10"),
        (new.rename(columns={"m": "x"}), "must have the map's column, 'm'; the file has id, x"),
        (new.assign(m=0.4), "p must differ between rows"),
        (new.assign(m=new["m"] / 1e6), "rate must be in .* 1,000 new rows seems 0"),
        (new.assign(m=100 * new["m"]), "'m' must hold probabilities in"),
        (new.assign(m=np.nan), "'m' must hold a finite number"),
    ):
        frame.to_csv(tmp_path / "new.csv", index=False)
        status, out, error = run(capsys, *asked)
        assert (status, out) == (1, "") and re.search(words, error), error
        assert not (tmp_path / "map.json").exists()


WRONG = {
    "percent": ("val", lambda new: new.assign(m=100 * new["m"]), "hold probabilities.*fitted; "),
    "log-odds": ("val", lambda new: new.assign(m=logit(new["m"])), "hold probabilities.*outside"),
    "one outside": ("val", lambda new: new.assign(m=[*new["m"][1:], 1.01]), "first 1.01 in line"),
    "p for logit": ("logit", lambda new: new, "hold log-odds.*as probabilities do"),
    "percent for logit": ("logit", lambda new: new.assign(m=100 * new["m"]), "as percentages do"),
    "few p for logit": ("logit", lambda new: new[:20], "hold log-odds.*as probabilities do"),
    "no column": ("val", lambda new: new[["id", "text"]], "the map's column, 'm'; the file has id"),
    "another case": ("val", lambda new: new.rename(columns={"m": "M"}), "the map's column, 'm'"),
    "twice": ("val", lambda new: new[["m", "m"]], "'m' stands twice"),
    "missing": ("val", lambda new: new.assign(m=[*new["m"][1:], np.nan]), "'m' must hold a finite"),
    "text": ("val", lambda new: new.assign(m="high"), "'m' must hold a finite number.*'high'"),
    "again": ("val", lambda new: new.assign(m_calibrated=1), "not have a column 'm_calibrated'"),
    "no rows": ("val", lambda new: new[:0], "no rows"),
}


@pytest.mark.parametrize("engine", [[], ["--engine", "duckdb"]])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_map_is_refused_on_what_it_was_not_fitted_to(files, tmp_path, capsys, wrong, engine):
    name, change, words = WRONG[wrong]
    change(pd.read_csv(files / "new.csv")).to_csv(tmp_path / "new.csv", index=False)
    asked = ("apply", files / f"{name}.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    status, out, error = run(capsys, *asked, *engine)
    assert (status, out) == (1, "") and re.search(words, error), error
    assert not (tmp_path / "out.csv").exists()


CHANGED = [
    {"scale": "percent"},
    {"rates": [0.5, 0]},
    {"rates": [0.5]},
    {"rates": "half"},
    {"calibrator": {"name": "other"}},
    {"calibrator": {"name": "platt"}},
    {"fitted": {}},
    {"more": 1},
    {"calibrator": {"name": "platt", "coef_": [[1.0]], "intercept_": [float("nan")]}},
    {"calibrator": {"name": "platt", "coef_": [[1e999]], "intercept_": [0.0]}},
]
NO_MAP = ["", "{", "[]", "{}", "3", '{"column": "m"}', '{"format": 2}', "y,m\n1,0.5\n", "\x8b" * 99]


@pytest.mark.parametrize("change", [*CHANGED, *NO_MAP])
def test_a_file_that_is_no_map_is_refused(files, tmp_path, capsys, change):
    held = json.loads((files / "val.json").read_text())
    text = change if isinstance(change, str) else json.dumps(held | change)
    (tmp_path / "map.json").write_text(text)
    status, _, error = run(capsys, "apply", tmp_path / "map.json", files / "new.csv")
    assert status == 1 and re.search(r"map must be a file that calibrate wrote; .*map\.json", error)
    assert len(error) < 300  # not what a file of bytes holds


@pytest.mark.parametrize("kind", ["fifo", "link to it", "folder/", "nothing"])
def test_what_is_no_file_is_not_replaced_by_one(files, tmp_path, capsys, kind):
    """A device, such as /dev/null, became a file of rows, where the user may write there."""
    place = {"fifo": "fifo", "link to it": "link", "folder/": "new/", "nothing": ""}[kind]
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    out = f"{tmp_path}/{place}" if place else ""
    status, _, error = run(capsys, "apply", files / "val.json", files / "new.csv", "-o", out)
    assert status == 1 and "output must be a file; " in error
    assert (tmp_path / "fifo").is_fifo() and (tmp_path / "link").is_symlink()
    assert len([*tmp_path.iterdir()]) == 2


def test_a_dash_is_standard_output(files, tmp_path, capsys, monkeypatch):
    """It became a file of that name."""
    monkeypatch.chdir(tmp_path)
    asked = "apply", files / "val.json", files / "new.csv"
    assert run(capsys, *asked, "-o", "-")[:2] == run(capsys, *asked)[:2]
    assert not [*tmp_path.iterdir()]


def test_a_link_stays_one(files, tmp_path, capsys):
    (tmp_path / "out.csv").symlink_to("far.csv")
    assert (
        run(capsys, "apply", files / "val.json", files / "new.csv", "-o", tmp_path / "out.csv")[0]
        == 0
    )
    assert (tmp_path / "out.csv").is_symlink() and len(pd.read_csv(tmp_path / "far.csv")) == 1000


def test_a_file_of_the_one_column_is_a_table(files, tmp_path, capsys):
    new = pd.read_csv(files / "new.csv")[["m"]]
    new.to_csv(tmp_path / "m.csv", index=False)
    for more in ([], ["--engine", "duckdb"]):
        status, out, _ = run(capsys, "apply", files / "val.json", tmp_path / "m.csv", *more)
        assert status == 0 and [*pd.read_csv(io.StringIO(out))] == ["m", "m_calibrated"]


def test_an_engine_loses_no_column_without_a_word(files, tmp_path, capsys):
    """One that stands twice was left out; so was, with no word, one that not all files have."""
    new = pd.read_csv(files / "new.csv", dtype=str)
    (tmp_path / "a").mkdir()
    new[["text", "m", "text"]].to_csv(tmp_path / "a" / "1.csv", index=False)
    asked = ("apply", files / "val.json", tmp_path / "a", "--engine", "duckdb")
    assert run(capsys, *asked)[1].startswith("text,m,text,m_calibrated\n")
    new[["text", "m", "id"]].to_csv(tmp_path / "a" / "2.csv", index=False)
    told = run(capsys, *asked)[2]
    assert "left out: text (absent in 2.csv and" in told and "id (text in 2.csv and absent" in told


def test_no_input_is_written_over(files, capsys, tmp_path):
    val, fitted, new = (files / name for name in ("val.csv", "val.json", "new.csv"))
    other, drawn_on = tmp_path / "other.json", tmp_path / "drawn.svg"
    for copy in (other, drawn_on):
        copy.write_bytes(val.read_bytes())
    before = [path.read_bytes() for path in (val, fitted, new)]
    for asked, words in (
        (("calibrate", val, val), "map: the ending must be one of .json"),
        (("calibrate", fitted, val), "map: the ending"),
        (("calibrate", val, tmp_path), "map: the ending"),
        (("calibrate", val, tmp_path / "no.csv" / "map.json"), None),
        (("apply", fitted, new, "-o", new), "output must be another file"),
        (("apply", fitted, new, "-o", fitted), "output must be another file"),
        (("apply", new, fitted), "map must be a file that calibrate wrote"),
        (("calibrate", val, other, "--rate", other), "map must be another file than those read"),
        (("calibrate", other, other), "map must be another file than those read"),
        (("calibrate", f"{tmp_path}/*.json", other, "--engine", "duckdb"), "map must be another"),
        (
            ("apply", fitted, f"{files}/n*.csv", "-o", new, "--engine", "duckdb"),
            "output must be an",
        ),
        (("watch", drawn_on, "--figure", drawn_on), "figure must be another file"),
        (("apply", tmp_path / "none.json", new), "map must be an existing file"),
        (("apply", fitted, tmp_path / "none.csv"), "predictions must be an existing file"),
    ):
        status, _, error = run(capsys, *asked)
        assert words is None or (status == 1 and words in error), error
    assert before == [path.read_bytes() for path in (val, fitted, new)]
    assert before[0] == other.read_bytes() == drawn_on.read_bytes()


# --- the second round of siblings: each docstring says what was given before ---------------------

ENGINES = pytest.mark.parametrize("engine", [[], ["--engine", "duckdb"]])


@ENGINES
def test_what_was_read_and_left_out_is_told_beside_the_rows(files, capsys, tmp_path, engine):
    """Nothing was said."""
    drawn(50).to_csv(tmp_path / "n.csv")
    _, out, told = run(capsys, "apply", files / "val.json", tmp_path / "n.csv", *engine)
    assert out.startswith("y,m,right,m_calibrated\n")
    assert "Read 50 rows of" in told and "A column without a name is left out." in told


@ENGINES
def test_rows_come_out_as_they_went_in(files, capsys, tmp_path, engine):
    """Decimal commas got a column of points, which nothing could read; of two columns one name."""
    numbers = [f"{m:.4f}".replace(".", ",") for m in drawn(50)["m"]]
    pd.DataFrame({"m": numbers, "y": drawn(50)["y"]}).to_csv(tmp_path / "n.csv", index=False)
    out = tmp_path / "o.csv"
    assert run(capsys, "apply", files / "val.json", tmp_path / "n.csv", "-o", out, *engine)[0] == 0
    assert [*read_predictions(out).predictions] == ["m", "m_calibrated"]
    (tmp_path / "n.csv").write_text("m,x,x\n0.2,1,2\n")
    _, out, _ = run(capsys, "apply", files / "val.json", tmp_path / "n.csv", *engine)
    assert out.startswith("m,x,x,m_calibrated\n0.2,1,2,")
    ids = pa.array([2**60 + 1, None], pa.int64())
    pq.write_table(pa.table({"id": ids, "m": [0.2, 0.5]}), tmp_path / "n.parquet")
    _, out, _ = run(capsys, "apply", files / "val.json", tmp_path / "n.parquet", *engine)
    assert [line.split(",")[0] for line in out.splitlines()] == ["id", str(2**60 + 1), ""]


def test_memory_is_of_an_engine(files, capsys):
    """It was dropped in silence."""
    status, _, error = run(
        capsys, "apply", files / "val.json", files / "new.csv", "--memory", "5GB"
    )
    assert status == 1 and "memory and exact_auc are of an engine" in error


@pytest.mark.parametrize("name", ["o.parquet", "o.xlsx", "o.csv.gz", "o.json"])
def test_an_output_is_not_called_what_it_is_not(files, capsys, tmp_path, name):
    asked = ("apply", files / "val.json", files / "new.csv", "-o", tmp_path / name)
    assert "output: the ending must be one of .csv" in run(capsys, *asked)[2]


@pytest.mark.parametrize("held", ["another column", "no map"])
def test_a_map_replaces_one_of_its_own_column_alone(files, capsys, tmp_path, held):
    """Either was replaced without a word."""
    path, asked = tmp_path / "map.json", ("calibrate", files / "val.csv", tmp_path / "map.json")
    assert run(capsys, *asked)[0] == run(capsys, *asked)[0] == 0
    if held == "no map":
        path.write_text('{"mine": 1}')
    else:
        drawn()[["y", "m"]].rename(columns={"m": "n"}).to_csv(tmp_path / "n.csv", index=False)
        asked = (asked[0], tmp_path / "n.csv", path)
    before = path.read_text()
    status, _, error = run(capsys, *asked)
    assert status == 1 and path.read_text() == before
    assert ("is of column 'm'" if held == "another column" else "that calibrate wrote") in error


def test_a_map_that_is_passed_on_holds_no_cell(files, capsys, tmp_path):
    drawn()[["y", "m"]].assign(name="Anna M").to_csv(tmp_path / "v.csv", index=False)
    status, out, _ = run(capsys, "calibrate", tmp_path / "v.csv", tmp_path / "map.json")
    assert status == 0 and "left out: name ('Anna M')" in out
    held = (tmp_path / "map.json").read_text()
    assert "left out: name." in held and "Anna" not in held


def test_how_new_rows_were_read_is_told(files, capsys, tmp_path):
    frame = drawn(1000, 1, rate=0.1)[["m"]].assign(place="Zürich")
    frame.to_csv(tmp_path / "new.csv", index=False, encoding="cp1252")
    asked = ("calibrate", files / "val.csv", tmp_path / "m.json", "--rate", tmp_path / "new.csv")
    out = run(capsys, *asked)[1]
    assert "Read 1,000 rows of new.csv." in out and "read as cp1252" in out


def test_a_terminal_without_the_letters_gets_others(files, tmp_path, monkeypatch):
    """Nothing was written, for a codec that can't encode."""
    frame = drawn()[["y", "m"]].rename(columns={"m": "modèle\x1b[31m"})
    frame.to_csv(tmp_path / "v.csv", index=False)
    with io.TextIOWrapper(io.BytesIO(), "ascii") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        assert main(["calibrate", f"{tmp_path}/v.csv", f"{tmp_path}/m.json"]) == 0
        terminal.flush()
        shown = terminal.buffer.getvalue()
    assert rb"mod\xe8le\x1b[31m" in shown and b"\x1b" not in shown
