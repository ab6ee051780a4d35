"""Outcomes, probabilities and weights of any kind: read as they are, or refused by name."""

import os
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from probnb.calibrators import PlattScaling
from probnb.metrics import bootstrap, brier, evaluate_outcomes
from probnb.paths import check_output
from probnb.validation import (
    check_choice,
    check_choices,
    check_integer,
    check_number,
    check_outcomes,
    check_probabilities,
    check_vector,
    check_weights,
)
from probnb_book.scenarios import SCENARIOS

PROBABILITIES = {
    "list": [0.25, 0.5, 1],
    "tuple": (0.25, 0.5, 1),
    "float32": np.array([0.25, 0.5, 1], np.float32),
    "float16": np.array([0.25, 0.5, 1], np.float16),
    "longdouble": np.array([0.25, 0.5, 1], np.longdouble),
    "big endian": np.array([0.25, 0.5, 1], ">f8"),
    "Decimal": [Decimal("0.25"), Decimal("0.5"), Decimal(1)],
    "Fraction": [Fraction(1, 4), Fraction(1, 2), Fraction(1)],
    "object": np.array([0.25, np.float32(0.5), 1], object),
    "Series": pd.Series([0.25, 0.5, 1], index=[7, 7, 9]),
    "nullable": pd.Series([0.25, 0.5, 1], dtype="Float64"),
    "arrow": pd.Series([0.25, 0.5, 1], dtype="double[pyarrow]"),
    "categorical": pd.Series([0.25, 0.5, 1]).astype("category"),
    "tensor": torch.tensor([0.25, 0.5, 1]),
    "with gradient": torch.tensor([0.25, 0.5, 1], requires_grad=True),
    "bfloat16": torch.tensor([0.25, 0.5, 1], dtype=torch.bfloat16),
    "empty mask": np.ma.array([0.25, 0.5, 1], mask=[0, 0, 0]),
    "no mask": np.ma.array([0.25, 0.5, 1]),
    "not contiguous": np.array([0.25, 9, 0.5, 9, 1, 9])[::2],
}

OUTCOMES = {
    "bool": [True, False, True],
    "numpy bool": np.array([True, False, True]),
    "object bool": np.array([True, np.False_, 1], object),
    "nullable bool": pd.Series([True, False, True], dtype="boolean"),
    "nullable int": pd.Series([1, 0, 1], dtype="Int8"),
    "uint64": np.array([1, 0, 1], np.uint64),
    "float32": np.array([1, 0, 1], np.float32),
    "tensor": torch.tensor([True, False, True]),
    "negative zero": [1.0, -0.0, 1.0],
}


@pytest.mark.parametrize("kind", [*PROBABILITIES, *OUTCOMES])
def test_vectors_of_any_kind_are_read(kind):
    for values, check, expected in (
        (PROBABILITIES, check_probabilities, [0.25, 0.5, 1]),
        (OUTCOMES, check_outcomes, [1, 0, 1]),
    ):
        if kind in values:
            found = check(values[kind])
            assert found.dtype == np.float64 and type(found) is np.ndarray
            np.testing.assert_array_equal(found, expected)


