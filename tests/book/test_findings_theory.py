"""Guards of the sentences of book/theory: what the page recorded, on every machine it was built as.

The page is exact but for rounding, so that one stored run for each instruction set says whether a
sentence hangs on the processor.
"""

import json

import numpy as np
import pandas as pd
import pytest

from probnb_book import storage
from probnb_book.theory import separability_threshold

from .pages import RESULTS

FOUND = storage.read(RESULTS, "machines", "findings")
STORED = {
    run.removeprefix("findings "): dict(zip(of["name"], of["value"].map(json.loads)))
    for run, of in FOUND.query("page == 'theory'").groupby("run")
}
CAPES = ["CaPE (bin)", "CaPE (kernel)"]
RIVALS = ["ridge", "early stop from 0"]


def test_at_least_three_instruction_sets_are_stored():
    assert {"SSE4.1", "AVX2", "this one, two threads"} <= set(STORED)


@pytest.fixture(params=sorted(STORED))
def found(request):
    return STORED[request.param]


def table(found, name):
    stored = pd.DataFrame(found[name])
    return stored.set_index(stored.columns[0])


def test_machines_differ_by_rounding_alone():
    errors = np.array([stored["mean_error"] for stored in STORED.values()])
    assert np.ptp(errors, axis=0).max() < 1e-9


def test_early_learning(found):
    mean = np.array(found["mean_error"])
    assert mean.argmin() == 4 and (mean[1:5] < mean[:4]).all()  # t = 1.6
    assert [round(mean[k], 1) for k in (0, 4, -1)] == [8.8, 6.9, 13.0]


def test_lemmas(found):
    slopes = pd.DataFrame(found["slopes"])
    assert (slopes["slope"] < 0).all() and len(slopes) == 12
    most = slopes[slopes["n"] == 400]
    assert ((most["slope"] - most["limit"]) / most["error"]).abs().max() < 1
    # without the factor of 2
    assert ((most["slope"] - most["limit"] / 2) / most["error"]).abs().between(29, 51).all()
    gap = table(found, "gaps")
    assert (gap.iloc[1:].to_numpy() / gap.iloc[:-1].to_numpy() - 2 < 0.2).all()


def test_memorisation(found):
    late = found["late"]
    assert found["separable"] == 8 and abs(separability_threshold(1.0) - 0.44) < 0.005
    assert late["norm"] > 100 and late["angle"] < 0.03 and abs(late["log10 time"] - 28) < 1
    assert round(late["near 0 or 1 (%)"]) == 95


def test_threshold(found):
    formula = found["threshold"]
    assert np.abs(np.subtract(found["simulated"], formula)).max() < 0.03
    assert (round(formula[0], 2), round(formula[-1], 2)) == (0.5, 0.22)


def test_appendix(found):
    recorded, finite, fresh = (found["appendix"][k] for k in ("recorded", "finite", "fresh"))
    best = int(np.argmin(finite))
    assert [round(finite[0], 1), round(finite[best], 1), round(finite[-1])] == [9.1, 7.3, 19]
    assert recorded[best] == 30 and abs(fresh[-1] - 1.2) < 0.1


def test_parts(found):
    calibration, grouping = (np.array(found["parts"][k]) for k in ("calibration", "grouping"))
    total = calibration + grouping
    at = total.argmin()
    assert round(total[-1] - total[at]) == 13 and grouping[-1] <= grouping[at]
    assert abs(grouping[-1] - 4.0) < 0.05 and abs(total[at] - 6.9) < 0.05


def test_methods_of_one_model(found):
    shown = table(found, "methods")
    assert (shown.loc[CAPES, "kept its start (%)"] == 100).all()
    error = shown["MSE x 100"]
    assert (error[RIVALS] < min(0.6 * error["early stop"], error["oracle"])).all()
    assert all(found["slower"]) and len(found["slower"]) == 2
    assert all(last > 1.5 * first for first, last in (found["after"][name] for name in CAPES))


def test_grid(found):
    counts = table(found, "counts")
    against = [f"{name}, against {rival}" for name in CAPES for rival in ("early stop", "oracle")]
    assert (counts.loc[against, "better"] == 0).all()
    rows = counts.loc[[f"{rival}, against early stop" for rival in RIVALS]]
    assert (rows[["better", "worse", "cells"]] == [27, 0, 35]).all(axis=None)
    assert rows["mean change (%)"].between(-30, -20, inclusive="neither").all()


def test_settings(found):
    settings = found["settings"]
    assert settings["clear"] == len(settings["gains"]) == 7
    assert min(settings["gains"]) > -11 and max(settings["gains"]) < -0.5
    assert found["beyond_oracle"] > -2 and found["behind_ridge"] > 5


def test_steps(found):
    share, coarse = table(found, "share"), table(found, "coarse")
    assert share["confidence"].between(95.5, 98.5).all()
    assert share["direction"].between(30, 38).all()
    assert (coarse.loc[CAPES, "confidence"] < 0).all()
    assert (coarse.loc[CAPES, "direction"].abs() < coarse.loc[CAPES, "standard error"]).all()
