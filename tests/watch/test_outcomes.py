"""A watch over a file that grows, and the command."""

import json

import matplotlib
import numpy as np
import pandas as pd
import pytest

from probnb.__main__ import main
from probnb.plots import watch_over_time
from probnb.watch.outcomes import watch_file
from probnb.watch.sequential import watch

matplotlib.use("agg")


@pytest.fixture
def rows():
    """Right for 300 rows, then far too low."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.7, 900)
    truth = np.where(np.arange(900) < 300, p, p + 0.25)
    y = (rng.random(900) < truth).astype(int)
    return pd.DataFrame({"path": [f"{i}.png" for i in range(900)], "probability": p, "y": y})


def write(table, path):
    table.to_csv(path, index=False)
    return str(path)


def test_the_command_goes_on_where_it_was(rows, tmp_path, capsys):
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.json").write_text("{}")
    path = write(rows[:300], tmp_path / "o.csv")
    assert main(["watch", str(model), path]) == 0
    assert "300 outcomes, 300 new" in (said := capsys.readouterr().out) and "No alarm" in said
    write(rows, path)
    figure = tmp_path / "w.svg"
    assert main(["watch", str(model), path, "--figure", str(figure)]) == 4
    alarm = watch(rows["y"], rows["probability"])[0].alarm
    said = capsys.readouterr().out
    assert "900 outcomes, 600 new" in said
    assert f"ALARM at outcome {alarm}, line {alarm + 1} of o.csv" in said
    assert figure.read_text().startswith("<?xml")
    assert main(["watch", str(model), path]) == 4 and "0 new" in capsys.readouterr().out
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "model",
        "o.csv",
        "o.csv.watch.json",
        "w.svg",
    ]


@pytest.mark.parametrize("change", ["value", "order", "fewer", "alpha", "model", "state"])
def test_a_changed_past_is_refused_and_nothing_is_written(rows, tmp_path, capsys, change):
    path, state = write(rows[:200], tmp_path / "o.csv"), tmp_path / "o.csv.watch.json"
    assert main(["watch", path]) == 0
    model, options = [], []
    if change == "value":
        rows.loc[7, "y"] = 1 - rows.loc[7, "y"]
    elif change == "order":
        rows = rows.iloc[::-1]
    elif change == "fewer":
        rows = rows[:199]
    elif change == "alpha":
        options = ["--alpha", "0.1"]
    elif change == "model":
        (tmp_path / "model.json").write_text("{}")
        model = [str(tmp_path)]
    else:
        state.write_text("{")
    write(rows, path)
    before = state.read_bytes()
    capsys.readouterr()
    assert main(["watch", *model, path, *options]) == 1
    told = {"alpha": "alpha must stay 0.05; got 0.1", "model": "model must stay None",
            "state": "state must be a file that a watch wrote"}  # fmt: skip
    printed = capsys.readouterr()
    assert told.get(change, "must begin with the 200 rows seen before") in printed.err
    assert state.read_bytes() == before and not printed.out
    assert main(["watch", path, "--state", str(tmp_path / "new.json"), "--alpha", "0.1"]) in (0, 4)


def test_columns_weights_and_impossible_outcomes(tmp_path):
    table = pd.DataFrame({"p_new": [0.5, 0.0, 0.3], "came": [1, 1, 0], "weight": 2})
    path = write(table, tmp_path / "o.csv")
    now, lines, text = watch_file(path, "p_new", "came")
    assert now.alarm == 2 and np.isinf(lines["log_e"].iloc[-1])
    assert "what came true had been given probability 0" in text and "plays no role" in text
    assert json.loads((tmp_path / "o.csv.watch.json").read_text())["alarm"] == 2
    assert watch_file(path, "p_new", "came")[2].startswith("3 outcomes, 0 new: e = 10^inf")


def test_what_is_wrong_is_said(rows, tmp_path, capsys):
    path = write(rows[:5], tmp_path / "o.csv")
    cases = {
        (path, "--prediction", "q"): "prediction: the column must be one of path, probability, y",
        (path, "--alpha", "2"): "alpha must be a finite number in (0, 1)",
        (path, "--figure", "w.doc"): "figure: the ending must be one of svg, png, pdf",
        (str(tmp_path / "no.csv"),): "no.csv",
        (str(tmp_path), path): "model.json",
    }
    for arguments, message in cases.items():
        assert main(["watch", *arguments]) == 1
        assert message in capsys.readouterr().err
    rows.loc[2, "y"] = np.nan
    assert main(["watch", write(rows[:5].astype({"y": "Int64"}), tmp_path / "o.csv")]) == 1
    assert "column 'y' must hold 0 or 1 in every row; line 4" in capsys.readouterr().err
    assert [f.name for f in tmp_path.iterdir()] == ["o.csv"]


def test_the_figure(rows):
    now, table = watch(rows["y"], rows["probability"])
    above, below = watch_over_time(table)
    assert above.lines[2].get_xdata()[0] == now.alarm
    assert [text.get_text() for text in below.get_legend().get_texts()] == ["intercept", "slope"]
    assert len(watch_over_time(table.loc[:200])[0].lines) == 2  # without an alarm
    table.loc[now.alarm + 1 :, "log_e"] = np.inf
    watch_over_time(table)[0].figure.canvas.draw()
