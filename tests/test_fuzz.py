"""Hostile and merely odd inputs: an answer without an unannounced NaN, or an error with a name.

PROBNB_FUZZ sets about how many inputs the tests of one area share (500 in ordinary runs; 100,000
at night).
"""

import bz2
import gzip
import lzma
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .made import zip_of

INPUTS = int(os.environ.get("PROBNB_FUZZ", "500"))


def fuzz(share=1.0):
    """Settings of a test that gets its share of the inputs (slow ones get less)."""
    return settings(
        max_examples=max(10, int(share * INPUTS)),
        deadline=None,
        derandomize=INPUTS <= 1000,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def only_named_errors(function, *names):
    """Return the answer, or None where a named error stands for it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return function()
    except (ValueError, FileNotFoundError) as error:
        assert type(error) in (ValueError, FileNotFoundError), repr(error)
        text = str(error)
        assert len(text) > 20, text
        assert not names or any(name in text for name in names), text
        return None


# --- the reader -------------------------------------------------------------------------------

WORDS = st.sampled_from(["y", "m", "p", "group", "weight", "id", "split", "", "Unnamed: 0", "y.1",
                         "0", "1", "été", "a b", "m;n", "a,b", '"', "index", "sep=;"])  # fmt: skip
NUMBERS = st.one_of(
    st.sampled_from(["0", "1", "0.5", "0,5", ".25", "62%", "1e-3", "1.0000001", "-0.0", "1,234",
                     "1.234,5", "nan", "NA", "", "inf", "-inf", "None", "x", "1e400", "−1", "1 000",
                     "true", "2024-01-01", "0x1", "'0.5'", '"0.5"', "#N/A", "test"]),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.floats(0, 1).map(repr),
    st.text(max_size=3),
)  # fmt: skip
CALM = st.floats(0, 1).map(lambda v: repr(round(v, 3)))


@st.composite
def texts(draw):
    """A table as text: mostly sound, with as many oddities as hypothesis likes."""
    names = draw(st.lists(WORDS, min_size=1, max_size=5))
    names = ["y", "m", *names] if draw(st.booleans()) else names
    cell = CALM if draw(st.booleans()) else NUMBERS
    separator = draw(st.sampled_from([",", ";", "\t", "|", " ", ", "]))
    lines = [separator.join(names)]
    for k in range(draw(st.integers(0, 8))):
        row = [str(k % 2) if name == "y" else draw(cell) for name in names]
        row = row[: draw(st.integers(0, 6))] if draw(st.integers(0, 9)) == 0 else row
        lines.append(
            separator.join(row) + separator.strip() * draw(st.sampled_from([0, 0, 0, 1, 3]))
        )
    return draw(st.sampled_from(["\n", "\r\n", "\n\n"])).join(lines)


@st.composite
def files(draw):
    """Bytes: a text, perhaps compressed and then damaged, a Parquet file, or noise."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.binary(max_size=60))
    if draw(st.integers(0, 9)) == 0:
        values = draw(st.lists(st.floats(0, 1), min_size=1, max_size=4))
        columns = {"y": [k % 2 for k in range(len(values))], "m": values}
        data = pd.DataFrame(columns).to_parquet()
    else:
        encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-32-le"]))
        data = draw(texts()).encode(encoding, errors="replace")
    if draw(st.integers(0, 4)) == 0:
        data = draw(st.sampled_from([gzip.compress, bz2.compress, lzma.compress, zipped]))(data)
    if draw(st.integers(0, 4)) == 0:
        cut = draw(st.integers(0, len(data)))
        data = data[:cut] + draw(st.binary(max_size=4)) + data[cut + draw(st.integers(0, 4)) :]
    return data


def zipped(data):
    return zip_of([("a.csv", data)])


def sound(table):
    """Whether a checked table holds what it promises."""
    values = table.predictions.to_numpy()
    assert set(np.unique(table.y)) == {0, 1}
    assert values.shape[0] == len(table.y) and values.shape[1] >= 1
    assert ((values >= 0) & (values <= 1)).all()
    for extra in (table.p, table.weight):
        assert extra is None or (np.isfinite(extra).all() and len(extra) == len(table.y))
    assert table.weight is None or (table.weight > 0).all()
    for labels in (table.group, table.cluster, table.id):
        assert labels is None or (pd.notna(labels).all() and len(labels) == len(table.y))
    assert not any("nan" in note.split() for note in table.notes)
    return table


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "mine.csv"


@given(data=files(), scale=st.sampled_from(["auto", "probability", "logit", "each"]))
@fuzz(0.6)
def test_reader(path, data, scale):
    from probnb.report import read_predictions

    path.write_bytes(data)
    table = only_named_errors(
        lambda: read_predictions(path, scale=scale), "mine.csv", "column", "scale"
    )
    if table is not None:
        sound(table)


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.floats(),
    st.floats(0, 1),
    st.decimals(allow_nan=False),
    st.text(max_size=3),
    st.dates(),
    st.binary(max_size=2),
    st.lists(st.integers(), max_size=2),
    st.complex_numbers(),
)
SETTINGS = st.one_of(
    st.none(),
    st.sampled_from(["y", "m", "k", "m,k", "group", "weight", ""]),
    st.integers(-1, 3),
    st.lists(st.sampled_from(["m", "k", 1]), max_size=3),
    st.floats(),
    st.booleans(),
)


