import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probnb.training.targets import draw_outcomes
from probnb_book.scenarios import SCENARIOS, probability

AGES = np.arange(0, 117)


def test_the_papers_five_in_its_order():
    assert list(SCENARIOS) == ["linear", "sigmoid", "centered", "skewed", "discrete"]


@pytest.mark.parametrize(
    ("scenario", "age", "p"),
    [
        ("linear", [0, 29, 100, 116], [0, 0.29, 1, 1]),
        ("sigmoid", [29, 29 + 4 * np.log(3), 29 - 4 * np.log(3)], [0.5, 0.75, 0.25]),
        ("centered", [0, 45, 90], [0.35, 0.5, 0.65]),
        ("skewed", [0, 50, 116], [0, 0.2, 0.464]),
        (
            "discrete",
            [0, 20, 21, 40, 41, 60, 61, 80, 81, 116],
            [0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 0.7, 0.7, 0.9, 0.9],
        ),
    ],
)
def test_closed_forms(scenario, age, p):
    np.testing.assert_allclose(probability(age, scenario), p, atol=1e-12)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_age_has_a_probability_and_none_falls_with_age(scenario):
    p = probability(AGES, scenario)
    assert p.dtype == np.float64 and ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) >= 0).all() and p[-1] > p[0]


def test_shape_is_kept():
    assert probability([[1, 2], [3, 4]], "discrete").shape == (2, 2)
    assert probability(50, "linear") == 0.5


@pytest.mark.parametrize("age", [-1, 151, np.nan, np.inf])
def test_impossible_ages_are_refused(age):
    with pytest.raises(ValueError, match=r"age must be in \[0, 150\]"):
        probability([30, age], "linear")


@given(st.floats(0, 1), st.integers(0, 2**32))
def test_outcomes_have_their_probability(p, seed):
    n = 4000
    y = draw_outcomes(np.full(n, p), seed)
    assert set(np.unique(y)) <= {0.0, 1.0}
    assert abs(y.mean() - p) <= 6 * np.sqrt(p * (1 - p) / n) + 1 / n


@pytest.mark.parametrize("p", [[0.5, np.nan], [1.5], [[0.2, -0.1]]])
def test_outcomes_of_no_probability_are_refused(p):
    with pytest.raises(ValueError, match="probabilities must hold probabilities"):
        draw_outcomes(p, 0)


def test_certain_outcomes_and_seeds():
    np.testing.assert_array_equal(draw_outcomes([0.0, 1.0] * 500, 3), [0, 1] * 500)
    p = probability(AGES, "linear")
    np.testing.assert_array_equal(draw_outcomes(p, 1), draw_outcomes(p, 1))
    assert (draw_outcomes(p, 1) != draw_outcomes(p, 2)).any()
