"""Files of predictions, good and bad."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from probnb.report.example import draw_example
from probnb.report.read import check_table, read_predictions


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


def test_logits_are_found_or_told(frame):
    logits = frame.assign(**{c: logit(frame[c]) for c in ("careful", "overconfident", "noisy")})
    for scale in ("auto", "logit", "each"):
        table = check_table(logits, scale=scale)
        np.testing.assert_allclose(table.predictions["noisy"], frame["noisy"])
    assert "hold logits (found by their range)" in check_table(logits).notes[-1]
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
    assert table.p is None and table.group.nunique() == 2
    table = check_table(other, y="died", group=None, cluster="ward")
    assert table.notes[0] == "Not numeric, and left out: remark."
    assert table.group is None and list(table.predictions)[-1] == "noisy"


def test_a_prediction_column_named_p():
    frame = pd.DataFrame({"y": [0, 1], "p": [0.2, 0.7]})
    with pytest.raises(ValueError, match="If 'p' holds predictions, set p to None"):
        check_table(frame)
    assert list(check_table(frame, p=None).predictions) == ["p"]


def test_certain_predictions_and_many_groups_are_noted():
    frame = pd.DataFrame({"y": [0, 1] * 15, "a": [0.0, 1.0] * 15, "group": range(30)})
    notes = check_table(frame).notes
    assert notes[0] == "Of 30 groups, the report shows the 20 largest."
    assert "certain (0 or 1) in 30 rows" in notes[-1]


def with_values(frame, column, values):
    frame = frame.astype({column: object})
    for row, value in values.items():
        frame.loc[row, column] = value
    return frame.infer_objects()


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda f: f.drop(columns="y"), "y: the column must be one of .*; got 'y'"),
        (lambda f: with_values(f, "noisy", {3: np.nan, 7: np.nan}), "missing in 2 rows: 3, 7"),
        (lambda f: with_values(f, "y", {5: np.nan}), "'y' is missing in 1 row: 5"),
        (lambda f: with_values(f, "group", {5: None}), "'group' is missing in 1 row: 5"),
        (lambda f: with_values(f, "y", {5: 2}), r"'y' must hold only 0 and 1; got .*2.* in row 5"),
        (lambda f: f.assign(y=np.where(f["y"] == 1, "yes", "no")), "'y' must be numeric"),
        (lambda f: with_values(f, "noisy", {4: 1.2}), "'noisy' has 1 of 400 .* first 1.2 in row 4"),
        (lambda f: with_values(f, "noisy", {4: np.inf}), "'noisy' is infinite in 1 row: 4"),
        (lambda f: with_values(f, "p", {4: -0.1}), r"'p' must hold probabilities .* in row 4"),
        (lambda f: f.assign(y=1), "'y' must hold both outcomes; all 400 rows are 1"),
        (lambda f: f[["y", "p", "group"]], "no numeric prediction column beside"),
        (lambda f: f.iloc[:0], "at least one row"),
        (lambda f: f.assign(careful=np.arange(400) * 10), "too many for probabilities, and unlike"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_by_name(frame, change, match):
    with pytest.raises(ValueError, match=match):
        check_table(change(frame))


def test_bad_settings_and_paths(frame, tmp_path):
    with pytest.raises(ValueError, match=r"got 'carefull'\. Did you mean 'careful'"):
        check_table(frame, columns=["carefull"])
    with pytest.raises(ValueError, match="scale must be one of auto, probability, logit, each"):
        check_table(frame, scale="odds")
    with pytest.raises(ValueError, match="columns must differ from the other roles; got 'p'"):
        check_table(frame, columns=["p"])
    with pytest.raises(ValueError, match="column 'group' must be numeric"):
        check_table(frame, columns=["group"], group=None)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        check_table(frame.assign(noisy=frame["noisy"] * 3), scale="probability")
    with pytest.raises(
        FileNotFoundError, match="predictions must be an existing file or folder; found none at"
    ):
        read_predictions(tmp_path / "none.csv")
    frame.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match="got 'new'"):
        read_predictions(tmp_path / "b.csv", columns="new")


def test_paths_from_the_book_and_from_the_project(frame, tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    frame.to_csv(tmp_path / "mine.csv", index=False)
    for folder in (tmp_path, tmp_path / "book"):
        monkeypatch.chdir(folder)
        assert len(read_predictions("mine.csv").y) == 400


def test_example_is_drawn_by_code_and_repeats():
    a, b = draw_example(50, seed=1), draw_example(50, seed=1)
    pd.testing.assert_frame_equal(a, b)
    assert not a.equals(draw_example(50, seed=2))
    with pytest.raises(ValueError, match="n must be an integer of at least 1; got 0"):
        draw_example(0)
