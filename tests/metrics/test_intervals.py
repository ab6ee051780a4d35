import numpy as np
import pytest
from scipy.stats import binomtest

from probnb.metrics.intervals import proportion_interval


def test_five_zeros_leave_an_upper_bound_above_zero():
    low, high = proportion_interval([0], [5])
    assert low[0] == 0
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 5))  # closed form for no ones


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_clopper_pearson_against_scipy(level):
    for count in (1, 7, 40):
        ones = np.arange(count + 1)
        low, high = proportion_interval(ones, np.full(count + 1, count), level)
        peers = [binomtest(int(k), count).proportion_ci(level, "exact") for k in ones]
        np.testing.assert_allclose(low, [ci.low for ci in peers], atol=1e-12)
        np.testing.assert_allclose(high, [ci.high for ci in peers], atol=1e-12)


@pytest.mark.parametrize(
    "args, match",
    [
        (([6], [5]), "got 6 of 5"),
        (([-1], [5]), "got -1 of 5"),
        (([0], [0]), "got 0 of 0"),
        (([0], [5], 1.0), "level must be"),
    ],
)
def test_bad_input(args, match):
    with pytest.raises(ValueError, match=match):
        proportion_interval(*args)
