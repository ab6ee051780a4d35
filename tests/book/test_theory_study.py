"""The comparisons of the page on theory, apart from its figures."""

import numpy as np
import pandas as pd
import pytest

from probnb_book.theory import Model, draw
from probnb_book.theory.compare import Protocol, against_baseline, cape_variants, step_table
from probnb_book.theory.descent import record_at, sgd

SMALL = Model(n=50, kappa=1.0, replicates=3, seed=0)
QUICK = Protocol(horizon=15.0, cape_horizon=3.0, neighbours=15, penalties=(1.0, 0.2))


def test_appendix_b_figures():
    """On the outcomes the error falls and then rises; on outcomes drawn afresh it ends lower."""
    sample, record = draw(Model(n=60, replicates=2)), record_at(3000)
    observed, resampled = (
        sgd(sample, 0.05, 3000, labels, batch=20, record=record, seed=0).mse.mean(axis=0)
        for labels in ("observed", "resampled")
    )
    assert observed[0] == resampled[0] and 0 < observed.argmin() < len(observed) - 1
    assert resampled[-1] < observed.min() < observed[-1]


def test_against_baseline_by_hand():
    frame = pd.DataFrame(
        {
            "kappa": 1.0,
            "gamma": 2.0,
            "replicate": [0, 1, 2, 0, 1, 2],
            "method": ["early stop"] * 3 + ["ridge"] * 3,
            "mse": [0.10, 0.12, 0.14, 0.09, 0.11, 0.10],
        }
    )
    cell = against_baseline(frame, "ridge").iloc[0]
    difference = np.array([-0.01, -0.01, -0.04])
    assert cell.change == pytest.approx(100 * difference.mean() / 0.12)
    assert cell.z == pytest.approx(difference.mean() / (difference.std(ddof=1) / 3**0.5))
    assert against_baseline(frame, "early stop").iloc[0].z == 0


def test_cape_variants_and_steps():
    table = cape_variants(SMALL, {"a": {}, "b": {"every": 1}}, QUICK)
    assert list(table["variant"].unique()) == ["a", "b"]
    steps = step_table(SMALL, QUICK)
    assert list(steps.index) == ["cross entropy", "CaPE (bin)", "CaPE (kernel)"]
    assert (steps.length >= steps.confidence.abs() - 1e-12).all()
    # targets coarser than the predictions shrink the estimate
    coarse = step_table(SMALL, Protocol(**{**vars(QUICK), "bins": 1, "sigma": 10.0}))
    assert coarse.loc["CaPE (bin)", "confidence"] < 0
    # with a bin for each example CaPE trains on the outcomes
    one = step_table(SMALL, Protocol(**{**vars(QUICK), "bins": SMALL.n}))
    np.testing.assert_allclose(one.loc["CaPE (bin)"], one.loc["cross entropy"], atol=1e-10)


@pytest.mark.parametrize(("kappa", "share"), [(0.3, 0.2), (0.1, 0.1)])
def test_the_turn_that_is_left_grows_with_the_dimension(kappa, share):
    """ "A fifth at 0.3 and a tenth at 0.1", of what a step towards the outcomes turns."""
    turn = step_table(Model(kappa=kappa, replicates=100))["direction"]
    assert turn["CaPE (bin)"] / turn["cross entropy"] == pytest.approx(share, abs=0.05)
