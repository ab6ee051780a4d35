"""Files of predictions, good and bad."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from probnb.report import check_table, draw_example, read_predictions

from ..made import M, Y, plain


def same(table, columns=("m",)):
    assert list(table.predictions) == list(columns)
    np.testing.assert_array_equal(table.y, Y)
    np.testing.assert_allclose(table.predictions[columns[0]], M, rtol=1e-15)
    return table


@pytest.fixture
def frame():
    return draw_example(400)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_files_of_both_kinds_give_the_same_table(frame, tmp_path, kind):
    path = tmp_path / f"mine.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    table = read_predictions(path)
    assert list(table.predictions) == ["careful", "overconfident", "noisy"]
    np.testing.assert_array_equal(table.y, frame["y"])
    np.testing.assert_allclose(table.predictions, frame[list(table.predictions)], rtol=1e-12)
    np.testing.assert_allclose(table.p, frame["p"], rtol=1e-12)
    assert list(table.group) == list(frame["group"])
    assert table.notes[0] == f"Read 400 rows of mine.{kind}."


@pytest.mark.parametrize("kind", [">i2", "<i2", "Int8", "int8[pyarrow]"])
def test_groups_are_those_whatever_holds_them(kind):
    frame = plain(group=pd.Series(np.arange(24) % 4).astype(kind), cluster=Y)
    table = same(check_table(frame.astype({"cluster": kind, "y": kind})))
    assert (table.groups, table.units) == (4, 2)


def test_logits_are_found_or_told(frame):
    logits = frame.assign(**{c: logit(frame[c]) for c in ("careful", "overconfident", "noisy")})
    for scale in ("auto", "logit", "each"):
        table = check_table(logits, scale=scale)
        np.testing.assert_allclose(table.predictions["noisy"], frame["noisy"])
    assert check_table(logits).notes[-1].startswith("Logit columns (found by their range): careful")
    small = pd.DataFrame({"y": [0, 1], "a": [0.1, 0.9]})
    np.testing.assert_allclose(
        check_table(small, scale="logit").predictions["a"], expit([0.1, 0.9])
    )


def test_mixed_scales_need_a_word(frame):
    mixed = frame.assign(noisy=logit(frame["noisy"]))
    with pytest.raises(ValueError, match=r"careful, overconfident look like prob.* noisy like"):
        check_table(mixed)
    table = check_table(mixed, scale="each")
    np.testing.assert_allclose(table.predictions["noisy"], frame["noisy"])


def test_other_names_and_what_is_left_out(frame, tmp_path):
    other = frame.rename(columns={"y": "died", "group": "ward"}).assign(remark="x")
    other.to_csv(tmp_path / "a.csv", index=False)
    table = read_predictions(
        tmp_path / "a.csv", columns="careful, noisy", y="died", p=None, group="ward"
    )
    assert list(table.predictions) == ["careful", "noisy"]
    assert table.p is None and set(table.group) == {"north", "south"}
    table = check_table(other, y="died", group=None, cluster="ward")
    assert table.units == 2
    assert table.notes[0] == "Not numeric, and left out: remark ('x')."
    assert table.group is None and list(table.predictions)[-1] == "noisy"


@pytest.mark.parametrize("name", ["p", "P", "prob"])
def test_what_is_taken_for_the_truth_is_said(name):
    frame = pd.DataFrame({"y": [0, 1], name: [0.2, 0.7], "m": [0.3, 0.4]})
    told = f"Column {name} is taken for the true probability (else set p to None)."
    assert (told in check_table(frame).notes) == (name == "p")
    assert told in check_table(frame, p=name).notes
    assert told not in check_table(frame, p=None).notes


def test_a_prediction_column_named_p():
    frame = pd.DataFrame({"y": [0, 1], "p": [0.2, 0.7]})
    with pytest.raises(ValueError, match="If 'p' holds predictions, set p to None"):
        check_table(frame)
    assert list(check_table(frame, p=None).predictions) == ["p"]


def test_certain_predictions_are_noted():
    notes = check_table(plain(m=np.where(M > 0.5, 1.0, M))).notes
    assert notes[-1] == "Column m is certain (0 or 1) in 12 rows."


def with_values(frame, column, values):
    frame = frame.astype({column: object})
    for row, value in values.items():
        frame.loc[row, column] = value
    return frame.infer_objects()


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda f: f.drop(columns="y"), "y: the column must be one of .*; got 'y'"),
        (lambda f: with_values(f, "noisy", {3: np.nan, 7: np.nan}), "row 3 .* holds nothing.* 7"),
        (lambda f: with_values(f, "y", {5: np.nan}), "'y' must hold 0 or 1 .* row 5 .* nothing"),
        (lambda f: with_values(f, "group", {5: None}), "'group' must hold a name .* row 5"),
        (lambda f: with_values(f, "y", {5: 2}), "'y' must hold 0 or 1 .* row 5 .*2"),
        (lambda f: f.assign(y=np.where(f["y"] == 1, "yes", "no")), "'y' must hold 0 or 1.*row 0"),
        (lambda f: with_values(f, "noisy", {4: 1.2}), "'noisy' .* 1 of 400 .* first 1.2 in row 4"),
        (lambda f: with_values(f, "noisy", {4: np.inf}), "'noisy' must hold a finite .* row 4"),
        (lambda f: with_values(f, "p", {4: -0.1}), "'p' must hold a probability .* row 4"),
        (lambda f: f.assign(y=1), "'y' must hold both outcomes; all 400 rows, or"),
        (lambda f: f.assign(weight=np.where(f["y"] == 1, 1e9, 1e-9)), "or all their weight, are 1"),
        (lambda f: f[["y", "p", "group"]], "no numeric prediction column beside"),
        (lambda f: f.assign(careful=np.arange(400) * 10 + 5.0), "or logits; 400 of 400"),
        (
            lambda f: f.assign(noisy=f["noisy"] * 100),
            "If these are percentages, divide them by 100",
        ),
        (lambda f: f.assign(noisy=np.log(f["noisy"])), "if log probabilities, exp them"),
        (lambda f: f.assign(age=40), r"'age' .* 400 of 400 values are outside"),
        (
            lambda f: f.assign(weight=np.arange(-1, 399)),
            "'weight' must hold a weight of at least 0",
        ),
        (lambda f: f.assign(weight=0), "'weight' must hold a weight above 0"),
        (lambda f: f[:0], "frame must have at least one row; its columns .*'y'.* have none"),
    ],
)
def test_bad_files_are_refused_by_name(frame, change, match):
    with pytest.raises(ValueError, match=match):
        check_table(change(frame))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"columns": ["carefull"]}, r"got 'carefull'\. Did you mean 'careful'"),
        ({"scale": "odds"}, "scale must be one of auto, probability, logit, each"),
        ({"y": None}, r"y: the column must be one of .*; got 'None'"),
        ({"columns": ["p"]}, "none of another role"),
        ({"columns": ["group"], "group": None}, "column 'group' must hold a finite number"),
        *(({"columns": columns}, "columns") for columns in ([], "", ["y", "y"], 3.5, [None])),
    ],
)
def test_bad_settings(frame, given, words):
    with pytest.raises(ValueError, match=words):
        check_table(frame, **given)


def test_bad_paths(frame, tmp_path):
    with pytest.raises(
        FileNotFoundError, match="predictions must be an existing file or folder; found none at"
    ):
        read_predictions(tmp_path / "none.csv")
    frame.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match="got 'new'"):
        read_predictions(tmp_path / "b.csv", columns="new")


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "index", "id", "ID", "row_id", "nr", "k"])
@pytest.mark.parametrize("first", [0, 1])
def test_an_index_is_not_judged(tmp_path, name, first):
    frame = plain()
    frame.insert(0, name, np.arange(24) + first)
    frame.to_csv(tmp_path / "a.csv", index=False)
    for scale in ("auto", "probability", "each"):
        same(read_predictions(tmp_path / "a.csv", scale=scale))
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
    with pytest.raises(ValueError, match="'age' holds whole numbers"):
        check_table(frame, scale="logit")


def test_log_probabilities_are_not_taken_for_logits():
    frame = plain(m=np.log(M))
    np.testing.assert_allclose(check_table(frame, scale="logit").predictions["m"], M / (1 + M))
    same(check_table(frame.assign(m=np.exp(frame["m"]))))


def test_outcomes_are_not_judged_as_a_model():
    other = 1.0 * (M > 0.4)
    table = same(check_table(plain(label=other)))
    assert "Column label holds only 0 and 1, as outcomes do: it is left out" in table.notes[0]
    assert list(check_table(plain(label=other), "label").predictions) == ["label"]
    only = check_table(pd.DataFrame({"y": Y, "label": other}))
    assert list(only.predictions) == ["label"] and "as outcomes do." in only.notes[0]


def test_ids_that_repeat_are_clusters_and_a_long_table_is_refused():
    frame = pd.concat([plain(id=range(24))] * 2)
    table = check_table(frame)
    assert table.units == 24 and "Column id repeats: 24 ids in 48 rows." in table.notes
    assert any("resampled together" in note for note in table.notes)
    assert check_table(frame.assign(cluster=np.arange(48) // 2)).units == 24
    assert check_table(plain(id=range(24))).units == 24
    with pytest.raises(ValueError, match="each of 24 ids stands once for each of 2 values of 'mod"):
        check_table(frame.assign(model=["old"] * 24 + ["new"] * 24))
    note = check_table(plain(patient=np.arange(24) // 2)).notes[0]
    assert "to use it set cluster='patient'" in note


def test_names_that_stand_twice():
    twice = plain()[["y", "m", "m"]]
    for settings in ({}, {"columns": "m"}):
        with pytest.raises(ValueError, match="'m' stands twice in the table"):
            check_table(twice, **settings)
    same(check_table(plain(other="a")[["y", "m", "other", "other"]], columns="m"))
    table = same(check_table(plain(**{"y.1": Y})))
    assert "Column y.1 repeats y: it is left out." in table.notes


def test_rounding_is_put_right_and_noted():
    m = M.copy()
    m[3], m[4] = 1.0000001, -1e-9
    table = check_table(plain(m=m))
    assert table.predictions["m"].tolist()[3:5] == [1, 0]
    assert "2 rows outside [0, 1] by rounding count as 0 or 1." in " ".join(table.notes)
    m[3] = 1.00001
    with pytest.raises(ValueError, match=r"'m' .* 1.00001 in row 3"):
        check_table(plain(m=m))


def test_weights_and_parts():
    weight = np.arange(24.0)
    table = check_table(plain(weight=weight))
    assert len(table.y) == 23 and table.weight.min() == 1 and len(table.predictions) == 23
    assert "Rows are weighted by column weight; 1 have weight 0 and are left out." in table.notes
    assert list(check_table(plain(weight=M), weight=None).predictions) == ["m"]
    assert check_table(plain(w=weight + 1), weight="w").weight[0] == 1
    split = plain(split=["train", "test"] * 12, id=range(24))
    table = check_table(split)
    assert list(table.id) == list(range(1, 24, 2))
    assert table.notes[0] == "Only the 12 rows of part test are judged (column split)."
    assert len(check_table(split, part="train").y) == 12
    assert len(check_table(split, split=None).y) == 24
    table = check_table(plain(split=np.arange(24) % 5))
    assert table.notes[0].startswith("No row is of part test (column split)")
    bad = split.assign(m=np.where(np.arange(24) == 5, np.nan, M))
    with pytest.raises(ValueError, match=r"row 5 .* holds nothing"):  # counted in the whole table
        check_table(bad)


TESTS = """test, Testing, holdout, hold-out, Test set, held_out, eval, Evaluation, tests,
 TEST ,test_images, Test sets, test part"""


@pytest.mark.parametrize("word", TESTS.split(","))
def test_the_test_part_by_any_of_its_words(word):
    table = check_table(plain(split=["train", word] * 12))
    assert len(table.y) == 12 and table.notes[0].startswith("Only the 12 rows of part test")


@pytest.mark.parametrize(
    ("split", "part", "rows"),
    [
        (["test", "Testing", "train"] * 8, "test", 16),
        (["test", "eval", "train"] * 8, "test", 8),  # beside a test, an eval validates
        (["test", "eval", "train"] * 8, "val", 8),
        (["test", "eval", "train"] * 8, "eval", 8),  # as it is spelt
        (["test", "holdout", "train"] * 8, "holdout", 8),
        (["valid", "dev", "train"] * 8, "val", 16),
        ([0, 1, 2] * 8, 1, 8),
        (["A", "b", "c"] * 8, "a", 8),
    ],
)
def test_the_part_that_is_asked_for(split, part, rows):
    assert len(check_table(plain(split=sorted(split)), part=part).y) == rows


def test_a_division_without_the_part_is_told_with_its_names():
    table = check_table(plain(split=["train", "val"] * 12))
    assert len(table.y) == 24
    assert table.notes[0].endswith("(column split), but of train, val: all rows are judged.")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"memory": "500MB"}, "memory and exact_auc are of an engine"),
        ({"exact_auc": False}, "memory and exact_auc are of an engine"),
        ({"engine": "duckdb"}, "path must be given with an engine"),
    ],
)
def test_what_is_of_an_engine_is_not_dropped(given, words):
    with pytest.raises(ValueError, match=words):
        read_predictions(None, **given)


def test_names_of_columns():
    frame = plain().rename(columns={"m": "a, b", "y": "Y"})
    assert list(check_table(frame, columns="a, b", y="Y").predictions) == ["a, b"]
    same(check_table(plain(), columns=("m",)))
    same(check_table(plain(id=range(24)), cluster="id"))


def test_example_is_drawn_by_code_and_repeats():
    a, b = draw_example(50, seed=1), draw_example(50, seed=1)
    pd.testing.assert_frame_equal(a, b)
    assert not a.equals(draw_example(50, seed=2))
    with pytest.raises(ValueError, match="n must be an integer of at least 1; got 0"):
        draw_example(0)
