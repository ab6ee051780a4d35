"""Odd tables in odd files: read in memory and by an engine they are the same, or refused alike.

PROBNB_FUZZ sets about how many tables are drawn: of 1,000, as in ordinary runs, 30 are judged and
100 read, since each is opened by an engine.
"""

import decimal
import gzip
import itertools
import os
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from probnb import metrics
from probnb.report import check_table, read_predictions
from probnb.scale import open_rows
from probnb.tables import COUNTS, Rows, look_at_text, open_unpacked, read_table

pytestmark = pytest.mark.usefixtures("one_connection")
FUZZ = int(os.environ.get("PROBNB_FUZZ", "1000"))
NAMES = ["m", "M", "ä b", 'a "q"', "it's", "x.1", "p1", "a`b"]
NAMES += ["file_row_number", "file_index", "c0"]
CELLS = """0.5|0,5|−1| 1 |1\xa0|1_0|0x1|1e-3|1E5|.5|5.|.|+1||NA|nan|inf|-inf|1e400|True|false|TRUE
12%|007|7|7.0|1,234|1.234,5|ß|'|"|a;b|2024-01-01|None|1 000|١|-0""".replace("\n", "|").split("|")


def any_of(rng, *values):
    return values[rng.integers(len(values))]


def draw_frame(rng, n):
    """A table of predictions, most often sound."""
    q = rng.beta(2, 3, n)
    y = (rng.random(n) < q).astype(int)
    frame = {"y": any_of(rng, y, y, y, y.astype(float), y.astype(bool), np.zeros(n, int))}
    for name in rng.permutation(NAMES)[: rng.integers(1, 4)]:
        p = np.clip(q + rng.normal(0, 0.1, n), 0, 1)
        s = 3 * np.log(np.clip(q, 1e-9, 1) / np.clip(1 - q, 1e-9, 1)) + rng.normal(0, 0.1, n)
        frame[name] = any_of(
            rng,
            p,
            p,
            p.round(1),
            s,
            s.round(2),
            p * 1e-310,
            p * (1 + 1e-7),
            p.astype(np.float32),
            (p > 0.5).astype(int),
            np.full(n, 0.5),
            p * 100,
            np.where(p > 0.4, p, 0),
        )
    extra = {
        "weight": any_of(rng, rng.integers(0, 4, n), rng.random(n) * 1e-170, rng.random(n) * 1e160),
        "group": any_of(rng, rng.choice(["a", "NA", "007"], n), rng.integers(0, 3, n)),
        "id": any_of(rng, np.arange(n), np.arange(n) // 2, rng.integers(0, n, n)),
        "split": rng.choice(["test", "train", "Test"], n),
        "cluster": rng.integers(0, 12, n),
        "p": q,
        "remark": rng.choice(["x", "y z", "é", "1"], n),
        "row": np.arange(n),
        "day": pd.date_range("2024-01-01", periods=n).date,
    }
    for name in extra:
        if rng.random() < 0.25:
            frame[name] = extra[name]
    frame = pd.DataFrame(frame)
    if rng.random() < 0.3:  # one cell that is wrong, or merely odd
        row, name = rng.integers(n), any_of(rng, *frame)
        frame = frame.astype({name: object})
        frame.loc[row, name] = any_of(rng, None, np.nan, -0.3, 2, "x", "0.5", True, np.inf, "")
    return frame.loc[:, rng.permutation(frame.columns)]


def typed(rng, column):
    """A column as Parquet may hold it."""
    if column.dtype == object:
        held = [None if v is None or v != v else str(v) for v in column]
        if {type(v) for v in column} <= {float, int, type(None)}:
            return pa.array([None if v is None else float(v) for v in column])
        return any_of(rng, pa.array(held), pa.array(held).dictionary_encode())
    values = column.to_numpy()
    if values.dtype.kind not in "fiu":
        return pa.array(column)
    if column.dtype == float and rng.random() < 0.1 and np.abs(values).max() < 1e3:
        return pa.array([decimal.Decimal(f"{v:.6f}") for v in values])
    if values.dtype.kind in "iu" and rng.random() < 0.5:
        return pa.array(values.astype(any_of(rng, np.int8, np.int16, np.float32, float)))
    return pa.array(column, from_pandas=any_of(rng, True, False))


def write_parquet(rng, frames, paths):
    whole = pd.concat(frames, ignore_index=True)
    columns = {name: typed(rng, whole[name]) for name in whole}
    start = 0
    for frame, path in zip(frames, paths):
        order = rng.permutation([*columns])
        table = pa.table({name: columns[name][start : start + len(frame)] for name in order})
        start += len(frame)
        statistics = any_of(rng, True, False)
        pq.write_table(table, path, row_group_size=7, write_statistics=statistics)
        if rng.random() < 0.1:
            path.write_bytes(gzip.compress(path.read_bytes()))


def written(digits, mark, value):
    return digits(float(value)).replace(".", mark) if isinstance(value, float) else value


def write_text(rng, frames, paths):
    mark = any_of(rng, ".", ".", ",")
    for frame, path in zip(frames, paths):
        separator = any_of(rng, ",", ";", "\t")
        frame = frame.loc[:, rng.permutation(frame.columns)]
        digits = any_of(rng, repr, repr, lambda v: f"{v:.4g}")
        cells = frame.map(partial(written, digits, mark))
        text = cells.to_csv(
            index=False,
            sep=separator,
            quoting=any_of(rng, 0, 0, 1),
            lineterminator=any_of(rng, "\n", "\r\n"),
            na_rep=any_of(rng, "", "NA"),
        )
        kind = rng.integers(12)
        if kind == 0:
            text = text.replace("\n", f"{separator}\n")
        elif kind == 1:
            text = text.replace("\n", "\n\n", 3)
        elif kind == 2:
            text = text.rstrip() + separator + "9"  # a field too many
        elif kind == 3:
            text = text.rstrip()[:-2]
        data = text.encode(
            any_of(rng, "utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"), "replace"
        )
        path.write_bytes(any_of(rng, data, data, data, gzip.compress(data)))


def draw_cells(rng, n):
    """A table of odd cells."""
    names = rng.permutation(NAMES)[: rng.integers(1, 4)]
    frame = pd.DataFrame({name: rng.choice(CELLS, n) for name in names})
    for name in names[rng.random(len(names)) < 0.3]:
        numbers = rng.normal(0.5, 1, n) * 10.0 ** rng.integers(-8, 9)
        times = pd.to_datetime(np.rint(numbers), unit=any_of(rng, "s", "ms"), errors="coerce")
        times = pd.Series(times).dt.tz_localize(
            any_of(rng, None, "UTC", "Europe/Berlin"), "NaT", "NaT"
        )
        wild = np.where(rng.random(n) < 0.2, any_of(rng, np.inf, -np.inf, np.nan, -0.0), numbers)
        kinds = numbers, numbers.round(2), np.rint(numbers), wild, numbers > 0, times
        frame[name] = any_of(rng, *kinds)
    return frame


def draw_files(rng, folder, draw=draw_frame):
    """Write one to three files, and things beside them that are none of them."""
    frame = draw(rng, int(rng.integers(4, 60 if draw is draw_frame else 12)))
    cuts = {0, *rng.integers(1, len(frame), rng.integers(0, 3)), len(frame)}
    frames = [frame[a:b].reset_index(drop=True) for a, b in itertools.pairwise(sorted(cuts))]
    kind = any_of(rng, "csv", "parquet")
    place = folder / any_of(rng, "a", "p=0.2", "weight=3", "x 'y' [z]")
    place.mkdir(parents=True)
    ending = any_of(rng, kind, kind.upper())
    paths = [place / f"{k}.{ending}" for k in range(len(frames))]
    (write_text if kind == "csv" else write_parquet)(rng, frames, paths)
    if rng.random() < 0.3:
        hidden = place / any_of(rng, "_temporary", ".trash", "_delta_log", ".ipynb_checkpoints")
        hidden.mkdir()
        (hidden / paths[0].name).write_bytes(paths[0].read_bytes())
    if rng.random() < 0.2:
        (place / f"z.{kind}").symlink_to(paths[0])
    return place, paths


def outcome(read):
    """What a reader gives, or in words why it does not."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return read(), None
        except ValueError as error:
            files = r" of \d\.(csv|parquet)\b| \(counted from 0\)|^\d\.(csv|parquet) "
            words = re.sub(files, "", str(error), flags=re.IGNORECASE)
            return None, re.sub(r", as in [\d, ]*\([\d,]+ \w+s in all\)", "", words)


def alike(why, refused):
    """Whether both read, or refuse for one reason; of several wrong files either may be named."""
    start = "cannot be read as a table: "
    return why == refused or (
        why and refused and why.startswith(start) and refused.startswith(start)
    )


def in_memory(paths):
    """All files as one table, or None where their decimal marks differ: that is told apart."""
    frames = [read_table(path) for path in paths]
    texts = [
        look_at_text(partial(open_unpacked, path)) for path in paths if ".c" in path.name.lower()
    ]
    marks = {text.decimal for text in texts} - {""}
    frame = pd.concat(frames)
    frame.attrs = frames[0].attrs | {"decimal": (*marks, ".")[0]}
    return frame if len(marks) < 2 else None


def scores(table, name):
    if hasattr(table, "engine"):
        return metrics.evaluate(table, name)
    return metrics.evaluate(table.y, table.predictions[name], table.p, table.weight)


@pytest.mark.parametrize("seed", range(max(30, FUZZ * 3 // 100)))
def test_a_table_is_judged_alike(seed, tmp_path):
    rng = np.random.default_rng(seed)
    place, paths = draw_files(rng, tmp_path)
    frame, why = outcome(lambda: in_memory(paths))
    small, refused = (None, why) if why else outcome(lambda: check_table(frame))
    large, why = outcome(lambda: read_predictions(place, engine="duckdb", memory="300MB"))
    if why and "give one kind" in why:
        assert frame is None
        return
    assert alike(why, refused)
    if refused is not None:
        return
    assert [*small.predictions] == large.names
    assert (small.size, small.groups) == (large.size, large.groups)
    assert (small.cluster is None) == (large.cluster is None)
    told = [note for note in small.notes if note not in large.notes]
    assert not [note for note in told if "by rounding" not in note and note[:5] != "Read "], told
    for name in large.names:
        expected = scores(small, name)
        for metric, value in scores(large, name).items():
            assert value == pytest.approx(expected[metric], rel=1e-9, abs=1e-9), (name, metric)


@pytest.mark.parametrize("seed", range(max(100, FUZZ // 10)))
def test_a_table_is_read_alike(seed, tmp_path):
    """Odd cells as labels, numbers and outcomes, and their places, by one question."""
    rng = np.random.default_rng([seed, 1])
    place, paths = draw_files(rng, tmp_path, draw_cells)
    frame, refused = outcome(lambda: in_memory(paths))
    opened, why = outcome(lambda: open_rows(place, memory="300MB"))
    if why and "give one kind" in why:
        assert frame is None
        return
    if refused and "but no rows" in refused and len(paths) > 1:
        return  # which of several files is no fault
    assert alike(why, refused)
    if why is not None:
        return
    rows = Rows(frame)
    assert [*opened.names] == rows.names or len(paths) > 1
    assert sorted(opened.names) == sorted(rows.names) and opened.size == rows.size
    assert not opened.odd
    kinds = "label", "number", "outcome"
    names = [name for name in rows.names if rows.names.count(name) == 1]
    asked = {f"{k}_{kind}": opened.read(c, kind) for k, c in enumerate(names) for kind in kinds}
    found = opened.ask(opened.table.select("_file", "_row", **asked).order_by("_file", "_row"))
    assert [*found["_row"]] == [*frame.index]
    for k, name in enumerate(names):  # which may differ by case alone
        for kind in kinds:
            ours, theirs = found[f"{k}_{kind}"], rows.read(name, kind)
            if kind == "label":
                ours, theirs = (pd.Series(x, dtype=object).fillna("") for x in (ours, theirs))
                assert [*ours] == [*theirs], (name, kind)
            else:
                np.testing.assert_allclose(ours.astype(float), theirs, 1e-15, err_msg=name)
    if seed % 10 == 0:
        for name in names:
            assert dict(zip(COUNTS, opened.look(name)[3:])) == dict(
                zip(COUNTS, rows.look(name)[3:])
            )
            assert opened.look(name)[0] == rows.look(name)[0]
            assert opened.distinct(name) == rows.distinct(name)
