"""What comes in by an engine: each fault that was found stands with its siblings."""

import decimal
import itertools
import os
import unicodedata

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from probnb import metrics
from probnb.report import check_table, judge, make_report, read_predictions
from probnb.report.decide import decision_curve
from probnb.report.keep import KeptMap, apply_map, fit_map
from probnb.scale import DataSet, files, open_rows
from probnb.scale.engine import hashed
from probnb.tables import Rows, read_table

from ..made import write_files
from .rows import draw, large, put

pytestmark = pytest.mark.usefixtures("one_connection")


def brier(frame, weights=None):
    return np.average((frame["m"] - frame["y"]) ** 2, weights=weights)


# --- what a type, a folder or a name would change -----------------------------------------------


LATE = {"weight": ("1", "0.4"), "p": ("0", "0.25"), "group": ("7", "007")}
LATE |= {"remark": ("1", "D1"), "id": ("true", "yes")}


@pytest.mark.parametrize("late", [LATE, {"weight": ("1", "2e0"), "group": ("2024-01-01", "x")}])
def test_columns_that_change_late_are_read_as_in_memory(late, tmp_path):
    """They change their looks where 20,480 lines were taken for all."""
    cells = {name: [first] * 21_000 + [then] * 100 for name, (first, then) in late.items()}
    draw(21_100).assign(**cells).to_csv(tmp_path / "my.csv", index=False)
    small, found = read_predictions(tmp_path / "my.csv", "m"), large(tmp_path / "my.csv", "m")
    assert (found.size, found.groups) == (small.size, small.groups)
    assert (found.cluster is None) == (small.cluster is None)
    expected = metrics.evaluate(small.y, small.predictions["m"], small.p, small.weight)
    assert metrics.evaluate(found, "m") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_of_folders_are_no_columns(ending, tmp_path):
    frame, folders = draw(), ["id=4", "m=0.5", "p=0.2", "split=train", "weight=3", "y=1"]
    for k, folder in enumerate(folders):
        put(frame[k::6], tmp_path / folder / f"a.{ending}")
    found = large(tmp_path)
    assert (found.names, found.p, found.weight, found.size) == (["m"], None, None, 400)
    assert metrics.evaluate(found, "m")["brier"] == pytest.approx(brier(frame))
    assert f"Names of folders are not read as columns: {', '.join(folders)}." in found.notes