MASKED = np.ma.array([0.1, 0.8, 0.3], mask=[0, 0, 1])
REFUSED = {
    "masked": (MASKED, "y_prob must have every value; row 2 is masked"),
    "masked 2-D": (np.ma.array([[1, 2]], mask=[[0, 1]]), "row 0 is masked"),
    "hidden behind a mask": (np.ma.array([0.1, 7], mask=[0, 1]), "row 1 is masked"),
    "NA": (pd.Series([0.5, None], dtype="Float64"), "in row 1|row 1 is missing"),
    "arrow NA": (pd.Series([0.5, None], dtype="double[pyarrow]"), "in row 1|row 1 is missing"),
    "None": ([0.5, None], r"every value; row 1 is missing \(None\)"),
    "NaT": (np.array([0.5, pd.NaT], object), "row 1 is missing"),
    "nan": ([0.5, np.nan], r"probabilities in \[0, 1\]; got nan in row 1"),
    "Decimal nan": ([0.5, Decimal("nan")], "nan|NaN"),
    "str": (["0.5", "0.7"], "y_prob must be numeric; got <U3 values, 0.5 in row 0"),
    "bytes": ([b"0.5"], "y_prob must be numeric"),
    "a str in an object": (np.array([0.5, "0.7"], object), "got str '0.7' in row 1"),
    "string dtype": (pd.Series(["0.5"], dtype="string"), "must be numeric; got"),
    "complex": (np.array([0.5, 0.1j]), "y_prob must be numeric; got complex128"),
    "a complex in an object": (np.array([0.5, 0.1j], object), "got complex 0.1j in row 1"),
    "dates": (np.array(["2020-01-01"], "datetime64[D]"), "must be numeric; got datetime64"),
    "a list in an object": (np.array([0.5, [0.1]], object), "got list"),
    "ragged": ([[0.5], [0.1, 0.2]], "y_prob must be numeric"),
    "one number": (0.5, "one-dimensional; got float"),
    "dict": ({0: 0.5}, "one-dimensional; got dict"),
    "None itself": (None, "one-dimensional; got NoneType"),
    "2-D": (np.ones((2, 1)), r"one-dimensional; got shape \(2, 1\)"),
    "DataFrame": (pd.DataFrame({"a": [0.5]}), r"one-dimensional; got shape \(1, 1\)"),
    "empty": ([], "at least one row; got none"),
    "inf": ([0.1, np.inf], "got inf in row 1"),
    "huge": ([0.5, 10**400], "numeric"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_vector_of_probabilities_is_refused(kind):
    value, message = REFUSED[kind]
    with pytest.raises(ValueError, match=message) as error:
        check_probabilities(value)
    assert "y_prob" in str(error.value)


ROWS = np.array([[0.25, 0.75], [0.5, 0.5], [1, 0]] * 4)
DOORS = {
    "groups": lambda x: bootstrap([0, 1, 1] * 4, {"a": ROWS[:, 0]}, groups=x[:, 0], replicates=9),
    "y_prob": lambda x: evaluate_outcomes([0, 1, 1] * 4, x),
    "y_true": lambda x: evaluate_outcomes((x > 0.6)[:, 0] + 0 * x[:, 0], ROWS),
    "X": lambda x: PlattScaling().fit(x, [0, 1, 1] * 4).coef_,
    "y": lambda x: PlattScaling().fit(ROWS, (x > 0.6)[:, 0] + 0 * x[:, 0]).coef_,
}


@pytest.mark.parametrize("door", DOORS)
def test_arrays_of_any_kind_are_read_alike_at_every_door(door):
    """A mask over groups was not seen; some tensors raised errors of other libraries."""
    tensor = torch.tensor(ROWS, requires_grad=True)
    for kind in (
        tensor,
        tensor.bfloat16(),
        np.ma.array(ROWS),
        ROWS.astype(">f4"),
        ROWS[::-1][::-1],
    ):
        assert str(DOORS[door](kind)) == str(DOORS[door](ROWS))
    with pytest.raises(ValueError, match=f"{door} must have every value; row 1 is masked"):
        DOORS[door](np.ma.array(ROWS, mask=ROWS == 0.5))


P, Y = check_probabilities, check_outcomes
PLAIN = {P: (1.0000001, 1.1, Decimal("1.00000000010"), 1 + 2**-52, 7, -1e-300)}
PLAIN |= {Y: (2, -1, 1.0000001, 2**63, Decimal("0.5"), np.nan)}
SINGLE = (1.0000001, np.float32), (1.1, np.float32), (1.1, np.float16), (-3, np.int8)
SHOWN = [
    *((check, [value], str(value)) for check, values in PLAIN.items() for value in values),
    *((P, np.array([value], kind), str(value)) for value, kind in SINGLE),
    (P, pd.Series([1.0000001], dtype="Float32"), "1.0000001"),
    (P, torch.tensor([1.1]), "1.1"),
    (Y, np.array([0.1], np.float32), "0.1"),
]


@pytest.mark.parametrize(("check", "value", "shown"), SHOWN)
def test_messages_show_the_digits_that_a_value_has(check, value, shown):
    rule = "y_true must hold only 0 and 1" if check is Y else "y_prob must hold prob.* in .0, 1."
    hint = " For more than two outcomes there is probnb.metrics.evaluate_outcomes."
    with pytest.raises(ValueError, match=rf"^{rule}; got {re.escape(shown)} in row 0\.") as error:
        check(value)
    assert str(error.value).endswith(hint) == (check is Y and shown == "2")


def test_masked_outcomes_and_weights_are_refused():
    with pytest.raises(ValueError, match="y_true must have every value; row 2 is masked"):
        brier(np.ma.array([0, 1, 1], mask=[0, 0, 1]), [0.1, 0.8, 0.3])
    with pytest.raises(ValueError, match="weights must have every value"):
        brier([0, 1, 1], [0.1, 0.8, 0.3], weights=MASKED)


def test_weights_and_labels():
    np.testing.assert_array_equal(check_weights(pd.Series([1, 2], dtype="Int64")), [1, 2])
    for bad in ([1, None], ["1", "2"], [1, np.inf], [-1, 2], [0, 0]):
        with pytest.raises(ValueError, match=r"^weights must"):
            check_weights(bad)
    assert list(check_vector(pd.Series(["a", "b"], dtype="string"), "groups")) == ["a", "b"]
    for missing in (
        [1, np.nan],
        ["a", None],
        ["a", np.nan],
        pd.Series([1, None], dtype="Int64"),
        np.array(["2020", "NaT"], "datetime64[Y]"),
        np.ma.array([1, 2], mask=[0, 1]),
    ):
        with pytest.raises(ValueError, match=r"^groups must"):
            check_vector(missing, "groups")


INTEGER, NUMBER = "an integer of at least 1", r"a finite number in \[0, 1\]"


@pytest.mark.parametrize(
    ("check", "rule", "wrong"),
    [
        (check_integer, INTEGER, [True, 2.5, "3", None, 0, Decimal(3), np.bool_(True), [3]]),
        (
            lambda value, name: check_number(value, name, 0, 1),
            NUMBER,
            [True, "0.5", None, np.nan, np.inf, 10**400, 2, 1j, [0.5]],
        ),
    ],
)
def test_settings_that_are_no_numbers_are_refused(check, rule, wrong):
    for value in wrong:
        with pytest.raises(ValueError, match=f"level must be {rule}; got"):
            check(value, "level")
    assert check(np.int8(1), "level") == check(1, "level") == 1


@pytest.mark.parametrize("given", ["discrete, linear", ["discrete", "linear"], "linear discrete"])
def test_several_names_come_in_the_order_of_what_is_allowed(given):
    with pytest.raises(ValueError, match="Did you mean 'brier'"):
        check_choice("briar", ["nll", "brier"], "metric")
    assert check_choices(given, SCENARIOS, "scenarios") == ["linear", "discrete"]
    assert check_choices("", SCENARIOS, "scenarios") == []
    with pytest.raises(ValueError, match=r"scenarios must be one of .* Did you mean 'linear'"):
        check_choices("linaer", SCENARIOS, "scenarios")
    with pytest.raises(ValueError, match=r"scenarios must be one of .* got 5"):
        check_choices(5, SCENARIOS, "scenarios")


def test_where_nothing_can_be_written_is_said_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    for good in ("p.csv", "new/folder/p.csv", "file", tmp_path / "link" / "p.csv"):
        assert check_output(good, "output") == Path(good)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_output("~/p.csv") == tmp_path / "p.csv"
    for folder in (".", "..", tmp_path, tmp_path / "link", "~"):
        with pytest.raises(ValueError, match=r"figure must be a file; .* is a folder"):
            check_output(folder, "figure")
    for below in ("file/p.csv", tmp_path / "file" / "deep" / "p.csv"):
        with pytest.raises(
            ValueError, match=r"output must be a file in a folder; .*file' is no fold"
        ):
            check_output(below)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(ValueError, match="cannot be written to"):
        check_output("p.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]
