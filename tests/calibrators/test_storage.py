"""Fitted calibrators survive JSON bit for bit."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from probnb.calibrators import CALIBRATORS, DirichletCalibration, MixNMatch, from_dict, to_dict

KINDS = [
    *CALIBRATORS.values(),
    lambda: MixNMatch(isotonic=True),
    lambda: DirichletCalibration(mu=0.1),
]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], ["no", "ärger"]])
def test_predictions_are_equal_bit_for_bit(make, labels):
    rng = np.random.default_rng(0)
    s = rng.normal(size=200)
    y = (rng.random(200) < expit(s)) * 1
    X = np.column_stack([-s / 3, s])
    fitted = make().fit(X, np.asarray(labels)[y])
    again = from_dict(json.loads(json.dumps(to_dict(fitted))))
    grid = rng.normal(size=(500, 2)) * 5
    np.testing.assert_array_equal(again.predict_proba(grid), fitted.predict_proba(grid))
    np.testing.assert_array_equal(again.predict(grid), fitted.predict(grid))
    assert type(again) is type(fitted)
    clone(again).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        again.predict_proba(s)
