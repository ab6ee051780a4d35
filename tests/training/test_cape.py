import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from probnb.training.cape import p_emp_bin, p_emp_cells, p_emp_kernel


def brute_force(p_hat, y, r, sigma, weights=None, rows=slice(None)):
    """Algorithm 1's KERNEL one row at a time, with all predictions as far as the r-th."""
    weights, result = np.ones(len(y)) if weights is None else weights, []
    kept = weights > 0
    for p in p_hat[rows]:
        distance = np.abs(p_hat[kept] - p)
        near = distance <= np.sort(distance)[min(r, kept.sum()) - 1]
        exponent = (distance[near] / sigma) ** 2
        kernel = np.exp(exponent.min() - exponent) * weights[kept][near]
        result.append((kernel * y[kept][near]).sum() / kernel.sum())
    return result


def samples(n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "uniform": rng.random(n),
        "ties": rng.integers(0, 7, n) / 7,
        "hundredths": rng.random(n).round(2),
        "saturated": 1 / (1 + np.exp(-40 * rng.standard_normal(n))),
        "constant": np.full(n, 0.3),
        "zeros and ones": rng.integers(0, 2, n).astype(float),
    }


@pytest.mark.parametrize("r", [1, 2, 20, 37, 299, 1000])
@pytest.mark.parametrize("kind", samples(1))
def test_kernel_equals_brute_force(kind, r):
    p_hat = samples(300)[kind]
    y = (np.random.default_rng(1).random(300) < p_hat).astype(float)
    np.testing.assert_allclose(
        p_emp_kernel(p_hat, y, r, 0.05), brute_force(p_hat, y, r, 0.05), rtol=0, atol=1e-12
    )


def test_kernel_equals_brute_force_at_the_papers_size():
    rng = np.random.default_rng(2)
    p_hat = rng.beta(1, 2, 16_641)
    y = (rng.random(16_641) < p_hat).astype(float)
    rows = rng.choice(16_641, 500, replace=False)
    expected = brute_force(p_hat, y, 200, 0.05, rows=rows)
    np.testing.assert_allclose(p_emp_kernel(p_hat, y, 200, 0.05)[rows], expected, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(arrays(float, st.integers(1, 60), elements=st.floats(0, 1)), st.integers(1, 70))
def test_kernel_properties(p_hat, r):
    y = (np.arange(len(p_hat)) % 3 == 0).astype(float)
    result = p_emp_kernel(p_hat, y, r, 0.1)
    assert ((result >= 0) & (result <= 1)).all()
    order = np.random.default_rng(0).permutation(len(p_hat))
    np.testing.assert_allclose(
        p_emp_kernel(p_hat[order], y[order], r, 0.1), result[order], atol=1e-12
    )
    same = p_hat[:, None] == p_hat[None]
    assert (np.where(same, np.abs(result[:, None] - result[None]), 0) == 0).all()
    np.testing.assert_allclose(result, brute_force(p_hat, y, r, 0.1), atol=1e-12)


def test_bin_is_the_mean_of_each_quantile_bin():
    p_hat = np.linspace(0.05, 0.95, 20)
    y = np.arange(20) % 2
    y[:4] = 0
    expected = np.repeat(y.reshape(5, 4).mean(1), 4)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(p_emp_bin(p_hat[order], y[order], 5), expected[order])


def test_bin_keeps_ties_together_and_the_mean():
    p_hat = np.repeat([0.2, 0.4, 0.9], [50, 3, 47])
    y = np.random.default_rng(0).integers(0, 2, 100)
    result = p_emp_bin(p_hat, y, 15)
    for value in np.unique(p_hat):
        assert len(np.unique(result[p_hat == value])) == 1
    np.testing.assert_allclose(result.mean(), y.mean())


@pytest.mark.parametrize("function", [p_emp_bin, p_emp_kernel])
@pytest.mark.parametrize(
    ("p_hat", "y", "message"),
    [
        ([0.5, np.nan], [0, 1], "p_hat must hold probabilities"),
        ([0.5, 1.5], [0, 1], "p_hat must hold probabilities"),
        ([0.5, 0.5], [0, 2], "y must hold only 0 and 1"),
        ([0.5], [0, 1], "same length"),
        ([], [], "at least one row"),
    ],
)
def test_bad_input(function, p_hat, y, message):
    with pytest.raises(ValueError, match=message):
        function(p_hat, y)
    for name, value in (("neighbours", 0), ("neighbours", 2.5), ("sigma", 0.0)):
        with pytest.raises(ValueError, match=name):
            p_emp_kernel([0.5, 0.6], [0, 1], **{name: value})


@settings(deadline=None, max_examples=60)
@given(
    arrays(float, 20, elements=st.sampled_from([0.0, 0.2, 0.21, 0.9]) | st.floats(0, 1)),
    arrays(int, 20, elements=st.integers(0, 3)).filter(any),
    st.integers(1, 25),
    st.sampled_from([0.001, 0.1]),
)
def test_weighted_kernel_equals_brute_force(p_hat, weights, r, sigma):
    y = (np.arange(20) % 3 == 0).astype(float)
    result, expected = (f(p_hat, y, r, sigma, weights) for f in (p_emp_kernel, brute_force))
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-12)


def test_weighted_bins_share_the_weight():
    p_hat, y = [0.1, 0.2, 0.4, 0.6], [1, 0, 1, 1]
    np.testing.assert_allclose(p_emp_bin(p_hat, y, 2, [3, 1, 1, 2]), [1, 0.75, 0.75, 0.75])


@pytest.mark.parametrize("y", [[0, 7], [0, -1], [0, 0.5], [0]])
def test_outcomes_that_are_none_of_the_k_are_refused(y):
    p_hat = [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]
    with pytest.raises(ValueError, match="y must"):
        p_emp_cells(p_hat, y)
