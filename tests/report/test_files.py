"""Files as people have them: read right, or refused with the file, the place and the remedy."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from probnb.report.read import check_table, read_predictions

Y = np.array([1, 1, 0, 0, 1, 0] * 4)
M = np.round(np.linspace(0.015, 0.985, 24), 3)
GROUPS = ["Zürich", "Genève", "Køge"] * 8


def plain(**more):
    return pd.DataFrame({"y": Y, "m": M, **more})


def save(tmp_path, content, name="mine.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(tmp_path, content, name="mine.csv", **settings):
    return read_predictions(save(tmp_path, content, name), **settings)


def same(table, columns=("m",)):
    assert list(table.predictions) == list(columns)
    np.testing.assert_array_equal(table.y, Y)
    np.testing.assert_allclose(table.predictions[columns[0]], M, rtol=1e-15)
    return table


def refused(tmp_path, content, *words, name="mine.csv", **settings):
    with pytest.raises(ValueError) as error:
        read(tmp_path, content, name, **settings)
    for word in (name, *words):
        assert word in str(error.value)


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"],
)
def test_encodings(tmp_path, encoding):
    text = plain(group=GROUPS).rename(columns={"m": "modèle"}).to_csv(index=False)
    table = same(read(tmp_path, text.encode(encoding)), ["modèle"])
    assert list(table.group) == GROUPS
    said = any(f"read as {encoding.removesuffix('-sig')}" in note for note in table.notes)
    assert said or encoding.startswith("utf-8") or encoding == "latin-1"


@pytest.mark.parametrize("encoding", ["cp1251", "shift_jis"])
def test_encodings_of_other_scripts(tmp_path, encoding):
    names = {"cp1251": ["Москва", "Казань", "Тверь"], "shift_jis": ["東京", "大阪", "京都"]}[
        encoding
    ]
    text = plain(group=names * 8).to_csv(index=False)
    assert list(same(read(tmp_path, text.encode(encoding))).group) == names * 8


@pytest.mark.parametrize(
    "ending", ["mine.csv", "MINE.CSV", "mine.TSV", "mine.txt", "mine", "m.dat"]
)
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_separators_whatever_the_ending(tmp_path, ending, separator):
    table = same(read(tmp_path, plain().to_csv(index=False, sep=separator), ending))
    assert any("separated by" in note for note in table.notes) == (separator != ",")


def test_what_spreadsheets_write(tmp_path):
    german = plain().to_csv(index=False, sep=";", decimal=",")
    same(read(tmp_path, german))
    same(read(tmp_path, "sep=;\r\n" + german.replace("\n", "\r\n")))
    quoted = plain(m=[f"{v}".replace(".", ",") for v in M]).to_csv(index=False)
    table = same(read(tmp_path, quoted))
    assert "Column m is written in decimal commas." in table.notes
    same(read(tmp_path, plain(m=[f"{100 * v:.1f}%" for v in M]).to_csv(index=False)))
    same(read(tmp_path, plain(m=[f"{100 * v:.1f} %".replace(".", ",") for v in M]).to_csv(sep=";")))
    same(read(tmp_path, plain(m=[f" {v} " for v in M]).to_csv(index=False)))
    spaced = plain().to_csv(index=False).replace(",", " , ")
    same(read(tmp_path, spaced))


def test_unquoted_decimal_commas_are_refused(tmp_path):
    text = "y,m\n" + "".join(f"{y},{m}\n".replace(".", ",") for y, m in zip(Y, M))
    refused(tmp_path, text, "line 2", "3 fields", "decimal commas", "semicolons")


def test_thousands_are_told_from_decimals(tmp_path):
    weights = [f"{1000 + k:,}" for k in range(23)] + ["12,345.5"]
    table = read(tmp_path, plain(weight=weights).to_csv(index=False))
    np.testing.assert_array_equal(same(table).weight, [*range(1000, 1023), 12345.5])
    german = plain(weight=["1.234,5"] * 24).to_csv(index=False, sep=";", decimal=",")
    np.testing.assert_array_equal(same(read(tmp_path, german)).weight, 1234.5)
    unclear = plain(weight=["1,234"] * 24).to_csv(index=False)
    refused(tmp_path, unclear, "'weight'", "line 2", "1,234", "decimals or thousands")
    settled = plain(m=[f"{v}".replace(".", ",") for v in M], weight=["1,234"] * 24)
    assert same(read(tmp_path, settled.to_csv(index=False))).weight[0] == 1.234


@pytest.mark.parametrize(
    "cells, words",
    [
        ({3: "0,5"}, ("'m'", "line 5", "0,5")),
        ({3: "12%"}, ("'m'", "line 5", "12%", "percent sign")),
        ({3: "error"}, ("'m'", "line 5", "error")),
        ({3: "error", 5: "x"}, ("1 more cell",)),
        ({3: ""}, ("'m' is missing in 1 line: 5 (of the file, whose first is 1)",)),
        ({3: "NA", 9: "NaN"}, ("'m' is missing in 2 lines: 5, 11",)),
        ({3: "inf"}, ("'m' is infinite in 1 line: 5",)),
        ({3: "1.5"}, ("'m'", "1.5", "line 5")),
        ({3: "0.4.5"}, ("'m'", "0.4.5", "line 5")),
        ({3: "#DIV/0!"}, ("'m'", "#DIV/0!", "line 5")),
    ],
)
def test_single_cells_are_named(tmp_path, cells, words):
    values = [cells.get(k, str(v)) for k, v in enumerate(M)]
    refused(tmp_path, pd.DataFrame({"y": Y, "m": values}).to_csv(index=False), *words)


def test_lines_are_counted_as_in_the_file(tmp_path):
    lines = plain().to_csv(index=False).splitlines()
    lines[7] = "0,bad"
    refused(tmp_path, "\n".join(lines), "line 8")
    lines.insert(3, "")  # a blank line: data rows are counted then
    refused(tmp_path, "\n".join(lines), "data row 7 (counted from 1 below the header)")


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("rows", [slice(None), slice(1, None), slice(5, 9)])
def test_trailing_separators(tmp_path, count, rows):
    lines = plain().to_csv(index=False).splitlines()
    lines[rows] = [line + "," * count for line in lines[rows]]
    same(read(tmp_path, "\n".join(lines)))
    lines[0], lines[6] = "y,m", lines[6] + "7" + "," * (3 - count)
    refused(tmp_path, "\n".join(lines), "line 7", "fields")


def test_broken_lines_are_named(tmp_path):
    lines = plain().to_csv(index=False).splitlines()
    refused(tmp_path, "\n".join([*lines, "1"]), "'m' is missing in 1 line: 26")
    refused(tmp_path, "\n".join([*lines, "1," * 500]), "line 26", "fields")
    refused(tmp_path, "\n".join([*lines[:5], '1,"0.5', *lines[6:]]), "quotes in pairs")
    refused(tmp_path, "\n".join(lines[1:]), "first line must name the columns")


def test_empty_files(tmp_path):
    refused(tmp_path, "", "empty")
    refused(tmp_path, "\n \n", "blank")
    refused(tmp_path, "y,m\n", "header (y, m) but no rows")
    refused(tmp_path, "y,m", "header (y, m) but no rows")
    refused(tmp_path, gzip.compress(b""), "empty")
    refused(tmp_path, ",,\n,,\n", "must name the columns")


@pytest.mark.parametrize(
    "name", ["NA", "None", "null", "nan", "NaN", "N/A", "007", "true", "empty"]
)
def test_groups_are_called_anything(tmp_path, name):
    frame = plain(group=[name, "b", "c"] * 8)
    assert set(same(read(tmp_path, frame.to_csv(index=False))).group) == {name, "b", "c"}
    refused(
        tmp_path, plain(group=["", "b", "c"] * 8).to_csv(index=False), "'group' is missing in 8"
    )


def zipped(data, *names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "zip", "parquet", "csv.xz", "txt"])
@pytest.mark.parametrize("kind", ["none", "gzip", "bz2", "xz", "zip", "twice"])
def test_compression_is_found_by_content(tmp_path, kind, ending):
    squeeze = {
        "none": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress,
        "zip": lambda b: zipped(b, "a.csv"), "twice": lambda b: gzip.compress(gzip.compress(b)),
    }[kind]  # fmt: skip
    for content in (plain().to_csv(index=False).encode(), plain().to_parquet()):
        same(read(tmp_path, squeeze(content), f"mine.{ending}"))


def test_what_is_no_table_is_named(tmp_path):
    content = plain().to_csv(index=False).encode()
    refused(tmp_path, zipped(content, "a.csv", "b.csv"), "a.csv, b.csv", name="x.zip")
    refused(tmp_path, zipped(content, "[Content_Types].xml", "xl/a"), "workbook", name="x.xlsx")
    refused(tmp_path, zipped(content), "holds 0", name="x.zip")
    refused(tmp_path, gzip.compress(content)[:-30], "damaged", name="x.csv.gz")
    refused(tmp_path, plain().to_parquet()[:-30], "damaged", name="x.parquet")
    refused(tmp_path, b"\x80\x04\x95pickle", "pickle", name="x.pkl")
    refused(tmp_path, plain().to_json(), "JSON", name="x.json")
    refused(tmp_path, b"y,m\n1,0.5\0\n", "NUL")
    refused(tmp_path, bytes(range(256)) * 4, "NUL")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"))
    refused(tmp_path, tar.getvalue(), "tar archive", name="x.tar.gz")


def test_an_expansion_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("probnb.report.files.LARGEST", 100)
    content = plain().to_csv(index=False).encode()
    for squeezed in (gzip.compress(content), zipped(content, "a.csv")):
        refused(tmp_path, squeezed, "more than 100 bytes")


@pytest.mark.parametrize(
    "m",
    [
        [Decimal(str(v)) for v in M],
        pd.array(M, "Float64"),
        pd.Categorical(M),
        pd.array(M, "Float32").astype("Float64").round(3),
        [str(v) for v in M],
        pd.Categorical([str(v) for v in M]),
    ],
    ids=["decimal", "nullable", "categorical", "rounded", "text", "categorical text"],
)
def test_parquet_types(tmp_path, m):
    frame = plain().assign(m=m)
    same(read(tmp_path, frame.to_parquet(), "mine.parquet"))
    same(check_table(frame))
    same(read(tmp_path, frame.assign(y=Y.astype(bool)).to_parquet(), "mine.parquet"))
    same(check_table(frame.assign(y=pd.array(Y, "Int8"))))
    same(check_table(frame.assign(y=[str(y == 1) for y in Y])))


def test_parquet_holds_its_index_and_other_types(tmp_path):
    frame = plain(when=pd.Timestamp("2024-01-01"), flag=True, tags=[["a"]] * 24)
    table = same(read(tmp_path, frame[Y >= 0].to_parquet(), "a.parquet"))
    assert "Not numeric, and left out: when, flag, tags." in table.notes
    shuffled = frame.sample(frac=1, random_state=0)
    table = read(tmp_path, shuffled.to_parquet(), "a.parquet")
    assert list(table.predictions) == ["m"] and "has no name" in " ".join(table.notes)
    table = read(tmp_path, frame.set_index("y").to_parquet(), "a.parquet", columns="m")
    same(table)
    numbered = frame[["y", "m"]].set_axis([0, 1], axis=1)
    same(check_table(numbered, y=0), ["1"])
    same(check_table(numbered, y="0", columns=1), ["1"])
    missing = plain(m=pd.array([None, *M[1:]], "Float64"))
    refused(tmp_path, missing.to_parquet(), "'m' is missing in 1 row: 1", name="a.parquet")
    with pytest.raises(ValueError, match="'m' is missing in 1 row: 0"):
        check_table(missing)


def test_parquet_folders(tmp_path):
    folder = tmp_path / "all.parquet"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"all\.parquet is a folder without Parquet files"):
        read_predictions(folder)
    (folder / "_SUCCESS").write_text("")
    plain()[:10].to_parquet(folder / "part-0.parquet")
    plain(more=0)[10:].to_parquet(folder / "part-1.PARQUET")
    table = same(read_predictions(folder, columns="m"))
    assert table.notes[1] == "The folder all.parquet holds 2 Parquet files."
    plain(group=GROUPS).to_parquet(tmp_path / "hive", partition_cols=["group"])
    table = read_predictions(tmp_path / "hive")
    assert list(table.group) == sorted(GROUPS) and sorted(table.predictions["m"]) == list(M)


def test_feather_is_read(tmp_path):
    plain().to_feather(tmp_path / "a.feather")
    same(read_predictions(tmp_path / "a.feather"))


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "index", "id", "ID", "row_id", "nr", "k"])
@pytest.mark.parametrize("first", [0, 1])
def test_an_index_is_not_judged(tmp_path, name, first):
    frame = plain()
    frame.insert(0, name, np.arange(24) + first)
    for scale in ("auto", "probability", "each"):
        same(read(tmp_path, frame.to_csv(index=False), scale=scale))
    table = check_table(frame.assign(m=np.log(M / (1 - M))), scale="logit")
    assert list(table.predictions) == ["m"]


@pytest.mark.parametrize(
    "name", ["Weight", "weights", "sample_weight", "w", "date", "year", "fold"]
)
def test_other_columns_by_name_are_not_judged_in_silence(name):
    table = same(check_table(plain(**{name: np.linspace(0.1, 0.9, 24)})))
    assert f"Column {name} holds" in table.notes[0]
    named = check_table(plain(**{name: M}), columns=name)
    assert list(named.predictions) == [name]


def test_whole_numbers_are_no_logits():
    frame = plain(age=[20, 30, 40] * 8)
    with pytest.raises(ValueError, match="'age' has 24 of 24 values outside"):
        check_table(frame)
    with pytest.raises(ValueError, match="'age' holds whole numbers"):
        check_table(frame, scale="logit")
    frame = plain(t=1.7e9 + M)
    with pytest.raises(ValueError, match=r"'t' starts with 17.* certainties"):
        check_table(frame, scale="logit")


def test_names_that_stand_twice(tmp_path):
    text = plain().to_csv(index=False)
    refused(tmp_path, text.replace("y,m", "y,y"), "'y' stands twice", "columns 1 and 2")
    twice = plain()[["y", "m", "m"]]
    for settings in ({}, {"columns": "m"}):
        refused(tmp_path, twice.to_csv(index=False), "'m' stands twice", **settings)
        with pytest.raises(ValueError, match="'m' stands twice in the table"):
            check_table(twice, **settings)
    extra = plain(other="a")[["y", "m", "other", "other"]]
    same(read(tmp_path, extra.to_csv(index=False), columns="m"))
    table = same(check_table(plain(**{"y.1": Y})))
    assert "Column y.1 repeats y: it is left out." in table.notes


def test_rounding_is_put_right_and_noted(tmp_path):
    m = M.copy()
    m[3], m[4] = 1.0000001, -1e-9
    table = read(tmp_path, plain(m=m).to_csv(index=False))
    assert table.predictions["m"].tolist()[3:5] == [1, 0]
    assert "outside [0, 1] by rounding in 2 rows (such as 1.0000001)" in " ".join(table.notes)
    m[3] = 1.00001
    refused(tmp_path, plain(m=m).to_csv(index=False), "'m'", "1.00001", "line 5")
    percent = plain(m=100 * M).to_csv(index=False)
    refused(tmp_path, percent, "If these are percentages, divide them by 100")


def test_weights_and_parts(tmp_path):
    weight = np.arange(24.0)
    table = check_table(plain(weight=weight))
    assert len(table.y) == 23 and table.weight.min() == 1 and len(table.predictions) == 23
    assert "1 rows have weight 0 and are left out." in table.notes
    with pytest.raises(ValueError, match=r"'weight' is below 0.* in 1 row: 0"):
        check_table(plain(weight=weight - 1))
    with pytest.raises(ValueError, match="'weight' must have a weight above 0"):
        check_table(plain(weight=0 * weight))
    assert list(check_table(plain(weight=M), weight=None).predictions) == ["m"]
    assert check_table(plain(w=weight + 1), weight="w").weight[0] == 1
    split = plain(split=["train", "test"] * 12, id=range(24))
    table = check_table(split)
    assert list(table.id) == list(range(1, 24, 2))
    assert table.notes[0] == "Only the 12 rows of part test are judged (column split)."
    assert len(check_table(split, part="train").y) == 12
    assert len(check_table(split, split=None).y) == 24
    table = check_table(plain(split=np.arange(24) % 5))
    assert table.notes[0].startswith("No row is of part test (column split has 0, 1, 2, 3, 4)")
    bad = split.assign(m=np.where(np.arange(24) == 5, np.nan, M))
    with pytest.raises(ValueError, match="missing in 1 row: 5"):  # counted in the whole table
        check_table(bad)
    refused(tmp_path, bad.to_csv(index=False), "missing in 1 line: 7")


def test_names_of_columns(tmp_path):
    frame = plain().rename(columns={"m": "a, b", "y": "Y"})
    with pytest.raises(ValueError, match=r"got 'y'\. Did you mean 'Y'"):
        check_table(frame)
    assert list(check_table(frame, columns="a, b", y="Y").predictions) == ["a, b"]
    spaced = plain().to_csv(index=False).replace("y,m", " y , m ")
    same(read(tmp_path, spaced))
    for columns in ([], "", ["m", "m"], 3.5, True, [None]):
        with pytest.raises(ValueError, match="columns"):
            check_table(plain(), columns=columns)
    same(check_table(plain(), columns=("m",)))
    same(check_table(plain(id=range(24)), cluster="id"))
