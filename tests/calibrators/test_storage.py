"""Fitted calibrators survive a file bit for bit; a damaged file does not pass."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from probnb.calibrators import (
    CALIBRATORS,
    DirichletCalibration,
    MixNMatch,
    PlattScaling,
    load,
    save,
)


def drawn():
    rng = np.random.default_rng(0)
    s = rng.normal(size=200)
    return s, (rng.random(200) < expit(s)) * 1


KINDS = [
    *CALIBRATORS.values(),
    lambda: MixNMatch(isotonic=False),
    lambda: DirichletCalibration(mu=0.1),
]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize(
    "labels", [[0, 1], [0.0, 1.0], [False, True], ["no", "ärger"], np.array(["a", "b"], object)]
)
def test_predictions_are_equal_bit_for_bit(make, labels, tmp_path):
    s, y = drawn()
    X = np.column_stack([-s / 3, s])
    fitted = make().fit(X, np.asarray(labels)[y])
    save(tmp_path / "a" / "c.json", fitted)
    again = load(tmp_path / "a" / "c.json")
    grid = np.random.default_rng(1).normal(size=(500, 2)) * 5
    np.testing.assert_array_equal(again.predict_proba(grid), fitted.predict_proba(grid))
    np.testing.assert_array_equal(again.predict(grid), fitted.predict(grid))
    assert type(again) is type(fitted) and again.get_params() == fitted.get_params()
    assert again.classes_.dtype == fitted.classes_.dtype
    clone(again).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        again.predict_proba(s)
    assert [f.name for f in (tmp_path / "a").iterdir()] == ["c.json"]


def test_names_of_columns_are_kept(tmp_path):
    s, y = drawn()
    fitted = PlattScaling().fit(pd.DataFrame({"logit": s}), y)
    save(tmp_path / "c", fitted)
    assert load(tmp_path / "c").feature_names_in_.tolist() == ["logit"]


def test_what_is_no_fitted_calibrator_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(tmp_path / "c", PlattScaling())
    with pytest.raises(ValueError, match=r"must be one of TemperatureScaling, .*got Log"):
        save(tmp_path / "c", LogisticRegression())
    s, y = drawn()
    odd = DirichletCalibration(mu=0.1, random_state=np.random.RandomState(0)).fit(s, y)
    with pytest.raises(ValueError, match="must hold numbers or text"):
        save(tmp_path / "c", odd)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_refused(tmp_path):
    s, y = drawn()
    path = tmp_path / "c.json"
    save(path, PlattScaling().fit(s, y))
    content = path.read_bytes()
    for cut in (0, 1, 40, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match="damaged or something else"):
            load(path)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 60):
        if content[place : place + 1].isspace():
            continue
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"^path must"):
            load(path)
    for other in (b"[]", b"3", b"{}", b'{"sha256": 1}', b"\xff\xfe", b"null"):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="damaged or something else"):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_another_version_is_named(tmp_path):
    s, y = drawn()
    path = tmp_path / "c.json"
    save(path, PlattScaling().fit(s, y))
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"version": 3}))
    with pytest.raises(ValueError, match="not of version 2"):
        load(path)
