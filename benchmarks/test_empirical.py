"""CaPE's kernel targets at the paper's size, against a loop over the examples."""

import time

import numpy as np

from probnb.training.cape import p_emp_kernel

N, R, SIGMA = 16_641, 200, 0.05


def literal_loop(p_hat, y):
    """Algorithm 1 as it is written."""
    result = np.empty(len(p_hat))
    for i, p in enumerate(p_hat):
        distance = np.abs(p_hat - p)
        near = distance <= np.partition(distance, R - 1)[R - 1]
        weight = np.exp(-((distance[near] / SIGMA) ** 2))
        result[i] = weight @ y[near] / weight.sum()
    return result


def test_kernel_against_a_literal_loop(benchmark):
    rng = np.random.default_rng(0)
    p_hat = rng.beta(1, 2, N)
    y = (rng.random(N) < p_hat).astype(float)
    began = time.perf_counter()
    expected = literal_loop(p_hat, y)
    loop = time.perf_counter() - began
    result = benchmark.pedantic(p_emp_kernel, (p_hat, y, R, SIGMA), rounds=10, warmup_rounds=2)
    ours = benchmark.stats.stats.median
    error = np.abs(result - expected).max()
    benchmark.extra_info |= {
        "milliseconds": round(1e3 * ours, 1),
        "loop, seconds": round(loop, 2),
        "times faster": round(loop / ours),
        "largest difference": float(error),
    }
    print(f"\n{benchmark.extra_info}")
    assert error < 1e-12
