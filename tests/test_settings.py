"""Settings are checked where they are made, and a report's before anything is resampled."""

import pandas as pd
import pytest

from probnb.report import check_table, make_report, read_predictions
from probnb.settings import EngineSettings, ReportSettings


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"bins": 0}, "bins must be"),
        ({"bins": 15.0}, "bins must be"),
        ({"replicates": 1}, "replicates must be"),
        ({"replicates": 1000.0}, "replicates must be"),  # what papermill makes of 1e3
        ({"seed": -1}, "seed must be"),
        ({"seed": True}, "seed must be"),
        ({"scale": "logits"}, "scale must be one of"),
        ({"threshold": 1}, "threshold must be"),
        ({"threshold": "0.2, x"}, "threshold must be"),
    ],
)
def test_what_is_wrong_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        ReportSettings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *(
            ({"engine": engine}, "engine must be duckdb, or the master of a Spark")
            for engine in (
                "duck",
                "spark",
                "sqlite",
                "polars",
                "local2",
                "local[x]",
                "local[0]",
                "",
                5,
            )
        ),
        ({"memory": "2"}, "memory must be a size such as 500MB or 2GB; got '2'"),
        ({"memory": 2}, "memory must be a size"),
        ({"memory": "0GB"}, "memory must be a size"),
        ({"exact_auc": "no"}, "exact_auc must be one of True, False; got 'no'"),
    ],
)
def test_what_is_wrong_of_an_engine_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        EngineSettings(**wrong)
    with pytest.raises(ValueError, match=words):
        read_predictions("no such file", **{"engine": "duckdb", **wrong})


def test_engines_that_there_are():
    assert EngineSettings(" DuckDB ", "1.5 GiB").name == "duckdb"
    assert EngineSettings("local[2]", "500MB").size == 5e8


@pytest.fixture
def table():
    frame = pd.DataFrame({"y": [0, 1] * 20, "2020": 0.4, "0.5": 0.5, "old": [0.2, 0.9] * 20})
    return check_table(frame)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reference": "odl"}, "reference must be one of 2020, 0.5, old; got 'odl'. Did you mean"),
        ({"reference": 2021}, "reference must be one of .*; got 2021"),
        ({"reference": "y"}, "reference must be one of"),
        ({"bins": 41}, "bins must be at most the number of rows, 40; got 41"),
    ],
)
def test_a_report_is_refused_before_it_resamples(table, wrong, words, monkeypatch):
    monkeypatch.setattr("probnb.report.judge.resample", lambda *args: pytest.fail("resampled"))
    with pytest.raises(ValueError, match=words):
        make_report(table, **wrong)


@pytest.mark.parametrize("reference", [2020, "2020", 0.5, "old"])
def test_digits_may_name_a_column(table, reference):
    pairs = make_report(table, reference, bins=5, replicates=20).tables["pairs"]
    assert {b for _, b, _ in pairs.index} == {str(reference)}