@pytest.mark.parametrize("asked", ["A", "a"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_differ_by_case_are_two(asked, ending, tmp_path):
    frame = draw()
    frame = frame.rename(columns={"m": "A"}).assign(a=frame["m"] / 2)
    put(frame, tmp_path / f"1.{ending}")
    put(frame[["a", "A", "y"]], tmp_path / f"2.{ending}")  # in another order
    found = metrics.evaluate(large(tmp_path, asked), asked)["brier"]
    assert found == pytest.approx(np.mean((frame[asked] - frame["y"]) ** 2))


ANY = ["file_row_number", "filename", "File_Index", "_row", "c1", 'a"b', "x y", "M", "rows"]


def test_a_column_may_be_called_anything(tmp_path):
    frame = draw()[["y"]].assign(**{name: draw(seed=k)["m"] for k, name in enumerate(ANY)})
    frame.to_parquet(tmp_path / "my.parquet")
    found = large(tmp_path / "my.parquet", ANY)
    for name in ANY:
        expected = brier(frame.assign(m=frame[name]))
        assert metrics.evaluate(found, name)["brier"] == pytest.approx(expected)
    for name in ANY:
        kept = KeptMap(name, "probability", rates=(0.5, 0.1), fitted={"inside": 1, "positive": 1})
        (written,) = apply_map(kept, tmp_path / "my.parquet", "duckdb")
        assert [*written] == ["y", *ANY, f"{name}_calibrated"]
        pd.testing.assert_frame_equal(written[[*frame]], frame)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("extra", ["weight", "group", "p", "id", "split"])
def test_a_role_that_not_all_files_have_is_refused(extra, ending, tmp_path):
    put(draw(), tmp_path / f"1.{ending}")
    put(draw().assign(**{extra: "1"}), tmp_path / f"2.{ending}")
    with pytest.raises(ValueError, match=rf"'{extra}' must have one type .* absent in 1.{ending}"):
        large(tmp_path)


def test_other_columns_that_not_all_files_have_are_left_out_and_told(tmp_path):
    put(draw().assign(new=0.5), tmp_path / "1.csv")
    put(draw(), tmp_path / "2.csv")
    found = large(tmp_path)
    assert found.names == ["m"] and found.size == 800
    assert any("left out: new (absent in 2.csv" in note for note in found.notes)
    with pytest.raises(ValueError, match="'new' must have one type in all files"):
        large(tmp_path, "new")


# --- which files ------------------------------------------------------------------------------


HIDDEN = """.ipynb_checkpoints/a _temporary/0/task/a .trash/a _delta_log/a x/.hidden/a .a x/_a
$RECYCLE.BIN/a @eaDir/a #recycle/a __pycache__/a x/.git/a"""  # the last as among images


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_hidden_and_unfinished_files_are_left_out_and_told(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SHOWN", 99)
    frame = draw()
    rows = put(frame, tmp_path / "x" / f"a.{ending}").read_bytes()
    others = [*(f"{name}.{ending}" for name in HIDDEN.split()), "_SUCCESS", "~a.tmp", "README"]
    write_files(tmp_path, dict.fromkeys(others, rows))
    assert large(tmp_path / "**").size == len(frame)
    found = large(tmp_path)
    (told,) = [note for note in found.notes if note.startswith("Left out")]
    assert found.size == len(frame) and {*told.split(": ")[1][:-1].split(", ")} == {*others}


ENDINGS = """a.parquet B.PARQUET, a.csv B.CSV, a.csv b.csv.gz, a.csv c.tsv, a.pq b.parq,
A.CSV.GZ deep/b.Csv, a.parquet/0.parquet b.parquet"""


@pytest.mark.parametrize("names", ENDINGS.split(","))
def test_endings_in_any_case_are_read(names, tmp_path):
    for name in names.split():
        put(draw(), tmp_path / name)
    found = large(tmp_path)
    assert found.size == 800 and f"Read 800 rows of 2 files of {tmp_path}" in found.notes[0]


def test_text_beside_parquet_and_links_to_what_is_read_are_told(tmp_path):
    put(draw(), tmp_path / "a.parquet")
    put(draw(), tmp_path / "b.csv")
    (tmp_path / "latest.parquet").symlink_to(tmp_path / "a.parquet")
    (tmp_path / "loop").symlink_to(tmp_path)
    outside = tmp_path.parent / f"{tmp_path.name} outside"
    put(draw(seed=1), outside / "c.parquet")
    (tmp_path / "other").symlink_to(outside)
    found = large(tmp_path)
    assert found.size == 800
    (note,) = [note for note in found.notes if note.startswith("Left out")]
    assert "b.csv" in note and "latest.parquet" in note


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("y;m\n0;0,5\n1;0,7\n", "y;m\n0;0.5\n1;0.7\n"), "decimal commas"),
        (("y,m\n0,0.5\n1,0.7\n", "y,m\n0,0.5\n1,0.7\ny,m,g\n1,0.2,a\n"), "line 4, saw 3"),
        (("y,m\n0,0.5\n1,0.7\n", ""), "2.csv .* empty"),
        (("y,m\n0,0.5\n1,0.7\n", "PK\3\4"), "2.csv .* zip archive"),
        (("y,m\n0,0.5\n1,0.7\n", "y,m\n0,0.5\n1,x\n"), "line 3 of 2.csv holds 'x'"),
        (("y,m\n", "y,m\n"), "no rows"),
    ],
)
def test_texts_that_are_wrong_say_which(texts, words, tmp_path):
    for k, text in enumerate(texts):
        (tmp_path / f"{k + 1}.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        large(tmp_path)


# --- all rows are asked, and a sample is a sample -----------------------------------------------

N = 20_000


def rare(column, values, tmp_path, n=N):
    """A table of which a sample of 100 rows misses what a few rows say."""
    frame = draw(n).assign(**{column: values})
    frame.to_parquet(tmp_path / "my.parquet")
    return tmp_path / "my.parquet"


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(judge, "FIT_ROWS", 100)


def few_of(value, other):
    return [value if k in (17, 12_345, 19_998) else other for k in range(N)]


@pytest.mark.usefixtures("few")
def test_what_few_rows_say_decides(tmp_path):
    found = large(rare("y", few_of(1, 0), tmp_path))
    assert found.share == 3 / N and found.sample.size == 100
    assert make_report(found, replicates=10).tables["calibration"].loc["m", "order"] == "ordinary"
    found = large(rare("split", few_of("train", "test"), tmp_path))
    assert found.size == N - 3
    frame = draw(N).assign(split=["test" if k % 1000 == 7 else "train" for k in range(N)])
    frame.to_parquet(tmp_path / "my.parquet")
    assert large(tmp_path / "my.parquet").size == 20
    found = large(rare("weight", few_of(0.0, 1.0), tmp_path))
    assert found.size == N - 3 and any("3 have weight 0" in note for note in found.notes)
    found = large(rare("k", np.arange(N), tmp_path))
    assert found.names == ["m"] and "Column k counts the rows: it is left out." in found.notes
    found = large(rare("id", few_of(1, 0) + np.arange(N) * 10, tmp_path))
    assert found.cluster is None
    found = large(rare("id", [min(k, N - 2) for k in range(N)], tmp_path))
    small = read_predictions(tmp_path / "my.parquet")
    assert found.cluster == "id" and small.units == N - 1 and "clusters" in found.kind
    for table in (small, found):
        assert "Column id repeats: 19,999 ids in 20,000 rows." in table.notes


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("column", "value", "other", "words"),
    [
        ("m", np.nan, 0.5, "row 17 of my.parquet"),
        ("m", 1.5, 0.5, "3 of 20,000 values"),
        ("m", np.inf, 0.5, "'m' must hold a finite number .* row 17 .* holds inf"),
        ("y", 2, 1, "'y' must hold 0 or 1 .* row 17 .* holds 2"),
        ("y", 0.5, 1.0, "'y' must hold 0 or 1 .* holds 0.5"),
        ("weight", -1.0, 1.0, "'weight' must hold a weight of at least 0 .* holds -1.0"),
        ("p", np.nan, 0.5, "'p' must hold"),
        ("group", None, "a", "'group' must hold a name .* row 17 .* holds nothing"),
        ("cluster", None, "a", "'cluster' must hold a name .* holds nothing"),
        ("group", np.nan, 1.0, "'group' must hold a name"),
        ("split", "", "test", "'split' must"),
    ],
)
def test_what_few_rows_hold_is_refused(column, value, other, words, tmp_path):
    path = tmp_path / "my.parquet"
    table = pa.Table.from_pandas(draw(N))
    held = pa.array(few_of(value, other), from_pandas=value is None)
    names = [name for name in table.column_names if name != column]
    table = table.select(names).append_column(column, held)
    pq.write_table(table, path, row_group_size=1000, write_statistics=True)
    with pytest.raises(ValueError, match=words):
        large(path)


