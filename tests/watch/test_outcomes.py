"""A watch over a file that grows, and the command."""

import gzip
import json
import unicodedata
from concurrent.futures import ThreadPoolExecutor, wait

import matplotlib
import numpy as np
import pandas as pd
import pytest
from filelock import SoftFileLock

from probnb.__main__ import main
from probnb.metrics import auc, brier
from probnb.plots import watch_over_time
from probnb.watch.outcomes import expected_scores, watch_file
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


PAST = "must begin with the 301 rows seen before"
CHANGES = {  # of a table whose row 301 has the id of row 0
    "a probability": (
        lambda t: t.assign(probability=t["probability"].where(t.index != 7, 0.5)),
        PAST,
    ),
    "outcome": (lambda t: t.assign(y=t["y"].mask(t.index == 7, 1 - t["y"])), PAST),
    "order": (lambda t: t.iloc[::-1], PAST),
    "fewer": (lambda t: t[:300], PAST),
    "removed": (lambda t: t.drop(index=7), PAST),
    "in the middle": (lambda t: pd.concat([t[:7], t[:1].assign(id=999), t[7:]]), PAST),
    "id repeated": (lambda t: t.assign(id=[*range(150), *range(150), 300, 0]), PAST),
    "alpha": (lambda t: t, "alpha must stay 0.05; got 0.1"),
    "model": (lambda t: t, "model must stay None"),
    "state": (lambda t: t, "state must be a file that a watch wrote"),
    "state, by hand": (lambda t: t, "state must be a file that a watch wrote"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_past_is_refused_and_nothing_is_written(tmp_path, capsys, change):
    rows = pd.concat([repeated(times=1), repeated(1, 2)]).assign(id=[*range(301), 0])
    rows = rows.reset_index(drop=True)
    path, state = write(rows, tmp_path / "o.csv"), tmp_path / "o.csv.watch.json"
    assert main(["watch", path]) == 0
    alter, told = CHANGES[change]
    write(alter(rows), path)
    if "state" in change:
        held = state.read_text().replace("301", "301.5")
        state.write_text(held if "hand" in change else "{")
    (tmp_path / "model.json").write_text("{}")
    before, model = state.read_bytes(), [str(tmp_path)] * (change == "model")
    capsys.readouterr()
    assert main(["watch", *model, path, *["--alpha", "0.1"] * (change == "alpha")]) == 1
    printed = capsys.readouterr()
    assert told in printed.err and state.read_bytes() == before and not printed.out
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
    (tmp_path / "x.svg").mkdir()
    cases = {
        (path, "--prediction", "q"): "prediction: the column must be one of path, probability, y",
        (path, "--alpha", "2"): "alpha must be a finite number in (0, 1)",
        (path, "--figure", "w.doc"): "figure: the ending must be one of svg, png, pdf",
        (str(tmp_path / "no.csv"),): "no.csv",
        (str(tmp_path), path): "model.json",
        (path, "--id", "nr"): "id: the column must be one of",
        (path, "--state", str(tmp_path)): "state must be a file;",
        (path, "--figure", str(tmp_path / "x.svg")): "figure must be a file;",
    }
    for arguments, message in cases.items():
        assert main(["watch", *arguments]) == 1
        assert message in capsys.readouterr().err
    rows.loc[2, "y"] = np.nan
    assert main(["watch", write(rows[:5].astype({"y": "Int64"}), tmp_path / "o.csv")]) == 1
    assert "column 'y' must hold 0 or 1 in every row; line 4" in capsys.readouterr().err
    assert sorted(f.name for f in tmp_path.iterdir()) == ["o.csv", "x.svg"]


def test_the_figure(rows):
    now, table = watch(rows["y"], rows["probability"])
    above, below = watch_over_time(table)
    assert above.lines[2].get_xdata()[0] == now.alarm
    assert [text.get_text() for text in below.get_legend().get_texts()] == ["intercept", "slope"]
    assert len(watch_over_time(table.loc[:200])[0].lines) == 2  # without an alarm
    table.loc[now.alarm + 1 :, "log_e"] = np.inf
    watch_over_time(table)[0].figure.canvas.draw()


def repeated(n=300, times=3, seed=0):
    """Right probabilities, each row delivered several times."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    rows = pd.DataFrame(
        {"id": np.arange(n), "probability": p, "y": (rng.random(n) < p).astype(int)}
    )
    return rows.loc[rows.index.repeat(times)]


@pytest.mark.parametrize("name", ["id", "ID", "path", "case", "7 and 7.0", "parquet"])
def test_a_row_delivered_twice_is_one_bet(tmp_path, name):
    rows, path, options = repeated(), tmp_path / "o.csv", {}
    once = watch(rows["y"][::3], rows["probability"][::3])[0]
    if name in ("ID", "path", "case"):
        rows, options = rows.rename(columns={"id": name}), {"id": name} if name == "case" else {}
    if name == "7 and 7.0":
        rows["id"] = [f"{k}.0" if i % 3 else str(k) for i, k in enumerate(rows["id"])]
    rows.to_parquet(path) if name == "parquet" else write(rows, path)
    for fresh in (300, 0):  # the second look finds no new evidence in the same rows
        now, table, text = watch_file(path, **options)
        assert now == once and len(table) == 300
        assert "repeats: 600 rows" in text and f"300 outcomes, {fresh} new" in text


def test_an_empty_id_and_another_column_that_repeats_are_named(tmp_path):
    rows = repeated().rename(columns={"id": "case_id"})
    assert "Column 'case_id' repeats: if" in watch_file(write(rows, tmp_path / "a.csv"))[2]
    rows = repeated(times=1).astype({"id": "Int64"})
    rows.loc[4, "id"] = pd.NA
    with pytest.raises(ValueError, match="column 'id' must hold a name in every row; line 6"):
        watch_file(write(rows, tmp_path / "b.csv"))


def days(n, seconds=86_400):
    return pd.Timestamp("2024-01-28") + pd.to_timedelta(np.arange(n) * seconds, unit="s")


TIMES = {
    "date": lambda n: days(n).strftime("%Y-%m-%d"),
    "outcome_date": lambda n: days(n).strftime("%d.%m.%Y"),
    "Date": lambda n: days(n).strftime("%m/%d/%Y"),
    "eventTime": lambda n: days(n, 60).strftime("%Y-%m-%dT%H:%M:%S+02:00"),
    "timestamp": lambda n: np.arange(n) + 1_700_000_000,
    "year": lambda n: np.arange(n) + 1900,
    "zeit": lambda n: days(n).strftime("%Y-%m-%d").where(np.arange(n) % 7 != 3, "NA"),
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("change", ["in order", "swapped", "newest first"])
def test_an_order_that_a_column_of_times_contradicts_is_named(tmp_path, name, change):
    rows = repeated(60, 1).assign(**{name: TIMES[name](60)})
    rows.loc[30, name] = rows.loc[29, name]  # two at a time are in order
    if change == "swapped":
        rows.loc[[50, 51], name] = rows.loc[[51, 50], name].to_numpy()
    if change == "newest first":
        rows = rows[::-1]
    text = watch_file(write(rows, tmp_path / "o.csv"))[2]
    assert (f"Column {name!r} contradicts the order of the rows" in text) == (change != "in order")
    if change == "swapped":
        assert f"line 53 ('{rows.loc[51, name]}') stands below 52" in text


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("hour", [23, 0]),
        ("time", ["23:59", "00:01"]),
        ("daytime", ["b", "a"]),
        ("day", [31, 1]),
        ("model", ["2024-02-01", "2023-01-01"]),
        ("date", ["", ""]),
        ("month", ["Dec", "Jan"]),
        ("time", ["11 pm", "1am"]),
        ("date", ["31 Dec", "01 Jan"]),
        ("day", ["12-31", "01-01"]),
    ],
)
def test_what_is_no_order_is_not_named(tmp_path, name, cells):
    rows = repeated(60, 1).assign(**{name: cells * 30})
    assert "contradicts" not in watch_file(write(rows, tmp_path / "o.csv"))[2]


def test_two_watches_do_not_overwrite_each_other(tmp_path):
    path = write(repeated(times=1), tmp_path / "o.csv")
    with ThreadPoolExecutor(1) as pool:
        with SoftFileLock(f"{path}.watch.json.lock"):
            found = pool.submit(watch_file, path)
            assert not wait([found], timeout=0.5).done
        assert found.result()[0].rows == 300
    assert sorted(f.name for f in tmp_path.iterdir()) == ["o.csv", "o.csv.watch.json"]


HOW = {
    "plain": str.encode,
    "gz": lambda text: gzip.compress(text.encode()),
    "BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "semicolon": lambda text: text.replace(",", ";").encode(),
}


@pytest.mark.parametrize("kind", HOW)
def test_a_stream_goes_on_however_its_file_is_written(tmp_path, kind):
    rows, path = repeated(times=1), tmp_path / "o.csv"
    before = watch_file(write(rows[:100], path))[0]
    path.write_bytes(HOW[kind](rows.to_csv(index=False)))
    now, _, text = watch_file(path)
    assert now == watch(rows["y"], rows["probability"])[0] and now.rows > before.rows
    assert "300 outcomes, 200 new" in text


def test_what_true_probabilities_score_is_told_beside(tmp_path, capsys):
    """Brier by its closed form; the AUC by counting pairs one by one, and on outcomes drawn."""
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(1, 3, 60), 1)
    pairs = [(p[i] * (1 - p[j]), p[i], p[j]) for i in range(60) for j in range(60) if i != j]
    right = sum(w * ((a > b) + (a == b) / 2) for w, a, b in pairs) / sum(w for w, *_ in pairs)
    found = expected_scores(p)
    assert found == pytest.approx((np.mean(p * (1 - p)), right), abs=1e-12)
    scores = [(brier(y, p), auc(y, p)) for y in rng.random((2000, 60)) < p]
    assert np.mean(scores, axis=0) == pytest.approx(found, abs=0.006)
    frame = pd.DataFrame({"probability": p, "y": (rng.random(60) < p).astype(int)})
    main(["watch", write(frame, tmp_path / "o.csv")])
    said = capsys.readouterr().out
    assert f"their Brier score is {found[0]:.4f} on average, AUC {found[1]:.4f}." in said
    for p in ([0.3], [0.0, 0.0], [1.0], [1.0, 1.0, 1.0]):  # without a pair there is no AUC
        score, rank = expected_scores(np.array(p))
        assert np.isnan(rank) and score == pytest.approx(np.mean(np.multiply(p, np.subtract(1, p))))


def test_how_the_file_was_read_is_told(rows, tmp_path):
    path = tmp_path / "o.csv"
    rows.to_csv(path, index=False, sep=";", decimal=",")
    text = watch_file(path)[2]
    assert f"Read {len(rows):,} rows of o.csv." in text and "decimal commas" in text


@pytest.mark.parametrize("name", ["case_nr", "patient", "filename", "image", "uuid", "pathOfImage"])
def test_a_column_of_events_that_repeats_is_named(rows, tmp_path, name):
    text = watch_file(write(rows.assign(**{name: "x"}), tmp_path / "o.csv"))[2]
    assert f"Column {name!r} repeats" in text


def test_an_id_typed_on_two_systems_is_one(rows, tmp_path):
    rows = rows[:10].assign(
        id=[unicodedata.normalize(form, f"Zoë {k}") for k in range(5) for form in ("NFC", "NFD")]
    )
    assert watch_file(write(rows, tmp_path / "o.csv"))[0].rows == 5
