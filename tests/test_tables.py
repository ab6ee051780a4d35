"""Files as people have them: read right, or refused with the file, the place and the remedy."""

import decimal
import gzip
import os
import threading

import numpy as np
import pandas as pd
import pytest

from probnb.metrics import brier
from probnb.tables import column, find_column, positive_label, read_table

from .made import M, Y, plain, zip_of


def read(tmp_path, content, name="mine.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path)


def same(frame, name="m"):
    np.testing.assert_array_equal(column(frame, "y", "outcome"), Y)
    np.testing.assert_array_equal(column(frame, name, "probability"), M)
    return frame


def refused(tmp_path, content, *words, kind="number", name="mine.csv"):
    with pytest.raises(ValueError) as error:
        column(read(tmp_path, content, name), "m", kind)
    for word in (name, *words):
        assert word in str(error.value), str(error.value)


HARD = ["Zürich", "Genève", "Køge", "Łódź", "Москва", "東京", "Ďábel", "Ğ", "“quoted”", "5 €"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_of_unicode(tmp_path, encoding):
    text = plain(group=(HARD * 3)[:24]).rename(columns={"m": "modèle"}).to_csv(index=False)
    frame = same(read(tmp_path, text.encode(encoding)), "modèle")
    assert list(column(frame, "group", "label")) == (HARD * 3)[:24]
    assert frame.attrs["notes"] == ["Read 24 rows of mine.csv."]


@pytest.mark.parametrize("name", ["Zürich", "Genève", "Køge", "“quoted”", "5 €", "é", "Ž", "ß"])
def test_what_is_no_utf8_is_cp1252_and_said(tmp_path, name):
    frame = same(read(tmp_path, plain(group=name).to_csv(index=False).encode("cp1252")))
    assert set(column(frame, "group", "label")) == {name}
    assert "read as cp1252" in frame.attrs["notes"][1]


@pytest.mark.parametrize("ending", ["mine.csv", "MINE.TSV", "mine.txt", "mine"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("squeeze", [bytes, gzip.compress])
def test_separators_and_line_ends_whatever_the_ending(tmp_path, ending, separator, end, squeeze):
    text = plain(group="a, b; c").to_csv(index=False, sep=separator, lineterminator=end)
    frame = same(read(tmp_path, squeeze(text.encode()), ending))
    assert set(column(frame, "group", "label")) == {"a, b; c"}


@pytest.mark.parametrize("name", ["m, new", '"m, new"', '"m, new, or old"'])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_commas_in_a_name_separate_nothing(tmp_path, name, separator):
    """The file was said to have no column y."""
    rows = plain().to_csv(index=False, header=False, sep=separator)
    frame = read(tmp_path, f"y{separator}{name}\n{rows}")
    same(frame, name.strip('"'))


def test_decimal_commas(tmp_path):
    for separator in ";\t":
        same(read(tmp_path, plain().to_csv(index=False, sep=separator, decimal=",")))
    quoted = plain(m=[f"{v}".replace(".", ",") for v in M]).to_csv(index=False)
    assert same(read(tmp_path, quoted)).attrs["notes"][1:] == ["Numbers have decimal commas."]
    unquoted = "y,m\n" + "".join(f"{y},{m}\n".replace(".", ",") for y, m in zip(Y, M))
    refused(tmp_path, unquoted, "line 2", "fields", "decimal commas")
    thousands = plain(m=["1,234"] * 24).to_csv(index=False)
    refused(tmp_path, thousands, "'m'", "line 2", "1,234")  # decimals or thousands: not certain
    mixed = plain(w="0,5").assign(m=["1.234"] * 24).to_csv(index=False, sep=";")
    refused(tmp_path, mixed, "'m'", "line 2", "1.234")


WRONG = ("error", "0,5", "12%", "inf", "1.5", "-0.1", "#DIV/0!")
CELLS = {cell: f"holds '{cell}'" for cell in WRONG} | dict.fromkeys(("", "NA"), "holds nothing")


@pytest.mark.parametrize("cell, words", CELLS.items())
def test_single_cells_are_named(tmp_path, cell, words):
    text = pd.DataFrame({"y": Y, "m": [cell if k == 3 else v for k, v in enumerate(M)]})
    text = text.to_csv(index=False)
    refused(tmp_path, text, "'m'", f"line 5 of mine.csv {words}", kind="probability")
    refused(tmp_path, text.replace("0,0.858", "\n0,bad"), "line 5", "as in", kind="probability")


def test_lines_are_counted_as_in_the_file(tmp_path):
    lines = plain().to_csv(index=False).splitlines()
    lines[7] = "0,bad"
    refused(tmp_path, "\n".join(lines), "line 8 of")
    lines.insert(3, "")  # a blank line is none of the rows
    assert len(read(tmp_path, "\n".join(lines))) == 24
    refused(tmp_path, "\n".join(lines), "line 9 of")
    lines[2] = '1,"0.\n5"'  # a line break within a cell
    refused(tmp_path, "\n".join(lines), "line 4 of mine.csv", "as in 10")


def test_broken_lines_and_headers(tmp_path):
    lines = plain().to_csv(index=False).splitlines()
    refused(tmp_path, "\n".join([*lines, "1"]), "line 26 of mine.csv holds nothing")
    refused(tmp_path, "\n".join([*lines[:5], "1,0.5,7", *lines[6:]]), "line 6", "fields")
    refused(tmp_path, "\n".join([*lines[:5], '1,"0.5', *lines[6:]]), "quotes in pairs")
    same(read(tmp_path, "\n".join(line + "," for line in lines)))  # an empty column
    refused(tmp_path, "\n" + "\n".join(lines), "first line must name the columns")
    refused(tmp_path, ",,\n1,2,3\n", "first line must name the columns")
    refused(tmp_path, "sep=;\ny;m\n1;0.5\n", "first line must name the columns; it is sep=;")
    refused(tmp_path, "y m\n1 0.5\n", "commas, semicolons or tabs", "'y m'")
    refused(tmp_path, "y,m\n", "header (y, m) but no rows")
    for empty in ("", "\n \n", gzip.compress(b"")):
        refused(tmp_path, empty, "empty")
    refused(tmp_path, "y,m,m\n1,0.5,0.5\n", "'m' stands twice")


def test_what_is_no_table_is_named(tmp_path, monkeypatch):
    text = plain().to_csv(index=False).encode()
    refused(tmp_path, zip_of([("a.csv", text)]), "zip archive", name="x.zip")
    refused(tmp_path, gzip.compress(text)[:-30], "end-of-stream", name="x.csv.gz")
    refused(tmp_path, plain().to_parquet()[:-30], "Parquet", name="x.parquet")
    refused(tmp_path, b"\x80\x04\x95pickle", "pickle", name="x.pkl")
    for orient in ("columns", "records"):
        refused(tmp_path, plain().to_json(orient=orient), "JSON", name="x.json")
    refused(tmp_path, b"y,m\n1,0.5\0\n", "no text")
    refused(tmp_path, bytes(range(256)) * 4, "no text")
    (tmp_path / "folder.parquet").mkdir()
    for folder in (tmp_path, tmp_path / "folder.parquet"):
        with pytest.raises(ValueError, match=f"{folder.name} cannot be .* it is a folder"):
            read_table(folder)
    monkeypatch.setattr("probnb.tables.LARGEST", 100)
    refused(tmp_path, gzip.compress(text), "more than 100 bytes")


@pytest.mark.parametrize("name", ["NA", "None", "null", "nan", "N/A", "007", "true", "empty"])
def test_labels_are_called_anything(tmp_path, name):
    frame = read(tmp_path, plain(group=[name, "b", "c"] * 8).to_csv(index=False))
    assert set(column(frame, "group", "label")) == {name, "b", "c"}
    frame = read(tmp_path, plain(group=["", "b", "c"] * 8).to_csv(index=False))
    with pytest.raises(ValueError, match=r"'group' must hold a name .* line 2 of .* holds nothing"):
        column(frame, "group", "label")


@pytest.mark.parametrize(
    "m",
    [
        [decimal.Decimal(str(v)) for v in M],
        pd.array(M, "Float64"),
        pd.Categorical(M),
        [str(v) for v in M],
        pd.Categorical([str(v) for v in M]),
    ],
    ids=["decimal", "nullable", "categorical", "text", "categorical text"],
)
def test_types_of_parquet_and_of_tables_in_memory(tmp_path, m):
    frame = plain().assign(m=m)
    same(read(tmp_path, frame.to_parquet()))
    same(read(tmp_path, gzip.compress(frame.to_parquet())))
    same(read(tmp_path, frame.set_index("y").to_parquet()))
    for y in (Y.astype(bool), pd.array(Y, "Int8"), [str(y == 1) for y in Y]):
        same(frame.assign(y=y))
        same(read(tmp_path, frame.assign(y=y).to_parquet()))
    missing = plain(m=pd.array([None, *M[1:]], "Float64"))
    refused(tmp_path, missing.to_parquet(), "row 0 of mine.csv (counted from 0) holds nothing")


@pytest.mark.parametrize(
    "m", [True, pd.Timestamp("2024-01-01"), 1j, None, "a", b"0.5", [[1.0]] * 24]
)
def test_what_is_no_number(m):
    with pytest.raises(ValueError, match=r"'m' must hold a finite number .* row 0"):
        column(plain().assign(m=m), "m")


def test_kinds():
    frame = plain(w=np.arange(24) - 1, z=0, o=2 * Y)
    for name, kind, allowed in (
        ("w", "weight", "at least 0"),
        ("o", "outcome", "0 or 1"),
        ("w", "probability", r"in \[0, 1\]"),
    ):
        with pytest.raises(ValueError, match=f"'{name}' must hold .*{allowed}.* row 0"):
            column(frame, name, kind)
    with pytest.raises(ValueError, match="'z' must hold a weight above 0; all are 0"):
        column(frame, "z", "weight")


def test_columns_are_found_by_name_or_the_nearest_is_said():
    assert find_column(1, ["y", "1"], "columns") == "1"
    assert find_column(" y ", ["y", "Y"], "y") == "y"
    assert find_column("y", ["Y", "m"], "y") == "Y"
    with pytest.raises(ValueError, match=r"columns: the column .* got 'carefull'. Did you mean"):
        find_column("carefull", ["careful"], "columns")


def test_whole_numbers_in_two_columns_are_no_decimal_commas(tmp_path):
    frame = read(tmp_path, "y,m\n0,0\n1,1\n0,0\n1,1\n1,0.5\n0,0.25\n")
    assert column(frame, "m", "probability").tolist() == [0, 1, 0, 1, 0.5, 0.25]
    assert frame.attrs["decimal"] == "."


@pytest.mark.parametrize("classes", [["0", "1", "2"], ["1", "2", "3"], ["0.0", "2.0", "1.0"]])
def test_a_table_of_three_classes_is_told_where_to_go(classes):
    frame = pd.DataFrame({"y": classes, "path": ["a", "b", "c"]})
    with pytest.raises(ValueError, match=r"must hold 0 or 1 .*probnb\.metrics\.evaluate_outcomes"):
        column(frame, "y", "outcome")


@pytest.mark.parametrize("value", ["-1", "0.5", "1.5", "2.5", "yes", "", "1e9"])
def test_what_is_no_class_is_not_sent_there(value):
    with pytest.raises(ValueError, match="must hold 0 or 1") as error:
        column(pd.DataFrame({"y": [value, "1"]}), "y", "outcome")
    assert "evaluate_outcomes" not in str(error.value)


def test_three_labels_and_three_columns_of_probabilities_are_told_too():
    with pytest.raises(ValueError, match=r"two outcomes; found 3: .*evaluate_outcomes"):
        positive_label(None, ["cat", "dog", "fish"])
    with pytest.raises(ValueError, match=r"one-dimensional; got shape \(4, 3\).*evaluate_outcomes"):
        brier([0, 1, 1, 0], np.full((4, 3), 1 / 3))


def test_a_pipe_gives_its_bytes_once(tmp_path):
    """It was opened twice, and what was looked at was lost."""
    os.mkfifo(tmp_path / "pipe")
    text = plain().to_csv(index=False).encode()
    for content in (text, gzip.compress(text)):
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[content])
        writer.start()
        same(read_table(tmp_path / "pipe"))
        writer.join()