@pytest.mark.parametrize("role", ["group", "cluster", "id", "weight", "p", "m"])
def test_decimals_are_numbers_in_every_role(role, tmp_path):
    frame = draw(300).assign(**{role: (np.arange(300) % 7 + 1) / 1000})
    held = pa.array([decimal.Decimal(f"{value:.6f}") for value in frame[role]])
    table = pa.Table.from_pandas(frame.drop(columns=role)).append_column(role, held)
    pq.write_table(table, tmp_path / "my.parquet")
    small = read_predictions(tmp_path / "my.parquet", "m")
    expected = read_predictions(put(frame, tmp_path / "my.csv"), "m")
    found = large(tmp_path / "my.parquet", "m")
    for own in (small, found.sample):
        pd.testing.assert_frame_equal(own.predictions, expected.predictions)
        for part in ("p", "group", "cluster", "weight"):
            ours, theirs = (getattr(t, part) for t in (own, expected))
            assert (ours is None) == (theirs is None)
            if ours is not None:
                ours, theirs = ours.astype(float), theirs.astype(float)
                np.testing.assert_allclose(ours / ours.max(), theirs / theirs.max(), rtol=1e-12)


TIMES = [0, 86_400, None, 1_000_001, 86_400_000_001]
TYPES = {
    "truth values": pa.array([True, False, None, True, False]),
    **{f"times in {unit}": pa.array(TIMES, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "times of UTC": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "times of a zone": pa.array(TIMES, pa.timestamp("us", "Europe/Berlin")),
    "dates": pa.array([0, 1, 2, None, 4], pa.date32()),
    "times of day": pa.array([0, 1, None, 3, 4], pa.time64("us")),
    "large numbers": pa.array([2**60, 2**60 + 1, 2, 3, 4]),
    "half": pa.array(np.array([0.1, 0.5, np.nan, np.inf, -0.0], np.float16)),
    "single": pa.array(np.array([0.1, 0.5, np.nan, np.inf, -0.0], np.float32)),
    "bytes": pa.array([b"a", b"0.5", b"\xff", None, b""]),
    "lists": pa.array([[1], [2], [], None, [1, 2]]),
    "records": pa.array([{"a": 1}, {"a": 2}, None, {"a": 3}, {"a": 1}]),
    "nothing": pa.nulls(5),
    "wide decimals": pa.array([decimal.Decimal(1) / 7] * 4 + [None], pa.decimal128(38, 30)),
    "coded numbers": pa.array([0.5, 0.25, 0.5, None, 0]).dictionary_encode(),
    "coded text": pa.array(["a", "b", None, " a", ""]).dictionary_encode(),
    "odd spaces": pa.array(["\x1f0.5", "\u2003x", "\x85y", "\u200bz", "\ufeffq"]),
    "other digits": pa.array(["\uff11", "\u0663", "\xbd", "1\xa0000", "\u221e"]),
}


def test_columns_of_any_type_are_read_alike(tmp_path):
    pq.write_table(pa.table(TYPES), tmp_path / "a.parquet")
    rows, engine = Rows(read_table(tmp_path / "a.parquet")), open_rows(tmp_path)
    arrow = Rows(pa.table(TYPES).to_pandas(types_mapper=pd.ArrowDtype))
    for held, fill in (("label", ""), ("number", np.nan), ("outcome", np.nan)):
        read = {f"c{k}": engine.read(kind, held) for k, kind in enumerate(TYPES)}
        found = engine.ask(engine.table.select("_row", **read).order_by("_row"))
        for k, kind in enumerate(TYPES):
            ours, *others = (
                pd.Series(x, dtype=object).fillna(fill)
                for x in (found[f"c{k}"], rows.read(kind, held), arrow.read(kind, held))
            )
            for theirs in others:
                pd.testing.assert_series_equal(
                    ours, theirs, check_names=False, obj=f"{kind}, {held}"
                )


def test_rows_of_any_type_come_out_alike(tmp_path):
    """An engine gave times in UTC, of whatever zone they were, and 16 bits as 32."""
    more = {
        "seconds of a zone": pa.array(TIMES[:3] * 2, pa.timestamp("s", "America/New_York"))[:5],
        "nanoseconds of a zone": pa.array([86_400 * 10**9] * 5, pa.timestamp("ns", "+05:30")),
        "whole numbers with a gap": pa.array([2**60 + 1, None, 2, 3, 4]),
    }
    pq.write_table(pa.table({"m": np.arange(5) / 9} | TYPES | more), tmp_path / "a.parquet")
    kept = KeptMap(
        "m",
        "probability",
        rates=(0.5, 0.3),
        fitted=dict.fromkeys(("high", "inside", "positive"), 1),
    )
    small, large = (
        pd.concat(apply_map(kept, tmp_path / "a.parquet", engine)).to_csv(index=False)
        for engine in (None, "duckdb")
    )
    assert small == large and "1970-01-02 05:30:00+05:30" in small


def test_lengths_of_time_are_no_numbers(tmp_path):
    """Parquet has whole numbers in their place, and an engine sees those."""
    late = pa.array(np.arange(400) % 3, pa.duration("us"))
    pq.write_table(pa.Table.from_pandas(draw()).append_column("late", late), tmp_path / "a.parquet")
    found, small = large(tmp_path), read_predictions(tmp_path / "a.parquet")
    assert found.names == [*small.predictions] == ["m"]
    for read in (large, read_predictions):
        with pytest.raises(ValueError, match="'late' must"):
            read(tmp_path / "a.parquet", "m", group="late")


@pytest.mark.usefixtures("few")
def test_a_long_table_is_refused_whatever_its_size(tmp_path):
    frame = pd.concat([draw(N).assign(id=np.arange(N), model=name) for name in ("old", "new")])
    frame.to_parquet(tmp_path / "my.parquet")
    with pytest.raises(ValueError, match="each of 20,000 ids stands once for each of 2 values"):
        large(tmp_path / "my.parquet")


def test_a_sample_has_its_size_and_the_same_rows_each_time(tmp_path):
    frame = draw(5000).assign(k=np.arange(5000) / 5000)
    for k, part in enumerate(np.array_split(np.arange(5000), 7)):
        frame.iloc[part].to_parquet(tmp_path / f"{k}.parquet", row_group_size=100)
    data = DataSet(open_rows(tmp_path), ["m", "k"])
    drawn = {count: data.draw(count) for count in (1, 10, 333, 4999, 5000, 6000)}
    assert [len(rows) for rows in drawn.values()] == [1, 10, 333, 4999, 5000, 5000]
    for _ in range(3):
        again = DataSet(open_rows(tmp_path), ["m", "k"]).draw(333)
        pd.testing.assert_frame_equal(drawn[333], again)
    assert {*drawn[10]["p1"]} < {*drawn[333]["p1"]}
    # Uniform: the deviation is about 1.6 / sqrt(333) at 1 in 100.
    places = np.sort(drawn[333]["p1"])
    assert np.abs(places - np.arange(333) / 333).max() < 0.1
    assert (np.diff(drawn[333]["p1"]) > 0).all()
    np.testing.assert_array_equal(drawn[6000]["p1"], frame["k"])


def test_blocks_are_random_by_file_and_row(tmp_path):
    """Chi-square of sizes and of neighbours, with critical values of 1 in 10^6."""
    for k in range(20):
        draw(2000, k).to_parquet(tmp_path / f"{k:02}.parquet")
    engine = open_rows(tmp_path)
    held = engine.table.select("_file", "_row", h=hashed(engine.table) % 128)
    block = engine.ask(held.order_by("_file", "_row"))["h"].to_numpy().reshape(20, 2000)
    pairs = {
        "sizes": np.bincount(block.ravel(), minlength=128),
        "next row": np.bincount((block[:, 1:] % 16 * 16 + block[:, :-1] % 16).ravel()),
        "next file": np.bincount((block[1:] % 16 * 16 + block[:-1] % 16).ravel()),
        "first rows": np.bincount(block[:, :100].ravel() % 16),
    }
    for name, counts in pairs.items():
        expected = counts.sum() / len(counts)
        excess = ((counts - expected) ** 2 / expected).sum() - len(counts)
        assert excess < 7 * np.sqrt(2 * len(counts)), name


@pytest.fixture(scope="module")
def widths():
    """Deviations of 12,800 rows in memory."""
    frame = draw(12_800)
    return metrics.bootstrap(frame["y"], frame[["m"]], replicates=400, progress=False).std()


@pytest.mark.parametrize("order", ["y", "m", "both", "period", "files"])
def test_the_order_of_rows_changes_no_interval(order, widths, tmp_path):
    frame = draw(12_800)
    if order == "period":  # what repeats each 128 rows
        frame = frame.sort_values("m").iloc[np.arange(12_800).reshape(128, 100).T.ravel()]
    elif order != "files":
        frame = frame.sort_values(["y", "m"] if order == "both" else order)
    if order == "files":
        for k, part in enumerate(np.array_split(np.argsort(frame["m"]), 160)):
            frame.iloc[part].to_parquet(tmp_path / f"{k:03}.parquet")
    else:
        frame.to_parquet(tmp_path / "0.parquet")
    ours = metrics.bootstrap(large(tmp_path), replicates=400).std().loc["m"]
    ratio = ours / widths.loc["m"]  # 128 blocks know a deviation to 6 %
    assert ratio[["brier", "nll", "auc"]].between(0.8, 1.25).all(), ratio
    assert ratio.between(0.5, 2).all(), ratio


@pytest.mark.parametrize(("files", "rows"), [(300, 4), (150, 1), (40, 20)])
def test_many_small_files_have_an_interval(files, rows, tmp_path):
    frame = draw(files * rows)
    for k in range(files):
        frame[k * rows : (k + 1) * rows].to_parquet(tmp_path / f"{k}.parquet")
    ours = metrics.bootstrap(large(tmp_path), replicates=300)
    theirs = metrics.bootstrap(frame["y"], frame[["m"]], replicates=300, progress=False)
    assert ours.units > 60
    assert 0.75 < ours.std().loc["m", "brier"] / theirs.std().loc["m", "brier"] < 1.33


# --- arguments, weights, order ------------------------------------------------------------------


@pytest.mark.parametrize("given", ["p", "weights", "votes", "groups"])
def test_no_argument_is_dropped_beside_a_data_set(given, tmp_path):
    put(draw(), tmp_path / "a.csv")
    data = large(tmp_path / "a.csv")
    value = np.ones(data.size)
    if given != "groups":
        with pytest.raises(ValueError, match=f"{given} must be None beside a data set"):
            metrics.evaluate(data, "m", **{given: value})
    with pytest.raises(ValueError, match=f"{given} must be None beside a data set"):
        metrics.bootstrap(data, **{given: value})


def test_a_bootstrap_of_some_metrics_and_columns(tmp_path):
    put(draw().assign(b=0.5), tmp_path / "a.csv")
    data = large(tmp_path / "a.csv")
    boot = metrics.bootstrap(data, "m", replicates=10, metrics=["nll", "brier"])
    assert [*boot.point.columns] == ["nll", "brier"] and [*boot.point.index] == ["m"]
    with pytest.raises(ValueError, match=r"metrics must be one of .* got 'breir'"):
        metrics.bootstrap(data, metrics=["breir"])
    with pytest.raises(ValueError, match="metrics must be one of"):
        metrics.bootstrap(data, metrics=["mse_p"])
    with pytest.raises(ValueError, match="must be names of columns; got a DataFrame"):
        metrics.bootstrap(data, draw()[["m"]])
    with pytest.raises(TypeError, match="wieght"):
        large(tmp_path / "a.csv", wieght="w")


@pytest.mark.parametrize("read", [read_predictions, large])
def test_the_scale_of_weights_does_not_matter(read, tmp_path):
    frame = draw(2000)
    weight = np.random.default_rng(0).integers(1, 9, 2000)
    tables = []
    for scale in (0, -1000, -565, 531, 1000):
        frame.assign(weight=np.ldexp(weight / 8, scale)).to_parquet(tmp_path / "a.parquet")
        tables.append(make_report(read(tmp_path / "a.parquet"), replicates=10).tables)
    for found in tables[1:]:
        for name in ("calibration", "decomposition", "gains", "metrics"):
            pd.testing.assert_frame_equal(found[name], tables[0][name], rtol=1e-9, obj=name)


def test_ids_that_repeat_across_parts_alone_are_no_clusters(tmp_path):
    frame = draw(1000).assign(id=np.arange(1000) % 500, split=np.repeat(["train", "test"], 500))
    frame.to_parquet(tmp_path / "a.parquet")
    found, small = large(tmp_path / "a.parquet"), read_predictions(tmp_path / "a.parquet")
    assert found.cluster is None and small.cluster is None
    ours, theirs = (make_report(t, replicates=10).tables["calibration"] for t in (found, small))
    np.testing.assert_allclose(ours["bins_p"], theirs["bins_p"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_are_written_in_the_order_of_the_files(ending, tmp_path):
    frame = draw(300_000).assign(weight=np.arange(300_000) % 3, note="ä")
    for k in range(3):
        put(frame[100_000 * k : 100_000 * (k + 1)], tmp_path / f"{k}.{ending}")
    kept = KeptMap("m", "probability", rates=(0.5, 0.1), fitted={"inside": 1, "positive": 1})
    blocks = [*apply_map(kept, tmp_path, "duckdb")]
    written, m = pd.concat(blocks), frame["m"].to_numpy()
    assert len(blocks) > 1 and [*written] == ["y", "m", "weight", "note", "m_calibrated"]
    np.testing.assert_array_equal(written["m"].astype(float), m)
    assert (written["y"].astype(int).to_numpy() == frame["y"]).all()
    assert (written["note"] == "ä").all()
    np.testing.assert_allclose(written["m_calibrated"], m / (m + 9 * (1 - m)), atol=1e-12)


@pytest.mark.parametrize("least", [1e-307, 5e-324, 1e-320])
def test_tiny_predictions_are_told_apart(least, tmp_path):
    m = np.r_[0.0, least, least * 3, 1e-300, 0.2, 0.9] * np.ones((50, 1))
    truth = np.tile([0.0, 0.5, 1.0, least, 1e-3], 60)
    frame = pd.DataFrame({"y": np.arange(300) % 7 < 2, "m": m.ravel(), "p": truth})
    frame.to_parquet(tmp_path / "a.parquet")
    found = large(tmp_path / "a.parquet")
    expected = metrics.evaluate(frame["y"], frame["m"], frame["p"])
    assert metrics.evaluate(found, "m") == pytest.approx(expected, rel=1e-12)
    kept = [*metrics.METRICS].index("kl_p")
    samples = metrics.bootstrap(found, replicates=10).samples
    assert np.isfinite(np.delete(samples, kept, axis=2)).all()


def test_only_the_columns_that_are_used_are_fetched(tmp_path):
    frame = draw(300).assign(**{f"x{k}": "long text " * 20 for k in range(50)})
    frame.to_parquet(tmp_path / "a.parquet")
    data = large(tmp_path / "a.parquet", "m")
    assert [*data.draw(100)] == ["y", "p0"]


# --- the second round of siblings: each docstring says what was given before ---------------------


def test_an_address_of_local_files_is_their_path(tmp_path):
    """The column of some files was dropped in silence, a wrong value was an IndexError."""
    put(draw(), tmp_path / "1.parquet")
    put(draw().assign(weight=7.0), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match="'weight' must have one type"):
        large(f"file://{tmp_path}/*.parquet")
    put(draw().assign(m=[np.nan, *draw()["m"][1:]]), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"'m' must hold .* row 0 of 2\.parquet"):
        large(f"file://{tmp_path}/*.parquet")
    put(draw(), tmp_path / "a.csv")
    assert large(f"file://{tmp_path}/a.csv").size == 400


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_hard_link_is_the_same_file_and_a_copy_is_told(ending, tmp_path):
    """Both counted twice, in silence."""
    put(draw(), tmp_path / f"a.{ending}")
    (tmp_path / f"b.{ending}").hardlink_to(tmp_path / f"a.{ending}")
    (tmp_path / ".snapshot").mkdir()
    (tmp_path / ".snapshot" / f"a.{ending}").hardlink_to(tmp_path / f"a.{ending}")
    found = large(tmp_path)
    assert found.size == 400 and any(f"b.{ending}" in note for note in found.notes)
    (tmp_path / f"a (1).{ending}").write_bytes((tmp_path / f"a.{ending}").read_bytes())
    put(draw(seed=1), tmp_path / f"c.{ending}")
    (note,) = [note for note in large(tmp_path).notes if note.startswith("Copies")]
    assert note.endswith(f"count twice: a.{ending}.")  # which comes after "a (1)"


def test_what_is_no_file_is_told_and_a_closed_folder_refused(tmp_path, monkeypatch):
    """A pipe was waited for without end; the rows of the folder were missing in silence."""
    put(draw(), tmp_path / "1.csv")
    os.mkfifo(tmp_path / "2.csv")
    (tmp_path / "3.csv").symlink_to("gone.csv")
    found = large(tmp_path)
    assert found.size == 400 and "2.csv, 3.csv" in found.notes[1]
    put(draw(), tmp_path / "closed" / "4.csv")
    scandir = os.scandir

    def refuse(path="."):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError, match="closed"):
        large(tmp_path)


@pytest.mark.parametrize("engine", ["DuckDB", " duckdb "])
def test_a_home_in_a_glob_and_an_engine_however_spelt(engine, tmp_path, monkeypatch):
    put(draw(), tmp_path / "1.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_predictions("~/*.csv", engine=engine).size == 400


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_name_that_is_no_unicode_is_read_and_told(ending, tmp_path):
    """The note could not be printed, the Parquet not be read."""
    path = tmp_path / os.fsdecode(b"a\xff." + ending.encode())
    path.write_bytes(put(draw(), tmp_path / f"x.{ending}").read_bytes())
    for found in (read_predictions(path), large(path)):
        assert found.size == 400 and rf"a\xff.{ending}" in found.notes[0]
        "".join(found.notes).encode()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("role", ["columns", "y", "group"])
def test_accents_are_one_however_composed(role, ending, tmp_path):
    """A column was not found, of one group two were made."""
    one, other = (unicodedata.normalize(form, "modèle") for form in ("NFC", "NFD"))
    names = {"columns": "m", "y": "y", "group": "group"}
    frame = draw().assign(group=np.where(np.arange(400) % 2, one, other))
    put(frame.rename(columns={names[role]: other}), tmp_path / f"1.{ending}")
    put(frame.rename(columns={names[role]: one}), tmp_path / f"2.{ending}")
    asked = {"columns": "m"} | {role: one}
    for found in (read_predictions(tmp_path / f"1.{ending}", **asked), large(tmp_path, **asked)):
        assert found.groups == 1 and found.size in (400, 800)


def test_whole_numbers_keep_their_digits_beside_a_null(tmp_path):
    """They became floats: 2^60 + 1 was 1.152921504606847e+18."""
    ids = pa.array([2**60 + 1, None, 2**60], pa.int64())
    pq.write_table(pa.table({"id": ids, "m": [0.2, 0.5, 0.7]}), tmp_path / "a.parquet")
    rows, engine = Rows(read_table(tmp_path / "a.parquet")), open_rows(tmp_path / "a.parquet")
    assert [*rows.frame["id"]] == [2**60 + 1, None, 2**60]
    assert [*engine.ask(engine.table)["c0"]] == [2**60 + 1, None, 2**60]
    assert rows.distinct("id") == engine.distinct("id") == 3


def test_truth_values_in_capitals(tmp_path):
    """As R and spreadsheets write them; they were refused."""
    put(draw().assign(y=np.where(draw()["y"], "TRUE", "FALSE")), tmp_path / "a.csv")
    for found in (read_predictions(tmp_path / "a.csv"), large(tmp_path)):
        assert found.share == draw()["y"].mean()


@pytest.mark.usefixtures("few")
def test_a_column_that_only_the_sample_has_constant_is_not_called_so(tmp_path):
    found = large(rare("m", few_of(0.9, 0.3), tmp_path))
    assert make_report(found, replicates=10).tables["calibration"].loc["m", "order"] == "ordinary"
    found = large(rare("m", [0.3] * N, tmp_path), "m")
    assert make_report(found, replicates=10).tables["calibration"].loc["m", "order"] == "constant"


@pytest.mark.usefixtures("few")
def test_what_is_told_of_a_sample_takes_it_from_the_data_set(tmp_path):
    """Each was an AttributeError or a TypeError of a data set."""
    data = large(rare("o", draw(N, 1)["m"], tmp_path))
    for tell in (judge.calibration_gains, judge.gain_parts_table, lambda t: decision_curve(t, 0.2)):
        pd.testing.assert_frame_equal(tell(data), tell(data.sample))
    with pytest.raises(ValueError, match=r"in a sample of its rows\.$"):
        fit_map(large(rare("y", few_of(1, 0), tmp_path), "m"), "platt")


def test_groups_of_one_size_are_cut_alike(tmp_path):
    names = np.random.default_rng(0).permutation([f"g{k:02}" for k in range(25)])
    put(draw().assign(group=np.repeat(names, 16)), tmp_path / "a.parquet")
    ours, theirs = (
        judge.group_table(read(tmp_path / "a.parquet")) for read in (large, read_predictions)
    )
    assert [*ours.index] == [*theirs.index] == [(f"g{k:02}", "m") for k in range(20)]


@pytest.mark.parametrize("wrong", [{"y": "dyed"}, {"columns": "n"}, {"scale": "logits"}])
def test_a_wrong_name_is_told_before_text_is_gone_through(wrong, tmp_path, monkeypatch):
    put(draw(), tmp_path / "a.csv")
    monkeypatch.setattr(files._Source, "write", lambda *_: pytest.fail("text was rewritten"))
    with pytest.raises(ValueError, match="must be one of"):
        large(tmp_path / "a.csv", **wrong)
    monkeypatch.setattr(
        "probnb.report.read.read_table", lambda _: pytest.fail("the table was read")
    )
    with pytest.raises(ValueError, match="scale must be one of"):
        read_predictions(tmp_path / "a.csv", scale="logits")


@pytest.mark.parametrize("read", [read_predictions, large])
def test_a_part_that_no_column_tells_is_said(read, tmp_path):
    put(draw(), tmp_path / "a.csv")
    told = "No column tells which rows are of part val: all are taken."
    assert told in read(tmp_path / "a.csv", part="val").notes
    assert told.replace("val", "test") not in read(tmp_path / "a.csv").notes


@pytest.mark.parametrize("given", [pa.table({"y": [0, 1]}), {"y": [0, 1]}, [[0, 1]]])
def test_what_is_no_data_frame_is_refused_in_words(given):
    with pytest.raises(ValueError, match="frame must be a DataFrame of pandas; got "):
        check_table(given)
    with pytest.raises(ValueError, match="table must be checked"):
        make_report(draw())


def test_what_counts_is_a_whole_number_at_every_door(tmp_path):
    """Some said so in an engine's words, in NumPy's or not at all."""
    put(draw(600), tmp_path / "a.csv")
    data, table = large(tmp_path / "a.csv", "m"), read_predictions(tmp_path / "a.csv", "m")
    doors = {
        "seed": (
            lambda seed: data.bootstrap("m", 10, seed),
            lambda seed: metrics.bootstrap(table.y, table.predictions, replicates=10, seed=seed),
            lambda seed: metrics.calibration_null_band(table.y, replicates=10, seed=seed),
            lambda seed: judge.calibration_gains(table, ("platt",), seed=seed),
            lambda seed: judge.gain_parts_table(table, seed=seed),
            lambda seed: fit_map(table, "platt", seed=seed),
        ),
        "count": (data.draw,),
        "replicates": (lambda count: data.bootstrap("m", count),),
    }
    for name, calls in doors.items():
        for call, wrong in itertools.product(calls, (-1, 1.5, True, None, "3", 2**70)):
            with pytest.raises(ValueError, match=f"{name} must be"):
                call(wrong)


def test_an_engine_that_is_not_installed_is_named_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"engine local\[2\] needs pyspark .* 'probnb\[spark\]'"):
        open_rows(tmp_path / "nothing", "local[2]")