@given(
    columns=st.dictionaries(
        st.one_of(
            st.sampled_from(["m", "k", "p", "group", "weight", "id", "split"]), st.integers()
        ),
        st.lists(CELLS, min_size=6, max_size=6),
        max_size=3,
    ),
    arguments=st.dictionaries(
        st.sampled_from(["columns", "y", "p", "group", "cluster", "weight", "id", "split", "part"]),
        SETTINGS,
        max_size=2,
    ),
    sure=st.booleans(),
)
@fuzz(0.3)
def test_tables_of_any_objects(columns, arguments, sure):
    from probnb.report import check_table

    good = {"y": [0, 1] * 3, **({"m": [0.1, 0.5, 0.2, 0.9, 0.3, 0.4]} if sure else {})}
    frame = pd.DataFrame({**{k: pd.Series(v, dtype=object) for k, v in columns.items()}, **good})
    table = only_named_errors(lambda: check_table(frame, **arguments), "column", "scale", "y:")
    if table is not None:
        sound(table)


# --- parameters of notebooks ------------------------------------------------------------------

VALUES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    st.lists(st.integers(), max_size=2),
)


@given(names=st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
@fuzz(0.4)
def test_parameters(names):
    from probnb_book.notebook import check_parameters

    before = dict(names)
    if not only_named_errors(lambda: check_parameters(names, "seed bins") or True, "parameter"):
        return
    assert names.keys() == before.keys()
    assert all(
        name in ("seed", "bins")
        or name.startswith("_")
        or name in ("In", "Out", "exit", "quit", "open", "get_ipython")
        for name in names
    )


@given(path=VALUES)
@fuzz(0.3)
def test_paths(path):
    from probnb.paths import find_path
    from probnb_book.notebook import results_path

    only_named_errors(lambda: find_path(path, "data_dir"), "data_dir")
    only_named_errors(lambda: results_path(path), "results_dir")


# --- the report -------------------------------------------------------------------------------

PROBABILITIES = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 0.3, 1e-300, 1 - 1e-16, 5e-324])
)


@st.composite
def tables(draw):
    n = draw(st.integers(2, 24))
    column = st.one_of(
        st.lists(PROBABILITIES, min_size=n, max_size=n), PROBABILITIES.map(lambda v: [v] * n)
    )
    y = [0.0, 1.0, *draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n - 2, max_size=n - 2))]
    frame = {"y": y, "m": draw(column)}
    frame |= {"k": draw(st.sampled_from([y, [1 - v for v in y]]))} if draw(st.booleans()) else {}
    for name, values in (
        ("p", PROBABILITIES),
        (
            "group",
            st.sampled_from(["a", "NA", "", " "]) if n > 20 else st.sampled_from(["a", "NA"]),
        ),
        ("weight", st.sampled_from([0.0, 1.0, 1e-9, 1e9])),
        ("cluster", st.integers(0, 3)),
    ):
        if draw(st.booleans()):
            frame[name] = draw(st.lists(values, min_size=n, max_size=n))
    frame = pd.DataFrame(frame)
    if "group" in frame and draw(st.booleans()):
        frame["group"] = pd.Categorical(frame["group"], ["a", "NA", "", " ", "never"])
    return frame


@given(frame=tables(), bins=st.integers(0, 15), replicates=st.integers(1, 5))
@fuzz(0.04)
def test_report(frame, bins, replicates):
    from probnb.report import check_table, make_report
    from probnb.report.tell import FORMS

    cluster = "cluster" if "cluster" in frame else None
    table = only_named_errors(lambda: check_table(frame, cluster=cluster), "column")
    if table is None:
        return
    report = only_named_errors(
        lambda: make_report(table, bins=bins, replicates=replicates), "bins", "replicates"
    )
    if report is None:
        return
    shown = [report.in_short(), report.what_was_read()]
    for part in FORMS:
        cells = report.cells(part)
        report.show(part)
        shown += [str(cell) for cell in cells.to_numpy().ravel()]
    assert max(len(word) for text in shown for word in text.split()) < 30
    assert not any("nan" in text.lower().replace("[", " ").split() for text in shown)
